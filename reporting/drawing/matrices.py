"""Matrices of numbers as figures: a square of a colour per cell, for pairs of methods or of tables."""

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from reporting.drawing.sheets import Section, sheet
from tiebench.figure_style import MARGIN, TICK_SIZE, TIE, Mark, shortened, styled, text_width

# What is above and below the middle; less opaque towards it, so that text is legible, on a dark page too.
ABOVE, BELOW = "#0072B2", "#D55E00"
OPAQUE = 0.75
# Of the longest names at the left and above, in inches.
NAME, HEAD = 2.25, 1.5


def matrix(
    texts: tuple[str, str],
    rows: Sequence[str],
    columns: Sequence[str],
    value: Callable[[int, int], float | None],
    mark: Callable[[int, int], tuple[str, dict[str, Any]]],
    width: float,
    written: Callable[[int, int], tuple[str, bool]],
    panel: dict[str, str],
) -> Figure:
    """A figure of `rows` by `columns`, with names at the left and, upright, above.

    texts: title and lead; value: of a cell, from -1 to 1, None for a grey one; mark: the gid of a cell and
    the attributes of its `Mark`; written: what stands in it, where cells are large enough, and whether it is
    bold; panel: attributes of the mark of the panel.
    """
    names = [shortened(name, NAME, TICK_SIZE) for name in rows]
    heads = [shortened(name, HEAD, TICK_SIZE) for name in columns]
    left = MARGIN + max(text_width(name, TICK_SIZE) for name in names) + 0.08
    above = max(text_width(name, TICK_SIZE) for name in heads) + 0.12
    size = min((width - left - 0.12) / len(columns), 0.34)
    with styled():
        figure, (((axes,),)) = sheet(
            *texts,
            [Section("", 1)],
            width=width,
            columns=1,
            body=size * len(rows),
            left=left,
            right=width - left - size * len(columns),
            above=above,
            below=0.06,
            foot=0.0,
        )
        axes.set_xlim(0, len(columns))
        axes.set_ylim(len(rows), 0)
        axes.set_facecolor("none")
        axes.spines[:].set_visible(False)
        axes.xaxis.tick_top()
        axes.set_xticks([place + 0.5 for place in range(len(columns))], heads, rotation=90)
        axes.set_yticks([place + 0.5 for place in range(len(rows))], names)
        axes.tick_params(length=0, pad=3, labelsize=TICK_SIZE)
        axes.set_gid(Mark("panel-matrix", **panel))
        for row in range(len(rows)):
            for column in range(len(columns)):
                square = Rectangle((column + 0.03, row + 0.03), 0.94, 0.94, linewidth=0, facecolor=TIE)
                axes.add_artist(square)  # add_patch would look for limits of data, one by one
                if (of := value(row, column)) is None:
                    continue
                gid, attributes = mark(row, column)
                square.set_facecolor(ABOVE if of >= 0 else BELOW)
                square.set_alpha(OPAQUE * abs(of))
                square.set_gid(Mark(gid, **attributes))
                text, bold = written(row, column)
                how: dict[str, Any] = {"size": TICK_SIZE, "weight": "bold" if bold else "normal"}
                if text and text_width(text, **how) <= size:
                    axes.text(column + 0.5, row + 0.5, text, ha="center", va="center_baseline", **how)
    return figure
