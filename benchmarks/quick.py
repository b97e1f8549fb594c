"""The quick table as a user runs it: how long it takes, and where the time is spent."""

import csv
import json
import shutil
import tempfile
from collections import defaultdict
from pathlib import Path

from benchmarks import commands
from benchmarks.report import duration, progress, rounded

TARGET = "results/quick.csv"
# What a checkout does not have, or a first run has not made.
_NOT_COPIED = {
    ".git",
    ".venv",
    ".snakemake",
    ".pytest_cache",
    ".ruff_cache",
    "resources",
    "results",
    "shared",
}


def run(report, quick):
    """Print all tables."""
    with tempfile.TemporaryDirectory(prefix="tiebench-quick-") as folder:
        checkout = Path(folder, "checkout")
        # With the compiled kernels that lie beside their source, as set-up leaves them.
        shutil.copytree(commands.ROOT, checkout, ignore=_not_copied)
        progress("quick: compiling missing kernels")
        commands.python(checkout, "workflow.compile")
        progress("quick: the quick table, about three minutes")
        spent = commands.python(checkout, "snakemake", "--cores", commands.CORES, TARGET)
        tables(report, trainings(checkout / "results"), spent.wall, spent.processor)


def _not_copied(folder, names):
    # Compare paths, not names: a package may contain a folder of the same name.
    return _NOT_COPIED.intersection(names) if Path(folder) == commands.ROOT else ()


def trainings(results):
    """Seconds of training below a finished folder `results`: method -> dict of `jobs`, `wall` (of their
    processes), `fit` and `encode` (of their runs)."""
    found = defaultdict(lambda: dict.fromkeys(("jobs", "wall", "fit", "encode"), 0))
    folder = results / "benchmarks" / "train_and_encode"
    for file in sorted(folder.rglob("*.tsv")):
        with file.open(newline="") as lines:
            (row,) = csv.DictReader(lines, delimiter="\t")
        method = found[file.relative_to(folder).parts[1]]
        method["jobs"] += 1
        method["wall"] += float(row["s"])
    for file in sorted((results / "runs").glob("*/*/*/*/run.json")):
        record = json.loads(file.read_text())
        for part, seconds in record["seconds_by_part"].items():
            found[record["method"]][part] += seconds
    return dict(found)


def tables(report, training, wall, processor):
    """Print what `trainings` found, beside the wall-clock and processor seconds of the whole run."""
    cores = commands.CORES
    report.write(
        f"## The quick table: snakemake --cores {cores} {TARGET}",
        f"In a fresh copy of the checkout with compiled kernels: {duration(wall)} of wall clock, "
        f"{duration(processor)} of processor time ({rounded(100 * processor / (cores * wall))} % of {cores} "
        "cores). Jobs overlap, so their seconds add up to core seconds.",
    )
    rows, fitting, starting = [], 0.0, 0.0
    for name, one in sorted(training.items(), key=lambda item: -item[1]["wall"]):
        rest = one["wall"] - one["fit"] - one["encode"]
        seconds = [f"{value:.1f}" for value in (one["wall"], one["fit"], one["encode"], rest)]
        rows.append([name, one["jobs"], *seconds])
        fitting, starting = fitting + one["fit"] + one["encode"], starting + rest
    report.rows(["training", "jobs", "wall s", "fit s", "encode s", "start, imports, files s"], rows)
    whole = cores * wall
    parts = {
        "training: fit and encode": fitting,
        "training: start, imports, files": starting,
        "scores and other stages, the engine, idle cores": whole - fitting - starting,
    }
    rows = [(name, f"{seconds:.1f}", f"{100 * seconds / whole:.0f} %") for name, seconds in parts.items()]
    report.rows([f"core seconds of {whole:.0f}", "s", "share"], rows)
    share = f"{rounded(100 * fitting / whole)} %"
    report.target(f"quick table, {cores} cores, kernels compiled", "under 180 s", duration(wall))
    report.target("quick table: share of core seconds spent fitting and encoding", "as near to 100 %", share)
