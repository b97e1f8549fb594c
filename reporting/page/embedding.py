"""Files, figures and looks of methods in a form that can stand inside of an HTML page."""

import base64
import gzip
import html
import io
import re
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path as File
from urllib.parse import quote

from markupsafe import Markup
from matplotlib.markers import MarkerStyle
from matplotlib.path import Path
from PIL import Image

from reporting.page.charts import on_dark
from tiebench.figure_style import FRONT, GRID, INK, MUTED, SURFACE

MEDIA = {".csv": "text/csv", ".md": "text/markdown", ".svg": "image/svg+xml", ".tex": "application/x-tex"}
# Characters that may stand as they are in a data: URL inside a quoted attribute.
PLAIN_IN_URL = " !$()*+,/:;=?@[]|"
# Outlines of Chart.js point styles about (14, 6).
GLYPHS = {
    "circle": "M10.5 6a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z",
    "rect": "M11 3h6v6h-6z",
    "triangle": "M14 2l4 7h-8z",
    "rectRot": "M14 2l4 4l-4 4l-4 -4z",
    "cross": "M14 2v8M10 6h8",
    "crossRot": "M11 3l6 6M17 3l-6 6",
    "star": "M14 2v8M10 6h8M11 3l6 6M17 3l-6 6",
    "rectRounded": "M12 3h4l1 1v4l-1 1h-4l-1 -1v-4z",
}
# Of a swatch, for each point of a marker.
PIXELS = 1.5
# Colours of figures that follow the page's light or dark scheme.
SCHEME = {
    INK.lower(): "currentColor",
    SURFACE.lower(): "var(--surface)",
    GRID.lower(): "var(--line)",
    MUTED.lower(): "var(--quiet)",
    FRONT.lower(): "var(--front)",
}


def lighter(colours: Iterable[str]) -> dict[str, str]:
    """Those of the colours "#RRGGBB" that the dark page needs lighter -> the lighter ones."""
    return {rgb: on_dark(rgb) for rgb in dict.fromkeys(colours) if on_dark(rgb) != rgb}


def data_url(name: str, text: str) -> str:
    """A file as a data: URL of its bytes in UTF-8, of the media type that its name's ending says."""
    media = MEDIA.get(File(name).suffix, "text/plain")
    # A run of spaces at the end of a URL would be cut off.
    content = re.sub(r" +$", lambda run: "%20" * len(run[0]), quote(text, safe=PLAIN_IN_URL))
    return f"data:{media};charset=utf-8,{content}"


def packed(text: str) -> str:
    """Text in UTF-8, compressed with gzip, in base64: what the page's script makes a file of.

    A figure is already in the page; a data: URL would embed it a second time.
    """
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def smallest_svg(svg: str, png: bytes) -> str:
    """A figure of many pictures as an SVG to embed in a page: unchanged, or compressed if that is smaller.

    svg, png: two files of one figure. Photographs in an SVG are PNG; compressed, the whole figure is one WebP
    picture without text, but a fraction of the size.
    """
    with Image.open(io.BytesIO(png)) as drawn:
        buffer = io.BytesIO()
        drawn.convert("RGB").save(buffer, "WEBP", quality=75)
        width, height = drawn.size
    content = base64.b64encode(buffer.getvalue()).decode()
    compressed = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">'
        f'<image width="{width}" height="{height}" href="data:image/webp;base64,{content}"/></svg>\n'
    )
    return min(svg, compressed, key=len)


def swatch(style: Mapping) -> Markup:
    """A line with the colour, dash and marker of a method, for a legend of charts.

    style: of `charts.chart_styles`.
    """
    return _swatch(style, style["fill"], GLYPHS[style["marker"]], style["rotation"])


def figure_swatch(style: Mapping, drawn: Mapping) -> Markup:
    """`swatch` with the marker of the figures. drawn: of `method_styles.method_style`."""
    hollow = drawn["markerfacecolor"] == SURFACE
    outline = marker_outline(drawn["marker"], PIXELS * drawn["markersize"])
    return _swatch(style, "hollow" if hollow else "filled", outline)


def _swatch(style: Mapping, fill: str, outline: str, rotation: int = 0) -> Markup:
    dash = " ".join(map(str, style["dash"]))
    return Markup(
        '<svg class="swatch" viewBox="0 0 28 12" aria-hidden="true" style="--light: {}; --dark: {}">'
        '<path d="M0 6h28"{}/><path class="{}" d="{}"{}/></svg>'
    ).format(
        style["colour"],
        style["dark"],
        Markup(' stroke-dasharray="{}"').format(dash) if dash else "",
        fill,
        outline,
        Markup(' transform="rotate({} 14 6)"').format(rotation) if rotation else "",
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


def inline_svg(text: str, name: str, label: str = "", colours: Iterable[str] = ()) -> Markup:
    """An SVG file as an element to stand in an HTML page, beside others; `label` says what it shows.

    colours: those of methods, "#RRGGBB".

    XML prolog, document type, metadata, comments and ids that nothing refers to go; the other ids, and every
    reference to one, become `name` and a number; the style sheet inside applies to this figure alone; black,
    white, the greys and the colours of methods too dark for it follow the page's colour scheme; places are
    cut to hundredths of a point; what is repeated or says nothing is left out: groups without attributes,
    letters of paths, styles of markers, a font that all text has; the size is left to the page.

    Raises ValueError where `text` has no <svg> element.
    """
    start = re.search(r"<svg\b", text)
    if start is None:
        raise ValueError(f"figure {name}: not an SVG file")
    prefix = "figure-" + re.sub(r"[^A-Za-z0-9]+", "-", name)
    text = text[start.start() :]
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"\s*<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r">\s+<", "><", text)
    asked = dict.fromkeys(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    # Every marker repeats the id of its outline: a checksum is shorter than the name of the figure.
    own = f"f{zlib.crc32(prefix.encode()):x}"
    short = {name: f"{own}-{number}" for number, name in enumerate(asked)}
    text = re.sub(
        r'\s+id="([^"]+)"', lambda found: f' id="{short[found[1]]}"' if found[1] in short else "", text
    )
    text = re.sub(
        r'\b(?:xlink:)?href="#([^"]+)"|url\(#([^)]+)\)',
        lambda found: f'href="#{short[found[1]]}"' if found[1] else f"url(#{short[found[2]]})",
        text,
    )
    text = re.sub(r'(<style type="text/css">)\s*\*', rf"\1#{prefix} *", text)
    text = re.sub(
        r'\b(?:d|x|y|points|transform)="[^"]*"', lambda found: re.sub(r"(\.\d\d)\d+", r"\1", found[0]), text
    )
    text = re.sub(r'\bd="([^"]*)"', lambda found: f'd="{_compact(found[1])}"', text)
    text = re.sub(r' transform="rotate\(-?0 [^"]*"', "", text)
    text = re.sub(r' style="([^"]*)"', lambda found: f' style="{_short_style(found[1])}"', text)
    text = _without_bare_groups(re.sub(r"<g>((?:<use [^>]*/>)+)</g>", _one_style, text))
    fonts = set(re.findall(r'font-family:[^;"]*', text))
    if len(fonts) == 1:
        (font,) = fonts
        text = re.sub(rf"(?<=[\";]){re.escape(font)};?", "", text)
    else:
        font = ""
    for colour, variable in SCHEME.items():
        text = text.replace(colour, variable)
    for colour in lighter(colours):
        text = text.replace(colour.lower(), f"var(--c{colour[1:]})")
    opening, rest = text.split(">", 1)
    size = re.search(r'viewBox="[\d.-]+ [\d.-]+ ([\d.]+) ([\d.]+)"', opening)
    if size is None:
        raise ValueError(f"{name}: its SVG file has no viewBox")
    width, height = size.groups()
    label = html.escape(label or name.replace("_", " "), quote=True)
    own_style = f' style="{font}"' if font else ""
    return Markup(
        f'<svg id="{prefix}" viewBox="0 0 {width} {height}" role="img" aria-label="{label}"{own_style}>'
        f"{rest.rstrip()}"
    )


def _compact(path: str) -> str:
    """The `d` of a path with every letter only where it is needed: after M and L further pairs are lines."""
    parts, before = [], ""
    for letter, numbers in re.findall(r"([A-Za-z])([^A-Za-z]*)", path):
        repeated = letter == "L" and before in ("M", "L")
        parts.append((" " if repeated else letter) + " ".join(numbers.split()))
        before = letter
    return "".join(parts)


def _one_style(group: re.Match) -> str:
    """A group of markers, with their style once if all have the same."""
    styles = set(re.findall(r' style="([^"]*)"', group[1]))
    if len(styles) != 1 or group[1].count(" style=") != group[1].count("<use "):
        return group[0]
    (style,) = styles
    return f'<g style="{style}">' + group[1].replace(f' style="{style}"', "") + "</g>"


def _short_style(style: str) -> str:
    """A style without spaces and without what is so anyway."""
    parts = [re.sub(r":\s+", ":", part.strip()) for part in style.split(";")]
    return ";".join(part for part in parts if part and part != "stroke-dashoffset:0")


def _without_bare_groups(text: str) -> str:
    """The content of groups that have no attribute, in their place."""
    parts, kept = [], []
    for part in re.split(r"(<g\b[^>]*>|</g>)", text):
        if re.fullmatch(r"<g\b[^>]*(?<!/)>", part):
            kept.append(part != "<g>")
            if not kept[-1]:
                continue
        elif part == "</g>" and not kept.pop():
            continue
        parts.append(part)
    return "".join(parts)
