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
    places = []
    for length, offset in zip(images.shape[1:3], offsets):
        line = np.pad(np.arange(length), most, "reflect")
        places.append(torch.from_numpy(line[np.arange(length) + offset + most]).to(images.device))
    rows, columns = places
    numbers = torch.arange(len(images), device=images.device)[:, None, None]
    return images[numbers, rows[:, :, None], columns[:, None, :]]
