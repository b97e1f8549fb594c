"""The logistic likelihood of pairs of DPSH and HashNet, and losses whose gradient is a published step."""

import torch

_FACTORS = 64  # 2^-64 is far from the end of float32


def negative_log_likelihood(theta, similar):
    """ln(1 + e^theta) - s theta, without overflow: theta and similar (s, 0 or 1) floats of one shape."""
    return -torch.nn.functional.logsigmoid(-theta) - theta * similar


def likelihood_and_slope(theta, similar):
    """Sum of `negative_log_likelihood`, a scalar, and its derivatives by theta; similar bool, both (n, m).

    ln(1 + e^t) = max(t, 0) - ln max(sigmoid(t), 1 - sigmoid(t)), of which last a product takes one logarithm
    for many: each factor is 1/2 or more.
    """
    slope = theta.sigmoid()
    factors = torch.maximum(slope, 1 - slope)
    blocks = factors.shape[1] // _FACTORS
    logarithms = factors[:, blocks * _FACTORS :].prod(1).log_().sum()
    factors = factors[:, : blocks * _FACTORS].unflatten(1, (blocks, _FACTORS))
    logarithms += factors.prod(2).log_().sum()
    similar = similar.to(theta.dtype)
    value = theta.clamp(min=0).sum() - logarithms - (theta * similar).sum()
    return value, slope.sub_(similar)


def with_gradient(value, outputs, gradient):
    """`value`, a scalar, with `gradient` as its gradient by `outputs`, whatever it was made of."""
    return value.detach() + ((outputs - outputs.detach()) * gradient).sum()
