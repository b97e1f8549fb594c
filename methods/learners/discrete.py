"""Discrete cyclic coordinate descent on binary codes."""

import numpy as np


def descend(codes, targets, classifier, sweeps):
    """Discrete cyclic coordinate descent on B in place: b_k = sgn(q_k - B_-k W_-k w_k'), at most `sweeps`
    times over the bits, until nothing changes (Shen et al. 2015).

    codes: B float64 (n, bits); targets: Q (n, bits); classifier: W (bits, C). Where the argument is zero the
    bit stays as it is, so that |B W|^2 - 2 tr(B'Q) never rises.
    """
    between = classifier @ classifier.T
    np.fill_diagonal(between, 0)
    for _ in range(sweeps):
        changed = False
        for bit in range(codes.shape[1]):
            wanted = targets[:, bit] - codes @ between[:, bit]
            new = np.where(wanted == 0, codes[:, bit], np.where(wanted > 0, 1.0, -1.0))
            changed |= bool((new != codes[:, bit]).any())
            codes[:, bit] = new
        if not changed:
            break
