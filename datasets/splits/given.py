"""Parts of the split that a dataset comes with: one value or a list, as numbers or names."""

from collections.abc import Mapping

import numpy as np

from datasets.description import Description
from datasets.specification import positive
from datasets.splits import Split, require_labels
from datasets.splits._drawing import (
    given_split,
    labels_of,
    part_values,
    require_rest,
    shuffled,
    training_in_database,
)
from tiebench.messages import did_you_mean

NEEDS = {
    "query": "part or parts of the queries",
    "database": "part or parts of the database",
    "training": "all of the database, {per_class: k} or {random: k} of it, or {split: part or parts}",
}
OPTIONS = {
    "training_in_database": "false keeps the training set out of the database (default true); of "
    "{per_class: k} and {random: k}"
}
LABELS = ("classes", "multi-hot", "none")


def check(spec: Mapping, description: Description) -> None:
    if description.given_split is None:
        raise ValueError("split: kind 'given' needs a dataset that comes with a split, this one has none")
    query, database = (part_values(spec[key], key, description) for key in ("query", "database"))
    for value in query:
        if value in database:
            raise ValueError(f"split: part {description.split_name(value)} is both in query and in database")
    training, inside = spec["training"], training_in_database(spec)
    if training == "all":
        return
    ways = ("per_class", "random", "split")
    if not isinstance(training, Mapping) or len(training) != 1:
        raise ValueError(
            "split: key 'training' must be all, {per_class: k}, {random: k} or {split: value} "
            f"for kind 'given', not {training!r}"
        )
    ((way, amount),) = training.items()
    if way not in ways:
        raise ValueError(f"split: unknown key {way!r} in training{did_you_mean(way, ways)}")
    if way == "split":
        if "training_in_database" in spec:
            raise ValueError(
                "split: key 'training_in_database' is of training: {per_class: k} and {random: k}; with "
                "{split: …} the key 'database' says what the database holds"
            )
        for value in part_values(amount, "training.split", description):
            if value in query:
                raise ValueError(
                    f"split: part {description.split_name(value)} is both in query and in training"
                )
        return
    positive(amount, f"split: key 'training.{way}'")
    available = np.isin(given_split(description), database)
    size = int(np.count_nonzero(available))
    if way == "random":
        if amount > size:
            raise ValueError(f"split: training.random asks for {amount} of the {size} items of the database")
        require_rest(size - (0 if inside else amount))
        return
    require_labels(description, ("classes",), "training.per_class")
    labels = labels_of(description)
    classes = np.unique(labels)
    for value in classes:
        count = np.count_nonzero(available & (labels == value))
        if amount > count:
            raise ValueError(
                f"split: training.per_class asks for {amount} items of class "
                f"{description.class_name(int(value))}, of which the database has {count}"
            )
    require_rest(size - (0 if inside else amount * len(classes)))


def draw(spec: Mapping, description: Description, generator: np.random.Generator) -> Split:
    def rows_of(value: object, key: str) -> np.ndarray:
        return np.flatnonzero(np.isin(given_split(description), part_values(value, key, description)))

    query, database = (rows_of(spec[key], key) for key in ("query", "database"))
    training = spec["training"]
    if training == "all":
        return Split(query, database, database)
    ((way, amount),) = training.items()
    if way == "split":
        return Split(query, database, rows_of(amount, "training.split"))
    if way == "random":
        drawn = shuffled(database, generator)[:amount]
    else:
        labels = labels_of(description)
        classes = labels[database]
        drawn = np.concatenate(
            [shuffled(database[classes == value], generator)[:amount] for value in np.unique(labels)]
        )
    kept = database if training_in_database(spec) else np.setdiff1d(database, drawn, assume_unique=True)
    return Split(query, kept, drawn)
