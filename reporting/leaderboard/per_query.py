"""What a leaderboard keeps of queries: which they are, and the scores of each, for `tiebench compare`."""

import hashlib
import io
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from reporting.leaderboard import Board
from reporting.records.items import identity, split_of
from reporting.tables.runs import Run
from tiebench.leaderboards import PER_QUERY, cell_key, cell_of, read_per_query, scores_of_queries

# A file that git keeps for each protocol, in every version: larger ones are left out.
MOST_BYTES = 4 << 20
SIZES = ("queries", "database")


def record(
    about: dict, runs: Sequence[Run], old: Board | None, folder: str | Path, resources: str | Path
) -> tuple[bytes | None, list[str]]:
    """The content of <protocol>.per_query.npz, None if it is left out; and, in words, what is not recorded.

    about: the provenance, which gets "members" and the file's sha256; runs: all of them, of folds one per
    fold, with "per_query"; old: what the folder has of the protocol, whose other cells are kept. Raises
    ValueError for runs of several splits or sizes, and for a split in `resources` that is not theirs.
    """
    protocol, name = about["protocol"], f"{about['protocol']}{PER_QUERY}"
    of_folds = _by_fold(runs)
    before = {} if old is None else {one["protocol"]: one for one in old.about.get("members") or []}
    about["members"] = [before.get(one["protocol"], {}) | one for one in _members(of_folds, resources)]
    missing = [
        f"{one['protocol']}: {resources} lacks its split or dataset, so its items are not recorded"
        for one in about["members"]
        if "query_items" not in one
    ]
    arrays = {} if old is None else read_per_query(Path(folder, name), old.about)
    new = scores(of_folds)
    cells = {(run.method, run.bits) for run in runs}
    arrays = {key: of for key, of in arrays.items() if key == "query" or cell_of(key)[1:] not in cells} | new
    splits = [split_of(fold, None, resources) for fold in of_folds]
    if None not in splits:
        arrays["query"] = np.concatenate([split["query"] for split in splits if split is not None])
    content = _archive(arrays)
    if len(content) > MOST_BYTES:
        size = f"{len(content) / 2**20:.1f} MB compressed, more than {MOST_BYTES / 2**20:g} MB"
        return None, [*missing, f"{name} is left out: {size}"]
    if not new:
        return None, [*missing, f"{name} is left out: no run of {protocol} has scores of each query"]
    about["sha256"][name] = hashlib.sha256(content).hexdigest()
    return content, missing


def scores(runs: Mapping[str, Sequence[Run]]) -> dict[str, np.ndarray]:
    """Name of a cell, `leaderboards.cell_key` -> scores of each query, float32 (Q,): the mean over seeds.

    runs: fold, or the protocol itself -> its runs, with "per_query". Folds stand one after the other. Left
    out are metrics that some run of a cell has no scores per query of.
    """
    cells: dict[tuple, dict[str, list[Mapping]]] = {}
    for fold, of in runs.items():
        for run in of:
            parts = cells.setdefault((run.method, run.bits), {})
            parts.setdefault(fold, []).append(run.per_query)
    found = {}
    for (method, bits), parts in cells.items():
        if set(parts) != set(runs):
            continue  # refused in a fold
        known = [scores for of in parts.values() for scores in of]
        for metric in sorted(set(known[0]).intersection(*known)):
            means = [np.mean([scores[metric] for scores in parts[fold]], axis=0) for fold in runs]
            found[cell_key(metric, method, bits)] = np.concatenate(means).astype(np.float32)
    return found


def with_scores(board: Board, folder: str | Path) -> list[Run]:
    """The runs of a board with "per_query", {} where there are no scores of each query.

    folder: of the leaderboard. It keeps for each query the mean over seeds: each seed of a cell has it.
    """
    known = scores_of_queries(Path(folder, f"{board.protocol}{PER_QUERY}"), board.about)
    cells = {(board.protocol, *cell): scores for cell, scores in known.items()}
    return [replace(run, per_query=cells.get(run.cell, {})) for run in board.measured]


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
