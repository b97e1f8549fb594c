"""Optimisers and learning-rate schedules by name."""

import inspect
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch


@lru_cache
def _eager(kind: type[torch.optim.Optimizer]) -> Callable[..., torch.optim.Optimizer]:
    """The same optimiser without what serves torch.compile alone: PyTorch wraps these methods in functions
    that import a compiler, which takes longer than to train many a hash function."""
    names = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
    plain = {name: inspect.unwrap(getattr(kind, name)) for name in names}
    step = torch.no_grad()(inspect.unwrap(kind.step))
    step.hooked = True  # or PyTorch wraps it in a function that names each step to a profiler
    return type(kind.__name__, (kind,), plain | {"step": step})


def make_optimiser(
    name: str, groups: list[dict[str, Any]], learning_rate: float, momentum: float, weight_decay: float
) -> torch.optim.Optimizer:
    """The optimiser of this name on groups of parameters.

    momentum: of "sgd" and "rmsprop", beta_1 of "adam" and "adamw" (beta_2 is 0.999). weight_decay: times the
    parameters it is added to the gradient; of "adamw" it is decoupled from it (Loshchilov, Hutter, 2019).
    """
    # Adam fused: one pass over the parameters instead of ten, a tenth of the time on a CPU. SGD gains little,
    # and unfused it is bit for bit what people write themselves.
    if name == "sgd":
        # On a CPU it is what PyTorch finds out by itself, in each step again.
        on_cpu = all(one.device.type == "cpu" for group in groups for one in group["params"])
        return _eager(torch.optim.SGD)(
            groups, learning_rate, momentum, weight_decay=weight_decay, foreach=False if on_cpu else None
        )
    if name == "rmsprop":
        return _eager(torch.optim.RMSprop)(
            groups, learning_rate, momentum=momentum, weight_decay=weight_decay
        )
    kinds = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    betas = (momentum, 0.999)
    return _eager(kinds[name])(groups, learning_rate, betas=betas, weight_decay=weight_decay, fused=True)


def scheduled_rate(schedule: str, count: int, done: float, gamma: float, every: int) -> float:
    """Factor of the learning rate after `count` epochs or iterations, `done` of all training, 0 to 1.

    "step": gamma^(count // every), 1 if every is 0; "cosine": (1 + cos(pi done)) / 2.
    """
    if schedule == "cosine":
        return (1 + math.cos(math.pi * done)) / 2
    return gamma ** (count // every) if every else 1.0
