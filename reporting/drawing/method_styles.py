"""What a method looks like in all figures of a table: colour, marker and dashes, no two methods alike."""

import colorsys
import functools
import hashlib
import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

import matplotlib
import numpy as np
from matplotlib.colors import to_hex, to_rgb

from reporting.tables.model import Style, Table
from tiebench import figure_style as look

# Lengths of strokes and gaps in line widths; () is a solid line.
SOLID, LONG, SHORT, DOTTED, MIXED = (), (6.0, 1.5), (3.0, 1.3), (1.0, 1.2), (5.0, 1.3, 1.0, 1.3)
# Markers that are distinguishable when small, in the order in which methods without one get them -> dashes,
# filled and not.
DASHES = {
    "o": (SOLID, SHORT),
    "s": (SHORT, MIXED),
    "^": (DOTTED, LONG),
    "D": (LONG, SOLID),
    "v": (MIXED, DOTTED),
    "P": (SHORT, LONG),
    "X": (LONG, DOTTED),
    "*": (SOLID, MIXED),
    "<": (DOTTED, SOLID),
    ">": (MIXED, SHORT),
    "p": (SHORT, DOTTED),
    "h": (LONG, MIXED),
}
MARKERS = tuple(DASHES)
# For methods without a colour: of Okabe and Ito's colours and Paul Tol's schemes (muted, dark, bright and
# vibrant) those that stand out on white and, where need be made lighter, on black.
PALETTE = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#AA4499",
    "#332288",
    "#225522",
    "#882255",
    "#777777",
    "#EE6677",
    "#666633",
    "#997700",
    "#44AA99",
    "#AA3377",
    "#994455",
    "#004488",
    "#CC3311",
    "#117733",
    "#EE3377",
    "#3388DD",
)
# Distances of two methods' colours in Oklab, in which black and white are 1 apart: at least, and wanted where
# there are colours enough.
APART, WELL_APART = 0.075, 0.16
# Linear sRGB to the cones of an eye, and the cube roots of these to Oklab.
CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
OKLAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
# What WCAG 2.2, 1.4.11, asks of graphics.
CONTRAST = 3.0


def method_styles(table: Table) -> dict[str, Style]:
    """How each method of a table is drawn: its style with colour, marker, filled and dashes.

    Keeps what `table.styles` says and completes it, so that no two methods of the table share a colour, or a
    marker and whether it is filled:

    * a colour that another method has already gets a lighter or darker shade, so variants that inherit the
      colour of their class look related; a method without a colour gets one that is far from all others;
    * a marker that is taken becomes hollow, and then another one; the dashes follow from both.

    The same table gives the same styles. `method_style` gives them as arguments of a Line2D.
    """
    methods = dict.fromkeys([*table.methods, *table.styles])
    said = {method: table.style(method) for method in methods}
    found = _completed(tuple((method, of.colour, of.marker) for method, of in said.items()))
    return {
        method: replace(
            said[method], colour=colour, marker=marker, filled=filled, dashes=DASHES[marker][not filled]
        )
        for method, (colour, (marker, filled)) in found.items()
    }


@functools.lru_cache(maxsize=64)
def _completed(wanted: tuple[tuple[str, str | None, str | None], ...]) -> dict[str, tuple]:
    """Method -> (colour, (marker, filled)), of (method, colour, marker) as a table gives them.

    Kept, since each figure of a page asks for the styles of the same table.
    """
    colours: dict[str, str] = {}
    for method, given, _ in wanted:
        if given:
            colours[method] = _shade(given.upper(), colours.values())
    for method, given, _ in wanted:
        if not given:
            colours[method] = _free_colour(method, colours.values())
    shapes: dict[str, tuple[str, bool]] = {}
    for complete in (True, False):
        for method, _, marker in wanted:
            if (marker in DASHES) is complete:
                first = MARKERS.index(marker) if complete else _digest(method) % len(MARKERS)
                shapes[method] = _free_shape(first, complete, set(shapes.values()))
    return {method: (colours[method], shapes[method]) for method, _, _ in wanted}


def method_style(table: Table, method: str, size: float = 4.2) -> dict:
    """Marker, dashes and colour of a method as arguments of a Line2D, the same in all figures of a table.

    `size` is that of a round marker in points; the others get what looks as large.
    """
    style = _styles_of(table)[method]
    marker, filled, dashes, rgb = style.marker or "", style.filled, style.dashes, style.colour
    return {
        "color": rgb,
        "linestyle": (0, dashes) if dashes else "solid",
        "marker": marker,
        "markersize": round(size * {"D": 0.85, "s": 0.95, "X": 1.3, "P": 1.3, "*": 1.6}.get(marker, 1.1), 3),
        "markerfacecolor": rgb if filled else look.SURFACE,
        "markeredgecolor": look.SURFACE if filled else rgb,
        "markeredgewidth": 0.4 if filled else 0.9,
    }


def colour(table: Table, method: str) -> str:
    """The colour of a method, "#RRGGBB", the same in all figures of a table."""
    return _styles_of(table)[method].colour or look.SURFACE


def _styles_of(table: Table) -> Mapping[str, Style]:
    """Complete styles: those of the table where it has been through `method_styles`."""
    styles = table.styles
    complete = bool(styles) and all(style.dashes is not None for style in styles.values())
    return styles if complete else method_styles(table)


def _digest(method: str) -> int:
    return int.from_bytes(hashlib.sha256(method.encode()).digest()[:4], "big")


def _linear(rgb: str) -> list[float]:
    """Channels of a colour without the gamma of sRGB, 0 to 1."""
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(rgb)]


@functools.cache
def _oklab(rgb: str) -> tuple[float, ...]:
    """A colour in Oklab (Ottosson, 2020), where equal distances look about equally different."""
    return tuple(OKLAB @ np.cbrt(CONES @ _linear(rgb)))


def _distance(rgb: str, others: Iterable[str]) -> float:
    """Distance in Oklab to the nearest of the others; infinite where there are none."""
    return min((math.dist(_oklab(rgb), _oklab(other)) for other in others), default=math.inf)


def _shade(rgb: str, taken: Iterable[str]) -> str:
    """The colour itself where it is free, else the nearest shade of its hue that is apart from all."""
    taken = list(taken)
    if rgb not in taken:
        return rgb
    hue, light, saturation = colorsys.rgb_to_hls(*to_rgb(rgb))
    shades = [_from_hls(hue, level / 100, saturation) for level in range(18, 76, 2)]
    shades.sort(key=lambda shade: abs(colorsys.rgb_to_hls(*to_rgb(shade))[1] - light))
    return next((s for s in shades if _distance(s, taken) >= APART), None) or _farthest(shades, taken)


def _free_colour(method: str, taken: Iterable[str]) -> str:
    """A colour apart from all that are taken: of PALETTE, from a place that the name gives, else any hue."""
    taken = list(taken)
    start = _digest(method) % len(PALETTE)
    for apart, rgb in itertools.product((WELL_APART, APART), PALETTE[start:] + PALETTE[:start]):
        if _distance(rgb, taken) >= apart:
            return rgb
    hues = [_from_hls(hue / 36, light, 0.6) for hue in range(36) for light in (0.25, 0.35, 0.45)]
    return _farthest([rgb for rgb in hues if contrast(rgb, look.SURFACE) >= CONTRAST], taken)


def luminance(rgb: str) -> float:
    """Relative luminance of "#RRGGBB", 0 to 1, as WCAG 2.2 defines it."""
    linear = _linear(rgb)
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours "#RRGGBB", 1 to 21 (WCAG 2.2)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _farthest(colours: Iterable[str], taken: Iterable[str]) -> str:
    taken = list(taken)
    return max(colours, key=lambda rgb: (_distance(rgb, taken), rgb))


def _from_hls(hue: float, light: float, saturation: float) -> str:
    return to_hex(colorsys.hls_to_rgb(hue, light, saturation)).upper()


def _free_shape(first: int, keep: bool, taken: set) -> tuple[str, bool]:
    """(marker, filled): the marker itself, filled or hollow, else the next one that is free.

    Without `keep`, markers that are not in use come first. With more methods than shapes, shapes repeat.
    """
    order = [MARKERS[(first + step) % len(MARKERS)] for step in range(len(MARKERS))]
    free = [(marker, filled) for marker in order for filled in (True, False)]
    if not keep:
        used = {marker for marker, _ in taken}
        free.sort(key=lambda shape: (shape[0] in used, not shape[1]))
    return next((shape for shape in free if shape not in taken), free[0])


def shades(count: int) -> list[str]:
    """Colours "#RRGGBB" for an ordered series of `count`, light to dark in print and with colour blindness.

    Of matplotlib's viridis (Smith and van der Walt, 2015), without its yellow end.
    """
    viridis = matplotlib.colormaps["viridis"]
    steps = [0.75 * (1 - index / max(1, count - 1)) for index in range(count)] if count > 1 else [0.3]
    return [to_hex(viridis(step)).upper() for step in steps]
