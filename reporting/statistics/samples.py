"""Scores of the runs of a cell, as comparisons of methods take them, and all pairs of methods compared."""

import itertools
import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reporting.tables.runs import Run
from tiebench.paired import TOO_FEW, Difference, Scores, difference, holm, scores_of


@dataclass(frozen=True)
class Pair:
    """Two methods of a column: `found` of `paired.difference`, the first minus the second.

    p_adjusted: by Holm's procedure over all pairs of methods that compete, NaN for other pairs and with too
    few runs.
    """

    found: Difference
    p_adjusted: float

    @property
    def over(self) -> str:
        """What the interval and the p value are over, "" where there is neither; TOO_FEW instead."""
        return self.found.over if self.found.enough else TOO_FEW


def all_pairs(samples: Mapping[str, Scores], competing: Container[str]) -> dict[tuple[str, str], Pair]:
    """All pairs of the methods of a column, each once, the first of them minus the later."""
    found = {
        (one, other): difference(samples[one], samples[other])
        for one, other in itertools.combinations(samples, 2)
    }
    counted = [pair for pair in found if all(method in competing for method in pair)]
    adjusted = dict(zip(counted, holm([found[pair].p for pair in counted]).tolist()))
    return {pair: Pair(of, adjusted.get(pair, math.nan)) for pair, of in found.items()}


def against(found: Mapping[tuple[str, str], Pair], reference: str, methods: Sequence[str]) -> dict[str, Pair]:
    """Each other method minus a reference, of the pairs of a column."""
    result = {}
    for method in methods:
        if (method, reference) in found:
            result[method] = found[method, reference]
        elif (reference, method) in found:
            result[method] = reversed_pair(found[reference, method])
    return result


def reversed_pair(pair: Pair) -> Pair:
    """The second method of a pair minus the first."""
    of = pair.found
    scores = None if of.per_query is None else -of.per_query
    return replace(pair, found=replace(of, mean=-of.mean, low=-of.high, high=-of.low, per_query=scores))


def sample(
    runs: Mapping[int, Run], metric: str, minus: str | None = None, given: bool = False
) -> Scores | None:
    """The scores that runs of one cell, seed -> run, have of a metric; None where none has one.

    minus: another metric, which is subtracted run by run; given: whether the codes are of another program, so
    that a single run of them is all there is. Scores of queries count where all runs have them, else means
    of folds. A leaderboard keeps the mean of queries over the runs alone, which every run then has: it is not
    the run's own mean. Raises ValueError for a score that is not a finite number.
    """
    means, rows, of_splits = [], [], []
    splits: tuple[int, ...] = ()
    names = (metric,) if minus is None else (metric, minus)
    for run in runs.values():
        scores = [run.score(name) for name in names]
        if None in scores:
            continue
        means.append(_minus(scores))
        splits = tuple(run.folds.values())
        parts = [[of.get(name) for name in names] for of in run.of_folds.values()]
        if parts and None not in itertools.chain(*parts):
            of_splits.append([_minus(part) for part in parts])
        if all(name in run.per_query for name in names):
            of = [np.asarray(run.per_query[name], dtype=np.float64) for name in names]
            if not all(np.isfinite(one).all() for one in of):
                raise ValueError(f"run {run}: {metric} of a query is not a finite number")
            rows.append(_minus(of))
    if not means:
        return None
    deterministic = given and len(means) == 1
    if len(rows) < len(means) or len({len(row) for row in rows}) > 1:
        if len(of_splits) < len(means) or len({len(of) for of in of_splits}) > 1:
            return scores_of(means, deterministic=deterministic)
        return scores_of(means, None, splits, deterministic, np.mean(of_splits, axis=0))
    table = np.array(rows)
    if not np.allclose(table.mean(axis=1), means, rtol=1e-6, atol=1e-6):
        table = table[0]
    return scores_of(means, table, splits, deterministic)


def _minus(values):
    return values[0] if len(values) == 1 else values[0] - values[1]
