# Configuration, checks before anything runs, and the functions that rules take their inputs from.

import fcntl
import json
import os
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(workflow.basedir)
sys.path.insert(0, str(ROOT))

from workflow.configuration import Cell, ConfigurationError, code_files, load, nearest, use_this_python

use_this_python(ROOT)


def refuse(message):
    """End with one line: Snakemake would wrap it in its own places and traces."""
    sys.exit(f"error: {message}")


def told(function, *arguments):
    """Call a function of the configuration; its mistakes end the run with their one line."""
    try:
        return function(*arguments)
    except ConfigurationError as error:
        refuse(error)


CONFIGURATION = told(load, ROOT, config)
# Any name but a known one: so that a run of a misspelt protocol is told with the nearest.
UNKNOWN_PROTOCOL = "(?!(?:{})/)[a-z0-9_]+".format("|".join(CONFIGURATION["protocols"]))


wildcard_constraints:
    dataset=r"[a-z0-9_]+",
    protocol=r"[a-z0-9_]+",
    method=r"[a-z0-9_]+",
    bits=r"\d+",
    seed=r"\d+",
    table=r"[a-z0-9_]+",
    tuning=r"[a-z0-9_]+",


onstart:
    # Held until this process ends, however it ends: what a lock of Snakemake's does not survive is a SIGKILL.
    global HELD
    Path(".snakemake").mkdir(exist_ok=True)
    HELD = open(".snakemake/tiebench.lock", "a")
    try:
        fcntl.flock(HELD, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        refuse(f"another snakemake is running in {Path.cwd()}: wait for it, or stop it")
    # With every job that ends, Snakemake's limit of jobs a second starts one more timer that looks at all waiting
    # jobs once a second: after a hundred jobs the engine takes a core. Only a cluster needs the limit.
    if workflow.local_exec:
        workflow.scheduler.job_rate_limiter = None


def entry(section, name):
    """An entry of the configuration; an unknown name is told with the nearest known one."""
    known = CONFIGURATION[section]
    if name not in known:
        refuse(f"there is no {name!r} in {section}{nearest(name, sorted(known))}")
    return known[name]


def code(*modules):
    """Source files that decide a stage's numbers, as inputs of its rule."""
    # Relative, so that a checkout that moves keeps its results.
    return [os.path.relpath(ROOT / file) for file in code_files(ROOT, *modules)]


def as_json(value):
    return json.dumps(value, sort_keys=True)


def dataset_folder(wildcards):
    return f"resources/datasets/{entry('protocols', wildcards.protocol)['dataset']}"


def table_cells(wildcards):
    """The cells of a table that can be served; the others get their reason in the table."""
    entry("tables", wildcards.table)
    return [cell for cell in CONFIGURATION.cells(wildcards.table) if CONFIGURATION.refusal(cell) is None]


def table_runs(wildcards, name):
    """One file of every run of a table."""
    cells = table_cells(wildcards)
    seeds = entry("tables", wildcards.table)["seeds"]
    return [
        f"results/runs/{cell.protocol}/{cell.method}/{cell.bits}/{seed}/{name}"
        for cell in cells
        for seed in seeds
    ]


@dataclass(frozen=True)
class RunJob:
    """A job that makes or scores runs: what tells its rule from the others of its stage."""

    name: str  # ending of the rule's name
    protocols: str  # pattern
    methods: str  # pattern
    runs: tuple[str, ...]  # <bits>/<seed> of each run
    together: tuple[int, ...] | None  # code lengths that belong together, where the rule names its own
    words: str  # its code lengths and seeds, for messages
    log: str


def run_jobs():
    """Each group of runs that one process serves, and the job of any run outside of all groups."""
    any_protocol, any_method = "|".join(CONFIGURATION["protocols"]), r"[a-z0-9_]+"
    jobs, grouped, counts = [], [], Counter()
    for group in CONFIGURATION.groups():
        counts[group.protocol] += 1
        methods = "|".join(group.methods)
        runs = tuple(f"{bits}/{seed}" for bits, seed in group.runs)
        lengths, seeds = (sorted(set(values)) for values in zip(*group.runs))
        grouped.append(f"{group.protocol}/(?:{methods})/(?:{'|'.join(runs)})/")
        jobs.append(
            RunJob(
                name=f"_{group.protocol}_{counts[group.protocol]}",
                protocols=group.protocol,
                methods=methods,
                runs=runs,
                together=group.bits,
                words=f"{', '.join(map(str, lengths))} bits, {counted('seed', seeds)}",
                log=f"{span(lengths)}/{span(seeds)}",
            )
        )
    outside = f"(?!{'|'.join(grouped)})" if grouped else ""
    alone = RunJob(
        name="",
        protocols=f"{outside}(?:{any_protocol})",
        methods=any_method,
        runs=("{bits}/{seed}",),
        together=None,
        words="{wildcards.bits} bits, seed {wildcards.seed}",
        log="{bits}/{seed}",
    )
    return [alone, *jobs]


def counted(noun, numbers):
    return f"{noun}{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def span(numbers):
    """First and last of ascending numbers, as 12-48."""
    return f"{numbers[0]}-{numbers[-1]}" if len(numbers) > 1 else str(numbers[0])


def runs_of_job(wildcards, output):
    """<bits>/<seed> of each run of a job.

    From the output, which keeps it out of what Snakemake compares with earlier jobs: a finished run is as good
    if its group has become smaller.
    """
    return list(dict.fromkeys("/".join(Path(file).parts[-3:-1]) for file in output))


def training_priority(runs):
    """Input function: all code lengths of a job together, where the method learns from affinities or labels.

    So that long jobs start first, and two cores end together.
    """

    def priority(wildcards):
        card = CONFIGURATION.cards.get(wildcards.method)
        if card is None or card.supervision == "none":
            return 0
        return sum(int(run.format(**wildcards).split("/")[0]) for run in runs)

    return priority


def method_folder(wildcards):
    return f"results/runs/{wildcards.protocol}/{wildcards.method}"


def dataset_sources(wildcards):
    entry("datasets", wildcards.dataset)
    return told(CONFIGURATION.sources, wildcards.dataset)


def dataset_settings(wildcards):
    settings = entry("datasets", wildcards.dataset)
    return as_json({key: settings[key] for key in ("loader", "sources", "options")})


def checked_dataset_card(wildcards):
    """The dataset's card; a split that is impossible on it is told here, before anything runs."""
    told(CONFIGURATION.check_split, wildcards.protocol)
    return f"{dataset_folder(wildcards)}/dataset.json"


def split_settings(wildcards):
    settings = entry("protocols", wildcards.protocol)
    return as_json({key: settings[key] for key in ("split", "seed")})


def feature_settings(wildcards):
    settings = entry("protocols", wildcards.protocol)
    return as_json({key: settings[key] for key in ("input", "affinity")})


def method_code(wildcards):
    """The method's own file and what it imports: editing one method reruns its runs, nothing else."""
    if wildcards.method not in CONFIGURATION.cards:
        known = sorted(CONFIGURATION.cards)
        refuse(f"there is no methods/{wildcards.method}.py{nearest(wildcards.method, known)}")
    return code(f"methods.{wildcards.method}")


def run_settings(together):
    """Input function: the affinity, and the hyper-parameters for each code length that belongs to a job.

    For lengths that nobody asks for too: a job whose group becomes smaller has the settings that it had.
    """

    def settings(wildcards):
        affinity = entry("protocols", wildcards.protocol)["affinity"]
        lengths = together or CONFIGURATION.together(wildcards.protocol, int(wildcards.bits))
        chosen = {
            bits: CONFIGURATION.hyperparameters(Cell(wildcards.protocol, wildcards.method, bits))
            for bits in lengths
        }
        return as_json({"affinity": affinity, "hyperparameters": chosen})

    return settings


def table_settings(wildcards):
    """A table's entry, the published figures it names, and the cells that no method can serve."""
    table = dict(entry("tables", wildcards.table), name=wildcards.table)
    table["blocks"] = [
        {"title": entry("protocols", block["protocol"]).get("title", block["protocol"])} | block
        for block in table["blocks"]
    ]
    published = [CONFIGURATION["published"][source] for source in table["published"]]
    refused = [
        {"protocol": cell.protocol, "method": cell.method, "bits": cell.bits, "reason": reason}
        for cell in CONFIGURATION.cells(wildcards.table)
        if (reason := CONFIGURATION.refusal(cell))
    ]
    return as_json({"table": table, "published": published, "refused": refused})


def table_figures(wildcards):
    """Figures that stand on a table's page."""
    blocks = entry("tables", wildcards.table)["blocks"]
    has_ranges = any(block["metric"] == "ap" for block in blocks)
    return [f"results/figures/tie_ranges_{wildcards.table}.svg"] if has_ranges else []


def score_settings(wildcards):
    settings = entry("protocols", wildcards.protocol)
    return as_json({key: settings[key] for key in ("affinity", "at", "ap_at_normaliser")})


def tuning_file(name):
    """Input function: a file of the protocol that a tuning is for."""
    return lambda wildcards: f"resources/protocols/{entry('tuning', wildcards.tuning)['protocol']}/{name}"


def tuning_dataset(wildcards):
    protocol = entry("tuning", wildcards.tuning)["protocol"]
    return f"resources/datasets/{entry('protocols', protocol)['dataset']}"


def tuning_settings(wildcards):
    """The tuning's entry, and the hyper-parameters that its trials change."""
    tuning = entry("tuning", wildcards.tuning)
    cell = Cell(tuning["protocol"], wildcards.method, int(wildcards.bits))
    return as_json(
        {
            "tuning": {key: tuning[key] for key in ("metric", "trials", "seed", "shares", "space")},
            "affinity": entry("protocols", tuning["protocol"])["affinity"],
            "hyperparameters": CONFIGURATION.hyperparameters(cell),
        }
    )


def tuning_choices(wildcards):
    tuning = entry("tuning", wildcards.tuning)
    return [
        f"results/tuning/{wildcards.tuning}/{method}/{bits}.json"
        for method in tuning["methods"]
        for bits in tuning["bits"]
    ]
