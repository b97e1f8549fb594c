"""SDC: cosines of pairs of codes are ordered as those of the features, and spread over all values.

Ng, Zhu, Hoe, Chan, Zhang, Song, Xiang. Unsupervised Hashing with Similarity Distribution Calibration. BMVC
2023. Authors' code: kamwoh/sdc.
"""

import functools
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from scipy.special import betaincinv
from torch.nn.functional import cosine_similarity

from methods.base.deep import DeepHashing
from methods.base.heads import hash_layer


@functools.lru_cache
def calibrated(pairs, shape):
    """Cosines that `pairs` pairs are to have, ascending: quantiles of a symmetric beta distribution on
    (-1, 1), float64 (pairs,)."""
    return 2 * betaincinv(shape, shape, (2 * np.arange(pairs) + 1) / (2 * pairs)) - 1


@dataclass(kw_only=True)
class SDC(DeepHashing):
    r"""Minimises

    $$
    \frac{1}{m} \sum_{k=1}^{m} \left| h_{(k)} - t_k \right|
    + \frac{\lambda}{M} \sum_{i=1}^{M} \left(1 - \cos(v_i, \mathrm{sgn}(v_i))\right),
    \qquad t_k = 2 \, \mathrm{Beta}^{-1}\left(\tfrac{2 k - 1}{2 m}; a, a\right) - 1
    $$

    over the m pairs of the two halves of a batch of M items: $h_{(k)}$ is the cosine of the outputs v of the
    pair whose features have the k-th smallest cosine. a is the `shape` of the beta distribution, $\lambda$
    the `quantisation`. The features give the order of pairs alone, so that codes spread over all similarities
    however narrow those of the features are.

    orthogonal: targets below 0 are 0. The authors train two layers on frozen features, linear, GELU, linear,
    batch normalisation, with Adam at 1e-4, a tenth of it for the last fifth of 100 epochs, weight decay 1e-5
    and batches of 64; here the hidden layer (`head: mlp`) has ReLU. Of images, the network under the hash
    head keeps its weights: the features are what orders the pairs.
    """

    title = "SDC"
    paper = "https://arxiv.org/abs/2302.07669"
    colour = "#1F9E89"
    marker = "p"
    supervision = "none"
    family = "unsupervised"
    space = {
        "learning_rate": {"log_uniform": [3e-5, 1e-2]},
        "shape": [1.0, 2.0, 5.0, 10.0],
        "quantisation": [0.0, 0.1, 1.0],
        "orthogonal": [False, True],
    }
    bounds = {"shape": "(0, inf)"}

    optimiser: Literal["sgd", "adam", "adamw", "rmsprop"] = "adam"
    learning_rate: float = 1e-4
    lr_gamma: float = 0.1
    lr_step_size: int = 48
    weight_decay: float = 1e-5
    backbone_lr_multiplier: float = 0.0
    epochs: int = 60
    batch_size: int = 64
    head: Literal["linear", "mlp"] = "mlp"
    shape: float = 5.0
    quantisation: float = 1.0
    orthogonal: bool = False

    def hash_layer(self, width):
        layer = hash_layer(width, self.bits, self.initial_deviation)
        return torch.nn.Sequential(layer, torch.nn.BatchNorm1d(self.bits, momentum=0.1))

    def loss(self, outputs, batch):
        half = len(outputs) // 2  # the last item of an odd batch is in no pair
        paired, features = outputs[: 2 * half], batch.features[: 2 * half].detach()
        order = cosine_similarity(features[:half], features[half:]).argsort(stable=True)
        found = cosine_similarity(paired[:half], paired[half:])[order]
        targets = torch.from_numpy(calibrated(half, self.shape)).to(found)
        if self.orthogonal:
            targets = targets.clamp(min=0)
        signs = torch.where(paired > 0, 1.0, -1.0).to(paired.dtype)
        rounding = (1 - cosine_similarity(paired, signs)).mean()
        return (found - targets).abs().mean() + self.quantisation * rounding
