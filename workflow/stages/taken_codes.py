"""Codes of another protocol's run, or their first bits, for the items of a split."""

import numpy as np

from tiebench.prefixes import cut_codes

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
    of_query = dict.fromkeys(("query", "raw_query", "estimate_query"), "query")
    part_of = of_query | dict.fromkeys(("database", "estimate_factors"), "database")
    return {
        name: values[places[part_of[name]]] if name in part_of and len(values) else values
        for name, values in codes.items()
    }


def prefix(codes, bits):
    """The arrays of a run's codes.npz, cut to its first bits. What distances are estimated from is left out:
    it is of whole codes.

    Raises ValueError, one line, where the codes are shorter.
    """
    have = int(codes["bits"])
    if have < bits:
        raise ValueError(f"a prefix of {bits} bits was asked for of codes of {have} bits")
    found = {part: cut_codes(codes[part], bits) for part in PARTS}
    if "raw_query" in codes:
        found["raw_query"] = codes["raw_query"][:, :bits]
    return found | {"bits": np.array(bits)}


def _places(wanted, known, part, whose):
    """Where the rows `wanted` are among `known`; both ascend."""
    places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    missing = wanted[known[places] != wanted]
    if len(missing):
        raise ValueError(
            f"{whose} has no codes of {len(missing)} items of `{part}` of this split, as row {missing[0]}"
        )
    return places
