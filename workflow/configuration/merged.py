"""The configuration: the repository's files with the user's on top, checked. `plan` makes the plan of it.

The checks are in `checks`. Nothing here imports a method or torch, so that a dry run stays fast.
"""

import math
import re
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import networks
from datasets import affinity, loaders, splits
from methods.base.catalogue import catalogue
from reporting import leaderboard
from reporting.leaderboard.boards import Boards
from tiebench import metrics
from tiebench.messages import did_you_mean, shorten
from workflow.configuration import checks, external_codes
from workflow.configuration.sources import Sources
from workflow.configuration.yaml_reader import check_plain, read_settings
from workflow.errors import ConfigurationError

# Keys whose value replaces the repository's as a whole: a mixture of two splits would be nonsense.
REPLACED = ("split", "affinity", "input", "blocks", "sources", "weights", "space")


def load(root, overrides=None, given=()):
    """The configuration of a checkout with the user's on top: a checked `Configuration`.

    root: folder that holds config/, methods/ and workflow/. overrides: the values of --configfile and
    --config, merged key by key; lists and the keys in `REPLACED` replace the repository's value, and so does
    an entry of a method in `tuned`. given: the files of --configfile, each as (name, values), for messages.

    Raises ConfigurationError, one line that names file, key and what is allowed, for the first mistake.
    """
    root = Path(root)
    values = read_settings(root / "config" / "config.yaml")
    for section in checks.OF_FILES:
        values[section] = read_settings(root / "config" / f"{section}.yaml")
    for folder in checks.OF_FOLDERS:
        values[folder] = {
            path.stem: read_settings(path) for path in sorted((root / "config" / folder).glob("*.yaml"))
        }
    overrides = {} if overrides is None else overrides
    check_plain(overrides, "--configfile")
    overrides = dict(overrides)
    for key in ("skip", "report"):
        if key in overrides:
            overrides[key] = _names(overrides[key])
    try:
        files = catalogue(root / "methods")
        for kind in (loaders.KIND, splits.KIND, affinity.KIND, networks.KIND):
            for found in kind.find().values():
                found.said  # noqa: B018 - a file that is wrong is named before what uses it is checked
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
    # Anchors of YAML are one object in many places, of which the checks complete each.
    merged = _apart(merge_settings(values, overrides))
    configuration = Configuration(root, merged, overrides, files, given)
    checks.check(configuration)
    return configuration


def _names(value):
    """A list of names as --config may give it: as text, '[a, b]', or a single name."""
    if isinstance(value, str):
        return re.findall(r"[^\s,'\"\[\]]+", value)
    return [] if value is None else value


def _apart(value):
    """A copy in which no two places are the same mapping or list."""
    if isinstance(value, dict):
        return {key: _apart(one) for key, one in value.items()}
    return [_apart(one) for one in value] if isinstance(value, list) else value


def merge_settings(base, change):
    """The settings of a file, or of several, with those of another on top, as `load` puts the user's on the
    repository's; neither is modified."""
    merged = merge(base, change)
    if "tuned" in base and "tuned" in change:
        # What one search chose for a protocol and a method is not mixed with what another chose: nobody has
        # tried that.
        merged["tuned"] = merge(base["tuned"], change["tuned"], levels=2)
    return merged


def merge(base, change, levels=math.inf):
    """`base` with `change` on top, key by key where both are mappings, at most so many levels deep; neither
    is modified."""
    if not (levels and isinstance(base, dict) and isinstance(change, dict)):
        return change
    merged = dict(base)
    for key, value in change.items():
        merged[key] = value if key in REPLACED or key not in base else merge(base[key], value, levels - 1)
    return merged


class Configuration:
    """values: the merged configuration; files: method's name -> its metadata (methods.base.catalogue)."""

    def __init__(self, root, values, overrides, files, given=()):
        self.root, self.given = root, given
        self.values = values
        self.overrides = overrides
        self.files = files
        self.folds: dict[str, tuple[str, ...]] = {}  # protocol of several folds -> the protocols of its folds
        self.sources = Sources(values, self.folds)
        self.boards = Boards(root / leaderboard.FOLDER)

    def __getitem__(self, key):
        return self.values[key]

    def fail(self, where, message) -> NoReturn:
        """Raise ConfigurationError that names the value's file and keys. where: the keys, section first."""
        section, *rest = where
        own = self.overrides.get(section)
        overridden = section in self.overrides
        if section in checks.SECTIONS and rest and isinstance(own, dict):
            overridden = any(str(name) == rest[0] for name in own)
        if overridden:
            file, keys = self._given_by(where), where
        elif section in checks.OF_FILES:
            file, keys = f"config/{section}.yaml", rest
        elif section in checks.OF_FOLDERS and rest:
            file, keys = f"config/{section}/{rest[0]}.yaml", rest[1:]
        else:
            file, keys = "config/config.yaml", where
        key = ".".join(shorten(str(key)) for key in keys).replace(".[", "[")
        message = shorten(message, 320)
        raise ConfigurationError(f"{file}: {key}: {message}" if key else f"{file}: {message}")

    def _given_by(self, where):
        """The last of the files that were given and hold most of these keys."""
        best, most = "--config", 0
        for name, values in self.given or [("--configfile", self.overrides)]:
            held = 0
            while held < len(where) and isinstance(values, dict) and where[held] in values:
                values, held = values[where[held]], held + 1
            if held >= max(most, 1):
                best, most = name, held
        return best

    @contextmanager
    def failing(self, *where):
        """Fail at a place with the words of a ValueError or an OSError of what is done inside."""
        try:
            yield
        except (ValueError, OSError) as error:
            self.fail(where, str(error))

    def check_known(self, where, name, known, what):
        """Fail at a place that names something unknown; what: "protocol", …, what is named there."""
        if name not in known:
            message = f"unknown {what} {shorten(repr(name))}{did_you_mean(name, sorted(known))}"
            self.fail(where, message)

    def check_metric(self, where, name):
        """The metric of a name and its parameter, as `metrics.resolve`; fails where it is none."""
        with self.failing(*where):
            return metrics.resolve(name)

    # -- methods and their variants ------------------------------------------------------------------------

    def methods_known(self):
        """Names that a table may list, sorted: files of methods/ and variants of the configuration."""
        return sorted({*self.files, *self["methods"]})

    def class_of(self, name):
        """Stem of the file that holds a method's class: the name itself, or a variant's `class`.

        Raises ConfigurationError for an unknown method, and for codes of another program.
        """
        if self.external_folder(name) is not None:
            raise ConfigurationError(
                f"{name} is external: its codes are imported, and nothing here makes them"
            )
        stem = self["methods"].get(name, {}).get("class", name)
        if stem not in self.files:
            raise ConfigurationError(f"unknown method {name!r}{did_you_mean(name, self.methods_known())}")
        return stem

    def external_folder(self, name):
        """The folder of the codes that another program made of a row; None for a method of this checkout."""
        return self["methods"].get(name, {}).get("external")

    def external_methods(self):
        """Rows whose codes other programs made, sorted."""
        return sorted(name for name, entry in self["methods"].items() if "external" in entry)

    def metadata(self, name):
        """Metadata of a method, or of a variant: its class's under the variant's name, title and style.

        A variant without a title is shown by its name; one without a colour or marker gets unused ones in
        figures. A row of another program's codes has that of its entry. Raises ConfigurationError for an
        unknown method.
        """
        entry = self["methods"].get(name, {})
        if "external" in entry:
            return external_codes.metadata(name, entry)
        of_class = self.files[self.class_of(name)]
        own = {"title": name, "colour": None, "marker": None} if "class" in entry else {}
        own |= {key: entry[key] for key in ("title", "colour", "marker") if key in entry}
        return replace(of_class, name=name, **own)

    # -- data ----------------------------------------------------------------------------------------------

    def add_folds(self):
        """Add a protocol `<name>_fold<k>` for each fold of a protocol whose split consists of several."""
        protocols = self["protocols"]
        for name, entry in list(protocols.items()):
            count = splits.folds(entry["split"])
            if count is None:
                continue
            self.folds[name] = tuple(f"{name}_fold{number}" for number in range(1, count + 1))
            for number, member in enumerate(self.folds[name], start=1):
                if member in protocols:
                    self.fail(("protocols", member), f"is the name of a fold of {name}: choose another")
                title = f"{entry.get('title') or name}, fold {number}"
                protocols[member] = entry | {"title": title, "split": entry["split"] | {"fold": number}}
                if entry["codes_of"] is not None:
                    protocols[member]["codes_of"] = f"{entry['codes_of']}_fold{number}"

    def members(self, protocol):
        """The protocols whose runs a protocol's scores are made of: its folds, or itself."""
        return self.folds.get(protocol) or (protocol,)

    def family(self, protocol):
        """The protocol that a fold belongs to; any other protocol itself."""
        return next((name for name, of in self.folds.items() if protocol in of), protocol)
