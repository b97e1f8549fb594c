"""Boards of several protocols as one table with its results, for what is printed and drawn of them."""

import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from reporting import leaderboard
from reporting.leaderboard import RUNS, TIDY, Board, training_curves
from reporting.leaderboard.per_query import with_scores
from reporting.leaderboard.settings import as_bits, listed
from reporting.leaderboard.training_curves import TRAINING
from reporting.leaderboard.trials import TRIALS, search_seconds
from reporting.tables.model import Table, in_order
from reporting.tables.runs import Results, Run
from reporting.tables.titles import RANGE
from tiebench import metrics
from tiebench.leaderboards import PER_QUERY, read_provenance, stems
from tiebench.messages import did_you_mean

if TYPE_CHECKING:
    import pandas as pd

# What a figure may need of runs besides their scores -> the file that has it.
FILE_OF = {"training": TRAINING, "per_query": PER_QUERY, "trials": TRIALS}


class Boards:
    """The boards of a folder, each read once and when it is asked for."""

    def __init__(self, folder: str | Path = leaderboard.FOLDER):
        self.folder = Path(folder)
        self._read = functools.cache(lambda protocol: leaderboard.read(protocol, self.folder))
        self._runs = functools.cache(self._runs_with)

    def __getitem__(self, protocol: str) -> Board:
        """Raises ValueError, one line with the nearest name, for an unknown protocol."""
        return self._read(protocol)

    def link(self, folder: Path, page: str = "") -> str:
        """From a page's folder to the folder of the boards, or to a page of the documentation beside it."""
        if page:
            return Path(os.path.relpath(self.folder.parent / "docs" / page, folder)).as_posix()
        return Path(os.path.relpath(self.folder, folder)).as_posix() + "/"

    @functools.cached_property
    def titles(self) -> dict[str, str]:
        """Method -> its title, of the boards of the folder."""
        every = [read_provenance(stem, self.folder)["methods"] for stem in stems(self.folder)]
        return {name: of["title"] for methods in every for name, of in methods.items()}

    def has(self, protocol: str, part: str) -> bool:
        """Whether what a figure NEEDS of runs was published of a protocol."""
        return f"{protocol}{FILE_OF.get(part)}" in self[protocol].about["sha256"]

    def runs(self, protocol: str, needs: Iterable[str] = ()) -> list[Run]:
        """The runs of a board with the parts of FILE_OF that a figure NEEDS: "training" leaves those that
        have curves; "trials" adds the processor seconds of all trials of the method under the protocol.
        """
        return self._runs(protocol, frozenset(needs))

    def _runs_with(self, protocol: str, needs: frozenset[str]) -> list[Run]:
        board = self[protocol]
        found = with_scores(board, self.folder) if "per_query" in needs else board.measured
        if "training" in needs:
            of_runs = training_curves.published(board, self.folder)
            # As `merged_run`: the run of all folds has the training of the first.
            shown = {protocol: board.folds[0]} if board.folds else {}
            keys = [(shown.get(run.protocol, run.protocol), run.method, run.bits, run.seed) for run in found]
            found = [replace(run, training=of_runs.get(key, ())) for run, key in zip(found, keys)]
        if "trials" in needs:
            seconds = search_seconds(board, self.folder)
            found = [replace(run, search_seconds=seconds.get(run.method)) for run in found]
        return found

    def check(self, protocol: str, metric: str, bits: Iterable[int]) -> None:
        """Raise ValueError, one line with the known names, for scores that no run of a protocol has."""
        board = self[protocol]
        metrics.resolve(metric)
        known = board.scored
        if metric not in known:
            raise ValueError(f"the leaderboard of {protocol} has no {metric}{did_you_mean(metric, known)}")
        for length in bits:
            if length not in board.bits:
                words = f"codes of {length} bits; it has: {', '.join(map(str, board.bits))}"
                raise ValueError(f"the leaderboard of {protocol} has no {words}")

    def model(
        self,
        blocks: Sequence[Mapping],
        methods: Sequence[str] | None = None,
        without: Sequence[str] = (),
        needs: Iterable[str] = (),
    ) -> tuple[Table, Results]:
        """`as_table` of blocks of protocols, and what was measured of it, with what a figure NEEDS.

        Raises ValueError as `check` and `as_table` do.
        """
        for block in blocks:
            self.check(block["protocol"], block["metric"], block["bits"])
        used = [self[name] for name in dict.fromkeys(block["protocol"] for block in blocks)]
        runs = [run for board in used for run in self.runs(board.protocol, needs)]
        table = as_table(used, blocks, methods, without)
        return table, results_of(table, used, runs)

    def asked(self, settings: Mapping, needs: Iterable[str] = ()) -> tuple[Table, Results]:
        """`model` of the protocols, metrics, code lengths and methods of a marker."""
        blocks = [
            {"protocol": name, "metric": metric, "bits": as_bits(settings.get("bits") or self[name].bits)}
            for name in listed(settings["protocol"])
            for metric in listed(settings.get("metric", "ap"))
        ]
        return self.model(blocks, settings.get("methods"), settings.get("without", ()), needs)

    def printed(
        self,
        protocol: str,
        metric: str | None = None,
        bits: Sequence[int] | None = None,
        methods: Sequence[str] | None = None,
    ) -> "tuple[Table, pd.DataFrame, pd.DataFrame]":
        """What was published of a protocol as (table, tidy, compared), in the forms of a table of results.

        metric: the board's main one by default; bits, methods: all by default. Raises ValueError, one line
        with the nearest name, for what the board does not have.
        """
        from reporting import frames
        from reporting.statistics import columns

        board = self[protocol]
        metric, bits = metric or main_metric(board), bits or board.bits
        block = {"protocol": protocol, "metric": metric, "bits": list(bits)}
        table, results = self.model([block], methods, needs=["per_query"])
        table = replace(table, name=protocol, title=board.about["title"])
        return table, frames.tidy(table, results), columns.comparisons(table, results)

    def sha256(self, protocols: Iterable[str], needs: Iterable[str] = ()) -> dict[str, str]:
        """File -> sha256 of what the boards of protocols are read from, with what a figure NEEDS of them."""
        found: dict[str, str] = {}
        endings = [TIDY, RUNS, *(FILE_OF[part] for part in needs)]
        for protocol in protocols:
            known = self[protocol].about["sha256"]
            names = [f"{protocol}{ending}" for ending in endings]
            found |= {name: known[name] for name in names if name in known}
        return found


def main_metric(board: Board) -> str:
    """The metric that a board's tables begin with: of its first scored cell."""
    return next(cell["metric"] for cell in board.cells if cell["mean"])


def other_metrics(board: Board) -> list[str]:
    """Metrics of the board's cells besides the main one, without ends of ranges."""
    known = {*board.scored} - {main_metric(board)}
    names = dict.fromkeys(cell["metric"] for cell in board.cells if cell["mean"])
    return [name for name in names if name in known and not name.endswith(RANGE)]


def as_table(
    boards: Sequence[Board],
    blocks: Sequence[Mapping],
    methods: Sequence[str] | None = None,
    without: Sequence[str] = (),
) -> Table:
    """A table of boards, with their titles and styles.

    blocks: protocol or fold, metric and bits of each, and methods where not all rows. methods: the rows;
    None: all but those of `without`, family after family, otherwise in the order of the boards. Raises
    ValueError for a method that no board has.
    """
    styles = {name: style for board in reversed(boards) for name, style in board.styles().items()}
    families = {name: style["family"] for name, style in styles.items()}
    known = list(dict.fromkeys(name for board in boards for name in board.methods))
    of_blocks = [name for block in blocks for name in block.get("methods", ())]
    for method in (*(methods or ()), *without, *of_blocks):
        if method not in known:
            raise ValueError(f"the leaderboard has no method {method!r} there{did_you_mean(method, known)}")
    if methods is None:
        rest = [name for name in known if name not in without]
        methods = in_order(rest, rest, families)
    members = [(board, name) for board in boards for name in board.members]
    titles = {name: fold_title(board, name) for board, name in members if name != board.protocol}
    entry = {
        "name": "leaderboard",
        "methods": list(methods),
        "seeds": sorted({seed for board in boards for seed in board.about["seeds"]}),
        "styles": styles,
        "families": families,
        "protocols": {board.protocol: board.about["title"] for board in boards} | titles,
        "folds": {board.protocol: board.folds for board in boards if board.folds},
        "settings": {name: board.about["settings"] or {} for board, name in members},
        "blocks": [{"methods": list(methods), **block} for block in blocks],
    }
    return Table.from_json({"table": entry})


def results_of(table: Table, boards: Sequence[Board], runs: Iterable[Run] | None = None) -> Results:
    """What boards have of a table; runs: those of the boards, None for `Board.measured` of each."""
    measured = (run for board in boards for run in board.measured)
    uncoded = {name: board.uncoded(name) for board in boards for name in board.members}
    return Results.of(table, measured if runs is None else runs, uncoded)


def fold_title(board: Board, fold: str) -> str:
    """The title of a fold: its unseen classes where the split lists them, "{0, 1, 2}", else its number."""
    index = board.folds.index(fold)
    unseen = ((board.about["settings"] or {}).get("split") or {}).get("unseen")
    return f"{{{', '.join(map(str, unseen[index]))}}}" if unseen else f"fold {index + 1}"
