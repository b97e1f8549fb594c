"""What a table's scores support: intervals, and each cell against the best of its column.

See `tiebench.paired` for the test. A mark says what is not known; no mark and no word says that two methods
are equal.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from reporting.frames import empty_row
from reporting.statistics.samples import Pair, against, all_pairs, sample
from reporting.tables.model import Table
from reporting.tables.runs import Results
from tiebench import paired
from tiebench.messages import joined
from tiebench.metrics import resolve

# As of `frames.KINDS`.
KINDS = {
    "table": "str",
    "protocol": "str",
    "metric": "str",
    "method": "str",
    "bits": "int64",
    "queries": "int64",
    "seeds": "int64",
    "mean": "float64",
    "ci_low": "float64",
    "ci_high": "float64",
    "best": "str",
    "difference": "float64",
    "difference_low": "float64",
    "difference_high": "float64",
    "over": "str",
    "p": "float64",
    "p_adjusted": "float64",
    "seeds_needed": "Int64",
    "verdict": "str",
}
# Besides `paired.TOO_FEW`.
BEST, WORSE, UNDECIDED = "best", "worse", "undecided"
MARKS = {paired.TOO_FEW: "?s", UNDECIDED: "?"}
# More seeds than this are not planned: a difference that needs them is as small as the luck of a seed.
MOST_SEEDS = 30


def comparisons(table: Table, results: Results, pairs: Mapping[tuple, Mapping] | None = None) -> pd.DataFrame:
    """Each cell of a table with its interval over queries, and how it compares with the best of its column.

    One row per cell, in the order of `frames.tidy`. Columns: table, protocol, metric, method (str); bits,
    queries, seeds (int; the last two 0 for a hole); floats, NaN if there is none, and words, "" likewise:

    * mean: over seeds and queries. ci_low, ci_high: bootstrap interval over queries of that mean, the seeds
      as they are (`paired.bootstrap_intervals`; `frames.tidy` has the spread over seeds).
    * best: the method of the best mean in the column (protocol, metric, bits), the highest unless the metric
      says otherwise; of equals the first row.
    * difference: mean minus the best's; difference_low, difference_high: its 95% interval; over: what it and
      p are over, such as "queries and runs".
    * p: two-sided (`paired.difference`), NaN with too few runs; p_adjusted: by Holm's procedure over all
      pairs of methods of the column, not only those with the best: so the best may be chosen by the scores
      that it is tested with, and the probability that any two equally good methods of a column are called
      different is at most 0.05. p, difference and interval do not depend on other rows.
    * seeds_needed: where the verdict is open, about how many per method would decide, at Bonferroni's level,
      if that is more than both have and at most MOST_SEEDS.
    * verdict: "best", also for an equal mean; "worse" where p_adjusted < 0.05; "too few runs" where this
      method or the best varies and has fewer than five runs, and splits; else "undecided"; "" for a hole and
      in a column with fewer than two scored methods. None of them says that two methods are equal.

    Bounds and methods that see more than the training set are compared with nothing: their rows end with the
    interval. A run without scores per query of the metric counts as missing, unless no run of its cell has
    them: the cell has 0 queries and no interval of its own then, and is compared over runs. A column without
    any such scores has no comparisons.

    pairs: column -> pairs of its methods, of `samples.all_pairs`, where they are known. Raises ValueError as
    `frames.tidy` does, and for runs of one column with different numbers of queries.
    """
    in_order = [cell for group in table.groups for cell in group.cells()]
    columns: dict[tuple, dict[str, paired.Scores]] = {}
    for protocol, metric, method, bits in in_order:
        runs = results.cell(protocol, method, bits)
        kept = {seed: run for seed, run in runs.items() if metric in run.per_query}
        scores = sample(kept or runs, metric, given=table.style(method).external)
        if scores is not None:
            columns.setdefault((protocol, metric, bits), {})[method] = scores
    found = {}
    for column, cells in columns.items():
        if all(scores.per_query is None for scores in cells.values()):
            continue
        competing = {method for method in cells if table.competes(method, column[0])}
        found[column] = _column(column, cells, competing, (pairs or {}).get(column))
    empty = empty_row(KINDS) | {"table": table.name}
    rows = []
    for protocol, metric, method, bits in in_order:
        cell = {"protocol": protocol, "metric": metric, "method": method, "bits": bits}
        rows.append(empty | cell | found.get((protocol, metric, bits), {}).get(method, {}))
    return pd.DataFrame(rows, columns=list(KINDS)).astype(KINDS)


def _column(
    column: tuple,
    cells: Mapping[str, paired.Scores],
    competing: set[str],
    every: Mapping[tuple[str, str], Pair] | None,
) -> dict[str, dict]:
    """The part of a row that scores decide, for each method of a column that has some; one has those of
    queries."""
    protocol, metric, bits = column
    name = f"{protocol}, {metric}, {bits} bits"
    rows = {method: of.per_query for method, of in cells.items() if of.per_query is not None}
    sizes = {len(row) for row in rows.values()}
    if len(sizes) > 1:
        raise ValueError(f"{name}: runs of one column have {' and '.join(map(str, sorted(sizes)))} queries")
    low, high = paired.bootstrap_intervals(np.array([*rows.values()]), name)
    result: dict[str, dict] = {
        method: {"queries": 0, "seeds": scores.runs, "mean": scores.mean} for method, scores in cells.items()
    }
    (size,) = sizes
    for row, method in enumerate(rows):
        result[method] |= {"queries": size, "ci_low": low[row], "ci_high": high[row]}
    cells = {method: scores for method, scores in cells.items() if method in competing}
    if len(cells) < 2:
        return result
    first = max if resolve(metric)[0].higher_is_better else min
    best = first(cells, key=lambda method: cells[method].mean)
    result[best] |= {"best": best, "difference": 0.0, "verdict": BEST}
    pairs = len(cells) * (len(cells) - 1) // 2
    # In a fixed order of pairs, each row minus those above it: floating-point sums then repeat exactly.
    others = [method for method in cells if method != best]
    if every is None:
        every = all_pairs({method: cells[method] for method in (*reversed(others), best)}, cells)
    for method, pair in against(every, best, others).items():
        found, p = pair.found, pair.p_adjusted
        # The best has the best mean: a difference that is tested can only be worse.
        words = {paired.OPEN: UNDECIDED, paired.TOO_FEW: paired.TOO_FEW}
        verdict = BEST if found.mean == 0 else words.get(found.verdict(p), WORSE)
        result[method] |= {
            "best": best,
            "difference": found.mean,
            "difference_low": found.low,
            "difference_high": found.high,
            "over": found.over,
            "p": found.p,
            "p_adjusted": p,
            "verdict": verdict,
        }
        if verdict in words.values():
            seeds = paired.seeds_needed(found, pairs)
            if min(cells[method].runs, cells[best].runs) < seeds <= MOST_SEEDS:
                result[method]["seeds_needed"] = int(seeds)
    return result


def cell_marks(compared: pd.DataFrame) -> dict[tuple[str, str, str, int], str]:
    """Cell -> mark of what is open in its comparison with the best: "?s" or "?"; no entry for none.

    compared: of `comparisons`. Where nothing could be tested "?s" would stand on every cell and say nothing;
    it is left out, and `marks_legend` says so.
    """
    rows = compared.itertuples(index=False) if _tested(compared) else ()
    return {
        (row.protocol, row.metric, row.method, row.bits): MARKS[row.verdict]
        for row in rows
        if row.verdict in MARKS
    }


def marks_legend(compared: pd.DataFrame) -> str:
    """What the marks of `cell_marks` mean, in sentences for a reader; "" for a table without comparisons."""
    if not (compared["verdict"] != "").any():
        return ""
    few = f"a method that varies has fewer than {paired.ENOUGH_RUNS}"
    if not _tested(compared):
        return f"Too few runs to tell methods apart: {few}."
    used = set(cell_marks(compared).values())
    words = []
    if "?s" in used:
        words.append(f"?s: too few runs to tell from the best of the column: {few}.")
    if "?" in used:
        over = " ".join(compared.loc[compared["verdict"] == UNDECIDED, "over"])
        sources = [source for source in ("queries", "runs", "splits") if source in over]
        what = joined(sources) if sources else "these scores"
        words.append(f"?: {what} do not tell from the best of the column.")
    if used:
        words.append(f"No mark says that two scores are equal (level {paired.LEVEL}, Holm's correction).")
    return " ".join(words)


def _tested(compared: pd.DataFrame) -> bool:
    """Whether some comparison has enough runs."""
    return not set(compared["verdict"]) <= {"", BEST, paired.TOO_FEW}
