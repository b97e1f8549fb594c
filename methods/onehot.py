"""One-hot: the decision of a linear classifier, one bit per class; what supervised hashing must beat.

Sablayrolles, Douze, Usunier, Jégou. How Should We Evaluate Supervised Hashing? ICASSP 2017.
"""

import time
from dataclasses import dataclass

import numpy as np

from methods.base import Refusal
from methods.base.labels import label_matrix, single_labels
from methods.learners.classifier import ClassifierHashing


@dataclass(kw_only=True)
class OneHot(ClassifierHashing):
    r"""Bit c of x is

    $$\left[c = \underset{a}{\mathrm{arg\,max}} \; w_a^\top x + \beta_a\right]$$

    with w and $\beta$ of a logistic regression.

    Of single labels, bit c says that class c has the largest score: every database item is at distance 0
    or 2 of a query. Of several labels, bit c says that label c has a positive score.

    With more bits than classes the remaining ones are 0: they change no ranking.
    """

    title = "One-hot"
    paper = "https://arxiv.org/abs/1609.06753"
    colour = "#000000"
    marker = "<"
    supervision = "labels"
    family = "bound"
    learned = (*ClassifierHashing.learned, "several")
    space = {"C": [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0]}

    def fit(self, training_set):
        started = time.perf_counter()
        self.several = training_set.labels is not None and training_set.labels.ndim == 2
        if self.several:
            labels = label_matrix(training_set, "onehot")
            count = labels.shape[1]
        else:
            labels, classes = single_labels(training_set, "onehot")
            count = len(classes)
        if count > self.bits:
            raise Refusal(f"onehot needs one bit per class: {count} for this training set, not {self.bits}")
        accuracy = self.fit_classifier(training_set.items, labels)
        training_set.log(
            {"objective": None, "training_accuracy": accuracy, "seconds": time.perf_counter() - started}
        )
        return self

    def codes_of(self, scores):
        codes = np.zeros((len(scores), self.bits), bool)
        if self.several:
            codes[:, : scores.shape[1]] = scores > 0
        else:
            codes[np.arange(len(scores)), scores.argmax(axis=1)] = True
        return codes

    def unused_bits(self):
        return self.bits - self.coefficients.shape[1]
