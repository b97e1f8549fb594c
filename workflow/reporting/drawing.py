"""What all figures share: style, the colour and marker of each method, and files of the same bytes."""

import colorsys
import hashlib
import io
import os
from pathlib import Path

import matplotlib
import matplotlib.style
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

# The eight colours of Okabe and Ito, but for black, which is the dots', and then those of Paul Tol's muted
# scheme: told apart with every common kind of colour blindness as far as so many can be.
COLOURS = {
    "talr_ap": "#D55E00",
    "talr_ndcg": "#E69F00",
    "mihash": "#0072B2",
    "hashnet": "#56B4E9",
    "dtsh": "#009E73",
    "dpsh": "#CC79A7",
    "itq": "#F0E442",
    "structhash": "#332288",
    "fasthash": "#44AA99",
    "machash": "#999933",
    "bre": "#882255",
    "lsh": "#999999",
    "talr_ap_continuation": "#CC6677",
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
# Behind text, so that no grid line crosses it.
BEHIND = {"facecolor": SURFACE, "edgecolor": "none", "pad": 0.6}


def colour(method: str) -> str:
    """The colour of a method, "#RRGGBB", the same in every figure; an unknown one's comes from its name."""
    if method in COLOURS:
        return COLOURS[method]
    number = int.from_bytes(hashlib.sha256(method.encode()).digest()[:4], "big")
    red, green, blue = colorsys.hls_to_rgb(number / 2**32, 0.50, 0.45)
    return f"#{round(red * 255):02X}{round(green * 255):02X}{round(blue * 255):02X}"


def text_width(text: str, size: float, weight: str = "normal") -> float:
    """Width of text in inches, from the outlines of the font that matplotlib brings along."""
    font = FontProperties(family="DejaVu Sans", size=size, weight=weight)
    return TextPath((0, 0), text, prop=font).get_extents().width / 72 if text.strip() else 0.0


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
    with matplotlib.style.context(["default", STYLE]):
        figure.savefig(buffer, format=kind, dpi=200 if kind == "png" else 72, metadata=metadata[kind])
    return buffer.getvalue()


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
