"""Runs to the frames of a table, tidy and wide, and their CSV files."""

import io
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from scipy.special import stdtrit

from reporting.tables.model import Group, Table
from reporting.tables.runs import AS_GIVEN, Results, Run, ScoreCell, Tuning, collapsed_runs
from reporting.tables.titles import LEADERBOARD, UNCODED
from tiebench.paired import CONFIDENCE

# Columns of `tidy` -> their kinds, as pandas calls them.
KINDS = {
    "table": "str",
    "protocol": "str",
    "metric": "str",
    "method": "str",
    "bits": "int64",
    "seeds": "int64",
    "mean": "float64",
    "std": "float64",
    "ci_low": "float64",
    "ci_high": "float64",
    "published": "float64",
    "difference": "float64",
    "status": "str",
    "reason": "str",
    "sees": "str",
    "collapsed": "int64",
    "trials": "int64",
    "budget": "str",
}
# What stands for nothing in a column of a kind.
NOTHING: dict[str, Any] = {"str": "", "float64": math.nan, "int64": 0, "Int64": pd.NA}
# The column of the wide frame that is not a score.
FROM_LEADERBOARD = "from_leaderboard"


def t_interval(values: Sequence[float]) -> tuple[float, float, float, float]:
    """Mean, standard deviation and 95% confidence interval of the mean, as (mean, std, low, high).

    std has n - 1 in its denominator; the interval is Student's, two-sided: mean -+ t * std / sqrt(n) with
    n - 1 degrees of freedom. The last three are NaN for one value. Mean and std are rounded once from exact
    sums, so equal values have std 0 and the order of the values does not matter.
    """
    mean = statistics.mean(values)
    if len(values) < 2:
        return mean, math.nan, math.nan, math.nan
    std = statistics.stdev(values)
    half = float(stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2)) * std / math.sqrt(len(values))
    return mean, std, mean - half, mean + half


def tidy(table: Table, results: Results) -> pd.DataFrame:
    """One row per cell of a table, blocks and methods and bits in the table's order.

    Columns: table, protocol, metric, method (str); bits, seeds (int: how many seeds are done); mean, std
    (n - 1 in the denominator), ci_low, ci_high (95% Student t interval of the mean), published, difference
    (mean - published), all float and NaN if there is none: everything but published for a hole; std and
    the interval for one seed; status and reason (str; reason is "" when status is "done"); sees (str: what
    the method's training has access to); collapsed (int: how many seeds have collapsed codes, see
    `tiebench.codes.collapse`; the mean includes them); trials (int: how many settings were tried to choose
    the cell's, 1 if they are as given) and budget (str: what the choice was allowed).

    status is "done" when every seed of the method has a score, "partial" when some have, "refused" when none
    has and a run was refused, "missing" otherwise; "leaderboard" where the scores are from there, of the
    seeds that are there. Runs outside the table are ignored.

    `results.uncoded` makes the mean of rows of the method "uncoded" and status "uncoded", without seeds, one
    per column and after the methods' rows.

    Raises ValueError for a score that is not finite.
    """
    printed = table.published_values
    rows = []
    for group in table.groups:
        for cell in group.cells():
            protocol, metric, method, bits = cell
            here = results.cell(protocol, method, bits)
            outcomes = results.outcomes(table, cell)
            scores = [score for score, _, _ in outcomes.values() if score is not None]
            brought = next((run.tuning for run in here.values() if run.tuning is not None), None)
            tuning = brought or table.tunings.get((protocol, method, bits)) or Tuning(1, AS_GIVEN)
            collapsed, sees = collapsed_runs(here.values()), table.sees(method, protocol)
            mean, std, low, high = t_interval(scores) if scores else (math.nan,) * 4
            value = printed[cell][0] if cell in printed else math.nan
            rows.append(
                {
                    "table": table.name,
                    "protocol": protocol,
                    "metric": metric,
                    "method": method,
                    "bits": bits,
                    "seeds": len(scores),
                    "mean": mean,
                    "std": std,
                    "ci_low": low,
                    "ci_high": high,
                    "published": value,
                    "difference": mean - value,
                    "status": _status([status for _, status, _ in outcomes.values()], here),
                    "reason": _reason(outcomes),
                    "sees": sees,
                    "collapsed": collapsed,
                    "trials": tuning.trials,
                    "budget": tuning.budget,
                }
            )
        score = results.uncoded.get(group.protocol, {}).get(group.metric)
        if score is not None:
            if not math.isfinite(score):
                words = f"{group.metric} is {score}, not a finite number"
                raise ValueError(f"uncoded features of {group.protocol}: {words}")
            row = empty_row(KINDS) | {"table": table.name, "protocol": group.protocol, "metric": group.metric}
            row |= {"method": UNCODED, "mean": score, "status": UNCODED}
            rows += [row | {"bits": bits} for bits in group.bits]
    return pd.DataFrame(rows, columns=list(KINDS)).astype(KINDS)


def empty_row(kinds: Mapping[str, str]) -> dict[str, Any]:
    """A row that has nothing. kinds: of its columns."""
    return {name: NOTHING[kind] for name, kind in kinds.items()}


def uncoded_in(tidy_frame: pd.DataFrame, of: Iterable[Group]) -> bool:
    """Whether some of these groups have a score of the features themselves, a row under the methods'."""
    asked = {(group.protocol, group.metric) for group in of}
    rows = tidy_frame[tidy_frame["status"] == UNCODED]
    return not asked.isdisjoint(zip(rows["protocol"], rows["metric"], strict=True))


def _status(of_seeds: Sequence[str], runs: Mapping[int, Run]) -> str:
    if "done" in of_seeds:
        whole = LEADERBOARD if any(run.from_leaderboard for run in runs.values()) else "done"
        return whole if set(of_seeds) == {"done"} else "partial"
    return "refused" if "refused" in of_seeds else "missing"


def _reason(outcomes: Mapping[int, tuple]) -> str:
    """Reasons of the seeds without a score; the seeds are named unless all share one reason."""
    seeds_of: dict[str, list[int]] = {}
    for seed, (score, _, reason) in outcomes.items():
        if score is None:
            seeds_of.setdefault(reason, []).append(seed)
    if len(seeds_of) == 1 and len(next(iter(seeds_of.values()))) == len(outcomes):
        return next(iter(seeds_of))
    return "; ".join(
        f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}: {reason}"
        for reason, seeds in seeds_of.items()
    )


def wide(tidy_frame: pd.DataFrame, table: Table) -> pd.DataFrame:
    """The layout of the paper: one row per method, means over seeds.

    Columns: "method" (str, the id), then one float column per (protocol, metric, bits) named
    "<protocol> <metric> <bits>", in the table's order. Cells without a score and cells of no block are NaN.
    Where some cells are from the leaderboard, a last column "from_leaderboard" (str) tells which of each row:
    "" for none, "all", or the names of their columns.
    """
    means = {tuple(cell): mean for *cell, mean in rows_of(tidy_frame, "mean")}
    methods = [*table.rows]
    methods += [UNCODED] * uncoded_in(tidy_frame, table.groups)
    columns: dict[str, list] = {"method": methods}
    for group in table.groups:
        for bits in group.bits:
            columns[f"{group.protocol} {group.metric} {bits}"] = [
                means.get((group.protocol, group.metric, method, bits), math.nan) for method in methods
            ]
    whole, cells = filled_marks(tidy_frame)
    if whole or cells:
        named: dict[str, list[str]] = {method: ["all"] for method in whole}
        for protocol, metric, method, bits in sorted(cells):
            named.setdefault(method, []).append(f"{protocol} {metric} {bits}")
        columns[FROM_LEADERBOARD] = ["; ".join(named.get(method, ())) for method in methods]
    return pd.DataFrame(columns)


def filled_marks(tidy_frame: pd.DataFrame) -> tuple[set[str], set[ScoreCell]]:
    """Methods all of whose scores are from the leaderboard, and cells from there of the other methods.

    Both are empty for a table that has nothing else: there is nothing to tell them from.
    """
    rows = tidy_frame[tidy_frame["method"] != UNCODED]
    filled = rows[rows["status"] == LEADERBOARD]
    here = set(rows.loc[rows["status"].isin(["done", "partial"]), "method"])
    if not here:
        return set(), set()
    mixed = filled[filled["method"].isin(here)]
    return set(filled["method"]) - here, set(rows_of(mixed))


def rows_of(tidy_frame: pd.DataFrame, *columns: str) -> Iterable[tuple]:
    picked = tidy_frame[["protocol", "metric", "method", "bits", *columns]]
    return picked.itertuples(index=False, name=None)


def to_csv(frame: pd.DataFrame) -> str:
    """A tidy or wide frame as CSV text: a header, LF line ends, NaN as an empty field.

    Floats are written so that reading them gives the same bits back.
    """
    return frame.to_csv(index=False, lineterminator="\n")


def from_csv(text: str, kinds: Mapping[str, str] = KINDS) -> pd.DataFrame:
    """The frame that `to_csv` wrote: the same dtypes, the same bits of every float. kinds: of its columns.

    Raises ValueError for a file of other columns.
    """
    frame = pd.read_csv(io.StringIO(text), dtype="str", keep_default_na=False)
    if list(frame.columns) != list(kinds):
        raise ValueError(f"its columns are {', '.join(frame.columns)}")
    # Python's float rounds correctly; that of read_csv does so in some versions only.
    readers: dict[str, Callable[[str], Any]] = {"float64": float, "Int64": int}
    for column, kind in kinds.items():
        if read := readers.get(kind):
            frame[column] = [read(value) if value else NOTHING[kind] for value in frame[column]]
    return frame.astype(kinds)
