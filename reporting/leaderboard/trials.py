"""What a leaderboard keeps of searches: every trial that was made to choose hyper-parameters.

`<protocol>.trials.csv` has the rows of results/tuning/<name>.csv that are of the protocol or of its folds,
after a column `tuning` with the name of the search.
"""

import csv
import io
import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reporting.leaderboard import Board, csv_text
from reporting.tables.runs import Run
from tiebench.files import reading_result
from tiebench.leaderboards import read_rows

TRIALS = ".trials.csv"
# What a search is of, and what two versions of it have in common.
SEARCH = ("tuning", "protocol", "method", "bits")


@dataclass(frozen=True)
class Trial:
    """settings: all that the search may change; score: mean over the parts of the training set on which every
    trial of its search was tried, None if it failed on one of them; seconds: of a processor, on all parts."""

    settings: Mapping[str, Any]
    score: float | None
    seconds: float = 0.0


def best_score(trials: Iterable[Trial], where: Mapping[str, Any]) -> float | None:
    """The highest score of trials with these settings, None if none has one."""
    scores = [
        trial.score
        for trial in trials
        if trial.score is not None and all(trial.settings.get(key) == value for key, value in where.items())
    ]
    return max(scores, default=None)


def published(board: Board, folder: str | Path) -> dict[tuple[str, str, int], list[Trial]]:
    """(protocol or fold, method, bits) -> trials of its searches, of a board's file; {} if it has none."""
    parts: dict[tuple[str, ...], dict[str, list[dict[str, str]]]] = {}
    for row in read_rows(Path(folder, f"{board.protocol}{TRIALS}"), board.about):
        parts.setdefault(_search(row), {}).setdefault(row["trial"], []).append(row)
    found: dict[tuple[str, str, int], list[Trial]] = {}
    for (_, protocol, method, bits), trials in parts.items():
        # A trial that fails on a part is not tried on the others.
        scores = [[row["score"] for row in rows] for rows in trials.values()]
        common = min((len(of_trial) for of_trial in scores if all(of_trial)), default=0)
        found.setdefault((protocol, method, int(bits)), []).extend(
            Trial(
                json.loads(rows[0]["settings"]),
                statistics.fmean(map(float, of_trial[:common])) if all(of_trial) else None,
                sum(float(row.get("seconds") or 0) for row in rows),
            )
            for rows, of_trial in zip(trials.values(), scores)
        )
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
