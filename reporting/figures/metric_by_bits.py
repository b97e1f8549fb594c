"""Each metric of a table against the code length: how much every further bit brings a method."""

import itertools
from collections.abc import Mapping
from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reporting.drawing.axes import NothingToDraw, heading, score_axis
from reporting.drawing.options import DEFAULT, Options
from reporting.drawing.sheets import beside_names, label_axes, lines_of_seeds, named_panels
from reporting.tables.model import Group, Table
from reporting.tables.runs import Results
from reporting.tables.titles import BOUND, family_title, metric_title
from tiebench import figure_style as look

TITLE = "Score by code length"
CAPTION = (
    "How to read it. A marker is the mean over seeds; where there are several, a thin upright line runs from "
    "the lowest seed to the highest. Code lengths stand at equal steps. Names stand in the order of the "
    "scores at the longest codes. Higher is better."
)

# Lines of a panel that can be told apart.
MOST = 12


def draw(table: Table, results: Results, options: Options = DEFAULT) -> Figure:
    """The metric of each block against bits: a panel per block, a line per method with its name at its end.
    A block of many methods has several panels, each of whole families.

    Artists can be found by their gid: "line-<protocol>-<metric>-<method>" and likewise
    "range-..." (a LineCollection; of the bits with several seeds).

    Raises NothingToDraw where no record has a score.
    """
    parts = [part for group in table.groups for part in _parts(table, group, results)]
    found = [(part, scores) for part in parts if (scores := _scores(part, results))]
    if not found:
        raise NothingToDraw(f"table {table.name}: no run has a score, so there is no metric by bits to draw")
    scales_differ = len({part.metric for part, _ in found}) < len(found)
    lead = _lead(table, found) + " Each panel has its own scale." * scales_differ
    names = [[table.method_title(method) for method in scores] for _, scores in found]
    scales = [
        score_axis(score for of in scores.values() for seeds in of.values() for score in seeds)
        for _, scores in found
    ]
    y_ticks = [ticks for _, ticks in scales]
    aside = sum(beside_names(y_ticks, itertools.chain(*names)))
    # Every code length has space for its number, and a slope is wide enough to be seen.
    widths = (
        (len(of.bits), look.text_width(str(bits), look.TICK_SIZE)) for of, _ in found for bits in of.bits
    )
    least = max(1.4, *((width + 0.06) * count for count, width in widths))
    width = options.width or (look.COLUMN if len(found) == 1 and look.COLUMN - aside >= least else look.PAGE)
    columns = 2 if len(found) > 1 and width / 2 - aside >= least else 1
    with look.styled():
        figure, panels, size = named_panels(
            heading(options, TITLE, lead),
            [group.title for group, _ in found],
            names,
            y_ticks,
            width=width,
            least=2.0,
            below=0.38,
            columns=columns,
        )
        for axes, (group, scores), scale in zip(panels, found, scales):
            _panel(axes, table, group, scores, scale, size)
    return figure


def _parts(table: Table, group: Group, results: Results) -> list[Group]:
    """A block of more than MOST methods, cut between families; baselines stay with the family before."""
    methods = list(_scores(group, results))
    if len(methods) <= MOST:
        return [group]
    parts: list[tuple[list[str], list[str]]] = []
    for family, of in table.by_family(methods):
        if parts and (family == BOUND or len(parts[-1][1]) + len(of) <= MOST):
            parts[-1][0].append(family_title(family))
            parts[-1][1].extend(of)
        else:
            parts.append(([family_title(family)], of))
    return [
        replace(group, title=f"{group.title}: {', '.join(filter(None, titles))}", methods=tuple(of))
        for titles, of in parts
    ]


def _scores(group: Group, results: Results) -> dict[str, dict[int, list[float]]]:
    """Method -> bits, ascending -> scores of the seeds that have one; without what has none."""
    result: dict[str, dict[int, list[float]]] = {}
    for method in group.methods:
        for bits in sorted(group.bits):
            if scores := results.scores(group.protocol, group.metric, method, bits):
                result.setdefault(method, {})[bits] = list(scores.values())
    return result


def _lead(table: Table, found: list) -> str:
    several = any(len(values) > 1 for _, scores in found for of in scores.values() for values in of.values())
    folds = max(len(table.members(part.protocol)) for part, _ in found)
    what = f"means over {folds} folds" if folds > 1 else ""
    if not several:
        return f"One seed, {what}." if what else "One seed."
    return f"Mean over seeds{what and f' of {what}'}; thin upright lines: lowest to highest seed."


def _panel(
    axes: Axes, table: Table, group: Group, scores: Mapping, scale: tuple, size: tuple[float, float]
) -> None:
    lengths = sorted(group.bits)
    limits, ticks = scale
    axes.set_xlim(-0.35, len(lengths) - 0.65)
    axes.set_ylim(*limits)
    look.style_axes(axes, range(len(lengths)), ticks)
    axes.set_xticklabels([str(bits) for bits in lengths])
    axes.grid(visible=False, axis="x")
    label_axes([axes], 1, "bits", look.metric_text(group.metric))
    panel = f"{group.protocol}-{group.metric}"
    names = f"bits;{metric_title(group.metric)};lowest seed;highest seed"
    # Panels of one block have other methods.
    axes.set_gid(look.Mark(f"panel-{panel}-{next(iter(scores))}", panel=group.title, names=names))
    lines_of_seeds(axes, table, panel, scores, {bits: place for place, bits in enumerate(lengths)}, size)
