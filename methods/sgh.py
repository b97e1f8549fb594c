"""SGH: kernel hash functions whose codes reproduce a similarity graph that is never written down.

Jiang, Li. Scalable Graph Hashing with Feature Transformation. IJCAI 2015. Authors' code:
jiangqy/SGH-IJCAI2015.
"""

import math
import time
from dataclasses import dataclass

import numpy as np

from methods.base import HashingMethod, check_settings
from methods.learners.eigenproblem import LeadingEigenvector
from methods.learners.kernels import draw_anchors, gaussian_kernel, mean_squared_distance_to

_ROWS = 2048  # items whose kernel values are computed at once
_RIDGE = 1e-6


@dataclass(kw_only=True)
class ScalableGraphHashing(HashingMethod):
    r"""Minimises, bit after bit,

    $$
    \|b S - B B^\top\|^2, \qquad B = \mathrm{sgn}(K W), \qquad S_{ij} = 2 e^{-\|x_i - x_j\|^2 / \rho} - 1
    $$

    of items that are centred and scaled to unit length, K their centred Gaussian kernel values at `anchors`
    items.

    S is replaced by a product of two thin matrices (`graph_factors`). After one pass over the bits, a second
    one in random order solves each bit again, given all others.
    """

    title = "SGH"
    paper = "https://www.ijcai.org/Abstract/15/318"
    colour = "#5F9EA0"
    marker = "8"
    supervision = "none"
    family = "unsupervised"
    learned = ("mean", "anchor_items", "variance", "value_means", "weights")
    space = {
        "anchors": [100, 200, 300, 500, 800],
        "rho": {"log_uniform": [0.5, 8.0]},
    }
    bounds = {"anchors": "[1, inf)", "rho": "(0, inf)"}

    anchors: int = 300
    rho: float = 2.0

    def fit(self, training_set):
        check_settings(self)
        started = time.perf_counter()
        generator = np.random.default_rng(self.seed)
        items = training_set.items.reshape(len(training_set), -1).astype(np.float64)
        self.mean = items.mean(axis=0)
        items = _unit_length(items - self.mean)
        self.anchor_items = draw_anchors(items, self.anchors, generator)
        self.variance = mean_squared_distance_to(items, self.anchor_items, "sgh")
        values = gaussian_kernel(items, self.anchor_items, self.variance)
        self.value_means = values.mean(axis=0)
        values -= self.value_means
        left, right = graph_factors(items, self.rho)
        gram = values.T @ values
        gram[np.diag_indices_from(gram)] += _RIDGE
        residual = self.bits * (values.T @ left) @ (values.T @ right).T
        self.weights = np.empty((len(gram), self.bits))
        coded = np.zeros((len(gram), self.bits))  # K' sgn(K w) of each bit
        order = [*range(self.bits), *generator.permutation(self.bits)]
        problem = LeadingEigenvector(residual, gram, generator)
        for step, bit in enumerate(order):
            problem.add(coded[:, bit], 1)
            self.weights[:, bit] = problem.find()
            coded[:, bit] = values.T @ np.where(values @ self.weights[:, bit] > 0, 1.0, -1.0)
            problem.add(coded[:, bit], -1)
            training_set.log(
                {
                    "bit": step % self.bits + 1,
                    "pass": step // self.bits + 1,
                    "objective": None,
                    "seconds": time.perf_counter() - started,
                }
            )
        return self

    def encode_block(self, items):
        codes = np.empty((len(items), self.bits), bool)
        for begin in range(0, len(items), _ROWS):
            some = items[begin : begin + _ROWS].reshape(-1, len(self.mean))
            values = gaussian_kernel(_unit_length(some - self.mean), self.anchor_items, self.variance)
            codes[begin : begin + _ROWS] = (values - self.value_means) @ self.weights > 0
        return codes


def _unit_length(items):
    lengths = np.linalg.norm(items, axis=1, keepdims=True)
    return items / np.where(lengths > 0, lengths, 1)


def graph_factors(items, rho):
    """P and Q, (n, d + 2), with P Q' close to S_ij = 2 exp(-|x_i - x_j|^2 / rho) - 1 (the paper's eq. (5)).

    items: of unit length, (n, d). exp(2 x.y / rho) is replaced by the line through its values where
    2 x.y / rho is -1 and 1, so that rho = 2 covers all cosines.
    """
    decay = np.exp(-np.square(items).sum(axis=1) / rho)[:, None]
    slope, level = math.sqrt(2 * (math.e - 1 / math.e) / rho), math.sqrt(math.e + 1 / math.e)
    one = np.ones((len(items), 1))
    return np.hstack([slope * decay * items, level * decay, one]), np.hstack(
        [slope * decay * items, level * decay, -one]
    )
