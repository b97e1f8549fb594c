"""Class codes at a guaranteed distance, searched for one code at a time (Wang et al. 2023)."""

import math

import numpy as np

from methods.class_codes.centres import (
    balanced_codes,
    bernoulli_centres,
    hadamard_centres,
    refuse_more_classes_than_codes,
    separation,
)
from tiebench._compiled import compiled

_SWEEPS = 50
_INNER = 10
_TOLERANCE = 1e-6
_FIRST_RHO, _RHO_GROWTH, _MOST_RHO = 1e-5, 1.09, 1e7
_JUDGED = 100
_GAMMA = (1 + math.sqrt(5)) / 2


def guaranteed_distance(classes, bits):
    """d*, the smallest d with sum_{i < d} C(bits, i) >= 2^bits / classes (Gilbert and Varshamov): codes of so
    many classes at least so far from each other exist."""
    total, distance = 0, 0
    while total * classes < 2**bits:
        total += math.comb(bits, distance)
        distance += 1
    return distance


def mds_centres(classes, bits, generator, sweeps=_SWEEPS):
    """Codes of classes, int8 (classes, bits), whose smallest distance is `guaranteed_distance` at least where
    the search succeeds; the best set found in `sweeps` sweeps over the codes otherwise.

    Each code in turn minimises its summed inner products with the others under <o_i, o_j> <= bits - 2 d*,
    o_i in {-1, +1}, by `improved_code`. The search ends where d* is reached. Best is the largest mean +
    minimum - variance of the distances, among sets without a repeated code. Raises `Refusal` where there are
    fewer codes than classes.
    """
    refuse_more_classes_than_codes(classes, bits)
    wanted = guaranteed_distance(classes, bits)
    codes = _first_codes(classes, bits, generator).astype(np.float64)
    best, chosen = _quality(codes, wanted), codes.copy()
    for _ in range(sweeps):
        if separation(chosen)[0] >= wanted:
            break
        for place in range(classes):
            others = np.delete(codes, place, axis=0)
            codes[place] = improved_code(codes[place], others, bits - 2 * wanted, generator)
        quality = _quality(codes, wanted)
        if quality > best:
            best, chosen = quality, codes.copy()
    return chosen.astype(np.int8)


def _first_codes(classes, bits, generator):
    """Where the search starts: the rows of [H; -H], H Sylvester's matrix, and random balanced codes beyond
    them; different random codes where bits is not a power of two."""
    if bits & (bits - 1):
        return bernoulli_centres(classes, bits, generator)
    rows = hadamard_centres(min(classes, 2 * bits), bits)
    return np.concatenate([rows, balanced_codes(classes - len(rows), bits, generator)])


def _quality(codes, wanted):
    """Larger is better: (whether the distance is reached, whether all codes differ, the search's score)."""
    classes, bits = codes.shape
    if classes < 2:
        return True, True, 0.0
    distances = (bits - (codes @ codes.T)[np.triu_indices(classes, 1)]) / 2
    least = distances.min()
    return least >= wanted, least > 0, distances.mean() + least - distances.var()


def improved_code(start, others, most, generator):
    """A code (bits,) of small summed inner products with `others` (m, bits), each at most `most` if possible.

    Lp-box ADMM: the set {-1, +1}^bits is the box cut with the sphere of radius sqrt(bits), each held by a
    copy of the code with its multipliers, and the inequalities by slack variables. Multipliers start uniform
    in [0, 1]. The code stays `start` unless the score of its distances to the others, mean + minimum -
    variance, or their minimum becomes larger.
    """
    others = np.ascontiguousarray(others, np.float64)
    start, bits = np.array(start, np.float64), len(start)
    # The matrix of a step is this one times the penalty.
    inverse = np.linalg.inv(2 * np.eye(bits) + others.T @ others)
    multipliers = generator.random(2 * bits + len(others))
    return _improved(start, others, inverse, float(most), multipliers)


@compiled("Tuple((f8, f8))(f8[::1], f8[:, ::1])", nogil=True)
def _scored(code, others):
    """(mean + minimum - variance, minimum) of the distances of a code to others."""
    distances = (len(code) - np.dot(others, code)) / 2
    return distances.mean() + distances.min() - distances.var(), distances.min()


# Sums may be taken in any order: only then are they vectorised.
@compiled(
    "f8[::1](f8[::1], f8[:, ::1], f8[:, ::1], f8, f8[::1])", nogil=True, fastmath={"reassoc", "contract"}
)
def _improved(start, others, inverse, most, multipliers):
    """The best iterate of the ADMM, or start. inverse: of 2 I + others.T @ others; multipliers: of the box
    (bits,), the sphere (bits,) and the inequalities (m,), overwritten.

    Arrays are of tens to hundreds of numbers and steps by the thousand: loops that allocate nothing.
    """
    count, bits = others.shape
    for_box, for_sphere = multipliers[:bits], multipliers[bits : 2 * bits]
    for_slack = multipliers[2 * bits :]
    mean, pull = np.zeros(bits), np.zeros(bits)
    right, code = np.empty(bits), np.empty(bits)
    box, sphere = start.copy(), start.copy()
    rho = _FIRST_RHO
    for other in range(count):
        product = 0.0
        for bit in range(bits):
            product += others[other, bit] * start[bit]
        weight = rho * product - for_slack[other]
        for bit in range(bits):
            mean[bit] += others[other, bit] / count
            pull[bit] += weight * others[other, bit]
    best = start
    best_score, best_least = _scored(start, others)
    judged = 0
    while judged < _JUDGED:
        growing = min(rho * _RHO_GROWTH, _MOST_RHO)
        farthest = 0.0
        for step in range(_INNER):
            for bit in range(bits):
                right[bit] = rho * (box[bit] + sphere[bit]) - for_box[bit] - for_sphere[bit] - mean[bit]
                right[bit] = (right[bit] + pull[bit]) / rho
                code[bit] = 0.0
                pull[bit] = 0.0
            for row in range(bits):
                for bit in range(bits):
                    code[bit] += right[row] * inverse[row, bit]
            norm = 0.0
            for bit in range(bits):
                box[bit] = min(max(code[bit] + for_box[bit] / rho, -1.0), 1.0)
                sphere[bit] = code[bit] + for_sphere[bit] / rho
                norm += sphere[bit] * sphere[bit]
            scale = math.sqrt(bits) / max(math.sqrt(norm), 1e-300)
            farthest = 0.0
            for bit in range(bits):
                sphere[bit] *= scale
                for_box[bit] += _GAMMA * rho * (code[bit] - box[bit])
                for_sphere[bit] += _GAMMA * rho * (code[bit] - sphere[bit])
                farthest = max(farthest, abs(code[bit] - box[bit]), abs(code[bit] - sphere[bit]))
            next_rho = growing if step == _INNER - 1 else rho
            for other in range(count):
                product = 0.0
                for bit in range(bits):
                    product += others[other, bit] * code[bit]
                slack = max(0.0, most - product - for_slack[other] / rho)
                error = product + slack - most
                for_slack[other] += _GAMMA * rho * error
                farthest = max(farthest, abs(error))
                weight = next_rho * (most - slack) - for_slack[other]
                for bit in range(bits):
                    pull[bit] += weight * others[other, bit]
        rho = growing
        converged = farthest < _TOLERANCE
        if converged or rho == _MOST_RHO:
            judged += 1
            found = np.where(code > 0, 1.0, -1.0)
            score, least = _scored(found, others)
            if score > best_score or least > best_least:
                best, best_score, best_least = found, score, least
        if converged:
            break
    return best
