"""Records of runs to the frames of a table, tidy and wide, and their CSV files."""

import io
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd
from scipy.special import stdtrit

from reporting import budgets
from reporting.collapsed import collapse_of
from reporting.filled import filled_marks, is_filled
from reporting.layout import Group, cell_words, cells_of, groups, method_order, method_seeds
from reporting.titles import LEADERBOARD, UNCODED, sees

COLUMNS = (
    "table",
    "protocol",
    "metric",
    "method",
    "bits",
    "seeds",
    "mean",
    "std",
    "ci_low",
    "ci_high",
    "published",
    "difference",
    "status",
    "reason",
    "sees",
    "collapsed",
    "trials",
    "budget",
)
COUNTS = ("bits", "seeds", "collapsed", "trials")
NUMBERS = ("mean", "std", "ci_low", "ci_high", "published", "difference")
# The column of the wide frame that is not a score.
FROM_LEADERBOARD = "from_leaderboard"
NO_RECORD = "no run was recorded"
# Of a record: cells of the leaderboard may be missing there.
STATUSES = ("done", "refused", "missing")


def by_cell(table: Mapping, records: Iterable[Mapping]) -> dict[tuple[str, str, int], dict[int, Mapping]]:
    """Records as (protocol, method, bits) -> {seed: record}, seeds in the table's order.

    Records of other seeds than the method's are left out, but those from the leaderboard: they have the seeds
    that they were made with, ascending.

    Raises ValueError for two records of one run and for a status other than those of STATUSES.
    """
    found: dict[tuple[str, str, int], dict[int, Mapping]] = {}
    for record in records:
        key = (record["protocol"], record["method"], record["bits"])
        run = "/".join(str(record[part]) for part in ("protocol", "method", "bits", "seed"))
        if record["status"] not in STATUSES:
            known = ", ".join(STATUSES)
            raise ValueError(f"run {run}: status is {record['status']!r}, it must be one of: {known}")
        if record["seed"] in found.setdefault(key, {}):
            raise ValueError(f"run {run}: two records of one run")
        found[key][record["seed"]] = record
    return {
        key: {seed: runs[seed] for seed in seeds_of(table, key[1], runs) if seed in runs}
        for key, runs in found.items()
    }


def seeds_of(table: Mapping, method: str, runs: Mapping[int, Mapping]) -> list[int]:
    """The seeds that a cell is to have, given its records: the method's, or those of the leaderboard."""
    return sorted(runs) if any(map(is_filled, runs.values())) else method_seeds(table, method)


def score_of(record: Mapping | None, metric: str) -> tuple[float | None, str, str]:
    """The score of one run by a metric, as (score, status, reason).

    The score is None unless the status is "done"; a run that is done but was not scored with this metric
    counts as missing, with that as its reason.

    Raises ValueError for a score that is not a finite number.
    """
    if record is None:
        return None, "missing", NO_RECORD
    if record["status"] != "done":
        return None, record["status"], record.get("reason") or f"{record['status']} without a reason"
    score = (record.get("metrics") or {}).get(metric)
    if score is None:
        return None, "missing", f"the run has no score named {metric}"
    score = float(score)
    if not math.isfinite(score):
        run = "/".join(str(record[part]) for part in ("protocol", "method", "bits", "seed"))
        raise ValueError(f"run {run}: {metric} is {score}, it must be a finite number")
    return score, "done", ""


def t_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float, float, float]:
    """Mean, standard deviation and confidence interval of the mean, as (mean, std, low, high).

    std has n - 1 in its denominator; the interval is Student's, two-sided: mean -+ t * std / sqrt(n) with
    n - 1 degrees of freedom. The last three are NaN for one value. Mean and std are rounded once from exact
    sums, so equal values have std 0 and the order of the values does not matter.
    """
    mean = statistics.mean(values)
    if len(values) < 2:
        return mean, math.nan, math.nan, math.nan
    std = statistics.stdev(values)
    half = float(stdtrit(len(values) - 1, (1 + confidence) / 2)) * std / math.sqrt(len(values))
    return mean, std, mean - half, mean + half


def published_values(table: Mapping, published: Iterable[Mapping]) -> dict[tuple, tuple[float, str, str]]:
    """Published scores of the table's cells, as cell -> (value, source, note).

    Only sources that `table["published"]` names are taken, the first of them winning.

    Raises ValueError when a named source is not among `published`, or when one gives a cell twice.
    """
    sources = {source["source"]: source for source in published}
    result: dict[tuple, tuple[float, str, str]] = {}
    for name in table.get("published") or []:
        if name not in sources:
            known = ", ".join(sorted(sources)) or "none"
            raise ValueError(
                f"table {table['name']}: published source {name!r} is not known (known: {known})"
            )
        seen = set()
        for entry in sources[name]["values"]:
            cell = (entry["protocol"], entry["metric"], entry["method"], entry["bits"])
            if cell in seen:
                raise ValueError(f"published source {name}: {cell_words(cell)} is given twice")
            seen.add(cell)
            result.setdefault(cell, (float(entry["value"]), name, entry.get("note") or ""))
    return result


def tidy(
    table: Mapping,
    records: Iterable[Mapping],
    published: Iterable[Mapping] = (),
    uncoded: Mapping[str, Mapping[str, float]] | None = None,
) -> pd.DataFrame:
    """One row per cell of a table, blocks and methods and bits in the table's order.

    Columns: table, protocol, metric, method (str); bits, seeds (int: how many seeds are done); mean, std
    (n - 1 in the denominator), ci_low, ci_high (95% Student t interval of the mean), published, difference
    (mean - published), all float and NaN if there is none: everything but published for a hole; std and
    the interval for one seed; status and reason (str; reason is "" when status is "done"); sees (str: what
    the method's training has access to); collapsed (int: how many seeds have collapsed codes, see
    `tiebench.collapse`; the mean includes them); trials (int: how many settings were tried to choose the
    cell's, 1 if they are as given) and budget (str: what the choice was allowed, see `reporting.budgets`).

    status is "done" when every seed of the method has a score, "partial" when some have, "refused" when none
    has and a run was refused, "missing" otherwise; "leaderboard" where the scores are from there, of the
    seeds that are there. Records outside the table are ignored.

    uncoded: protocol -> metric -> score of the ranking by its features themselves. It is the mean of rows of
    the method "uncoded" and status "uncoded", without seeds, one per column and after the methods' rows.

    Raises ValueError for two records of one run, an unknown status or published source, a score that is not
    finite, or a cell that is in the table twice.
    """
    runs = by_cell(table, records)
    printed, tuned = published_values(table, published), budgets.tunings(table)
    rows = []
    for group in groups(table):
        for cell in cells_of(group):
            protocol, metric, method, bits = cell
            here = runs.get((protocol, method, bits), {})
            outcomes = {seed: score_of(here.get(seed), metric) for seed in seeds_of(table, method, here)}
            scores = [score for score, _, _ in outcomes.values() if score is not None]
            mean, std, low, high = t_interval(scores) if scores else (math.nan,) * 4
            value = printed.get(cell, (math.nan,))[0]
            rows.append(
                {
                    "table": table["name"],
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
                    "sees": sees(table, method, protocol),
                    "collapsed": sum(bool(collapse_of(record)) for record in here.values()),
                    **budgets.tuning_of(tuned.get((protocol, method, bits)), here.values()),
                }
            )
        score = (uncoded or {}).get(group.protocol, {}).get(group.metric)
        rows += [] if score is None else _uncoded_rows(table, group, float(score))
    return _typed(pd.DataFrame(rows, columns=list(COLUMNS)))


def _uncoded_rows(table: Mapping, group: Group, score: float) -> list[dict]:
    if not math.isfinite(score):
        raise ValueError(
            f"uncoded features of {group.protocol}: {group.metric} is {score}, not a finite number"
        )
    plain = dict.fromkeys(COLUMNS, "") | dict.fromkeys(NUMBERS, math.nan)
    plain |= {"table": table["name"], "protocol": group.protocol, "metric": group.metric}
    plain |= {"method": UNCODED, "mean": score, "status": UNCODED} | dict.fromkeys(COUNTS[1:], 0)
    return [plain | {"bits": bits} for bits in group.bits]


def uncoded_in(tidy_frame: pd.DataFrame, of: Iterable[Group]) -> bool:
    """Whether some of these groups have a score of the features themselves, a row under the methods'."""
    asked = {(group.protocol, group.metric) for group in of}
    rows = tidy_frame[tidy_frame["status"] == UNCODED]
    return not asked.isdisjoint(zip(rows["protocol"], rows["metric"], strict=True))


def _status(of_seeds: Sequence[str], runs: Mapping[int, Mapping]) -> str:
    if "done" in of_seeds:
        whole = LEADERBOARD if any(map(is_filled, runs.values())) else "done"
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


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    kinds = dict.fromkeys(COLUMNS, "str")
    kinds |= dict.fromkeys(NUMBERS, "float64") | dict.fromkeys(COUNTS, "int64")
    frame["reason"] = frame["reason"].fillna("")
    return frame.astype(kinds)


def wide(tidy_frame: pd.DataFrame, table: Mapping) -> pd.DataFrame:
    """The layout of the paper: one row per method, means over seeds.

    Columns: "method" (str, the id), then one float column per (protocol, metric, bits) named
    "<protocol> <metric> <bits>", in the table's order. Cells without a score and cells of no block are NaN.
    Where some cells are from the leaderboard, a last column "from_leaderboard" (str) tells which of each row:
    "" for none, "all", or the names of their columns.
    """
    means = {tuple(cell): mean for *cell, mean in rows_of(tidy_frame, "mean")}
    methods = method_order(table, groups(table))
    methods += [UNCODED] * uncoded_in(tidy_frame, groups(table))
    columns: dict[str, list] = {"method": methods}
    for group in groups(table):
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


def rows_of(tidy_frame: pd.DataFrame, *columns: str) -> Iterable[tuple]:
    picked = tidy_frame[["protocol", "metric", "method", "bits", *columns]]
    return picked.itertuples(index=False, name=None)


def to_csv(frame: pd.DataFrame) -> str:
    """A tidy or wide frame as CSV text: a header, LF line ends, NaN as an empty field.

    Floats are written so that reading them gives the same bits back.
    """
    return frame.to_csv(index=False, lineterminator="\n")


def from_csv(text: str) -> pd.DataFrame:
    """The frame that `to_csv` wrote, tidy or wide: the same dtypes, the same bits of every float.

    Raises ValueError for a file of other columns.
    """
    frame = pd.read_csv(io.StringIO(text), dtype="str", keep_default_na=False)
    tidy_columns = tuple(frame.columns) == COLUMNS
    if not tidy_columns and list(frame.columns[:1]) != ["method"]:
        raise ValueError(f"its columns are {', '.join(frame.columns)}")
    # Python's float rounds correctly; that of read_csv does so in some versions only.
    for column in NUMBERS if tidy_columns else frame.columns[1:].drop(FROM_LEADERBOARD, errors="ignore"):
        frame[column] = [float(value) if value else math.nan for value in frame[column]]
    return _typed(frame) if tidy_columns else frame
