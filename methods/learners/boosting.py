"""Boosted decision trees for binary codes: discrete AdaBoost over shallow trees on quantised features.

The learner of FastHash and StructHash (Lin et al., CVPR 2014; the boosting follows Appel, Fuchs, Dollár,
Perona, Quickly Boosting Decision Trees, ICML 2013): every round keeps the examples that carry most of the
weight, fits a tree with a few random features per node (LazyBoost), and uses the sign of its leaves.
docs/differences.md says why no library does this.
"""

import math
from dataclasses import dataclass

import numpy as np

from tiebench._compiled import compiled

LEVELS = 256  # of a quantised feature
_TOGETHER = 4  # features whose histograms are made at once
_BLOCK = 256  # items whose votes are counted at once: their levels and votes stay in the cache

# The place of a word's one set bit, by the six high bits of its product with a De Bruijn sequence.
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_PLACES = np.zeros(64, np.int64)
_PLACES[[(int(_DE_BRUIJN) << place) % 2**64 >> 58 for place in range(64)]] = range(64)


@compiled("u1[:, ::1](f4[:, ::1], f4[::1], f4[::1])", nogil=True)
def _levels(items, lowest, step):
    levels = np.empty(items.shape, np.uint8)
    for item in range(items.shape[0]):
        for feature in range(items.shape[1]):
            level = (items[item, feature] - lowest[feature]) / step[feature]
            level = min(max(level, np.float32(0)), np.float32(LEVELS - 1))
            levels[item, feature] = np.uint8(np.int32(level))
    return levels


@dataclass(frozen=True)
class Quantiser:
    """Features to 256 levels each between the training minimum and maximum, widened by a thousandth.

    lowest, step: float32 (d,).
    """

    lowest: np.ndarray
    step: np.ndarray

    @classmethod
    def fit(cls, items):
        """items: float32 (n, d)."""
        lowest, highest = items.min(axis=0).astype(np.float64), items.max(axis=0).astype(np.float64)
        margin = (highest - lowest) / 1000
        width = highest - lowest + 2 * margin
        step = (width / LEVELS).astype(np.float32)
        step[step == 0] = 1 / LEVELS  # a constant, or a range of no more than a few smallest floats
        return cls((lowest - margin).astype(np.float32), step)

    def __call__(self, items):
        """Levels of items: uint8 (n, d). Values outside the training range take the nearest level."""
        return _levels(np.ascontiguousarray(items, np.float32), self.lowest, self.step)


@dataclass(frozen=True)
class BoostedTrees:
    """Complete trees of one depth, as arrays: features int32 and thresholds uint8 (t, 2^depth - 1), an item
    goes left if its level is at most the threshold; leaves float32 (t, 2^depth): vote times sign.
    """

    features: np.ndarray
    thresholds: np.ndarray
    leaves: np.ndarray


def scores_of(functions, levels):
    """Sums of the votes of several `BoostedTrees` of one depth, for levels uint8 (n, d): float32 (n,
    functions). The hash bits are their signs."""
    ends = np.cumsum([len(function.leaves) for function in functions])
    parts = ((function.features, function.thresholds, function.leaves) for function in functions)
    return _scores(levels, ends, *(np.concatenate(part) for part in zip(*parts)))


def boost(levels, codes, weights, seed, trees=200, depth=4, features=200, trimming=0.99):
    """Fit `BoostedTrees` and return them with their scores on the training items, float32 (n,).

    levels: uint8 (d, n), feature-major; codes: (n,) in -1, +1; weights: non-negative (n,); features: how many
    are tried per node; trimming: share of the weight whose examples a tree is fitted on.
    A node is split if it has at least 5 examples, a weight of 0.01 (of a mean of 1) and both codes. Trees
    without a vote are dropped.
    """
    total = weights.sum()
    weights = weights * (len(weights) / total) if total > 0 else np.ones(len(weights))
    fitted = _boost(
        levels,
        np.ascontiguousarray(codes, np.float64),
        np.ascontiguousarray(weights, np.float64),
        seed,
        trees,
        depth,
        min(features, len(levels)),
        trimming,
    )
    chosen, thresholds, signs, votes, scores = fitted
    kept = votes > 0
    leaves = (signs[kept] * votes[kept, None]).astype(np.float32)
    return BoostedTrees(chosen[kept], thresholds[kept], leaves), scores


@compiled("u8(u8[:])", nogil=True)
def _next_random(state):
    """Next value of splitmix64 (Steele, Lea, Flood, 2014)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    value = state[0]
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@compiled("u1[:, ::1](u1[:, ::1], u1[:, ::1], i8[::1])", nogil=True)
def _rank_levels(levels, values, distinct):
    """Levels (d, n) as ranks among those that their feature has; written: values (d, LEVELS), the level of
    each rank, and distinct (d,), how many there are."""
    ranks = np.empty_like(levels)
    place = np.empty(LEVELS, np.uint8)
    for feature in range(levels.shape[0]):
        column = levels[feature]
        present = np.zeros(LEVELS, np.uint8)
        for item in range(len(column)):
            present[column[item]] = 1
        count = 0
        for level in range(LEVELS):
            if present[level]:
                values[feature, count] = level
                place[level] = count
                count += 1
        distinct[feature] = count
        for item in range(len(column)):
            ranks[feature, item] = place[column[item]]
    return ranks


@compiled("Tuple((f8, f8))(u8, i8, i8)", nogil=True)
def _gain(through, weight, balance):
    """What a split gains, times both weights, and their product: few are the best so far, so few are divided.

    through: masses of all rows to the left; weight, balance: of all rows.
    """
    positive, negative = np.int64(through >> np.uint64(32)), np.int64(through & np.uint64(0xFFFFFFFF))
    left, left_balance = positive + negative, float(positive - negative)
    right, right_balance = float(weight - left), balance - left_balance
    return left_balance * left_balance * right + right_balance * right_balance * left, left * right


@compiled("void(u8[::1], u8[::1], u1, u8)", nogil=True)
def _add(sums, present, rank, mass):
    """Add to the sum of a rank, and note the rank's bit in the words of `present`."""
    sums[rank] += mass
    present[rank >> 6] |= np.uint64(1) << np.uint64(rank & 63)


@compiled("Tuple((i8, i8))(u1[:, ::1], i8[::1], u4[::1], u8[::1], i8[::1], i8, u8[:, ::1])", nogil=True)
def _best_split(ranks, distinct, rows, masses, pool, tries, histogram):
    """(feature, rank) of the least Gini impurity among the first `tries` features of `pool`; -1 if none
    lowers it.

    masses: (len(rows),), each row's weight in the half of the word that its code names: see `_boost`.
    histogram (4, LEVELS): zeros before and after.
    """
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    whole = np.uint64(0)
    count = len(rows)
    for place in range(count):
        whole += masses[place]
    weight = np.int64(whole >> half) + np.int64(whole & low)
    balance = np.int64(whole >> half) - np.int64(whole & low)
    # Impurity falls as S_l^2 / W_l + S_r^2 / W_r rises; rounding must not pass for a gain.
    best = float(balance) * balance / weight + 1e-10 * weight
    best_feature, best_rank = -1, -1
    present = np.zeros((_TOGETHER, LEVELS // 64), np.uint64)
    group = np.empty(_TOGETHER, np.int64)
    for begin in range(0, tries, _TOGETHER):
        # Several features in turn: a row is read once for all, and an addition seldom waits for the one
        # before. Past the last feature it comes again, and cannot beat itself.
        most = 0
        for number in range(_TOGETHER):
            group[number] = pool[min(begin + number, tries - 1)]
            most = max(most, distinct[group[number]])
        first, second, third, fourth = ranks[group[0]], ranks[group[1]], ranks[group[2]], ranks[group[3]]
        if count < 4 * most:
            for place in range(count):
                row, mass = rows[place], masses[place]
                _add(histogram[0], present[0], first[row], mass)
                _add(histogram[1], present[1], second[row], mass)
                _add(histogram[2], present[2], third[row], mass)
                _add(histogram[3], present[3], fourth[row], mass)
        else:
            for place in range(count):
                row, mass = rows[place], masses[place]
                histogram[0, first[row]] += mass
                histogram[1, second[row]] += mass
                histogram[2, third[row]] += mass
                histogram[3, fourth[row]] += mass
        for number in range(_TOGETHER):
            feature, sums = group[number], histogram[number]
            through = np.uint64(0)
            if count < 4 * distinct[feature]:
                # Few rows: only the ranks that they have are visited.
                for word in range(LEVELS // 64):
                    bits = present[number, word]
                    while bits:
                        lowest = bits & (~bits + np.uint64(1))
                        bits ^= lowest
                        rank = 64 * word + _PLACES[(lowest * _DE_BRUIJN) >> np.uint64(58)]
                        through += sums[rank]
                        sums[rank] = 0
                        gain, unit = _gain(through, weight, balance)
                        if gain > best * unit:
                            best, best_feature, best_rank = gain / unit, feature, rank
            else:
                for rank in range(distinct[feature]):
                    through += sums[rank]
                    sums[rank] = 0
                    gain, unit = _gain(through, weight, balance)
                    if gain > best * unit:
                        best, best_feature, best_rank = gain / unit, feature, rank
        present[:] = 0
    return best_feature, best_rank


@compiled(
    "void(u1[:, ::1], i8[::1], u1[:, ::1], u4[::1], u8[::1], f8, i8, i8, u8[:], i8[::1], i4[::1], u1[::1],"
    " f8[::1])",
    nogil=True,
)
def _fit_tree(
    ranks, distinct, values, rows, masses, unit, depth, tries, state, pool, features, thresholds, signs
):
    """One tree on `rows`, whose masses (len(rows),) come in the same order; both are put in another order.
    Fills features, thresholds and signs. unit: what a weight of 1 is in masses."""
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    inner = (1 << depth) - 1
    begins, ends = np.zeros(2 * inner + 1, np.int64), np.zeros(2 * inner + 1, np.int64)
    ends[0] = len(rows)
    histogram = np.zeros((4, LEVELS), np.uint64)
    right_rows, right_masses = np.empty(len(rows), np.uint32), np.empty(len(rows), np.uint64)
    for node in range(2 * inner + 1):
        begin, end = begins[node], ends[node]
        whole = np.uint64(0)
        for place in range(begin, end):
            whole += masses[place]
        positive, negative = np.int64(whole >> half), np.int64(whole & low)
        if node >= inner:
            signs[node - inner] = 1.0 if positive > negative else -1.0
            continue
        feature, threshold = -1, -1
        if end - begin >= 5 and positive + negative >= 0.01 * unit and positive > 0 and negative > 0:
            dimensions = len(pool)
            if tries < dimensions:
                for place in range(tries):  # the first `tries` of a shuffle
                    other = place + np.int64(_next_random(state) % np.uint64(dimensions - place))
                    pool[place], pool[other] = pool[other], pool[place]
            feature, threshold = _best_split(
                ranks, distinct, rows[begin:end], masses[begin:end], pool, tries, histogram
            )
        middle, moved = begin, 0
        if feature >= 0:
            column = ranks[feature]
            for place in range(begin, end):  # in order, so that columns are read forwards
                if column[rows[place]] <= threshold:
                    rows[middle] = rows[place]
                    masses[middle] = masses[place]
                    middle += 1
                else:
                    right_rows[moved] = rows[place]
                    right_masses[moved] = masses[place]
                    moved += 1
            rows[middle:end] = right_rows[:moved]
            masses[middle:end] = right_masses[:moved]
            features[node], thresholds[node] = feature, values[feature, threshold]
        else:  # everything goes left, down to a leaf
            middle = end
            features[node], thresholds[node] = 0, LEVELS - 1
        begins[2 * node + 1], ends[2 * node + 1] = begin, middle
        begins[2 * node + 2], ends[2 * node + 2] = middle, end


@compiled(
    "Tuple((i4[:, ::1], u1[:, ::1], f8[:, ::1], f8[::1], f4[::1]))"
    "(u1[:, ::1], f8[::1], f8[::1], i8, i8, i8, i8, f8)",
    nogil=True,
)
def _boost(levels, codes, weights, seed, trees, depth, tries, trimming):
    """Discrete AdaBoost with weight trimming: features, thresholds, leaf signs, votes, training scores.

    Trees see an item's weight as an integer of 2^-31 of all weights, in the upper half of a 64-bit word if
    its code is +1, else in the lower half: one addition sums both, exactly and in any order.
    """
    items = len(codes)
    inner = (1 << depth) - 1
    features = np.zeros((trees, inner), np.int32)
    thresholds = np.zeros((trees, inner), np.uint8)
    signs = np.zeros((trees, inner + 1), np.float64)
    votes, scores = np.zeros(trees), np.zeros(items, np.float32)
    values, distinct = np.empty((len(levels), LEVELS), np.uint8), np.empty(len(levels), np.int64)
    ranks = _rank_levels(levels, values, distinct)
    pool = np.arange(len(levels))
    state = np.empty(1, np.uint64)
    state[0] = np.uint64(seed)
    weights = weights.copy()
    correct = np.empty(items)
    unit = 2.0**31 / items  # weights have mean 1
    for tree in range(trees):
        ascending = np.sort(weights)
        carried, place = 0.0, items
        while place > 0 and carried < trimming * items:
            place -= 1
            carried += ascending[place]
        rows = np.flatnonzero(weights >= ascending[place]).astype(np.uint32)
        masses = np.empty(len(rows), np.uint64)
        for place in range(len(rows)):
            mass = np.uint64(weights[rows[place]] * unit + 0.5)
            masses[place] = mass << np.uint64(32) if codes[rows[place]] > 0 else mass
        _fit_tree(
            ranks,
            distinct,
            values,
            rows,
            masses,
            unit,
            depth,
            tries,
            state,
            pool,
            features[tree],
            thresholds[tree],
            signs[tree],
        )
        right, wrong = 0.0, 0.0
        for item in range(items):
            node = 0
            while node < inner:
                node = 2 * node + 1 + (levels[features[tree, node], item] > thresholds[tree, node])
            correct[item] = codes[item] * signs[tree, node - inner]
            if correct[item] > 0:
                right += weights[item]
            else:
                wrong += weights[item]
        if right <= wrong:
            continue
        vote = 0.5 * math.log(right / wrong) if wrong > 0 else math.log(right) + math.log(1e8)
        votes[tree] = vote
        single = np.float32(vote)  # the sums are then those of `_scores`, and so are signs of sums near 0
        lower, higher, total = math.exp(-vote), math.exp(vote), 0.0
        for item in range(items):
            scores[item] += single * np.float32(correct[item] * codes[item])
            weights[item] *= lower if correct[item] > 0 else higher
            total += weights[item]
        for item in range(items):
            weights[item] *= items / total
    return features, thresholds, signs, votes, scores


@compiled("f4[:, ::1](u1[:, ::1], i8[::1], i4[:, ::1], u1[:, ::1], f4[:, ::1])", nogil=True)
def _scores(levels, ends, features, thresholds, leaves):
    """Scores float32 (n, functions) of levels (n, d); the trees of a function end before its entry of ends.

    Nobody walks down a tree: from the bottom up each node takes, for all items of a block, the vote that its
    left or its right part found, in vector instructions without a branch; up to a depth of about 8 that is
    faster. As integers and between two arrays, because of floats, and of one array, compilers make slower
    instructions.
    """
    items, width = levels.shape
    lowest = leaves.shape[1] // 2  # nodes of the lowest level
    found = np.empty((items, len(ends)), np.float32)
    block = np.zeros((width, _BLOCK), np.uint8)
    scores = np.empty(_BLOCK, np.float32)
    one, other = np.empty((lowest, _BLOCK), np.int32), np.empty((lowest, _BLOCK), np.int32)
    votes, of_one, of_other = leaves.view(np.int32), one.view(np.float32), other.view(np.float32)
    for begin in range(0, items, _BLOCK):
        count = min(_BLOCK, items - begin)
        for place in range(count):
            for feature in range(width):
                block[feature, place] = levels[begin + place, feature]
        tree = 0
        for function in range(len(ends)):
            scores[:] = 0
            while tree < ends[function]:
                for node in range(lowest):
                    feature = features[tree, lowest - 1 + node]
                    threshold = thresholds[tree, lowest - 1 + node]
                    left, right = votes[tree, 2 * node], votes[tree, 2 * node + 1]
                    for place in range(_BLOCK):
                        one[node, place] = right if block[feature, place] > threshold else left
                nodes, in_one = lowest // 2, True
                while nodes > 0:
                    for node in range(nodes):
                        feature = features[tree, nodes - 1 + node]
                        threshold = thresholds[tree, nodes - 1 + node]
                        if in_one:
                            for place in range(_BLOCK):
                                differs = one[2 * node, place] ^ one[2 * node + 1, place]
                                goes = -np.int32(block[feature, place] > threshold)
                                other[node, place] = one[2 * node, place] ^ (differs & goes)
                        else:
                            for place in range(_BLOCK):
                                differs = other[2 * node, place] ^ other[2 * node + 1, place]
                                goes = -np.int32(block[feature, place] > threshold)
                                one[node, place] = other[2 * node, place] ^ (differs & goes)
                    nodes, in_one = nodes // 2, not in_one
                if in_one:
                    for place in range(_BLOCK):
                        scores[place] += of_one[0, place]
                else:
                    for place in range(_BLOCK):
                        scores[place] += of_other[0, place]
                tree += 1
            for place in range(count):
                found[begin + place, function] = scores[place]
    return found
