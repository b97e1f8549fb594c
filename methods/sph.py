"""SpH: hyperspheres that each hold half of the items, and each pair of which shares a quarter.

Heo, Lee, He, Chang, Yoon. Spherical Hashing. CVPR 2012. Read from the MATLAB code (trainSpH).
"""

import time
from dataclasses import dataclass

import numpy as np

from methods.base import HashingMethod, Refusal, check_settings
from methods.learners.kernels import squared_distances


@dataclass(kw_only=True)
class SphericalHashing(HashingMethod):
    r"""Bit k of x is

    $$[\|x - c_k\| \leq r_k]$$

    Centres start as means of `start` random items. In each iteration $r_k$ is the median distance to centre
    k; two centres whose spheres share too many items push each other apart, those that share too few attract.
    The training ends where the number of shared items is n/4 to within `tolerance` of it on average, with a
    standard deviation of at most `deviation` n/4, or after max_iterations. Codes are compared by the Hamming
    distance; the paper's own distance, |xor| / |and|, is not used.
    """

    title = "SpH"
    paper = "https://doi.org/10.1109/CVPR.2012.6248024"
    colour = "#6B8E23"
    marker = "h"
    supervision = "none"
    family = "unsupervised"
    learned = ("centres", "radii")
    space = {
        "start": [5, 10, 20, 50],
        "max_iterations": [50, 100, 200],
    }
    bounds = {"start": "[1, inf)", "max_iterations": "[1, inf)"}

    start: int = 5
    max_iterations: int = 100
    tolerance: float = 0.1
    deviation: float = 0.15

    def fit(self, training_set):
        check_settings(self)
        started = time.perf_counter()
        items = training_set.items.reshape(len(training_set), -1).astype(np.float64)
        if len(items) < 4:
            raise Refusal(f"sph needs at least 4 training items, there are {len(items)}")
        generator = np.random.default_rng(self.seed)
        drawn = [
            generator.choice(len(items), min(self.start, len(items)), replace=False) for _ in range(self.bits)
        ]
        self.centres = np.stack([items[rows].mean(axis=0) for rows in drawn])
        for iteration in range(1, self.max_iterations + 1):
            inside, self.radii = self._spheres(items)
            shared = inside.T.astype(np.float64) @ inside
            wanted = len(items) / 4
            pairs = shared[np.triu_indices(self.bits, 1)]
            excess = float(np.abs(pairs - wanted).mean() / wanted) if len(pairs) else 0.0
            spread = float(pairs.std(ddof=1) / wanted) if len(pairs) > 1 else 0.0
            training_set.log(
                {
                    "iteration": iteration,
                    "iterations": self.max_iterations,
                    "objective": excess,
                    "deviation": spread,
                    "seconds": time.perf_counter() - started,
                }
            )
            if excess <= self.tolerance and spread <= self.deviation:
                break
            self.centres = self.centres + mean_forces(self.centres, shared, wanted)
        else:
            _, self.radii = self._spheres(items)
        return self

    def _spheres(self, items):
        """Which items each sphere holds, bool (n, bits), and its squared radius, (bits,)."""
        distances = squared_distances(items, self.centres)
        half = len(items) // 2
        radii = np.partition(distances, half - 1, axis=0)[half - 1]
        return distances <= radii, radii

    def encode_block(self, items):
        return squared_distances(items.reshape(len(items), -1), self.centres) <= self.radii


def mean_forces(centres, shared, wanted):
    """What each centre moves by, (bits, d): the mean over centres of 0.5 (o_ij - n/4) / (n/4) (c_i - c_j).

    shared: o_ij, items in both spheres (bits, bits); wanted: n/4.
    """
    strength = 0.5 * (shared - wanted) / wanted
    np.fill_diagonal(strength, 0)
    return (strength.sum(axis=1)[:, None] * centres - strength @ centres) / len(centres)
