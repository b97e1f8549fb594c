"""`tiebench export`: the codes of a file for other programs."""

import argparse
import json
from typing import NamedTuple

import numpy as np

from tiebench import files
from tiebench.command_line import Parser, Writes, word
from tiebench.commands import CODES, positive, print_text, radius
from tiebench.commands.score import add_naming, check_naming, of_both_parts, read_arrays, read_bits, rows_of
from tiebench.query_identity import PARTS

HELP = "write the codes of a file for FAISS, PostgreSQL, TREC tools or ranx"
DESCRIPTION = """\
Write the codes of a file in the form of another program, and print one JSON
object of what was written.

  --to faiss  the database as a FAISS index, IndexBinaryFlat     codes.faiss
  --to sql    both as bit strings, a script for psql             codes.sql
  --to trec   each query's neighbours, scored minus the distance run.txt
  --to ranx   the same as JSON                                   run.json

FILE.npz, or a folder of .npy files, holds query and database codes as for
`tiebench score`, with labels or without. Items are called by query_ids and
database_ids, integers or strings, if the file has them, else by query_items
and database_items, row numbers of a dataset, else by their row in the file.
"""
EPILOG = """\
A run lists all items of every query unless --neighbours or --radius says
less. The tie at place K is listed whole, so that metrics of the first K items
are exact; with --ties cut, its first items in the order of the file are
listed, K in all.

  tiebench export codes.npz --to trec --output run.txt --qrels qrels.txt
  tiebench score-run run.txt qrels.txt --measures ap,ndcg --gains exponential
"""
FORMS = ("faiss", "sql", "trec", "ranx")
OPTIONAL = tuple(f"{part}_{kind}" for kind in ("labels", "ids", "items") for part in PARTS)


class NamedCodes(NamedTuple):
    """What a file holds: packed codes, bits, names and labels (None without) of both parts, and where the
    names are from: "ids", "items" or "rows".
    """

    query: np.ndarray
    database: np.ndarray
    bits: int
    ids: dict[str, np.ndarray]
    labels: dict[str, np.ndarray] | None
    named_by: str


def read_named(file: str, split: str | None = None, labels: str | None = None) -> NamedCodes:
    """Codes of a file with names and labels of their items.

    split: an .npz file with `query` and `database`, the row numbers of the items in their dataset; labels: an
    .npy file of the labels of that dataset. Raises ValueError, one line that names the file.
    """
    from tiebench.codes.inputs import check_shapes, packed_codes
    from tiebench.search.export import check_ids
    from tiebench.values import labels as labels_of

    arrays = read_arrays(file, PARTS, optional=OPTIONAL)
    if split is not None:
        arrays |= rows_of(split, labels, {part: len(arrays[part]) for part in PARTS})
    query, database = (arrays[part] for part in PARTS)
    with files.naming_values(file):
        check_shapes(query, database, *(arrays.get(f"{part}_labels") for part in PARTS))
        codes = packed_codes(query, database, read_bits(arrays))
        given = {kind: of_both_parts(arrays, kind) for kind in ("labels", "ids", "items")}
        named_by = next((kind for kind in ("ids", "items") if given[kind]), "rows")
        names = given.get(named_by, {})
        ids = {part: check_ids(names.get(part), len(arrays[part]), f"{part}_{named_by}") for part in PARTS}
        found = {part: labels_of(its, f"{part}_labels") for part, its in given["labels"].items()}
    return NamedCodes(*codes, ids, found or None, named_by)


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    parser.add_argument("file", metavar="FILE.npz", type=CODES, help="codes, with or without labels")
    parser.add_argument("--to", choices=FORMS, required=True, help="the form")
    parser.add_argument(
        "--output", metavar="OUT", type=Writes(), required=True, help="the file to write; .gz compresses text"
    )
    add_naming(parser)
    parser.add_argument("--table", metavar="NAME", type=word, help="sql: name of the table (default codes)")
    parser.add_argument(
        "--inserts", action="store_true", help="sql: INSERT statements, for any client, instead of COPY"
    )
    parser.add_argument(
        "--neighbours", metavar="K", type=positive, help="trec, ranx: the K nearest items of each query"
    )
    parser.add_argument(
        "--radius", metavar="R", type=radius, help="trec, ranx: the items within this Hamming distance"
    )
    parser.add_argument(
        "--ties",
        choices=("whole", "cut"),
        help="with --neighbours: list the tie at place K whole (the default), or cut it",
    )
    parser.add_argument(
        "--qrels",
        metavar="OUT",
        type=Writes(),
        help="trec, ranx: also write the judgements that the labels make",
    )
    parser.add_argument(
        "--tag", metavar="WORD", type=word, help="trec: last column of the run (default tiebench)"
    )


def check_reach(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Refuse options of neighbours that exclude each other, and --labels without --split."""
    if options.neighbours is not None and options.radius is not None:
        parser.error("--neighbours and --radius exclude each other")
    if options.ties is not None and options.neighbours is None:
        parser.error("--ties goes with --neighbours")
    check_naming(options, parser)


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Write the file and print what it holds."""
    check_reach(options, parser)
    runs = ("trec", "ranx")
    for name, forms in (
        ("table", ("sql",)),
        ("inserts", ("sql",)),
        ("neighbours", runs),
        ("radius", runs),
        ("qrels", runs),
        ("tag", ("trec",)),
    ):
        if getattr(options, name) not in (None, False) and options.to not in forms:
            parser.error(f"--{name} does not go with --to {options.to}")
    for name, path in (("output", options.output), ("qrels", options.qrels)):
        if options.to == "ranx" and path is not None and not str(path).endswith(".json"):
            parser.error(f"--{name}: ranx reads JSON from files that end in .json, not {path}")
    if options.table is not None:
        from tiebench.search.export import check_table

        check_table(options.table)
    codes = read_named(options.file, options.split, options.labels)
    if options.qrels and codes.labels is None:
        parser.error(f"--qrels: {options.file} has no labels; give --split and --labels")
    found = {
        "file": options.output,
        "form": options.to,
        "bits": codes.bits,
        "queries": len(codes.query),
        "database": len(codes.database),
        "ids": codes.named_by,
    }
    with files.naming_values(options.file):
        found |= _written(options, codes)
    return print_text(json.dumps(found, indent=2))


def _written(options, codes):
    """Write the file; what else there is to say of it."""
    from tiebench.search import export

    if options.to == "faiss":
        ids = None if codes.named_by == "rows" else codes.ids["database"]
        export.write_faiss(options.output, codes.database, codes.bits, ids)
        return {"index_bits": codes.database.shape[1] * 8}
    if options.to == "sql":
        table = "codes" if options.table is None else options.table
        named = {f"{part}_ids": codes.ids[part] for part in PARTS}
        named |= {f"{part}_labels": its for part, its in (codes.labels or {}).items()}
        given = codes.query, codes.database, codes.bits
        export.write_sql(options.output, *given, **named, table=table, inserts=options.inserts)
        return {"tables": [table, f"{table}_query"], "labels": codes.labels is not None}
    return _run_written(options, codes)


def _run_written(options, codes):
    from tiebench.codes.inputs import label_affinity
    from tiebench.search import export
    from tiebench.search.neighbours import nearest, within

    given = codes.query, codes.database, codes.bits
    if options.radius is not None:
        found = within(*given, options.radius)
    else:
        most = options.neighbours or len(codes.database)
        found = nearest(*given, most, whole_ties=options.ties != "cut")
    counted = {"lines": 0, "ties_cut": 0, "queries_without_items": 0}

    def counting():
        for one in found:
            counted["lines"] += len(one.items)
            counted["ties_cut"] += one.left_out > 0
            counted["queries_without_items"] += len(one.items) == 0
            yield one

    names = codes.ids["query"], codes.ids["database"]
    affinity = label_affinity(codes.labels["query"], codes.labels["database"]) if options.qrels else None
    if options.to == "ranx":
        export.write_ranx(options.output, counting(), *names)
    else:
        export.write_trec(options.output, counting(), *names, options.tag or "tiebench")
    if affinity is not None:
        export.write_qrels(options.qrels, affinity, *names, as_json=options.to == "ranx")
    return counted
