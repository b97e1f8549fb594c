"""Random views of vectors, for methods whose authors transform images."""

import numpy as np
import torch

from methods.base import Refusal


def noisy_view(
    items: torch.Tensor, dropout: float, noise: float, generator: np.random.Generator
) -> torch.Tensor:
    """Items (M, d), each value dropped with probability `dropout`, the others scaled up, plus normal noise of
    `noise` times the root mean square of the items' values."""
    # Drawn in float32: drawing takes longer than the network's step.
    shape = tuple(items.shape)
    kept = torch.from_numpy(generator.random(shape, "float32") >= dropout).to(items.device)
    drawn = torch.from_numpy(generator.standard_normal(shape, "float32")).to(items.device)
    return items * kept / (1 - dropout) + noise * items.square().mean().sqrt() * drawn


def check_views(method, name):
    """Refuse a training on images whose second view of an image would be the first."""
    if method.backbone is not None and not (method.horizontal_flip or method.random_crop):
        raise Refusal(f"{name} compares views of an image: they need horizontal_flip or random_crop")
