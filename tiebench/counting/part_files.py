"""Files with parts of a database: codes and labels, read in blocks from disk or from object storage.

A file is .npy, .npz, .parquet or .zarr; a path with `://` is opened by fsspec, all others by Python. Memory
holds one block at a time.
"""

import glob
import hashlib
import json
import os
import re
import zipfile
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np

from tiebench.files import read_header
from tiebench.messages import did_you_mean, nearest, one_line
from tiebench.values import hint_of_packed

NAMES = ("database", "database_labels")
_AHEAD = 1 << 20  # bytes that a remote file reads beyond what it is asked for
_STAMPS = ("ETag", "etag", "md5Hash", "mtime", "LastModified", "last_modified", "updated", "created")


@dataclass(frozen=True)
class PartFile:
    """One file of codes and labels, or two .npy files; names: of the arrays or columns inside."""

    codes: str
    labels: str | None = None
    names: tuple[str, str] = NAMES

    @property
    def paths(self) -> tuple[str, ...]:
        """The file, or both files."""
        return (self.codes,) if self.labels is None else (self.codes, self.labels)


@dataclass(frozen=True)
class Columns:
    """What the queries ask of a file: bytes of a code, and columns of the labels (None: classes, (n,))."""

    code_bytes: int
    labels: int | None


class Reader(Protocol):
    """An open file. `edges`: ascending rows at which it can be cut, from 0 to `items`."""

    items: int
    edges: Sequence[int]

    def blocks(self, begin: int, end: int, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Codes and labels of rows begin..end-1, two of `edges`, in blocks of about `size` rows."""
        ...


def find(
    paths: str | Sequence[str],
    labels: str | Sequence[str] | None = None,
    names: tuple[str, str] = NAMES,
) -> list[PartFile]:
    """The files that paths or patterns match, those of one pattern sorted.

    Parameters
    ----------
    paths : str or sequence of str
        Paths or URLs, or patterns with `*` and `?`.
    labels : str or sequence of str, optional
        Files of labels, one for each .npy file of codes: that whose name differs from the others' in the same
        way, part3.labels.npy for part3.codes.npy; where names do not say it, in the same order.
    names : (str, str)
        Of the arrays or columns of codes and of labels inside the files.

    Returns
    -------
    list of `PartFile`

    Raises
    ------
    ValueError
        One line that names the file or pattern, if nothing matches, a file is given twice, is of another
        format or has no labels, and where neither names nor an order say which labels are a file's.
    """
    found = _expanded(paths)
    if not found:
        raise ValueError("the list of files of the database is empty")
    beside = _expanded(labels or ())
    real = Counter(path if _is_remote(path) else os.path.realpath(path) for path in (*found, *beside))
    for path in (*found, *beside):
        suffix = Path(path).suffix
        if suffix not in _FORMATS:
            known = ", ".join(_FORMATS)
            raise ValueError(f"{path}: files of a database are {known}, not {suffix or 'without an ending'}")
        if path in beside and suffix != ".npy":
            raise ValueError(f"{path}: labels of their own stand in .npy files, beside .npy files of codes")
        if real[path if _is_remote(path) else os.path.realpath(path)] > 1:
            raise ValueError(f"{path} is given twice")
    alone = [path for path in found if path.endswith(".npy")]
    if alone and not beside:
        raise ValueError(f"{alone[0]} has no labels: give --labels, database_labels in Python")
    if len(alone) != len(beside):
        raise ValueError(
            f"there are {len(alone)} .npy files of codes, from {alone[0] if alone else 'none'}, but "
            f"{len(beside)} of labels, from {beside[0]}"
        )
    of_codes = _paired(alone, beside, not any(map(_is_pattern, _several(paths) + _several(labels or ()))))
    return [PartFile(path, of_codes.get(path), names) for path in found]


def _paired(codes, labels, are_listed):
    """Codes -> labels, by what tells names apart, or by their order if both are listed without patterns."""
    of_labels, of_codes = (dict(zip(_differences(paths), paths)) for paths in (labels, codes))
    if len(of_codes) == len(codes) and of_codes.keys() == of_labels.keys():
        return {path: of_labels[difference] for difference, path in of_codes.items()}
    if not are_listed:
        raise ValueError(
            f"the names do not say which labels are of which codes, as {labels[0]} and {codes[0]}: name both "
            "alike, as part*.codes.npy and part*.labels.npy, or list them in one order"
        )
    return dict(zip(codes, labels))


def _differences(paths):
    """What is left of each path without the beginning and the end that all have; numbers stay whole."""
    if len(paths) < 2:
        return [""] * len(paths)
    begin = len(_common_prefix(paths).rstrip("0123456789"))
    rest = [path[begin:] for path in paths]
    end = len(_common_prefix([path[::-1] for path in rest]).rstrip("0123456789"))
    return [re.sub(r"0*([0-9]+)", r"\1", path[: len(path) - end]) for path in rest]


def _common_prefix(texts):
    return os.path.commonprefix(texts)  # noqa: RUF071 - of characters, not of folders


def _several(patterns):
    lone = isinstance(patterns, (str, os.PathLike))
    return [str(pattern) for pattern in ([patterns] if lone else patterns)]


def _expanded(patterns):
    return [path for pattern in _several(patterns) for path in _matches(pattern)]


def _is_pattern(path):
    return any(character in path for character in "*?[") and (_is_remote(path) or not Path(path).exists())


def _matches(pattern):
    """Sorted paths; of this machine, absolute: workers of a cluster have other working folders."""
    asks = _is_pattern(pattern)
    if _is_remote(pattern):
        pattern = pattern.rstrip("/")
        if not asks:
            return [pattern]
        with _naming(pattern):
            files, name = _file_system(pattern)
            found = sorted(files.unstrip_protocol(one) for one in files.glob(name))
    elif Path(pattern).exists():
        return [str(Path(pattern).absolute())]
    else:
        # Not Path.glob: as in a shell, `*` stands for no hidden file.
        found = sorted(str(Path(one).absolute()) for one in glob.glob(pattern, recursive=True))  # noqa: PTH207
        if not asks:
            folder = Path(pattern).parent
            beside = [file.name for file in folder.iterdir()] if folder.is_dir() else []
            close = nearest(Path(pattern).name, beside, 1)
            raise ValueError(f"{pattern}: no such file" + (f"; did you mean {close[0]!r}?" if close else ""))
    if not found:
        raise ValueError(f"no file matches {pattern}")
    return found


@contextmanager
def opened(part: PartFile, columns: Columns) -> Iterator[Reader]:
    """The file, open, as a context.

    Parameters
    ----------
    part : `PartFile`
    columns : `Columns`
        What the queries ask of it.

    Yields
    ------
    `Reader`

    Raises
    ------
    PartFileError
        One line that names the file, for any error while it is open.
    """
    with _naming(part.codes), ExitStack() as stack:
        yield _FORMATS[Path(part.codes).suffix](part, columns, stack)


class PartFileError(ValueError):
    """What is wrong with one file of a database, in one line that names it."""


@contextmanager
def _naming(path):
    try:
        yield
    except (MemoryError, PartFileError):
        raise
    except ImportError as error:
        # fsspec says itself which package reads a storage, without a name.
        install = f": pip install {error.name.split('.')[0]}" if error.name else ""
        raise PartFileError(f"{path}: reading it needs a package ({one_line(error)}){install}") from error
    except Exception as error:
        # Damaged files and storage services raise errors of every kind.
        reason = (isinstance(error, OSError) and error.strerror) or one_line(error)
        raise PartFileError(f"{path}: {reason}") from error


def identity(part: PartFile) -> str:
    """A digest that changes with the file.

    Parameters
    ----------
    part : `PartFile`

    Returns
    -------
    str
        Of sizes and times, or of the tags that object storage gives.

    Raises
    ------
    PartFileError
        One line, for a file that is not there.
    """
    digest = hashlib.sha256()
    for path in part.paths:
        with _naming(path):
            digest.update(json.dumps(sorted(_stamps(path))).encode())
    return digest.hexdigest()


def _stamps(path):
    """(name inside a folder, size, time or tag) of a file, or of each file of a folder."""
    if not _is_remote(path):
        place = Path(path)
        files = [file for file in place.rglob("*") if file.is_file()] if place.is_dir() else [place]
        states = [(file, file.stat()) for file in files]
        return [[str(file.relative_to(place)), state.st_size, state.st_mtime_ns] for file, state in states]
    files, name = _file_system(path)
    files.invalidate_cache()
    described = files.info(name)
    inside = files.find(name, detail=True) if described["type"] == "directory" else {name: described}
    return [
        [one, state.get("size"), next((str(state[key]) for key in _STAMPS if key in state), "")]
        for one, state in inside.items()
    ]


def _is_remote(path):
    return "://" in path


def _file_system(path):
    import fsspec

    return fsspec.core.url_to_fs(path)


def _stream(path: str, stack: ExitStack) -> IO[bytes]:
    if not _is_remote(path):
        return stack.enter_context(Path(path).open("rb"))
    files, name = _file_system(path)
    return stack.enter_context(files.open(name, "rb", block_size=_AHEAD, cache_type="readahead"))


def _size(stream):
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    return size


def _check_columns(what, shape, dtype, columns, of_codes):
    """Raise ValueError unless an array has the columns that the queries ask for; only then is it read."""
    wanted = columns.code_bytes if of_codes else columns.labels
    if of_codes and (dtype != np.uint8 or len(shape) != 2 or shape[1] != wanted):
        hint = ""
        if dtype.kind in "iu" and tuple(shape[1:]) == (wanted,):
            hint = hint_of_packed(np.empty((0, wanted), dtype), 8 * wanted)
        raise ValueError(
            f"{what} must be packed codes, uint8 of shape (n, {wanted}), not {dtype} {shape}{hint}"
        )
    if not of_codes and tuple(shape[1:]) != (() if wanted is None else (wanted,)):
        form = "(n,)" if wanted is None else f"(n, {wanted})"
        raise ValueError(f"{what} must be of shape {form}, as the labels of the queries are, not {shape}")


def _check_lengths(codes, labels):
    if codes != labels:
        raise ValueError(f"there are {codes} codes but {labels} labels")


class _Rows:
    """Rows of an .npy stream of `size` bytes."""

    def __init__(self, stream, size, what, columns, of_codes):
        shape, fortran, self.dtype = read_header(stream, what)
        if len(shape) == 0 or min(shape) < 0:
            raise ValueError(f"{what} has the shape {shape}")
        _check_columns(what, shape, self.dtype, columns, of_codes)
        if fortran and len(shape) > 1 and shape[1] > 1:
            raise ValueError(f"{what} is stored column by column: save numpy.ascontiguousarray of it")
        self.items, self.shape, self.stream, self.start = shape[0], shape[1:], stream, stream.tell()
        self.row = self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))
        if size - self.start != self.items * self.row:
            raise ValueError(f"the length of {what} does not fit its shape {shape}")

    def read(self, begin, end):
        self.stream.seek(self.start + begin * self.row)
        data = self.stream.read((end - begin) * self.row)
        return np.frombuffer(data, self.dtype).reshape(end - begin, *self.shape)


class _Npy:
    """Two .npy files, which can be cut anywhere."""

    def __init__(self, part, columns, stack):
        self._rows = []
        for path, of_codes in ((part.codes, True), (part.labels, False)):
            with _naming(path):
                stream = _stream(path, stack)
                what = "the array" if of_codes else "the array of labels"
                self._rows.append(_Rows(stream, _size(stream), what, columns, of_codes))
        _check_lengths(*(rows.items for rows in self._rows))
        self.items = self._rows[0].items
        self.edges: Sequence[int] = range(self.items + 1)

    def blocks(self, begin, end, size):
        for low in range(begin, end, size):
            high = min(low + size, end)
            codes, labels = (rows.read(low, high) for rows in self._rows)
            yield codes, labels


class _Npz(_Npy):
    """Two arrays of an .npz file, which may be compressed and is therefore read from its beginning."""

    def __init__(self, part, columns, stack):
        self._rows = []
        for name, of_codes in zip(part.names, (True, False)):
            # Two streams: one that jumps between two arrays would read everything several times.
            archive = stack.enter_context(zipfile.ZipFile(_stream(part.codes, stack)))
            members = [one for one in archive.namelist() if one.endswith(".npy")]
            if f"{name}.npy" not in members:
                raise ValueError(f"it lacks {name!r}{did_you_mean(name, [one[:-4] for one in members])}")
            if members.count(f"{name}.npy") > 1:
                raise ValueError(f"it holds {name!r} twice")
            info = archive.getinfo(f"{name}.npy")
            stream = stack.enter_context(archive.open(info))
            self._rows.append(_Rows(stream, info.file_size, name, columns, of_codes))
        _check_lengths(*(rows.items for rows in self._rows))
        self.items = self._rows[0].items
        self.edges = (0, self.items)


class _Parquet:
    """Two columns of a Parquet file, which is cut between its row groups."""

    def __init__(self, part, columns, stack):
        import pyarrow.parquet

        # Pages are read as they are needed, not whole row groups.
        self._file = pyarrow.parquet.ParquetFile(
            _stream(part.codes, stack), buffer_size=_AHEAD, pre_buffer=False
        )
        stack.callback(self._file.close)
        self._names, known = part.names, self._file.schema_arrow.names
        for name in part.names:
            if name not in known:
                raise ValueError(f"it lacks the column {name!r}{did_you_mean(name, known)}")
        metadata = self._file.metadata
        rows = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        self.edges: Sequence[int] = np.cumsum([0, *rows]).tolist()
        self.items = self.edges[-1]
        self._columns = columns

    def blocks(self, begin, end, size):
        groups = range(bisect_left(self.edges, begin), bisect_left(self.edges, end))
        for batch in self._file.iter_batches(size, groups, list(self._names), use_threads=False):
            made = [_arrow_rows(name, batch.column(name)) for name in self._names]
            for name, rows, of_codes in zip(self._names, made, (True, False)):
                _check_columns(name, rows.shape, rows.dtype, self._columns, of_codes)
            yield made[0], made[1]


def _arrow_rows(name, column):
    """A column as an array: bytes and lists (n, width), everything else (n,)."""
    from pyarrow import compute, types

    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.null_count:
        raise ValueError(f"the column {name!r} has {column.null_count} null values")
    kind = column.type
    if types.is_fixed_size_binary(kind):
        width = kind.byte_width
        begin = column.offset * width
        values = np.frombuffer(column.buffers()[1], np.uint8, len(column) * width, begin)
        return values.reshape(len(column), width)
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    is_binary = types.is_binary(kind) or types.is_large_binary(kind)
    if not (is_list or is_binary):
        return column.to_numpy(zero_copy_only=False)
    lengths = (compute.list_value_length if is_list else compute.binary_length)(column)
    width, most = (compute.min_max(lengths)[end].as_py() for end in ("min", "max"))
    if width != most:
        raise ValueError(f"the column {name!r} has rows of {width} to {most} values")
    if is_binary:
        return np.frombuffer(b"".join(column.to_pylist()), np.uint8).reshape(len(column), width)
    values = column.flatten()
    if values.null_count:
        raise ValueError(f"the column {name!r} has null values inside its lists")
    return values.to_numpy(zero_copy_only=False).reshape(len(column), width)


class _Zarr:
    """Two arrays of a Zarr group, which is cut between the chunks of codes."""

    def __init__(self, part, columns, stack):
        import zarr

        group = zarr.open_group(part.codes, mode="r")
        known = dict(group.arrays())
        for name in part.names:
            if name not in known:
                raise ValueError(f"it lacks the array {name!r}{did_you_mean(name, known)}")
        self._arrays = [known[name] for name in part.names]
        for name, array, of_codes in zip(part.names, self._arrays, (True, False)):
            if len(array.shape) == 0:
                raise ValueError(f"{name} has the shape {array.shape}")
            _check_columns(name, array.shape, array.dtype, columns, of_codes)
        _check_lengths(*(array.shape[0] for array in self._arrays))
        codes = self._arrays[0]
        # Zarr would read them as zeros. Of labels, zeros that nobody wrote are those of items without any.
        if codes.nchunks_initialized < codes.nchunks:
            raise ValueError(
                f"{part.names[0]} has {codes.nchunks_initialized} of its {codes.nchunks} chunks; "
                "write also empty ones: zarr.config.set({'array.write_empty_chunks': True})"
            )
        self.items = codes.shape[0]
        self._chunk = (codes.shards or codes.chunks)[0]
        self.edges = [*range(0, self.items, self._chunk), self.items]

    def blocks(self, begin, end, size):
        size = max(size // self._chunk, 1) * self._chunk  # so that no chunk is read twice
        for low in range(begin, end, size):
            codes, labels = (array[low : min(low + size, end)] for array in self._arrays)
            yield codes, labels


_FORMATS: dict[str, Any] = {".npy": _Npy, ".npz": _Npz, ".parquet": _Parquet, ".zarr": _Zarr}
