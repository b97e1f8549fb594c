"""What the printed forms of a table share: marks, notes and published values."""

import itertools
import math
from collections.abc import Iterable, Mapping
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


def places(tidy_frame: pd.DataFrame, table: Table) -> dict[ScoreCell, int]:
    """Cell -> its place within its column (protocol, metric, bits), from 1, by unrounded means.

    Higher is better unless the metric says otherwise. Equal means share a place. Uncoded features, bounds and
    methods that see more than the training set take no part, and ends of ranges have no places.
    """
    result: dict[ScoreCell, int] = {}
    for (protocol, metric, bits), column in tidy_frame.groupby(["protocol", "metric", "bits"], sort=False):
        if not metric.endswith(RANGE):
            apart = [
                name for name in column["method"] if name == UNCODED or not table.competes(name, protocol)
            ]
            scored = column[column["mean"].notna() & ~column["method"].isin(apart)]
            order = scored["mean"].rank(method="min", ascending=not resolve(metric)[0].higher_is_better)
            for method, place in zip(scored["method"], order, strict=True):
                result[protocol, metric, method, bits] = int(place)
    return result


def marks(found: Mapping[ScoreCell, int]) -> dict[ScoreCell, str]:
    """Cell -> "best" or "second" within its column. found: of `places`.

    Equal means share a mark; the second is the next worse value. A column with fewer than two places has no
    marks.
    """
    columns: dict[tuple, dict[ScoreCell, int]] = {}
    for cell, place in found.items():
        columns.setdefault((cell[0], cell[1], cell[3]), {})[cell] = place
    result: dict[ScoreCell, str] = {}
    for column in columns.values():
        if len(column) > 1:
            words = dict(zip(sorted(set(column.values())), ("best", "second")))
            result |= {cell: words[place] for cell, place in column.items() if place in words}
    return result


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
