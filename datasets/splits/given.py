"""Parts of the split that a dataset comes with: one value or a list, as numbers or names."""

from collections.abc import Mapping

import numpy as np

from datasets._description import Description
from datasets._specification import positive
from datasets.splits import Split, require_labels
from datasets.splits._drawing import ALL_LABELS, shuffled
from tiebench.messages import did_you_mean

NEEDS = {
    "query": "part or parts of the queries",
    "database": "part or parts of the database",
    "training": "all of the database, {per_class: k} or {random: k} of it, or {split: part or parts}",
}
OPTIONS: dict[str, str] = {}
LABELS = ALL_LABELS


def _values(value: object, key: str, description: Description) -> list[int]:
    """Values of the given split that `value` means: one or a list of numbers or names."""
    where = f"split: key '{key}'"
    present = np.unique(description.given_split)
    names = description.split_names or []
    known = [description.split_name(int(number)) for number in present]
    found = []
    for one in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(one, str) and one in names:
            one = names.index(one)
        if isinstance(one, bool) or not isinstance(one, (int, np.integer)) or one not in present:
            raise ValueError(
                f"{where}: the dataset's own split has no part {one!r}{did_you_mean(one, known)}"
            )
        found.append(int(one))
    if not found:
        raise ValueError(f"{where}: names no part of the dataset's own split; known: {', '.join(known)}")
    return found


def check(spec: Mapping, description: Description) -> None:
    if description.given_split is None:
        raise ValueError("split: kind 'given' needs a dataset that comes with a split, this one has none")
    query, database = (_values(spec[key], key, description) for key in ("query", "database"))
    for value in query:
        if value in database:
            raise ValueError(f"split: part {description.split_name(value)} is both in query and in database")
    training = spec["training"]
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
        for value in _values(amount, "training.split", description):
            if value in query:
                raise ValueError(
                    f"split: part {description.split_name(value)} is both in query and in training"
                )
        return
    positive(amount, f"split: key 'training.{way}'")
    available = np.isin(description.given_split, database)
    if way == "random":
        if amount > np.count_nonzero(available):
            raise ValueError(
                f"split: training.random asks for {amount} of the {np.count_nonzero(available)} items "
                "of the database"
            )
        return
    require_labels(description, ("classes",), "training.per_class")
    for value in np.unique(description.labels):
        count = np.count_nonzero(available & (description.labels == value))
        if amount > count:
            raise ValueError(
                f"split: training.per_class asks for {amount} items of class "
                f"{description.class_name(int(value))}, of which the database has {count}"
            )


def draw(spec: Mapping, description: Description, generator: np.random.Generator) -> Split:
    def rows_of(value: object, key: str) -> np.ndarray:
        return np.flatnonzero(np.isin(description.given_split, _values(value, key, description)))

    query, database = (rows_of(spec[key], key) for key in ("query", "database"))
    training = spec["training"]
    if training == "all":
        return Split(query, database, database)
    ((way, amount),) = training.items()
    if way == "split":
        return Split(query, database, rows_of(amount, "training.split"))
    if way == "random":
        return Split(query, database, shuffled(database, generator)[:amount])
    classes = description.labels[database]
    drawn = [
        shuffled(database[classes == value], generator)[:amount] for value in np.unique(description.labels)
    ]
    return Split(query, database, np.concatenate(drawn))
