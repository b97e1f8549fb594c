"""The files of datasets and protocols, opened: what several adapters read."""

import functools
import json
from pathlib import Path

import numpy as np

from datasets import affinity as affinities
from datasets._description import Description
from datasets.splits import Split
from methods.base import TrainingSet
from tiebench.files import read_array, read_json
from tiebench.hamming import AffinityBlocks, EqualLabels, SharedLabels

# A matrix of affinities from distances is kept for this many pairs (a byte each): computing them anew for
# every batch would cost more than the step.
_KEPT_PAIRS = 1 << 28


def read_labels(folder):
    """Labels of a dataset's folder, or None: int64 (n,) or uint8 (n, L)."""
    labels = read_array(Path(folder, "labels.npy"))
    return None if labels.ndim == 2 and labels.shape[1] == 0 else labels


def read_description(folder):
    """The `Description` of a dataset's folder."""
    folder = Path(folder)
    return Description.read(folder, read_json(folder / "dataset.json"))


class Protocol:
    """A protocol's split, affinity, and what methods see, from its folder and its dataset's.

    settings: its `affinity`, and the `network` that is trained on images, if any; items: .npy file of what
    methods see, default the features of the protocol; weights: the file of the network's, or None.
    """

    def __init__(self, folder, dataset, settings, items=None, weights=None):
        self.split = Split.load(Path(folder, "split.npz"))
        features = Path(folder, "features.npy")
        self.items = read_array(items or features, True) if items or features.is_file() else None
        self.network, self.weights = settings.get("network"), weights
        self.labels = read_labels(dataset)
        distances = settings["affinity"]["kind"] == "distance_levels"
        self.affinity = affinities.make(
            settings["affinity"],
            self.labels,
            features=read_array(features, True) if distances else None,
            training=self.split.training,
            thresholds=read_json(Path(folder, "affinity.json"))["thresholds"],
        )
        self._kept = None
        self.fingerprints = {
            "dataset": read_json(Path(dataset, "dataset.json"))["fingerprint"],
            "split": read_json(Path(folder, "split.json"))["fingerprint"],
        }

    def scoring_affinity(self, database=None, keep=False):
        """Affinity of the queries with the database, or some of its items, as `tiebench.hamming` wants it.

        database: items int64 (n,), default all of the split's; keep: remember affinities that are made of
        distances, for scoring several runs.
        """
        query = self.split.query
        database = self.split.database if database is None else database
        labels = self.affinity.scoring_labels
        if labels is not None and labels.ndim == 1:
            return EqualLabels(labels[query], labels[database])
        if labels is not None:
            return SharedLabels(labels[query], labels[database], self.affinity.kind == "shared_label")
        kind = np.min_scalar_type(max(self.affinity.levels))

        def compute(begin, end):
            return self.affinity.block(query[begin:end], database).astype(kind)

        if keep and len(query) * len(database) <= _KEPT_PAIRS:
            compute = functools.cache(compute)
        return AffinityBlocks(compute, tuple(int(level) for level in self.affinity.levels))

    def training_set(self, rows=None, **more):
        """What methods learn from: the training items, or the items `rows`. more: `log`, `checkpoint`."""
        rows = self.split.training if rows is None else rows
        items = Rows(self.items, rows)
        return TrainingSet(
            items=items if self.network else np.ascontiguousarray(items[:]),
            affinity=self.pair_affinity(rows),
            levels=tuple(int(level) for level in self.affinity.levels),
            labels=None if self.labels is None else self.labels[rows],
            network=self.network,
            weights=self.weights,
            **more,
        )

    def pair_affinity(self, rows):
        """Affinity of items named by their places in `rows`, int64 (i, j), as a training set wants it."""
        if self.affinity.scoring_labels is None and len(rows) ** 2 <= _KEPT_PAIRS:
            kept = self._all_pairs(rows)
            return lambda i, j: kept[np.ix_(i, j)].astype(np.int64)
        return lambda i, j: self.affinity.block(rows[i], rows[j])

    def _all_pairs(self, rows):
        """Affinity of all pairs of `rows`, (r, r). The last rows' is kept: the runs of a job share it."""
        if self._kept is None or not np.array_equal(self._kept[0], rows):
            matrix = np.empty((len(rows), len(rows)), np.min_scalar_type(max(self.affinity.levels)))
            for begin in range(0, len(rows), 512):
                end = begin + 512
                matrix[begin:end, begin:] = self.affinity.block(rows[begin:end], rows[begin:])
                matrix[begin:, begin:end] = matrix[begin:end, begin:].T
            self._kept = rows, matrix
        return self._kept[1]


class Rows:
    """Rows of a memory-mapped array, read when indexed: a database is never copied whole."""

    def __init__(self, items, rows):
        self.items, self.rows = items, rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, part):
        return self.items[self.rows[part]]


def append_json_line(file, record):
    """Add one record to an open .jsonl file, at once: progress can be followed while it is made."""
    file.write(json.dumps(record, sort_keys=True) + "\n")
    file.flush()
