"""Pairs of training items that are known to be similar or dissimilar, and blocks that hold no dissimilar one.

Two-step methods learn from a sample of pairs. A block is a set of items without a dissimilar pair: inside it
every weight of the binary quadratic problem pulls items together, so that a graph cut solves it exactly
(Lin et al., CVPR 2014, section 3.1).
"""

from dataclasses import dataclass

import numpy as np

from methods.base import Refusal
from methods.base.supervision import affinity_blocks


@dataclass(frozen=True)
class Pairs:
    """Unordered pairs of `items` training items, each once.

    first, second: int32 (p,), first < second; similar: bool (p,).
    """

    items: int
    first: np.ndarray
    second: np.ndarray
    similar: np.ndarray

    def __len__(self):
        return len(self.first)

    def sums(self, values):
        """For every item the sum of `values` (p,) over the pairs it is in: float64 (items,)."""
        return np.bincount(self.first, values, self.items) + np.bincount(self.second, values, self.items)


def sample_pairs(training_set, similar, dissimilar, generator):
    """For every item up to `similar` similar and up to `dissimilar` dissimilar others, drawn without
    replacement; the pairs of all items together, so that an item is in more of them than it drew.

    Similar is affinity > 0. Raises `Refusal` if there is no similar or no dissimilar pair.
    """
    items = len(training_set)
    drawn = []
    for rows, affinity in affinity_blocks(training_set, np.arange(items)):
        for row, relations in zip(rows, affinity > 0):
            for wanted, most in ((True, similar), (False, dissimilar)):
                others = np.flatnonzero(relations == wanted)
                others = others[others != row]
                if len(others) > most:
                    others = generator.choice(others, most, replace=False)
                keys = np.minimum(row, others) * items + np.maximum(row, others)
                drawn.append(2 * keys + wanted)
    # A plain sort is several times faster here than the hash table behind np.unique.
    keys = np.sort(np.concatenate(drawn)) if drawn else np.empty(0, np.int64)
    keys = keys[np.diff(keys, prepend=-1) > 0]
    pairs = Pairs(
        items, (keys // 2 // items).astype(np.int32), (keys // 2 % items).astype(np.int32), keys % 2 == 1
    )
    for name, there in (("similar", pairs.similar.any()), ("dissimilar", not pairs.similar.all())):
        if not there:
            raise Refusal(f"the training set has no {name} pair: at least two items of each of two classes")
    return pairs


def make_blocks(pairs, labels, generator):
    """Blocks that cover all items: a list of int64 arrays, each ascending.

    With classes (labels int64 (n,)) they are the blocks. Otherwise a block grows from a random item: items
    similar to it first, then the others in random order, join unless they are dissimilar to a member.
    """
    if labels is not None and labels.ndim == 1:
        return [np.flatnonzero(labels == label) for label in np.unique(labels)]
    neighbours = {kind: _neighbours(pairs, pairs.similar == kind) for kind in (True, False)}
    free = np.ones(pairs.items, bool)
    blocks = []
    for root in generator.permutation(pairs.items):
        if not free[root]:
            continue
        near = neighbours[True](root)
        near = generator.permutation(near[free[near]])
        far = free.copy()
        far[near] = False
        far[root] = False
        barred = np.zeros(pairs.items, bool)
        members = []
        for candidate in np.concatenate([[root], near, generator.permutation(np.flatnonzero(far))]):
            if not barred[candidate]:
                members.append(candidate)
                barred[neighbours[False](candidate)] = True
        blocks.append(np.sort(members))
        free[members] = False
    return blocks


def _neighbours(pairs, chosen):
    """Item -> the items it makes one of the chosen pairs with."""
    ends = np.concatenate([pairs.first[chosen], pairs.second[chosen]])
    others = np.concatenate([pairs.second[chosen], pairs.first[chosen]])
    order = np.argsort(ends, kind="stable")
    starts = np.searchsorted(ends[order], np.arange(pairs.items + 1))
    others = others[order]
    return lambda item: others[starts[item] : starts[item + 1]]
