"""Class codes whose similarities are those of the classes, at a guaranteed distance (Chen et al. 2025)."""

import numpy as np

from methods.class_codes.mds_centres import guaranteed_distance, mds_centres

_ROUNDS, _STEPS = 30, 3
_RHO, _MU = 0.2, 0.625
_FIRST_MULTIPLIER = 0.1


def class_similarities(logits, classes_of):
    """Similarities of classes, float64 (C, C), symmetric, 1 on the diagonal, of a classifier's logits (n, C)
    of items of the classes `classes_of`, int (n,).

    Row c is the mean, over the items of class c, of the softmax over the other classes; minus its mean and
    over its largest absolute value; the matrix is then averaged with its transpose.
    """
    logits = np.array(logits, np.float64)
    count, own = logits.shape[1], (np.arange(len(logits)), classes_of)
    logits[own] = -np.inf
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    members = np.eye(count)[classes_of]
    rows = members.T @ shares / members.sum(axis=0)[:, None]
    rows -= rows.mean(axis=1, keepdims=True)
    rows /= np.abs(rows).max(axis=1, keepdims=True)
    similarities = (rows + rows.T) / 2
    np.fill_diagonal(similarities, 1.0)
    return similarities


def semantic_centres(similarities, bits, generator, eta=0.5):
    """Codes of classes, int8 (C, bits), whose inner products over bits follow `similarities` (C, C), starting
    at `mds_centres`, whose smallest distance, or d* if that is smaller, they keep."""
    start = mds_centres(len(similarities), bits, generator)
    return improved_centres(start, similarities, eta)


def improved_centres(start, similarities, eta=0.5):
    """The codes after the round, of 30, in which sum (S - H H^T / b)^2 is the least: int8 (C, bits).

    Minimises it, plus mu times the summed inner products of different codes over C^2, by the augmented
    Lagrangian with a real copy M of the codes: M in closed form, then three sign-gradient steps of each code,
    sgn(code - gradient / eta), kept only if all codes stay at the distance; a bit that a step makes exactly 0
    stays. Raises `Refusal` where there are fewer codes than classes.
    """
    codes = np.array(start, np.float64)
    classes, bits = codes.shape
    distances = (bits - codes @ codes.T) / 2
    np.fill_diagonal(distances, bits)
    wanted = min(guaranteed_distance(classes, bits), distances.min())
    multipliers = np.full((classes, bits), _FIRST_MULTIPLIER)
    best, chosen = np.inf, codes
    for _ in range(_ROUNDS):
        matrix = 2 / bits**2 * codes.T @ codes + _RHO * np.eye(bits)
        copy = np.linalg.solve(matrix, (2 / bits * similarities @ codes + multipliers + _RHO * codes).T).T
        curvature = 2 / bits**2 * copy.T @ copy
        pull = multipliers - 2 / bits * similarities @ copy - _RHO * copy
        for _ in range(_STEPS):
            for place in range(classes):
                code = codes[place]
                gradient = curvature @ code + pull[place] + _RHO * code
                gradient = gradient + 2 * _MU / classes**2 * (codes.sum(axis=0) - code)
                moved = code - gradient / eta
                moved = np.where(moved == 0, code, np.sign(moved))
                products = codes @ moved
                products[place] = -bits
                if (bits - products.max()) / 2 >= wanted:
                    codes[place] = moved
        multipliers += _RHO * (codes - copy)
        error = ((similarities - codes @ codes.T / bits) ** 2).sum()
        if error < best:
            best, chosen = error, codes.copy()
    return chosen.astype(np.int8)
