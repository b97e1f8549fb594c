"""KSH: kernel hash functions whose inner products of codes reproduce the similarity of labelled pairs.

Liu, Wang, Ji, Jiang, Chang. Supervised Hashing with Kernels. CVPR 2012. Authors' code:
ColumbiaDVMM/Supervised-Hashing-with-Kernels (MATLAB).
"""

import time
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from methods.base import Refusal, check_settings
from methods.base.supervision import affinity_blocks, single_classes
from methods.learners.eigenproblem import LeadingEigenvector
from methods.learners.kernels import KernelHashing, draw_anchors, gaussian_kernel, mean_squared_distance_to

_RIDGE = 1e-8  # of the mean variance of a kernel value: anchors that repeat leave the problem solvable
_MOST_HALVINGS = 50


@dataclass(kw_only=True)
class KSH(KernelHashing):
    r"""Minimises, over A,

    $$\|b S - B B^\top\|^2, \qquad B = \mathrm{sgn}(K A)$$

    with S = +-1 over all pairs of the labelled items and K the centred Gaussian kernel values at `anchors`
    items (variance: the mean squared distance of items and anchors).

    Greedy, bit by bit, on the residual R = bits S - sum h h': first the leading generalised eigenvector of
    (K'RK, K'K), then Nesterov's accelerated gradient on the smooth form phi' R phi, phi = 2 sigmoid(K a) - 1,
    at most `max_steps` steps or until the change per item is `tolerance`; of the two sign vectors the one
    with the larger h' R h is kept.

    training_items: labelled items, drawn at random (None: all; the released demo takes 2,000). The kernel's
    width and means are of the labelled items.
    """

    title = "KSH"
    paper = "https://doi.org/10.1109/CVPR.2012.6247912"
    colour = "#708090"
    marker = "X"
    supervision = "binary"
    family = "pointwise"
    space = {
        "anchors": [100, 300, 600, 1000, 1500, 2000],
        "training_items": [1000, 2000, 5000],
    }
    bounds = {"anchors": "[1, inf)", "training_items": "[2, inf)", "max_steps": "[1, inf)"}

    anchors: int = 300
    training_items: int | None = None
    max_steps: int = 500
    tolerance: float = 1e-2

    def fit(self, training_set):
        check_settings(self)
        started = time.perf_counter()
        generator = np.random.default_rng(self.seed)
        rows = np.arange(len(training_set))
        if self.training_items is not None and self.training_items < len(rows):
            rows = np.sort(generator.choice(len(rows), self.training_items, replace=False))
        if len(rows) < 2:
            raise Refusal(f"ksh learns from pairs: it needs at least 2 training items, there are {len(rows)}")
        items = training_set.items.reshape(len(training_set), -1)
        self.anchor_items = draw_anchors(items, self.anchors, generator)
        items = items[rows].astype(np.float64)
        self.variance = mean_squared_distance_to(items, self.anchor_items, "ksh")
        values = gaussian_kernel(items, self.anchor_items, self.variance)
        means = values.mean(axis=0)
        values -= means
        residual = Residual(Similarity(training_set, rows), self.bits, values, generator)
        self.weights = np.empty((len(means), self.bits))
        for bit in range(self.bits):
            start = residual.leading_direction()
            refined, steps = self._refine(residual, values, start)
            choices = [(residual.agreement(signs(values @ a)), a) for a in (start, refined)]
            agreement, self.weights[:, bit] = max(choices, key=lambda choice: choice[0])
            residual.subtract(signs(values @ self.weights[:, bit]))
            training_set.log(
                {
                    "bit": bit + 1,
                    "bits": self.bits,
                    "objective": residual.squared_norm(),
                    "agreement": agreement,
                    "steps": steps,
                    "seconds": time.perf_counter() - started,
                }
            )
        self.thresholds = means @ self.weights
        return self

    def _refine(self, residual, values, start):
        """Accelerated gradient on -phi' R phi from `start`; (the last point, steps taken)."""
        point, momentum_point, momentum, step = start, start, 1.0, 1.0
        # K is large: what it makes of a point follows from what it made of those that the point is a sum of.
        outputs = momentum_outputs = values @ start
        value = residual.smooth(outputs)[0]
        steps = 0
        while steps < self.max_steps:
            steps += 1
            base, gradient = residual.smooth(momentum_outputs)
            gradient = values.T @ gradient
            gradient_outputs = values @ gradient
            squared = float(gradient @ gradient)
            for _ in range(_MOST_HALVINGS):
                new_outputs = momentum_outputs - gradient_outputs / step
                new_value = residual.smooth(new_outputs)[0]
                if new_value <= base - squared / (2 * step):
                    break
                step *= 2
            new = momentum_point - gradient / step
            new_momentum = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            onward = (momentum - 1) / new_momentum
            momentum_point = new + onward * (new - point)
            momentum_outputs = new_outputs + onward * (new_outputs - outputs)
            momentum = new_momentum
            change = abs(new_value - value)
            point, outputs, value = new, new_outputs, new_value
            if change / len(values) <= self.tolerance:
                break
        return point, steps


def signs(outputs):
    """+1 where positive, else -1: float64."""
    return np.where(outputs > 0, 1.0, -1.0)


class Similarity:
    """S, +1 for pairs with affinity > 0 and for an item with itself, else -1, as an operator.

    Of single classes it is kept as their indicators; else all pairs are kept as bytes.
    """

    def __init__(self, training_set, rows):
        classes = single_classes(training_set)
        self.items, self.indicators, self.pairs = len(rows), None, None
        if classes is not None:
            used, places = np.unique(classes[rows], return_inverse=True)
            if len(used) < 2:
                raise Refusal("ksh needs pairs of dissimilar items, the training items are of one class")
            if len(used) == len(rows):
                raise Refusal("ksh needs pairs of similar items, every training item has a class of its own")
            self.indicators = np.eye(len(used))[places]
            return
        self.pairs = np.empty((len(rows), len(rows)), np.int8)
        place = 0
        for some, affinity in affinity_blocks(training_set, rows):
            self.pairs[place : place + len(some)] = np.where(affinity[:, rows] > 0, 1, -1)
            place += len(some)
        if (self.pairs > 0).sum() == np.trace(self.pairs > 0):
            raise Refusal("ksh needs pairs of similar items, no two training items are similar")
        np.fill_diagonal(self.pairs, 1)
        if self.pairs.min() > 0:
            raise Refusal("ksh needs pairs of dissimilar items, all training items are similar")

    def times(self, vectors):
        """S vectors, float64, for vectors (n,) or (n, k)."""
        if self.indicators is not None:
            return 2 * self.indicators @ (self.indicators.T @ vectors) - vectors.sum(axis=0)
        assert self.pairs is not None
        result = np.empty(vectors.shape)
        for begin in range(0, self.items, 512):
            result[begin : begin + 512] = self.pairs[begin : begin + 512].astype(np.float64) @ vectors
        return result


class Residual:
    """R = bits S - sum of h h' over the bits so far, and the eigenproblem of K'RK and K'K."""

    def __init__(self, similarity, bits, values, generator):
        self.similarity, self.bits, self.values = similarity, bits, values
        self.codes = np.zeros((len(values), 0))
        gram = values.T @ values
        gram[np.diag_indices_from(gram)] += _RIDGE * np.trace(gram) / len(gram)
        projected = bits * values.T @ similarity.times(values)
        self.problem = LeadingEigenvector(projected, gram, generator)
        self.norm = bits**2 * float(len(values)) ** 2  # of R, squared

    def times(self, vector):
        return self.bits * self.similarity.times(vector) - self.codes @ (self.codes.T @ vector)

    def leading_direction(self):
        """The leading generalised eigenvector a of (K'RK, K'K), scaled to |K a|^2 = n."""
        vector = self.problem.find()
        length = np.linalg.norm(self.values @ vector)
        if length == 0:
            raise Refusal("ksh: the kernel values of the training items are all the same")
        return vector * np.sqrt(len(self.values)) / length

    def smooth(self, outputs):
        """-phi' R phi, phi = 2 sigmoid(outputs) - 1, and its gradient by outputs, -(R phi) o (1 - phi^2)."""
        phi = 2 * expit(outputs) - 1
        product = self.times(phi)
        return -float(phi @ product), -product * (1 - phi**2)

    def agreement(self, code):
        """h' R h."""
        return float(code @ self.times(code))

    def subtract(self, code):
        self.norm += float(len(code)) ** 2 - 2 * self.agreement(code)
        self.codes = np.column_stack([self.codes, code])
        self.problem.add(self.values.T @ code, -1)

    def squared_norm(self):
        """|R|^2 per pair."""
        return self.norm / len(self.values) ** 2
