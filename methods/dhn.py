"""DHN: a logistic likelihood of the pairs of a mini-batch, and a quantisation loss.

Zhu, Long, Wang, Cao. Deep Hashing Network for Efficient Similarity Retrieval. AAAI 2016. Released code:
thuml/DeepHash.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch.nn.functional import normalize, softplus

from methods.base.deep import DeepHashing
from methods.base.supervision import similar_share
from methods.relations.likelihood import negative_log_likelihood

_MOST = 15.0  # inner products of the released code are clipped to this


@dataclass(kw_only=True)
class DHN(DeepHashing):
    r"""Minimises

    $$
    \frac{1}{M^2} \sum_{i,j} \left[\ln(1 + e^{\theta_{ij}}) - s_{ij} \theta_{ij}\right]
    + \frac{\lambda}{M b} \sum_{i,k} \log \, \cosh(\left| z_{ik} \right| - 1),
    \qquad \theta_{ij} = \alpha \, z_i^\top z_j
    $$

    with $z = \tanh(u)$, $\alpha$ the `similarity_scale` and $\lambda$ the `quantisation`.

    normed: theta is alpha times the cosine of z_i and z_j.

    released: as the released code, which differs: inner products are clipped to +-15 before they are scaled,
    similar pairs are weighted by the number of pairs of the batch over that of its similar ones, an item with
    itself included, and the quantisation loss is the mean of (|z| - 1)^2. Its script takes the normed form
    with alpha 10, quantisation 0, batches of 256 and SGD at 5e-5 with momentum 0.9, 2,000 iterations.
    """

    title = "DHN"
    paper = "https://doi.org/10.1609/aaai.v30i1.10235"
    colour = "#35978F"
    marker = "h"
    supervision = "binary"
    family = "pointwise"
    space = {
        "learning_rate": {"log_uniform": [1e-2, 3.0]},
        "quantisation": {"log_uniform": [1e-3, 10.0]},
    }

    learning_rate: float = 1.0
    schedule: Literal["step", "cosine"] = "cosine"
    epochs: int = 60
    batch_size: int = 128
    quantisation: float = 0.1
    similarity_scale: float = 0.5
    normed: bool = False
    released: bool = False

    def prepare(self, training_set):
        similar_share(training_set, self.seed)  # refuses a training set without two kinds of pairs

    def loss(self, outputs, batch):
        similar = batch.affinity > 0
        codes = torch.tanh(outputs)
        points = normalize(codes) if self.normed else codes
        products = points @ points.T
        if self.released:
            products = products.clamp(-_MOST, _MOST)
        pairs = negative_log_likelihood(self.similarity_scale * products, similar.to(outputs.dtype))
        if self.released:
            weights = torch.where(similar, similar.numel() / similar.sum().to(outputs), 1.0)
            return (weights * pairs).mean() + self.quantisation * (codes.abs() - 1).square().mean()
        return pairs.mean() + self.quantisation * log_cosh(codes.abs() - 1).mean()


def log_cosh(values):
    """log cosh, without overflow."""
    return values.abs() + softplus(-2 * values.abs()) - math.log(2)
