"""Colours of figures on a page that may be light or dark."""

import re
from collections.abc import Iterable

from reporting.drawing.method_styles import CONTRAST, contrast
from tiebench.figure_style import FRONT, GRID, INK, MUTED, SURFACE, TIE

# The page's two backgrounds are white and this.
DARK_SURFACE = "#15181B"
# Colours of figures that are part of the page's light or dark scheme.
SCHEME = {
    INK.lower(): "currentColor",
    SURFACE.lower(): "var(--surface)",
    GRID.lower(): "var(--line)",
    MUTED.lower(): "var(--quiet)",
    FRONT.lower(): "var(--front)",
    TIE.lower(): "var(--band)",
}


def on_dark(rgb: str) -> str:
    """The colour "#RRGGBB" itself if it is visible on the dark page, else the nearest lighter one that is."""
    channels = [int(rgb[start : start + 2], 16) for start in (1, 3, 5)]
    for step in range(21):
        mixed = [round(part + (255 - part) * step / 20) for part in channels]
        lighter = "#" + "".join(f"{part:02X}" for part in mixed)
        if contrast(lighter, DARK_SURFACE) >= CONTRAST:
            return lighter
    raise AssertionError("white is visible on the dark page")


def themed(rgb: str) -> str:
    """A colour "#RRGGBB" for a style sheet: a variable where the dark page needs another one."""
    if variable := SCHEME.get(rgb.lower()):
        return variable
    return rgb if contrast(rgb, DARK_SURFACE) >= CONTRAST else f"var(--c{rgb[1:].lower()})"


def lighter(texts: Iterable[str]) -> dict[str, str]:
    """The colours that these texts have as variables of `themed` -> those of the dark page; sorted."""
    found = {f"#{rgb}" for text in texts for rgb in re.findall(r"var\(--c([0-9a-f]{6})\)", text)}
    return {rgb: on_dark(rgb) for rgb in sorted(found)}
