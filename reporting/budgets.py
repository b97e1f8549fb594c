"""What the choice of hyper-parameters was allowed: trials and budget of each cell, and rows that differ.

`table["budgets"]` is a list of {protocol, method, bits, trials, budget}; `trials` is how many settings were
tried (1: as given), `budget` the rule of the search in words, `AS_GIVEN`, `NOTHING_TO_CHOOSE` or `ELSEWHERE`.
Records that were not made here bring `trials` and `budget` with them, as "tuning".
"""

from collections.abc import Iterable, Mapping

import pandas as pd

from reporting.titles import method_title, protocol_title

AS_GIVEN = "as given"
NOTHING_TO_CHOOSE = "nothing to choose"
ELSEWHERE = "chosen elsewhere"  # of codes of other programs
NAMED = 4  # of more methods with one budget, the largest group is "all others"


def tunings(table: Mapping) -> dict[tuple[str, str, int], dict]:
    """(protocol, method, bits) -> {"trials", "budget"}, of the cells that the table's settings describe."""
    return {
        (entry["protocol"], entry["method"], entry["bits"]): {key: entry[key] for key in ("trials", "budget")}
        for entry in table.get("budgets") or ()
    }


def tuning_of(known: Mapping | None, records: Iterable[Mapping]) -> dict:
    """{"trials", "budget"} of a cell: as its records say, or as the table's settings say, or as given."""
    brought = next((record["tuning"] for record in records if "tuning" in record), None)
    return dict(brought or known or {"trials": 1, "budget": AS_GIVEN})


def budget_sentence(tidy_frame: pd.DataFrame, table: Mapping) -> str:
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
        where = f" on {protocol_title(table, protocol)}" if several else ""
        for budget, cells in of.groupby("budget", sort=False):
            bits = f" ({', '.join(map(str, cells['bits']))} bits)" if len(cells) < len(of) else ""
            names.setdefault(budget, []).append(method_title(table, method) + where + bits)
    largest = max(names, key=lambda budget: len(names[budget]))
    if len(names[largest]) > NAMED:
        names[largest] = ["all others"]
    words = "; ".join(f"{budget}: {', '.join(of)}" for budget, of in names.items())
    return f"Unequal budgets of hyper-parameters: {words}."
