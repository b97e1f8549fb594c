"""How far the order of tied items moves a score, as mAP in Figure 4 of He et al., CVPR 2018."""

from collections.abc import Iterable, Mapping

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from reporting.drawing.axes import BEHIND, NothingToDraw, heading
from reporting.drawing.method_styles import colour
from reporting.drawing.options import DEFAULT, Options
from reporting.drawing.sheets import row_titles
from reporting.figures import has_range
from reporting.tables.model import Group, Table
from reporting.tables.runs import Results
from reporting.tables.titles import EN_DASH, metric_title
from tiebench import figure_style as look
from tiebench.metrics import label

TITLE = "What ties can do to a score"
CAPTION = (
    "How to read it. Items at one Hamming distance from a query are tied, and a ranking may "
    "list them in any order. A bar runs from the mean score, as of AP (mAP), of the worst of these orders to "
    "that of the best: bounds of what a program reports that breaks ties its own way. The dot, with its "
    "value beside it, is the tie-aware score, as AP_T: the exact mean over all orders, near which random "
    "orders of a large database stay."
)
REQUIRES = {"ranges": True}

# All in inches.
WIDTH = 7.0
PANEL = 1.2  # at least
ROW = 0.215
GAP = 0.14
EDGE = 0.08
VALUE = 0.40
APART = 0.05  # labels of ticks, at least
MAX_PANELS = 4


def draw(table: Table, results: Results, options: Options = DEFAULT) -> Figure:
    """How far the order of tied items moves a score, as mAP in Figure 4 of He et al., CVPR 2018.

    For each block of the table whose metric has a range a row of panels, one per bits (at most four side by
    side), with one x axis. In a panel one bar per method, from the mean over seeds of <metric>_min (every tie
    broken in the worst order) to that of <metric>_max (in the best), and a dot at the mean of the metric
    itself, its value beside it. Seeds without all three scores are left out; a method without any says "no
    scores".

    Artists can be found by their gid: "bar-<protocol>-<bits>-<method>" and likewise "dot-..." for "ap", with
    "<protocol>-<metric>" for other metrics.

    Raises NothingToDraw when no block has a metric with a range.
    """
    wanted = [group for group in table.groups if has_range(group.metric)]
    if not wanted:
        raise NothingToDraw(
            f"table {table.name}: no block has a metric with a range, so there are no tie ranges to draw"
        )
    with look.styled():
        return _draw(table, wanted, results, options)


def _mean_name(metric: str) -> str:
    """What the mean over queries in one order of ties is called: "mAP", "mAP@1000", "NDCG"."""
    name = label(metric)[0]
    return f"m{name}" if name.startswith("AP") else name


def _draw(table: Table, wanted: list[Group], results: Results, options: Options) -> Figure:
    page = options.width or WIDTH
    titles, widest = row_titles(table, (method for group in wanted for method in group.methods), page)
    left = EDGE + widest + 0.10
    most = max(1, min(MAX_PANELS, int((page - left - EDGE + GAP) // (PANEL + GAP))))
    lines = [
        (group, group.bits[start : start + most])
        for group in wanted
        for start in range(0, len(group.bits), most)
    ]
    # Titles of the blocks get lines of their own where there are several, or one too long for the first line.
    many = len({(group.protocol, group.metric) for group in wanted}) > 1 or len(wanted[0].title) > 24
    of = dict.fromkeys(group.metric for group in wanted)
    means, exact = ("scores", "scores") if len(of) > 1 else (_mean_name(*of), metric_title(*of))
    title, lead = heading(
        options,
        f"How far the order of tied items alone can move {means}"
        + ("" if many else f" {EN_DASH} {wanted[0].title}"),
        f"Bar: from the worst order to the best.  Dot and number: their exact mean, tie-aware {exact}.",
    )
    texts = [(line, 10.5, "bold", 0.21) for line in look.wrapped(title, page - 2 * EDGE, 10.5, "bold")]
    texts += [(line, 8.0, "normal", 0.16) for line in look.wrapped(lead, page - 2 * EDGE, 8)]
    head, title_height, ticks, foot = 0.06, 0.44 if many else 0.22, 0.27, 0.25
    head += sum(step for *_, step in texts) + (0.07 if texts else 0)
    height = head + foot + sum(title_height + ROW * len(group.methods) + ticks for group, _ in lines)
    figure = look.blank(page, height)
    top = 0.06
    for line, size, weight, step in texts:
        figure.text(EDGE / page, 1 - top / height, line, size=size, weight=weight, va="top", color=look.INK)
        top += step
    top = head
    for group, shown in lines:
        if many:
            figure.text(
                EDGE / page,
                1 - (top + 0.07) / height,
                f"{group.title}, {metric_title(group.metric)}" if len(of) > 1 else group.title,
                size=9,
                weight="bold",
                va="top",
                color=look.INK,
            )
        columns = min(most, len(group.bits))
        width = (page - left - EDGE - GAP * (columns - 1)) / columns
        ranges = {(m, b): results.mean_range(*group.cell(m, b)) for m in group.methods for b in group.bits}
        limits, tick_values = _axis(ranges.values(), width)
        body = ROW * len(group.methods)
        for index, bits in enumerate(shown):
            axes = figure.add_axes(
                (
                    (left + index * (width + GAP)) / page,
                    1 - (top + title_height + body) / height,
                    width / page,
                    body / height,
                )
            )
            _panel(axes, table, group, bits, ranges, limits, tick_values, {} if index else titles)
        top += title_height + body + ticks
    words = f"{means} over all orders of tied items (● tie-aware {exact})"
    # Below the panels, but within the page where they are narrower than the label.
    half = look.text_width(words, 8) / 2
    middle = min(left + (page - EDGE - left) / 2, page - EDGE - half)
    figure.text(
        max(middle, half + EDGE) / page, 0.06 / height, words, ha="center", va="bottom", color=look.INK
    )
    return figure


def _axis(ranges: Iterable[tuple | None], width: float) -> tuple[tuple[float, float], list[float]]:
    """Limits and ticks of scores for panels `width` inches wide, with space at the right for a value."""
    known = [entry for entry in ranges if entry is not None]
    low = min((entry[0] for entry in known), default=0.0)
    high = max((entry[2] for entry in known), default=1.0)
    span = max(high - low, 0.02)
    low = max(0.0, low - 0.05 * span)
    scale = (high - low or 0.02) / (width - VALUE)
    limits = (low, low + scale * width)
    for most, least in ((3, 2), (2, 1), (1, 1)):  # intervals and ticks, so that their labels stand apart
        places = MaxNLocator(most, steps=[1, 2, 5, 10], min_n_ticks=least).tick_values(low, high)
        ticks = [float(tick) for tick in places if low <= tick <= min(max(1.0, high), limits[1])]
        widest = max((look.text_width(text, look.TEXT_SIZE) for text in _tick_labels(ticks)), default=0.0)
        if places[1] - places[0] >= scale * (widest + APART):
            break
    return limits, ticks


def _tick_labels(ticks: list[float]) -> list[str]:
    """Ticks with the decimals that the finest of them needs."""
    decimals = max((len(f"{tick:.4g}".partition(".")[2]) for tick in ticks), default=0)
    return [f"{tick:.{decimals}f}" for tick in ticks]


def _panel(
    axes, table: Table, group: Group, bits: int, ranges: Mapping, limits, tick_values, titles: Mapping
) -> None:
    axes.set_xlim(*limits)
    look.style_rows(axes, tick_values, _tick_labels(tick_values), len(group.methods), look.TEXT_SIZE)
    axes.set_yticklabels([titles[method] for method in group.methods] if titles else [])
    axes.set_title(f"{bits} bits", size=8.5, pad=3, loc="left", color=look.INK)
    block = group.protocol if group.metric == "ap" else f"{group.protocol}-{group.metric}"
    panel = f"{block}-{bits}"
    names = f"{metric_title(group.metric)};{_mean_name(group.metric)} in the worst order;in the best order"
    axes.set_gid(look.Mark(f"panel-{panel}", bits=bits, panel=f"{group.title}, {bits} bits", names=names))
    for row, (method, tick) in enumerate(zip(group.methods, axes.get_yticklabels())):
        tick.set_gid(look.Mark(f"name-{panel}-{method}", method=method))
        entry = ranges[method, bits]
        value = look.Mark(f"value-{panel}-{method}", method=method)
        if entry is None:
            axes.annotate(
                f"{EN_DASH} no scores",
                (limits[0], row),
                (2, 0),
                textcoords="offset points",
                va="center",
                color=look.MUTED,
                bbox=BEHIND,
                gid=value,
            )
            continue
        low, middle, high = entry
        name = f"{panel}-{method}"
        (bar,) = axes.barh(row, high - low, left=low, height=0.62, color=colour(table, method), linewidth=0)
        bar.set_gid(look.Mark(f"bar-{name}", method=method))
        axes.plot(
            [middle],
            [row],
            marker="o",
            color=look.INK,
            markersize=3.8,
            markerfacecolor=look.INK,
            markeredgecolor=look.SURFACE,
            markeredgewidth=0.7,
            linestyle="none",
            clip_on=False,
            gid=look.Mark(f"dot-{name}", method=method, values=look.point_values([(middle, low, high)])),
        )
        axes.annotate(
            f"{middle:.3f}",
            (high, row),
            (4, 0),
            textcoords="offset points",
            va="center",
            size=7.5,
            color=look.INK,
            bbox=BEHIND,
            gid=value,
        )
