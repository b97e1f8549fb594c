"""HHF: one learned proxy per label, with hinges on cosines at what codes of the length can reach.

Xu, Chai, Xu, Li, Zuo, Yang, Yuan. HHF: Hashing-guided Hinge Function for Deep Hashing Retrieval. arXiv 2021.
Authors' code: JerryXu0129/HHF.
"""

from dataclasses import dataclass

import torch

from methods.base.labels import label_matrix
from methods.class_codes.proxies import MarginProxies


@dataclass(kw_only=True)
class HHF(MarginProxies):
    r"""Minimises, over a batch with $C_+$ labels present, of C,

    $$
    \frac{1}{C_+} \sum_c \log \, \Big(1 + \sum_{i: c \in Y_i}
    (e^{\alpha \max(0, 1 - \delta - \cos(u_i, p_c))} - 1)\Big)
    + \frac{1}{C} \sum_c \log \, \Big(1 + \sum_{i: c \notin Y_i}
    (e^{\alpha \max(0, \cos(u_i, p_c) - \zeta - \delta)} - 1)\Big)
    + \lambda \sum_i \left| \mathrm{sgn}(u_i) - u_i \right|^2
    $$

    with $p_c$ proxies, which are learned, $\alpha$ the `sharpness`, $\delta$ the `relaxation` and $\lambda$
    the `quantisation`: the proxy-anchor loss with hinges, the authors' default of the losses that they apply
    theirs to.

    zeta None: 1 - 2 d / bits, d the largest known minimum distance of a binary linear code of ceil(log2
    labels) dimensions (methods/class_codes/linear_codes.py). The authors fine-tune with SGD at 0.001, the
    proxies at 0.01, momentum 0.9, weight decay 5e-4, half the rate every 10 of 100 epochs, batches of 85 and
    lambda 0.001. On vectors of unit length the bias of the hash layer then outruns its weights, and all codes
    become one: gradients are clipped, and lambda is 1e-4.
    """

    title = "HHF"
    paper = "https://arxiv.org/abs/2112.02225"
    colour = "#80B1D3"
    marker = "h"
    supervision = "labels"
    family = "classwise"
    space = {
        "learning_rate": {"log_uniform": [1e-2, 10.0]},
        "proxy_lr_multiplier": [0.1, 1.0, 10.0],
        "sharpness": [8.0, 16.0, 32.0],
        "relaxation": [0.0, 0.1, 0.2],
        "quantisation": [0.0, 1e-4, 1e-3],
        "max_gradient_norm": [0.3, 1.0, 3.0],
    }

    learning_rate: float = 1.0
    lr_step_size: int = 10
    epochs: int = 60
    batch_size: int = 85
    proxy_lr_multiplier: float = 1.0
    sharpness: float = 16.0
    relaxation: float = 0.2
    quantisation: float = 1e-4
    max_gradient_norm: float | None = 1.0
    zeta: float | None = None

    def prepare(self, training_set):
        label_matrix(training_set, "hhf")

    def loss(self, outputs, batch):
        positive, cosines = batch.labels > 0, self.cosines(outputs, batch)
        classes = positive.shape[1]
        near = self._hinges(1 - self.relaxation - cosines, positive)
        far = self._hinges(cosines - self.margin(classes) - self.relaxation, ~positive)
        present = positive.any(dim=0).sum().clamp(min=1)
        rounding = (outputs.abs() - 1).square().sum()
        return near.sum() / present + far.sum() / classes + self.quantisation * rounding

    def _hinges(self, excess, chosen):
        """log(1 + sum over the chosen items of exp(sharpness max(0, excess)) - 1) of each label."""
        return torch.log1p((torch.expm1(self.sharpness * excess.clamp(min=0)) * chosen).sum(dim=0))
