"""The shape of a table: its blocks as groups of columns, laid out in panels, and the order of its rows.

A *cell* is (protocol, metric, method, bits). A *group* is one block of a table: the columns of one protocol
and one metric. A *panel* is a row of groups side by side under one header, as in the tables of the paper.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reporting.titles import BOUND, FAMILIES, TRAINING_SET, protocol_title, sees


@dataclass(frozen=True)
class Group:
    """The columns of one block of a table: one protocol, one metric, several bits; `methods` are its rows."""

    protocol: str
    metric: str
    title: str
    bits: tuple[int, ...]
    methods: tuple[str, ...]


@dataclass(frozen=True)
class Panel:
    """Groups side by side, and the methods of at least one of them, in row order."""

    groups: tuple[Group, ...]
    methods: tuple[str, ...]


def groups(table: Mapping) -> list[Group]:
    """The blocks of a table as groups, in its order.

    A block without `methods` takes the table's. Rows are ordered by family where `table["families"]`,
    method -> one of FAMILIES, is given; within a family in the order of the table's methods.

    Raises ValueError if a cell is in the table twice.
    """
    result, seen = [], set()
    for block in table["blocks"]:
        methods = block.get("methods") or table["methods"]
        group = Group(
            protocol=block["protocol"],
            metric=block["metric"],
            title=block.get("title") or protocol_title(table, block["protocol"]),
            bits=tuple(block["bits"]),
            methods=tuple(in_order(table, methods)),
        )
        for cell in cells_of(group):
            if cell in seen:
                raise ValueError(f"table {table['name']}: {cell_words(cell)} is in the table twice")
            seen.add(cell)
        result.append(group)
    return result


def panels(table: Mapping, max_columns: int = 8) -> list[Panel]:
    """The groups of a table laid out in panels of at most `max_columns` columns of scores.

    Groups keep their order and are never split: a group wider than `max_columns` has a panel to itself.
    """
    rows: list[list[Group]] = []
    for group in groups(table):
        if rows and sum(len(other.bits) for other in rows[-1]) + len(group.bits) <= max_columns:
            rows[-1].append(group)
        else:
            rows.append([group])
    return [Panel(tuple(row), tuple(method_order(table, row))) for row in rows]


def method_order(table: Mapping, of: Iterable[Group]) -> list[str]:
    return in_order(table, dict.fromkeys(method for group in of for method in group.methods))


def method_seeds(table: Mapping, method: str) -> list[int]:
    """The seeds of a method's runs: the table's, or the first `table["fewer_seeds"][method]` of them."""
    seeds = list(table["seeds"])
    return seeds[: (table.get("fewer_seeds") or {}).get(method, len(seeds))]


def family(table: Mapping, method: str) -> str:
    """One of FAMILIES, "" where the table names none: it then keeps its own order, ungrouped."""
    return (table.get("families") or {}).get(method, "")


def competes(table: Mapping, method: str, protocol: str | None = None) -> bool:
    """Whether a method takes part in what compares the methods of a table.

    Bounds do not, and neither do methods that see more than the training set; protocol: None for any.
    """
    return family(table, method) != BOUND and sees(table, method, protocol) == TRAINING_SET


def by_family(table: Mapping, methods: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Rows in printing order, cut where the family changes: [(family, methods), …].

    One piece without a name, ("", methods), where they are all of one family or of none.
    """
    pieces: list[tuple[str, list[str]]] = []
    for method in methods:
        of = family(table, method)
        if not pieces or pieces[-1][0] != of:
            pieces.append((of, []))
        pieces[-1][1].append(method)
    return pieces if len(pieces) > 1 else [("", list(methods))]


def in_order(table: Mapping, methods: Iterable[str]) -> list[str]:
    """Rows of a table: family after family, within one in the order of the table."""
    order = {method: index for index, method in enumerate(table["methods"])}
    families = list(FAMILIES)

    def key(method):
        of = family(table, method)
        return families.index(of) if of in families else len(families), order.get(method, len(order))

    return sorted(methods, key=key)


def cells_of(group: Group) -> Iterable[tuple[str, str, str, int]]:
    for method in group.methods:
        for bits in group.bits:
            yield group.protocol, group.metric, method, bits


def cell_words(cell: tuple) -> str:
    protocol, metric, method, bits = cell
    return f"{protocol}, {metric}, {method}, {bits} bits"
