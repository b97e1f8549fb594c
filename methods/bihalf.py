"""BiHalf: each bit is +1 for half of every batch, by a layer that sorts its scores.

Li, van Gemert. Deep Unsupervised Image Hashing by Maximizing Bit Entropy. AAAI 2021. Authors' code:
liyunqianggyn/Deep-Unsupervised-Image-Hashing.
"""

from dataclasses import dataclass

import torch

from methods.base.deep import DeepHashing
from methods.learners.straight_through import cosine_agreement


class BiHalfLayer(torch.autograd.Function):
    """Scores (M, bits) to -1 and +1: the larger half of each column is +1 (M // 2 of an odd M). The gradient
    is that by the codes plus gamma (u - b) / (M bits)."""

    @staticmethod
    def forward(context, outputs, gamma):
        order = outputs.argsort(dim=0, descending=True, stable=True)
        codes = torch.full_like(outputs, -1.0)
        codes.scatter_(0, order[: len(outputs) // 2], 1.0)
        context.save_for_backward(outputs, codes)
        context.gamma = gamma
        return codes

    @staticmethod
    def backward(context, gradient):
        outputs, codes = context.saved_tensors
        return gradient + context.gamma * (outputs - codes) / outputs.numel(), None


@dataclass(kw_only=True)
class BiHalf(DeepHashing):
    r"""Minimises

    $$\frac{2}{M} \sum_{i=1}^{M/2} \left(\cos(b_i, b_{i+M/2}) - \cos(x_i, x_{i+M/2})\right)^2$$

    over pairs of the two halves of a batch of M items: $b_i$ by `BiHalfLayer`, $x_i$ what the hash head is
    given. Items are encoded by the plain sign.

    gamma: weight of the pull of scores towards their codes. The authors train a linear layer on the fc7
    features of VGG-16, with dropout active on the features, SGD at 1e-4, batches of 32, 300 epochs, a tenth
    of the rate every 120. Here features have no dropout. Of images, the network under the hash head keeps its
    weights: the features are the target.
    """

    title = "BiHalf"
    paper = "https://arxiv.org/abs/2012.12334"
    colour = "#4393C3"
    marker = "^"
    supervision = "none"
    family = "unsupervised"
    space = {
        "learning_rate": {"log_uniform": [1e-2, 3.0]},
        "gamma": {"log_uniform": [0.1, 30.0]},
    }

    learning_rate: float = 0.1
    lr_gamma: float = 0.1
    lr_step_size: int = 24
    backbone_lr_multiplier: float = 0.0
    epochs: int = 60
    batch_size: int = 64
    gamma: float = 6.0

    def loss(self, outputs, batch):
        return cosine_agreement(BiHalfLayer.apply(outputs, self.gamma), batch.features)
