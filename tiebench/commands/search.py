"""`tiebench search`: the nearest items of queries by their codes."""

import argparse
import json

import numpy as np

from tiebench.command_line import Parser
from tiebench.commands import CODES, positive, print_lines, radius
from tiebench.commands.export import check_reach, read_named
from tiebench.commands.score import add_naming, read_arrays, read_bits
from tiebench.files import naming_values
from tiebench.messages import printable
from tiebench.query_identity import PARTS

HELP = "print the nearest items of queries by Hamming distance"
DESCRIPTION = """\
Print the nearest database items of queries by the Hamming distance of their
codes: one JSON object per query and line, or a table with --text.

FILE.npz, or a folder of .npy files, holds query and database codes as for
`tiebench score`, with labels or without, and names of items as for `tiebench
export`.

The ten nearest items of two queries of the file, all items within distance 2
of every query, and queries of another file, `query` as in codes.npz:

  tiebench search codes.npz --rows 0,3
  tiebench search codes.npz --radius 2
  tiebench search codes.npz --queries new.npz
"""
EPILOG = """\
Items of equal distance are in the order of the file. Where the list ends
inside a tie, `cut` has the distance of the tie, how many of its items are
listed and how many it has; else it is null. --ties whole lists all.
"""
DEFAULT = 10


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    parser.add_argument("file", metavar="FILE.npz", type=CODES, help="codes, with or without labels")
    parser.add_argument(
        "--queries", metavar="QUERIES.npz", type=CODES, help="file of the queries, instead of FILE.npz"
    )
    parser.add_argument(
        "--rows",
        metavar="I,J-K",
        type=_rows,
        help="rows of the queries, from 0, ranges with their ends (all)",
    )
    parser.add_argument(
        "--neighbours", metavar="K", type=positive, help=f"how many items (default {DEFAULT})"
    )
    parser.add_argument("--radius", metavar="R", type=radius, help="all items within this Hamming distance")
    parser.add_argument(
        "--ties", choices=("cut", "whole"), help="the tie at place K: cut (the default) or listed whole"
    )
    add_naming(parser)
    parser.add_argument("--text", action="store_true", help="print tables instead of JSON lines")


def _rows(text):
    """[(0, 0), (3, 5)] from "0,3-5"."""
    spans = []
    for part in text.split(","):
        ends = part.split("-") if "-" in part else [part, part]
        if len(ends) != 2 or not all(end.isascii() and end.isdigit() and len(end) < 19 for end in ends):
            raise argparse.ArgumentTypeError(f"rows are written as 0,3-5, not {text!r}")
        spans.append((int(ends[0]), int(ends[1])))
        if spans[-1][0] > spans[-1][1]:
            raise argparse.ArgumentTypeError(f"rows {part!r} end before they begin")
    return spans


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Search and print."""
    from tiebench.search.neighbours import nearest, within

    if options.ties is not None and options.neighbours is None and options.radius is None:
        options.neighbours = DEFAULT
    check_reach(options, parser)
    codes = read_named(options.file, options.split, options.labels)
    query, names, labels = _queries(options, codes)
    chosen = _chosen(options, len(query))
    given = query[chosen], codes.database, codes.bits
    with naming_values(options.file):
        if options.radius is not None:
            found = within(*given, options.radius)
        else:
            most = min(options.neighbours or DEFAULT, len(codes.database))
            found = nearest(*given, most, whole_ties=options.ties == "whole")
    shown = _text if options.text else json.dumps
    return print_lines(
        shown(_answer(names[row].item(), None if labels is None else labels[row], one, codes))
        for row, one in zip(chosen.tolist(), found)
    )


def _queries(options, codes):
    """Codes of the queries, their names and their labels or None."""
    if options.queries is None:
        return codes.query, codes.ids["query"], codes.labels and codes.labels["query"]
    from tiebench.codes.inputs import check_shapes, packed_codes
    from tiebench.search.export import check_ids
    from tiebench.values import labels as labels_of

    file = options.queries
    arrays = read_arrays(file, PARTS[:1], optional=("query_labels", "query_ids", "query_items"))
    query = arrays["query"]
    with naming_values(file):
        labels = arrays.get("query_labels")
        check_shapes(query, query, labels)
        if labels is not None:
            labels = labels_of(labels, "query_labels")
        packed, _, bits = packed_codes(query, query[:1], read_bits(arrays))
        if bits != codes.bits:
            raise ValueError(f"codes of {bits} bits, those of {options.file} have {codes.bits}")
        kind = next((kind for kind in ("ids", "items") if f"query_{kind}" in arrays), "ids")
        return packed, check_ids(arrays.get(f"query_{kind}"), len(packed), f"query_{kind}"), labels


def _chosen(options, queries):
    """Rows of the queries to search for. Raises ValueError for one that there is not."""
    if options.rows is None:
        return np.arange(queries)
    if (last := max(end for _, end in options.rows)) >= queries:
        where = options.queries or options.file
        raise ValueError(f"{where}: --rows {last}: there are {queries} queries, rows 0 to {queries - 1}")
    return np.concatenate([np.arange(begin, end + 1) for begin, end in options.rows])


def _answer(name, label, found, codes):
    """What is printed of one query, ready for JSON."""
    distances = found.distances.tolist()
    answer = {"query": name}
    if label is not None:
        answer["label"] = _plain(label)
    answer |= {"items": codes.ids["database"][found.items].tolist(), "distances": distances}
    if codes.labels is not None:
        answer["labels"] = [_plain(one) for one in codes.labels["database"][found.items]]
    cut = None
    if found.left_out:
        listed = distances.count(distances[-1])
        cut = {"distance": distances[-1], "listed": listed, "items": listed + found.left_out}
    return answer | {"cut": cut}


def _plain(label):
    """A class, or the columns of the labels that an item has."""
    return np.flatnonzero(label).tolist() if np.ndim(label) else np.asarray(label).item()


def _text(answer):
    """A table of one query's items."""
    label = f", label {answer['label']}" if "label" in answer else ""
    labels = answer.get("labels", [""] * len(answer["items"]))
    rows = [("item", "distance", "label" if "labels" in answer else "")]
    rows += [
        (printable(str(item)), str(distance), printable(str(its)))
        for item, distance, its in zip(answer["items"], answer["distances"], labels)
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    lines = [printable(f"query {answer['query']}{label}")]
    lines += [
        f"  {item:<{widths[0]}}  {distance:>{widths[1]}}  {its}".rstrip() for item, distance, its in rows
    ]
    if cut := answer["cut"]:
        lines.append(
            f"  cut inside a tie: {cut['listed']} of {cut['items']} items at distance {cut['distance']}"
        )
    return "\n".join(lines) + "\n"
