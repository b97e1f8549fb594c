"""What methods are worth on classes that they learnt from, and on classes that they did not."""

import statistics
from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reporting.drawing.axes import LINE, NothingToDraw, heading, score_axis
from reporting.drawing.method_styles import method_style
from reporting.drawing.options import DEFAULT, Options
from reporting.drawing.sheets import label_axes, named_panels, names_beside
from reporting.tables.model import Group, Table
from reporting.tables.runs import Results
from reporting.tables.titles import UNCODED, UNCODED_TITLE, metric_title
from tiebench import figure_style as look

TITLE = "Seen against unseen classes"
CAPTION = (
    "How to read it. A point is a method: to the right, its score where the classes of the queries were "
    "learnt from; upwards, where they were not. Lines mark the uncoded features and the methods that the "
    "table marks, which learn from no label: a method below such a horizontal line has lost "
    "what its features knew of new classes. The axes are different tasks, so that only orders compare. "
    "Means over seeds; names stand in the order of the scores on unseen classes. Higher is better."
)
REQUIRES = {"unseen": True}


def draw(table: Table, results: Results, options: Options = DEFAULT) -> Figure:
    """A point per method and pair of blocks of one dataset and metric: unseen classes, and seen ones.

    Artists can be found by their gid: "point-<protocol>-<metric>-<bits>-<method>", of the block of unseen
    classes, and "reference-…-<method or uncoded>-<x or y>", of what lines mark: the uncoded features and
    the table's `reference_lines`.

    Raises NothingToDraw where no method has a score in both blocks of a pair.
    """
    found = [
        (seen, unseen, bits, points)
        for seen, unseen in _pairs(table)
        for bits in unseen.bits
        if bits in seen.bits and (points := _points(seen, unseen, bits, results))
    ]
    if not found:
        raise NothingToDraw(f"table {table.name}: no method has scores on seen and on unseen classes")
    marked = [_marked(table, results, *entry) for entry in found]
    scales = [
        [score_axis([p[axis] for p in (*points.values(), *lines.values())]) for axis in (0, 1)]
        for (*_, points), lines in zip(found, marked)
    ]
    lead = "Mean over seeds. Lines: uncoded features (solid), references (dashed)."
    with look.styled():
        figure, panels, size = named_panels(
            heading(options, TITLE, lead),
            [f"{unseen.title}, {bits} bits" for _, unseen, bits, _ in found],
            [[table.method_title(method) for method in points] for *_, points in found],
            [ticks for _, (_, ticks) in scales],
            width=options.width or 2 * look.COLUMN,
            least=2.4,
            below=0.46,
        )
        for axes, entry, lines, scale in zip(panels, found, marked, scales):
            _panel(axes, table, entry, lines, scale, size)
    return figure


def _pairs(table: Table) -> list[tuple[Group, Group]]:
    """(seen, unseen) for each block of unseen classes, with the first of seen ones that is comparable."""
    result = []

    def dataset(group: Group) -> str | None:
        return table.settings[group.protocol].dataset if group.protocol in table.settings else None

    for unseen in table.groups:
        if not table.is_unseen(unseen.protocol):
            continue
        for seen in table.groups:
            alike = seen.metric == unseen.metric and dataset(seen) == dataset(unseen)
            if alike and not table.is_unseen(seen.protocol):
                result.append((seen, unseen))
                break
    return result


def _points(seen: Group, unseen: Group, bits: int, results: Results) -> dict[str, tuple[float, float]]:
    """Method -> (score on seen, score on unseen classes), means over the seeds that have one."""
    result = {}
    for method in unseen.methods:
        pair = []
        for group in (seen, unseen):
            scores = results.scores(group.protocol, group.metric, method, bits)
            pair += [statistics.fmean(scores.values())] if scores else []
        if len(pair) == 2:
            result[method] = (pair[0], pair[1])
    return result


def _marked(
    table: Table, results: Results, seen: Group, unseen: Group, bits: int, points: Mapping
) -> dict[str, tuple[float, float]]:
    """What lines mark -> (score on seen, score on unseen classes)."""
    result = {method: points[method] for method in table.reference_lines if method in points}
    one, other = (results.uncoded.get(group.protocol, {}).get(group.metric) for group in (seen, unseen))
    return result if one is None or other is None else {UNCODED: (one, other)} | result


def _panel(axes: Axes, table: Table, entry: tuple, lines: Mapping, scale: list, size: tuple) -> None:
    _, unseen, bits, points = entry
    (x_limits, x_ticks), (y_limits, y_ticks) = scale
    axes.set_xlim(*x_limits)
    axes.set_ylim(*y_limits)
    look.style_axes(axes, x_ticks, y_ticks)
    axes.grid(visible=False)
    metric = look.metric_text(unseen.metric)
    label_axes([axes], 1, "", metric | {"text": f"{metric['text']}, unseen classes"})
    label = axes.set_xlabel(
        f"{metric['text']}, seen classes", size=look.TEXT_SIZE + ("parse_math" in metric), labelpad=2
    )
    label.set_parse_math(metric.get("parse_math", False))
    name = f"{unseen.protocol}-{unseen.metric}-{bits}"
    said = metric_title(unseen.metric)
    names = f"{said}, seen classes;{said}, unseen classes"
    axes.set_gid(look.Mark(f"panel-{name}", bits=bits, panel=f"{unseen.title}, {bits} bits", names=names))
    for marked, (x, y) in lines.items():
        dashes = (None, None) if marked == UNCODED else (4, 2)
        how: dict[str, Any] = {"color": look.MUTED, "linewidth": 0.7, "zorder": 1.5, "dashes": dashes}
        axes.axhline(y, gid=f"reference-{name}-{marked}-y", **how)
        axes.axvline(x, gid=f"reference-{name}-{marked}-x", **how | {"linewidth": 0.4})
        words = UNCODED_TITLE if marked == UNCODED else table.method_title(marked)
        place: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "bottom"}
        axes.text(0.995, y, words, size=look.TICK_SIZE, color=look.MUTED, **place)
    ends = []
    for method, (x, y) in points.items():
        style = method_style(table, method, 4.6) | {"linestyle": "none"}
        point = look.Mark(f"point-{name}-{method}", method=method, values=look.point_values([(x, y)]))
        axes.plot([x], [y], **LINE | style, clip_on=False, zorder=3, gid=point)
        ends.append(((x, y), method, True))
    names_beside(axes, table, ends, size, name)
