"""What a training set's affinities are: those of single classes, and how many pairs are similar."""

import numpy as np

from methods.base import Refusal

KEPT_PAIRS = 1 << 26
_ROWS_COMPARED = 64
_ROWS_COUNTED = 5000
_ROWS_AT_ONCE = 256


def affinity_blocks(training_set, rows):
    """(some of `rows`, int64 (k,), their affinity with all items, int64 (k, n)), block by block."""
    everything = np.arange(len(training_set))
    for begin in range(0, len(rows), _ROWS_AT_ONCE):
        some = rows[begin : begin + _ROWS_AT_ONCE]
        yield some, training_set.affinity(some, everything)


def kept_matrix(training_set, convert, dtype):
    """convert(affinity) of all pairs, (n, n) of a dtype of one byte, or None where it would exceed 64 MB."""
    items = len(training_set)
    if items**2 > KEPT_PAIRS:
        return None
    kept = np.empty((items, items), dtype)
    for rows, affinity in affinity_blocks(training_set, np.arange(items)):
        kept[rows] = convert(affinity)
    return kept


def similar_to_all(training_set, indices, kept):
    """Whether items of some indices (M,) are similar to all items: bool (M, n). kept: of `kept_matrix`."""
    if kept is not None:
        return kept[indices]
    return training_set.affinity(indices, np.arange(len(training_set))) > 0


def refuse_no_triplets(training_set, convert=np.asarray):
    """Raises `Refusal` unless some item has two levels of convert(affinity) to others: else no item ranks the
    others, and no two pairs of an item differ."""
    last = len(training_set) - 1
    for rows, affinity in affinity_blocks(training_set, np.arange(last + 1)):
        values = convert(affinity)
        others = values[:, :last].copy()  # without the item itself: its place is the last item's
        inner = np.flatnonzero(rows < last)
        others[inner, rows[inner]] = values[inner, last]
        if (others != others[:, :1]).any():
            return
    raise Refusal("every training item has the same affinity to all others: there are no triplets to rank")


def single_classes(training_set):
    """The class of every item, int64 (n,), counted from 0, if affinity is 1 within and 0 across classes.

    Else None: affinity may come from something else than the classes that the items have. They are held
    against each other on up to 64 evenly spaced rows.
    """
    labels = training_set.labels
    if labels is None or labels.ndim != 1:
        return None
    items = len(training_set)
    rows = np.unique(np.linspace(0, items - 1, min(_ROWS_COMPARED, items)).astype(np.int64))
    if not np.array_equal(training_set.affinity(rows, np.arange(items)), labels[rows][:, None] == labels):
        return None
    return np.unique(labels, return_inverse=True)[1]


def similar_share(training_set, seed=0):
    """Share of similar pairs (affinity > 0) among all n^2 ordered pairs, an item with itself included.

    Exact for single classes and for up to 5000 items; else counted on 5000 rows drawn at random by `seed`.
    Raises `Refusal` if different items are all similar, or all dissimilar.
    """
    items = len(training_set)
    classes = single_classes(training_set)
    if classes is not None:
        counted, own, similar = items, items, int((np.bincount(classes) ** 2).sum())
    else:
        rows = np.arange(items)
        if items > _ROWS_COUNTED:
            rows = np.random.default_rng((seed, 1)).choice(items, _ROWS_COUNTED, replace=False)
        counted, own, similar = len(rows), 0, 0
        for some, affinity in affinity_blocks(training_set, rows):
            similar += int(np.count_nonzero(affinity > 0))
            own += int(np.count_nonzero(affinity[np.arange(len(some)), some] > 0))
    if similar == own:
        raise Refusal("no two different training items are similar: there is nothing to pull together")
    if similar - own == counted * (items - 1):
        raise Refusal("all training items are similar to each other: there is nothing to tell apart")
    return similar / (counted * items)
