"""Lists of a split as hashing code ships them: text files of paths and labels, or arrays of row numbers."""

import hashlib
import posixpath
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from tiebench.files import read_npz
from tiebench.messages import printable
from tiebench.split_check import PARTS, Part, rows_of_labels
from tiebench.values import check_form
from tiebench.values import rows as row_numbers

# What a list is of, by the name of its file; the first that fits.
_NAMES = (
    ("database", re.compile(r"database|retrieval|gallery|(^|[_-])db([_-]|$)", re.IGNORECASE)),
    ("training", re.compile(r"train", re.IGNORECASE)),
    ("query", re.compile(r"test|quer(y|ies)", re.IGNORECASE)),
)


def part_of(name: str) -> str | None:
    """The part of a split that a list is of by its file's name; None if the name does not say."""
    stem = Path(name).stem
    return next((part for part, pattern in _NAMES if pattern.search(stem)), None)


def read_sources(
    sources: Iterable[str], named: Mapping[str, Sequence[str]], by_file_name: bool = False
) -> dict[str, Part]:
    """Parts of a split from text lists: files, folders and zips of .txt files, whose names say the part.

    named: part -> files, for lists with other names. A list may come in several files. by_file_name: items
    are known by the last component of their path. Raises ValueError, one line, for a malformed list.
    """
    texts: dict[str, list[tuple[str, bytes]]] = {}
    for source in sources:
        path = Path(source)
        if path.is_dir():
            found = [(str(file), file.read_bytes()) for file in sorted(path.glob("*.txt"))]
        elif zipfile.is_zipfile(path):
            found = _of_zip(path)
        else:
            found = [(source, path.read_bytes())]
            if part_of(source) is None:
                raise ValueError(
                    f"{source}: the name does not say of what the list is; give it as --query, --database or "
                    "--training"
                )
        for name, text in found:
            if (part := part_of(name)) is not None:
                texts.setdefault(part, []).append((name, text))
    for part, files in named.items():
        texts.setdefault(part, []).extend((file, Path(file).read_bytes()) for file in files)
    known: dict[bytes, tuple[int, ...]] = {}
    return {part: _parse(texts[part], known, by_file_name) for part in PARTS if part in texts}


def _of_zip(path):
    try:
        with zipfile.ZipFile(path) as archive:
            members = sorted(name for name in archive.namelist() if name.endswith(".txt"))
            return [(f"{path}/{name}", archive.read(name)) for name in members]
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise ValueError(f"{path}: not a readable zip file ({error})") from error


def _parse(texts, known, by_file_name):
    names, labels, bare = [], [], True
    for file, text in texts:
        for number, line in enumerate(text.splitlines(), start=1):
            path, _, values = line.strip().partition(b" ")
            if not path:
                continue
            values = values.strip()
            row = known.get(values)
            if row is None:
                row = known[values] = _row(values, f"{file}: line {number}")
            bare = bare and not values
            name = posixpath.normpath(path.decode("utf-8", "backslashreplace").replace("\\", "/"))
            names.append(posixpath.basename(name) if by_file_name else name)
            labels.append(row)
    if not names:
        raise ValueError(f"{texts[0][0]}: no lines; expected are a path and labels on each")
    return Part(names, None if bare else labels)


def _row(values, place):
    """Classes of a line: places of the ones of a 0/1 vector, or a single class."""
    words = values.replace(b",", b" ").split()
    try:
        numbers = [int(word) for word in words]
    except ValueError:
        wrong = printable(values.decode("utf-8", "backslashreplace"), 60)
        raise ValueError(f"{place}: after the path there must be labels, integers, not {wrong!r}") from None
    if len(numbers) == 1:
        return (numbers[0],)
    if not set(numbers) <= {0, 1, -1}:
        raise ValueError(f"{place}: several labels must be a vector of 0 and 1, or of -1 and 1")
    return tuple(place for place, value in enumerate(numbers) if value == 1)


def read_arrays(file: str, labels: str | None = None, items: str | None = None) -> dict[str, Part]:
    """Parts of a split from an .npz file of row numbers: query, database, training (m,).

    The file may hold `labels`, (n,) classes or (n, L) of 0 and 1, and `items` (n, ...), whose rows are
    compared by content; or these are .npy files of their own. Raises ValueError, one line.
    """
    arrays = read_npz(file, {*PARTS, "labels", "items"})
    for name, path in (("labels", labels), ("items", items)):
        if path is not None:
            arrays[name] = np.load(path, mmap_mode="r", allow_pickle=False)
    found = {}
    for part in [part for part in PARTS if part in arrays]:
        held = [len(arrays[name]) for name in ("labels", "items") if name in arrays]
        try:
            rows = row_numbers(arrays[part], part, min(held, default=None))
            classes = None if "labels" not in arrays else _labels(arrays["labels"], rows)
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from error
        found[part] = Part(
            [str(row) for row in rows.tolist()],
            classes,
            None if "items" not in arrays else [_digest(arrays["items"][row].tobytes()) for row in rows],
        )
    return found


def _labels(labels, rows):
    check_form(labels, "labels")  # of a single row among the rows, nothing could be told
    return rows_of_labels(labels[rows], "labels")


def with_images(parts: Mapping[str, Part], root: str) -> dict[str, Part]:
    """The parts with the sha256 of each image's file, found below a folder by its path or its file name.

    Raises ValueError if no image is there.
    """
    known: dict[str, bytes | None] = {}
    for part in parts.values():
        for name in part.names:
            if name not in known:
                known[name] = _file_digest(Path(root), name)
    if not any(known.values()):
        raise ValueError(f"{root}: none of the {len(known)} images is there, not even {next(iter(known))!r}")
    return {key: part._replace(contents=[known[name] for name in part.names]) for key, part in parts.items()}


def _file_digest(root, name):
    """Digest of root/path, or of the nearest: leading folders of the path are left out one by one."""
    components = [one for one in name.split("/") if one not in ("", ".", "..")]
    for first in range(len(components)):
        path = root.joinpath(*components[first:])
        if path.is_file():
            return _digest(path.read_bytes())
    return None


def _digest(contents):
    return hashlib.sha256(contents).digest()
