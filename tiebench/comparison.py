"""Codes compared with a leaderboard: their rank, differences from each method with intervals, verdicts."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from tiebench import metrics
from tiebench.leaderboards import Leaderboard, Row
from tiebench.messages import did_you_mean
from tiebench.paired import Difference, Scores, difference, holm, scores_of


@dataclass(frozen=True)
class Line:
    """Codes beside one method of a leaderboard; numbers are NaN where there are none.

    Parameters
    ----------
    method, title : str
        The method's name and how it is written.
    rank : int or None
        Of the method, None for what does not compete.
    score : float
        The method's mean over `seeds` seeds.
    difference, low, high : float
        Of the codes, minus this score; its 95% interval.
    over : str
        What the interval and the p value are over, such as "queries and runs"; "" for none.
    p, p_adjusted : float
        The p value, NaN with too few runs, and as adjusted by Holm's procedure over all lines.
    verdict : str
        "higher" or "lower" where p_adjusted < 0.05, "too few runs" for a method that varies and has fewer
        than five, else "cannot tell".
    collapsed : int
        Of how many seeds the codes collapsed.
    """

    method: str
    title: str
    rank: int | None
    score: float
    seeds: int
    difference: float
    low: float
    high: float
    over: str
    p: float
    p_adjusted: float
    verdict: str
    collapsed: int


@dataclass(frozen=True)
class Comparison:
    """What `compare` finds.

    Parameters
    ----------
    score : float
        Of the codes.
    low, high : float
        Its means in the worst and in the best order of tied items; both the score for a metric without a
        range.
    rank : int or None
        Among `competitors` + 1 methods of this code length, the codes included; None where the leaderboard
        lacks this length.
    rank_low, rank_high : int or None
        The rank with `low` and with `high`.
    lines : tuple of `Line`
        Best score first.
    lengths : tuple of int
        Code lengths of the leaderboard, ascending.
    neighbours : mapping
        Where the leaderboard lacks this length, the nearest, at most one shorter and one longer -> rows, best
        first.
    """

    protocol: str
    title: str
    metric: str
    bits: int
    queries: int
    database: int
    score: float
    low: float
    high: float
    rank: int | None
    rank_low: int | None
    rank_high: int | None
    competitors: int
    lines: tuple[Line, ...]
    lengths: tuple[int, ...]
    neighbours: Mapping[int, tuple[Row, ...]]
    higher_is_better: bool = True

    @property
    def comparisons(self) -> int:
        """How many p values there are, over which they are adjusted."""
        return sum(not math.isnan(line.p) for line in self.lines)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON, None instead of NaN."""
        plain = asdict(self) | {
            "lines": [_plain(asdict(line)) for line in self.lines],
            "neighbours": {
                str(bits): [{"method": row.method, "title": row.title, "score": row.mean} for row in rows]
                for bits, rows in self.neighbours.items()
            },
        }
        return _plain(plain)


def default_metric(board: Leaderboard) -> str:
    """The metric of the protocol's tables: of the first row that joint histograms determine.

    Raises
    ------
    ValueError
        If there is none.
    """
    for row in board.rows:
        if _cutoffs(row.metric) is not None:
            return row.metric
    raise ValueError(f"{board.protocol} has no metric that follows from codes and labels")


def cutoffs(board: Leaderboard, metric: str) -> tuple[int, ...]:
    """The cutoffs K that scoring needs for a metric: (1000,) of "ap@1000", () of "ap".

    Raises
    ------
    ValueError
        One line with the nearest name, for a metric that the leaderboard does not have, and for one that does
        not follow from codes and labels.
    """
    known = list(dict.fromkeys(row.metric for row in board.rows))
    if metric not in known:
        raise ValueError(f"{board.protocol} has no metric {metric!r}{did_you_mean(metric, known)}")
    found = _cutoffs(metric)
    if found is None:
        usable = ", ".join(name for name in known if _cutoffs(name) is not None) or "none"
        raise ValueError(f"{metric} does not follow from codes and labels alone; metrics that do: {usable}")
    return found


def base_metric(name: str) -> str:
    """The metric that a score in the worst or the best order of ties is of: "ap" of "ap_min"."""
    return name.removesuffix("_min").removesuffix("_max")


def _cutoffs(name):
    """Cutoffs of a metric of `tiebench.score`, also of the worst and best order; None for any other."""
    base = base_metric(name)
    if base in metrics.OF_CODES or metrics.ranking_of(base)[0] is not None:
        return None
    found, value = metrics.resolve(base)
    return (value,) if found.parameter == "cutoff" else ()


def compare(
    board: Leaderboard,
    means: Mapping[str, float],
    per_query: Mapping[str, np.ndarray],
    metric: str,
    methods: Sequence[str] | None = None,
) -> Comparison:
    """Compare the scores of codes with those of a leaderboard's methods of the same code length.

    The codes are one run that is given: a verdict is on them, not on what made them. They are compared with
    the mean of a method over its runs, over the queries, where the leaderboard has the scores of each, and
    over the method's runs, as `paired.difference` does.

    Parameters
    ----------
    means, per_query : mapping
        Of `scoring.Scores`, for the queries of the protocol in its order.
    metric : str
        As "ap@1000".
    methods : sequence of str, optional
        Names; all by default. Ranks count all methods either way.

    Raises
    ------
    ValueError
        For an unknown method, and for scores of other queries than the protocol has.
    """
    bits, mine = int(means["bits"]), float(means[metric])
    every = [row for row in board.rows if row.metric == metric]
    if methods is not None:
        known = list(dict.fromkeys(row.method for row in every))
        for name in methods:
            if name not in known:
                raise ValueError(f"{board.protocol} has no method {name!r}{did_you_mean(name, known)}")
    column = [row for row in every if row.bits == bits]
    higher = metrics.resolve(base_metric(metric))[0].higher_is_better
    chosen = _sorted((row for row in column if methods is None or row.method in methods), higher)
    found = [_difference(board, row, mine, per_query[metric]) for row in chosen]
    adjusted = holm([one.p for one in found])
    competing = [row.mean for row in column if row.competes]
    lines = [
        Line(
            method=row.method,
            title=row.title,
            rank=_rank(row.mean, [*competing, mine], higher) if row.competes else None,
            score=row.mean,
            seeds=row.seeds,
            difference=mine - row.mean,
            low=one.low,
            high=one.high,
            over=one.over,
            p=one.p,
            p_adjusted=float(p_adjusted),
            verdict=one.verdict(p_adjusted),
            collapsed=row.collapsed,
        )
        for row, one, p_adjusted in zip(chosen, found, adjusted)
    ]
    worst, best = (means.get(f"{metric}_{end}", mine) for end in ("min", "max"))
    lengths = sorted({row.bits for row in every})
    near = [] if column else [*[b for b in lengths if b < bits][-1:], *[b for b in lengths if b > bits][:1]]
    return Comparison(
        protocol=board.protocol,
        title=board.title,
        metric=metric,
        bits=bits,
        queries=int(means["queries"]),
        database=int(means["database"]),
        score=mine,
        low=worst,
        high=best,
        rank=_rank(mine, competing, higher) if column else None,
        rank_low=_rank(worst, competing, higher) if column else None,
        rank_high=_rank(best, competing, higher) if column else None,
        competitors=len(competing),
        lines=tuple(lines),
        lengths=tuple(lengths),
        neighbours={b: tuple(_sorted((row for row in every if row.bits == b), higher)) for b in near},
        higher_is_better=higher,
    )


def _difference(board: Leaderboard, row: Row, mine: float, scores: np.ndarray) -> Difference:
    """The codes minus a method."""
    theirs = board.per_query.get((row.metric, row.method, row.bits))
    if theirs is not None:
        if theirs.shape[-1] != len(scores):
            queries = f"{theirs.shape[-1]:,} queries, the codes have {len(scores):,}"
            raise ValueError(f"{board.protocol} has {queries}")
        # Rounded as the leaderboard's: the same codes then have no difference on any query.
        scores = scores.astype(theirs.dtype).astype(np.float64)
        theirs = theirs.astype(np.float64)
    # A ranking by the features themselves has no runs, and is the same whenever it is made.
    variance = 0.0 if row.seeds == 0 else row.std**2
    given = scores_of([mine], scores, deterministic=True)
    if theirs is not None and theirs.ndim == 2:
        of_runs = scores_of(theirs.mean(axis=1), theirs)
        return difference(given, replace(of_runs, mean=row.mean, variance=variance))
    return difference(given, Scores(row.mean, max(row.seeds, 1), variance, theirs))


def _sorted(rows, higher):
    return sorted(rows, key=lambda row: -row.mean if higher else row.mean)


def _rank(score, others, higher):
    """1 + the number of scores that are better."""
    return 1 + sum(other > score if higher else other < score for other in others)


def _plain(values):
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in values.items()
    }
