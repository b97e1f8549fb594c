"""Digests of the codes of runs: whether a run that is made again has the same codes, bit by bit."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from reporting.leaderboard import Board
from reporting.tables.runs import KEY
from tiebench.files import read_result_npz

COLUMN = "run.codes_sha256"  # of runs.csv
OUTCOMES = ("with the same codes", "with other codes", "not in the results", "without a digest")
SAME, OTHER, ABSENT, UNKNOWN = OUTCOMES


def digest(results: str | Path, run: Mapping) -> str | None:
    """sha256 over bits, sizes and packed codes of a run, None where results has no codes of it.

    run: its KEY, as a row of runs.csv has it.
    """
    path = Path(results, "runs", *(str(run[key]) for key in KEY), "codes.npz")
    if not path.is_file():
        return None
    codes = read_result_npz(path, ("query", "database"))
    found = hashlib.sha256(f"{run['bits']} {len(codes['query'])} {len(codes['database'])}\n".encode())
    for part in ("query", "database"):
        found.update(np.ascontiguousarray(codes[part]).tobytes())
    return found.hexdigest()


def compared(board: Board, results: str | Path) -> list[tuple[Mapping, str]]:
    """Each run of a board, a row of runs.csv, and how its codes compare with those of results: SAME, OTHER,
    ABSENT or UNKNOWN."""
    found: list[tuple[Mapping, str]] = []
    for run in board.runs:
        known, here = run.get(COLUMN), digest(results, run)
        outcome = UNKNOWN if known is None else ABSENT if here is None else SAME if here == known else OTHER
        found.append((run, outcome))
    return found
