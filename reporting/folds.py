"""A protocol of several folds: what its members' runs say together.

Every query belongs to one fold. So the scores of a method are those of the members' queries, one after the
other, and a mean over the queries weighs each fold by its number of queries.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from reporting.collapsed import merged_health

SUMS = ("queries", "queries_without_relevant")


def members(table: Mapping, protocol: str) -> list[str]:
    """The protocols whose runs a protocol's scores are made of: its folds, or itself."""
    return list((table.get("folds") or {}).get(protocol) or [protocol])


def merged_means(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Metrics of the folds together: means over all queries; the counts of `SUMS` are added up.

    parts: metric -> mean over the fold's queries, with their number as "queries". Metrics that a fold lacks
    are left out.
    """
    weights = [part["queries"] for part in parts]
    common = [name for name in parts[0] if all(name in part for part in parts)]
    return {
        name: sum(part[name] for part in parts)
        if name in SUMS
        else float(np.average([part[name] for part in parts], weights=weights))
        for name in common
    }


def merged_record(protocol: str, parts: Sequence[Mapping]) -> dict:
    """The record of a method, code length and seed, from those of its folds (`records.table_records`).

    Refused if a fold is, with that one's reason. `run` is the first fold's, with the seconds of all and the
    highest peak of memory; "training" is the first fold's.
    """
    for part in parts:
        if part["status"] != "done":
            reason = f"{part['protocol']}: {part['reason']}"
            empty = {key: type(part[key])() for key in ("training", "per_query") if key in part}
            return {**part, "protocol": protocol, "reason": reason, "metrics": {}, "curves": {}} | empty
    record = dict(parts[0], protocol=protocol, metrics=merged_means([part["metrics"] for part in parts]))
    record["curves"] = merged_curves(
        [part["curves"] for part in parts], [part["metrics"]["queries"] for part in parts]
    )
    record["health"] = merged_health({part["protocol"]: part.get("health") or {} for part in parts})
    record["run"] = _merged_run([part["run"] for part in parts])
    if "per_query" in parts[0]:
        names = [name for name in parts[0]["per_query"] if all(name in part["per_query"] for part in parts)]
        record["per_query"] = {
            name: np.concatenate([part["per_query"][name] for part in parts]) for name in names
        }
    return record


def merged_curves(parts: Sequence[Mapping], weights: Sequence[int]) -> dict[str, list]:
    """Curves of the folds together, at the distances and ranks that all have; None where a fold has None."""
    if not all(parts):
        return {}
    cuts = [cut for cut in parts[0]["cuts"] if all(cut in part["cuts"] for part in parts)]
    result = {}
    for name in parts[0]:
        values = [part[name] for part in parts]
        if name in ("cuts", "precision_at"):
            values = [[of[part["cuts"].index(cut)] for cut in cuts] for part, of in zip(parts, values)]
        result[name] = [
            None if None in at else float(np.average(at, weights=weights)) for at in zip(*values, strict=True)
        ]
    return result | {"cuts": cuts}


def _merged_run(runs: Sequence[Mapping]) -> dict:
    merged = dict(runs[0])
    merged["folds"] = [run.get("protocol") for run in runs]
    prints = [run.get("fingerprints") or {} for run in runs]
    merged["fingerprints"] = {
        key: " ".join(dict.fromkeys(str(one[key]) for one in prints if key in one)) for key in prints[0]
    }
    for key, together in (("seconds", sum), ("peak_memory_mb", max)):
        if all(key in run for run in runs):
            merged[key] = together(run[key] for run in runs)
    parts = [run.get("seconds_by_part") or {} for run in runs]
    merged["seconds_by_part"] = {
        key: sum(part[key] for part in parts) for key in parts[0] if all(key in part for part in parts)
    }
    return merged
