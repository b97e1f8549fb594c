"""The core steps of methods in their usual implementation, by a library where one exists."""

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

_CAPACITY = 2**29  # SciPy's flows are 32-bit integers


class WalkingSearch:
    """BRE's line search as published: items flip one by one in the order of their thresholds, and the errors
    of the pairs that hold one are brought up to date."""

    def __init__(self, partners, targets):
        """partners, targets: int32 (n, k)."""
        items, count = partners.shape
        self.targets = targets
        self.ends = np.repeat(np.arange(items), count)
        self.others = partners.ravel().astype(np.int64)
        both = np.concatenate([self.ends, self.others])
        self.order = np.argsort(both, kind="stable")
        self.starts = np.searchsorted(both[self.order], np.arange(items + 1))

    def costs(self, codes, bit, thresholds, column, first, most):
        """Objective at the first candidates, int64 (most + 1,): before any flip, and after each.

        codes: int64 (n, b), of which `bit` is searched; thresholds, column: float64 (n,); first: codes of
        that bit below all thresholds.
        """
        trial = codes.copy()
        trial[:, bit] = first
        distances = (trial[self.ends] != trial[self.others]).sum(axis=1)
        errors = distances - self.targets.ravel()
        costs = np.empty(most + 1, np.int64)
        costs[0] = (errors**2).sum()
        pairs = len(self.ends)
        for place, item in enumerate(np.argsort(thresholds)[:most]):
            held = self.order[self.starts[item] : self.starts[item + 1]] % pairs
            other = np.where(self.ends[held] == item, self.others[held], self.ends[held])
            # A pair that is there in both directions is held twice.
            step = 1 - 2 * (trial[item, bit] != trial[other, bit])
            costs[place + 1] = costs[place] + (step * (2 * errors[held] + step)).sum()
            errors[held] += step
            trial[item, bit] = 1 - trial[item, bit]
        return costs


def cut_blocks(pairs, blocks, codes, weights):
    """One pass over blocks, each by one minimum cut of the whole block; codes float64 (n,), in place."""
    for block in blocks:
        place = np.full(pairs.items, -1)
        place[block] = np.arange(len(block))
        one, other = place[pairs.first], place[pairs.second]
        pulls = np.zeros(pairs.items)
        out = (one < 0) != (other < 0)
        first, second, weight = pairs.first[out], pairs.second[out], weights[out]
        np.add.at(pulls, first, weight * codes[second])
        np.add.at(pulls, second, weight * codes[first])
        pulls = pulls[block]
        inside = (one >= 0) & (other >= 0)
        codes[block] = _minimum_cut(pulls, one[inside], other[inside], np.maximum(-2 * weights[inside], 0))
    return codes


def _minimum_cut(pulls, first, second, capacities):
    size = len(pulls)
    every, source, sink = np.arange(size), np.full(size, size), np.full(size, size + 1)
    to_item, to_sink = np.maximum(2 * pulls, 0), np.maximum(-2 * pulls, 0)
    most = max(min(to_item.sum(), to_sink.sum()), 1e-9)
    arcs = np.concatenate([capacities, capacities, to_item, to_sink])
    arcs = np.rint(np.minimum(arcs, most) * (_CAPACITY / most)).astype(np.int32)
    tails = np.concatenate([first, second, source, every])
    heads = np.concatenate([second, first, every, sink])
    network = csr_array((arcs, (tails, heads)), shape=(size + 2, size + 2))
    residual = network - maximum_flow(network, size, size + 1).flow
    residual.eliminate_zeros()
    reached = breadth_first_order(residual, size, return_predecessors=False)
    result = np.ones(size + 2)
    result[reached] = -1
    return result[:size]


def planned_ranking(high, low, discounts, ideal):
    """m (P,) of the ranking of most loss + w' psi by dynamic programming over all places, in NumPy."""
    count, others = len(high), len(low)
    sums = np.concatenate([[0.0], np.cumsum(low)])
    places = np.arange(others + 1)
    best, choices = np.zeros(others + 1), np.empty((count, others + 1), np.int64)
    for j in range(count):
        top = np.maximum.accumulate(best)
        choices[j] = np.maximum.accumulate(np.where(best == top, places, 0))
        margin = (others - 2 * places) * high[j] - (sums[-1] - 2 * sums)
        best = top + margin / (count * others) - discounts[j + places] / ideal
    above = np.empty(count, np.int64)
    m = int(best.argmax())
    for j in range(count - 1, -1, -1):
        above[j] = m
        m = choices[j, m]
    return above


def triplets_by_autograd(anchors, table, positives, negatives, margin):
    """Sum of -ln sigmoid(T) over all triplets, and its gradient by the anchors: every triplet written out."""
    anchors = anchors.detach().requires_grad_()
    groups = anchors[:, None, None]
    toward = (groups * table[torch.from_numpy(positives).long()]).sum(3) / 2
    away = (groups * table[torch.from_numpy(negatives).long()]).sum(3) / 2
    total = -torch.nn.functional.logsigmoid(toward[..., :, None] - away[..., None, :] - margin).sum()
    total.backward()
    return total.item(), anchors.grad
