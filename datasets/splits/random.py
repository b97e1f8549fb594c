"""Queries, database and training set at random, whatever the labels.

LabelMe in "Hashing as Tie-Aware Learning to Rank" (He et al., CVPR 2018).
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
    number_or_all,
    shuffled,
    sizes,
)

NEEDS = {"query": "number of queries", "training": "number of training items, or all"}
OPTIONS = {
    "database": "size of the database, or all (default)",
    "training_in_database": "false keeps the training set out of the database (default true)",
    "folds": "number of splits without common queries or training items; the first is that without folds",
    "fold": "the one fold that is meant, from 1; without it, a protocol consists of all folds",
}
LABELS = ("classes", "multi-hot", "none")


def folds(spec: Mapping) -> int | None:
    return disjoint_folds(spec)


def check(spec: Mapping, description: Description) -> None:
    query, training, inside = sizes(spec)
    number = folds(spec)
    check_fold(spec, number)
    if number and number * (query + (training or 0)) > description.items:
        raise ValueError(
            f"split: {asked(query, training, number)} items of a dataset that has {description.items}"
        )
    database = number_or_all(spec, "database") if "database" in spec else None
    if inside and training is not None and database is not None and training > database:
        raise ValueError(
            f"split: training asks for {training} of the {database} items of the database; "
            "ask for fewer, or set training_in_database: false"
        )
    outside = 0 if inside or training is None else training
    needed = query + outside + (database or (1 if training is None or not inside else training))
    if needed > description.items:
        parts = [str(query)] + ([str(outside)] if outside else [])
        parts.append(str(needed - query - outside))
        raise ValueError(
            f"split: query, training and database ask for {' + '.join(parts)} items of a dataset "
            f"that has {description.items}"
        )


def draw(spec: Mapping, description: Description, generator: np.random.Generator) -> Split:
    query, training, inside = sizes(spec)
    rows = np.roll(shuffled(np.arange(description.items), generator), -drawn_before(spec))
    queries, rest = rows[:query], rows[query:]
    # Training comes first, so that its items stay the same whatever the size of the database.
    database = rest if inside else rest[training:]
    if "database" in spec:
        database = database[: number_or_all(spec, "database")]
    return Split(queries, database, database if training is None else rest[:training])
