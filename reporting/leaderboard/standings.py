"""The rows of a leaderboard under one metric: means, spread, ranks and costs, the best first."""

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reporting.leaderboard import Board
from reporting.leaderboard.boards import results_of
from reporting.printed.marks import RANGE
from reporting.tables.model import Table
from reporting.tables.titles import UNCODED, UNCODED_TITLE
from tiebench.metrics import resolve


@dataclass(frozen=True)
class Cell:
    """A method at a code length; NaN for what is not known.

    mean, std: over `seeds` seeds; rank: among the methods that compete, from 1, None for the others;
    collapsed: of how many seeds the codes collapsed; fit, encode: seconds, means over seeds; reason: why
    there is no score, "" for a score.
    """

    mean: float
    std: float
    seeds: int
    rank: int | None
    collapsed: int
    fit: float
    encode: float
    reason: str


@dataclass(frozen=True)
class Row:
    """A method: `cells` by code length; heading: its title with the marks of tables."""

    method: str
    title: str
    heading: str
    family: str
    competes: bool
    cells: Mapping[int, Cell]


@dataclass(frozen=True)
class Standings:
    """Rows of a protocol, or of a fold, under one metric.

    rows: the best first, at the longest code that a method has; competitors: by code length, how many
    methods have a rank.
    """

    protocol: str
    metric: str
    bits: tuple[int, ...]
    rows: tuple[Row, ...]
    competitors: Mapping[int, int]

    def best(self, bits: int, count: int = 1) -> list[tuple[Row, Cell]]:
        """The methods of the first `count` ranks at a code length, more where several share the last."""
        ranked = [(row, row.cells[bits]) for row in self.rows if bits in row.cells]
        ranked = [(row, cell) for row, cell in ranked if cell.rank is not None and cell.rank <= count]
        return sorted(ranked, key=lambda pair: pair[1].rank or 0)


def main_metric(board: Board) -> str:
    """The metric that a board's tables begin with: of its first scored cell."""
    return next(cell["metric"] for cell in board.cells if cell["mean"])


def other_metrics(board: Board) -> list[str]:
    """Metrics of the board's cells besides the main one, without ends of ranges."""
    known = set(board.scored)
    names = dict.fromkeys(cell["metric"] for cell in board.cells if cell["mean"])
    return [
        name for name in names if name != main_metric(board) and name in known and not name.endswith(RANGE)
    ]


def standings(board: Board, table: Table, protocol: str, metric: str) -> Standings:
    """Rows of a protocol of a board, or of one of its folds, under a metric.

    table: of `boards.as_table`, for titles, families and what competes. The features themselves are a row,
    too; they have no rank. A method without any score has no row.
    """
    frame = board.tidy
    frame = frame[(frame["protocol"] == protocol) & (frame["metric"] == metric)]
    found = {(row["method"], row["bits"]): row for row in frame.to_dict(orient="records")}
    lengths = tuple(sorted({bits for _, bits in found}))
    results = results_of(table, [board])
    ranked = [name for name in board.methods if table.competes(name, protocol)]
    means = {
        bits: [found[name, bits]["mean"] for name in ranked if _scored(found.get((name, bits)))]
        for bits in lengths
    }
    higher = resolve(metric)[0].higher_is_better
    rows = []
    for method in dict.fromkeys(method for (method, _), row in found.items() if _scored(row)):
        cells = {}
        for bits in lengths:
            row = found.get((method, bits))
            if row is None:
                continue
            rank = None
            if method in ranked and _scored(row):
                rank = 1 + sum((one > row["mean"]) if higher else (one < row["mean"]) for one in means[bits])
            measured = results.cell(protocol, method, bits).values()
            cells[bits] = Cell(
                *(row["mean"], row["std"], int(row["seeds"]), rank, int(row["collapsed"])),
                fit=_mean([run.fit_seconds for run in measured]),
                encode=_mean([run.encode_seconds for run in measured]),
                reason=row["reason"] or "",
            )
        features = method == UNCODED
        rows.append(
            Row(
                method=method,
                title=UNCODED_TITLE if features else table.method_title(method),
                heading=UNCODED_TITLE if features else table.row_title(method),
                family="" if features else table.family(method),
                competes=method in ranked,
                cells=cells,
            )
        )
    return Standings(
        protocol, metric, lengths, tuple(_sorted(rows, higher)), {bits: len(of) for bits, of in means.items()}
    )


def _scored(row: Mapping | None) -> bool:
    return row is not None and not math.isnan(row["mean"])


def _mean(values: list[float | None]) -> float:
    """NaN where a run does not say its value, or there is no run."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known and len(known) == len(values) else math.nan


def _sorted(rows: Iterable[Row], higher: bool) -> list[Row]:
    """The best first by the longest codes; without a score last."""

    def key(row):
        means = {bits: cell.mean for bits, cell in row.cells.items() if not math.isnan(cell.mean)}
        if not means:
            return 0, 0.0
        longest = max(means)
        return -longest, -means[longest] if higher else means[longest]

    return sorted(rows, key=key)
