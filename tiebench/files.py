"""Files that are complete or absent, and arrays read without pickle.

Everything is written beside its target, flushed to disk and renamed. Errors of the operating system are made
to name the file or folder, which a full disk by itself does not. Archives are read without trusting their
headers.
"""

import errno
import glob
import hashlib
import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from tiebench.messages import one_line

AnyPath = str | os.PathLike
_REMEDY = "delete it to regenerate it"


@contextmanager
def replaced(target: AnyPath) -> Iterator[Path]:
    """A temporary path beside `target`, renamed to it if the block ends without an error.

    Raises ValueError where there is a folder, a device or a pipe, which the renamed file would take away.
    """
    target = Path(target)
    if target.exists() and not target.is_file():
        raise ValueError(f"{target}: exists and is not a file")
    target.parent.mkdir(parents=True, exist_ok=True)
    for left in target.parent.glob(f".{glob.escape(target.name)}.????????.writing"):
        left.unlink(missing_ok=True)  # of a killed writer: a target has one writer
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".writing")
    os.close(handle)
    temporary = Path(name)
    try:
        with naming(target):
            yield temporary
            publish(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def filled(folder: AnyPath) -> Iterator[Path]:
    """A temporary folder whose files move into `folder`, one by one, if the block ends without an error."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob(".writing.*"):  # left by a killed writer: a folder has one at a time
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
def naming(target: AnyPath) -> Iterator[None]:
    """Put the name of `target` into an OSError of the block that names no file."""
    try:
        yield
    except OSError as error:
        if type(error) is OSError and error.errno is None:  # NumPy, of a full disk
            raise OSError(f"{target}: cannot be written whole ({error})") from error
        if error.errno is not None:
            error.filename = error.filename or str(target)
        raise


@contextmanager
def naming_values(source: AnyPath) -> Iterator[None]:
    """Put the name of `source` before the message of a ValueError of the block, which read its values."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error


def publish(temporary: Path, target: AnyPath) -> None:
    """Flush a finished file to disk and rename it to `target`."""
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    umask = os.umask(0)
    os.umask(umask)
    temporary.chmod(0o666 & ~umask)  # mkstemp's files are private
    temporary.replace(target)


def write_text(target: AnyPath, text: str) -> None:
    """Write UTF-8 text with line feeds; the file appears when it is complete."""
    with replaced(target) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(target: AnyPath, value: Any) -> None:
    """Write JSON with sorted keys. Raises ValueError for NaN and infinities."""
    write_text(target, json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n")


@contextmanager
def reading_result(path: AnyPath) -> Iterator[None]:
    """Whatever a block fails with that reads a result becomes one line, which names the file and the remedy.

    A result is a file that a command of this project made and makes again where it is missing: not one of the
    user. Errors of files that cannot be opened stay as they are.
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        # Damaged files raise errors of every kind.
        reason, absent = one_line(error), isinstance(error, FileNotFoundError)
        if absent or (isinstance(error, OSError) and error.filename is not None) or reason.endswith(_REMEDY):
            raise
        where = "" if str(path) in reason else f"{path}: "
        raise ValueError(f"{where}{reason}; {_REMEDY}") from error


def read_json(path: AnyPath) -> Any:
    """The value of a JSON file that is a result. Raises ValueError as `reading_result`."""
    with reading_result(path):
        try:
            return json.loads(Path(path).read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}: invalid JSON ({one_line(error)})") from error


def read_lines(path: AnyPath) -> list[dict[str, Any]]:
    """The objects of a result with one JSON object a line. Raises ValueError as `reading_result`."""
    with reading_result(path):
        try:
            found = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}: invalid lines of JSON ({one_line(error)})") from error
        if not all(isinstance(line, dict) for line in found):
            raise ValueError(f"{path}: invalid lines of JSON (each must be an object)")
        return found


def read_array(path: AnyPath, memory_map: bool = False) -> np.ndarray:
    """The array of an .npy file. Raises OSError if it cannot be opened, ValueError that names it if it is no
    array."""
    try:
        found = np.load(path, mmap_mode="r" if memory_map else None, allow_pickle=False)
        if not isinstance(found, np.ndarray):
            found.close()
            raise ValueError("it is an .npz archive: give the .npy file of one array")
        return found
    except Exception as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        # NumPy raises errors of every kind for a damaged file.
        raise ValueError(f"{path}: not a NumPy array ({one_line(error)})") from error


def read_result_array(path: AnyPath, memory_map: bool = False) -> np.ndarray:
    """`read_array` of a result. Raises ValueError as `reading_result`."""
    with reading_result(path):
        return read_array(path, memory_map)


def read_result_npz(path: AnyPath, names: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """`read_npz` of a result. Raises ValueError as `reading_result`."""
    with reading_result(path):
        return read_npz(path, names)


def create_array(path: AnyPath, shape: tuple[int, ...], dtype: Any) -> tuple[np.dtype, int]:
    """Create an .npy file of zeros, in C order, with its disk space reserved: its dtype and offset in bytes.

    Without the reservation, writing to a memory map of the file would kill the process once the disk is full.
    Raises OSError if the disk has too little space; file systems without reservations skip it.
    """
    created = np.lib.format.open_memmap(path, "w+", np.dtype(dtype), shape)
    found, offset, size = created.dtype, created.offset, created.offset + created.nbytes
    del created
    if hasattr(os, "posix_fallocate"):
        with Path(path).open("rb+") as file:
            try:
                os.posix_fallocate(file.fileno(), 0, size)
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                    raise
    return found, offset


def read_npz(path: AnyPath, names: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """Name -> array of the members `<name>.npy` of an .npz file; those of `names` only, if these are given.

    Lengths are compared with those in the headers before memory is allocated. Raises OSError if the file
    cannot be opened; ValueError, one line that names the file, if it is damaged, pickled, holds a member
    twice or is larger than the memory of this machine.
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
        # Damaged files raise errors of every kind.
        raise ValueError(f"{path} is not a readable .npz file of plain arrays: {one_line(error)}") from error


def read_folder(folder: AnyPath, names: Collection[str]) -> dict[str, np.ndarray]:
    """Name -> memory-mapped array of the files `<name>.npy` present in a folder; raises as `read_array`."""
    arrays = {}
    for path in [Path(folder, f"{name}.npy") for name in names]:
        if path.exists():
            arrays[path.stem] = read_array(path, memory_map=True)
    return arrays


def array_names(path: AnyPath) -> list[str]:
    """Names of the arrays of an .npz file or of a folder of .npy files, which can be read."""
    if Path(path).is_dir():
        return sorted(file.stem for file in Path(path).glob("*.npy"))
    with zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]


def sha256(path: AnyPath) -> str:
    """sha256 of a file's content, in hexadecimal."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_npz(path: AnyPath, **arrays: np.ndarray) -> None:
    """Write arrays to an .npz file of exactly this name, which appears when it is complete.

    Raises OSError that names the file if it cannot be written; an earlier file is then left as it was.
    """
    path, members = Path(path), dict[str, Any](arrays)
    if path.exists() and not path.is_file():  # a device, a pipe: nothing to replace; a folder: refused
        with naming(path), path.open("wb") as stream:
            np.savez(stream, **members)
        return
    with replaced(path) as temporary, temporary.open("wb") as stream:
        np.savez(stream, **members)


def machine_memory() -> float:
    """Bytes of memory of this machine; infinite if the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return float("inf")


def read_header(stream: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether columns come first, and dtype of an .npy stream, which is left where its values begin.

    Raises ValueError that calls the array `name` for other versions of the format and for pickled objects,
    errors of every kind for a damaged header.
    """
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"{name} is of version {version} of the .npy format")
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = header(stream)
    if dtype.hasobject:
        raise ValueError(
            f"{name} holds pickled Python objects, which are never loaded; "
            "save numbers, or strings as array.astype(str)"
        )
    return shape, fortran, dtype


def _member(archive, name):
    info = archive.getinfo(name)
    with archive.open(info) as stream:
        shape, _, dtype = read_header(stream, name)
        length = 1
        for size in shape:
            length *= size
        if min(shape, default=0) < 0 or info.file_size - stream.tell() != length * dtype.itemsize:
            raise ValueError(f"the length of {name} does not fit its shape {shape}")
        if length * dtype.itemsize > machine_memory():
            raise ValueError(f"{name} of shape {shape} is larger than the memory of this machine")
    with archive.open(info) as stream:
        array = np.lib.format.read_array(stream, allow_pickle=False)
        stream.read()  # to the very end: only there its sum is compared
        return array
