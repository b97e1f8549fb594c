"""Files of runs read back: the results of a table, and one data frame of all its scores."""

import math
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from reporting.records.filled import filled_runs
from reporting.records.folds import merged_means, merged_run
from reporting.records.items import Queries
from reporting.tables.model import Table
from reporting.tables.runs import Results, Run, RunCell, other_fingerprint
from reporting.tables.titles import LEADERBOARD
from tiebench.files import read_json, read_lines, read_npz, read_result_npz, reading_result
from tiebench.messages import did_you_mean

ALSO = ("training", "per_query")
RUN_COLUMNS = ("table", "protocol", "metric", "method", "bits", "seed")
SCORE_COLUMNS = ("score", "min", "max")
NUMBERS = (*SCORE_COLUMNS, "seconds", "memory")


def published_table(table: str, results: str | Path = "results") -> Table:
    """The table that `<results>/<table>.json` holds.

    Raises ValueError, one line with the nearest known name, where the table has not been made.
    """
    path = Path(results, f"{table}.json")
    if not path.is_file():
        known = did_you_mean(table, published_tables(results))
        raise ValueError(f"{path} does not exist: {results} has no table {table!r}{known}")
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
      the metrics that the table's blocks ask of the protocol, and "ap".
    A refused run has these empty; one from the leaderboard has no "training", and its "per_query" is the mean
    over the seeds of its cell.

    Raises ValueError for a damaged file, and for runs of other data than the leaderboard's; OSError for a
    file that cannot be read. Each names the file or the protocol.
    """
    metrics: dict[str, set[str]] = {}
    for group in table.groups:
        metrics.setdefault(group.protocol, {"ap"}).add(group.metric)
    found: list[Run] = []
    filled = filled_runs(table, also)
    for cell in sorted(table.cells):
        if cell in filled:
            found += filled[cell]
            continue
        protocol, method, bits = cell
        for seed in table.method_seeds(method):
            if cell in table.refused:
                found.append(Run(*cell, seed, status="refused", reason=table.refused[cell]))
                continue
            of_folds = [
                _run_of_files(Path(runs), (fold, method, bits), seed, also, metrics[protocol])
                for fold in table.members(protocol)
            ]
            for run in of_folds:
                theirs = table.filled.fingerprints.get(run.protocol, {})
                if differs := other_fingerprint(run.protocol, run.fingerprints, theirs):
                    remedy = "leave out `compare`, and list under `methods` what is to be compared"
                    words = f"table {table.name}: {differs}, so their rows do not compare"
                    raise ValueError(f"{words}; {remedy}")
            found.append(of_folds[0] if len(of_folds) == 1 else merged_run(protocol, of_folds))
    return found


def _run_of_files(runs: Path, cell: RunCell, seed: int, also: Iterable[str], metrics: Collection[str]) -> Run:
    """What the files of one run say."""
    protocol, method, bits = cell
    folder = runs / protocol / method / str(bits) / str(seed)
    record: dict[str, Any] = {"protocol": protocol, "method": method, "bits": bits, "seed": seed}
    scores = _scores(folder)
    record |= {key: scores[key] for key in ("status", "reason", "metrics", "curves")}
    record |= {"health": scores.get("health"), "run": _of_run(folder, "run.json")}
    if "training" in also:
        record["training"] = read_lines(folder / "training.jsonl")
    if "per_query" in also:
        record["per_query"] = read_result_npz(folder / "per_query.npz", metrics)
    return Run.from_json(record)


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


# -- one frame of all scores ----------------------------------------------------------------------


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


def _scores(folder: Path) -> dict:
    """The scores.json of a run."""
    with reading_result(folder / "scores.json"):
        found = _of_run(folder, "scores.json")
        if lacking := [key for key in ("status", "reason", "metrics", "curves") if key not in found]:
            raise ValueError(f"{folder / 'scores.json'} lacks {', '.join(lacking)}")
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
    queries, filled = Queries(Path(resources)), filled_runs(asked)
    frames: list[Any] = []
    for group in asked.groups:
        for method in sorted(group.methods, key=asked.methods.index):
            for bits in group.bits:
                cell = (group.protocol, method, bits)
                given = {run.seed: run for run in filled.get(cell, ())}
                for seed in given or asked.method_seeds(method):
                    folders = {
                        name: Path(results, "runs", name, method, str(bits), str(seed))
                        for name in asked.members(group.protocol)
                    }
                    if seed in given:
                        found = _filled(given[seed], group.metric)
                    else:
                        reason = asked.refused.get(cell)
                        found = _merged([_run(one, group.metric, reason) for one in folders.values()])
                    key = (table, group.protocol, group.metric, method, bits, seed)
                    row = dict(zip(RUN_COLUMNS, key, strict=True)) | found
                    frames += _query_rows(row, folders, queries) if per_query else [row]
    if per_query:
        return pd.concat(frames, ignore_index=True)
    return pd.DataFrame(frames).astype({"bits": "int64", "seed": "int64"})


def _merged(rows: list[dict]) -> dict:
    """The columns of a run, from those of its folds, which have their number of queries too."""
    weights = [row.pop("queries") for row in rows]
    for row in rows:
        if row["status"] != "done":
            return row
    merged = dict(rows[0])
    if len(rows) > 1:
        merged |= {
            name: float(np.average([row[name] for row in rows], weights=weights)) for name in SCORE_COLUMNS
        }
        merged["seconds"] = sum(row["seconds"] for row in rows)
        merged["memory"] = max(row["memory"] for row in rows)
    return merged


def _run(folder: Path, metric: str, refusal: str | None) -> dict:
    """The columns of one run: its scores, costs and status, and how many queries it has."""
    found = dict.fromkeys(NUMBERS, math.nan) | {"queries": 0}
    if refusal is not None:
        return found | {"status": "refused", "reason": refusal}
    if not (folder / "scores.json").is_file():
        return found | {"status": "missing", "reason": f"{folder / 'scores.json'} does not exist"}
    scores = _scores(folder)
    if scores["status"] != "done":
        return found | {"status": scores["status"], "reason": scores["reason"] or ""}
    if metric not in scores["metrics"]:
        return found | {"status": "missing", "reason": f"the run has no score named {metric}"}
    found["queries"] = scores["metrics"].get("queries", 0)
    run = _of_run(folder, "run.json") if (folder / "run.json").is_file() else {}
    costs = (run.get("seconds"), run.get("peak_memory_mb"))
    return found | _numbers(scores["metrics"], costs, metric) | {"status": "done", "reason": ""}


def _filled(run: Run, metric: str) -> dict:
    """The columns of a run from the leaderboard."""
    if run.status != "done":
        return dict.fromkeys(NUMBERS, math.nan) | {"status": run.status, "reason": run.reason}
    found = _numbers(run.metrics, (run.seconds, run.peak_memory_mb), metric)
    if math.isnan(found["score"]):
        return found | {"status": "missing", "reason": f"the run has no score named {metric}"}
    return found | {"status": LEADERBOARD, "reason": ""}


def _numbers(
    metrics: Mapping[str, float], costs: tuple[float | None, float | None], metric: str
) -> dict[str, float]:
    """costs: seconds and peak memory."""
    names = dict(zip(SCORE_COLUMNS, (metric, f"{metric}_min", f"{metric}_max"), strict=True))
    found = {column: metrics.get(name, math.nan) for column, name in names.items()}
    return found | {
        column: math.nan if cost is None else cost for column, cost in zip(("seconds", "memory"), costs)
    }


def _query_rows(row: dict, folders: Mapping[str, Path], queries: Queries) -> list[pd.DataFrame]:
    """One row per query of a run; a single row for a run without scores. folders: of its folds."""
    if row["status"] != "done":
        frame = pd.DataFrame([row | {"query": pd.NA, "item": pd.NA, "item_id": ""}])
        return [frame.astype({"query": "Int64", "item": "Int64", "bits": "int64", "seed": "int64"})]
    metric, first, frames = row["metric"], 0, []
    names = dict(zip(SCORE_COLUMNS, (metric, f"{metric}_min", f"{metric}_max"), strict=True))
    for protocol, folder in folders.items():
        path = folder / "per_query.npz"
        with reading_result(path):
            arrays = read_npz(path, set(names.values()))
            if metric not in arrays:
                raise ValueError(f"{path} has no array {metric!r}")
        count = len(arrays[metric])
        scores = {column: arrays.get(name, np.full(count, np.nan)) for column, name in names.items()}
        run = _of_run(folder, "run.json") if (folder / "run.json").is_file() else {}
        items, ids = queries.of(protocol, run.get("fingerprints") or {}, count)
        columns = {name: [value] * count for name, value in row.items()} | scores
        columns |= {"query": np.arange(first, first + count), "item": items, "item_id": ids}
        frames.append(pd.DataFrame(columns).astype({"query": "Int64", "item": "Int64"}))
        first += count
    return frames
