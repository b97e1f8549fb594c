"""What figures look like: text, colours, axes, and files of the same bytes. Imports matplotlib.

For `reporting`, which draws tables, and for `tiebench.forest`.
"""

import functools
import html
import io
import re
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import matplotlib
import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path as Outline
from matplotlib.textpath import TextPath
from matplotlib.ticker import MaxNLocator

from tiebench.files import replaced
from tiebench.metrics import label

STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
    "font.size": 8.0,
    "axes.linewidth": 0.6,
    "text.parse_math": False,
    "pdf.fonttype": 42,
    "path.simplify": False,  # a line has the points of its mark
    "svg.fonttype": "none",
    "svg.hashsalt": "tiebench",
}
INK = "#000000"
MUTED = "#767676"
GRID = "#D0D0D0"
# Of a Pareto front behind its points.
FRONT = "#BBBBBB"
# A box around what is tied.
TIE = "#E4E4E4"
SURFACE = "#FFFFFF"
# Widths of a figure in inches: a column, or a page of a paper.
COLUMN, PAGE = 3.3, 7.0
KINDS = ("pdf", "svg", "png")  # of files of a figure
MARGIN = 0.08
# Sizes of text in points.
TITLE_SIZE, HEADING_SIZE, TEXT_SIZE, TICK_SIZE = 10.0, 9.0, 8.0, 7.0


def styled() -> AbstractContextManager:
    """The style of all figures, whatever the settings of matplotlib are: for use with `with`."""
    return matplotlib.style.context(["default", STYLE])


def blank(width: float, height: float) -> Figure:
    """A figure of this size in inches, with nothing on it."""
    figure = Figure(figsize=(width, height), facecolor=SURFACE)
    FigureCanvasAgg(figure)
    return figure


@functools.lru_cache(maxsize=10_000)
def text_width(text: str, size: float, weight: str = "normal") -> float:
    """Width of text in inches, from the outlines of the font that matplotlib brings along."""
    font = FontProperties(family="DejaVu Sans", size=size, weight=weight)
    outline = TextPath((0, 0), text, prop=font)
    # The outermost points of its letters are corners of their outlines: no curve need be followed.
    x = outline.vertices[outline.codes != Outline.CLOSEPOLY, 0]
    return float(np.ptp(x)) / 72 if x.size else 0.0


def shortened(text: str, width: float, size: float, weight: str = "normal") -> str:
    """Text that is at most `width` inches wide, cut with "…" where it has to be."""
    if text_width(text, size, weight) <= width:
        return text
    kept = text
    while kept and text_width(kept.rstrip() + "…", size, weight) > width:
        kept = kept[:-1]
    return kept.rstrip() + "…"


def wrapped(text: str, width: float, size: float, weight: str = "normal") -> list[str]:
    """Text as lines of whole words, each at most `width` inches wide; a longer word is cut with "…"."""
    lines: list[str] = []
    for word in text.split():
        if lines and text_width(f"{lines[-1]} {word}", size, weight) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(shortened(word, width, size, weight))
    return lines


def metric_text(metric: str) -> dict:
    """Name of a metric as arguments of a text, AP_T and NDCG_T with a subscript."""
    text, subscript = label(metric)
    if not subscript:
        return {"text": text}
    return {"text": rf"$\mathregular{{{text}_{{{subscript}}}}}$", "parse_math": True}


class Mark(str):
    """The gid of an artist, and what an SVG file says of it besides: an attribute data-<name> for each.

    method, bits: what the artist is about; a script marks or hides it with them. panel, label: where its
    points are, in words. names, values: its points (`point_values`), in the order of the drawing, and what
    their numbers are called, joined by ";"; a panel may have the names for all artists in it.
    """

    attributes: dict[str, str]

    def __new__(cls, gid: str, **attributes: object) -> "Mark":
        mark = super().__new__(cls, gid)
        mark.attributes = {name: str(value) for name, value in attributes.items()}
        return mark


def point_values(rows: Iterable[Iterable[float]]) -> str:
    """Points as the `values` of a Mark: " " between numbers, ";" between points.

    Numbers have three significant digits, or as many as whole ones need; no zero stands before the point.
    """
    return ";".join(" ".join(_digits(float(value)) for value in row) for row in rows)


def _digits(value: float) -> str:
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return re.sub(r"^(-?)0\.", r"\1.", f"{value:.3g}")


def ticks_between(low: float, high: float, most: int = 4, whole: bool = False) -> list[float]:
    """Round numbers from `low` to `high`, about `most` of them; `whole` ones where that is asked for."""
    locator = MaxNLocator(nbins=most, steps=[1, 2, 5, 10] if whole else [1, 2, 2.5, 5, 10], integer=whole)
    found = locator.tick_values(low, high)
    slack = 1e-9 * (high - low)
    return [float(tick) for tick in found if low - slack <= tick <= high + slack]


def tick_text(value: float) -> str:
    """A tick in few characters: 0.5, 20, 10k, 2M."""
    value = float(f"{value:.9g}")
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= unit and value % (unit / 10) == 0:
            return f"{value / unit:g}{name}".replace("-", "−")
    return f"{value:g}".replace("-", "−")


def style_axes(axes: Axes, x_ticks: Sequence[float], y_ticks: Sequence[float]) -> None:
    """Ticks with their numbers, a light grid and two spines."""
    axes.set_facecolor("none")
    for axis, ticks in ((axes.xaxis, x_ticks), (axes.yaxis, y_ticks)):
        axis.set_ticks([], minor=True)
        axis.set_ticks(list(ticks), [tick_text(tick) for tick in ticks])
    axes.tick_params(length=2.5, width=0.6, pad=2, colors=INK, labelsize=TICK_SIZE)
    axes.grid(color=GRID, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["bottom", "left"]].set_color(INK)


def style_rows(axes: Axes, ticks: Sequence[float], texts: Sequence[str], count: int, size: float) -> None:
    """Axes of `count` rows, the first above, with a light grid and the lower spine. size: of `texts`."""
    axes.set_facecolor("none")
    axes.set_ylim(count - 0.5, -0.5)
    axes.set_xticks(ticks, texts)
    axes.tick_params(axis="x", length=2.5, width=0.6, pad=2, colors=INK, labelsize=size)
    axes.set_yticks(range(count))
    axes.tick_params(axis="y", length=0, pad=4, colors=INK, labelsize=TEXT_SIZE)
    axes.grid(axis="x", color=GRID, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(INK)


def render(figure: Figure, kind: str, source: str | None = None) -> bytes:
    """A figure as the bytes of one of KINDS, "png" of 200 dots per inch, without dates or versions.

    source: what the figure was drawn from, for the metadata of a PNG file. Raises ValueError for any other
    kind.
    """
    metadata = {
        "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
        "svg": {"Date": None, "Creator": None},
        "png": {"Software": None} | ({} if source is None else {"Source": source}),
    }
    if kind not in KINDS:
        raise ValueError(f"a figure can be written as .pdf, .svg or .png, not .{kind}")
    buffer = io.BytesIO()
    with styled():
        figure.savefig(buffer, format=kind, dpi=200 if kind == "png" else 72, metadata=metadata[kind])
    return _marked(figure, _rounded(buffer.getvalue())) if kind == "svg" else buffer.getvalue()


def _rounded(content: bytes) -> bytes:
    """An SVG with its coordinates to a hundredth of a point: a third less of it, and nothing to be seen."""

    def shorter(found):
        return re.sub(r"-?\d+\.\d{3,}", lambda digits: f"{float(digits[0]):.2f}", found[0])

    return re.sub(r'(?<= d=")[^"]+|(?<= [xy]=")[^"]+', shorter, content.decode()).encode()


def _marked(figure: Figure, content: bytes) -> bytes:
    """An SVG of a figure with the attributes of its marks."""
    gids = (artist.get_gid() for artist in figure.findobj())
    marks: dict[str, dict[str, str]] = {gid: gid.attributes for gid in gids if isinstance(gid, Mark)}

    def more(found):
        said = marks.get(html.unescape(found[1]), {})
        return found[0] + "".join(f' data-{name}="{html.escape(text)}"' for name, text in said.items())

    return re.sub(r'<g id="([^"]*)"', more, content.decode()).encode()


def save(figure: Figure, path: str | Path, source: str | None = None) -> None:
    """Write a figure to a .pdf, .svg or .png file, whole or not at all; source as of `render`.

    Raises ValueError for another ending, OSError where the file cannot be written.
    """
    path = Path(path)
    content = render(figure, path.suffix.removeprefix(".").lower(), source)
    with replaced(path) as temporary:
        temporary.write_bytes(content)
