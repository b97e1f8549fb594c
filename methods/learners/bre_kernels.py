"""The coordinate descent of BRE: one weight at a time, set to the best of all its values.

As a function of one weight w of bit p, item i has bit 1 on one side of the threshold t_i = w_now - f_p(i)/K_i
and 0 on the other, K_i the kernel value of item and anchor. So F is piecewise constant in w: it changes only
at thresholds, and there only through the pairs that hold the item which flips.

How much it changes there need not wait for the flips before: when i flips, item j has flipped already if and
only if its threshold lies below. One pass over the pairs, in any order, therefore gives the changes at all
thresholds at once, and their cumulative sum is F at every candidate. The pass reads the error of each pair
and, on its way, brings it up to date with the flips of the weight set before: its cost does not grow with
the number of bits.
"""

import numpy as np

from tiebench._compiled import compiled

_OUTSIDE = 5e-7  # the two outer candidates' distance from the outer thresholds, as in the authors' routine
_CLOSE = 1e-10  # thresholds that differ by less, relatively, are one: rounding could not tell what is between
_NOTHING = 1e-12  # kernel values that are smaller, relative to the anchor's largest, are 0 but for rounding


class Descent:
    """Weights, and the codes of the training items that follow from them.

    columns: float64 (U, n), kernel values of U anchors and n items; places: int (b, s), the rows of `columns`
    that are the anchors of each bit; weights: float64 (b, s); partners: int32 (n, k), the items that each
    item is paired with; targets: int32 (n, k), the distances these pairs should have, in 1/scale of a bit.

    codes: bool (b, n). The objective is kept as an integer, `squares`: the sum over pairs of
    (scale * Hamming distance - target)^2.
    """

    def __init__(self, columns, places, weights, partners, targets, scale):
        largest = np.abs(columns).max(axis=1, keepdims=True, initial=0)
        self.columns = np.where(np.abs(columns) > _NOTHING * largest, columns, 0.0)
        self.places, self.weights = places, np.array(weights, np.float64)
        self.partners, self.scale = partners, scale
        self.sums = np.stack([own @ self.columns[rows] for own, rows in zip(self.weights, places)])
        self.codes = np.zeros(self.sums.shape, bool)
        self.errors = -targets
        self._unread = np.zeros(self.codes.shape[1], np.int32)
        for bit, values in enumerate(self.sums > 0):
            self._set_codes(bit, values)
            self.flip_changes(np.zeros(len(values), np.int32))
        self.squares = sum(np.square(row, dtype=np.int64).sum().item() for row in self.errors)

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
        ranks = np.empty(len(sums), np.int32)
        ranks[order] = np.arange(len(sums))
        changes = self.flip_changes(ranks << 4 | _states(ones_below, self.codes[bit]))
        costs = np.zeros(count + 1, np.int64)  # relative to the first candidate, and divided by scale
        np.cumsum(changes[order[:count]], out=costs[1:])

        candidates, valid = candidates_between(thresholds, weight)
        best = np.argmin(np.where(valid, costs, np.iinfo(np.int64).max))
        if costs[best] > costs[passed]:
            return
        sums += (candidates[best] - weight) * column
        self.weights[bit, anchor] = candidates[best]
        self._set_codes(bit, sums > 0)
        self.squares += self.scale * int(costs[best] - costs[passed])

    def flip_changes(self, keys):
        """int64 (n,): what the flip of each item adds to `squares` / scale, for the `keys` of `read_pairs`
        without the two bits that bring `errors` up to date."""
        changes = np.empty(len(keys), np.int64)
        read_pairs(self.partners, self.errors, keys | self._unread << 2, self.scale, changes)
        self._unread = np.zeros_like(self._unread)
        return changes

    def _set_codes(self, bit, values):
        self._unread = _states(self.codes[bit], values)
        self.codes[bit] = values

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


def _states(first, second):
    """int32 (n,): of two bits of each item the first, plus twice the second."""
    return first.astype(np.int32) | second.astype(np.int32) << 1


@compiled(
    "void(int32[:,::1], int32[:,::1], int32[::1], int64, int64[::1])",
    nogil=True,
    boundscheck=False,
)
def read_pairs(partners, errors, keys, scale, changes):
    """changes[i]: what the flip of item i adds to `squares` / scale when the weight passes i's threshold.

    errors int32 (n, k): scale * Hamming distance - target of each pair, before the weight set last; they are
    brought up to date. keys int32 (n,): 16 times the rank of the item's threshold, plus 1 if its bit is 1
    below it, 2 if its bit is 1, and of the bit that was set last 4 if it was 1 before and 8 if it is 1 now.

    With s = 1 if the bits of i and j are equal below both thresholds and -1 if not, the bits become unequal
    (s = 1) or equal (s = -1) at the lower threshold, and the opposite at the higher.
    """
    step, one = np.int32(scale), np.int32(1)
    changes[:] = 0
    for i in range(partners.shape[0]):
        key = keys[i]
        total = np.int64(0)
        for c in range(partners.shape[1]):
            j = np.uint32(partners[i, c])  # unsigned, so that the index is not tested for being negative
            other = keys[j]
            apart = key ^ other
            error = errors[i, c] + step * ((apart >> 3 & one) - (apart >> 2 & one))
            errors[i, c] = error
            # Of a pair whose bits become unequal: (e + scale)^2 - e^2 over scale, e the error in other bits.
            change = 2 * error + step - 2 * step * (apart >> 1 & one)
            negative = np.int32(other > key) ^ one ^ (apart & one)
            change = (change ^ -negative) + negative  # its sign turned where negative is 1
            total += change
            changes[j] -= change
        changes[i] += total
