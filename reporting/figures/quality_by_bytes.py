"""Each metric of a table against the bytes of a code, with its range over tie orders and the floats' line."""

import math
import statistics
from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reporting.drawing.axes import LINE, NothingToDraw, heading, method_legend, score_axis
from reporting.drawing.method_styles import colour, method_style
from reporting.drawing.options import DEFAULT, Options
from reporting.drawing.sheets import Section, label_axes, sheet_width, titled_panels
from reporting.records.training_logs import number
from reporting.tables.model import Group, Table
from reporting.tables.runs import Results
from reporting.tables.titles import metric_title
from tiebench import figure_style as look
from tiebench.metrics import ranking_of

TITLE = "Quality by bytes"
CAPTION = (
    "How to read it. A line is the exact mean over all orders of tied items, averaged over queries and "
    "seeds, against the bytes that an item takes: its code, and what an estimate needs beside it. The band "
    "around it runs from the worst to the best order of ties: a measurement that breaks ties arbitrarily may "
    "fall anywhere in it. The dashed line is the ranking by the features themselves, as float32. Higher is "
    "better."
)
REQUIRES = {"metrics": ["ndcg@10", "recall@100"]}


def draw(table: Table, results: Results, options: Options = DEFAULT) -> Figure:
    """The metric of each block against bytes on a logarithmic axis: a panel per block, a line per method.

    Artists can be found by their gid: "line-<protocol>-<metric>-<method>", likewise "band-...", and
    "floats-<protocol>-<metric>".

    Raises NothingToDraw where no record has a score.
    """
    found = [(group, curves) for group in table.groups if (curves := _curves(group, results))]
    if not found:
        raise NothingToDraw(f"table {table.name}: no run has a score, so there is no quality to draw")
    width, columns = sheet_width([Section("", len(found))], options.width)
    columns = min(columns, 2)
    gap, left, right = 0.62, 0.55, 0.12
    panel = (width - left - right - gap * (columns - 1)) / columns
    titles = [look.wrapped(group.title, panel, look.TEXT_SIZE) for group, _ in found]
    drawn = {method for _, curves in found for method in curves}
    lead = "Bands: from the worst to the best order of tied items. Means over queries and seeds."
    with look.styled():
        figure, panels = titled_panels(
            *heading(options, "Quality by bytes", lead),
            titles,
            width=width,
            columns=columns,
            body=2.1,
            left=left,
            between=gap,
            right=right,
            below=0.38,
            legend=method_legend(table, drawn),
        )
        for axes, (group, curves) in zip(panels, found):
            _panel(axes, table, results, group, curves)
    return figure


def _curves(group: Group, results: Results) -> dict[str, dict[int, tuple[float, ...]]]:
    """Method -> bits, ascending -> bytes of an item, and the exact mean, the worst and the best order, means
    over the seeds with a score; without what has none."""
    ranking, _ = ranking_of(group.metric)
    estimated = ranking is not None and ranking.kind.startswith("estimated")
    result: dict[str, dict[int, tuple[float, ...]]] = {}
    for method in group.methods:
        for bits in sorted(group.bits):
            values = []
            for run in results.cell(group.protocol, method, bits).values():
                score = run.score(group.metric)
                size = run.metrics.get("estimated_bytes") if estimated else bits / 8
                if score is not None and size is not None:
                    ends = [number(run.metrics.get(f"{group.metric}_{end}")) for end in ("min", "max")]
                    values.append([size, score] + [score if end is None else end for end in ends])
            if values:
                result.setdefault(method, {})[bits] = tuple(map(statistics.fmean, zip(*values)))
    return result


def _panel(axes: Axes, table: Table, results: Results, group: Group, curves: Mapping) -> None:
    # The floats have one ranking: other rankings of codes are compared with it too.
    _, metric = ranking_of(group.metric)
    level = results.uncoded.get(group.protocol, {}).get(metric)
    points = [point for of in curves.values() for point in of.values()]
    values = [value for point in points for value in point[1:]]
    (low, high), ticks = score_axis([*values, *([] if level is None else [level])])
    sizes = sorted({point[0] for point in points})
    axes.set_xscale("log")
    first, last = sizes[0], sizes[-1]
    space = math.sqrt(max(last / first, 2)) ** 0.15
    axes.set_xlim(first / space, last * space)
    axes.set_ylim(low, high)
    look.style_axes(axes, sizes, ticks)
    axes.set_xticklabels([look.tick_text(size) for size in sizes])
    axes.grid(visible=False, axis="x")
    label_axes([axes], 1, "bytes of an item", look.metric_text(group.metric))
    said = f"bits;{metric_title(group.metric)};worst order;best order"
    axes.set_gid(look.Mark(f"panel-{group.protocol}-{group.metric}", panel=group.title, names=said))
    if level is not None:
        name = f"floats-{group.protocol}-{group.metric}"
        axes.axhline(level, color=look.INK, linewidth=0.8, linestyle=(0, (4, 2)), zorder=1.5, gid=name)
        axes.annotate(
            f"floats: {level:.3f}",
            (0.01, level),
            xycoords=("axes fraction", "data"),
            xytext=(0, -2),
            textcoords="offset points",
            va="top",
            size=look.TICK_SIZE,
            color=look.MUTED,
        )
    for method, of in curves.items():
        name = f"{group.protocol}-{group.metric}-{method}"
        x, mean, worst, best = zip(*of.values())
        shade = colour(table, method)
        band = look.Mark(f"band-{name}", method=method)
        axes.fill_between(x, worst, best, color=shade, alpha=0.16, linewidth=0, gid=band)
        said = look.point_values((bits, *point[1:]) for bits, point in of.items())
        line = look.Mark(f"line-{name}", method=method, values=said)
        axes.plot(x, mean, **LINE | method_style(table, method, 3.8), gid=line)
