"""What was measured of a table: `Run` and `Results`, built once where files are read.

A *cell* is (protocol, metric, method, bits). Nothing here loads NumPy or pandas: plans of tables read runs,
too.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reporting.tables.titles import LEADERBOARD

if TYPE_CHECKING:
    import numpy as np

# (protocol, method, bits), which runs of several seeds share; and the same with a metric, in a table's order.
RunCell = tuple[str, str, int]
ScoreCell = tuple[str, str, str, int]

NO_RECORD = "no run was recorded"
# Of a run: cells of the leaderboard may be missing there.
STATUSES = ("done", "refused", "missing")
# Copied from run.json under the same name; seconds of parts have fields of their own.
OF_RUN_FILE = ("seconds", "peak_memory_mb", "threads", "device", "git_commit")
BY_NAME = ("versions", "hyperparameters", "fingerprints", "folds", "of_folds")
KEY = ("protocol", "method", "bits", "seed")
OF_RECORD = ("reason", "metrics", "curves", "health", "training", "per_query")
PARTS = ("fit", "encode")
# What the choice of hyper-parameters was allowed, where it is no search of the workflow.
AS_GIVEN = "as given"
NOTHING_TO_CHOOSE = "nothing to choose"
ELSEWHERE = "chosen elsewhere"  # of codes of other programs


@dataclass(frozen=True)
class Tuning:
    """What the choice of a cell's hyper-parameters was allowed.

    trials: how many settings were tried, 1 if they are as given; budget: the rule in words.
    """

    trials: int
    budget: str


@dataclass(frozen=True)
class Run:
    """One run, of its files or of the leaderboard.

    status: one of STATUSES, with its `reason`; metrics: name -> mean over the queries;
    curves: name -> list, see `tiebench.scoring.Scores`; health: of the codes, as scores.json has it, {} where
    nothing is known; training: lines of training.jsonl; per_query: metric -> float64 (Q,); both are empty
    unless they were asked for. from_leaderboard: whether the run was not made here; tuning: brought by such a
    run; search_seconds: of a processor, of the trials that chose its settings, if they were asked for. The
    rest is of run.json, None or empty for what it does not say; folds: protocols whose runs were put together
    -> how many queries each has; of_folds: their metrics.
    """

    protocol: str
    method: str
    bits: int
    seed: int
    status: str = "done"
    reason: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    curves: Mapping[str, Sequence] = field(default_factory=dict)
    health: Mapping[str, Any] = field(default_factory=dict)
    training: Sequence[Mapping] = ()
    per_query: Mapping[str, "np.ndarray"] = field(default_factory=dict)
    from_leaderboard: bool = False
    tuning: Tuning | None = None
    seconds: float | None = None
    fit_seconds: float | None = None
    encode_seconds: float | None = None
    search_seconds: float | None = None
    peak_memory_mb: float | None = None
    threads: int | None = None
    device: str | None = None
    git_commit: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    folds: Mapping[str, int] = field(default_factory=dict)
    of_folds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    log: str = ""

    @classmethod
    def from_json(cls, record: Mapping) -> "Run":
        """A run of a record: its key, what scores.json says, and "run", what run.json says."""
        run, tuning = record.get("run") or {}, record.get("tuning")
        parts = run.get("seconds_by_part") or {}
        return cls(
            **{name: record[name] for name in (*KEY, "status")},
            from_leaderboard=record.get("source") == LEADERBOARD,
            tuning=None if tuning is None else Tuning(tuning["trials"], tuning["budget"]),
            fit_seconds=parts.get("fit"),
            encode_seconds=parts.get("encode"),
            log=str(run.get("log") or ""),
            **{name: record[name] for name in OF_RECORD if record.get(name)},
            **{name: run[name] for name in (*OF_RUN_FILE, *BY_NAME) if run.get(name) is not None},
        )

    def to_json(self) -> dict:
        """The record of a run of the leaderboard, which settings of tables hold; `from_json` reads it."""
        record: dict[str, Any] = {name: getattr(self, name) for name in KEY}
        record |= {"status": self.status, "reason": self.reason, "source": LEADERBOARD}
        record |= {"metrics": dict(self.metrics), "curves": dict(self.curves), "health": dict(self.health)}
        if self.tuning is not None:
            record["tuning"] = {"trials": self.tuning.trials, "budget": self.tuning.budget}
        if self.status != "done":
            return record | {"run": {}}
        run = {name: getattr(self, name) for name in OF_RUN_FILE}
        parts = {part: self.seconds_of(part) for part in PARTS}
        run = {name: value for name, value in run.items() if value is not None} | {
            "protocol": next(iter(self.folds), self.protocol),
            "fingerprints": dict(self.fingerprints),
            "seconds_by_part": {part: seconds for part, seconds in parts.items() if seconds is not None},
        }
        if self.folds:
            of_folds = {fold: dict(metrics) for fold, metrics in self.of_folds.items()}
            run |= {"folds": dict(self.folds), "of_folds": of_folds}
        return record | {"run": run}

    @property
    def cell(self) -> RunCell:
        return self.protocol, self.method, self.bits

    @property
    def collapsed(self) -> str:
        """Why the codes count as collapsed, "" if they do not, or where nothing is known of them."""
        return self.health.get("collapsed") or ""

    def seconds_of(self, part: str) -> float | None:
        """Seconds of a part, one of PARTS."""
        return {"fit": self.fit_seconds, "encode": self.encode_seconds}[part]

    def outcome(self, metric: str) -> tuple[float | None, str, str]:
        """The score by a metric, as (score, status, reason).

        The score is None unless the status is "done"; a run that is done but was not scored with this metric
        counts as missing, with that as its reason. Raises ValueError for a score that is not finite.
        """
        if self.status != "done":
            return None, self.status, self.reason or f"{self.status} without a reason"
        score = self.metrics.get(metric)
        if score is None:
            return None, "missing", f"the run has no score named {metric}"
        score = float(score)
        if not math.isfinite(score):
            raise ValueError(f"run {self}: {metric} is {score}, it must be a finite number")
        return score, "done", ""

    def score(self, metric: str) -> float | None:
        """The score by a metric, None where there is none. Raises ValueError as `outcome` does."""
        return self.outcome(metric)[0]

    def __str__(self) -> str:
        return f"{self.protocol}/{self.method}/{self.bits}/{self.seed}"


def other_fingerprint(name: str, ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """What differs between the fingerprints of a protocol's data here and in the leaderboard, in words.

    "" for nothing. What one of them lacks is not compared.
    """
    for what in theirs:
        if ours.get(what, theirs[what]) != theirs[what]:
            other = f"another {what} here ({ours[what][:12]}…) than in the leaderboard ({theirs[what][:12]}…)"
            return f"{name} has {other}"
    return ""


@dataclass(frozen=True)
class Results:
    """What was measured of a table.

    runs: (protocol, method, bits) -> {seed: run}, seeds in the table's order; uncoded: protocol -> metric ->
    score of the ranking by its features themselves.
    """

    runs: Mapping[RunCell, Mapping[int, Run]] = field(default_factory=dict)
    uncoded: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Any, runs: Iterable[Run], uncoded: Mapping | None = None) -> "Results":
        """Results of the runs of a `Table`, whose module imports this one, in any order.

        Runs of other seeds than the method's are left out, but those from the leaderboard: they have the
        seeds that they were made with, ascending. Raises ValueError for two records of one run and for a
        status other than those of STATUSES.
        """
        found: dict[RunCell, dict[int, Run]] = {}
        for run in runs:
            if run.status not in STATUSES:
                known = ", ".join(STATUSES)
                raise ValueError(f"run {run}: status is {run.status!r}, it must be one of: {known}")
            if run.seed in found.setdefault(run.cell, {}):
                raise ValueError(f"run {run}: two records of one run")
            found[run.cell][run.seed] = run
        return cls(
            {
                cell: {seed: of[seed] for seed in table.cell_seeds(cell[1], of) if seed in of}
                for cell, of in found.items()
            },
            uncoded or {},
        )

    def cell(self, protocol: str, method: str, bits: int) -> Mapping[int, Run]:
        """{seed: run} of a cell, {} where it has none."""
        return self.runs.get((protocol, method, bits), {})

    def scores(self, protocol: str, metric: str, method: str, bits: int) -> dict[int, float]:
        """{seed: score} of the runs of a cell that have a score. Raises ValueError as `Run.outcome` does."""
        scores = {seed: run.score(metric) for seed, run in self.cell(protocol, method, bits).items()}
        return {seed: score for seed, score in scores.items() if score is not None}

    def mean_range(
        self, protocol: str, metric: str, method: str, bits: int
    ) -> tuple[float, float, float] | None:
        """(worst order, exact mean, best order) of ties: means over the runs of a cell that have all three
        scores, None where there is none."""
        names = (f"{metric}_min", metric, f"{metric}_max")
        found = [self.scores(protocol, name, method, bits) for name in names]
        seeds = set.intersection(*map(set, found))
        if not seeds:
            return None
        low, middle, high = (statistics.mean(of[seed] for seed in seeds) for of in found)
        return low, middle, high

    def outcomes(self, table: Any, cell: ScoreCell) -> dict[int, tuple[float | None, str, str]]:
        """{seed: `Run.outcome`} of the seeds that a cell of a table is to have."""
        protocol, metric, method, bits = cell
        runs = self.cell(protocol, method, bits)
        missing = (None, "missing", NO_RECORD)
        return {
            seed: runs[seed].outcome(metric) if seed in runs else missing
            for seed in table.cell_seeds(method, runs)
        }

    def __iter__(self) -> Iterator[Run]:
        return (run for of in self.runs.values() for run in of.values())


def collapsed_runs(runs: Iterable[Run]) -> int:
    """Of how many runs the codes collapsed."""
    return sum(bool(run.collapsed) for run in runs)


def whole_mean(values: Sequence[float | None]) -> float | None:
    """The mean of values that are all known; None for others, and of nothing."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known and len(known) == len(values) else None


def whole_deviation(values: Sequence[float | None]) -> float | None:
    """The standard deviation of values, two at least, that are all known; None for others."""
    known = [value for value in values if value is not None]
    return statistics.stdev(known) if len(known) == len(values) > 1 else None
