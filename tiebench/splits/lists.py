"""Lists of a split as hashing code ships them: text files of paths and labels, or arrays of row numbers."""

import hashlib
import re
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tiebench import texts
from tiebench.files import naming_values, read_array, read_npz
from tiebench.messages import printable
from tiebench.splits.check import PARTS, Part, rows_of_labels
from tiebench.values import check_form
from tiebench.values import rows as row_numbers

# What a list is of, by the name of its file; the first that fits.
_NAMES = (
    ("database", re.compile(r"database|retrieval|gallery|(^|[_-])db([_-]|$)", re.IGNORECASE)),
    ("training", re.compile(r"train", re.IGNORECASE)),
    ("query", re.compile(r"test|quer(y|ies)", re.IGNORECASE)),
)
_ENDINGS = (".txt", ".csv", ".tsv", ".lst", ".list")


def part_of(name: str) -> str | None:
    """The part of a split that a list is of by its file's name; None if the name does not say."""
    stem = Path(name).stem
    return next((part for part, pattern in _NAMES if pattern.search(stem)), None)


def read_sources(
    sources: Iterable[str], named: Mapping[str, Sequence[str]], by_file_name: bool = False
) -> dict[str, Part]:
    """Parts of a split from text lists: files, folders and zips of lists, whose names say the part.

    named: part -> files, for lists with other names. A list may come in several files. by_file_name: items
    are known by the last component of their path. Raises ValueError, one line, for a malformed list.
    """
    lists: dict[str, list[texts.Text]] = {}
    for source in sources:
        path = Path(source)
        if path.is_dir():
            found = [texts.read(file) for file in sorted(path.iterdir()) if _is_list(file.name)]
            if not any(map(part_of, (text.path for text in found))):
                raise ValueError(f"{source} has no list: train.txt, test.txt or query.txt, database.txt")
        elif zipfile.is_zipfile(path):
            found = _of_zip(path)
        else:
            found = [texts.read(source)]
            if part_of(source) is None:
                raise ValueError(
                    f"{source}: the name does not say of what the list is; give it as --query, --database or "
                    "--training"
                )
        for text in found:
            if (part := part_of(text.path)) is not None:
                lists.setdefault(part, []).append(text)
    for part, files in named.items():
        if not files:
            raise ValueError(f"there is no list of {part}")
        lists.setdefault(part, []).extend(texts.read(file) for file in files)
    known: dict[str, tuple[int, tuple[int, ...]]] = {}
    parsed = {part: _parse(lists[part], known, by_file_name) for part in PARTS if part in lists}
    (first, before), *others = [one[1:] for one in parsed.values() if one[1]] or [(0, "")]
    for count, place in others:
        if count != first:
            raise ValueError(f"{place}: {count} labels where {before} has {first}")
    return {part: one[0] for part, one in parsed.items()}


def _is_list(name):
    """Whether a file of a folder or zip is a list by its name; hidden ones are left by file managers."""
    name = name.rpartition("/")[2]
    return not name.startswith(".") and name.lower().removesuffix(".gz").endswith(_ENDINGS)


def _of_zip(path):
    try:
        with zipfile.ZipFile(path) as archive:
            members = sorted(name for name in archive.namelist() if _is_list(name))
            contents = [(f"{path}/{name}", archive.read(name)) for name in members]
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
        raise ValueError(f"{path}: not a readable zip file ({error})") from error
    return [texts.of_bytes(name, text) for name, text in contents]


def _parse(files, known, by_file_name):
    """The part of some files, how many labels all its lines have, and the first of these lines.

    known: label texts -> how many labels, and the classes.
    """
    names, classes, count, first = [], [], 0, ""
    for text in files:
        for number, line in enumerate(text.lines(), start=1):
            place = f"{text.path}: line {number}"
            try:
                name, labels = texts.path_and_labels(line)
            except ValueError as error:
                raise ValueError(f"{place}: {error}") from None
            if not name:
                continue
            row = known.get(labels)
            if row is None:
                row = known[labels] = _row(labels, place)
            count, first = (count, first) if first else (row[0], place)
            if row[0] != count:
                raise ValueError(f"{place}: {row[0]} labels where {first} has {count}")
            names.append(name.rpartition("/")[2] if by_file_name else name)
            classes.append(row[1])
    if not names:
        raise ValueError(f"{files[0].path}: no lines; expected are a path and labels on each")
    return Part(names, classes if count else None), count, first


def _row(text, place):
    """How many labels a line has, and its classes: places of the ones of a 0/1 vector, or a single class."""
    try:
        labels = texts.labels(text)
    except ValueError as error:
        raise ValueError(
            f"{place}: after the path there must be labels, integers, not {printable(text, 60)!r} (one "
            f"{error}); a path that holds white space or commas ends with a tab"
        ) from None
    if len(labels) == 1:
        return 1, (labels[0],)
    if not set(labels) <= {0, 1, -1}:
        raise ValueError(f"{place}: several labels must be a vector of 0 and 1, or of -1 and 1")
    return len(labels), tuple(place for place, value in enumerate(labels) if value == 1)


def other_folders(parts: Mapping[str, Part]) -> list[str]:
    """A sentence for each set with items of other paths that may be queries: file and folder are the same.

    Files alone are compared where one of both lists names no folders.
    """
    sentences = []
    queries = list(parts["query"].names) if "query" in parts else []
    for part in [part for part in PARTS[1:] if part in parts]:
        names = set(parts[part].names)
        whole = all(any("/" in name for name in some) for some in (queries, names))
        items = {_end(name, whole): name for name in names}
        met = [(name, items[_end(name, whole)]) for name in queries if _end(name, whole) in items]
        met = [pair for pair in met if pair[0] not in names]
        if met:
            query, item = (printable(name, 60) for name in met[0])
            sentences.append(
                f"{len(met):,} queries have the file{' and folder' if whole else ''} of items in {part}, as "
                f"{query!r} and {item!r}: --by-file-name compares file names alone, as the loaders do"
            )
    return sentences


def _end(name, with_folder):
    return "/".join(name.split("/")[-2 if with_folder else -1 :])


def read_arrays(file: str, labels: str | None = None, items: str | None = None) -> dict[str, Part]:
    """Parts of a split from an .npz file of row numbers: query, database, training (m,).

    The file may hold `labels`, (n,) classes or (n, L) of 0 and 1, and `items` (n, ...), whose rows are
    compared by content; or these are .npy files of their own. Raises ValueError, one line.
    """
    arrays = read_npz(file, {*PARTS, "labels", "items"})
    for name, path in (("labels", labels), ("items", items)):
        if path is not None:
            arrays[name] = read_array(path, memory_map=True)
        if name in arrays and arrays[name].ndim == 0:
            raise ValueError(f"{path or file}: {name} must have a row for each item, not be a single value")
    found = {}
    held = {name: len(arrays[name]) for name in ("labels", "items") if name in arrays}
    for part in [part for part in PARTS if part in arrays]:
        with naming_values(file):
            rows = row_numbers(arrays[part], part)
            for name, count in held.items():
                row_numbers(rows, f"row of {name}, {part}", count)
            classes = None if "labels" not in arrays else _labels(arrays["labels"], rows)
        found[part] = Part(
            [str(row) for row in rows.tolist()],
            classes,
            None if "items" not in arrays else [_digest(_content(arrays["items"][row])) for row in rows],
        )
    return found


def _content(item):
    """The bytes of an item, of which -0.0 has those of 0.0."""
    return (item + item.dtype.type(0)).tobytes() if item.dtype.kind == "f" else item.tobytes()


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
