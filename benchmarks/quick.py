"""The quick table as a user runs it: how long it takes, and where the time is spent."""

import csv
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from datetime import datetime
from pathlib import Path

from benchmarks.report import duration, figure, progress
from benchmarks.timing import Failed

ROOT = Path(__file__).parents[1]
CORES = 2
TARGET = "results/quick.csv"
# What a checkout does not have, or a first run has not made.
_NOT_COPIED = (
    ".git",
    ".venv",
    ".snakemake",
    ".pytest_cache",
    ".ruff_cache",
    "resources",
    "results",
    "shared",
)
# What this command sets for itself (threads), or what would lead to the code of another checkout.
NOT_PASSED_ON = (
    "PYTHONPATH",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def run(report, quick):
    """Print all tables. Returns the summary: rows (figure, reach, seen)."""
    with tempfile.TemporaryDirectory(prefix="tiebench-quick-") as folder:
        checkout = Path(folder, "checkout")
        # With the compiled kernels that lie beside their source, as set-up leaves them.
        shutil.copytree(ROOT, checkout, ignore=_not_copied)
        environment = {key: value for key, value in os.environ.items() if key not in NOT_PASSED_ON}
        progress("quick: compiling missing kernels")
        _command([sys.executable, "-m", "workflow.compile"], checkout, environment)
        progress("quick: the quick table, about three minutes")
        command = [sys.executable, "-m", "snakemake", "--cores", str(CORES), TARGET]
        wall, processor = _command(command, checkout, environment)
        found = spent(checkout / "results")
    return tables(report, found, wall, processor)


def _not_copied(folder, names):
    # Compare paths, not names: a package may contain a folder of the same name.
    return [name for name in names if Path(folder) == ROOT and name in _NOT_COPIED]


def _command(command, folder, environment):
    """Run a command; returns its seconds of wall clock and of processor time, its descendants' included.

    Raises `Failed` with the last lines of what it printed.
    """
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    made = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if made.returncode:
        raise Failed(f"{' '.join(command[1:])}: {' / '.join(made.stdout.strip().splitlines()[-5:])}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def spent(results):
    """Where the seconds of a finished folder `results` went, as a dict.

    training: method -> dict of `jobs`, `wall` (of their processes), `fit`, `encode` (of their runs); stages:
    every other rule -> (jobs, seconds from the first to the last line of their logs, which do not have the
    start of Python). Snakemake's own processor seconds of a job end at its last sample, up to half a minute
    before the end of the job, so they are not used.
    """
    training = defaultdict(lambda: dict.fromkeys(("jobs", "wall", "fit", "encode"), 0))
    folder = results / "benchmarks" / "train_and_encode"
    for file in sorted(folder.rglob("*.tsv")):
        with file.open(newline="") as lines:
            (row,) = csv.DictReader(lines, delimiter="\t")
        method = training[file.relative_to(folder).parts[1]]
        method["jobs"] += 1
        method["wall"] += float(row["s"])
    for file in sorted((results / "runs").glob("*/*/*/*/run.json")):
        record = json.loads(file.read_text())
        for part, seconds in record["seconds_by_part"].items():
            training[record["method"]][part] += seconds
    stages = {}
    for rule in sorted((results / "logs").iterdir()):
        if rule.name != "train_and_encode":
            spans = [_span(log) for log in sorted(rule.rglob("*.log"))]
            stages[rule.name] = (len(spans), sum(spans))
    return {"training": dict(training), "stages": stages}


def _span(log):
    """Seconds from the first to the last line of a log that begins with a time."""
    times = re.findall(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3}) ", log.read_text(), re.MULTILINE)
    if not times:
        return 0.0
    first, last = (
        datetime.fromisoformat(second).timestamp() + int(thousandths) / 1000
        for second, thousandths in (times[0], times[-1])
    )
    return last - first


def tables(report, found, wall, processor):
    """Print what `spent` found, beside the wall-clock and processor seconds of the whole run."""
    report.write(
        f"## The quick table: snakemake --cores {CORES} {TARGET}",
        f"In a fresh copy of the checkout with compiled kernels: {duration(wall)} of wall clock, "
        f"{duration(processor)} of processor time ({figure(100 * processor / (CORES * wall))} % of {CORES} "
        "cores). Jobs overlap, so their seconds add up to core seconds.",
    )
    training = found["training"]
    rows = []
    for name, one in sorted(training.items(), key=lambda item: -item[1]["wall"]):
        rest = one["wall"] - one["fit"] - one["encode"]
        rows.append(
            [name, one["jobs"], *(f"{one[key]:.1f}" for key in ("wall", "fit", "encode")), f"{rest:.1f}"]
        )
    jobs, in_training, *_ = (
        sum(one[key] for one in training.values()) for key in ("jobs", "wall", "fit", "encode")
    )
    report.rows(["training", "jobs", "wall s", "fit s", "encode s", "start, imports, files s"], rows)
    fitting = sum(one["fit"] + one["encode"] for one in training.values())
    scoring = found["stages"].get("score_codes", (0, 0.0))
    others = [value for name, value in found["stages"].items() if name != "score_codes"]
    parts = [
        ("training: fit and encode", jobs, fitting),
        ("training: start, imports, files", jobs, in_training - fitting),
        ("scoring, from its logs", *scoring),
        ("all other stages, from their logs", *map(sum, zip(*others)))
        if others
        else ("all other stages", 0, 0.0),
    ]
    whole = CORES * wall
    rest = whole - sum(seconds for _, _, seconds in parts)
    parts.append(("other: the engine, starts of Python, idle cores", "", rest))
    report.rows(
        [f"core seconds of {whole:.0f}", "jobs", "s", "share"],
        [(name, count, f"{seconds:.1f}", f"{100 * seconds / whole:.0f} %") for name, count, seconds in parts],
    )
    share = figure(100 * fitting / whole)
    return [
        (f"quick table, {CORES} cores, kernels compiled", "under 180 s", duration(wall)),
        ("quick table: share of core seconds spent fitting and encoding", "as near to 100 %", f"{share} %"),
    ]
