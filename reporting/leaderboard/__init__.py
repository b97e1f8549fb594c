"""Scores that ship with the repository, leaderboard/, read back: cells, runs and where they come from.

Files per protocol:

* `<protocol>.tidy.csv`: a row per cell, in the form of `frames.tidy`. A protocol of several folds has rows of
  its own, over the queries of all folds, then those of each fold under the fold's name.
* `<protocol>.runs.csv`: a row per run, of folds one per fold: what it cost, health of its codes, and every
  mean of its scores.json.
* `<protocol>.provenance.json`: settings, versions, fingerprints, titles of the methods; sha256 of the others.
* `<protocol>.per_query.npz`: scores of each query, see `per_query`.
* `<protocol>.trials.csv`, `<protocol>.training.csv`: searches and trainings, see `trials`, `training_curves`.

`earlier_forms.yaml`, one file for all, names the rows that today's code would not make, see `earlier_forms`.

`publishing` writes the others. Plans of tables read them, so nothing here loads pandas before `Board.tidy`.
"""

import csv
import functools
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reporting.leaderboard import earlier_forms
from reporting.records.folds import merged_run
from reporting.tables.runs import KEY, OF_RUN_FILE, PARTS, Run, Tuning
from reporting.tables.titles import UNCODED
from tiebench.leaderboards import TIDY, read_provenance, read_rows, verified
from tiebench.messages import shorten

if TYPE_CHECKING:
    import pandas as pd

FOLDER = "leaderboard"
RUNS = ".runs.csv"

# What a column of runs.csv starts with that holds no metric: of run.json, and of the codes' health.
OF_RUN, OF_HEALTH = "run.", "health."
# Settings of a protocol that have to be equal for scores to be comparable.
SETTINGS = ("affinity", "input", "end_to_end", "ap_at_normaliser", "seed")
# What it keeps of a method's style.
STYLE = ("title", "family", "colour", "marker", "paper", "sees")
TEXTS = ("protocol", "method", "run.device", "run.git_commit", "run.codes_sha256", "health.collapsed")


@dataclass(frozen=True)
class Board:
    """What the leaderboard has of a protocol.

    about: its provenance; cells: rows of tidy.csv, as text; runs: rows of runs.csv, column -> int, float, str
    or None; text: tidy.csv; earlier: of `earlier_forms.of`.
    """

    protocol: str
    about: Mapping
    cells: list[dict[str, str]]
    runs: list[dict]
    text: str
    earlier: Mapping[str, str]

    @functools.cached_property
    def tidy(self) -> "pd.DataFrame":
        """tidy.csv as the frame of `frames.tidy`."""
        from reporting import frames

        return frames.from_csv(self.text)

    @property
    def folds(self) -> list[str]:
        """Names of the protocol's folds, [] if it has none."""
        return [name for name in dict.fromkeys(run["protocol"] for run in self.runs) if name != self.protocol]

    @property
    def members(self) -> list[str]:
        """The protocol and its folds."""
        return [self.protocol, *self.folds]

    @property
    def methods(self) -> list[str]:
        """Methods that have a score, in the order of tidy.csv; without the features themselves.

        A table's bound may have none: one-hot codes of more classes than bits.
        """
        scored = dict.fromkeys(cell["method"] for cell in self.cells if cell["mean"])
        return [name for name in scored if name != UNCODED]

    @functools.cached_property
    def scored(self) -> list[str]:
        """Metrics that its runs have scores of, without their ranges and counts."""
        return [name for name in dict.fromkeys(name for run in self.runs for name in run) if _is_metric(name)]

    @property
    def bits(self) -> list[int]:
        """Code lengths of runs, ascending."""
        return sorted({run["bits"] for run in self.runs})

    def styles(self) -> dict[str, dict]:
        """Method -> STYLE of its rows, and "earlier", what differs in their form, where something does."""
        of = self.about["methods"]
        return {
            name: of[name] | {"earlier": self.earlier[name]} if name in self.earlier else of[name]
            for name in of
        }

    def uncoded(self, protocol: str) -> dict[str, float]:
        """Metric -> score of the features themselves, of the protocol or of one of its folds."""
        rows = (cell for cell in self.cells if cell["protocol"] == protocol and cell["method"] == UNCODED)
        return {cell["metric"]: float(cell["mean"]) for cell in rows}

    @functools.cached_property
    def measured(self) -> list[Run]:
        """A run of the leaderboard per row, of the protocol and of each fold; refused cells have one of the
        first seed. Curves are empty. Kept, since each table and figure of a page asks for them: thousands.
        """
        of_runs = [self._run(row) for row in self.runs]
        merged: dict[tuple, list[Run]] = {}
        for run in of_runs if self.folds else ():
            merged.setdefault((run.method, run.bits, run.seed), []).append(run)
        together = [
            merged_run(self.protocol, parts) for parts in merged.values() if len(parts) == len(self.folds)
        ]
        tunings = {
            (cell["protocol"], cell["method"], int(cell["bits"])): Tuning(int(cell["trials"]), cell["budget"])
            for cell in self.cells
        }
        return [replace(run, tuning=tunings[run.cell]) for run in (*together, *of_runs, *self._refused())]

    def _run(self, row: Mapping) -> Run:
        metrics = {
            name: value
            for name, value in row.items()
            if value is not None and name not in KEY and not name.startswith((OF_RUN, OF_HEALTH))
        }
        health = _of(OF_HEALTH, row)
        if all(value is None for value in health.values()):
            health = {}
        else:
            health["ones"] = [health.pop("ones_lowest"), health.pop("ones_highest")]
        about: dict[str, Any] = _of(OF_RUN, row)
        costs: dict[str, Any] = {name: about.get(name) for name in OF_RUN_FILE}
        return Run(
            **{key: row[key] for key in KEY},
            metrics=metrics,
            health=health,
            from_leaderboard=True,
            fit_seconds=about.get("seconds_fit"),
            encode_seconds=about.get("seconds_encode"),
            fingerprints=self.fingerprints().get(row["protocol"], {}),
            **costs,
        )

    def _refused(self) -> list[Run]:
        found = {
            (cell["protocol"], cell["method"], int(cell["bits"])): cell["reason"]
            for cell in self.cells
            if cell["status"] == "refused"
        }
        seed = self.about["seeds"][0]
        return [
            Run(*cell, seed, status="refused", reason=reason, from_leaderboard=True)
            for cell, reason in found.items()
        ]

    def fingerprints(self) -> dict[str, dict[str, str]]:
        """Protocol or fold -> fingerprints of its dataset and split."""
        return {
            entry["protocol"]: {key: entry[key] for key in ("dataset", "split") if key in entry}
            for entry in self.about["fingerprints"]
        }


def other_setting(board: Board, settings: Mapping | None) -> str:
    """What differs between the settings of a board's protocol and others, in words; "" for nothing.

    Keys that one of them lacks are not compared: of splits the fingerprints have the last word.
    """
    of_board, settings = _flat(board.about["settings"]), _flat(settings)
    for key in of_board:
        if key in settings and of_board[key] != settings[key]:
            values = f"{shorten(repr(settings[key]))}, not {shorten(repr(of_board[key]))}"
            return f"{key} of {board.protocol} is {values} as in the leaderboard"
    return ""


@functools.cache  # boards have the same columns
def _is_metric(name: str) -> bool:
    from tiebench import metrics

    try:
        metrics.resolve(name)
    except ValueError:
        return False
    return True


def _flat(settings: Mapping | None) -> dict:
    """Those of SETTINGS, and the keys of the split."""
    settings = settings or {}
    found = {key: settings[key] for key in SETTINGS if key in settings}
    return found | {f"split.{key}": value for key, value in (settings.get("split") or {}).items()}


def _of(prefix: str, run: Mapping) -> dict:
    """Columns that start with a prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in run.items() if name.startswith(prefix)}


def read(protocol: str, folder: str | Path = FOLDER) -> Board:
    """What the leaderboard has of a protocol.

    Raises ValueError, one line, for an unknown protocol and where the files do not belong together.
    """
    about = read_provenance(protocol, folder)
    tidy = Path(folder, f"{protocol}{TIDY}")
    text, cells = verified(tidy, about).decode(), read_rows(tidy, about)
    runs = typed_runs(read_rows(Path(folder, f"{protocol}{RUNS}"), about))
    return Board(protocol, about, cells, runs, text, earlier_forms.of(runs, folder))


def run_row(run: Run) -> dict:
    """The row of runs.csv that a run becomes; `Board.measured` turns it back."""
    row = {key: getattr(run, key) for key in KEY}
    costs = {"seconds": run.seconds} | {f"seconds_{part}": run.seconds_of(part) for part in PARTS}
    costs |= {name: getattr(run, name) for name in OF_RUN_FILE if name != "seconds"}
    health = dict(run.health)
    if ones := health.pop("ones", None):
        health |= {"ones_lowest": min(ones), "ones_highest": max(ones)}
    row |= {OF_RUN + name: value for name, value in costs.items()}
    row |= {OF_HEALTH + name: value for name, value in health.items()}
    return row | {name: value for name, value in run.metrics.items() if name not in KEY}


def runs_to_csv(runs: Iterable[Mapping]) -> str:
    """Rows as CSV text: columns in the order in which they first appear; None, and what a row lacks, empty.

    Reading them gives the same bits of every float back.
    """
    runs = list(runs)
    columns = list(dict.fromkeys(name for run in runs for name in run))
    # Columns of runs first: metrics differ between rows.
    first = [*KEY, *(name for prefix in (OF_RUN, OF_HEALTH) for name in columns if name.startswith(prefix))]
    return csv_text(dict.fromkeys([*first, *columns]), runs)


def csv_text(columns: Iterable[str], rows: Iterable[Mapping]) -> str:
    """Rows as CSV text with a header and LF line ends; None, and what a row lacks, empty."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def typed_runs(rows: Iterable[Mapping[str, str]]) -> list[dict]:
    """The rows that `runs_to_csv` wrote, from their texts."""
    return [
        {name: value or None if name in TEXTS else _number(value) for name, value in row.items()}
        for row in rows
    ]


def _number(text: str) -> int | float | None:
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        return float(text)
