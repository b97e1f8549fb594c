"""Codes and labels in any accepted form, from arrays or tensors, to packed codes and an affinity.

Where a torch tensor comes in, torch is loaded already: nothing here imports it.
"""

import sys
from typing import Any

import numpy as np

from tiebench.hamming import EqualLabels, SharedLabels, check_levels, check_packed, pack


def is_tensor(value: object) -> bool:
    """Whether a value is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def as_array(value: Any) -> np.ndarray:
    """A NumPy array of an array, list or tensor; a CPU tensor's memory is shared, not copied."""
    if not is_tensor(value):
        return np.asarray(value)
    value = value.detach().cpu()
    if value.is_floating_point() and value.element_size() < 4:  # NumPy has no bfloat16
        value = value.float()
    return value.numpy()


def packed_codes(
    query: np.ndarray, database: np.ndarray, bits: int | None = None
) -> tuple[np.ndarray, np.ndarray, int]:
    """Query and database codes, packed, and their number of bits b.

    query (Q, width), database (N, width): with `bits`, uint8 of width ceil(bits / 8) is packed as by
    `numpy.packbits(codes, axis=1)`; all else is unpacked, width b: bool, or numbers all in {0, 1} or all in
    {-1, +1}. bits: b; None takes the width. Returns uint8 (Q, ceil(b / 8)), uint8 (N, ceil(b / 8)), b.
    Raises ValueError, one line, for anything else.
    """
    width = query.shape[1]
    if bits is None:
        packed, bits = False, width
        for name, codes in (("query", query), ("database", database)):
            if codes.dtype == np.uint8 and codes.max(initial=0) > 1:
                raise ValueError(
                    f"{name} holds bytes above 1: if the codes are packed, give `bits`, their number of bits"
                )
    else:
        packed = query.dtype == np.uint8 and width == -(-bits // 8)
        if packed and bits == 1:  # one column either way: packed codes are 0 and 128
            packed = not (np.any(query == 1) or np.any(database == 1))
        if not packed and width != bits:
            raise ValueError(f"codes of width {width} are neither {bits} bits nor packed")
    made = [
        check_packed(codes if packed else pack(codes, name), bits, name)
        for name, codes in (("query", query), ("database", database))
    ]
    return made[0], made[1], bits


def label_affinity(query: np.ndarray, database: np.ndarray) -> EqualLabels | SharedLabels:
    """Affinity of labels: class equality of labels (n,), number of shared labels of 0/1 (n, labels).

    Raises ValueError, one line, for labels of other shapes, kinds or values.
    """
    if query.ndim != database.ndim or query.ndim not in (1, 2):
        raise ValueError(
            f"query_labels of shape {query.shape} and database_labels of shape {database.shape} must both be "
            "classes (n,), or both 0/1 (n, labels)"
        )
    affinity = (EqualLabels if query.ndim == 1 else SharedLabels)(query, database)
    check_levels(affinity.levels)
    return affinity


def check_shapes(query: Any, database: Any, query_labels: Any, database_labels: Any) -> None:
    """Raise ValueError unless codes are matrices of one width, none empty, with a label (row) each."""
    if query.ndim != 2 or database.ndim != 2 or query.shape[1] != database.shape[1]:
        raise ValueError(
            f"query {tuple(query.shape)} and database {tuple(database.shape)} must be matrices of the same "
            "width"
        )
    if len(query) == 0 or len(database) == 0:
        raise ValueError("query and database must each hold at least one code")
    for name, codes, labels in (
        ("query", query, query_labels),
        ("database", database, database_labels),
    ):
        if labels.ndim == 0 or len(codes) != len(labels):
            held = len(labels) if labels.ndim else "no"
            raise ValueError(f"there are {len(codes)} {name} codes but {held} {name} labels")
