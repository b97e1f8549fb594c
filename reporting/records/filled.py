"""Cells that a table takes from the leaderboard: their runs, and how they are marked."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from reporting.tables.model import Filled, Table
from reporting.tables.runs import Results, Run, RunCell
from reporting.tables.titles import LEADERBOARD, UNCODED
from tiebench.leaderboards import scores_of_queries

if TYPE_CHECKING:  # plans of figures load no pandas
    import pandas as pd

FILLED = "§"
# The one that plans read, too: a folder of results may have a leaderboard of its own.
SHIPPED = Path(__file__).parents[2] / "leaderboard"


def filled_runs(table: Table, also: Iterable[str] = ()) -> dict[RunCell, list[Run]]:
    """Cell -> runs of the cells that a table takes from the leaderboard.

    also: as of `records.table_runs`. There is no "training"; "per_query" is that of `per_query`. Raises
    ValueError as `per_query` does.
    """
    scores = per_query(table.filled) if "per_query" in also else {}
    found: dict[RunCell, list[Run]] = {}
    for run in with_scores_of_queries(table.filled.runs, scores):
        found.setdefault(run.cell, []).append(run)
    return found


def with_scores_of_queries(
    runs: Sequence[Run], scores: Mapping[RunCell, Mapping[str, np.ndarray]]
) -> list[Run]:
    """Runs with "per_query", of what a leaderboard keeps of their cells: each its own, or all the mean over
    seeds where that is all that is kept. scores: cell -> metric -> (n, Q), a row a seed, or (Q,)."""
    seeds: dict[RunCell, list[int]] = {}
    for run in runs:
        if run.seed is not None:
            seeds.setdefault(run.cell, []).append(run.seed)
    found = []
    for run in runs:
        own = {}
        for metric, values in scores.get(run.cell, {}).items():
            if values.ndim == 2 and len(values) == len(seeds[run.cell]):
                own[metric] = values[sorted(seeds[run.cell]).index(run.seed)]
            else:
                own[metric] = values if values.ndim == 1 else values.mean(axis=0)
        found.append(replace(run, per_query=own) if own else run)
    return found


def per_query(filled: Filled) -> dict[RunCell, dict[str, np.ndarray]]:
    """Cell -> metric -> float64 (n, Q) or (Q,), as of `leaderboards.read_per_query`, of cells from there.

    Raises ValueError, one line, where a file of the checkout's leaderboard is not the one that the table was
    made with.
    """
    found: dict[RunCell, dict[str, np.ndarray]] = {}
    for protocol in dict.fromkeys(name.partition(".")[0] for name in filled.per_query):
        try:
            of = scores_of_queries(SHIPPED, {"protocol": protocol, "sha256": filled.per_query})
        except ValueError as error:
            words = f"what the leaderboard has of {protocol} is not what this table was made with"
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
