"""Agreement of orders: Kendall's tau-b between the orders of methods in several tables."""

from matplotlib.figure import Figure

from reporting.drawing.axes import NothingToDraw, heading
from reporting.drawing.matrices import matrix
from reporting.drawing.options import DEFAULT, Options
from reporting.statistics.summary import LEAST_METHODS, agreement, blocks_of
from reporting.tables.model import Table
from reporting.tables.runs import Results
from tiebench.figure_style import PAGE, point_values
from tiebench.paired import LEVEL

TITLE = "Agreement of orders"
CAPTION = (
    "How to read it. A square is Kendall's τ-b of the orders of the methods that two tables have in common: "
    "1 is the same order, 0 none in common, −1 the reverse. An order is that of means over code lengths. "
    "Bold: p < 0.05 by itself; among so many pairs some are by chance. Grey: fewer than six common methods."
)
NEEDS = ()
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
    titles = [blocks[place].title for place in places]

    def of(row: int, column: int) -> tuple[float, float, int] | None:
        one, other = places[row], places[column]
        return found.get((min(one, other), max(one, other)))

    def mark(row: int, column: int) -> tuple[str, dict]:
        one, other = (blocks[places[place]] for place in (row, column))
        said = {"label": f"{one.title} and {other.title}", "values": point_values([of(row, column) or ()])}
        return f"cell-{one.name}-{other.name}", said

    def value(row: int, column: int) -> float | None:
        return None if (pair := of(row, column)) is None else pair[0]

    def written(row: int, column: int) -> tuple[str, bool]:
        tau, p, _ = of(row, column) or (0.0, 1.0, 0)
        return f"{tau:.2f}".replace("-", "−"), p < LEVEL

    return matrix(
        heading(options, TITLE, "Kendall's τ-b of the methods that two tables share; bold: p < 0.05."),
        titles,
        titles,
        value,
        mark,
        options.width or PAGE,
        written,
        {"panel": "τ-b", "names": "τ-b;p;methods"},
    )
