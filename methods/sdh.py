"""SDH: binary codes from which the labels can be regressed, found bit by bit without relaxation.

Shen, Shen, Liu, Shen. Supervised Discrete Hashing. CVPR 2015. Authors' code: bd622/DiscretHashing (MATLAB).
"""

import time
from dataclasses import dataclass

import numpy as np

from methods.base import check_settings
from methods.base.labels import label_matrix
from methods.learners.discrete import descend
from methods.learners.kernels import KernelHashing, draw_anchors, gaussian_kernel, ridge_regression


@dataclass(kw_only=True)
class SDH(KernelHashing):
    r"""Minimises, over codes B in $\{-1, +1\}$, W and P (the form with the squared loss),

    $$\|Y - B W\|^2 + \lambda \|W\|^2 + \nu \|B - \varphi(X) P\|^2$$

    with $\varphi$ Gaussian kernel values at `anchors` items, and a constant, and $\lambda$ the `penalty`.

    `rounds` times: B by discrete cyclic coordinate descent, at most `sweeps` over the bits; W and P by ridge
    regression. sigma: width of the kernel exp(-d^2 / (2 sigma^2)), on which the results depend: centred items
    of unit length, as protocols give them, need 0.55 to 1 (docs/results/cifar10-gist.md), and the authors'
    0.4 suits GIST descriptors that are not centred. Several labels per item are several ones in a row of Y.
    """

    title = "SDH"
    paper = "https://doi.org/10.1109/CVPR.2015.7298598"
    colour = "#8B0000"
    marker = "H"
    supervision = "labels"
    family = "classwise"
    space = {
        "anchors": [300, 1000, 2000, 3000],
        "sigma": [0.2, 0.3, 0.4, 0.55, 0.7, 1.0, 1.4],
        "penalty": {"log_uniform": [0.01, 10.0]},
        "nu": {"log_uniform": [1e-6, 1.0]},
        "ridge": {"log_uniform": [1e-3, 10.0]},
    }
    bounds = {
        "anchors": "[1, inf)",
        "sigma": "(0, inf)",
        "penalty": "(0, inf)",
        "nu": "[0, inf)",
        "ridge": "(0, inf)",
        "rounds": "[0, inf)",
        "sweeps": "[1, inf)",
    }

    anchors: int = 1000
    sigma: float = 0.7
    penalty: float = 1.0
    nu: float = 1e-5
    ridge: float = 1e-2
    rounds: int = 5
    sweeps: int = 10

    def fit(self, training_set):
        check_settings(self)
        started = time.perf_counter()
        labels = label_matrix(training_set, "sdh")
        generator = np.random.default_rng(self.seed)
        items = training_set.items.reshape(len(training_set), -1).astype(np.float64)
        self.variance = self.sigma**2
        chosen = draw_anchors(items, self.anchors, generator)
        inputs = np.hstack([gaussian_kernel(items, chosen, self.variance), np.ones((len(items), 1))])
        codes = np.where(generator.random((len(items), self.bits)) < 0.5, 1.0, -1.0)
        functions = ridge_regression(inputs, codes, self.ridge)
        classifier = ridge_regression(codes, labels, self.penalty)
        for iteration in range(1, self.rounds + 1):
            targets = self.nu * (inputs @ functions) + labels @ classifier.T
            descend(codes, targets, classifier, self.sweeps)
            classifier = ridge_regression(codes, labels, self.penalty)
            functions = ridge_regression(inputs, codes, self.ridge)
            objective = self._objective(labels, codes, classifier, inputs @ functions)
            training_set.log(
                {
                    "iteration": iteration,
                    "iterations": self.rounds,
                    "objective": objective,
                    "seconds": time.perf_counter() - started,
                }
            )
        self.anchor_items, self.weights, self.thresholds = chosen, functions[:-1], -functions[-1]
        return self

    def _objective(self, labels, codes, classifier, outputs):
        fit = np.square(labels - codes @ classifier).sum() + self.penalty * np.square(classifier).sum()
        return float(fit + self.nu * np.square(codes - outputs).sum())
