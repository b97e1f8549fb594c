"""BRE: learn kernel hash functions whose Hamming distances reproduce given distances of training items.

Kulis, Darrell. Learning to Hash with Binary Reconstructive Embeddings. NIPS 2009.

The objective is minimised by coordinate descent on the weights, with an exact line search. Targets are
rounded to a fraction of a bit (affinities of up to 1024 levels are not changed by that), so that the descent
is done in integers: sums over pairs round nothing, F never rises, and equal F are equal.
"""

import time
from dataclasses import dataclass
from typing import Literal

import numpy as np

from methods.base import HashingMethod, Refusal, check_settings
from methods.learners.bre_kernels import Descent
from methods.learners.kernels import gaussian_kernel
from methods.learners.linear import signs_of_projections

_ROWS = 512  # rows of kernel values or affinities made at once
_FINEST = 1024  # steps of a bit to which targets are rounded at most: bounds the sums of squares
# Squared distances that are smaller, relative to the items' squares, are rounding errors of 0.
_NOTHING = 1e-12


@dataclass(kw_only=True)
class BRE(HashingMethod):
    r"""Bit p of x is $[\sum_q W_{pq} K(x, a_{pq}) > 0]$, with `anchors` training items $a_{pq}$ drawn at
    random for each bit. Minimises, over W,

    $$F = \frac{1}{2} \sum_{(i, j)} \left(\frac{h_{ij}}{b} - d_{ij}\right)^2$$

    over sampled ordered pairs, $h_{ij}$ their Hamming distance and $d_{ij}$ its target.

    kernel: "linear", x.y of items as they are given (they should be centred), or "rbf", exp(-|x - y|^2 / 2m)
    less its mean over training items x, m the mean squared distance of training items.

    target: the distances d in [0, 1] that are to be reproduced.
    "affinity": 1 - affinity / highest level: with binary affinity 0 for similar and 1 for dissimilar items;
    "binary": 0 where affinity > 0, else 1;
    "euclidean": (K_ii + K_jj) / 2 - K_ij over its maximum, the unsupervised form of the paper.

    anchors, training_items: all items where there are fewer; training_items None: all.
    partners: every training item is paired with this share of all items, with at least one of the others.
    weight_scale: standard deviation of the initial weights.
    A sweep sets one weight of each bit, drawn at random. The last sweep is number `max_sweeps`, or the first
    in which F falls by no more than `tolerance` times the number of pairs.
    """

    title = "BRE"
    paper = "https://papers.nips.cc/paper/3667-learning-to-hash-with-binary-reconstructive-embeddings"
    colour = "#882255"
    marker = "P"
    supervision = "graded"
    family = "pointwise"
    space = {
        "anchors": [50, 100, 200, 400, 1000, 2000, 3000],
        "kernel": ["linear", "rbf"],
        "partners": [0.02, 0.05, 0.1, 0.2, 0.4],
    }
    bounds = {
        "anchors": "[1, inf)",
        "max_sweeps": "[1, inf)",
        "training_items": "[2, inf)",
        "partners": "(0, 1]",
    }

    anchors: int = 50
    partners: float = 0.05
    training_items: int | None = None
    kernel: Literal["linear", "rbf"] = "linear"
    target: Literal["affinity", "binary", "euclidean"] = "affinity"
    weight_scale: float = 1e-3
    tolerance: float = 2e-5
    max_sweeps: int = 1000

    def fit(self, training_set):
        check_settings(self)
        started = time.perf_counter()
        generator = np.random.default_rng(self.seed)
        rows = np.arange(len(training_set))
        if self.training_items is not None and self.training_items < len(rows):
            rows = np.sort(generator.choice(len(rows), self.training_items, replace=False))
        if len(rows) < 2:
            raise Refusal(f"bre learns from pairs: it needs at least 2 training items, there are {len(rows)}")
        items = training_set.items[rows].reshape(len(rows), -1).astype(np.float64)
        if self.kernel == "rbf":
            self.bandwidth = mean_squared_distance(items)
            if self.bandwidth <= _NOTHING * np.square(items).sum(axis=1).max():
                raise Refusal("bre with an rbf kernel needs training items that differ")
        partners = draw_partners(len(rows), self.partners, generator)
        targets, scale = self._targets(training_set, rows, items, partners)
        drawn = [
            generator.choice(len(rows), min(self.anchors, len(rows)), replace=False) for _ in range(self.bits)
        ]
        used, places = np.unique(drawn, return_inverse=True)
        places = places.reshape(self.bits, -1)
        weights = self.weight_scale * generator.standard_normal(places.shape)
        self.anchor_items = items[used]
        columns = np.empty((len(used), len(rows)))
        for begin in range(0, len(rows), _ROWS):
            columns[:, begin : begin + _ROWS] = self.kernel_values(items[begin : begin + _ROWS]).T
        if self.kernel == "rbf":
            # Uncentred it is positive everywhere, and anchors so alike that single weights improve little.
            means = columns.mean(axis=1)
            columns -= means[:, None]
        descent = Descent(columns, places, weights, partners, targets, scale)
        for sweep in range(self.max_sweeps):
            before = descent.objective()
            for bit, anchor in enumerate(generator.integers(places.shape[1], size=self.bits)):
                descent.update(bit, anchor)
            training_set.log(
                {
                    "sweep": sweep + 1,
                    "sweeps": self.max_sweeps,
                    "objective": descent.objective(),
                    "seconds": time.perf_counter() - started,
                }
            )
            if before - descent.objective() <= self.tolerance * partners.size:
                break
        self.weights = np.zeros((len(used), self.bits))
        self.weights[places, np.arange(self.bits)[:, None]] = descent.weights
        if self.kernel == "rbf":
            self.thresholds = means @ self.weights
        else:
            # sum_q W_pq x.a_pq = x.(sum_q W_pq a_pq): one vector a bit stands for all its anchors.
            self.weights = self.anchor_items.T @ self.weights
        return self

    def encode_block(self, items):
        items = items.reshape(len(items), -1)
        if self.kernel == "linear":
            return signs_of_projections(items, self.weights, np.zeros(self.bits))
        items = items.astype(np.float64)
        codes = np.empty((len(items), self.bits), bool)
        for begin in range(0, len(items), _ROWS):
            values = self.kernel_values(items[begin : begin + _ROWS])
            codes[begin : begin + _ROWS] = values @ self.weights > self.thresholds
        return codes

    def state(self):
        names = ["weights"]
        if self.kernel == "rbf":
            names += ["thresholds", "anchor_items", "bandwidth"]
        return {name: getattr(self, name) for name in names}

    def set_state(self, state):
        vars(self).update(state)

    def kernel_values(self, items, others=None):
        """K, not centred, of items (n, d) and `others` (m, d), the anchors unless given; float64 (n, m)."""
        others = self.anchor_items if others is None else others
        if self.kernel == "rbf":
            return gaussian_kernel(items, others, self.bandwidth)
        return items @ others.T

    def _targets(self, training_set, rows, items, partners):
        """Distances that the pairs should have, in 1/scale of a bit: int32 (n, k), and scale."""
        euclidean = self.target == "euclidean"
        highest = max(training_set.levels[-1], 1) if self.target == "affinity" else 1
        distances = np.empty(partners.shape, np.float32)
        if euclidean:
            norms = np.einsum("ij,ij->i", items, items) if self.kernel == "linear" else np.ones(len(items))
            largest = _NOTHING * norms.max()  # what is smaller is the rounding error of 0
        for begin in range(0, len(rows), _ROWS):
            block = slice(begin, begin + _ROWS)
            if euclidean:
                whole = (norms[block, None] + norms) / 2 - self.kernel_values(items[block], items)
                largest = max(largest, whole.max())
            else:
                whole = 1 - np.minimum(training_set.affinity(rows[block], rows), highest) / highest
            distances[block] = np.take_along_axis(whole, partners[block], axis=1)
        scale = min(highest, _FINEST)
        if euclidean:
            scale = _FINEST
            distances /= largest if largest > _NOTHING * norms.max() else np.inf
        targets = np.rint(distances * (scale * self.bits)).astype(np.int32)
        if targets.min() == targets.max():
            raise Refusal("bre has nothing to reproduce: the target distances of all pairs are equal")
        return targets, scale


def draw_partners(items, share, generator):
    """For every item round(share * items) of the others, ascending, at least one: int32 (items, k)."""
    count = min(max(round(share * items), 1), items - 1)
    partners = np.empty((items, count), np.int32)
    for item in range(items):
        partners[item] = np.sort(generator.choice(items - 1, count, replace=False, shuffle=False))
    partners += partners >= np.arange(items)[:, None]  # leaves the item itself out
    return partners


def mean_squared_distance(items):
    """Mean over pairs of distinct items (n, d) of |x - y|^2."""
    return 2 * len(items) / (len(items) - 1) * np.mean(np.sum((items - items.mean(axis=0)) ** 2, axis=1))
