"""Codes to packed bytes, and packed bytes checked."""

from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tiebench.values import as_array, form, hint_of_packed, integer

MAX_CODE_BITS = 1024


def pack(codes: ArrayLike, name: str = "codes") -> NDArray[np.uint8]:
    """Pack codes to bytes as `numpy.packbits(bits, axis=1)` does.

    codes: (n, b) bool, or numbers all in {0, 1}, or all in {-1, +1}; bit 1 stands for +1. name: what messages
    call them. Returns uint8 (n, ceil(b / 8)). Raises ValueError for anything else.
    """
    given = as_array(codes, name)
    if given.ndim != 2:
        raise ValueError(f"{name} must be a matrix (n, bits), not an array of shape {given.shape}")
    ones = given
    if given.dtype != bool:
        if given.dtype.kind not in "iuf":
            raise ValueError(f"{name} must hold numbers, not {given.dtype}")
        ones = given == 1
        if not (np.all(ones | (given == 0)) or np.all(ones | (given == -1))):
            refuse_unpacked(given, name)
    return np.packbits(ones, axis=1)


def refuse_unpacked(codes: Any, name: str) -> NoReturn:
    """Raise the ValueError of codes, an array or a tensor, that are neither {0, 1} nor {-1, +1}."""
    kind = str(codes.dtype).removeprefix("torch.")
    hint = f"; of real-valued outputs, score the signs: {name} > 0"
    if not kind.startswith(("float", "bfloat")):
        hint = "; packed codes are uint8 and need `bits`, the number of bits of a code"
    elif bool((codes != codes).any()):
        hint = "; there is a NaN, which has no sign"
    raise ValueError(
        f"unpacked {name} must all be in {{0, 1}} or all in {{-1, +1}}, not {kind} of others{hint}"
    )


def check_bits(bits: Any) -> int:
    """The number of bits of a code, 1 to 1024. Raises ValueError for all else."""
    return integer(bits, "bits", 1, MAX_CODE_BITS)


def check_packed(codes: ArrayLike, bits: int, name: str = "codes") -> NDArray[np.uint8]:
    """Check packed codes: uint8 (n, ceil(bits / 8)), padding bits zero, 1 <= bits <= 1024.

    Returns them C-contiguous. Raises ValueError that names the fault and `name`.
    """
    codes, bits = as_array(codes, name), check_bits(bits)
    width = -(-bits // 8)
    if codes.dtype != np.uint8 or codes.ndim != 2 or codes.shape[1] != width:
        raise ValueError(
            f"{name} of {bits} bits must be uint8 of shape (n, {width}), not {form(codes)}"
            f"{hint_of_packed(codes, bits)}"
        )
    if len(codes) == 0:
        raise ValueError(f"{name} holds no codes")
    if bits % 8 and np.any(codes[:, -1] & (0xFF >> (bits % 8))):
        raise ValueError(f"{name} has bits set beyond bit {bits}: is `bits` right?")
    return np.ascontiguousarray(codes)


def as_words(packed: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Packed codes (n, bytes) as words uint64 (n, W), padded with zeros."""
    packed = as_array(packed, "codes")
    words = np.zeros((len(packed), -(-packed.shape[1] // 8) * 8), np.uint8)
    words[:, : packed.shape[1]] = packed
    return words.view(np.uint64)
