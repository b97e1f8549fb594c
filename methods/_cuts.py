"""Binary quadratic problems over sampled pairs, lowered block by block with graph cuts.

Lin, Shen, Shi, van den Hengel, Suter. Fast Supervised Hashing with Decision Trees for High-Dimensional Data.
CVPR 2014, section 3.1. The maximum flows are SciPy's.
"""

import numpy as np
from numba import njit
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

# SciPy's flows are 32-bit integers. The capacities out of the source add up to this much, so nothing overflows,
# also where a flow one way is added to a capacity the other way.
_TOTAL_CAPACITY = 2**30 - 1


class BlockCuts:
    """Lowers sum_p a_p z_i z_j + sum_i l_i z_i over z in {-1, +1}^n, p running over pairs (i, j)."""

    def __init__(self, pairs, blocks):
        """pairs: a `Pairs`; blocks: item arrays that cover the items, each item once."""
        self.pairs = pairs
        where = np.empty(pairs.items, np.int64)
        for number, block in enumerate(blocks):
            where[block] = number
        inside = where[pairs.first] == where[pairs.second]
        owner = np.where(inside, where[pairs.first], -1)
        # Every crossing pair is seen from both of its blocks.
        crossing = np.flatnonzero(~inside)
        ends = np.concatenate([pairs.first[crossing], pairs.second[crossing]])
        others = np.concatenate([pairs.second[crossing], pairs.first[crossing]])
        numbers = np.concatenate([crossing, crossing])
        by_block = np.argsort(where[ends], kind="stable")
        bounds = np.searchsorted(where[ends[by_block]], np.arange(len(blocks) + 1))
        inner_order = np.argsort(owner, kind="stable")
        inner_bounds = np.searchsorted(owner[inner_order], np.arange(len(blocks) + 1))
        place = np.empty(pairs.items, np.int64)
        self.blocks = []
        for number, block in enumerate(blocks):
            place[block] = np.arange(len(block))
            inner = inner_order[inner_bounds[number] : inner_bounds[number + 1]]
            outer = by_block[bounds[number] : bounds[number + 1]]
            self.blocks.append(
                _Block(
                    block,
                    inner,
                    place[pairs.first[inner]],
                    place[pairs.second[inner]],
                    numbers[outer].astype(np.int32),
                    place[ends[outer]].astype(np.int32),
                    others[outer].astype(np.int32),
                )
            )

    def objective(self, codes, weights, linear=None):
        """The value of codes, float64 or int8 (n,) in -1, +1."""
        value = weights @ (codes[self.pairs.first] * codes[self.pairs.second])
        return float(value if linear is None else value + linear @ codes)

    def lower(self, codes, weights, generator, linear=None, passes=2):
        """Codes float64 (n,) whose objective is not above that of `codes`.

        weights: float64 (p,), a; linear: float64 (n,), l. In every pass each block, in random order, takes its
        best codes given all others; positive weights inside a block, which a cut can't express, count as 0
        there, and the block keeps its codes unless the true objective falls.
        """
        codes = codes.astype(np.float64)
        for _ in range(passes):
            before = codes.copy()
            for number in generator.permutation(len(self.blocks)):
                self.blocks[number].improve(codes, weights, linear)
            if np.array_equal(codes, before):
                break
        return codes


class _Block:
    """One block's part of the problem, and the network of its cuts."""

    def __init__(self, items, inner, first, second, outer, ends, others):
        self.items, self.inner, self.first, self.second = items, inner, first, second
        self.outer, self.ends, self.others = outer, ends, others
        size, self.source, self.sink = len(items), len(items), len(items) + 1
        every = np.arange(size)
        source, sink = np.full(size, self.source), np.full(size, self.sink)
        # Arcs come in opposite pairs: SciPy needs both, and would otherwise add the missing ones in every call.
        tails = np.concatenate([first, second, source, every, every, sink])
        heads = np.concatenate([second, first, every, source, sink, every])
        self.order = np.lexsort((heads, tails))
        self.heads = heads[self.order].astype(np.int32)
        self.starts = np.searchsorted(tails[self.order], np.arange(size + 3)).astype(np.int32)

    def improve(self, codes, weights, linear):
        """Set codes[items] to the best choice given the other codes."""
        pulls = np.zeros(len(self.items))
        if len(self.outer):
            pulls += np.bincount(self.ends, weights[self.outer] * codes[self.others], len(self.items))
        if linear is not None:
            pulls += linear[self.items]
        inner = weights[self.inner]
        best = self._cut(pulls, np.maximum(-2 * inner, 0))
        kept = codes[self.items]

        def value(block):
            return pulls @ block + inner @ (block[self.first] * block[self.second])

        if value(best) < value(kept):
            codes[self.items] = best

    def _cut(self, pulls, capacities):
        """argmin of sum pulls z - sum capacities z z / 2 by a minimum cut: -1 on the source's side.

        An item on the sink's side pays its arc from the source, 2 pulls; on the source's side its arc to the
        sink, -2 pulls; a pair that is parted pays its capacity.
        """
        to_item, to_sink = np.maximum(2 * pulls, 0), np.maximum(-2 * pulls, 0)
        most = min(to_item.sum(), to_sink.sum())
        if not capacities.any():
            return np.where(pulls > 0, -1.0, 1.0)
        if most == 0:  # everybody is drawn one way, and pairs want to agree
            return np.full(len(pulls), -1.0 if to_item.any() else 1.0)
        nothing = np.zeros(len(pulls))
        arcs = np.concatenate([capacities, capacities, to_item, nothing, to_sink, nothing])[self.order]
        # No flow is above `most`: an arc may be cut down to that without changing the minimum cut.
        arcs = np.rint(np.minimum(arcs, 1.01 * most) * (_TOTAL_CAPACITY / (1.01 * most) / 2)).astype(np.int32)
        network = csr_array((arcs, self.heads, self.starts), shape=(self.sink + 1, self.sink + 1))
        flow = maximum_flow(network, self.source, self.sink).flow
        reached = _reachable(arcs - flow.data, self.heads, self.starts, self.source)
        return np.where(reached[: len(pulls)], -1.0, 1.0)


@njit("b1[:](i4[:], i4[:], i4[:], i8)", nogil=True, cache=True)
def _reachable(residual, heads, starts, source):
    """Nodes that the source reaches over arcs with something left."""
    reached = np.zeros(len(starts) - 1, np.bool_)
    reached[source] = True
    waiting = np.empty(len(starts), np.int64)
    waiting[0] = source
    count = 1
    while count:
        count -= 1
        node = waiting[count]
        for arc in range(starts[node], starts[node + 1]):
            if residual[arc] > 0 and not reached[heads[arc]]:
                reached[heads[arc]] = True
                waiting[count] = heads[arc]
                count += 1
    return reached
