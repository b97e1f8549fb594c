"""Score codes from any program: python -m evaluation FILE.npz. See docs/metrics.md."""

import argparse
import json
import sys
import zipfile

import numpy as np

from evaluation.exact import AP_AT_NORMALISERS
from evaluation.hamming import EqualLabels, SharedLabels, check_packed, pack
from evaluation.scoring import score

DESCRIPTION = """\
Score binary codes with tie-aware ranking metrics; prints one JSON object.

FILE.npz holds `query` and `database`, either packed (uint8 (n, ceil(bits/8)) as numpy.packbits(bits, axis=1)
gives, with the integer `bits`) or unpacked ((n, bits) in {0, 1} or {-1, +1}); and `query_labels`,
`database_labels`: integers (n,), relevant means equal; or 0/1 (n, labels), relevant means at least one
shared label, and NDCG counts the shared labels.
"""


def read_codes(file):
    """Packed query and database codes, bits and affinity of one .npz file. Raises ValueError."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, zipfile.BadZipFile, EOFError, KeyError, AttributeError) as error:
        raise ValueError(f"{file} is not a readable .npz file of plain arrays: {error}") from error
    needed = ("query", "database", "query_labels", "database_labels")
    missing = [name for name in needed if name not in arrays]
    if missing:
        raise ValueError(f"{file} lacks {', '.join(missing)}; it holds {', '.join(arrays) or 'nothing'}")
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
        return query, database, bits, EqualLabels(*labels)
    return query, database, bits, SharedLabels(*labels)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        "python -m evaluation", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", metavar="FILE.npz")
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
    options = parser.parse_args(arguments)
    try:
        query, database, bits, affinity = read_codes(options.file)
        scores = score(
            query,
            database,
            bits,
            affinity,
            at=tuple(dict.fromkeys(options.at)),
            ap_at_normaliser=options.ap_at_normaliser,
            threads=options.threads,
        )
        if options.per_query:
            np.savez(options.per_query, **scores.per_query)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(json.dumps(scores.means, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
