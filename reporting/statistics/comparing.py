"""Two sets of runs compared: tests over queries, over training seeds, over both.

Scores vary for two reasons. Other queries would give other means: `paired.query_error`. A method trained from
another seed would give other codes: `seed_error`. The design is crossed, every run answers the same queries,
so the variance of a difference is the sum of the two, and `difference` tests and bounds it with both.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import ndtri

from reporting.frames import t_interval
from reporting.tables.runs import Run
from tiebench.paired import LEVEL, p_value, pooled, query_error, t_bounds


@dataclass(frozen=True)
class Sample:
    """Scores of one side of a comparison: seed -> mean, and seed -> float64 (Q,) where those are known.

    variance: of a run's mean over seeds, as `pool` estimates it, NaN where no seed was repeated; freedom: its
    degrees of freedom; pool_freedom: those of all runs that it was estimated from.
    """

    means: Mapping[int, float]
    per_query: Mapping[int, np.ndarray] = field(default_factory=dict)
    variance: float = math.nan
    freedom: float = 0.0
    pool_freedom: float = 0.0

    def average(self, seeds: Iterable[int]) -> np.ndarray:
        """Mean over seeds of the scores per query, float64 (Q,)."""
        return np.mean([self.per_query[seed] for seed in seeds], axis=0)


def sample(runs: Mapping[int, Run], metric: str) -> Sample:
    """The scores that runs of one cell, seed -> run, have of a metric; runs without one are left out.

    Raises ValueError for a score that is not a finite number.
    """
    means, per_query = {}, {}
    for seed, run in runs.items():
        score = run.score(metric)
        if score is None:
            continue
        means[seed] = score
        if metric in run.per_query:
            scores = np.asarray(run.per_query[metric], dtype=np.float64)
            if not np.isfinite(scores).all():
                raise ValueError(f"run {run}: {metric} of a query is not a finite number")
            per_query[seed] = scores
    return Sample(means, per_query)


def pool(samples: Mapping[str, Sample]) -> dict[str, Sample]:
    """Samples of one column, each with its seed variance: its own, shrunk as `paired.pooled` does."""
    own: dict[str, tuple[float, int]] = {}
    for name, one in samples.items():
        if len(one.means) > 1:
            own[name] = t_interval(list(one.means.values()))[1] ** 2, len(one.means) - 1
    shrunk, total = pooled(own)
    return dict(samples) | {
        name: replace(samples[name], variance=variance, freedom=freedom, pool_freedom=total)
        for name, (variance, freedom) in shrunk.items()
    }


# -- one difference -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """What `difference` finds: left minus right; NaN and None where it does not exist.

    mean: the difference; low, high: its 95% interval; per_query: float64 (Q,); p_queries, p_seeds, p: two-
    sided p values over queries, over seeds, over both; variance: the sum of both sides' seed variances.
    """

    mean: float = math.nan
    low: float = math.nan
    high: float = math.nan
    per_query: np.ndarray | None = None
    p_queries: float = math.nan
    p_seeds: float = math.nan
    p: float = math.nan
    variance: float = math.nan


def difference(left: Sample, right: Sample, same_runs: bool = False, confidence: float = 0.95) -> Difference:
    """Left minus right, each the mean over its own seeds, of which one side may have more.

    same_runs: the two sides are the same codes, scored in two ways; only the seeds that both have count.

    * p_queries: the paired t-test of the scores per query, averaged over seeds. It needs them for each seed
      of both sides, and equally many, which must be the same queries.
    * p_seeds: Student's test of the means, with the variances that `pool` estimated; with same_runs of the
      differences of each run. It needs two seeds on each side.
    * p and the interval: Student's, of mean / sqrt(V) with V = V_queries + V_seeds, the squared standard
      errors of the two tests, and Satterthwaite's degrees of freedom
      V^2 / (V_queries^2 / (Q - 1) + V_seeds^2 / f). What queries and seeds explain together is counted in
      both terms, so the test is slightly conservative. p is never less than p_queries or p_seeds, which few
      degrees of freedom could bring about. Where one of the tests is impossible, p is that of the other.
    """
    sides = [(left, list(left.means)), (right, list(right.means))]
    if same_runs:
        shared = [seed for seed in left.means if seed in right.means]
        sides = [(left, shared), (right, shared)]
    if not all(seeds for _, seeds in sides):
        return Difference()
    one, other = (statistics.mean(side.means[seed] for seed in seeds) for side, seeds in sides)
    mean = float(np.subtract(one, other))
    scale = max(abs(value) for side in (left, right) for value in side.means.values())
    rows, queries = None, None
    sizes = {len(side.per_query.get(seed, ())) for side, seeds in sides for seed in seeds}
    if len(sizes) == 1 and sizes != {0}:
        rows = np.subtract(*(side.average(seeds) for side, seeds in sides))
        queries = query_error(rows, scale)
    if same_runs:
        spread = seed_error_of_runs([left.means[seed] - right.means[seed] for seed in sides[0][1]])
    else:
        spread = seed_error(left, right)
    errors = [error for error in (queries, spread) if error is not None]
    p_queries, p_seeds = (p_value(mean, [error] if error else [], scale) for error in (queries, spread))
    low, high = t_bounds(mean, errors, confidence)
    return Difference(
        mean=mean,
        low=low,
        high=high,
        per_query=rows,
        p_queries=p_queries,
        p_seeds=p_seeds,
        p=max([p_value(mean, errors, scale), *(p for p in (p_queries, p_seeds) if not math.isnan(p))]),
        variance=left.variance + right.variance,
    )


def seed_error(left: Sample, right: Sample) -> tuple[float, float] | None:
    """Squared standard error over seeds of a difference of two means of runs, and its freedom.

    With the variances of `pool`, and Satterthwaite's degrees of freedom, at most those of the whole pool.
    None where a side has fewer than two seeds.
    """
    if min(len(left.means), len(right.means)) < 2 or math.isnan(left.variance + right.variance):
        return None
    parts = [(side.variance / len(side.means), side.freedom) for side in (left, right)]
    total = sum(part for part, _ in parts)
    if total == 0:
        return 0.0, 1.0
    freedom = total**2 / sum(part**2 / own for part, own in parts if part)
    return total, min(freedom, max(left.pool_freedom, right.pool_freedom))


def seed_error_of_runs(differences: Sequence[float]) -> tuple[float, float] | None:
    """Squared standard error of the mean of paired differences of runs, and its freedom; None for one run."""
    if len(differences) < 2:
        return None
    return t_interval(differences)[1] ** 2 / len(differences), len(differences) - 1.0


def seeds_needed(mean: float, variance: float, comparisons: int = 1, power: float = 0.8) -> float:
    """Seeds per method with which a difference of this size would be found over seeds; inf for no difference.

    variance: the sum of both sides' seed variances. The normal approximation at level LEVEL, two-sided,
    divided by the number of comparisons, with the given power. A rough plan: it takes the difference and the
    variance for the true ones.
    """
    if mean == 0 or math.isnan(mean + variance):
        return math.inf
    quantile = float(ndtri(power) - ndtri(LEVEL / 2 / comparisons))
    return max(2.0, math.ceil(quantile**2 * variance / mean**2))
