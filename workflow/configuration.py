"""The configuration: read, merged with the user's, checked, and turned into the runs of a table.

Every mistake is a ConfigurationError of one line that names file, key and what would be right. Nothing here
imports a method, a loader or torch: a dry run stays fast.
"""

import ast
import copy
import functools
import importlib
import itertools
import re
from dataclasses import dataclass, fields, replace
from pathlib import Path

import jsonschema

import networks
from methods._catalogue import catalogue
from tiebench.messages import did_you_mean, shorten
from workflow import downloads
from workflow.data_sources import Sources, skipped
from workflow.errors import ConfigurationError
from workflow.yaml_reader import check_plain, read_settings

SECTIONS = ("datasets", "networks", "protocols", "methods")  # config/<section>.yaml
FOLDERS = ("tables", "published", "claims", "tuning")  # config/<folder>/<name>.yaml
LOADERS = (
    "cifar10_binary",
    "digits",
    "features_file",
    "imagenet100",
    "images",
    "labelme_gist",
    "nus_wide",
)


GIVEN = ("bits", "seed", "device")  # parameters of methods that tables and general settings give


@dataclass(frozen=True)
class Cell:
    """A cell of a table: what its runs, one per seed, are made of."""

    protocol: str
    method: str
    bits: int


@dataclass(frozen=True)
class Group:
    """Runs of one protocol that one process makes, alike for several methods.

    methods: names, ascending; runs: (bits, seed) of each run, ascending; bits: the code lengths that belong
    together, also those that nobody asks for.
    """

    protocol: str
    methods: tuple[str, ...]
    bits: tuple[int, ...]
    runs: tuple[tuple[int, int], ...]


def load(root, overrides=None):
    """The configuration of a checkout with the user's on top: a Configuration.

    root: folder that holds config/, methods/ and workflow/. overrides: what --configfile and --config gave,
    merged key by key (lists and `split`, `affinity`, `input` wholes replace what was there).
    """
    root = Path(root)
    values = read_settings(root / "config" / "config.yaml")
    for section in SECTIONS:
        values[section] = read_settings(root / "config" / f"{section}.yaml")
    for folder in FOLDERS:
        values[folder] = {
            path.stem: read_settings(path) for path in sorted((root / "config" / folder).glob("*.yaml"))
        }
    overrides = {} if overrides is None else overrides
    check_plain(overrides, "--configfile")
    overrides = copy.deepcopy(overrides)
    for key in ("skip", "report"):
        if key in overrides:
            overrides[key] = _names(overrides[key])
    merged = _merge(values, overrides)
    try:
        files = catalogue(root / "methods")
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
    configuration = Configuration(root, merged, overrides, files)
    configuration.check()
    return configuration


def _names(value):
    """A list of names as --config may give it: as text, '[a, b]' or a name alone."""
    if isinstance(value, str):
        return re.findall(r"[^\s,'\"\[\]]+", value)
    return [] if value is None else value


def _is_integer(_, value):
    return isinstance(value, int) and not isinstance(value, bool)  # 8.0 would become the folder 8.0


VALIDATOR = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer),
)


WHOLES = ("split", "affinity", "input", "blocks", "sources", "weights", "space")


def _merge(base, change):
    if not (isinstance(base, dict) and isinstance(change, dict)):
        return change
    merged = dict(base)
    for key, value in change.items():
        merged[key] = value if key in WHOLES or key not in base else _merge(base[key], value)
    return merged


class Configuration:
    """values: the merged configuration; files: method file's stem -> its metadata (methods/_catalogue.py)."""

    def __init__(self, root, values, overrides, files):
        self.root = root
        self.values = values
        self.overrides = overrides
        self.files = files
        self.sources = Sources(values)

    def __getitem__(self, key):
        return self.values[key]

    # -- methods and their variants ------------------------------------------------------------------------

    def methods_known(self):
        """Names that a table may list, sorted: the files of methods/ and the variants of the configuration."""
        return sorted({*self.files, *self["methods"]})

    def class_of(self, name):
        """Stem of the file that holds a method's class: the name itself, or a variant's `class`.

        Raises ConfigurationError for an unknown method.
        """
        stem = self["methods"].get(name, {}).get("class", name)
        if stem not in self.files:
            raise ConfigurationError(f"unknown method {name!r}{did_you_mean(name, self.methods_known())}")
        return stem

    def metadata(self, name):
        """Metadata of a method, or of a variant: its class's under the variant's name, title and style.

        A variant without a title is shown by its name, and one without a colour or marker gets free ones where
        it is drawn. Raises ConfigurationError for an unknown method.
        """
        of_class = self.files[self.class_of(name)]
        entry = self["methods"].get(name, {})
        own = {"title": name, "colour": None, "marker": None} if "class" in entry else {}
        own |= {key: entry[key] for key in ("title", "colour", "marker") if key in entry}
        known = {field.name for field in fields(of_class)}
        return replace(of_class, name=name, **{key: value for key, value in own.items() if key in known})

    def settings_of(self, name):
        """Entries of config/methods.yaml that apply to a method, the later over the earlier.

        Those of a variant are its class's and its own.
        """
        names = dict.fromkeys((self.class_of(name), name))
        return [self["methods"][one] for one in names if one in self["methods"]]

    # -- checks that need no data --------------------------------------------------------------------------

    def check(self):
        from datasets import affinity, splits
        from datasets._specification import kind_of

        folder = self.root / "workflow" / "schemas"
        schemas = {path.stem: read_settings(path) for path in folder.glob("*.yaml")}
        known = {*schemas["config"]["properties"], *SECTIONS, *FOLDERS}
        for key in self.values:
            if key not in known:
                self._fail((key,), f"unknown key{did_you_mean(key, sorted(known))}")
        general = {key: self.values[key] for key in schemas["config"]["properties"] if key in self.values}
        self._validate(general, schemas["config"], ())
        for section in (*SECTIONS, *FOLDERS):
            if not isinstance(self.values[section], dict):
                self._fail((section,), "must be a mapping from names")
            for name, entry in self.values[section].items():
                if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9_]+", name):
                    self._fail((section, str(name)), "names are text, made of a-z, 0-9 and _")
                self._validate(entry, schemas[section], (section, str(name)))
        self.sources.check(self._fail)
        for name in self["report"]:
            self._known(("report",), name, self["tables"], "table")
        for name in skipped(self.values):
            self._known(("skip",), name, {**self["datasets"], **self["protocols"]}, "dataset or protocol")
        for name, entry in self["datasets"].items():
            if entry["loader"] not in LOADERS:
                self._fail(
                    ("datasets", name, "loader"),
                    f"unknown loader {entry['loader']!r}{did_you_mean(entry['loader'], LOADERS)}",
                )
            allowed = importlib.import_module(f"datasets.{entry['loader']}").OPTIONS
            for option in entry["options"]:
                if option not in allowed:
                    where = ("datasets", name, "options", option)
                    self._fail(
                        where,
                        f"the loader {entry['loader']} has no such option{did_you_mean(option, allowed)}",
                    )
        for name, entry in self["protocols"].items():
            self._known(("protocols", name, "dataset"), entry["dataset"], self["datasets"], "dataset")
            where = ("protocols", name, "input", "network")
            if entry["input"]["kind"] == "network":
                self._known(where, entry["input"].get("network"), self["networks"], "network")
            elif "network" in entry["input"]:
                self._fail(where, "goes with kind: network")
            if entry["end_to_end"] is not None:
                self._known(
                    ("protocols", name, "end_to_end"), entry["end_to_end"], self["networks"], "network"
                )
            for key, known in (("split", splits.KINDS), ("affinity", affinity.KINDS)):
                try:
                    kind_of(entry[key], known, key)
                except ValueError as error:
                    self._fail(("protocols", name, key), str(error).removeprefix(f"{key}: "))
        for name, entry in self["networks"].items():
            if not entry["architecture"].startswith("torchvision/"):
                where = ("networks", name, "architecture")
                self._known(where, entry["architecture"], _architectures(), "architecture")
        for name in self["methods"]:
            self._check_method(name)
            self._check_parameters(name)
        for folder in ("published", "claims"):
            for name, entry in self[folder].items():
                if entry["source"] != name:
                    self._fail(
                        (folder, name, "source"),
                        f"must be {name!r}, the file's name, not {entry['source']!r}",
                    )
        for name, entry in self["published"].items():
            self._check_published(name, entry)
        for name, entry in self["claims"].items():
            self._check_claims(name, entry)
        for name, table in self["tables"].items():
            self._check_table(name, table)
        for name, tuning in self["tuning"].items():
            self._known(("tuning", name, "protocol"), tuning["protocol"], self["protocols"], "protocol")
            for method in tuning["methods"]:
                self._known(("tuning", name, "methods"), method, self.methods_known(), "method")
            for parameter, values in tuning["space"].items():
                self._check_space(name, tuning["methods"], parameter, values)
            if tuning["shares"]["fit"] + tuning["shares"]["query"] >= 1:
                self._fail(("tuning", name, "shares"), "fit and query together must leave a database")

    def _check_published(self, name, entry):
        seen = set()
        for index, value in enumerate(entry["values"]):
            figure = tuple(value[key] for key in ("protocol", "metric", "method", "bits"))
            if figure in seen:
                self._fail(
                    ("published", name, f"values[{index}]"),
                    "{}, {}, {} at {} bits stands there twice".format(*figure),
                )
            seen.add(figure)

    def _check_claims(self, name, entry):
        """A name that nobody has would never be met, and its claim never be judged."""
        methods = {value["method"] for paper in self["published"].values() for value in paper["values"]}
        methods |= set(self.methods_known())
        seen = set()
        for index, claim in enumerate(entry["claims"]):
            where = ("claims", name, f"claims[{index}]")
            if claim["id"] in seen:
                self._fail((*where, "id"), f"{claim['id']!r} stands there twice")
            seen.add(claim["id"])
            sides = {key: claim[key] for key in ("left", "right") if key in claim}
            named = [((*where, key), claim[key]) for key in ("method", "methods", "others") if key in claim]
            named += [((*where, "where", "methods"), claim["where"].get("methods", []))]
            named += [((*where, key, "method"), side.get("method", [])) for key, side in sides.items()]
            for place, names in named:
                for method in [names] if isinstance(names, str) else names:
                    self._known(place, method, methods, "method")
            named = [((*where, "stated_for"), claim["stated_for"])]
            named += [((*where, "where", "protocol"), claim["where"].get("protocol", []))]
            named += [((*where, key, "protocol"), side.get("protocol", [])) for key, side in sides.items()]
            for place, names in named:
                for protocol in [names] if isinstance(names, str) else names:
                    self._known(place, protocol, self["protocols"], "protocol")

    def _check_space(self, name, methods, parameter, values):
        where = ("tuning", name, "space", parameter)
        of_method = {method: self.metadata(method).parameters for method in methods}
        allowed = {
            method: parameters[parameter]
            for method, parameters in of_method.items()
            if parameter in parameters and parameter not in GIVEN
        }
        if not allowed:
            known = sorted({key for parameters in of_method.values() for key in parameters} - {*GIVEN})
            self._fail(
                where, f"none of its methods has such a hyper-parameter{did_you_mean(parameter, known)}"
            )
        for method, annotation in allowed.items():
            for value in values:
                if not _fits(value, annotation):
                    self._fail(where, f"of {method} must be {annotation}, not {shorten(repr(value))}")

    def _check_method(self, name):
        stem = self["methods"][name].get("class")
        if stem is None:
            if name not in self.files:
                hint = did_you_mean(name, self.files)
                self._fail(
                    ("methods", name), f"unknown method {name!r}{hint}; a variant of a method needs a `class`"
                )
            return
        where = ("methods", name, "class")
        if name in self.files:
            self._fail(
                where, f"methods/{name}.py is a method of its own: give its variant of {stem} another name"
            )
        if stem not in self.files and "class" in self["methods"].get(stem, {}):
            known = self["methods"][stem]["class"]
            self._fail(where, f"{stem} is itself a variant: name its class, {known}, and repeat its settings")
        self._known(where, stem, self.files, "method")

    def _check_parameters(self, method):
        allowed = [p for p in self.metadata(method).parameters if p not in GIVEN]
        entry = self["methods"][method]
        places = [(("defaults",), entry["defaults"])]
        for protocol, change in entry["protocols"].items():
            self._known(("methods", method, "protocols", protocol), protocol, self["protocols"], "protocol")
            places.append((("protocols", protocol), change))
        for place, settings in list(places):
            lengths = set()
            for bits, change in settings.get("by_bits", {}).items():
                where = ("methods", method, *place, "by_bits", bits)
                if not re.fullmatch("[1-9][0-9]{0,3}", str(bits)):
                    self._fail(where, "must be a number of bits")
                if int(bits) in lengths:
                    self._fail(where, "stands there twice")
                if "by_bits" in change:
                    self._fail((*where, "by_bits"), "belongs one level higher")
                lengths.add(int(bits))
                places.append(((*place, "by_bits", bits), change))
        for place, settings in places:
            for name, value in settings.items():
                where = ("methods", method, *place, name)
                if name == "by_bits":
                    continue
                if name not in allowed:
                    self._fail(where, f"{method} has no such hyper-parameter{did_you_mean(name, allowed)}")
                annotation = self.metadata(method).parameters[name]
                if not _fits(value, annotation):
                    hint = " (YAML reads 5e-4 as text: write 5.0e-4)" if isinstance(value, str) else ""
                    self._fail(where, f"must be {annotation}, not {shorten(repr(value))}{hint}")

    def _check_table(self, name, table):
        asked = set()
        for method in table["methods"]:
            self._known(("tables", name, "methods"), method, self.methods_known(), "method")
        if name == "report":
            self._fail(("tables", name), "is the name of the page of several tables: choose another")
        for folder in ("published", "claims"):
            for source in table[folder]:
                self._known(("tables", name, folder), source, self[folder], "source")
        for index, block in enumerate(table["blocks"]):
            where = ("tables", name, f"blocks[{index}]")
            self._known((*where, "protocol"), block["protocol"], self["protocols"], "protocol")
            for method in block.get("methods", ()):
                self._known((*where, "methods"), method, table["methods"], "method of the table")
            for cell in itertools.product(block.get("methods", table["methods"]), block["bits"]):
                cell = (block["protocol"], block["metric"], *cell)
                if cell in asked:
                    self._fail(where, "asks twice for {} {} of {} at {} bits".format(*cell))
                asked.add(cell)
            cut = block["metric"].partition("@")[2]
            at = self["protocols"][block["protocol"]]["at"]
            if cut and int(cut) not in at:
                message = f"is not scored: add {cut} to `at` of protocol {block['protocol']}, now {at}"
                self._fail((*where, "metric"), f"{block['metric']} {message}")

    def _known(self, where, name, known, what):
        if name not in known:
            self._fail(where, f"unknown {what} {shorten(repr(name))}{did_you_mean(name, sorted(known))}")

    def _validate(self, value, schema, where):
        error = jsonschema.exceptions.best_match(VALIDATOR(schema).iter_errors(value))
        if error is None:
            _fill_defaults(value, schema)
            return
        path = [f"[{part}]" if isinstance(part, int) else str(part) for part in error.absolute_path]
        place = (*where, *path)
        if error.validator == "additionalProperties":
            allowed = list(error.schema.get("properties", {}))
            unknown = next(key for key in error.instance if key not in allowed)
            self._fail((*place, str(unknown)), f"unknown key{did_you_mean(unknown, allowed)}")
        if error.validator == "required":
            missing = next(key for key in error.validator_value if key not in error.instance)
            self._fail(place, f"{missing!r} is missing")
        if error.validator == "enum":
            known = [str(v) for v in error.validator_value]
            self._fail(
                place, f"{shorten(repr(error.instance))} is not allowed{did_you_mean(error.instance, known)}"
            )
        self._fail(place, error.message.replace(repr(error.instance), shorten(repr(error.instance))))

    def _fail(self, where, message):
        """where: keys from the section on; the file follows from who set them."""
        section, *rest = where
        own = self.overrides.get(section)
        of_sections = section in SECTIONS or section in FOLDERS
        given = section in self.overrides
        if of_sections and rest and isinstance(own, dict):
            given = any(str(name) == rest[0] for name in own)
        if given:
            file, keys = "--configfile", where
        elif section in SECTIONS:
            file, keys = f"config/{section}.yaml", rest
        elif section in FOLDERS and rest:
            file, keys = f"config/{section}/{rest[0]}.yaml", rest[1:]
        else:
            file, keys = "config/config.yaml", where
        key = ".".join(shorten(str(key)) for key in keys).replace(".[", "[")
        message = shorten(message, 400)
        raise ConfigurationError(f"{file}: {key}: {message}" if key else f"{file}: {message}")

    # -- runs ----------------------------------------------------------------------------------------------

    def cells(self, table):
        """All cells of a table, in its order, those that cannot be served included."""
        entry = self["tables"][table]
        found = {}
        for block in entry["blocks"]:
            for method in block.get("methods") or entry["methods"]:
                for bits in block["bits"]:
                    found[Cell(block["protocol"], method, bits)] = None
        return list(found)

    def refusal(self, cell):
        """Why there will be no run of a cell, or None: it is to be skipped, or its method cannot serve it."""
        if {cell.protocol, self["protocols"][cell.protocol]["dataset"]} & set(skipped(self.values)):
            return "skipped"
        metadata = self.metadata(cell.method)
        kind = self["protocols"][cell.protocol]["affinity"]["kind"]
        if metadata.supervision == "labels" and kind == "distance_levels":
            return f"{cell.method} learns from labels, and {cell.protocol} has affinities from distances only"
        return None

    def end_to_end(self, cell):
        """The network that a cell's method trains end to end on images, or None: it sees features."""
        network = self["protocols"][cell.protocol]["end_to_end"]
        return network if network is not None and self.metadata(cell.method).end_to_end else None

    def has_pictures(self, protocol):
        """Whether the items of a protocol's dataset can be shown: images, or vectors of pixels."""
        entry = self["protocols"][protocol]
        images = entry["input"]["kind"] in ("pixels", "network", "gist") or entry["end_to_end"] is not None
        return images or "picture" in self["datasets"][entry["dataset"]]

    def together(self, protocol, bits):
        """Code lengths that belong to a job with `bits`: the protocol's list if it is on it, or it alone."""
        listed = self["protocols"][protocol]["runs_per_job"]["bits"]
        return tuple(sorted(listed)) if bits in listed else (bits,)

    def groups(self):
        """Each `Group` of two runs or more that the tables ask for; all other runs are jobs of their own.

        What is grouped follows from the protocol's `runs_per_job`, what of it is run from all tables: the
        same whichever table is made, so that a run belongs to one job only.
        """
        asked = {}
        for name, table in self["tables"].items():
            for cell in self.cells(name):
                if self.refusal(cell) is not None:
                    continue
                bits = self.together(cell.protocol, cell.bits)
                size = self["protocols"][cell.protocol]["runs_per_job"]["seeds"]
                for seed in table["seeds"]:
                    key = (cell.protocol, cell.method, bits, seed // size)
                    asked.setdefault(key, set()).add((cell.bits, seed))
        alike = {}
        for (protocol, method, bits, _), runs in asked.items():
            if len(runs) > 1:
                alike.setdefault((protocol, bits, tuple(sorted(runs))), []).append(method)
        return [
            Group(protocol, tuple(sorted(methods)), bits, runs)
            for (protocol, bits, runs), methods in sorted(alike.items())
        ]

    def hyperparameters(self, cell):
        """The method's hyper-parameters for a cell: defaults, then the protocol's, each then by bits.

        All of a variant's own go over all of its class's.
        """
        chosen = {}
        for entry in self.settings_of(cell.method):
            for settings in (entry["defaults"], entry["protocols"].get(cell.protocol, {})):
                chosen |= {name: value for name, value in settings.items() if name != "by_bits"}
                for bits, change in settings.get("by_bits", {}).items():
                    if int(bits) == cell.bits:
                        chosen |= change
        if "device" in self.metadata(cell.method).parameters:
            chosen["device"] = self["device"]
        return chosen

    # -- data ----------------------------------------------------------------------------------------------

    def check_split(self, protocol):
        """Raise ConfigurationError if a protocol's split, affinity or input does not fit its dataset.

        While a source is still to be downloaded there is nothing to be compared with, and no error.
        """
        from datasets import affinity, inputs, splits

        entry = self["protocols"][protocol]
        dataset = self["datasets"][entry["dataset"]]
        loader = importlib.import_module(f"datasets.{dataset['loader']}")
        sources = [Path(source) for source in self.sources.of_dataset(entry["dataset"])]
        if not self.sources.has_dataset(entry["dataset"]):
            return
        try:
            description = self._described(loader, sources, dataset)
            splits.check(entry["split"], description)
            affinity.check(entry["affinity"], description)
            inputs.check(entry["input"]["kind"], description.kind)
            if entry["end_to_end"] is not None and description.kind != "images":
                raise ValueError("end_to_end needs a dataset of images, these are vectors")
        except (ValueError, OSError) as error:
            message = " ".join(str(error).split())
            raise ConfigurationError(
                f"protocol {protocol} on dataset {entry['dataset']}: {message}"
            ) from error

    def _described(self, loader, sources, dataset):
        try:
            return loader.describe(sources, **dataset["options"])
        except (ValueError, OSError):
            for path, source in zip(sources, dataset["sources"]):
                downloads.check(path, source)  # a wrong file explains why it cannot be read
            raise


@functools.cache
def _architectures():
    """Names of networks.catalogue, which imports torch, read from its source."""
    tree = ast.parse(Path(networks.__file__).with_name("catalogue.py").read_text(encoding="utf-8"))
    tables = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "NETWORKS"
    ]
    return tuple(key.value for key in tables[0].keys)


_ACCEPTED = {"int": (int,), "float": (int, float), "bool": (bool,), "str": (str,), "None": (type(None),)}


def _fits(value, annotation):
    """Whether a value from YAML fits a field's annotation; what is not made of simple types fits anything."""
    names = [part.strip() for part in annotation.split("|")]
    if not all(name in _ACCEPTED for name in names):
        return True
    if isinstance(value, bool):  # which Python counts among the integers
        return "bool" in names
    return any(isinstance(value, _ACCEPTED[name]) for name in names)


def _fill_defaults(value, schema):
    """Add the defaults of a schema to a value that it accepts, in place."""
    if isinstance(value, dict):
        for key, part in schema.get("properties", {}).items():
            if "default" in part and key not in value:
                value[key] = copy.deepcopy(part["default"])
            if key in value:
                _fill_defaults(value[key], part)
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict):
            for key in value.keys() - schema.get("properties", {}).keys():
                _fill_defaults(value[key], extra)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for part in value:
            _fill_defaults(part, schema["items"])
