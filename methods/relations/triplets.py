"""Triplets (anchor, positive, negative) drawn from a training set, and the likelihood of their order.

Wang, Shi, Kitani. Deep Supervised Hashing with Triplet Labels. ACCV 2016. A group is an anchor's positives
and negatives for one question; all of its positive-negative combinations are triplets, and none is ever
written out: neither time nor memory is spent on more than their weights.
"""

import math

import numpy as np
import torch

from methods.base import Refusal
from methods.base.supervision import kept_matrix, refuse_no_triplets
from tiebench._compiled import compiled


class ClassGroups:
    """Groups of single classes: the question is own class against another one, for each other class.

    `draw` gives positives int32 (M, groups, p) and negatives int32 (M, groups, q), none from the batch, drawn
    without replacement (with it where a class has too few outside of the batch, left out, -1, where none).
    """

    def __init__(self, classes, classes_per_anchor=None):
        """classes: int64 (n,), 0 to C - 1; classes_per_anchor: how many others an anchor meets, or None."""
        self.classes = classes
        self.count = int(classes.max()) + 1
        most = self.count - 1
        self.per_anchor = most if classes_per_anchor is None else min(classes_per_anchor, most)
        self.by_class = np.argsort(classes, kind="stable").astype(np.int32)

    def draw(self, anchors, positives, negatives, generator):
        """anchors: int64 (M,), the batch; positives, negatives: how many a group has of each."""
        outside = np.ones(len(self.classes), bool)
        outside[anchors] = False
        members = self.by_class[outside[self.by_class]]
        starts = np.searchsorted(self.classes[members], np.arange(self.count + 1))
        own = self.classes[anchors]
        others = np.broadcast_to(np.arange(self.count - 1), (len(anchors), self.count - 1))
        if self.per_anchor < self.count - 1:
            keys = generator.random(others.shape)
            others = np.sort(np.argpartition(keys, self.per_anchor - 1, axis=1)[:, : self.per_anchor], axis=1)
        others = others + (others >= own[:, None])
        uniforms = generator.random((*others.shape, positives + negatives))
        chosen = np.empty(uniforms.shape, np.int32)
        draw_by_class(members, starts, own, others, uniforms, chosen, positives)
        return np.split(chosen, [positives], axis=2)


class LevelGroups:
    """Groups of graded affinities: the question is one level above 0 against everything below it, for each.

    `draw` as `ClassGroups`: positives have that affinity to the anchor, negatives a lower one. With
    replacement where there are too few, left out (-1) where there are none of either.
    """

    def __init__(self, training_set):
        """Raises `Refusal` where no item has two levels of affinity to others: there is no triplet."""
        self.training_set = training_set
        self.levels = np.asarray(training_set.levels)
        if len(self.levels) > 256:
            raise Refusal(f"triplets need at most 256 levels of affinity, there are {len(self.levels)}")
        refuse_no_triplets(training_set)
        self.kept = kept_matrix(training_set, self._ranks, np.uint8)

    def draw(self, anchors, positives, negatives, generator):
        """anchors: int64 (M,), the batch; positives, negatives: how many a group has of each."""
        everything = np.arange(len(self.training_set))
        if self.kept is None:
            ranks = self._ranks(self.training_set.affinity(anchors, everything))
        else:
            ranks = self.kept[anchors]
        inside = np.zeros(len(everything), bool)
        inside[anchors] = True
        uniforms = generator.random((len(anchors), len(self.levels) - 1, positives + negatives))
        chosen = np.empty(uniforms.shape, np.int32)
        draw_by_level(ranks, inside, len(self.levels), uniforms, chosen, positives)
        return np.split(chosen, [positives], axis=2)

    def _ranks(self, affinity):
        """Places of affinities among the levels."""
        return np.searchsorted(self.levels, affinity).astype(np.uint8)


@compiled("(i4[::1], i8, i8, f8[::1], i4[::1])", nogil=True)
def _draw(pool, begin, end, uniforms, chosen):
    """Items of pool[begin:end], which is shuffled, without replacement where there are enough; -1 if none."""
    count = end - begin
    if count <= 0:
        chosen[:] = -1
    elif count < len(chosen):
        for k in range(len(chosen)):
            chosen[k] = pool[begin + int(uniforms[k] * count)]
    else:  # the first steps of a Fisher-Yates shuffle; earlier ones don't harm
        for k in range(len(chosen)):
            place = begin + k + int(uniforms[k] * (count - k))
            chosen[k] = pool[place]
            pool[place] = pool[begin + k]
            pool[begin + k] = chosen[k]


@compiled("(i4[::1], i8[::1], i8[::1], i8[:,::1], f8[:,:,::1], i4[:,:,::1], i8)", nogil=True)
def draw_by_class(members, starts, own, others, uniforms, chosen, positives):
    """Fill chosen (M, groups, positives + negatives) from the own class, and from the group's other class."""
    for i in range(len(own)):
        mine = own[i]
        for group in range(others.shape[1]):
            other = others[i, group]
            draws, out = uniforms[i, group], chosen[i, group]
            _draw(members, starts[mine], starts[mine + 1], draws[:positives], out[:positives])
            _draw(members, starts[other], starts[other + 1], draws[positives:], out[positives:])


@compiled("(u1[:,::1], b1[::1], i8, f8[:,:,::1], i4[:,:,::1], i8)", nogil=True)
def draw_by_level(ranks, inside, levels, uniforms, chosen, positives):
    """Fill chosen (M, levels - 1, positives + negatives) from ranks (M, n), the places of affinities among
    the levels; items `inside` the batch are left out."""
    items = ranks.shape[1]
    pool = np.empty(items, np.int32)
    starts = np.empty(levels + 1, np.int64)
    free = np.empty(levels, np.int64)
    for i in range(ranks.shape[0]):
        starts[:] = 0
        for j in range(items):
            starts[ranks[i, j] + 1] += not inside[j]
        for level in range(levels):
            starts[level + 1] += starts[level]
            free[level] = starts[level]
        for j in range(items):
            if not inside[j]:
                pool[free[ranks[i, j]]] = j
                free[ranks[i, j]] += 1
        # From the lowest up: drawing negatives mixes the levels below, which are not asked for any more.
        for level in range(1, levels):
            draws, out = uniforms[i, level - 1], chosen[i, level - 1]
            _draw(pool, starts[level], starts[level + 1], draws[:positives], out[:positives])
            _draw(pool, 0, starts[level], draws[positives:], out[positives:])


def triplet_likelihood(anchors, table, positives, negatives, margin):
    """Sum of -ln sigmoid(T) over the triplets of all groups, T = theta_qp - theta_qn - margin, and its
    derivative by the anchors' scores: tensors () and (M, bits).

    theta = <u, v> / 2 of an anchor's scores (M, bits) and the table's (n, bits), both float32 or both
    float64; positives int32 (M, groups, p), negatives int32 (M, groups, q), -1 in a group that is left out.
    Computed on the CPU, wherever the scores are.
    """
    scores = anchors.detach().cpu().contiguous().numpy()
    table = table.detach().cpu().contiguous().numpy()
    slopes = np.empty_like(scores)
    positives, negatives = np.ascontiguousarray(positives), np.ascontiguousarray(negatives)
    total = _triplet_likelihood(scores, table, positives, negatives, float(margin), slopes)
    return anchors.new_tensor(total), torch.from_numpy(slopes).to(anchors.device)


# Sums may be taken in any order (so that they go through vector registers); NaN stays NaN.
_SUMS = {"reassoc", "nsz", "contract"}
_LARGEST = 345.0  # of exponents, so that a product of two exponentials is finite in float64


@compiled("f8(f8[::1], f8[::1], f8, f8[::1], f8[::1])", nogil=True, error_model="numpy")
def _one_by_one(x, y, margin, by_positive, by_negative):
    """As `_group`, where numbers are too large for products of exponentials."""
    total = 0.0
    for p in range(len(x)):
        product = 1.0  # of numbers between 1 and 2, kept below 2^1000
        for n in range(len(y)):
            t = x[p] - y[n] - margin
            small = math.exp(-abs(t))
            total += max(-t, 0.0)
            product *= 1.0 + small
            if n % 1000 == 999:
                total += math.log(product)
                product = 1.0
            weight = (1.0 if t < 0.0 else small) / (1.0 + small)
            by_positive[p] += weight
            by_negative[n] += weight
        total += math.log(product)
    return total


@compiled(
    "f8(f8[::1], f8[::1], f8, f8[::1], f8[::1], f8[::1])",
    nogil=True,
    error_model="numpy",
    fastmath=_SUMS,
)
def _group(x, y, margin, by_positive, by_negative, work):
    """Sum of -ln s(T) over T = x_p - y_n - margin; 1 - s(T) summed over n, and over p, is written.

    e^-T is a product of one exponential of p and one of n, and a sum of logarithms that of a product.
    """
    by_positive[:] = 0.0
    by_negative[:] = 0.0
    middle = 0.5 * (x.min() + x.max())
    reach = max(x.max() - middle, abs(y.min() + margin - middle), abs(y.max() + margin - middle))
    if not reach < _LARGEST:  # also NaN
        return _one_by_one(x, y, margin, by_positive, by_negative)
    rest, product = work[: len(y)], work[len(y) :]
    for n in range(len(y)):
        rest[n] = math.exp(y[n] + margin - middle)
        product[n] = 1.0
    bound = max(x.max() - middle + y.max() + margin - middle, 0.0) + 0.7  # of ln(1 + e^-T)
    total = 0.0
    room = 2 * _LARGEST
    for p in range(len(x)):
        factor = math.exp(middle - x[p])
        weights = 0.0
        for n in range(len(y)):
            ratio = factor * rest[n]
            whole = 1.0 + ratio
            weight = ratio / whole
            weights += weight
            by_negative[n] += weight
            product[n] *= whole
        by_positive[p] = weights
        room -= bound
        if room < bound or p == len(x) - 1:
            for n in range(len(y)):
                total += math.log(product[n])
                product[n] = 1.0
            room = 2 * _LARGEST
    return total


def _signatures(text):
    return [text.replace("real", kind) for kind in ("f4", "f8")]


@compiled(*_signatures("real(real[::1], real[::1])"), nogil=True, fastmath=_SUMS)
def _inner(u, v):
    total = u[0] * v[0]
    for bit in range(1, len(u)):
        total += u[bit] * v[bit]
    return total


@compiled(*_signatures("void(real[::1], real, real[::1])"), nogil=True, fastmath=_SUMS)
def _add(out, factor, v):
    for bit in range(len(out)):
        out[bit] += factor * v[bit]


@compiled(
    *_signatures("f8(real[:,::1], real[:,::1], i4[:,:,::1], i4[:,:,::1], f8, real[:,::1])"),
    nogil=True,
    error_model="numpy",
)
def _triplet_likelihood(anchors, table, positives, negatives, margin, slopes):
    """Sum of -ln sigmoid(T) over all triplets; slopes (M, bits), its derivative, is written."""
    x, y = np.empty(positives.shape[2]), np.empty(negatives.shape[2])
    by_positive, by_negative = np.empty_like(x), np.empty_like(y)
    work = np.empty(2 * len(y))
    total = 0.0
    for i in range(anchors.shape[0]):
        anchor, slope = anchors[i], slopes[i]
        slope[:] = 0
        for group in range(positives.shape[1]):
            mine, other = positives[i, group], negatives[i, group]
            if mine[0] < 0 or other[0] < 0:
                continue
            for p in range(len(mine)):
                x[p] = 0.5 * _inner(anchor, table[mine[p]])
            for n in range(len(other)):
                y[n] = 0.5 * _inner(anchor, table[other[n]])
            total += _group(x, y, margin, by_positive, by_negative, work)
            for p in range(len(mine)):  # dT/du_q = (u_p - u_n) / 2
                _add(slope, -0.5 * by_positive[p], table[mine[p]])
            for n in range(len(other)):
                _add(slope, 0.5 * by_negative[n], table[other[n]])
    return total
