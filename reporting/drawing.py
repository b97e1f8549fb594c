"""What all figures share: style, the look of each method, sheets of panels, and files of the same bytes."""

import base64
import colorsys
import hashlib
import io
import math
import os
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath
from matplotlib.ticker import MaxNLocator
from PIL import Image

from reporting.frames import family, groups, panels
from reporting.names import method_name, metric_name

# Seven of the eight colours of Okabe and Ito, without black, which is the dots', and without yellow, which a
# thin line loses on white; then colours of Paul Tol's schemes (muted, dark, bright) that stay farthest from
# these with protanopia, deuteranopia and tritanopia. The closest pairs differ in marker and dashes as well.
COLOURS = {
    "talr_ap": "#D55E00",
    "talr_ndcg": "#E69F00",
    "mihash": "#0072B2",
    "hashnet": "#56B4E9",
    "dtsh": "#009E73",
    "dpsh": "#CC79A7",
    "itq": "#AA4499",
    "structhash": "#332288",
    "fasthash": "#225522",
    "machash": "#666633",
    "bre": "#882255",
    "lsh": "#777777",
    "talr_ap_continuation": "#EE6677",
}
# Lengths of strokes and gaps in line widths; () is a solid line.
SOLID, LONG, SHORT, DOTTED, MIXED = (), (6.0, 1.5), (3.0, 1.3), (1.0, 1.2), (5.0, 1.3, 1.0, 1.3)
# Marker, whether it is filled, dashes.
SHAPES = {
    "talr_ap": ("o", True, SOLID),
    "talr_ndcg": ("s", True, SHORT),
    "mihash": ("^", True, DOTTED),
    "hashnet": ("o", False, SHORT),
    "dtsh": ("^", False, LONG),
    "dpsh": ("s", False, MIXED),
    "itq": ("X", True, LONG),
    "structhash": ("D", True, LONG),
    "fasthash": ("v", True, MIXED),
    "machash": ("D", False, SOLID),
    "bre": ("P", True, SHORT),
    "lsh": ("v", False, DOTTED),
    "talr_ap_continuation": ("*", True, SOLID),
}
STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
    "font.size": 8.0,
    "axes.linewidth": 0.6,
    "text.parse_math": False,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "tiebench",
}
INK = "#000000"
QUIET = "#767676"
GRID = "#D0D0D0"
SURFACE = "#FFFFFF"
# Widths of a figure in inches: a column, or a page of a paper.
COLUMN, PAGE = 3.3, 7.0
MARGIN = 0.08
# Room in inches for the label of a y axis.
LABEL = 0.30
MAX_COLUMNS = 4
# Length in inches of a line in a legend, and how wide lines are.
HANDLE = 0.27
LINE = {"linewidth": 1.1}
# Sizes of text in points.
TITLE_SIZE, HEADING_SIZE, TEXT_SIZE, TICK_SIZE = 10.0, 9.0, 8.0, 7.0
# Behind text, so that no grid line crosses it.
BEHIND = {"facecolor": SURFACE, "edgecolor": "none", "pad": 0.6}


def colour(method: str) -> str:
    """The colour of a method, "#RRGGBB", the same in every figure; an unknown one's comes from its name."""
    if method in COLOURS:
        return COLOURS[method]
    number = int.from_bytes(hashlib.sha256(method.encode()).digest()[:4], "big")
    red, green, blue = colorsys.hls_to_rgb(number / 2**32, 0.50, 0.45)
    return f"#{round(red * 255):02X}{round(green * 255):02X}{round(blue * 255):02X}"


def look(method: str, size: float = 4.2) -> dict:
    """Marker, dashes and colour of a method as arguments of a Line2D, the same in every figure.

    Those of an unknown method come from its name, as its colour does. `size` is that of a round marker in
    points; the others get what looks as large.
    """
    shape = SHAPES.get(method)
    if shape is None:
        number = int.from_bytes(hashlib.sha256(method.encode()).digest()[4:8], "big")
        number, filled = divmod(number, 2)
        number, marker = divmod(number, 8)
        shape = ("os^vDPX*"[marker], bool(filled), (SOLID, LONG, SHORT, DOTTED, MIXED)[number % 5])
    marker, filled, dashes = shape
    return {
        "color": colour(method),
        "linestyle": (0, dashes) if dashes else "solid",
        "marker": marker,
        "markersize": round(size * {"D": 0.85, "s": 0.95, "X": 1.3, "P": 1.3, "*": 1.6}.get(marker, 1.1), 3),
        "markerfacecolor": colour(method) if filled else SURFACE,
        "markeredgecolor": SURFACE if filled else colour(method),
        "markeredgewidth": 0.4 if filled else 0.9,
    }


def ramp(count: int) -> list[str]:
    """Colours "#RRGGBB" for an ordered series of `count`, light to dark in print and with colour blindness.

    Of matplotlib's viridis (Smith and van der Walt, 2015), without its yellow end.
    """
    shades = matplotlib.colormaps["viridis"]
    steps = [0.75 * (1 - index / max(1, count - 1)) for index in range(count)] if count > 1 else [0.3]
    return [matplotlib.colors.to_hex(shades(step)).upper() for step in steps]


def styled() -> AbstractContextManager:
    """The style of all figures, whatever the settings of matplotlib are: for use with `with`."""
    return matplotlib.style.context(["default", STYLE])


# -- text -----------------------------------------------------------------------------------------


def text_width(text: str, size: float, weight: str = "normal") -> float:
    """Width of text in inches, from the outlines of the font that matplotlib brings along."""
    font = FontProperties(family="DejaVu Sans", size=size, weight=weight)
    return TextPath((0, 0), text, prop=font).get_extents().width / 72 if text.strip() else 0.0


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
    text, subscript = metric_name(metric)
    if not subscript:
        return {"text": text}
    return {"text": rf"$\mathregular{{{text}_{{{subscript}}}}}$", "parse_math": True}


# -- what is drawn of a table ---------------------------------------------------------------------


@dataclass(frozen=True)
class View:
    """What a table asks for of one protocol: `bits` ascending, `methods` in the order of its rows."""

    protocol: str
    title: str
    bits: tuple[int, ...]
    methods: tuple[str, ...]


def views(table: Mapping) -> list[View]:
    """The protocols of a table in its order, the blocks of each put together under the first one's title."""
    rows = [method for panel in panels(table, 10**9) for method in panel.methods]
    result = []
    for protocol in dict.fromkeys(group.protocol for group in groups(table)):
        of = [group for group in groups(table) if group.protocol == protocol]
        bits = sorted({bits for group in of for bits in group.bits})
        methods = {method for group in of for method in group.methods}
        result.append(
            View(protocol, of[0].title, tuple(bits), tuple(method for method in rows if method in methods))
        )
    return result


def number(value: object) -> float | None:
    """A finite number as a float, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) else None


def mean_curve(runs: Iterable[Mapping], *names: str) -> dict[float, tuple[float, ...]]:
    """Curves of several runs averaged point by point: position in the curves -> the mean of each curve there.

    `names` are those of curves of the records. A run that is null at a position in any of them takes no part
    there, one without these curves nowhere; a position without any run is left out. Positions are 0, 1, ...,
    but where the first curve is "cuts" it says the positions.
    """
    found: dict[float, list[tuple]] = {}
    for run in runs:
        curves = run.get("curves") or {}
        for index, values in enumerate(zip(*(curves.get(name) or [] for name in names))):
            values = tuple(map(number, values))
            if None not in values:
                found.setdefault(values[0] if names[0] == "cuts" else index, []).append(values)
    return {at: tuple(map(statistics.fmean, zip(*found[at]))) for at in sorted(found)}


# -- legends and axes -----------------------------------------------------------------------------


def method_legend(table: Mapping, methods: Iterable[str]) -> list[tuple[str, list[tuple[str, dict]]]]:
    """Methods as a legend in the order of the table's rows: (family, [(name, arguments of a Line2D)])."""
    wanted = set(methods)
    result: list[tuple[str, list]] = []
    for panel in panels(table, 10**9):
        for method in panel.methods:
            if method in wanted:
                if not result or result[-1][0] != family(table, method):
                    result.append((family(table, method), []))
                result[-1][1].append((method_name(method), look(method)))
    return result


def ticks_between(low: float, high: float, most: int = 4, whole: bool = False) -> list[float]:
    """Round numbers from `low` to `high`, about `most` of them; `whole` ones where that is asked for."""
    locator = MaxNLocator(nbins=most, steps=[1, 2, 5, 10] if whole else [1, 2, 2.5, 5, 10], integer=whole)
    found = locator.tick_values(low, high)
    slack = 1e-9 * (high - low)
    return [float(tick) for tick in found if low - slack <= tick <= high + slack]


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Ticks of a logarithmic axis: powers of ten, fewer where they are many, 1-2-5 where they are few."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first >= 2:
        return [10.0**power for power in range(first, last + 1, 1 + (last - first) // most)]
    fine = [step * 10.0**power for power in range(first - 1, last + 1) for step in (1, 2, 5)]
    return [tick for tick in fine if low <= tick * (1 + 1e-9) and tick <= high * (1 + 1e-9)]


def tick_text(value: float) -> str:
    """A tick in few characters: 0.5, 20, 10k, 2M."""
    value = float(f"{value:.9g}")
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= unit and value % (unit / 10) == 0:
            return f"{value / unit:g}{name}".replace("-", "−")
    return f"{value:g}".replace("-", "−")


def room_for(ticks: Iterable[float]) -> float:
    """Width in inches of ticks of a y axis and their numbers."""
    return 0.10 + max((text_width(tick_text(tick), TICK_SIZE) for tick in ticks), default=0.0)


def score_axis(scores: Iterable[float]) -> tuple[tuple[float, float], list[float]]:
    """Limits and ticks of an axis for these scores, with a little room on both sides."""
    scores = list(scores)
    low, high = min(scores), max(scores)
    margin = 0.06 * max(high - low, 0.02)
    return (low - margin, high + margin), ticks_between(low - margin, high + margin, 6)


def dress(axes: Axes, x_ticks: Sequence[float], y_ticks: Sequence[float]) -> None:
    """Ticks with their numbers, a quiet grid and two spines."""
    axes.set_facecolor("none")
    for axis, ticks in ((axes.xaxis, x_ticks), (axes.yaxis, y_ticks)):
        axis.set_ticks([], minor=True)
        axis.set_ticks(list(ticks), [tick_text(tick) for tick in ticks])
    axes.tick_params(length=2.5, width=0.6, pad=2, colors=INK, labelsize=TICK_SIZE)
    axes.grid(color=GRID, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["bottom", "left"]].set_color(INK)


def spread_out(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions at least `gap` apart and nearest to the wanted ones, given ascending, by least squares.

    They lie within [low, high] where that holds all of them. Isotonic regression by pooling neighbours
    (Barlow et al., 1972) of the positions less the gaps below them.
    """
    pools: list[list[float]] = []
    for index, position in enumerate(wanted):
        pools.append([position - index * gap, 1.0])
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            mean, count = pools.pop()
            pools[-1][0] = (pools[-1][0] * pools[-1][1] + mean * count) / (pools[-1][1] + count)
            pools[-1][1] += count
    flat = [mean for mean, count in pools for _ in range(int(count))]
    top = max(low, high - gap * (len(flat) - 1))
    return [min(max(mean, low), top) + index * gap for index, mean in enumerate(flat)]


# -- files ----------------------------------------------------------------------------------------


def render(figure: Figure, kind: str) -> bytes:
    """A figure as the bytes of a "pdf", "svg" or "png" (200 dots per inch), without dates or versions.

    Raises ValueError for any other kind.
    """
    metadata = {
        "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
        "svg": {"Date": None, "Creator": None},
        "png": {"Software": None},
    }
    if kind not in metadata:
        raise ValueError(f"a figure can be written as .pdf, .svg or .png, not .{kind}")
    buffer = io.BytesIO()
    with styled():
        figure.savefig(buffer, format=kind, dpi=200 if kind == "png" else 72, metadata=metadata[kind])
    return _rounded(buffer.getvalue()) if kind == "svg" else buffer.getvalue()


def _rounded(content: bytes) -> bytes:
    """An SVG with its coordinates to a hundredth of a point: a third less of it, and nothing to be seen."""

    def shorter(found):
        return re.sub(r"-?\d+\.\d{3,}", lambda digits: f"{float(digits[0]):.2f}", found[0])

    return re.sub(r'(?<= d=")[^"]+|(?<= [xy]=")[^"]+', shorter, content.decode()).encode()


def smallest_svg(figure: Figure) -> str:
    """A figure of many pictures as an SVG to stand in a page: as it is, or, if that is smaller, compressed.

    Photographs in an SVG are PNG; compressed, the whole figure is one WebP picture, and its text no text any
    more, but it takes a fraction.
    """
    plain = render(figure, "svg").decode()
    with Image.open(io.BytesIO(render(figure, "png"))) as drawn:
        buffer = io.BytesIO()
        drawn.convert("RGB").save(buffer, "WEBP", quality=75)
        width, height = drawn.size
    content = base64.b64encode(buffer.getvalue()).decode()
    compressed = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">'
        f'<image width="{width}" height="{height}" href="data:image/webp;base64,{content}"/></svg>\n'
    )
    return min(plain, compressed, key=len)


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure to a .pdf, .svg or .png file, whole or not at all.

    Raises ValueError for another ending, OSError where the file cannot be written.
    """
    path = Path(path)
    content = render(figure, path.suffix.removeprefix(".").lower())
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
