"""What the pages of leaderboards share: a protocol, its rows and cells, parts in HTML."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from reporting.leaderboard import Board
from reporting.leaderboard.boards import results_of
from reporting.page.scores import column, plain, score_cell
from reporting.page.swatches import swatches
from reporting.page.templates import environment, metric_words
from reporting.printed.cells import Cell, Cells, cells
from reporting.tables.model import Group, Table
from reporting.tables.runs import Results
from reporting.tables.titles import EN_DASH, UNCODED, UNCODED_TITLE
from tiebench.metrics import resolve

FOLDER = "leaderboards"
_TEMPLATES = environment([Path(__file__).parent / "templates"])
_MACROS = {
    name: macro
    for file in ("figure.html.j2", "scores.html.j2", "leaderboards.html.j2")
    for name, macro in vars(_TEMPLATES.get_template(file).module).items()
}
# A column of a table, and the cell of each method.
Column = tuple[dict, Callable[[str], dict]]


@dataclass(frozen=True)
class Protocol:
    """What the pages of a protocol are made from.

    folder: of the leaderboards; table: of `boards.as_table`, with complete styles, a block for each metric,
    the main one first, of the protocol, then of each fold.
    """

    folder: Path
    board: Board
    table: Table

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

    @property
    def main(self) -> Group:
        """The block of the metric that its rows stand by."""
        return self.table.groups[0]

    @functools.cached_property
    def results(self) -> Results:
        return results_of(self.table, [self.board])

    @functools.cached_property
    def printed(self) -> Cells:
        """Its cells; without published scores, whose sources it does not name."""
        frame = self.board.tidy.assign(published=float("nan"), difference=float("nan"))
        known = frame["method"].isin([*self.board.methods, UNCODED])
        return cells(
            frame[known & frame["metric"].isin({group.metric for group in self.table.groups})], self.table
        )

    @functools.cached_property
    def swatches(self) -> dict[str, Markup]:
        """Method -> its line and marker in the figures."""
        return {name: swatch for name, (_, swatch) in swatches([self.table]).items()}

    def cell(self, method: str, bits: int) -> Cell | None:
        """A cell of the main metric that has a score."""
        cell = self.printed.of.get(self.main.cell(method, bits))
        return cell if cell is not None and cell.known else None

    def methods(self, *lengths: int) -> list[str]:
        """Its rows, that of the features themselves among them: the best first, at the longest of the code
        lengths that they have a score of. lengths: all by default; what has no cell there is left out."""
        sign = -1 if resolve(self.main.metric)[0].higher_is_better else 1
        found: dict[str, tuple[int, float]] = {}
        for method in self.methods() if lengths else (*self.board.methods, UNCODED):
            for bits in lengths or self.main.bits:
                if cell := self.cell(method, bits):
                    found[method] = -bits, sign * cell.mean
                elif self.main.cell(method, bits) in self.printed.of:
                    found.setdefault(method, (0, 0.0))
        return sorted(found, key=lambda method: found[method])

    def rank(self, method: str, bits: int) -> str:
        """ "3 of 36", or a dash for what has no rank."""
        cell = self.cell(method, bits)
        return f"{cell.place} of {self.competitors(bits)}" if cell and cell.place else EN_DASH

    def competitors(self, bits: int) -> int:
        """How many methods have a rank at a code length."""
        found = (self.cell(method, bits) for method in self.board.methods)
        return sum(cell is not None and cell.place is not None for cell in found)

    def score(
        self, group: Group, bits: int, title: str = "", sort: str = "none", spread: bool = True
    ) -> Column:
        """The scores of a block at a code length, by default under the name of its metric."""

        def of(method: str) -> dict:
            place = group.cell(method, bits)
            if (cell := self.printed.of.get(place)) is None:
                return plain(EN_DASH, "")
            return score_cell(self.table, self.results, place, cell) | ({} if spread else {"std": ""})

        return column(title or metric_words(group.metric), sort, bits=bits), of

    def html_table(
        self,
        id_: str,
        caption: str,
        columns: Sequence[Column],
        pages: Mapping[str, str],
        methods: Sequence[str] = (),
        groups: Sequence[tuple[str, int]] = (),
        anchors: bool = False,
    ) -> str:
        """A table of rows of methods, all of them by default.

        pages: method -> its page, path among the site's sources; groups: headings of columns beside each
        other, with how many they are; anchors: whether links lead to its rows.
        """
        rows = []
        for method in methods or self.methods():
            features, page = method == UNCODED, pages.get(method, "")
            title = UNCODED_TITLE if features else self.table.method_title(method)
            marks = "" if features else self.table.row_title(method).removeprefix(title)
            link = f"../{page.removesuffix('.md')}.html" if page else ""
            anchor = method if anchors else ""
            name = part("method", title, marks, link, self.swatches.get(method, ""), anchor)
            row = {"id": "" if features else method, "anchor": anchor, "value": title, "name": name}
            rows.append(row | {"cells": [cell_of(method) for _, cell_of in columns]})
        heads = [column("Method", left=True), *(head for head, _ in columns)]
        content = {"id": id_, "caption": caption, "region": caption, "notes": "scores", "groups": groups}
        return html("scores", content | {"columns": heads, "families": [{"title": "", "rows": rows}]})


def part(name: str, *content) -> Markup:
    """A macro of the templates."""
    return Markup(str(_MACROS[name](*content)).strip())


def html(name: str, *content) -> str:
    """A macro of the templates, as a block of HTML in Markdown."""
    return f"```{{raw}} html\n{part(name, *content)}\n```"


def document(*parts: str) -> str:
    return "\n\n".join(parts) + "\n"
