"""Score codes from any program: python -m evaluation FILE.npz. See docs/metrics.md."""

import argparse
import json
import sys
import zipfile
from pathlib import Path

import numpy as np

from evaluation import parts
from evaluation.exact import AP_AT_NORMALISERS
from evaluation.hamming import EqualLabels, SharedLabels, check_packed, joint_histograms, pack
from evaluation.scoring import score, score_histograms

DESCRIPTION = """\
Score binary codes with tie-aware ranking metrics; prints one JSON object.

FILE.npz holds `query` and `database`, either packed (uint8 (n, ceil(bits/8)) as numpy.packbits(bits, axis=1)
gives, with the integer `bits`) or unpacked ((n, bits) in {0, 1} or {-1, +1}); and `query_labels`,
`database_labels`: integers (n,), relevant means equal; or 0/1 (n, labels), relevant means at least one
shared label, and NDCG counts the shared labels.

Instead of a file, a folder of the same arrays as .npy files, of which only what is needed is read. A database
too large for one process is counted in parts, by any number of jobs, and scored from all of them, to the same
bits:

  python -m evaluation FOLDER --part 3/16 --histograms part3.npz
  python -m evaluation --merge part*.npz
"""
NEEDED = ("query", "database", "query_labels", "database_labels")


def read_arrays(file):
    """Name -> array of an .npz file, or, memory-mapped, of a folder of .npy files. Raises ValueError."""
    folder = Path(file).is_dir()
    try:
        if folder:
            kept = [path for path in sorted(Path(file).glob("*.npy")) if path.stem in (*NEEDED, "bits")]
            arrays = {path.stem: np.load(path, mmap_mode="r", allow_pickle=False) for path in kept}
        else:
            with np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
    except (ValueError, zipfile.BadZipFile, EOFError, KeyError, AttributeError) as error:
        what = "a folder of readable .npy files" if folder else "a readable .npz file of plain arrays"
        raise ValueError(f"{file} is not {what}: {error}") from error
    missing = [name for name in NEEDED if name not in arrays]
    if missing:
        raise ValueError(f"{file} lacks {', '.join(missing)}; it holds {', '.join(arrays) or 'nothing'}")
    return arrays


def read_codes(file, part=1, of=1):
    """Packed query and database codes, bits, affinity, and the number of items of the whole database.

    file: .npz file or folder of .npy files; part, of: which part of the database alone. Raises ValueError.
    """
    arrays = read_arrays(file)
    items = len(arrays["database"])
    if len(arrays["database_labels"]) != items:
        labels = len(arrays["database_labels"])
        raise ValueError(f"{file}: there are {items} database codes but {labels} database labels")
    if of > 1:
        piece = parts.span(part, of, items)
        arrays |= {name: arrays[name][piece] for name in ("database", "database_labels")}
    query, database = arrays["query"], arrays["database"]
    if query.ndim != 2 or database.ndim != 2 or query.shape[1] != database.shape[1]:
        raise ValueError(
            f"{file}: query {query.shape} and database {database.shape} must be matrices of the same width"
        )
    if len(query) == 0 or len(database) == 0:
        raise ValueError(f"{file}: query and database must each hold at least one code")
    if "bits" in arrays and arrays["bits"].size != 1:
        raise ValueError(f"{file}: bits must be one integer")
    bits = int(arrays["bits"].reshape(-1)[0]) if "bits" in arrays else query.shape[1]
    packed = "bits" in arrays and query.dtype == np.uint8 and query.shape[1] == -(-bits // 8)
    if packed and bits == 1:  # one column either way: packed codes are 0 and 128
        packed = not (np.any(query == 1) or np.any(database == 1))
    if not packed:
        if query.shape[1] != bits:
            raise ValueError(f"{file}: codes of width {query.shape[1]} are neither {bits} bits nor packed")
        query, database = pack(query), pack(database)
    query = check_packed(query, bits, f"{file}: query")
    database = check_packed(database, bits, f"{file}: database")
    labels = arrays["query_labels"], arrays["database_labels"]
    if labels[0].ndim == 1 and labels[1].ndim == 1:
        return query, database, bits, EqualLabels(*labels), items
    return query, database, bits, SharedLabels(*labels), items


def count_part(options):
    """Count one part of a database and write its joint histograms."""
    part, of = parts.parse(options.part)
    query, database, bits, affinity, items = read_codes(options.files[0], part, of)
    histograms = joint_histograms(query, database, bits, affinity, threads=options.threads)
    mark = parts.fingerprint(query, affinity.query)
    parts.save(options.histograms, histograms, part, of, items, mark)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        "python -m evaluation", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", metavar="FILE.npz", nargs="+", help="codes, or with --merge the parts")
    parser.add_argument(
        "--at", metavar="K", type=int, action="append", default=[], help="also score the first K; repeatable"
    )
    parser.add_argument(
        "--ap-at-normaliser",
        choices=AP_AT_NORMALISERS,
        default="hits",
        help="what AP@K divides by: relevant items among the first K (hits, the default), min(K, relevant "
        "items) (min), or all relevant items (relevant)",
    )
    parser.add_argument("--per-query", metavar="OUT.npz", help="also write every metric per query")
    parser.add_argument("--threads", type=int, default=1, help="threads to share the queries (default 1)")
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
            np.savez(options.per_query, **scores.per_query)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(json.dumps(scores.means, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
