"""Classifier codes: the decision of a linear classifier, written in b bits; a bound for supervised hashing.

Sablayrolles, Douze, Usunier, Jégou. How Should We Evaluate Supervised Hashing? ICASSP 2017.
"""

import time
from dataclasses import dataclass

import numpy as np

from methods.base.labels import single_labels
from methods.class_codes.centres import constant_bits, make_centres, refuse_more_classes_than_codes
from methods.learners.classifier import ClassifierHashing


@dataclass(kw_only=True)
class ClassifierCodes(ClassifierHashing):
    r"""The code of an item is that of the class with the largest score:

    $$b(x) = t_{\hat{c}}, \qquad \hat{c} = \underset{c}{\mathrm{arg\,max}} \; w_c^\top x + \beta_c$$

    with w and $\beta$ of a logistic regression and $t_c$ the code of class c.

    centres: the codes of the classes: "spread_hadamard", "hadamard", "random", "bernoulli"
    (methods/class_codes/centres.py), or "binary": the number of the class in binary, in as many bits as it
    needs.
    """

    title = "Classifier codes"
    paper = "https://arxiv.org/abs/1609.06753"
    colour = "#4D4D4D"
    marker = ">"
    supervision = "labels"
    several_labels = False
    family = "bound"
    learned = (*ClassifierHashing.learned, "codes")
    space = {
        "C": [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0],
        "centres": ["spread_hadamard", "random", "bernoulli", "binary"],
    }

    centres: str = "spread_hadamard"

    def fit(self, training_set):
        started = time.perf_counter()
        labels, classes = single_labels(training_set, "classifier_codes")
        generator = np.random.default_rng(self.seed)
        self.codes = class_codes(self.centres, len(classes), self.bits, generator)
        accuracy = self.fit_classifier(training_set.items, labels)
        training_set.log(
            {"objective": None, "training_accuracy": accuracy, "seconds": time.perf_counter() - started}
        )
        return self

    def codes_of(self, scores):
        return self.codes[scores.argmax(axis=1)]

    def unused_bits(self):
        return constant_bits(self.codes)


def class_codes(kind, classes, bits, generator):
    """Codes of classes, bool (classes, bits), of a kind of `ClassifierCodes`. Raises `Refusal`."""
    if kind != "binary":
        return make_centres(kind, classes, bits, generator) > 0
    refuse_more_classes_than_codes(classes, bits)
    codes = np.zeros((classes, bits), bool)
    needed = _bits_of_number(classes)
    codes[:, :needed] = np.arange(classes)[:, None] >> np.arange(needed) & 1
    return codes


def _bits_of_number(classes):
    """Bits that the numbers of so many classes need."""
    return max(1, (classes - 1).bit_length())
