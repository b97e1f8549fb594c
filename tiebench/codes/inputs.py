"""Codes and labels in any accepted form, from arrays or tensors, to packed codes and an affinity."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tiebench.affinities import EqualLabels, SharedLabels, check_levels
from tiebench.codes.packing import check_bits, check_packed, pack
from tiebench.values import as_array, check_form, form, hint_of_packed, labels


def packed_codes(
    query: np.ndarray, database: np.ndarray, bits: int | None = None
) -> tuple[np.ndarray, np.ndarray, int]:
    """Query and database codes, packed, and their number of bits b.

    Parameters
    ----------
    query, database : arrays (Q, width) and (N, width)
        With `bits`, uint8 of width ceil(bits / 8) is packed as by `numpy.packbits(codes, axis=1)`; all else
        is unpacked, width b: bool, or numbers all in {0, 1} or all in {-1, +1}.
    bits : int, optional
        b, 1 to 1024; by default the width.

    Returns
    -------
    (uint8 (Q, ceil(b / 8)), uint8 (N, ceil(b / 8)), int)

    Raises
    ------
    ValueError
        One line, for anything else.
    """
    query, database = as_array(query, "query"), as_array(database, "database")
    packed, bits = are_packed(query, database, bits)
    made = [
        check_packed(codes if packed else pack(codes, name), bits, name)
        for name, codes in (("query", query), ("database", database))
    ]
    return made[0], made[1], bits


def are_packed(query: Any, database: Any, bits: int | None) -> tuple[bool, int]:
    """Whether codes are given packed, and their number of bits.

    Parameters
    ----------
    query, database : arrays or tensors (Q, width) and (N, width)
    bits : int, optional
        As of `packed_codes`.

    Returns
    -------
    (bool, int)

    Raises
    ------
    ValueError
        One line, for a width and a type that are neither.
    """
    width = query.shape[1]
    both = (("query", query), ("database", database))
    if bits is None:
        for name, codes in both:
            if _is_uint8(codes) and bool((codes > 1).any()):
                raise ValueError(
                    f"{name} holds bytes above 1: if the codes are packed, give `bits`, their number of bits"
                )
        return False, width
    bits = check_bits(bits)
    packed = _is_uint8(query) and width == -(-bits // 8)
    if packed and bits == 1:  # one column either way: packed codes are 0 and 128
        packed = not (bool((query == 1).any()) or bool((database == 1).any()))
    for name, codes in both:
        if (packed and not _is_uint8(codes)) or (not packed and width != bits):
            raise ValueError(
                f"{name} codes of {bits} bits must be (n, {bits}), or packed uint8 (n, {-(-bits // 8)}), not "
                f"{form(codes)}{hint_of_packed(codes, bits)}"
            )
    return packed, bits


def _is_uint8(codes):
    return str(codes.dtype).removeprefix("torch.") == "uint8"


def label_affinity(query: ArrayLike, database: ArrayLike) -> EqualLabels | SharedLabels:
    """Affinity of labels: class equality, or the number of shared labels.

    Parameters
    ----------
    query, database : integers or strings (Q,) and (N,), or 0/1 (Q, labels) and (N, labels)
        Both of one form.

    Returns
    -------
    `EqualLabels` or `SharedLabels`

    Raises
    ------
    ValueError
        One line, for labels of other shapes, kinds or values.
    """
    one, two = labels(query, "query_labels"), labels(database, "database_labels")
    if one.ndim != two.ndim:
        raise ValueError(
            f"query_labels of shape {one.shape} and database_labels of shape {two.shape} must both be "
            "classes (n,), or both 0/1 (n, labels)"
        )
    affinity = (EqualLabels if one.ndim == 1 else SharedLabels)(one, two)
    check_levels(affinity.levels)
    return affinity


def check_shapes(query: Any, database: Any, query_labels: Any = None, database_labels: Any = None) -> None:
    """Check that codes are matrices of one width, none empty, with a label (row) each.

    Parameters
    ----------
    query, database : arrays or tensors
        Codes.
    query_labels, database_labels : arrays or tensors, or None
        None where there are no labels.

    Raises
    ------
    ValueError
        One line, for all else.
    """
    if query.ndim != 2 or database.ndim != 2 or query.shape[1] != database.shape[1]:
        widths = sorted(codes.shape[-1] for codes in (query, database) if codes.ndim == 2)
        hint = ": is one of them packed?" if len(widths) == 2 and widths[0] == -(-widths[1] // 8) else ""
        raise ValueError(
            f"query {tuple(query.shape)} and database {tuple(database.shape)} must be matrices of the same "
            f"width{hint}"
        )
    if len(query) == 0 or len(database) == 0:
        raise ValueError("query and database must each hold at least one code")
    for name, codes, its in (("query", query, query_labels), ("database", database, database_labels)):
        if its is not None:
            check_form(its, f"{name}_labels", len(codes))
            if len(codes) != len(its):
                raise ValueError(f"there are {len(codes)} {name} codes but {len(its)} {name} labels")
