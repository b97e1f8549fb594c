"""Each metric of a table against the code length: how much every further bit brings a method."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reporting.drawing.axes import LABEL, NothingToDraw, heading, room_for, score_axis
from reporting.drawing.options import DEFAULT, Options
from reporting.drawing.sheets import (
    PITCH,
    label_axes,
    line_of_seeds,
    names_beside,
    names_width,
    titled_panels,
)
from reporting.tables.model import Group, Table
from reporting.tables.runs import Results
from tiebench.figure_style import (
    COLUMN,
    PAGE,
    TEXT_SIZE,
    TICK_SIZE,
    Mark,
    metric_name,
    metric_text,
    style_axes,
    styled,
    text_width,
    wrapped,
)

TITLE = "Score by code length"
CAPTION = (
    "How to read it. A marker is the mean over seeds; where there are several, a thin upright line runs from "
    "the lowest seed to the highest. Code lengths stand at equal steps. Names stand in the order of the "
    "scores at the longest codes. Higher is better."
)
NEEDS = ()


def draw(table: Table, results: Results, options: Options = DEFAULT) -> Figure:
    """The metric of each block against bits: a panel per block, a line per method with its name at its end.

    Markers are means over the seeds that have a score, thin upright lines run from the lowest of these to
    the highest. Artists can be found by their gid: "line-<protocol>-<metric>-<method>" and likewise
    "range-..." (a LineCollection; of the bits with several seeds).

    Raises NothingToDraw where no record has a score.
    """
    found = [(group, scores) for group in table.groups if (scores := _scores(group, results))]
    if not found:
        raise NothingToDraw(f"table {table.name}: no run has a score, so there is no metric by bits to draw")
    names = [table.method_title(method) for _, scores in found for method in scores]
    scales = [
        score_axis(score for of in scores.values() for seeds in of.values() for score in seeds)
        for _, scores in found
    ]
    left = LABEL + max(room_for(ticks) for _, ticks in scales)
    right = names_width(names) + 0.10
    # Every code length has space for its number, and a slope is wide enough to be seen.
    least = max(
        1.4, *((text_width(str(bits), TICK_SIZE) + 0.06) * len(g.bits) for g, _ in found for bits in g.bits)
    )
    width = options.width or (COLUMN if len(found) == 1 and COLUMN - left - right >= least else PAGE)
    columns = 2 if len(found) > 1 and width / 2 - left - right >= least else 1
    panel = width / columns - left - right
    titles = [wrapped(group.title, panel + right, TEXT_SIZE) for group, _ in found]
    body = max(2.0, PITCH * (max(len(scores) for _, scores in found) + 0.5))
    with styled():
        figure, panels = titled_panels(
            *heading(options, "Score by code length", _lead(found)),
            titles,
            width=width,
            columns=columns,
            body=body,
            left=left,
            between=right + left,
            right=right,
            below=0.38,
        )
        for axes, (group, scores), scale in zip(panels, found, scales):
            _panel(axes, table, group, scores, scale, (panel, body))
    return figure


def _scores(group: Group, results: Results) -> dict[str, dict[int, list[float]]]:
    """Method -> bits, ascending -> scores of the seeds that have one; without what has none."""
    result: dict[str, dict[int, list[float]]] = {}
    for method in group.methods:
        for bits in sorted(group.bits):
            if scores := results.scores(group.protocol, group.metric, method, bits):
                result.setdefault(method, {})[bits] = list(scores.values())
    return result


def _lead(found: list) -> str:
    several = any(len(values) > 1 for _, scores in found for of in scores.values() for values in of.values())
    return "Mean over seeds; thin upright lines: lowest to highest seed." if several else "One seed."


def _panel(
    axes: Axes, table: Table, group: Group, scores: Mapping, scale: tuple, size: tuple[float, float]
) -> None:
    lengths = sorted(group.bits)
    (low, high), ticks = scale
    first, last = -0.35, len(lengths) - 0.65
    axes.set_xlim(first, last)
    axes.set_ylim(low, high)
    style_axes(axes, range(len(lengths)), ticks)
    axes.set_xticklabels([str(bits) for bits in lengths])
    axes.grid(visible=False, axis="x")
    label_axes([axes], 1, "bits", metric_text(group.metric))
    panel = f"{group.protocol}-{group.metric}"
    names = f"bits;{metric_name(group.metric)};lowest seed;highest seed"
    axes.set_gid(Mark(f"panel-{panel}", panel=group.title, names=names))
    ends = []
    for method, of in scores.items():
        x, y = line_of_seeds(axes, table, panel, method, [lengths.index(bits) for bits in of], of)
        end = ((x - first) / (last - first), (y - low) / (high - low))
        ends.append((end, method, lengths[-1] in of))
    names_beside(axes, table, ends, size, panel)
