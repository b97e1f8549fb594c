"""The plan that VGG-F and Caffe's AlexNet share: five convolutions and two fully connected layers.

A subclass names what differs: image size, channels, groups and the constants of normalisation.
"""

import torch
from torch.nn.functional import relu

from networks.base.image_network import MEAN_COLOUR, ImageNetwork
from networks.layers.response_normalisation import response_normalisation

KERNELS = (11, 5, 3, 3, 3)
STRIDES = (4, 1, 1, 1, 1)
PADDINGS = (0, 2, 1, 1, 1)
POOL, POOL_STRIDE = 3, 2
# Side of the last pooled map, for images of 224 and of 227 pixels alike; fc6 is a convolution of this size.
LAST_SIDE = 6
SEQUENCE = (
    *("conv1", "relu1", "norm1", "pool1", "conv2", "relu2", "norm2", "pool2"),
    *("conv3", "relu3", "conv4", "relu4", "conv5", "relu5", "pool5", "fc6", "relu6", "fc7", "relu7"),
)


class FiveConvolutions(ImageNetwork):
    """float32 (n, 3, image_size, image_size), RGB 0-255 minus `average_image`, to fc7 after ReLU (n, width).

    channels: outputs of conv1 to conv5; width: outputs of fc6 and of fc7. Less of both than the published
    network has makes a network that only tests use. Weights start from He's normal distribution, biases at 0.
    """

    options = {
        "channels": "outputs of the five convolutions, for a smaller network",
        "width": "outputs of the two fully connected layers, default 4096",
        "average_image": "RGB 0-255 that is subtracted: three values, or (3, size, size)",
    }
    bfloat16_on_cpu = True
    side: int  # of images
    full_channels: tuple[int, ...]
    full_width = 4096
    groups = (1, 1, 1, 1, 1)
    normalisation: tuple[int, float, float, float]  # size, kappa, alpha, beta of `response_normalisation`
    conv1: torch.nn.Conv2d
    conv2: torch.nn.Conv2d
    conv3: torch.nn.Conv2d
    conv4: torch.nn.Conv2d
    conv5: torch.nn.Conv2d

    def __init__(self, channels=None, width=None, average_image=MEAN_COLOUR):
        """average_image: (3, side, side) or one value per channel, RGB 0-255.

        Raises ValueError for channels that are not five positive integers divisible into the groups.
        """
        channels = tuple(channels or self.full_channels)
        width = width or self.full_width
        inputs = (3, *channels[:-1])
        # Both sides of a grouped convolution are divided.
        divided = zip((*channels, *inputs), (*self.groups, *self.groups))
        if len(channels) != 5 or width < 1 or any(n < 1 or n % groups for n, groups in divided):
            raise ValueError(
                f"channels must be five positive numbers divisible into groups {self.groups} and width "
                f"positive, not {channels} and {width}"
            )
        super().__init__(self.side, width, average_image, weight_like_average=True)
        self.channels = channels
        layers = zip(inputs, channels, KERNELS, STRIDES, PADDINGS, self.groups)
        for number, (incoming, outgoing, kernel, stride, padding, groups) in enumerate(layers, start=1):
            layer = torch.nn.Conv2d(incoming, outgoing, kernel, stride, padding, groups=groups)
            self.add_module(f"conv{number}", layer)
        self.fc6 = torch.nn.Linear(channels[-1] * LAST_SIDE**2, width)
        self.fc7 = torch.nn.Linear(width, width)
        for name, values in self.named_parameters():
            if name.endswith("weight"):
                torch.nn.init.kaiming_normal_(values, nonlinearity="relu")
            else:
                torch.nn.init.zeros_(values)
        # MatConvNet pads these pools by one at the bottom and right, where the last window would not fit.
        self.pool = torch.nn.MaxPool2d(POOL, POOL_STRIDE, ceil_mode=True)

    def forward(self, images):
        maps = self.pool(response_normalisation(relu(self.conv1(images)), *self.normalisation))
        maps = self.pool(response_normalisation(relu(self.conv2(maps)), *self.normalisation))
        maps = relu(self.conv4(relu(self.conv3(maps))))
        maps = self.pool(relu(self.conv5(maps)))
        return relu(self.fc7(relu(self.fc6(maps.flatten(1)))))
