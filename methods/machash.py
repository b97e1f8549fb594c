"""MACHash: codes and hash functions optimised in turn, tied by a penalty that grows until they agree.

Raziperchikolaei, Carreira-Perpiñán. Optimizing Affinity-Based Binary Hashing Using Auxiliary Coordinates.
NIPS 2016.
"""

import time
from dataclasses import dataclass

import numpy as np

from methods.base import HashingMethod, Refusal, check_settings
from methods.base.supervision import single_classes
from methods.learners.graph_cuts import BlockCuts
from methods.learners.linear import leading_directions, with_definite_signs
from methods.learners.svm import SharedItems, fit_linear_svms
from methods.relations.pairs import make_blocks, sample_pairs
from tiebench._compiled import compiled


@dataclass(kw_only=True)
class MACHash(HashingMethod):
    r"""Minimises, with the KSH loss,

    $$
    \frac{1}{v} \sum_{(n, m)} \left(z_n^\top z_m - b y_{nm}\right)^2 + \mu \sum_n \|z_n - h(x_n)\|^2
    $$

    over auxiliary codes Z (n, b) and linear SVMs h, $y_{nm}$ = +-1 and v the mean number of partners of an
    item;

    in turn over Z (block graph cuts, bit after bit) and h, while mu grows: 0 at first, then `mu`, and
    `mu_factor` times as much in every further iteration, until Z = h(X).

    similar, dissimilar: pairs drawn per training item; sweeps: most passes over the bits in the first
    iteration, before there is an h; passes over the blocks per bit; C: of the SVMs, on items scaled to
    [0, 1].
    """

    title = "MACHash"
    paper = "https://arxiv.org/abs/1501.05352"
    colour = "#666633"
    marker = "D"
    supervision = "binary"
    family = "pointwise"
    learned = ("projections", "offsets")
    space = {
        "C": {"log_uniform": [0.001, 100.0]},
        "mu": {"log_uniform": [0.003, 3.0]},
        "dissimilar": [100, 200, 500, 1000, 2000],
    }
    bounds = {
        "similar": "[1, inf)",
        "dissimilar": "[1, inf)",
        "iterations": "[1, inf)",
        "mu": "(0, inf)",
        "mu_factor": "(0, inf)",
        "sweeps": "[1, inf)",
        "passes": "[1, inf)",
        "C": "(0, inf)",
    }

    similar: int = 100
    dissimilar: int = 500
    iterations: int = 20
    mu: float = 0.3
    mu_factor: float = 1.4
    sweeps: int = 10
    passes: int = 2
    C: float = 100.0

    def fit(self, training_set):
        check_settings(self)
        started = time.perf_counter()
        generator = np.random.default_rng(self.seed)
        pairs = sample_pairs(training_set, self.similar, self.dissimilar, generator)
        items = training_set.items.reshape(len(training_set), -1).astype(np.float64)
        lowest = items.min(axis=0)
        # One range for all: dimensions keep their relative scale.
        widest = float((items.max(axis=0) - lowest).max()) or 1.0
        shared = SharedItems((items - lowest) / widest)
        steps = CodeSteps(pairs, single_classes(training_set), self.bits, generator, self.passes)
        codes = _principal_signs(items, self.bits, generator)
        for _ in range(self.sweeps):
            before = codes.copy()
            steps.improve(codes, 0.0, None)
            if np.array_equal(codes, before):
                break
        weights, mu, best, learned = None, 0.0, np.inf, {}
        for iteration in range(1, self.iterations + 1):
            weights = fit_linear_svms(shared, codes, self.C, start=weights)
            self.projections = (weights[:-1] / widest).astype(np.float32)
            self.offsets = (weights[-1] - lowest @ weights[:-1] / widest).astype(np.float32)
            hashed = np.where(self.encode(training_set.items), 1, -1).astype(np.int8)
            constant = int((hashed == hashed[0]).all(axis=0).sum())
            apart = float((codes != hashed).mean())
            objective = steps.loss(hashed)
            if objective < best:
                best, learned = objective, self.state()
            training_set.log(
                {
                    "iteration": iteration,
                    "iterations": self.iterations,
                    "objective": objective,
                    "seconds": time.perf_counter() - started,
                    "mu": mu,
                    "codes_objective": steps.loss(codes),
                    "apart": apart,
                    "constant_bits": constant,
                }
            )
            if constant == self.bits:
                raise Refusal(
                    "the codes collapsed: every bit is constant; draw more dissimilar pairs, or raise C"
                )
            if apart == 0 or iteration == self.iterations:
                break
            mu = mu * self.mu_factor if mu else self.mu
            steps.improve(codes, mu, hashed)
        # Regularised SVMs that follow codes that follow them may drift: what counts is h's own objective.
        self.set_state(learned)
        return self

    def encode_block(self, items):
        return items.reshape(len(items), -1) @ self.projections + self.offsets > 0


class CodeSteps:
    """The Z-step: all bits once, in turn, each by block cuts with the others fixed."""

    def __init__(self, pairs, labels, bits, generator, passes):
        self.pairs, self.bits, self.generator, self.passes = pairs, bits, generator, passes
        self.cuts = BlockCuts(pairs, make_blocks(pairs, labels, generator))
        self.target = np.where(pairs.similar, bits, -bits).astype(np.int32)
        # Each unordered pair stands for two ordered ones, and an item has 2 p / n partners on average.
        self.scale = 2 / (2 * len(pairs) / pairs.items)

    def errors(self, codes):
        """z_n . z_m - b y_nm of every pair: int32 (p,). codes: int8 (n, b)."""
        return _errors(np.ascontiguousarray(codes), self.pairs.first, self.pairs.second, self.target)

    def loss(self, codes):
        """The mean over pairs of ((z_n . z_m) / b - y_nm)^2."""
        return float((self.errors(codes).astype(np.float64) ** 2).mean() / self.bits**2)

    def improve(self, codes, mu, hashed):
        """Lower the penalised objective by changing codes, int8 (n, b), in place. hashed: h(X), int8 (n, b),
        or None."""
        errors, after = self.errors(codes), np.zeros(len(codes), np.int8)
        for bit in range(self.bits):
            before = np.ascontiguousarray(codes[:, bit])
            # (c + z_i z_j)^2 = c^2 + 1 + 2 c z_i z_j, c being the error without this bit.
            _exchange(errors, before, after, self.pairs.first, self.pairs.second)
            linear = None if hashed is None else -2 * mu * hashed[:, bit].astype(np.float64)
            unit = 2 * self.scale
            after = self.cuts.lower(before, errors, self.generator, linear, self.passes, unit).astype(np.int8)
            codes[:, bit] = after


@compiled("i4[::1](i1[:, ::1], i4[::1], i4[::1], i4[::1])", nogil=True)
def _errors(codes, first, second, target):
    errors = np.empty(len(first), np.int32)
    for pair in range(len(first)):
        one, other = codes[first[pair]], codes[second[pair]]
        product = np.int64(0)
        for bit in range(len(one)):
            product += np.int32(one[bit]) * np.int32(other[bit])
        errors[pair] = product - target[pair]
    return errors


@compiled("void(i4[::1], i1[::1], i1[::1], i4[::1], i4[::1])", nogil=True)
def _exchange(errors, out, into, first, second):
    """Take one bit's products out of the errors, and another's into them."""
    # For each value of the first item's two bits (`into` is 0 for no bit) the change by each second item, so
    # that a pair reads one number of its second item.
    changes = np.empty((3, 3, len(out)), np.int8)
    for one in (-1, 0, 1):
        for other in (-1, 1):
            for item in range(len(out)):
                changes[one + 1, other + 1, item] = one * into[item] - other * out[item]
    for pair in range(len(first)):
        item = first[pair]
        errors[pair] += changes[into[item] + 1, out[item] + 1, second[pair]]


def _principal_signs(items, bits, generator):
    """Signs of the centred items' first principal components, int8 (n, b); of random projections where there
    are more bits than dimensions or items."""
    centred = items - items.mean(axis=0)
    _, directions = leading_directions(centred, bits)
    directions = with_definite_signs(directions)
    more = generator.standard_normal((items.shape[1], bits - directions.shape[1]))
    return np.where(centred @ np.hstack([directions, more]) > 0, 1, -1).astype(np.int8)
