"""The plan of what follows from datasets alone: sources, datasets, splits, features, affinities."""

import functools
from contextlib import suppress
from pathlib import Path

from datasets import affinity, loaders, splits
from networks import architecture
from tiebench.files import read_json
from tiebench.messages import did_you_mean
from workflow.code_dependencies import code_digests
from workflow.configuration import dataset_checks
from workflow.configuration.source_checks import stamp
from workflow.errors import ConfigurationError


def pick(settings, *keys):
    """The entries of a mapping under these keys, as far as it has them."""
    return {key: settings[key] for key in keys if key in settings}


class DataPlan:
    """What is made of datasets, and of what. configuration: a `configuration.merged.Configuration`."""

    # All jobs of a table call these with the same few arguments.
    cached: tuple[str, ...] = ("code", "source_state", "affinity_kind", "split_kind", "dataset_card")

    def __init__(self, configuration):
        self.configuration = configuration
        self.sources = configuration.sources
        for name in self.cached:
            setattr(self, name, functools.cache(getattr(self, name)))

    def __getitem__(self, key):
        return self.configuration[key]

    def entry(self, section, name):
        """An entry of the configuration; the ConfigurationError for an unknown name has the nearest one."""
        known = self[section]
        if name not in known:
            raise ConfigurationError(f"there is no {name!r} in {section}{did_you_mean(name, sorted(known))}")
        return known[name]

    def code(self, *modules):
        """Source files of modules and of all that they import from this checkout: path in it -> digest."""
        return code_digests(self.configuration.root, *modules)

    def resource(self, key, stage, attempt):
        """Resource "memory_mb" or "minutes" of a stage's jobs: each attempt asks for twice the last one's."""
        return self[key][stage] * 2 ** (attempt - 1)

    # -- datasets ------------------------------------------------------------------------------------------

    def dataset_folder(self, protocol):
        return f"resources/datasets/{self.entry('protocols', protocol)['dataset']}"

    def dataset_sources(self, dataset):
        """Where a dataset's sources are, or will be. A file that is nowhere has the path where it belongs."""
        return [self.sources.locate(source).path for source in self.entry("datasets", dataset)["sources"]]

    @functools.cached_property
    def recorded_sources(self):
        """Paths of the files, of datasets and networks, whose checksum is recorded."""
        recorded = [source for _, source in self.sources.all() if not {*source}.isdisjoint({"sha256", "md5"})]
        return {self.sources.locate(source).path for source in recorded}

    def dataset_code(self, dataset):
        return self.code(
            "workflow.scripts.load_dataset", f"datasets.loaders.{self.entry('datasets', dataset)['loader']}"
        )

    def dataset_settings(self, dataset):
        """What makes a dataset: of its sources, not where they are fetched from."""
        settings = self.entry("datasets", dataset)
        recorded = [pick(source, "file", "sha256", "md5", "bytes") for source in settings["sources"]]
        state = self.source_state(dataset)
        about = {} if state is None else {"state": state}
        return pick(settings, "loader", "options") | {"sources": recorded} | about

    def source_state(self, dataset):
        """Names, sizes and times of the files in a dataset's folders, as a digest, and of its files without a
        recorded checksum; None where it has neither.

        Snakemake compares the time of a folder, which a change below a folder in it leaves as it was. A
        dataset whose sources are gone has the state of those that it was made of.
        """
        settings = self.entry("datasets", dataset)
        places = [Path(path) for path in self.dataset_sources(dataset)]
        if not all(path.exists() for path in places):
            try:
                return read_json(f"resources/datasets/{dataset}/dataset.json")["made_from"].get("state")
            except (OSError, ValueError, LookupError, AttributeError, TypeError):  # not made, or damaged
                return None
        folders = [path for path in places if path.is_dir()]
        sources = zip(places, settings["sources"], strict=True)
        unrecorded = [path for path, source in sources if not {*source} & {"sha256", "md5", "urls"}]
        found = [f"{size} bytes, {time} ns" for size, time in filter(None, map(stamp, unrecorded))]
        try:
            if folders:
                found.append(loaders.state(settings["loader"], folders, **settings["options"]))
        except (OSError, TypeError, ValueError):
            return None  # the check of the protocol, or the loader, says what is wrong
        return " ".join(found) or None

    @functools.cached_property
    def downloads(self):
        """Sources that have to be downloaded, as they are when the plan is made: `file` -> source."""
        return self.sources.to_download()

    def download_settings(self, file):
        return self.downloads[file]

    # -- splits --------------------------------------------------------------------------------------------

    def dataset_card(self, protocol):
        """The dataset's metadata; a split that is impossible on the dataset is refused here."""
        folder = self.dataset_folder(protocol)
        if protocol in self.configuration.folds:
            folds = ", ".join(self.configuration.folds[protocol])
            raise ConfigurationError(f"protocol {protocol} has a split for each fold, ask for one: {folds}")
        dataset_checks.check(self.configuration, protocol)
        return f"{folder}/dataset.json"

    def dataset_items(self, protocol):
        return f"{self.dataset_folder(protocol)}/items.npy"

    def labels(self, protocol):
        return f"{self.dataset_folder(protocol)}/labels.npy"

    def given_split(self, protocol):
        return f"{self.dataset_folder(protocol)}/given_split.npy"

    def split_code(self, protocol):
        kind = self.split_kind(protocol).module
        return self.code("workflow.scripts.split_protocol", "datasets.splits", "datasets.inputs", kind)

    def split_kind(self, protocol):
        return splits.KIND.named(self.entry("protocols", protocol)["split"]["kind"])

    def split_settings(self, protocol):
        return pick(self.entry("protocols", protocol), "split", "seed")

    # -- features and affinities ---------------------------------------------------------------------------

    def network_weights(self, network):
        """The file of a network's pretrained weights, in a list that is empty if it has none."""
        self.entry("networks", network)
        weights = self.sources.weights(network)
        return [] if weights is None else [self.sources.locate(weights).path]

    def network_check(self, network):
        """The result of comparing the weights with what is recorded of them; empty if there are none."""
        return [f"resources/networks/{network}.json"] if self.entry("networks", network)["weights"] else []

    def weights_settings(self, network):
        """What is recorded of a network's weights, and the state of a file of which no checksum is."""
        self.entry("networks", network)
        source = self.sources.weights(network) or {}
        recorded = pick(source, "file", "sha256", "md5", "bytes")
        if not source or {*source} & {"sha256", "md5", "urls"}:
            return recorded
        state = stamp(self.sources.locate(source).path)
        if state is None:  # gone: as it was when it was used
            with suppress(OSError, ValueError):
                state = read_json(f"resources/networks/{network}.json").get("state")
        return recorded | ({} if state is None else {"state": state})

    def network_code(self, network):
        script = "workflow.scripts.extract_features"
        return self.code(script, "networks.base.features", *self._network_modules(network))

    def _network_modules(self, network):
        """Modules that decide what a network computes."""
        found, _ = architecture(self.entry("networks", network)["architecture"])
        return [found.module, "networks"]

    def network_settings(self, network):
        chosen = pick(self.entry("networks", network), "architecture", "options", "batch_size")
        return chosen | {"device": self["device"]}

    def protocol_network(self, protocol):
        """The network whose features a protocol's methods see, or None: they see the dataset's items."""
        return self.entry("protocols", protocol)["input"].get("network")

    def protocol_items(self, protocol):
        """What a protocol's features are made of: the dataset's items, or what a network makes of them."""
        network = self.protocol_network(protocol)
        if network is None:
            return self.dataset_items(protocol)
        return f"resources/features/{self['protocols'][protocol]['dataset']}/{network}.npy"

    def feature_settings(self, protocol):
        given = dict(self.entry("protocols", protocol)["input"])
        network = self.protocol_network(protocol)
        given.pop("network", None)
        given["kind"] = "pixels" if given["kind"] == "pixels" else "features"
        return {"input": given, "network": network}

    def affinity_kind(self, protocol):
        return affinity.KIND.named(self.entry("protocols", protocol)["affinity"]["kind"])

    def affinity_code(self, protocol):
        return self.code("datasets.affinity", self.affinity_kind(protocol).module)

    def thresholds_code(self, protocol):
        return self.code("workflow.scripts.affinity_thresholds") | self.affinity_code(protocol)

    def affinity_settings(self, protocol):
        return pick(self.entry("protocols", protocol), "affinity")

    def affinity_files(self, protocol):
        """What an affinity needs besides labels: features and thresholds if it is measured on features."""
        folder, measured = f"resources/protocols/{protocol}", self.affinity_kind(protocol).said.from_features
        return [f"{folder}/features.npy", f"{folder}/affinity.json"] if measured else []
