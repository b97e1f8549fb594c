"""The bounds that every table with a supervised method has, unless it says `supervised_bounds: false`."""

from datasets import affinity
from reporting.tables.titles import BOUND


def add_bounds(configuration, table):
    """Add to the entry of a table the methods of the family "bound", last in its methods and in those of each
    block that has a supervised method; decide on `uncoded` where the entry does not.

    Blocks whose affinity comes from distances or lists have no labels to classify, and get none. Methods that
    the table lists itself stay where they are, and bounds that are filled from the leaderboard are not added.
    The names of methods and protocols have been checked.
    """
    supervised = [block for block in table["blocks"] if _is_supervised(configuration, table, block)]
    table.setdefault("uncoded", table["supervised_bounds"] and bool(supervised))
    if not table["supervised_bounds"]:
        return
    bounds = [name for name, about in configuration.files.items() if about.family == BOUND]
    listed = table["methods"]
    taken = {
        cell
        for block in table["blocks"]
        for cell in _cells(block, [*block.get("methods", listed), *block.get("filled", ())])
    }
    for block in table["blocks"]:
        own = block.setdefault("methods", listed)
        if block not in supervised or not _has_labels(configuration, block):
            continue
        # Two blocks may share their columns, with other methods each.
        more = [name for name in bounds if taken.isdisjoint(_cells(block, [name]))]
        taken.update(_cells(block, more))
        block["methods"] = [*own, *more]
    used = {name for block in table["blocks"] for name in block["methods"]}
    table["methods"] = [*listed, *(name for name in bounds if name in used and name not in listed)]


def _cells(block, methods):
    return {(block["protocol"], block["metric"], bits, name) for bits in block["bits"] for name in methods}


def _is_supervised(configuration, table, block):
    methods = map(configuration.metadata, block.get("methods", table["methods"]))
    return any(about.supervision != "none" and about.family != BOUND for about in methods)


def _has_labels(configuration, block):
    kind = configuration["protocols"][block["protocol"]]["affinity"]["kind"]
    said = affinity.KIND.named(kind).said
    return not (said.from_features or said.of_queries_only)
