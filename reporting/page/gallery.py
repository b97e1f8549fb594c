"""The retrieval gallery: the first items in the rankings of a few queries, right and wrong, ties boxed."""

from collections.abc import Mapping

import numpy as np
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.path import Path

from reporting.drawing.sheets import row_titles
from reporting.tables.model import Table
from tiebench.figure_style import INK, SURFACE, TIE, blank, styled, text_width

TITLE = "What a tie is: the nearest items of a few queries"
CAPTION = (
    "Queries are spread evenly over the query set, not selected by hand; codes of the first seed and the "
    "fewest bits; of a table of many methods, some, spread evenly over its rows or named by its settings. A "
    "row is the beginning of one method's ranking. ✓ and a green frame: relevant; ✗ and a "
    "red, dashed one: not. A grey box holds a tie, items at one Hamming distance d in the order of the "
    "database, which is arbitrary; below it stand d and how many items of the database are at it. Where "
    "hundreds are tied, another order would show other items, and a metric that does not average over all "
    "orders measures that order."
)
CHECK = Path([(-0.5, 0.0), (-0.15, -0.45), (0.55, 0.55)])
RIGHT, WRONG = "#009E73", "#D55E00"

# All in inches.
WIDTH = 7.0
EDGE = 0.08
GAP = 0.05
HEAD = 0.30
WORDS = 0.13
APART = 0.16


def draw(table: Table, gallery: Mapping[str, np.ndarray]) -> Figure:
    """Rows of thumbnails per query and method, from what `workflow.stages.gallery_data.collect` found.

    Artists can be found by their gid: "tie-<protocol>-<query>-<method>-<distance>" for the box of a tie,
    "right-<protocol>-<query>-<method>" and "wrong-…" for the frames of relevant and of other items.

    Where no run has codes, one line says so.
    """
    shown: list[tuple[str, str, list[str]]] = []
    for group in table.groups:
        known = [method for method in group.methods if f"{group.protocol}/{method}/neighbours" in gallery]
        if known and group.protocol not in [protocol for protocol, _, _ in shown]:
            shown.append((group.protocol, group.title, known))
    with styled():
        return _draw(table, shown, gallery) if shown else _nothing()


def _nothing() -> Figure:
    """A figure of one line, for a table whose runs were all refused."""
    figure = blank(WIDTH, HEAD)
    figure.text(
        EDGE / WIDTH, 0.5, "No run of these methods has codes to show.", size=8, va="center", color=INK
    )
    return figure


def _draw(table: Table, shown: list, gallery: Mapping) -> Figure:
    titles, widest = row_titles(table, (method for _, _, methods in shown for method in methods), WIDTH)
    left = EDGE + widest + 0.12
    count = max(gallery[f"{protocol}/{methods[0]}/neighbours"].shape[1] for protocol, _, methods in shown)
    # The query is set apart, one gap from the first item.
    side = (WIDTH - left - EDGE - APART - GAP * count) / (count + 1)
    row = side + WORDS + GAP
    height = EDGE
    for protocol, _, methods in shown:
        height += HEAD + len(gallery[f"{protocol}/queries"]) * (row * len(methods) + APART)
    figure = blank(WIDTH, height)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, WIDTH)
    axes.set_ylim(height, 0)
    axes.set_axis_off()
    top = 0.0
    for protocol, title, methods in shown:
        bits, _ = gallery[f"{protocol}/run"]
        axes.text(EDGE, top + 0.07, f"{title}, {bits} bits", size=9, weight="bold", va="top", color=INK)
        top += HEAD
        for query in range(len(gallery[f"{protocol}/queries"])):
            place = int(gallery[f"{protocol}/queries"][query])
            _picture(axes, gallery[f"{protocol}/pictures"][place], left, top, side)
            axes.text(left + side / 2, top + side + 0.03, "query", size=7, ha="center", va="top", color=INK)
            for method in methods:
                start = left + side + APART
                axes.text(EDGE, top + side / 2, titles[method], va="center", color=INK)
                _row(axes, gallery, (protocol, query, method), start, top, side)
                top += row
            top += APART
    return figure


def _row(axes, gallery: Mapping, of: tuple, start: float, top: float, side: float) -> None:
    protocol, query, method = of
    neighbours, distances, relevant, tied = (
        gallery[f"{protocol}/{method}/{name}"][query]
        for name in ("neighbours", "distances", "relevant", "tied")
    )
    step = side + GAP
    first = 0
    for distance in np.unique(distances):
        length = int(np.count_nonzero(distances == distance))
        box = Rectangle(
            (start + first * step - GAP / 2 + 0.012, top - GAP / 2),
            length * step - 0.024,
            side + WORDS + GAP / 2,
            facecolor=TIE,
            linewidth=0,
            zorder=-1,
            gid=f"tie-{protocol}-{query}-{method}-{distance}",
        )
        axes.add_patch(box)
        words = f"d = {distance}: {length} of {tied[first]:,}"
        if text_width(words, 6.5) > length * step - 0.03:
            words = f"d = {distance}"
        axes.text(
            start + first * step + (length * step - GAP) / 2,
            top + side + 0.03,
            words,
            size=6.5,
            ha="center",
            va="top",
            color=INK,
        )
        first += length
    for rank, item in enumerate(neighbours):
        _picture(axes, gallery[f"{protocol}/pictures"][item], start + rank * step, top, side)
    for kind, ranks, colour, style, mark in (
        ("right", np.flatnonzero(relevant), RIGHT, "-", CHECK),
        ("wrong", np.flatnonzero(~relevant), WRONG, (0, (2, 1)), "x"),
    ):
        if not len(ranks):
            continue
        x = start + ranks * step
        frames = [Rectangle((left, top), side, side) for left in x]
        gid = f"{kind}-{protocol}-{query}-{method}"
        axes.add_collection(
            PatchCollection(
                frames, facecolor="none", edgecolor=colour, linewidth=1.3, linestyle=style, gid=gid
            )
        )
        # A small mark in the corner, on white: colours alone would not do.
        corner = {"x": x + side - 0.06, "y": np.full(len(x), top + side - 0.06)}
        axes.plot(*corner.values(), "s", markersize=8, color=SURFACE, markeredgewidth=0)
        axes.plot(
            *corner.values(),
            linestyle="none",
            marker=mark,
            markersize=4.5,
            color=colour,
            markeredgewidth=1.3,
            fillstyle="none",
        )


def _picture(axes, picture: np.ndarray, left: float, top: float, side: float) -> None:
    axes.imshow(
        picture,
        extent=(left, left + side, top + side, top),
        aspect="auto",
        interpolation="none",
        resample=False,
    )
