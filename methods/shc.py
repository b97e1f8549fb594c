"""SHC: CSQ's loss with centres as similar to each other as a classifier finds their classes.

Chen, Liu, Zhou, Ma, Chen, Zhang. Deep Hashing with Semantic Hash Centers for Image Retrieval. ACM
Transactions on Information Systems 2025. Authors' code:
cc752424640/Deep-Hashing-with-Semantic-Hash-Centers-for-Image-Retrieval.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch.nn.functional import logsigmoid

from methods.base.labels import single_labels
from methods.class_codes.class_codes import ClassCodeHashing, ClassCodes
from methods.class_codes.semantic_centres import class_similarities, semantic_centres
from methods.learners.classifier import ClassifierHashing

_ROWS = 256  # images at once


@dataclass(kw_only=True)
class SHC(ClassCodeHashing):
    r"""Minimises CSQ's loss, averaged over items and bits,

    $$
    -\frac{1 + h}{2} \log \, \frac{1 + g}{2} - \frac{1 - h}{2} \log \, \frac{1 - g}{2}
    + \lambda (\left| g \right| - 1)^2, \qquad g = \tanh(u)
    $$

    with $\lambda$ the `quantisation` and h the bit of the centre of the item's class. Centres follow, as far
    as the distance that MDSH's have allows it, the similarities of classes: how likely a classifier finds the
    other classes for items of a class (`methods.class_codes.semantic_centres`).

    eta: inverse step of the search for centres, which the authors say is to be tried anew on other data. At
    their 0.5 no centre changes with 10 classes and 48 bits: they are MDSH's. C: inverse strength of the
    classifier's L2 penalty, a logistic regression on what the hash head is given before training. The authors
    fine-tune a network of its own as classifier. They train with RMSprop at 1e-4 and a cosine schedule,
    weight decay 1e-5, batches of 64, 100 epochs, quantisation 1e-4.
    """

    title = "SHC"
    paper = "https://github.com/cc752424640/Deep-Hashing-with-Semantic-Hash-Centers-for-Image-Retrieval"
    colour = "#66A61E"
    marker = "X"
    supervision = "labels"
    several_labels = False
    family = "classwise"
    space = {
        "learning_rate": {"log_uniform": [1e-4, 3e-2]},
        "quantisation": [0.0, 1e-4, 1e-3, 1e-2, 5e-2],
        "eta": [0.05, 0.1, 0.2, 0.5],
    }
    bounds = {"eta": "(0, inf)"}

    optimiser: Literal["sgd", "adam", "adamw", "rmsprop"] = "rmsprop"
    learning_rate: float = 1e-3
    schedule: Literal["step", "cosine"] = "cosine"
    momentum: float = 0.0
    weight_decay: float = 1e-5
    initial_deviation: float | None = 0.01
    epochs: int = 60
    batch_size: int = 64
    quantisation: float = 1e-4
    eta: float = 0.5
    C: float = 10.0

    def build_criterion(self, training_set):
        places, _ = single_labels(training_set, "shc")
        features = self._features(training_set.items)
        classifier = ClassifierHashing(C=self.C)
        classifier.fit_classifier(features, places)
        generator = np.random.default_rng((self.seed, 11))
        similarities = class_similarities(classifier.scores(features), places)
        return ClassCodes(semantic_centres(similarities, self.bits, generator, self.eta), generator)

    def _features(self, items):
        """What the hash head is given of items by the network as it is: (n, d)."""
        if self.backbone is None:
            return np.asarray(items).reshape(len(items), -1)
        device = self._device()
        self.network.eval()
        with torch.inference_mode(), self.precision(device):
            blocks = [
                self.network.features(torch.from_numpy(np.array(items[begin : begin + _ROWS])).to(device))
                for begin in range(0, len(items), _ROWS)
            ]
        self.network.train()
        return torch.cat(blocks).float().cpu().numpy()

    def loss(self, outputs, batch):
        codes = batch.labels @ batch.training.criterion.codes
        # (1 + tanh u) / 2 = sigmoid(2 u): the logarithms by way of it never overflow.
        cross_entropy = -logsigmoid(2 * outputs * codes).mean()
        return cross_entropy + self.quantisation * (torch.tanh(outputs).abs() - 1).square().mean()
