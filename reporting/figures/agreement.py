"""Agreement of orders: Kendall's tau-b between the orders of methods in several tables."""

import itertools

from matplotlib.figure import Figure

from reporting.drawing.axes import NothingToDraw
from reporting.drawing.matrices import Square, matrix
from reporting.drawing.options import DEFAULT, Options
from reporting.statistics.summary import LEAST_METHODS, agreement, blocks_of
from reporting.tables.model import Table
from reporting.tables.runs import Results
from tiebench import figure_style as look
from tiebench.paired import LEVEL

TITLE = "Agreement of orders"
CAPTION = (
    "How to read it. A square is Kendall's τ-b of the orders of the methods that two tables have in common: "
    "1 is the same order, 0 none in common, −1 the reverse. An order is that of means over code lengths. "
    "Bold: p < 0.05 by itself; among so many pairs some are by chance. Grey: fewer than six common methods."
)
REQUIRES = {"protocols": 3, "methods": 2}


def draw(table: Table, results: Results, options: Options = DEFAULT) -> Figure:
    """A square per pair of blocks, "cell-<block>-<block>".

    Raises NothingToDraw where no two blocks have LEAST_METHODS methods in common.
    """
    blocks = blocks_of(table, results)
    found = agreement(blocks)
    if not found:
        raise NothingToDraw(f"table {table.name}: no run has scores of {LEAST_METHODS} methods in two tables")
    places = [place for place in range(len(blocks)) if any(place in pair for pair in found)]
    squares = {}
    for row, column in itertools.permutations(range(len(places)), 2):
        one, other = places[row], places[column]
        if pair := found.get((min(one, other), max(one, other))):
            tau, p, _ = pair
            mark = look.Mark(
                f"cell-{blocks[one].name}-{blocks[other].name}",
                label=f"{blocks[one].title} and {blocks[other].title}",
                values=look.point_values([pair]),
            )
            squares[row, column] = Square(tau, mark, f"{tau:.2f}".replace("-", "−"), p < LEVEL)
    lead = "Kendall's τ-b of the methods that two tables share; bold: p < 0.05, uncorrected."
    titles = [blocks[place].title for place in places]
    return matrix(options, (TITLE, lead), titles, squares, panel="τ-b", names="τ-b;p;methods")
