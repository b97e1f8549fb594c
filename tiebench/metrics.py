"""The table of metrics: what each is called, how it is computed, its bounds, direction, labels and source.

Scoring, tables, figures, configuration checks, help texts and documentation take their metrics from
`METRICS`. Adding a metric is one entry here and the function of the joint histograms that it names
(docs/add-a-metric.md).
"""

import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tiebench.messages import did_you_mean
from tiebench.rankings import exact, in_order, radius
from tiebench.rankings.ties import check_normaliser
from tiebench.values import cutoffs

if TYPE_CHECKING:  # loading the kernels takes time, and most readers of the table score nothing
    from tiebench.counting.histograms import JointHistograms

_LARGEST_AFFINITY = 255.0  # `affinities.MAX_AFFINITY`, without loading the kernels

_SYMBOLS = {"cutoff": "K", "radius": "R"}  # how a name writes its parameter: "ap@K"


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
    parameter : str or None
        "cutoff" (one of the K given to scoring), "radius" (a Hamming distance) or None.
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
    parameter: str | None = None
    subscript: str = ""
    low: float = 0.0
    high: float = 1.0
    higher_is_better: bool = True
    has_range: bool = True
    without_relevant: float | None = 0.0
    binary: str | None = None
    takes_normaliser: bool = False
    radii: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.parameter is not None and not self.name.endswith(_SYMBOLS[self.parameter]):
            raise ValueError(f"the name of metric {self.name!r} must end in {_SYMBOLS[self.parameter]}")

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
            high=_LARGEST_AFFINITY,
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
            parameter="cutoff",
            label="AP@{}",
            description="Tie-aware average precision of the first {} items.",
            source="McSherry and Najork, ECIR 2008; the cut tie conditioned on its number of hits",
            compute=exact.average_precision,
            in_order=in_order.average_precision,
            takes_normaliser=True,
        ),
        Metric(
            name="ndcg@K",
            parameter="cutoff",
            label="NDCG@{}",
            description="Tie-aware normalised discounted cumulative gain of the first {} items.",
            source="McSherry and Najork, ECIR 2008",
            compute=exact.ndcg,
            in_order=in_order.ndcg,
            without_relevant=1.0,
        ),
        Metric(
            name="precision@K",
            parameter="cutoff",
            label="Precision@{}",
            description="Share of relevant items among the first {} items.",
            source="McSherry and Najork, ECIR 2008",
            compute=exact.precision,
            in_order=in_order.precision,
        ),
        Metric(
            name="recall@K",
            parameter="cutoff",
            label="Recall@{}",
            description="Share of all relevant items that is among the first {} items.",
            source="McSherry and Najork, ECIR 2008",
            compute=exact.recall,
            in_order=in_order.recall,
        ),
        Metric(
            name="success@K",
            parameter="cutoff",
            label="Success@{}",
            description="Whether a relevant item is among the first {} items (hit rate).",
            source="Craswell and Hawking, TREC 2004",
            compute=exact.success,
            in_order=in_order.success,
        ),
        Metric(
            name="reciprocal_rank@K",
            parameter="cutoff",
            label="RR@{}",
            description="Reciprocal rank of the first relevant item, 0 if none is among the first {} items.",
            source="Voorhees, TREC-8, 1999; McSherry and Najork, ECIR 2008",
            compute=exact.reciprocal_rank,
            in_order=in_order.reciprocal_rank,
        ),
        Metric(
            name="ndcg_linear@K",
            parameter="cutoff",
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
            parameter="cutoff",
            label="ACG@{}",
            description="Average cumulative gain: mean affinity of the first {} items.",
            source="Järvelin and Kekäläinen, SIGIR 2000; Zhao et al., CVPR 2015",
            compute=exact.average_cumulative_gain,
            in_order=in_order.average_cumulative_gain,
            binary="precision@K",
            high=_LARGEST_AFFINITY,
        ),
        Metric(
            name="precision_radius_R",
            parameter="radius",
            radii=(0, 1, 2),
            label="Precision within radius {}",
            description="Share of relevant items among the items within Hamming distance {}, 0 without any.",
            source="Liu et al., CVPR 2012 (precision of hash lookup)",
            compute=radius.precision_within_radius,
            has_range=False,
        ),
        Metric(
            name="recall_radius_R",
            parameter="radius",
            radii=(0, 1, 2),
            label="Recall within radius {}",
            description="Share of all relevant items that is within Hamming distance {}.",
            source="Salakhutdinov and Hinton, IJAR 2009 (semantic hashing)",
            compute=radius.recall_within_radius,
            has_range=False,
        ),
        Metric(
            name="f1_radius_R",
            parameter="radius",
            radii=(0, 1, 2),
            label="F1 within radius {}",
            description="Harmonic mean of precision and recall within Hamming distance {}.",
            source="van Rijsbergen, Information Retrieval, 1979",
            compute=radius.f1_within_radius,
            has_range=False,
        ),
        Metric(
            name="ap_radius_R",
            parameter="radius",
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
            parameter="radius",
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
            parameter="radius",
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
            parameter="radius",
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


class Ranking(NamedTuple):
    """How a ranking is made besides that of all orders of ties by Hamming distance.

    Parameters
    ----------
    kind : str
        "asymmetric", "estimated", "rescored", "estimated_rescored", or one of ORDERS, in which ties are then
        listed.
    candidates : int, optional
        Of what is rescored, their number.
    """

    kind: str
    candidates: int | None = None

    @property
    def prefix(self) -> str:
        """What the names of its metrics start with: `asymmetric_`, `rescored@40_`."""
        return f"{self.kind}_" if self.candidates is None else f"{self.kind}@{self.candidates}_"

    @property
    def words(self) -> str:
        """For display: "asymmetric", "40 rescored"."""
        words = self.kind.replace("estimated_", "estimated, ").replace("_", " ")
        return words if self.candidates is None else f"{self.candidates} {words}"

    @property
    def metrics(self) -> tuple[str, ...] | None:
        """The entries of METRICS that are scored of it; None for all but those within a radius."""
        return RESCORED if self.candidates is not None else ORDERED if self.kind in ORDERS else None


# Orders of a database in which runs are scored -> where ties stand. A name comes before its beginnings.
ORDERS = {
    "file_order": "in the order of the database",
    "class_order": "in the order of the database sorted by class",
    "reversed_class_order": "in the reversed order of the database sorted by class",
    "shuffled_sd": "in random orders of the database, the standard deviation of ten",
    "shuffled": "in random orders of the database, the mean of ten",
}
_RESCORED = "(?:estimated_)?rescored@(?=[1-9])([0-9]{1,18})"  # before `estimated`, which is its beginning
_RANKING = re.compile(f"({'|'.join([_RESCORED, 'asymmetric', 'estimated', *ORDERS])})_(.+)", re.DOTALL)
RESCORED = ("ndcg@K", "recall@K", "reciprocal_rank")  # what `rescoring.rescored` returns
ORDERED = ("ap", "ap@K", "ndcg", "ndcg@K", "precision@K")


def ranking_of(name: str) -> tuple[Ranking | None, str]:
    """The ranking that a metric scores, None for that by Hamming distance, and its name without the prefix.

    >>> ranking_of("rescored@40_ndcg@10")
    (Ranking(kind='rescored', candidates=40), 'ndcg@10')
    """
    if name in METRICS or name in OF_CODES or (match := _RANKING.fullmatch(name)) is None:
        return None, name
    kind, candidates = match[1].partition("@")[0], match[2]
    return Ranking(kind, None if candidates is None else int(candidates)), match[3]


def _of_ranking(ranking: Ranking, name: str) -> tuple[Metric, int | None]:
    """`resolve` of a metric of a ranking, to which not all metrics apply."""
    found, value = resolve(name)
    of_codes = found.parameter == "radius" or found.name in OF_CODES
    if of_codes or (ranking.metrics is not None and found.name not in ranking.metrics):
        known = "" if ranking.metrics is None else f"; metrics that do: {', '.join(ranking.metrics)}"
        raise ValueError(f"metric {name!r} does not apply to a ranking that is {ranking.kind}{known}")
    return found, value


def resolve(name: str) -> tuple[Metric, int | None]:
    """Entry and parameter of a metric by its name in scores: "ap", "ap@1000", "precision_radius_2".

    A name may start with the ranking that is scored, as "asymmetric_ap" and "rescored@40_ndcg@10" do: the
    entry is that of the rest.

    Raises
    ------
    ValueError
        One line that ends in the nearest known name, for anything else.
    """
    ranking, name = ranking_of(name)
    if ranking is not None:
        return _of_ranking(ranking, name)
    if (metric := METRICS.get(name, OF_CODES.get(name))) is not None and metric.parameter is None:
        return metric, None
    for metric in METRICS.values():
        if metric.parameter is None or not name.startswith(metric.name[:-1]):
            continue
        text, symbol = name[len(metric.name) - 1 :], _SYMBOLS[metric.parameter]
        if re.fullmatch("[1-9][0-9]{0,17}" if metric.parameter == "cutoff" else "0|[1-9][0-9]{0,3}", text):
            if metric.parameter == "radius" and int(text) not in metric.radii:
                known = [metric.spell(radius) for radius in metric.radii]
                raise ValueError(f"metric {name!r} is not computed{did_you_mean(name, known)}")
            return metric, int(text)
        if not re.search("[a-z]", text):
            example = metric.spell(1000 if metric.parameter == "cutoff" else metric.radii[0])
            raise ValueError(f"metric {name!r}: {symbol} must be a positive integer, as in {example!r}")
    # Case and number play no part in what is nearest: "mAP@1000" is near "ap@K".
    plain = re.sub(r"\d+$", "K", name.lower()).replace("@k", "@K")
    raise ValueError(f"there is no metric {name!r}{did_you_mean(plain, [*METRICS, *OF_CODES])}")


def label(name: str) -> tuple[str, str]:
    """Display name of a metric as (text, subscript): ("AP", "T") of "ap", ("AP@1000", "") of "ap@1000".

    Raises
    ------
    ValueError
        As `resolve` does.
    """
    metric, value = resolve(name)
    ranking, _ = ranking_of(name)
    if ranking is None:
        return metric.label.format(value), metric.subscript
    return f"{metric.label.format(value)}, {ranking.words}", ""


def description(name: str) -> str:
    """One sentence on a metric, its parameter put in.

    Raises
    ------
    ValueError
        As `resolve` does.
    """
    metric, value = resolve(name)
    ranking, _ = ranking_of(name)
    how = {
        "asymmetric": " Ranked by the inner product of the real-valued query and binary items.",
        "estimated": " Ranked by what the method estimates from the query and what it keeps of an item.",
        "rescored": " The nearest {} codes, ranked again by the features; nothing else is retrieved.",
        "estimated_rescored": " The nearest {} items by the method's estimate, ranked again by the features; "
        "nothing else is retrieved.",
        **{kind: f" Tied items stand {where}." for kind, where in ORDERS.items()},
    }
    return metric.description.format(value) + (
        how[ranking.kind].format(ranking.candidates) if ranking else ""
    )


def evaluate(
    histograms: "JointHistograms", at: int | Sequence[int] = (), ap_at_normaliser: str = "hits"
) -> dict[str, np.ndarray]:
    """Every metric of the table.

    Parameters
    ----------
    at : int or sequence of int
        The cutoffs K.
    ap_at_normaliser : str
        See `exact.average_precision`.

    Returns
    -------
    dict
        Name -> float64 (Q,), those with a range also as "_min" and "_max".

    Raises
    ------
    ValueError
        For K < 1 or an unknown normaliser.
    """
    check_normaliser(ap_at_normaliser)
    binary = histograms.levels[-1] <= 1
    values: dict[str, np.ndarray] = {}
    for metric, value in _entries(at):
        name, endings = metric.spell(value), ("", "_min", "_max") if metric.has_range else ("",)
        if binary and metric.binary is not None:
            same = METRICS[metric.binary].spell(value)
            values |= {name + ending: values[same + ending] for ending in endings}
            continue
        arguments = (histograms,) if value is None else (histograms, value)
        options = {"normaliser": ap_at_normaliser} if metric.takes_normaliser else {}
        assert metric.compute is not None  # of every metric of the table
        found = metric.compute(*arguments, **options)
        parts = found if metric.has_range else (found,)
        values |= {name + ending: part for ending, part in zip(endings, parts)}
    return values


def _entries(at):
    """Every metric with each value of its parameter, None where it has none."""
    plain = [(metric, None) for metric in METRICS.values() if metric.parameter is None]
    cut = [(metric, k) for k in cutoffs(at) for metric in METRICS.values() if metric.parameter == "cutoff"]
    return (*plain, *cut, *((metric, r) for metric in METRICS.values() for r in metric.radii))


def evaluate_in_order(
    ranked: in_order.Ranked,
    at: int | Sequence[int] = (),
    ap_at_normaliser: str = "hits",
    only: Collection[str] | None = None,
) -> dict[str, np.ndarray]:
    """Every metric that has a range, of rankings in one order: name -> float64 (Q,).

    at, ap_at_normaliser: as of `evaluate`; only: the names to compute, None for all. Raises ValueError for
    K < 1 or an unknown normaliser.
    """
    check_normaliser(ap_at_normaliser)
    values = {}
    for metric, value in _entries(at):
        name = metric.spell(value)
        if metric.in_order is not None and (only is None or name in only):
            options = {"normaliser": ap_at_normaliser} if metric.takes_normaliser else {}
            values[name] = metric.in_order(ranked, *([] if value is None else [value]), **options)
    return values
