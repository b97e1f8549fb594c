"""What a table's scores support: intervals, and each cell against the best of its column.

See `comparing` for the tests. A mark says what is not known; no mark and no word says that two methods are
equal.
"""

import io
import math
import statistics
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from reporting.statistics.comparing import Difference, Sample, difference, pool, sample, seeds_needed
from reporting.tables.model import Table
from reporting.tables.runs import Results
from tiebench.metrics import resolve
from tiebench.paired import LEVEL, bootstrap_intervals, holm

COLUMNS = (
    "table",
    "protocol",
    "metric",
    "method",
    "bits",
    "queries",
    "seeds",
    "mean",
    "ci_low",
    "ci_high",
    "best",
    "difference",
    "difference_low",
    "difference_high",
    "p_queries",
    "p_queries_adjusted",
    "over_queries",
    "p_seeds",
    "p_seeds_adjusted",
    "over_seeds",
    "seeds_needed",
    "p",
    "p_adjusted",
    "verdict",
)
P_VALUES = ("p_queries", "p_queries_adjusted", "p_seeds", "p_seeds_adjusted", "p", "p_adjusted")
NUMBERS = ("mean", "ci_low", "ci_high", "difference", "difference_low", "difference_high", *P_VALUES)
COUNTS = ("bits", "queries", "seeds")
# What the queries, or the seeds, say of a difference from the best of the column.
WORSE, UNDECIDED, TOO_FEW = "worse", "undecided", "too few seeds"
# What both say together.
BEST, WORSE_OVER_QUERIES, WORSE_OVER_SEEDS = "best", "worse over queries", "worse over seeds"
# Verdict -> mark: what is open, the queries, the seeds, or both.
MARKS = {WORSE_OVER_QUERIES: "?s", WORSE_OVER_SEEDS: "?q", UNDECIDED: "?"}
# More seeds than this are not planned: a difference that needs them is as small as the luck of a seed.
MOST_SEEDS = 30


# -- cells against the best of their column -------------------------------------------------------


def comparisons(
    table: Table, results: Results, resamples: int = 2000, confidence: float = 0.95
) -> pd.DataFrame:
    """Each cell of a table with its interval over queries, and how it compares with the best of its column.

    One row per cell, in the order of `frames.tidy`. Columns: table, protocol, metric, method (str); bits,
    queries, seeds (int; the last two 0 for a hole); floats, NaN if there is none, and words, "" likewise:

    * mean: over seeds and queries. ci_low, ci_high: bootstrap interval over queries of that mean, the seeds
      as they are (`paired.bootstrap_intervals`; `frames.tidy` has the spread over seeds).
    * best: the method of the best mean in the column (protocol, metric, bits), the highest unless the metric
      says otherwise; of equals the first row.
    * difference: mean minus the best's; difference_low, difference_high: its 95% interval over queries and
      seeds (over one of them where the other cannot be tested), see `comparing.difference`.
    * p_queries, p_seeds, p: two-sided p of this difference over queries, over seeds and over both, and the
      same adjusted by Holm's procedure over all pairs of methods of the column, not only those with the best:
      so the best may be chosen by the scores that it is tested with, and the probability that any two equally
      good methods of a column are called different is at most 0.05.
    * over_queries: "worse" where p_queries_adjusted < 0.05, else "undecided". over_seeds: "worse" likewise;
      "too few seeds" with fewer than two seeds on a side, or where MOST_SEEDS seeds or fewer would decide;
      else "undecided". seeds_needed: how many that is (`comparing.seeds_needed`, at Bonferroni's level).
    * verdict: "best", also for an equal mean; "worse" where p_adjusted < 0.05 and both sources are tested;
      "worse over queries" or "worse over seeds" where only these say so; else "undecided"; "" for a hole and
      in a column with fewer than two scored methods. None of them says that two methods are equal.

    Bounds and methods that see more than the training set are compared with nothing: their rows end with the
    interval. A run without scores per query of the metric counts as missing. Raises ValueError as
    `frames.tidy` does, and for runs of one column with different numbers of queries.
    """
    in_order = [cell for group in table.groups for cell in group.cells()]
    columns: dict[tuple, dict[str, Sample]] = {}
    for protocol, metric, method, bits in in_order:
        scores = sample(results.cell(protocol, method, bits), metric)
        kept = {seed: mean for seed, mean in scores.means.items() if seed in scores.per_query}
        columns.setdefault((protocol, metric, bits), {})[method] = Sample(kept, scores.per_query)
    found: dict[tuple, dict[str, dict]] = {}
    for column, cells in columns.items():
        apart = [method for method in cells if not table.competes(method, column[0])]
        for some in (set(cells) - set(apart), *({method} for method in apart)):
            chosen = {method: scores for method, scores in cells.items() if method in some}
            found.setdefault(column, {}).update(_column(column, chosen, resamples, confidence))
    empty: dict[str, Any] = {**dict.fromkeys(COLUMNS, ""), **dict.fromkeys(NUMBERS, math.nan)}
    empty |= dict.fromkeys(COUNTS, 0) | {"table": table.name, "seeds_needed": pd.NA}
    rows = []
    for protocol, metric, method, bits in in_order:
        cell = {"protocol": protocol, "metric": metric, "method": method, "bits": bits}
        rows.append(empty | cell | found[protocol, metric, bits].get(method, {}))
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    kinds = dict.fromkeys(COLUMNS, "str") | dict.fromkeys(NUMBERS, "float64") | dict.fromkeys(COUNTS, "int64")
    return frame.astype(kinds | {"seeds_needed": "Int64"})


def _column(column: tuple, cells: Mapping[str, Sample], resamples: int, confidence: float) -> dict[str, dict]:
    """The part of a row that scores decide, for each method of a column that has scores."""
    protocol, metric, bits = column
    name = f"{protocol}, {metric}, {bits} bits"
    cells = pool({method: scores for method, scores in cells.items() if scores.means})
    if not cells:
        return {}
    sizes = {len(values) for scores in cells.values() for values in scores.per_query.values()}
    if len(sizes) > 1:
        raise ValueError(f"{name}: runs of one column have {' and '.join(map(str, sorted(sizes)))} queries")
    averages = np.array([scores.average(scores.means) for scores in cells.values()])
    means = {method: statistics.mean(scores.means.values()) for method, scores in cells.items()}
    low, high = bootstrap_intervals(averages, name, resamples, confidence)
    result = {
        method: {
            "queries": averages.shape[1],
            "seeds": len(scores.means),
            "mean": means[method],
            "ci_low": low[row],
            "ci_high": high[row],
        }
        for row, (method, scores) in enumerate(cells.items())
    }
    if len(cells) < 2:
        return result
    best = best_of(means, metric)
    result[best] |= {"best": best, "difference": 0.0, "verdict": BEST}
    adjusted = _all_pairs(cells, best, confidence)
    sign = 1 if resolve(metric)[0].higher_is_better else -1
    count = len(cells) * (len(cells) - 1) // 2
    for method, (found, p) in adjusted.items():
        tied = means[method] == means[best]
        words = {"verdict": BEST} if tied else _words(found, p, sign, count)
        result[method] |= words | {
            "best": best,
            "difference": found.mean,
            "difference_low": found.low,
            "difference_high": found.high,
            "p_queries": found.p_queries,
            "p_queries_adjusted": p["p_queries"],
            "p_seeds": found.p_seeds,
            "p_seeds_adjusted": p["p_seeds"],
            "p": found.p,
            "p_adjusted": p["p"],
        }
    return result


def best_of(means: Mapping[str, float], metric: str) -> str:
    """The method of the best mean, by the direction of the metric; of equals the first."""
    return (max if resolve(metric)[0].higher_is_better else min)(means, key=means.__getitem__)


def _all_pairs(
    cells: Mapping[str, Sample], best: str, confidence: float
) -> dict[str, tuple[Difference, dict[str, float]]]:
    """Each other method's difference from the best, with p values adjusted over all pairs of the column."""
    methods = [best, *(method for method in cells if method != best)]
    found = {
        (right, left): difference(cells[left], cells[right], confidence=confidence)
        for index, right in enumerate(methods)
        for left in methods[index + 1 :]
    }
    kinds = ("p_queries", "p_seeds", "p")
    adjusted = {kind: holm([getattr(one, kind) for one in found.values()]).tolist() for kind in kinds}
    return {
        left: (one, {kind: adjusted[kind][row] for kind in kinds})
        for row, ((right, left), one) in enumerate(found.items())
        if right == best
    }


def _words(found: Difference, p: Mapping[str, float], sign: int, pairs: int) -> dict:
    """What queries, seeds and both say of a difference from the best; sign: 1 where higher is better."""
    worse = sign * found.mean < 0
    over_queries = WORSE if worse and p["p_queries"] < LEVEL else UNDECIDED
    over_seeds, needed = UNDECIDED, pd.NA
    if worse and p["p_seeds"] < LEVEL:
        over_seeds = WORSE
    elif math.isnan(found.p_seeds):
        over_seeds = TOO_FEW
    elif (seeds := seeds_needed(found.mean, found.variance, pairs)) <= MOST_SEEDS:
        over_seeds, needed = TOO_FEW, int(seeds)
    verdict = UNDECIDED
    if worse and p["p"] < LEVEL and not math.isnan(found.p_queries + found.p_seeds):
        verdict = WORSE
    elif WORSE in (over_queries, over_seeds) and over_queries != over_seeds:
        verdict = WORSE_OVER_QUERIES if over_queries == WORSE else WORSE_OVER_SEEDS
    words = {"over_queries": over_queries, "over_seeds": over_seeds, "seeds_needed": needed}
    return words | {"verdict": verdict}


def from_csv(text: str) -> pd.DataFrame:
    """The frame of `comparisons` that `frames.to_csv` wrote: the same dtypes, the same bits of every float.

    Raises ValueError where the columns are not those of this version.
    """
    frame = pd.read_csv(io.StringIO(text), dtype="str", keep_default_na=False)
    if tuple(frame.columns) != COLUMNS:
        raise ValueError(f"its columns are {', '.join(frame.columns)}")
    for column in NUMBERS:
        frame[column] = [float(value) if value else math.nan for value in frame[column]]
    frame["seeds_needed"] = [int(value) if value else pd.NA for value in frame["seeds_needed"]]
    return frame.astype(dict.fromkeys(COUNTS, "int64") | {"seeds_needed": "Int64"})


# -- marks ----------------------------------------------------------------------------------------


def cell_marks(compared: pd.DataFrame) -> dict[tuple[str, str, str, int], str]:
    """Cell -> mark of what is open in its comparison with the best: "?s", "?q" or "?"; no entry for none.

    compared: of `comparisons`. In columns of one seed "?s" would stand on every cell and say nothing; it is
    left out, and `marks_legend` says so.
    """
    result = {}
    alone = _single_seed(compared)
    for row in compared.itertuples(index=False):
        mark = MARKS.get(row.verdict, "")
        if alone:
            mark = "" if row.over_queries == WORSE else mark and "?q"
        if mark:
            result[row.protocol, row.metric, row.method, row.bits] = mark
    return result


def marks_legend(compared: pd.DataFrame) -> str:
    """What the marks of `cell_marks` mean, in sentences for a reader; "" for a table without comparisons."""
    if not (compared["verdict"] != "").any():
        return ""
    used = set(cell_marks(compared).values())
    words = []
    if _single_seed(compared):
        words.append("One seed each: nothing is known about other seeds.")
    if "?q" in used:
        words.append("?q: the choice of queries could explain the difference from the best of the column.")
    if "?s" in used:
        words.append("?s: worse than the best over these queries, but there are too few seeds to tell.")
    if "?" in used:
        words.append("?: queries and seeds together do not decide.")
    if used:
        words.append(f"No mark says that two scores are equal (level {LEVEL}, Holm's correction).")
    return " ".join(word.strip() for word in words)


def _single_seed(compared: pd.DataFrame) -> bool:
    """Whether no cell of a table has more than one seed."""
    return bool((compared["seeds"] <= 1).all())
