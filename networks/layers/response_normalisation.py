"""Local response normalisation over channels, as AlexNet and VGG-F have it: on a CPU one pass over the maps.

`torch.nn.LocalResponseNorm` is made of an average pooling in three dimensions and of powers, and took more
than a third of a training step of VGG-F on a CPU.
"""

import math

import numpy as np
import torch
from torch.nn.functional import local_response_norm

from tiebench._compiled import NUMBA, compiled

# Of the kernels, whose loops are written out for it, and twice (a call for each row takes longer than a row):
# the published networks have no other.
_SIZE, _EXPONENT = 5, 0.75


def response_normalisation(maps, size, kappa, alpha, beta):
    """x / (kappa + alpha * S) ** beta, S the sum of the squares of `size` channels centred on that of x.

    maps: float (n, c, h, w); size: odd. Shorter types than float32, which cannot hold squares of responses,
    are computed and returned in float32.
    """
    if maps.dtype not in (torch.float32, torch.float64):
        maps = maps.float()
    written_out = (size, beta, maps.device.type, maps.dtype) == (_SIZE, _EXPONENT, "cpu", torch.float32)
    if NUMBA and written_out:
        return _OnePass.apply(maps, kappa, alpha)
    return local_response_norm(maps, size, size * alpha, beta, kappa)  # which divides S by the size


class _OnePass(torch.autograd.Function):
    @staticmethod
    def forward(ctx, maps, kappa, alpha):
        ctx.constants = np.float32(kappa), np.float32(alpha)
        ctx.save_for_backward(maps)
        return _by_row(_normalise, (maps,), ctx.constants)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        (maps,) = ctx.saved_tensors
        return _by_row(_differentiate, (maps, gradient), ctx.constants), None, None


def _by_row(kernel, inputs, constants):
    """Call a kernel with arrays (n h w, c) of tensors (n, c, h, w); returns the tensor that it fills."""
    inputs = [values.contiguous(memory_format=torch.channels_last) for values in inputs]
    found = torch.empty_like(inputs[0])
    channels = found.shape[1]
    rows = [values.permute(0, 2, 3, 1).reshape(-1, channels).numpy() for values in (*inputs, found)]
    kernel(*rows, *constants)
    return found


@compiled("void(f4[:, ::1], f4[:, ::1], f4, f4)", nogil=True, error_model="numpy")
def _normalise(maps, found, kappa, alpha):
    """found = x D^-3/4, with D = kappa + alpha S."""
    channels = maps.shape[1]
    squares = np.zeros(channels + 4, np.float32)
    for row in range(len(maps)):
        for c in range(channels):
            squares[c + 2] = maps[row, c] * maps[row, c]
        for c in range(channels):
            near = squares[c] + squares[c + 1] + squares[c + 2] + squares[c + 3] + squares[c + 4]
            base = kappa + alpha * near
            found[row, c] = maps[row, c] / math.sqrt(base * math.sqrt(base))


@compiled("void(f4[:, ::1], f4[:, ::1], f4[:, ::1], f4, f4)", nogil=True, error_model="numpy")
def _differentiate(maps, gradient, found, kappa, alpha):
    """found = g D^-3/4 - 3/2 alpha x T, T being the sum of g x D^-7/4 over the channels near, and g the
    gradient by what `_normalise` found."""
    channels = maps.shape[1]
    squares = np.zeros(channels + 4, np.float32)
    products = np.zeros(channels + 4, np.float32)
    slope = np.float32(1.5) * alpha
    for row in range(len(maps)):
        for c in range(channels):
            squares[c + 2] = maps[row, c] * maps[row, c]
        for c in range(channels):
            near = squares[c] + squares[c + 1] + squares[c + 2] + squares[c + 3] + squares[c + 4]
            base = kappa + alpha * near
            scaled = gradient[row, c] / math.sqrt(base * math.sqrt(base))
            found[row, c] = scaled
            products[c + 2] = scaled * maps[row, c] / base
        for c in range(channels):
            near = products[c] + products[c + 1] + products[c + 2] + products[c + 3] + products[c + 4]
            found[row, c] -= slope * maps[row, c] * near
