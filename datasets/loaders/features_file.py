"""Feature vectors from .npz files, read as a stream: memory does not grow with the files.

Arrays of a file:

- `X` (n, d) of any real dtype;
- optional `y`: (n,) integer classes >= 0, (n,) names of classes, or (n, L) multi-hot of 0 and 1. Named
  classes are numbered in sorted order, or in the order of `class_names`;
- optional `class_names` (C,): names of the classes 0, 1, ... or of the columns of a multi-hot `y`;
- optional `split` (n,): the part of each item in the dataset's own split, integers or names;
- optional `ids` (n,): the name of each item elsewhere, integers or text, kept as ids.npy;
- optional `scale` (d,): features are X * scale, in float32.

Other arrays are ignored. Text is of NumPy's types `U` or `S` (UTF-8). Several files are one dataset, their
items one after the other; with option `parts`, the file of an item is its part in the dataset's own split.
"""

import logging
import time
import zipfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from datasets.description import Description
from datasets.files import ItemsFile, creating_items
from datasets.readers.archives import existing_files
from datasets.readers.npz import (
    NUMBERS,
    TEXT,
    array_names,
    open_array,
    opened,
    read_exactly,
    short,
    whole_array,
)
from datasets.specification import refuse_unknown_options
from tiebench import values
from tiebench.files import naming_values
from tiebench.messages import did_you_mean, printable

OPTIONS = {
    "parts": "names of the parts of the split that the files are, one per source, as [query, database]",
}

KNOWN_ARRAYS = ("X", "y", "scale", "split", "class_names", "ids")
BLOCK_BYTES = 16 << 20
SECONDS_BETWEEN_REPORTS = 5.0

logger = logging.getLogger("tiebench")


def describe(sources: list[Path], *, parts: list[str] | None = None, **unknown) -> Description:
    """Labels, given split, ids and shape of the features; of X only the header is read.

    sources: .npz files, see the module. Labels are int64 (n,) or uint8 (n, L) or None.
    Raises FileNotFoundError where a file is missing, ValueError where one is not as the module says or does
    not fit the others.
    """
    return _plan(sources, parts, unknown).description


def load(sources: list[Path], folder: Path, *, parts: list[str] | None = None, **unknown) -> Description:
    """Write items.npy float32 (n, d), labels.npy, given_split.npy and, if the files have ids, ids.npy into
    `folder`; see `describe`.

    Raises FileNotFoundError and ValueError as `describe`, and ValueError for a feature that is not finite.
    """
    plan, folder = _plan(sources, parts, unknown), Path(folder)
    shape = (plan.description.items, *plan.description.item_shape)
    with creating_items(folder / "items.npy", shape, np.float32) as items:
        begin = 0
        for path, rows in zip(plan.paths, plan.rows):
            with opened(path) as archive:
                scale = _scale(path, archive, shape[1])
                _copy_features(path, archive, scale, items, slice(begin, begin + rows), shape[1])
            begin += rows
    plan.description.write(folder)
    return plan.description


@dataclass(frozen=True)
class _Plan:
    paths: list[Path]
    rows: list[int]  # of each file
    description: Description


def _plan(sources: list[Path], parts: list[str] | None, unknown: dict) -> _Plan:
    refuse_unknown_options(unknown, OPTIONS, "features_file")
    if not sources:
        raise ValueError("loader features_file: takes one or more .npz files, got 0 sources")
    paths = existing_files(sources, ".npz file")
    if parts is not None:
        _check_parts(parts, len(paths))
    files = []
    for path in paths:
        with opened(path) as archive:
            files.append(_read(path, archive))
    first = files[0]
    for other in files[1:]:
        for what, one, another in (
            ("features per item", first.width, other.width),
            ("kind of y", _kind_of_labels(first.y), _kind_of_labels(other.y)),
            ("kind of split", _kind_of_labels(first.split), _kind_of_labels(other.split)),
            ("kind of ids", _kind_of_labels(first.ids), _kind_of_labels(other.ids)),
            ("class_names", first.class_names, other.class_names),
        ):
            if one != another:
                raise ValueError(
                    f"{other.path}: {what} must be as in {first.path}: {short(one)}, not {short(another)}"
                )
    labels, class_names = _combined_labels(files)
    given_split, split_names = _combined_split(files, parts)
    description = Description(
        items=sum(file.rows for file in files),
        labels=labels,
        given_split=given_split,
        class_names=class_names,
        item_shape=(first.width,),
        kind="vectors",
        split_names=split_names,
        ids=None if first.ids is None else np.concatenate([file.ids for file in files]),
    )
    return _Plan(paths, [file.rows for file in files], description)


def _check_parts(parts: object, sources: int) -> None:
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) and part for part in parts):
        raise ValueError(
            f"option parts: must be a list of names such as [query, database], not {short(parts)}"
        )
    if len(parts) != sources:
        raise ValueError(
            f"option parts: must name one part per source, not {len(parts)} parts of {sources} sources"
        )


def _kind_of_labels(values: np.ndarray | None) -> str:
    """What arrays of several files must have in common."""
    if values is None:
        return "none"
    if values.ndim == 2:
        return f"{values.shape[1]} columns"
    return "text" if values.dtype.kind == "U" else "integers"


def _combined_labels(files: list["_File"]) -> tuple[np.ndarray | None, list[str] | None]:
    """Labels of all files, and the names of classes or columns."""
    names = files[0].class_names
    labels = [file.y for file in files if file.y is not None]  # of all files or of none
    if not labels:
        return None, names
    y = np.concatenate(labels)
    if y.dtype.kind == "U":
        if names is None:
            values, classes = np.unique(y, return_inverse=True)
            return classes.astype(np.int64), values.tolist()
        number = {name: place for place, name in enumerate(names)}
        for file, of_file in zip(files, labels, strict=True):
            for row, name in enumerate(of_file.tolist()):
                if name not in number:
                    raise ValueError(
                        f"{file.path}: y[{row}] is {short(repr(name))}, which is not in class_names"
                        f"{did_you_mean(short(name), names[:20])}"
                    )
        return np.array([number[name] for name in y.tolist()], np.int64), names
    if names is not None:
        last = y.shape[1] - 1 if y.ndim == 2 else int(y.max())
        if last >= len(names) or (y.ndim == 2 and last + 1 != len(names)):
            what = f"y has {last + 1} columns" if y.ndim == 2 else f"y has class {last}"
            raise ValueError(f"{files[0].path}: class_names has {len(names)} names, but {what}")
    return y, names


def _combined_split(
    files: list["_File"], parts: list[str] | None
) -> tuple[np.ndarray | None, list[str] | None]:
    """The given split of all files, and the names of its parts."""
    if parts is not None:
        for file in files:
            if file.split is not None:
                raise ValueError(f"{file.path}: has an array 'split': leave out option parts, or the array")
        names = list(dict.fromkeys(parts))
        places = np.array([names.index(part) for part in parts], np.int64)
        return np.repeat(places, [file.rows for file in files]), names
    if files[0].split is None:
        return None, None
    split = np.concatenate([file.split for file in files])
    if split.dtype.kind != "U":
        return split, None
    distinct, numbers = np.unique(split, return_inverse=True)
    return numbers.astype(np.int64), distinct.tolist()


@dataclass(frozen=True)
class _File:
    """Arrays of one file but X: y int64 (n,), uint8 (n, L) or text (n,); split and ids int64 or text (n,)."""

    path: Path
    rows: int
    width: int
    y: np.ndarray | None
    split: np.ndarray | None
    ids: np.ndarray | None
    class_names: list[str] | None


def _read(path: Path, archive: zipfile.ZipFile) -> _File:
    names = array_names(path, archive)
    if "X" not in names:
        raise ValueError(
            f"{path}: has no array 'X' of features; arrays there: {printable(', '.join(names)) or 'none'}"
        )
    with open_array(path, archive, "X") as (header, _):
        shape = header.shape
    if len(shape) != 2:
        raise ValueError(f"{path}: X must have two dimensions (items, features), not shape {shape}")
    if 0 in shape:
        raise ValueError(f"{path}: X is empty, of shape {shape}")
    items = shape[0]
    read = partial(whole_array, path, archive, kinds=NUMBERS + TEXT)
    if "y" not in names:
        others = [name for name in names if name not in KNOWN_ARRAYS]
        logger.info(
            "%s: no array 'y', so no labels (ignored: %s)",
            path.name,
            printable(", ".join(others)) or "nothing",
        )
    class_names = None
    if "class_names" in names:
        array = whole_array(path, archive, "class_names", TEXT)
        class_names = array.ravel().tolist()
        if array.ndim != 1 or len(set(class_names)) != len(class_names):
            raise ValueError(f"{path}: class_names must be one name per class, none of them twice")
    return _File(
        path=path,
        rows=items,
        width=shape[1],
        y=_labels(path, read("y"), items) if "y" in names else None,
        split=_per_item(path, "split", read("split"), items) if "split" in names else None,
        ids=_per_item(path, "ids", read("ids"), items) if "ids" in names else None,
        class_names=class_names,
    )


def _per_item(path: Path, name: str, given: np.ndarray, items: int) -> np.ndarray:
    """int64 or text (n,)."""
    if given.shape != (items,):
        raise ValueError(f"{path}: {name} has shape {given.shape}; X of {items} rows asks for ({items},)")
    with naming_values(path):
        found = values.ids(given, name) if name == "ids" else values.classes(given, name)
        if not values.is_text(found):
            found = values.integers(found, name).astype(np.int64)
        if name == "ids":
            values.refuse_twice(found, name)
        return found


def _labels(path: Path, y: np.ndarray, items: int) -> np.ndarray:
    with naming_values(path):
        values.check_form(y, "y", items)
        if len(y) != items:
            raise ValueError(f"y has {len(y)} rows, X has {items}: each item needs its row of y")
        found = values.labels(y, "y")
    if found.ndim == 2 or values.is_text(found):
        return found
    if found.min() < 0:
        row = int(np.argmax(found < 0))
        raise ValueError(f"{path}: y[{row}] is {found[row]}; classes must not be negative")
    return found.astype(np.int64)


def _scale(path: Path, archive: zipfile.ZipFile, dimensions: int) -> np.ndarray | None:
    """float32 (d,), or None where the file has none."""
    if "scale.npy" not in archive.namelist():
        return None
    scale = whole_array(path, archive, "scale")
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


def _copy_features(
    path: Path,
    archive: zipfile.ZipFile,
    scale: np.ndarray | None,
    items: ItemsFile,
    place_of_file: slice,
    width: int,
) -> None:
    """Fill the rows `place_of_file` of `items`, float32 (n, d), with X * scale, by blocks of rows (of columns
    for X in Fortran order)."""
    with open_array(path, archive, "X") as (header, stream):
        rows, columns = header.shape
        if (rows, columns) != (place_of_file.stop - place_of_file.start, width):
            raise ValueError(f"{path}: changed while it was read")
        lines, length = (columns, rows) if header.fortran else (rows, columns)
        step = max(1, BLOCK_BYTES // (length * max(4, header.dtype.itemsize)))
        reported = time.monotonic()
        for first in range(0, lines, step):
            last = min(first + step, lines)
            data = read_exactly(stream, (last - first) * length * header.dtype.itemsize)
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
            items.view()[place_of_file][where] = block
            if time.monotonic() - reported > SECONDS_BETWEEN_REPORTS:
                reported = time.monotonic()
                logger.info(
                    "%s: %d of %d MB of features", path.name, last * length >> 18, lines * length >> 18
                )
