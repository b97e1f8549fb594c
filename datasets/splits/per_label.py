"""A number of queries and training items of each label, one label after the other, for multi-hot labels.

Each label takes items that hold it and that no label before it took; items without labels are left out.
NUS-WIDE in "Hashing as Tie-Aware Learning to Rank" (He et al., CVPR 2018).
"""

from collections.abc import Mapping

import numpy as np

from datasets.description import Description
from datasets.splits import Split
from datasets.splits._drawing import asked, labels_of, parts, require_rest, shuffled, sizes
from tiebench.messages import did_you_mean

NEEDS = {"query": "queries per label", "training": "training items per label, or all"}
OPTIONS = {
    "order": "frequency (most frequent label first, the default) or columns",
    "training_in_database": "false keeps the training set out of the database (default true)",
}
LABELS = ("multi-hot",)


def _label_order(spec: Mapping, labels: np.ndarray) -> np.ndarray:
    """Columns in the order in which they are drawn from; ties of frequency go to the lower column."""
    if spec.get("order", "frequency") == "columns":
        return np.arange(labels.shape[1])
    return np.argsort(-labels.sum(axis=0, dtype=np.int64), kind="stable")


def check(spec: Mapping, description: Description) -> None:
    query, training, inside = sizes(spec)
    order = spec.get("order", "frequency")
    if order not in ("frequency", "columns"):
        raise ValueError(f"split: unknown order {order!r}{did_you_mean(order, ('frequency', 'columns'))}")
    labels, need = labels_of(description), query + (training or 0)
    counts = labels.sum(axis=0, dtype=np.int64)
    reached = np.zeros(description.items, bool)
    for step, column in enumerate(_label_order(spec, labels), start=1):
        name = description.class_name(int(column))
        if need > counts[column]:
            raise ValueError(
                f"split: {asked(query, training)} items of label {name}, which has {counts[column]}"
            )
        reached |= labels[:, column] == 1
        # The items of the first labels are distinct: there must be that many with any of these labels.
        if need * step > np.count_nonzero(reached):
            raise ValueError(
                f"split: {asked(query, training)} items of each of the {step} "
                f"labels up to {name}, which {np.count_nonzero(reached)} items hold together"
            )
    require_rest(int(np.count_nonzero(reached)) - len(counts) * (query + (0 if inside else training or 0)))


def draw(spec: Mapping, description: Description, generator: np.random.Generator) -> Split:
    query, training, inside = sizes(spec)
    labels, need = labels_of(description), query + (training or 0)
    chosen = np.zeros(description.items, bool)
    queries, trainings = [], []
    for column in _label_order(spec, labels):
        candidates = np.flatnonzero((labels[:, column] == 1) & ~chosen)
        if len(candidates) < need:
            raise ValueError(
                f"split: {asked(query, training)} items of label "
                f"{description.class_name(int(column))}, of which the labels before it left {len(candidates)}"
            )
        rows = shuffled(candidates, generator)[:need]
        chosen[rows] = True
        queries.append(rows[:query])
        trainings.append(rows[query:])
    return parts(np.asarray(labels.any(axis=1)), queries, None if training is None else trainings, inside)
