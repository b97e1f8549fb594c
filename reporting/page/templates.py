"""The templates of pages of results and of the site, with what all of them know."""

import re
from collections.abc import Iterable
from pathlib import Path

import jinja2
from markupsafe import Markup

from reporting.page.words import probability, signed
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
