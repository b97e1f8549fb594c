"""Names of metrics, as in scores and tables, and the values of all metrics of joint histograms.

A name is that of an entry of `METRICS` with its parameter, "ap@1000", and may start with the ranking that it
scores, "rescored@40_ndcg@10". `tiebench.metric_table` has the entries.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tiebench.messages import did_you_mean
from tiebench.metric_table import METRICS, OF_CODES, SYMBOLS, Metric, entries
from tiebench.rankings.ties import check_normaliser

if TYPE_CHECKING:  # loading the kernels takes time, and most readers of the table score nothing
    from tiebench.counting.histograms import JointHistograms


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
        One line, with the nearest known name where there is one, for anything else.
    """
    ranking, name = ranking_of(name)
    if ranking is not None:
        return _of_ranking(ranking, name)
    if (metric := METRICS.get(name, OF_CODES.get(name))) is not None and metric.parameter is None:
        return metric, None
    for metric in METRICS.values():
        if metric.parameter is None or not name.startswith(metric.name[:-1]):
            continue
        text, symbol = name[len(metric.name) - 1 :], SYMBOLS[metric.parameter]
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
    for metric, value in entries(at):
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
