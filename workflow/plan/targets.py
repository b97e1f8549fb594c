"""Targets: which paths the rules can make, what each needs, and which sources are missing for them.

A target is a path relative to the working directory, as in `snakemake results/quick.csv`.
"""

import os
import re
from pathlib import Path

from reporting import figures
from tiebench.files import read_json
from tiebench.messages import did_you_mean, nearest
from workflow.configuration.hyperparameters import trained_as
from workflow.errors import ConfigurationError
from workflow.plan.pages import PagePlan
from workflow.plan.runs import (
    DATASET_FILES,
    FIGURE_ENDINGS,
    NAME,
    SCORED,
    SPLIT_FILES,
    TABLE_ENDINGS,
    TRAINED,
    one_of,
)


def _results(plan):
    """Patterns of what can be made in results/."""
    table, figure = one_of(TABLE_ENDINGS), one_of(FIGURE_ENDINGS)
    drawings = one_of([*figures.names(), "gallery"])
    protocol = f"(?P<protocol>{one_of(plan['protocols'])})"
    return [
        rf"(?P<table>{NAME})(?:{table})",
        rf"(?P<page>{NAME})\.html",
        rf"figures/(?P<paper>tie_ranges)(?:{figure})",
        rf"figures/(?P<figure>{drawings})_(?P<table>{NAME})(?:{figure})",
        rf"runs/{protocol}/(?P<method>{NAME})/(?P<bits>\d+)/(?P<seed>\d+)/(?:parts/\d+|[a-z_]+)\.[a-z]+",
        rf"uncoded/{protocol.replace('<protocol>', '<features>')}\.json",
        rf"tuning/(?P<tuning>{NAME})\.(?:yaml|csv)",
        rf"tuning/(?P<tuning>{NAME})/{protocol}/(?P<method>{NAME})/(?P<bits>\d+)\.json",
    ]


def unknown_results(plan):
    """Pattern of paths below results/ that no rule makes: so that they are refused with the nearest."""
    known = "|".join(re.sub(r"\?P<\w+>", "?:", pattern) for pattern in _results(plan))
    return f"(?!(?:{known})$).+"


def refuse_unknown(plan, unknown):
    """Raise the ConfigurationError for a path below results/ that no rule makes."""
    parts = unknown.split("/")
    if parts[0] == "runs" and len(parts) > 1:
        plan.entry("protocols", parts[1])
    if parts[0] == "tuning" and len(parts) > 2:
        plan.entry("tuning", parts[1])
        plan.entry("protocols", parts[2])
    if parts[0] == "figures" and len(parts) == 2:
        stem = Path(parts[1]).stem
        if Path(parts[1]).suffix not in FIGURE_ENDINGS:
            raise ConfigurationError(
                f"results/{unknown}: figures are drawn as {', '.join(FIGURE_ENDINGS)} files only"
            )
        known = ["tie_ranges"]
        pages = PagePlan(plan)
        for table in plan["tables"]:
            known += [f"{name}_{table}" for name in pages.table_figures(table)]
            known += [f"gallery_{table}"] if pages.gallery_cells(table) else []
        raise ConfigurationError(f"there is no figure {stem!r}{did_you_mean(stem, nearest(stem, known))}")
    known = [f"{table}{ending}" for table in plan["tables"] for ending in (*TABLE_ENDINGS, ".html")]
    known.append("report.html")
    near = nearest(unknown, known) or sorted(plan["tables"])
    raise ConfigurationError(f"no rule makes results/{unknown}{did_you_mean(unknown, near)}")


def needs(plan, target):
    """What a target asks for: a set of ("run", protocol, method, bits, seed), ("dataset", name) and
    ("features", dataset, network). Raises ConfigurationError for an unknown name in its path."""
    path = os.path.normpath(target)
    if path.startswith("results/"):
        return _needs_of_result(plan, path.removeprefix("results/"))
    if match := re.fullmatch(rf"resources/datasets/({NAME})/.*", path):
        plan.entry("datasets", match[1])
        return {("dataset", match[1])}
    if match := re.fullmatch(rf"resources/features/({NAME})/({NAME})\.npy", path):
        return {("features", match[1], match[2])}
    if match := re.fullmatch(rf"resources/protocols/({NAME})/(.*)", path):
        dataset, network = plan.entry("protocols", match[1])["dataset"], plan.protocol_network(match[1])
        of_split = match[2] in SPLIT_FILES or network is None
        return {("dataset", dataset)} | (set() if of_split else {("features", dataset, network)})
    return set()


def _needs_of_result(plan, path):
    found = next(filter(None, (re.fullmatch(pattern, path) for pattern in _results(plan))), None)
    if found is None:
        return set()  # its rule refuses it
    names = found.groupdict()
    if "tuning" in names:
        tuning = plan.entry("tuning", names["tuning"])
        # A search needs what an untrained run needs; seed -1 names none.
        return {
            ("run", protocol, method, tuning["bits"][0], -1)
            for protocol in plan.configuration.members(tuning["protocol"])
            for method in tuning["methods"]
        }
    if "seed" in names:
        return {("run", names["protocol"], names["method"], int(names["bits"]), int(names["seed"]))}
    if "features" in names:
        made = _exist("results", [path])
        return set() if made else needs(plan, f"resources/protocols/{names['features']}/features.npy")
    tables = PagePlan(plan).page_tables(names["page"]) if "page" in names else [names.get("table", "figure4")]
    asked = {("run", *run) for table in tables for run in plan.runs(table)}
    return asked.union(*(needs(plan, file) for table in tables for file in plan.uncoded_files(table)))


def missing_sources(plan, targets):
    """The one line that says which sources are missing for these targets, or None.

    What exists is not made again, and needs no source: neither runs nor datasets nor features.
    """
    missing = plan.sources.missing()
    if not missing:
        return None
    needed = _owners(plan, set().union(*(needs(plan, target) for target in targets)), missing)
    found = [(path, *missing[path, *owner]) for path, *owner in sorted(missing) if tuple(owner) in needed]
    if len(found) < 2:
        return found[0][1] if found else None
    lines = [line for _, line, _ in found]
    without = [name for _, _, names in found for name in names]
    if without:
        lines.append(f"without all of them: {plan.sources.how_to_skip(without)}")
    count = len({path for path, _, _ in found})
    title = f"{count} files are missing, sought by name in the folders of sources; nothing was run:"
    return "\n  ".join([title, *lines])


def _owners(plan, asked, missing):
    """("datasets" or "networks", name) of what has to be read to make what is asked for.

    asked: of `needs`; missing: of `Sources.missing`.
    """
    datasets = {name for kind, name, *_ in asked if kind == "dataset"}
    features, networks = {tuple(names) for kind, *names in asked if kind == "features"}, set()
    # Runs on other data than the configuration names now: its rules would be up to date for want of a source.
    replaced = {owner for _, kind, owner in missing if kind == "datasets" and _is_made(plan, owner) is False}
    for protocol, method, bits, seed in (run for kind, *run in asked if kind == "run"):
        folder = f"results/runs/{protocol}/{method}/{bits}/{seed}"
        trained, scored = _exist(folder, TRAINED), _exist(folder, SCORED)
        if trained and scored:
            if plan["protocols"][protocol]["dataset"] in replaced:
                datasets.add(plan["protocols"][protocol]["dataset"])
            continue
        if not trained and plan["protocols"][protocol]["codes_of"]:
            protocol, bits = trained_as(plan.configuration, protocol, bits)
            trained = _exist(f"results/runs/{protocol}/{method}/{bits}/{seed}", TRAINED)
        datasets.add(dataset := plan["protocols"][protocol]["dataset"])
        if method in plan.configuration.external_methods() and not plan.score_files(protocol):
            continue  # neither features nor weights
        made = trained or _exist(f"resources/protocols/{protocol}", ["features.npy"])
        if not trained and (network := plan.end_to_end(protocol, method)):
            networks.add(network)
        elif not made and (network := plan.protocol_network(protocol)):
            features.add((dataset, network))
    for dataset, network in features:
        if not _exist(f"resources/features/{dataset}", [f"{network}.npy"]):
            datasets.add(dataset)
            networks.add(network)
    of_datasets = {("datasets", name) for name in datasets if _is_made(plan, name) is not True}
    return of_datasets | {("networks", name) for name in networks}


def _is_made(plan, dataset):
    """Whether a dataset has been made with the settings that it has now; None if it was not made."""
    folder = Path("resources/datasets", dataset)
    if not _exist(folder, DATASET_FILES):
        return None
    try:
        made_from = read_json(folder / "dataset.json").get("made_from", plan.dataset_settings(dataset))
    except (ValueError, AttributeError):  # damaged
        return None
    return made_from == plan.dataset_settings(dataset)


def _exist(folder, names):
    return all(os.path.exists(f"{folder}/{name}") for name in names)  # noqa: PTH110 - thousands of runs
