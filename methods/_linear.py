"""Methods whose hash functions are signs of linear projections of centred items."""

from dataclasses import dataclass

import numpy as np

from methods.base import HashingMethod, Refusal


def principal_components(items, count, name):
    """(mean (d,), centred items (n, d), leading directions (d, count), all variances in descending order).

    items: (n, d), taken as float64. name: of the method, for the `Refusal` raised where the items have fewer
    than `count` directions of positive variance.
    """
    items = items.astype(np.float64)
    mean = items.mean(axis=0)
    items -= mean
    variances, directions = np.linalg.eigh(items.T @ items / len(items))
    rank = int(np.sum(variances > variances[-1] * 1e-10))
    if count > rank:
        raise Refusal(f"{name} makes at most {rank} bits from these items (their rank), not {count}")
    return mean, items, directions[:, : -count - 1 : -1], variances[::-1]


@dataclass(kw_only=True)
class LinearProjections(HashingMethod):
    """Encodes with `mean` (d,) and `projections` (d, bits), which `fit` sets."""

    def encode_block(self, items):
        return self.raw_scores(items) > 0

    def raw_scores(self, items):
        return (np.reshape(items[:], (len(items), -1)) - self.mean) @ self.projections

    def state(self):
        return {"mean": self.mean, "projections": self.projections}

    def set_state(self, state):
        self.mean, self.projections = state["mean"], state["projections"]
