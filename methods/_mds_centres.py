"""Class codes at a guaranteed distance, searched for one code at a time (Wang et al. 2023)."""

import math

import numpy as np

from methods._centres import make_centres, separation
from methods.base import Refusal
from tiebench._compiled import compiled

_SWEEPS = 50
_OUTER = 1000
_INNER = 10
_TOLERANCE = 1e-6
_FIRST_RHO, _RHO_GROWTH, _MOST_RHO = 1e-5, 1.09, 1e7
_GAMMA = (1 + math.sqrt(5)) / 2


def guaranteed_distance(classes, bits):
    """d*, the smallest d with sum_{i < d} C(bits, i) >= 2^bits / classes (Gilbert and Varshamov): codes of so
    many classes at least so far from each other exist."""
    total = 0
    for distance in range(1, bits + 2):
        total += math.comb(bits, distance - 1)
        if total * classes >= 2**bits:
            return distance
    raise AssertionError("all codes together are 2^bits")


def mds_centres(classes, bits, generator, sweeps=_SWEEPS):
    """Codes of classes, int8 (classes, bits), whose smallest distance reaches `guaranteed_distance` where the
    search succeeds; the best set found in `sweeps` sweeps over the codes otherwise.

    Starts from CSQ's centres. Each code in turn minimises its summed inner products with the others under
    <o_i, o_j> <= bits - 2 d*, o_i in {-1, +1}, by `improved_code`. Best is the largest mean + minimum -
    variance of the distances. Raises `Refusal` where there are fewer codes than classes.
    """
    if classes > 2**bits:
        raise Refusal(f"{bits} bits cannot tell {classes} classes apart")
    wanted = guaranteed_distance(classes, bits)
    codes = make_centres("published", classes, bits, generator).astype(np.float64)
    best, chosen = _quality(codes), codes.copy()
    for _ in range(sweeps):
        if separation(chosen)[0] >= wanted:
            break
        before = codes.copy()
        for place in generator.permutation(classes):
            others = np.delete(codes, place, axis=0)
            codes[place] = improved_code(codes[place], others, bits - 2 * wanted)
        quality = _quality(codes)
        if quality > best:
            best, chosen = quality, codes.copy()
        if np.array_equal(codes, before):
            break  # no further sweep would change a code
    return chosen.astype(np.int8)


def _quality(codes):
    classes, bits = codes.shape
    distances = (bits - (codes @ codes.T)[np.triu_indices(classes, 1)]) / 2
    return distances.mean() + distances.min() - distances.var() if classes > 1 else 0.0


def improved_code(start, others, most):
    """A code (bits,) of small summed inner products with `others` (m, bits), each at most `most` if possible.

    Lp-box ADMM: the set {-1, +1}^bits is the box cut with the sphere of radius sqrt(bits), each held by a
    copy of the code with its multipliers, and the inequalities by slack variables.
    """
    others = np.ascontiguousarray(others, np.float64)
    values, vectors = np.linalg.eigh(others.T @ others)
    vectors = np.ascontiguousarray(vectors)
    code = _lowered(np.array(start, np.float64), others, values, vectors, others.mean(axis=0), float(most))
    return np.where(code > 0, 1.0, -1.0)


@compiled("f8[::1](f8[::1], f8[:, ::1], f8[::1], f8[:, ::1], f8[::1], f8)", nogil=True)
def _lowered(code, others, values, vectors, mean, most):
    """The last iterate of the ADMM. values, vectors: of others.T @ others; mean: of the others.

    Arrays are of tens to hundreds of numbers and steps by the thousand: compiled, no step waits for Python.
    """
    bits = len(code)
    rho = _FIRST_RHO
    for_box, for_sphere, for_slack = np.zeros(bits), np.zeros(bits), np.zeros(len(others))
    products = np.dot(others, code)
    for _ in range(_OUTER):
        farthest = 0.0
        for _ in range(_INNER):
            box = np.minimum(np.maximum(code + for_box / rho, -1.0), 1.0)
            sphere = code + for_sphere / rho
            sphere *= math.sqrt(bits) / max(math.sqrt(np.dot(sphere, sphere)), 1e-300)
            slack = np.maximum(0.0, most - products - for_slack / rho)
            right = rho * (box + sphere) - for_box - for_sphere - mean
            right += np.dot(others.T, rho * (most - slack) - for_slack)
            code = np.dot(vectors, np.dot(vectors.T, right) / (rho * (2 + values)))
            products = np.dot(others, code)
            for_box += _GAMMA * rho * (code - box)
            for_sphere += _GAMMA * rho * (code - sphere)
            for_slack += _GAMMA * rho * (products + slack - most)
            farthest = max(np.abs(code - box).max(), np.abs(code - sphere).max())
        if farthest <= _TOLERANCE:
            break
        rho = min(rho * _RHO_GROWTH, _MOST_RHO)
    return code
