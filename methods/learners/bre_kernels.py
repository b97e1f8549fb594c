"""The coordinate descent of BRE: one weight at a time, set to the best of all its values.

As a function of one weight w of bit p, item i has bit 1 on one side of the threshold t_i = w_now - f_p(i)/K_i
and 0 on the other, K_i the kernel value of item and anchor. So F is piecewise constant in w: it changes only
at thresholds, and there only through the pairs that hold the item which flips.

How much it changes there need not wait for the flips before: when i flips, item j has flipped already if and
only if its threshold lies below. One pass over the pairs, in any order, therefore gives the changes at all
thresholds at once, and their cumulative sum is F at every candidate.
"""

import numpy as np

from tiebench._compiled import compiled
from tiebench.counting.bitslice import popcount

_OUTSIDE = 5e-7  # the two outer candidates' distance from the outer thresholds, as in the authors' routine
_CLOSE = 1e-10  # thresholds that differ by less, relatively, are one: rounding could not tell what is between
_NOTHING = 1e-12  # kernel values that are smaller, relative to the anchor's largest, are 0 but for rounding
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


class Descent:
    """Weights, and the codes of the training items that follow from them.

    columns: float64 (U, n), kernel values of U anchors and n items; places: int (b, s), the rows of `columns`
    that are the anchors of each bit; weights: float64 (b, s); partners: int32 (n, k), the items that each
    item is paired with; targets: int32 (n, k), the distances these pairs should have, in 1/scale of a bit.

    The objective is kept as an integer, `squares`: the sum over pairs of
    (scale * Hamming distance - target)^2.
    """

    def __init__(self, columns, places, weights, partners, targets, scale):
        largest = np.abs(columns).max(axis=1, keepdims=True, initial=0)
        self.columns = np.where(np.abs(columns) > _NOTHING * largest, columns, 0.0)
        self.places, self.weights = places, np.array(weights, np.float64)
        self.partners, self.scale = partners, scale
        # F changes by scale * (2 scale rest + scale - 2 target) where a pair's bits become unequal, `rest`
        # the distance in the other bits.
        self.offsets = (2 * targets - scale).astype(np.int32)
        self.sums = np.stack([own @ self.columns[rows] for own, rows in zip(self.weights, places)])
        bits = self.sums > 0
        self.codes = np.zeros((-(-len(bits) // 64), bits.shape[1]), np.uint64)
        for bit, values in enumerate(bits):
            self.codes[bit // 64] |= values.astype(np.uint64) << np.uint64(bit % 64)
        self.squares = self.recount()

    def recount(self):
        """`squares`, from the codes."""
        sums = np.empty(self.columns.shape[1], np.int64)
        squared_errors(self.partners, self.offsets, self.codes, self.scale, sums)
        return sum(sums.tolist())

    def objective(self):
        """F, with distances and targets in [0, 1]."""
        return self.squares / (2 * (self.scale * len(self.places)) ** 2)

    def update(self, bit, anchor):
        """Set one weight to the candidate of the smallest F, the lowest of several.

        Candidates are the midpoints between neighbouring thresholds and one outside each end. The weight
        stays if none is at least as good: it may lie between thresholds too close to have a candidate.
        """
        column = self.columns[self.places[bit, anchor]]
        sums, weight = self.sums[bit], self.weights[bit, anchor]
        thresholds, order, ones_below, passed = self.thresholds(column, sums, weight)
        count = len(thresholds)
        if count == 0:
            return
        keys = np.empty(len(sums), np.int32)
        keys[order] = np.arange(0, 2 * len(sums), 2)
        keys |= ones_below
        changes = np.empty(len(sums), np.int64)
        word, mask = bit // 64, _ALL ^ np.uint64(1 << bit % 64)
        flip_changes(self.partners, self.offsets, self.codes, word, mask, keys, self.scale, changes)
        costs = np.zeros(count + 1, np.int64)  # relative to the first candidate, and divided by scale
        np.cumsum(changes[order[:count]], out=costs[1:])

        candidates, valid = candidates_between(thresholds, weight)
        best = np.argmin(np.where(valid, costs, np.iinfo(np.int64).max))
        if costs[best] > costs[passed]:
            return
        sums += (candidates[best] - weight) * column
        self.weights[bit, anchor] = candidates[best]
        self.codes[word] &= mask
        self.codes[word] |= (sums > 0).astype(np.uint64) << np.uint64(bit % 64)
        self.squares += self.scale * int(costs[best] - costs[passed])

    @staticmethod
    def thresholds(column, sums, weight):
        """(thresholds ascending (m,), all items in their order, bits below all thresholds, how many of the
        thresholds the weight has passed). Items without a threshold, which never flip, come last."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            thresholds = weight - sums / column
        flips = np.isfinite(thresholds)
        thresholds[~flips] = np.inf
        order = np.argsort(thresholds)
        ones = sums > 0
        ones_below = np.where(flips, column < 0, ones)
        flipped = ones != ones_below
        passed = np.count_nonzero(flipped)
        if not flipped[order[:passed]].all():  # thresholds equal to the weight: those passed go first
            order = np.lexsort((~flipped, thresholds))
        return thresholds[order[: np.count_nonzero(flips)]], order, ones_below, passed


def candidates_between(thresholds, weight):
    """Candidates for a weight, (m + 1,), around m ascending thresholds, and which are clear of them: bool."""
    margin = _CLOSE * (np.abs(thresholds) + abs(weight))
    candidates = np.empty(len(thresholds) + 1)
    candidates[0] = thresholds[0] - max(_OUTSIDE, margin[0])
    candidates[1:-1] = thresholds[:-1] / 2 + thresholds[1:] / 2
    candidates[-1] = thresholds[-1] + max(_OUTSIDE, margin[-1])
    valid = np.ones(len(candidates), bool)
    valid[1:-1] = np.diff(thresholds) > np.maximum(margin[:-1], margin[1:])
    return candidates, valid


@compiled(
    "void(int32[:,::1], int32[:,::1], uint64[:,::1], int64, uint64, int32[::1], int64, int64[::1])",
    nogil=True,
    boundscheck=False,
)
def flip_changes(partners, offsets, codes, word, mask, keys, scale, changes):
    """changes[i]: what the flip of item i adds to `squares` / scale when the weight passes i's threshold.

    codes uint64 (W, n); `mask` clears the bit that is learned from the codes' word `word`; keys int32 (n,):
    twice the rank of the item's threshold, plus 1 if its bit is 1 below it. With s = 1 if the bits of i and j
    are equal below both thresholds and -1 if not, the bits become unequal (s = 1) or equal (s = -1) at the
    lower threshold, and the opposite at the higher.
    """
    items, count = partners.shape
    step = np.int32(2 * scale)
    distances = np.empty(count, np.int32)
    changes[:] = 0
    for i in range(items):
        distances[:] = 0
        for w in range(codes.shape[0]):
            own = codes[w, i]
            kept = mask if w == word else _ALL
            for c in range(count):
                # Unsigned, so that the index is not tested for being negative.
                distances[c] += np.int32(popcount((codes[w, np.uint32(partners[i, c])] ^ own) & kept))
        key = keys[i]
        total = np.int64(0)
        for c in range(count):
            j = np.uint32(partners[i, c])
            change = step * distances[c] - offsets[i, c]
            higher = np.int32(keys[j] > key)
            negative = higher ^ np.int32(1) ^ ((keys[j] ^ key) & np.int32(1))
            change = (change ^ -negative) + negative  # its sign turned where negative is 1
            total += change
            changes[j] -= change
        changes[i] += total


@compiled(
    "void(int32[:,::1], int32[:,::1], uint64[:,::1], int64, int64[::1])",
    nogil=True,
    boundscheck=False,
)
def squared_errors(partners, offsets, codes, scale, sums):
    """sums[i]: the sum of (scale * Hamming distance - target)^2 over the partners of i; offsets as above."""
    for i in range(partners.shape[0]):
        total = np.int64(0)
        for c in range(partners.shape[1]):
            distance = np.int64(0)
            for w in range(codes.shape[0]):
                distance += np.int64(popcount(codes[w, np.uint32(partners[i, c])] ^ codes[w, i]))
            error = scale * distance - (offsets[i, c] + scale) // 2
            total += error * error
        sums[i] = total
