"""Arrays of .npz files, read as streams; whatever is damaged becomes a ValueError that names the file."""

import contextlib
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from lzma import LZMAError
from pathlib import Path
from typing import IO

import numpy as np

from tiebench.files import machine_memory, read_header
from tiebench.messages import one_line, printable, shorten

# What is raised on reading a damaged member, besides errors of zipfile's own kinds.
DAMAGED_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    LZMAError,
    EOFError,
    MemoryError,
    OverflowError,
    UnicodeError,
    struct.error,
)
NUMBERS, TEXT = "biuf", "US"
LONGEST_NAME = 1000  # characters
_END_OF_DIRECTORY = 22  # bytes of the record at a zip file's end, before its comment
_UNTOLD = 0xFFFF  # members, of an archive whose number stands elsewhere


@contextlib.contextmanager
def opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """The open archive; whatever is found damaged inside becomes a ValueError naming the file."""
    try:
        archive = zipfile.ZipFile(path)
    except Exception as error:
        # zipfile raises errors of every kind for a damaged directory.
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise ValueError(f"{path}: cut short, damaged or not a .npz file ({one_line(error)})") from error
    try:
        with archive:
            _check_directory(path, archive)
            yield archive
    except DAMAGED_ERRORS as error:
        raise ValueError(f"{path}: cut short, damaged or not a .npz file ({one_line(error)})") from error
    except (RuntimeError, NotImplementedError) as error:
        # zipfile raises these for encrypted members and unknown compressions.
        raise ValueError(
            f"{path}: cannot be read ({one_line(error)}); write it with numpy.savez_compressed"
        ) from error


def _check_directory(path: Path, archive: zipfile.ZipFile) -> None:
    """Raise ValueError where the directory has fewer members than its end says, which zipfile accepts.

    A damaged length in one entry can swallow those after it, and the file would be read without these arrays.
    """
    with path.open("rb") as file:
        file.seek(-_END_OF_DIRECTORY - len(archive.comment), os.SEEK_END)
        members = int.from_bytes(file.read(_END_OF_DIRECTORY)[10:12], "little")
    listed = len(archive.infolist())
    if members not in (listed, _UNTOLD):
        raise ValueError(
            f"{path}: cut short, damaged or not a .npz file (it lists {listed} of its {members} arrays)"
        )


@dataclass(frozen=True)
class _Header:
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype


@contextlib.contextmanager
def open_array(
    path: Path, archive: zipfile.ZipFile, name: str, kinds: str = NUMBERS
) -> Iterator[tuple[_Header, IO[bytes]]]:
    """Header of array `name` and the stream of its values; kinds: codes of the dtypes that are allowed."""
    member = archive.getinfo(f"{name}.npy")
    with _open_member(path, archive, member) as stream:
        try:
            header = _Header(*read_header(stream, "it"))
        except DAMAGED_ERRORS:
            raise
        except Exception as error:
            # A header is Python text, which can be damaged in every way.
            raise ValueError(
                f"{path}: array '{name}' is not a plain .npy array ({one_line(error)})"
            ) from error
        if header.dtype.kind not in kinds:
            allowed = {NUMBERS: "real numbers", TEXT: "text"}.get(kinds, "numbers or text")
            raise ValueError(f"{path}: array '{name}' is of type {header.dtype}; it must hold {allowed}")
        # A header may claim more data than the file has: check it before allocating memory.
        promised = int(np.prod(header.shape, dtype=object)) * header.dtype.itemsize
        if min(header.shape, default=0) < 0 or member.file_size - stream.tell() != promised:
            raise ValueError(
                f"{path}: array '{name}' is damaged: its length does not fit its shape {header.shape}"
            )
        yield header, stream


def _open_member(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> IO[bytes]:
    try:
        return archive.open(member)
    except (ValueError, OSError) as error:
        # A place beyond the end of the file.
        raise ValueError(f"{path}: cut short, damaged or not a .npz file ({one_line(error)})") from error


def read_exactly(stream: IO[bytes], size: int) -> bytes:
    """The next `size` bytes. Raises EOFError where there are fewer."""
    data = stream.read(size)
    if len(data) != size:
        raise EOFError("unexpected end of data")
    return data


def whole_array(path: Path, archive: zipfile.ZipFile, name: str, kinds: str = NUMBERS) -> np.ndarray:
    """The array `name`; text is decoded, of NumPy's type U."""
    with open_array(path, archive, name, kinds) as (header, stream):
        if archive.getinfo(f"{name}.npy").file_size > machine_memory() / 4:
            raise ValueError(f"{path}: array '{name}' of shape {header.shape} is too large for this machine")
        contents = stream.read()
        if header.dtype.itemsize == 0:  # empty text, of which frombuffer makes nothing
            raise ValueError(f"{path}: array '{name}' holds empty text only")
        values = np.frombuffer(contents, header.dtype)
        if values.size != np.prod(header.shape, dtype=np.int64):
            raise EOFError(f"array '{name}' ends early")
        values = values.reshape(header.shape, order="F" if header.fortran else "C")
        return values if values.dtype.kind in NUMBERS else _decoded(path, name, values)


def _decoded(path: Path, name: str, values: np.ndarray) -> np.ndarray:
    """Text as NumPy's type U; ValueError for what cannot be a name."""
    if values.dtype.kind == "U" and values.dtype.itemsize > 4 * LONGEST_NAME:
        raise ValueError(f"{path}: array '{name}' holds text of more than {LONGEST_NAME} characters")
    try:
        if values.dtype.kind == "S":
            values = np.char.decode(values, "utf-8")
        texts = values.ravel().tolist()
    except ValueError as error:
        raise ValueError(
            f"{path}: array '{name}' holds bytes that are not text ({one_line(error)})"
        ) from error
    check_printable(path, name, texts)
    return np.asarray(values, np.str_)


def check_printable(path: Path, name: str, texts: Iterable[str]) -> None:
    """Raise ValueError, one line that names the file, for a text that cannot be a name."""
    for place, text in enumerate(texts):
        if not text or not text.isprintable():
            raise ValueError(f"{path}: {name}[{place}] is {short(ascii(text))}; it must be printable text")


def short(value: object) -> str:
    """A value as a short part of a message."""
    return shorten(printable(str(value)), 60)


def array_names(path: Path, archive: zipfile.ZipFile) -> list[str]:
    """Names of the arrays. Raises ValueError for one that is there twice."""
    for member in archive.infolist():
        # Compares the name with the one beside the contents: a damaged name would be an array less.
        _open_member(path, archive, member).close()
    names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{path}: holds array '{short(name)}' twice")
    return names
