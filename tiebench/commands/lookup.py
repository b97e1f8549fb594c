"""`tiebench lookup`: buckets and candidates of a lookup in hash tables of the codes of a file."""

import argparse
import json

import numpy as np

from tiebench.command_line import Parser
from tiebench.commands import CODES, positive, print_text, radius
from tiebench.commands.score import NEEDED, read_arrays, read_bits
from tiebench.files import naming_values

HELP = "count what a lookup in hash tables of the codes of a file costs"
DESCRIPTION = """\
Count the buckets and candidates of a lookup of every query in hash tables,
and print one JSON object.

FILE.npz, or a folder of .npy files, holds query and database codes as for
`tiebench score`, with labels or without.

One table of whole codes to Hamming radius 2, multi-index hashing with four
tables, and each query to the radius that holds its 10 nearest items:

  tiebench lookup FILE.npz --radius 2
  tiebench lookup FILE.npz --radius 8 --tables 4
  tiebench lookup FILE.npz --neighbours 10 --tables 4
"""
EPILOG = """\
buckets: probed buckets, empty ones included; candidates: items in them, once
per table; distinct: different items among them, whose distance has to be
computed; within: items within the radius. Each is a mean over the queries,
with the largest value as <name>_max. empty: share of queries with no item
within the radius.
"""


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    parser.add_argument("file", metavar="FILE.npz", type=CODES, help="codes")
    parser.add_argument("--radius", metavar="R", type=radius, help="Hamming radius (default 2)")
    parser.add_argument(
        "--neighbours",
        metavar="K",
        type=positive,
        help="instead of a radius: search each query to the smallest radius that holds K items",
    )
    parser.add_argument(
        "--tables", metavar="M", type=positive, default=1, help="hash tables, of b/M bits each (default 1)"
    )


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Count and print."""
    from tiebench.codes.inputs import check_shapes, packed_codes
    from tiebench.search.lookup import lookup_cost

    if options.radius is not None and options.neighbours is not None:
        parser.error("--radius and --neighbours exclude each other")
    arrays = read_arrays(options.file, NEEDED[:2])
    with naming_values(options.file):
        check_shapes(arrays["query"], arrays["database"])
        query, database, bits = packed_codes(arrays["query"], arrays["database"], read_bits(arrays))
        cost = lookup_cost(query, database, bits, options.radius, options.tables, options.neighbours)
    found = {"queries": len(query), "database": len(database), "bits": bits, "tables": options.tables}
    for name, values in cost._asdict().items():
        found |= {name: _mean(values), f"{name}_max": int(max(values))}
    found["empty"] = float(np.mean(cost.within == 0))
    return print_text(json.dumps(found, indent=2))


def _mean(values):
    """Mean of integers of any size; an integer if it is one."""
    total = sum(int(value) for value in values)
    return total // len(values) if total % len(values) == 0 else total / len(values)
