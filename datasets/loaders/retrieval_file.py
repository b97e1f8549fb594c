"""Embeddings of documents and queries with relevance judgements: a .npz file, or plain files as of BEIR.

Arrays of the .npz file:

- `database` (n, d) and `query` (m, d): embeddings of documents and queries, of any real dtype;
- optional `database_ids` (n,) and `query_ids` (m,): their names in the judgements, integers or text; without
  them, their places 0, 1, ...;
- `qrels_<part>` (j, 3) for each part, as `qrels_test`: query, document and score, integers or text. Pairs
  that are not listed have score 0, and negative scores count as 0.

Plain files have the same names: `database.npy`, `query.npy`, `database_ids.txt` and `query_ids.txt` with one
id per line, and `<part>.tsv`, judgements as `tiebench score-run` reads them: three columns (BEIR) or four
(TREC), with a header or without. Text may be gzip (`<part>.tsv.gz`).

The dataset holds the documents, then the queries. Its own split has the parts `documents`, one per part of
the judgements, and `not judged`. The judgements are written to judgements.npy for affinity `judgements`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from datasets.description import Description
from datasets.files import creating_items, save_array
from datasets.readers.archives import existing_files
from datasets.readers.npz import NUMBERS, TEXT, array_names, open_array, opened, short, whole_array
from datasets.specification import refuse_unknown_options
from tiebench import texts, values
from tiebench.files import naming_values, read_array
from tiebench.messages import did_you_mean
from tiebench.runs import entries as run_entries

OPTIONS = {"parts": "parts of the judgements to use, as [test]; all by default"}
DOCUMENTS, NOT_JUDGED = "documents", "not judged"
_SIDES = ("database", "query")
_JUDGED = "qrels_"
_ROWS_AT_ONCE = 1 << 14


def describe(sources: list[Path], *, parts: list[str] | None = None, **unknown) -> Description:
    """Ids, given split and shape; of the embeddings only the headers are read.

    sources: see the module. Raises FileNotFoundError where a file is missing, ValueError where one is not as
    the module says.
    """
    refuse_unknown_options(unknown, OPTIONS, "retrieval_file")
    return _described(_read(sources), parts)[0]


def load(sources: list[Path], folder: Path, *, parts: list[str] | None = None, **unknown) -> Description:
    """Write items.npy float32 (n + m, d), judgements.npy int64 (j, 3) and what a description writes.

    Raises FileNotFoundError and ValueError as `describe`, and ValueError for a value that is not finite.
    """
    refuse_unknown_options(unknown, OPTIONS, "retrieval_file")
    collection, folder = _read(sources), Path(folder)
    description, judgements = _described(collection, parts)
    with creating_items(
        folder / "items.npy", (description.items, *description.item_shape), np.float32
    ) as items:
        begin = 0
        for side in _SIDES:
            vectors = collection.sides[side].read()
            for first in range(0, len(vectors), _ROWS_AT_ONCE):
                with np.errstate(over="ignore"):
                    block = vectors[first : first + _ROWS_AT_ONCE].astype(np.float32)
                finite = np.isfinite(block).all(axis=1)
                if not finite.all():
                    row = first + int(np.argmin(finite))
                    raise ValueError(f"{collection.path}: {side}[{row}] must be finite in float32")
                items.view()[begin : begin + len(block)] = block
                begin += len(block)
    save_array(folder / "judgements.npy", judgements)
    description.write(folder)
    return description


@dataclass(frozen=True)
class _Side:
    """Documents or queries: shape (n, d), ids as text or int64 (n,), and what reads the vectors."""

    shape: tuple[int, ...]
    ids: np.ndarray
    read: Callable[[], np.ndarray]


@dataclass(frozen=True)
class _Collection:
    """sides: "database" and "query"; judged: part -> (queries, documents, scores), ids as text."""

    path: Path
    sides: dict[str, _Side]
    judged: dict[str, tuple[list[str], list[str], np.ndarray]]


def _described(collection: _Collection, parts: object) -> tuple[Description, np.ndarray]:
    """The description, and judgements int64 (j, 3) by item, sorted."""
    path, judged = collection.path, collection.judged
    database, query = (collection.sides[side] for side in _SIDES)
    if parts is not None:
        if not isinstance(parts, (list, tuple)) or not parts:
            raise ValueError(f"option parts: must be a list of names such as [test], not {short(parts)}")
        for part in parts:
            if part not in judged:
                hint = did_you_mean(part, sorted(judged))
                raise ValueError(f"{path}: there are no judgements of part {short(repr(part))}{hint}")
    for part in judged:
        if part in (DOCUMENTS, NOT_JUDGED):
            raise ValueError(
                f"{path}: a part of the judgements must not be called {part}, as other items are"
            )
    chosen = sorted(judged) if parts is None else list(dict.fromkeys(parts))
    items = len(database.ids) + len(query.ids)
    given = np.zeros(items, np.int64)
    given[len(database.ids) :] = len(chosen) + 1
    places = {
        side: {str(name): place for place, name in enumerate(collection.sides[side].ids.tolist())}
        for side in _SIDES
    }
    rows = []
    for number, part in enumerate(chosen, 1):
        *names, scores = judged[part]
        found = []
        for side, ids in zip(("query", "database"), names):
            unknown = [name for name in ids if name not in places[side]]
            if unknown:
                what = "query" if side == "query" else "document"
                raise ValueError(
                    f"{path}: judgements of {part}: {what} {short(unknown[0])} is not among the ids "
                    f"({len(unknown)} of {len(ids)} rows); remove these rows, or add what they name"
                )
            found.append(np.array([places[side][name] for name in ids], np.int64))
        queries = np.unique(found[0]) + len(database.ids)
        taken = queries[given[queries] != len(chosen) + 1]
        if len(taken):
            other = chosen[given[taken[0]] - 1]
            raise ValueError(
                f"{path}: query {short(query.ids[taken[0] - len(database.ids)])} is judged in {other} and in "
                f"{part}; choose one with option parts"
            )
        given[queries] = number
        rows.append(np.stack([found[0] + len(database.ids), found[1], np.maximum(scores, 0)], axis=1))
    judgements = np.concatenate(rows)
    judgements = judgements[np.lexsort((judgements[:, 1], judgements[:, 0]))]
    same = (np.diff(judgements[:, :2], axis=0) == 0).all(axis=1)
    if same.any():
        row, column, _ = judgements[int(np.argmax(same))]
        raise ValueError(
            f"{path}: document {short(database.ids[column])} is judged twice for query "
            f"{short(query.ids[row - len(database.ids)])}"
        )
    split_names = [DOCUMENTS, *chosen] + [NOT_JUDGED] * bool((given == len(chosen) + 1).any())
    alike = database.ids.dtype.kind == query.ids.dtype.kind
    names_of_items = [side.ids if alike else side.ids.astype(str) for side in (database, query)]
    description = Description(
        items, None, given, None, database.shape[1:], "vectors", split_names, np.concatenate(names_of_items)
    )
    return description, judgements


def _read(sources: list[Path]) -> _Collection:
    if not sources:
        raise ValueError("loader retrieval_file: takes a .npz file, or plain files; got 0 sources")
    paths = existing_files(sources)
    collection = _read_npz(paths[0]) if len(paths) == 1 else _read_plain(paths)
    shapes = {side: collection.sides[side].shape for side in _SIDES}
    for side, shape in shapes.items():
        if len(shape) != 2 or 0 in shape:
            raise ValueError(f"{collection.path}: {side} must be embeddings (n, d), not of shape {shape}")
        ids = collection.sides[side].ids
        if ids.shape != shape[:1]:
            raise ValueError(f"{collection.path}: {shape[0]} rows of {side} have ids of shape {ids.shape}")
        if len(set(map(str, ids.tolist()))) < len(ids):
            raise ValueError(f"{collection.path}: {side}_ids holds an id twice; each needs one of its own")
    if shapes["database"][1] != shapes["query"][1]:
        raise ValueError(
            f"{collection.path}: database has {shapes['database'][1]} dimensions, query has "
            f"{shapes['query'][1]}: both must come from one model"
        )
    if not collection.judged:
        raise ValueError(
            f"{collection.path}: has no judgements: add qrels_<part>, as qrels_test, or a file <part>.tsv"
        )
    return collection


def _read_npz(path: Path) -> _Collection:
    sides, judged, judged_by = {}, {}, ("query", "document")
    with opened(path) as archive:
        names = array_names(path, archive)
        for side in _SIDES:
            if side not in names:
                raise ValueError(f"{path}: has no array '{side}'; arrays there: {short(', '.join(names))}")
            with open_array(path, archive, side) as (header, _):
                shape = header.shape
            ids = np.arange(shape[0] if shape else 0)
            if f"{side}_ids" in names:
                ids = _ids(path, whole_array(path, archive, f"{side}_ids", NUMBERS + TEXT), f"{side}_ids")
            sides[side] = _Side(shape, ids, partial(_vectors, path, side))
        for name in names:
            if not name.startswith(_JUDGED):
                continue
            rows = whole_array(path, archive, name, NUMBERS + TEXT)
            if rows.ndim != 2 or rows.shape[1] != 3 or not len(rows):
                raise ValueError(f"{path}: {name} must be (j, 3): query, document, score; not {rows.shape}")
            names_of = [
                _ids(path, rows[:, column], f"{what} of {name}") for column, what in enumerate(judged_by)
            ]
            with naming_values(path):
                scores = values.integers(rows[:, 2], f"score of {name}", written=True).astype(np.int64)
            judged[name.removeprefix(_JUDGED)] = (*(one.astype(str).tolist() for one in names_of), scores)
    return _Collection(path, sides, judged)


def _ids(path: Path, given: np.ndarray, name: str) -> np.ndarray:
    """Text or int64 (n,)."""
    with naming_values(path):
        found = values.ids(given, name)
        return found if values.is_text(found) else values.integers(found, name).astype(np.int64)


def _vectors(path: Path, side: str) -> np.ndarray:
    with opened(path) as archive:
        return whole_array(path, archive, side)


def _read_plain(paths: list[Path]) -> _Collection:
    arrays, ids, judged = {}, {}, {}
    named: dict[Path, Path] = {}
    for path in paths:
        name = Path(path.name.removesuffix(".gz"))
        if (other := named.setdefault(name, path)) != path:
            raise ValueError(f"{path}: {other} has the same name, which says what a file holds")
        if path.suffix == ".npy" and path.stem in _SIDES:
            arrays[path.stem] = read_array(path, True)
            if arrays[path.stem].dtype.kind not in NUMBERS:
                raise ValueError(f"{path}: must hold real numbers, not {arrays[path.stem].dtype}")
        elif name.suffix == ".txt" and name.stem in [f"{side}_ids" for side in _SIDES]:
            ids[name.stem.removesuffix("_ids")] = np.array(_read_ids(path), np.str_)
        elif name.suffix == ".tsv":
            judged[name.stem] = _read_judgements(path)
        else:
            known = [*(f"{side}.npy" for side in _SIDES), *(f"{side}_ids.txt" for side in _SIDES), "test.tsv"]
            raise ValueError(f"{path}: not a file of loader retrieval_file{did_you_mean(path.name, known)}")
    for side in _SIDES:
        if side not in arrays:
            raise ValueError(f"{paths[0].parent}: {side}.npy is missing among the sources")

    def side_of(side: str, array: np.ndarray) -> _Side:
        return _Side(array.shape, ids.get(side, np.arange(len(array))), lambda: array)

    sides = {side: side_of(side, array) for side, array in arrays.items()}
    return _Collection(paths[0].parent, sides, judged)


def _read_ids(path: Path) -> list[str]:
    ids = []
    for number, line in enumerate(texts.read(path).lines(), 1):
        if "\t" in line.strip():
            raise ValueError(f"{path}: line {number} has several columns; one id is on each line")
        ids += [line.strip()] if line.strip() else []
    return ids


def _read_judgements(path: Path) -> tuple[list[str], list[str], np.ndarray]:
    entries = run_entries.judgements(path)
    rows = range(len(entries.query))
    queries = [entries.queries[place] for place in entries.query.tolist()]
    return queries, [entries.documents.text(row) for row in rows], entries.values.astype(np.int64)
