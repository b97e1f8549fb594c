"""Lists of images with their labels, in the form of HashNet's, and the split that they make.

The lists are train.txt, test.txt and database.txt, of which the last two may come in parts (test0.txt,
test1.txt, ...). A line is a path and, for each class, 0 or 1, as `tiebench.texts.path_and_labels` separates
them.
"""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from datasets.readers.texts import shown
from tiebench import texts
from tiebench.texts import Text

LIST_FILE = re.compile(r"(?:.*/)?(train|(?:test|database)[0-9]*)\.txt", re.DOTALL)
# List -> the part of the split that it is.
PART_OF_LIST = {"test": "query", "database": "database", "train": "training"}


def is_list(path: str) -> bool:
    """Whether the path is that of a list or of one of its parts."""
    return bool(LIST_FILE.fullmatch(path))


def read_list(
    lists: Mapping[str, Text],
    kind: str,
    image: re.Pattern,
    columns: int,
    counts: Sequence[int],
    exactly_one: bool = False,
) -> dict[str, str]:
    """File name -> its labels as `columns` characters 0 and 1, of all images of one list.

    kind: train, test or database; image: what file names match; counts: the numbers of images that are right
    exactly_one: whether each image has one label
    Raises ValueError for a list that is missing, there twice, incomplete or not as the module says.
    """
    files = _files(lists, kind)
    labels: dict[str, str] = {}
    for text in files:
        for number, line in enumerate(text.lines(), start=1):
            place = f"{text.path}: line {number}"
            try:
                path, values = texts.path_and_labels(line)
            except ValueError as error:
                raise ValueError(f"{place}: {error}") from None
            name = path.rpartition("/")[2]
            if not image.fullmatch(name):
                raise ValueError(f"{place}: '{shown(path)}' is not an image of this list")
            digits = _digits(values)
            if len(digits) != columns or (exactly_one and digits.count("1") != 1):
                rule = "one of them 1 and the others 0" if exactly_one else "each 0 or 1"
                raise ValueError(
                    f"{place}: after the path there must be {columns} values, {rule}, not '{shown(values)}'"
                )
            if name in labels:
                raise ValueError(f"{place}: '{name}' was there before")
            labels[name] = digits
    if len(labels) not in counts:
        where = files[0].path if len(files) == 1 else f"{files[0].path} and the other {len(files) - 1} parts"
        known = " or ".join(str(count) for count in counts)
        raise ValueError(f"{where}: names {len(labels)} images, not {known}")
    return labels


def _digits(values: str) -> str:
    """The labels of a line, a character 0 or 1 each; "" if one is something else."""
    digits = values[::2]
    if set(values[1::2]) == {" "} and digits.count("0") + digits.count("1") == len(digits):
        return digits  # as nearly all lists are
    try:
        labels = texts.labels(values)
    except ValueError:
        return ""
    return "".join(map(str, labels)) if set(labels) <= {0, 1} else ""


def merged(lists: Mapping[str, Mapping[str, str]]) -> tuple[dict[str, str], dict[str, str]]:
    """All images of the lists: file name -> labels, and file name -> part of the split.

    lists: kind -> what `read_list` returns. An image on several lists is of a part of its own, such as "query
    and database": a protocol says what becomes of it, and cannot have it as query and in the database.
    Raises ValueError where two lists give an image different labels.
    """
    labels: dict[str, str] = {}
    parts: dict[str, str] = {}
    for kind, part in PART_OF_LIST.items():
        for name, digits in lists[kind].items():
            if labels.setdefault(name, digits) != digits:
                raise ValueError(
                    f"the lists disagree: '{name}' has other labels as {part} than as {parts[name]}"
                )
            parts[name] = f"{parts[name]} and {part}" if name in parts else part
    return labels, parts


def as_matrix(labels: Sequence[str]) -> np.ndarray:
    """uint8 (n, columns) of n labels in characters 0 and 1."""
    joined = np.frombuffer("".join(labels).encode(), np.uint8) - ord("0")
    return joined.reshape(len(labels), -1)


def ranks(values: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """The distinct values sorted, and the rank of each value, int64 (n,)."""
    distinct = sorted(set(values))
    rank = {value: index for index, value in enumerate(distinct)}
    return distinct, np.array([rank[value] for value in values], np.int64)


def _files(lists: Mapping[str, Text], kind: str) -> list[Text]:
    """The files of one list: one, or its parts."""
    found = [text for name, text in lists.items() if re.fullmatch(rf"{kind}[0-9]*\.txt", name)]
    if not found:
        raise ValueError(f"no {kind}.txt in the sources; the lists are train.txt, test.txt and database.txt")
    whole = lists.get(f"{kind}.txt")
    if whole is not None and len(found) > 1:
        other = next(text for text in found if text is not whole)
        raise ValueError(f"{other.path}: the list is there as a whole too, {whole.path}; give one of both")
    return found
