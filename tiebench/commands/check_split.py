"""`tiebench check-split`: whether the queries of anybody's split are met again."""

import argparse
import json
import sys
from pathlib import Path

from tiebench.command_line import Parser, Reads
from tiebench.commands import print_text
from tiebench.files import naming_values

HELP = "check a split: queries in the database, duplicates, labels"
DESCRIPTION = """\
Check a split into queries, database and training set, and print one JSON
object: sizes, items in two sets, duplicates, labels. The exit status is 1 if
queries are in the database or in the training set.

SOURCE is
  text lists    train.txt, test.txt (or query.txt), database.txt, also in
                parts (test0.txt, ...): files, or a folder or zip of them; a
                line is a path and either a 0/1 value for each class or one
                class, separated by white space or commas; a path that holds
                these ends with a tab
  FILE.npz      row numbers: query, database, training; with `labels` (n,) or
                (n, classes), and `items` (n, ...) to find equal rows
"""


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    parser.add_argument(
        "sources", metavar="SOURCE", nargs="*", type=Reads("*"), help="lists, or one .npz file"
    )
    for part in ("query", "database", "training"):
        parser.add_argument(
            f"--{part}",
            metavar="LIST",
            nargs="+",
            type=Reads(),
            default=[],
            help=f"lists of the {part} set, of any name",
        )
    parser.add_argument(
        "--images",
        metavar="FOLDER",
        type=Reads("*"),
        help="compare the images of the lists by content, too",
    )
    parser.add_argument(
        "--labels", metavar="FILE.npy", type=Reads(), help="labels of the rows, beside an .npz file"
    )
    parser.add_argument(
        "--items",
        metavar="FILE.npy",
        type=Reads(),
        help="items to compare by content, beside an .npz file",
    )
    parser.add_argument(
        "--by-file-name",
        action="store_true",
        help="an item is known by the last component of its path: for lists that name folders differently",
    )
    parser.add_argument("--text", action="store_true", help="print a short text instead of JSON")


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Print the report; 1 if there is a leak."""
    from tiebench.splits import check, lists

    named = {part: getattr(options, part) for part in check.PARTS if getattr(options, part)}
    arrays = [source for source in options.sources if Path(source).suffix == ".npz"]
    if arrays:
        if len(options.sources) > 1 or named or options.images or options.by_file_name:
            parser.error("an .npz file is a whole split: give no lists and no --images beside it")
        parts = lists.read_arrays(arrays[0], options.labels, options.items)
    else:
        if not options.sources and not named:
            parser.error("the following arguments are required: SOURCE")
        if options.labels or options.items:
            parser.error("--labels and --items belong to an .npz file")
        parts = lists.read_sources(options.sources, named, options.by_file_name)
    where = ", ".join(options.sources) or "the lists"
    with naming_values(where):
        if options.images:
            parts = lists.with_images(parts, options.images)
        report = check.check(parts)
    if not (arrays or options.by_file_name):
        for note in lists.other_folders(parts):
            print(f"note: {note}", file=sys.stderr)
    for leak in () if options.text else report["leaks"]:  # the text has them
        print(f"leak: {leak}", file=sys.stderr)
    status = 1 if report["leaks"] else 0
    return print_text(check.summary(report) if options.text else json.dumps(report, indent=2), status)
