"""Methods compared on the same queries: what queries, runs and splits leave open, tests, many comparisons.

**The model.** Run r of method m answers query q with the score

    y(m, r, q) = mean(m) + a(m, r) + b(m, q) + e(m, r, q):

a is what another training seed changes, b what the query changes, e the rest. Queries and runs are random and
crossed, since every run answers all queries. Of a difference d of two methods' means over n runs and Q
queries, the squared error is

    var(d) = var(b1 - b2) / Q + sum over both methods of var(a) / n + var(e) / (n Q).

**The estimate.** V_queries = S^2 / Q, with S^2 the variance over queries of the differences of scores that
are averaged over runs, estimates var(b1 - b2) / Q and every var(e) / (n Q). V_runs(m) = s^2 / n, with s^2 the
variance of the means of m's own runs, estimates var(a) / n and var(e) / (n Q) of that method. Their sum
counts var(e) / (n Q) twice. Where the score of each query in each run is known, the mean square of the
residuals of a two-way table of runs and queries estimates var(e), and is taken out (Searle, Casella and
McCulloch, "Variance components", 1992, chapter 4):

    V = V_queries + V_runs(1) + V_runs(2) - MS_e(1) / (n1 Q) - MS_e(2) / (n2 Q).

Otherwise, as with files of a leaderboard that keep the mean over runs for each query, V is the sum of
the first three: too large by the last two, so the test is conservative.

**The test.** d / sqrt(V) has Student's distribution with the degrees of freedom of Satterthwaite (1946) and
Welch (1947), V^2 / sum of V_i^2 / f_i, where f is Q - 1 of the queries, n - 1 of the runs of a method, and
(n - 1)(Q - 1) of its residuals. Nothing is pooled over methods: no other row of a table changes a number.
A method whose runs agree is deterministic: its variance is 0, and one run would do. p is the largest of this
test and of those over the queries alone and over the runs alone, which few degrees of freedom can bring
about; so is the interval.

**Splits.** Folds have queries and trainings of their own, so the differences d_f of F splits vary by all that
there is: with w_f the share of the queries, V_splits = F / (F - 1) sum of w_f^2 (d_f - d)^2, with F - 1
degrees of freedom. It contains the other sources, hence is not added to them: p is the largest here, too.
With fewer than ENOUGH_RUNS runs in each of at least as many splits, V_runs is left out: V_splits contains it,
and two or three runs say little. What folds share is not modelled: of random splits most of the database, of
unseen classes training items.

**Too few runs.** With fewer than ENOUGH_RUNS runs of a method that varies, and fewer splits, there is no
verdict and no p: the variance of two, three or four runs says little, and what it is worth rests on normality
alone. How often the rule errs is measured: `python -m benchmarks statistics`, docs/verdicts.md.

Student's distribution is SciPy's, imported where it is needed: the library is installed without SciPy, too.
"""

import hashlib
import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tiebench.messages import joined

LEVEL, CONFIDENCE = 0.05, 0.95
# Of a method that varies: with fewer there is no verdict.
ENOUGH_RUNS = 5
HIGHER, LOWER, OPEN, TOO_FEW = "higher", "lower", "cannot tell", "too few runs"
# Scores are rounded to multiples of 2^-32 before they are drawn: every sum of up to 2^20 of them is exact, so
# neither the order of adding, the number of threads nor the machine changes a byte of an interval.
GRAIN = 2.0**32
# Resamples at a time: their counts of queries stay in a processor's cache.
BATCH = 200


# -- intervals ------------------------------------------------------------------------------------


def bootstrap_intervals(
    rows: np.ndarray, name: str, resamples: int = 2000
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """95% bootstrap intervals over queries of the means of rows, as (low, high), float64 (n,) each.

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
    means, tail = np.sort(resampled_means(rows, generator(name), resamples), axis=1), (1 - CONFIDENCE) / 2
    return _quantile(means, tail), _quantile(means, 1 - tail)


def resampled_means(rows: np.ndarray, random: np.random.Generator, resamples: int) -> NDArray[np.float64]:
    """Means of rows over queries that are drawn with replacement, float64 (n, resamples).

    rows: float64 (n, Q), the same queries in each; their absolute values are at most 1. All rows share the
    queries of a resample.
    """
    exact, queries = np.round(rows * GRAIN) / GRAIN, rows.shape[1]
    found, times = np.empty((len(rows), resamples)), np.empty((BATCH, queries))
    for begin in range(0, resamples, BATCH):
        batch = times[: resamples - begin]
        for counts in batch:  # how often each query was drawn: times the scores, one product serves all rows
            counts[:] = np.bincount(random.integers(0, queries, queries), minlength=queries)
        found[:, begin : begin + len(batch)] = exact @ batch.T
    return found / queries


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

# A squared standard error, and its degrees of freedom; arrays of many pairs broadcast.
Error = tuple[Any, Any]


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of the runs of one method, or of any combination of runs, on some queries.

    mean: of the runs; runs: how many; variance: of their means, n - 1 in its denominator, 0 for a
    deterministic method, NaN for a single run of another; per_query: float64 (Q,), the mean over the runs,
    None if unknown; residual: MS_e / (n Q) of the module's text, 0 where the runs' scores of each query are
    unknown; splits: how many of the queries belong to each of several splits, () for one split; of_splits:
    float64 (F,), the means of the splits over runs and queries, None where they are unknown.
    """

    mean: float
    runs: int
    variance: float
    per_query: NDArray[np.float64] | None = None
    residual: float = 0.0
    splits: tuple[int, ...] = ()
    of_splits: NDArray[np.float64] | None = None

    @property
    def enough(self) -> bool:
        """Whether these runs, or splits, can be compared with others."""
        return self.variance == 0 or max(self.runs, len(self.splits)) >= ENOUGH_RUNS

    @property
    def by_splits(self) -> bool:
        """Whether the splits alone say how much trainings vary."""
        return self.enough and self.variance != 0 and self.runs < ENOUGH_RUNS


def scores_of(
    means: Sequence[float],
    per_query: np.ndarray | None = None,
    splits: Sequence[int] = (),
    deterministic: bool = False,
    of_splits: np.ndarray | None = None,
) -> Scores:
    """The `Scores` of runs with these means.

    Parameters
    ----------
    means : sequence of float, (n,)
        Of the runs, one at least.
    per_query : float64 (n, Q) or (Q,), optional
        Scores of each query in each run, or their means over the runs.
    splits : sequence of int
        Numbers of queries of the splits, one after the other in `per_query`.
    deterministic : bool
        Whether a single run is all there is, as of codes that are given.
    of_splits : float64 (F,), optional
        Means of the splits over runs and queries, where `per_query` is unknown: otherwise it has them.

    Returns
    -------
    Scores
        Means that rounding alone makes unequal, within 1e-12 of the largest, have the variance 0, unless
        scores of queries differ.
    """
    means = [float(mean) for mean in means]
    count, variance, residual = len(means), math.nan, 0.0
    if count > 1:
        variance = statistics.variance(means)
        if max(means) - min(means) <= 1e-12 * max(map(abs, means)):
            # Runs whose queries differ are not one run, even where their means agree.
            rows = None if per_query is None or per_query.ndim == 1 else per_query
            alike = rows is None or np.allclose(rows, rows[0], rtol=1e-9, atol=1e-12)
            variance = 0.0 if alike else sys.float_info.min
    elif deterministic:
        variance = 0.0
    if per_query is not None and per_query.ndim == 2:
        rows = np.asarray(per_query, dtype=np.float64)
        per_query = rows.mean(axis=0)
        if min(rows.shape) > 1 and variance > 0:
            rest = rows - per_query - rows.mean(axis=1, keepdims=True) + per_query.mean()
            residual = float((rest**2).sum() / ((count - 1) * (rows.shape[1] - 1) * rows.size))
    if per_query is not None and splits:
        of_splits = np.array([part.mean() for part in np.split(per_query, np.cumsum(splits)[:-1])])
    return Scores(statistics.mean(means), count, variance, per_query, residual, tuple(splits), of_splits)


@dataclass(frozen=True, eq=False)
class Difference:
    """What `difference` and `contrast` find; NaN, "" and None where it does not exist.

    mean: the difference; low, high: its 95% interval; p: two-sided, NaN with too few runs; over: what
    interval and p are over, such as "queries and runs"; enough: whether there are enough runs for a verdict;
    per_query: float64 (Q,); fixed: the squared error that more runs do not lessen; variance: of one run,
    summed over the methods.
    """

    mean: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    over: str = ""
    enough: bool = False
    per_query: NDArray[np.float64] | None = None
    fixed: float = 0.0
    variance: float = math.nan

    def verdict(self, p: float) -> str:
        """HIGHER or LOWER where p, adjusted or not, is below LEVEL, else OPEN; TOO_FEW with too few runs."""
        if not self.enough:
            return TOO_FEW
        if math.isnan(p) or p >= LEVEL or self.mean == 0:
            return OPEN
        return HIGHER if self.mean > 0 else LOWER


def difference(left: Scores, right: Scores) -> Difference:
    """Left minus right, two methods on the same queries: see `contrast`."""
    return contrast([(1.0, left), (-1.0, right)])


def contrast(terms: Sequence[tuple[float, Scores]]) -> Difference:
    """A weighted sum of means of independent runs on the same queries, tested against 0 (module's text).

    Parameters
    ----------
    terms : sequence of (weight, Scores)
        Of a difference, weights 1 and -1.

    Returns
    -------
    Difference
        Over the queries where all terms have equally many scores of queries; over the splits where all have
        means of the same ones; over the runs where the variance of some is not 0, unless the splits say it.
        Without any there is a mean alone.
    """
    sides = [side for _, side in terms]
    mean = math.fsum(weight * side.mean for weight, side in terms)
    scale = max(abs(side.mean) for side in sides)
    rows, queries = None, None
    known = [side.per_query for side in sides if side.per_query is not None]
    residuals: list[Error] = []
    if len(known) == len(sides) and len({len(of) for of in known}) == 1:
        rows = np.asarray(sum(weight * of for (weight, _), of in zip(terms, known)))
        queries = query_error(rows, scale)
        residuals = [
            (weight**2 * side.residual, (side.runs - 1) * (len(rows) - 1))
            for weight, side in terms
            if side.residual
        ]
    splits, parts = None, [side.of_splits for side in sides if side.of_splits is not None]
    if len(parts) == len(sides) and len({side.splits for side in sides}) == 1:
        apart = np.asarray(sum(weight * of for (weight, _), of in zip(terms, parts)))
        splits = split_error(apart, sides[0].splits)
    varying = [(weight, side) for weight, side in terms if side.variance != 0]
    enough = all(side.enough for side in sides)
    if any(side.by_splits for side in sides):
        if splits is None:
            enough = False
        else:
            varying, residuals = [], []
    runs = [(weight**2 * side.variance / side.runs, side.runs - 1) for weight, side in varying]
    sources = {"queries": queries is not None, "runs": bool(runs), "splits": splits is not None}
    named = [name for name, is_known in sources.items() if is_known]
    if not named or any(math.isnan(side.variance) for _, side in varying):
        return Difference(mean, enough=enough, per_query=rows)
    errors = error_sources(queries, runs, residuals, splits)
    low, high = t_bounds(mean, errors)
    return Difference(
        mean,
        low,
        high,
        p=float(p_value(mean, errors, scale)) if enough else math.nan,
        over=joined(named),
        enough=enough,
        per_query=rows,
        fixed=0.0 if queries is None else float(max(0.0, queries[0] - sum(of for of, _ in residuals))),
        variance=math.fsum(weight**2 * side.variance for weight, side in terms),
    )


def query_error(rows: np.ndarray, scale: float = 1.0) -> tuple[float, float] | None:
    """Squared standard error over queries of a mean difference, and its degrees of freedom, Q - 1.

    rows: float64 (Q,), differences of run-averaged scores of the same queries: the error is that of the
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


def split_error(means: np.ndarray, splits: Sequence[int]) -> tuple[float, float] | None:
    """The same over splits with so many queries and the mean differences (F,); None for less than two."""
    count = len(means)
    if count < 2:
        return None
    shares = np.array(splits) / sum(splits)
    squares = (shares**2 * (means - shares @ means) ** 2).sum()
    return float(count / (count - 1) * squares), count - 1.0


def error_sources(
    queries: Error | None,
    runs: Sequence[Error],
    residuals: Sequence[Error] = (),
    splits: Error | None = None,
) -> list[Error]:
    """Errors by which a difference is tested, the least favourable decides: all sources, and each alone."""
    parts = [*([queries] if queries is not None else []), *runs]
    alone = [parts[:1], runs] if queries is not None and runs else []
    whole = [_together(parts, residuals)] if parts else []
    return [*whole, *map(_together, alone), *([splits] if splits is not None else [])]


def _together(parts, residuals=()):
    """The sum of independent squared errors less residuals, 0 at least, and Satterthwaite's freedom."""
    total = sum(np.asarray(error) for error, _ in parts) - sum(np.asarray(error) for error, _ in residuals)
    squares = sum(np.asarray(error) ** 2 / freedom for error, freedom in (*parts, *residuals))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.maximum(total, 0.0), np.where(squares > 0, np.maximum(total**2 / squares, 1.0), 1.0)


def p_value(mean: ArrayLike, errors: Sequence[Error], scale: float = 1.0) -> NDArray[np.float64]:
    """Two-sided p of a difference, the largest by some squared standard errors; arrays broadcast.

    Without any error p is 1 for a difference of 0, within 1e-12 of `scale`, and 0 for any other.
    """
    from scipy.special import stdtr

    size, found = np.abs(mean), []
    for error, freedom in errors:
        with np.errstate(invalid="ignore", divide="ignore"):
            p = 2 * stdtr(freedom, -size / np.sqrt(error))
        found.append(np.where(np.asarray(error) == 0, np.where(size <= 1e-12 * scale, 1.0, 0.0), p))
    return np.maximum.reduce(found)


def t_bounds(mean: float, errors: Sequence[Error]) -> tuple[float, float]:
    """Student's 95% interval of a difference, the widest by some squared standard errors."""
    from scipy.special import stdtrit

    half = max(float(stdtrit(freedom, (1 + CONFIDENCE) / 2) * np.sqrt(error)) for error, freedom in errors)
    return mean - half, mean + half


def seeds_needed(found: Difference, comparisons: int = 1, power: float = 0.8) -> float:
    """Runs of each method with which a difference of this size would be found; inf where no number would do.

    The normal approximation at level LEVEL, two-sided, divided by the number of comparisons, with the given
    power. A rough plan: it takes the difference and the variances for the true ones.
    """
    from scipy.special import ndtri

    quantile = float(ndtri(power) - ndtri(LEVEL / 2 / comparisons))
    left = found.mean**2 / quantile**2 - found.fixed
    if not left > 0 or math.isnan(found.variance):
        return math.inf
    return max(ENOUGH_RUNS, math.ceil(found.variance / left))


def holm(p: Sequence[float]) -> NDArray[np.float64]:
    """p values adjusted by the step-down procedure of Holm (1979), float64 (n,); NaN is not counted."""
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")[: np.count_nonzero(~np.isnan(values))]
    result = np.full(len(values), np.nan)
    steps = values[order] * np.arange(len(order), 0, -1)
    result[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return result
