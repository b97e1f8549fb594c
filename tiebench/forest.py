"""The figure of `tiebench compare`: a difference with its interval for each method. Imports matplotlib."""

import math
from pathlib import Path

from matplotlib.figure import Figure

from tiebench import metrics
from tiebench.comparison import Comparison, Line, base_metric
from tiebench.figure_style import (
    INK,
    MUTED,
    SURFACE,
    TEXT_SIZE,
    TICK_SIZE,
    TITLE_SIZE,
    blank,
    save,
    shortened,
    style_rows,
    styled,
    text_width,
    tick_text,
    ticks_between,
    wrapped,
)
from tiebench.paired import HIGHER, LEVEL, LOWER, OPEN, TOO_FEW

# Of Okabe and Ito, as in other figures.
COLOURS = {HIGHER: "#0072B2", LOWER: "#D55E00", OPEN: MUTED, TOO_FEW: MUTED}
# By what an interval is over, the first filled.
MARKERS = {"queries and runs": "o", "queries": "^", "runs": "s", "": "D"}
# All in inches.
WIDTH, EDGE, ROW, NAMES = 6.0, 0.08, 0.2, 1.9
LINE, GAP = 0.16, 0.08


def draw(found: Comparison, path: str | Path, name: str) -> None:
    """Draw a comparison to a .png, .pdf or .svg file, see `forest`.

    name: what the codes are called. Raises ValueError where there is nothing to draw, OSError where the file
    cannot be written.
    """
    if not found.lines:
        raise ValueError(f"{path}: {found.protocol} has no {found.metric} of {found.bits} bits to draw")
    save(forest(found, name), path)


def forest(found: Comparison, name: str) -> Figure:
    """One row per method of a comparison that has some, the best score first.

    A row has the artists "interval-<method>", unless it has none, and "difference-<method>" (as their gid).
    """
    with styled():
        return _figure(found, name)


def _figure(found, name):
    label = metrics.label(base_metric(found.metric))[0]
    title = f"{name} beside the methods of {found.title}, {found.bits} bits"
    lead = f"{label} {found.score:.3f}, rank {found.rank} of {found.competitors + 1}. "
    lead += f"Verdicts at level {LEVEL}, {found.comparisons} comparisons (Holm)."
    heads = [(line, TITLE_SIZE, "bold") for line in wrapped(title, WIDTH - 2 * EDGE, TITLE_SIZE, "bold")]
    heads += [(line, TEXT_SIZE, "normal") for line in wrapped(lead, WIDTH - 2 * EDGE, TEXT_SIZE)]
    words = [_words(line) for line in found.lines]
    left = EDGE + min(NAMES, max(text_width(line.title, TEXT_SIZE) for line in found.lines)) + 0.1
    right = EDGE + max(text_width(word, TICK_SIZE) for word in words) + 0.1
    head, foot = EDGE + LINE * len(heads) + GAP, 0.4
    body = ROW * len(found.lines)
    height = head + body + foot + LINE
    figure = blank(WIDTH, height)
    for place, (line, size, weight) in enumerate(heads):
        top = 1 - (EDGE + LINE * place) / height
        figure.text(EDGE / WIDTH, top, line, size=size, weight=weight, va="top", color=INK)
    axes = figure.add_axes(
        (left / WIDTH, (foot + LINE) / height, (WIDTH - left - right) / WIDTH, body / height)
    )
    _rows(axes, found, words)
    figure.text(
        (left + (WIDTH - left - right) / 2) / WIDTH,
        (LINE + 0.06) / height,
        f"difference in {label}: yours minus theirs",
        ha="center",
        va="bottom",
        color=INK,
    )
    _legend(figure, found, height)
    return figure


def _words(line: Line) -> str:
    """What stands beside a row."""
    return f"{line.difference:+.3f}  {line.verdict}".replace("-", "−")


def _rows(axes, found, words):
    ends = [0.0]
    for line in found.lines:
        ends += [end for end in (line.difference, line.low, line.high) if not math.isnan(end)]
    margin = 0.04 * (max(ends) - min(ends) or 0.02)
    low, high = min(ends) - margin, max(ends) + margin
    axes.set_xlim(low, high)
    ticks = ticks_between(low, high, 6)
    style_rows(axes, ticks, [tick_text(tick) for tick in ticks], len(found.lines), TICK_SIZE)
    axes.set_yticklabels([shortened(line.title, NAMES, TEXT_SIZE) for line in found.lines])
    axes.axvline(0.0, color=INK, linewidth=0.8)
    beside = axes.get_yaxis_transform()
    for row, (line, word) in enumerate(zip(found.lines, words)):
        colour = COLOURS[line.verdict]
        if line.over:
            axes.plot(
                [line.low, line.high], [row, row], color=colour, linewidth=1.6, gid=f"interval-{line.method}"
            )
        axes.plot(
            [line.difference],
            [row],
            **_marker(line.over, colour),
            clip_on=False,
            gid=f"difference-{line.method}",
        )
        axes.text(1.02, row, word, size=TICK_SIZE, va="center", color=INK, transform=beside)


def _marker(over, colour):
    filled = over == next(iter(MARKERS))
    return {
        "marker": MARKERS[over],
        "markersize": 4.6,
        "linestyle": "none",
        "color": colour,
        "markerfacecolor": colour if filled else SURFACE,
        "markeredgecolor": colour,
        "markeredgewidth": 1.0,
    }


def _legend(figure, found, height):
    """What the marks mean, of each kind that stands in the figure."""
    kinds = [over for over in MARKERS if any(line.over == over for line in found.lines)]
    axes = figure.add_axes((0, 0, 1, (LINE + 0.04) / height))
    axes.set_axis_off()
    axes.set_xlim(0, WIDTH)
    axes.set_ylim(0, LINE + 0.04)
    place = EDGE + 0.06
    for over in kinds:
        axes.plot([place], [LINE / 2 + 0.02], **_marker(over, MUTED))
        words = f"interval over {over} (95%)" if over else "no interval"
        axes.text(place + 0.08, LINE / 2 + 0.02, words, size=TICK_SIZE, va="center", color=INK)
        place += 0.08 + text_width(words, TICK_SIZE) + 0.2
