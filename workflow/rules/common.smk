# Configuration, checks before anything runs, and the functions that rules take their inputs from.

import fcntl
import json
import os
import sys
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


def seed_groups():
    """(protocol pattern, seeds) of each group of runs that one process serves.

    Seeds k n .. k n + n - 1 go together, n being the protocol's seeds_per_job: asking for more seeds later
    leaves finished groups alone.
    """
    groups = {}
    for protocol, settings in CONFIGURATION["protocols"].items():
        for seed in CONFIGURATION.seeds():
            size = settings["seeds_per_job"]
            groups.setdefault((size, seed // size), []).append((protocol, seed))
    return [
        ("|".join(sorted({p for p, _ in members})), sorted({s for _, s in members}))
        for _, members in sorted(groups.items())
    ]


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


def run_settings(wildcards):
    cell = Cell(wildcards.protocol, wildcards.method, int(wildcards.bits))
    affinity = entry("protocols", wildcards.protocol)["affinity"]
    return as_json({"affinity": affinity, "hyperparameters": CONFIGURATION.hyperparameters(cell)})


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
