"""How a figure is drawn: width, size of text, title."""

import math
from dataclasses import dataclass, field

# Inches and points between which a layout is possible.
WIDTHS, FONT_SIZES = (2.0, 40.0), (4.0, 30.0)


@dataclass(frozen=True)
class Options:
    """How a figure is drawn.

    width: of the figure in inches, None for the figure's own; font_size: of ordinary text in points (8 is
    the layout's own: other sizes scale lines and markers too); title: None for the figure's own, a text
    instead of it, or False or "none" for neither title nor subtitle; costs: those that the figure of costs
    draws, with names beside their points.
    """

    width: float | None = None
    font_size: float = 8.0
    title: str | bool | None = None
    costs: tuple[str, ...] = field(default=(), metadata={"figure": "cost"})
    # Not for users: what every heading ends in, whatever the title.
    note: str = field(default="", metadata={"internal": True})

    def __post_init__(self):
        for name, (low, high) in (("width", WIDTHS), ("font_size", FONT_SIZES)):
            value = getattr(self, name)
            if value is None and name == "width":
                continue
            known = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
            if not known or not low <= value <= high:
                unit = "inches" if name == "width" else "points"
                raise ValueError(
                    f"figure option {name} must be a number of {unit} from {low:g} to {high:g}, not {value!r}"
                )
        if self.title not in (None, False) and not isinstance(self.title, str):
            raise ValueError(f"figure option title must be a text, false or null, not {self.title!r}")


DEFAULT = Options()
