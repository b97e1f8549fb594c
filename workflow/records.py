"""Records of a table's runs, read from the folders that its cells name, never from what is found there."""

import json
from pathlib import Path

import numpy as np

from workflow.files import read_json

ALSO = ("training", "per_query")


def table_records(settings, runs="results/runs", also=()):
    """One record per run of a table, as the reporting room wants them.

    settings: {"table": its entry with "name", "refused": [{"protocol", "method", "bits", "reason"}, …]}.
    A record is a dict: protocol, method, bits, seed, status ("done" or "refused"), reason, metrics (name ->
    mean over queries), curves (name -> list, see evaluation.scoring.Scores), run (run.json). also, some of
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
                lines = (folder / "training.jsonl").read_text(encoding="utf-8").splitlines()
                record["training"] = [json.loads(line) for line in lines]
            if "per_query" in also:
                with np.load(folder / "per_query.npz", allow_pickle=False) as kept:
                    record["per_query"] = {name: kept[name] for name in metrics[protocol] & set(kept)}
    return records
