"""The templates of pages of results and of the site, and names and numbers as people read them."""

import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TypeGuard

import jinja2
from markupsafe import Markup

from reporting.printed.marks import number
from reporting.tables.titles import COLLAPSED, EN_DASH, FILLED
from tiebench.metrics import label


def environment(folders: Iterable[Path] = ()) -> jinja2.Environment:
    """The templates of this folder, and of others, which are searched first."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, Path(__file__).parent]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"metric": metric_words, "subscripts": subscripts, "anchor": anchor}
    made.filters |= {"signed": signed, "probability": probability}
    made.globals |= {"collapsed": COLLAPSED, "filled": FILLED, "dash": EN_DASH}
    return made


def anchor(name: str) -> str:
    """A name as it may stand in the id of an element."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name)


def metric_words(metric: str) -> Markup:
    text, subscript = label(metric)
    return Markup("{}<sub>{}</sub>").format(text, subscript) if subscript else Markup("{}").format(text)


def subscripts(text: str) -> Markup:
    """Plain text with AP_T and NDCG_T set as they are in the paper."""
    escaped = str(Markup.escape(text))
    return Markup(re.sub(r"\b(AP|NDCG)_T\b", r"\1<sub>T</sub>", escaped))


def known(value: float | None) -> TypeGuard[float]:
    return value is not None and not math.isnan(value)


def signed(value: float | None) -> str:
    return number(value, 4, "+") if known(value) else EN_DASH


def probability(value: float | None) -> str:
    """A p-value for people: "0.012", "< 0.001"; an en dash for none."""
    if not known(value):
        return EN_DASH
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def equals(p: float) -> str:
    text = probability(p)
    return text if text.startswith("<") else f"= {text}"


def plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
