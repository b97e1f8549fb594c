"""Codes of another protocol's run, for the items of a split."""

import numpy as np

PARTS = ("query", "database")


def taken(codes, theirs, ours, whose):
    """The arrays of a run's codes.npz, each for the items of another split.

    codes: name -> array, whose rows are the `query` or the `database` of the split `theirs`, or a number;
    ours, theirs: `datasets.splits.Split`; whose: what messages call the protocol of the codes.

    Raises ValueError, one line, where they were learnt from other items, or are not of all items of `ours`.
    """
    if not np.array_equal(ours.training, theirs.training):
        raise ValueError(f"{whose} learns from other items: its codes are not those of this protocol")
    places = {part: _places(getattr(ours, part), getattr(theirs, part), part, whose) for part in PARTS}
    part_of = {"query": "query", "database": "database", "raw_query": "query"}
    return {
        name: values[places[part_of[name]]] if name in part_of and len(values) else values
        for name, values in codes.items()
    }


def _places(wanted, known, part, whose):
    """Where the rows `wanted` are among `known`; both ascend."""
    places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    missing = wanted[known[places] != wanted]
    if len(missing):
        raise ValueError(
            f"{whose} has no codes of {len(missing)} items of `{part}` of this split, as row {missing[0]}"
        )
    return places
