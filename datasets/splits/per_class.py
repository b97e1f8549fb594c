"""A number of queries and training items of each class, at random; the database is all items but the queries.

Setting 1 of CIFAR-10 in "Hashing as Tie-Aware Learning to Rank" (He et al., CVPR 2018).
"""

from collections.abc import Mapping

import numpy as np

from datasets.description import Description
from datasets.specification import positive
from datasets.splits import Split
from datasets.splits._drawing import (
    asked,
    labels_of,
    number_or_all,
    parts,
    require_rest,
    shuffled,
    training_in_database,
)

NEEDS = {"query": "queries per class", "training": "training items per class, or all"}
OPTIONS = {"training_in_database": "false keeps the training set out of the database (default true)"}
LABELS = ("classes",)
TRAINING_PER_CLASS = True


def check(spec: Mapping, description: Description) -> None:
    query, training = positive(spec["query"], "split: key 'query'"), number_or_all(spec, "training")
    inside = training_in_database(spec)
    values, counts = np.unique(labels_of(description), return_counts=True)
    for value, count in zip(values, counts):
        if query + (training or 0) > count:
            raise ValueError(
                f"split: query + training asks for {asked(query, training)} items of class "
                f"{description.class_name(int(value))}, which has {count}"
            )
    require_rest(description.items - len(values) * (query + (0 if inside else training or 0)))


def draw(spec: Mapping, description: Description, generator: np.random.Generator) -> Split:
    query, training = spec["query"], number_or_all(spec, "training")
    labels, queries, trainings = labels_of(description), [], []
    for value in np.unique(labels):
        rows = shuffled(np.flatnonzero(labels == value), generator)
        queries.append(rows[:query])
        trainings.append(rows[query : query + (training or 0)])
    return parts(
        np.ones(description.items, bool),
        np.concatenate(queries),
        None if training is None else np.concatenate(trainings),
        training_in_database(spec),
    )
