"""Source files of datasets and networks: which are on this machine, can be downloaded, or are missing."""

import itertools
import os
from dataclasses import dataclass
from pathlib import Path

from tiebench.messages import shorten
from workflow.configuration import source_checks
from workflow.errors import ConfigurationError

SEARCH_VARIABLE = "TIEBENCH_RESOURCES"
DOWNLOADS = Path("resources/downloads")
# Not those of Path, which raise where a folder may not be looked into.
_exists, _is_folder = os.path.exists, os.path.isdir


@dataclass(frozen=True)
class Place:
    """Path of a source and its state: "here", "download" (will be downloaded to the path) or "missing"."""

    path: str
    state: str


class Sources:
    """The sources of a configuration: `values`, merged; folds: protocol -> the protocols of its folds."""

    def __init__(self, values, folds):
        self._values, self._folds = values, folds

    def all(self):
        """(keys in the configuration, source) of each source of a dataset and of each network's weights."""
        for name, entry in self._values["datasets"].items():
            for index, source in enumerate(entry["sources"]):
                yield ("datasets", name, f"sources[{index}]"), source
        for name in self._values["networks"]:
            if (source := self.weights(name)) is not None:
                yield ("networks", name, "weights"), source

    def weights(self, network):
        """The source of a network's pretrained weights, or None: the first of the file and its alternatives
        that is on this machine, or else the file."""
        source = self._values["networks"][network]["weights"]
        if source is None:
            return None
        files = [source, *source.get("alternatives", ())]
        return next((one for one in files if any(map(_exists, self._places(one)))), source)

    def _alternatives(self):
        for name, entry in self._values["networks"].items():
            for index, source in enumerate((entry["weights"] or {}).get("alternatives", ())):
                yield ("networks", name, "weights", f"alternatives[{index}]"), source

    def check(self, fail):
        """Check file names and URLs, and that entries for the same file agree. fail(keys, message) raises."""
        for folder in _named_folders():
            if not {"{", "}"}.isdisjoint(str(folder)):
                what = "Snakemake takes braces for wildcards: name a symbolic link without them"
                raise ConfigurationError(f"{SEARCH_VARIABLE}: {shorten(str(folder))}: {what}")
        known: dict[str, tuple[dict, tuple[str, ...]]] = {}
        for where, source in (*self.all(), *self._alternatives()):
            file = source["file"]
            if not (
                source_checks.is_plain(file) or (Path(file).is_absolute() and source_checks.can_be_name(file))
            ):
                what = "must be a file name, a path in the search folders or an absolute one, without braces"
                fail((*where, "file"), f"{what}, not {shorten(repr(file))}")
            for index, url in enumerate(source.get("urls", ())):
                if wrong := source_checks.url_mistake(url):
                    fail((*where, "urls", f"[{index}]"), wrong)
            content = {key: source[key] for key in ("sha256", "md5", "bytes") if key in source}
            before, other = known.setdefault(file, (content, where))
            for key in content.keys() & before.keys():
                if content[key] != before[key]:
                    fail((*where, key), f"{file} has a different value in {'.'.join(other)}")

    def search_folders(self):
        """Folders searched for source files: resources/downloads, then those of TIEBENCH_RESOURCES."""
        return [DOWNLOADS, *_named_folders()]

    def absent_folders(self):
        """One line that names the entries of TIEBENCH_RESOURCES that are not folders, or None."""
        absent = [str(folder) for folder in _named_folders() if not _is_folder(folder)]
        if not absent:
            return None
        verb = "is not a folder" if len(absent) == 1 else "are not folders"
        return f"{SEARCH_VARIABLE}: {', '.join(absent)} {verb}; source files are not found there"

    def locate(self, source):
        """The `Place` of a source: where it was found, or else where to put it."""
        places = self._places(source)
        for place in places:
            if _exists(place):
                return Place(str(place), "here")
        downloadable = source_checks.mirrors(self._merged(source["file"]))
        return Place(str(places[0]), "download" if downloadable else "missing")

    def _merged(self, file):
        """What all datasets and networks that use a file state about it."""
        entries = [source for _, source in self.all() if source["file"] == file]
        merged = {key: value for source in reversed(entries) for key, value in source.items()}
        return merged | {
            "urls": list(dict.fromkeys(url for source in entries for url in source.get("urls", ())))
        }

    def _places(self, source):
        file = Path(source["file"])
        return [file] if file.is_absolute() else [folder / file for folder in self.search_folders()]

    def has_dataset(self, dataset):
        """Whether all sources of a dataset are on this machine."""
        return all(self.locate(s).state == "here" for s in self._values["datasets"][dataset]["sources"])

    def to_download(self):
        """Sources that are not on this machine but can be downloaded: `file` -> source."""
        files = {s["file"]: None for _, s in self.all() if self.locate(s).state == "download"}
        return {file: self._merged(file) for file in files}

    def missing(self):
        """Sources that are neither on this machine nor downloadable.

        (path, section, name) -> (what to do about it, in one line; datasets or protocols to skip instead).
        """
        return {
            (place.path, section, name): (
                self._missing_line(section, name, source),
                self._without(section, name),
            )
            for (section, name, *_), source in self.all()
            if (place := self.locate(source)).state == "missing"
        }

    def _missing_line(self, section, name, source):
        file = source["file"]
        searched = ", ".join(map(_with_state, self._searched(source)))
        if Path(file).is_absolute():
            hint = "put it there, or change the path"
        else:
            hint = f"put it into {DOWNLOADS}/, or add its folder to {SEARCH_VARIABLE}"
        hint = source.get("instructions") or hint
        if not Path(file).is_absolute() and source.get("urls"):
            hint += f" (not downloaded from {source['urls'][0]}: neither https nor a checksum protects it)"
        names = self._without(section, name)
        skip = f"; or skip it with {self.how_to_skip(names)}" if names else ""
        return f"{section.removesuffix('s')} {name} needs {file}, which is not in {searched}: {hint}{skip}"

    def _searched(self, source):
        """Folders in which a source was looked for."""
        file = Path(source["file"])
        return [file.parent] if file.is_absolute() else self.search_folders()

    def _without(self, section, name):
        """What to skip in order to do without a dataset or a network."""
        if section == "datasets":
            return [name]
        return [
            protocol
            for protocol, entry in self._values["protocols"].items()
            if name in (entry["end_to_end"], entry["input"].get("network"))
            and protocol not in itertools.chain(*self._folds.values())  # these are skipped with it
        ]

    def how_to_skip(self, names):
        """The option that skips datasets or protocols, in addition to those skipped already."""
        return f"--config skip='[{', '.join(dict.fromkeys([*self._values['skip'], *names]))}]'"


def _named_folders():
    """Folders of TIEBENCH_RESOURCES, with `~` expanded: inside quotes the shell does not."""
    named = os.environ.get(SEARCH_VARIABLE, "")
    # Not Path.expanduser, which raises for an unknown user's home.
    return [Path(os.path.expanduser(folder)) for folder in named.split(os.pathsep) if folder]  # noqa: PTH111


def _with_state(folder):
    """A folder for a message, with a note if it does not exist; resources/downloads may not exist yet."""
    if folder == DOWNLOADS or _is_folder(folder):
        return str(folder)
    return f"{folder} ({'not a folder' if _exists(folder) else 'no such folder'})"
