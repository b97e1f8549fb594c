"""DSDH: DPSH's likelihood of pairs, while the codes themselves must let the labels be regressed.

Li, Sun, He, Tan. Deep Supervised Discrete Hashing. NeurIPS 2017. Authors' code: liqi-casia/DSDH-HashingCode
(MATLAB). Also read: TreezzZ/DSDH_PyTorch, which is not theirs.
"""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Literal

import numpy as np
import torch

from methods.base.deep import DeepHashing
from methods.base.labels import label_matrix
from methods.base.supervision import kept_matrix, similar_share, similar_to_all
from methods.learners.discrete import descend
from methods.relations.likelihood import likelihood_and_slope, with_gradient


@dataclass(kw_only=True)
class DSDH(DeepHashing):
    r"""Minimises two objectives in turn: the mean of the first over pairs of a batch with the latest scores U
    of all training items, plus $\eta$ times the quantisation $(B - U)^2$, and the second over codes B and W:

    $$
    \ln(1 + e^{\theta_{ij}}) - s_{ij} \theta_{ij}, \qquad \theta_{ij} = \frac{1}{2} u_i^\top u_j
    $$

    $$
    \underset{B \in \{-1, +1\}^{n \times b}, \, W}{\min} \;
    \mu \|Y - B W\|^2 + \nu \|W\|^2 + \eta \|B - U\|^2
    $$

    balance: "mean": the quantisation is a mean over the items and bits of a batch, so that $\eta$ does not
    depend on the size of the training set. "sum": both terms are sums, divided by the number of pairs, as in
    the paper. A "sum" of $\eta$ is a "mean" of $\eta$ bits / n.

    codes_of: "training": once an epoch, with the scores of all items, W by ridge regression from B, then B
    bit by bit (`sweeps` times at most). "batch": in each step of the network, with the scores of its batch
    alone, W from sgn(U), then B bit by bit from zeros.

    The authors take the balance "sum" and codes of the batch, eta 55, mu 1, nu 0.1, 10 sweeps, SGD without
    momentum, weight decay 5e-4, batches of 128, 150 epochs, a rate from 1e-2 to 1e-6 in equal ratios. The
    defaults follow the other code: RMSprop (there at 1e-5 with a cosine schedule), mu 0.01, nu 1, eta 0.01,
    codes of all training items, starting at random.
    """

    title = "DSDH"
    paper = "https://arxiv.org/abs/1705.10999"
    colour = "#542788"
    marker = "P"
    supervision = "labels"
    family = "pointwise"
    # The authors' eta is 0.13 to 0.53 as a mean at 5,000 items and 12 to 48 bits; their nu / mu is 0.1.
    space = {
        "learning_rate": {"log_uniform": [3e-4, 3e-2]},
        "momentum": [0.0, 0.9],
        "mu": {"log_uniform": [1e-3, 10.0]},
        "nu": {"log_uniform": [1e-3, 10.0]},
        "eta": {"log_uniform": [1e-3, 10.0]},
    }
    changing_memory = ("table", "codes")
    bounds = {"mu": "(0, inf)", "sweeps": "[1, inf)"}

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
    balance: Literal["mean", "sum"] = "mean"
    codes_of: Literal["training", "batch"] = "training"

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

    def batch_affinity(self, training, indices):
        return similar_to_all(training.training_set, indices, training.memory.similar)

    def start_epoch(self, training):
        super().start_epoch(training)
        if training.epoch and self.codes_of == "training":
            memory = training.memory
            codes = memory.codes.cpu().numpy().astype(np.float64)
            improve_codes(codes, memory.labels, _array(memory.table), *self._weights)
            memory.codes.copy_(torch.from_numpy(codes))

    def loss(self, outputs, batch):
        """The gradient of the likelihood is that over all ordered pairs, the scores outside of the batch held
        fixed (as in methods/dpsh.py)."""
        memory, indices, scores = batch.training.memory, batch.indices, outputs.detach()
        memory.table[indices] = scores
        if self.codes_of == "batch":
            codes = codes_of_batch(memory.labels[indices.cpu().numpy()], _array(scores), *self._weights)
            memory.codes[indices] = torch.from_numpy(codes).to(memory.codes)
        value, slope = likelihood_and_slope(scores @ memory.table.T / 2, batch.affinity > 0)
        pairs = len(scores) * len(memory.table)
        likelihood = with_gradient(value / pairs, outputs, slope @ memory.table / pairs)
        eta = self.eta if self.balance == "mean" else self.eta * self.bits / len(memory.table)
        return likelihood + eta * (memory.codes[indices] - outputs).square().mean()

    @property
    def _weights(self):
        return self.mu, self.nu, self.eta, self.sweeps


def improve_codes(codes, labels, scores, mu, nu, eta, sweeps):
    """W = (B'B + nu / mu I)^-1 B'Y, then B in place by `descend` with Q = Y W' + eta / mu U; returns W.

    codes: B float64 (n, bits); labels: Y (n, C); scores: U (n, bits). Neither step raises
    mu |Y - B W|^2 + nu |W|^2 + eta |B - U|^2.
    """
    classifier = _classifier(codes, labels, nu / mu)
    descend(codes, labels @ classifier.T + eta / mu * scores, classifier, sweeps)
    return classifier


def codes_of_batch(labels, scores, mu, nu, eta, sweeps):
    """B (M, bits), float64: as `improve_codes`, but W is of sgn(U), and the descent starts from zeros."""
    classifier = _classifier(np.where(scores > 0, 1.0, -1.0), labels, nu / mu)
    codes = np.zeros_like(scores)
    descend(codes, labels @ classifier.T + eta / mu * scores, classifier, sweeps)
    return codes


def _classifier(codes, labels, ridge):
    gram = codes.T @ codes + ridge * np.eye(codes.shape[1])
    return np.linalg.solve(gram, codes.T @ labels)


def _array(scores):
    return scores.cpu().numpy().astype(np.float64)
