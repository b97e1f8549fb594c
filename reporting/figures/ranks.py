"""Average ranks and their significance: the critical-difference diagram of Demšar, JMLR 2006."""

from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from reporting.average_ranks import ranks
from reporting.drawing import NothingToDraw, heading
from reporting.figures import DEFAULT, Options
from reporting.method_styles import colour
from reporting.model import Results, Table
from reporting.titles import EN_DASH
from tiebench.figure_style import INK, SURFACE, styled, text_width

TITLE = "Average ranks"
CAPTION = (
    "How to read it. In each column of the table (a protocol, a metric and a code length) the method with "
    "the highest mean over seeds has rank 1; each method is drawn at its mean rank, the best at the left. "
    "Thick bars join methods whose ranks differ by less than the critical difference (CD) of Nemenyi's test "
    "at 0.05. The test takes columns for independent, but those that differ only in the code length are not: "
    "read it as a summary of the table, not as evidence. Methods without a score in some column are left out."
)
NEEDS = ()
REQUIRES = {"columns": 2, "methods": 3}

# All in inches.
WIDTH = 7.0
EDGE = 0.08
ROW = 0.19
LINE = 0.17  # of title and foot
RULER = 0.62  # from the title to the axis
BAR = 0.085  # between thick bars
TICK = 0.06
GAP = 0.20  # between names and axis, so that leaders of the outermost methods are lines and not points
SHORTEST = 0.85  # an axis
# In points.
SIZE, TITLE_SIZE, NOTE_SIZE = 8.0, 9.0, 7.5


def draw(table: Table, results: Results, options: Options = DEFAULT) -> Figure:
    """The critical-difference diagram of Demšar (JMLR 2006), from `average_ranks.ranks`.

    An axis of average ranks, 1 at the left; the better half of the methods is named at the left, the worse at
    the right, each with its rank, a line of the method's colour leading to its place on the axis. Thick bars
    join each largest set of neighbours whose ranks differ by less than the critical difference, which the
    ruler above the axis shows. The figure is made wider than
    `options.width` if long names would leave no space for the axis.

    Artists can be found by their gid: "leader-<method>", "bar-<first method>-<last method>", "ruler".

    Raises NothingToDraw where fewer than three methods have a score in all of at least two columns.
    """
    found = ranks(table, results)
    if found is None:
        raise NothingToDraw(
            f"table {table.name}: average ranks need three methods with a score in every column, and two "
            "columns"
        )
    with styled():
        return _draw(table, found, options)


def cliques(average_rank: Sequence[float], critical_difference: float) -> list[tuple[int, int]]:
    """Largest sets of neighbours without significant difference: (first, last) indices of ascending ranks.

    Sets of one, and those inside of another, are left out.
    """
    result: list[tuple[int, int]] = []
    for first, rank in enumerate(average_rank):
        last = max(i for i, other in enumerate(average_rank) if other - rank < critical_difference)
        if last > first and (not result or last > result[-1][1]):
            result.append((first, last))
    return result


def _lanes(spans: Sequence[tuple[int, int]]) -> list[int]:
    """The line on which each bar is drawn, 0 the upper one: bars that share a method never share a line."""
    ends: dict[int, int] = {}
    lanes = []
    for first, last in spans:
        lane = next(line for line in range(len(spans)) if ends.get(line, -1) < first)
        ends[lane] = last
        lanes.append(lane)
    return lanes


def _lines(text: str, width: float, size: float, weight: str = "normal") -> list[str]:
    """Text broken at spaces into lines of at most `width` inches, as far as its words allow.

    Text drawn on pixels is up to a few hundredths wider than its outlines, so these are taken a bit larger.
    """
    lines = [""] if text.strip() else []
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if 1.04 * text_width(longer, size, weight) <= width or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _draw(table: Table, found: Mapping, options: Options) -> Figure:
    methods = found["methods"]
    values = [found["average_rank"][method] for method in methods]
    half = (len(methods) + 1) // 2
    labels = [f"{table.method_title(method)}  {found['average_rank'][method]:.2f}" for method in methods]
    left = EDGE + max(text_width(label, SIZE) for label in labels[:half]) + GAP
    right = EDGE + max(text_width(label, SIZE) for label in labels[half:]) + GAP
    width = max(options.width or WIDTH, left + right + SHORTEST)
    spans = cliques(values, found["critical_difference"])
    lanes = _lanes(spans)
    texts = heading(options, _title(table, found), _foot(table, found))
    title = _lines(texts[0], width - 2 * EDGE, TITLE_SIZE, "bold")
    foot = _lines(texts[1], width - 2 * EDGE, NOTE_SIZE)
    top = EDGE + LINE * len(title) + RULER
    names = top + 0.11 + BAR * (max(lanes, default=-1) + 1)
    height = names + ROW * half + 0.10 + LINE * len(foot) + EDGE
    figure = Figure(figsize=(width, height), facecolor=SURFACE)
    FigureCanvasAgg(figure)
    # Data are inches from the upper left corner.
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.axis("off")
    # Fewer columns make the ruler longer than the axis: it must fit as well.
    longest = max(1.0, found["critical_difference"] / (len(methods) - 1))
    length = min(width - left - right, (width - EDGE - left) / longest)
    step = length / (len(methods) - 1)

    def place(rank: float) -> float:
        return left + step * (rank - 1)

    for index, line in enumerate(title):
        y = EDGE + LINE * index
        axes.text(EDGE, y, line, size=TITLE_SIZE, weight="bold", va="top", color=INK)
    for index, line in enumerate(foot):
        y = names + ROW * half + 0.10 + LINE * index
        axes.text(EDGE, y, line, size=NOTE_SIZE, va="top", color=INK)
    _ruler(axes, place(1), found["critical_difference"], step, top)
    _axis(axes, place, len(methods), step, top)
    for (first, last), lane in zip(spans, lanes, strict=True):
        axes.plot(
            [place(values[first]) - 0.03, place(values[last]) + 0.03],
            [top + 0.11 + BAR * lane] * 2,
            color=INK,
            linewidth=2.6,
            solid_capstyle="butt",
            zorder=3,
            gid=f"bar-{methods[first]}-{methods[last]}",
        )
    for index, (method, value, label) in enumerate(zip(methods, values, labels, strict=True)):
        # The outermost methods have the upper lines, so that leaders of one side never cross.
        better = index < half
        y = names + ROW * ((index if better else len(methods) - 1 - index) + 0.5)
        end = left - GAP + 0.04 if better else width - right + GAP - 0.04
        axes.plot(
            [place(value), place(value), end],
            [top, y, y],
            color=colour(table, method),
            linewidth=1.2,
            solid_joinstyle="miter",
            zorder=2,
            gid=f"leader-{method}",
        )
        side = "right" if better else "left"
        axes.text(end + (-0.04 if better else 0.04), y, label, size=SIZE, va="center", color=INK, ha=side)
    return figure


def _title(table: Table, found: Mapping) -> str:
    return f"Average rank over {found['columns']} columns {EN_DASH} {table.heading}"


def _foot(table: Table, found: Mapping) -> str:
    """What the diagram does not show: the test of all methods together, and who is left out."""
    p = found["friedman_p"]
    words = ["All means are equal." if p is None else f"Friedman test of all methods: p = {p:.2g}."]
    if found["left_out"]:
        names = ", ".join(table.method_title(method) for method in found["left_out"])
        words.append(f"Not ranked, for want of a score in some column: {names}.")
    return " ".join(words)


def _ruler(axes: Axes, start: float, critical_difference: float, step: float, top: float) -> None:
    """The critical difference above the axis, from rank 1 on, and its value."""
    end, y = start + step * critical_difference, top - 0.32
    axes.plot(
        [start, start, start, end, end, end],
        [y - 0.035, y + 0.035, y, y, y - 0.035, y + 0.035],
        color=INK,
        linewidth=0.9,
        gid="ruler",
    )
    text = f"CD = {critical_difference:.2f}"
    middle = max((start + end) / 2, EDGE + text_width(text, SIZE) / 2)
    axes.text(middle, y - 0.05, text, size=SIZE, ha="center", va="bottom", color=INK)


def _axis(axes: Axes, place: Callable[[float], float], count: int, step: float, top: float) -> None:
    """Ranks 1 to `count`: a tick for each, a number where it fits."""
    axes.plot([place(1), place(count)], [top, top], color=INK, linewidth=0.8, gid="axis")
    every = next(n for n in (1, 2, 3, 5, 10, count) if step * n >= 0.20)
    for rank in range(1, count + 1):
        axes.plot([place(rank)] * 2, [top - TICK, top], color=INK, linewidth=0.8)
        if (rank - 1) % every == 0:
            axes.text(
                place(rank), top - TICK - 0.02, str(rank), size=SIZE, ha="center", va="bottom", color=INK
            )
