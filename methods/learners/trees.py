"""Methods whose bits are signs of boosted trees, learned one after the other from sampled relations.

Lin, Shen, Shi, van den Hengel, Suter. Fast Supervised Hashing with Decision Trees for High-Dimensional Data.
CVPR 2014: each bit is first chosen for the training items, then a classifier learns to reproduce it.
"""

from dataclasses import dataclass

import numpy as np

from methods.base import HashingMethod
from methods.learners.boosting import BoostedTrees, Quantiser, boost, scores_of


@dataclass(kw_only=True)
class TreeHashing(HashingMethod):
    """Encodes with one `BoostedTrees` per bit, which `fit` learns by calling `add_bit`.

    trees per bit; their depth; features: tried per node (LazyBoost); trimming: share of the weight whose
    examples a tree is fitted on.
    """

    bounds = {"trees": "[1, inf)", "depth": "[1, inf)", "features": "[1, inf)", "trimming": "(0, 1]"}

    trees: int = 200
    depth: int = 4
    features: int = 200
    trimming: float = 0.99

    def start(self, items):
        """Quantise the training items, float32 (n, d) or images; no bits yet."""
        items = items.reshape(len(items), -1)
        self.quantiser = Quantiser.fit(items)
        self.functions = []
        return np.ascontiguousarray(self.quantiser(items).T)

    def add_bit(self, levels, codes, weights):
        """Learn one more bit from its codes (n,) in -1, +1 and example weights (n,); returns the bit that the
        trees give to the training items, int8 (n,) in -1, +1. levels: what `start` returned."""
        seed = int(np.random.default_rng((self.seed, len(self.functions))).integers(2**62))
        function, scores = boost(
            levels, codes, weights, seed, self.trees, self.depth, self.features, self.trimming
        )
        self.functions.append(function)
        return np.where(scores > 0, 1, -1).astype(np.int8)

    def encode_block(self, items):
        return scores_of(self.functions, self.quantiser(items.reshape(len(items), -1))) > 0

    def state(self):
        return {
            "lowest": self.quantiser.lowest,
            "step": self.quantiser.step,
            "counts": np.array([len(function.leaves) for function in self.functions]),
            "features": np.concatenate([function.features for function in self.functions]),
            "thresholds": np.concatenate([function.thresholds for function in self.functions]),
            "leaves": np.concatenate([function.leaves for function in self.functions]),
        }

    def set_state(self, state):
        self.quantiser = Quantiser(state["lowest"], state["step"])
        ends = np.cumsum(state["counts"])
        parts = [np.split(state[name], ends[:-1]) for name in ("features", "thresholds", "leaves")]
        self.functions = [BoostedTrees(*function) for function in zip(*parts)]
