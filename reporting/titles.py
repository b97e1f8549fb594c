"""How a table's methods, protocols and families are written for people.

A table brings the titles with it, `table["styles"]` and the titles of its blocks: reporting itself knows no
method and no protocol.
"""

from collections.abc import Mapping

# What a method's loss compares: pairs, triplets or lists of items; unsupervised methods have no such loss.
FAMILIES = {
    "unsupervised": "Unsupervised",
    "classwise": "Class codes",
    "pointwise": "Pointwise (pairs)",
    "pairwise": "Pairwise (triplets)",
    "listwise": "Listwise",
}


def method_title(table: Mapping, method: str) -> str:
    """The title that a table gives a method, `table["styles"][method]["title"]`; else the method's name."""
    style = (table.get("styles") or {}).get(method) or {}
    return style.get("title") or method


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
