"""Sums of the discounts of DCG continued to real numbers of items, tabled, for both paths of `relaxed`."""

import math

import numpy as np

DISCOUNT_KNOTS = 16  # per unit, of the interpolated discount sum


def discount_sum_table(most: int) -> np.ndarray:
    """Sums of the discounts of DCG continued to real numbers of items, for cubic Hermite interpolation.

    L(x) is the sum of 1/log2(t + 1) over t = 1..x. Proposition 2 of He et al., CVPR 2018, replaces the sum by
    ln 2 (li(C_d + 1) - li(C_{d-1} + 1)), which is infinite for the first occupied bin. Here the sum itself is
    continued (Euler-Maclaurin from x + 100 on, and the recurrence L(x) = L(x + 1) - 1/log2(x + 2) below), so
    that it is finite everywhere and exact at integers.

    Parameters
    ----------
    most : int
        The largest x.

    Returns
    -------
    float64 (2, 16 most + 2)
        Values and slopes of L at x = 0, 1/16, ...
    """
    # Here, because every deep method imports this file, and only losses of DCG call this.
    from scipy.special import expi

    x = np.arange(DISCOUNT_KNOTS * most + 2, dtype=np.float64) / DISCOUNT_KNOTS
    shift = 100  # far enough out for the first correction to be exact to 1e-10
    ln2 = math.log(2)

    def continued(y):  # up to a constant: the midpoint rule with its first correction
        middle = y + 1.5
        log = np.log(middle)
        return ln2 * expi(log) + ln2 / (24 * middle * log**2)

    def continued_slope(y):
        middle = y + 1.5
        log = np.log(middle)
        return ln2 / log - ln2 * (log + 2) / (24 * middle**2 * log**3)

    value, slope = continued(x + shift), continued_slope(x + shift)
    constant = continued(np.array([float(shift)]))[0]
    for step in range(1, shift + 1):
        argument = x + step + 1
        value = value - ln2 / np.log(argument)
        slope = slope + ln2 / (argument * np.log(argument) ** 2)
        constant -= ln2 / math.log(step + 1)
    return np.stack([value - constant, slope])
