"""DPN: a hinge on each bit that polarises scores towards the code of the class.

Fan, Ng, Ju, Zhang, Chan. Deep Polarized Network for Supervised Learning of Accurate Binary Hashing Codes.
IJCAI 2020. Read from kamwoh/DPN, a re-implementation by an author.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from methods.base.heads import hash_layer
from methods.class_codes.class_codes import ClassCodeHashing, class_codes


@dataclass(kw_only=True)
class DPN(ClassCodeHashing):
    r"""Minimises

    $$\frac{1}{M} \sum_i \sum_{c \in Y_i} \sum_k \max(0, m - u_{ik} t_{ck})$$

    with m the `margin`, $Y_i$ the labels of item i and $t_c$ the code of class c.

    codes: a kind of methods/class_codes/centres.py. update_every: every so many epochs (0: never) each class
    takes for its code the sign of the mean code of its `update_share` best items, those of the smallest loss.
    The ternary codes of the paper are not Hamming codes and are not made. The authors fine-tune with SGD at
    1e-4, momentum 0.9, weight decay 5e-4, batches of 256, 200 epochs, a tenth of the rate from the middle on;
    their hash layer has no bias.
    """

    title = "DPN"
    paper = "https://www.ijcai.org/proceedings/2020/115"
    colour = "#E08214"
    marker = "v"
    supervision = "labels"
    family = "classwise"
    space = {
        "learning_rate": {"log_uniform": [1e-2, 3.0]},
        "margin": {"log_uniform": [0.03, 3.0]},
        "codes": ["bernoulli", "spread_hadamard", "separated"],
    }
    bounds = {"update_every": "[0, inf)", "update_share": "(0, 1]"}

    learning_rate: float = 0.1
    lr_gamma: float = 0.1
    lr_step_size: int = 30
    epochs: int = 60
    initial_deviation: float | None = 0.01
    margin: float = 1.0
    codes: Literal["published", "hadamard", "spread_hadamard", "random", "bernoulli", "separated"] = (
        "bernoulli"
    )
    update_every: int = 0
    update_share: float = 0.5

    def hash_layer(self, width):
        return hash_layer(width, self.bits, self.initial_deviation, bias=False)

    def build_criterion(self, training_set):
        return class_codes(self, training_set, self.codes, "dpn")

    def loss(self, outputs, batch):
        return (self.hinges(outputs, batch.training.criterion.codes) * batch.labels).sum(dim=1).mean()

    def hinges(self, outputs, codes):
        """sum_k max(0, margin - u_k o_ck) of items and classes: (M, classes)."""
        products = outputs[:, None, :] * codes
        return (self.margin - products).clamp(min=0).sum(dim=2)

    def start_epoch(self, training):
        super().start_epoch(training)
        epoch, training_set, codes = training.epoch, training.training_set, training.criterion.codes
        if not self.update_every or epoch == 0 or epoch % self.update_every:
            return
        scores = torch.from_numpy(self.raw_scores(training_set.items)).to(codes.device)
        labels = torch.from_numpy(training_set.label_rows(np.arange(len(training_set)))) > 0
        updated = codes.clone()
        for number in range(len(updated)):
            own = scores[labels[:, number].to(scores.device)]
            if len(own):
                losses = (self.margin - own * codes[number]).clamp(min=0).sum(dim=1)
                best = losses.argsort(stable=True)[: max(1, round(self.update_share * len(own)))]
                means = torch.where(own[best] > 0, 1.0, -1.0).mean(dim=0)
                updated[number] = torch.where(means == 0, updated[number], torch.sign(means))
        codes.copy_(updated)
