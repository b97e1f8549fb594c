"""What a table's scores can say: intervals, tests against the best of a column, average ranks.

Scores vary for two reasons that no interval covers both: other queries would have been drawn (each score is
a mean over queries), and a method would have been trained from another seed. A difference is called one only
where it is larger than what each of the two explains by itself: see `comparisons`.
"""

import hashlib
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from reporting.frames import Group, by_cell, groups, score_of, t_interval, tidy

COLUMNS = (
    "table",
    "protocol",
    "metric",
    "method",
    "bits",
    "queries",
    "mean",
    "ci_low",
    "ci_high",
    "best",
    "difference",
    "difference_low",
    "difference_high",
    "p_queries",
    "p_seeds",
    "p",
    "p_adjusted",
    "verdict",
)
NUMBERS = ("mean", "ci_low", "ci_high", "difference", "difference_low", "difference_high")
NUMBERS += ("p_queries", "p_seeds", "p", "p_adjusted")
LEVEL = 0.05
BEST, BELOW, OPEN = "best", "below best", "not distinguishable from best"
# Scores are rounded to multiples of 2^-32 before they are drawn: every sum of up to 2^20 of them is exact, so
# neither the order of adding, the number of threads nor the machine changes a byte of an interval.
GRAIN = 2.0**32
# Resamples at a time: their counts of queries stay in a processor's cache.
BATCH = 200


@dataclass(frozen=True)
class Sample:
    """Scores of one side of a comparison: seed -> mean, and seed -> float64 (Q,) where those are known."""

    means: Mapping[int, float]
    per_query: Mapping[int, np.ndarray]

    def average(self, seeds: Iterable[int]) -> np.ndarray:
        """Mean over seeds of the scores per query, float64 (Q,)."""
        return np.mean([self.per_query[seed] for seed in seeds], axis=0)


# -- samples --------------------------------------------------------------------------------------


def sample(runs: Mapping[int, Mapping], metric: str) -> Sample:
    """The scores that runs of one cell, seed -> record, have of a metric; runs without one are left out.

    Raises ValueError for a score that is not a finite number.
    """
    means, per_query = {}, {}
    for seed, record in runs.items():
        score, _, _ = score_of(record, metric)
        if score is None:
            continue
        means[seed] = score
        scores = (record.get("per_query") or {}).get(metric)
        if scores is not None:
            scores = np.asarray(scores, dtype=np.float64)
            if not np.isfinite(scores).all():
                run = "/".join(str(record[part]) for part in ("protocol", "method", "bits", "seed"))
                raise ValueError(f"run {run}: {metric} of a query is not a finite number")
            per_query[seed] = scores
    return Sample(means, per_query)


# -- intervals and tests --------------------------------------------------------------------------


def intervals(
    rows: np.ndarray, name: str, resamples: int = 2000, confidence: float = 0.95
) -> tuple[np.ndarray, np.ndarray]:
    """Bootstrap intervals over queries of the means of rows, as (low, high), float64 (n,) each.

    rows: float64 (n, Q), the same queries in each; their absolute values are at most 1. The percentile
    interval of Efron (1979) by scipy.stats.bootstrap. All rows share their resampled queries, which `name`
    and Q alone decide: other rows change nothing. (The three intervals that SciPy offers cover alike on
    simulated scores, in 93 to 95 of 100 trials with 100 queries; this one is the quickest, and it is defined
    where all scores are equal.) NaN for fewer than two queries.
    """
    count, queries = rows.shape
    if count == 0 or queries < 2:
        return np.full(count, np.nan), np.full(count, np.nan)
    exact = np.round(rows * GRAIN) / GRAIN

    def means(drawn: np.ndarray, axis: int = -1) -> np.ndarray:
        # How often each query was drawn, times the scores: one product serves all rows.
        lists = np.atleast_2d(drawn)
        places = lists + queries * np.arange(len(lists))[:, None]
        times = np.bincount(places.ravel(), minlength=queries * len(lists)).reshape(len(lists), queries)
        result = exact @ times.T.astype(np.float64) / queries
        return result if drawn.ndim > 1 else result[:, 0]

    found = stats.bootstrap(
        (np.arange(queries),),
        means,
        n_resamples=resamples,
        batch=BATCH,
        vectorized=True,
        confidence_level=confidence,
        method="percentile",
        rng=generator(name),
    ).confidence_interval
    return found.low, found.high


def generator(name: str) -> np.random.Generator:
    """Random numbers that a name alone decides."""
    return np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big"))


def query_p(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """p of the paired, two-sided t-test over queries, float64 (n,): is the mean difference of a row zero?

    left, right: float64 (n, Q), seed-averaged scores of the same queries. The t-test, because comparisons of
    tests for information retrieval found it as good as the randomisation test and the bootstrap and better
    calibrated or stronger than the sign and Wilcoxon tests: Smucker, Allan and Carterette (CIKM 2007) on
    systems of TREC, Urbano, Lima and Hanjalic (SIGIR 2019) on simulated systems with known differences.

    Where all queries differ by the same amount, p is 1 if that is zero and 0 otherwise. NaN for one query.
    """
    difference = left - right
    count, queries = difference.shape
    if count == 0 or queries < 2:
        return np.full(count, np.nan)
    mean = difference.mean(axis=1)
    # As constant as rounding lets a difference of scores be: SciPy has no variance to divide by.
    constant = np.ptp(difference, axis=1) <= 1e-12 * np.abs(left).max(axis=1, initial=1e-300)
    result = np.where(np.abs(mean) <= 1e-12 * np.abs(left).max(axis=1, initial=1e-300), 1.0, 0.0)
    if not constant.all():
        result[~constant] = stats.ttest_rel(left[~constant], right[~constant], axis=1).pvalue
    return result


def seed_p(left: Sequence[float], right: Sequence[float]) -> float:
    """p of Welch's two-sided t-test between the means of seeds; NaN with fewer than two on either side.

    Two sides without any spread have p 1 if they are equal and 0 otherwise.
    """
    if min(len(left), len(right)) < 2:
        return math.nan
    (mean, std, _, _), (other, spread, _, _) = t_interval(left), t_interval(right)
    if std == spread == 0:
        return 1.0 if mean == other else 0.0
    # From the statistics, for those of t_interval are exact: equal values have no spread at all.
    return float(
        stats.ttest_ind_from_stats(mean, std, len(left), other, spread, len(right), equal_var=False).pvalue
    )


def paired_seed_p(left: Sequence[float], right: Sequence[float]) -> float:
    """p of the paired, two-sided t-test between scores of the same runs; NaN for fewer than two runs.

    Runs that all differ by the same amount have p 1 if that is zero and 0 otherwise.
    """
    if len(left) < 2:
        return math.nan
    mean, std, _, _ = t_interval([a - b for a, b in zip(left, right, strict=True)])
    if std == 0:
        return 1.0 if mean == 0 else 0.0
    return float(2 * stats.t.sf(abs(mean) * math.sqrt(len(left)) / std, len(left) - 1))


def holm(p: Sequence[float]) -> np.ndarray:
    """p values adjusted by the step-down procedure of Holm (1979), float64 (n,); NaN is not counted."""
    p = np.asarray(p, dtype=np.float64)
    order = np.argsort(p)[: np.count_nonzero(~np.isnan(p))]
    result = np.full(len(p), np.nan)
    result[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)), 1.0)
    return result


@dataclass(frozen=True)
class Difference:
    """What `differences` finds: left minus right over shared seeds; NaN and None where there is nothing."""

    mean: float
    per_query: np.ndarray | None
    p_queries: float
    p_seeds: float
    p: float


def differences(pairs: Sequence[tuple[Sample, Sample]], same_runs: bool = False) -> list[Difference]:
    """Each pair of samples compared: left minus right.

    The difference, and its scores per query, are over the seeds that both have; scores per query need them
    for each of these seeds, and equally many queries, which must be the same ones. p_queries: `query_p`.
    p_seeds: `seed_p` over all seeds of each, or with same_runs (the same codes, scored in two ways)
    `paired_seed_p`. p: the larger of the two that exist, the intersection-union test (Berger 1982): small
    only where the difference is larger than what the sampling of queries and the spread of seeds explain.
    """
    shared = [[seed for seed in left.means if seed in right.means] for left, right in pairs]
    sizes = [_queries(pair, seeds) for pair, seeds in zip(pairs, shared, strict=True)]
    p_queries, rows = np.full(len(pairs), np.nan), {}
    for size in sorted(set(sizes) - {0}):
        at = [index for index, queries in enumerate(sizes) if queries == size]
        left, right = (
            np.array([pairs[index][side].average(shared[index]) for index in at]) for side in (0, 1)
        )
        p_queries[at] = query_p(left, right)
        rows |= dict(zip(at, left - right, strict=True))
    result = []
    for index, ((left, right), seeds) in enumerate(zip(pairs, shared, strict=True)):
        mean = math.nan
        if seeds:
            mean = statistics.mean(left.means[s] for s in seeds)
            mean -= statistics.mean(right.means[s] for s in seeds)
        if same_runs:
            p_seeds = paired_seed_p([left.means[s] for s in seeds], [right.means[s] for s in seeds])
        else:
            p_seeds = seed_p(list(left.means.values()), list(right.means.values()))
        exist = [p for p in (float(p_queries[index]), p_seeds) if not math.isnan(p)]
        p = max(exist, default=math.nan) if seeds else math.nan
        result.append(Difference(mean, rows.get(index), float(p_queries[index]), p_seeds, p))
    return result


def _queries(pair: tuple[Sample, Sample], seeds: Sequence[int]) -> int:
    """How many queries both sides of a pair have for all of these seeds; 0 where they have none in common."""
    sizes = {len(side.per_query.get(seed, ())) for side in pair for seed in seeds}
    return sizes.pop() if len(sizes) == 1 else 0


# -- cells against the best of their column -------------------------------------------------------


def comparisons(
    table: Mapping, records: Iterable[Mapping], resamples: int = 2000, confidence: float = 0.95
) -> pd.DataFrame:
    """Each cell of a table with its interval over queries, and how it compares with the best of its column.

    One row per cell, in the order of `frames.tidy`. Columns: table, protocol, metric, method (str); bits,
    queries (int; 0 for a hole); floats, NaN where there is none, and best, verdict (str, "" likewise):

    * mean: over seeds and queries. ci_low, ci_high: bootstrap interval over queries of that mean, the seeds
      as they are (`intervals`; the spread over seeds stands in `frames.tidy`).
    * best: the method of the highest mean in the column (protocol, metric, bits), of equals the first row.
    * difference: mean minus the best's, difference_low, difference_high: its paired bootstrap interval; both
      over the seeds that both methods have. (So it is at most 0, unless seeds are missing.)
    * p_queries, p_seeds, p: of `differences`, over queries, over seeds, and the larger of them. With one seed
      there is no p_seeds: p then speaks of these codes, not of the method that learned them.
    * p_adjusted: Holm's, over the other methods of the column.
    * verdict: "best", also for an equal mean; "below best" where p_adjusted < 0.05; else "not
      distinguishable from best"; "" for a hole and in a column with fewer than two scored methods.

    The best is found on the scores that it is tested with. With one seed and 2, 8 or 12 equally good methods,
    one or more of them are called "below best" in 5, 13 or 17 of 100 columns, each single one in 2 or 3; with
    three seeds in 4 or fewer, each in 1 (simulated; tests/workflow/test_reporting_statistics.py).

    A run without scores per query of the metric counts as missing. Raises ValueError as `frames.tidy` does,
    and for runs of one column with different numbers of queries.
    """
    runs = by_cell(table, records)
    columns: dict[tuple, dict[str, Sample]] = {}
    for group, method, bits in _in_order(table):
        scores = sample(runs.get((group.protocol, method, bits), {}), group.metric)
        kept = {seed: mean for seed, mean in scores.means.items() if seed in scores.per_query}
        columns.setdefault((group.protocol, group.metric, bits), {})[method] = Sample(kept, scores.per_query)
    found = {column: _column(column, cells, resamples, confidence) for column, cells in columns.items()}
    rows = []
    for group, method, bits in _in_order(table):
        cell = {"table": table["name"], "protocol": group.protocol, "metric": group.metric, "method": method}
        cell |= {"bits": bits, "queries": 0, "best": "", "verdict": ""} | dict.fromkeys(NUMBERS, math.nan)
        rows.append(cell | found[group.protocol, group.metric, bits].get(method, {}))
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    kinds = dict.fromkeys(COLUMNS, "str") | dict.fromkeys(NUMBERS, "float64")
    kinds |= {"bits": "int64", "queries": "int64"}
    return frame.astype(kinds)


def _in_order(table: Mapping) -> Iterable[tuple[Group, str, int]]:
    for group in groups(table):
        for method in group.methods:
            for bits in group.bits:
                yield group, method, bits


def column_name(protocol: str, metric: str, bits: int) -> str:
    """What names a column, and the resamples of its intervals."""
    return f"{protocol}, {metric}, {bits} bits"


def _column(column: tuple, cells: Mapping[str, Sample], resamples: int, confidence: float) -> dict[str, dict]:
    """The part of a row that scores decide, for each method of a column that has scores."""
    name = column_name(*column)
    cells = {method: scores for method, scores in cells.items() if scores.means}
    if not cells:
        return {}
    sizes = {len(values) for scores in cells.values() for values in scores.per_query.values()}
    if len(sizes) > 1:
        raise ValueError(f"{name}: runs of one column have {' and '.join(map(str, sorted(sizes)))} queries")
    averages = np.array([scores.average(scores.means) for scores in cells.values()])
    means = {method: statistics.mean(scores.means.values()) for method, scores in cells.items()}
    best = max(means, key=means.get)
    others = [method for method in cells if method != best]
    against = dict(zip(others, differences([(cells[m], cells[best]) for m in others]), strict=True))
    paired = [method for method in others if against[method].per_query is not None]
    rows = np.concatenate([averages, *(against[method].per_query[None] for method in paired)])
    low, high = intervals(rows, name, resamples, confidence)
    result = {
        method: {
            "queries": len(averages[row]),
            "mean": means[method],
            "ci_low": low[row],
            "ci_high": high[row],
        }
        for row, method in enumerate(cells)
    }
    if not others:
        return result
    result[best] |= {"best": best, "difference": 0.0, "verdict": BEST}
    for row, method in enumerate(paired, start=len(cells)):
        result[method] |= {"difference_low": low[row], "difference_high": high[row]}
    adjusted = holm([against[method].p for method in others])
    for method, p in zip(others, adjusted, strict=True):
        found = against[method]
        below = p < LEVEL and found.mean < 0
        result[method] |= {
            "best": best,
            "difference": found.mean,
            "p_queries": found.p_queries,
            "p_seeds": found.p_seeds,
            "p": found.p,
            "p_adjusted": p,
            "verdict": BEST if means[method] == means[best] else BELOW if below else OPEN,
        }
    return result


# -- ranks ----------------------------------------------------------------------------------------


def ranks(table: Mapping, records: Iterable[Mapping]) -> dict | None:
    """Average rank of each method over the columns of a table, with the tests of Demšar (JMLR 2006).

    A column is a (protocol, metric, bits); the highest mean of it has rank 1, equal means share the mean of
    their ranks. A method without a score in some column of the table is left out, and the others are ranked
    among themselves. A dict:

    * methods: ids, the lowest average rank first, equal ones in row order; average_rank: id -> float;
    * columns: how many columns were ranked;
    * friedman_p: of scipy.stats.friedmanchisquare, None where it is not defined: all means equal;
    * critical_difference: of Nemenyi's test at 0.05, q sqrt(k (k + 1) / (6 N)) for k methods and N columns,
      with q the 0.95 quantile of the studentized range for k groups and infinite degrees of freedom, over
      sqrt 2: average ranks that differ by less cannot be told apart;
    * left_out: ids of the methods left out, in row order.

    None for fewer than three methods or two columns. The tests take columns for independent, but columns
    that differ only in bits are not: the same queries, database and method stand behind them. So read ranks
    as a summary of the table, not as evidence.
    """
    frame = tidy({**table, "published": []}, records)
    scores: dict[str, dict[tuple, float]] = {}
    for row in frame.itertuples(index=False):
        cells = scores.setdefault(row.method, {})
        if not math.isnan(row.mean):
            cells[row.protocol, row.metric, row.bits] = row.mean
    columns = list(dict.fromkeys(frame[["protocol", "metric", "bits"]].itertuples(index=False, name=None)))
    ranked = [method for method, cells in scores.items() if len(cells) == len(columns)]
    if len(ranked) < 3 or len(columns) < 2:
        return None
    values = np.array([[scores[method][column] for method in ranked] for column in columns])
    average = dict(zip(ranked, stats.rankdata(-values, axis=1).mean(axis=0).tolist(), strict=True))
    methods = sorted(ranked, key=average.get)
    equal = bool((values == values[:, :1]).all())
    quantile = float(stats.studentized_range.ppf(1 - LEVEL, len(ranked), math.inf)) / math.sqrt(2)
    return {
        "methods": methods,
        "average_rank": {method: average[method] for method in methods},
        "columns": len(columns),
        "friedman_p": None if equal else float(stats.friedmanchisquare(*values.T).pvalue),
        "critical_difference": quantile * math.sqrt(len(ranked) * (len(ranked) + 1) / (6 * len(columns))),
        "left_out": [method for method in scores if method not in ranked],
    }
