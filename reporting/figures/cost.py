"""What a score costs: each metric of a table against seconds, or against the items that a lookup finds."""

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reporting.drawing.axes import (
    LABEL,
    LINE,
    NothingToDraw,
    heading,
    log_ticks,
    method_legend,
    room_for,
    score_axis,
)
from reporting.drawing.method_styles import method_style
from reporting.drawing.options import DEFAULT, Options
from reporting.drawing.sheets import Section, label_axes, sheet
from reporting.records.training_logs import number
from reporting.tables.model import Group, Table
from reporting.tables.runs import Results, Run
from reporting.tables.titles import metric_title
from tiebench import figure_style as look
from tiebench.messages import did_you_mean
from tiebench.metrics import resolve

TITLE = "Cost"
CAPTION = (
    "How to read it. A point is a method at one code length; a line joins the lengths of a method, and "
    "the large marker is its longest, with the number where it fits. Up is better, left is cheaper: "
    "the grey steps are the Pareto front, the best score within a number of seconds, without bounds and "
    "methods that see more than the training set. Seconds are those of fitting, at the left, and of "
    "encoding everything, at the right, on logarithmic axes; means over the seeds that have both a score "
    "and more than zero seconds. They are of the machines that the runs were made on, which are listed with "
    "the runs."
)

# Where a number may stand beside its point: right, left, above, below, and between these.
SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (0.9, 0.9), (-0.9, 0.9), (0.9, -0.9), (-0.9, -0.9))
# Inches below which two panels do not stand side by side.
NARROW = 4.5
SECONDS = {"fit": "seconds of training", "encode": "seconds of encoding"}
# Of the options besides them.
COSTS = SECONDS | {"search": "processor seconds of all trials", "bits": "bits of a code"}
# The cost of a search without a stop-watch, which is a metric: items within a Hamming radius.
CANDIDATES = "candidates_radius_"
Points = dict[str, dict[int, tuple[float, float]]]


def draw(table: Table, results: Results, options: Options = DEFAULT) -> Figure:
    """The metric of each block against seconds: two panels per block, training and encoding by default.

    Means over the seeds that have a score and a positive number of seconds of that part: a logarithmic axis
    has no place for others. `options.costs`, optional, are the costs to draw, of COSTS, or
    "candidates_radius_<R>", the mean number of items within Hamming distance R of a query. With one of them
    names stand beside the points, as far as they fit, and a legend has to stand elsewhere; with several they
    stand beside those of the front. Artists can be found by their gid:
    "line-fit-<protocol>-<metric>-<method>", "longest-fit-<protocol>-<metric>-<method>",
    "frontier-fit-<protocol>-<metric>", and likewise with the other costs.

    Raises NothingToDraw where no record has a score and seconds, ValueError for an unknown cost.
    """
    found = []
    named, wanted = len(options.costs) == 1, tuple(options.costs or SECONDS)
    for part in wanted:
        if part not in COSTS and not re.fullmatch(f"{CANDIDATES}[0-9]+", part):
            raise ValueError(f"there is no cost {part!r}{did_you_mean(part, [*COSTS, f'{CANDIDATES}2'])}")
    for group in table.groups:
        parts = {part: points_of(group, part, results) for part in wanted}
        scores = [score for points in parts.values() for of in points.values() for _, score in of.values()]
        if scores:
            found.append((group, parts, score_axis(scores)))
    if not found:
        raise NothingToDraw(
            f"table {table.name}: no run has a score and seconds, so there is no cost to draw"
        )
    drawn = {method for _, parts, _ in found for points in parts.values() for method in points}
    width = options.width or look.PAGE
    # Training and encoding stand one below the other on a narrow sheet.
    columns = min(2, len(wanted)) if width >= NARROW else 1
    rows = -(-len(wanted) // columns)
    with look.styled():
        figure, axes = sheet(
            *heading(
                options,
                TITLE if options.costs else "Score against the seconds of training and of encoding",
                "Lines join the code lengths of a method, the large marker is the longest. "
                "Grey: Pareto front.",
            ),
            [Section("" if named else group.title, len(wanted)) for group, *_ in found],
            width=width,
            columns=columns,
            left=LABEL + max(room_for(ticks) for _, _, (_, ticks) in found),
            body=2.2,
            between=0.25,
            above=0.08,
            below=0.22 if columns > 1 and rows == 1 else 0.42,
            legend=() if named else method_legend(table, drawn),
        )
        for (group, parts, scale), panels in zip(found, axes):
            for place, (part, panel) in enumerate(zip(wanted, panels)):
                texts = {m: table.method_title(m) for m in parts[part]} if options.costs else {}
                _panel(panel, table, group, part, parts[part], scale, texts, every=named)
                beside = place % columns > 0
                label_axes([panel], 1, _axis(part), "" if beside else look.metric_text(group.metric))
                if beside:
                    panel.set_yticklabels([])
    return figure


def points_of(group: Group, part: str, results: Results) -> Points:
    """Method -> bits, ascending -> (cost, score); without what has none."""
    result: Points = {}
    for method in group.methods:
        for bits in sorted(group.bits):
            pairs = []
            for run in results.cell(group.protocol, method, bits).values():
                score = run.score(group.metric)
                cost = _cost(run, part)
                if score is not None and cost is not None and cost > 0:
                    pairs.append((cost, score))
            if pairs:
                seconds, mean = map(statistics.fmean, zip(*pairs))
                result.setdefault(method, {})[bits] = seconds, mean
    return result


def _cost(run: Run, part: str) -> float | None:
    if part in SECONDS:
        return number(run.seconds_of(part))
    own = {"search": run.search_seconds, "bits": run.bits}
    return number(own[part] if part in own else run.metrics.get(part))


def _axis(part: str) -> str:
    return COSTS.get(part) or f"items within Hamming radius {part.removeprefix(CANDIDATES)}"


def front_of(table: Table, protocol: str, metric: str, points: Points) -> list[tuple[float, float]]:
    """The `frontier` of the methods that compete."""
    ranked = [method for method in points if table.competes(method, protocol)]
    every = (point for method in ranked for point in points[method].values())
    return frontier(every, resolve(metric)[0].higher_is_better)


def frontier(points: Iterable[tuple[float, float]], higher: bool = True) -> list[tuple[float, float]]:
    """The (seconds, score) that no other beats in one without losing in the other, by ascending seconds.

    higher: whether a higher score is better.
    """
    result: list[tuple[float, float]] = []
    sign = 1 if higher else -1
    for seconds, score in sorted(set(points), key=lambda point: (point[0], -sign * point[1])):
        if not result or sign * score > sign * result[-1][1]:
            result.append((seconds, score))
    return result


def _panel(
    axes: Axes,
    table: Table,
    group: Group,
    part: str,
    points: Points,
    scale: tuple,
    names: Mapping,
    every: bool,
) -> None:
    """every: whether all points have names, else, if there are names, those of the front."""
    name, protocol = f"{part}-{group.protocol}-{group.metric}", group.protocol
    said = f"bits;{_axis(part)};{metric_title(group.metric)}"
    axes.set_gid(look.Mark(f"panel-{name}", panel=group.title, names=said))
    limits, ticks = scale
    axes.set_ylim(*limits)
    found = [point for of in points.values() for point in of.values()]
    if not found:
        look.style_axes(axes, [], ticks)
        axes.text(0.5, 0.5, "no seconds", ha="center", color=look.MUTED, transform=axes.transAxes)
        return
    low, high = min(seconds for seconds, _ in found), max(seconds for seconds, _ in found)
    # A tenth of the axis at either side, and more than one number on it.
    aside = max((high / low) ** 0.08, 1.6)
    axes.set_xscale("log")
    axes.set_xlim(low / aside, high * aside)
    lengths = sorted({float(bits) for of in points.values() for bits in of})
    look.style_axes(axes, lengths if part == "bits" else log_ticks(low / aside, high * aside), ticks)
    best = front_of(table, protocol, group.metric, points)
    if best:
        axes.plot(
            [seconds for seconds, _ in best] + [high * aside],
            [score for _, score in best] + [best[-1][1]],
            drawstyle="steps-post",
            color=look.FRONT,
            linewidth=2.4,
            solid_capstyle="butt",
            zorder=1.5,
            gid=f"frontier-{name}",
        )
    for method, of in points.items():
        values = look.point_values((bits, *point) for bits, point in of.items())
        line = look.Mark(f"line-{name}-{method}", method=method, values=values)
        axes.plot(*zip(*of.values()), **LINE | method_style(table, method, 2.9), gid=line)
        seconds, score = of[max(of)]
        style = method_style(table, method, 4.6)
        longest = look.Mark(f"longest-{name}-{method}", method=method)
        axes.plot([seconds], [score], **style, zorder=2.2, gid=longest)
    # Where not all texts fit, the best of the cheapest come first, then the best.
    order = sorted(points, key=lambda method: points[method][max(points[method])][1], reverse=True)
    ranked = [method for method in points if table.competes(method, protocol)]
    on_front = {method for method in ranked if set(points[method].values()) & set(best)}
    order.sort(key=lambda method: method not in on_front)
    if names and not every:
        order = [method for method in order if method in on_front]
    _texts(axes, points, name, {m: names.get(m) or str(max(points[m])) for m in (order if names else points)})


def _texts(axes: Axes, points: Points, name: str, texts: Mapping[str, str]) -> None:
    """A text beside the longest code of each method, where it fits.

    The space must be free of markers, lines, the edge of the panel and of texts already there.
    """
    inch = axes.figure.dpi_scale_trans.inverted()
    to_inches = axes.transData + inch
    (low_x, low_y), (high_x, high_y) = (axes.transAxes + inch).transform([(0, 0), (1, 1)])
    places = {method: to_inches.transform(list(of.values())) for method, of in points.items()}
    # Left, bottom, right, top of each; a line as many small ones.
    taken = [(x - 0.03, y - 0.03, x + 0.03, y + 0.03) for place in places.values() for x, y in place]
    for place in places.values():
        for start, end in pairwise(place):
            steps = np.linspace(start, end, 2 + int(np.hypot(*(end - start)) / 0.02))
            taken += [(x, y, x, y) for x, y in steps.tolist()]
    for method, text in texts.items():
        of = points[method]
        bits = max(of)
        x, y = places[method][list(of).index(bits)]
        half_width, half_height = look.text_width(text, look.TICK_SIZE) / 2 + 0.01, 0.045
        for sideways, upwards in SIDES:
            middle_x, middle_y = x + sideways * (half_width + 0.05), y + upwards * (half_height + 0.05)
            box = (
                middle_x - half_width,
                middle_y - half_height,
                middle_x + half_width,
                middle_y + half_height,
            )
            inside = low_x <= box[0] and low_y <= box[1] and box[2] <= high_x and box[3] <= high_y
            if inside and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                axes.annotate(
                    text,
                    of[bits],
                    (72 * (middle_x - x), 72 * (middle_y - y)),
                    textcoords="offset points",
                    ha="center",
                    va="center_baseline",
                    size=look.TICK_SIZE,
                    color=look.INK,
                    gid=look.Mark(f"name-{name}-{method}", method=method),
                )
                break


def _overlap(one: Sequence[float], other: Sequence[float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
