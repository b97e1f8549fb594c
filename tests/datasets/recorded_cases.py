"""Splits and affinities of fixed inputs, whose bytes are recorded in recorded.json.

Inputs are made by formulas, not by NumPy's generators, whose streams may change between releases.
"""

from pathlib import Path

import numpy as np

from datasets import affinity
from datasets.description import Description

ITEMS = 600
_NUMBERS = (np.arange(ITEMS, dtype=np.int64) * 7919 + 13) % 6007


def description(labels: str) -> Description:
    """600 items with classes, multi-hot labels or none, and a split of three named parts."""
    values = {
        "classes": _NUMBERS % 7,
        "multi-hot": np.stack([_NUMBERS % divisor == 0 for divisor in (2, 3, 5, 7)], 1).astype(np.uint8),
        "none": None,
    }[labels]
    given = (_NUMBERS // 7) % 3
    return Description(ITEMS, values, given, None, (3,), "vectors", ["test", "train", "extra"])


def features() -> np.ndarray:
    """float32 (600, 3)."""
    return np.stack([_NUMBERS % 97, _NUMBERS % 89 * 0.5, _NUMBERS % 83 * 0.25], 1).astype(np.float32)


def made_affinity(name: str, folder: Path):
    """The affinity of a case; folder: an empty one for the files of its dataset."""
    labels, spec = AFFINITIES[name]
    np.save(folder / "items.npy", features())
    pairs = np.unique(_NUMBERS[:300] % (ITEMS * ITEMS // 3) * 389 % (ITEMS * ITEMS // 3))
    row, column = divmod(pairs, ITEMS)
    np.save(folder / "judgements.npy", np.stack([3 * row, column, _NUMBERS[: len(pairs)] % 4], axis=1))
    return affinity.make(
        spec, description(labels).labels, features(), TRAINING, None, folder, QUERY, DATABASE
    )


PER_CLASS = {"kind": "per_class", "query": 5, "training": 20}
PER_LABEL = {"kind": "per_label", "query": 4, "training": 9}
RANDOM = {"kind": "random", "query": 50, "training": 100}
GIVEN = {"kind": "given", "query": "test", "database": "train", "training": "all"}
UNSEEN = {"kind": "unseen_classes", "query": 5, "training": 20}
LISTS = {"unseen": [[0, 1], [2, 3], [4, 5, 6]], "fold": 3, "training": "all", "database": "all"}
OUTSIDE = {"training_in_database": False}

# name -> (kind of labels, specification, seed)
SPLITS = {
    "per_class": ("classes", PER_CLASS, 0),
    "per_class, all": ("classes", PER_CLASS | {"training": "all"}, 3),
    "per_class, outside": ("classes", PER_CLASS | OUTSIDE, 1),
    "per_label": ("multi-hot", PER_LABEL, 0),
    "per_label, all": ("multi-hot", PER_LABEL | {"training": "all"}, 1),
    "per_label, columns": ("multi-hot", PER_LABEL | {"order": "columns"}, 2),
    "random": ("none", RANDOM, 0),
    "random, database": ("none", RANDOM | {"database": 200} | OUTSIDE, 5),
    "given, all": ("none", GIVEN, 0),
    "given, per_class": (
        "classes",
        GIVEN | {"query": 0, "database": [1, 2], "training": {"per_class": 9}},
        4,
    ),
    "given, random": ("none", GIVEN | {"database": ["train", "extra"], "training": {"random": 90}}, 6),
    "given, split": ("none", GIVEN | {"training": {"split": "extra"}}, 0),
    "unseen_classes, folds": ("classes", UNSEEN | {"folds": 3, "fold": 2}, 7),
    "unseen_classes, all": ("classes", UNSEEN | LISTS, 7),
}

LEVELS = {"percentiles": [5, 1, 0.2, 0.1], "levels": [1, 2, 5, 10]}
# name -> (kind of labels, specification)
AFFINITIES = {
    "class": ("classes", {"kind": "class"}),
    "shared_label": ("multi-hot", {"kind": "shared_label"}),
    "shared_labels": ("multi-hot", {"kind": "shared_labels"}),
    "distance_levels": ("none", {"kind": "distance_levels"} | LEVELS),
    "neighbours": ("none", {"kind": "neighbours", "k": 10}),
    "neighbours, cosine": ("classes", {"kind": "neighbours", "k": 3, "distance": "cosine"}),
    "judgements": ("none", {"kind": "judgements"}),
}
TRAINING = np.arange(0, ITEMS, 2)
# Of affinities that relate queries to the database.
QUERY, DATABASE = np.arange(0, ITEMS, 3), np.flatnonzero(np.arange(ITEMS) % 3)
ROWS, COLUMNS = np.arange(0, ITEMS, 3), np.arange(ITEMS)
