# Configuration, checks before anything runs, and the functions that rules take their inputs from.

import fcntl
import json
import os
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(workflow.basedir)
sys.path.insert(0, str(ROOT))

from datasets import affinity_kinds, split_kinds
from networks import architecture
from workflow.configuration import Cell, load
from tiebench.messages import did_you_mean
from workflow.errors import ConfigurationError
from workflow.yaml_reader import read_settings
from workflow.code_dependencies import code_files, use_this_python

use_this_python(ROOT)


def refuse(message):
    """End with one line: Snakemake would wrap it in its own places and traces."""
    sys.exit(f"error: {message}")


def or_exit(function, *arguments):
    """Call a function of the configuration; its mistakes end the run with their one line."""
    try:
        return function(*arguments)
    except ConfigurationError as error:
        refuse(error)


# Snakemake has read these already, but takes the last of two equal keys without a word.
for file in workflow.overwrite_configfiles:
    or_exit(read_settings, Path(file))
CONFIGURATION = or_exit(load, ROOT, config)
# Any name but a known one: so that a run of a misspelt protocol is told with the nearest.
UNKNOWN_PROTOCOL = "(?!(?:{})/)[a-z0-9_]+".format("|".join(CONFIGURATION["protocols"]))


wildcard_constraints:
    dataset=r"[a-z0-9_]+",
    protocol=r"[a-z0-9_]+",
    method=r"[a-z0-9_]+",
    bits=r"\d+",
    seed=r"\d+",
    table=r"[a-z0-9_]+",
    page=r"[a-z0-9_]+",
    tuning=r"[a-z0-9_]+",
    network=r"[a-z0-9_]+",


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
        refuse(f"there is no {name!r} in {section}{did_you_mean(name, sorted(known))}")
    return known[name]


def code(*modules):
    """Source files that decide a stage's numbers, as inputs of its rule."""
    # Relative, so that a checkout that moves keeps its results.
    return [os.path.relpath(ROOT / file) for file in code_files(ROOT, *modules)]


# Modules that draw a figure of a table.
FIGURES = sorted(p.stem for p in (ROOT / "reporting/figures").glob("[a-z]*.py"))


PAGE_PARTS = sorted(
    [*(ROOT / "reporting").glob("assets/*"), ROOT / "reporting/page.html.j2"]
)


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


def one_of(names):
    """Pattern of a wildcard that is one of these names, if any."""
    return "|".join(map(re.escape, names)) or "(?!)"


# Protocols whose databases are counted in parts.
IN_PARTS = [name for name, settings in CONFIGURATION["protocols"].items() if settings["database_parts"] > 1]


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


def run_jobs(in_parts=True):
    """Each group of runs that one process serves, and the job of any run outside of all groups.

    in_parts: also of protocols whose database is counted in parts.
    """
    protocols = [name for name in CONFIGURATION["protocols"] if in_parts or name not in IN_PARTS]
    any_protocol, any_method = "|".join(protocols), r"[a-z0-9_]+"
    jobs, grouped, counts = [], [], Counter()
    for group in CONFIGURATION.groups():
        if group.protocol not in protocols:
            continue
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
        if wildcards.method not in CONFIGURATION.methods_known():
            return 0
        if CONFIGURATION.metadata(wildcards.method).supervision == "none":
            return 0
        return sum(int(run.format(**wildcards).split("/")[0]) for run in runs)

    return priority


def asked(key, stage):
    """A resource of a stage's jobs, "memory_mb" or "minutes": each try asks for twice what the last one did."""
    return lambda wildcards, attempt: CONFIGURATION[key][stage] * 2 ** (attempt - 1)


def gpus(wildcards):
    """GPUs of a job: one for a method that uses a device, so that the others run beside it."""
    if CONFIGURATION["device"] == "cpu" or wildcards.method not in CONFIGURATION.methods_known():
        return 0
    return int("device" in CONFIGURATION.metadata(wildcards.method).parameters)


def method_folder(wildcards):
    return f"results/runs/{wildcards.protocol}/{wildcards.method}"


# Sources that nobody has yet, as they are while the rules are read.
TO_DOWNLOAD, MISSING = CONFIGURATION.sources.to_download(), CONFIGURATION.sources.missing()
if hint := CONFIGURATION.sources.absent_folders():
    print(f"warning: {hint}", file=sys.stderr)
NEEDED = {}  # of MISSING, what an input function has asked for: path -> {(section, name), …}


def source_path(section, name, source):
    """Where a source is or will be; one that is missing is noted, to be told together with all others."""
    place = CONFIGURATION.sources.locate(source)
    if place.state == "missing":
        NEEDED.setdefault(place.path, set()).add((section, name))
    return place.path


def refuse_missing(wildcards):
    """Priority of what nobody can make: the first place where all jobs that will have to run are known."""
    needed = [job for job in workflow.dag.needrun_jobs() if job.rule.name == "refuse_missing_source"]
    paths = sorted({file for job in needed for file in job.output})
    found = [MISSING[path, *owner] for path in paths for owner in sorted(NEEDED.get(path, ()))]
    if len(found) == 1:
        refuse(found[0][0])
    lines = [line for line, _ in found]
    without = [name for _, names in found for name in names]
    if without:
        lines.append(f"without all of them: {CONFIGURATION.sources.how_to_skip(without)}")
    refuse(
        "\n  ".join(
            [
                f"{len(paths)} files are missing, sought by name in the folders of sources; nothing was run:",
                *lines,
            ]
        )
    )


def dataset_sources(wildcards):
    sources = entry("datasets", wildcards.dataset)["sources"]
    return [source_path("datasets", wildcards.dataset, source) for source in sources]


def dataset_settings(wildcards):
    """What makes a dataset: of its sources, not where they are fetched from."""
    settings = entry("datasets", wildcards.dataset)
    recorded = [pick(source, "file", "sha256", "md5", "bytes") for source in settings["sources"]]
    return as_json(pick(settings, "loader", "options") | {"sources": recorded})


def download_settings(wildcards, output):
    """A file and its mirrors.

    With the output, which keeps them out of what Snakemake compares with earlier jobs: what was made of a file
    that is no longer there stays good if a mirror has moved.
    """
    return as_json(TO_DOWNLOAD[wildcards.file])


def pick(settings, *keys):
    return {key: settings[key] for key in keys if key in settings}


def checked_dataset_card(wildcards):
    """The dataset's card; a split that is impossible on it is told here, before anything runs."""
    if CONFIGURATION.sources.has_dataset(entry("protocols", wildcards.protocol)["dataset"]):
        or_exit(CONFIGURATION.check_split, wildcards.protocol)
    return f"{dataset_folder(wildcards)}/dataset.json"


def split_settings(wildcards):
    settings = entry("protocols", wildcards.protocol)
    return as_json({key: settings[key] for key in ("split", "seed")})


def network_weights(wildcards):
    """The file of a network's pretrained weights, in a list that is empty where it has none."""
    weights = entry("networks", wildcards.network)["weights"]
    return [] if weights is None else [source_path("networks", wildcards.network, weights)]


def network_check(wildcards):
    """What says that these weights are the recorded ones, in a list that is empty where there are none."""
    return [f"resources/networks/{wildcards.network}.json"] if network_weights(wildcards) else []


def weights_settings(wildcards):
    recorded = entry("networks", wildcards.network)["weights"] or {}
    return as_json(pick(recorded, "file", "sha256", "md5", "bytes"))


def network_modules(network):
    """Modules that decide what a network computes."""
    found, _ = architecture(entry("networks", network)["architecture"])
    return [found.module, "networks.catalogue"]


def network_code(wildcards):
    return code("networks.features", *network_modules(wildcards.network))


def network_settings(wildcards):
    """What makes features of images: a network of the configuration."""
    settings = entry("networks", wildcards.network)
    chosen = {key: settings[key] for key in ("architecture", "options", "batch_size")}
    return as_json(chosen | {"device": CONFIGURATION["device"]})


def protocol_items(wildcards):
    """What a protocol's input is made of: the dataset's items, or what a network makes of them."""
    settings = entry("protocols", wildcards.protocol)
    network = settings["input"].get("network")
    if network is None:
        return f"{dataset_folder(wildcards)}/items.npy"
    return f"resources/features/{settings['dataset']}/{network}.npy"


def feature_settings(wildcards):
    given = dict(entry("protocols", wildcards.protocol)["input"])
    given.pop("network", None)
    given["kind"] = "pixels" if given["kind"] == "pixels" else "features"
    return as_json({"input": given})


def split_module(wildcards):
    """The module of a protocol's kind of split."""
    return split_kinds()[entry("protocols", wildcards.protocol)["split"]["kind"]].check.__module__


def affinity_kind(wildcards):
    """The class of a protocol's kind of affinity."""
    return affinity_kinds()[entry("protocols", wildcards.protocol)["affinity"]["kind"]]


def affinity_module(wildcards):
    return affinity_kind(wildcards).__module__


def affinity_features(wildcards):
    """Features, where the affinity is made of them: an empty list else."""
    has = affinity_kind(wildcards).from_features
    return f"resources/protocols/{wildcards.protocol}/features.npy" if has else []


def affinity_settings(wildcards):
    return as_json({"affinity": entry("protocols", wildcards.protocol)["affinity"]})


def trained_network(wildcards):
    """The network that a run trains end to end, or None."""
    if wildcards.method not in CONFIGURATION.methods_known():
        return None
    entry("protocols", wildcards.protocol)
    return CONFIGURATION.end_to_end(Cell(wildcards.protocol, wildcards.method, 0))


def run_items(wildcards):
    """What a run learns from and encodes: features, or the images where a network is trained."""
    if trained_network(wildcards) is None:
        return f"resources/protocols/{wildcards.protocol}/features.npy"
    return f"{dataset_folder(wildcards)}/items.npy"


def of_trained(function):
    """An input function of networks, for the network that a run trains: an empty list where it trains none."""

    def of_run(wildcards):
        network = trained_network(wildcards)
        return [] if network is None else function(SimpleNamespace(network=network))

    return of_run


def run_network(wildcards):
    """For a run's settings: the network it trains, or None."""
    network = trained_network(wildcards)
    if network is None:
        return None
    return {key: CONFIGURATION["networks"][network][key] for key in ("architecture", "options")}


def method_code(wildcards):
    """The method's own file and what it imports: editing one method reruns its runs and its variants', no others."""
    network = trained_network(wildcards)
    modules = [] if network is None else network_modules(network)
    return code(f"methods.{or_exit(CONFIGURATION.class_of, wildcards.method)}", *modules)


def run_settings(together):
    """Input function: the class, the affinity, and the hyper-parameters for each code length of a job.

    For lengths that nobody asks for too: a job whose group becomes smaller has the settings that it had.
    """

    def settings(wildcards):
        affinity = entry("protocols", wildcards.protocol)["affinity"]
        lengths = together or CONFIGURATION.together(wildcards.protocol, int(wildcards.bits))
        chosen = {
            bits: CONFIGURATION.hyperparameters(Cell(wildcards.protocol, wildcards.method, bits))
            for bits in lengths
        }
        network = run_network(wildcards)
        of_class = CONFIGURATION.class_of(wildcards.method)
        return as_json(
            {"class": of_class, "affinity": affinity, "hyperparameters": chosen, "network": network}
        )

    return settings


def table_settings(wildcards):
    """A table's entry, the published figures and claims it names, and the cells that no method can serve."""
    table = dict(entry("tables", wildcards.table), name=wildcards.table)
    table["blocks"] = [
        {"title": entry("protocols", block["protocol"]).get("title", block["protocol"])} | block
        for block in table["blocks"]
    ]
    table["families"] = {method: CONFIGURATION.metadata(method).family for method in table["methods"]}
    published = [CONFIGURATION["published"][source] for source in table["published"]]
    refused = [
        {"protocol": cell.protocol, "method": cell.method, "bits": cell.bits, "reason": reason}
        for cell in CONFIGURATION.cells(wildcards.table)
        if (reason := CONFIGURATION.refusal(cell))
    ]
    claims = [CONFIGURATION["claims"][source] for source in table["claims"]]
    return {"table": table, "published": published, "refused": refused, "claims": claims}


def gallery_cells(table):
    """(protocol, method, bits) of a gallery: the fewest bits, where the items of a protocol are pictures.

    One protocol of each dataset: the pictures of the others would be the same.
    """
    cells = [cell for cell in CONFIGURATION.cells(table) if CONFIGURATION.refusal(cell) is None]
    first, fewest = {}, {}
    for cell in cells:
        if CONFIGURATION.has_pictures(cell.protocol):
            dataset = entry("protocols", cell.protocol)["dataset"]
            if first.setdefault(dataset, cell.protocol) == cell.protocol:
                fewest[cell.protocol] = min(cell.bits, fewest.get(cell.protocol, cell.bits))
    return [
        (cell.protocol, cell.method, cell.bits) for cell in cells if fewest.get(cell.protocol) == cell.bits
    ]


def gallery_inputs(wildcards):
    """Codes of the gallery's runs, and the items, split and affinity of their protocols."""
    seed = entry("tables", wildcards.table)["seeds"][0]
    files = []
    for protocol, method, bits in gallery_cells(wildcards.table):
        files.append(f"results/runs/{protocol}/{method}/{bits}/{seed}/codes.npz")
        cell = SimpleNamespace(protocol=protocol)
        files += [f"{dataset_folder(cell)}/{name}" for name in ("items.npy", "labels.npy")]
        files += [f"resources/protocols/{protocol}/{name}" for name in ("split.npz", "affinity.json")]
        distances = affinity_features(cell)
        files += [distances] if distances else []
    return list(dict.fromkeys(files))


def gallery_settings(wildcards):
    table = entry("tables", wildcards.table)
    cells = gallery_cells(wildcards.table)
    names = list(dict.fromkeys(protocol for protocol, _, _ in cells))
    of_protocol = {name: entry("protocols", name) for name in names}
    return as_json(
        {
            "cells": cells,
            "seed": table["seeds"][0],
            "queries": 3 if len(names) == 1 else 2,
            "datasets": {
                name: f"resources/datasets/{settings['dataset']}" for name, settings in of_protocol.items()
            },
            "protocols": {
                name: {
                    "affinity": settings["affinity"],
                    "picture": entry("datasets", settings["dataset"]).get("picture"),
                }
                for name, settings in of_protocol.items()
            },
        }
    )


def table_gallery(wildcards):
    """The gallery of a table, in a list that is empty where it has none."""
    has = table_cells(wildcards) and gallery_cells(wildcards.table)
    return [f"results/galleries/{wildcards.table}.npz"] if has else []


def page_tables(wildcards):
    """Tables on a page: those of the report, or the one that the page is named for."""
    return CONFIGURATION["report"] if wildcards.page == "report" else [wildcards.page]


def of_tables(function):
    """An input function of pages: what a function of tables gives for each of them."""

    def of_page(wildcards, *arguments):
        found = [function(SimpleNamespace(table=table), *arguments) for table in page_tables(wildcards)]
        return list(dict.fromkeys(file for files in found for file in files))

    return of_page


page_files, page_galleries = of_tables(table_runs), of_tables(table_gallery)


def page_settings(wildcards):
    tables = []
    for name in page_tables(wildcards):
        table = SimpleNamespace(table=name)
        gallery = table_gallery(table)
        tables.append(table_settings(table) | {"gallery": gallery[0] if gallery else None})
    words = ["snakemake --cores all"]
    if workflow.overwrite_configfiles:
        words.append(f"--configfile {' '.join(map(str, workflow.overwrite_configfiles))}")
    if wildcards.page == "report" and "report" in CONFIGURATION.overrides:
        words.append(f"--config report='[{', '.join(CONFIGURATION['report'])}]'")
    words += ["--"] * (len(words) > 1) + [f"results/{wildcards.page}.html"]
    return as_json({"tables": tables, "command": " ".join(words)})


def database_parts(wildcards):
    return entry("protocols", wildcards.protocol)["database_parts"]


def score_settings(wildcards):
    settings = entry("protocols", wildcards.protocol)
    return as_json({key: settings[key] for key in ("affinity", "at", "ap_at_normaliser")})


def tuning_file(name):
    """Input function: a file of the protocol that a tuning is for."""
    return lambda wildcards: f"resources/protocols/{entry('tuning', wildcards.tuning)['protocol']}/{name}"


def tuned(function):
    """An input function of runs, for the protocol and method that are tuned."""
    return lambda wildcards: function(
        SimpleNamespace(protocol=entry("tuning", wildcards.tuning)["protocol"], method=wildcards.method)
    )


def tuning_dataset(wildcards):
    protocol = entry("tuning", wildcards.tuning)["protocol"]
    return f"resources/datasets/{entry('protocols', protocol)['dataset']}"


def tuning_settings(wildcards):
    """The tuning's entry, and the hyper-parameters that its trials change."""
    tuning = entry("tuning", wildcards.tuning)
    cell = Cell(tuning["protocol"], wildcards.method, int(wildcards.bits))
    return as_json(
        {
            "class": CONFIGURATION.class_of(wildcards.method),
            "tuning": {key: tuning[key] for key in ("metric", "trials", "seed", "shares", "space")},
            "affinity": entry("protocols", tuning["protocol"])["affinity"],
            "hyperparameters": CONFIGURATION.hyperparameters(cell),
            "network": tuned(run_network)(wildcards),
        }
    )


def tuning_choices(wildcards):
    tuning = entry("tuning", wildcards.tuning)
    return [
        f"results/tuning/{wildcards.tuning}/{method}/{bits}.json"
        for method in tuning["methods"]
        for bits in tuning["bits"]
    ]
