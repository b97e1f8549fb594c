"""When codes count as collapsed, and what the rule needs: distinct codes and entropies.

Apart from `tiebench.diagnostics`, which needs the kernels: a training looks at its codes every epoch.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tiebench.codes.packing import as_words
from tiebench.values import as_array, integers, numbers

_ITEMS_AT_ONCE = 1 << 16  # whose codes are compared at once
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio: spreads neighbouring words


def collapse_reason(
    bits: int,
    constant_bits: int,
    distinct_codes: int,
    code_entropy: float,
    class_counts: ArrayLike | None = None,
    unused_bits: int = 0,
) -> str:
    """Why codes count as collapsed, in words.

    Codes are collapsed if any of these holds, C being the number of classes:

    * more than (1 + 2^(1 - C)) / 2 of the bits in use are constant: half of those that vary if each class
      has a random code (a bit is the same for C random codes with probability 2^(1 - C)), without classes
      half of all;
    * there are fewer distinct codes than classes, or than 2^bits where that is less;
    * the entropy of the codes is below half of that of the classes: nearly all items share a few codes.

    Parameters
    ----------
    bits, constant_bits, distinct_codes : int
        As of `diagnostics.Health`.
    code_entropy : float
        Likewise, in bits.
    class_counts : int (C,), optional
        Items of each class, or with each label, of which zeros do not count; None if there are no classes.
    unused_bits : int
        Bits that the method leaves constant by design, as one-hot codes leave those beyond the number of
        classes.

    Returns
    -------
    str
        "" if they do not.
    """
    counts = np.zeros(0, np.int64) if class_counts is None else integers(class_counts, "class_counts")
    counts = counts[counts > 0]
    classes = len(counts)
    used, constant = bits - unused_bits, constant_bits - unused_bits
    by_chance = 2.0 ** (1 - classes) if classes else 0.0
    reasons = []
    if used > 0 and constant > used * (1 + by_chance) / 2:
        reasons.append(f"{constant} of {used} bits are constant")
    if distinct_codes < min(classes, 2 ** int(bits)):
        reasons.append(f"{distinct_codes} distinct code{'s' * (distinct_codes != 1)} of {classes} classes")
    elif classes and code_entropy < entropy(counts) / 2:
        reasons.append(f"codes of {code_entropy:.2f} bits of entropy, classes of {entropy(counts):.2f}")
    return ", ".join(reasons)


def entropy(counts: ArrayLike) -> float:
    """Entropy of a distribution that is given as counts.

    Parameters
    ----------
    counts : int (n,)
        None of them negative.

    Returns
    -------
    float
        In bits; 0.0 of none.
    """
    counts = numbers(counts, "counts")
    counts = counts[counts > 0]
    total = counts.sum()
    return float((counts / total * np.log2(total / counts)).sum()) if len(counts) else 0.0


def varying_bits(codes: np.ndarray) -> int:
    """How many bits are not the same in all codes.

    Parameters
    ----------
    codes : uint8 (n, width)
        Packed, n >= 1.

    Returns
    -------
    int
    """
    codes = as_array(codes, "codes")
    differs = np.bitwise_or.reduce(codes, axis=0) & ~np.bitwise_and.reduce(codes, axis=0)
    return int(np.bitwise_count(differs).sum())


def code_counts(codes: np.ndarray) -> NDArray[np.int64]:
    """How many items have each distinct code.

    Sorts keys of 64 bits; longer codes are hashed to these, and items with the same hash are compared, so the
    counts are exact.

    Parameters
    ----------
    codes : uint8 (n, width)
        Packed, n >= 1.

    Returns
    -------
    int64 (distinct codes,)
        In no particular order.
    """
    keys = as_words(codes)
    if keys.shape[1] == 1:
        keys = keys[:, 0]
        keys.sort()
        return _run_lengths(keys[1:] != keys[:-1])
    hashed = np.zeros(len(keys), np.uint64)
    for word in keys.T:
        hashed = (hashed ^ word) * _ODD
        hashed ^= hashed >> np.uint64(29)
    order = np.argsort(hashed)
    changes = np.diff(hashed[order]) != 0
    for begin in range(0, len(changes), _ITEMS_AT_ONCE):
        rows = keys[order[begin : begin + _ITEMS_AT_ONCE + 1]]
        if np.any(np.any(rows[1:] != rows[:-1], axis=1) != changes[begin : begin + _ITEMS_AT_ONCE]):
            return np.unique(keys, axis=0, return_counts=True)[1]  # different codes of one hash
    return _run_lengths(changes)


def _run_lengths(changes):
    """Lengths of runs of equal values, from whether each value but the first differs from the one before."""
    ends = np.append(np.flatnonzero(changes), len(changes))
    return np.diff(ends, prepend=-1)
