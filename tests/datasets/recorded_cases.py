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


# name -> (kind of labels, specification, seed)
SPLITS = {
    "per_class": ("classes", {"kind": "per_class", "query": 5, "training": 20}, 0),
    "per_class, all": ("classes", {"kind": "per_class", "query": 5, "training": "all"}, 3),
    "per_class, outside": (
        "classes",
        {"kind": "per_class", "query": 5, "training": 20, "training_in_database": False},
        1,
    ),
    "per_label": ("multi-hot", {"kind": "per_label", "query": 4, "training": 9}, 0),
    "per_label, columns": (
        "multi-hot",
        {"kind": "per_label", "query": 4, "training": 9, "order": "columns"},
        2,
    ),
    "random": ("none", {"kind": "random", "query": 50, "training": 100}, 0),
    "random, database": (
        "none",
        {"kind": "random", "query": 50, "training": 100, "database": 200, "training_in_database": False},
        5,
    ),
    "given, all": ("none", {"kind": "given", "query": "test", "database": "train", "training": "all"}, 0),
    "given, per_class": (
        "classes",
        {"kind": "given", "query": 0, "database": [1, 2], "training": {"per_class": 9}},
        4,
    ),
    "given, random": (
        "none",
        {"kind": "given", "query": "test", "database": ["train", "extra"], "training": {"random": 90}},
        6,
    ),
    "given, split": (
        "none",
        {"kind": "given", "query": "test", "database": "train", "training": {"split": "extra"}},
        0,
    ),
    "unseen_classes, folds": (
        "classes",
        {"kind": "unseen_classes", "folds": 3, "fold": 2, "query": 5, "training": 20},
        7,
    ),
    "unseen_classes, all": (
        "classes",
        {
            "kind": "unseen_classes",
            "unseen": [[0, 1], [2, 3], [4, 5, 6]],
            "fold": 3,
            "query": 5,
            "training": "all",
            "database": "all",
        },
        7,
    ),
}

# name -> (kind of labels, specification)
AFFINITIES = {
    "class": ("classes", {"kind": "class"}),
    "shared_label": ("multi-hot", {"kind": "shared_label"}),
    "shared_labels": ("multi-hot", {"kind": "shared_labels"}),
    "distance_levels": (
        "none",
        {"kind": "distance_levels", "percentiles": [5, 1, 0.2, 0.1], "levels": [1, 2, 5, 10]},
    ),
    "neighbours": ("none", {"kind": "neighbours", "k": 10}),
    "neighbours, cosine": ("classes", {"kind": "neighbours", "k": 3, "distance": "cosine"}),
    "judgements": ("none", {"kind": "judgements"}),
}
TRAINING = np.arange(0, ITEMS, 2)
# Of affinities that relate queries to the database.
QUERY, DATABASE = np.arange(0, ITEMS, 3), np.flatnonzero(np.arange(ITEMS) % 3)
ROWS, COLUMNS = np.arange(0, ITEMS, 3), np.arange(ITEMS)
