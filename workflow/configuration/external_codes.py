"""Codes that another program made: what is known of their row, and their files, checked against the split."""

from pathlib import Path

import numpy as np

from methods.base import TRAINING_SET
from methods.base.catalogue import MethodMetadata
from tiebench.codes.inputs import check_shapes, packed_codes
from tiebench.commands.score import of_both_parts, read_arrays, read_bits
from tiebench.files import naming_values
from tiebench.messages import printable
from tiebench.query_identity import PARTS, check, describe
from tiebench.values import ids as read_ids
from tiebench.values import is_text
from tiebench.values import rows as row_numbers
from workflow.configuration.source_checks import stamp

FAMILY = "external"
KINDS = ("labels", "items", "ids")


def metadata(name, entry):
    """`MethodMetadata` of an entry of `methods` with `external`: nothing is trained or chosen here."""
    return MethodMetadata(
        name=name,
        path=Path(entry["external"]),
        title=entry.get("title", name),
        paper=entry.get("source"),
        colour=entry.get("colour"),
        marker=entry.get("marker"),
        supervision="none",
        family=FAMILY,
        end_to_end=False,
        space={},
        common_space={},
        trainers=[{}],
        sees=entry.get("sees", TRAINING_SET),
        several_labels=True,
        parameters={},
        defaults={},
        summary="",
        reference="",
        classes={name: ("", ())},
    )


def run_settings(plan, protocol, method, bits, seed):
    """Where the codes of a run are imported from: `folder`, `file`, and its `stamp`, None if it is absent."""
    folder = plan.configuration.external_folder(method)
    file = f"{folder}/{protocol}/{bits}/{seed}.npz"
    return {"folder": folder, "file": file, "stamp": stamp(file)}


def run_files(plan, protocol, method, bits, seed):
    """The file of these codes, in a list that is empty while there is none: a hole of the table."""
    settings = run_settings(plan, protocol, method, bits, seed)
    return [] if settings["stamp"] is None else [settings["file"]]


def absence(settings):
    """Why there are no codes of a run, one line; None if its file exists. settings: of `run_settings`."""
    if Path(settings["file"]).is_file():
        return None
    missing = settings["file"] if Path(settings["folder"]).is_dir() else f"the folder {settings['folder']}"
    return f"external codes: {missing} does not exist"


def read(file, bits, split, labels=None, ids=None, whose="the protocol"):
    """Packed codes of a file in the order of a split: (query, database), and what they were checked by.

    file: .npz as of `tiebench score`, with labels or without, and optionally `query_items` and
    `database_items`, row numbers in the dataset, or `query_ids` and `database_ids`, the dataset's own names:
    by these, codes may be in any order. bits: how many they must have. split: a `datasets.splits.Split`;
    labels, ids: of the whole dataset, or None. whose: what messages call the protocol.

    Raises ValueError, one line that names the file, where the codes are of other items, or nothing tells
    which items they are of.
    """
    arrays = read_arrays(file, PARTS, [f"{part}_{kind}" for part in PARTS for kind in KINDS])
    with naming_values(file):
        return _checked(arrays, bits, split, labels, ids, whose)


def _checked(arrays, bits, split, labels, ids, whose):
    given = {kind: of_both_parts(arrays, kind) for kind in KINDS}
    check_shapes(arrays["query"], arrays["database"])
    codes = packed_codes(arrays["query"], arrays["database"], read_bits(arrays))
    if codes[2] != bits:
        raise ValueError(
            f"codes of {codes[2]} bits where {bits} are expected: files are <protocol>/<bits>/<seed>.npz"
        )
    sizes = {"queries": len(split.query), "database": len(split.database)}
    check({"queries": len(codes[0]), "database": len(codes[1])}, sizes, whose)
    for kind, found in given.items():
        for part, values in found.items():
            if np.shape(values)[:1] != (len(getattr(split, part)),):
                count = len(values) if np.ndim(values) else "a single value as"
                raise ValueError(
                    f"there are {len(getattr(split, part))} {part} codes but {count} {part}_{kind}"
                )
    checked_by = [kind for kind in KINDS if given[kind]]
    if labels is None and given["labels"]:
        raise ValueError(f"it has labels, and the dataset of {whose} has none")
    if not checked_by:
        either = "query_labels and database_labels, or " if labels is not None else ""
        raise ValueError(
            f"nothing tells which items the codes are of: add {either}query_items and database_items, "
            "`query` and `database` of split.npz"
        )
    order: dict[str, np.ndarray | slice] = {}
    for part in PARTS:
        rows = getattr(split, part)
        orders = [
            _order(_rows(given[kind][part], ids, rows, name, part, whose), rows, name, part, whose)
            for kind in KINDS[1:]
            if given[kind] and (name := f"{part}_{kind}")
        ]
        if len(orders) == 2 and not np.array_equal(orders[0], orders[1]):
            raise ValueError(f"{part}_items and {part}_ids are of different items")
        order[part] = orders[0] if orders else slice(None)
    if given["labels"]:
        mine = describe({part: given["labels"][part][order[part]] for part in PARTS})
        check(mine, describe({part: labels[getattr(split, part)] for part in PARTS}), whose)
    return {part: code[order[part]] for part, code in zip(PARTS, codes[:2])}, checked_by


def _rows(values, ids, wanted, name, part, whose):
    """Row numbers of items that are named by them, or by the dataset's ids of the rows `wanted`: a document
    and a query may have one id."""
    values = read_ids(values, name)
    if name.endswith("_items"):
        if is_text(values):
            raise ValueError(
                f"{name} must be row numbers, not strings: ids of the dataset are {name[:-5]}ids"
            )
        return row_numbers(values, name)
    if ids is None:
        raise ValueError(f"the dataset has no ids: give row numbers, {name[:-3]}items, instead of {name}")
    known, values = ids[wanted].astype(str), values.astype(str)
    order = np.argsort(known, kind="stable")
    place = np.minimum(np.searchsorted(known[order], values), len(known) - 1)
    unknown = np.flatnonzero(known[order][place] != values)
    if len(unknown):
        shown = printable(values[unknown[0]], 60)
        what = f"which is no id of `{part}` of the split of {whose}"
        raise ValueError(f"{name} has {shown!r}, {what} ({len(unknown)} are not)")
    return wanted[order[place]]


def _order(rows, wanted, name, part, whose):
    """Places of the codes in the order of a split: rows[result] == wanted, which ascends."""
    order = np.argsort(rows, kind="stable")
    ranked = rows[order]
    if np.array_equal(ranked, wanted):
        return order
    if len(twice := ranked[1:][ranked[1:] == ranked[:-1]]):
        raise ValueError(f"{name} has the item of row {twice[0]} twice")
    others = np.setdiff1d(ranked, wanted)
    raise ValueError(
        f"{name} are not `{part}` of the split of {whose}: {len(others)} are others, as row {others[0]}"
    )
