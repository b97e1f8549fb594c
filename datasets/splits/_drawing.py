"""What several kinds of split share: random orders, sizes, and the parts that are left over."""

from collections.abc import Mapping

import numpy as np

from datasets.description import Description
from datasets.specification import positive, present
from datasets.splits import Split
from tiebench.messages import did_you_mean


def shuffled(rows: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """`rows` in random order, from the raw output of the generator; see `datasets.splits.draw`."""
    return rows[np.argsort(generator.bit_generator.random_raw(len(rows)), kind="stable")]


def number_or_all(spec: Mapping, key: str) -> int | None:
    """The positive integer at `key`, or None for `all`; raises ValueError for anything else."""
    return None if spec[key] == "all" else positive(spec[key], f"split: key '{key}'", " or 'all'")


def training_in_database(spec: Mapping) -> bool:
    """Whether the training set lies in the database; raises ValueError where that cannot be."""
    inside = spec.get("training_in_database", True)
    if not isinstance(inside, bool):
        raise ValueError(f"split: key 'training_in_database' must be true or false, not {inside!r}")
    if not inside and spec["training"] == "all":
        raise ValueError(
            "split: training: all and training_in_database: false leave nothing to the database; "
            "give a number of training items"
        )
    return inside


def sizes(spec: Mapping) -> tuple[int, int | None, bool]:
    """Queries, training items (None: all), and whether these lie in the database; raises ValueError."""
    query, training = positive(spec["query"], "split: key 'query'"), number_or_all(spec, "training")
    return query, training, training_in_database(spec)


def number_of_folds(spec: Mapping) -> int:
    """The number at key `folds`; raises ValueError for less than two."""
    number = positive(spec["folds"], "split: key 'folds'")
    if number < 2:
        raise ValueError("split: key 'folds' must be at least 2; leave it out for one split")
    return number


def check_fold(spec: Mapping, count: int | None) -> None:
    """Raise ValueError where a specification names a fold that does not exist. count: how many there are."""
    if "fold" not in spec:
        return
    fold = positive(spec["fold"], "split: key 'fold'")
    if count is None:
        raise ValueError("split: key 'fold' needs the key 'folds'")
    if fold > count:
        raise ValueError(f"split: fold {fold} does not exist, there are {count}")


def disjoint_folds(spec: Mapping) -> int | None:
    """Number of folds with queries and training items of their own; None for one split.

    No query of one fold is a training item of another: what is chosen on the training set of one serves all.
    Raises ValueError as `number_of_folds`, and where the training items are not a number.
    """
    if "folds" not in spec:
        return None
    if spec.get("training") == "all":
        raise ValueError(
            "split: key 'folds' needs a number of training items: those of a fold are no queries of another"
        )
    return number_of_folds(spec)


def drawn_before(spec: Mapping) -> int:
    """How many of the items in random order belong to earlier folds: their queries and training items."""
    return (spec.get("fold", 1) - 1) * (spec["query"] + spec["training"]) if "folds" in spec else 0


def labels_of(description: Description) -> np.ndarray:
    """The labels of a dataset that has some; raises ValueError for another."""
    return present(description.labels, "split: labels")


def given_split(description: Description) -> np.ndarray:
    """The given split of a dataset that comes with one; raises ValueError for another."""
    return present(description.given_split, "split: a split that the dataset comes with")


def part_values(value: object, key: str, description: Description) -> list[int]:
    """Values of the given split that `value` means: one or a list of numbers or names. Raises ValueError."""
    where = f"split: key '{key}'"
    own = np.unique(given_split(description))
    names = description.split_names or []
    known = [description.split_name(int(number)) for number in own]
    found = []
    for one in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(one, str) and one in names:
            one = names.index(one)
        if isinstance(one, bool) or not isinstance(one, (int, np.integer)) or one not in own:
            raise ValueError(
                f"{where}: the dataset's own split has no part {one!r}{did_you_mean(one, known)}"
            )
        found.append(int(one))
    if not found:
        raise ValueError(f"{where}: names no part of the dataset's own split; known: {', '.join(known)}")
    return found


def require_rest(rest: int) -> None:
    """Raise ValueError unless `rest`, the size of the database, is positive."""
    if rest < 1:
        raise ValueError("split: query and training leave nothing to the database; ask for fewer")


def asked(query: int, training: int | None, folds: int | None = None) -> str:
    """What all folds together ask for, for messages; training None: all; folds None: one split."""
    total = f"{query}" if training is None else f"{query} + {training}"
    if folds is None:
        return f"query + training asks for {total}"
    return f"folds x (query + training) asks for {folds} x ({total})"


def parts(
    available: np.ndarray, query: list[np.ndarray], training: list[np.ndarray] | None, inside: bool
) -> Split:
    """The split of the rows that the mask `available` (n,) leaves in.

    query, training: rows, class by class; training None: all but the queries.
    """
    rest, queries = available.copy(), np.concatenate(query)
    rest[queries] = False
    learnt = np.flatnonzero(rest) if training is None else np.concatenate(training)
    if training is not None and not inside:
        rest[learnt] = False
    return Split(queries, np.flatnonzero(rest), learnt)
