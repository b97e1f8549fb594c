"""DCH: a likelihood of pairs from the Cauchy distribution, which pulls similar items into a small radius.

Cao, Long, Liu, Wang. Deep Cauchy Hashing for Hamming Space Retrieval. CVPR 2018. Released code:
thuml/DeepHash.
"""

from dataclasses import dataclass

import torch
from torch.nn.functional import normalize

from methods.base.deep import DeepHashing
from methods.base.supervision import similar_share

_LEAST = 1e-3  # distances are at least this


@dataclass(kw_only=True)
class DCH(DeepHashing):
    r"""Minimises the mean over pairs, plus a mean over items,

    $$
    \frac{1}{M^2} \sum_{i,j} w_{ij} \left[ s_{ij} \, \log\left(1 + \frac{d(z_i, z_j)}{\gamma}\right)
    + (1 - s_{ij}) \, \log\left(1 + \frac{\gamma}{d(z_i, z_j)}\right) \right]
    + \frac{\lambda}{M} \sum_i \log\left(1 + \frac{d(\left| z_i \right|, 1)}{\gamma}\right)
    $$

    with $d(x, y) = \frac{b}{2} (1 - \cos(x, y))$, $z = \tanh(u)$, and $\lambda$ the `quantisation`.
    $w_{ij}$ is the number of all pairs of the training set over that of similar ones, or of the others.

    released: as the released code, which differs: d = |z_i - z_j|^2 + 0.001, pairs of an item with itself are
    left out, only similar pairs are weighted, by the number of pairs of the batch over that of its similar
    ones, an item with itself included, and the quantisation loss is the mean of (|z| - 1)^2. The authors
    fine-tune with gamma 20, quantisation 0, SGD at 5e-3, momentum 0.9, batches of 128, 2,000 iterations.
    """

    title = "DCH"
    paper = (
        "https://openaccess.thecvf.com/content_cvpr_2018/html/Cao_Deep_Cauchy_Hashing_CVPR_2018_paper.html"
    )
    colour = "#DE77AE"
    marker = "X"
    supervision = "binary"
    family = "pointwise"
    space = {
        "learning_rate": {"log_uniform": [3e-3, 3.0]},
        "gamma": {"log_uniform": [1.0, 40.0]},
        "quantisation": [0.0, 1e-3, 1e-2, 1e-1, 1.0],
    }

    learning_rate: float = 0.1
    epochs: int = 60
    batch_size: int = 128
    gamma: float = 10.0
    quantisation: float = 0.01
    released: bool = False

    def prepare(self, training_set):
        return similar_share(training_set, self.seed)

    def loss(self, outputs, batch):
        similar, share, codes = batch.affinity > 0, batch.training.memory, torch.tanh(outputs)
        if self.released:
            squares = codes.square().sum(dim=1)
            distances = (squares[:, None] + squares - 2 * codes @ codes.T).clamp(min=0) + _LEAST
            different = 1 - torch.eye(len(outputs), device=outputs.device)
            weights = torch.where(similar, similar.numel() / similar.sum().to(outputs), 1.0) * different
            pairs = self._pairs(distances, similar) * weights
            mean = pairs.sum() / different.sum()
            return mean + self.quantisation * (codes.abs() - 1).square().mean()
        unit = normalize(codes)
        distances = (self.bits / 2 * (1 - unit @ unit.T)).clamp(min=_LEAST)
        pairs = self._pairs(distances, similar) * torch.where(similar, 1 / share, 1 / (1 - share))
        from_ones = self.bits / 2 * (1 - normalize(codes.abs()).mean(dim=1) * self.bits**0.5)
        return pairs.mean() + self.quantisation * torch.log1p(from_ones.clamp(min=0) / self.gamma).mean()

    def _pairs(self, distances, similar):
        """-log of the Cauchy likelihood: gamma / (gamma + d) of similar pairs, d / (gamma + d) of others."""
        return torch.log1p(torch.where(similar, distances / self.gamma, self.gamma / distances))
