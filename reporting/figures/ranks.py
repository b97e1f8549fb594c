"""Methods over several tables: their mean ranks and interquartile means, with intervals."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reporting.drawing.axes import NothingToDraw, heading
from reporting.drawing.method_styles import method_style
from reporting.drawing.options import DEFAULT, Options
from reporting.drawing.sheets import Section, label_rows, row_titles, sheet, sheet_width
from reporting.statistics.summary import blocks_of, resampled, standing
from reporting.tables.model import Table
from reporting.tables.runs import Results
from tiebench import figure_style as look

TITLE = "Mean ranks over tables"
CAPTION = (
    "How to read it. Each row is a method that has scores in every column of every table. Left: its mean "
    "rank, 1 the best, and grey ticks, its rank in each table. Right: the interquartile mean of its "
    "normalised scores; 0 is the lowest mean of a method in a column, 1 the highest. Lines are 95% intervals "
    "over tables, queries and runs that are drawn anew. Intervals that overlap do not say that two methods "
    "are equal."
)
NEEDS = ("per_query",)
REQUIRES = {"protocols": 3, "methods": 2}

ROW, BETWEEN = 0.15, 0.2  # inches
TICK: dict[str, Any] = {"marker": "|", "markersize": 5.0, "color": look.MUTED, "markeredgewidth": 0.7}


def draw(table: Table, results: Results, options: Options = DEFAULT) -> Figure:
    """Two panels with a row per method; artists have the gids "rank-<method>", "iqm-<method>", with the
    intervals "interval-rank-<method>" and so on, and "table-<block>-<method>".

    Raises NothingToDraw where fewer than two methods have scores everywhere.
    """
    blocks = blocks_of(table, results)
    if len(blocks) < 2 or len(blocks.everywhere().methods) < 2:
        raise NothingToDraw(f"table {table.name}: no run has scores of two methods in all columns")
    found = standing(blocks)
    width, columns = sheet_width([Section("", 2)], options.width)
    titles, widest = row_titles(table, (found.methods[place] for place in found.order), width)
    lead = f"{len(titles)} methods, {len(blocks)} tables; lines: 95% intervals over {resampled(blocks)}."
    with look.styled():
        figure, (panels,) = sheet(
            *heading(options, TITLE, lead),
            [Section("", 2)],
            width=width,
            columns=columns,
            body=ROW * (len(titles) + 0.6),
            left=look.MARGIN + widest + 0.08,
            between=BETWEEN,
            above=0.08,
            below=0.36,
            foot=0.06,
            legend=[("", [("rank in a table", TICK | {"linestyle": "none"})])],
        )
        words = {"rank": "mean rank", "iqm": "IQM of scores (0: lowest, 1: best)"}
        for axes, name in zip(panels, words):
            room = axes.get_position().width * width + BETWEEN
            fits = look.text_width(words[name], look.TEXT_SIZE) <= room
            label = words[name] if fits else words[name].partition(" (")[0]
            _panel(axes, table, name, label, found.methods, found.order, getattr(found, name))
            if name == "rank":
                axes.set_xlim(0.5, len(titles) + 0.5)
                axes.set_xticks([tick for tick in axes.get_xticks() if tick >= 1])
                for block, ranks in zip(blocks, found.by_table):
                    for row, place in enumerate(found.order):
                        method, values = found.methods[place], look.point_values([[ranks[place]]])
                        said = {"label": block.title, "names": "rank", "values": values}
                        mark = look.Mark(f"table-{block.name}-{method}", method=method, **said)
                        axes.plot([ranks[place]], [row], **TICK, zorder=1.8, gid=mark)
        label_rows(panels, columns, list(titles.values()))
    return figure


def _panel(axes: Axes, table: Table, name: str, words: str, methods, order, values) -> None:
    low, high = float(values.min()), float(values.max())
    if name == "rank":
        low, high = 1.0, float(len(methods))
    look.style_axes(axes, look.ticks_between(low, high, 6, whole=name == "rank"), [])
    axes.set_xlim(low - 0.04 * (high - low), high + 0.04 * (high - low))
    axes.set_xlabel(words, size=look.TEXT_SIZE, labelpad=2)
    axes.set_gid(look.Mark(f"panel-{name}", panel=words, names=f"{words};from;to"))
    for row, place in enumerate(order):
        method, of = methods[place], values[:, place]
        style = method_style(table, method, 4.2)
        if row:
            axes.axhline(row - 0.5, color=look.FRONT, linewidth=0.3, zorder=0.5)
        interval = look.Mark(f"interval-{name}-{method}", method=method)
        axes.plot(of[1:], [row, row], color=style["color"], linewidth=1.4, zorder=2.0, gid=interval)
        point = look.Mark(f"{name}-{method}", method=method, values=look.point_values([of]))
        axes.plot([of[0]], [row], **style, zorder=2.2, gid=point)
