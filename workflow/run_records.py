"""Scores of runs, and the records of a table's runs, from the folders that its cells name and no others."""

import json
from pathlib import Path

import numpy as np

from tiebench.files import filled, read_json, read_npz, write_json

ALSO = ("training", "per_query")


def read_codes(folder, record, queries, items):
    """Packed codes of a run, (query, database), if they are those that its run.json tells of.

    record: its run.json; queries, items: how many codes there must be. Raises ValueError if they are not.
    """
    arrays = read_npz(f"{folder}/codes.npz")
    if set(arrays) != {"query", "database", "bits"}:
        held = ", ".join(sorted(arrays)) or "nothing"
        raise ValueError(f"codes.npz holds {held}, not bits, database, query")
    found = (arrays["bits"].tolist(), len(arrays["query"]), len(arrays["database"]))
    wanted = (record["bits"], queries, items)
    for mine, its, what in zip(found, wanted, ("bits", "queries", "database items")):
        if mine != its:
            raise ValueError(f"codes.npz has {mine} {what}, the run has {its}; remove it to train anew")
    return arrays["query"], arrays["database"]


def write_scores(folder, record, scores):
    """Write scores.json and per_query.npz of a run, and say in a line what they are.

    record: its run.json; scores: `tiebench.scoring.Scores`, or None for a run without codes.
    """
    told = {key: record[key] for key in ("protocol", "method", "bits", "seed", "status", "reason")}
    metrics, curves, per_query = {}, {}, {}
    if scores is not None:
        metrics, per_query = scores.means, scores.per_query
        curves = {
            kind: [None if np.isnan(value) else value for value in values.tolist()]
            for kind, values in scores.curves.items()
        }
    with filled(folder) as writing:
        write_json(writing / "scores.json", told | {"metrics": metrics, "curves": curves})
        with (writing / "per_query.npz").open("wb") as file:
            np.savez(file, **per_query)
    name = "{protocol}/{method}/{bits} bits/seed {seed}".format(**told)
    if scores is None:
        return f"{name}: {told['status']}, {told['reason']}"
    return f"{name}: AP_T {metrics['ap']:.4f}, NDCG_T {metrics['ndcg']:.4f}"


def table_records(settings, runs="results/runs", also=()):
    """One record per run of a table, as the reporting room wants them.

    settings: {"table": its entry with "name", "refused": [{"protocol", "method", "bits", "reason"}, …]}.
    A record is a dict: protocol, method, bits, seed, status ("done" or "refused"), reason, metrics (name ->
    mean over queries), curves (name -> list, see tiebench.scoring.Scores), run (run.json). also, some of
    * "training": a list of dicts, the lines of training.jsonl;
    * "per_query": metric -> float64 (Q,), the same queries in the same order for all runs of a protocol, for
      the metrics that the table's blocks ask of the protocol, and "ap".
    A refused run has these empty.
    """
    table = settings["table"]
    refused = {(c["protocol"], c["method"], c["bits"]): c["reason"] for c in settings["refused"]}
    cells, metrics = set(), {}
    for block in table["blocks"]:
        metrics.setdefault(block["protocol"], {"ap"}).add(block["metric"])
        for method in block.get("methods") or table["methods"]:
            cells |= {(block["protocol"], method, bits) for bits in block["bits"]}
    records = []
    for protocol, method, bits in sorted(cells):
        for seed in table["seeds"]:
            record = {"protocol": protocol, "method": method, "bits": bits, "seed": seed}
            records.append(record)
            if (protocol, method, bits) in refused:
                reason = refused[protocol, method, bits]
                record |= {"status": "refused", "reason": reason, "metrics": {}, "curves": {}, "run": {}}
                record |= {key: [] if key == "training" else {} for key in also}
                continue
            folder = Path(runs, protocol, method, str(bits), str(seed))
            scores = read_json(folder / "scores.json")
            record |= {key: scores[key] for key in ("status", "reason", "metrics", "curves")}
            record["run"] = read_json(folder / "run.json")
            if "training" in also:
                record["training"] = _lines(folder / "training.jsonl")
            if "per_query" in also:
                record["per_query"] = read_npz(folder / "per_query.npz", metrics[protocol])
    return records


def _lines(path):
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except ValueError as error:
        raise ValueError(f"{path}: no lines of JSON ({error}); remove it, and it is made anew") from error
