"""Files of runs read back: the results of a table, and one data frame of all its scores."""

import math
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from reporting.records.filled import filled_runs
from reporting.records.folds import merged_means, merged_run
from reporting.records.items import Queries
from reporting.tables.model import Table, claimed_metrics
from reporting.tables.runs import KEY, Results, Run, RunCell, other_fingerprint
from reporting.tables.titles import LEADERBOARD, RANGE
from tiebench.files import read_json, read_lines, read_result_npz, reading_result
from tiebench.messages import did_you_mean

RUN_COLUMNS = ("table", "protocol", "metric", "method", "bits", "seed")
SCORE_COLUMNS, ENDS = ("score", "min", "max"), ("", *RANGE)
NUMBERS = (*SCORE_COLUMNS, "seconds", "memory")


def published_table(table: str, results: str | Path = "results") -> Table:
    """The table that `<results>/<table>.json` holds.

    Raises ValueError, one line with the nearest known name, where the table has not been made.
    """
    path = Path(results, f"{table}.json")
    if not path.is_file():
        known = did_you_mean(table, published_tables(results))
        make = f"snakemake --cores all -- {path.with_suffix('.csv')}"
        raise ValueError(
            f"{path} does not exist: {results} has no table {table!r}{known}; to make the table: {make}"
        )
    with reading_result(path):
        settings = read_json(path)
        if not (isinstance(settings, dict) and isinstance(settings.get("table"), dict)):
            raise ValueError(f"{path} is not the settings of a table")
    try:
        return Table.from_json(settings)
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{path} is not what this version writes ({error!r}); make the table again"
        ) from error


def published_tables(results: str | Path = "results") -> list[str]:
    """Names of the tables that a folder of results holds, sorted: `<name>.json` beside `<name>.tidy.csv`."""
    names = (path.name.removesuffix(".tidy.csv") for path in Path(results).glob("*.tidy.csv"))
    return sorted(name for name in names if Path(results, f"{name}.json").is_file())


def table_results(table: Table, results: str | Path = "results", also: Iterable[str] = ()) -> Results:
    """What was measured of a table, in the folder that the workflow wrote: `table_runs`, and scores of its
    features themselves."""
    return Results.of(table, table_runs(table, Path(results, "runs"), also), uncoded_scores(table, results))


def table_runs(table: Table, runs: str | Path = "results/runs", also: Iterable[str] = ()) -> list[Run]:
    """The runs of a table, from the folders that its cells name and no others, and from the leaderboard.

    also: what is read besides scores and costs, some of
    * "training": the lines of training.jsonl;
    * "per_query": metric -> float64 (Q,), the same queries in the same order for all runs of a protocol, for
      the metrics that the table's blocks ask of the protocol, those that its claims name, and "ap".
    A refused run has these empty; one from the leaderboard has no "training", and its "per_query" is the mean
    over the seeds of its cell.

    Raises ValueError for a damaged file, and for runs of other data than the leaderboard's; OSError for a
    file that cannot be read. Each names the file or the protocol.
    """
    found: list[Run] = []
    filled = filled_runs(table, also)
    for cell in sorted(table.cells):
        if cell in filled:
            found += filled[cell]
            continue
        for seed in table.method_seeds(cell[1]):
            parts = _parts(table, cell, seed, Path(runs), also)
            for run in parts:
                theirs = table.filled.fingerprints.get(run.protocol, {})
                if differs := other_fingerprint(run.protocol, run.fingerprints, theirs):
                    remedy = "leave out `compare`, and list under `methods` what is to be compared"
                    words = f"table {table.name}: {differs}, so their rows do not compare"
                    raise ValueError(f"{words}; {remedy}")
            found.append(_whole(cell, parts))
    return found


def _parts(
    table: Table, cell: RunCell, seed: int, runs: Path, also: Iterable[str], gaps: bool = False
) -> list[Run]:
    """The runs of the folds of a cell, or its own. gaps: whether a run is missing where its files are."""
    protocol, method, bits = cell
    if cell in table.refused:
        return [Run(*cell, seed, status="refused", reason=table.refused[cell])]
    shown = (group.metric for group in table.groups if group.protocol == protocol)
    metrics = {"ap", *shown, *claimed_metrics(table.claims)}
    wanted = {f"{metric}{end}" for metric in metrics for end in (ENDS if gaps else ENDS[:1])}
    return [
        _run_of_files(runs, (fold, method, bits), seed, also, wanted, gaps)
        for fold in table.members(protocol)
    ]


def _whole(cell: RunCell, parts: Sequence[Run]) -> Run:
    """The run of a cell, of its folds where it has any."""
    return parts[0] if parts[0].protocol == cell[0] else merged_run(cell[0], parts)


def _run_of_files(
    runs: Path, cell: RunCell, seed: int, also: Iterable[str], metrics: Collection[str], gaps: bool
) -> Run:
    """What the files of one run say."""
    folder = Path(runs, *map(str, (*cell, seed)))
    if gaps and not (folder / "scores.json").is_file():
        return Run(*cell, seed, status="missing", reason=f"{folder / 'scores.json'} does not exist")
    with reading_result(folder / "scores.json"):
        record = _of_run(folder, "scores.json")
        if lacking := [key for key in ("status", "reason", "metrics", "curves") if key not in record]:
            raise ValueError(f"{folder / 'scores.json'} lacks {', '.join(lacking)}")
    record |= dict(zip(KEY, (*cell, seed), strict=True))
    record["run"] = {} if gaps and not (folder / "run.json").is_file() else _of_run(folder, "run.json")
    if "training" in also:
        record["training"] = read_lines(folder / "training.jsonl")
    if "per_query" in also and record["status"] == "done":
        record["per_query"] = read_result_npz(folder / "per_query.npz", metrics)
    return Run.from_json(record)


def _of_run(folder: Path, name: str) -> dict:
    """A JSON file of a run; the error for one that was deleted says how to make it again."""
    path = folder / name
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; to make it again: snakemake --cores all -- {path}")
    with reading_result(path):
        found = read_json(path)
        if not isinstance(found, dict):
            raise ValueError(f"{path} is not the record of a run")
        return found


def uncoded_scores(table: Table, results: str | Path = "results") -> dict[str, dict[str, float]]:
    """Protocol -> metric -> score of its features themselves, for the protocols of `table.uncoded`.

    Raises ValueError for a damaged file, OSError for one that cannot be read; both name the file.
    """
    found = {}
    for protocol in table.uncoded:
        parts = []
        for fold in table.members(protocol):
            path = Path(results, "uncoded", f"{fold}.json")
            with reading_result(path):
                scores = read_json(path)
                if not (isinstance(scores, dict) and isinstance(scores.get("metrics"), dict)):
                    raise ValueError(f"{path} has no metrics")
                parts.append(scores["metrics"])
        found[protocol] = parts[0] if len(parts) == 1 else merged_means(parts)
    return found


def load_results(
    table: str,
    results: str | Path = "results",
    per_query: bool = False,
    resources: str | Path = "resources",
) -> pd.DataFrame:
    """All scores of a published table as a data frame, one row per (protocol, metric, method, bits, seed).

    table: its name, as in `results/<table>.csv`; results, resources: the folders that the workflow wrote.

    Columns, in the table's order of blocks, methods, bits and seeds:

    * table, protocol, metric, method (str), bits, seed (int);
    * score: the mean over queries; min, max: the means over queries of the worst and the best order of tied
      items, NaN for a metric without a range (float64);
    * seconds: wall-clock time of training and encoding; memory: peak memory of the process in MB (float64);
    * status: "done", "leaderboard" (of a run that is published there, not made here), "refused" (the method
      cannot serve the protocol) or "missing" (no such file or score); reason: why there is no score (str).
      Numbers of a run without scores are NaN.

    With per_query, one row per query instead: score, min and max are those of the query; `query` is its
    position in the run's arrays, `item` the index of the item in the dataset, and `item_id` the dataset's own
    id of it (`ids.npy` of the dataset; the index as text where the dataset has no ids). They are read from
    `resources`; without the protocol's files there, `item` is <NA> and `item_id` "". A run without scores per
    query has one row, with `query` <NA>.

    Raises ValueError for an unknown table, for damaged files, and where the protocol's split is not the one
    that the runs were made with; each message names the file.
    """
    asked = published_table(table, results)
    queries, filled, also = Queries(Path(resources)), filled_runs(asked), ["per_query"] * per_query
    frames: list[Any] = []
    for group in asked.groups:
        for method in sorted(group.methods, key=asked.methods.index):
            for bits in group.bits:
                cell = (group.protocol, method, bits)
                given = {run.seed: [run] for run in filled.get(cell, ())}
                for seed in given or asked.method_seeds(method):
                    parts = given.get(seed) or _parts(
                        asked, cell, seed, Path(results, "runs"), also, gaps=True
                    )
                    key = (table, group.protocol, group.metric, method, bits, seed)
                    row = dict(zip(RUN_COLUMNS, key, strict=True)) | _row(_whole(cell, parts), group.metric)
                    frames += _query_rows(row, parts, queries) if per_query else [row]
    if per_query:
        return pd.concat(frames, ignore_index=True)
    return pd.DataFrame(frames).astype({"bits": "int64", "seed": "int64"})


def _row(run: Run, metric: str) -> dict:
    """The columns of one run: its scores, costs and status."""
    score, status, reason = run.outcome(metric)
    if score is None:
        return dict.fromkeys(NUMBERS, math.nan) | {"status": status, "reason": reason}
    found = [*(run.metrics.get(f"{metric}{end}") for end in ENDS), run.seconds, run.peak_memory_mb]
    numbers = (math.nan if value is None else value for value in found)
    status = LEADERBOARD if run.from_leaderboard else status
    return dict(zip(NUMBERS, numbers, strict=True)) | {"status": status, "reason": ""}


def _query_rows(row: dict, parts: Iterable[Run], queries: Queries) -> list[pd.DataFrame]:
    """One row per query of a run, of its folds one after the other; a single row for a run without scores."""
    if row["status"] != "done":
        frame = pd.DataFrame([row | {"query": pd.NA, "item": pd.NA, "item_id": ""}])
        return [frame.astype({"query": "Int64", "item": "Int64", "bits": "int64", "seed": "int64"})]
    metric, first, frames = row["metric"], 0, []
    for run in parts:
        if metric not in run.per_query:
            raise ValueError(f"run {run}: per_query.npz has no array {metric!r}; delete it to make it again")
        count = len(run.per_query[metric])
        empty = np.full(count, np.nan)
        scores = {name: run.per_query.get(f"{metric}{end}", empty) for name, end in zip(SCORE_COLUMNS, ENDS)}
        items, ids = queries.of(run.protocol, run.fingerprints, count)
        columns = {name: [value] * count for name, value in row.items()} | scores
        columns |= {"query": np.arange(first, first + count), "item": items, "item_id": ids}
        frames.append(pd.DataFrame(columns).astype({"query": "Int64", "item": "Int64"}))
        first += count
    return frames
