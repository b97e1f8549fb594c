"""Records of runs to the frames of a table, tidy and wide, and what its printed forms share.

A *cell* is (protocol, metric, method, bits). A *group* is one block of a table: the columns of one protocol
and one metric. A *panel* is a row of groups side by side under one header, as in the tables of the paper.
"""

import io
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from scipy.special import stdtrit

from reporting.collapsed import collapse_of, collapse_sentence
from reporting.titles import (
    BOUND,
    FAMILIES,
    UNCODED,
    UNCODED_TITLE,
    dagger_sentence,
    method_title,
    protocol_title,
    sees,
)
from tiebench.metrics import resolve

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
)
NUMBERS = ("mean", "std", "ci_low", "ci_high", "published", "difference")
EN_DASH = "–"
NO_RECORD = "no run was recorded"


@dataclass(frozen=True)
class Group:
    """The columns of one block of a table: one protocol, one metric, several bits; `methods` are its rows."""

    protocol: str
    metric: str
    title: str
    bits: tuple[int, ...]
    methods: tuple[str, ...]


@dataclass(frozen=True)
class Panel:
    """Groups side by side, and the methods of at least one of them, in row order."""

    groups: tuple[Group, ...]
    methods: tuple[str, ...]


@dataclass(frozen=True)
class Note:
    """Why cells have no score, or not from every seed: its mark, the cells in words, the reason."""

    mark: str
    cells: str
    reason: str


# -- the shape of a table -------------------------------------------------------------------------


def groups(table: Mapping) -> list[Group]:
    """The blocks of a table as groups, in its order.

    A block without `methods` takes the table's. Rows are ordered by family where `table["families"]`,
    method -> one of FAMILIES, is given; within a family in the order of the table's methods.

    Raises ValueError if a cell is in the table twice.
    """
    result, seen = [], set()
    for block in table["blocks"]:
        methods = block.get("methods") or table["methods"]
        group = Group(
            protocol=block["protocol"],
            metric=block["metric"],
            title=block.get("title") or protocol_title(table, block["protocol"]),
            bits=tuple(block["bits"]),
            methods=tuple(_in_order(table, methods)),
        )
        for cell in _cells(group):
            if cell in seen:
                raise ValueError(f"table {table['name']}: {_words(cell)} is in the table twice")
            seen.add(cell)
        result.append(group)
    return result


def panels(table: Mapping, max_columns: int = 8) -> list[Panel]:
    """The groups of a table laid out in panels of at most `max_columns` columns of scores.

    Groups keep their order and are never split: a group wider than `max_columns` has a panel to itself.
    """
    rows: list[list[Group]] = []
    for group in groups(table):
        if rows and sum(len(other.bits) for other in rows[-1]) + len(group.bits) <= max_columns:
            rows[-1].append(group)
        else:
            rows.append([group])
    return [Panel(tuple(row), tuple(_method_order(table, row))) for row in rows]


def _method_order(table: Mapping, of: Iterable[Group]) -> list[str]:
    return _in_order(table, dict.fromkeys(method for group in of for method in group.methods))


def family(table: Mapping, method: str) -> str:
    """One of FAMILIES, "" where the table names none: it then keeps its own order, ungrouped."""
    return (table.get("families") or {}).get(method, "")


def competes(table: Mapping, method: str) -> bool:
    """Whether a method takes part in what compares the methods of a table: bounds do not."""
    return family(table, method) != BOUND


def by_family(table: Mapping, methods: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Rows in printing order, cut where the family changes: [(family, methods), …].

    One piece without a name, ("", methods), where they are all of one family or of none.
    """
    pieces: list[tuple[str, list[str]]] = []
    for method in methods:
        of = family(table, method)
        if not pieces or pieces[-1][0] != of:
            pieces.append((of, []))
        pieces[-1][1].append(method)
    return pieces if len(pieces) > 1 else [("", list(methods))]


def _in_order(table: Mapping, methods: Iterable[str]) -> list[str]:
    """Rows of a table: family after family, within one in the order of the table."""
    order = {method: index for index, method in enumerate(table["methods"])}
    families = list(FAMILIES)

    def key(method):
        of = family(table, method)
        return families.index(of) if of in families else len(families), order.get(method, len(order))

    return sorted(methods, key=key)


def _cells(group: Group) -> Iterable[tuple[str, str, str, int]]:
    for method in group.methods:
        for bits in group.bits:
            yield group.protocol, group.metric, method, bits


def _words(cell: tuple) -> str:
    protocol, metric, method, bits = cell
    return f"{protocol}, {metric}, {method}, {bits} bits"


# -- records to frames ----------------------------------------------------------------------------


def by_cell(table: Mapping, records: Iterable[Mapping]) -> dict[tuple[str, str, int], dict[int, Mapping]]:
    """Records as (protocol, method, bits) -> {seed: record}, seeds in the table's order.

    Records of seeds that the table does not list are left out.

    Raises ValueError for two records of one run and for a status other than "done" or "refused".
    """
    found: dict[tuple[str, str, int], dict[int, Mapping]] = {}
    for record in records:
        key = (record["protocol"], record["method"], record["bits"])
        run = "/".join(str(record[part]) for part in ("protocol", "method", "bits", "seed"))
        if record["status"] not in ("done", "refused"):
            raise ValueError(f"run {run}: status is {record['status']!r}, it must be 'done' or 'refused'")
        if record["seed"] in found.setdefault(key, {}):
            raise ValueError(f"run {run}: two records of one run")
        found[key][record["seed"]] = record
    return {key: {seed: runs[seed] for seed in table["seeds"] if seed in runs} for key, runs in found.items()}


def score_of(record: Mapping | None, metric: str) -> tuple[float | None, str, str]:
    """The score of one run by a metric, as (score, status, reason).

    The score is None unless the status is "done"; a run that is done but was not scored with this metric
    counts as missing, with that as its reason.

    Raises ValueError for a score that is not a finite number.
    """
    if record is None:
        return None, "missing", NO_RECORD
    if record["status"] == "refused":
        return None, "refused", record.get("reason") or "refused without a reason"
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
                raise ValueError(f"published source {name}: {_words(cell)} is given twice")
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
    `tiebench.collapse`; the mean includes them).

    status is "done" when every seed of the table has a score, "partial" when some have, "refused" when none
    has and a run was refused, "missing" otherwise. Records outside the table are ignored.

    uncoded: protocol -> metric -> score of the ranking by its features themselves. It is the mean of rows of
    the method "uncoded" and status "uncoded", without seeds, one per column and after the methods' rows.

    Raises ValueError for two records of one run, an unknown status or published source, a score that is not
    finite, or a cell that is in the table twice.
    """
    runs = by_cell(table, records)
    printed = published_values(table, published)
    rows = []
    for group in groups(table):
        for cell in _cells(group):
            protocol, metric, method, bits = cell
            here = runs.get((protocol, method, bits), {})
            outcomes = {seed: score_of(here.get(seed), metric) for seed in table["seeds"]}
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
                    "status": _status([status for _, status, _ in outcomes.values()]),
                    "reason": _reason(outcomes),
                    "sees": sees(table, method, protocol),
                    "collapsed": sum(bool(collapse_of(here.get(seed))) for seed in table["seeds"]),
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
    plain |= {"method": UNCODED, "seeds": 0, "collapsed": 0, "mean": score, "status": UNCODED}
    return [plain | {"bits": bits} for bits in group.bits]


def uncoded_in(tidy_frame: pd.DataFrame, of: Iterable[Group]) -> bool:
    """Whether some of these groups have a score of the features themselves, a row under the methods'."""
    asked = {(group.protocol, group.metric) for group in of}
    rows = tidy_frame[tidy_frame["status"] == UNCODED]
    return not asked.isdisjoint(zip(rows["protocol"], rows["metric"], strict=True))


def _status(of_seeds: Sequence[str]) -> str:
    if "done" in of_seeds:
        return "done" if set(of_seeds) == {"done"} else "partial"
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
    kinds |= dict.fromkeys(NUMBERS, "float64") | dict.fromkeys(("bits", "seeds", "collapsed"), "int64")
    frame["reason"] = frame["reason"].fillna("")
    return frame.astype(kinds)


def wide(tidy_frame: pd.DataFrame, table: Mapping) -> pd.DataFrame:
    """The layout of the paper: one row per method, means over seeds.

    Columns: "method" (str, the id), then one float column per (protocol, metric, bits) named
    "<protocol> <metric> <bits>", in the table's order. Cells without a score and cells of no block are NaN.
    """
    means = {tuple(cell): mean for *cell, mean in _rows(tidy_frame, "mean")}
    methods = _method_order(table, groups(table))
    methods += [UNCODED] * uncoded_in(tidy_frame, groups(table))
    columns: dict[str, list] = {"method": methods}
    for group in groups(table):
        for bits in group.bits:
            columns[f"{group.protocol} {group.metric} {bits}"] = [
                means.get((group.protocol, group.metric, method, bits), math.nan) for method in methods
            ]
    return pd.DataFrame(columns)


def _rows(tidy_frame: pd.DataFrame, *columns: str) -> Iterable[tuple]:
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
    for column in NUMBERS if tidy_columns else frame.columns[1:]:
        frame[column] = [float(value) if value else math.nan for value in frame[column]]
    return _typed(frame) if tidy_columns else frame


# -- what the printed tables share ----------------------------------------------------------------


def marks(tidy_frame: pd.DataFrame, table: Mapping) -> dict[tuple[str, str, str, int], str]:
    """Cell -> "best" or "second" within its column (protocol, metric, bits), from unrounded means.

    Higher is better unless the metric says otherwise. Equal means share a mark; the second is the next worse
    value. A column with fewer than two scores has no marks. Uncoded features and bounds take no part.
    """
    result = {}
    apart = [UNCODED, *(method for method in tidy_frame["method"].unique() if not competes(table, method))]
    for (protocol, metric, bits), column in tidy_frame.groupby(["protocol", "metric", "bits"], sort=False):
        scored = column[column["mean"].notna() & ~column["method"].isin(apart)]
        if len(scored) < 2:
            continue
        values = sorted(set(scored["mean"]), reverse=resolve(metric)[0].higher_is_better)[:2]
        for method, mean in zip(scored["method"], scored["mean"], strict=True):
            if mean in values:
                result[protocol, metric, method, bits] = ("best", "second")[values.index(mean)]
    return result


def notes(tidy_frame: pd.DataFrame, table: Mapping) -> tuple[list[Note], dict[tuple, str]]:
    """Notes for cells whose status is not "done", one per reason, and cell -> mark ("a", "b", ...)."""
    titles = {(group.protocol, group.metric): group.title for group in groups(table)}
    cells_of: dict[str, dict[tuple, list[int]]] = {}
    mark_of = {}
    for protocol, metric, method, bits, status, reason in _rows(tidy_frame, "status", "reason"):
        if status not in ("done", UNCODED):
            mark_of[protocol, metric, method, bits] = reason
            cells_of.setdefault(reason, {}).setdefault((protocol, metric, method), []).append(bits)
    letter = {reason: _letters(index) for index, reason in enumerate(cells_of)}
    result = []
    for reason, cells in cells_of.items():
        words = [
            f"{method_title(table, method)} on {titles[protocol, metric]} ({', '.join(map(str, bits))} bits)"
            for (protocol, metric, method), bits in cells.items()
        ]
        result.append(Note(letter[reason], "; ".join(words), reason))
    return result, {cell: letter[reason] for cell, reason in mark_of.items()}


def _letters(index: int) -> str:
    text = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        text = chr(ord("a") + rest) + text
    return text


def cell_values(tidy_frame: pd.DataFrame, table: Mapping) -> dict[tuple, tuple[float, float, float]]:
    """Cell -> (mean, standard deviation over seeds, published value), NaN if there is none.

    Published values are NaN unless the table asks for them in print, `print_published`.
    """
    asked = table.get("print_published", False)
    rows = _rows(tidy_frame, "mean", "std", "published")
    return {tuple(cell): (mean, std, printed if asked else math.nan) for *cell, mean, std, printed in rows}


def as_published(value: float) -> str:
    """A published value with at least three decimals, more where it has them; "" for NaN."""
    return "" if math.isnan(value) else f"{value:.{max(3, len(repr(value).partition('.')[2]))}f}"


def legend(tidy_frame: pd.DataFrame, table: Mapping, statistics: str = "") -> str:
    """What marks and small figures of a printed table mean, in sentences.

    statistics: what the marks of `statistics.cell_marks` mean, from `statistics.marks_legend`.
    """
    words = ["Best in bold, second underlined.", seeds_sentence(tidy_frame)]
    words.append(dagger_sentence(table, tidy_frame.loc[tidy_frame["status"] != UNCODED, "method"]))
    words += [uncoded_sentence(tidy_frame), bounds_sentence(tidy_frame, table)]
    words.append(collapse_sentence(tidy_frame, table))
    if any(not math.isnan(printed) for *_, printed in cell_values(tidy_frame, table).values()):
        words.append("In parentheses: as published.")
    return " ".join(filter(None, [*words, statistics]))


def uncoded_sentence(tidy_frame: pd.DataFrame) -> str:
    """What the row of the features themselves is; "" for a table without it."""
    if not (tidy_frame["status"] == UNCODED).any():
        return ""
    return f"{UNCODED_TITLE}: ranked by the features themselves, no code; neither best nor second."


def bounds_sentence(tidy_frame: pd.DataFrame, table: Mapping) -> str:
    """What bounds are; "" for a table without any."""
    if all(competes(table, method) for method in tidy_frame["method"]):
        return ""
    return f"{FAMILIES[BOUND]}: what a plain classifier reaches; neither best nor second."


def seeds_sentence(tidy_frame: pd.DataFrame) -> str:
    """What follows a mean, in words; "" where every cell has one seed at most."""
    if not (tidy_frame["seeds"] > 1).any():
        return ""
    return "Mean ± standard deviation over seeds."
