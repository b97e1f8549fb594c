"""PSLDH: a softmax over the codes of the labels from which an item's other labels are left out.

Tu, Mao, Guo, Wei, Huang. Partial-Softmax Loss based Deep Hashing. The Web Conference 2021. Authors' code:
rongchengtu1/PSLDH.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch.nn.functional import softplus

from methods.base import Refusal
from methods.base.labels import label_matrix
from methods.base.optimisation import make_optimiser
from methods.class_codes.centres import refuse_more_classes_than_codes
from methods.class_codes.class_codes import ClassCodeHashing, ClassCodes, class_codes

_HIDDEN, _CODE_DECAY = 512, 1e-5  # units and weight decay of the category network
_TRIES = 20  # trainings of the category network until no two labels have the same code


@dataclass(kw_only=True)
class PSLDH(ClassCodeHashing):
    r"""Minimises the mean over items of

    $$
    -\frac{1}{\left| Y_i \right|} \sum_{c \in Y_i} \log \,
    \frac{e^{\gamma (s_{ic} - \sigma b)}}
    {e^{\gamma (s_{ic} - \sigma b)} + \sum_{a \notin Y_i} e^{\gamma s_{ia}}}
    + \lambda \left| \mathrm{sgn}(h_i) - h_i \right|^2, \qquad s_{ic} = h_i^\top t_c, \; h_i = \tanh(u_i)
    $$

    with $Y_i$ the labels of item i, $t_c$ their codes, $\gamma$ the `scale`, $\sigma$ the `margin` and
    $\lambda$ the `quantisation`. A softmax over all labels would have an item's labels compete.

    The codes are the signs of what a category network, of 512 hidden units on one-hot labels, gives after
    `code_epochs` steps of SGD at `code_rate` on

    $$
    \frac{1}{C^2} \sum_{i \neq j} \max(0, \langle t_i, t_j \rangle)^2
    + \frac{\mathrm{balance}}{C} \Big| \sum_i t_i \Big|^2
    + \frac{\mathrm{code\_quantisation}}{C} \sum_i \left| \mathrm{sgn}(t_i) - t_i \right|^2
    $$

    `codes`: "category_network", or "spread_hadamard", "bernoulli" or "separated" of
    methods/class_codes/centres.py. The authors fine-tune with SGD at 1e-3 without momentum, 0.3 of it
    from epoch 100 of 150 on, weight decay 1e-5, batches of 80.
    """

    title = "PSLDH"
    paper = "https://github.com/rongchengtu1/PSLDH"
    colour = "#A6761D"
    marker = "P"
    supervision = "labels"
    family = "classwise"
    space = {
        "learning_rate": {"log_uniform": [1e-2, 10.0]},
        "scale": [0.1, 0.2, 0.5, 1.0],
        "margin": [0.0, 0.2, 0.4],
        "quantisation": [1e-3, 1e-2, 1e-1],
    }

    learning_rate: float = 0.1
    lr_gamma: float = 0.3
    lr_step_size: int = 40
    weight_decay: float = 1e-5
    epochs: int = 60
    batch_size: int = 80
    scale: float = 0.2
    margin: float = 0.2
    quantisation: float = 0.01
    codes: Literal["category_network", "spread_hadamard", "bernoulli", "separated"] = "category_network"
    code_epochs: int = 200
    code_rate: float = 1e-3
    balance: float = 0.05
    code_quantisation: float = 0.01

    def build_criterion(self, training_set):
        if self.codes != "category_network":
            return class_codes(self, training_set, self.codes, "psldh")
        label_matrix(training_set, "psldh")  # refuses labels that do not separate any items
        classes = training_set.classes
        refuse_more_classes_than_codes(classes, self.bits)
        for _ in range(_TRIES):
            codes = self.category_codes(classes)
            if len(codes.unique(dim=0)) == classes:
                return ClassCodes(codes.numpy(), np.random.default_rng((self.seed, 11)))
        raise Refusal(
            f"psldh: its category network gives two of {classes} labels one code of {self.bits} bits in each "
            f"of {_TRIES} trainings; more bits, or codes: separated, tell them apart"
        )

    def category_codes(self, classes):
        """Codes of -1 and +1 by a category network trained from new initial weights: (classes, bits)."""
        network = torch.nn.Sequential(
            torch.nn.Linear(classes, _HIDDEN),
            torch.nn.ReLU(),
            torch.nn.Linear(_HIDDEN, self.bits),
            torch.nn.Tanh(),
        )
        optimiser = make_optimiser(
            "sgd", [{"params": list(network.parameters())}], self.code_rate, 0.0, _CODE_DECAY
        )
        for epoch in range(self.code_epochs):
            for group in optimiser.param_groups:  # a tenth of the rate after half of the epochs
                group["lr"] = self.code_rate * (1.0 if 2 * epoch < self.code_epochs else 0.1)
            optimiser.zero_grad()
            self.code_loss(network(torch.eye(classes))).backward()
            optimiser.step()
        with torch.no_grad():
            return torch.where(network(torch.eye(classes)) > 0, 1.0, -1.0)

    def code_loss(self, codes):
        """The category network's objective at its outputs (classes, bits)."""
        products = codes @ codes.T
        apart = (products - torch.diag(products.diagonal())).clamp(min=0).square().sum() / len(codes)
        balance = codes.sum(dim=0).square().sum()
        return (apart + self.balance * balance + self.code_quantisation * _rounding(codes).sum()) / len(codes)

    def loss(self, outputs, batch):
        relaxed, labels = torch.tanh(outputs), batch.labels
        scores = self.scale * relaxed @ batch.training.criterion.codes.T
        others = scores.masked_fill(labels > 0, torch.finfo(scores.dtype).min).logsumexp(dim=1, keepdim=True)
        # -log(e^s / (e^s + e^o)) = log(1 + e^(o - s))
        losses = softplus(others - scores + self.scale * self.margin * self.bits)
        partial = (losses * labels).sum(dim=1) / labels.sum(dim=1).clamp(min=1)
        return (partial + self.quantisation * _rounding(relaxed)).mean()


def _rounding(values):
    """|sgn(v) - v|^2 of rows."""
    return (values.abs() - 1).square().sum(dim=1)
