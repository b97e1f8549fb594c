"""Published results read back: the records of a table's runs, and one data frame of all its scores."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from reporting.filled import check_fingerprints, filled_records
from reporting.folds import members, merged_means, merged_record
from reporting.items import Queries
from reporting.layout import method_seeds
from reporting.titles import LEADERBOARD
from tiebench.files import read_json, read_lines, read_npz, read_result_npz, reading_result
from tiebench.messages import did_you_mean

ALSO = ("training", "per_query")
RUN_COLUMNS = ("table", "protocol", "metric", "method", "bits", "seed")
SCORE_COLUMNS = ("score", "min", "max")
NUMBERS = (*SCORE_COLUMNS, "seconds", "memory")


def published_settings(table: str, results: str | Path = "results") -> dict:
    """What `<results>/<table>.json` holds: "table", "published", "refused" and "claims".

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
        return settings


def published_tables(results: str | Path = "results") -> list[str]:
    """Names of the tables that a folder of results holds, sorted: `<name>.json` beside `<name>.tidy.csv`."""
    names = (path.name.removesuffix(".tidy.csv") for path in Path(results).glob("*.tidy.csv"))
    return sorted(name for name in names if Path(results, f"{name}.json").is_file())


def table_records(
    settings: Mapping, runs: str | Path = "results/runs", also: Iterable[str] = ()
) -> list[dict]:
    """One record per run of a table, from the folders that its cells name and no others.

    settings: {"table": its entry with "name", "refused": [{"protocol", "method", "bits", "reason"}, …]}; if
    cells are from the leaderboard, "filled" has their records, which say so by their "source".
    A record is a dict: protocol, method, bits, seed, status ("done", "refused", or "missing" of codes that
    were to be imported), reason, metrics (name -> mean over queries), curves (name -> list, see
    tiebench.scoring.Scores), health (of the codes, as scores.json holds it), run (run.json). also, some of
    * "training": a list of dicts, the lines of training.jsonl;
    * "per_query": metric -> float64 (Q,), the same queries in the same order for all runs of a protocol, for
      the metrics that the table's blocks ask of the protocol, and "ap".
    A refused run has these empty; one from the leaderboard has no "training", and its "per_query" is the mean
    over the seeds of its cell.

    Raises ValueError for a damaged file, and for runs of other data than the leaderboard's; OSError for a
    file that cannot be read. Each names the file or the protocol.
    """
    table = settings["table"]
    refused = {(c["protocol"], c["method"], c["bits"]): c["reason"] for c in settings["refused"]}
    cells, metrics = set(), {}
    for block in table["blocks"]:
        metrics.setdefault(block["protocol"], {"ap"}).add(block["metric"])
        for method in block.get("methods") or table["methods"]:
            cells |= {(block["protocol"], method, bits) for bits in block["bits"]}
    records, filled = [], filled_records(settings, also)
    for protocol, method, bits in sorted(cells):
        if (protocol, method, bits) in filled:
            records += filled[protocol, method, bits]
            continue
        for seed in method_seeds(table, method):
            record = {"protocol": protocol, "method": method, "bits": bits, "seed": seed}
            if (protocol, method, bits) in refused:
                reason = refused[protocol, method, bits]
                record |= {"status": "refused", "reason": reason, "metrics": {}, "curves": {}, "run": {}}
                record["health"] = {}
                record |= {key: [] if key == "training" else {} for key in also}
                records.append(record)
                continue
            of_folds = [
                record | {"protocol": fold} | _run_record(Path(runs, fold), record, also, metrics[protocol])
                for fold in members(table, protocol)
            ]
            for one in of_folds:
                check_fingerprints(settings, one["protocol"], one["run"])
            records.append(of_folds[0] if len(of_folds) == 1 else merged_record(protocol, of_folds))
    return records


def _run_record(protocol: Path, of: Mapping, also: Iterable[str], metrics: Iterable[str]) -> dict:
    """What the files of one run say, of a protocol's folder."""
    folder = protocol / of["method"] / str(of["bits"]) / str(of["seed"])
    scores = _scores(folder)
    found = {key: scores[key] for key in ("status", "reason", "metrics", "curves")}
    found["health"] = scores.get("health") or {}
    found["run"] = _of_run(folder, "run.json")
    if "training" in also:
        found["training"] = read_lines(folder / "training.jsonl")
    if "per_query" in also:
        found["per_query"] = read_result_npz(folder / "per_query.npz", metrics)
    return found


def uncoded_scores(settings: Mapping, results: str | Path = "results") -> dict[str, dict[str, float]]:
    """Protocol -> metric -> score of its features themselves, for the protocols of `settings["uncoded"]`.

    Raises ValueError for a damaged file, OSError for one that cannot be read; both name the file.
    """
    found = {}
    for protocol in settings.get("uncoded") or []:
        parts = []
        for fold in members(settings["table"], protocol):
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
    settings = published_settings(table, results)
    layout = settings["table"]
    refused = {(c["protocol"], c["method"], c["bits"]): c["reason"] for c in settings.get("refused", [])}
    queries, filled = Queries(Path(resources)), filled_records(settings)
    frames = []
    for block in layout["blocks"]:
        names = members(layout, block["protocol"])
        for method in block.get("methods") or layout["methods"]:
            for bits in block["bits"]:
                cell = (block["protocol"], method, bits)
                given = {record["seed"]: record for record in filled.get(cell, ())}
                for seed in given or method_seeds(layout, method):
                    folders = {
                        name: Path(results, "runs", name, method, str(bits), str(seed)) for name in names
                    }
                    if seed in given:
                        found = _filled(given[seed], block["metric"])
                    else:
                        reason = refused.get(cell)
                        found = _merged([_run(one, block["metric"], reason) for one in folders.values()])
                    key = (table, block["protocol"], block["metric"], method, bits, seed)
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
    return found | _numbers(scores["metrics"], run, metric) | {"status": "done", "reason": ""}


def _filled(record: Mapping, metric: str) -> dict:
    """The columns of a run from the leaderboard."""
    if record["status"] != "done":
        return dict.fromkeys(NUMBERS, math.nan) | {"status": record["status"], "reason": record["reason"]}
    found = _numbers(record["metrics"], record["run"], metric)
    if math.isnan(found["score"]):
        return found | {"status": "missing", "reason": f"the run has no score named {metric}"}
    return found | {"status": LEADERBOARD, "reason": ""}


def _numbers(metrics: Mapping, run: Mapping, metric: str) -> dict[str, float]:
    names = dict(zip(SCORE_COLUMNS, (metric, f"{metric}_min", f"{metric}_max"), strict=True))
    found = {column: metrics.get(name, math.nan) for column, name in names.items()}
    return found | {"seconds": run.get("seconds", math.nan), "memory": run.get("peak_memory_mb", math.nan)}


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
