"""Depthwise convolutions with TensorFlow's SAME padding, and gradients that are fast in bfloat16 on a CPU.

oneDNN has no fast kernels for two gradients of depthwise convolutions in bfloat16: by the input if the stride
is 2 (some forty times slower than in float32), and by the weights of 5 x 5 kernels or on maps of fewer than
4 x 4 positions (ten to a hundred times slower than of 3 x 3 kernels on larger maps). Both are made here of
convolutions for which it has.
"""

import torch
from torch.nn.functional import conv2d, pad

_LEAST_SIDE = 4  # of a map whose gradient by the weights is fast


def same_padding(side, kernel, stride):
    """(before, after): TensorFlow's SAME padding of an axis of `side` positions."""
    whole = max((-(-side // stride) - 1) * stride + kernel - side, 0)
    return whole // 2, whole - whole // 2


def depthwise(maps, weight, bias, stride):
    """Depthwise convolution with SAME padding: (n, c, h, w) to (n, c, ceil(h / stride), ceil(w / stride)).

    maps: float (n, c, h, w), square; weight: (c, 1, k, k), k odd and at most 5; bias: (c,) or None; all of
    one type; stride: 1 or 2.
    """
    side, kernel = maps.shape[2], weight.shape[2]
    # Taps farther from the centre than a map is wide see padding alone.
    if (unseen := kernel // 2 - (side - 1)) > 0:
        weight = weight[:, :, unseen : kernel - unseen, unseen : kernel - unseen]
        kernel -= 2 * unseen
    learning = torch.is_grad_enabled() and (maps.requires_grad or weight.requires_grad)
    if learning and maps.dtype == torch.bfloat16 and maps.device.type == "cpu":
        return _Depthwise.apply(maps, weight, bias, stride)
    before, after = same_padding(side, kernel, stride)
    if before == after:
        return conv2d(maps, weight, bias, stride, before, groups=len(weight))
    return conv2d(pad(maps, (before, after) * 2), weight, bias, stride, groups=len(weight))


class _Depthwise(torch.autograd.Function):
    """The convolution at stride 1, every second position of which is kept for stride 2."""

    @staticmethod
    def forward(ctx, maps, weight, bias, stride):
        ctx.save_for_backward(maps, weight)
        before, _ = same_padding(maps.shape[2], weight.shape[2], stride)
        # The first position that a stride of 2 keeps.
        ctx.kept = slice(weight.shape[2] // 2 - before, None, stride)
        found = _at_every_position(maps, weight, bias)
        return found if stride == 1 else _channels_last(found[:, :, ctx.kept, ctx.kept])

    @staticmethod
    def backward(ctx, gradient):
        maps, weight = ctx.saved_tensors
        spread = gradient
        if gradient.shape != maps.shape:
            spread = torch.zeros_like(maps)
            spread[:, :, ctx.kept, ctx.kept] = gradient
        spread = _channels_last(spread)
        wanted = ctx.needs_input_grad
        of_maps = _at_every_position(spread, weight.flip(2, 3)) if wanted[0] else None
        of_weight = _by_weight(maps, spread, weight) if wanted[1] else None
        return of_maps, of_weight, gradient.sum((0, 2, 3)) if wanted[2] else None, None


def _at_every_position(maps, weight, bias=None):
    return conv2d(maps, weight, bias, padding=weight.shape[2] // 2, groups=len(weight))


def _by_weight(maps, gradient, weight):
    """The gradient by the weights, (c, 1, k, k), in pieces of 3 x 3; gradient: (n, c, h, w), as maps."""
    kernel, side = weight.shape[2], maps.shape[2]
    if kernel == 1:
        return (maps * gradient).sum((0, 2, 3), dtype=torch.float32).to(weight.dtype)[:, None, None, None]
    # Zeros around the gradient: what a piece sees beyond the maps counts for nothing.
    margin = kernel // 2 - 1
    more = max(0, _LEAST_SIDE - side - 2 * margin)
    side += 2 * margin + more
    around = kernel // 2 + margin - 1
    maps = pad(maps, (around, around + more) * 2) if around + more else maps
    gradient = pad(gradient, (margin, margin + more) * 2) if margin + more else gradient
    found, shape = torch.empty_like(weight), weight[:, :, :3, :3].contiguous()
    for row in range(0, kernel - 2, 2):
        for column in range(0, kernel - 2, 2):
            seen = _channels_last(maps[:, :, row : row + side, column : column + side])
            piece = torch.ops.aten.convolution_backward(
                gradient,
                seen,
                shape,
                None,
                (1, 1),
                (1, 1),
                (1, 1),
                False,
                (0, 0),
                len(weight),
                (False, True, False),
            )[1]
            found[:, :, row : row + 3, column : column + 3] = piece
    return found


def _channels_last(maps):
    return maps.contiguous(memory_format=torch.channels_last)
