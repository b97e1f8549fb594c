"""Numbers as people read them on the page."""

import json
import math
from typing import TypeGuard

from reporting.printed.marks import number
from reporting.tables.titles import EN_DASH


def known(value: float | None) -> TypeGuard[float]:
    return value is not None and not math.isnan(value)


def signed(value: float | None, digits: int = 4) -> str:
    return number(value, digits, "+") if known(value) else EN_DASH


def probability(value: float | None) -> str:
    """A p-value for people: "0.012", "< 0.001"; an en dash for none."""
    if value is None or math.isnan(value):
        return EN_DASH
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def equals(p: float) -> str:
    text = probability(p)
    return text if text.startswith("<") else f"= {text}"


def plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
