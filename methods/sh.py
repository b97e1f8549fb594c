"""SH: the smoothest eigenfunctions of a uniform distribution on the box of the principal components.

Weiss, Torralba, Fergus. Spectral Hashing. NIPS 2008. Authors' code: MATLAB (trainSH, compressSH).
"""

import math
import time
from dataclasses import dataclass

import numpy as np

from methods.base import HashingMethod, Refusal
from methods.learners.linear import leading_directions


@dataclass(kw_only=True)
class SpectralHashing(HashingMethod):
    r"""Bit k of x is

    $$\left[\sin\left(\frac{\pi}{2} + m \pi \frac{x_j - \mathrm{low}_j}{\mathrm{range}_j}\right) > 0\right]$$

    for the direction j and mode m with the k-th smallest frequency $m / \mathrm{range}_j$, over the leading
    min(bits, d) principal components.
    """

    title = "SH"
    paper = "https://papers.nips.cc/paper/3383-spectral-hashing"
    colour = "#A0522D"
    marker = "p"
    supervision = "none"
    family = "unsupervised"
    learned = ("mean", "directions", "low", "component", "omegas")

    def fit(self, training_set):
        started = time.perf_counter()
        items = training_set.items.reshape(len(training_set), -1)
        items = items.astype(np.float64)
        self.mean = items.mean(axis=0)
        centred = items - self.mean
        variances, directions = leading_directions(centred, self.bits, len(items))
        kept = variances > variances[0] * 1e-10  # a direction without variance has no mode
        if not kept.any():
            raise Refusal("sh needs training items that differ")
        self.directions = directions[:, kept]
        projected = centred @ self.directions
        epsilon = np.finfo(np.float64).eps
        self.low = projected.min(axis=0) - epsilon
        ranges = projected.max(axis=0) + epsilon - self.low
        self.component, modes = lowest_modes(ranges, self.bits)
        self.omegas = modes * math.pi / ranges[self.component]
        training_set.log({"objective": float(self.omegas.max()), "seconds": time.perf_counter() - started})
        return self

    def encode_block(self, items):
        projected = (items.reshape(len(items), -1) - self.mean) @ self.directions - self.low
        return np.sin(projected[:, self.component] * self.omegas + math.pi / 2) > 0


def lowest_modes(ranges, bits):
    """(component int64 (bits,), mode int64 (bits,)) of the smallest frequencies mode / range, ascending.

    ranges: of the items along each component, positive. The candidates are the published ones: modes 1 to
    ceil((bits + 1) range / largest range) - 1 of each component. Raises `Refusal` where they are fewer than
    `bits`.
    """
    most = np.ceil((bits + 1) * ranges / ranges.max()).astype(np.int64)
    component = np.repeat(np.arange(len(ranges)), most - 1)
    mode = np.concatenate([np.arange(1, count) for count in most])
    if len(mode) < bits:
        raise Refusal(f"sh finds {len(mode)} modes in these items, not {bits}")
    order = np.argsort(np.square(mode * math.pi / ranges[component]), kind="stable")[:bits]
    return component[order], mode[order]
