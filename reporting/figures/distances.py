"""Hamming distances of relevant and of irrelevant pairs: what a code has to keep apart."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reporting.drawing.axes import BEHIND, NothingToDraw, heading, mean_curve, views
from reporting.drawing.method_styles import colour
from reporting.drawing.options import DEFAULT, Options
from reporting.drawing.sheets import Section, label_axes, sheet, sheet_width
from reporting.tables.model import Group, Table
from reporting.tables.runs import Results
from tiebench import figure_style as look

TITLE = "Distances of relevant and irrelevant pairs"
CAPTION = (
    "How to read it. Filled: how the Hamming distances of the relevant pairs of a query and an item are "
    "distributed; line: those of the irrelevant pairs; means over seeds. Where both cover a "
    "distance, it does not tell relevant items from irrelevant ones; the number in a panel is the area "
    "that they share, 1 where they are alike, 0 where a threshold parts them. One code length per "
    "protocol is shown, the middle one of the table (of an even number, the longer)."
)


def draw(table: Table, results: Results, options: Options = DEFAULT) -> Figure:
    """Shares of relevant and of irrelevant pairs at each Hamming distance: a panel per method.

    Of a protocol the middle one of the bits for which any run has the curves; the number in a panel is
    sum_d min(relevant_d, irrelevant_d).

    Artists can be found by their gid: "relevant-<protocol>-<bits>-<method>" and "irrelevant-...".

    Raises NothingToDraw where no record has these curves.
    """
    found = [entry for view in views(table) if (entry := _middle(view, results))]
    if not found:
        raise NothingToDraw(f"table {table.name}: no run has distances of pairs, so there are none to draw")
    sections = [Section(f"{view.title}, {bits} bits", len(shares)) for view, bits, shares in found]
    width, columns = sheet_width(sections, options.width)
    between, left = 0.36, 0.5
    panel = (width - left - 0.12 - between * (columns - 1)) / columns
    with look.styled():
        figure, axes = sheet(
            *heading(
                options,
                "Hamming distances of relevant and irrelevant pairs",
                "Filled: relevant. Line: irrelevant. Number: the area that both share.",
            ),
            sections,
            width=width,
            columns=columns,
            body=max(0.75, 0.42 * panel),
            left=left,
            between=between,
        )
        for (view, bits, shares), of_section in zip(found, axes):
            for (method, both), here in zip(shares.items(), of_section):
                name = f"{view.protocol}-{bits}-{method}"
                where = f"{view.title}, {bits} bits"
                here.set_gid(look.Mark(f"panel-{name}", method=method, bits=bits, panel=where))
                _panel(here, name, colour(table, method), both)
                title = look.shortened(table.method_title(method), panel, look.TEXT_SIZE)
                here.set_title(title, size=look.TEXT_SIZE, pad=4, loc="left", color=look.INK)
            label_axes(of_section, columns, "distance", "share of pairs")
    return figure


def _middle(view: Group, results: Results) -> tuple[Group, int, dict] | None:
    """The code length to show and, of each method, its two distributions; None where there is nothing."""
    by_bits = {}
    for bits in view.bits:
        shares = {}
        for method in view.methods:
            of = list(results.cell(view.protocol, method, bits).values())
            if pairs := mean_curve(of, "relevant_at", "irrelevant_at"):
                shares[method] = [pairs.get(distance, (0.0, 0.0)) for distance in range(bits + 1)]
        if shares:
            by_bits[bits] = shares
    if not by_bits:
        return None
    bits = sorted(by_bits)[len(by_bits) // 2]
    return view, bits, by_bits[bits]


def _panel(axes: Axes, name: str, rgb: str, both) -> None:
    relevant, irrelevant = zip(*both)
    edges = [distance - 0.5 for distance in range(len(relevant) + 1)]
    high = max(*relevant, *irrelevant)
    axes.set_xlim(edges[0], edges[-1])
    # Space above the bars for the number.
    axes.set_ylim(0, 1.3 * high or 1.0)
    look.style_axes(
        axes,
        look.ticks_between(0, len(relevant) - 1, 4, whole=True),
        look.ticks_between(0, 1.1 * high or 1.0, 2),
    )
    axes.grid(visible=False)
    # Pale enough for the line to be seen on the darkest of the colours.
    filled, line = (
        look.Mark(f"{which}-{name}", names=f"distance;{which}", values=look.point_values(enumerate(shares)))
        for which, shares in (("relevant", relevant), ("irrelevant", irrelevant))
    )
    axes.stairs(relevant, edges, fill=True, color=rgb, alpha=0.6, linewidth=0, gid=filled)
    axes.stairs(irrelevant, edges, color=look.INK, linewidth=0.8, gid=line)
    shared = sum(map(min, relevant, irrelevant))
    axes.text(
        0.98,
        0.98,
        f"{shared:.2f}",
        size=look.TICK_SIZE,
        ha="right",
        va="top",
        color=look.INK,
        bbox=BEHIND,
        transform=axes.transAxes,
    )
