"""The plan of a large table, `snakemake -n`, compared with a bare Snakefile of as many jobs, and once more
when all is done."""

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.quick import NOT_PASSED_ON, ROOT
from benchmarks.report import duration, figure, progress
from benchmarks.timing import Failed

# Unsupervised or not, slow or not: nothing is trained.
METHODS = (
    "agh", "bre", "csq", "dpsh", "dtsh", "fasthash", "fsdh", "greedyhash", "hashnet", "itq", "ksh", "lsh",
    "machash", "mihash", "orthohash", "pcah", "sdh", "sgh", "sh", "sign", "sph", "structhash", "talr_ap",
    "talr_ndcg",
)  # fmt: skip
BITS = (8, 12, 16, 24, 32, 40, 48, 56, 60, 64)
SEEDS = 10
PROTOCOLS = 4
RUN_FILES = ("codes.npz", "model.npz", "training.jsonl", "run.json", "scores.json", "per_query.npz")
TABLE_ENDINGS = (".csv", ".tidy.csv", ".statistics.csv", ".claims.csv", ".health.csv", ".md", ".tex", ".json")
# Snakemake, and its largest memory on the last line: ru_maxrss begins with that of the process before it.
MEASURED = f"""
import runpy, sys
sys.path.append({str(ROOT)!r})
from benchmarks.probe import peak_bytes
try:
    runpy.run_module("snakemake", run_name="__main__", alter_sys=True)
finally:
    sys.stderr.flush()
    print(peak_bytes(), flush=True)
"""
# Bare rules with the files of a run, and a table made of all of them.
BARE = """
RUN = "runs/{{protocol}}/{{method}}/{{bits}}/{{seed}}/{{file}}"
GIVEN = dict(protocol=range({protocols}), method={methods}, bits={bits}, seed=range({seeds}))
TRAINED = expand(RUN, file=["codes.npz", "model.npz", "training.jsonl", "run.json"], allow_missing=True)
SCORED = expand(RUN, file=["scores.json", "per_query.npz"], allow_missing=True)
rule table:
    input: expand(RUN, file=["run.json", "scores.json", "per_query.npz"], **GIVEN)
    output: "table.csv"
    shell: "touch {{output}}"
rule train:
    input: "data.npz"
    output: TRAINED
    shell: "touch {{output}}"
rule score:
    input: TRAINED[0], TRAINED[3], "data.npz"
    output: SCORED
    shell: "touch {{output}}"
"""


def run(report, quick):
    """Print a table of plans. Returns the summary: rows (figure, reach, seen)."""
    methods, bits = (METHODS[:6], BITS[:4]) if quick else (METHODS, BITS)
    runs = len(methods) * len(bits) * SEEDS * PROTOCOLS
    found = {}
    with tempfile.TemporaryDirectory(prefix="tiebench-plans-") as folder:
        for name, per_job in (
            ("each run a job", {}),
            ("10 seeds a job", {"seeds": SEEDS}),
            ("10 seeds and all code lengths a job", {"seeds": SEEDS, "bits": list(bits)}),
        ):
            progress(f"plans: {runs:,} runs, {name}")
            place = Path(folder, str(len(found)))
            place.mkdir()
            file = place / "large.json"  # which is YAML too
            file.write_text(json.dumps(configuration(methods, bits, per_job)))
            # fmt: off
            options = ["--snakefile", ROOT / "Snakefile", "--configfile", file, "--", "results/large.csv"]
            found[name] = plan(place, *options)
            # fmt: on
            if per_job == {"seeds": SEEDS}:
                progress(f"plans: {runs:,} runs, all done")
                finish(place, options, methods, bits)
                found[f"{name}, all done"] = plan(place, *options)
        progress("plans: a bare Snakefile")
        place = Path(folder, "bare")
        place.mkdir()
        (place / "data.npz").touch()
        bare = BARE.format(protocols=PROTOCOLS, methods=list(methods), bits=list(bits), seeds=SEEDS)
        (place / "Snakefile").write_text(bare)
        found["bare Snakefile, each run a job"] = plan(place, "--nolock")
    return tables(report, found, runs)


def configuration(methods, bits, per_job):
    """A table of the digits under PROTOCOLS splits, that differ in their seed."""
    protocols = {
        f"digits_{seed}": {
            "title": f"Digits, split {seed}",
            "dataset": "digits",
            "split": {"kind": "per_class", "query": 10, "training": 50},
            "seed": seed,
            "affinity": {"kind": "class"},
            "runs_per_job": per_job,
        }
        for seed in range(PROTOCOLS)
    }
    blocks = [{"protocol": name, "metric": "ap", "bits": list(bits)} for name in protocols]
    table = {"title": "Large", "seeds": list(range(SEEDS)), "methods": list(methods), "blocks": blocks}
    # Its bounds would be further rows.
    return {"protocols": protocols, "tables": {"large": table | {"supervised_bounds": False}}}


def finish(folder, options, methods, bits):
    """Leave the table as a finished run does: with all files, and Snakemake's notes on them. Splits and
    features are real; files of runs are empty, as `--touch` does not look into them."""
    snakemake(folder, "--until", "normalise_features", *options)
    for protocol, method, length, seed in itertools.product(range(PROTOCOLS), methods, bits, range(SEEDS)):
        run = Path(folder, "results", "runs", f"digits_{protocol}", method, str(length), str(seed))
        run.mkdir(parents=True)
        for name in RUN_FILES:
            (run / name).touch()
    for ending in TABLE_ENDINGS:
        Path(folder, "results", f"large{ending}").touch()
    snakemake(folder, "--touch", *options)


def snakemake(folder, *options):
    """Seconds, processor seconds and megabytes at most of Snakemake in a folder, and what it printed."""
    arguments = ["--cores", "2", "--directory", folder, *options]
    environment = {key: value for key, value in os.environ.items() if key not in NOT_PASSED_ON}
    with tempfile.TemporaryFile() as output:
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-c", MEASURED, *map(str, arguments)],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text, _, peak = output.read().decode().strip().rpartition("\n")
    if process.returncode:
        last = " / ".join(text.splitlines()[-5:])
        raise Failed(f"snakemake {' '.join(map(str, arguments))}: {last}")
    return wall, usage.ru_utime + usage.ru_stime, int(peak) / 1e6, text


def plan(folder, *options):
    """Seconds, processor seconds, megabytes at most, and jobs of a dry run in a folder."""
    *spent, text = snakemake(folder, "-n", "-q", "all", *options)
    jobs = next((int(line.split()[1]) for line in text.splitlines() if line.split()[:1] == ["total"]), 0)
    return *spent, jobs


def tables(report, found, runs):
    """Print what `plan` returned, by name."""
    report.write(
        f"## The plan of a table of {runs:,} runs: snakemake -n",
        f"{PROTOCOLS} protocols, {SEEDS} seeds, nothing made yet but where all is done; one dry run each. "
        "The bare Snakefile has two rules with the same output files, and no settings or messages.",
    )
    rows = [
        (
            name,
            f"{jobs:,}",
            duration(wall),
            duration(processor),
            f"{megabytes:,.0f} MB",
            f"{1e3 * wall / jobs:.1f}" if jobs else "–",
        )
        for name, (wall, processor, megabytes, jobs) in found.items()
    ]
    report.rows(["plan", "jobs", "wall clock", "processor", "memory", "ms a job"], rows)
    single, grouped, done, _, bare = found.values()
    return [
        (f"plan of {runs:,} runs, 10 seeds a job", "under 20 s", duration(grouped[0])),
        ("the same, all done", "under 20 s", duration(done[0])),
        (
            f"plan of {runs:,} runs, each a job: processor time over a bare Snakefile's",
            "at most 2",
            figure(single[1] / bare[1]),
        ),
    ]
