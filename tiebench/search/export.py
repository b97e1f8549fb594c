"""Codes as files of other programs: a FAISS index, SQL, runs of TREC and ranx, judgements.

Each function writes one file, which appears when it is complete, and holds a block of lines in memory at a
time. Names of items are integers or strings, one each, all different: rows of the arrays where none are
given.
"""

import gzip
import io
import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tiebench.affinities import Affinity, check_affinity
from tiebench.codes.packing import check_bits, check_packed
from tiebench.files import AnyPath, replaced
from tiebench.messages import one_line, printable
from tiebench.search.neighbours import Neighbours
from tiebench.values import ids as ids_of
from tiebench.values import is_text, refuse_twice
from tiebench.values import labels as labels_of

_ROWS_AT_ONCE = 1 << 14
_PAIRS_AT_ONCE = 1 << 22
_ROWS_OF_AN_INSERT = 1000
_LONGEST_NAME = 63  # bytes of an identifier of PostgreSQL, which cuts longer ones


def check_ids(ids: ArrayLike | None, items: int, name: str) -> NDArray:
    """Names of items, checked.

    Parameters
    ----------
    ids : integers or strings (n,), or None
        All different; None stands for the rows, 0 .. n - 1.
    items : int
        n.
    name : str
        What messages call them.

    Returns
    -------
    integers, of their own type, or str (n,)

    Raises
    ------
    ValueError
        One line, for names of another number, form or type, and for one that is there twice.
    """
    if ids is None:
        return np.arange(items)
    found = ids_of(ids, name)
    if len(found) != items:
        raise ValueError(f"there are {items} codes but {len(found)} {name}")
    refuse_twice(found, name)
    return found


# -- FAISS -----------------------------------------------------------------------------------------------


def write_faiss(path: AnyPath, database: ArrayLike, bits: int, ids: ArrayLike | None = None) -> None:
    """Write database codes as a FAISS index, `faiss.IndexBinaryFlat`, which searches all of them.

    FAISS counts bits in whole bytes: the index has 8 ceil(b/8) of them, and the padding bits, which are zero,
    change no distance. Search it with packed queries, uint8 (Q, ceil(b/8)).

    Parameters
    ----------
    path : path
        Of the file to write.
    database : uint8 (N, ceil(b/8))
        Packed codes.
    bits : int
        b.
    ids : int64 (N,), optional
        What a search returns (`faiss.IndexBinaryIDMap2`), instead of rows.

    Raises
    ------
    ValueError
        For codes that do not fit, for ids that are strings, and where FAISS is missing.
    OSError
        Where the file cannot be written.
    """
    bits = check_bits(bits)
    codes = check_packed(database, bits, "database codes")
    names = None if ids is None else check_ids(ids, len(codes), "database_ids")
    if names is not None and (is_text(names) or names.max() > np.iinfo(np.int64).max):
        raise ValueError("ids in a FAISS index are 64-bit integers: leave database_ids out to get rows")
    try:
        import faiss
    except ImportError as error:
        raise ValueError("FAISS is not installed: pip install faiss-cpu") from error
    index: Any = faiss.IndexBinaryFlat(codes.shape[1] * 8)
    if names is not None:
        index = faiss.IndexBinaryIDMap2(index)
    for begin in range(0, len(codes), _ROWS_AT_ONCE):
        part = slice(begin, begin + _ROWS_AT_ONCE)
        if names is None:
            index.add(codes[part])
        else:
            index.add_with_ids(codes[part], names[part].astype(np.int64))
    with replaced(path) as temporary:
        try:
            faiss.write_index_binary(index, str(temporary))
        except RuntimeError as error:  # of a full disk
            raise OSError(one_line(error)) from error


# -- SQL -------------------------------------------------------------------------------------------------

_SQL = """\
-- {items:,} database codes and {queries:,} queries of {bits} bits, for PostgreSQL 14 or later.
-- Load them with: psql --set ON_ERROR_STOP=1 --file FILE DATABASE
-- Bit i of a code, from 0, is character i of its bit string, from the left.
--
-- The ten nearest items of a query, plain PostgreSQL, reading the whole table:
--
--   SELECT item, bit_count(code # {example}) AS distance
--   FROM {table} ORDER BY distance, item LIMIT 10;
--
-- Of every query:
--
--   SELECT q.query, n.item, n.distance FROM {query_table} AS q CROSS JOIN LATERAL (
--     SELECT item, bit_count(code # q.code) AS distance FROM {table} ORDER BY distance, item LIMIT 10) AS n;
--
-- LIMIT cuts the tie at the last distance; FETCH FIRST 10 ROWS WITH TIES, after ORDER BY distance alone,
-- returns all of it.
--
-- With pgvector 0.7 or later <~> is the same distance, and an index finds neighbours approximately:
--
--   CREATE EXTENSION vector;
--   CREATE INDEX ON {table} USING hnsw (code bit_hamming_ops);
--   SELECT item FROM {table} ORDER BY code <~> {example} LIMIT 10;
"""
# What would end a literal, and a field or a line of COPY.
_IN_LITERAL = str.maketrans({"'": "''"})
_IN_COPY = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})


def write_sql(
    path: AnyPath,
    query: ArrayLike,
    database: ArrayLike,
    bits: int,
    *,
    query_ids: ArrayLike | None = None,
    database_ids: ArrayLike | None = None,
    query_labels: ArrayLike | None = None,
    database_labels: ArrayLike | None = None,
    table: str = "codes",
    inserts: bool = False,
) -> None:
    """Write codes as an SQL script for PostgreSQL: two tables in one transaction.

    The table `table` has the columns item (bigint, or text for ids that are strings), code bit(b) and, with
    labels, `label` (of classes: bigint or text) or `labels` (of 0/1 (n, L): integer[], the columns that are
    1). The table `<table>_query` has the same of the queries, with query instead of item. Both names are
    quoted: they may be words of SQL, and capitals count.

    Parameters
    ----------
    path : path
        Of the file to write; one that ends in .gz is compressed.
    query, database : uint8 (Q, ceil(b/8)) and (N, ceil(b/8))
        Packed codes.
    bits : int
        b.
    query_ids, database_ids : integers or strings (Q,) and (N,), optional
        Names; rows by default.
    query_labels, database_labels : integers or strings (n,), or 0/1 (n, L), optional
        Labels; without them there is no column.
    table : str
        Name of the table of the database.
    inserts : bool
        INSERT statements, for any client, instead of COPY, which psql reads, and faster.

    Raises
    ------
    ValueError
        One line, for what does not fit, and for what PostgreSQL cannot hold.
    OSError
        Where the file cannot be written.
    """
    of_database, of_queries = check_table(table)
    parts = (
        (of_queries, "query", query, query_ids, query_labels),
        (of_database, "item", database, database_ids, database_labels),
    )
    bits, rows = check_bits(bits), []
    for name, key, given, ids, labels in parts:
        part = "database" if key == "item" else key
        codes = check_packed(given, bits, f"{part} codes")
        columns = [(key, *_sql_words(check_ids(ids, len(codes), f"{part}_ids"), inserts))]
        if labels is not None:
            columns.append(_sql_labels(labels, len(codes), inserts, f"{part}_labels"))
        rows.append((name, codes, columns))
    (_, queries, _), (_, items, _) = rows
    example = "B'" + "".join(map(str, np.unpackbits(queries[0], count=bits).tolist())) + "'"
    with _text(path) as file:
        file.write(
            _SQL.format(
                items=len(items),
                queries=len(queries),
                bits=bits,
                table=of_database,
                query_table=of_queries,
                example=example,
            )
        )
        file.write("SET client_encoding = 'UTF8';\nSET standard_conforming_strings = on;\nBEGIN;\n")
        for name, codes, columns in rows:
            (key, kind, words), *more = columns
            declared = [f"{key} {kind} PRIMARY KEY", f"code bit({bits}) NOT NULL"]
            declared += [f"{label} {its} NOT NULL" for label, its, _ in more]
            file.write(f"CREATE TABLE {name} ({', '.join(declared)});\n")
            into = f"{name} ({', '.join([key, 'code', *(label for label, _, _ in more)])})"
            values = zip(words, _sql_codes(codes, bits, inserts), *(its for _, _, its in more))
            _write_rows(file, into, values, inserts)
        file.write(f"COMMIT;\nANALYZE {of_database};\nANALYZE {of_queries};\n")


def _write_rows(file, into, values, inserts):
    if not inserts:
        file.write(f"COPY {into} FROM stdin;\n")
        file.writelines("\t".join(row) + "\n" for row in values)
        file.write("\\.\n")
        return
    for number, row in enumerate(values):
        first = number % _ROWS_OF_AN_INSERT == 0
        begin = (";\n" * (number > 0) + f"INSERT INTO {into} VALUES\n") if first else ",\n"
        file.write(f"{begin}({', '.join(row)})")
    file.write(";\n")


def check_table(name: str) -> tuple[str, str]:
    """The quoted names of the tables that `write_sql` makes.

    Parameters
    ----------
    name : str
        Of the table of the database.

    Returns
    -------
    str, str
        Of the database and of the queries.

    Raises
    ------
    ValueError
        One line, for what cannot be the name of a table.
    """
    return _sql_table(name), _sql_table(f"{name}_query")


def _sql_table(name):
    """The name of a table as the script writes it, quoted. Raises ValueError for what cannot be one."""
    # A line end would leave the comment at the head of the script.
    if not name or not name.isprintable():
        raise ValueError(f"table {printable(name, 60)!r}: a name has one or more printable characters")
    if len(name.encode()) > _LONGEST_NAME:
        raise ValueError(
            f"table {printable(name, 60)!r}: a name, also that of the queries, has at most {_LONGEST_NAME} "
            "bytes in PostgreSQL"
        )
    return '"' + name.replace('"', '""') + '"'


def _sql_codes(codes, bits, inserts):
    """Bit strings of packed codes, one by one."""
    for begin in range(0, len(codes), _ROWS_AT_ONCE):
        characters = np.unpackbits(codes[begin : begin + _ROWS_AT_ONCE], axis=1, count=bits) + ord("0")
        for row in np.ascontiguousarray(characters):
            text = row.tobytes().decode("ascii")
            yield f"B'{text}'" if inserts else text


def _sql_words(values, inserts):
    """The type of a column of integers or strings, and its values as words of the script."""
    if not is_text(values):
        if values.max() > np.iinfo(np.int64).max:
            raise ValueError(f"{values.max()} exceeds the integers of PostgreSQL, which have 64 bits")
        return "bigint", map(str, values.tolist())
    if any("\0" in text for text in values.tolist()):
        raise ValueError("a text in PostgreSQL cannot hold the character NUL")
    quote, escapes = ("'", _IN_LITERAL) if inserts else ("", _IN_COPY)
    return "text", (f"{quote}{text.translate(escapes)}{quote}" for text in values.tolist())


def _sql_labels(labels, items, inserts, name):
    """Name, type and words of the column of labels."""
    labels = labels_of(labels, name, items)
    if len(labels) != items:
        raise ValueError(f"there are {items} codes but {len(labels)} {name}")
    if labels.ndim == 1:
        return "label", *_sql_words(labels, inserts)
    quote = "'" if inserts else ""
    return (
        "labels",
        "integer[]",
        (f"{quote}{{{','.join(map(str, np.flatnonzero(row).tolist()))}}}{quote}" for row in labels),
    )


# -- runs ------------------------------------------------------------------------------------------------


def write_trec(
    path: AnyPath,
    found: Iterable[Neighbours],
    query_ids: ArrayLike,
    database_ids: ArrayLike,
    tag: str = "tiebench",
) -> None:
    """Write a TREC run: lines of `query Q0 item rank score tag`, the score being minus the Hamming distance.

    Ranks number the lines of a query: inside a tie they say nothing.

    Parameters
    ----------
    path : path
        Of the file to write; one that ends in .gz is compressed.
    found : iterable of `Neighbours`
        Of each query, as `nearest` and `within` of `tiebench.search.neighbours` give them.
    query_ids, database_ids : integers or strings (Q,) and (N,)
        Names without white space.
    tag : str
        The last column, without white space.

    Raises
    ------
    ValueError
        For names with white space, and if there are fewer or more names than queries.
    OSError
        Where the file cannot be written.
    """
    queries, items = _words(query_ids, "query_ids"), _words(database_ids, "database_ids")
    (tag,) = _words([tag], "tag")
    with _text(path) as file:
        for query, one in zip(queries, found, strict=True):
            rows = zip(one.items.tolist(), one.distances.tolist())
            file.writelines(
                f"{query} Q0 {items[item]} {rank} {-distance} {tag}\n"
                for rank, (item, distance) in enumerate(rows, 1)
            )


def write_ranx(
    path: AnyPath, found: Iterable[Neighbours], query_ids: ArrayLike, database_ids: ArrayLike
) -> None:
    """Write a run as `ranx.Run.from_file` reads it: JSON, {query: {item: score}}.

    The score is minus the Hamming distance. ranx orders equal scores as it likes.

    Parameters
    ----------
    path : path
        Of the file to write; it must end in .json.
    found, query_ids, database_ids
        As of `write_trec`, but names may hold white space.

    Raises
    ------
    ValueError
        For another ending, for a name that is there twice, and if there are fewer or more names than queries.
    OSError
        Where the file cannot be written.
    """
    _check_json(path)
    queries, items = _texts(query_ids, "query_ids"), _texts(database_ids, "database_ids")
    scored = (
        {items[item]: float(-distance) for item, distance in zip(one.items.tolist(), one.distances.tolist())}
        for one in found
    )
    _write_mapping(path, zip(queries, scored, strict=True))


def write_qrels(
    path: AnyPath,
    affinity: Affinity,
    query_ids: ArrayLike,
    database_ids: ArrayLike,
    as_json: bool = False,
) -> None:
    """Write relevance judgements: each item of affinity above 0 to a query, with the affinity.

    A query without relevant items has its first item with relevance 0, so that it is counted.

    Parameters
    ----------
    path : path
        Of the file to write; one that ends in .gz is compressed.
    affinity : `Affinity`
        Of these queries and items, one of `tiebench.affinities`.
    query_ids, database_ids : integers or strings (Q,) and (N,)
        Names.
    as_json : bool
        Write what `ranx.Qrels.from_file` reads, instead of TREC lines of `query 0 item relevance`; the path
        must then end in .json.

    Raises
    ------
    ValueError
        For names with white space (TREC), and for affinities that do not fit.
    OSError
        Where the file cannot be written.
    """
    if as_json:
        _check_json(path)
    names = _texts if as_json else _words
    queries, items = names(query_ids, "query_ids"), names(database_ids, "database_ids")
    judged = _judged(affinity, len(queries), len(items))
    if as_json:
        levels = ({items[item]: level for item, level in found} for _, found in judged)
        _write_mapping(path, zip(queries, levels))
        return
    with _text(path) as file:
        for query, found in judged:
            file.writelines(f"{queries[query]} 0 {items[item]} {level}\n" for item, level in found)


def _judged(affinity: Affinity, queries: int, items: int) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    levels = check_affinity(affinity, queries, items)
    step = max(1, _PAIRS_AT_ONCE // items)
    for begin in range(0, queries, step):
        block = affinity.block(begin, min(begin + step, queries))
        for row, its in enumerate(block, begin):
            relevant = np.flatnonzero(its)
            yield row, list(zip(relevant.tolist(), levels[its[relevant]].tolist())) or [(0, 0)]


def _texts(ids, name):
    """Names as text. Raises ValueError where one is there twice."""
    found = ids_of(ids, name)
    refuse_twice(found, name)
    return list(map(str, found.tolist()))


def _words(ids, name):
    """Names as words of a line. Raises ValueError for white space, or nothing, in one."""
    words = _texts(ids, name)
    for word in words:
        if word.split() != [word]:
            raise ValueError(
                f"{name} has {printable(word, 60)!r}: names in a TREC file are without white space"
            )
    return words


def _check_json(path: AnyPath) -> None:
    if not str(path).endswith(".json"):
        raise ValueError(f"{path}: ranx reads JSON from files that end in .json")


def _write_mapping(path, pairs):
    """Write {name: value} as JSON, a line each, without holding all of it."""
    with _text(path) as file:
        file.write("{")
        for number, (name, value) in enumerate(pairs):
            file.write(f"{',' * (number > 0)}\n{json.dumps(name)}: {json.dumps(value)}")
        file.write("\n}\n")


@contextmanager
def _text(path: AnyPath) -> Iterator[IO[str]]:
    """A text file to write, UTF-8 with line feeds, compressed if its name ends in .gz, that appears whole."""
    with replaced(path) as temporary, ExitStack() as opened:
        stream: Any = opened.enter_context(temporary.open("wb"))
        if str(path).endswith(".gz"):
            # No name and no time in the header: the same codes are the same bytes.
            stream = opened.enter_context(gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0))
        yield opened.enter_context(io.TextIOWrapper(stream, encoding="utf-8", newline="\n"))
