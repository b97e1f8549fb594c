"""A small convolutional network for 32 x 32 images: for tests, and for training end to end on a CPU."""

import torch

from networks.base.image_network import ImageNetwork

CHANNELS = (32, 64)
GROUPS = 8


class Small(ImageNetwork):
    """float32 (n, 3, 32, 32), pixels / 127.5 - 1, to float32 (n, width), at least 0.

    Three blocks of a 3 x 3 convolution, normalisation over groups of channels and ReLU, with 2 x 2 maxima
    between them, then the mean over the map. Groups, not batches, so that an image's vector depends on
    nothing but the image. Weights start from He's normal distribution.
    """

    options = {"width": "values per image, a multiple of 8, default 128"}

    def __init__(self, width=128):
        """Raises ValueError for a width that is not a positive multiple of 8."""
        if width < 1 or width % GROUPS:
            raise ValueError(f"width must be a positive multiple of {GROUPS}, not {width}")
        super().__init__(32, width, (127.5,) * 3, (1 / 127.5,) * 3)
        layers = []
        for incoming, outgoing in zip((3, *CHANNELS), (*CHANNELS, width)):
            convolution = torch.nn.Conv2d(incoming, outgoing, 3, padding=1, bias=False)
            torch.nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
            layers += [convolution, torch.nn.GroupNorm(GROUPS, outgoing), torch.nn.ReLU()]
            layers += [torch.nn.MaxPool2d(2)]
        self.blocks = torch.nn.Sequential(*layers[:-1])

    def forward(self, images):
        return self.blocks(images).mean(dim=(2, 3))
