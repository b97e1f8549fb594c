"""GreedyHash: a classifier on the codes themselves; the gradient passes through the sign unchanged.

Su, Zhang, Han, Tian. Greedy Hash: Towards Fast Optimization for Accurate Hash Coding in CNN. NeurIPS 2018.
Authors' code: ssppp/GreedyHash.
"""

from dataclasses import dataclass

import torch
from torch.nn.functional import log_softmax

from methods.base.deep import DeepHashing
from methods.base.labels import label_matrix
from methods.learners.straight_through import cubic_penalty, sign_straight_through


@dataclass(kw_only=True)
class GreedyHash(DeepHashing):
    r"""Minimises the cross-entropy of a linear classifier without bias on the codes, plus a penalty:

    $$
    -\frac{1}{M} \sum_i \sum_c \frac{y_{ic}}{\left| y_i \right|}
    \log \, \frac{\exp(w_c^\top b_i)}{\sum_a \exp(w_a^\top b_i)}
    + \frac{\alpha}{M b} \sum_{i,k} \left| \left| u_{ik} \right| - 1 \right|^3, \qquad b_i = \mathrm{sgn}(u_i)
    $$

    with $\alpha$ the `penalty`. The gradient by u is that by the codes, plus the penalty's.

    Of several labels the target is their uniform distribution; the released code knows one label only. The
    authors fine-tune with SGD at 1e-3 (momentum 0.9, weight decay 5e-4), batches of 32, 50 epochs, a tenth of
    the rate from epoch 30 on, penalty 0.1 (ImageNet: 1).
    """

    title = "GreedyHash"
    paper = "https://papers.nips.cc/paper/7360-greedy-hash-towards-fast-optimization-for-accurate-hash-coding-in-cnn"
    colour = "#B2182B"
    marker = "D"
    supervision = "labels"
    family = "classwise"
    space = {
        "learning_rate": {"log_uniform": [3e-3, 1.0]},
        "penalty": {"log_uniform": [1e-4, 1.0]},
        "batch_size": [16, 32, 64, 128, 256],
    }

    learning_rate: float = 0.1
    lr_gamma: float = 0.1
    lr_step_size: int = 36
    epochs: int = 60
    batch_size: int = 32
    penalty: float = 0.1

    def prepare(self, training_set):
        label_matrix(training_set, "greedyhash")

    def build_criterion(self, training_set):
        return torch.nn.Linear(self.bits, training_set.classes, bias=False)

    def loss(self, outputs, batch):
        labels = batch.labels
        targets = labels / labels.sum(dim=1, keepdim=True).clamp(min=1)
        scores = batch.training.criterion(sign_straight_through(outputs))
        cross_entropy = -(targets * log_softmax(scores, dim=1)).sum(dim=1).mean()
        return cross_entropy + self.penalty * cubic_penalty(outputs)
