"""The methods of figures with their lines and markers, as pages list them."""

from collections.abc import Iterable
from dataclasses import replace

from markupsafe import Markup
from matplotlib.markers import MarkerStyle
from matplotlib.path import Path

from reporting.drawing.axes import LINE
from reporting.drawing.method_styles import method_style, method_styles
from reporting.page.colours import themed
from reporting.tables.model import Table
from tiebench.figure_style import SURFACE

# Of a swatch, for each point of a figure.
PIXELS = 1.5


def swatches(tables: Iterable[Table]) -> dict[str, tuple[str, Markup]]:
    """(title, swatch) of each method of the tables, as the figures of the first that has it draw it."""
    found: dict[str, tuple[str, Markup]] = {}
    for table in tables:
        drawn = replace(table, styles=method_styles(table))
        for method in drawn.styles:
            found.setdefault(method, (drawn.method_title(method), swatch(method_style(drawn, method))))
    return found


def swatch(drawn: dict) -> Markup:
    """A line with a marker. drawn: of `method_styles.method_style`."""
    dashes = [] if drawn["linestyle"] == "solid" else drawn["linestyle"][1]
    lengths = " ".join(f"{part * PIXELS * LINE['linewidth']:.3g}" for part in dashes)
    outline = marker_outline(drawn["marker"], PIXELS * drawn["markersize"])
    return Markup(
        '<svg class="swatch" viewBox="0 0 28 12" aria-hidden="true" style="color: {}">'
        '<path d="M0 6h28"{}/><path class="{}" d="{}"/></svg>'
    ).format(
        themed(drawn["color"]),
        Markup(' stroke-dasharray="{}"').format(lengths) if lengths else "",
        "hollow" if drawn["markerfacecolor"] == SURFACE else "filled",
        outline,
    )


def marker_outline(marker: str, size: float) -> str:
    """A marker of matplotlib about (14, 6), as the path of an SVG. size: in pixels."""
    style = MarkerStyle(marker)
    path = style.get_path().transformed(style.get_transform())
    letters = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C"}
    parts = []
    for points, code in path.iter_segments(simplify=False):
        if code == Path.CLOSEPOLY:
            parts.append("z")
            continue
        places = points.reshape(-1, 2) * (size, -size) + (14, 6)
        parts.append(letters[code] + " ".join(f"{value:.4g}" for value in places.ravel()))
    return "".join(parts)
