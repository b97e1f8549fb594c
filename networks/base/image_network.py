"""The base of all networks: a torch module that also knows how its images are prepared."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import torch
from torch.nn.functional import interpolate

from tiebench.values import form

# ImageNet's mean colour, RGB 0-255: the channel means of Caffe's imagenet_mean.binaryproto.
MEAN_COLOUR = (122.679, 116.669, 104.007)


class ImageNetwork(torch.nn.Module):
    """Images to vectors. `forward(images)`: float32 (n, 3, image_size, image_size), prepared by `preprocess`,
    to float32 (n, width).

    image_size: side of the square images, in pixels; width: values per image;
    average_image: float32 (3, image_size, image_size), RGB 0-255, subtracted from resized images;
    scale: float32 (3, 1, 1), what the difference is then multiplied by.
    """

    options: ClassVar[Mapping[str, str]]  # argument -> one-line description
    trainable: ClassVar[bool] = True  # whether it has weights to train
    interpolation = "bicubic"
    antialias = True
    bfloat16_on_cpu = False  # whether it is trained faster in bfloat16 on processors that multiply it
    average_image: torch.Tensor
    scale: torch.Tensor

    def __init__(self, image_size, width, average_image, scale=(1.0, 1.0, 1.0), weight_like_average=False):
        """average_image: array that is (3, image_size, image_size) or holds one value per channel;
        weight_like_average: whether it belongs to the weights, and so to the state dict.

        Raises ValueError for an average image of another shape.
        """
        super().__init__()
        self.image_size = int(image_size)
        self.width = int(width)
        average = full_average(average_image, self.image_size)
        self.register_buffer("average_image", torch.from_numpy(average), persistent=weight_like_average)
        scale = torch.tensor(scale, dtype=torch.float32).reshape(3, 1, 1)
        self.register_buffer("scale", scale, persistent=False)

    def preprocess(self, images):
        """uint8 (n, 3, h, w) RGB, on any device, to float32 (n, 3, image_size, image_size) on that device.

        Resized without keeping the aspect and without clamping, as MATLAB's imresize does to floating point
        images (but beyond the edges nothing is mirrored: what lies there has no weight), then
        (pixels - average_image) * scale. Raises ValueError for another dtype or shape.
        """
        if images.dtype != torch.uint8 or images.ndim != 4 or images.shape[1] != 3:
            raise ValueError(f"images must be uint8 (n, 3, h, w), not {form(images)}")
        size = (self.image_size, self.image_size)
        pixels = images.float()
        if pixels.shape[2:] != size:
            pixels = interpolate(
                pixels, size, mode=self.interpolation, align_corners=False, antialias=self.antialias
            )
        average = self.average_image.to(pixels.device)[None]
        # In the pixels' order: the two are then read side by side, in half the time.
        if pixels.is_contiguous(memory_format=torch.channels_last):
            average = average.contiguous(memory_format=torch.channels_last)
        return pixels.sub_(average).mul_(self.scale.to(pixels.device))

    def settings(self):
        """What decides its features besides weights and buffers: values that JSON can write."""
        return [type(self).__qualname__, self.image_size, self.width, self.interpolation, self.antialias]

    def weight_module(self):
        """The module that files of weights by parameter name are for."""
        return self

    def without_classifier(self, weights):
        """`weights`, parameter name -> tensor, without those of a classifier that this network leaves out."""
        return weights


def full_average(average_image, image_size):
    """float32 (3, image_size, image_size) of an array of that shape or of one value per channel.

    Raises ValueError for any other shape.
    """
    average = np.asarray(average_image, np.float32)
    if average.size == 3:
        average = average.reshape(3, 1, 1)
    elif average.shape != (3, image_size, image_size):
        raise ValueError(
            f"average image must be (3, {image_size}, {image_size}) or 3 values, not {average.shape}"
        )
    return np.array(np.broadcast_to(average, (3, image_size, image_size)))
