"""Runs whose codes collapsed: how tables and figures mark them, since their mean is no ordinary score."""

import statistics
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from reporting.tables.model import Table
from reporting.tables.runs import Results, Run

if TYPE_CHECKING:  # plans of figures load no pandas
    import pandas as pd

COLLAPSED = "‡"


def collapsed_runs(runs: Iterable[Run]) -> int:
    """Of how many runs the codes collapsed."""
    return sum(bool(run.collapsed) for run in runs)


def merged_health(parts: Mapping[str, Mapping]) -> dict:
    """Health of a cell that is the mean of the folds of a protocol, from fold -> that of its run.

    Numbers are means over the folds, counts to the nearest integer, and missing where a fold has none;
    "collapsed" names the folds whose codes collapsed.
    """
    if not all(parts.values()):
        return {}
    first = next(iter(parts.values()))
    merged: dict = {}
    for name in first:
        values = [part[name] for part in parts.values()]
        if name == "ones":
            merged[name] = [statistics.fmean(of_bit) for of_bit in zip(*values, strict=True)]
        elif name == "collapsed":
            merged[name] = ", ".join(f"{fold}: {why}" for fold, why in zip(parts, values) if why) or None
        elif name == "collapsed_epoch":
            merged[name] = min((epoch for epoch in values if epoch is not None), default=None)
        elif None in values:
            merged[name] = None
        else:
            mean = statistics.fmean(values)
            merged[name] = round(mean) if all(isinstance(value, int) for value in values) else mean
    return merged


def collapse_sentence(tidy_frame: "pd.DataFrame", table: Table) -> str:
    """What the mark of collapsed codes means, and which runs it stands for; "" for a table without any."""
    rows = tidy_frame[tidy_frame["collapsed"] > 0].drop_duplicates(["protocol", "method", "bits"])
    if rows.empty:
        return ""
    several = tidy_frame["protocol"].nunique() > 1
    words: dict[str, dict[str, list[str]]] = {}
    for row in rows.itertuples():
        where = f", on {table.protocol_title(row.protocol)}" if several else ""
        seeds = f", {row.collapsed} of {row.seeds} seeds" if row.seeds > 1 else ""
        cells = words.setdefault(table.method_title(row.method), {})
        cells.setdefault(f"{seeds}{where}", []).append(str(row.bits))
    methods: dict[str, list[str]] = {}
    for name, cells in words.items():
        text = "; ".join(f"{', '.join(bits)} bits{rest}" for rest, bits in cells.items())
        methods.setdefault(text, []).append(name)
    named = "; ".join(f"{', '.join(names)} ({cells})" for cells, names in methods.items())
    return f"{COLLAPSED} Collapsed codes, which the mean includes: {named}."


def collapsed_methods(table: Table, results: Results) -> dict[str, list[int]]:
    """Method -> its code lengths, ascending, at which the codes of some run of the table collapsed."""
    found: dict[str, set[int]] = {}
    for run in results:
        if run.collapsed and run.cell in table.cells and run.seed in table.method_seeds(run.method):
            found.setdefault(run.method, set()).add(run.bits)
    return {method: sorted(bits) for method, bits in found.items()}
