"""DPSH: a logistic likelihood on the inner products of a mini-batch with all training items.

Li, Wang, Kang. Feature Learning based Deep Supervised Hashing with Pairwise Labels. IJCAI 2016. Authors'
code: MATLAB (MatConvNet), and jiangqy/DPSH-pytorch.
"""

from dataclasses import dataclass
from types import SimpleNamespace

import torch

from methods.base.deep import DeepHashing
from methods.base.supervision import kept_matrix, similar_share, similar_to_all
from methods.relations.likelihood import likelihood_and_slope, with_gradient

_ITEMS_AT_ONCE = 1024  # so that what is computed about a batch and them stays in the cache


@dataclass(kw_only=True)
class DPSH(DeepHashing):
    r"""Minimises

    $$
    J = \sum_{i,j} \left[\ln(1 + e^{\theta_{ij}}) - s_{ij} \theta_{ij}\right]
    + \eta \sum_i \|\mathrm{sgn}(u_i) - u_i\|^2, \qquad \theta_{ij} = \frac{1}{2} u_i^\top u_j
    $$

    over all ordered pairs of training items, u the network's raw scores.

    A table keeps every item's latest scores, zeros at first; the pairs of a step are those of its batch with
    the whole table. Scores are not squashed.

    On fine-tuned networks the authors take batches of 128, 150 epochs, no momentum, learning rate 0.01
    falling to 1e-6 (PyTorch: 0.05, a tenth every 50 epochs), weight decay 5e-4 (1e-5), eta 10 (NUS-WIDE 100).
    A linear layer on features of unit length needs more: the step is proportional to their squared length,
    which is 1 instead of thousands.
    """

    title = "DPSH"
    paper = "https://arxiv.org/abs/1511.03855"
    colour = "#CC79A7"
    marker = "s"
    supervision = "binary"
    family = "pointwise"
    space = {
        "learning_rate": {"log_uniform": [0.1, 100.0]},
        # Of Adam, too: most scores of the table are of earlier steps, and momentum adds to that.
        "momentum": [0.0, 0.9],
        "eta": {"log_uniform": [0.1, 1000.0]},
    }
    changing_memory = ("table",)

    learning_rate: float = 3.0
    momentum: float = 0.0
    weight_decay: float = 1e-5
    epochs: int = 150
    batch_size: int = 128
    eta: float = 10.0

    def prepare(self, training_set):
        similar_share(training_set, self.seed)  # refuses a training set without two kinds of pairs
        return SimpleNamespace(
            table=torch.zeros(len(training_set), self.bits, device=self._device()),
            similar=kept_matrix(training_set, lambda affinity: affinity > 0, bool),
        )

    def batch_affinity(self, training, indices):
        return similar_to_all(training.training_set, indices, training.memory.similar)

    def loss(self, outputs, batch):
        """J over the pairs of the batch with all items, per pair; the affinity: bool or integers (M, n).

        Its gradient is the published step, -[(S - sigmoid(theta)) U - 2 eta (U_0 - sgn U_0)] / (M n), U_0 the
        batch's scores and U the table: that of J over all ordered pairs of training items with the scores
        outside of the batch held fixed. The 1/2 of theta is gone because u_i is in (i, j) and in (j, i).
        """
        table, affinity, scores = batch.training.memory.table, batch.affinity, outputs.detach()
        table[batch.indices] = scores
        error = scores - torch.sign(scores)
        value = self.eta * error.square().sum()
        gradient = 2 * self.eta * error
        half = scores / 2
        for begin in range(0, len(table), _ITEMS_AT_ONCE):
            some = table[begin : begin + _ITEMS_AT_ONCE]
            similar = affinity[:, begin : begin + _ITEMS_AT_ONCE]
            if similar.dtype != torch.bool:
                similar = similar > 0
            likelihood, slope = likelihood_and_slope(half @ some.t(), similar)
            value = value + likelihood
            gradient.addmm_(slope, some)
        pairs = len(scores) * len(table)
        return with_gradient(value / pairs, outputs, gradient / pairs)
