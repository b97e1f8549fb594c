"""The pairwise logistic likelihood of DPSH and HashNet, and losses whose gradient is a published step."""

import torch


def negative_log_likelihood(theta, similar):
    """ln(1 + e^theta) - s theta, without overflow: theta and similar (s, 0 or 1) floats of one shape."""
    return -torch.nn.functional.logsigmoid(-theta) - theta * similar


def with_gradient(value, outputs, gradient):
    """`value`, a scalar, with `gradient` as its gradient by `outputs`, whatever it was made of."""
    return value.detach() + ((outputs - outputs.detach()) * gradient).sum()
