"""The plan of a large table, `snakemake -n`, compared with a bare Snakefile of as many jobs, and once more
when all is done."""

import itertools
import json
import tempfile
from pathlib import Path

from benchmarks import commands
from benchmarks.report import duration, progress
from workflow.plan.runs import SCORED, TABLE_ENDINGS, TRAINED

# Unsupervised or not, slow or not: nothing is trained.
METHODS = (
    "agh", "bre", "csq", "dpsh", "dtsh", "fasthash", "fsdh", "greedyhash", "hashnet", "itq", "ksh", "lsh",
    "machash", "mihash", "orthohash", "pcah", "sdh", "sgh", "sh", "sign", "sph", "structhash", "talr_ap",
    "talr_ndcg",
)  # fmt: skip
BITS = (8, 12, 16, 24, 32, 40, 48, 56, 60, 64)
SEEDS = 10
PROTOCOLS = 4
RUN_FILES = (*TRAINED, *SCORED)
DONE = "10 seeds a job"  # this one is planned once more when all is done
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
    """Print a table of plans."""
    methods, bits = (METHODS[:6], BITS[:4]) if quick else (METHODS, BITS)
    runs = len(methods) * len(bits) * SEEDS * PROTOCOLS
    progress(f"plans: {runs:,} runs")
    with tempfile.TemporaryDirectory(prefix="tiebench-plans-") as folder:
        tables(report, plans(Path(folder), methods, bits), runs)


def plans(folder, methods, bits):
    """Name -> (`commands.Spent`, jobs) of the dry runs of a table, and of a bare Snakefile."""
    found = {}
    for name, per_job in (
        ("each run a job", {}),
        (DONE, {"seeds": SEEDS}),
        ("10 seeds and all code lengths a job", {"seeds": SEEDS, "bits": list(bits)}),
    ):
        place = folder / str(len(found))
        place.mkdir()
        file = place / "large.json"  # which is YAML too
        file.write_text(json.dumps(configuration(methods, bits, per_job)))
        options = ["--snakefile", commands.ROOT / "Snakefile", "--configfile", file]
        options += ["--", "results/large.csv"]
        found[name] = plan(place, *options)
        if name == DONE:
            finish(place, options, methods, bits)
            found[f"{name}, all done"] = plan(place, *options)
    place = folder / "bare"
    place.mkdir()
    (place / "data.npz").touch()
    numbers = {"protocols": PROTOCOLS, "seeds": SEEDS, "methods": list(methods), "bits": list(bits)}
    (place / "Snakefile").write_text(BARE.format(**numbers))
    return found | {"bare Snakefile, each run a job": plan(place, "--nolock")}


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
    return commands.timed(folder, "snakemake", "--cores", commands.CORES, "--directory", folder, *options)


def plan(folder, *options):
    """`commands.Spent`, and the number of jobs, of a dry run in a folder."""
    spent = snakemake(folder, "-n", "-q", "all", *options)
    lines = map(str.split, spent.text.splitlines())
    return spent, next((int(words[1]) for words in lines if words[:1] == ["total"]), 0)


def tables(report, found, runs):
    """Print what `plans` returned."""
    report.write(
        f"## The plan of a table of {runs:,} runs: snakemake -n",
        f"{PROTOCOLS} protocols, {SEEDS} seeds, nothing made yet but where all is done; one dry run each. "
        "The bare Snakefile has two rules with the same output files, and no settings or messages.",
    )
    rows = [
        (
            name,
            f"{jobs:,}",
            duration(spent.wall),
            duration(spent.processor),
            f"{spent.megabytes:,.0f} MB",
            f"{1e3 * spent.wall / jobs:.1f}" if jobs else "–",
        )
        for name, (spent, jobs) in found.items()
    ]
    report.rows(["plan", "jobs", "wall clock", "processor", "memory", "ms a job"], rows)
    single, grouped, done, _, bare = (spent for spent, _ in found.values())
    report.wait(f"the plan of {runs:,} runs, ten seeds a job", duration(grouped.wall))
    report.target(f"plan of {runs:,} runs, 10 seeds a job", "under 20 s", duration(grouped.wall))
    report.target("the same, all done", "under 20 s", duration(done.wall))
    quantity = f"plan of {runs:,} runs, each a job: processor time over a bare Snakefile's"
    report.target(quantity, "at most 2", single.processor / bare.processor)
