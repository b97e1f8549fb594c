"""CIBHash: codes of two views of an item agree, and differ from those of all other items.

Qiu, Su, Ou, Yu, Chen. Unsupervised Hashing with Contrastive Information Bottleneck. IJCAI 2021. Authors'
code: qiuzx2/CIBHash.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch.nn.functional import cross_entropy, normalize

from methods.base.deep import DeepHashing
from methods.learners.straight_through import sign_straight_through
from methods.learners.views import check_views, noisy_view

_LEAST = 1e-8


@dataclass(kw_only=True)
class CIBHash(DeepHashing):
    r"""Minimises the NT-Xent loss of the codes $b_1, \ldots, b_{2M}$ of two random views of each item of a
    batch, plus a divergence of their bits' probabilities:

    $$
    -\frac{1}{2M} \sum_{i=1}^{2M} \log \, \frac{\exp(\cos(b_i, b_{\bar{i}}) / \tau)}
    {\sum_{j \neq i} \exp(\cos(b_i, b_j) / \tau)}
    + \frac{\beta}{2M} \sum_{i=1}^{M}
    \left(\mathrm{KL}(p_i \| p_{\bar{i}}) + \mathrm{KL}(p_{\bar{i}} \| p_i)\right)
    $$

    $\bar{i}$ is the other view of i, $\tau$ the `temperature`, $\beta$ the `bottleneck`, and $p = \sigma(u)$
    the probabilities of the bits, each against the other held fixed. Codes are sgn(p - 1/2), straight through
    to p.

    Views of vectors: each value is dropped with probability `view_dropout`, the others are scaled up, and
    normal noise of `view_noise` times the root mean square of the batch's values is added. Views of images
    are those of horizontal_flip and random_crop, under a network that keeps its weights; the authors' colour
    jitter, grey and blur are not made. The authors train two layers (1,024 hidden units) on frozen features
    with Adam at 1e-3, batches of 64, 60 epochs.
    """

    title = "CIBHash"
    paper = "https://arxiv.org/abs/2105.06138"
    colour = "#2166AC"
    marker = "8"
    supervision = "none"
    family = "unsupervised"
    space = {
        "learning_rate": {"log_uniform": [1e-4, 1e-2]},
        "temperature": {"log_uniform": [0.05, 1.0]},
        "view_dropout": [0.0, 0.1, 0.2, 0.4, 0.6],
        "view_noise": [0.0, 0.1, 0.3, 0.6, 1.0],
    }
    bounds = {"view_dropout": "[0, 1)", "temperature": "(0, inf)"}

    optimiser: Literal["sgd", "adam", "adamw", "rmsprop"] = "adam"
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    backbone_lr_multiplier: float = 0.0
    epochs: int = 60
    batch_size: int = 64
    head: Literal["linear", "mlp"] = "mlp"
    temperature: float = 0.3
    bottleneck: float = 1e-3
    view_dropout: float = 0.2
    view_noise: float = 0.1

    def prepare(self, training_set):
        check_views(self, "cibhash")

    def augment(self, items, generator):
        if self.backbone is not None:
            return super().augment(items, generator)
        return noisy_view(items, self.view_dropout, self.view_noise, generator)

    def loss(self, outputs, batch):
        first, other = torch.sigmoid(outputs), torch.sigmoid(batch.second)
        codes = normalize(sign_straight_through(torch.cat([first, other]) - 0.5))
        agreement = codes @ codes.T / self.temperature
        agreement.fill_diagonal_(float("-inf"))  # an item is not a negative of itself
        count = len(outputs)
        places = torch.arange(2 * count, device=outputs.device)
        contrast = cross_entropy(agreement, (places + count) % (2 * count))
        divergence = (_divergence(first, other.detach()) + _divergence(other, first.detach())) / 2
        return contrast + self.bottleneck * divergence


def _divergence(p, q):
    """Kullback-Leibler divergence of Bernoulli variables, summed over bits, mean over items."""
    ones = p * ((p + _LEAST).log() - (q + _LEAST).log())
    zeros = (1 - p) * ((1 - p + _LEAST).log() - (1 - q + _LEAST).log())
    return (ones + zeros).sum(dim=1).mean()
