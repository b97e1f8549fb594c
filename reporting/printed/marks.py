"""What the printed forms of a table share: marks, notes and published values."""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from string import ascii_lowercase

import pandas as pd

from reporting.frames import rows_of
from reporting.tables.model import Table
from reporting.tables.runs import ScoreCell
from reporting.tables.titles import LEADERBOARD, RANGE, UNCODED
from tiebench.metrics import resolve


@dataclass(frozen=True)
class Note:
    """Why cells have no score, or not from every seed: its mark, the cells in words, the reason."""

    mark: str
    cells: str
    reason: str


def ranked(tidy_frame: pd.DataFrame, table: Table) -> tuple[dict[ScoreCell, int], dict[ScoreCell, str]]:
    """Cell -> its place within its column (protocol, metric, bits), from 1, by unrounded means; and cell ->
    "best" or "second".

    Higher is better unless the metric says otherwise. Equal means share a place and a mark; the second is the
    next worse value. Uncoded features, bounds and methods that see more than the training set take no part,
    and ends of ranges have no places. A column with fewer than two places has no marks.
    """
    places: dict[ScoreCell, int] = {}
    marks: dict[ScoreCell, str] = {}
    for (protocol, metric, bits), column in tidy_frame.groupby(["protocol", "metric", "bits"], sort=False):
        if not metric.endswith(RANGE):
            apart = [
                name for name in column["method"] if name == UNCODED or not table.competes(name, protocol)
            ]
            means = column[~column["method"].isin(apart)].set_index("method")["mean"].dropna()
            lower = not resolve(metric)[0].higher_is_better
            order, values = (means.rank(method=ties, ascending=lower) for ties in ("min", "dense"))
            for method in means.index:
                cell = protocol, metric, method, bits
                places[cell] = int(order[method])
                if len(means) > 1 and values[method] <= 2:
                    marks[cell] = "best" if values[method] == 1 else "second"
    return places, marks


def notes(tidy_frame: pd.DataFrame, table: Table) -> tuple[list[Note], dict[tuple, str]]:
    """Notes for cells whose status is not "done", one per reason, and cell -> mark ("a", "b", ...)."""
    titles = {(group.protocol, group.metric): group.title for group in table.groups}
    cells_of: dict[str, dict[tuple, list[int]]] = {}
    mark_of = {}
    for protocol, metric, method, bits, status, reason in rows_of(tidy_frame, "status", "reason"):
        if status not in ("done", UNCODED, LEADERBOARD) and not metric.endswith(RANGE):
            mark_of[protocol, metric, method, bits] = reason
            cells_of.setdefault(reason, {}).setdefault((protocol, metric, method), []).append(bits)
    letters = (map("".join, itertools.product(ascii_lowercase, repeat=count)) for count in itertools.count(1))
    letter = dict(zip(cells_of, itertools.chain.from_iterable(letters)))
    result = []
    for reason, cells in cells_of.items():
        words = []
        for (protocol, metric, method), bits in cells.items():
            place = titles.get((protocol, metric)) or table.protocol_title(protocol)  # of a fold
            words.append(f"{table.method_title(method)} on {place} ({', '.join(map(str, bits))} bits)")
        # Blocks of several metrics may have one title.
        result.append(Note(letter[reason], "; ".join(dict.fromkeys(words)), reason))
    return result, {cell: letter[reason] for cell, reason in mark_of.items()}


def number(value: float, decimals: int, sign: str = "") -> str:
    """With a minus, not a hyphen; what is 0 as printed has no sign. sign: "+" where others have one."""
    text = f"{value:{sign}.{decimals}f}"
    return text.replace("-", "−") if float(text) else f"{0:.{decimals}f}"


def interval(values: Iterable[float], decimals: int) -> str:
    """A value with the ends of its interval."""
    value, low, high = (number(of, decimals) for of in values)
    return f"{value} ({low} to {high})"


def as_published(value: float) -> str:
    """A published value with at least three decimals, more where it has them; "" for NaN."""
    return "" if math.isnan(value) else f"{value:.{max(3, len(repr(value).partition('.')[2]))}f}"
