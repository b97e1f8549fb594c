"""What a leaderboard keeps of queries: which they are, and the scores of each, for `tiebench compare`."""

import io
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from reporting.leaderboard import Board
from reporting.records.filled import with_scores_of_queries
from reporting.records.items import identity, split_of
from reporting.tables.runs import Run
from tiebench.leaderboards import cell_key, cell_of, per_query_name, per_query_parts, scores_of_queries

# Git keeps every version of a file: a part has no more than this. Of what needs more parts, means are kept.
MOST_BYTES = 512 << 10
MOST_PARTS = 48
SIZES = ("queries", "database")


def record(
    about: dict, runs: Sequence[Run], old: Board | None, folder: str | Path, resources: str | Path
) -> tuple[dict[str, bytes], list[str]]:
    """Name -> content of the files with scores of each query; and, in words, what is not recorded.

    about: the provenance, which gets "members"; runs: all of them, of folds one per
    fold, with "per_query"; old: what the folder has of the protocol, whose other cells are kept. Raises
    ValueError for runs of several splits or sizes, and for a split in `resources` that is not theirs.
    """
    protocol = about["protocol"]
    of_folds = _by_fold(runs)
    before = {} if old is None else {one["protocol"]: one for one in old.about.get("members") or []}
    found = {one["protocol"]: before.get(one["protocol"], {}) | one for one in _members(of_folds, resources)}
    about["members"] = [*(before | found).values()]
    missing = [
        f"{one['protocol']}: {resources} lacks its split or dataset, so its items are not recorded"
        for one in about["members"]
        if "query_items" not in one
    ]
    new = scores({fold: of_folds.get(fold, []) for fold in before | found})
    published = [] if old is None else per_query_parts(folder, old.about)
    arrays = {key: of for part in published for key, of in part.items()}
    if not (new or arrays):
        return {}, [*missing, f"no run of {protocol} has scores of each query: they are left out"]
    cells = {(run.method, run.bits) for run in runs}
    arrays = {key: of for key, of in arrays.items() if key == "query" or cell_of(key)[1:] not in cells} | new
    splits = [split_of(fold, None, resources) for fold in of_folds]
    if None not in splits and len(splits) == len(about["members"]):
        arrays["query"] = np.concatenate([split["query"] for split in splits if split is not None])
    parts = _parts(arrays, published)
    if len(parts) > MOST_PARTS:
        words = f"scores of each query and run would be {len(parts)} files, more than {MOST_PARTS}"
        missing.append(f"{protocol}: {words}: the means over runs are kept")
        parts = _parts({key: of.mean(axis=0) if of.ndim == 2 else of for key, of in arrays.items()})
    contents = {per_query_name(protocol, place): _archive(part) for place, part in enumerate(parts, start=1)}
    return contents, missing


def scores(runs: Mapping[str, Sequence[Run]]) -> dict[str, np.ndarray]:
    """Name of a cell, `leaderboards.cell_key` -> scores of each query, float32 (n, Q), a row a seed in
    ascending order; (Q,) where all seeds have the same.

    runs: fold, or the protocol itself -> its runs, with "per_query". Folds stand one after the other. Left
    out are metrics that some run of a cell has no scores per query of. Where folds have other seeds than one
    another there is no run of all queries: the mean over seeds, (Q,).
    """
    cells: dict[tuple, dict[str, dict[int, Mapping]]] = {}
    for fold, of in runs.items():
        for run in of:
            parts = cells.setdefault((run.method, run.bits), {})
            parts.setdefault(fold, {})[run.seed] = run.per_query
    found = {}
    for (method, bits), parts in cells.items():
        if set(parts) != set(runs):
            continue  # refused in a fold
        known = [scores for of in parts.values() for scores in of.values()]
        for metric in sorted(set(known[0]).intersection(*known)):
            rows = [np.array([of[seed][metric] for seed in sorted(of)]) for of in map(parts.get, runs) if of]
            if len({tuple(sorted(of)) for of in parts.values()}) > 1:
                rows = [of.mean(axis=0, keepdims=True) for of in rows]
            whole = np.concatenate(rows, axis=1).astype(np.float32)
            found[cell_key(metric, method, bits)] = whole[0] if (whole == whole[0]).all() else whole
    return found


def with_scores(board: Board, folder: str | Path) -> list[Run]:
    """The runs of a board with "per_query", {} where there are no scores of each query.

    folder: of the leaderboard.
    """
    known = scores_of_queries(folder, board.about)
    return with_scores_of_queries(
        board.measured, {(board.protocol, *cell): scores for cell, scores in known.items()}
    )


def _by_fold(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Runs by fold, each once: two tables may ask for different metrics of one run."""
    found: dict[str, dict[tuple, Run]] = {}
    for run in runs:
        of, key = found.setdefault(run.protocol, {}), (run.method, run.bits, run.seed)
        before = of[key].per_query if key in of else {}
        of[key] = replace(run, per_query={**before, **run.per_query})
    return {fold: list(of.values()) for fold, of in found.items()}


def _members(runs: Mapping[str, Sequence[Run]], resources: str | Path) -> list[dict]:
    """What is known of the queries and the database of a protocol, or of each of its folds.

    Each is {"protocol", "queries", "database"} with the keys of `query_identity.describe`; of these the
    digests are left out where `resources` does not hold the split and the dataset.
    """
    found = []
    for fold, of in runs.items():
        known: dict = {"protocol": fold}
        for name in SIZES:
            known |= _agreed(fold, name, (run.metrics.get(name) for run in of))
        prints = _agreed(fold, "fingerprints", (run.fingerprints or None for run in of))
        described = identity(fold, prints.get("fingerprints", {}), resources) or {}
        for name in SIZES:
            if known.get(name, described.get(name)) != described.get(name, known.get(name)):
                sizes = f"runs of {known[name]} {name}, a split of {described[name]}"
                raise ValueError(f"{fold}: {sizes}; run the workflow again")
        found.append(known | described)
    return found


def _agreed(fold: str, name: str, values: Iterable) -> dict:
    """{name: value} of the one value that runs have, {} where none has it."""
    known = [value for value in values if value is not None]
    if any(value != known[0] for value in known):
        raise ValueError(f"{fold}: runs have different {name}; run them all again")
    return {name: known[0]} if known else {}


def _parts(
    arrays: Mapping[str, np.ndarray], before: Sequence[Mapping[str, np.ndarray]] = ()
) -> list[dict[str, np.ndarray]]:
    """Arrays by file, so that none is larger than MOST_BYTES by much; cells of a method stand together.

    before: the files of the last publication, where equal arrays stay if that takes one file more at most.
    """
    sizes = {name: len(zlib.compress(of.tobytes())) + 400 for name, of in arrays.items()}  # 400: zip, header
    parts: list[dict[str, np.ndarray]] = [{} for _ in before]
    used = [0] * len(parts)

    def put(name, places):
        fits = (place for place in places if not used[place] or used[place] + sizes[name] <= MOST_BYTES)
        if (place := next(fits, len(parts))) == len(parts):
            parts.append({})
            used.append(0)
        parts[place][name] = arrays[name]
        used[place] += sizes[name]

    for place, part in enumerate(before):
        for name in part:
            if name in arrays and np.array_equal(part[name], arrays[name]):
                put(name, [place])
    for name in sorted(arrays.keys() - set().union(*parts), key=_cell_first):
        put(name, range(len(parts)))
    parts = [part for part in parts if part]
    return _parts(arrays) if before and len(parts) > len(_parts(arrays)) + 1 else parts


def _cell_first(name: str) -> tuple:
    metric, *cell = (name, "", 0) if name == "query" else cell_of(name)
    return *cell, metric


def _archive(arrays: Mapping[str, np.ndarray]) -> bytes:
    """An .npz file of arrays, compressed; the same arrays give the same bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        for name in sorted(arrays):
            member, array = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0)), io.BytesIO()
            member.compress_type = zipfile.ZIP_DEFLATED
            member.create_system, member.external_attr = 3, 0o644 << 16
            np.lib.format.write_array(array, arrays[name], allow_pickle=False)
            file.writestr(member, array.getvalue())
    return content.getvalue()
