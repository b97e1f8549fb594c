"""Records of a table's runs, read from the folders that its cells name, never from what is found there."""

from pathlib import Path

from workflow.files import read_json


def table_records(settings, runs="results/runs"):
    """One record per run of a table, as the reporting room wants them.

    settings: {"table": its entry with "name", "refused": [{"protocol", "method", "bits", "reason"}, …]}.
    """
    table = settings["table"]
    refused = {(c["protocol"], c["method"], c["bits"]): c["reason"] for c in settings["refused"]}
    cells = {
        (block["protocol"], method, bits)
        for block in table["blocks"]
        for method in block.get("methods") or table["methods"]
        for bits in block["bits"]
    }
    records = []
    for protocol, method, bits in sorted(cells):
        identity = {"protocol": protocol, "method": method, "bits": bits}
        for seed in table["seeds"]:
            if (protocol, method, bits) in refused:
                reason = refused[protocol, method, bits]
                records.append(
                    identity | {"seed": seed, "status": "refused", "reason": reason, "metrics": {}, "run": {}}
                )
                continue
            folder = Path(runs, protocol, method, str(bits), str(seed))
            scores = read_json(folder / "scores.json")
            records.append(
                identity
                | {
                    "seed": seed,
                    "status": scores["status"],
                    "reason": scores["reason"],
                    "metrics": scores["metrics"],
                    "run": read_json(folder / "run.json"),
                }
            )
    return records
