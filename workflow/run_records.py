"""Codes and scores of one run: read and written in its folder."""

import numpy as np

from tiebench.files import filled, read_npz, write_json


def read_codes(folder, record, queries, items):
    """Packed codes of a run, (query, database), if they match its run.json.

    record: its run.json; queries, items: how many codes there must be. Raises ValueError if they are not.
    """
    arrays = read_npz(f"{folder}/codes.npz", ("query", "database", "bits"))
    if set(arrays) != {"query", "database", "bits"}:
        held = ", ".join(sorted(arrays)) or "nothing"
        raise ValueError(f"codes.npz holds {held}, not bits, database, query")
    found = (arrays["bits"].tolist(), len(arrays["query"]), len(arrays["database"]))
    wanted = (record["bits"], queries, items)
    for mine, its, what in zip(found, wanted, ("bits", "queries", "database items")):
        if mine != its:
            raise ValueError(f"codes.npz has {mine} {what}, the run has {its}; delete it to train again")
    return arrays["query"], arrays["database"]


def read_raw_scores(folder, record, queries):
    """What the bits of the queries are signs of, float32 (Q, bits); None if the method has no such numbers.

    Raises ValueError if they are not of this run.
    """
    arrays = read_npz(f"{folder}/codes.npz", ("raw_query",))
    if not arrays:
        return None
    found = arrays["raw_query"]
    if found.shape != (queries, record["bits"]) or found.dtype != np.float32:
        raise ValueError(f"codes.npz has raw scores {found.dtype} {found.shape}; delete it to train again")
    return found


def write_scores(folder, record, scores):
    """Write scores.json and per_query.npz of a run, and say in a line what they are.

    record: its run.json; scores: `tiebench.scoring.Scores`, or None for a run without codes.
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
        write_json(writing / "scores.json", identity | {"metrics": metrics, "curves": curves})
        with (writing / "per_query.npz").open("wb") as file:
            np.savez(file, **per_query)
    name = "{protocol}/{method}/{bits} bits/seed {seed}".format(**identity)
    if scores is None:
        return f"{name}: {identity['status']}, {identity['reason']}"
    return f"{name}: AP_T {metrics['ap']:.4f}, NDCG_T {metrics['ndcg']:.4f}"
