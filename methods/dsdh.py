"""DSDH: DPSH's likelihood of pairs, while the codes themselves must let the labels be regressed.

Li, Sun, He, Tan. Deep Supervised Discrete Hashing. NeurIPS 2017. Read from TreezzZ/DSDH_PyTorch.
"""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Literal

import numpy as np
import torch

from methods._discrete import descend
from methods._labels import label_matrix
from methods._likelihood import likelihood_and_slope, with_gradient
from methods._supervision import kept_matrix, similar_share
from methods.base.deep import DeepHashing


@dataclass(kw_only=True)
class DSDH(DeepHashing):
    r"""Minimises two objectives in turn: the mean of the first over pairs of a batch with the latest scores U
    of all training items, plus $\eta$ times the mean of $(B - U)^2$, and the second over codes B and W:

    $$
    \ln(1 + e^{\theta_{ij}}) - s_{ij} \theta_{ij}, \qquad \theta_{ij} = \frac{1}{2} u_i^\top u_j
    $$

    $$
    \underset{B \in \{-1, +1\}^{n \times b}, \, W}{\min} \;
    \mu \|Y - B W\|^2 + \nu \|W\|^2 + \eta \|B - U\|^2
    $$

    In turn, once an epoch: the network by gradients; W by ridge regression; B bit by bit (`sweeps` times at
    most). The code read here: mu 0.01, nu 1, eta 0.01, RMSprop at 1e-5, batches of 128, 150 epochs, a cosine
    schedule.
    """

    title = "DSDH"
    paper = "https://arxiv.org/abs/1705.10999"
    colour = "#542788"
    marker = "P"
    supervision = "labels"
    family = "pointwise"
    space = {
        "learning_rate": {"log_uniform": [3e-4, 3e-2]},
        "mu": [1e-3, 1e-2, 1e-1, 1.0],
        "eta": [1e-3, 1e-2, 1e-1, 1.0],
    }
    changing_memory = ("table", "codes")

    optimiser: Literal["sgd", "adam", "adamw", "rmsprop"] = "rmsprop"
    learning_rate: float = 3e-3
    momentum: float = 0.0
    weight_decay: float = 1e-5
    epochs: int = 100
    batch_size: int = 128
    mu: float = 0.01
    nu: float = 1.0
    eta: float = 0.01
    sweeps: int = 3

    def prepare(self, training_set):
        similar_share(training_set, self.seed)  # refuses a training set without two kinds of pairs
        labels, device = label_matrix(training_set, "dsdh"), self._device()
        generator = np.random.default_rng((self.seed, 11))
        codes = np.where(generator.random((len(training_set), self.bits)) < 0.5, 1, -1).astype(np.float32)
        return SimpleNamespace(
            labels=labels,
            table=torch.zeros(len(training_set), self.bits, device=device),
            codes=torch.from_numpy(codes).to(device),
            similar=kept_matrix(training_set, lambda affinity: affinity > 0, bool),
        )

    def batch_affinity(self, training_set, indices):
        """Similarity of the batch with all training items: bool (M, n)."""
        if self.memory.similar is not None:
            return self.memory.similar[indices]
        return training_set.affinity(indices, np.arange(len(training_set))) > 0

    def start_epoch(self, epoch, training_set):
        super().start_epoch(epoch, training_set)
        if epoch:
            memory = self.memory
            codes = memory.codes.cpu().numpy().astype(np.float64)
            improve_codes(
                codes,
                memory.labels,
                memory.table.cpu().numpy().astype(np.float64),
                *(self.mu, self.nu, self.eta, self.sweeps),
            )
            memory.codes.copy_(torch.from_numpy(codes.astype(np.float32)))

    def loss(self, outputs, affinity, indices):
        """The gradient of the likelihood is that over all ordered pairs, the scores outside of the batch held
        fixed (as in methods/dpsh.py)."""
        table, scores = self.memory.table, outputs.detach()
        table[indices] = scores
        value, slope = likelihood_and_slope(scores @ table.T / 2, affinity > 0)
        pairs = len(scores) * len(table)
        likelihood = with_gradient(value / pairs, outputs, slope @ table / pairs)
        return likelihood + self.eta * (self.memory.codes[indices] - outputs).square().mean()


def improve_codes(codes, labels, scores, mu, nu, eta, sweeps):
    """W = (B'B + nu / mu I)^-1 B'Y, then B in place by `descend` with Q = Y W' + eta / mu U; returns W.

    codes: B float64 (n, bits); labels: Y (n, C); scores: U (n, bits). Neither step raises
    mu |Y - B W|^2 + nu |W|^2 + eta |B - U|^2.
    """
    gram = codes.T @ codes + nu / mu * np.eye(codes.shape[1])
    classifier = np.linalg.solve(gram, codes.T @ labels)
    descend(codes, labels @ classifier.T + eta / mu * scores, classifier, sweeps)
    return classifier
