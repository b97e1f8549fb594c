"""Win probabilities: how probable it is that one method is above another, over the tables of both."""

import itertools

import numpy as np
from matplotlib.figure import Figure

from reporting.drawing.axes import NothingToDraw
from reporting.drawing.matrices import Square, matrix
from reporting.drawing.options import DEFAULT, Options
from reporting.statistics.summary import LEAST_TABLES, blocks_of, improvement
from reporting.tables.model import Table
from reporting.tables.runs import Results
from tiebench import figure_style as look

TITLE = "Win probabilities"
CAPTION = (
    "How to read it. A square says how probable it is that a run of the method of its row is above one of "
    "the method of its column, in a table at random of those that have both: the bluer, the more often "
    "above, the more orange, the more often below; white is one half. A plus or a minus says that it is "
    "above or below with p of at most 0.05 in an exact test over tables, uncorrected. Methods stand in the "
    "order of their mean probability. Grey: fewer than six common tables."
)
NEEDS = ("per_query",)
REQUIRES = {"protocols": 6, "methods": 2}


def draw(table: Table, results: Results, options: Options = DEFAULT) -> Figure:
    """A square per pair of methods, "cell-<method>-<method>".

    Raises NothingToDraw where no two methods have LEAST_TABLES tables in common.
    """
    blocks = blocks_of(table, results)
    found = improvement(blocks) if blocks else None
    if found is None or not (found.tables[np.triu_indices(len(found.methods), 1)] >= LEAST_TABLES).any():
        raise NothingToDraw(f"table {table.name}: no run has a score of a pair in {LEAST_TABLES} tables")
    probability = found.probability
    order = np.argsort(-np.nanmean(np.where(np.isnan(probability), 0.5, probability), axis=1), kind="stable")
    methods = [found.methods[place] for place in order]
    titles = [table.method_title(method) for method in methods]

    squares = {}
    for row, column in itertools.product(range(len(order)), repeat=2):
        at = order[row], order[column]
        if not np.isnan(probability[at]):
            values = look.point_values([(probability[at], found.p[at], found.tables[at])])
            gid = f"cell-{methods[row]}-{methods[column]}"
            mark = look.Mark(gid, method=methods[row], label=titles[column], values=values)
            text = "+" if found.above[at] else "−" if found.above.T[at] else ""
            squares[row, column] = Square(2 * float(probability[at]) - 1, mark, text)
    lead = (
        f"Blue: a row is above a column; +, −: p ≤ 0.05 over tables, uncorrected. {len(blocks)} tables, "
        f"{LEAST_TABLES} or more of each pair."
    )
    names = "probability that it is above;p;tables"
    return matrix(options, (TITLE, lead), titles, squares, panel="above", names=names)
