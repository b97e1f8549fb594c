"""Feature vectors from one .npz file, read as a stream: memory does not grow with the file.

Arrays of the file: `X` (n, d) of any real dtype; optional `y`, (n,) integer classes >= 0 or (n, L) multi-hot
of 0 and 1; optional `scale` (d,): features are X * scale, in float32; optional `split` (n,) integers.
Other arrays are left alone.
"""

import contextlib
import logging
import struct
import time
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from lzma import LZMAError
from pathlib import Path
from typing import IO

import numpy as np

from datasets._archives import printable
from datasets._description import Description
from datasets._files import ItemsFile, creating_items, machine_memory
from datasets._specification import refuse_unknown_options

OPTIONS: dict[str, str] = {}

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
KNOWN_ARRAYS = ("X", "y", "scale", "split")
BLOCK_BYTES = 16 << 20
SECONDS_BETWEEN_REPORTS = 5.0

logger = logging.getLogger("tiebench")


def describe(sources: list[Path], **options) -> Description:
    """Labels, given split and shape of the features; of X only the header is read.

    sources: one .npz file, see the module. Labels are int64 (n,) or uint8 (n, L) or None.
    Raises FileNotFoundError where the file is missing, ValueError where it is not as the module says.
    """
    path = _one_source(sources, options)
    with _opened(path) as archive:
        return _description(path, archive)


def load(sources: list[Path], folder: Path, **options) -> Description:
    """Write items.npy float32 (n, d), labels.npy and given_split.npy into `folder`; see `describe`.

    Raises FileNotFoundError and ValueError as `describe`, and ValueError for a feature that is not finite.
    """
    path, folder = _one_source(sources, options), Path(folder)
    with _opened(path) as archive:
        description = _description(path, archive)
        scale = _scale(path, archive, description.item_shape[0])
        shape = (description.items, *description.item_shape)
        with creating_items(folder / "items.npy", shape, np.float32) as items:
            _copy_features(path, archive, scale, items)
    description.write(folder)
    return description


def _one_source(sources: list[Path], options: dict) -> Path:
    refuse_unknown_options(options, OPTIONS, "features_file")
    if len(sources) != 1:
        raise ValueError(f"loader features_file: takes one .npz file, got {len(sources)} sources")
    path = Path(sources[0])
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    if not path.is_file():
        raise ValueError(f"{path}: must be a .npz file")
    return path


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """The open archive; whatever is found damaged inside becomes a ValueError naming the file."""
    try:
        archive = zipfile.ZipFile(path)
    except Exception as error:
        # Of damaged directories zipfile says so with errors of every kind.
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise ValueError(f"{path}: cut short, damaged or not a .npz file ({_told(error)})") from error
    try:
        with archive:
            yield archive
    except DAMAGED_ERRORS as error:
        raise ValueError(f"{path}: cut short, damaged or not a .npz file ({_told(error)})") from error
    except (RuntimeError, NotImplementedError) as error:
        # zipfile says so of encrypted members and of compressions that it cannot undo.
        raise ValueError(
            f"{path}: cannot be read ({_told(error)}); write it with numpy.savez_compressed"
        ) from error


def _told(error: Exception) -> str:
    """The message of an error as part of one line."""
    return printable(" ".join(str(error).split())) or type(error).__name__


@dataclass(frozen=True)
class _Header:
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype


@contextlib.contextmanager
def _array(path: Path, archive: zipfile.ZipFile, name: str) -> Iterator[tuple[_Header, IO[bytes]]]:
    """Header of array `name` and the stream of its values."""
    member = archive.getinfo(f"{name}.npy")
    with _member(path, archive, member) as stream:
        try:
            version = np.lib.format.read_magic(stream)
            if version == (1, 0):
                header = _Header(*np.lib.format.read_array_header_1_0(stream))
            elif version == (2, 0):
                header = _Header(*np.lib.format.read_array_header_2_0(stream))
            else:
                raise ValueError(f"version {version} of the .npy format")
        except DAMAGED_ERRORS:
            raise
        except Exception as error:
            # A header is Python text, which can be damaged in every way.
            raise ValueError(f"{path}: array '{name}' is not a plain .npy array ({_told(error)})") from error
        if header.dtype.hasobject:
            raise ValueError(f"{path}: array '{name}' holds pickled Python objects, which are never loaded")
        if header.dtype.kind not in "biuf":
            raise ValueError(f"{path}: array '{name}' is of type {header.dtype}; it must hold real numbers")
        # A header may promise more than there is: found out before room is made for it.
        promised = int(np.prod(header.shape, dtype=object)) * header.dtype.itemsize
        if min(header.shape, default=0) < 0 or member.file_size - stream.tell() != promised:
            raise ValueError(
                f"{path}: array '{name}' is damaged: its length does not fit its shape {header.shape}"
            )
        yield header, stream


def _member(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> IO[bytes]:
    try:
        return archive.open(member)
    except (ValueError, OSError) as error:
        # A place in the file that there is not.
        raise ValueError(f"{path}: cut short, damaged or not a .npz file ({_told(error)})") from error


def _read_exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise EOFError("unexpected end of data")
    return data


def _whole_array(path: Path, archive: zipfile.ZipFile, name: str) -> np.ndarray:
    with _array(path, archive, name) as (header, stream):
        if archive.getinfo(f"{name}.npy").file_size > machine_memory() / 4:
            raise ValueError(f"{path}: array '{name}' of shape {header.shape} is too large for this machine")
        values = np.frombuffer(stream.read(), header.dtype)
        if values.size != np.prod(header.shape, dtype=np.int64):
            raise EOFError(f"array '{name}' ends early")
        return values.reshape(header.shape, order="F" if header.fortran else "C")


def _description(path: Path, archive: zipfile.ZipFile) -> Description:
    for member in archive.infolist():
        # Compares the name with the one beside the contents: a damaged name would be an array less.
        _member(path, archive, member).close()
    names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
    for name in KNOWN_ARRAYS:
        if names.count(name) > 1:
            raise ValueError(f"{path}: holds array '{name}' twice")
    if "X" not in names:
        raise ValueError(
            f"{path}: has no array 'X' of features; arrays there: {printable(', '.join(names)) or 'none'}"
        )
    with _array(path, archive, "X") as (header, _):
        shape = header.shape
    if len(shape) != 2:
        raise ValueError(f"{path}: X must have two dimensions (items, features), not shape {shape}")
    if 0 in shape:
        raise ValueError(f"{path}: X is empty, of shape {shape}")
    items = shape[0]
    labels = given_split = None
    if "y" in names:
        labels = _labels(path, _whole_array(path, archive, "y"), items)
    else:
        others = [name for name in names if name not in KNOWN_ARRAYS]
        logger.info(
            "%s: no array 'y', so no labels (left alone: %s)", path.name, ", ".join(others) or "nothing"
        )
    if "split" in names:
        split = _whole_array(path, archive, "split")
        if split.shape != (items,):
            raise ValueError(f"{path}: split has shape {split.shape}; X of {items} rows asks for ({items},)")
        given_split = _integers(path, "split", split)
    return Description(items, labels, given_split, None, (shape[1],), "vectors")


def _labels(path: Path, y: np.ndarray, items: int) -> np.ndarray:
    if y.ndim not in (1, 2):
        raise ValueError(f"{path}: y must be (n,) classes or (n, L) multi-hot, not of shape {y.shape}")
    if len(y) != items:
        raise ValueError(f"{path}: y has {len(y)} rows, X has {items}: each item needs its row of y")
    if y.ndim == 1:
        classes = _integers(path, "y", y)
        if classes.min() < 0:
            row = int(np.argmax(classes < 0))
            raise ValueError(f"{path}: y[{row}] is {classes[row]}; classes must not be negative")
        return classes
    if y.shape[1] == 0:
        raise ValueError(f"{path}: y has no columns; leave it out where there are no labels")
    wrong = (y != 0) & (y != 1)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(
            f"{path}: y[{row}, {column}] is {y[row, column]}; multi-hot labels are 0 or 1 "
            "(classes are a y of one dimension)"
        )
    return y.astype(np.uint8, order="C")


def _integers(path: Path, name: str, values: np.ndarray) -> np.ndarray:
    """`values` (n,) of any real dtype as int64; ValueError names the first that is not an integer."""
    if values.dtype.kind == "f":
        wrong = ~np.isfinite(values) | (values != np.floor(values)) | (np.abs(values) >= 2.0**63)
    else:
        wrong = values > np.iinfo(np.int64).max
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{path}: {name}[{row}] is {values[row]}; it must be an integer of 64 bits")
    return values.astype(np.int64)


def _scale(path: Path, archive: zipfile.ZipFile, dimensions: int) -> np.ndarray | None:
    """float32 (d,), or None where the file has none."""
    if "scale.npy" not in archive.namelist():
        return None
    scale = _whole_array(path, archive, "scale")
    if scale.shape != (dimensions,):
        raise ValueError(
            f"{path}: scale has shape {scale.shape}; X of {dimensions} columns asks for ({dimensions},)"
        )
    with np.errstate(over="ignore"):
        single = scale.astype(np.float32)
    if not np.isfinite(single).all():
        column = int(np.argmin(np.isfinite(single)))
        raise ValueError(f"{path}: scale[{column}] is {scale[column]}; it must be finite (in float32)")
    return single


def _copy_features(path: Path, archive: zipfile.ZipFile, scale: np.ndarray | None, items: ItemsFile) -> None:
    """Fill `items` float32 (n, d) with X * scale, by blocks of rows (of columns for X in Fortran order)."""
    with _array(path, archive, "X") as (header, stream):
        rows, columns = header.shape
        lines, length = (columns, rows) if header.fortran else (rows, columns)
        step = max(1, BLOCK_BYTES // (length * max(4, header.dtype.itemsize)))
        reported = time.monotonic()
        for first in range(0, lines, step):
            last = min(first + step, lines)
            data = _read_exactly(stream, (last - first) * length * header.dtype.itemsize)
            raw = np.frombuffer(data, header.dtype).reshape(last - first, length)
            if header.fortran:
                where, raw = (slice(None), slice(first, last)), raw.T
            else:
                where = (slice(first, last), slice(None))
            with np.errstate(over="ignore"):
                block = raw.astype(np.float32)
                if scale is not None:
                    block *= scale[where[1]]
            finite = np.isfinite(block)
            if not finite.all():
                row, column = np.argwhere(~finite)[0]
                place = (row, column + first) if header.fortran else (row + first, column)
                factor = "" if scale is None else f" (times scale {scale[place[1]]})"
                raise ValueError(
                    f"{path}: X[{place[0]}, {place[1]}] is {raw[row, column]}{factor}; "
                    "features must be finite in float32"
                )
            items.view()[where] = block
            if time.monotonic() - reported > SECONDS_BETWEEN_REPORTS:
                reported = time.monotonic()
                logger.info(
                    "%s: %d of %d MB of features", path.name, last * length >> 18, lines * length >> 18
                )
