"""Views, legends and axes that figures share, and what scales text and sizes."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Annotation, Text
from scipy.optimize import isotonic_regression

from reporting.drawing.method_styles import method_style
from reporting.drawing.options import WIDTHS
from reporting.records.training_logs import number
from reporting.tables.model import Group, Table
from reporting.tables.runs import Results, Run
from reporting.tables.titles import family_title
from tiebench import figure_style as look

# Space in inches for the label of a y axis.
LABEL = 0.30
MAX_COLUMNS = 4
# What an axis of scores spans at least.
LEAST = 0.1
# Length in inches of a line in a legend, and how wide lines are.
HANDLE = 0.27
LINE = {"linewidth": 1.1}
# Sizes of ticks and grids in points, where a figure has none of its own.
TICKS: dict[str, Any] = {"length": 3.5, "width": 0.8, "pad": 3.5, "labelsize": 8.0, "grid_linewidth": 0.8}
# Marks the text of a figure without anything else.
NOTHING = "nothing-to-draw"
# Behind text, so that no grid line crosses it.
BEHIND = {"facecolor": look.SURFACE, "edgecolor": "none", "pad": 0.6}


def views(table: Table) -> list[Group]:
    """The protocols of a table in its order: the blocks of each put together under the first one's title and
    metric, bits ascending, methods in the order of its rows."""
    result = []
    for protocol in dict.fromkeys(group.protocol for group in table.groups):
        of = [group for group in table.groups if group.protocol == protocol]
        bits = sorted({bits for group in of for bits in group.bits})
        known = {method for group in of for method in group.methods}
        methods = tuple(method for method in table.rows if method in known)
        result.append(replace(of[0], bits=tuple(bits), methods=methods))
    return result


def mean_curve(runs: Iterable[Run], *names: str) -> dict[float, tuple[float, ...]]:
    """Curves of several runs averaged point by point: position in the curves -> the mean of each curve there.

    `names` are those of `Run.curves`. A run that is null at a position in any of them takes no part
    there, one without these curves nowhere; a position without any run is left out. Positions are 0, 1, ...,
    but where the first curve is "cuts" it says the positions.
    """
    found: dict[float, list[tuple]] = {}
    for run in runs:
        for index, values in enumerate(zip(*(run.curves.get(name) or [] for name in names))):
            values = tuple(map(number, values))
            if None not in values:
                found.setdefault(values[0] if names[0] == "cuts" else index, []).append(values)
    return {at: tuple(map(statistics.fmean, zip(*found[at]))) for at in sorted(found)}


def method_legend(table: Table, methods: Iterable[str]) -> list[tuple[str, list[tuple[str, dict]]]]:
    """Methods as a legend, in the order of the table's rows.

    (title of a family, [(name of a method, arguments of its Line2D)]) of each family.
    """
    wanted = set(methods)
    result: list[tuple[str, list]] = []
    for method in table.rows:
        if method in wanted:
            title = family_title(table.family(method))
            if not result or result[-1][0] != title:
                result.append((title, []))
            handle = {"gid": look.Mark(f"handle-{method}", method=method)} | method_style(table, method)
            result[-1][1].append((table.method_title(method), handle))
    return result


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Ticks of a logarithmic axis: powers of ten, fewer where they are many, 1-2-5 where they are few."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first >= 2:
        return [10.0**power for power in range(first, last + 1, 1 + (last - first) // most)]
    fine = [step * 10.0**power for power in range(first - 1, last + 1) for step in (1, 2, 5)]
    return [tick for tick in fine if low <= tick * (1 + 1e-9) and tick <= high * (1 + 1e-9)]


def room_for(ticks: Iterable[float]) -> float:
    """Width in inches of ticks of a y axis and their numbers."""
    return 0.10 + max((look.text_width(look.tick_text(tick), look.TICK_SIZE) for tick in ticks), default=0.0)


def score_axis(scores: Iterable[float]) -> tuple[tuple[float, float], list[float]]:
    """Limits and ticks of an axis for these scores, with some space on both sides.

    The axis spans at least LEAST, so that a panel of one score, or of nearly equal ones, does not magnify
    its last digits; it leaves 0 to 1, the bounds of most metrics, by that space at most.
    """
    scores = list(scores)
    low, high = min(scores), max(scores)
    if high - low < LEAST:
        bottom = min(max((low + high) / 2 - LEAST / 2, 0.0), 1.0 - LEAST)
        low, high = min(low, bottom), max(high, bottom + LEAST)
    margin = 0.06 * (high - low)
    return (low - margin, high + margin), look.ticks_between(low - margin, high + margin, 6)


def spread_out(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions at least `gap` apart and nearest to the wanted ones, given ascending, by least squares.

    They lie within [low, high] where that holds all of them. Isotonic regression (Barlow et al., 1972) of the
    positions less the gaps below them.
    """
    steps = gap * np.arange(len(wanted))
    flat = isotonic_regression(np.asarray(wanted, dtype=float) - steps).x
    top = max(low, high - gap * (len(flat) - 1))
    return (np.minimum(np.maximum(flat, low), top) + steps).tolist()


class NothingToDraw(ValueError):
    """The runs have nothing that a figure shows; the message says what is missing."""


def draw_scaled(draw: Callable, table: Table, results: Results, options) -> Figure:
    """What `draw(table, results, options)` gives, with text of `options.font_size` at `options.width`.

    A figure is laid out for text of 8 points. For another size it is laid out on a larger or smaller sheet
    and everything on it is scaled, lines and markers too.
    """
    factor = options.font_size / look.TEXT_SIZE
    width = None if options.width is None else options.width / factor
    if width is not None and width < WIDTHS[0]:
        raise ValueError(
            f"figure option width must be at least {WIDTHS[0] * factor:.3g} inches at a font_size of "
            f"{options.font_size:g}, not {options.width:g}"
        )
    figure = draw(table, results, replace(options, width=width, font_size=look.TEXT_SIZE))
    if not isinstance(figure, Figure):
        raise TypeError(f"{draw.__module__}.draw must return a matplotlib Figure, not {figure!r}")
    return figure if factor == 1 else scaled(figure, factor)


def scaled(figure: Figure, factor: float) -> Figure:
    """A figure made larger by `factor` with everything on it, in place; returns it."""
    with look.styled():
        figure.set_size_inches(*(factor * figure.get_size_inches()))
        in_ticks: set[Artist] = set()
        for axes in figure.axes:
            for axis in (axes.xaxis, axes.yaxis):
                sizes = TICKS | axis.get_tick_params()
                axis.set_tick_params(**{name: factor * sizes[name] for name in TICKS})
                axis.labelpad *= factor
                in_ticks.update(
                    artist for tick in axis.get_major_ticks() for artist in (tick, *tick.get_children())
                )
            # The distance of titles from their axes is kept in points, as a translation.
            offset = axes.titleOffsetTrans  # type: ignore[attr-defined]
            pad = 72 * offset.get_matrix()[1, 2] / figure.dpi
            for side in ("left", "center", "right"):
                if text := axes.get_title(loc=side):
                    texts = [child for child in axes.get_children() if isinstance(child, Text)]
                    old = [child for child in texts if child.get_text() == text][-1]
                    font: dict[str, Any] = {"size": old.get_fontsize(), "color": old.get_color()}
                    axes.set_title(text, loc=side, pad=factor * pad, weight=old.get_fontweight(), **font)
        for artist in figure.findobj():
            if artist in in_ticks:
                continue
            if isinstance(artist, Text):
                artist.set_fontsize(factor * float(artist.get_fontsize()))
                if isinstance(artist, Annotation) and artist.anncoords == "offset points":
                    x, y = artist.xyann
                    artist.xyann = factor * x, factor * y
            elif isinstance(artist, Line2D):
                artist.set_linewidth(factor * artist.get_linewidth())
                artist.set_markersize(factor * artist.get_markersize())
                artist.set_markeredgewidth(factor * artist.get_markeredgewidth())
            elif isinstance(artist, Patch):
                artist.set_linewidth(factor * artist.get_linewidth())
            elif isinstance(artist, Collection):
                artist.set_linewidth((factor * np.asarray(artist.get_linewidth())).tolist())
    return figure


def heading(options, title: str, lead: str = "") -> tuple[str, str]:
    """Title and subtitle of a figure as its options ask for them; "" for none. A note ends the subtitle."""
    if options.title in (False, "", "none"):
        return "", options.note
    return options.title or title, " ".join(filter(None, [lead, options.note]))


def message(text: str) -> Figure:
    """A figure that only says why there is nothing to draw; its text has the gid NOTHING."""
    with look.styled():
        lines = look.wrapped(text, look.COLUMN - 2 * look.MARGIN, look.TEXT_SIZE)
        height = 0.145 * len(lines) + 2 * look.MARGIN
        figure = look.blank(look.COLUMN, height)
        figure.text(
            look.MARGIN / look.COLUMN,
            1 - look.MARGIN / height,
            "\n".join(lines),
            size=look.TEXT_SIZE,
            va="top",
            color=look.MUTED,
            gid=NOTHING,
        )
    return figure
