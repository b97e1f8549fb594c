"""Learn from some classes, search among the others; over the folds each class is unseen once.

Sablayrolles, Douze, Usunier, Jégou. How Should We Evaluate Supervised Hashing? ICASSP 2017.
"""

from collections.abc import Mapping

import numpy as np

from datasets.description import Description
from datasets.specification import positive
from datasets.splits import Split
from datasets.splits._drawing import (
    check_fold,
    given_split,
    labels_of,
    number_of_folds,
    number_or_all,
    part_values,
    shuffled,
)
from tiebench.messages import did_you_mean

NEEDS = {
    "query": "queries per unseen class, or {split: part or parts} of the dataset's own split",
    "training": "training items per seen class, or all that are not queries",
}
OPTIONS = {
    "folds": "number of folds, each with an equal share of the classes unseen, drawn at random",
    "unseen": "instead of folds: the unseen classes of each fold, as lists of numbers or names",
    "database": "unseen (default): the unseen classes' items that are not queries; all: of all classes",
    "fold": "the one fold that is meant, from 1; without it, a protocol consists of all folds",
}
LABELS = ("classes",)
UNSEEN = True
TRAINING_PER_CLASS = True


def folds(spec: Mapping) -> int:
    """Number of folds of a specification, which may have mistakes. Raises ValueError."""
    if ("folds" in spec) == ("unseen" in spec):
        raise ValueError("split: kind 'unseen_classes' needs one of the keys 'folds' and 'unseen'")
    if "unseen" not in spec:
        return number_of_folds(spec)
    lists = spec["unseen"]
    if not isinstance(lists, (list, tuple)) or not lists or not all(isinstance(one, list) for one in lists):
        raise ValueError("split: key 'unseen' must be a list of lists of classes, one for each fold")
    return len(lists)


def check(spec: Mapping, description: Description) -> None:
    count, database = folds(spec), spec.get("database", "unseen")
    if database not in ("unseen", "all"):
        raise ValueError(f"split: unknown database {database!r}{did_you_mean(database, ('unseen', 'all'))}")
    check_fold(spec, count)
    training = number_or_all(spec, "training")
    labels = labels_of(description)
    values = np.unique(labels)
    for unseen in _unseen_classes(spec, description, np.random.Generator(np.random.PCG64(0))):
        if not 2 <= len(unseen) <= len(values) - 2:
            raise ValueError(
                f"split: a fold has {len(unseen)} of the {len(values)} classes unseen; at least 2 must be "
                "unseen, to be told apart, and 2 seen"
            )
    own = _own_queries(spec, description)
    for value in values:
        of_class = labels == value
        name, size = description.class_name(int(value)), np.count_nonzero(of_class)
        query = spec["query"] if own is None else np.count_nonzero(of_class & own)
        # An item of the database besides the queries: `training` items are of classes that are seen then.
        if query + max(1, training or 0) > size:
            raise ValueError(
                f"split: query + training asks for {query} + {max(1, training or 0)} items of class {name}, "
                f"which has {size}"
            )
        if query < 1:
            raise ValueError(f"split: key 'query': class {name} has no items in this part")


def draw(spec: Mapping, description: Description, generator: np.random.Generator) -> Split:
    if "fold" not in spec and folds(spec) > 1:
        raise ValueError(f"split: key 'fold' is missing: which of the {folds(spec)} folds is to be drawn")
    labels, training = labels_of(description), number_or_all(spec, "training")
    own = _own_queries(spec, description)
    is_query, to_learn = np.zeros(len(labels), bool), np.zeros(len(labels), bool)
    # Items first, then classes: an item has the same part in every fold, and with every list of classes.
    for value in np.unique(labels):
        rows = shuffled(np.flatnonzero(labels == value), generator)
        if own is None:
            query, rest = rows[: spec["query"]], rows[spec["query"] :]
        else:
            query, rest = rows[own[rows]], rows[~own[rows]]
        is_query[query] = True
        to_learn[rest[:training]] = True
    unseen = np.isin(labels, _unseen_classes(spec, description, generator)[spec.get("fold", 1) - 1])
    among = unseen if spec.get("database", "unseen") == "unseen" else np.ones(len(labels), bool)
    query, database, learnt = is_query & unseen, among & ~is_query, to_learn & ~unseen
    return Split(*map(np.flatnonzero, (query, database, learnt)))


def _own_queries(spec: Mapping, description: Description) -> np.ndarray | None:
    """Items of the parts of the dataset's own split that queries are of, bool (n,); None for a number."""
    query = spec["query"]
    if not isinstance(query, Mapping):
        positive(query, "split: key 'query'", " or {split: part}")
        return None
    if list(query) != ["split"]:
        raise ValueError(f"split: key 'query' must be a number or {{split: part or parts}}, not {query!r}")
    if description.given_split is None:
        raise ValueError("split: key 'query.split' needs a dataset with a split of its own, this has none")
    return np.isin(given_split(description), part_values(query["split"], "query.split", description))


def _unseen_classes(
    spec: Mapping, description: Description, generator: np.random.Generator
) -> list[list[int]]:
    """The unseen classes of each fold; those that are not listed are drawn, in shares that differ by one."""
    values = np.unique(labels_of(description))
    if "unseen" not in spec:
        drawn = np.array_split(shuffled(values, generator), spec["folds"])
        return [sorted(part.tolist()) for part in drawn]
    names = [description.class_name(int(value)) for value in values]
    result: list[list[int]] = []
    for one in spec["unseen"]:
        result.append([])
        for item in one:
            if isinstance(item, str) and item in names:
                item = int(values[names.index(item)])
            if isinstance(item, bool) or not isinstance(item, int) or item not in values:
                raise ValueError(f"split: key 'unseen': no class is {item!r}{did_you_mean(item, names)}")
            if any(item in other for other in result):
                raise ValueError(
                    f"split: key 'unseen': class {description.class_name(item)} is listed twice; a class is "
                    "unseen in one fold, so that a query belongs to one"
                )
            result[-1].append(item)
    return result
