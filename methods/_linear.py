"""Methods whose hash functions are signs of linear projections of centred items."""

from dataclasses import dataclass

from methods.base import HashingMethod


@dataclass(kw_only=True)
class LinearProjections(HashingMethod):
    """Encodes with `mean` (d,) and `projections` (d, bits), which `fit` sets."""

    def encode_block(self, items):
        return (items.reshape(len(items), -1) - self.mean) @ self.projections > 0

    def state(self):
        return {"mean": self.mean, "projections": self.projections}

    def set_state(self, state):
        self.mean, self.projections = state["mean"], state["projections"]
