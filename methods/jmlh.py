"""JMLH: a linear classifier on codes that are drawn from the probabilities of their bits.

Shen, Qin, Chen, Liu, Zhu, Shen. Embarrassingly Simple Binary Representation Learning. ICCV Workshops 2019.
Authors' code: ymcidence/TBH, and CISiPLab/cisip-FIRe, another group's.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch.nn.functional import log_softmax, logsigmoid

from methods.base.deep import DeepHashing
from methods.base.labels import label_matrix


@dataclass(kw_only=True)
class JMLH(DeepHashing):
    r"""Minimises the mean over items of the cross-entropy of a linear classifier on codes of 0 and 1, plus
    the divergence of their bits from fair coins:

    $$
    -\sum_c \frac{y_{ic}}{\left| y_i \right|} \log \, \mathrm{softmax}(W b_i + v)_c
    + \lambda \sum_k \left(p_{ik} \log \, 2 p_{ik} + (1 - p_{ik}) \log \, 2 (1 - p_{ik})\right),
    \qquad p = \sigma(u), \; b = [p > \epsilon]
    $$

    with $\lambda$ the `divergence` and $\epsilon$ uniform in (0, 1), drawn anew for each bit of each batch if
    `stochastic`, else 1/2. The gradient passes from b to p unchanged. Items are encoded with 1/2. Several
    labels share the target.

    divergence: 0.1 as in cisip-FIRe, whose form is stochastic like the paper's; the authors' code has 0.2 and
    1/2 throughout. The authors train with Adam at 1e-4.
    """

    title = "JMLH"
    paper = "https://openaccess.thecvf.com/content_ICCVW_2019/html/CEFRL/Shen_Embarrassingly_Simple_Binary_Representation_Learning_ICCVW_2019_paper.html"
    colour = "#E7298A"
    marker = "<"
    supervision = "labels"
    family = "classwise"
    space = {
        "learning_rate": {"log_uniform": [1e-4, 1e-1]},
        "divergence": [1e-3, 1e-2, 1e-1, 2e-1],
        "stochastic": [True, False],
    }

    optimiser: Literal["sgd", "adam", "adamw", "rmsprop"] = "adam"
    learning_rate: float = 1e-2
    weight_decay: float = 0.0
    initial_deviation: float | None = 0.01
    epochs: int = 60
    batch_size: int = 64
    divergence: float = 0.1
    stochastic: bool = True

    def prepare(self, training_set):
        label_matrix(training_set, "jmlh")

    def build_criterion(self, training_set):
        return torch.nn.Linear(self.bits, training_set.classes)

    def loss(self, outputs, batch):
        labels, p = batch.labels, torch.sigmoid(outputs)
        threshold = torch.rand_like(p) if self.stochastic else 0.5
        codes = p + ((p > threshold).to(p.dtype) - p).detach()
        targets = labels / labels.sum(dim=1, keepdim=True).clamp(min=1)
        entropies = (targets * log_softmax(batch.training.criterion(codes), dim=1)).sum(dim=1)
        return (self.divergence * divergence_from_fair(outputs) - entropies).mean()


def divergence_from_fair(outputs):
    """Kullback-Leibler divergence of bits with probabilities sigma(u) from fair ones, summed: (M,)."""
    p = torch.sigmoid(outputs)
    # log sigma(u) and log sigma(-u), which do not overflow.
    informations = p * logsigmoid(outputs) + (1 - p) * logsigmoid(-outputs)
    return informations.sum(dim=1) + outputs.shape[1] * math.log(2)
