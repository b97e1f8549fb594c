"""A database in parts: joint histograms counted anywhere, and merged.

Histograms of disjoint parts add, so exact metrics of a database too large for one process come from parts
that scattered jobs have counted, bit for bit as if it had been counted at once.
"""

import hashlib
import os
import re
from collections.abc import Sequence

import numpy as np

from tiebench.affinities import MAX_AFFINITY
from tiebench.codes.packing import MAX_CODE_BITS
from tiebench.counting.histograms import JointHistograms, merge
from tiebench.files import read_npz, reading_result, write_npz
from tiebench.values import as_array, integer

_ARRAYS = ("levels", "counts", "part", "database", "query")


def span(part: int, parts: int, items: int) -> slice:
    """The items of a part of a database; sizes of parts are as equal as can be.

    Parameters
    ----------
    part : int
        1 to `parts`.
    parts : int
    items : int
        Of the whole database.

    Returns
    -------
    slice

    Raises
    ------
    ValueError
        If the part number is out of range, or if there are more parts than items.
    """
    part, parts = integer(part, "the number of a part"), integer(parts, "the number of parts")
    items = integer(items, "the number of items")
    if not 1 <= part <= parts:
        raise ValueError(f"part {part} of {parts}: parts are numbered 1 to {parts}")
    if parts > items:
        raise ValueError(f"{items} items cannot be {parts} parts")
    return slice(items * (part - 1) // parts, items * part // parts)


def parse(text: str) -> tuple[int, int]:
    """The number of a part, and of how many: (3, 16) from "3/16".

    Parameters
    ----------
    text : str

    Returns
    -------
    (int, int)

    Raises
    ------
    ValueError
        One line, for anything else.
    """
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if match is None:
        raise ValueError(f"a part is written as 3/16, the third of sixteen, not {text!r}")
    part, parts = map(int, match.groups())
    span(part, parts, parts)
    return part, parts


def fingerprint(query: np.ndarray, *labels: np.ndarray) -> np.ndarray:
    """A digest of the queries, equal for parts that can be merged.

    Parameters
    ----------
    query : uint8 (Q, ceil(b/8))
        Packed codes.
    *labels : arrays
        Of the queries.

    Returns
    -------
    uint8 (32,)
    """
    digest = hashlib.sha256()
    for array in (query, *labels):
        array = np.ascontiguousarray(as_array(array))
        digest.update(f"{array.dtype.str} {array.shape}".encode())
        digest.update(array.data)
    return np.frombuffer(digest.digest(), np.uint8)


def save(
    file: str | os.PathLike,
    histograms: JointHistograms,
    part: int,
    parts: int,
    items: int,
    query: np.ndarray,
) -> None:
    """Write the histograms of a part to an .npz file.

    Parameters
    ----------
    file : path
    histograms : `JointHistograms`
    part, parts : int
        Which part it is, from 1, and of how many.
    items : int
        Of the whole database.
    query : uint8 (32,)
        `fingerprint` of the queries.

    Raises
    ------
    OSError
        One that names the file, where it cannot be written.
    """
    write_npz(
        file,
        levels=histograms.levels,
        counts=histograms.counts,
        part=np.array([part, parts]),
        database=np.array(items),
        query=as_array(query, "query"),
    )


def load_merged(files: Sequence[str | os.PathLike]) -> JointHistograms:
    """`JointHistograms` of a whole database from the files of all of its parts.

    Parameters
    ----------
    files : sequence of paths
        That `save` wrote, in any order.

    Returns
    -------
    `JointHistograms`

    Raises
    ------
    ValueError
        One line that names the file or part, if one is missing, given twice, of another database or of other
        queries, or not such a file.
    """
    if not files:
        raise ValueError("there are no files to merge")
    found: dict[int, JointHistograms] = {}
    first: tuple | None = None
    for file in files:
        arrays = read_npz(file)
        if not _is_part(arrays):
            raise ValueError(f"{file}: not the histograms of a part of a database")
        part, parts = arrays["part"].tolist()
        same: tuple = (parts, int(arrays["database"]), arrays["query"].tobytes(), arrays["counts"].shape[::2])
        first = first or same
        for mine, its, what in zip(
            same, first, ("number of parts", "database", "queries", "queries or bits")
        ):
            if mine != its:
                raise ValueError(f"{file}: its {what} differ from those of {files[0]}")
        if part in found:
            raise ValueError(f"{file}: part {part} of {parts} is given twice")
        piece = span(part, parts, first[1])
        if np.any(arrays["counts"].sum(axis=(1, 2)) != piece.stop - piece.start):
            raise ValueError(f"{file}: its counts are not those of {piece.stop - piece.start} items")
        found[part] = JointHistograms(arrays["levels"], arrays["counts"])
    missing = sorted(set(range(1, parts + 1)) - set(found))
    if missing:
        raise ValueError(f"of {parts} parts, these are missing: {', '.join(map(str, missing))}")
    return merge(found[part] for part in sorted(found))


def _is_part(arrays):
    """Whether these are arrays that `save` may have written."""
    if set(arrays) != set(_ARRAYS) or any(array.dtype.kind not in "iu" for array in arrays.values()):
        return False
    if arrays["part"].shape != (2,) or arrays["query"].shape != (32,) or arrays["database"].ndim:
        return False
    items = int(arrays["database"])
    return 0 < items < 2**62 and _are_histograms(arrays["levels"], arrays["counts"], items)


def _are_histograms(levels, counts, items):
    """Whether these integers are joint histograms of at most so many items."""
    if counts.ndim != 3 or 0 in counts.shape or levels.shape != counts.shape[1:2]:
        return False
    ascending = levels[0] == 0 and np.all(levels[1:] > levels[:-1]) and levels[-1] <= MAX_AFFINITY
    few = counts.shape[2] <= MAX_CODE_BITS + 1
    return bool(ascending and few and counts.min() >= 0 and counts.max() <= items)


def save_counts(file: str | os.PathLike, histograms: JointHistograms) -> None:
    """Write the histograms of some items, whichever they are, to an .npz file, which appears when it is
    complete.

    Parameters
    ----------
    file : path
    histograms : `JointHistograms`

    Raises
    ------
    OSError
        One that names the file, where it cannot be written.
    """
    write_npz(file, levels=histograms.levels, counts=histograms.counts)


def load_counts(file: str | os.PathLike, queries: int, bits: int, items: int) -> JointHistograms:
    """What `save_counts` wrote.

    Parameters
    ----------
    file : path
    queries, bits, items : int
        What it must be of.

    Returns
    -------
    `JointHistograms`

    Raises
    ------
    ValueError
        One line that names the file, for any other file.
    """
    with reading_result(file):
        arrays = read_npz(file)
        right = set(arrays) == {"levels", "counts"}
        if right := right and all(array.dtype.kind in "iu" for array in arrays.values()):
            levels, counts = arrays["levels"], arrays["counts"]
            right = _are_histograms(levels, counts, items) and counts.shape[::2] == (queries, bits + 1)
        if not right or np.any(counts.sum(axis=(1, 2)) != items):
            raise ValueError(f"{file}: not the counts of {items} items")
        return JointHistograms(levels, counts)
