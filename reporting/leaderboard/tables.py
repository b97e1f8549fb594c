"""A table of the leaderboard as GitHub Markdown, from the settings of a marker."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from reporting import frames
from reporting.leaderboard import TIDY, Board
from reporting.leaderboard.boards import Boards, as_table, results_of
from reporting.leaderboard.columns import SCORES, SHOWN, Column, parse
from reporting.leaderboard.settings import as_bits, check_keys, paragraph
from reporting.leaderboard.trials import Search, searches
from reporting.printed import legend
from reporting.printed.cells import Cells, cells
from reporting.printed.markdown import escape_markdown, markdown_table, note_line
from reporting.printed.marks import number
from reporting.tables.model import Table
from reporting.tables.runs import Results, ScoreCell, whole_deviation, whole_mean
from reporting.tables.titles import (
    COLLAPSED,
    EN_DASH,
    RANGE,
    UNCODED,
    UNCODED_TITLE,
    family_title,
)
from tiebench.messages import did_you_mean
from tiebench.metrics import resolve

KEYS = {
    "protocol": str,
    "metric": str,
    "bits": (int, list),
    "layout": str,
    "spread": bool,
    "methods": list,
    "without": list,
    "columns": list,
    "sort": dict,
    "families": bool,
    "uncoded": (str, bool),
    "best": bool,
    "legend": bool,
}
SORT_KEYS = {"protocol": str, "metric": str, "bits": int}
DEFAULTS = {"metric": "ap", "uncoded": "last", "best": True, "legend": True}
PLACES = ("first", "last", False)
# What bold, ranges, baselines and the row of the features mean.
GUIDE = "results.md#how-to-read-the-tables"
COSTS = {"fit_seconds": "fit", "encode_seconds": "encode"}


@dataclass(frozen=True)
class _Data:
    """What the cells of a table are taken from.

    printed: all cells, with those of ranges; best: whether the best of
    a column is in bold; searches: board, method and code length -> its searches, where a column shows them.
    """

    table: Table
    results: Results
    printed: Cells
    published: Mapping[ScoreCell, float]
    best: bool
    searches: Mapping[tuple[str, str, int], Search]

    def mean(self, protocol: str, metric: str, method: str, bits: int) -> float | None:
        """The mean of a cell, None where it is not known."""
        cell = self.printed.of.get((protocol, metric, method, bits))
        return cell.mean if cell is not None and cell.known else None


def render(settings: Mapping, folder: Path, boards: Boards) -> str:
    """The table that a marker asks for, with sentences on its marks.

    settings: of the marker, see generated-parts.md. folder: of the page. Raises ValueError, one line with
    the nearest name, for settings that are unknown or do not fit.
    """
    check_keys(settings, KEYS, "a table")
    given = {**DEFAULTS, **settings}
    if given["uncoded"] not in PLACES:
        raise ValueError(f"uncoded must be first, last or false, not {given['uncoded']!r}")
    defaults = {key: given.get(key) for key in ("protocol", "metric", "bits")}
    defaults |= {key: settings[key] for key in ("layout", "spread") if key in settings}
    columns = parse(given.get("columns", ["score"]), defaults, boards)
    of_columns = ([one.board, *(one.over if one.show == "deviation" else ())] for one in columns)
    used = [boards[name] for name in dict.fromkeys(itertools.chain(*of_columns))]
    table = as_table(used, _blocks(columns), given.get("methods"), given.get("without", ()))
    searched = {column.board for column in columns if column.show == "search"}
    data = _data(table, used, given, {name: searches(boards[name], boards.folder) for name in searched})
    methods = _rows(given, data, boards)
    uncoded = [[f"*{UNCODED_TITLE}*", *(_cell(data, column, UNCODED) for column in columns)]]
    uncoded *= any(
        (c.protocol, c.metric, UNCODED, bits) in data.printed.of for c in columns for bits in c.bits
    )
    rows = [*uncoded] if given["uncoded"] == "first" else []
    by_rows = given.get("families", not (given.get("methods") or given.get("sort")))
    for family, members in table.by_family(methods) if by_rows else [("", methods)]:
        if family:
            rows.append([f"*{family_title(family)}*", *[""] * len(columns)])
        for method in members:
            name = escape_markdown(table.row_title(method))
            rows.append([name, *(_cell(data, column, method) for column in columns)])
    rows += uncoded if given["uncoded"] == "last" else []
    # A heading may hold Markdown and HTML, but no end of its cell.
    heading = ["Method", *(column.heading.replace("|", "\\|") for column in columns)]
    lines = [markdown_table(heading, rows, len(columns))]
    if given["legend"]:
        files = (f"[{board.protocol}]({boards.link(folder)}{board.protocol}{TIDY})" for board in used)
        words = [*_legend(data, columns), f"[How to read it]({boards.link(folder, GUIDE)})."]
        lines += ["", paragraph(" ".join([*words, f"Data: {', '.join(files)}."]))]
        for note in data.printed.notes:
            lines += ["", note_line(note)]
    return "\n".join(lines)


def _blocks(columns: Iterable[Column]) -> list[dict]:
    """Blocks of all scores that columns are made of, ranges among them."""
    methods_of: dict[tuple[str, str, int], list[tuple[str, ...]]] = {}  # of each column; (): all
    for column in columns:
        if column.show not in SCORES:
            continue
        names = {"range": [f"{column.metric}_min", f"{column.metric}_max"]}.get(column.show, [column.metric])
        for protocol in column.over or [column.protocol]:
            for name in names:
                for cell in ((protocol, name, bits) for bits in column.bits):
                    methods_of.setdefault(cell, []).append(column.methods)
    bits_of: dict[tuple[str, str, tuple[str, ...]], list[int]] = {}
    for (protocol, metric, bits), of in methods_of.items():
        methods = dict.fromkeys(itertools.chain(*of)) if all(of) else ()
        bits_of.setdefault((protocol, metric, tuple(methods)), []).append(bits)
    return [
        {"protocol": protocol, "metric": metric, "bits": bits}
        | ({"methods": list(methods)} if methods else {})
        for (protocol, metric, methods), bits in bits_of.items()
    ]


def _data(table: Table, used: Sequence[Board], given: Mapping, of_boards: Mapping[str, Mapping]) -> _Data:
    published = {
        (cell["protocol"], cell["metric"], cell["method"], int(cell["bits"])): float(cell["published"])
        for board in used
        for cell in board.cells
        if cell["published"]
    }
    results = results_of(table, used)
    printed = cells(frames.tidy(table, results), table)
    best = bool(given["best"]) and any(cell.rank == "best" for cell in printed.of.values())
    of_cells = {(name, *cell): search for name, found in of_boards.items() for cell, search in found.items()}
    return _Data(table, results, printed, published, best, of_cells)


def _rows(given: Mapping, data: _Data, boards: Boards) -> list[str]:
    """The methods in the order of the rows."""
    methods = list(data.table.methods)
    if "sort" not in given:
        return methods
    check_keys(given["sort"], SORT_KEYS, "sort")
    by = {"protocol": given.get("protocol"), "metric": given["metric"], **given["sort"]}
    if by["protocol"] is None:
        raise ValueError("sort needs a protocol")
    if "bits" not in by:
        by["bits"] = as_bits(given.get("bits") or boards[by["protocol"]].bits)[-1]
    keys = [(by["protocol"], by["metric"], method, by["bits"]) for method in methods]
    if not any(key in data.printed.of for key in keys):
        words = "{protocol}, {metric}, {bits} bits".format(**by)
        known = dict.fromkeys(f"{p}, {m}, {b} bits" for p, m, _, b in data.printed.of)
        raise ValueError(f"no column of scores is sorted by: {words}{did_you_mean(words, known)}")
    means = {key[2]: data.printed.of[key].mean if key in data.printed.of else math.nan for key in keys}
    sign = -1 if resolve(by["metric"])[0].higher_is_better else 1
    return sorted(methods, key=lambda name: (math.isnan(means[name]), sign * means[name]))


def _cell(data: _Data, column: Column, method: str) -> str:
    """The text of a cell; "" for what uncoded features do not have, and in a column that is of other rows."""
    if column.methods and method not in column.methods:
        return ""
    if method == UNCODED and column.show not in ("score", "mean_of_folds"):
        return ""
    if column.highest:
        numbers = [_number(data, column, method, bits) for bits in column.bits]
        known = [one for one in numbers if one is not None]
        if column.show == "difference":
            return number(max(known, key=abs), column.decimals, "+") if known else EN_DASH
        return f"{max(known):.{column.decimals}f}" if known else EN_DASH
    texts = [_text(data, column, method, bits) for bits in column.bits]
    if len(set(texts)) == 1 and texts[0].startswith(EN_DASH):
        missing = SHOWN[column.show].missing
        return texts[0] if missing == EN_DASH else missing
    return " / ".join(texts)


def _text(data: _Data, column: Column, method: str, bits: int) -> str:
    if column.show == "score":
        return _score(data, column, method, bits)
    if column.show == "range":
        names = (f"{column.metric}{end}" for end in RANGE)
        low, high = (data.printed.of[column.protocol, name, method, bits].mean for name in names)
        known = not math.isnan(low + high)
        return f"{low:.{column.decimals}f}{EN_DASH}{high:.{column.decimals}f}" if known else EN_DASH
    if column.show == "search":
        return _searched(data, column, method, bits)
    value = _number(data, column, method, bits)
    if value is None:
        return EN_DASH
    if column.show == "difference":
        return number(value, column.decimals, "+")
    if column.show == "health":
        return f"{value:,.{column.decimals}f}"
    return f"{value:.{column.decimals}f}"


def _searched(data: _Data, column: Column, method: str, bits: int) -> str:
    search = data.searches.get((column.board, method, bits))
    value = None if search is None else getattr(search, column.of)
    if value is None:
        return EN_DASH
    return (", ".join(value) or "none") if column.of == "ends" else f"{value:.{column.decimals}f}"


def _score(data: _Data, column: Column, method: str, bits: int) -> str:
    cell = data.printed.of.get((column.protocol, column.metric, method, bits))
    if cell is None or not cell.known:
        return EN_DASH + (f" <sup>{cell.note}</sup>" if cell is not None and cell.note else "")
    text = f"{cell.mean:.{column.decimals}f}"
    text = f"**{text}**" if data.best and cell.rank == "best" else text
    if column.spread and not math.isnan(cell.std):
        text += f" ± {cell.std:.{column.decimals}f}"
    return text + (COLLAPSED if cell.collapsed else "")


def _number(data: _Data, column: Column, method: str, bits: int) -> float | None:
    """The number of a cell; None where it is not known."""
    mean = data.mean(column.protocol, column.metric, method, bits)
    if column.show == "score":
        return mean
    if column.show in ("published", "difference"):
        printed = data.published.get((column.protocol, column.metric, method, bits))
        if column.show == "published" or printed is None:
            return printed
        return None if mean is None else mean - printed
    if column.over:
        means = [data.mean(protocol, column.metric, method, bits) for protocol in column.over]
        return (whole_mean if column.show == "mean_of_folds" else whole_deviation)(means)
    runs = list(data.results.cell(column.protocol, method, bits).values())
    done = [run for run in runs if run.status == "done"]
    if column.show == "peak_memory":
        return max((run.peak_memory_mb for run in done if run.peak_memory_mb is not None), default=None)
    if column.show == "health":
        values = [run.health.get(column.of) for run in done]
    else:
        values = [run.seconds_of(COSTS[column.show]) for run in done]
    return whole_mean(values)


def _legend(data: _Data, columns: Sequence[Column]) -> list[str]:
    """What the marks and the small figures of this table mean; GUIDE has what they mean in every table."""
    frame = data.printed.tidy
    frame = frame[~frame["metric"].str.endswith(RANGE)]
    methods = [method for method in frame["method"].unique() if method != UNCODED]
    words = [_seeds(data, frame, columns), legend.dagger_sentence(data.table, methods)]
    words += [legend.earlier_sentence(data.table, methods), legend.collapse_sentence(frame, data.table)]
    words.append(legend.budget_sentence(frame, data.table))
    if any(column.show in COSTS for column in columns):
        words.append(_machines(data))
    return [*filter(None, words)]


def _seeds(data: _Data, frame: pd.DataFrame, columns: Iterable[Column]) -> str:
    """How many seeds a score is the mean of, or a value of the runs where there are no scores."""
    of_runs = {len(runs) for cell, runs in data.results.runs.items() if cell[1] in data.table.methods}
    counts = sorted(set(frame.loc[frame["seeds"] > 0, "seeds"]) or of_runs)
    if counts == [1]:
        return "One seed."
    spread = any(column.show == "score" and column.spread for column in columns)
    words = legend.spread_words(frame, data.table) if spread else "Mean"
    single = " (one: no ±)" if spread and counts[0] == 1 else ""
    several = " to ".join(str(count) for count in (counts[:1] + counts[1:][-1:]))
    return f"{words} over {several} seeds{single}."


def _machines(data: _Data) -> str:
    """What the seconds are of; of several machines that of most rows comes first, without their names."""
    names: dict[str, dict[str, None]] = {}
    for run in data.results:
        if run.method not in data.table.methods or run.device is None or run.threads is None:
            continue
        if (run.fit_seconds, run.encode_seconds) != (None, None):
            threads = f"{run.threads} thread{'' if run.threads == 1 else 's'} of "
            machine = ("one " if run.device.startswith("NVIDIA") else threads) + run.device
            names.setdefault(machine, {})[data.table.method_title(run.method)] = None
    if not names:
        return ""
    largest = max(names, key=lambda machine: len(names[machine]))
    others = [f"{machine} for {', '.join(of)}" for machine, of in names.items() if machine != largest]
    return f"Seconds on {'; '.join([largest, *others])}; means over seeds."
