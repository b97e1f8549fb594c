"""The cells of a table that a claim looks at, with the scores of their runs."""

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from reporting.statistics.comparing import Sample, pool, sample
from reporting.tables.model import Table
from reporting.tables.runs import Results
from tiebench.metrics import label


class ClaimCells:
    """The cells of a table that a claim may look at, with the scores of their runs.

    Bounds are looked at only by a claim that names them.
    """

    def __init__(self, table: Table, results: Results, claim: Mapping):
        self.table = table
        self.results = results
        self.everything: dict[tuple, None] = {}
        self._columns: dict[tuple, dict[str, Sample]] = {}
        where = claim.get("where") or {}
        named = {name for key in ("method", "methods", "others") for name in as_list(claim.get(key, ()))}
        named.update(as_list(where.get("methods", ())))
        for group in table.groups:
            compared = [one for one in group.methods if one in named or table.competes(one, group.protocol)]
            for bits, method in itertools.product(group.bits, compared):
                self.everything[group.protocol, group.metric, bits, method] = None
        self.cells = [
            cell
            for cell in self.everything
            if all(
                value in as_list(where.get(key, value))
                for key, value in zip(("protocol", "metric", "bits", "methods"), cell, strict=True)
            )
        ]
        stated = [cell for cell in self.cells if cell[0] in claim["stated_for"]]
        self.elsewhere = not stated
        self.cells = stated or self.cells

    def columns(self) -> dict[tuple[str, str, int], list[str]]:
        """(protocol, metric, bits) -> methods, in the order of the table."""
        columns: dict[tuple[str, str, int], list[str]] = {}
        for protocol, metric, bits, method in self.cells:
            columns.setdefault((protocol, metric, bits), []).append(method)
        return columns

    def sample(self, protocol: str, metric: str, bits: int, method: str) -> tuple[Sample | None, str]:
        """The scores of a cell, None where no seed has one, and why seeds have none, "" where all have."""
        scores = self._column(protocol, metric, bits).get(method)
        scores = scores or sample(self.results.cell(protocol, method, bits), metric)
        outcomes = self.results.outcomes(self.table, (protocol, metric, method, bits))
        lacking = [seed for seed in outcomes if seed not in scores.means]
        reasons = "; ".join(dict.fromkeys(outcomes[seed][2] for seed in lacking))
        some = f"seed{'s' * (len(lacking) > 1)} {joined(lacking)}: " if lacking and scores.means else ""
        why = f"{self.title(method)}, {bits} bits: {some}{reasons}" if lacking else ""
        return scores if scores.means else None, why

    def _column(self, protocol: str, metric: str, bits: int) -> dict[str, Sample]:
        """The samples of a column of the table, with their seed variances pooled."""
        column = (protocol, metric, bits)
        if column not in self._columns:
            methods = [cell[3] for cell in self.everything if cell[:3] == column]
            runs = {method: self.results.cell(protocol, method, bits) for method in methods}
            self._columns[column] = pool({method: sample(runs[method], metric) for method in methods})
        return self._columns[column]

    def scored(self, protocol: str, metric: str, bits: int, method: str) -> bool:
        """Whether some run of a cell has a score by a metric, in the table or not."""
        return bool(self.results.scores(protocol, metric, method, bits))

    def title(self, method: str) -> str:
        return self.table.method_title(method)

    def place(self, protocol: str, metric: str | None = None, bits: int | None = None) -> str:
        """A cell's column in words."""
        words = [self.table.protocol_title(protocol)]
        words += [] if metric is None else [metric_words(metric)]
        return ", ".join(words + ([] if bits is None else [f"{bits} bits"]))


def as_list(value: Any) -> list:
    return list(value) if isinstance(value, list | tuple) else [value]


def metric_words(metric: str) -> str:
    text, subscript = label(metric)
    return f"{text}_{subscript}" if subscript else text


def joined(words: Iterable) -> str:
    *others, last = map(str, words)
    return f"{', '.join(others)} and {last}" if others else last
