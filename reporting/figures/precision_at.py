"""Tie-aware precision among the first K items of a ranking."""

from matplotlib.figure import Figure

from reporting.drawing.options import DEFAULT, Options
from reporting.drawing.sheets import curve_sheet
from reporting.tables.model import Table
from reporting.tables.runs import Results

TITLE = "Precision among the first K"
CAPTION = (
    "How to read it. The share of relevant items among the first K of a ranking, on a logarithmic axis "
    "from the first item to the whole database, where it is the share of relevant items in all. Items at "
    "one distance are tied; the precision is its exact mean over all orders of tied items. Means over the "
    "queries, then over seeds. Higher is better."
)


def draw(table: Table, results: Results, options: Options = DEFAULT) -> Figure:
    """Tie-aware precision among the first K: a panel per protocol and bits, a line per method.

    Artists can be found by their gid: "line-<protocol>-<bits>-<method>".

    Raises NothingToDraw where no record has these curves.
    """
    return curve_sheet(
        table,
        results,
        options,
        title="Tie-aware precision among the first K items of a ranking",
        lead="The exact mean over all orders of tied items. Means over queries and seeds.",
        x="cuts",
        y="precision_at",
        labels=("K", "precision among the first K"),
        log=True,
    )
