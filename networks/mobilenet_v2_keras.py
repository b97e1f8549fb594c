"""MobileNetV2 of Sandler et al. (CVPR 2018, arXiv:1801.04381) as Keras builds it, batch normalisation folded
into the convolutions, without its classifier."""

import torch
from torch.nn.functional import hardtanh, pad

from networks.base.image_network import ImageNetwork

# (channels, blocks, stride of the first) of the groups of blocks after the first, all expanding sixfold.
GROUPS = ((24, 2, 2), (32, 3, 2), (64, 4, 2), (96, 3, 1), (160, 3, 2), (320, 1, 1))
EXPANSION = 6


class MobileNetV2Keras(ImageNetwork):
    """float32 (n, 3, image_size, image_size), pixels / 127.5 - 1, to float32 (n, 1280): the mean over the
    last map. Images are resized bilinearly without antialiasing.

    Parameters are called as Keras calls the layers: `Conv1.weight`, `block_1_expand.bias` and so on.
    """

    options = {"image_size": "side of the square that images are resized to, a multiple of 32, default 128"}

    interpolation = "bilinear"
    antialias = False

    def __init__(self, image_size=128):
        """Raises ValueError for an image size that is not a positive multiple of 32: elsewhere Keras pads
        differently."""
        if image_size < 1 or image_size % 32:
            raise ValueError(f"image_size must be a positive multiple of 32, not {image_size}")
        super().__init__(image_size, 1280, (127.5,) * 3, (1 / 127.5,) * 3)
        self._convolution("Conv1", 3, 32, 3, stride=2)
        self._convolution("expanded_conv_depthwise", 32, 32, 3, groups=32)
        self._convolution("expanded_conv_project", 32, 16, 1)
        self._blocks: list[tuple[str, bool]] = []
        incoming = 16
        for outgoing, blocks, first_stride in GROUPS:
            for block in range(blocks):
                name, hidden = f"block_{len(self._blocks) + 1}", EXPANSION * incoming
                stride = first_stride if block == 0 else 1
                self._convolution(f"{name}_expand", incoming, hidden, 1)
                self._convolution(f"{name}_depthwise", hidden, hidden, 3, stride, groups=hidden)
                self._convolution(f"{name}_project", hidden, outgoing, 1)
                self._blocks.append((name, block > 0))
                incoming = outgoing
        self._convolution("Conv_1", incoming, self.width, 1)

    def forward(self, images):
        maps = self._relu6("Conv1", images)
        maps = self._convolved("expanded_conv_project", self._relu6("expanded_conv_depthwise", maps))
        for name, shortcut in self._blocks:
            inner = self._relu6(f"{name}_depthwise", self._relu6(f"{name}_expand", maps))
            inner = self._convolved(f"{name}_project", inner)
            maps = maps + inner if shortcut else inner
        return self._relu6("Conv_1", maps).mean(dim=(2, 3))

    def _convolution(self, name, incoming, outgoing, kernel, stride=1, groups=1):
        layer = torch.nn.Conv2d(
            incoming, outgoing, kernel, stride, kernel // 2 if stride == 1 else 0, groups=groups
        )
        torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        assert layer.bias is not None  # unless bias=False
        torch.nn.init.zeros_(layer.bias)
        self.add_module(name, layer)

    def _convolved(self, name, maps):
        layer = getattr(self, name)
        # Of an even side, Keras pads strided convolutions at the bottom and right only.
        return layer(pad(maps, (0, 1, 0, 1)) if layer.stride[0] == 2 else maps)

    def _relu6(self, name, maps):
        return hardtanh(self._convolved(name, maps), 0.0, 6.0)
