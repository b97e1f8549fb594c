"""Checks of a configuration that read no data: each mistake is one line that names file, key and remedy.

The schemas of workflow/schemas say what a key may hold. The functions below compare entries with each other,
with the files of methods/, datasets/ and networks/, and with the table of metrics.
"""

import os
import re
from pathlib import Path

from datasets import affinity, loaders, splits
from methods.base.catalogue import MARKERS
from networks import architecture, check_options
from reporting import figures
from reporting.tables.model import Table
from reporting.tables.titles import UNCODED
from tiebench import metrics
from tiebench.messages import did_you_mean, shorten
from workflow.configuration import hyperparameter_checks, leaderboard_rows, schema_validation
from workflow.configuration.bounds import add_bounds
from workflow.configuration.yaml_reader import read_settings

# What a protocol has to ask for so that these are scored.
_OPTION_OF = {"transfer_accuracy": "transfer", "estimated_bytes": "estimated"}

OF_FILES = ("datasets", "networks", "protocols", "methods", "tuned")  # config/<section>.yaml
OF_FOLDERS = ("tables", "published", "claims", "tuning")  # config/<section>/<name>.yaml
SECTIONS = (*OF_FILES, *OF_FOLDERS)


def check(configuration):
    """Raise ConfigurationError for the first mistake; fill in the defaults of the schemas."""
    _check_shape(configuration)
    configuration.sources.check(configuration.fail)
    _check_general(configuration)
    # Each section after those that it names: a mistake is reported where it was made.
    for section, check_entry in (
        ("datasets", _check_dataset),
        ("networks", _check_network),
        ("protocols", _check_kinds),  # of all, before one is compared with another
        ("protocols", _check_protocol),
        ("methods", _check_method),
        ("tuned", hyperparameter_checks.check_tuned),
        ("published", _check_published),
        ("claims", _check_claims),
        ("tables", _check_table),
        ("tuning", hyperparameter_checks.check_tuning),
    ):
        for name, entry in configuration[section].items():
            check_entry(configuration, name, entry)
        if check_entry is _check_protocol:
            configuration.add_folds()


def _check_shape(configuration):
    folder = configuration.root / "workflow" / "schemas"
    schemas = {path.stem: read_settings(path) for path in folder.glob("*.yaml")}
    general = schemas["config"]["properties"]
    for key in configuration.values:
        if key not in {*general, *SECTIONS}:
            configuration.fail((key,), f"unknown key{did_you_mean(key, sorted({*general, *SECTIONS}))}")
    given = {key: configuration[key] for key in general if key in configuration.values}
    _check_schema(configuration, (), given, schemas["config"])
    configuration.values |= given
    for section in SECTIONS:
        if not isinstance(configuration[section], dict):
            configuration.fail((section,), "must be a mapping from names to entries")
        for name, entry in configuration[section].items():
            where = (section, str(name))
            if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9_]+", name):
                configuration.fail(where, "a name must be text of a-z, 0-9 and _")
            _check_schema(configuration, where, entry, schemas[section])


def _check_schema(configuration, where, value, schema):
    if found := schema_validation.mistake(value, schema):
        keys, message = found
        configuration.fail((*where, *keys), message)
    schema_validation.fill_defaults(value, schema)


def _listed(value):
    return value if isinstance(value, list) else [value]


def _check_general(configuration):
    for name in configuration["report"]:
        configuration.check_known(("report",), name, configuration["tables"], "table")
    known = {**configuration["datasets"], **configuration["protocols"]}
    for name in configuration["skip"]:
        configuration.check_known(("skip",), name, known, "dataset or protocol")


def _check_dataset(configuration, name, entry):
    where, loader = ("datasets", name), entry["loader"]
    known = loaders.KIND.find()
    configuration.check_known((*where, "loader"), loader, known, "loader")
    allowed = known[loader].said.options
    for option in entry["options"]:
        if option not in allowed:
            message = f"loader {loader} has no such option{did_you_mean(option, allowed)}"
            configuration.fail((*where, "options", option), message)


def _check_network(configuration, name, entry):
    with configuration.failing("networks", name, "architecture"):
        architecture(entry["architecture"])
    with configuration.failing("networks", name, "options"):
        check_options(entry["architecture"], entry["options"])


def _check_protocol(configuration, name, entry):
    where = ("protocols", name)
    configuration.check_known((*where, "dataset"), entry["dataset"], configuration["datasets"], "dataset")
    named = {("input", "network"): entry["input"].get("network"), ("end_to_end",): entry["end_to_end"]}
    if entry["input"]["kind"] != "network" and "network" in entry["input"]:
        configuration.fail((*where, "input", "network"), "applies to kind 'network' only")
    for keys, network in named.items():
        if network is not None or (keys[0] == "input" and entry["input"]["kind"] == "network"):
            configuration.check_known((*where, *keys), network, configuration["networks"], "network")
    if entry["end_to_end"] is not None:
        found, _ = architecture(configuration["networks"][entry["end_to_end"]]["architecture"])
        if not found.said.trainable:
            message = f"network {entry['end_to_end']} cannot be trained: {found.name} has no weights"
            configuration.fail((*where, "end_to_end"), message)
    for key, what in (
        ("hyperparameters_of", "hyper-parameters"),
        ("codes_of", "codes"),
        ("published_of", "published scores"),
    ):
        _check_other(configuration, name, key, what)
    if entry["codes_of"] is not None:
        _check_codes_of(configuration, name, entry)
    elif entry["prefix_of"] is not None:
        message = "goes with codes_of: name the protocol whose runs have the whole codes"
        configuration.fail((*where, "prefix_of"), message)
    if entry["transfer"] and entry["database_parts"] > 1:
        message = "needs all codes in one process: set database_parts to 1"
        configuration.fail((*where, "transfer"), message)
    for key in ("asymmetric", "estimated", "rescore", "orders"):
        if entry[key] and entry["database_parts"] > 1:
            configuration.fail((*where, key), "cannot be scored from database_parts: leave one of them out")


def _check_kinds(configuration, name, entry):
    """Whether the split and the affinity of a protocol are of known kinds, and have what these take."""
    for key, check_spec in (("split", splits.folds), ("affinity", affinity.check_spec)):
        try:
            check_spec(entry[key])
        except (TypeError, ValueError) as error:  # of a kind that compares what it was given unchecked
            configuration.fail(("protocols", name, key), str(error).removeprefix(f"{key}: "))


def _check_other(configuration, name, key, what):
    """Whether the protocol that another takes something from exists and has it itself."""
    where, protocols = ("protocols", name, key), configuration["protocols"]
    other = protocols[name][key]
    if other is None:
        return
    configuration.check_known(where, other, protocols, "protocol")
    if other == name:
        configuration.fail(where, "names the protocol itself")
    further = protocols[other][key]
    if further is not None:
        configuration.fail(where, f"{other} takes its {what} from {further}; name that protocol")


def _check_codes_of(configuration, name, entry):
    """Whether another protocol's runs have what a protocol would train on. The job compares the splits."""
    where, other = ("protocols", name, "codes_of"), configuration["protocols"][entry["codes_of"]]
    if entry["hyperparameters_of"] is not None:
        configuration.fail(where, "has the hyper-parameters of these codes: leave hyperparameters_of out")
    for key in ("dataset", "input", "end_to_end", "seed"):
        if entry[key] != other[key]:
            message = f"{entry['codes_of']} has another {key}: its codes are not those of this protocol"
            configuration.fail(where, message)
    if entry["asymmetric"] and not other["asymmetric"]:
        configuration.fail(
            where, f"{entry['codes_of']} keeps no real-valued queries: make it asymmetric, too"
        )
    if entry["prefix_of"] is not None and entry["estimated"]:
        message = "distances are estimated from whole codes: leave estimated out"
        configuration.fail(("protocols", name, "prefix_of"), message)
    if entry["estimated"] and not other["estimated"]:
        configuration.fail(where, f"{entry['codes_of']} keeps no estimates: make it estimated, too")
    own, others = (splits.folds(one["split"]) for one in (entry, other))
    if own != others:
        configuration.fail(
            where, f"{entry['codes_of']} has {others or 'no'} folds, this protocol {own or 'none'}"
        )


def _check_method(configuration, name, entry):
    if name == UNCODED:
        configuration.fail(("methods", name), "this name is taken: it is the row of the features themselves")
    if "external" in entry:
        _check_external(configuration, name, entry)
    else:
        _check_class(configuration, name, entry.get("class"))
        if "sees" in entry:
            configuration.fail(("methods", name, "sees"), "goes with `external`: a method's file says it")
    if "marker" in entry and entry["marker"] not in MARKERS:
        configuration.check_known(("methods", name, "marker"), entry["marker"], MARKERS, "marker")
    places: list[tuple[tuple[str, ...], dict]] = [(("methods", name, "defaults"), entry["defaults"])]
    for protocol, change in entry["protocols"].items():
        where: tuple[str, ...] = ("methods", name, "protocols", protocol)
        configuration.check_known(where, protocol, configuration["protocols"], "protocol")
        hyperparameter_checks.check_trains(configuration, where, protocol)
        places.append((where, change))
    for where, settings in places:
        hyperparameter_checks.check_settings(configuration, where, name, settings)


def _check_external(configuration, name, entry):
    """That an entry of another program's codes has a name and a folder of its own, and nothing to set."""
    where = ("methods", name)
    if name in configuration.files:
        configuration.fail(where, f"methods/{name}.py is a method: give these codes another name")
    for key in ("class", "defaults", "protocols"):
        if entry.get(key):
            configuration.fail((*where, key), "does not go with `external`: the codes are made elsewhere")
    first = Path(os.path.normpath(entry["external"])).parts[:1]
    if first in (("results",), ("resources",)):
        message = (
            f"{shorten(repr(entry['external']))} is in {first[0]}/, which the workflow writes: choose another"
        )
        configuration.fail((*where, "external"), message)


def _check_class(configuration, name, stem):
    """That a method has a file, or a variant a class which has one."""
    files = configuration.files
    if stem is None:
        if name not in files:
            hint = did_you_mean(name, files)
            message = f"unknown method {name!r}{hint}; a variant of a method needs a `class`"
            configuration.fail(("methods", name), message)
        return
    where = ("methods", name, "class")
    if name in files:
        message = f"methods/{name}.py is a method of its own: give the variant of {stem} another name"
        configuration.fail(where, message)
    if stem not in files and "class" in configuration["methods"].get(stem, {}):
        known = configuration["methods"][stem]["class"]
        message = f"{stem} is itself a variant: name its class, {known}, and repeat its settings"
        configuration.fail(where, message)
    configuration.check_known(where, stem, files, "method")


def _check_source(configuration, section, name, entry):
    if entry["source"] != name:
        message = f"must be {name!r}, the file's name, not {entry['source']!r}"
        configuration.fail((section, name, "source"), message)


def _check_published(configuration, name, entry):
    """A value that names nothing known would be missing from every table without a word."""
    _check_source(configuration, "published", name, entry)
    methods = {*configuration.methods_known(), *entry["methods"]}
    seen = set()
    for index, value in enumerate(entry["values"]):
        where: tuple[str, ...] = ("published", name, f"values[{index}]")
        protocols = configuration["protocols"]
        configuration.check_known((*where, "protocol"), value["protocol"], protocols, "protocol")
        if value["method"] not in methods:
            hint = did_you_mean(value["method"], sorted(methods))
            remedy = "list a method that exists in the paper only under `methods`, with its title"
            configuration.fail((*where, "method"), f"unknown method {value['method']!r}{hint}; {remedy}")
        metric, _ = configuration.check_metric((*where, "metric"), value["metric"])
        if not metric.low <= value["value"] <= metric.high:
            percent = "; write percentages as fractions" if metric.high == 1 < value["value"] <= 100 else ""
            bounds = f"{metric.low:g} and {metric.high:g}"
            message = f"{value['metric']} is between {bounds}, not {value['value']}{percent}"
            configuration.fail((*where, "value"), message)
        cell = tuple(value[key] for key in ("protocol", "metric", "method", "bits"))
        if cell in seen:
            configuration.fail(where, "{}, {}, {} at {} bits is defined twice".format(*cell))
        seen.add(cell)
    used = {value["method"] for value in entry["values"]}
    for method in entry["methods"]:
        if method not in used:
            where = ("published", name, "methods", method)
            configuration.fail(where, f"no value is of this method{did_you_mean(method, sorted(used))}")


def _check_claims(configuration, name, entry):
    """A claim that names nothing known would never be judged."""
    _check_source(configuration, "claims", name, entry)
    methods = {value["method"] for paper in configuration["published"].values() for value in paper["values"]}
    methods |= set(configuration.methods_known())
    seen = set()
    for index, claim in enumerate(entry["claims"]):
        where = ("claims", name, f"claims[{index}]")
        if claim["id"] in seen:
            configuration.fail((*where, "id"), f"{claim['id']!r} is defined twice")
        seen.add(claim["id"])
        for keys, what, names in _names_in(claim):
            for one in names:
                if what == "metric":
                    metric, _ = configuration.check_metric((*where, *keys), one)
                    if claim["kind"].startswith("tie_ranges") and not metric.has_range:
                        configuration.fail((*where, *keys), f"{one} has no range: ties do not affect it")
                else:
                    known = methods if what == "method" else configuration["protocols"]
                    configuration.check_known((*where, *keys), one, known, what)


def _names_in(claim):
    """(keys, "method", "protocol" or "metric", names) of everything that a claim names."""
    for key in ("method", "methods", "others"):
        yield (key,), "method", _listed(claim.get(key, []))
    yield ("where", "methods"), "method", claim["where"].get("methods", [])
    yield ("stated_for",), "protocol", claim["stated_for"]
    yield ("metric",), "metric", _listed(claim.get("metric", []))
    for key in ("where", "left", "right"):
        for what in ("protocol", "metric", "method"):
            yield (key, what), what, _listed(claim.get(key, {}).get(what, []))


def _check_table(configuration, name, table):
    where = ("tables", name)
    if name == "report":
        configuration.fail(where, "is the name of the page of several tables: choose another")
    # `fewer_seeds` may name methods that the table lacks: another configuration file may have narrowed it.
    for key in ("methods", "fewer_seeds"):
        for method in table[key]:
            known = configuration.methods_known()
            configuration.check_known((*where, key), method, known, "method")
    for folder in ("published", "claims"):
        for source in table[folder]:
            configuration.check_known((*where, folder), source, configuration[folder], "source")
    for index, block in enumerate(table["blocks"]):
        _check_block(configuration, (*where, f"blocks[{index}]"), table, block)
    leaderboard_rows.add_rows(configuration, where, table)
    add_bounds(configuration, table)
    shown = leaderboard_rows.with_rows(table)
    for method in table["reference_lines"]:
        listed = shown["methods"]
        configuration.check_known((*where, "reference_lines"), method, listed, "method of the table")
    with configuration.failing(*where, "blocks"):  # a cell may be in the table twice
        asked = Table.from_json({"table": {**shown, "name": name}})
    for kind, options in table["figures"].items():
        with configuration.failing(*where, "figures", kind):
            if kind == "gallery":  # no file of reporting/figures
                if other := sorted(set(options) - {"methods"}):
                    raise ValueError(f"the gallery takes `methods` only, not {other[0]!r}")
            else:
                figures.describe(kind)
                figures.check_options(kind, set(options) - {"methods", "blocks"})
            asked.only(options.get("methods"), options.get("blocks"))


def _check_block(configuration, where, table, block):
    protocol = block["protocol"]
    configuration.check_known((*where, "protocol"), protocol, configuration["protocols"], "protocol")
    for method in block.get("methods", ()):
        configuration.check_known((*where, "methods"), method, table["methods"], "method of the table")
    metric, value = configuration.check_metric((*where, "metric"), block["metric"])
    entry = configuration["protocols"][protocol]
    if entry["prefix_of"] is not None and max(block["bits"]) > entry["prefix_of"]:
        message = (
            f"{protocol} scores first bits of codes of {entry['prefix_of']} bits, not {max(block['bits'])}"
        )
        configuration.fail((*where, "bits"), message)
    at = entry["at"]
    ranking, _ = metrics.ranking_of(block["metric"])
    if ranking is not None:
        needs = {f"{name}: true": entry[name] for name in _options_of(ranking)}
        if ranking.candidates is not None:
            needs[f"rescore: [{ranking.candidates}]"] = ranking.candidates in entry["rescore"]
        for key, scored in needs.items():
            if not scored:
                message = f"{block['metric']} is not scored: protocol {protocol} needs {key}"
                configuration.fail((*where, "metric"), message)
    if metric.parameter == "cutoff" and value not in at:
        message = f"{block['metric']} is not scored: add {value} to `at` of protocol {protocol}, now {at}"
        configuration.fail((*where, "metric"), message)
    option = _OPTION_OF.get(metric.name)
    if option is not None and not entry[option]:
        message = f"{metric.name} is not scored: add `{option}: true` to protocol {protocol}"
        configuration.fail((*where, "metric"), message)


def _options_of(ranking):
    """Options of a protocol, true or false, without which a ranking is not scored."""
    if ranking.kind in metrics.ORDERS:
        return ["orders"]
    return [] if ranking.kind == "rescored" else [ranking.kind.partition("_")[0]]
