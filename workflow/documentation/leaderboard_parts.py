"""What the pages of leaderboards share: a protocol, rows and cells of tables, parts in HTML."""

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import jinja2

from reporting import page
from reporting.leaderboard import Board, standings
from reporting.page.legend import legend
from reporting.records.collapsed import COLLAPSED
from reporting.tables.model import Table
from reporting.tables.titles import EN_DASH
from tiebench import leaderboards

FOLDER = "leaderboards"
_TEMPLATES = (Path(__file__).parent / "templates", Path(page.__file__).parent)


@dataclass(frozen=True)
class Protocol:
    """What the pages of a protocol are made from.

    folder: of the leaderboards; table: of `boards.as_table`, with complete styles.
    """

    folder: Path
    board: Board
    table: Table
    standings: standings.Standings

    @property
    def name(self) -> str:
        return self.board.protocol

    @property
    def title(self) -> str:
        return self.board.about["title"]

    @property
    def place(self) -> str:
        """Its page, path among the site's sources."""
        return f"{FOLDER}/{self.name}.md"

    @property
    def comparison(self) -> str:
        """The page that compares two of its methods."""
        return f"{FOLDER}/{self.name}-compare.md"

    @functools.cached_property
    def rows(self) -> tuple[leaderboards.Row, ...]:
        """Its cells of all metrics; kept, since every page of a method reads them."""
        return leaderboards.load(self.name, self.folder).rows

    def rank(self, method: str, bits: int) -> str:
        """ "3 of 36", or a dash for what has no rank."""
        row = next((row for row in self.standings.rows if row.method == method), None)
        cell = row and row.cells.get(bits)
        if not cell or cell.rank is None:
            return EN_DASH
        return f"{cell.rank} of {self.standings.competitors[bits]}"


@dataclass(frozen=True)
class Rows:
    """What stands before the cells of a row. pages: of methods; table: of `boards.as_table`."""

    pages: Mapping[str, str]
    table: Table

    @functools.cached_property
    def swatches(self) -> dict[str, str]:
        """Method -> its line and marker in the figures."""
        return {name: swatch for name, (_, swatch) in legend([self.table]).items()}

    def row(self, row: standings.Row, cells: Iterable[Mapping]) -> dict:
        page = self.pages.get(row.method, "")
        return {
            "method": row.method,
            "title": row.title,
            "marks": row.heading.removeprefix(row.title),
            "link": f"../{page.removesuffix('.md')}.html" if page else "",
            "swatch": self.swatches.get(row.method, ""),
            "kind": "" if row.competes else "apart",
            "cells": list(cells),
        }


def column(
    title: str | tuple[str, str], sorted_: bool = False, smallest: bool = False, words: bool = False
) -> dict:
    """A column. title: a text, or what `metrics.label` makes; sorted_: whether rows stand in its order,
    largest first; smallest: whether sorting begins with the smallest; words: no numbers."""
    text, subscript = (title, "") if isinstance(title, str) else title
    return {"title": text, "subscript": subscript, "sorted": sorted_, "smallest": smallest, "words": words}


def cell(
    text: str,
    value: str = "",
    *,
    spread: str = "",
    best: bool = False,
    note: str = "",
    words: bool = False,
) -> dict:
    """A cell. value: what rows are sorted by, "" for nothing; note: why it is empty; words: no number."""
    return {"text": text, "value": value, "spread": spread, "best": best, "note": note, "words": words}


def score(of: standings.Cell | None, best: bool = False) -> dict:
    """A mean with its standard deviation."""
    if of is None or math.isnan(of.mean):
        return cell(EN_DASH, note=of.reason if of else "")
    spread = "" if math.isnan(of.std) else f" ± {of.std:.3f}"
    text = number(of.mean) + (COLLAPSED if of.collapsed else "")
    return cell(text, f"{of.mean:.6g}", spread=spread, best=best)


def seconds(of: float | None) -> dict:
    """Seconds with three digits, at most three decimals."""
    if of is None or math.isnan(of):
        return cell(EN_DASH)
    decimals = 0 if of >= 100 else 1 if of >= 10 else 2 if of >= 1 else 3
    return cell(f"{of:.{decimals}f}", f"{of:.4g}")


def count(number: int, thing: str) -> str:
    """ "1 seed", "2 seeds"."""
    return f"{number} {thing}" + "s" * (number != 1)


def number(value: float) -> str:
    return f"{value:.3f}"


_TEMPLATE = jinja2.Environment(
    loader=jinja2.FileSystemLoader(_TEMPLATES),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
).get_template("leaderboards.html.j2")


def html(part: str, content) -> str:
    """A macro of the template, as a block of HTML in Markdown."""
    made = str(getattr(_TEMPLATE.module, part)(content)).strip()
    return f"```{{raw}} html\n{made}\n```"


def document(*parts: str) -> str:
    return "\n\n".join(parts) + "\n"
