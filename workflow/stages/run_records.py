"""Codes and scores of one run: read and written in its folder."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tiebench import diagnostics
from tiebench.files import filled, read_json, read_npz, reading_result, write_json, write_npz


def run_title(protocol, method, bits, seed):
    """What messages call a run."""
    return f"{protocol}/{method}/{bits} bits/seed {seed}"


def no_codes(bits):
    """Packed codes of a run that has none."""
    return {part: np.zeros((0, -(-bits // 8)), np.uint8) for part in ("query", "database")}


def read_record(folder):
    """The run.json of a run. Raises ValueError if it is not what a stage wrote."""
    path = f"{folder}/run.json"
    with reading_result(path):
        record = read_json(path)
        if not isinstance(record, dict) or not {"status", "bits"} <= set(record):
            raise ValueError(f"{path} is not the record of a run")
        return record


def read_codes(
    folder: Path | str, record: Mapping, queries: int, items: int
) -> tuple[np.ndarray, np.ndarray]:
    """Packed codes of a run, (query, database), if they match its run.json.

    record: its run.json; queries, items: how many codes there must be. Raises ValueError if they are not.
    """
    path = f"{folder}/codes.npz"
    with reading_result(path):
        arrays = read_npz(path, ("query", "database", "bits"))
        if set(arrays) != {"query", "database", "bits"}:
            held = ", ".join(sorted(arrays)) or "nothing"
            raise ValueError(f"{path} holds {held}, not bits, database, query")
        found = (arrays["bits"].tolist(), len(arrays["query"]), len(arrays["database"]))
        wanted = (record["bits"], queries, items)
        for mine, its, what in zip(found, wanted, ("bits", "queries", "database items")):
            if mine != its:
                raise ValueError(f"{path} has {mine} {what}, the run has {its}")
        return arrays["query"], arrays["database"]


def read_raw_scores(folder, record, queries):
    """What the bits of the queries are signs of, float32 (Q, bits); None if the method has no such numbers.

    Raises ValueError if they are not of this run.
    """
    found = _beside_codes(folder, {"raw_query": (queries, record["bits"])})
    return None if found is None else found[0]


def read_estimates(folder, record, queries, items):
    """What a method estimates distances from, [queries float32 (Q, bits), factors float32 (N, 2)], or None.

    Raises ValueError if they are not of this run.
    """
    shapes = {"estimate_query": (queries, record["bits"]), "estimate_factors": (items, 2)}
    return _beside_codes(folder, shapes)


def _beside_codes(folder, shapes):
    """Further arrays of codes.npz, which must be float32 of these shapes; None if it has none of them."""
    path = f"{folder}/codes.npz"
    with reading_result(path):
        if not (arrays := read_npz(path, shapes)):
            return None
        for name, shape in shapes.items():
            found = arrays.get(name)
            if found is None or found.shape != shape or found.dtype != np.float32:
                raise ValueError(f"{path} has no {name} float32 {shape}")
        return [arrays[name] for name in shapes]


def run_health(record, query, database, histograms, means, class_counts):
    """Health of a run's codes as scores.json holds it: `Health.as_dict`, and how it was judged.

    record: its run.json; query, database, histograms, means: as of `diagnostics.health_of`; class_counts: as
    of `collapse.collapse_reason`. Besides: "classes"; "unused_bits"; "collapsed", why the codes count as
    collapsed, or None; "collapsed_epoch", since which epoch of training, where the run's log can tell.
    """
    found = diagnostics.health_of(query, database, histograms, means)
    unused = record.get("unused_bits") or 0
    reason = found.collapsed(class_counts, unused)
    return found.as_dict() | {
        "classes": None if class_counts is None else int(np.count_nonzero(class_counts)),
        "unused_bits": unused,
        "collapsed": reason or None,
        "collapsed_epoch": record.get("collapsed_epoch") if reason else None,
    }


def write_untrained(folder, record, codes):
    """Write a run whose codes were not learnt here: its model and its training are empty files."""
    with filled(folder) as writing:
        write_npz(writing / "codes.npz", **codes)
        for without in ("model.npz", "training.jsonl"):
            (writing / without).write_bytes(b"")
        write_json(writing / "run.json", record)


def write_scores(folder, record, scores, health=None):
    """Write scores.json and per_query.npz of a run, and say in a line what they are.

    record: its run.json; scores: `tiebench.scoring.Scores`, or None for a run without codes; health: of
    `run_health`.
    """
    identity = {key: record[key] for key in ("protocol", "method", "bits", "seed", "status", "reason")}
    metrics, curves, per_query = {}, {}, {}
    if scores is not None:
        metrics, per_query = scores.means, scores.per_query
        curves = {
            kind: [None if np.isnan(value) else value for value in values.tolist()]
            for kind, values in scores.curves.items()
        }
    with filled(folder) as writing:
        found = identity | {"metrics": metrics, "curves": curves, "health": health or {}}
        write_json(writing / "scores.json", found)
        write_npz(writing / "per_query.npz", **per_query)
    name = run_title(*(record[key] for key in ("protocol", "method", "bits", "seed")))
    if scores is None:
        return f"{name}: {identity['status']}, {identity['reason']}"
    said = f"{name}: AP_T {metrics['ap']:.4f}, NDCG_T {metrics['ndcg']:.4f}"
    collapsed = (health or {}).get("collapsed")
    return f"{said}; its codes collapsed: {collapsed}" if collapsed else said
