"""What the hooks of a deep method are given: the state of its training, and a batch of training items."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch

from methods.base import TrainingSet


@dataclass
class TrainingState:
    """What a training keeps while it lasts; it is dropped with it.

    training_set: what the method learns from; memory: what `prepare` returned; criterion: the module that
    `build_criterion` returned, on the device, or None; epoch: counted from 0; iteration: batches trained on
    so far, over all epochs; logged: of the epoch, name -> (sum, number) of what `log` was called with.
    """

    training_set: TrainingSet
    memory: Any
    criterion: Any
    epoch: int = 0
    iteration: int = 0
    logged: dict[str, tuple[Any, int]] = field(default_factory=dict)

    def log(self, **values: Any) -> None:
        """Add numbers or scalar tensors to the epoch's line of training.jsonl: means over its calls."""
        for name, value in values.items():
            value = value.detach().double() if isinstance(value, torch.Tensor) else float(value)
            total, calls = self.logged.get(name, (0.0, 0))
            self.logged[name] = total + value, calls + 1


class Batch:
    """M training items of one step, for `loss`. An attribute is computed when it is first asked for.

    training: the `TrainingState`.
    """

    def __init__(
        self,
        method: Any,
        training: TrainingState,
        places: np.ndarray,
        features: torch.Tensor,
        second: Callable[[], torch.Tensor],
    ):
        """method: a `methods.base.deep.DeepHashing`; places: int64 (M,), `indices` in NumPy; features: float
        (M, d) on the device; second: returns `second`."""
        self.training = training
        self._method, self._places, self._features, self._second = method, places, features, second

    @cached_property
    def affinity(self) -> torch.Tensor:
        """int64 (M, M), its diagonal included, or what `batch_affinity` makes."""
        return self._tensor(self._method.batch_affinity(self.training, self._places))

    @cached_property
    def indices(self) -> torch.Tensor:
        """int64 (M,), the items' places in the training set."""
        return self._tensor(self._places)

    @cached_property
    def labels(self) -> torch.Tensor:
        """float (M, classes), 1 for each class or label that an item has, else 0. Raises `Refusal` for a
        training set without labels."""
        return self._tensor(self.training.training_set.label_rows(self._places))

    @cached_property
    def features(self) -> torch.Tensor:
        """float (M, d), what the hash head is given: the vectors, or the outputs of the network."""
        return self._features.float()

    @cached_property
    def second(self) -> torch.Tensor:
        """float (M, bits), raw scores of a second view of the same items (see `augment`)."""
        return self._second()

    def _tensor(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(self._features.device)


# Names of what a loss may ask a batch for.
ATTRIBUTES = (
    "training",
    *(name for name, value in vars(Batch).items() if isinstance(value, cached_property)),
)
