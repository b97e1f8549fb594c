"""A number of queries and training items of each class, at random; the database is all items but the queries.

Setting 1 of CIFAR-10 in "Hashing as Tie-Aware Learning to Rank" (He et al., CVPR 2018).
"""

from collections.abc import Mapping

import numpy as np

from datasets.description import Description
from datasets.splits import Split
from datasets.splits._drawing import (
    asked,
    check_fold,
    disjoint_folds,
    drawn_before,
    labels_of,
    parts,
    require_rest,
    shuffled,
    sizes,
)

NEEDS = {"query": "queries per class", "training": "training items per class, or all"}
OPTIONS = {
    "training_in_database": "false keeps the training set out of the database (default true)",
    "folds": "number of splits without common queries or training items; the first is that without folds",
    "fold": "the one fold that is meant, from 1; without it, a protocol consists of all folds",
}
LABELS = ("classes",)
TRAINING_PER_CLASS = True


def folds(spec: Mapping) -> int | None:
    return disjoint_folds(spec)


def check(spec: Mapping, description: Description) -> None:
    query, training, inside = sizes(spec)
    number = folds(spec)
    check_fold(spec, number)
    values, counts = np.unique(labels_of(description), return_counts=True)
    for value, count in zip(values, counts):
        if (number or 1) * (query + (training or 0)) > count:
            raise ValueError(
                f"split: {asked(query, training, number)} items of class "
                f"{description.class_name(int(value))}, which has {count}"
            )
    require_rest(description.items - len(values) * (query + (0 if inside else training or 0)))


def draw(spec: Mapping, description: Description, generator: np.random.Generator) -> Split:
    query, training, inside = sizes(spec)
    labels, queries, trainings = labels_of(description), [], []
    for value in np.unique(labels):
        rows = np.roll(shuffled(np.flatnonzero(labels == value), generator), -drawn_before(spec))
        queries.append(rows[:query])
        trainings.append(rows[query : query + (training or 0)])
    return parts(np.ones(description.items, bool), queries, None if training is None else trainings, inside)
