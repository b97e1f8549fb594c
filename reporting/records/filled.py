"""Cells that a table takes from the leaderboard: their runs, and how they are marked."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from reporting.tables.model import Filled, Table
from reporting.tables.runs import Results, Run, RunCell
from reporting.tables.titles import LEADERBOARD, UNCODED
from tiebench.leaderboards import PER_QUERY, scores_of_queries

if TYPE_CHECKING:  # plans of figures load no pandas
    import pandas as pd

FILLED = "§"
# The one that plans read, too: a folder of results may have a leaderboard of its own.
SHIPPED = Path(__file__).parents[2] / "leaderboard"


def filled_runs(table: Table, also: Iterable[str] = ()) -> dict[RunCell, list[Run]]:
    """Cell -> runs of the cells that a table takes from the leaderboard.

    also: as of `records.table_runs`. There is no "training"; "per_query" is that of `per_query`: the mean
    over seeds is all that the leaderboard keeps. Raises ValueError as `per_query` does.
    """
    scores = per_query(table.filled) if "per_query" in also else {}
    found: dict[RunCell, list[Run]] = {}
    for run in table.filled.runs:
        of_queries = scores.get(run.cell)
        found.setdefault(run.cell, []).append(replace(run, per_query=of_queries) if of_queries else run)
    return found


def per_query(filled: Filled) -> dict[RunCell, dict[str, np.ndarray]]:
    """Cell -> metric -> float64 (Q,), the mean over seeds, of cells from the leaderboard.

    Raises ValueError, one line, where a file of the checkout's leaderboard is not the one that the table was
    made with.
    """
    known = dict(filled.per_query)
    found: dict[RunCell, dict[str, np.ndarray]] = {}
    for name in known:
        protocol = name.removesuffix(PER_QUERY)
        try:
            of = scores_of_queries(SHIPPED / name, {"protocol": protocol, "sha256": known})
        except ValueError as error:
            words = f"{name} of the leaderboard is not the one that this table was made with"
            raise ValueError(f"{words}; make the table again, or restore the file ({error})") from error
        found |= {(protocol, *cell): scores for cell, scores in of.items()}
    return found


def check_fingerprints(table: Table, run: Run) -> None:
    """Raise ValueError, one line, where a run was made with other data than the leaderboard's cells."""
    for what, theirs in table.filled.fingerprints.get(run.protocol, {}).items():
        ours = run.fingerprints.get(what, theirs)
        if ours != theirs:
            other = f"another {what} here ({ours[:12]}…) than in the leaderboard ({theirs[:12]}…)"
            remedy = "leave out `compare`, and list under `methods` what is to be compared"
            raise ValueError(
                f"table {table.name}: {run.protocol} has {other}, so their rows do not compare; {remedy}"
            )


# -- marks ----------------------------------------------------------------------------------------


def filled_marks(tidy_frame: "pd.DataFrame") -> tuple[set[str], set[tuple[str, str, str, int]]]:
    """Methods all of whose scores are from the leaderboard, and cells from there of the other methods.

    Both are empty for a table that has nothing else: there is nothing to tell them from.
    """
    rows = tidy_frame[tidy_frame["method"] != UNCODED]
    filled = rows[rows["status"] == LEADERBOARD]
    if len(filled) == len(rows):
        return set(), set()
    here = set(rows.loc[rows["status"].isin(["done", "partial"]), "method"])
    mixed = filled[filled["method"].isin(here)]
    cells = mixed[["protocol", "metric", "method", "bits"]].itertuples(index=False, name=None)
    return set(filled["method"]) - here, set(cells)


def filled_sentence(tidy_frame: "pd.DataFrame") -> str:
    """What the mark of cells from the leaderboard means; "" for a table without any."""
    if not any(filled_marks(tidy_frame)):
        return ""
    counts = sorted(set(tidy_frame.loc[tidy_frame["status"] == LEADERBOARD, "seeds"]))
    seeds = " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
    words = f"of {seeds} seed{'' if counts == [1] else 's'}, not run here"
    return f"{FILLED} From the leaderboard, {words}."


def filled_methods(table: Table, results: Results) -> list[str]:
    """Methods with scores from the leaderboard, in the table's order; [] where all are from there."""
    if all(run.from_leaderboard for run in results):
        return []
    found = {run.method for run in results if run.from_leaderboard and run.status == "done"}
    return [method for method in table.methods if method in found]
