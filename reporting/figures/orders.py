"""What ties do in practice: the scores of orders that happen, between the worst and the best order."""

import math
import statistics
from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import kendalltau

from reporting.drawing.axes import NothingToDraw, heading, score_axis
from reporting.drawing.options import DEFAULT, Options
from reporting.drawing.sheets import PITCH, Section, label_rows, row_titles, sheet_width, titled_panels
from reporting.tables.model import Table
from reporting.tables.runs import Results
from tiebench import figure_style as look
from tiebench.metrics import ORDERS, label, ranking_of

TITLE = "What ties do in practice"
CAPTION = (
    "How to read it. A grey line runs from the score of the worst order of tied items to that of the best; "
    "the dot is the exact mean over all orders. Marks are scores of orders that happen: of the database as "
    "it stands, sorted by class, and reversed. The bar at the dot spans two standard deviations of random "
    "orders to each side. Below, Kendall's τ says how far an order ranks the methods as the exact mean does: "
    "1 is the same ranking. Means over seeds; methods stand in the order of their means in the first panel."
)
REQUIRES = {"orders": True}
LEAD = "Scores under orders of tied items that programs use, beside the exact mean."

# Mark -> what the metric is called in runs, and how it is drawn.
MARKS: dict[str, tuple[str, dict[str, Any]]] = {
    "file": ("file_order_{}", {"marker": "D", "markersize": 3.4, "color": "#0072B2"}),
    "class": ("class_order_{}", {"marker": ">", "markersize": 4.0, "color": "#D55E00"}),
    "reversed": ("reversed_class_order_{}", {"marker": "<", "markersize": 4.0, "color": "#E69F00"}),
}
WORDS = {
    "file": "file order",
    "class": "sorted by class",
    "reversed": "reversed",
    "worst": "worst",
    "best": "best",
}
SHUFFLED: dict[str, Any] = {"color": "#009E73", "linewidth": 7.0, "solid_capstyle": "butt"}
MEAN: dict[str, Any] = {"marker": "o", "markersize": 3.6, "color": look.INK}
SPREADS = 2  # standard deviations to each side


def draw(table: Table, results: Results, options: Options = DEFAULT) -> Figure:
    """A panel per column of a metric in some order, a row per method: range, exact mean, orders that happen.

    What stands in a panel is that of the metric itself, once for all orders that blocks name. Artists can be
    found by their gid: "range-<protocol>-<metric>-<bits>-<method>", and likewise "mean-…", "shuffled-…",
    "file-…", "class-…" and "reversed-…".

    Raises NothingToDraw where no run was scored in orders.
    """
    found: dict[tuple[str, str, int], dict[str, dict[str, float]]] = {}
    for group in table.groups:
        ranking, metric = ranking_of(group.metric)
        if ranking is None or ranking.kind not in ORDERS:
            continue
        for bits in group.bits:
            of = {method: _scores(results, group.protocol, metric, method, bits) for method in group.methods}
            of = {method: scores for method, scores in of.items() if scores}
            if of:
                found.setdefault((group.protocol, metric, bits), {}).update(of)
    if not found:
        raise NothingToDraw(f"table {table.name}: no run was scored in orders of tied items")
    first = next(iter(found.values()))
    methods = list(dict.fromkeys(method for of in found.values() for method in of))
    methods.sort(key=lambda method: -first.get(method, {}).get("mean", -1.0))
    width, columns = sheet_width([Section("", min(2, len(found)))], options.width)
    titles, widest = row_titles(table, methods, width)
    left = look.MARGIN + widest + 0.08
    panel = (width - left - 0.12 - 0.16 * (columns - 1)) / columns
    said = {column: look.wrapped(agreement(of), panel, look.TICK_SIZE) for column, of in found.items()}
    heads = [look.wrapped(_head(table, found, column), panel, look.TEXT_SIZE) for column in found]
    legend: list[tuple[str, dict[str, Any]]] = [
        ("worst to best", {"color": look.FRONT, "linewidth": 1.4}),
        ("exact mean", MEAN | {"linestyle": "none"}),
        ("shuffled, ± 2 sd", SHUFFLED),
        *((WORDS[mark], style | {"linestyle": "none"}) for mark, (_, style) in MARKS.items()),
    ]
    with look.styled():
        figure, panels = titled_panels(
            *heading(options, TITLE, LEAD),
            heads,
            width=width,
            columns=columns,
            body=PITCH * (len(methods) + 0.6),
            left=left,
            below=0.26 + 0.13 * max(map(len, said.values())),
            legend=[("", legend)],
        )
        for axes, (column, of) in zip(panels, found.items()):
            _panel(axes, column, of, methods)
            axes.set_xlabel(
                "\n".join(said[column]), size=look.TICK_SIZE, labelpad=3, loc="left", color=look.INK
            )
        label_rows(panels, columns, list(titles.values()))
    return figure


def _head(table: Table, found: Mapping, column: tuple[str, str, int]) -> str:
    protocol, metric, bits = column
    several = len({name for name, *_ in found}) > 1
    return f"{label(metric)[0]}, {bits} bits" + (f", {table.protocol_title(protocol)}" if several else "")


def _scores(results: Results, protocol: str, metric: str, method: str, bits: int) -> dict[str, float]:
    """Mark -> mean over seeds, of a method that has the exact mean and some order; else {}."""
    names = {mark: name.format(metric) for mark, (name, _) in MARKS.items()}
    names |= {"shuffled": f"shuffled_{metric}", "spread": f"shuffled_sd_{metric}", "mean": metric}
    seeds = {mark: results.scores(protocol, name, method, bits) for mark, name in names.items()}
    found = {mark: statistics.fmean(scores.values()) for mark, scores in seeds.items() if scores}
    if "mean" not in found or not found.keys() & MARKS.keys():
        return {}
    if ends := results.mean_range(protocol, metric, method, bits):
        found |= {"worst": ends[0], "best": ends[2]}
    return found


def agreement(of: Mapping[str, Mapping[str, float]]) -> str:
    """Kendall's tau of the methods' order under each rule with that under the exact mean, in words."""
    parts = []
    for mark, words in WORDS.items():
        pairs = [(scores["mean"], scores[mark]) for scores in of.values() if mark in scores]
        tau = kendalltau(*zip(*pairs)).statistic if len(pairs) > 1 else math.nan
        if not math.isnan(tau):
            parts.append(f"{words} {tau:.2f}".replace("-", "−"))
    return f"τ with the mean: {', '.join(parts)}" if parts else ""


def _panel(axes: Axes, column: tuple, of: Mapping[str, Mapping[str, float]], methods: list[str]) -> None:
    limits, ticks = score_axis(
        value for scores in of.values() for mark, value in scores.items() if mark != "spread"
    )
    look.style_axes(axes, ticks, [])
    axes.set_xlim(*limits)
    axes.grid(axis="x", linewidth=0.4)
    for method, scores in of.items():
        row = methods.index(method)
        name = "{}-{}-{}".format(*column) + f"-{method}"
        if "worst" in scores:
            ends = [scores["worst"], scores["best"]]
            axes.plot(ends, [row, row], color=look.FRONT, linewidth=1.4, zorder=1.5, gid=f"range-{name}")
        if "shuffled" in scores:
            reach = SPREADS * scores.get("spread", 0.0)
            ends = [scores["shuffled"] - reach, scores["shuffled"] + reach]
            axes.plot(ends, [row, row], **SHUFFLED, zorder=2.0, gid=f"shuffled-{name}")
        edge: dict[str, Any] = {"markeredgecolor": look.SURFACE, "markeredgewidth": 0.4, "linestyle": "none"}
        for mark, (_, style) in MARKS.items():
            if mark in scores:
                axes.plot(
                    [scores[mark]], [row], **style, **edge, zorder=2.6, clip_on=False, gid=f"{mark}-{name}"
                )
        axes.plot([scores["mean"]], [row], **MEAN, **edge, zorder=2.4, clip_on=False, gid=f"mean-{name}")
