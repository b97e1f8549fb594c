"""The table of metrics: what each is called, how it is computed, its bounds, direction, labels and source.

Scoring, tables, figures, configuration checks, help texts and documentation take their metrics from
`METRICS`, by the names of `tiebench.metrics`. Adding a metric is one entry here and the function of the joint
histograms that it names (docs/add-a-metric.md).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tiebench.affinities import MAX_AFFINITY
from tiebench.rankings import exact, in_order, radius
from tiebench.values import cutoffs

SYMBOLS = {"cutoff": "K", "radius": "R"}  # how a name writes its parameter: "ap@K"


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One entry of the table.

    Parameters
    ----------
    name : str
        As in scores; a metric with a parameter has its symbol at the end ("ap@K", "precision_radius_R").
    label, subscript : str
        Display name, with "{}" for the parameter: "AP@{}".
    description : str
        One sentence, likewise.
    source : str
        Where the metric is defined.
    compute : function or None
        Of `JointHistograms`, then of the parameter if there is one, and, with `takes_normaliser`, of the
        keyword `normaliser` (one of `exact.AP_AT_NORMALISERS`). It returns `exact.TieRange` if `has_range`,
        else a float64 (Q,) array. None: see `OF_CODES`.
    in_order : function or None
        Of `in_order.Ranked`, then as `compute`, of the ranking in one order: float64 (Q,); for what
        `has_range`.
    low, high : float
        Bounds of every value.
    has_range : bool
        Whether the order of tied items matters, so that "_min" and "_max" are reported too.
    without_relevant : float or None
        Value of a query without relevant items, None where it depends on the query.
    binary : str or None
        Name of the entry that it equals where all affinities are 0 or 1.
    radii : tuple of int
        For a radius, the values that are always computed.
    """

    name: str
    label: str
    description: str
    source: str
    compute: Callable[..., Any] | None = None
    in_order: Callable[..., np.ndarray] | None = None
    subscript: str = ""
    low: float = 0.0
    high: float = 1.0
    higher_is_better: bool = True
    has_range: bool = True
    without_relevant: float | None = 0.0
    binary: str | None = None
    takes_normaliser: bool = False
    radii: tuple[int, ...] = ()

    @property
    def parameter(self) -> str | None:
        """What its name ends in: "cutoff" (one of the K given to scoring), "radius" (a Hamming distance)."""
        return {"@K": "cutoff", "_R": "radius"}.get(self.name[-2:])

    def spell(self, value: int | None = None) -> str:
        """The name with its parameter: "ap@1000"."""
        return self.name if self.parameter is None else f"{self.name[:-1]}{value}"


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            name="ap",
            label="AP",
            subscript="T",
            description="Tie-aware average precision over the whole ranking.",
            source="McSherry and Najork, ECIR 2008; He et al., CVPR 2018, Proposition 1",
            compute=exact.average_precision,
            in_order=in_order.average_precision,
        ),
        Metric(
            name="ndcg",
            label="NDCG",
            subscript="T",
            description="Tie-aware normalised discounted cumulative gain over the whole ranking, "
            "gain 2^affinity - 1, discount 1/log2(rank + 1).",
            source="McSherry and Najork, ECIR 2008; He et al., CVPR 2018, Proposition 1",
            compute=exact.ndcg,
            in_order=in_order.ndcg,
            without_relevant=1.0,
        ),
        Metric(
            name="ndcg_linear",
            label="NDCG, linear gain",
            description="Tie-aware normalised discounted cumulative gain over the whole ranking, gain = "
            "affinity, discount 1/log2(rank + 1).",
            source="Järvelin and Kekäläinen, TOIS 2002; McSherry and Najork, ECIR 2008",
            compute=partial(exact.ndcg, gain=exact.linear_gain),
            in_order=partial(in_order.ndcg, gain=exact.linear_gain),
            binary="ndcg",
            without_relevant=1.0,
        ),
        Metric(
            name="wap",
            label="WAP",
            description="Weighted average precision: mean, over the relevant items, of the mean affinity up "
            "to their ranks.",
            source="Zhao et al., CVPR 2015",
            compute=exact.weighted_average_precision,
            in_order=in_order.weighted_average_precision,
            binary="ap",
            high=float(MAX_AFFINITY),
        ),
        Metric(
            name="r_precision",
            label="R-precision",
            description="Share of relevant items among the first R, R the number of relevant items.",
            source="Buckley and Voorhees, SIGIR 2000; McSherry and Najork, ECIR 2008",
            compute=exact.r_precision,
            in_order=in_order.r_precision,
        ),
        Metric(
            name="reciprocal_rank",
            label="RR",
            description="Reciprocal rank of the first relevant item.",
            source="Voorhees, TREC-8, 1999; McSherry and Najork, ECIR 2008",
            compute=exact.reciprocal_rank,
            in_order=in_order.reciprocal_rank,
        ),
        Metric(
            name="ap@K",
            label="AP@{}",
            description="Tie-aware average precision of the first {} items.",
            source="McSherry and Najork, ECIR 2008; the cut tie conditioned on its number of hits",
            compute=exact.average_precision,
            in_order=in_order.average_precision,
            takes_normaliser=True,
        ),
        Metric(
            name="ndcg@K",
            label="NDCG@{}",
            description="Tie-aware normalised discounted cumulative gain of the first {} items.",
            source="McSherry and Najork, ECIR 2008",
            compute=exact.ndcg,
            in_order=in_order.ndcg,
            without_relevant=1.0,
        ),
        Metric(
            name="precision@K",
            label="Precision@{}",
            description="Share of relevant items among the first {} items.",
            source="McSherry and Najork, ECIR 2008",
            compute=exact.precision,
            in_order=in_order.precision,
        ),
        Metric(
            name="recall@K",
            label="Recall@{}",
            description="Share of all relevant items that is among the first {} items.",
            source="McSherry and Najork, ECIR 2008",
            compute=exact.recall,
            in_order=in_order.recall,
        ),
        Metric(
            name="success@K",
            label="Success@{}",
            description="Whether a relevant item is among the first {} items (hit rate).",
            source="Craswell and Hawking, TREC 2004",
            compute=exact.success,
            in_order=in_order.success,
        ),
        Metric(
            name="reciprocal_rank@K",
            label="RR@{}",
            description="Reciprocal rank of the first relevant item, 0 if none is among the first {} items.",
            source="Voorhees, TREC-8, 1999; McSherry and Najork, ECIR 2008",
            compute=exact.reciprocal_rank,
            in_order=in_order.reciprocal_rank,
        ),
        Metric(
            name="ndcg_linear@K",
            label="NDCG@{}, linear gain",
            description="Tie-aware normalised discounted cumulative gain of the first {} items, "
            "gain = affinity.",
            source="Järvelin and Kekäläinen, TOIS 2002; McSherry and Najork, ECIR 2008",
            compute=partial(exact.ndcg, gain=exact.linear_gain),
            in_order=partial(in_order.ndcg, gain=exact.linear_gain),
            binary="ndcg@K",
            without_relevant=1.0,
        ),
        Metric(
            name="acg@K",
            label="ACG@{}",
            description="Average cumulative gain: mean affinity of the first {} items.",
            source="Järvelin and Kekäläinen, SIGIR 2000; Zhao et al., CVPR 2015",
            compute=exact.average_cumulative_gain,
            in_order=in_order.average_cumulative_gain,
            binary="precision@K",
            high=float(MAX_AFFINITY),
        ),
        Metric(
            name="precision_radius_R",
            radii=(0, 1, 2),
            label="Precision within radius {}",
            description="Share of relevant items among the items within Hamming distance {}, 0 without any.",
            source="Liu et al., CVPR 2012 (precision of hash lookup)",
            compute=radius.precision_within_radius,
            has_range=False,
        ),
        Metric(
            name="recall_radius_R",
            radii=(0, 1, 2),
            label="Recall within radius {}",
            description="Share of all relevant items that is within Hamming distance {}.",
            source="Salakhutdinov and Hinton, IJAR 2009 (semantic hashing)",
            compute=radius.recall_within_radius,
            has_range=False,
        ),
        Metric(
            name="f1_radius_R",
            radii=(0, 1, 2),
            label="F1 within radius {}",
            description="Harmonic mean of precision and recall within Hamming distance {}.",
            source="van Rijsbergen, Information Retrieval, 1979",
            compute=radius.f1_within_radius,
            has_range=False,
        ),
        Metric(
            name="ap_radius_R",
            radii=(0, 1, 2),
            label="AP within radius {}",
            description="Tie-aware average precision of the items within Hamming distance {}, divided by the "
            "relevant ones among them.",
            source="Cao et al., CVPR 2018 (DCH), without its ranking by real-valued outputs",
            compute=radius.average_precision_within_radius,
            in_order=in_order.average_precision_within_radius,
        ),
        Metric(
            name="raap_radius_R",
            radii=(2,),
            label="RAAP to radius {}",
            description="Radius-aware average precision: mean of the precision within Hamming distances 0 to "
            "{}, 0 where no item is.",
            source="Jiang et al., arXiv 1905.10951, after a third-party implementation",
            compute=radius.radius_aware_average_precision,
            has_range=False,
        ),
        Metric(
            name="candidates_radius_R",
            radii=(0, 1, 2),
            label="Candidates within radius {}",
            description="Number of items within Hamming distance {}.",
            source="Norouzi et al., CVPR 2012 (cost of hash lookup)",
            compute=radius.candidates_within_radius,
            high=math.inf,
            higher_is_better=False,
            has_range=False,
            without_relevant=None,
        ),
        Metric(
            name="empty_radius_R",
            radii=(0, 1, 2),
            label="Empty within radius {}",
            description="Whether no item is within Hamming distance {}; its mean is a share of queries.",
            source="Norouzi et al., CVPR 2012 (cost of hash lookup)",
            compute=radius.empty_within_radius,
            higher_is_better=False,
            has_range=False,
            without_relevant=None,
        ),
    )
}


# Scores that joint histograms do not determine: the suite computes them from codes and labels, for protocols
# that ask for them, and stores them with the others. `evaluate` and `tiebench.score` know nothing of them.
OF_CODES: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            name="transfer_accuracy",
            label="Transfer accuracy",
            description="Accuracy on the queries of a linear classifier of codes, fitted on the database.",
            source="Sablayrolles et al., ICASSP 2017 (transfer to new classes)",
            has_range=False,
        ),
        Metric(
            name="estimated_bytes",
            label="Bytes, with what estimates need",
            description="Bytes that an item of the database takes: its code, and the numbers kept beside it.",
            source="Gao and Long, SIGMOD 2024 (RaBitQ)",
            high=math.inf,
            higher_is_better=False,
            has_range=False,
            without_relevant=None,
        ),
    )
}


def entries(at: int | Sequence[int] = ()) -> tuple[tuple[Metric, int | None], ...]:
    """Every metric with each value of its parameter, None where it has none; at: the cutoffs K.

    Raises ValueError for K < 1.
    """
    plain = [(metric, None) for metric in METRICS.values() if metric.parameter is None]
    cut = [(metric, k) for k in cutoffs(at) for metric in METRICS.values() if metric.parameter == "cutoff"]
    return (*plain, *cut, *((metric, r) for metric in METRICS.values() for r in metric.radii))
