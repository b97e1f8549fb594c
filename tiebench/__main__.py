"""Score codes from any program: python -m tiebench FILE.npz. See docs/metrics.md."""

import argparse
import json
import os
import sys
from pathlib import Path

import numpy as np

from tiebench import files, parts
from tiebench.exact import AP_AT_NORMALISERS
from tiebench.hamming import EqualLabels, SharedLabels, check_levels, check_packed, joint_histograms, pack
from tiebench.messages import one_line
from tiebench.scoring import score, score_histograms

DESCRIPTION = """\
Score binary codes with tie-aware ranking metrics; prints one JSON object.

FILE.npz holds `query` and `database`, either packed (uint8 (n, ceil(bits/8)) as numpy.packbits(bits, axis=1)
gives, with the integer `bits`) or unpacked ((n, bits) in {0, 1} or {-1, +1}); and `query_labels`,
`database_labels`: integers (n,), relevant means equal; or 0/1 (n, labels), relevant means at least one
shared label, and NDCG counts the shared labels.

Instead of a file, a folder of the same arrays as .npy files, of which only what is needed is read. A database
too large for one process is counted in parts, by any number of jobs, and scored from all of them, to the same
bits:

  python -m tiebench FOLDER --part 3/16 --histograms part3.npz
  python -m tiebench --merge part*.npz
"""
NEEDED = ("query", "database", "query_labels", "database_labels")


def read_arrays(file):
    """Name -> array of an .npz file, or, memory-mapped, of a folder of .npy files.

    Raises ValueError for what cannot be scored, OSError for a file that cannot be opened.
    """
    names = (*NEEDED, "bits")
    arrays = files.read_folder(file, names) if Path(file).is_dir() else files.read_npz(file, names)
    missing = [name for name in NEEDED if name not in arrays]
    if missing:
        raise ValueError(f"{file} lacks {', '.join(missing)}; it holds {', '.join(arrays) or 'none of them'}")
    for name in NEEDED:
        if arrays[name].ndim not in (1, 2):
            raise ValueError(
                f"{file}: {name} must have one or two dimensions, not shape {arrays[name].shape}"
            )
    return arrays


def read_codes(file, part=1, of=1):
    """Packed query and database codes, bits, affinity, and the number of items of the whole database.

    file: .npz file or folder of .npy files; part, of: which part of the database alone. Raises ValueError.
    """
    arrays = read_arrays(file)
    query, database, items = arrays["query"], arrays["database"], len(arrays["database"])
    if query.ndim != 2 or database.ndim != 2 or query.shape[1] != database.shape[1]:
        raise ValueError(
            f"{file}: query {query.shape} and database {database.shape} must be matrices of the same width"
        )
    if len(query) == 0 or items == 0:
        raise ValueError(f"{file}: query and database must each hold at least one code")
    for name in ("query", "database"):
        codes, labels = len(arrays[name]), len(arrays[f"{name}_labels"])
        if codes != labels:
            raise ValueError(f"{file}: there are {codes} {name} codes but {labels} {name} labels")
    labels = arrays["database_labels"]
    if of > 1:
        piece = parts.span(part, of, items)
        database, labels = database[piece], labels[piece]
    bits = _bits(file, arrays["bits"]) if "bits" in arrays else query.shape[1]
    packed = "bits" in arrays and query.dtype == np.uint8 and query.shape[1] == -(-bits // 8)
    if packed and bits == 1:  # one column either way: packed codes are 0 and 128
        packed = not (np.any(query == 1) or np.any(database == 1))
    if not packed and query.shape[1] != bits:
        raise ValueError(f"{file}: codes of width {query.shape[1]} are neither {bits} bits nor packed")
    codes = {"query": query, "database": database}
    try:
        for name, values in codes.items():
            codes[name] = check_packed(values if packed else pack(values, name), bits, name)
        affinity = _affinity(arrays["query_labels"], labels)
        check_levels(affinity.levels)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error
    return codes["query"], codes["database"], bits, affinity, items


def _bits(file, value):
    if value.size != 1 or value.dtype.kind not in "iuf" or not float(value.reshape(-1)[0]).is_integer():
        what = value.reshape(-1)[0] if value.size == 1 else f"{value.dtype} of shape {value.shape}"
        raise ValueError(f"{file}: bits must be one integer, not {what}")
    return int(value.reshape(-1)[0])


def _affinity(query, database):
    if query.ndim != database.ndim:
        raise ValueError(
            f"query_labels of shape {query.shape} and database_labels of shape {database.shape} must both be "
            "classes (n,), or both 0/1 (n, labels)"
        )
    return (EqualLabels if query.ndim == 1 else SharedLabels)(query, database)


def count_part(options):
    """Count one part of a database and write its joint histograms."""
    part, of = parts.parse(options.part)
    query, database, bits, affinity, items = read_codes(options.files[0], part, of)
    histograms = joint_histograms(query, database, bits, affinity, threads=options.threads)
    mark = parts.fingerprint(query, affinity.query)
    parts.save(options.histograms, histograms, part, of, items, mark)


def _positive(text):
    """A positive integer from the command line."""
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 2**31):
        raise argparse.ArgumentTypeError(f"must be a positive integer, not {text!r}")
    return int(text)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        "python -m tiebench", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", metavar="FILE.npz", nargs="+", help="codes, or with --merge the parts")
    parser.add_argument(
        "--at",
        metavar="K",
        type=_positive,
        action="append",
        default=[],
        help="also score the first K; repeatable",
    )
    parser.add_argument(
        "--ap-at-normaliser",
        choices=AP_AT_NORMALISERS,
        default="hits",
        help="what AP@K divides by: relevant items among the first K (hits, the default), min(K, relevant "
        "items) (min), or all relevant items (relevant)",
    )
    parser.add_argument("--per-query", metavar="OUT.npz", help="also write every metric per query")
    parser.add_argument(
        "--threads", type=_positive, default=1, help="threads to share the queries (default 1)"
    )
    parser.add_argument("--part", metavar="I/N", help="count only part I of N of the database; no scores yet")
    parser.add_argument("--histograms", metavar="OUT.npz", help="where --part writes what it counted")
    parser.add_argument("--merge", action="store_true", help="score from the files that --part wrote")
    options = parser.parse_args(arguments)
    if (options.part is None) != (options.histograms is None):
        parser.error("--part and --histograms go together")
    if options.merge and options.part is not None:
        parser.error("--merge takes what --part wrote: give one of them")
    if len(options.files) > 1 and not options.merge:
        parser.error(f"one file of codes at a time, not {len(options.files)}")
    try:
        if options.part is not None:
            count_part(options)
            return 0
        settings = {"at": tuple(dict.fromkeys(options.at)), "ap_at_normaliser": options.ap_at_normaliser}
        if options.merge:
            scores = score_histograms(parts.load_merged(options.files), **settings)
        else:
            *codes, _ = read_codes(options.files[0])
            scores = score(*codes, threads=options.threads, **settings)
        if options.per_query:
            files.write_npz(options.per_query, **scores.per_query)
    except (ValueError, OSError, MemoryError) as error:
        reason = "not enough memory: see --part" if isinstance(error, MemoryError) else one_line(error)
        print(f"error: {reason}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return 130
    try:
        print(json.dumps(scores.means, indent=2), flush=True)
    except OSError as error:
        print(f"error: standard output: {error.strerror}", file=sys.stderr)
        # What is left in the buffer would fail once more at the very end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
