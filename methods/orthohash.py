"""OrthoHash: cosine similarity with fixed orthogonal class codes, a softmax with a margin, and nothing else.

Hoe, Ng, Zhang, Chan, Song, Xiang. One Loss for All: Deep Hashing with a Single Cosine Similarity based
Learning Objective. NeurIPS 2021. Authors' code: kamwoh/orthohash.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch.nn.functional import log_softmax, normalize

from methods.base.heads import hash_layer
from methods.class_codes.class_codes import ClassCodeHashing, class_codes


@dataclass(kw_only=True)
class OrthoHash(ClassCodeHashing):
    r"""Minimises the mean over items of

    $$
    -\sum_c \frac{y_c}{\left| y \right|} \, \log \, \frac{\exp(s (\cos(v, o_c) - m y_c))}
    {\sum_a \exp(s (\cos(v, o_a) - m y_a))}
    $$

    with v the batch-normalised output of a linear layer without bias, $o_c$ the code of class c, s the
    `scale`, m the `margin` and y the labels of the item (several are weighted alike). Codes are the signs of
    v, with the running mean and variance.

    scale None: sqrt(bits), as in the paper (the released code has 8 at every length). codes: a kind of
    methods/class_codes/centres.py; "bernoulli" is the released default. The authors fine-tune with Adam at
    1e-4, a tenth of it for the last 20 of 100 epochs, weight decay 5e-4, batches of 256.
    """

    title = "OrthoHash"
    paper = "https://arxiv.org/abs/2109.14449"
    colour = "#762A83"
    marker = "s"
    supervision = "labels"
    family = "classwise"
    space = {
        "learning_rate": {"log_uniform": [1e-4, 1e-1]},
        "margin": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5],
        "codes": ["bernoulli", "spread_hadamard", "separated"],
    }

    optimiser: Literal["sgd", "adam", "adamw", "rmsprop"] = "adam"
    learning_rate: float = 1e-3
    lr_gamma: float = 0.1
    lr_step_size: int = 48
    epochs: int = 60
    initial_deviation: float | None = 0.01
    margin: float = 0.2
    scale: float | None = None
    codes: Literal["published", "hadamard", "spread_hadamard", "random", "bernoulli", "separated"] = (
        "bernoulli"
    )

    def hash_layer(self, width):
        layer = hash_layer(width, self.bits, self.initial_deviation, bias=False)
        return torch.nn.Sequential(layer, torch.nn.BatchNorm1d(self.bits, momentum=0.1))

    def build_criterion(self, training_set):
        return class_codes(self, training_set, self.codes, "orthohash")

    def loss(self, outputs, batch):
        labels = batch.labels
        cosines = normalize(outputs) @ normalize(batch.training.criterion.codes).T
        scale = math.sqrt(self.bits) if self.scale is None else self.scale
        targets = labels / labels.sum(dim=1, keepdim=True).clamp(min=1)
        return -(targets * log_softmax(scale * (cosines - self.margin * labels), dim=1)).sum(dim=1).mean()
