"""Files that are whole or absent: written beside their target, flushed to disk, then renamed.

Errors of the system name the file or folder that was written: a full disk by itself does not say which.
"""

import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replaced(target):
    """A temporary path beside `target`, which takes the target's place if the block ends without an error."""
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    for left in target.parent.glob(f".{target.name}.*"):  # by a writer that was killed: a target has one
        left.unlink(missing_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(handle)
    temporary = Path(name)
    try:
        with naming(target):
            yield temporary
            publish(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def filled(folder):
    """A temporary folder whose files move into `folder`, one by one, if the block ends without an error."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob(".writing.*"):  # by a writer that was killed: a folder has one at a time
        shutil.rmtree(left, ignore_errors=True)
    temporary = Path(tempfile.mkdtemp(dir=folder, prefix=".writing."))
    try:
        with naming(folder):
            yield temporary
            for file in sorted(temporary.iterdir()):
                publish(file, folder / file.name)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def naming(target):
    """An error of the system inside the block that names no file gets the name `target`."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # NumPy, of a full disk
            raise OSError(f"{target}: cannot be written whole ({error})") from error
        error.filename = error.filename or str(target)
        raise


def publish(temporary, target):
    """Flush a finished file to disk, and let it take the target's place."""
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    umask = os.umask(0)
    os.umask(umask)
    temporary.chmod(0o666 & ~umask)  # mkstemp's files are private
    temporary.replace(target)


def write_text(target, text):
    with replaced(target) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(target, value):
    write_text(target, json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n")


def read_json(path):
    """Raises ValueError that names the file where it is no JSON, as one that was edited or cut short."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: no JSON ({error}); remove it, and it is made anew") from error


def read_array(path, memory_map=False):
    """The array of a .npy file; raises ValueError that names the file where it is none."""
    import numpy as np  # not for those who only read settings

    try:
        return np.load(path, mmap_mode="r" if memory_map else None, allow_pickle=False)
    except OSError as error:
        if error.filename is not None:
            raise
        raise ValueError(f"{path}: no array ({error}); remove it, and it is made anew") from error
    except Exception as error:
        # Of a damaged file NumPy says so with errors of every kind.
        reason = " ".join(str(error).split())
        raise ValueError(f"{path}: no array ({reason}); remove it, and it is made anew") from error
