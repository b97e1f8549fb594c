"""RaBitQ: signs of randomly rotated residuals, with an unbiased estimate of the distance.

Gao, Long. RaBitQ: Quantizing High-Dimensional Vectors with a Theoretical Error Bound for Approximate Nearest
Neighbor Search. SIGMOD 2024.
"""

from dataclasses import dataclass

import numpy as np

from methods.base import check_settings
from methods.base.estimates import EstimatedHashing
from methods.learners.linear import signs_of_projections


@dataclass(kw_only=True)
class RaBitQ(EstimatedHashing):
    r"""Bit k of x is

    $$[p_k^\top (x - c) > 0]$$

    with c the mean of the training items and $p_k$ orthonormal and random: as many as x has dimensions are a
    rotation. Fewer are the first rows of one; for more, x is padded with zeros. For each of these the
    estimate of $(x - c)^\top (q - c)$ is unbiased over the rotations, and its error is of the order of
    $1 / \sqrt{b}$ for vectors of length 1.

    A query is rounded at random, up or down, so that its coordinates keep their expectation; one draw of the
    chances serves all queries.
    """

    title = "RaBitQ"
    paper = "https://arxiv.org/abs/2405.12497"
    colour = "#0B7A75"
    marker = "P"
    supervision = "none"
    family = "unsupervised"
    learned = ("mean", "projections", "chances")

    def fit(self, training_set):
        check_settings(self)
        items = training_set.items.reshape(len(training_set), -1)
        self.mean = items.mean(axis=0, dtype=np.float64)
        generator = np.random.default_rng(self.seed)
        dimensions = items.shape[1]
        drawn = generator.standard_normal((max(dimensions, self.bits), self.bits))
        basis, triangle = np.linalg.qr(drawn)
        # With these signs all rotations are equally likely.
        self.projections = (basis * np.where(np.diagonal(triangle) < 0, -1.0, 1.0))[:dimensions]
        self.chances = generator.random(self.bits)
        training_set.log({"objective": None, "seconds": 0.0})
        return self

    def encode_block(self, items):
        items = np.reshape(items[:], (len(items), -1))
        return signs_of_projections(items, self.projections, self.mean @ self.projections)

    def raw_scores(self, items):
        return self._residuals(items) @ self.projections

    def squared_lengths(self, items):
        return np.square(self._residuals(items)).sum(axis=1)

    def _residuals(self, items):
        return np.reshape(items[:], (len(items), -1)) - self.mean

    def roundings(self):
        return self.chances
