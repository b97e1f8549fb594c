"""Checks of a split into queries, database and training set: items in two sets, duplicates, labels.

`check` compares three lists of items, given by name (paths of images, row numbers) and, if they are known, by
content. Queries that are met again in the database or in the training set make scores too high; lists of
published code have had this fault.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from os import PathLike, fspath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tiebench import values

PARTS = ("query", "database", "training")  # as in a protocol's split
_EXAMPLES = 3
_PLURAL = {"query": "queries", "database": "database items", "training": "training items"}
_WHERE = {"query": "the query set", "database": "the database", "training": "the training set"}


class Part(NamedTuple):
    """One list of a split, all of the same length, or None for what is not known.

    names: what identifies an item, text or integers, also as an array or tensor (n,); labels: the classes of
    each item, a tuple, empty if it has none, or an array or tensor of classes (n,) or of 0/1 (n, labels);
    contents: digests of the items' contents, None for an item that was not found.
    """

    names: Any  # sequences, arrays and tensors have no type in common
    labels: Any = None
    contents: Sequence[bytes | None] | None = None


def check(parts: Mapping[str, Part]) -> dict[str, Any]:
    """What is in two sets, twice in one, or at odds; ready for JSON.

    parts: "query", and "database" or "training" or both. Returns a dictionary:

    sizes           part -> lines
    duplicates      part -> lines whose name was on the same list before
    overlaps        "query_in_database", "query_in_training", "training_in_database" -> distinct names of the
                    first set that are in the second
    same_content    the same two by content, and "not_found" by part; None without contents
    examples        up to three names for each number above that is not 0 ("same_content.<key>" by content)
    labels          None without labels; else "classes" (part -> number of classes), "without_labels" (part ->
                    items), "contradicting" (names whose labels differ between lines), "missing_classes" (part
                    -> classes of the other sets that it lacks), "distance" (part -> total variation distance,
                    0 to 1, between its distribution of labels and that of the database), and
                    "queries_without_relevant" (queries that share no label with any database item)
    leaks           a sentence for every way in which queries are met again; empty for a clean split

    Raises ValueError for other parts, for labels or contents of another length, and for names or classes of
    which some are text and some integers, which are never equal.
    """
    unknown = sorted(set(parts) - set(PARTS))
    if unknown or "query" not in parts or len(parts) < 2:
        raise ValueError(f"a split has query and database or training, not {', '.join(parts) or 'nothing'}")
    parts = {part: _plain(part, given) for part, given in parts.items()}
    if len({type(name) for given in parts.values() for name in given.names[:1]}) > 1:
        kinds = (f"{part} by {type(given.names[0]).__name__}" for part, given in parts.items() if given.names)
        raise ValueError(f"items must be called by integers in all parts, or by text, not {', '.join(kinds)}")
    for part, given in parts.items():
        for what in ("labels", "contents"):
            its = getattr(given, what)
            if its is not None and len(its) != len(given.names):
                raise ValueError(f"{part} has {len(given.names)} items but {len(its)} {what}")
    examples: dict[str, list[str]] = {}
    names = {part: list(given.names) for part, given in parts.items()}
    duplicates, overlaps, met = _compared(names, names, "", examples)
    report: dict[str, Any] = {
        "sizes": {part: len(found) for part, found in names.items()},
        "duplicates": duplicates,
        "overlaps": overlaps,
        "same_content": None,
        "labels": None,
    }
    if all(given.contents is not None for given in parts.values()):
        contents = {part: list(given.contents or ()) for part, given in parts.items()}
        twice, shared, again = _compared(contents, names, "same_content.", examples)
        met |= again
        missing = {part: sum(one is None for one in found) for part, found in contents.items()}
        report["same_content"] = {"duplicates": twice, "overlaps": shared, "not_found": missing}
    if all(given.labels is not None for given in parts.values()):
        report["labels"] = _labels(parts, examples)
    report["examples"] = {key: found for key, found in examples.items() if found}
    report["leaks"] = _leaks(report, met)
    return report


def _plain(part, given):
    """The part with lists of names, all text or all integers, and of tuples of classes."""
    names, labels = given.names, given.labels
    if isinstance(names, (list, tuple)):
        names = [fspath(name) if isinstance(name, PathLike) else name for name in names]
    names = values.ids(names, f"names of {part}").tolist() if len(names) else []
    if labels is not None and not all(isinstance(row, (tuple, set, frozenset)) for row in labels):
        labels = rows_of_labels(labels, f"labels of {part}")
    return given._replace(names=names, labels=labels)


def rows_of_labels(labels: ArrayLike, name: str) -> list[tuple[Hashable, ...]]:
    """Labels of items, `values.labels`, as the tuple of classes of each item."""
    found = values.labels(labels, name)
    if found.ndim == 1:
        return [(one,) for one in found.tolist()]
    return [tuple(np.flatnonzero(row).tolist()) for row in found]


def _compared(keys, names, prefix, examples):
    """Duplicates of each part and overlaps of two, by keys (None: not known), and the lines of these overlaps
    by `prefix` and name; adds examples, by name."""
    duplicates, sets, lines = {}, {}, {}
    for part, found in keys.items():
        seen: set = set()
        again = []
        for key, name in zip(found, names[part]):
            if key in seen and key is not None:
                again.append(name)
            seen.add(key)
        seen.discard(None)
        duplicates[part], sets[part] = len(again), seen
        examples[f"{prefix}duplicates.{part}"] = again[:_EXAMPLES]
    overlaps = {}
    for first, second in (("query", "database"), ("query", "training"), ("training", "database")):
        if first in keys and second in keys:
            shared = sets[first] & sets[second]
            key = f"{first}_in_{second}"
            overlaps[key] = len(shared)
            both = [name for one, name in zip(keys[first], names[first]) if one in shared] if shared else []
            lines[f"{prefix}{key}"] = len(both)
            examples[f"{prefix}{key}"] = list(dict.fromkeys(both))[:_EXAMPLES]
    return duplicates, overlaps, lines


def _labels(parts, examples):
    counts = {part: Counter(one for row in given.labels for one in row) for part, given in parts.items()}
    if len({isinstance(one, str) for found in counts.values() for one in found}) > 1:
        raise ValueError("classes must be integers in all parts, or text in all: 1 and '1' are never equal")
    without = {part: sum(not row for row in given.labels) for part, given in parts.items()}
    for part, given in parts.items():
        bare = [name for name, row in zip(given.names, given.labels) if not row]
        examples[f"without_labels.{part}"] = bare[:_EXAMPLES]
    first: dict = {}
    contradicting = [
        name
        for given in parts.values()
        for name, row in zip(given.names, given.labels)
        if first.setdefault(name, frozenset(row)) != frozenset(row)
    ]
    contradicting = list(dict.fromkeys(contradicting))
    examples["contradicting"] = contradicting[:_EXAMPLES]
    classes = set().union(*counts.values())
    base = counts.get("database", counts.get("training"))
    return {
        "classes": {part: len(found) for part, found in counts.items()},
        "without_labels": without,
        "contradicting": len(contradicting),
        "missing_classes": {
            part: sorted(classes - set(found), key=lambda one: (str(type(one)), one))
            for part, found in counts.items()
        },
        "distance": {
            part: _total_variation(found, base) for part, found in counts.items() if found is not base
        },
        "queries_without_relevant": sum(
            not any(one in counts["database"] for one in row) for row in parts["query"].labels
        )
        if "database" in parts
        else None,
    }


def _total_variation(one, other):
    """Half the sum of absolute differences of two distributions, given as counts; None if one is empty."""
    if not one or not other:
        return None
    totals = one.total(), other.total()
    return sum(abs(one[key] / totals[0] - other[key] / totals[1]) for key in one.keys() | other.keys()) / 2


def _leaks(report, met):
    """Sentences; met: of how many lines, as `_compared` counts them."""
    found = []
    for part in ("database", "training"):
        for how, prefix in (("", ""), (" with the same content", "same_content.")):
            if count := met.get(f"{prefix}query_in_{part}", 0):
                example = report["examples"][f"{prefix}query_in_{part}"][0]
                queries = f"{count:,} of {report['sizes']['query']:,} queries"
                found.append(f"{queries} are in {_WHERE[part]}{how}, the first is {example!r}")
    return found


def summary(report: Mapping[str, Any]) -> str:
    """A report of `check` as a few lines of text."""
    sizes = report["sizes"]
    lines = [", ".join(f"{size:,} {_PLURAL[part]}" for part, size in sizes.items())]
    for title, found in (("by name", report), ("by content", report["same_content"])):
        if found is None:
            continue
        overlaps = [
            f"{count:,} {_PLURAL[key.partition('_in_')[0]]} in {_WHERE[key.partition('_in_')[2]]}"
            for key, count in found["overlaps"].items()
        ]
        twice = [f"{count:,} in {_WHERE[part]}" for part, count in found["duplicates"].items()]
        lines.append(f"{title}: {', '.join(overlaps)}; duplicates: {', '.join(twice)}")
        if missing := {part: count for part, count in found.get("not_found", {}).items() if count}:
            lines.append("not found: " + ", ".join(f"{n:,} {_PLURAL[part]}" for part, n in missing.items()))
    labels = report["labels"]
    if labels is None:
        lines.append("labels: not known")
    else:
        lines.append(
            "classes: " + ", ".join(f"{n} in {_WHERE[part]}" for part, n in labels["classes"].items())
        )
        for part, missing in labels["missing_classes"].items():
            if missing:
                lines.append(f"classes missing in {_WHERE[part]}: {', '.join(map(str, missing))}")
        bare = [f"{n:,} {_PLURAL[part]}" for part, n in labels["without_labels"].items() if n]
        lines += [f"without labels: {', '.join(bare)}"] if bare else []
        if labels["contradicting"]:
            lines.append(f"items of one name with different labels: {labels['contradicting']:,}")
        if labels["queries_without_relevant"]:
            lines.append(f"queries without a relevant database item: {labels['queries_without_relevant']:,}")
        distances = [
            f"{_PLURAL[part]} {value:.3f}" for part, value in labels["distance"].items() if value is not None
        ]
        if distances:
            lines.append(f"distance of label distributions to the database's: {', '.join(distances)}")
    lines += [f"leak: {leak}" for leak in report["leaks"]] or ["no query is met again"]
    return "\n".join(lines)
