"""What a leaderboard keeps of trainings: the objective of each run while it trained.

`<protocol>.training.csv` has a row per run: protocol or fold, method, bits, seed; what its log counts
("epoch", "iteration", …, "line" where it counts nothing); the steps, the objectives, and, where a log has
it, AP_T, numbers with blanks between them.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from reporting.leaderboard import Board, csv_text
from reporting.records.training_logs import COUNTERS, counts, have, with_objective
from reporting.tables.runs import KEY, Run, RunCell
from tiebench.leaderboards import read_rows

TRAINING = ".training.csv"
AP = "ap"
COLUMNS = (*KEY, "counter", "steps", "objectives")
LINES = "line"
# Of a method and code length the first seeds, of a curve so many points: what a figure of them can show.
FIRST_SEEDS, MOST_POINTS = 3, 60
DIGITS = 6


def published(board: Board, folder: str | Path) -> dict[tuple, list[dict]]:
    """(protocol or fold, method, bits, seed) -> lines of its log; {} if no curves were published."""
    found = {}
    for row in _rows(board, folder):
        steps = [{row["counter"]: float(step)} for step in row["steps"].split()]
        objectives = map(float, row["objectives"].split())
        lines = [step | {"objective": value} for step, value in zip(steps, objectives, strict=True)]
        for line, value in zip(lines, (row.get(AP) or "").split()):
            line[AP] = float(value)
        found[row["protocol"], row["method"], int(row["bits"]), int(row["seed"])] = lines
    return found


def record(protocol: str, runs: Sequence[Run], old: Board | None, folder: str | Path) -> dict[str, str]:
    """<protocol>.training.csv -> its text, {} if nothing was trained.

    runs: all of them, with "training"; old: what the folder has of the protocol, whose other cells are kept.
    """
    new = {(run.method, run.bits) for run in runs}
    before = () if old is None else _rows(old, folder)
    rows = [row for row in before if (row["method"], int(row["bits"])) not in new]
    of_cells: dict[RunCell, dict[int, Run]] = {}
    for run in runs:
        of_cells.setdefault(run.cell, {})[run.seed] = run
    for of_cell in of_cells.values():
        for seed in sorted(of_cell)[:FIRST_SEEDS]:
            if lines := with_objective(of_cell[seed].training):
                rows.append(_row(of_cell[seed], lines))
    columns = COLUMNS + (AP,) * any(row.get(AP) for row in rows)
    rows = [{name: row.get(name, "") for name in columns} for row in rows]
    return {f"{protocol}{TRAINING}": csv_text(columns, rows)} if rows else {}


def _rows(board: Board, folder: str | Path) -> list[dict[str, str]]:
    return read_rows(Path(folder, f"{board.protocol}{TRAINING}"), board.about)


def _row(run: Run, lines: list[Mapping]) -> dict:
    counter = next((name for name in COUNTERS if counts(lines, name)), LINES)
    numbered = [(line[counter] if counter != LINES else index, line) for index, line in enumerate(lines, 1)]
    # Evenly from the first to the last.
    places = np.linspace(0, len(lines) - 1, min(len(lines), MOST_POINTS)).round().astype(int)
    kept = [numbered[place] for place in places]
    row = {key: getattr(run, key) for key in KEY} | {
        "counter": counter,
        "steps": " ".join(str(step) for step, _ in kept),
        "objectives": _numbers(line["objective"] for _, line in kept),
    }
    return row | ({AP: _numbers(line[AP] for _, line in kept)} if have(lines, AP) else {})


def _numbers(values: Iterable[float]) -> str:
    return " ".join(f"{value:.{DIGITS}g}" for value in values)
