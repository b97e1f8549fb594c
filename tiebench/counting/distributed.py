"""A database in many files, counted by this process or by the workers of a Dask cluster.

Each worker reads a part of one file at a time, block by block, and returns its joint histograms; these are
integers that add up, so the result has the same bytes whoever counted which part.
"""

import hashlib
import json
import os
import pkgutil
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tiebench._version import __version__
from tiebench.codes.inputs import check_shapes, label_affinity, packed_codes
from tiebench.counting import part_files, parts
from tiebench.counting.histograms import JointHistograms, joint_histograms, merge
from tiebench.messages import one_line
from tiebench.values import as_array, integer
from tiebench.values import labels as labels_of

if TYPE_CHECKING:
    from distributed import Client

_BLOCK_BYTES = 1 << 24
_FORMAT = 1  # of what is kept: another number, and all parts are counted again


class Progress(NamedTuple):
    """Parts and items that are counted, and of how many; kept: parts that an earlier call had counted."""

    parts: int
    of_parts: int
    items: int
    of_items: int
    kept: int


@dataclass(frozen=True)
class _Queries:
    codes: np.ndarray
    labels: np.ndarray
    bits: int

    @property
    def columns(self):
        return part_files.Columns(
            self.codes.shape[1], None if self.labels.ndim == 1 else self.labels.shape[1]
        )


class _Described(NamedTuple):
    edges: Sequence[int]
    identity: str


class _Part(NamedTuple):
    """Rows begin..end-1 of a file of a certain identity."""

    file: part_files.PartFile
    begin: int
    end: int
    identity: str

    @property
    def items(self):
        return self.end - self.begin


def count_parts(
    query: ArrayLike,
    query_labels: ArrayLike,
    database: str | Sequence[str],
    bits: int | None = None,
    *,
    database_labels: str | Sequence[str] | None = None,
    names: tuple[str, str] = part_files.NAMES,
    client: "Client | None" = None,
    keep: str | os.PathLike | None = None,
    part_items: int = 1 << 23,
    progress: Callable[[Progress], Any] | None = None,
) -> JointHistograms:
    """Joint histograms of queries and a database in many files; `score_histograms` turns them into scores.

    A part is read in blocks of about 16 MB.

    Parameters
    ----------
    query : arrays, torch tensors or nested lists (Q, b)
        Codes in any form that `tiebench.score` takes.
    query_labels : integers or strings (Q,), or 0/1 (Q, L)
        Labels, likewise.
    database : path or URL, or sequence of them
        Files, or patterns with `*`: .npz, .parquet, .zarr, or .npy with `database_labels`. Codes are packed,
        uint8 (n, ceil(b/8)); in Parquet, a column of bytes or of lists of uint8. Labels are of the kind of
        query_labels; in Parquet, several labels are lists of 0 and 1.
    bits : int, optional
        b, of packed queries only.
    database_labels : path or URL, or sequence of them, optional
        As many .npy files of labels as there are .npy files of codes, named alike or in the same order.
    names : (str, str)
        Of the arrays or columns of codes and of labels inside the files.
    client : `distributed.Client`, optional
        Its workers count; None counts in this process.
    keep : path, optional
        A folder of this machine for the counts of each part. Called again, the function reads only files
        whose counts are not there, or that have changed.
    part_items : int
        A file is cut into parts of at most so many items where its format allows: .npy anywhere, .zarr
        between chunks, .parquet between row groups, .npz nowhere.
    progress : function, optional
        Called with `Progress` as parts are finished.

    Returns
    -------
    `JointHistograms`

    Raises
    ------
    ValueError
        One line that names the file, for files that cannot be read or do not fit the queries, and for parts
        that no worker survives; what `keep` holds then stays.
    """
    part_items = integer(part_items, "part_items", 1)
    if keep is not None and "://" in os.fspath(keep):
        raise ValueError(f"keep must be a folder of this machine, not {os.fspath(keep)}")
    if client is not None:
        _check_workers(client)
    queries = _checked_queries(query, query_labels, bits)
    files = part_files.find(database, database_labels, names)
    described = dict(_results(client, _describe, files, queries))
    todo = [part for file in files for part in _cut(file, described[file], part_items)]
    items, of_parts = sum(part.items for part in todo), len(todo)
    if items == 0:
        raise ValueError(f"{files[0].codes}{' and the other files' if files[1:] else ''}: there are no codes")

    kept, total, done, counted = 0, None, 0, 0
    for part, found, is_kept in _counts(todo, queries, client, keep):
        total = found if total is None else _added(total, found)
        done, counted, kept = done + 1, counted + part.items, kept + is_kept
        if progress is not None:
            progress(Progress(done, of_parts, counted, items, kept))
    assert total is not None
    return total


def _check_workers(client):
    """Raise ValueError for a worker that has no `tiebench` of this version: its tasks would wait for ever."""
    # A function of the standard library, which a worker without `tiebench` knows too.
    found = client.run(pkgutil.resolve_name, "tiebench:__version__", on_error="return")
    for address, version in found.items():
        if isinstance(version, Exception):
            raise ValueError(f"worker {address} cannot import tiebench: {one_line(version)}")
        if version != __version__:
            raise ValueError(f"worker {address} has tiebench {version}, this process {__version__}")


def _checked_queries(query, labels, bits):
    codes, labels = as_array(query, "query"), as_array(labels, "query_labels")
    check_shapes(codes, codes, labels, labels)
    codes, _, bits = packed_codes(codes, codes, bits)
    labels = labels_of(labels, "query_labels")  # one form of the same labels, with the same digest
    label_affinity(labels, labels)
    return _Queries(codes, labels, bits)


def _describe(file, queries):
    """Where a file can be cut, and its identity. Its first item is counted, so that errors show at once."""
    identity = part_files.identity(file)
    with part_files.opened(file, queries.columns) as reader:
        if reader.items:
            end = reader.edges[bisect_right(reader.edges, 0)]
            codes, labels = next(reader.blocks(0, end, 1))
            _counted(queries, codes, labels)
        return _Described(reader.edges, identity)


def _cut(file: part_files.PartFile, described: _Described, part_items: int) -> Iterator[_Part]:
    """Parts of a file: as many items as are allowed, or what cannot be cut."""
    edges, begin = described.edges, 0
    while begin < edges[-1]:
        place = bisect_right(edges, begin + part_items) - 1
        if edges[place] == begin:
            place = bisect_right(edges, begin)
        yield _Part(file, begin, edges[place], described.identity)
        begin = edges[place]


def _counts(
    todo: list[_Part], queries: _Queries, client: "Client | None", keep: str | os.PathLike | None
) -> Iterator[tuple[_Part, JointHistograms, bool]]:
    """(part, its histograms, whether they were kept), those that were kept first."""
    if keep is None:
        for part, found in _results(client, _count, todo, queries):
            yield part, found, False
        return
    mark = parts.fingerprint(queries.codes, queries.labels).tobytes().hex()
    places = {part: Path(keep, f"{_digest(part, mark, queries.bits)}.npz") for part in todo}
    there = {part for part, place in places.items() if place.exists()}
    for part in (part for part in todo if part in there):
        found = parts.load_counts(places[part], len(queries.codes), queries.bits, part.items)
        yield part, found, True
    for part, found in _results(client, _count, [part for part in todo if part not in there], queries):
        parts.save_counts(places[part], found)
        yield part, found, False


def _digest(part, mark, bits):
    """The name of what is kept: it changes with the file, the rows, the queries and their labels."""
    told = [_FORMAT, mark, bits, *part.file.paths, *part.file.names, part.begin, part.end, part.identity]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:32]


def _count(part, queries):
    """Joint histograms of one part."""
    with part_files.opened(part.file, queries.columns) as reader:
        size = max(_BLOCK_BYTES // (queries.codes.shape[1] + max(8, queries.columns.labels or 0)), 1)
        blocks = reader.blocks(part.begin, part.end, size)
        found = reduce(_added, (_counted(queries, *block) for block in blocks))
        if part_files.identity(part.file) != part.identity:
            raise ValueError("the file has changed since the count began")
    return found


def _counted(queries, codes, labels):
    return joint_histograms(queries.codes, codes, queries.bits, label_affinity(queries.labels, labels))


def _added(one, other):
    return merge((one, other))


def _results(
    client: "Client | None", function: Callable[[Any, _Queries], Any], tasks: Sequence[Any], queries: _Queries
) -> Iterator[tuple[Any, Any]]:
    """(task, function(task, queries)) of all tasks, as they are finished."""
    if client is None:
        for task in tasks:
            yield task, function(task, queries)
        return
    from distributed import as_completed

    # The result of a task, which is computed again where its workers die. Scattered data would be lost.
    shared = client.submit(_itself, queries, pure=False)
    futures = {client.submit(function, task, shared, pure=False): task for task in tasks}
    try:
        for future in as_completed(list(futures)):
            task = futures.pop(future)
            yield task, _result(future, task)
            future.release()
    finally:
        client.cancel([shared, *futures])


def _itself(value):
    return value


def _result(future, task):
    from distributed import KilledWorker

    try:
        return future.result()
    except (ValueError, OSError, MemoryError):
        raise
    except Exception as error:
        file = task if isinstance(task, part_files.PartFile) else task.file
        if isinstance(error, KilledWorker):
            died = error.allowed_failures + 1
            reason = f"{died} workers died over it: give them more memory, or smaller parts"
        else:
            reason = f"its worker failed: {type(error).__name__}: {one_line(error)}"
        raise part_files.PartFileError(f"{file.codes}: {reason}") from error
