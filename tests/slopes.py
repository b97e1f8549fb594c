"""Central differences, the oracle of gradients."""

import numpy as np


def central_differences(function, where, step=1e-6):
    """The gradient of a function of an array, float64, at an array."""
    gradient = np.empty_like(where)
    for place in np.ndindex(where.shape):
        ends = []
        for sign in (1, -1):
            moved = where.copy()
            moved[place] += sign * step
            ends.append(function(moved))
        gradient[place] = (ends[0] - ends[1]) / (2 * step)
    return gradient
