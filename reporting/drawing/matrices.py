"""Matrices of numbers as figures: a square of a colour per cell, for pairs of methods or of tables."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from reporting.drawing.axes import heading
from reporting.drawing.options import Options
from reporting.drawing.sheets import Section, sheet
from tiebench import figure_style as look

# What is above and below the middle; less opaque towards it, so that text is legible, on a dark page too.
ABOVE, BELOW = "#0072B2", "#D55E00"
OPAQUE = 0.75
# Of the longest names at the left and above, in inches.
NAME, HEAD = 2.25, 1.5


class Square(NamedTuple):
    """A cell: its value, from -1 to 1; its gid; what stands in it where there is room, and if in bold."""

    value: float
    mark: look.Mark
    text: str
    bold: bool = False


def matrix(
    options: Options,
    texts: tuple[str, str],
    titles: Sequence[str],
    squares: Mapping[tuple[int, int], Square],
    **panel: str,
) -> Figure:
    """A figure of a square matrix, with titles at the left and, upright, above.

    texts: title and lead; squares: (row, column) -> what is there, a grey cell for nothing; panel: attributes
    of the mark of the panel.
    """
    width = options.width or look.PAGE
    names = [look.shortened(title, NAME, look.TICK_SIZE) for title in titles]
    heads = [look.shortened(title, HEAD, look.TICK_SIZE) for title in titles]
    left = look.MARGIN + max(look.text_width(name, look.TICK_SIZE) for name in names) + 0.08
    above = max(look.text_width(name, look.TICK_SIZE) for name in heads) + 0.12
    size = min((width - left - 0.12) / len(titles), 0.34)
    with look.styled():
        figure, (((axes,),)) = sheet(
            *heading(options, *texts),
            [Section("", 1)],
            width=width,
            columns=1,
            body=size * len(titles),
            left=left,
            right=width - left - size * len(titles),
            above=above,
            below=0.06,
            foot=0.0,
        )
        axes.set_xlim(0, len(titles))
        axes.set_ylim(len(titles), 0)
        axes.set_facecolor("none")
        axes.spines[:].set_visible(False)
        axes.xaxis.tick_top()
        axes.set_xticks([place + 0.5 for place in range(len(titles))], heads, rotation=90)
        axes.set_yticks([place + 0.5 for place in range(len(titles))], names)
        axes.tick_params(length=0, pad=3, labelsize=look.TICK_SIZE)
        axes.set_gid(look.Mark("panel-matrix", **panel))
        for row in range(len(titles)):
            for column in range(len(titles)):
                square = Rectangle((column + 0.03, row + 0.03), 0.94, 0.94, linewidth=0, facecolor=look.TIE)
                axes.add_artist(square)  # add_patch would look for limits of data, one by one
                if (of := squares.get((row, column))) is None:
                    continue
                square.set_facecolor(ABOVE if of.value >= 0 else BELOW)
                square.set_alpha(OPAQUE * abs(of.value))
                square.set_gid(of.mark)
                how: dict[str, Any] = {"size": look.TICK_SIZE, "weight": "bold" if of.bold else "normal"}
                if of.text and look.text_width(of.text, **how) <= size:
                    axes.text(column + 0.5, row + 0.5, of.text, ha="center", va="center_baseline", **how)
    return figure
