"""`tiebench health`: what the codes of a file make of their bits."""

import argparse
import json

import numpy as np

from tiebench.command_line import Parser
from tiebench.commands import CODES, add_threads, positive, print_text
from tiebench.commands.score import NEEDED, read_arrays, read_bits
from tiebench.files import naming_values

HELP = "diagnose the codes of a file: constant bits, distinct codes, ties"
DESCRIPTION = """\
Diagnose binary codes and print one JSON object: the share of ones per bit,
constant bits, correlations of bits, distinct codes, their entropy in bits,
the largest bucket, the mean size of the tie at ranks 10, 100 and 1000, and
the distance of the nearest items.

FILE.npz, or a folder of .npy files, holds query and database as for `tiebench
score`. With query_labels and database_labels it also prints the share of AP
that is left to the order of ties (ap_range), the number of classes, and
whether the codes count as collapsed: the reason, or null.
"""


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    parser.add_argument("file", metavar="FILE.npz", type=CODES, help="codes, with or without labels")
    parser.add_argument(
        "--unused-bits",
        metavar="N",
        type=positive,
        default=0,
        help="bits that the method leaves constant by design, as one-hot codes do beyond the classes",
    )
    add_threads(parser)


def class_counts(labels: np.ndarray) -> np.ndarray:
    """Items of each class of labels (n,), or with each label of 0/1 (n, labels): int (C,)."""
    from tiebench.values import labels as labels_of

    labels = labels_of(labels, "database_labels")
    return (
        np.unique(labels, return_counts=True)[1] if labels.ndim == 1 else labels.sum(axis=0, dtype=np.int64)
    )


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Print the health of the codes."""
    from tiebench import diagnostics

    arrays = read_arrays(options.file, NEEDED[:2], optional=NEEDED[2:])
    labels, of_queries = arrays.get("database_labels"), arrays.get("query_labels")
    with naming_values(options.file):
        given = arrays["query"], arrays["database"], of_queries, labels, read_bits(arrays)
        found = diagnostics.health(*given, options.threads)
    plain, counts = found.as_dict(), None
    if labels is not None:
        counts = class_counts(labels)
        plain["classes"] = int(np.count_nonzero(counts))
    if options.unused_bits > found.bits:
        parser.error(f"--unused-bits {options.unused_bits}: the codes have {found.bits} bits")
    plain["collapsed"] = found.collapsed(counts, options.unused_bits) or None
    return print_text(json.dumps(plain, indent=2))
