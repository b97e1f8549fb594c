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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reporting.folds import merged_record
from reporting.leaderboard import earlier_forms
from reporting.titles import LEADERBOARD, UNCODED
from tiebench.leaderboards import PROVENANCE, TIDY, read_provenance, verified
from tiebench.messages import shorten

if TYPE_CHECKING:
    import pandas as pd

FOLDER = "leaderboard"
RUNS = ".runs.csv"

KEY = ("protocol", "method", "bits", "seed")
# What a column of runs.csv starts with that holds no metric: of run.json, and of the codes' health.
OF_RUN, OF_HEALTH = "run.", "health."
# Settings of a protocol that have to be equal for scores to be comparable.
SETTINGS = ("affinity", "input", "end_to_end", "ap_at_normaliser", "seed")
# What it keeps of a method's style.
STYLE = ("title", "family", "colour", "marker", "paper", "sees")
TEXTS = ("protocol", "method", "run.device", "run.git_commit", "health.collapsed")


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

    def records(self) -> list[dict]:
        """A record per run in the form of `records.table_records`, with "source" LEADERBOARD.

        Of the protocol, and of each fold. Curves are empty. Refused cells have a record of the first seed.
        Records are shared by all callers, the list is not.
        """
        return list(self._records)

    @functools.cached_property
    def _records(self) -> list[dict]:
        """Kept, since each table and figure of a page asks for them: thousands of runs."""
        of_runs = [self._record(run) for run in self.runs]
        merged: dict[tuple, list[dict]] = {}
        for record in of_runs if self.folds else ():
            merged.setdefault((record["method"], record["bits"], record["seed"]), []).append(record)
        together = [merged_record(self.protocol, parts) for parts in merged.values()]
        tuned = {
            (cell["protocol"], cell["method"], int(cell["bits"])): {
                "trials": int(cell["trials"]),
                "budget": cell["budget"],
            }
            for cell in self.cells
        }
        return [
            record | {"tuning": tuned[record["protocol"], record["method"], record["bits"]]}
            for record in (*together, *of_runs, *self._refused())
        ]

    def _record(self, run: Mapping) -> dict:
        metrics = {
            name: value
            for name, value in run.items()
            if value is not None and name not in KEY and not name.startswith((OF_RUN, OF_HEALTH))
        }
        health = _of(OF_HEALTH, run)
        if all(value is None for value in health.values()):
            health = {}
        else:
            health["ones"] = [health.pop("ones_lowest"), health.pop("ones_highest")]
        about = {name: value for name, value in _of(OF_RUN, run).items() if value is not None}
        parts = {part: about.pop(f"seconds_{part}", None) for part in ("fit", "encode")}
        about["seconds_by_part"] = {part: seconds for part, seconds in parts.items() if seconds is not None}
        about["protocol"] = run["protocol"]
        about["fingerprints"] = self.fingerprints().get(run["protocol"], {})
        plain = {"status": "done", "reason": "", "source": LEADERBOARD, "curves": {}}
        return {key: run[key] for key in KEY} | plain | {"metrics": metrics, "health": health, "run": about}

    def _refused(self) -> list[dict]:
        found = {
            (cell["protocol"], cell["method"], int(cell["bits"])): cell["reason"]
            for cell in self.cells
            if cell["status"] == "refused"
        }
        empty = {"status": "refused", "source": LEADERBOARD, "seed": self.about["seeds"][0]}
        return [
            empty
            | {"protocol": protocol, "method": method, "bits": bits, "reason": reason}
            | {"metrics": {}, "curves": {}, "health": {}, "run": {}}
            for (protocol, method, bits), reason in found.items()
        ]

    def fingerprints(self) -> dict[str, dict[str, str]]:
        """Protocol or fold -> fingerprints of its dataset and split."""
        return {
            entry["protocol"]: {key: entry[key] for key in ("dataset", "split") if key in entry}
            for entry in self.about["fingerprints"]
        }


def other_fingerprint(board: Board, others: Mapping[str, Mapping]) -> str:
    """What differs between the fingerprints of a board and others of its protocol, in words; "" for nothing.

    others: protocol or fold -> fingerprints, of those that are known.
    """
    for name, of in board.fingerprints().items():
        for what, value in of.items():
            other = others.get(name, {}).get(what, value)
            if other != value:
                return (
                    f"{name} has another {what} here ({other[:12]}…) than in the leaderboard ({value[:12]}…)"
                )
    return ""


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


def _flat(settings: Mapping | None) -> dict:
    """Those of SETTINGS, and the keys of the split."""
    settings = settings or {}
    found = {key: settings[key] for key in SETTINGS if key in settings}
    return found | {f"split.{key}": value for key, value in (settings.get("split") or {}).items()}


def _of(prefix: str, run: Mapping) -> dict:
    """Columns that start with a prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in run.items() if name.startswith(prefix)}


# -- files ----------------------------------------------------------------------------------------


def protocols(folder: str | Path = FOLDER) -> list[str]:
    """Names of the protocols that a leaderboard has, sorted."""
    return sorted(path.name.removesuffix(PROVENANCE) for path in Path(folder).glob(f"*{PROVENANCE}"))


def read(protocol: str, folder: str | Path = FOLDER) -> Board:
    """What the leaderboard has of a protocol.

    Raises ValueError, one line, for an unknown protocol and where the files do not belong together.
    """
    about = read_provenance(protocol, folder)
    texts = [verified(Path(folder, f"{protocol}{ending}"), about).decode() for ending in (TIDY, RUNS)]
    cells = list(csv.DictReader(io.StringIO(texts[0])))
    runs = runs_from_csv(texts[1])
    return Board(protocol, about, cells, runs, texts[0], earlier_forms.of(runs, folder))


def run_row(record: Mapping) -> dict:
    """The row of runs.csv that a record of `records.table_records` becomes; `Board.records` turns it back."""
    row = {key: record[key] for key in KEY}
    run, health = record["run"], dict(record.get("health") or {})
    parts = run.get("seconds_by_part") or {}
    costs = {"seconds": run.get("seconds")}
    costs |= {f"seconds_{part}": parts.get(part) for part in ("fit", "encode")}
    costs |= {name: run.get(name) for name in ("peak_memory_mb", "threads", "device", "git_commit")}
    if ones := health.pop("ones", None):
        health |= {"ones_lowest": min(ones), "ones_highest": max(ones)}
    row |= {OF_RUN + name: value for name, value in costs.items()}
    row |= {OF_HEALTH + name: value for name, value in health.items()}
    return row | {name: value for name, value in record["metrics"].items() if name not in KEY}


def runs_to_csv(runs: Iterable[Mapping]) -> str:
    """Rows as CSV text: columns in the order in which they first appear; None, and what a row lacks, empty.

    Reading them gives the same bits of every float back.
    """
    runs = list(runs)
    columns = list(dict.fromkeys(name for run in runs for name in run))
    # Those of runs before those of metrics: rows differ in what they have.
    first = [*KEY, *(name for prefix in (OF_RUN, OF_HEALTH) for name in columns if name.startswith(prefix))]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    columns = list(dict.fromkeys([*first, *columns]))
    writer.writerow(columns)
    for run in runs:
        writer.writerow([_text(run.get(name)) for name in columns])
    return buffer.getvalue()


def runs_from_csv(text: str) -> list[dict]:
    """The rows that `runs_to_csv` wrote."""
    return [
        {name: value or None if name in TEXTS else _number(value) for name, value in row.items()}
        for row in csv.DictReader(io.StringIO(text))
    ]


def _text(value: str | float | None) -> str:
    return "" if value is None else value if isinstance(value, str) else repr(value)


def _number(text: str) -> int | float | None:
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        return float(text)
