"""Hash heads: what turns features into raw scores, whose signs are the code."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch


class ImageHashing(torch.nn.Module):
    """Images uint8 (n, H, W, 3) to raw scores (n, bits): `backbone`, a network of the package networks, and a
    hash head, `layer`, on its output. width: of the output if it is standardised (see `standardise`), or
    None."""

    backbone: Any
    offset: torch.Tensor | None
    scale: torch.Tensor | None

    def __init__(self, backbone: torch.nn.Module, layer: torch.nn.Module, width: int | None = None):
        super().__init__()
        self.backbone, self.layer = backbone, layer
        self.register_buffer("offset", None if width is None else torch.zeros(width))
        self.register_buffer("scale", None if width is None else torch.ones(()))

    def train(self, mode: bool = True) -> ImageHashing:
        super().train(mode)
        if not any(parameter.requires_grad for parameter in self.backbone.parameters()):
            self.backbone.eval()  # a network that keeps its weights keeps its statistics, too
        return self

    def features(self, images: torch.Tensor) -> torch.Tensor:
        """What the head is given: float (n, width)."""
        found = self.backbone(self.backbone.preprocess(images.permute(0, 3, 1, 2)))
        return found if self.offset is None else (found - self.offset) * self.scale

    def standardise(self, blocks: Iterable[torch.Tensor]) -> None:
        """From now on subtract the mean of the network's outputs for these images, in blocks, and divide by
        one number, so that the outputs for them have variance 1 on average, unless all are alike."""
        assert self.offset is not None and self.scale is not None
        self.offset.zero_()
        self.scale.fill_(1.0)
        found = torch.cat([self.features(images).double() for images in blocks])
        mean = found.mean(dim=0)
        deviation = (found - mean).square().mean().sqrt()
        self.offset.copy_(mean)
        self.scale.fill_(1 / deviation if deviation > 0 else 1.0)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.layer(self.features(images))


def hash_layer(
    width: int, bits: int, deviation: float | None = None, *, bias: bool = True
) -> torch.nn.Linear:
    """A linear layer (n, width) to (n, bits): weights normal with standard deviation `deviation` (None:
    sqrt(2 / width)), biases, if any, 0."""
    layer = torch.nn.Linear(width, bits, bias=bias)
    torch.nn.init.normal_(layer.weight, std=math.sqrt(2 / width) if deviation is None else deviation)
    if bias:
        torch.nn.init.zeros_(layer.bias)
    return layer


def make_head(
    width: int,
    hidden: int,
    hidden_width: int,
    dropout: float,
    batch_norm: bool,
    last: Callable[[int], torch.nn.Module],
) -> torch.nn.Module:
    """`last(width)` alone, or after `hidden` layers of `hidden_width` units: linear, batch normalisation if
    asked for, ReLU, dropout."""
    if not hidden:
        return last(width)
    layers: list[torch.nn.Module] = []
    for _ in range(hidden):
        layers.append(hash_layer(width, hidden_width))
        if batch_norm:
            layers.append(torch.nn.BatchNorm1d(hidden_width))
        layers.append(torch.nn.ReLU())
        if dropout:
            layers.append(torch.nn.Dropout(dropout))
        width = hidden_width
    return torch.nn.Sequential(*layers, last(width))
