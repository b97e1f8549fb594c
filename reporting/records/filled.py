"""Runs of the cells that a table takes from the leaderboard."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from reporting.tables.model import Filled, Table
from reporting.tables.runs import Run, RunCell
from tiebench.leaderboards import scores_of_queries

# The one that plans read, too: a folder of results may have a leaderboard of its own.
SHIPPED = Path(__file__).parents[2] / "leaderboard"


def filled_runs(table: Table, also: Iterable[str] = ()) -> dict[RunCell, list[Run]]:
    """Cell -> runs of the cells that a table takes from the leaderboard.

    also: as of `read.table_runs`. There is no "training"; "per_query" is that of `per_query`. Raises
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
