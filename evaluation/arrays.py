"""Arrays in files that nobody vouches for, read without pickle and without believing what they say of
themselves; and written whole or not at all."""

import os
import zipfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np


def read_npz(path, names=None):
    """Name -> array of the members `<name>.npy` of an .npz file; those of `names` only, if these are given.

    Lengths are compared with what the headers promise before room is made for them. Raises OSError for a file
    that cannot be opened; ValueError, one line that names the file, for everything else that is wrong with
    it: damaged, pickled, a member twice, larger than the memory of this machine.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = [name for name in archive.namelist() if name.endswith(".npy")]
            wanted = [name for name in members if names is None or name.removesuffix(".npy") in names]
            twice = {name for name in wanted if wanted.count(name) > 1}
            if twice:
                raise ValueError(f"it holds {min(twice)} twice")
            return {name.removesuffix(".npy"): _member(archive, name) for name in wanted}
    except Exception as error:
        if isinstance(error, OSError) and error.filename is not None:  # it cannot be opened
            raise
        # Readers of damaged files fail with errors of every kind.
        raise ValueError(f"{path} is not a readable .npz file of plain arrays: {one_line(error)}") from error


def read_folder(folder, names):
    """Name -> memory-mapped array of the files `<name>.npy` of a folder that are there; as `read_npz`."""
    arrays = {}
    for path in [Path(folder, f"{name}.npy") for name in names]:
        if path.exists():
            try:
                arrays[path.stem] = np.load(path, mmap_mode="r", allow_pickle=False)
            except Exception as error:
                raise ValueError(f"{path} is not a readable .npy file: {one_line(error)}") from error
    return arrays


def write_npz(path, **arrays):
    """Write arrays to an .npz file of exactly this name, which appears when it is whole.

    Raises OSError that names the file where it cannot be written; what was there before then stays.
    """
    path = Path(path)
    if path.exists() and not path.is_file():  # a device, a pipe: nothing to replace; a folder: refused
        with _named(path), path.open("wb") as stream:
            np.savez(stream, **arrays)
        return
    temporary = path.with_name(path.name + ".partial")
    try:
        with _named(path):
            with temporary.open("wb") as stream:
                np.savez(stream, **arrays)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def one_line(error):
    """The message of an error as part of one line, at most 300 characters; its kind where it has none."""
    return " ".join(str(error).split())[:300] or type(error).__name__


@contextmanager
def _named(path):
    """Errors of the system inside the block name `path`: a full disk does not say which file was written."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise OSError(f"{path}: cannot be written whole ({error})") from error
        error.filename = str(path)
        raise


def _member(archive, name):
    info = archive.getinfo(name)
    with archive.open(info) as stream:
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"{name} is of version {version} of the .npy format")
        header = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = header(stream)
        if dtype.hasobject:
            raise ValueError(f"{name} holds pickled Python objects, which are never loaded")
        length = 1
        for size in shape:
            length *= size
        if min(shape, default=0) < 0 or info.file_size - stream.tell() != length * dtype.itemsize:
            raise ValueError(f"the length of {name} does not fit its shape {shape}")
        if length * dtype.itemsize > _memory():
            raise ValueError(f"{name} of shape {shape} is larger than the memory of this machine")
    with archive.open(info) as stream:
        array = np.lib.format.read_array(stream, allow_pickle=False)
        stream.read()  # to the very end: only there its sum is compared
        return array


def _memory():
    """Bytes of the machine's memory; of a machine that does not say, without end."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return float("inf")
