"""Files that are whole or absent: written beside their target, flushed to disk, then renamed."""

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
        yield temporary
        for file in sorted(temporary.iterdir()):
            publish(file, folder / file.name)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


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
    return json.loads(Path(path).read_text(encoding="utf-8"))
