"""Random changes of training images, on the device where the images are."""

import numpy as np
import torch


def mirror(images: torch.Tensor, generator: np.random.Generator) -> torch.Tensor:
    """Images (n, H, W, 3), each mirrored left to right with probability 1/2."""
    chosen = torch.from_numpy(generator.random(len(images)) < 0.5).to(images.device)
    return torch.where(chosen[:, None, None, None], images.flip(2), images)


def shift(images: torch.Tensor, most: int, generator: np.random.Generator) -> torch.Tensor:
    """Images (n, H, W, 3), each shifted by -most to `most` pixels down and across, drawn uniformly.

    Pixels from beyond an edge are reflected at it: the same as a random crop of an image padded so.
    """
    offsets = generator.integers(-most, most + 1, (2, len(images), 1))
    rows, columns = (
        torch.from_numpy(_reflected(np.arange(length) + offset, length)).to(images.device)
        for length, offset in zip(images.shape[1:3], offsets)
    )
    numbers = torch.arange(len(images), device=images.device)[:, None, None]
    return images[numbers, rows[:, :, None], columns[:, None, :]]


def _reflected(places, length):
    """Places on a line of `length` pixels, those beyond its ends reflected at the outermost pixel."""
    period = max(2 * (length - 1), 1)
    places = np.abs(places) % period
    return np.minimum(places, period - places) if length > 1 else np.zeros_like(places)
