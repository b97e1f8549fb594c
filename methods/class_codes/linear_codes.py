"""Margins from coding theory: how far apart as many codes as there are labels can be."""

import math

# Largest minimum distance of a binary linear code, bits -> for the dimensions 4 to 7 (Grassl, codetables.de).
BEST_DISTANCES = {
    8: (4, 2, 2, 2),
    12: (6, 4, 4, 4),
    16: (8, 8, 6, 6),
    24: (12, 12, 10, 10),
    32: (16, 16, 16, 14),
    36: (18, 17, 16, 16),
    48: (24, 24, 24, 22),
    64: (33, 32, 32, 32),
    128: (68, 64, 64, 64),
}


def linear_code_distance(bits: int, labels: int) -> int:
    """The largest minimum distance of a binary linear code of length `bits` and dimension ceil(log2 labels).

    From `BEST_DISTANCES` where it has both; else the largest d that Griesmer's bound allows, sum over i of
    ceil(d / 2^i) <= bits, which is 1 to 2 above the best code for few lengths.
    """
    dimension = max(1, math.ceil(math.log2(labels))) if labels > 1 else 1
    if bits in BEST_DISTANCES and 4 <= dimension <= 7:
        return BEST_DISTANCES[bits][dimension - 4]
    for distance in range(bits, 0, -1):
        if sum(-(-distance // 2**power) for power in range(dimension)) <= bits:
            return distance
    return 0


def linear_code_cosine(bits: int, labels: int) -> float:
    """zeta = 1 - 2 d / bits: the cosine of two codes of -1 and +1 at distance `linear_code_distance`."""
    return 1 - 2 * linear_code_distance(bits, labels) / bits
