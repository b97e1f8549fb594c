"""StructHash: a structured SVM on NDCG whose features are hash bits, found one by one by column generation.

Lin, Shen, Wu. Optimizing Ranking Measures for Compact Binary Code Learning. ECCV 2014; Lin, Liu, Shen, Wu,
Shen. Structured Learning of Binary Codes with Column Generation for Optimizing Ranking Measures. IJCV 2017.
"""

import time
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import linprog

from methods.base import Refusal, check_settings
from methods.base.supervision import single_classes
from methods.learners.graph_cuts import BlockCuts
from methods.learners.trees import TreeHashing
from methods.relations.pairs import make_blocks
from methods.relations.rankings import make_lists, most_violated

_KEPT_IDLE = 20  # rounds that a constraint without a multiplier stays: it often becomes active again


@dataclass(kw_only=True)
class StructHash(TreeHashing):
    r"""A structured SVM whose features are bits, added one by one:

    $$
    \underset{w \geq 0, \, \xi \geq 0}{\min} \; 1^\top w + C \xi \qquad \text{subject to} \qquad
    \frac{1}{Q} \sum_{q=1}^{Q} w^\top \left(\psi(y_q^*) - \psi(y_q)\right)
    \geq \frac{1}{Q} \sum_{q=1}^{Q} \left(1 - \mathrm{NDCG}(y_q)\right) - \xi
    $$

    for every choice of a ranking $y_q$ of each list, $y_q^*$ the right one. Feature k of $\psi(y)$ is the
    mean, over pairs of a relevant and an irrelevant item of the list, of how much farther from the query bit
    k puts the latter, with the opposite sign where y has the pair in the wrong order.

    C: price of the slack. relevant, irrelevant: items drawn per training query.
    bit_weights: "learned" as published, or "equal": one common weight, so that training ranks by the plain
    Hamming distance. Either way codes are compared by the plain distance; the weights stay in the model
    (`bit_weights_` float64 (bits,)).
    tolerance: violation at which cutting planes end, and price over 1 at which column generation does;
    cutting_planes: most of them per bit; passes over the blocks per bit.
    """

    title = "StructHash"
    paper = "https://arxiv.org/abs/1407.1151"
    colour = "#332288"
    marker = "D"
    supervision = "graded"
    family = "listwise"
    space = {
        "C": {"log_uniform": [0.3, 1000.0]},
        "depth": [2, 4, 6, 8, 10],
        "trees": [50, 100, 200, 400, 800],
    }
    bounds = {
        "C": "(0, inf)",
        "relevant": "[1, inf)",
        "irrelevant": "[1, inf)",
        "tolerance": "[0, inf)",
        "cutting_planes": "[1, inf)",
        "passes": "[1, inf)",
    }

    C: float = 100.0
    relevant: int = 50
    irrelevant: int = 100
    bit_weights: Literal["learned", "equal"] = "learned"
    tolerance: float = 0.01
    cutting_planes: int = 30
    passes: int = 2

    def fit(self, training_set):
        check_settings(self)
        started = time.perf_counter()
        generator = np.random.default_rng(self.seed)
        lists = make_lists(training_set, self.relevant, self.irrelevant, generator)
        pairs = lists.pairs
        cuts = BlockCuts(pairs, make_blocks(pairs, single_classes(training_set), generator))
        levels = self.start(training_set.items)
        master = Master(lists, self.bits, self.C)
        equal = self.bit_weights == "equal"
        solution = master.solve(equal, self.tolerance, self.cutting_planes)
        for bit in range(1, self.bits + 1):
            weights = master.pair_weights(solution.multipliers)
            codes = cuts.lower(np.ones(pairs.items), weights, generator, passes=self.passes)
            learned = self.add_bit(levels, codes, pairs.sums(np.abs(weights)))
            mismatches = learned[pairs.first] != learned[pairs.second]
            # Over 1, the new bit's column lowers the master problem; else column generation has converged,
            # and further bits are those that a common weight asks for. A copy of an earlier bit has a price
            # of 1 but for rounding, and must not pass for a gain.
            price = float(weights @ mismatches)
            master.add_column(mismatches)
            equal = equal or price <= 1 + self.tolerance
            solution = master.solve(equal, self.tolerance, self.cutting_planes)
            training_set.log(
                {
                    "bit": bit,
                    "bits": self.bits,
                    "objective": solution.value,
                    "seconds": time.perf_counter() - started,
                    "slack": solution.slack,
                    "violation": solution.violation,
                    "planes": len(master),
                    "price": price,
                    "weighted": not equal,
                    "fitted": float((learned == codes).mean()),
                }
            )
        self.bit_weights_ = solution.weights
        return self

    def state(self):
        return super().state() | {"bit_weights": self.bit_weights_}

    def set_state(self, state):
        self.bit_weights_ = state["bit_weights"]
        super().set_state(state)


@dataclass(frozen=True)
class Solution:
    """Of the restricted master problem: value, slack, weights (bits,), multipliers of the constraints (c,),
    and by how much the most violated ranking still exceeds the slack."""

    value: float
    slack: float
    weights: np.ndarray
    multipliers: np.ndarray
    violation: float


class Master:
    """min over w >= 0, xi >= 0 of 1'w + C xi, subject to w'(psi(y*) - psi(y)) >= loss(y) - xi for every
    ranking y (one per list, averaged: the one-slack form), over the bits added so far.

    A constraint is kept as its shift per pair (see `most_violated`), so that its coefficient for a bit added
    later is one product.
    """

    def __init__(self, lists, bits, C):
        self.lists, self.C = lists, C
        self.order = lists.places.copy()
        self.mismatches = np.zeros((bits, len(lists.pairs)), np.float32)
        self.columns = 0
        self.shifts, self.losses, self.idle = [], [], []
        self.coefficients = np.zeros((0, bits))

    def __len__(self):
        return len(self.shifts)

    def add_column(self, mismatches):
        """A new bit: bool (p,), whether it parts each pair."""
        self.mismatches[self.columns] = mismatches
        for row, shift in enumerate(self.shifts):
            self.coefficients[row, self.columns] = shift @ self.mismatches[self.columns]
        self.columns += 1

    def pair_weights(self, multipliers):
        """a (p,), float64: a bit z gains most by minimising sum a z_i z_j; at price sum a 1[z_i != z_j]."""
        weights = np.zeros(len(self.lists.pairs))
        for multiplier, shift in zip(multipliers, self.shifts):
            if multiplier > 0:
                weights += multiplier * shift
        return weights

    def solve(self, equal, tolerance, most):
        """Cutting planes until no ranking is violated by more than `tolerance`, or `most` were added.

        equal: all bits share one weight.
        """
        for _ in range(most):
            value, slack, weights, multipliers = self._restricted(equal)
            shift, loss = most_violated(self.lists, -self._distances(weights), self.order)
            coefficients = self.mismatches[: self.columns] @ shift
            violation = loss - coefficients @ weights - slack
            if violation <= tolerance:
                break
            self._drop_idle(multipliers)
            self.shifts.append(shift)
            self.losses.append(loss)
            self.idle.append(0)
            row = np.zeros((1, self.coefficients.shape[1]))
            row[0, : self.columns] = coefficients
            self.coefficients = np.concatenate([self.coefficients, row])
        else:
            value, slack, weights, multipliers = self._restricted(equal)
        return Solution(value, slack, weights, multipliers, float(violation))

    def _distances(self, weights):
        if not self.columns:
            return np.zeros(len(self.lists.pairs))
        return (weights.astype(np.float32) @ self.mismatches[: self.columns]).astype(np.float64)

    def _restricted(self, equal):
        """The linear program over the constraints found so far: value, slack, weights, multipliers."""
        if not len(self):
            return 0.0, 0.0, np.zeros(self.columns), np.zeros(0)
        coefficients = self.coefficients[:, : self.columns]
        if equal:
            coefficients = coefficients.sum(axis=1, keepdims=True)
        count = coefficients.shape[1]
        costs = np.append(np.full(count, self.columns if equal else 1.0), self.C)
        rows = -np.hstack([coefficients, np.ones((len(self), 1))])
        result = linprog(costs, A_ub=rows, b_ub=-np.array(self.losses), method="highs-ds")
        if result.status:
            raise Refusal(f"the linear program of StructHash failed: {result.message}")
        solved = np.maximum(result.x, 0)  # HiGHS keeps bounds up to 1e-7
        weights = np.repeat(solved[:-1], self.columns) if equal else solved[:-1]
        return float(result.fun), float(solved[-1]), weights, np.maximum(-result.ineqlin.marginals, 0)

    def _drop_idle(self, multipliers):
        self.idle = [0 if lam > 0 else age + 1 for lam, age in zip(multipliers, self.idle)]
        kept = [row for row, age in enumerate(self.idle) if age <= _KEPT_IDLE]
        if len(kept) < len(self):
            self.shifts, self.losses, self.idle = (
                [values[row] for row in kept] for values in (self.shifts, self.losses, self.idle)
            )
            self.coefficients = self.coefficients[kept]
