"""A protocol of several folds: what its members' runs say together.

Every query belongs to one fold. So the scores of a method are those of the members' queries, one after the
other, and a mean over the queries weighs each fold by its number of queries.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from reporting.tables.runs import Run, whole_mean

SUMS = ("queries", "queries_without_relevant")


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


def merged_run(protocol: str, parts: Sequence[Run]) -> Run:
    """The run of a method, code length and seed, from those of its folds.

    Refused if a fold is, with that one's reason. It has the first fold's hyper-parameters, versions and
    training, the mean seconds of a fold and the highest peak of memory.
    """
    first = parts[0]
    for part in parts:
        if part.status != "done":
            reason = f"{part.protocol}: {part.reason}"
            return replace(
                part, protocol=protocol, reason=reason, metrics={}, curves={}, training=(), per_query={}
            )
    names = [name for name in first.per_query if all(name in part.per_query for part in parts)]
    return replace(
        first,
        protocol=protocol,
        metrics=merged_means([part.metrics for part in parts]),
        curves=merged_curves(parts),
        health=merged_health({part.protocol: part.health for part in parts}),
        per_query={name: np.concatenate([part.per_query[name] for part in parts]) for name in names},
        seconds=whole_mean([part.seconds for part in parts]),
        fit_seconds=whole_mean([part.fit_seconds for part in parts]),
        encode_seconds=whole_mean([part.encode_seconds for part in parts]),
        peak_memory_mb=max(
            (part.peak_memory_mb for part in parts if part.peak_memory_mb is not None), default=None
        ),
        fingerprints={
            key: " ".join(dict.fromkeys(part.fingerprints[key] for part in parts if key in part.fingerprints))
            for key in first.fingerprints
        },
        folds={part.protocol: int(part.metrics["queries"]) for part in parts},
        of_folds={part.protocol: part.metrics for part in parts},
    )


def merged_curves(runs: Sequence[Run]) -> dict[str, list]:
    """Curves of the folds together, at the distances and ranks that all have; None where a fold has None."""
    parts, weights = [run.curves for run in runs], [run.metrics["queries"] for run in runs]
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


def merged_health(parts: Mapping[str, Mapping]) -> dict:
    """Health of a cell that is the mean of the folds of a protocol, from fold -> that of its run.

    Numbers are means over the folds, counts to the nearest integer, and missing where a fold has none;
    "collapsed" names the folds whose codes collapsed.
    """
    if not all(parts.values()):
        return {}
    first = next(iter(parts.values()))
    merged: dict = {}
    for name in first:
        values = [part[name] for part in parts.values()]
        if name == "ones":
            merged[name] = [statistics.fmean(of_bit) for of_bit in zip(*values, strict=True)]
        elif name == "collapsed":
            merged[name] = ", ".join(f"{fold}: {why}" for fold, why in zip(parts, values) if why) or None
        elif name == "collapsed_epoch":
            merged[name] = min((epoch for epoch in values if epoch is not None), default=None)
        elif None in values:
            merged[name] = None
        else:
            mean = statistics.fmean(values)
            merged[name] = round(mean) if all(isinstance(value, int) for value in values) else mean
    return merged
