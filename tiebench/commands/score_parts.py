"""`tiebench score-parts`: a database in many files, counted here, by processes or by a Dask cluster."""

import argparse
import logging
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tiebench.command_line import Parser, Reads, Writes, word
from tiebench.commands import CODES, positive
from tiebench.commands.score import (
    add_scoring_options,
    print_scores,
    read_arrays,
    read_bits,
    scoring_settings,
)
from tiebench.counting.part_files import NAMES

if TYPE_CHECKING:
    from distributed import Client

    from tiebench.counting.distributed import Progress

HELP = "score codes against a database in many files, on one machine or on a Dask cluster"
DESCRIPTION = """\
Count a database that lies in many files, score the queries and print one JSON
object: to the last bit the one that `tiebench score` prints of the same
codes.

FILE is a path, a URL such as s3://bucket/codes-0001.parquet, or a pattern with
* in quotation marks:
  .npz      the arrays `database`, packed codes uint8 (n, ceil(bits/8)), and
            `database_labels`
  .parquet  columns of these names: codes are bytes or lists of uint8; several
            labels are lists of 0 and 1
  .zarr     a group of arrays of these names
  .npy      codes; --labels names the .npy files of their labels, alike or in
            the same order

Parquet needs pyarrow, Zarr zarr, a URL fsspec and the package of its storage
(s3fs, gcsfs, adlfs), and --workers and --scheduler need distributed.
Credentials and addresses of storage come from the environment of each worker,
such as AWS_PROFILE and AWS_ENDPOINT_URL.

  tiebench score-parts 's3://bucket/codes-*.parquet' --queries queries.npz \\
      --workers 8 --keep counts
  tiebench score-parts 's3://bucket/codes-*.parquet' --queries queries.npz \\
      --scheduler tcp://10.0.0.1:8786
"""
OUT_OF_MEMORY = "not enough memory: use smaller parts, --part-items"
_SECONDS = 10.0  # between two lines of progress that is not on a terminal


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    parser.add_argument(
        "files", metavar="FILE", nargs="+", type=Reads("*"), help="codes and labels of the database"
    )
    parser.add_argument(
        "--queries",
        metavar="FILE.npz",
        type=CODES,
        required=True,
        help="`query`, `query_labels`, and `bits` of packed codes; an .npz file, or a folder of .npy files",
    )
    parser.add_argument(
        "--labels",
        metavar="FILE.npy",
        type=Reads(),
        action="append",
        default=[],
        help="labels of codes in .npy files: a path, a URL or a pattern; repeat it for several",
    )
    parser.add_argument(
        "--names",
        metavar="CODES,LABELS",
        type=_names,
        default=NAMES,
        help=f"names of the arrays or columns (default {','.join(NAMES)})",
    )
    add_scoring_options(parser)
    parser.add_argument(
        "--workers", metavar="N", type=positive, help="count in N processes of this machine, by Dask"
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        type=word,
        help="count on the workers of this Dask scheduler, tcp://host:8786",
    )
    parser.add_argument(
        "--keep",
        metavar="FOLDER",
        type=Writes(folder=True),
        help="keep the counts of finished parts here: the same command then reads only the others",
    )
    parser.add_argument(
        "--part-items",
        metavar="N",
        type=positive,
        default=1 << 23,
        help="cut files into parts of at most N items, where their format allows (default %(default)s)",
    )
    parser.add_argument("--quiet", action="store_true", help="print no progress")


def _names(text):
    """Two names from the command line."""
    names = tuple(text.split(","))
    if len(names) != 2 or not all(names):
        raise argparse.ArgumentTypeError(f"must be two names such as {','.join(NAMES)}, not {text!r}")
    return names


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Print the scores."""
    if options.workers and options.scheduler:
        parser.error("--workers starts processes here, --scheduler uses a running cluster: give one of them")
    from tiebench.counting.distributed import count_parts
    from tiebench.scoring import score_histograms

    if "://" in options.queries:
        raise ValueError(f"--queries must be a file or folder of this machine, not {options.queries}")
    arrays = read_arrays(options.queries, ("query", "query_labels"))
    with _client(options) as client:
        histograms = count_parts(
            arrays["query"],
            arrays["query_labels"],
            options.files,
            read_bits(arrays),
            database_labels=options.labels,
            names=options.names,
            client=client,
            keep=options.keep,
            part_items=options.part_items,
            progress=None if options.quiet else _Lines(),
        )
    return print_scores(score_histograms(histograms, **scoring_settings(options)), options)


@contextmanager
def _client(options: argparse.Namespace) -> "Iterator[Client | None]":
    """A client of the cluster that the options ask for, or None."""
    if not (options.workers or options.scheduler):
        yield None
        return
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        asked = "--workers" if options.workers else "--scheduler"
        raise ValueError(f"{asked} needs Dask: pip install distributed") from error
    if options.scheduler:
        with Client(options.scheduler) as client:
            if not client.scheduler_info()["workers"]:
                raise ValueError(f"{options.scheduler}: the scheduler has no workers")
            yield client
        return
    # Workers inherit this: Ctrl-C reaches them too, and is for the process that ends them.
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        cluster = LocalCluster(
            n_workers=options.workers,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",  # a free port: the usual one is that of another cluster
            silence_logs=logging.CRITICAL + 1,  # tracebacks of errors that end in one line
        )
    finally:
        signal.signal(signal.SIGINT, handler)
    with cluster, Client(cluster) as client:
        yield client


class _Lines:
    """Progress on standard error: one line that is written again, or, in a file, one every ten seconds."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._next = 0.0 if self._terminal else time.monotonic() + _SECONDS

    def __call__(self, now: "Progress") -> None:
        last = now.parts == now.of_parts
        if time.monotonic() < self._next and not last:
            return
        self._next = time.monotonic() + (0.2 if self._terminal else _SECONDS)
        kept = f", {now.kept:,} of them kept from before" if now.kept else ""
        text = (
            f"counted {now.parts:,} of {now.of_parts:,} parts{kept}: {now.items:,} of {now.of_items:,} items"
        )
        end = "\n" if last or not self._terminal else ""
        print(f"\r{text}" if self._terminal else text, end=end, file=sys.stderr, flush=True)
