"""The cells of a table as all printed forms show them: value, spread, rank, marks and notes, made once."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pandas as pd

from reporting.frames import filled_marks, uncoded_in
from reporting.printed.legend import printed_legend, seed_counts, signs_legend
from reporting.printed.marks import Note, notes, ranked
from reporting.statistics.columns import cell_marks, marks_legend
from reporting.tables.model import Group, Table
from reporting.tables.runs import ScoreCell
from reporting.tables.titles import COLLAPSED, FILLED, UNCODED, UNCODED_TITLE


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its row of `frames.tidy`, NaN for what is not known, and how it is marked.

    rank: "best", "second" or "" within its column; place: there, from 1, None for what takes no part; open:
    the mark of what is open in the comparison with the best; note: the letter of its note; filled: whether it
    is marked as one of the leaderboard; printed: the published score where the table prints it; comparison:
    its row of `columns.comparisons`, or None.
    """

    mean: float
    std: float
    ci_low: float
    ci_high: float
    published: float
    difference: float
    seeds: int
    collapsed: int
    trials: int
    status: str
    reason: str
    budget: str
    rank: str
    place: int | None
    open: str
    note: str
    filled: bool
    printed: float
    comparison: Any

    @property
    def known(self) -> bool:
        return not math.isnan(self.mean)

    @property
    def signs(self) -> str:
        """What stands right behind the value: double dagger and section sign."""
        return COLLAPSED * (self.collapsed > 0) + FILLED * self.filled


# What a cell has of its row of `frames.tidy`.
OF_ROW = tuple(one.name for one in fields(Cell))[:12]


@dataclass(frozen=True)
class Row:
    """A method, None for the features themselves; its heading with marks; a cell, or None, of each column."""

    method: str | None
    heading: str
    cells: Sequence[Cell | None]


@dataclass(frozen=True)
class Cells:
    """All cells of a table, with the notes and the sentences that explain them.

    tidy: the frame that they are of; whole: methods all of whose scores are from the leaderboard; seeds: how
    many the scores are means over, where that differs. In sentences, signs: what the marks of rows and cells
    mean; decided: what is open between a score and the best of its column; legend: all of it.
    """

    table: Table
    tidy: pd.DataFrame
    of: Mapping[ScoreCell, Cell]
    notes: Sequence[Note]
    whole: frozenset[str]
    seeds: str
    signs: str
    decided: str
    legend: str

    def rows(self, groups: Sequence[Group], methods: Sequence[str]) -> list[tuple[str, list[Row]]]:
        """(family, rows) of columns of groups, cut as `Table.by_family` does."""
        return [
            (family, [self._row(groups, method) for method in members])
            for family, members in self.table.by_family(methods)
        ]

    def _row(self, groups: Iterable[Group], method: str) -> Row:
        heading = self.table.row_title(method) + FILLED * (method in self.whole)
        return Row(method, heading, self._columns(groups, method))

    def _columns(self, groups: Iterable[Group], method: str) -> list[Cell | None]:
        return [self.of.get(group.cell(method, bits)) for group in groups for bits in group.bits]

    def uncoded(self, groups: Sequence[Group]) -> Row | None:
        """The row of the features themselves, None where no group has a score of them."""
        if not uncoded_in(self.tidy, groups):
            return None
        return Row(None, UNCODED_TITLE, self._columns(groups, UNCODED))


def cells(tidy: pd.DataFrame, table: Table, compared: pd.DataFrame | None = None) -> Cells:
    """The cells of a table, from the frames of `frames.tidy` and of `columns.comparisons`.

    With the latter, marks say what is open between a score and the best of its column.
    """
    if compared is None or compared.empty:
        open_of, comparisons, decided = {}, {}, ""
    else:
        open_of, decided = cell_marks(compared), marks_legend(compared)
        comparisons = {
            (row.protocol, row.metric, row.method, row.bits): row for row in compared.itertuples(index=False)
        }
    places, marks = ranked(tidy, table)
    reasons, note_of = notes(tidy, table)
    whole, filled = filled_marks(tidy)
    found = {}
    for row in tidy.itertuples(index=False):
        cell = (row.protocol, row.metric, row.method, row.bits)
        found[cell] = Cell(
            **{name: getattr(row, name) for name in OF_ROW},
            rank=marks.get(cell, ""),
            place=places.get(cell),
            open=open_of.get(cell, ""),
            note=note_of.get(cell, ""),
            filled=cell in filled,
            printed=row.published if table.print_published else math.nan,
            comparison=comparisons.get(cell),
        )
    signs = signs_legend(tidy, table)
    words = printed_legend(tidy, table, signs, decided)
    return Cells(table, tidy, found, reasons, frozenset(whole), seed_counts(tidy), signs, decided, words)
