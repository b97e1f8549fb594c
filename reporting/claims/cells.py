"""The cells of a table that a claim looks at, with the scores of their runs."""

from collections.abc import Iterable, Mapping
from typing import Any

from reporting.statistics.samples import sample
from reporting.tables.model import Table
from reporting.tables.runs import Results, ScoreCell, collapsed_runs
from reporting.tables.titles import metric_title
from tiebench.leaderboards import rate_words
from tiebench.messages import joined
from tiebench.paired import Scores


class ClaimCells:
    """The cells of a table that a claim may look at, with the scores of their runs.

    Bounds are looked at only by a claim that names them. A claim that states its metric takes the scores
    that the runs have of it, whichever cutoff of its measure the table shows.
    """

    def __init__(self, table: Table, results: Results, claim: Mapping):
        self.table = table
        self.results = results
        where = claim.get("where") or {}
        sides = [claim.get(key) or {} for key in ("left", "right")]
        asked = [claim.get(key, ()) for key in ("method", "methods", "others")]
        asked += [where.get("methods", ()), *(side.get("method", ()) for side in sides)]
        named = {name for one in asked for name in as_list(one)}
        self.everything: dict[ScoreCell, None] = {
            group.cell(method, bits): None
            for group in table.groups
            for bits in group.bits
            for method in group.methods
            if method in named or table.competes(method, group.protocol)
        }
        cells = [
            cell
            for cell in self.everything
            if all(
                value in as_list(where.get(key, value))
                for key, value in zip(("protocol", "metric", "methods", "bits"), cell, strict=True)
            )
        ]
        stated = [cell for cell in cells if cell[0] in claim["stated_for"]]
        self.elsewhere = not stated
        cells = stated or cells
        if metric := claim.get("metric"):
            found = [
                (protocol, metric, method, bits)
                for protocol, shown, method, bits in cells
                if shown == metric
                or (_measure(shown) == _measure(metric) and results.scores(protocol, metric, method, bits))
            ]
            cells = list(dict.fromkeys(found))
            self.everything |= dict.fromkeys(cells)
        self.cells = cells

    def absent(self, methods: Iterable[str]) -> list[str]:
        """Titles of those methods that are in none of the cells."""
        known = {method for _, _, method, _ in self.cells}
        return [self.title(method) for method in methods if method not in known]

    def columns(self) -> dict[tuple[str, str, int], list[str]]:
        """(protocol, metric, bits) -> methods, in the order of the table."""
        columns: dict[tuple[str, str, int], list[str]] = {}
        for protocol, metric, method, bits in self.cells:
            columns.setdefault((protocol, metric, bits), []).append(method)
        return columns

    def sample(self, cell: ScoreCell, minus: str | None = None) -> tuple[Scores | None, str]:
        """The scores of a cell, None where no seed has one, and why seeds have none, "" where all have.

        minus: another metric of the same runs, which is subtracted.
        """
        protocol, metric, method, bits = cell
        runs = self.results.cell(protocol, method, bits)
        scores = sample(runs, metric, minus, self.table.style(method).external)
        outcomes = self.results.outcomes(self.table, cell)
        lacking = {seed: reason for seed, (score, _, reason) in outcomes.items() if score is None}
        reasons = "; ".join(dict.fromkeys(lacking.values()))
        some = f"seed{'s' * (len(lacking) > 1)} {joined(lacking)}: " if lacking and scores else ""
        return scores, f"{self.title(method)}, {bits} bits: {some}{reasons}" if lacking else ""

    def lost(self, cell: ScoreCell) -> dict[str, str]:
        """The cell in words -> of how many of its scored seeds codes collapsed; {} for none."""
        protocol, _, method, bits = cell
        runs = self.results.cell(protocol, method, bits)
        scored = [runs[seed] for seed in self.results.scores(*cell)]
        words = rate_words(collapsed_runs(scored), len(scored), bool(self.table.folds.get(protocol)))
        several = len({group.protocol for group in self.table.groups}) > 1
        place = f" on {self.place(protocol)}" if several else ""
        return {f"{self.title(method)}{place}, {bits} bits": words} if words else {}

    def title(self, method: str) -> str:
        return self.table.method_title(method)

    def place(self, protocol: str, metric: str | None = None, bits: int | None = None) -> str:
        """A cell's column in words."""
        words = [self.table.protocol_title(protocol)]
        words += [] if metric is None else [metric_title(metric)]
        return ", ".join(words + ([] if bits is None else [f"{bits} bits"]))


def _measure(metric: str) -> str:
    return metric.partition("@")[0]


def as_list(value: Any) -> list:
    return list(value) if isinstance(value, list | tuple) else [value]
