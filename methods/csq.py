"""CSQ: codes are drawn towards fixed centres, one per class, half of the bits apart.

Yuan, Wang, Zhang, Tay, Jie, Liu, Feng. Central Similarity Quantization for Efficient Image and Video
Retrieval. CVPR 2020. Authors' code: yuanli2333/Hadamard-Matrix-for-hashing.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch.nn.functional import logsigmoid

from methods.class_codes.class_codes import ClassCodeHashing, class_codes


@dataclass(kw_only=True)
class CSQ(ClassCodeHashing):
    r"""Minimises, averaged over items and bits,

    $$
    -\frac{1 + h}{2} \log \, \frac{1 + g}{2} - \frac{1 - h}{2} \log \, \frac{1 - g}{2}
    + \lambda (\left| g \right| - 1)^2, \qquad g = \tanh(u)
    $$

    with $\lambda$ the `quantisation` and h the bit of the centre of the item's class. Of several labels h is
    the majority of their centres, filled up by one random code.

    centres: "published" (Sylvester's rows where bits are a power of two and classes at most twice as many,
    else random balanced codes), or another kind of methods/class_codes/centres.py: "spread_hadamard" has the
    same distances without repeated columns. The authors fine-tune with Adam at 1e-3 (AlexNet: 1e-4), times
    0.7 every 10 of 90 epochs, batches of 64, quantisation 1e-4 to 0.05; their head has two hidden layers
    (`head: mlp`).
    """

    title = "CSQ"
    paper = "https://arxiv.org/abs/1908.00347"
    colour = "#1B7837"
    marker = "o"
    supervision = "labels"
    family = "classwise"
    space = {
        "learning_rate": {"log_uniform": [1e-4, 1e-1]},
        "quantisation": [0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0],
        "centres": ["published", "spread_hadamard"],
    }

    optimiser: Literal["sgd", "adam", "adamw", "rmsprop"] = "adam"
    learning_rate: float = 1e-2
    lr_gamma: float = 0.7
    lr_step_size: int = 10
    weight_decay: float = 0.0
    epochs: int = 60
    batch_size: int = 64
    quantisation: float = 1e-3
    centres: Literal["published", "hadamard", "spread_hadamard", "random", "bernoulli", "separated"] = (
        "published"
    )

    def build_criterion(self, training_set):
        return class_codes(self, training_set, self.centres, "csq")

    def loss(self, outputs, batch):
        codes = batch.training.criterion.majority(batch.labels)
        # (1 + tanh u) / 2 = sigmoid(2 u): the logarithms by way of it never overflow.
        cross_entropy = -logsigmoid(2 * outputs * codes).mean()
        return cross_entropy + self.quantisation * (torch.tanh(outputs).abs() - 1).square().mean()
