"""DTSH: a logistic likelihood of triplets, an anchor's positive to be nearer than its negative by a margin.

Wang, Shi, Kitani. Deep Supervised Hashing with Triplet Labels. ACCV 2016. Authors' code: Minione/DTSH.
"""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import torch

from methods.base import Refusal
from methods.base.deep import DeepHashing, shuffled_batches
from methods.base.supervision import single_classes
from methods.relations.likelihood import with_gradient
from methods.relations.triplets import ClassGroups, LevelGroups, triplet_likelihood

_TRIPLETS = 22_500  # an anchor has where the settings were published: 9 other classes, 50 x 50 each
_STEP = 2 * _TRIPLETS / 5_000  # see DTSH.loss


@dataclass(kw_only=True)
class DTSH(DeepHashing):
    r"""Minimises, over triplets (q, p, n),

    $$
    J = -\sum_{(q, p, n)} \ln \, \sigma(\theta_{qp} - \theta_{qn} - m)
    + \eta \sum_q \|u_q - \mathrm{sgn}(u_q)\|^2, \qquad \theta_{ij} = \frac{1}{2} u_i^\top u_j
    $$

    with u the network's raw scores and m the `margin`. margin None: bits / 2.

    A table keeps every item's latest scores, zeros at first. Anchors q are the items of a batch; their
    positives and negatives come from outside of it and move only when they are anchors themselves. With
    single classes (affinity 1 within a class, 0 across) each anchor meets each other class: `positives` items
    of its own class, drawn each time, and `negatives` of the other, in all combinations. classes_per_anchor:
    so many of the other classes, drawn at random (None: all; of 100 classes, 250,000 triplets an anchor). The
    published method stops there. With any other affinity an anchor meets each level above 0: positives of
    that affinity and negatives of a lower one, drawn with replacement where fewer exist.

    A batch is at most half of the training set. Refused: a class whose expected number of items outside of a
    batch is below `positives` or `negatives` (a batch that leaves fewer by chance draws with replacement).
    Scores are not squashed.

    On a fine-tuned network the authors take learning rate 5e-4, times 2/3 every 20 epochs, 100 epochs, no
    momentum, weight decay 5e-4, eta 100. A linear layer on features of unit length needs a higher rate: the
    step is proportional to their squared length, which is 1 instead of thousands.
    """

    title = "DTSH"
    paper = "https://arxiv.org/abs/1612.03900"
    colour = "#009E73"
    marker = "^"
    supervision = "graded"
    family = "pairwise"
    space = {
        "learning_rate": {"log_uniform": [0.01, 10.0]},
        "momentum": [0.0, 0.9],
        "eta": {"log_uniform": [0.03, 1000.0]},
        "margin": {"log_uniform": [0.5, 24.0]},
    }
    changing_memory = ("table",)
    bounds = {"positives": "[1, inf)", "negatives": "[1, inf)", "classes_per_anchor": "[1, inf)"}

    learning_rate: float = 0.5
    momentum: float = 0.0
    epochs: int = 100
    batch_size: int = 128
    positives: int = 50
    negatives: int = 50
    margin: float | None = None
    eta: float = 100.0
    classes_per_anchor: int | None = None

    def prepare(self, training_set):
        items = len(training_set)
        if items < 4:
            raise Refusal(
                f"triplets from outside of a batch need at least 4 training items, there are {items}"
            )
        classes = single_classes(training_set)
        groups: LevelGroups | ClassGroups
        if classes is None:
            groups = LevelGroups(training_set)
        else:
            self._check(np.bincount(classes))
            groups = ClassGroups(classes, self.classes_per_anchor)
        table = torch.zeros(items, self.bits, device=self._device())
        return SimpleNamespace(table=table, groups=groups)

    def draw_batches(self, items, epoch):
        return shuffled_batches(items, self._batch_size(items), (self.seed, epoch))

    def loss(self, outputs, batch):
        """J over the batch: the mean over its triplets, and eta / 22500 times the mean over its anchors.

        The published step for M anchors and n training items is -[sum (1 - sigmoid(T)) (u_p - u_n)
        - 4 eta (u_q - sgn u_q)] / (M n): 2 / (M n) times the gradient of J's sums by the anchors, the others
        being fixed. Here it is 9 times that of the means, which is the same for the published 5,000 items and
        22,500 triplets an anchor, so that one learning rate and one eta serve other sizes.
        """
        memory, scores = batch.training.memory, outputs.detach()
        memory.table[batch.indices] = scores
        positives, negatives = memory.groups.draw(
            batch.indices.cpu().numpy(),
            self.positives,
            self.negatives,
            np.random.default_rng((self.seed, batch.training.iteration + 1, 1)),
        )
        margin = self.bits / 2 if self.margin is None else self.margin
        likelihood, slopes = triplet_likelihood(scores, memory.table, positives, negatives, margin)
        error = scores - torch.sign(scores)
        groups = int(np.count_nonzero((positives[:, :, 0] >= 0) & (negatives[:, :, 0] >= 0)))
        triplets = max(groups, 1) * self.positives * self.negatives
        weight = self.eta / _TRIPLETS / len(scores)
        value = likelihood / triplets + weight * error.square().sum()
        return with_gradient(value, outputs, _STEP * (slopes / triplets + 2 * weight * error))

    def _batch_size(self, items):
        return min(self.batch_size, items // 2)

    def _check(self, sizes):
        """Refuse classes, given their sizes, that triplets cannot be drawn from."""
        items, needed = int(sizes.sum()), max(self.positives, self.negatives)
        if len(sizes) < 2:
            raise Refusal("all training items are of one class: there is nothing to tell apart")
        outside = sizes.min() * (1 - self._batch_size(items) / items)
        if outside < needed:
            raise Refusal(
                f"too few training items per class: {outside:.0f} of the smallest class's {sizes.min()} are "
                f"outside of a batch on average, and triplets take {needed} (see positives, negatives)"
            )
