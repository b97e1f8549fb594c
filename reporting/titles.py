"""How a table's methods, protocols and families are written for people.

A table brings the titles with it, `table["styles"]` and the titles of its blocks: reporting itself knows no
method and no protocol.
"""

from collections.abc import Iterable, Mapping

# What a method's loss compares: pairs, triplets or lists of items; unsupervised methods have no such loss.
# Bounds are what hashing has to beat.
FAMILIES = {
    "unsupervised": "Unsupervised",
    "classwise": "Class codes",
    "pointwise": "Pointwise (pairs)",
    "pairwise": "Pairwise (triplets)",
    "listwise": "Listwise",
    "external": "Codes of other programs",
    "bound": "Bounds",
}
BOUND = "bound"


TRAINING_SET = (
    "training set"  # what a method's training sees, `table["styles"][method]["sees"]`, unless it says more
)
EN_DASH = "–"
DAGGER = "†"
EXTERNAL = "¶"
EARLIER = "‖"

# The row of the features themselves, which no method encoded.
UNCODED = "uncoded"
UNCODED_TITLE = "Uncoded features (cosine)"

# What records of runs that were not made here have as their "source", and the status of their cells.
LEADERBOARD = "leaderboard"


def method_title(table: Mapping, method: str) -> str:
    """The title that a table gives a method, `table["styles"][method]["title"]`; else the method's name."""
    style = (table.get("styles") or {}).get(method) or {}
    return style.get("title") or method


def is_unseen(table: Mapping, protocol: str) -> bool:
    """Whether the classes of a protocol's queries are not learnt from, by its settings in the table."""
    return bool(((table.get("settings") or {}).get(protocol) or {}).get("unseen"))


def sees(table: Mapping, method: str, protocol: str | None = None) -> str:
    """What a method's training has access to, as its style says: "training set" by default, and under
    protocols of unseen classes. protocol: None for any of the table."""
    asked = (table.get("settings") or {}) if protocol is None else [protocol]
    if asked and all(is_unseen(table, name) for name in asked):
        return TRAINING_SET
    return ((table.get("styles") or {}).get(method) or {}).get("sees") or TRAINING_SET


def row_title(table: Mapping, method: str) -> str:
    """The heading of a method's row: its title, with a dagger if it sees more than the training set, a
    pilcrow if its codes were made elsewhere, and two bars if they are of an earlier form of the method."""
    marks = DAGGER * (sees(table, method) != TRAINING_SET) + EXTERNAL * is_external(table, method)
    return method_title(table, method) + marks + EARLIER * bool(earlier_form(table, method))


def is_external(table: Mapping, method: str) -> bool:
    """Whether the codes of a row are of another program, by `table["styles"][method]["external"]`."""
    return bool(((table.get("styles") or {}).get(method) or {}).get("external"))


def earlier_form(table: Mapping, method: str) -> str:
    """What differs between the form of a method that a row of the leaderboard has and that of today,
    `table["styles"][method]["earlier"]`; "" for nothing."""
    return ((table.get("styles") or {}).get(method) or {}).get("earlier") or ""


def earlier_sentence(table: Mapping, methods: Iterable[str]) -> str:
    """What the two bars mean, for the methods that have them; "" where none has."""
    titles: dict[str, list[str]] = {}
    for method in methods:
        if differs := earlier_form(table, method):
            titles.setdefault(differs, []).append(method_title(table, method))
    named = "; ".join(f"{', '.join(of)}: {differs}" for differs, of in titles.items())
    return f"{EARLIER} Of an earlier form of the method ({named})." if named else ""


def external_sentence(table: Mapping, methods: Iterable[str]) -> str:
    """What the pilcrow means, one sentence; "" where none of the methods has one."""
    if not any(is_external(table, method) for method in methods):
        return ""
    return (
        f"{EXTERNAL} Codes of another program, checked against the split and scored here; nothing shows what "
        "they were learned from, or how settings were chosen."
    )


def dagger_sentence(table: Mapping, methods: Iterable[str], ranked: str = "") -> str:
    """What the dagger means, one sentence; "" where none of the methods has one.

    ranked: what follows on how the methods are marked, as "; neither best nor second".
    """
    more = sorted({sees(table, method) for method in methods} - {TRAINING_SET})
    settings = table.get("settings") or {}
    hidden = ", ".join(protocol_title(table, name) for name in settings if is_unseen(table, name))
    but = f" (not under {hidden})" if hidden else ""
    return f"{DAGGER} Learns from {' or '.join(more)} besides the training set{but}{ranked}." if more else ""


def protocol_title(table: Mapping, protocol: str) -> str:
    """The title of a protocol: of the first block that has one, else of `table["protocols"]`, else its name.

    `table["protocols"]`, protocol -> title, may name protocols that no block asks for: claims do.
    """
    titles = (block.get("title") for block in table["blocks"] if block["protocol"] == protocol)
    known = (table.get("protocols") or {}).get(protocol)
    return next(filter(None, titles), None) or known or protocol


def family_title(family: str) -> str:
    """The title of a family of methods: "pointwise" is "Pointwise (pairs)"; an unknown one is unchanged."""
    return FAMILIES.get(family, family)
