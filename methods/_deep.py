"""Training of hash layers and networks by stochastic gradient descent, shared by all deep methods.

The semantics are those of the MatConvNet trainers of TALR and MIHash: momentum 0.9, weight decay on biases
too, the loss averaged over the batch, a reshuffle every epoch, the last incomplete batch kept, and the model
of the last epoch is the result: no epoch is chosen by looking at queries.
"""

import math
import time
from dataclasses import dataclass

import numpy as np
import torch

from methods._base import HashingMethod, Refusal
from methods._supervision import refuse_no_triplets


def shuffled_batches(items, size, key):
    """All of `items` items in random order, cut into index arrays of `size`, the last maybe shorter; key: the
    generator's seed, an integer or several."""
    order = np.random.default_rng(key).permutation(items)
    return [order[begin : begin + size] for begin in range(0, items, size)]


@dataclass(kw_only=True)
class DeepHashing(HashingMethod):
    """A network whose outputs' signs are the code. A method defines `loss`, and overrides what else differs.

    learning_rate falls by `learning_rate_factor` every `learning_rate_every` epochs (0: never).
    alpha is the scale of tanh in the relaxed codes tanh(alpha f) (eq. (tanh)); with alpha_final it grows
    geometrically from alpha in the first epoch to alpha_final in the last (the appendix's continuation).
    device: "cpu", "cuda" or "auto".
    """

    learning_rate: float = 0.1
    learning_rate_factor: float = 0.5
    learning_rate_every: int = 0
    momentum: float = 0.9
    weight_decay: float = 5e-4
    epochs: int = 50
    batch_size: int = 256
    alpha: float = 1.0
    alpha_final: float | None = None
    device: str = "cpu"

    def loss(self, outputs, affinity, indices):
        """Scalar to minimise. outputs: float (M, bits), the network's raw scores f; affinity: int64 (M, M),
        its diagonal included, or what `batch_affinity` makes; indices: int64 (M,), the items' places in the
        training set."""
        raise NotImplementedError(f"{type(self).__name__} does not define loss")

    def relax(self, outputs):
        """Relaxed codes in (-1, 1) at the current scale."""
        return torch.tanh(self.current_alpha * outputs)

    def build_network(self, item_shape):
        """Items (n, *item_shape) to raw scores (n, bits): a linear hash layer, unless overridden."""
        layer = torch.nn.Linear(math.prod(item_shape), self.bits)
        torch.nn.init.normal_(layer.weight, std=math.sqrt(2 / layer.in_features))
        torch.nn.init.zeros_(layer.bias)
        return torch.nn.Sequential(torch.nn.Flatten(), layer)

    def prepare(self, training_set):
        """Called once before training. What it returns is `self.memory` while training lasts, and is dropped
        with it: for methods that keep something per training item. May raise `Refusal`."""

    def draw_batches(self, items, epoch):
        """The batches of an epoch, counted from 0: a list of index arrays into the `items` training items."""
        return shuffled_batches(items, self.batch_size, (self.seed, epoch))

    def batch_affinity(self, training_set, indices):
        """What `loss` is given as affinity for a batch: an array with one row or more per item."""
        return training_set.affinity(indices, indices)

    def parameter_groups(self):
        """What torch.optim.SGD is given: dicts of `params` and what differs from the method's settings, be it
        `weight_decay` or `rate_multiplier`, which multiplies the learning rate."""
        return [{"params": list(self.network.parameters())}]

    def fit(self, training_set):
        if len(training_set) < 2:
            raise Refusal(f"training needs at least 2 items, there are {len(training_set)}")
        if self.batch_size < 2:
            raise Refusal(f"batch_size must be at least 2: one item ranks nothing, not {self.batch_size}")
        device = self._device()
        self.item_shape = tuple(training_set.items.shape[1:])
        self.network = self._seeded_network().to(device)
        try:
            self.memory = self.prepare(training_set)
            self._train(training_set, device)
        finally:  # also where training was refused: a method keeps no training data
            vars(self).pop("memory", None)
        return self

    def _train(self, training_set, device):
        optimizer = torch.optim.SGD(
            self.parameter_groups(), self.learning_rate, self.momentum, weight_decay=self.weight_decay
        )
        started = time.perf_counter()
        for epoch in range(self.epochs):
            rate, self.current_alpha = self.schedule(epoch)
            for group in optimizer.param_groups:
                group["lr"] = rate * group.get("rate_multiplier", 1)
            objective = self._epoch(training_set, optimizer, epoch, device)
            training_set.report(
                {
                    "epoch": epoch + 1,
                    "epochs": self.epochs,
                    "objective": objective,
                    "seconds": time.perf_counter() - started,
                    "learning_rate": rate,
                    "alpha": self.current_alpha,
                }
            )

    def schedule(self, epoch):
        """(learning rate, alpha) of an epoch, counted from 0."""
        rate = self.learning_rate
        if self.learning_rate_every:
            rate *= self.learning_rate_factor ** (epoch // self.learning_rate_every)
        if self.alpha_final is None or self.epochs < 2:
            return rate, self.alpha
        return rate, self.alpha * (self.alpha_final / self.alpha) ** (epoch / (self.epochs - 1))

    def _epoch(self, training_set, optimizer, epoch, device):
        """One pass over the training set; returns the mean loss over its items."""
        total, seen = 0.0, 0
        self.network.train()
        for indices in self.draw_batches(len(training_set), epoch):
            if len(indices) < 2:  # one item ranks nothing
                continue
            items = self._tensor(training_set.items[indices], device)
            affinity = torch.from_numpy(self.batch_affinity(training_set, indices)).to(device)
            loss = self.loss(self.network(items), affinity, torch.from_numpy(indices).to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(indices)
            seen += len(indices)
        # The last step may have broken the weights after a loss that was still finite.
        whole = all(bool(torch.isfinite(weights).all()) for weights in self.network.parameters())
        if not (math.isfinite(total) and whole):
            raise Refusal(
                f"the loss is not finite in epoch {epoch + 1}: lower learning_rate ({self.learning_rate})"
            )
        return total / seen

    def encode_block(self, items):
        device = self._device()
        self.network.to(device).eval()
        with torch.inference_mode():
            return (self.network(self._tensor(items, device)) > 0).cpu().numpy()

    def state(self):
        state = {name: value.cpu().numpy() for name, value in self.network.state_dict().items()}
        return state | {"item_shape": np.array(self.item_shape, np.int64)}

    def set_state(self, state):
        self.item_shape = tuple(int(size) for size in state.pop("item_shape"))
        self.network = self._seeded_network()
        self.network.load_state_dict({name: torch.from_numpy(value) for name, value in state.items()})

    def _seeded_network(self):
        # Layers draw their initial weights from the global generator: seed it, and put it back as it was.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return self.build_network(self.item_shape)

    def _device(self):
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        if self.device == "cuda" and not torch.cuda.is_available():
            raise Refusal("device is cuda, but no CUDA device is available; set device to cpu or auto")
        return torch.device(self.device)

    @staticmethod
    def _tensor(items, device):
        return torch.from_numpy(np.ascontiguousarray(items, np.float32)).to(device)


@dataclass(kw_only=True)
class ListwiseHashing(DeepHashing):
    """A deep method that maximises the mean of a listwise objective on soft distance histograms.

    bins: intervals of the histogram, so bins + 1 centres (None: one per bit); delta: half-width of the
    triangular kernel in bin widths (eq. (delta)).
    """

    family = "listwise"

    bins: int | None = None
    delta: float = 1.0

    def prepare(self, training_set):
        binary = self.supervision == "binary"
        refuse_no_triplets(training_set, lambda affinity: affinity > 0 if binary else affinity)

    def objective(self, codes, affinity):
        """(M,) objectives to maximise. codes: relaxed codes (M, bits); affinity int64 (M, M)."""
        raise NotImplementedError(f"{type(self).__name__} does not define objective")

    def loss(self, outputs, affinity, indices):
        return -self.objective(self.relax(outputs), affinity).mean()
