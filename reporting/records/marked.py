"""Methods whose titles bear a mark in figures and lists: what they show is not of ordinary runs made here."""

from reporting.tables.model import Table
from reporting.tables.runs import Results


def collapsed_methods(table: Table, results: Results) -> dict[str, list[int]]:
    """Method -> its code lengths, ascending, at which the codes of some run of the table collapsed."""
    found: dict[str, set[int]] = {}
    for run in results:
        if run.collapsed and run.cell in table.cells:
            found.setdefault(run.method, set()).add(run.bits)
    return {method: sorted(bits) for method, bits in found.items()}


def filled_methods(table: Table, results: Results) -> list[str]:
    """Methods with scores from the leaderboard, in the table's order; [] where all are from there."""
    if all(run.from_leaderboard for run in results):
        return []
    found = {run.method for run in results if run.from_leaderboard and run.status == "done"}
    return [method for method in table.methods if method in found]
