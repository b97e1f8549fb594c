"""What a leaderboard keeps of searches: every trial that was made to choose hyper-parameters.

`<protocol>.trials.csv` has the rows of results/tuning/<name>.csv that are of the protocol or of its folds,
after a column `tuning` with the name of the search.
"""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reporting.leaderboard import Board, csv_text
from reporting.tables.runs import Run
from tiebench.files import reading_result
from tiebench.leaderboards import read_rows

TRIALS = ".trials.csv"
# What a search is of, and what two versions of it have in common.
SEARCH = ("tuning", "protocol", "method", "bits")


@dataclass(frozen=True)
class Search:
    """What the searches of a board for a method at one code length were.

    trials: how many have a score; minutes: of a processor; ends: the axes at whose ends the chosen trial
    lies, None where it was not recorded.
    """

    trials: int
    minutes: float
    ends: tuple[str, ...] | None


def searches(board: Board, folder: str | Path) -> dict[tuple[str, int], Search]:
    """Method and code length -> what its searches were; {} if the board has no trials."""
    found: dict[tuple[str, int], list[Mapping[str, str]]] = {}
    for row in read_rows(Path(folder, f"{board.protocol}{TRIALS}"), board.about):
        found.setdefault((row["method"], int(row["bits"])), []).append(row)
    return {cell: _together(rows) for cell, rows in found.items()}


def _together(rows: Sequence[Mapping[str, str]]) -> Search:
    tried = {(*_search(row), row["trial"]) for row in rows}
    # What has no score in a later rung has one of the first.
    failed = {(*_search(row), row["trial"]) for row in rows if not row["score"] and row.get("rung") == "1"}
    chosen = [row for row in rows if row["chosen"] == "True"]
    recorded = all(row.get("ends") is not None for row in chosen)
    ends = dict.fromkeys(name for row in chosen for name in (row.get("ends") or "").split())
    seconds = sum(float(row["seconds"] or 0) for row in rows)
    return Search(len(tried - failed), seconds / 60, tuple(ends) if recorded else None)


def search_seconds(board: Board, folder: str | Path) -> dict[str, float]:
    """Method -> processor seconds of all trials that were published of it; {} if the board has no trials."""
    found: dict[str, float] = {}
    for row in read_rows(Path(folder, f"{board.protocol}{TRIALS}"), board.about):
        found[row["method"]] = found.get(row["method"], 0.0) + float(row.get("seconds") or 0)
    return found


def of_tunings(names: Iterable[str], results: str | Path) -> list[dict[str, str]]:
    """Rows of the searches of tunings, one per trial and part of the training set.

    Raises FileNotFoundError for a tuning that was not made, ValueError for a file that is none.
    """
    rows = []
    for name in names:
        path = Path(results, "tuning", f"{name}.csv")
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such file; make it with: snakemake -- {path}")
        with reading_result(path):
            read = csv.DictReader(io.StringIO(path.read_text("utf-8")))
            of_tuning = [{"tuning": name} | row for row in read]
            if not of_tuning or not {*SEARCH, "settings", "chosen"} <= set(of_tuning[0]):
                raise ValueError(
                    f"{path}: must have rows with columns protocol, method, bits, settings and chosen"
                )
        rows += of_tuning
    return rows


def record(
    protocol: str,
    rows: Sequence[Mapping[str, str]],
    runs: Sequence[Run],
    old: Board | None,
    folder: str | Path,
) -> dict[str, str]:
    """<protocol>.trials.csv -> its text, {} if there are no trials.

    rows: of `of_tunings`, those of other protocols included; runs: all of them; old: what the folder has of
    the protocol, whose other searches are kept. Raises ValueError where runs have other settings than a
    search chose for them.
    """
    names = {protocol, *(run.protocol for run in runs)}
    own = [dict(row) for row in rows if row["protocol"] in names]
    _check(own, runs)
    name = f"{protocol}{TRIALS}"
    if old is not None and name in old.about["sha256"]:
        before = read_rows(Path(folder, name), old.about)
        new = {_search(row) for row in own}
        own = [row for row in before if _search(row) not in new] + own
    columns = dict.fromkeys(key for row in own for key in row)
    return {name: csv_text(columns, own)} if own else {}


def _search(row: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(row[key] for key in SEARCH)


def _check(rows: Iterable[Mapping[str, str]], runs: Iterable[Run]) -> None:
    of_runs: dict[tuple, list[Mapping]] = {}
    for run in runs:
        cell = (run.protocol, run.method, str(run.bits))
        of_runs.setdefault(cell, []).append(run.hyperparameters)
    for row in rows:
        if row["chosen"] != "True":
            continue
        chosen = json.loads(row["settings"])
        for settings in of_runs.get((row["protocol"], row["method"], row["bits"]), ()):
            for key in settings.keys() & chosen.keys():
                if settings[key] != chosen[key]:
                    words = f"{row['protocol']}, {row['method']}, {row['bits']} bits"
                    raise ValueError(
                        f"{words}: tuning {row['tuning']} chose {key} {chosen[key]!r}, but the runs have "
                        f"{settings[key]!r}; run the table with what was chosen"
                    )
