"""What the pages of leaderboards are made from: the tables of protocols with what was measured of them."""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from reporting import figures
from reporting.drawing.axes import NothingToDraw
from reporting.leaderboard import Board
from reporting.leaderboard.boards import Boards, as_table, main_metric, other_metrics, results_of
from reporting.page.table_view import Drawing, TableView
from reporting.printed.cells import Cell, Cells, cells
from reporting.statistics import columns
from reporting.statistics.samples import Pair, all_pairs, sample
from reporting.tables.model import Group, Table
from reporting.tables.runs import Results, Run
from reporting.tables.titles import EN_DASH, UNCODED
from tiebench.figure_style import render
from tiebench.leaderboards import stems
from tiebench.metrics import resolve

FOLDER = "leaderboards"
# A lookup in hash tables, by metrics.
CANDIDATES, RECALL = "candidates_radius_2", "recall_radius_2"
WIDTH = 3.7  # inches: what a telephone shows without making text smaller
OF_COSTS = (
    "A point is a method at one code length; the large marker is its longest, with the name where it "
    "fits. Up is better, left is cheaper. Grey steps: the best score within a number of seconds, of the "
    "methods with a rank."
)
OF_LOOKUPS = (
    "What a search in hash tables costs, whatever the machine: a query is compared with all items "
    "within Hamming radius 2 (means over queries and seeds), and recall is the share of the relevant "
    "items among them. Up is better, left is cheaper; names, large markers and grey steps as above. "
    "A method whose queries find nothing is not drawn."
)
OF_BITS = "Means over seeds; thin upright lines run from the lowest seed to the highest."
# Name -> kind of figure, its costs, metric ("" for the main one), title, caption.
CHARTS = {
    "bits": ("metric_by_bits", "", "", "Score against bits", OF_BITS),
    "fit": ("cost", "fit", "", "Score against seconds of training", OF_COSTS),
    "encode": ("cost", "encode", "", "Score against seconds of encoding", OF_COSTS),
    "lookup": ("cost", CANDIDATES, RECALL, "Recall of a lookup against its candidates", OF_LOOKUPS),
}


@dataclass(frozen=True)
class Protocol:
    """What the pages of a protocol are made from.

    table: of `boards.as_table`; its first block has the main metric at all code lengths, the others have
    other metrics and the folds at the longest; runs: with scores of queries.
    """

    board: Board
    table: Table
    runs: list[Run]

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
    def main(self) -> Group:
        """The block of the metric that its rows stand by."""
        return self.table.groups[0]

    @functools.cached_property
    def results(self) -> Results:
        return results_of(self.table, [self.board], self.runs)

    @functools.cached_property
    def pairs(self) -> dict[int, dict[tuple[str, str], Pair]]:
        """Bits -> all pairs of methods with scores by the main metric, each once, in the board's order."""
        found = {}
        for bits in self.main.bits:
            every = {
                method: sample(self.results.cell(self.name, method, bits), self.main.metric)
                for method in self.board.methods
            }
            samples = {method: of for method, of in every.items() if of is not None}
            ranked = {method for method in samples if self.table.competes(method, self.name)}
            found[bits] = all_pairs(samples, ranked)
        return found

    @functools.cached_property
    def printed(self) -> Cells:
        """Its cells; without published scores, whose sources it does not name."""
        known = {(self.name, self.main.metric, bits): of for bits, of in self.pairs.items()}
        compared = columns.comparisons(self.table, self.results, pairs=known)
        frame = self.board.tidy.assign(published=math.nan, difference=math.nan)
        rows = frame["method"].isin([*self.board.methods, UNCODED])
        metrics = {group.metric for group in self.table.groups}
        return cells(frame[rows & frame["metric"].isin(metrics)], self.table, compared)

    def cell(self, method: str, bits: int) -> Cell | None:
        """A cell of the main metric that has a score."""
        cell = self.printed.of.get(self.main.cell(method, bits))
        return cell if cell is not None and cell.known else None

    def methods(self) -> list[str]:
        """The best first, at the longest of the code lengths that they have a score of."""
        sign = -1 if resolve(self.main.metric)[0].higher_is_better else 1

        def order(method: str) -> tuple[int, float]:
            found = ((bits, self.cell(method, bits)) for bits in self.main.bits)
            return min(((-bits, sign * cell.mean) for bits, cell in found if cell), default=(0, 0.0))

        return sorted(self.board.methods, key=order)

    def rank(self, method: str, bits: int) -> str:
        """ "3 of 36", or a dash for what has no rank."""
        cell = self.cell(method, bits)
        return f"{cell.place} of {self.competitors(bits)}" if cell and cell.place else EN_DASH

    def competitors(self, bits: int) -> int:
        """How many methods have a rank at a code length."""
        found = (self.cell(method, bits) for method in self.board.methods)
        return sum(cell is not None and cell.place is not None for cell in found)

    def view(self, links: Mapping[str, str]) -> TableView:
        """What its page shows. links: method -> address of its page."""
        return TableView(self.table, self.results, self.printed, self._charts(), (), {}, links=links)

    def _charts(self) -> dict[str, Drawing]:
        """Figures of the main block, those for which there is anything to draw."""
        drawn = {}
        for name, (kind, cost, metric, title, caption) in CHARTS.items():
            if kind == "metric_by_bits" and len(self.main.bits) == 1:
                continue
            group = replace(self.main, metric=metric or self.main.metric)
            options = {"costs": (cost,)} if cost else {}
            table = replace(self.table, groups=(group,))
            try:
                figure = figures.draw(kind, table, self.results, width=WIDTH, title=False, **options)
            except NothingToDraw:
                continue
            drawn[name] = Drawing(title, caption, render(figure, "svg").decode())
        return drawn


def read(folder: Path) -> list[Protocol]:
    """The protocols of a folder of leaderboards, sorted by name; a method looks alike in all of them."""
    boards = Boards(folder)
    every = [boards[name] for name in stems(folder)]
    found = []
    for board in every:
        main, (*_, longest) = main_metric(board), board.bits
        columns = [(board.protocol, main, board.bits)]
        columns += [(board.protocol, metric, [longest]) for metric in other_metrics(board)]
        columns += [(fold, main, [longest]) for fold in board.folds]
        blocks = [
            {"protocol": protocol, "metric": metric, "bits": bits, "methods": board.methods}
            for protocol, metric, bits in columns
        ]
        table = as_table(every, blocks)
        # Of a method's rows here: those of other protocols may be of another form of it.
        styles = {
            name: replace(style, earlier=board.earlier.get(name, "")) for name, style in table.styles.items()
        }
        table = replace(
            table,
            styles=styles,
            name=board.protocol,
            title=board.about["title"],
            seeds=tuple(board.about["seeds"]),
            settings={member: table.settings[member] for member in board.members},
        )
        found.append(Protocol(board, table, boards.runs(board.protocol, ["per_query"])))
    return found
