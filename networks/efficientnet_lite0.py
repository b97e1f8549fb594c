"""EfficientNet-Lite0 (Tan, Le: EfficientNet, ICML 2019; the variant for mobile devices of the authors' code:
ReLU6, no squeeze-and-excitation), with its batch normalisation, without its classifier."""

import torch
from torch.nn.functional import batch_norm, conv2d, hardtanh, pad

from networks.base.image_network import ImageNetwork
from networks.layers.depthwise import depthwise, same_padding

# (blocks, kernel, stride of the first, expansion, channels) of the groups of blocks.
GROUPS = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
STEM = 32
EPSILON = 1e-3
MOMENTUM = 0.1
BATCH_NORM = ("trained", "frozen")


class EfficientNetLite0(ImageNetwork):
    """float32 (n, 3, image_size, image_size), pixels / 127.5 - 1, to (n, 1280): the mean over the last map.

    batch_norm: "trained": while training, a batch is normalised by its own mean and variance, towards which
    the running ones move by a tenth each time, and scales and shifts are parameters; "frozen": running
    statistics, scales and shifts are constants, in training too. In evaluation mode both normalise by the
    running statistics. Normalisation by constants is folded into the convolution before it.

    Parameters are called as in the published file, `_blocks.0._depthwise_conv.weight` and so on, whose
    classifier `_fc` and counters `num_batches_tracked` are left out.
    """

    options = {
        "image_size": "side of the square that images are resized to, default 224",
        "batch_norm": "trained (default), or frozen: training keeps the values of statistics, scales, shifts",
    }

    interpolation = "bilinear"
    bfloat16_on_cpu = True

    def __init__(self, image_size=224, batch_norm="trained"):
        """Raises ValueError for an image size below 1 and for another `batch_norm`."""
        if image_size < 1:
            raise ValueError(f"image_size must be positive, not {image_size}")
        if batch_norm not in BATCH_NORM:
            raise ValueError(f"batch_norm must be {' or '.join(BATCH_NORM)}, not {batch_norm!r}")
        super().__init__(image_size, 1280, (127.5,) * 3, (1 / 127.5,) * 3)
        frozen = batch_norm == "frozen"
        self._conv_stem, self._bn0 = _convolution(3, STEM, 3, 2), _BatchNorm(STEM, frozen)
        blocks, incoming = [], STEM
        for count, kernel, first_stride, expansion, outgoing in GROUPS:
            for number in range(count):
                stride = first_stride if number == 0 else 1
                blocks.append(_Block(incoming, outgoing, expansion, kernel, stride, frozen))
                incoming = outgoing
        self._blocks = torch.nn.ModuleList(blocks)
        self._conv_head, self._bn1 = _convolution(incoming, self.width, 1), _BatchNorm(self.width, frozen)

    def forward(self, images):
        maps = _relu6(_normalised(images, self._conv_stem, self._bn0))
        for block in self._blocks:
            maps = block(maps)
        return _relu6(_normalised(maps, self._conv_head, self._bn1)).mean(dim=(2, 3))

    def without_classifier(self, weights):
        left_out = ("_fc.weight", "_fc.bias")
        return {
            name: value
            for name, value in weights.items()
            if name not in left_out and not name.endswith(".num_batches_tracked")
        }


class _Block(torch.nn.Module):
    """An inverted residual block: expansion unless it is 1, depthwise convolution, projection."""

    def __init__(self, incoming, outgoing, expansion, kernel, stride, frozen):
        super().__init__()
        hidden = expansion * incoming
        self.expands, self.shortcut = expansion > 1, stride == 1 and incoming == outgoing
        if self.expands:
            self._expand_conv, self._bn0 = _convolution(incoming, hidden, 1), _BatchNorm(hidden, frozen)
        self._depthwise_conv = _convolution(hidden, hidden, kernel, stride, hidden)
        self._bn1 = _BatchNorm(hidden, frozen)
        self._project_conv, self._bn2 = _convolution(hidden, outgoing, 1), _BatchNorm(outgoing, frozen)

    def forward(self, maps):
        inner = maps
        if self.expands:
            inner = _relu6(_normalised(inner, self._expand_conv, self._bn0))
        inner = _relu6(_normalised(inner, self._depthwise_conv, self._bn1))
        inner = _normalised(inner, self._project_conv, self._bn2)
        return maps + inner if self.shortcut else inner


class _BatchNorm(torch.nn.Module):
    """Scale, shift and running statistics of `channels`; frozen: scale and shift are no parameters."""

    weight: torch.Tensor
    bias: torch.Tensor
    running_mean: torch.Tensor
    running_var: torch.Tensor

    def __init__(self, channels, frozen):
        super().__init__()
        self.frozen = frozen
        for name, value in (("weight", torch.ones(channels)), ("bias", torch.zeros(channels))):
            if frozen:
                self.register_buffer(name, value)
            else:
                self.register_parameter(name, torch.nn.Parameter(value))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def by_constants(self):
        """Whether it normalises by the running statistics."""
        return self.frozen or not self.training

    def scale_and_shift(self):
        """What normalisation by the running statistics multiplies by and then adds, (channels,) each."""
        scale = self.weight * torch.rsqrt(self.running_var + EPSILON)
        return scale, self.bias - self.running_mean * scale

    def forward(self, maps):
        """Normalised by the batch's own statistics, which the running ones follow."""
        return batch_norm(
            maps, self.running_mean, self.running_var, self.weight, self.bias, True, MOMENTUM, EPSILON
        )


def _convolution(incoming, outgoing, kernel, stride=1, groups=1):
    layer = torch.nn.Conv2d(incoming, outgoing, kernel, stride, groups=groups, bias=False)
    torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    return layer


def _normalised(maps, layer, norm):
    """A convolution with SAME padding and its batch normalisation."""
    weight, bias = layer.weight, None
    if norm.by_constants():
        scale, bias = norm.scale_and_shift()
        weight = weight * scale[:, None, None, None]
    found = _convolved(maps, weight, bias, layer.stride[0])
    return norm(found) if bias is None else found


def _convolved(maps, weight, bias, stride):
    if torch.is_autocast_enabled(maps.device.type):
        kind = torch.get_autocast_dtype(maps.device.type)
        maps, weight, bias = maps.to(kind), weight.to(kind), None if bias is None else bias.to(kind)
    if weight.shape[1] == 1:
        return depthwise(maps, weight, bias, stride)
    before, after = same_padding(maps.shape[2], weight.shape[2], stride)
    # Most kernels are 1 x 1, and padding by nothing would copy.
    return conv2d(pad(maps, (before, after) * 2) if after else maps, weight, bias, stride)


def _relu6(maps):
    # In place: neither normalisation nor convolutions look at their outputs again.
    return hardtanh(maps, 0.0, 6.0, inplace=True)
