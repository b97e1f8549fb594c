"""What the choice of hyper-parameters was allowed: the budget of each cell in words, and rows that differ.

A table's `tunings` have it by cell; runs that were not made here bring it with them.
"""

from collections.abc import Iterable

import pandas as pd

from reporting.tables.model import Table
from reporting.tables.runs import Run, Tuning

AS_GIVEN = "as given"
NOTHING_TO_CHOOSE = "nothing to choose"
ELSEWHERE = "chosen elsewhere"  # of codes of other programs
NAMED = 4  # of more methods with one budget, the largest group is "all others"


def tuning_of(known: Tuning | None, runs: Iterable[Run]) -> Tuning:
    """The tuning of a cell: as its runs bring it, or as the table's settings say, or as given."""
    brought = next((run.tuning for run in runs if run.tuning is not None), None)
    return brought or known or Tuning(1, AS_GIVEN)


def budget_sentence(tidy_frame: pd.DataFrame, table: Table) -> str:
    """Which rows of a protocol had other budgets, one sentence; "" where all of them had the same.

    Rows of which nothing can be chosen and uncoded features are left out.
    """
    rows = tidy_frame[tidy_frame["mean"].notna() & ~tidy_frame["budget"].isin(["", NOTHING_TO_CHOOSE])]
    rows = rows.drop_duplicates(["protocol", "method", "bits"])
    unequal = rows.groupby("protocol")["budget"].transform("nunique") > 1
    rows = rows[unequal]
    if rows.empty:
        return ""
    several = tidy_frame["protocol"].nunique() > 1
    names: dict[str, list[str]] = {}
    for (protocol, method), of in rows.groupby(["protocol", "method"], sort=False):
        where = f" on {table.protocol_title(protocol)}" if several else ""
        for budget, cells in of.groupby("budget", sort=False):
            bits = f" ({', '.join(map(str, cells['bits']))} bits)" if len(cells) < len(of) else ""
            names.setdefault(budget, []).append(table.method_title(method) + where + bits)
    largest = max(names, key=lambda budget: len(names[budget]))
    if len(names[largest]) > NAMED:
        names[largest] = ["all others"]
    words = "; ".join(f"{budget}: {', '.join(of)}" for budget, of in names.items())
    return f"Unequal budgets of hyper-parameters: {words}."
