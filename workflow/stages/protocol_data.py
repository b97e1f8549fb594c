"""The files of datasets and protocols, opened: what several adapters read."""

import json
import math
from pathlib import Path

import numpy as np

from datasets.affinity import MOST_KEPT_PAIRS, Affinity
from datasets.description import Description, labels_or_none
from datasets.splits import Split
from methods.base import Refusal, TrainingSet
from tiebench.affinities import AffinityBlocks
from tiebench.files import read_json, read_result_array, reading_result
from tiebench.scoring import score_codes


def read_labels(folder):
    """Labels of a dataset's folder, or None: int64 (n,) or uint8 (n, L)."""
    return labels_or_none(read_result_array(Path(folder, "labels.npy")))


def read_description(folder):
    """The `Description` of a dataset's folder."""
    folder = Path(folder)
    metadata = read_json(folder / "dataset.json")
    with reading_result(folder):
        return Description.read(folder, metadata)


class ProtocolData:
    """A protocol's split, affinity, and what methods see, from its folder and its dataset's.

    settings: its `affinity`, and the `network` that is trained on images, if any; items: .npy file of what
    methods see, default the features of the protocol; weights: the file of the network's, or None.
    """

    def __init__(self, folder, dataset, settings, items=None, weights=None):
        self.split = Split.load(Path(folder, "split.npz"))
        features = Path(folder, "features.npy")
        self.items = read_result_array(items or features, True) if items or features.is_file() else None
        self.network, self.weights = settings.get("network"), weights
        self.labels = read_labels(dataset)
        self.affinity = Affinity.load(settings["affinity"], dataset, folder, self.split)
        self._kept = None
        self.fingerprints = {
            "dataset": read_json(Path(dataset, "dataset.json"))["fingerprint"],
            "split": read_json(Path(folder, "split.json"))["fingerprint"],
        }

    def scoring_affinity(self, database=None, keep=False):
        """Affinity of the queries with the database, or some of its items, as `tiebench.counting.histograms`
        wants it.

        database: items int64 (n,), default all of the split's; keep: remember affinities that are made of
        distances, for scoring several runs.
        """
        database = self.split.database if database is None else database
        return self.affinity.scoring(self.split.query, database, keep)

    def class_counts(self):
        """Database items of each class or with each label, int64 (C,), or None where there are no labels.

        Of the classes that methods learn from, unless the database has none of these.
        """
        if self.labels is None:
            return None
        database, learned = (_count(self.labels, rows) for rows in (self.split.database, self.split.training))
        both = np.where(learned > 0, database, 0)
        return both if both.any() else database

    def training_set(self, rows=None, supervision="labels", **more):
        """What methods learn from: the training items, or the items `rows`.

        supervision: of the method; one that learns from none is given neither labels nor affinities. more:
        `log`, `checkpoint`.
        """
        rows = self.split.training if rows is None else rows
        items, affinity = Rows(self.items, rows), self.pair_affinity(rows)
        hidden = supervision == "none"
        return TrainingSet(
            items=items if self.network else np.ascontiguousarray(items[:]),
            affinity=_no_supervision if hidden else affinity,
            levels=tuple(int(level) for level in self.affinity.levels),
            labels=None if hidden or self.labels is None else self.labels[rows],
            network=self.network,
            weights=self.weights,
            average_precision=None if self.affinity.of_queries_only else self.average_precision(affinity),
            **more,
        )

    def pair_affinity(self, rows):
        """Affinity of items named by their places in `rows`, int64 (i, j), as a training set wants it.

        Of a kind that relates queries to the database only, a function that raises `Refusal`.
        """
        if self.affinity.of_queries_only:
            return _nothing_to_learn_from
        if self.affinity.from_features and len(rows) ** 2 <= MOST_KEPT_PAIRS:
            kept = self._all_pairs(rows)
            return lambda i, j: kept[np.ix_(i, j)].astype(np.int64)
        return lambda i, j: self.affinity.block(rows[i], rows[j])

    def average_precision(self, affinity):
        """AP_T of codes of some items, as a training set wants it. affinity: of the items, as its own."""
        levels = tuple(int(level) for level in self.affinity.levels)

        def average_precision(codes, places, bits):
            query, database = places
            blocks = AffinityBlocks(lambda begin, end: affinity(query[begin:end], database), levels)
            return score_codes(codes[0], codes[1], bits, blocks).means["ap"]

        return average_precision

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


def _no_supervision(i, j):
    raise ValueError(
        "a method whose `supervision` is 'none' is given no affinities: state what it learns from"
    )


def _nothing_to_learn_from(i, j):
    raise Refusal("the affinity of this protocol is of queries with the database: none among training items")


def _count(labels, rows):
    """Items of each class of a dataset, or with each label, among some of its items."""
    if labels.ndim == 2:
        return labels[rows].sum(axis=0, dtype=np.int64)
    classes = np.unique(labels)
    return np.bincount(np.searchsorted(classes, labels[rows]), minlength=len(classes))


class Rows:
    """Rows of a memory-mapped array, read when indexed: a database is never copied whole."""

    def __init__(self, items, rows):
        self.items, self.rows = items, rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, part):
        return self.items[self.rows[part]]


def append_json_line(file, record):
    """Add one record to an open .jsonl file, at once: progress can be followed while it is made.

    A scalar of NumPy or of PyTorch is its number. JSON has no word for what is not finite: null. Raises
    TypeError, with the key, for a value that JSON cannot hold.
    """
    known = {}
    for key, value in record.items():
        value = value.item() if getattr(value, "ndim", None) == 0 else value
        known[key] = None if isinstance(value, float) and not math.isfinite(value) else value
        try:
            json.dumps(known[key])
        except TypeError as error:
            raise TypeError(f"the record that a method logged: {key}: {error}") from None
    file.write(json.dumps(known, sort_keys=True) + "\n")
    file.flush()
