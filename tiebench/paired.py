"""Scores of the same queries compared: intervals over queries and seeds, tests, many comparisons at once.

Student's distribution is SciPy's, imported where it is needed: the library is installed without SciPy, too.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.05
# Degrees of freedom that the mean seed variance of a column is worth beside a method's own: see `pooled`.
POOL_WEIGHT = 4
# Scores are rounded to multiples of 2^-32 before they are drawn: every sum of up to 2^20 of them is exact, so
# neither the order of adding, the number of threads nor the machine changes a byte of an interval.
GRAIN = 2.0**32
# Resamples at a time: their counts of queries stay in a processor's cache.
BATCH = 200


# -- intervals ------------------------------------------------------------------------------------


def bootstrap_intervals(
    rows: np.ndarray, name: str, resamples: int = 2000, confidence: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bootstrap intervals over queries of the means of rows, as (low, high), float64 (n,) each.

    rows: float64 (n, Q), the same queries in each; their absolute values are at most 1. The percentile
    interval of Efron (1979), from the same draws as `scipy.stats.bootstrap`, which takes longer to import
    than this takes to run. All rows share their resampled queries, which `name` and Q alone decide: other
    rows change nothing. (The three intervals that SciPy offers cover alike on simulated scores, in 93 to 95
    of 100 trials with 100 queries; this one is the quickest, and it is defined where all scores are equal.)
    NaN for fewer than two queries.
    """
    count, queries = rows.shape
    if count == 0 or queries < 2:
        return np.full(count, np.nan), np.full(count, np.nan)
    exact = np.round(rows * GRAIN) / GRAIN
    random, found = generator(name), []
    for begin in range(0, resamples, BATCH):
        batch = min(BATCH, resamples - begin)
        # How often each query was drawn, times the scores: one product serves all rows.
        places = random.integers(0, queries, (batch, queries)) + queries * np.arange(batch)[:, None]
        times = np.bincount(places.ravel(), minlength=queries * batch).reshape(batch, queries)
        found.append(exact @ times.T.astype(np.float64) / queries)
    means, tail = np.sort(np.concatenate(found, axis=1), axis=1), (1 - confidence) / 2
    return _quantile(means, tail), _quantile(means, 1 - tail)


def _quantile(values, share):
    """The quantile of each row of sorted values (n, m), linear between two of them, rounded as SciPy does."""
    count = values.shape[1]
    place = share * count + (1 - share)
    weight, low = place % 1, int(place) - 1
    return (1 - weight) * values[:, low] + weight * values[:, min(low + 1, count - 1)]


def generator(name: str) -> np.random.Generator:
    """Random numbers that a name alone decides."""
    return np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big"))


# -- tests ----------------------------------------------------------------------------------------


def query_error(rows: np.ndarray, scale: float = 1.0) -> tuple[float, float] | None:
    """Squared standard error over queries of a mean difference, and its degrees of freedom, Q - 1.

    rows: float64 (Q,), differences of seed-averaged scores of the same queries: the error is that of the
    paired t-test. The t-test, because comparisons of tests for information retrieval found it as good as the
    randomisation test and the bootstrap and better calibrated or stronger than the sign and Wilcoxon tests:
    Smucker, Allan and Carterette (CIKM 2007) on systems of TREC, Urbano, Lima and Hanjalic (SIGIR 2019) on
    simulated systems with known differences. None for one query. Differences that rounding alone makes
    unequal, within 1e-12 of `scale`, have the error 0.
    """
    if len(rows) < 2:
        return None
    if np.ptp(rows) <= 1e-12 * scale:
        return 0.0, len(rows) - 1.0
    return float(rows.var(ddof=1) / len(rows)), len(rows) - 1.0


def pooled(own: Mapping[str, tuple[float, int]]) -> tuple[dict[str, tuple[float, float]], float]:
    """Seed variances of the methods of one column, each shrunk towards the other methods' mean.

    own: method -> variance of its runs over seeds, and its degrees of freedom, seeds - 1, at least 1. Returns
    the same, shrunk, with their degrees of freedom, and those of all that vary.

    With three seeds a method's own variance has two degrees of freedom, and a test with it finds next to
    nothing. Methods of one column are scored alike, and their variances are similar: in the quick table, 12
    columns of 12 methods with 3 seeds, logarithms of variances spread no more than equal variances would. So
    the mean variance of the column's other methods, weighted by degrees of freedom, counts for POOL_WEIGHT
    degrees of freedom (fewer where the others have fewer) beside a method's own:

        variance = (w * others + f * own) / (w + f),  w = min(POOL_WEIGHT, D - f)

    with f = seeds - 1 and D the sum of all f. This is the moderated variance of Smyth (2004), "Linear models
    and empirical Bayes methods", with a fixed weight: estimated from a few methods, the weight itself is
    mostly noise. Assumptions: seeds are independent, means of runs are roughly normal, and variances of a
    column are alike. Where standard deviations differ by a factor of three, the noisiest pair of methods is
    called different in 15 to 20 of 100 columns instead of 5, two quiet ones hardly ever (simulated). The more
    seeds, the less the pool counts.

    A method whose seeds all have the same score is taken for deterministic: its variance is 0, and it is not
    part of the pool.
    """
    random = [(variance, freedom) for variance, freedom in own.values() if variance > 0]
    total = sum(freedom for _, freedom in random)
    weighted = math.fsum(variance * freedom for variance, freedom in random)
    result = {}
    for name, (variance, freedom) in own.items():
        weight = 0
        if variance > 0:
            weight = min(POOL_WEIGHT, total - freedom)
            others = max(0.0, weighted - variance * freedom) / (total - freedom) if weight else 0.0
            variance = (weight * others + freedom * variance) / (weight + freedom)
        result[name] = variance, float(freedom + weight)
    return result, float(total)


def p_value(mean: float, errors: Sequence[tuple[float, float]], scale: float = 1.0) -> float:
    """Two-sided p of a difference with these squared standard errors, (error, freedom) each; NaN for none.

    Of independent errors: their sum, with Satterthwaite's degrees of freedom. Without any error p is 1 for a
    difference of 0, within 1e-12 of `scale`, and 0 for any other.
    """
    if not errors:
        return math.nan
    total, freedom = _together(errors)
    if total == 0:
        return 1.0 if abs(mean) <= 1e-12 * scale else 0.0
    from scipy.special import stdtr

    return float(2 * stdtr(freedom, -abs(mean) / math.sqrt(total)))


def t_bounds(
    mean: float, errors: Sequence[tuple[float, float]], confidence: float = 0.95
) -> tuple[float, float]:
    """Student's interval of a difference with these squared standard errors; NaN for none."""
    if not errors:
        return math.nan, math.nan
    from scipy.special import stdtrit

    total, freedom = _together(errors)
    half = float(stdtrit(freedom, (1 + confidence) / 2)) * math.sqrt(total)
    return mean - half, mean + half


def _together(errors):
    """The sum of independent squared errors, and Satterthwaite's degrees of freedom."""
    total = sum(error for error, _ in errors)
    return total, total**2 / sum(error**2 / freedom for error, freedom in errors) if total else 1.0


def holm(p: Sequence[float]) -> NDArray[np.float64]:
    """p values adjusted by the step-down procedure of Holm (1979), float64 (n,); NaN is not counted."""
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")[: np.count_nonzero(~np.isnan(values))]
    result = np.full(len(values), np.nan)
    steps = values[order] * np.arange(len(order), 0, -1)
    result[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return result
