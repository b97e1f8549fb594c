"""FastHash: choose each bit for the training items by block graph cuts, then learn it with boosted trees.

Lin, Shen, Shi, van den Hengel, Suter. Fast Supervised Hashing with Decision Trees for High-Dimensional Data.
CVPR 2014; Supervised Hashing Using Graph Cuts and Boosted Decision Trees, TPAMI 2015. Authors' code: the
fasthash toolbox.
"""

import time
from dataclasses import dataclass
from typing import Literal

import numpy as np

from methods.base import check_settings
from methods.base.supervision import single_classes
from methods.learners.graph_cuts import BlockCuts
from methods.learners.trees import TreeHashing
from methods.relations.pairs import make_blocks, sample_pairs


@dataclass(kw_only=True)
class FastHash(TreeHashing):
    r"""Bit r is chosen for the training items, $z_i \in \{-1, +1\}$, and then learned by boosted trees:

    $$
    \underset{z}{\min} \sum_{(i, j)} a_{ij} z_i z_j, \qquad a_{ij} = \ell_r(m_{ij}) - \ell_r(m_{ij} + 1)
    $$

    $m_{ij}$ is the number of earlier bits in which the trees part a pair; of the hinge loss
    $\ell_r(m) = (m / r)^2$ for similar pairs and $\max(0, \frac{1}{2} - m / r)^2$ for others.

    loss: what a pair costs at m mismatches of r bits, "hinge", "ksh" or "bre" (see `pair_loss`).
    similar, dissimilar: pairs drawn per training item; passes over the blocks per bit.
    """

    title = "FastHash"
    paper = "https://arxiv.org/abs/1404.1561"
    colour = "#225522"
    marker = "v"
    supervision = "binary"
    family = "pointwise"
    space = {
        "loss": ["hinge", "ksh", "bre"],
        "depth": [2, 4, 6, 8, 10],
        "trees": [50, 100, 200, 400, 800],
    }
    bounds = {"similar": "[1, inf)", "dissimilar": "[1, inf)", "passes": "[1, inf)"}

    loss: Literal["hinge", "ksh", "bre"] = "hinge"
    similar: int = 100
    dissimilar: int = 100
    passes: int = 2

    def fit(self, training_set):
        check_settings(self)
        started = time.perf_counter()
        generator = np.random.default_rng(self.seed)
        pairs = sample_pairs(training_set, self.similar, self.dissimilar, generator)
        cuts = BlockCuts(pairs, make_blocks(pairs, single_classes(training_set), generator))
        levels = self.start(training_set.items)
        mismatches = np.zeros(len(pairs), np.int64)
        for bit in range(1, self.bits + 1):
            weights = pair_weights(self.loss, bit, mismatches, pairs.similar)
            start = np.ones(pairs.items)
            codes = cuts.lower(start, weights, generator, passes=self.passes)
            learned = self.add_bit(levels, codes, pairs.sums(np.abs(weights)))
            # Later bits mend what the trees really do, not what was asked of them.
            mismatches += learned[pairs.first] != learned[pairs.second]
            training_set.log(
                {
                    "bit": bit,
                    "bits": self.bits,
                    "objective": float(pair_loss(self.loss, bit, mismatches, pairs.similar).mean()),
                    "seconds": time.perf_counter() - started,
                    "quadratic": cuts.objective(codes, weights),
                    "quadratic_start": cuts.objective(start, weights),
                    "fitted": float((learned == codes).mean()),
                }
            )
        return self


def pair_loss(loss, bits, mismatches, similar):
    """Loss of pairs with `mismatches` (p,) of `bits` bits: float64 (p,). similar: bool (p,).

    With s = mismatches / bits: ksh (y - (1 - 2s))^2 with y = +-1; bre (t - s)^2 with t = 0 for similar and 1
    for dissimilar pairs; hinge max(0, s)^2 for similar and max(0, 1/2 - s)^2 for dissimilar pairs.
    """
    share = mismatches / bits
    if loss == "ksh":
        return (np.where(similar, 1, -1) - (1 - 2 * share)) ** 2
    if loss == "bre":
        return (np.where(similar, 0, 1) - share) ** 2
    return np.where(similar, share, np.maximum(0, 0.5 - share)) ** 2


def pair_weights(loss, bits, mismatches, similar):
    """a = loss(m) - loss(m + 1): what a pair gains by differing in the bit that comes. float64 (p,).

    bits counts the bit that comes; mismatches (p,) those of the bits before it. Minimising
    sum a z_i z_j chooses the bit (CVPR 2014, eq. 7). a <= 0 for similar pairs.
    """
    return pair_loss(loss, bits, mismatches, similar) - pair_loss(loss, bits, mismatches + 1, similar)
