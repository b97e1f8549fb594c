"""DHN: a logistic likelihood of the pairs of a mini-batch, and a quantisation loss.

Zhu, Long, Wang, Cao. Deep Hashing Network for Efficient Similarity Retrieval. AAAI 2016. Released code:
thuml/DeepHash.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch.nn.functional import softplus

from methods._likelihood import negative_log_likelihood
from methods._supervision import similar_share
from methods.base.deep import DeepHashing

_MOST = 15.0  # theta of the released code is clipped to this


@dataclass(kw_only=True)
class DHN(DeepHashing):
    r"""Minimises

    $$
    \frac{1}{M^2} \sum_{i,j} \left[\ln(1 + e^{\theta_{ij}}) - s_{ij} \theta_{ij}\right]
    + \frac{\lambda}{M b} \sum_{i,k} \log \, \cosh(\left| z_{ik} \right| - 1),
    \qquad \theta_{ij} = \frac{1}{2} z_i^\top z_j
    $$

    with $z = \tanh(u)$ and $\lambda$ the `quantisation`.

    released: as the released code, which differs: theta = <u_i, u_j> / 2, clipped to +-15, similar pairs are
    weighted by the number of pairs over that of similar ones, and the quantisation loss is the mean of
    (|u| - 1)^2.
    """

    title = "DHN"
    paper = "https://doi.org/10.1609/aaai.v30i1.10235"
    colour = "#35978F"
    marker = "h"
    supervision = "binary"
    family = "pointwise"
    space = {
        "learning_rate": {"log_uniform": [1e-2, 3.0]},
        "quantisation": [1e-3, 1e-2, 1e-1, 1.0],
    }

    learning_rate: float = 1.0
    schedule: Literal["step", "cosine"] = "cosine"
    epochs: int = 60
    batch_size: int = 128
    quantisation: float = 0.1
    released: bool = False

    def prepare(self, training_set):
        return similar_share(training_set, self.seed)

    def loss(self, outputs, affinity):
        similar = (affinity > 0).to(outputs.dtype)
        if self.released:
            theta = (outputs @ outputs.T / 2).clamp(-_MOST, _MOST)
            weights = 1 + similar * (1 / self.memory - 1)
            pairs = (weights * negative_log_likelihood(theta, similar)).mean()
            return pairs + self.quantisation * (outputs.abs() - 1).square().mean()
        codes = torch.tanh(outputs)
        pairs = negative_log_likelihood(codes @ codes.T / 2, similar).mean()
        return pairs + self.quantisation * log_cosh(codes.abs() - 1).mean()


def log_cosh(values):
    """log cosh, without overflow."""
    return values.abs() + softplus(-2 * values.abs()) - math.log(2)
