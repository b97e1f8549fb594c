"""FSDH: kernel regression on the codes of the classes, in closed form.

Koutaki, Shirai, Ambai. Fast Supervised Discrete Hashing and its Analysis. arXiv 2016; Hadamard Coding for
Supervised Discrete Hashing. TIP 2018. Authors' code: goukoutaki/FSDH (MATLAB).
"""

import time
from dataclasses import dataclass

import numpy as np

from methods.base import check_settings
from methods.base.labels import single_labels
from methods.class_codes.centres import constant_bits, make_centres
from methods.learners.kernels import KernelHashing, draw_anchors, gaussian_kernel, ridge_regression


@dataclass(kw_only=True)
class FSDH(KernelHashing):
    r"""In closed form, without iterations or an initial value,

    $$
    b(x) = \mathrm{sgn}(P^\top \varphi(x)), \qquad P = (\Phi^\top \Phi + \lambda I)^{-1} \Phi^\top B
    $$

    with $\varphi(x)$ Gaussian kernel values at `anchors` items, row i of $\Phi$ those of item i, row i of B
    the code of its class, and $\lambda$ the `ridge`.

    centres: "spread_hadamard" (rows of a Hadamard matrix whose columns all differ), "hadamard" (its first
    rows, as published: bits a power of two), "random" or "bernoulli" (methods/class_codes/centres.py). The
    first rows of Sylvester's matrix repeat columns: with 10 classes, codes of 16, 32 and 64 bits rank alike.
    sigma: width of the kernel exp(-d^2 / (2 sigma^2)), for centred items of unit length; the authors' 0.4 is
    for items that are not centred. The released code has no ridge.
    """

    title = "FSDH"
    paper = "https://arxiv.org/abs/1611.10017"
    colour = "#CD5C5C"
    marker = "P"
    supervision = "labels"
    several_labels = False
    family = "classwise"
    learned = (*KernelHashing.learned, "unused")
    space = {
        "anchors": [300, 1000, 2000, 3000],
        "sigma": [0.2, 0.3, 0.4, 0.55, 0.7, 1.0, 1.4],
        "ridge": {"log_uniform": [1e-3, 10.0]},
        "centres": ["spread_hadamard", "random", "bernoulli"],
    }
    bounds = {"anchors": "[1, inf)", "sigma": "(0, inf)", "ridge": "(0, inf)"}

    anchors: int = 1000
    sigma: float = 0.7
    ridge: float = 1e-2
    centres: str = "spread_hadamard"

    def fit(self, training_set):
        check_settings(self)
        started = time.perf_counter()
        places, classes = single_labels(training_set, "fsdh")
        generator = np.random.default_rng(self.seed)
        items = training_set.items.reshape(len(training_set), -1).astype(np.float64)
        self.anchor_items = draw_anchors(items, self.anchors, generator)
        self.variance = self.sigma**2
        centres = make_centres(self.centres, len(classes), self.bits, generator)
        self.unused = constant_bits(centres)
        codes = centres[places].astype(np.float64)
        inputs = gaussian_kernel(items, self.anchor_items, self.variance)
        self.weights = ridge_regression(inputs, codes, self.ridge)
        self.thresholds = np.zeros(self.bits)
        error = float(np.mean(np.square(codes - inputs @ self.weights)))
        training_set.log({"objective": error, "seconds": time.perf_counter() - started})
        return self

    def unused_bits(self):
        """Bits that are the same in the codes of all classes."""
        return int(self.unused)
