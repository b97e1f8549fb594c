"""Joint histograms of codes on a GPU: distances by matrix products, counted on the same device.

For +-1 codes of b bits the Hamming distance is (b - <u, v>) / 2. All partial sums of <u, v> are integers of
at most b in magnitude, so the product is exact in any type that holds the integers up to b, in whatever order
its terms are added. Counts are integers, so their order does not matter either: the result equals
`tiebench.counting.histograms.joint_histograms` on the same codes.
"""

from __future__ import annotations

import numpy as np
import torch

from tiebench.affinities import EqualLabels, SharedLabels
from tiebench.codes.inputs import are_packed
from tiebench.codes.packing import check_bits, refuse_unpacked
from tiebench.counting.histograms import JointHistograms
from tiebench.values import form, hint_of_packed, integer

# Up to where a type holds all integers: 2 to the power of its significand's bits.
EXACT_UP_TO = {torch.bfloat16: 2**8, torch.float16: 2**11, torch.float32: 2**24}
_QUERIES_AT_LEAST = 64  # in a block of many pairs, so that its products are matrix products


def joint_histograms(
    query: torch.Tensor,
    database: torch.Tensor,
    bits: int,
    affinity: EqualLabels | SharedLabels,
    pairs_at_once: int = 1 << 24,
    precision: torch.dtype | None = None,
) -> JointHistograms:
    """Joint histograms of Hamming distance and affinity of codes on one device, block by block.

    Parameters
    ----------
    query, database : tensors
        On one device; each packed, uint8 (n, ceil(b/8)) as `packing.pack` makes them, or codes in {-1, +1}
        (n, b), float or signed integer.
    bits : int
        b, 1 to 1024.
    affinity : `EqualLabels` or `SharedLabels`
        Its arrays are moved to the device.
    pairs_at_once : int
        Pairs of a block, some 20 bytes of device memory each.
    precision : `torch.dtype`, optional
        Type of the products, one of `EXACT_UP_TO` that is exact for b; by default float16 on a GPU, float32
        elsewhere.

    Returns
    -------
    `JointHistograms`
        With NumPy arrays.

    Raises
    ------
    ValueError
        One line, for codes and labels that do not fit, and for any other affinity or precision.
    """
    bits, query, database = check_bits(bits), query.detach(), database.detach()
    if not isinstance(affinity, (EqualLabels, SharedLabels)):
        raise ValueError(f"affinity must be EqualLabels or SharedLabels, not {type(affinity).__name__}")
    pairs_at_once = integer(pairs_at_once, "pairs_at_once", 1)
    if query.device != database.device:
        raise ValueError(
            f"query codes are on {query.device} and database codes on {database.device}: one device is needed"
        )
    device = database.device
    if precision is None:
        precision = torch.float16 if device.type == "cuda" else torch.float32
    if bits > EXACT_UP_TO.get(precision, 0):
        exact = [str(kind) for kind, most in EXACT_UP_TO.items() if bits <= most]
        raise ValueError(f"distances of {bits} bits are exact in {', '.join(exact)}, not in {precision}")
    for name, codes in (("query", query), ("database", database)):
        _check(codes, bits, f"{name} codes")
        labels = getattr(affinity, name)
        if len(labels) != len(codes):
            raise ValueError(f"there are {len(codes)} {name} codes but {len(labels)} {name} labels")
    levels = affinity.levels
    slots = len(levels) * (bits + 1)  # of a query's histogram
    queries, items = len(query), len(database)
    counts = torch.zeros(queries * slots, dtype=torch.int64, device=device)
    rows = max(1, min(queries, max(pairs_at_once // items, _QUERIES_AT_LEAST), pairs_at_once))
    rows = max(1, min(rows, (2**31 - 1) // slots))  # places within a block are 32-bit integers
    columns = max(1, min(items, pairs_at_once // rows))
    level_of = _level_indices(affinity, len(levels) - 1, device)
    query_signs = _signs(query, bits, precision)
    first_slots = torch.arange(rows, dtype=torch.int32, device=device)[:, None] * slots
    with torch.autocast(device.type, enabled=False):  # whose 16 bits are not exact up to as many
        for begin in range(0, items, columns):
            end = min(begin + columns, items)
            signs = _signs(database[begin:end], bits, precision).t()
            for low in range(0, queries, rows):
                high = min(low + rows, queries)
                place = (query_signs[low:high] @ signs).to(torch.int32)
                place.neg_().add_(bits).bitwise_right_shift_(1)
                place.add_(level_of(low, high, begin, end), alpha=bits + 1)
                place.add_(first_slots[: high - low])
                found = torch.bincount(place.flatten(), minlength=(high - low) * slots)
                counts[low * slots : high * slots] += found
    return JointHistograms(levels, counts.view(queries, len(levels), bits + 1).cpu().numpy())


def packed_codes(
    query: torch.Tensor, database: torch.Tensor, bits: int | None = None
) -> tuple[torch.Tensor, torch.Tensor, int]:
    """As `tiebench.codes.inputs.packed_codes`, of tensors, on their device.

    Parameters
    ----------
    query, database : tensors (Q, width) and (N, width)
    bits : int, optional
        b; by default the width.

    Returns
    -------
    (uint8 (Q, ceil(b / 8)), uint8 (N, ceil(b / 8)), int)
        Tensors, and b.

    Raises
    ------
    ValueError
        One line, for codes of other forms.
    """
    query, database = comparable(query), comparable(database)
    packed, bits = are_packed(query, database, bits)
    if packed:
        return query, database, bits
    return pack(_bits_of(query, "query")), pack(_bits_of(database, "database")), bits


def comparable(codes: torch.Tensor) -> torch.Tensor:
    """Codes of a type that torch compares.

    Parameters
    ----------
    codes : tensor

    Returns
    -------
    tensor
        Unsigned integers of more than a byte as float64, all else as it is.
    """
    return codes.double() if codes.dtype in (torch.uint16, torch.uint32, torch.uint64) else codes


def _bits_of(codes, name):
    """Codes that are bool, or all in {0, 1} or all in {-1, +1}, as bool. Raises ValueError for others."""
    if codes.dtype == torch.bool:
        return codes
    ones = codes == 1
    if not bool((ones | (codes == 0)).all()) and not bool((ones | (codes == -1)).all()):
        refuse_unpacked(codes, name)
    return ones


def pack(ones: torch.Tensor) -> torch.Tensor:
    """Pack bits on their device, as `numpy.packbits(ones, axis=1)` does.

    Parameters
    ----------
    ones : bool tensor (n, b)

    Returns
    -------
    uint8 tensor (n, ceil(b / 8))

    Raises
    ------
    ValueError
        One line, for another type or shape.
    """
    if ones.dtype != torch.bool or ones.ndim != 2:
        raise ValueError(f"what is packed must be bool (n, bits), not {form(ones)}")
    padded = torch.nn.functional.pad(ones, (0, -ones.shape[1] % 8))
    weights = torch.tensor([128, 64, 32, 16, 8, 4, 2, 1], dtype=torch.uint8, device=ones.device)
    # A byte's bits add up to at most 255; on devices sums of uint8 are made in the type that is asked for.
    return (padded.view(len(ones), padded.shape[1] // 8, 8) * weights).sum(dim=2, dtype=torch.uint8)


def _check(codes, bits, name):
    """Raises ValueError unless `codes` are packed, or in {-1, +1}."""
    packed = codes.dtype == torch.uint8
    width = -(-bits // 8) if packed else bits
    if codes.dtype == torch.bool or codes.is_complex() or codes.ndim != 2 or codes.shape[1] != width:
        raise ValueError(
            f"{name} of {bits} bits must be packed uint8 (n, {-(-bits // 8)}) or +-1 (n, {bits}), "
            f"not {form(codes)}{hint_of_packed(codes, bits)}"
        )
    if len(codes) == 0:
        raise ValueError(f"{name} holds no codes")
    if packed:
        if bits % 8 and bool((codes[:, -1] & (0xFF >> (bits % 8))).any()):
            raise ValueError(f"{name} has bits set beyond bit {bits}: is `bits` right?")
    elif not bool((codes.abs() == 1).all()):
        raise ValueError(f"unpacked {name} must all be in {{-1, +1}}")


def _signs(codes, bits, precision):
    """Codes as -1 and +1, (n, b) of type `precision`."""
    if codes.dtype != torch.uint8:
        return codes.to(precision)
    shifts = torch.arange(7, -1, -1, dtype=torch.uint8, device=codes.device)
    ones = (codes[:, :, None] >> shifts) & 1
    return ones.flatten(1)[:, :bits].to(precision).mul_(2).sub_(1)


def _level_indices(affinity, highest, device):
    """Function of a block's corners (low, high, begin, end) to its level indices: int32 or bool."""
    # Classes may be unsigned, which torch compares on few devices.
    kind = np.int64 if isinstance(affinity, EqualLabels) else np.uint8
    query, database = (
        torch.from_numpy(part.astype(kind)).to(device) for part in (affinity.query, affinity.database)
    )
    if isinstance(affinity, EqualLabels):
        return lambda low, high, begin, end: query[low:high, None] == database[begin:end]
    labels = query.shape[1]
    wide = device.type != "cuda" or labels > EXACT_UP_TO[torch.float16]
    counting = torch.float32 if wide else torch.float16
    query = query.to(counting)

    def shared(low, high, begin, end):
        common = query[low:high] @ database[begin:end].to(counting).t()
        return common.clamp_(max=highest).to(torch.int32)

    return shared
