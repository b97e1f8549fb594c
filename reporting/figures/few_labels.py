"""Scores against the number of training items of each class: what a label is worth to a method."""

from matplotlib.figure import Figure

from reporting.drawing.axes import NothingToDraw, heading, score_axis
from reporting.drawing.options import DEFAULT, Options
from reporting.drawing.sheets import label_axes, lines_of_seeds, named_panels
from reporting.tables.model import Table
from reporting.tables.runs import Results
from reporting.tables.titles import metric_title
from tiebench import figure_style as look

TITLE = "Few labels"
CAPTION = (
    "How to read it. Each line is a method, trained on more and more items of each class; queries and "
    "database stay the same. A marker is the mean over seeds, a thin upright line runs from the lowest "
    "seed to the highest. The horizontal axis is logarithmic. Names stand in the order of the scores of "
    "the largest training set. Higher is better."
)
REQUIRES = {"training_sizes": 2}


def draw(table: Table, results: Results, options: Options = DEFAULT) -> Figure:
    """A panel per metric and code length; a line has the gid "line-<metric>-<bits>-<method>".

    Raises NothingToDraw where no run of protocols that differ in their training sets has a score.
    """
    sizes = table.training_sizes()
    found: dict[tuple, dict[str, dict[int, list[float]]]] = {}
    for group in table.groups:
        for bits in group.bits if group.protocol in sizes else ():
            for method in group.methods:
                if scores := results.scores(group.protocol, group.metric, method, bits):
                    of = found.setdefault((group.metric, bits), {}).setdefault(method, {})
                    of[sizes[group.protocol]] = list(scores.values())
    if not found:
        raise NothingToDraw(f"table {table.name}: no run of several training sets has a score")
    scales = [
        score_axis(score for of in lines.values() for seeds in of.values() for score in seeds)
        for lines in found.values()
    ]
    with look.styled():
        figure, panels, size = named_panels(
            heading(options, TITLE, "Mean over seeds; thin upright lines: lowest to highest seed."),
            [f"{bits} bits" for _, bits in found],
            [[table.method_title(method) for method in lines] for lines in found.values()],
            [ticks for _, ticks in scales],
            width=options.width or 1.5 * look.COLUMN,
            least=2.2,
            below=0.42,
        )
        for axes, ((metric, bits), lines), scale in zip(panels, found.items(), scales):
            _panel(axes, table, (metric, bits), lines, sorted(set(sizes.values())), scale, size)
    return figure


def _panel(axes, table: Table, column, lines, sizes, scale, size) -> None:
    (metric, bits), (limits, ticks) = column, scale
    axes.set_xscale("log")
    axes.set_xlim(sizes[0] / 1.3, sizes[-1] * 1.3)
    axes.set_ylim(*limits)
    look.style_axes(axes, sizes, ticks)
    axes.grid(visible=False, axis="x")
    label_axes([axes], 1, "training items per class", look.metric_text(metric))
    names = f"training items per class;{metric_title(metric)};lowest seed;highest seed"
    panel = f"{metric}-{bits}"
    axes.set_gid(look.Mark(f"panel-{panel}", bits=bits, panel=f"{bits} bits", names=names))
    lines_of_seeds(axes, table, panel, lines, {of: of for of in sizes}, size)
