"""`tiebench score`: codes of a file to every metric; also databases in parts."""

import argparse
import json
import sys
import textwrap
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tiebench import files
from tiebench.command_line import Parser, Reads, Writes, word
from tiebench.commands import CODES, add_threads, positive, print_text
from tiebench.metric_table import METRICS
from tiebench.query_identity import PARTS
from tiebench.rankings.exact import AP_AT_NORMALISERS

if TYPE_CHECKING:  # loading the kernels takes time, and `tiebench --help` counts nothing
    from tiebench.affinities import EqualLabels, SharedLabels
    from tiebench.scoring import Scores

HELP = "score the codes of a file"
DESCRIPTION = """\
Score binary codes with tie-aware ranking metrics and print one JSON object.

FILE.npz holds
  query, database  unpacked (n, bits) in {0, 1} or {-1, +1}, or packed by
                   numpy.packbits(codes, axis=1): uint8 (n, ceil(bits/8)),
                   together with the integer `bits`
  query_labels,    classes (n,), integers or strings: relevant means equal;
  database_labels  or 0/1 (n, labels): relevant means at least one shared
                   label, and NDCG counts the shared labels

A folder of the same arrays as .npy files is read as well, memory-mapped.

A database too large for one process can be counted in parts, by any number of
jobs, and scored from all of them; the scores are the same to the last bit:

  tiebench score FOLDER --part 3/16 --histograms part3.npz
  tiebench score --merge part*.npz --at 1000

`tiebench score-parts` counts a database in many files, also on a cluster.
"""
EPILOG = textwrap.fill(f"metrics: {', '.join(METRICS)}; `tiebench metrics` describes them", 78)
OUT_OF_MEMORY = "not enough memory: see --part"
NEEDED = (*PARTS, "query_labels", "database_labels")
_SAVE_AS_NPZ = (
    "save the arrays first: numpy.savez('codes.npz', query=..., database=..., query_labels=..., "
    "database_labels=...)"
)


def read_arrays(
    file: str, needed: Sequence[str] = NEEDED, optional: Sequence[str] = (), hint: str = ""
) -> dict[str, np.ndarray]:
    """Name -> array of an .npz file, or, memory-mapped, of a folder of .npy files.

    needed: names of NEEDED that must be there; optional: names that are read where they are; hint: what a
    message says where labels alone are missing.

    Raises ValueError for what cannot be scored, OSError for a file that cannot be opened.
    """
    names = (*needed, *optional, "bits")
    if Path(file).is_dir():
        arrays = files.read_folder(file, names)
    else:
        if Path(file).is_file() and _is_other_format(file):
            raise ValueError(f"{file} is not an .npz file; {_SAVE_AS_NPZ}")
        arrays = files.read_npz(file, names)
    missing = [name for name in needed if name not in arrays]
    if missing:
        if "database" in arrays and arrays["database"].ndim == 0:
            raise ValueError(f"{file} is a part that --part wrote: score all parts with --merge")
        hint = hint if set(missing) <= set(NEEDED[2:]) else ""
        held = ", ".join(files.array_names(file)) or "no array"
        raise ValueError(f"{file} lacks {', '.join(missing)}; it holds {held}{hint}")
    for name in set(NEEDED) & set(arrays):
        if arrays[name].ndim not in (1, 2):
            raise ValueError(
                f"{file}: {name} must have one or two dimensions, not shape {arrays[name].shape}"
            )
    return arrays


def of_both_parts(arrays: Mapping[str, np.ndarray], kind: str) -> dict[str, np.ndarray]:
    """Part -> its array `<part>_<kind>`, {} without. Raises ValueError where one part alone has it."""
    found = {part: arrays[name] for part in PARTS if (name := f"{part}_{kind}") in arrays}
    if len(found) == 1:
        (lacking,) = set(PARTS) - set(found)
        raise ValueError(f"it lacks {lacking}_{kind}: give both parts, or none")
    return found


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
    affinity: "EqualLabels | SharedLabels"
    items: int


def read_labelled(options: argparse.Namespace, optional: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Arrays of `options.file` with labels: its own, or those that --split and --labels say."""
    if options.labels is None:
        hint = "; --split and --labels give labels by rows of a dataset, as of runs of the suite"
        return read_arrays(options.file, optional=optional, hint=hint)
    arrays = read_arrays(options.file, PARTS, optional)
    return arrays | rows_of(options.split, options.labels, {part: len(arrays[part]) for part in PARTS})


def rows_of(split: str, labels: str | None, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """query_items, database_items of a split, and the labels of these rows. sizes: of the parts."""
    from tiebench.values import check_form
    from tiebench.values import rows as row_numbers

    given = files.read_npz(split, tuple(sizes))
    rows = {}
    for part, size in sizes.items():
        if part not in given:
            raise ValueError(f"{split} lacks `{part}`, row numbers (n,)")
        with files.naming_values(split):
            rows[part] = row_numbers(given[part], part)
        if len(rows[part]) != size:
            raise ValueError(f"{split} has {len(rows[part])} rows of `{part}`, the codes are of {size}")
    found = {f"{part}_items": rows[part] for part in sizes}
    if labels is not None:
        of_all = files.read_array(labels)
        with files.naming_values(labels):
            check_form(of_all, "the array")
        for part in sizes:
            if rows[part].max(initial=-1) >= len(of_all):
                raise ValueError(f"{labels} of shape {of_all.shape} does not have all rows of {split}")
            found[f"{part}_labels"] = of_all[rows[part]]
    return found


def add_naming(parser: Parser) -> None:
    """Add the options of `rows_of`."""
    parser.add_argument(
        "--split",
        metavar="split.npz",
        type=Reads(),
        help="row numbers of the items in their dataset, query and database, as in "
        "resources/protocols/<protocol>/split.npz of the suite",
    )
    add_labels(parser)


def add_labels(parser: Parser) -> None:
    """Add the option that goes with --split."""
    parser.add_argument(
        "--labels",
        metavar="labels.npy",
        type=Reads(),
        help="with --split: the labels of the dataset, as in resources/datasets/<dataset>/labels.npy",
    )


def check_naming(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Refuse --labels without --split."""
    if options.labels is not None and options.split is None:
        parser.error("--labels goes with --split")


def to_codes(file: str, arrays: Mapping[str, np.ndarray], part: int = 1, of: int = 1) -> Codes:
    """Codes and labels of arrays that `read_labelled` has read from `file`. part, of: of which part of the
    database alone.

    Raises ValueError, one line that names the file.
    """
    from tiebench.codes.inputs import check_shapes, label_affinity, packed_codes
    from tiebench.counting import parts

    query, database, labels = arrays["query"], arrays["database"], arrays["database_labels"]
    items = len(database)
    with files.naming_values(file):
        check_shapes(query, database, arrays["query_labels"], labels)
        if of > 1 and items:
            piece = parts.span(part, of, items)
            database, labels = database[piece], labels[piece]
        packed = packed_codes(query, database, read_bits(arrays))
        return Codes(*packed, label_affinity(arrays["query_labels"], labels), items)


def read_bits(arrays: Mapping[str, np.ndarray]) -> int | None:
    """The number of bits that the arrays of a file give, None where they do not.

    Raises ValueError unless it is one integer, 1 to 1024.
    """
    if "bits" not in arrays:
        return None
    from tiebench.codes.packing import check_bits

    value = arrays["bits"]
    # MATLAB saves a number as a matrix of one row and one column.
    return check_bits(value.reshape(-1)[0] if value.size == 1 else value)


def count_part(options: argparse.Namespace) -> None:
    """Count one part of a database and write its joint histograms."""
    from tiebench.counting import parts
    from tiebench.counting.histograms import joint_histograms

    part, of = parts.parse(options.part)
    codes = to_codes(options.file, read_labelled(options), part, of)
    histograms = joint_histograms(
        codes.query, codes.database, codes.bits, codes.affinity, threads=options.threads
    )
    mark = parts.fingerprint(codes.query, codes.affinity.query)
    parts.save(options.histograms, histograms, part, of, codes.items, mark)


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    parser.add_argument(
        "files", metavar="FILE.npz", nargs="+", type=CODES, help="codes and labels; with --merge, parts"
    )
    add_naming(parser)
    add_scoring_options(parser)
    add_threads(parser)
    parser.add_argument(
        "--order",
        choices=("file",),
        help="also print <metric>_in_file_order, what a program reports that breaks ties by position in the "
        "database; a line on standard error warns where that is outside the spread of random orders",
    )
    parser.add_argument(
        "--prefixes",
        metavar="B,B,…",
        type=_positives,
        help="score the first B bits of the codes instead, for each B of a list such as 64,128,256: one "
        "object of scores for each",
    )
    parser.add_argument(
        "--part", metavar="I/N", type=word, help="count only part I of N of the database and print no scores"
    )
    parser.add_argument(
        "--histograms", metavar="OUT.npz", type=Writes(), help="file that --part writes its counts to"
    )
    parser.add_argument("--merge", action="store_true", help="score from the files that --part wrote")


def add_scoring_options(parser: Parser) -> None:
    """Add the options of what is computed from joint histograms."""
    parser.add_argument(
        "--at",
        metavar="K,K,…",
        type=_positives,
        action="extend",
        default=[],
        help="also score the first K items, for each K of a list such as 100,1000",
    )
    parser.add_argument(
        "--ap-at-normaliser",
        choices=AP_AT_NORMALISERS,
        default="hits",
        help="what AP@K divides by: relevant items among the first K (hits, the default), min(K, relevant "
        "items) (min), or all relevant items (relevant)",
    )
    parser.add_argument(
        "--per-query", metavar="OUT.npz", type=Writes(), help="also write every metric per query"
    )


def scoring_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Arguments of `score_histograms` from these options."""
    return {"at": tuple(dict.fromkeys(options.at)), "ap_at_normaliser": options.ap_at_normaliser}


def print_scores(scores: "Scores", options: argparse.Namespace) -> int:
    """Print the means, and write the scores of each query where they are asked for."""
    if options.per_query:
        files.write_npz(options.per_query, **scores.per_query)
    return print_text(json.dumps(scores.means, indent=2))


def _positives(text):
    """Positive integers from the command line, separated by commas."""
    return [positive(part) for part in text.split(",")]


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Print the scores, or write the counts of a part."""
    if (options.part is None) != (options.histograms is None):
        parser.error("--part and --histograms go together")
    if options.merge and options.part is not None:
        parser.error("--merge takes what --part wrote: give one of them")
    if len(options.files) > 1 and not options.merge:
        parser.error(f"one file of codes at a time, not {len(options.files)}")
    if options.prefixes and (options.merge or options.part or options.per_query):
        parser.error("--prefixes scores whole files and their means: leave out --part, --merge, --per-query")
    if options.order and (options.prefixes or options.merge or options.part):
        parser.error("--order needs the codes of the whole file: leave out --part, --merge, --prefixes")
    if options.split and options.merge:
        parser.error("--split is of codes: leave out --merge")
    if options.split and options.labels is None:
        parser.error("--split goes with --labels")
    check_naming(options, parser)
    options.file = options.files[0]
    if options.part is not None:
        if options.at or options.per_query or options.ap_at_normaliser != "hits":
            parser.error("--part writes counts: give --at, --ap-at-normaliser and --per-query to --merge")
        count_part(options)
        return 0
    from tiebench import scoring
    from tiebench.counting import parts

    settings = scoring_settings(options)
    if options.merge:
        scores = scoring.score_histograms(parts.load_merged(options.files), **settings)
        return print_scores(scores, options)
    codes = to_codes(options.file, read_labelled(options))
    settings["threads"] = options.threads
    if options.prefixes:
        from tiebench.prefixes import score_prefixes

        with files.naming_values(options.file):
            found = score_prefixes(*codes[:4], options.prefixes, **settings)
        return print_text(json.dumps({prefix: one.means for prefix, one in found.items()}, indent=2))
    scores = scoring.score_codes(*codes[:4], order=options.order, **settings)
    if options.order and (fault := scoring.fault_of_order(scores, *codes[:4], **settings)):
        print(f"warning: {options.file}: {fault}", file=sys.stderr)
    return print_scores(scores, options)
