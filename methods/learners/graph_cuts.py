"""Binary quadratic problems over sampled pairs, lowered block by block with graph cuts.

Lin, Shen, Shi, van den Hengel, Suter. Fast Supervised Hashing with Decision Trees for High-Dimensional Data.
CVPR 2014, section 3.1. The maximum flows are SciPy's.
"""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from tiebench._compiled import compiled

# SciPy's flows are 32-bit integers. No arc gets more than half of this: nothing overflows where a flow one
# way is added to a capacity the other way.
_TOTAL_CAPACITY = 2**30 - 1
_TRIED = 8  # items for which all choices are tried: faster than setting up a flow


class BlockCuts:
    """Lowers sum_p a_p z_i z_j + sum_i l_i z_i over z in {-1, +1}^n, p running over pairs (i, j)."""

    def __init__(self, pairs, blocks):
        """pairs: a `Pairs`; blocks: item arrays that cover the items, each item once."""
        self.pairs = pairs
        where = np.empty(pairs.items, np.int64)
        place = np.empty(pairs.items, np.int64)
        for number, block in enumerate(blocks):
            where[block] = number
            place[block] = np.arange(len(block))
        self.inside = where[pairs.first] == where[pairs.second]
        self.ends = _ends(pairs.first, pairs.second, self.inside, pairs.items)
        inner = np.flatnonzero(self.inside)
        inner = inner[np.argsort(where[pairs.first[inner]], kind="stable")]
        bounds = np.searchsorted(where[pairs.first[inner]], np.arange(len(blocks) + 1))
        self.blocks = [
            _Block(block, part, place[pairs.first[part]], place[pairs.second[part]])
            for block, part in zip(blocks, np.split(inner, bounds[1:-1]))
        ]

    def objective(self, codes, weights, linear=None):
        """The value of codes, float64 or int8 (n,) in -1, +1."""
        value = weights @ (codes[self.pairs.first] * codes[self.pairs.second])
        return float(value if linear is None else value + linear @ codes)

    def lower(self, codes, weights, generator, linear=None, passes=2, unit=1.0):
        """Codes float64 (n,) whose objective is not above that of `codes`.

        weights: float64 or int32 (p,), a over `unit`; linear: float64 (n,), l. In every pass each block, in
        random order, takes its best codes given all others; positive weights inside a block, which no cut
        expresses, count as 0 there, and the block keeps its codes unless the true objective falls.
        """
        codes = codes.astype(np.float64)
        linear = np.zeros(self.pairs.items) if linear is None else linear
        pulls = _pulls(codes, weights, unit, linear, self.pairs.first, self.pairs.second, self.inside)
        for _ in range(passes):
            before = codes.copy()
            for number in generator.permutation(len(self.blocks)):
                block = self.blocks[number]
                changed = block.improve(codes, unit * weights[block.inner], pulls[block.items])
                if len(changed):
                    _spread(pulls, changed, codes, weights, unit, *self.ends)
            if np.array_equal(codes, before):
                break
        return codes


class _Block:
    """One block's part of the problem, and the network of its cuts."""

    def __init__(self, items, inner, first, second):
        """items: int64; inner: the pairs inside, first and second their items' places in the block."""
        self.items, self.inner, self.first, self.second = items, inner, first, second
        size, self.source, self.sink = len(items), len(items), len(items) + 1
        every = np.arange(size)
        source, sink = np.full(size, self.source), np.full(size, self.sink)
        # Arcs come in opposite pairs: SciPy needs both, and would add the missing ones in every call.
        tails = np.concatenate([first, second, source, every, every, sink])
        heads = np.concatenate([second, first, every, source, sink, every])
        self.order = np.lexsort((heads, tails))
        self.heads = heads[self.order].astype(np.int32)
        self.starts = np.searchsorted(tails[self.order], np.arange(size + 3)).astype(np.int32)

        ends = np.concatenate([first, second])
        by_end = np.argsort(ends, kind="stable")
        self.around = np.searchsorted(ends[by_end], np.arange(size + 1))
        self.neighbours = np.concatenate([second, first])[by_end]
        self.bonds = np.tile(np.arange(len(inner)), 2)[by_end]

    def improve(self, codes, inner, pulls):
        """Set codes[items] to the best choice given the other codes, and return the items that changed.

        inner: a of the pairs inside; pulls: sum of a z over the pairs out of the block, plus l, per item of
        the block.
        """
        bonds = np.maximum(-inner, 0)
        # Most items are decided by the pull on them, or by those that are: the cut is for the rest.
        best, rest = _settle(pulls, bonds, self.around, self.neighbours, self.bonds)
        undecided = best == 0
        count = np.count_nonzero(undecided)
        if 0 < count <= _TRIED:
            _try_all(best, rest, bonds, self.around, self.neighbours, self.bonds)
        elif count:
            among = undecided[self.first] & undecided[self.second]
            rest[~undecided] = 0
            best[undecided] = self._cut(rest, np.where(among, 2 * bonds, 0))[undecided]
        kept = codes[self.items]

        def value(block):
            return pulls @ block + inner @ (block[self.first] * block[self.second])

        changed = self.items[best != kept]
        if not len(changed) or value(best) >= value(kept):
            return changed[:0]
        codes[self.items] = best
        return changed

    def _cut(self, pulls, capacities):
        """argmin of sum pulls z - sum capacities z z / 2 by a minimum cut: -1 on the source's side.

        An item on the sink's side pays its arc from the source, 2 pulls; on the source's side its arc to the
        sink, -2 pulls; a pair that is parted pays its capacity.
        """
        to_item, to_sink = np.maximum(2 * pulls, 0), np.maximum(-2 * pulls, 0)
        most = min(to_item.sum(), to_sink.sum())
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


@compiled("Tuple((i8[::1], i4[::1], i4[::1]))(i4[::1], i4[::1], b1[::1], i8)", nogil=True)
def _ends(first, second, inside, items):
    """(starts, others, numbers): item i is in the pairs numbers[starts[i] : starts[i + 1]] that cross blocks,
    with the items others[...]."""
    starts = np.zeros(items + 1, np.int64)
    for pair in range(len(first)):
        if not inside[pair]:
            starts[first[pair] + 1] += 1
            starts[second[pair] + 1] += 1
    starts = np.cumsum(starts)
    others, numbers = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.int32)
    free = starts.copy()
    for pair in range(len(first)):
        if not inside[pair]:
            for item, other in ((first[pair], second[pair]), (second[pair], first[pair])):
                others[free[item]], numbers[free[item]] = other, pair
                free[item] += 1
    return starts, others, numbers


@compiled(
    "f8[::1](f8[::1], f8[::1], f8, f8[::1], i4[::1], i4[::1], b1[::1])",
    "f8[::1](f8[::1], i4[::1], f8, f8[::1], i4[::1], i4[::1], b1[::1])",
    nogil=True,
)
def _pulls(codes, weights, unit, linear, first, second, inside):
    """What draws each item to -1 from outside of its block."""
    pulls = linear.copy()
    item, code, pull = -1, 0.0, 0.0  # of the run of pairs with the same first item
    for pair in range(len(weights)):
        if first[pair] != item:
            if item >= 0:
                pulls[item] = pull
            item = first[pair]
            code, pull = codes[item], pulls[item]
        if not inside[pair]:
            other, weight = second[pair], unit * weights[pair]
            pull += weight * codes[other]
            pulls[other] += weight * code
    if item >= 0:
        pulls[item] = pull
    return pulls


@compiled("Tuple((f8[::1], f8[::1]))(f8[::1], f8[::1], i8[::1], i8[::1], i8[::1])", nogil=True)
def _settle(pulls, bonds, around, neighbours, numbers):
    """(codes, pulls): -1 or +1 for items whose pull is stronger than all bonds to undecided others, which go
    with it in every best choice, and 0 for the rest; pulls with those of the decided items added.

    Item i has the bonds numbers[around[i] : around[i + 1]], to the items neighbours[...].
    """
    codes, pulls, hold = np.zeros(len(pulls)), pulls.copy(), np.zeros(len(pulls))
    waiting = np.empty(len(pulls), np.int64)
    count = 0
    for item in range(len(pulls)):
        for place in range(around[item], around[item + 1]):
            hold[item] += bonds[numbers[place]]
        if abs(pulls[item]) > hold[item] * (1 + 1e-9):
            codes[item] = -1.0 if pulls[item] > 0 else 1.0
            waiting[count] = item
            count += 1
    while count:
        count -= 1
        item = waiting[count]
        for place in range(around[item], around[item + 1]):
            other = neighbours[place]
            if codes[other] == 0:
                bond = bonds[numbers[place]]
                pulls[other] -= bond * codes[item]
                hold[other] -= bond
                if abs(pulls[other]) > hold[other] * (1 + 1e-9):
                    codes[other] = -1.0 if pulls[other] > 0 else 1.0
                    waiting[count] = other
                    count += 1
    return codes, pulls


@compiled("void(f8[::1], f8[::1], f8[::1], i8[::1], i8[::1], i8[::1])", nogil=True)
def _try_all(codes, pulls, bonds, around, neighbours, numbers):
    """Give the few items whose code is 0 their best codes, by trying all in the order of a Gray code."""
    free = np.flatnonzero(codes == 0)
    matrix = np.zeros((len(free), len(free)))
    place_of = np.full(len(codes), -1)
    place_of[free] = np.arange(len(free))
    for row in range(len(free)):
        for place in range(around[free[row]], around[free[row] + 1]):
            if place_of[neighbours[place]] >= 0:
                matrix[row, place_of[neighbours[place]]] += bonds[numbers[place]]
    tried = np.ones(len(free))
    value, least, best = 0.0, 0.0, tried.copy()  # values are relative to all +1
    for step in range(1, 1 << len(free)):
        row = 0
        while not (step >> row) & 1:
            row += 1
        held = pulls[free[row]]
        for other in range(len(free)):
            held -= matrix[row, other] * tried[other]
        value -= 2 * tried[row] * held
        tried[row] = -tried[row]
        if value < least:
            least = value
            best[:] = tried
    codes[free] = best


@compiled(
    "void(f8[::1], i8[::1], f8[::1], f8[::1], f8, i8[::1], i4[::1], i4[::1])",
    "void(f8[::1], i8[::1], f8[::1], i4[::1], f8, i8[::1], i4[::1], i4[::1])",
    nogil=True,
)
def _spread(pulls, changed, codes, weights, unit, starts, others, numbers):
    """Bring pulls up to date after the codes of some items changed sign."""
    for item in changed:
        for end in range(starts[item], starts[item + 1]):
            pulls[others[end]] += 2 * codes[item] * (unit * weights[numbers[end]])


@compiled("b1[:](i4[:], i4[:], i4[:], i8)", nogil=True)
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
