"""How often verdicts err, and what they see: nulls and shifts drawn from the published runs of every table.

python -m benchmarks statistics
"""

import itertools
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.report import progress
from reporting.leaderboard import read
from reporting.leaderboard.boards import as_table, main_metric
from reporting.leaderboard.per_query import with_scores
from reporting.statistics.samples import sample
from reporting.tables.runs import Results
from tiebench import paired
from tiebench.leaderboards import stems
from tiebench.paired import ENOUGH_RUNS, LEVEL, error_sources, p_value

FOLDER = Path(__file__).parents[1] / "leaderboard"
DRAWS, MORE_DRAWS, DRAWS_OF_POWER = 4000, 200_000, 1000
# Pairs of a table that are drawn once more, the worst of the first draws: their rates are not chosen by luck.
WORST = 8
SHIFTS = (0.01, 0.02)


@dataclass(frozen=True)
class Column:
    """Methods of a table at one code length, of which two runs at least, or enough splits, are published.

    values: of the runs, less their mean; counts: of runs, as published and as drawn; queries: float64 (M, M),
    covariance over queries of the methods' scores, over Q; size: Q, 0 where scores of queries are unknown.
    splits: float64 (runs, F) of each method, the means of its runs in F splits of equal size, [] where splits
    decide nothing; by_splits: of which methods the splits say how much trainings vary.
    """

    bits: int
    names: list[str]
    values: list[np.ndarray]
    published: np.ndarray
    drawn: np.ndarray
    queries: np.ndarray
    size: int
    splits: list[np.ndarray] = field(default_factory=list)
    by_splits: list[bool] = field(default_factory=list)

    def query_error(self, i, j):
        """Squared error over queries of the difference of two methods; none for a method with itself."""
        error = self.queries[i, i] + self.queries[j, j] - 2 * self.queries[i, j]
        return 0.0 if i == j else max(float(error), 0.0)


def run(report, quick):
    """Print three tables."""
    draws = DRAWS // (4 if quick else 1)
    report.write(
        "## Verdicts",
        "Two sets of runs of one method, and two methods shifted to equal means, are drawn from the standard "
        "deviations of the published runs (normal) or from the runs themselves (resampled), and over queries "
        f"from the published scores of each. Below {ENOUGH_RUNS} published runs {ENOUGH_RUNS} are drawn: "
        f"with fewer there is no verdict. With {ENOUGH_RUNS} splits and fewer runs the differences of the "
        "splits are drawn from their standard deviation, of one method those of two runs, and nothing is "
        f"pooled or resampled. Rates are percentages of p < {LEVEL}, unadjusted. The worst pair is chosen by "
        f"{draws:,} draws of every pair; its rate is that of {MORE_DRAWS // (4 if quick else 1):,} others. "
        "Beside the rule of `tiebench.paired` stands a "
        "variance that is pooled over all methods of a length.",
    )
    errors, resampled, power = [], [], []
    for protocol in stems(FOLDER):
        progress(f"statistics: {protocol}")
        board = read(protocol, FOLDER)
        columns = [column for bits in board.bits if (column := _column(board, bits))]
        if not columns:
            continue
        generator = paired.generator(f"statistics {protocol}")  # other tables change nothing here
        runs = np.concatenate([column.published for column in columns])
        worst = [
            _worst(columns, same, kind, draws, quick, generator)
            for kind in ("normal", "pooled")
            for same in (True, False)
        ]
        pairs = sum(len(_pairs(column, False)) for column in columns)
        splits = max((len(of[0]) for of in columns[0].splits), default=0) * any(columns[0].by_splits)
        per_cell = f"{_range(runs)}, {splits} splits" if splits else _range(runs)
        errors.append([protocol, per_cell, len(columns), pairs, *map(_rate, worst), worst[1][1]])
        if all((column.published >= ENOUGH_RUNS).any() for column in columns):
            worst = [_worst(columns, same, "resampled", draws, quick, generator) for same in (True, False)]
            resampled.append([protocol, *map(_rate, worst), f"{100 * worst[1][2]:.0f}", worst[1][1]])
        power.append([protocol, *(f"{100 * one:.0f}" for one in _power(columns, generator))])
    report.write("**Equal methods called different: the worst pair of each table**")
    rates = ["one method twice", "two methods"]
    head = [
        "table",
        "runs",
        "lengths",
        "pairs",
        *rates,
        *(f"pooled: {name}" for name in rates),
        "the worst two",
    ]
    report.rows(head, errors, keep="errors")
    report.write("**The same, runs resampled**")
    head = ["table", "one method twice, worst", "two methods, worst", "pairs above 6 %, %", "the worst two"]
    report.rows(head, resampled, keep="resampled")
    report.write("**A difference seen, mean over all pairs**")
    report.rows(["table", *map(str, SHIFTS)], power, keep="power")


def _column(board, bits):
    metric = main_metric(board)
    table = as_table([board], [{"protocol": board.protocol, "metric": metric, "bits": [bits]}])
    results = Results.of(table, with_scores(board, FOLDER))
    names, values, rows, splits, by_splits = [], [], [], [], []
    for method in board.methods:
        runs = results.cell(board.protocol, method, bits)
        scores = [score for run in runs.values() if (score := run.score(metric)) is not None]
        kept = sample(runs, metric)
        if kept is None or (len(scores) < 2 and not kept.by_splits):
            continue
        names.append(method)
        values.append(np.array(scores) - np.mean(scores) if kept.variance else np.zeros(len(scores)))
        rows.append(kept.per_query)
        by_splits.append(kept.by_splits)
        of_folds = [[of[metric] for of in run.of_folds.values()] for run in runs.values()]
        splits.append(np.array(of_folds))
    if len(names) < 2 or not (any(of.any() for of in values) or any(by_splits)):
        return None
    known = all(row is not None for row in rows)
    published = np.array([len(of) for of in values])
    size = len(rows[0]) if known else 0
    queries = np.cov(rows) / size if known else np.zeros((len(names), len(names)))
    drawn = np.maximum(published, ENOUGH_RUNS)
    of_splits = splits if any(by_splits) else []
    return Column(bits, names, values, published, drawn, queries, size, of_splits, by_splits)


def _pairs(column, same, kind="normal"):
    """Pairs of places: of methods that vary with themselves, or of any two of which one varies.

    Where splits decide, they say which methods vary, and with itself is compared one of which two runs are
    published.
    """
    splits = any(column.by_splits)
    if splits and kind != "normal":  # a handful of splits has no shape to resample
        return []
    varies = column.by_splits if splits else [bool(of.any()) for of in column.values]
    least = ENOUGH_RUNS if kind == "resampled" else 2 if same else 0
    usable = [not of or runs >= least for of, runs in zip(varies, column.published)]
    if same:
        return [(i, i) for i, of in enumerate(varies) if of and usable[i]]
    pairs = itertools.combinations(range(len(varies)), 2)
    return [(i, j) for i, j in pairs if (varies[i] or varies[j]) and usable[i] and usable[j]]


# -- draws ----------------------------------------------------------------------------------------


def _drawn(column, kind, draws, generator, places=None):
    """Means and variances (M, draws) of runs drawn anew, counts and degrees of freedom (M,).

    NaN for other methods than `places`, unless all are needed to pool their variances.
    """
    counts = column.drawn
    means, variances = np.full((2, len(counts), draws), np.nan)
    for place in range(len(counts)) if places is None or kind == "pooled" else places:
        values, count = column.values[place], counts[place]
        if kind == "resampled":
            of = values[generator.integers(0, len(values), (draws, count))]
            means[place], variances[place] = of.mean(axis=1), of.var(axis=1, ddof=1)
        else:
            variance = values.var(ddof=1)
            means[place] = np.sqrt(variance / count) * generator.standard_normal(draws)
            variances[place] = variance * generator.chisquare(count - 1, draws) / (count - 1)
    freedoms = counts - 1
    if kind == "pooled":
        varies = np.array([bool(of.any()) for of in column.values])
        variances[varies] = np.average(variances[varies], axis=0, weights=freedoms[varies])
        freedoms = np.full(len(counts), freedoms[varies].sum())
    return means, variances, counts, freedoms


def _p_values(column, i, j, one, two, generator, shifts=(0.0,), pooled=False):
    """p (draws,) of method i, drawn in `one`, minus j, drawn in `two`, for each shift of the difference."""
    draws = one[0].shape[1]
    difference, error, queries = one[0][i] - two[0][j], column.query_error(i, j), None
    if error:
        difference = difference + np.sqrt(error) * generator.standard_normal(draws)
        freedom = column.size - 1
        queries = error * generator.chisquare(freedom, draws) / freedom, freedom
    sides = [[part[place] for part in of[1:]] for of, place in ((one, i), (two, j))]
    parts = [(variance / count, freedom) for variance, count, freedom in sides if np.any(variance > 0)]
    if pooled and len(parts) == 2:  # one estimate, not two independent ones
        parts = [(parts[0][0] + parts[1][0], parts[0][1])]
    errors = error_sources(queries, parts)
    return [p_value(difference + shift, errors) for shift in shifts]


def _p_over_splits(column, i, j, draws, generator, shifts=(0.0,)):
    """The same of two methods whose splits decide, or of two runs of one: the differences are drawn anew."""
    if i == j:
        apart = column.splits[i][0] - column.splits[i][1]
    else:
        apart = column.splits[i].mean(axis=0) - column.splits[j].mean(axis=0)
    count = len(apart)
    drawn = apart.std(ddof=1) * generator.standard_normal((draws, count))
    error, queries = column.query_error(i, j), None
    if error:
        freedom = column.size - 1
        queries = error * generator.chisquare(freedom, draws) / freedom, freedom
    splits = drawn.var(axis=1, ddof=1) / count, count - 1
    errors = error_sources(queries, [], splits=splits)
    return [p_value(drawn.mean(axis=1) + shift, errors) for shift in shifts]


# -- rates ----------------------------------------------------------------------------------------


def _worst(columns, same, kind, draws, quick, generator):
    """Rate of the worst pair, its names, and the share of pairs above 6 %."""
    rates = []
    for column in columns:
        pairs = _pairs(column, same, kind)
        found = _rates(column, pairs, kind, draws, generator)
        rates += [(rate, column, pair) for rate, pair in zip(found, pairs)]
    if not rates:
        return np.nan, "", 0.0
    above = np.mean([rate > 0.06 + 3 * np.sqrt(0.06 * 0.94 / draws) for rate, *_ in rates])
    again, more = [], MORE_DRAWS // (4 if quick else 1)
    for _, column, pair in sorted(rates, key=lambda one: -one[0])[:WORST]:
        (rate,) = _rates(column, [pair], kind, more, generator, pair)
        names = " and ".join(dict.fromkeys(column.names[place] for place in pair))
        again.append((rate, f"{names}, {column.bits} bits"))
    return *max(again), float(above)


def _rates(column, pairs, kind, draws, generator, places=None):
    """Share of p below LEVEL, for each pair; places: the only methods that are drawn."""
    if any(column.by_splits):
        found = [_p_over_splits(column, i, j, draws, generator)[0] for i, j in pairs]
    else:
        one, two = (_drawn(column, kind, draws, generator, places) for _ in range(2))
        found = [
            _p_values(column, i, j, one, two if i == j else one, generator, pooled=kind == "pooled")[0]
            for i, j in pairs
        ]
    return [float(np.mean(p < LEVEL)) for p in found]


def _power(columns, generator):
    """Share of differences seen, for each shift."""
    seen = {shift: [] for shift in SHIFTS}
    for column in columns:
        splits = any(column.by_splits)
        one = None if splits else _drawn(column, "normal", DRAWS_OF_POWER, generator)
        for i, j in _pairs(column, False):
            if splits:
                found = _p_over_splits(column, i, j, DRAWS_OF_POWER, generator, SHIFTS)
            else:
                found = _p_values(column, i, j, one, one, generator, SHIFTS)
            for shift, p in zip(SHIFTS, found):
                seen[shift].append(np.mean(p < LEVEL))
    return [float(np.mean(of)) for of in seen.values()]


def _rate(found):
    return "" if np.isnan(found[0]) else f"{100 * found[0]:.1f}"


def _range(counts):
    return " to ".join(map(str, dict.fromkeys((counts.min(), counts.max()))))
