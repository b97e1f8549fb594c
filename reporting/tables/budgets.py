"""What the choice of hyper-parameters was allowed: the budget of each cell in words, and rows that differ.

A table's `tunings` have it by cell; runs that were not made here bring it with them.
"""

import re
from collections.abc import Iterable

import pandas as pd

from reporting.tables.model import Table
from reporting.tables.runs import Run, Tuning

AS_GIVEN = "as given"
NOTHING_TO_CHOOSE = "nothing to choose"
ELSEWHERE = "chosen elsewhere"  # of codes of other programs
# What `workflow.configuration.hyperparameters.budget_words` writes, and published files have.
RULE = re.compile(
    r"(?P<trials>\d+) trials(?P<candidates>, the given ones)?(?: and up to (?P<more>\d+) more)?"
    r"(?:, on (?P<parts>[\d/]+) parts?)?(?:, with (?P<settings>.+?))?(?:, (?P<seconds>[\d.]+) s)?"
)


def tuning_of(known: Tuning | None, runs: Iterable[Run]) -> Tuning:
    """The tuning of a cell: as its runs bring it, or as the table's settings say, or as given."""
    brought = next((run.tuning for run in runs if run.tuning is not None), None)
    return brought or known or Tuning(1, AS_GIVEN)


def in_words(budget: str) -> str:
    """A budget as a reader is told it; one of another form is unchanged."""
    if budget == AS_GIVEN:
        return "default settings, no search"
    found = RULE.fullmatch(budget)
    if found is None:
        return budget
    words = f"{found['trials']} trials" + ", given candidates" * bool(found["candidates"])
    words += f" and up to {found['more']} further" if found["more"] else ""
    words += f", at most {found['seconds']} s each" if found["seconds"] else ""
    if parts := found["parts"]:
        words += f", on {parts.replace('/', ', then ')} part{'' if parts == '1' else 's'} of the training set"
    return words + (f", with {found['settings']}" if found["settings"] else "")


def budget_sentence(tidy_frame: pd.DataFrame, table: Table) -> str:
    """Which rows of a protocol had other budgets, one sentence; "" where all of them had the same.

    The budget of most rows comes first, without their names. Rows of which nothing can be chosen and uncoded
    features are left out; a protocol is named where a method had another budget on another.
    """
    rows = tidy_frame[tidy_frame["mean"].notna() & ~tidy_frame["budget"].isin(["", NOTHING_TO_CHOOSE])]
    rows = rows.drop_duplicates(["protocol", "method", "bits"])
    everywhere = rows.groupby("method")["budget"].nunique() == 1
    rows = rows[rows.groupby("protocol")["budget"].transform("nunique") > 1]
    if rows.empty:
        return ""
    several = tidy_frame["protocol"].nunique() > 1
    names: dict[str, dict[str, None]] = {}
    for (protocol, method), of in rows.groupby(["protocol", "method"], sort=False):
        where = f" on {table.protocol_title(protocol)}" if several and not everywhere[method] else ""
        for budget, cells in of.groupby("budget", sort=False):
            bits = f" ({', '.join(map(str, cells['bits']))} bits)" if len(cells) < len(of) else ""
            names.setdefault(budget, {})[table.method_title(method) + where + bits] = None
    largest = max(names, key=lambda budget: len(names[budget]))
    others = [f"{in_words(budget)}, for {', '.join(of)}" for budget, of in names.items() if budget != largest]
    return f"Unequal hyper-parameter search: {'; '.join([in_words(largest), *others])}."
