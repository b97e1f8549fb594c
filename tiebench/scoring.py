"""Codes to scores in one call: every metric of the suite, per query and averaged."""

from typing import NamedTuple

import numpy as np

from tiebench import exact, metrics
from tiebench.hamming import JointHistograms, joint_histograms

_QUERIES_AT_ONCE = 512


class Scores(NamedTuple):
    """means: metric -> float, and counts; per_query: metric -> float64 (Q,); curves: name -> array.

    Curves over the distances 0..b, (b + 1,): "precision" and "recall" of everything within a radius,
    "relevant_at" and "irrelevant_at", the shares of such pairs at a distance. Over ranks: "cuts", K, and
    "precision_at", the mean tie-aware precision among the first K.
    """

    means: dict
    per_query: dict
    curves: dict


def score(query, database, bits, affinity, at=(), ap_at_normaliser="hits", threads=1):
    """Score codes with every metric.

    query, database: packed codes, uint8 (Q, ceil(b/8)) and (N, ceil(b/8)); bits: b; affinity: one of
    `tiebench.hamming`'s; at: cuts K. Names: "ap", "ndcg" (tie-aware) and "ap@K", "ndcg@K", "precision@K",
    each also with "_min" and "_max" (over tie orders), and "precision_radius_2". Returns `Scores`.
    Raises ValueError for codes or labels that do not fit together.
    """
    return score_histograms(
        joint_histograms(query, database, bits, affinity, threads=threads), at, ap_at_normaliser
    )


def score_histograms(histograms, at=(), ap_at_normaliser="hits"):
    """`score` from `JointHistograms`: those of a whole database, or merged from its parts."""
    queries, items = len(histograms.counts), int(histograms.counts[0].sum())
    parts = {}
    # Some queries at a time: the metrics' temporaries are larger than the histograms they come from.
    for begin in range(0, queries, _QUERIES_AT_ONCE):
        some = histograms.counts[begin : begin + _QUERIES_AT_ONCE]
        for name, values in metrics.evaluate(
            JointHistograms(histograms.levels, some), at, ap_at_normaliser
        ).items():
            parts.setdefault(name, []).append(values)
    per_query = {name: np.concatenate(values) for name, values in parts.items()}
    means = {name: float(np.mean(values)) for name, values in per_query.items()}
    means |= {
        "queries": queries,
        "database": items,
        "bits": histograms.bits,
        "queries_without_relevant": exact.queries_without_relevant(histograms),
    }
    return Scores(means, per_query, _curves(histograms, items))


def _curves(histograms, items):
    precision, recall = exact.precision_recall_curve(histograms)
    relevant, irrelevant = exact.distance_shares(histograms)
    cuts = _cuts(items)
    return {
        "precision": precision,
        "recall": recall,
        "relevant_at": relevant,
        "irrelevant_at": irrelevant,
        "cuts": cuts,
        "precision_at": exact.precision_at_curve(histograms, cuts),
    }


def _cuts(items):
    """Ranks evenly spaced on a logarithmic axis, six to a decade, from 1 to the last; int64."""
    steps = np.unique(np.round(10 ** (np.arange(6 * np.ceil(np.log10(items))) / 6)).astype(np.int64))
    return np.append(steps[steps < items], items)
