"""Precision against recall of everything within a Hamming radius, from radius 0 to the code length."""

from matplotlib.figure import Figure

from reporting.drawing.options import DEFAULT, Options
from reporting.drawing.sheets import curve_sheet
from reporting.tables.model import Table
from reporting.tables.runs import Results

TITLE = "Precision and recall"
CAPTION = (
    "How to read it. A query retrieves everything within a Hamming radius; along a line the radius grows "
    "from 0, at the left, to the code length, where everything is retrieved. Precision and recall at a "
    "radius are means over the queries, then over seeds. A radius at which no query retrieves anything "
    "has no precision and is left out, so a line may begin at a larger radius; where few queries do, at "
    "its left end, a line is noisy. Higher is better."
)


def draw(table: Table, results: Results, options: Options = DEFAULT) -> Figure:
    """Precision against recall within radius 0..b: a panel per protocol and bits, a line per method.

    Artists can be found by their gid: "line-<protocol>-<bits>-<method>".

    Raises NothingToDraw where no record has these curves.
    """
    return curve_sheet(
        table,
        results,
        options,
        title="Precision against recall of everything within a Hamming radius",
        lead="Along a line the radius grows from 0 to the code length. Means over queries and seeds.",
        x="recall",
        y="precision",
        labels=("recall", "precision"),
    )
