"""Runs and judgements from files, dictionaries and arrays: queries, documents and a number for each pair."""

import gzip
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiebench import _tokens
from tiebench._tokens import Tokens
from tiebench.messages import one_line, printable

RUN_COLUMNS = "query Q0 document rank score tag"
JUDGEMENT_COLUMNS = "query 0 document relevance"


@dataclass(frozen=True)
class Entries:
    """Lines of a run or of judgements.

    source: their file, or what to call them in messages; queries: names, in the order of their appearance;
    query: int64 (m,), the place of each line's query among them; documents: m words; values: float64 (m,),
    scores or relevance.
    """

    source: str
    is_file: bool
    queries: list[str]
    query: NDArray[np.int64]
    documents: Tokens
    values: NDArray[np.float64]

    def place(self, row: int) -> str:
        """Where a line stands, as messages say it."""
        if self.is_file:
            line = self.documents.raw.count(b"\n", 0, int(self.documents.start[row])) + 1
            return f"{self.source}: line {line}"
        return f"{self.source}: query {self.name_of_query(row)!r}"

    def name_of_query(self, row: int) -> str:
        """The query of a line, printable."""
        return printable(self.queries[int(self.query[row])], 60)

    def name_of_document(self, row: int) -> str:
        """The document of a line, printable."""
        return printable(self.documents.text(row), 60)


def run(given: Any) -> Entries:
    """Entries of a run: the path of a TREC run, also gzip, or {query: {document: score}}.

    Raises ValueError, one line with file and line number, for a malformed line and for a score that is NaN.
    """
    if isinstance(given, Mapping):
        entries = _of_mapping(given, "run")
    else:
        raw, begin = _text(given)
        entries = _of_columns(given, raw, begin, 6, (0, 2, 4), RUN_COLUMNS)
    check_scores(entries, 4)
    return entries


def judgements(given: Any) -> Entries:
    """Entries of judgements: TREC qrels, BEIR's tsv, both also gzip, or {query: {document: relevance}}.

    Raises ValueError, one line with file and line number, for a malformed line and for a relevance that is
    not an integer.
    """
    if isinstance(given, Mapping):
        entries = _of_mapping(given, "qrels")
        column = 0
    else:
        raw, begin = _text(given)
        count, begin = _kind_of_judgements(given, raw, begin)
        kept = (0, 2, 3) if count == 4 else (0, 1, 2)
        names = JUDGEMENT_COLUMNS if count == 4 else "query-id corpus-id score"
        entries = _of_columns(given, raw, begin, count, kept, names)
        column = count - 1
    check_relevance(entries, column)
    return entries


def check_scores(entries: Entries, column: int) -> None:
    """Raise ValueError for a score that is NaN; column: the one of scores, of a file."""
    wrong = np.flatnonzero(np.isnan(entries.values))
    if len(wrong):
        shown = _shown(entries, wrong, column)
        raise ValueError(f"{entries.place(int(wrong[0]))}: the score is not a number{shown}")


def check_relevance(entries: Entries, column: int) -> None:
    """Raise ValueError for a relevance that is not an integer; column: the one of relevance, of a file."""
    whole = np.isfinite(entries.values) & (np.abs(entries.values) < 2**31)
    whole[whole] = entries.values[whole] == np.round(entries.values[whole])
    wrong = np.flatnonzero(~whole)
    if len(wrong):
        shown = _shown(entries, wrong, column)
        raise ValueError(f"{entries.place(int(wrong[0]))}: the relevance is not an integer{shown}")


def from_arrays(source: str, queries: NDArray, documents: NDArray, values: NDArray) -> Entries:
    """Entries of arrays (m,): ids of queries and documents as of `values.ids`, and real numbers.

    Raises ValueError for arrays of other shapes.
    """
    shapes = [part.shape for part in (queries, documents, values)]
    if len(set(shapes)) > 1 or queries.ndim != 1 or not len(queries):
        raise ValueError(
            f"{source}: ids and values of shapes {', '.join(map(str, shapes))} must be (m,) each"
        )
    names, index = _tokens.distinct(_tokens.from_words(_words(queries.tolist())))
    return Entries(
        source, False, names, index, _tokens.from_words(_words(documents.tolist())), values.astype(np.float64)
    )


def _words(names: Iterable[object]) -> list[bytes]:
    return [str(name).encode("utf-8", "surrogatepass") for name in names]


def _of_mapping(given, source):
    queries: list[str] = []
    documents: list[object] = []
    values: list[float] = []
    sizes: list[int] = []
    for query, pairs in given.items():
        if not isinstance(pairs, Mapping):
            raise ValueError(
                f"{source}: query {query!r} must map documents to numbers, not be {type(pairs).__name__}"
            )
        queries.append(str(query))
        documents += pairs
        values += pairs.values()
        sizes.append(len(pairs))
    try:
        numbers = np.array(values, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{source}: every value must be a number ({one_line(error)})") from error
    index = np.repeat(np.arange(len(queries)), sizes)
    return Entries(source, False, queries, index, _tokens.from_words(_words(documents)), numbers)


def _text(path):
    """The contents of a file, unpacked if they are gzip, for `_tokens.columns`, and where they begin."""
    contents = Path(path).read_bytes()
    if contents[:2] == b"\x1f\x8b":
        try:
            contents = gzip.decompress(contents)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path}: not a whole gzip file ({one_line(error)})") from error
    return _tokens.padded(contents), 3 if contents.startswith(b"\xef\xbb\xbf") else 0


def _of_columns(path, raw, begin, count, kept, names):
    try:
        query, document, value = _tokens.columns(raw, begin, count, kept)
    except _tokens.WrongColumns as error:
        line = raw.count(b"\n", 0, error.offset) + 1
        raise ValueError(
            f"{path}: line {line}: {error.found} columns where {count} are expected: {names}"
        ) from None
    if not len(query.start):
        raise ValueError(f"{path}: no lines; expected are lines of {names}")
    queries, index = _tokens.distinct(query)
    return Entries(str(path), True, queries, index, document, _tokens.numbers(value))


def _kind_of_judgements(path, raw, begin):
    """Columns of a file of judgements, 4 (TREC) or 3 (BEIR), and where its first line of values begins."""
    while True:
        end = raw.find(b"\n", begin)
        line = _tokens.split(raw[begin:end])
        if line or end >= len(raw) - 9:
            break
        begin = end + 1
    if len(line) not in (0, 3, 4):
        number = raw.count(b"\n", 0, begin) + 1
        raise ValueError(
            f"{path}: line {number}: {len(line)} columns where judgements have 4 ({JUDGEMENT_COLUMNS}) or, "
            "with a header, 3 (query-id corpus-id score)"
        )
    header = len(line) == 3 and np.isnan(_tokens.numbers(_tokens.from_words(line[2:]))[0])
    return (3 if len(line) == 3 else 4), (end + 1 if header else begin)


def _shown(entries, rows, column):
    """ ": 'x'", the word of a file that is not a number; nothing of a dictionary."""
    if not entries.is_file:
        return ""
    raw, start = entries.documents.raw, int(entries.documents.start[int(rows[0])])
    begin = raw.rfind(b"\n", 0, start) + 1
    words = _tokens.split(raw[begin : raw.index(b"\n", begin)])
    return f": {printable(words[column].decode('utf-8', 'backslashreplace'), 60)!r}"
