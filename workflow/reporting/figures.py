"""Figures of a table, drawn on Figure objects: no pyplot, no state, the same bytes from the same scores."""

import colorsys
import hashlib
import io
import os
import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path

import matplotlib
import matplotlib.style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath
from matplotlib.ticker import MaxNLocator

from workflow.reporting.names import method_name
from workflow.reporting.tables import EN_DASH, Group, by_cell, groups, score_of

# The eight colours of Okabe and Ito, but for black, which is the dots', and then those of Paul Tol's muted
# scheme: told apart with every common kind of colour blindness as far as so many can be.
COLOURS = {
    "talr_ap": "#D55E00",
    "talr_ndcg": "#E69F00",
    "mihash": "#0072B2",
    "hashnet": "#56B4E9",
    "dtsh": "#009E73",
    "dpsh": "#CC79A7",
    "itq": "#F0E442",
    "structhash": "#332288",
    "fasthash": "#44AA99",
    "machash": "#999933",
    "bre": "#882255",
    "lsh": "#999999",
    "talr_ap_continuation": "#CC6677",
}
STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
    "font.size": 8.0,
    "axes.linewidth": 0.6,
    "text.parse_math": False,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "tiebench",
}
INK = "#000000"
QUIET = "#767676"
GRID = "#D0D0D0"
SURFACE = "#FFFFFF"
# Behind text, so that no grid line crosses it.
BEHIND = {"facecolor": SURFACE, "edgecolor": "none", "pad": 0.6}

# All in inches.
WIDTH = 7.0
ROW = 0.215
GAP = 0.14
EDGE = 0.08
VALUE = 0.40
MAX_PANELS = 4


def colour(method: str) -> str:
    """The colour of a method, "#RRGGBB", the same in every figure; an unknown one's comes from its name."""
    if method in COLOURS:
        return COLOURS[method]
    number = int.from_bytes(hashlib.sha256(method.encode()).digest()[:4], "big")
    red, green, blue = colorsys.hls_to_rgb(number / 2**32, 0.50, 0.45)
    return f"#{round(red * 255):02X}{round(green * 255):02X}{round(blue * 255):02X}"


def tie_ranges(table: Mapping, records: Iterable[Mapping]) -> Figure:
    """How far the order of tied items moves mAP: Figure 4 of He et al., CVPR 2018.

    For each block of the table whose metric is "ap" a row of panels, one per bits (at most four side by
    side), with one x axis: mAP. In a panel one bar per method, from the mean over seeds of ap_min (every tie
    broken in the worst order) to that of ap_max (in the best), and a dot at the mean of ap (AP_T), its value
    beside it. Seeds without all three scores are left out; a method without any says "no scores".

    Artists can be found by their gid: "bar-<protocol>-<bits>-<method>" and likewise "dot-...".

    Raises ValueError when no block has the metric "ap".
    """
    wanted = [group for group in groups(table) if group.metric == "ap"]
    if not wanted:
        raise ValueError(
            f"table {table['name']}: no block has the metric 'ap', so there are no tie ranges to draw"
        )
    runs = by_cell(table, records)
    with matplotlib.style.context(["default", STYLE]):
        return _draw(table, wanted, runs)


def _range(runs: Mapping, protocol: str, method: str, bits: int) -> tuple[float, float, float] | None:
    """Means over seeds of (ap_min, ap, ap_max), or None where no seed has all three."""
    triples = []
    for record in runs.get((protocol, method, bits), {}).values():
        scores = [score_of(record, name)[0] for name in ("ap_min", "ap", "ap_max")]
        if None not in scores:
            triples.append(scores)
    if not triples:
        return None
    low, middle, high = (statistics.mean(column) for column in zip(*triples, strict=True))
    return low, middle, high


def _text_width(text: str, size: float, weight: str = "normal") -> float:
    """Width of text in inches, from the outlines of the font that matplotlib brings along."""
    font = FontProperties(family="DejaVu Sans", size=size, weight=weight)
    return TextPath((0, 0), text, prop=font).get_extents().width / 72 if text.strip() else 0.0


def _draw(table: Mapping, wanted: list[Group], runs: Mapping) -> Figure:
    names = [method_name(method) for group in wanted for method in group.methods]
    left = EDGE + max(_text_width(name, 8) for name in names) + 0.10
    lines = [
        (group, group.bits[start : start + MAX_PANELS])
        for group in wanted
        for start in range(0, len(group.bits), MAX_PANELS)
    ]
    # Titles of the blocks get lines of their own where there are several, or one too long for the first line.
    many = len({group.protocol for group in wanted}) > 1 or len(wanted[0].title) > 24
    head, title_height, ticks, foot = 0.50, 0.44 if many else 0.22, 0.27, 0.25
    height = head + foot + sum(title_height + ROW * len(group.methods) + ticks for group, _ in lines)
    figure = Figure(figsize=(WIDTH, height), facecolor=SURFACE)
    FigureCanvasAgg(figure)
    figure.text(
        EDGE / WIDTH,
        1 - 0.06 / height,
        "How far the order of tied items alone can move mAP"
        + ("" if many else f" {EN_DASH} {wanted[0].title}"),
        size=10.5,
        weight="bold",
        va="top",
        color=INK,
    )
    figure.text(
        EDGE / WIDTH,
        1 - 0.27 / height,
        "Bar: from the worst order to the best.  Dot and number: their exact mean, tie-aware AP_T.",
        va="top",
        color=INK,
    )
    top = head
    for group, shown in lines:
        if many:
            figure.text(
                EDGE / WIDTH,
                1 - (top + 0.07) / height,
                group.title,
                size=9,
                weight="bold",
                va="top",
                color=INK,
            )
        columns = min(MAX_PANELS, len(group.bits))
        width = (WIDTH - left - EDGE - GAP * (columns - 1)) / columns
        ranges = {(m, b): _range(runs, group.protocol, m, b) for m in group.methods for b in group.bits}
        limits, tick_values = _axis(ranges.values(), width)
        body = ROW * len(group.methods)
        for index, bits in enumerate(shown):
            axes = figure.add_axes(
                (
                    (left + index * (width + GAP)) / WIDTH,
                    1 - (top + title_height + body) / height,
                    width / WIDTH,
                    body / height,
                )
            )
            _panel(axes, group, bits, ranges, limits, tick_values, index == 0)
        top += title_height + body + ticks
    figure.text(
        (left + (WIDTH - EDGE - left) / 2) / WIDTH,
        0.06 / height,
        "mAP over all orders of tied items (● tie-aware AP_T)",
        ha="center",
        va="bottom",
        color=INK,
    )
    return figure


def _axis(ranges: Iterable[tuple | None], width: float) -> tuple[tuple[float, float], list[float]]:
    """Limits and ticks of mAP for panels `width` inches wide, with room at the right for a value."""
    known = [entry for entry in ranges if entry is not None]
    low = min((entry[0] for entry in known), default=0.0)
    high = max((entry[2] for entry in known), default=1.0)
    span = max(high - low, 0.02)
    low, high = max(0.0, low - 0.05 * span), high
    ticks = MaxNLocator(nbins=3, steps=[1, 2, 5, 10]).tick_values(low, high)
    scale = (high - low or 0.02) / (width - VALUE)
    limits = (low, low + scale * width)
    return limits, [float(tick) for tick in ticks if low <= tick <= min(1.0, limits[1])]


def _tick_labels(ticks: list[float]) -> list[str]:
    """Ticks with the decimals that the finest of them needs."""
    decimals = max((len(f"{tick:.4g}".partition(".")[2]) for tick in ticks), default=0)
    return [f"{tick:.{decimals}f}" for tick in ticks]


def _panel(axes, group: Group, bits: int, ranges: Mapping, limits, tick_values, labelled: bool) -> None:
    axes.set_facecolor("none")
    axes.set_xlim(*limits)
    axes.set_ylim(len(group.methods) - 0.5, -0.5)
    axes.set_xticks(tick_values, _tick_labels(tick_values))
    axes.tick_params(axis="x", length=2.5, width=0.6, pad=2, colors=INK)
    axes.set_yticks(range(len(group.methods)))
    axes.set_yticklabels([method_name(method) for method in group.methods] if labelled else [])
    axes.tick_params(axis="y", length=0, pad=4, colors=INK)
    axes.grid(axis="x", color=GRID, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(INK)
    axes.set_title(f"{bits} bits", size=8.5, pad=3, loc="left", color=INK)
    for row, method in enumerate(group.methods):
        entry = ranges[method, bits]
        if entry is None:
            axes.annotate(
                f"{EN_DASH} no scores",
                (limits[0], row),
                (2, 0),
                textcoords="offset points",
                va="center",
                color=QUIET,
                bbox=BEHIND,
            )
            continue
        low, middle, high = entry
        name = f"{group.protocol}-{bits}-{method}"
        (bar,) = axes.barh(row, high - low, left=low, height=0.62, color=colour(method), linewidth=0)
        bar.set_gid(f"bar-{name}")
        axes.plot(
            [middle],
            [row],
            marker="o",
            markersize=3.8,
            markerfacecolor=INK,
            markeredgecolor=SURFACE,
            markeredgewidth=0.7,
            linestyle="none",
            clip_on=False,
            gid=f"dot-{name}",
        )
        axes.annotate(
            f"{middle:.3f}",
            (high, row),
            (4, 0),
            textcoords="offset points",
            va="center",
            size=7.5,
            color=INK,
            bbox=BEHIND,
        )


def render(figure: Figure, kind: str) -> bytes:
    """A figure as the bytes of a "pdf", "svg" or "png" (200 dots per inch), without dates or versions.

    Raises ValueError for any other kind.
    """
    metadata = {
        "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
        "svg": {"Date": None, "Creator": None},
        "png": {"Software": None},
    }
    if kind not in metadata:
        raise ValueError(f"a figure can be written as .pdf, .svg or .png, not .{kind}")
    buffer = io.BytesIO()
    with matplotlib.style.context(["default", STYLE]):
        figure.savefig(buffer, format=kind, dpi=200 if kind == "png" else 72, metadata=metadata[kind])
    return buffer.getvalue()


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure to a .pdf, .svg or .png file, whole or not at all.

    Raises ValueError for another ending, OSError where the file cannot be written.
    """
    path = Path(path)
    content = render(figure, path.suffix.removeprefix(".").lower())
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
