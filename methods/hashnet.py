"""HashNet: a weighted logistic likelihood of pairs of tanh(beta z), with beta growing until it is the sign.

Cao, Long, Wang, Yu. HashNet: Deep Learning to Hash by Continuation. ICCV 2017. Authors' code: thuml/HashNet
(Caffe).
"""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import torch

from methods.base.deep import DeepHashing, shuffled_batches
from methods.base.supervision import similar_share
from methods.relations.likelihood import negative_log_likelihood


@dataclass(kw_only=True)
class HashNet(DeepHashing):
    r"""Minimises

    $$
    \frac{1}{M^2} \sum_{i,j} w_{ij} \left[\ln(1 + e^{\theta_{ij}}) - s_{ij} \theta_{ij}\right], \qquad
    \theta_{ij} = \alpha \, g_i^\top g_j, \qquad g = \tanh(\beta z)
    $$

    with z the network's raw scores, over the pairs of two batches of M = batch_size items, one from each of
    two independently shuffled streams. An item in both makes a pair with itself.

    $w_{ij}$ is $c_{ij} N / N_1$ for similar pairs and $N / N_0$ for others, N, $N_1$ and $N_0$ being the
    numbers of all, of similar and of dissimilar pairs of the training set; $c_{ij}$, with multi-hot labels,
    is the labels in common over the labels of either (else 1). similarity_scale ($\alpha$) None: 10 / bits.

    $\beta$ = tanh_scale (1 + growth iteration)^growth_power, refreshed every `growth_every` iterations; how
    many there are follows from epochs and batches (the authors' 10,000 end at 7.1).

    released_gradient: step as the released Caffe code does. Weights are N / N_1 and 1 over their sum, and
    the gradient, but not the loss, has twice that and 4 c_ij on every pair, with c_ij = m^2 / (l_i l_j) for m
    labels in common of l_i and l_j, and 1/4 for pairs without any (so similar pairs of single labels count 4
    times); it lacks the factor similarity_scale but for the first batch_size numbers of each stream.

    Weights of layers decay; biases do not, and learn at twice the rate, as released. The authors fine-tune
    with 10,000 iterations of 256 + 256 images, momentum 0.9, weight decay 5e-4, and for the hash layer
    learning rate 2e-3 (ImageNet100) or 5e-4, halved every 2000 iterations. A linear layer on features of unit
    length needs more: the step is proportional to their squared length, 1 instead of thousands.
    """

    title = "HashNet"
    paper = "https://arxiv.org/abs/1702.00758"
    colour = "#56B4E9"
    marker = "o"
    supervision = "binary"
    family = "pointwise"
    space = {
        "learning_rate": {"log_uniform": [0.01, 10.0]},
        "tanh_scale": {"log_uniform": [0.5, 20.0]},
        "growth": {"log_uniform": [0.001, 0.1]},
    }
    bounds = {"growth_every": "[1, inf)"}

    learning_rate: float = 1.0
    epochs: int = 100
    tanh_scale: float = 1.0
    similarity_scale: float | None = None
    growth: float = 0.005
    growth_power: float = 0.5
    growth_every: int = 200
    released_gradient: bool = False

    def prepare(self, training_set):
        labels = training_set.labels
        multi_hot = labels is not None and labels.ndim == 2
        return SimpleNamespace(
            similar=similar_share(training_set, self.seed),
            labels=torch.from_numpy(labels.astype(np.float32)).to(self._device()) if multi_hot else None,
        )

    def draw_batches(self, items, epoch):
        streams = [shuffled_batches(items, self.batch_size, (self.seed, epoch, stream)) for stream in (1, 2)]
        return [np.concatenate(batches) for batches in zip(*streams)]

    def batch_affinity(self, training, indices):
        """Affinity of the first stream's items, the first half, with the second's: int64 (M/2, M/2)."""
        first, second = np.split(indices, 2)
        return training.training_set.affinity(first, second)

    def rate_and_decay(self, name):
        rate, decay = super().rate_and_decay(name)
        return (2 * rate, 0.0) if name.rpartition(".")[2] == "bias" else (rate, decay)

    def continuation(self, iteration):
        """beta at an iteration, counted from 0."""
        refreshed = iteration // self.growth_every * self.growth_every
        return self.tanh_scale * (1 + self.growth * refreshed) ** self.growth_power

    def loss(self, outputs, batch):
        """The weighted likelihood per pair (released: per unit of weight); `affinity` is (M/2, M/2)."""
        memory, beta = batch.training.memory, self.continuation(batch.training.iteration)
        batch.training.log(tanh_scale=beta)
        scale = 10 / self.bits if self.similarity_scale is None else self.similarity_scale
        first, second = torch.tanh(beta * outputs).chunk(2)
        if self.released_gradient:
            first, second = (_lacking_scale(codes, scale) for codes in (first, second))
        similar = batch.affinity > 0
        pairs = negative_log_likelihood(scale * (first @ second.t()), similar.to(first.dtype))
        share = memory.similar
        overlap = self._overlap(similar, memory.labels, batch.indices)
        rest = 1.0 if self.released_gradient else 1 / (1 - share)
        weights = torch.where(similar, pairs.new_tensor(1 / share), pairs.new_tensor(rest))
        if self.released_gradient:
            return (weights * _slope_times(pairs, 2 * 4 * overlap)).sum() / weights.sum()
        return (weights * overlap * pairs).mean()

    def _overlap(self, similar, labels, indices):
        """c_ij (M/2, M/2), or a number: in the paper's form, or in the released one. labels: of all items, or
        None."""
        if labels is None:  # as if of one label each
            if not self.released_gradient:
                return 1.0
            common = similar.float()
            squares = union = 1.0
        else:
            first, second = (labels[places] for places in indices.chunk(2))
            common = first @ second.t()
            mine, theirs = first.sum(1)[:, None], second.sum(1)
            squares, union = mine * theirs, mine + theirs - common
        if self.released_gradient:
            return torch.where(common > 0, common.square() / squares, 0.25)
        return torch.where(similar & (common > 0), common / union, 1.0)


def _slope_times(values, factor):
    """`values`, with `factor` times the gradient through them."""
    kept = values.detach()
    return kept + (values - kept) * factor


def _lacking_scale(codes, scale):
    """Codes with a gradient 1/scale times too large, but for their first len(codes) numbers row by row."""
    factor = torch.full((codes.numel(),), 1 / scale, dtype=codes.dtype, device=codes.device)
    factor[: len(codes)] = 1
    return _slope_times(codes, factor.reshape(codes.shape))
