"""Where the files of datasets and networks are, or come from, and what to do about those that nobody has."""

import os
from dataclasses import dataclass
from pathlib import Path

from workflow import downloads
from workflow.errors import ConfigurationError

SEARCH_VARIABLE = "TIEBENCH_RESOURCES"
DOWNLOADS = Path("resources/downloads")


@dataclass(frozen=True)
class Place:
    """Where a source is, or will be. state: "here", "download" or "missing"."""

    path: str
    state: str


def skipped(values):
    """Names of the datasets and protocols that are to be left out of tables."""
    return values.get("skip") or []


class Sources:
    """The sources of a configuration. values: the merged configuration."""

    def __init__(self, values):
        self._values = values

    def all(self):
        """(where it stands, source) of every source of a dataset and every network's weights."""
        for name, entry in self._values["datasets"].items():
            for index, source in enumerate(entry["sources"]):
                yield ("datasets", name, f"sources[{index}]"), source
        for name, entry in self._values["networks"].items():
            if entry["weights"] is not None:
                yield ("networks", name, "weights"), entry["weights"]

    def check(self, fail):
        """Files stay in their folder, addresses are addresses, and one file is one thing."""
        known = {}
        for where, source in self.all():
            file = source["file"]
            if not (downloads.is_plain(file) or (Path(file).is_absolute() and downloads.can_be_name(file))):
                what = "must be a name, a path below the folders of sources, or an absolute path"
                shown = file if len(file) <= 100 else f"{file[:100]}…"
                fail((*where, "file"), f"{what}, not {shown!r}")
            for index, url in enumerate(source.get("urls", ())):
                if wrong := downloads.url_mistake(url):
                    fail((*where, "urls", f"[{index}]"), wrong)
            content = {key: source[key] for key in ("sha256", "md5", "bytes") if key in source}
            before, other = known.setdefault(file, (content, where))
            for key in content.keys() & before.keys():
                if content[key] != before[key]:
                    fail((*where, key), f"{file} has another in {'.'.join(other)}")

    def search_folders(self):
        """Where a source file is looked for: resources/downloads, then the folders of TIEBENCH_RESOURCES."""
        named = os.environ.get(SEARCH_VARIABLE, "")
        return [DOWNLOADS, *(Path(f) for f in named.split(os.pathsep) if f)]

    def locate(self, source):
        """The `Place` of a source: where it was found, or else where it belongs."""
        places = self._places(source)
        for place in places:
            if place.exists():
                return Place(str(place), "here")
        downloadable = downloads.mirrors(self._merged(source["file"]))
        return Place(str(places[0]), "download" if downloadable else "missing")

    def _merged(self, file):
        """All that is said of a file, by any dataset or network that needs it."""
        entries = [source for _, source in self.all() if source["file"] == file]
        merged = {key: value for source in reversed(entries) for key, value in source.items()}
        return merged | {
            "urls": list(dict.fromkeys(url for source in entries for url in source.get("urls", ())))
        }

    def _places(self, source):
        file = Path(source["file"])
        return [file] if file.is_absolute() else [folder / file for folder in self.search_folders()]

    def of_dataset(self, dataset):
        """Paths of a dataset's sources, those that will be downloaded included.

        The ConfigurationError for one that is neither here nor to be downloaded says where it was sought.
        """
        return [self._present("datasets", dataset, s) for s in self._values["datasets"][dataset]["sources"]]

    def of_network(self, network):
        """Path of a network's weights, None for one that has none; as `sources`."""
        source = self._values["networks"][network]["weights"]
        return None if source is None else self._present("networks", network, source)

    def _present(self, section, name, source):
        place = self.locate(source)
        if place.state == "missing":
            raise ConfigurationError(self._told_missing(section, name, source))
        return place.path

    def has_dataset(self, dataset):
        """Whether all sources of a dataset are here."""
        return all(self.locate(s).state == "here" for s in self._values["datasets"][dataset]["sources"])

    def to_download(self):
        """The sources that are not here and have addresses: `file` -> source."""
        files = {s["file"]: None for _, s in self.all() if self.locate(s).state == "download"}
        return {file: self._merged(file) for file in files}

    def missing(self):
        """The sources that are neither here nor to be downloaded.

        (path, section, name) -> what to do about it, and the datasets or protocols to do without.
        """
        return {
            (place.path, section, name): (
                self._told_missing(section, name, source),
                self._without(section, name),
            )
            for (section, name, *_), source in self.all()
            if (place := self.locate(source)).state == "missing"
        }

    def _told_missing(self, section, name, source):
        file = source["file"]
        sought = ", ".join(str(place.parent) for place in self._places(source))
        if Path(file).is_absolute():
            hint = "put it there, or name another file"
        else:
            hint = f"put it into {DOWNLOADS}/, or name its folder in {SEARCH_VARIABLE}"
        hint = source.get("instructions") or hint
        if not Path(file).is_absolute() and source.get("urls"):
            hint += f" (not downloaded from {source['urls'][0]}: neither https nor a sum vouches for it)"
        names = self._without(section, name)
        skip = f"; leave it out with {self.how_to_skip(names)}" if names else ""
        return f"{section.removesuffix('s')} {name} needs {file}, which is not in {sought}: {hint}{skip}"

    def _without(self, section, name):
        """What can be left out in order to do without a dataset, or without a network."""
        if section == "datasets":
            return [name]
        return [
            protocol
            for protocol, entry in self._values["protocols"].items()
            if name in (entry["end_to_end"], entry["input"].get("network"))
        ]

    def how_to_skip(self, names):
        """The option that leaves datasets or protocols out of tables, besides those left out already."""
        return f"--config skip='[{', '.join(dict.fromkeys([*skipped(self._values), *names]))}]'"
