"""The commands of `tiebench`, one file each, found by their files: score.py is `tiebench score`.

An underscore in a file's name is a hyphen in the command's. A file has

    HELP          one line for `tiebench --help`
    DESCRIPTION   what `tiebench COMMAND --help` says first
    OUT_OF_MEMORY (optional) the message where memory runs out
    EPILOG        (optional) what `tiebench COMMAND --help` says last
    add_arguments(parser)       adds the options to a `command_line.Parser`: one that names a path has
                                `type=Reads()` or `type=Writes()`, any other text `type=word`
    run(options, parser) -> int does the work and returns the exit status; `parser.error(text)` refuses a
                                combination of options, ValueError and OSError become one line

The first three are literals: only the command that is asked for is imported.
"""

import argparse
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from tiebench.command_line import Parser, Reads
from tiebench.discovery import Kind
from tiebench.values import LARGEST_CUTOFF

KIND = Kind(
    "command",
    __name__,
    Path(__file__).parent,
    {"help": str, "description": str, "out_of_memory": "not enough memory"},
    ("add_arguments", "run"),
    hyphens=True,
)
CODES = Reads("*.npy")  # an .npz file, or a folder of .npy files


def positive(text: str) -> int:
    """A positive integer from the command line. Raises argparse.ArgumentTypeError."""
    if not (text.isascii() and text.isdigit() and text.strip("0")):
        raise argparse.ArgumentTypeError(f"must be a positive integer, not {text!r}")
    if len(text.lstrip("0")) > len(str(LARGEST_CUTOFF)):
        raise argparse.ArgumentTypeError(
            f"must be a positive integer of at most {LARGEST_CUTOFF}, not {text!r}"
        )
    return int(text)


def radius(text: str) -> int:
    """A Hamming radius from the command line. Raises argparse.ArgumentTypeError."""
    return 0 if text == "0" else positive(text)


def add_threads(parser: Parser) -> None:
    """Add the option of commands that count."""
    parser.add_argument(
        "--threads", type=positive, default=1, help="threads that share the queries (default 1)"
    )


def print_text(text: str, status: int = 0) -> int:
    """Print to standard output: `status`, or 1, with a line on standard error, if that is not possible."""
    return print_lines([text], status)


def print_lines(lines: Iterable[str], status: int = 0) -> int:
    """`print_text` of each, up to the first that cannot be printed.

    A reader that has enough, say `head`, is no error.
    """
    for line in lines:
        try:
            print(line, flush=True)
        except OSError as error:
            # What is left in the buffer would fail once more at the very end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if isinstance(error, BrokenPipeError):
                return status
            print(f"error: standard output: {error.strerror}", file=sys.stderr)
            return 1
    return status
