"""Which queries and which database codes belong to: counts and digests that a leaderboard records.

Scores may be compared where queries, database and relevance are the same. Codes name no items, but their
labels and sizes tell a lot: `describe` sums them up, `check` compares two such summaries in one line.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping

import numpy as np

from tiebench.values import form, is_text
from tiebench.values import labels as labels_of
from tiebench.values import rows as rows_of

PARTS = ("query", "database")
_MOST_SHOWN = 3


def describe(
    labels: Mapping[str, np.ndarray] | None = None, items: Mapping[str, np.ndarray] | None = None
) -> dict:
    """Sizes, counts and digests of the queries and the database of codes, ready for JSON.

    labels: "query" and "database" -> classes (n,), integers or strings, or 0/1 (n, labels); items: the same
    -> row numbers in the dataset, int (n,); either may be None, and items may lack a part.

    Returns the keys "queries" and "database", how many there are; and, for what is given, "query_labels" and
    "database_labels", digests of the labels in their order; "query_counts" and "database_counts", how many
    have each class or label; "query_items" and "database_items", digests of the row numbers in their order.
    Neither the names of classes nor the order of the columns of 0/1 labels changes anything, and 0/1 rows
    with one label each are classes. Raises ValueError unless all that is given of a part has one length.
    """
    found: dict = {}
    items = {part: rows_of(rows, f"{part}_items") for part, rows in (items or {}).items()}
    for given in (labels or {}, items):
        for part, values in given.items():
            name = "queries" if part == "query" else part
            if found.setdefault(name, len(values)) != len(values):
                raise ValueError(f"{found[name]} {name} labels, but {len(values)} row numbers")
    if labels is not None:
        if lacking := [part for part in PARTS if part not in labels]:
            raise ValueError(f"there are no labels of {lacking[0]}")
        for part, plain, counts in zip(PARTS, *_plain_labels(*(labels[part] for part in PARTS))):
            found |= {f"{part}_labels": _digest(plain), f"{part}_counts": counts.tolist()}
    return found | {f"{part}_items": _digest(rows) for part, rows in items.items()}


def check(mine: Mapping, recorded: Mapping, whose: str) -> list[str]:
    """Raise ValueError, one line, where two summaries of `describe` contradict each other.

    mine: of somebody's codes; recorded: of the protocol; whose: what messages call it, "protocol digits".
    Returns what was compared, of "sizes", "labels" and "items".
    """
    names = [name for name in ("queries", "database") if recorded.get(name) is not None]
    if any(mine[name] != recorded[name] for name in names):
        have, has = (" and ".join(_sized(one[name], name) for name in names) for one in (mine, recorded))
        raise ValueError(f"the codes are of {have}, {whose} has {has}")
    compared = ["sizes"] if names else []
    for part in PARTS:
        keys = f"{part}_counts", f"{part}_labels"
        if None in (both := [one.get(keys[1]) for one in (mine, recorded)]):
            continue
        if said := _counts_that_differ(*(one[keys[0]] for one in (mine, recorded))):
            raise ValueError(f"the {part} labels are not those of {whose}: {said}")
        if both[0] != both[1]:
            raise ValueError(
                f"the {part} labels are not those of {whose} in its order: give codes and labels in the "
                f"order of `{part}` in its split"
            )
        compared.append("labels")
    for part in PARTS:
        both = [one.get(f"{part}_items") for one in (mine, recorded)]
        if None not in both:
            if both[0] != both[1]:
                raise ValueError(
                    f"{part}_items are not `{part}` of the split of {whose}, or are in another order"
                )
            compared.append("items")
    return list(dict.fromkeys(compared))


def _sized(count, name):
    return f"{count:,} {name if name == 'queries' else 'database items'}"


def _digest(array):
    """sha256, in hexadecimal, over the shape and the values (little-endian)."""
    plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    digest = hashlib.sha256(f"{plain.dtype.str} {plain.shape}\n".encode())
    digest.update(plain.data)
    return digest.hexdigest()


def _plain_labels(query, database):
    """Labels whatever their classes are called, and how many items have each: two pairs."""
    query, database = labels_of(query, "query_labels"), labels_of(database, "database_labels")
    if query.ndim == 2 and all((part.sum(axis=1) == 1).all() for part in (query, database)):
        query, database = query.argmax(axis=1), database.argmax(axis=1)
    if is_text(query) != is_text(database) or query.ndim != database.ndim:
        raise ValueError(
            f"query_labels and database_labels must be alike, not {form(query)} and {form(database)}"
        )
    together = np.concatenate([query, database])
    if together.ndim == 1:
        # Classes are numbered in the order in which they first appear.
        _, first, numbers = np.unique(together, return_index=True, return_inverse=True)
        places = np.empty(len(first), np.int64)
        places[np.argsort(first)] = np.arange(len(first))
        plain = places[numbers]
        parts = plain[: len(query)], plain[len(query) :]
        return parts, tuple(np.bincount(part, minlength=len(first)) for part in parts)
    together = together[:, together.any(axis=0)]
    columns = np.packbits(together, axis=0)
    together = together[:, np.lexsort(columns[::-1])]
    parts = together[: len(query)], together[len(query) :]
    return tuple(np.packbits(part, axis=1) for part in parts), tuple(
        part.sum(axis=0, dtype=np.int64) for part in parts
    )


def _counts_that_differ(mine, recorded):
    """What differs in two lists of items per class, in any order of the classes; "" if nothing does."""
    mine, recorded = ([count for count in counts if count] for counts in (mine, recorded))
    if len(mine) != len(recorded):
        return f"{len(mine)} classes or labels instead of {len(recorded)}"
    # Sorted: classes have numbers by their first appearance, which another order of items changes.
    one, two = Counter(mine), Counter(recorded)
    if one == two:
        return ""
    has, wanted = (_some(left - right) for left, right in ((one, two), (two, one)))
    return f"classes of {has} items instead of {wanted}"


def _some(counts):
    listed = [f"{count:,}" for count in sorted(counts.elements())]
    more = f", … ({len(listed)} classes)" if len(listed) > _MOST_SHOWN else ""
    return " and ".join(listed) if len(listed) <= 2 else ", ".join(listed[:_MOST_SHOWN]) + more
