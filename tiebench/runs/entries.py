"""Runs and judgements from files, dictionaries and arrays: queries, documents and a number for each pair."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiebench import texts
from tiebench.messages import one_line, printable
from tiebench.runs import tokens
from tiebench.runs.tokens import Tokens
from tiebench.values import numbers

# Number of columns -> those of the query, the document and the number.
RUN = {6: (0, 2, 4)}
RUN_COLUMNS = "6 are expected: query Q0 document rank score tag"
JUDGEMENTS = {4: (0, 2, 3), 3: (0, 1, 2)}
JUDGEMENT_COLUMNS = "judgements have 4 (query 0 document relevance) or 3 (query-id corpus-id score)"
LARGEST_RELEVANCE = 2**31 - 1


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
    """Entries of a run: the path of a TREC run or of ranx's JSON, also gzip, or {query: {document: score}}.

    Raises ValueError, one line with file and line number, for a malformed line and for a score that is NaN.
    """
    if isinstance(given, Mapping):
        entries, words = _of_mapping(given, "run", texts.number), None
    else:
        entries, words = _of_file(given, "run", RUN, RUN_COLUMNS, texts.number)
    check_scores(entries, words)
    return entries


def judgements(given: Any) -> Entries:
    """Entries of judgements: TREC qrels, BEIR's tsv or JSON, also gzip, or {query: {document: relevance}}.

    Raises ValueError, one line with file and line number, for a malformed line and for a relevance that is
    not an integer.
    """
    if isinstance(given, Mapping):
        entries, words = _of_mapping(given, "qrels", texts.integer), None
    else:
        entries, words = _of_file(given, "qrels", JUDGEMENTS, JUDGEMENT_COLUMNS, texts.integer)
    check_relevance(entries, words)
    return entries


def check_scores(entries: Entries, words: Tokens | None = None) -> None:
    """Raise ValueError for a score that is NaN; words: the scores of a file, as they are written."""
    wrong = np.flatnonzero(np.isnan(entries.values))
    if len(wrong):
        row = int(wrong[0])
        shown = f": {printable(words.text(row), 60)!r}" if words else ""
        raise ValueError(f"{entries.place(row)}: the score is not a number{shown}")


def check_relevance(entries: Entries, words: Tokens | None = None) -> None:
    """Raise ValueError for a relevance that is no integer of 32 bits; words: those of a file, as written."""
    whole = np.isfinite(entries.values) & (np.abs(entries.values) <= LARGEST_RELEVANCE)
    whole[whole] = entries.values[whole] == np.round(entries.values[whole])
    wrong = np.flatnonzero(~whole)
    if len(wrong):
        row = int(wrong[0])
        value = float(entries.values[row])
        written = words.text(row) if words else repr(value).removesuffix(".0")
        try:
            texts.integer(written, -LARGEST_RELEVANCE, LARGEST_RELEVANCE)
        except ValueError as error:
            raise ValueError(f"{entries.place(row)}: the relevance {error}") from None


def from_arrays(source: str, queries: NDArray, documents: NDArray, values: NDArray) -> Entries:
    """Entries of arrays (m,): ids of queries and documents as of `values.ids`, and real numbers.

    Raises ValueError for arrays of other shapes.
    """
    shapes = [part.shape for part in (queries, documents, values)]
    if len(set(shapes)) > 1 or queries.ndim != 1 or not len(queries):
        raise ValueError(
            f"{source}: ids and values of shapes {', '.join(map(str, shapes))} must be (m,) each"
        )
    names, index = tokens.distinct(tokens.from_words(_words(queries.tolist())))
    return Entries(
        source, False, names, index, tokens.from_words(_words(documents.tolist())), values.astype(np.float64)
    )


def _words(names: Iterable[object]) -> list[bytes]:
    written = [name if type(name) is str else texts.identifier(name) for name in names]
    return [name.encode("utf-8", "surrogatepass") for name in written]


def _of_mapping(given, source, read):
    names: dict[str, object] = {}
    documents: list[object] = []
    values: list[float] = []
    sizes: list[int] = []
    for query, pairs in given.items():
        if not isinstance(pairs, Mapping):
            raise ValueError(
                f"{source}: query {query!r} must map documents to numbers, not be {type(pairs).__name__}"
            )
        name = texts.identifier(query)
        if name in names:
            both = " and ".join(printable(repr(key), 60) for key in (names[name], query))
            raise ValueError(f"{source}: {both} are one query; give all ids as text")
        names[name] = query
        documents += pairs
        values += pairs.values()
        sizes.append(len(pairs))
    index = np.repeat(np.arange(len(names)), sizes)
    return Entries(
        source,
        False,
        list(names),
        index,
        tokens.from_words(_words(documents)),
        _numbers(values, source, read),
    )


def _numbers(values, source, read):
    """float64 (m,) of numbers, or of texts that `read` reads; scores, which must not tie, exactly."""
    try:
        found = np.array(values)
        if found.dtype.kind == "f" and read is texts.number:  # of integers, too, where there are others
            whole = (int(one) for one in values if isinstance(one, (int, np.integer)))
            numbers(np.array([one for one in whole if abs(one) > 2**53]), "values")
        if found.ndim == 1 and found.dtype.kind in "biuf":
            return numbers(found, "values") if read is texts.number else found.astype(np.float64)
        return np.array([_number(value, read) for value in values], np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{source}: every value must be a number ({one_line(error)})") from error


def _number(value, read):
    if isinstance(value, (str, bytes)):  # not all that Python takes for a number is one
        return float(read(texts.identifier(value)))
    return float(value)


def _of_file(path, what, layouts, expected, read):
    """Entries of a file, and its numbers as they are written, None of JSON."""
    if not isinstance(path, (str, PathLike)):
        raise ValueError(
            f"{what} must be the path of a file or a dictionary {{query: {{document: number}}}}, not "
            f"{type(path).__name__}; columns of a table go to tiebench.runs.scores.score_lists"
        )
    text = texts.read(path)
    if text.contents.lstrip().startswith(b"{") or text.path.removesuffix(".gz").endswith(".json"):
        return _of_mapping(_json(text), text.path, read), None
    raw, by_tabs = tokens.padded(text.contents), _tabs_separate(text.contents, layouts)
    try:
        count, begin = _layout(raw, layouts, by_tabs)
        query, document, value = tokens.columns(raw, begin, count, layouts[count], by_tabs)
    except tokens.WrongColumns as error:
        line = raw.count(b"\n", 0, error.offset) + 1
        first = error.expected is None or len(layouts) == 1
        wanted = expected if first else f"{error.expected} are expected, as before"
        raise ValueError(f"{path}: line {line}: {error.found} columns where {wanted}") from None
    if not len(query.start):
        raise ValueError(f"{path}: no lines of values; {expected}")
    queries, index = tokens.distinct(query)
    return Entries(text.path, True, queries, index, document, tokens.numbers(value, read)), value


def _tabs_separate(contents, layouts):
    """Whether tabs decide: the first line that has some has as many columns between them as it should."""
    place = contents.find(b"\t")
    if place < 0 or not any(blank in contents for blank in (b" ", b"\v", b"\f")):
        return False  # tabs are all the white space that there is
    begin, end = contents.rfind(b"\n", 0, place) + 1, contents.find(b"\n", place)
    return len(texts.fields(contents[begin : end if end >= 0 else None].decode())) in layouts


def _layout(raw, layouts, by_tabs):
    """Columns of the first line that is not blank, and where the first line of values begins."""
    begin = 0
    while begin < len(raw) - 9:
        end = raw.index(b"\n", begin)
        line = raw[begin:end].decode()
        if words := texts.fields(line if by_tabs else line.replace("\t", " ")):
            if len(words) not in layouts:
                raise tokens.WrongColumns(begin, len(words))
            return len(words), end + 1 if texts.is_header(words) else begin
        begin = end + 1
    return max(layouts), begin


def _json(text):
    """The mapping of a text in JSON. Raises ValueError for other text, and for a key that is there twice."""

    def once(pairs):
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in found if keys.count(key) > 1)
            raise ValueError(f"{printable(twice, 60)!r} is there twice")
        return found

    try:
        found = json.loads(text.contents, object_pairs_hook=once)
        if not isinstance(found, Mapping):
            raise ValueError(f"it is a {type(found).__name__}")
        return found
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f'{text.path}: not JSON of the form {{"query": {{"document": number}}}} ({one_line(error)})'
        ) from error
