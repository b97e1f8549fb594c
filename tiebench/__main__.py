"""The command `tiebench`, also `python -m tiebench`. See docs/use-the-library.md."""

import argparse
import json
import os
import sys
import textwrap
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np

from tiebench import __version__, files, parts
from tiebench.exact import AP_AT_NORMALISERS
from tiebench.hamming import EqualLabels, SharedLabels, joint_histograms
from tiebench.inputs import check_shapes, label_affinity, packed_codes
from tiebench.messages import did_you_mean, one_line, shorten
from tiebench.metrics import METRICS
from tiebench.scoring import score_codes, score_histograms

DESCRIPTION = "Tie-aware ranking metrics of binary codes."
SCORE_DESCRIPTION = """\
Score binary codes with tie-aware ranking metrics and print one JSON object.

FILE.npz holds
  query, database   unpacked (n, bits) in {0, 1} or {-1, +1}, or packed by numpy.packbits(codes, axis=1):
                    uint8 (n, ceil(bits/8)), together with the integer `bits`
  query_labels,     classes (n,), integers or strings: relevant means equal; or 0/1 (n, labels): relevant
  database_labels   means at least one shared label, and NDCG counts the shared labels

A folder of the same arrays as .npy files is read as well, memory-mapped.

A database too large for one process can be counted in parts, by any number of jobs, and scored from all of
them; the scores are the same to the last bit:

  tiebench score FOLDER --part 3/16 --histograms part3.npz
  tiebench score --merge part*.npz --at 1000
"""
SCORE_EPILOG = "metrics: " + ", ".join(METRICS) + "; `tiebench metrics` describes them"
NEEDED = ("query", "database", "query_labels", "database_labels")
_SAVE_AS_NPZ = (
    "save the arrays first: numpy.savez('codes.npz', query=..., database=..., query_labels=..., "
    "database_labels=...)"
)


def read_arrays(file: str) -> dict[str, np.ndarray]:
    """Name -> array of an .npz file, or, memory-mapped, of a folder of .npy files.

    Raises ValueError for what cannot be scored, OSError for a file that cannot be opened.
    """
    names = (*NEEDED, "bits")
    if Path(file).is_dir():
        arrays = files.read_folder(file, names)
    else:
        if Path(file).is_file() and _is_other_format(file):
            raise ValueError(f"{file} is not an .npz file; {_SAVE_AS_NPZ}")
        arrays = files.read_npz(file, names)
    missing = [name for name in NEEDED if name not in arrays]
    if missing:
        raise ValueError(f"{file} lacks {', '.join(missing)}; it holds {', '.join(arrays) or 'none of them'}")
    for name in NEEDED:
        if arrays[name].ndim not in (1, 2):
            raise ValueError(
                f"{file}: {name} must have one or two dimensions, not shape {arrays[name].shape}"
            )
    return arrays


def _is_other_format(file):
    """Whether a file is of another kind than .npz by its name, or an archive that torch.save wrote."""
    if Path(file).suffix.lower() in (".npz", ""):
        return False
    if not zipfile.is_zipfile(file):
        return True
    with zipfile.ZipFile(file) as archive:
        return not any(name.endswith(".npy") for name in archive.namelist())


class Codes(NamedTuple):
    """What a file holds: packed query and database codes, bits, affinity, items of the whole database."""

    query: np.ndarray
    database: np.ndarray
    bits: int
    affinity: EqualLabels | SharedLabels
    items: int


def read_codes(file: str, part: int = 1, of: int = 1) -> Codes:
    """Codes and labels of an .npz file or a folder of .npy files.

    part, of: which part of the database alone. Raises ValueError, one line that names the file.
    """
    arrays = read_arrays(file)
    query, database, labels = arrays["query"], arrays["database"], arrays["database_labels"]
    items = len(database)
    try:
        check_shapes(query, database, arrays["query_labels"], labels)
        if of > 1 and items:
            piece = parts.span(part, of, items)
            database, labels = database[piece], labels[piece]
        bits = _bits(arrays["bits"]) if "bits" in arrays else None
        packed = packed_codes(query, database, bits)
        return Codes(*packed, label_affinity(arrays["query_labels"], labels), items)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error


def _bits(value):
    if value.size != 1 or value.dtype.kind not in "iuf" or not float(value.reshape(-1)[0]).is_integer():
        what = value.reshape(-1)[0] if value.size == 1 else f"{value.dtype} of shape {value.shape}"
        raise ValueError(f"bits must be one integer, not {what}")
    return int(value.reshape(-1)[0])


def count_part(options: argparse.Namespace) -> None:
    """Count one part of a database and write its joint histograms."""
    part, of = parts.parse(options.part)
    codes = read_codes(options.files[0], part, of)
    histograms = joint_histograms(
        codes.query, codes.database, codes.bits, codes.affinity, threads=options.threads
    )
    mark = parts.fingerprint(codes.query, codes.affinity.query)
    parts.save(options.histograms, histograms, part, of, codes.items, mark)


def _positive(text):
    """A positive integer from the command line."""
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 2**31):
        raise argparse.ArgumentTypeError(f"must be a positive integer, not {text!r}")
    return int(text)


COMMANDS = ("score", "metrics")


class _Parser(argparse.ArgumentParser):
    """Says what to type where the command is missing: the most common mistake."""

    words: Sequence[str] = ()

    def error(self, message: str) -> NoReturn:
        if "argument COMMAND: invalid choice" in message or "are required: COMMAND" in message:
            words = [word for word in self.words if not word.startswith("-")]
            file = next((word for word in words if Path(word).suffix or Path(word).exists()), None)
            if file is not None:
                message = f"the command is missing: tiebench score {shorten(file)}"
            elif words:
                message = f"there is no command {shorten(words[0])!r}{did_you_mean(words[0], COMMANDS)}"
            else:
                message = "the command is missing: tiebench score FILE.npz, or tiebench metrics"
        super().error(message)


def _parser():
    parser = _Parser("tiebench", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"tiebench {__version__}")
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, parser_class=argparse.ArgumentParser
    )
    scoring = commands.add_parser(
        "score",
        help="score the codes of a file",
        description=SCORE_DESCRIPTION,
        epilog=SCORE_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    scoring.add_argument("files", metavar="FILE.npz", nargs="+", help="codes and labels; with --merge, parts")
    scoring.add_argument(
        "--at",
        metavar="K",
        type=_positive,
        action="append",
        default=[],
        help="also score the first K items; repeat it for several K",
    )
    scoring.add_argument(
        "--ap-at-normaliser",
        choices=AP_AT_NORMALISERS,
        default="hits",
        help="what AP@K divides by: relevant items among the first K (hits, the default), min(K, relevant "
        "items) (min), or all relevant items (relevant)",
    )
    scoring.add_argument("--per-query", metavar="OUT.npz", help="also write every metric per query")
    scoring.add_argument(
        "--threads", type=_positive, default=1, help="threads that share the queries (default 1)"
    )
    scoring.add_argument(
        "--part", metavar="I/N", help="count only part I of N of the database and print no scores"
    )
    scoring.add_argument("--histograms", metavar="OUT.npz", help="file that --part writes its counts to")
    scoring.add_argument("--merge", action="store_true", help="score from the files that --part wrote")
    commands.add_parser(
        "metrics", help="list the metrics", description="List every metric, its bounds and its source."
    )
    return parser, scoring


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status: 0, 1 after an error in what was given, 130 on Ctrl-C."""
    parser, scoring = _parser()
    parser.words = sys.argv[1:] if arguments is None else arguments
    options = parser.parse_args(arguments)
    if options.command == "metrics":
        return _print(_list_of_metrics())
    if (options.part is None) != (options.histograms is None):
        scoring.error("--part and --histograms go together")
    if options.merge and options.part is not None:
        scoring.error("--merge takes what --part wrote: give one of them")
    if len(options.files) > 1 and not options.merge:
        scoring.error(f"one file of codes at a time, not {len(options.files)}")
    try:
        if options.part is not None:
            count_part(options)
            return 0
        settings = {"at": tuple(dict.fromkeys(options.at)), "ap_at_normaliser": options.ap_at_normaliser}
        if options.merge:
            scores = score_histograms(parts.load_merged(options.files), **settings)
        else:
            codes = read_codes(options.files[0])
            scores = score_codes(*codes[:4], threads=options.threads, **settings)
        if options.per_query:
            files.write_npz(options.per_query, **scores.per_query)
    except (ValueError, OSError, MemoryError) as error:
        reason = "not enough memory: see --part" if isinstance(error, MemoryError) else one_line(error)
        print(f"error: {reason}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return 130
    return _print(json.dumps(scores.means, indent=2))


def _list_of_metrics():
    lines = []
    for metric in METRICS.values():
        value = {None: None, "cutoff": "K", "radius": "R"}[metric.parameter]
        better = "higher" if metric.higher_is_better else "lower"
        also = f"; also {metric.name}_min and {metric.name}_max over the orders of tied items"
        text = f"{metric.description.format(value)} {metric.low:g} to {metric.high:g}, {better} is better"
        lines += [metric.name, *textwrap.wrap(text + (also if metric.has_range else "") + ".", 100)]
        lines += [f"Source: {metric.source}.", ""]
    return "\n".join(line if line in METRICS or not line else f"    {line}" for line in lines[:-1])


def _print(text):
    try:
        print(text, flush=True)
    except OSError as error:
        print(f"error: standard output: {error.strerror}", file=sys.stderr)
        # What is left in the buffer would fail once more at the very end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
