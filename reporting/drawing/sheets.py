"""Sheets: figures of many panels under headings, with one legend, and curves of all methods on them."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from reporting.drawing.axes import (
    HANDLE,
    LABEL,
    LINE,
    MAX_COLUMNS,
    NothingToDraw,
    heading,
    log_ticks,
    mean_curve,
    method_legend,
    room_for,
    spread_out,
    views,
)
from reporting.drawing.method_styles import method_style
from reporting.drawing.options import Options
from reporting.tables.model import Group, Table
from reporting.tables.runs import Results
from tiebench import figure_style as look

# In inches: from one name beside a panel to the next, of the widest name, and from the panel to the names.
PITCH, NAME, LEADER = 0.135, 1.5, 0.16
# In inches: the least width of a panel with the gap between two of them, and space for the y axis.
PANEL, BESIDE = 1.3, 0.6
NARROWEST = 0.5  # panel between its axis and names of methods


@dataclass(frozen=True)
class Section:
    """Panels that belong together under one heading ("": none)."""

    heading: str
    panels: int


def sheet_width(sections: Sequence[Section], width: float | None = None) -> tuple[float, int]:
    """Width of a sheet in inches and its number of columns: a lone column of panels fits that of a paper.

    width: the one asked for, None for that of a column or a page; panels stay wide enough to be read.
    """
    columns = min(MAX_COLUMNS, max(section.panels for section in sections))
    if width is None:
        return (look.PAGE if columns > 1 else look.COLUMN), columns
    return width, min(columns, max(1, int((width - BESIDE) // PANEL)))


def sheet(
    title: str,
    lead: str,
    sections: Sequence[Section],
    *,
    width: float,
    columns: int,
    body: float,
    left: float = 0.48,
    between: float = 0.16,
    right: float = 0.12,
    above: float = 0.20,
    below: float = 0.22,
    foot: float = 0.16,
    legend: Sequence[tuple[str, Sequence[tuple[str, dict]]]] = (),
) -> tuple[Figure, list[list[Axes]]]:
    """A figure with title, lead, legend and sections of equal panels, and the axes of each section.

    In inches: `width` of the figure, `body`, height of a panel; `left` and `right`, space beside a row of
    panels; `between` panels; `above` and `below` each of them for its title and its ticks; `foot`, below the
    last row of a section, for the label of its x axis. Panels fill rows of `columns`.
    """
    inner = width - 2 * look.MARGIN
    texts = [
        (line, look.TITLE_SIZE, "bold", 0.19) for line in look.wrapped(title, inner, look.TITLE_SIZE, "bold")
    ]
    texts += [(line, look.TEXT_SIZE, "normal", 0.145) for line in look.wrapped(lead, inner, look.TEXT_SIZE)]
    entries, legend_rows = _legend_layout(legend, inner)
    heads = [look.wrapped(section.heading, inner, look.HEADING_SIZE, "bold") for section in sections]
    height = 0.06 + sum(step for *_, step in texts) + 0.165 * legend_rows + (0.08 if legend_rows else 0.03)
    for section, head in zip(sections, heads):
        height += 0.16 * len(head) + (0.06 if head else 0) + foot
        height += _rows(section, columns) * (above + body + below)

    figure = look.blank(width, height)

    def write(x, top, text, **how):
        figure.text(x / width, 1 - top / height, text, **{"va": "top", "color": look.INK} | how)

    top = 0.06
    for line, size, weight, step in texts:
        write(look.MARGIN, top, line, size=size, weight=weight)
        top += step
    top += 0.03
    for row, x, text, style in entries:
        middle = top + 0.165 * row + 0.08
        if style is None:
            write(x, middle, text, size=7.5, va="center_baseline", color=look.MUTED)
            continue
        figure.add_artist(_handle(x / width, 1 - middle / height, HANDLE / width, style))
        handle = style.get("gid")
        name = look.Mark(f"{handle}-name", **handle.attributes) if isinstance(handle, look.Mark) else None
        write(x + HANDLE + 0.05, middle, text, size=7.5, va="center_baseline", gid=name)
    top += 0.165 * legend_rows + (0.05 if legend_rows else 0)

    panel = (width - left - right - between * (columns - 1)) / columns
    result = []
    for section, head in zip(sections, heads):
        top += 0.06 if head else 0
        for line in head:
            write(look.MARGIN, top, line, size=look.HEADING_SIZE, weight="bold")
            top += 0.16
        axes = []
        for index in range(section.panels):
            row, column = divmod(index, columns)
            bottom = top + row * (above + body + below) + above + body
            box = (
                (left + column * (panel + between)) / width,
                1 - bottom / height,
                panel / width,
                body / height,
            )
            axes.append(figure.add_axes(box))
        result.append(axes)
        top += _rows(section, columns) * (above + body + below) + foot
    return figure, result


def titled_panels(
    title: str, lead: str, titles: Sequence[Sequence[str]], **inches: Any
) -> tuple[Figure, list[Axes]]:
    """A sheet of panels that each have a title of their own, in lines; the rest as of `sheet`."""
    above = 0.09 + 0.14 * max(map(len, titles))
    figure, (panels,) = sheet(title, lead, [Section("", len(titles))], above=above, foot=0.0, **inches)
    for axes, lines in zip(panels, titles):
        axes.set_title("\n".join(lines), size=look.TEXT_SIZE, pad=4, loc="left", color=look.INK)
    return figure, panels


def beside_names(ticks: Iterable[Iterable[float]], names: Iterable[str]) -> tuple[float, float]:
    """Space in inches at the left and the right of panels with these ticks, and names beside them."""
    name = min(NAME, max(look.text_width(name, look.TICK_SIZE) for name in names))
    return LABEL + max(map(room_for, ticks)), LEADER + name + HANDLE + 0.04 + 0.10


def named_panels(
    texts: tuple[str, str],
    titles: Iterable[str],
    names: Sequence[Sequence[str]],
    ticks: Sequence[Sequence[float]],
    *,
    width: float,
    least: float,
    below: float,
    columns: int = 1,
) -> tuple[Figure, list[Axes], tuple[float, float]]:
    """Titled panels with names of methods beside each, and the width and height of a panel.

    texts: title and lead; names, ticks: of the y axis, of each panel. In inches: `width` of the figure,
    `least` height of a panel, `below` as of `sheet`.
    """
    left, right = beside_names(ticks, [name for of in names for name in of])
    panel = width / columns - left - right
    if panel < NARROWEST:
        need = (left + right + NARROWEST) * columns
        raise ValueError(
            f"a width of {width:g} leaves no room between axis and names: it takes {need:.1f} inches"
        )
    body = max(least, PITCH * (max(map(len, names)) + 0.5))
    lines = [look.wrapped(title, panel + right, look.TEXT_SIZE) for title in titles]
    title, lead = texts
    inches: dict[str, float] = {"width": width, "body": body, "between": left + right, "below": below}
    figure, panels = titled_panels(title, lead, lines, columns=columns, left=left, right=right, **inches)
    return figure, panels, (panel, body)


def lines_of_seeds(
    axes: Axes,
    table: Table,
    panel: str,
    lines: Mapping[str, Mapping[int, Sequence[float]]],
    x: Mapping[int, float],
    size: tuple[float, float],
) -> None:
    """Lines of means over seeds, with thin upright lines from the lowest to the highest, and their names.

    lines: method -> step -> scores of seeds; x: where all steps stand, ascending; size, panel: as of
    `names_beside`; gids are "line-<panel>-<method>" and "range-..." besides.
    """
    ends = []
    for method, of in lines.items():
        style = method_style(table, method, 3.8)
        points = [(step, statistics.fmean(of[step]), min(of[step]), max(of[step])) for step in sorted(of)]
        spans = [(x[step], low, high) for step, _, low, high in points if len(of[step]) > 1]
        if spans:
            ranges = look.Mark(f"range-{panel}-{method}", method=method)
            axes.vlines(*zip(*spans), color=style["color"], linewidth=0.7, zorder=1.9, gid=ranges)
        places = [(x[step], mean) for step, mean, _, _ in points]
        line = look.Mark(f"line-{panel}-{method}", method=method, values=look.point_values(points))
        axes.plot(*zip(*places), **LINE | style, clip_on=False, gid=line)
        ends.append((places[-1], method, max(of) == max(x)))
    names_beside(axes, table, ends, size, panel)


def row_titles(table: Table, methods: Iterable[str], width: float) -> tuple[dict[str, str], float]:
    """Method -> its title beside a row of a figure, and the width of the widest in inches.

    width: of the figure; titles are cut where they take too much of it.
    """
    titles = {
        method: look.shortened(table.method_title(method), 0.4 * width, look.TEXT_SIZE) for method in methods
    }
    return titles, max(look.text_width(title, look.TEXT_SIZE) for title in titles.values())


def label_rows(axes: Sequence[Axes], columns: int, titles: Sequence[str]) -> None:
    """Rows of panels, the first above; their titles stand beside the first panel of each line of panels."""
    for index, panel in enumerate(axes):
        panel.set_ylim(len(titles) - 0.5, -0.6)
        panel.grid(visible=False, axis="y")
        panel.spines["left"].set_visible(False)
        panel.set_yticks(range(len(titles)), titles if index % columns == 0 else [""] * len(titles))
        panel.tick_params(axis="y", length=0, pad=4, labelsize=look.TEXT_SIZE)


def names_beside(axes: Axes, table: Table, ends: Iterable, size: tuple[float, float], panel: str) -> None:
    """Names of methods beside a panel, as near to their ends as they fit, and what leads there.

    ends: ((x, y), method, whether a leader goes from there); size: width and height of the panel in inches;
    panel: part of the gids, "leader-<panel>-<method>", "handle-..." and "name-...".
    """
    width, height = size
    shares = axes.transScale + axes.transLimits  # of the panel, of its data
    ends = [(shares.transform(end).tolist(), *more) for end, *more in ends]
    ends.sort(key=lambda entry: entry[0][1])
    wanted = [end[1] * height for end, _, _ in ends]
    places = spread_out(wanted, PITCH, 0.0, height - PITCH / 2)
    start = 1 + LEADER / width
    for (end, method, reaches), place in zip(ends, places):
        y = place / height
        style = method_style(table, method, 3.8)
        how: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
        leading, handle, name = (
            look.Mark(f"{part}-{panel}-{method}", method=method) for part in ("leader", "handle", "name")
        )
        if reaches:
            thin = how | {"color": style["color"], "linewidth": 0.5, "gid": leading}
            axes.add_line(Line2D([end[0], start], [end[1], y], **thin))
        axes.add_line(_handle(start, y, HANDLE / width, style | how | {"gid": handle}))
        axes.text(
            start + (HANDLE + 0.04) / width,
            y,
            look.shortened(table.method_title(method), NAME, look.TICK_SIZE),
            size=look.TICK_SIZE,
            va="center_baseline",
            color=look.INK,
            transform=axes.transAxes,
            gid=name,
        )


def label_axes(axes: Sequence[Axes], columns: int, x: str, y: Mapping | str) -> None:
    """Labels of a section: x on the panels that have none below, y on the first of each row.

    `y` is a text or what `metric_text` makes of a metric.
    """
    how: dict[str, Any] = dict(y) if isinstance(y, Mapping) else {"text": y}
    for index, panel in enumerate(axes):
        if index + columns >= len(axes):
            panel.set_xlabel(x, size=look.TEXT_SIZE, labelpad=2)
        if index % columns == 0:
            # Mathematics is set smaller than text of the same size looks.
            panel.set_ylabel(how["text"], size=look.TEXT_SIZE + ("parse_math" in how), labelpad=3)
            panel.yaxis.label.set_parse_math(how.get("parse_math", False))


def _rows(section: Section, columns: int) -> int:
    return -(-section.panels // columns)


def _handle(x: float, y: float, length: float, style: Mapping) -> Line2D:
    how: dict[str, Any] = {**LINE, **style, "markevery": [1]}
    return Line2D([x, x + length / 2, x + length], [y] * 3, **how)


def _legend_layout(legend, width: float) -> tuple[list[tuple[int, float, str, dict | None]], int]:
    """Entries as (row, x in inches, text, style; None for the name of a group), and the number of rows.

    A group that does not fit in a row begins the next one.
    """
    entries: list[tuple[int, float, str, dict | None]] = []
    row, x = 0, look.MARGIN
    for name, items in legend:
        label = look.text_width(name, 7.5) + 0.10 if name else 0.0
        named = [(look.shortened(text, width - HANDLE - 0.05 - label, 7.5), style) for text, style in items]
        widths = [HANDLE + 0.05 + look.text_width(text, 7.5) + 0.14 for text, _ in named]
        if x > look.MARGIN and x + label + sum(widths) - 0.14 > look.MARGIN + width:
            row, x = row + 1, look.MARGIN
        if name:
            entries.append((row, x, name, None))
        start = look.MARGIN + label
        x += label
        for (text, style), step in zip(named, widths):
            if x > start and x + step - 0.14 > look.MARGIN + width:
                row, x = row + 1, start
            entries.append((row, x, text, style))
            x += step
        x += 0.10
    return entries, row + 1 if entries else 0


def curve_sheet(
    table: Table,
    results: Results,
    options: Options,
    *,
    title: str,
    lead: str,
    x: str,
    y: str,
    labels: tuple[str, str],
    log: bool = False,
) -> Figure:
    """Curve `y` of the runs against curve `x`, means over seeds: a panel per protocol and bits.

    `labels` are those of the axes. A line has the gid "line-<protocol>-<bits>-<method>". Panels without any
    line are left out.

    Raises ValueError where no record has these curves.
    """
    found: list[tuple[Group, int, dict]] = []
    for view in views(table):
        for bits in view.bits:
            lines = {}
            for method in view.methods:
                of = results.cell(view.protocol, method, bits).values()
                if line := mean_curve(of, x, y):
                    lines[method] = tuple(zip(*line.values()))
            if lines:
                found.append((view, bits, lines))
    if not found:
        raise NothingToDraw(f"table {table.name}: no run has the curves {x!r} and {y!r}, so nothing to draw")
    drawn = dict.fromkeys(method for _, _, lines in found for method in lines)
    highest = max(value for _, _, lines in found for line in lines.values() for value in line[1])
    top = next((limit for limit in (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8) if highest <= limit), 1.0)
    of_view = {view: [entry for entry in found if entry[0] == view] for view, _, _ in found}
    sections = [Section(view.title, len(entries)) for view, entries in of_view.items()]
    width, columns = sheet_width(sections, options.width)
    body = {1: 2.2, 2: 2.2, 3: 1.75}.get(columns, 1.5)
    with look.styled():
        figure, axes = sheet(
            *heading(options, title, lead),
            sections,
            width=width,
            columns=columns,
            body=body,
            between=0.2,
            legend=method_legend(table, drawn),
        )
        for entries, of_section in zip(of_view.values(), axes):
            for index, ((view, bits, lines), panel) in enumerate(zip(entries, of_section)):
                _curves(panel, table, view, bits, lines, labels, list(drawn), log, top)
                if index % columns:
                    panel.set_yticklabels([])
            label_axes(of_section, columns, *labels)
    return figure


def _curves(
    axes: Axes,
    table: Table,
    view: Group,
    bits: int,
    lines: Mapping,
    labels: tuple[str, str],
    order: list,
    log: bool,
    top: float,
) -> None:
    places = [place for line in lines.values() for place in line[0]]
    if log:
        axes.set_xscale("log")
        low, high = min(places), max(places)
        axes.set_xlim(low / 1.15, high * 1.15)
        x_ticks = log_ticks(low, high)
    else:
        axes.set_xlim(-0.02, 1.02)
        x_ticks = [0, 0.5, 1]
    axes.set_ylim(-0.02 * top, 1.02 * top)
    look.style_axes(axes, x_ticks, look.ticks_between(0, top, 5))
    axes.set_title(f"{bits} bits", size=look.TEXT_SIZE, pad=4, loc="left", color=look.INK)
    panel = f"{view.title}, {bits} bits"
    axes.set_gid(
        look.Mark(f"panel-{view.protocol}-{bits}", bits=bits, panel=panel, names=f"{labels[0]};{labels[1]}")
    )
    for method, (x, y) in lines.items():
        # Markers at equal ways along each line, elsewhere on every line, lest they cover each other.
        start = 0.04 + 0.22 * order.index(method) / len(order)
        axes.plot(
            x,
            y,
            **LINE | method_style(table, method, 3.4),
            markevery=(start, 0.22) if len(x) > 1 else None,
            clip_on=False,
            gid=look.Mark(
                f"line-{view.protocol}-{bits}-{method}", method=method, values=look.point_values(zip(x, y))
            ),
        )
