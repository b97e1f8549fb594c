"""Damaged runs and judgements: scored as a plain reading of the same bytes says, or refused in one line."""

import gzip
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.files import damaged
from tiebench import score_run

MEASURES = ["ap", "ndcg@3", "recall@2", "reciprocal_rank"]
RUN = b"".join(
    b"q%d Q0 d%d %d %s tag\n" % (query, 7 * query % 5 + place, place, value)
    for query in range(3)
    for place, value in enumerate([b"2.5", b"2.5", b"1e-3", b"-7", b"+.5"])
)
JUDGED = [(b"q%d" % query, b"d%d" % document, document % 3) for query in range(3) for document in range(6)]
QRELS = b"".join(b"%s 0\t%s %d\r\n" % pair for pair in JUDGED)
TSV = b"query-id\tcorpus-id\tscore\n" + b"".join(b"%s\t%s\t%d\n" % pair for pair in JUDGED)

PLACE = st.floats(0, 1, exclude_max=True)
CHARACTERS = st.sampled_from(
    [b" ", b"\n", b"\t", b"\r", b"\0", b"q1", b"d2", b"0", b"1", b".", b"-", b"e5", b"nan"]
)
DAMAGE = st.one_of(
    st.tuples(st.just("write"), PLACE, CHARACTERS),
    st.tuples(st.just("insert"), PLACE, CHARACTERS),
    st.tuples(st.just("insert"), PLACE, st.binary(min_size=1, max_size=6)),
    st.tuples(st.just("flip"), PLACE, st.integers(0, 7)),
    st.tuples(st.just("remove"), PLACE, st.integers(1, 30)),
    st.tuples(st.just("double"), PLACE, st.integers(1, 60)),
    st.tuples(st.just("cut"), PLACE, st.none()),
)
CHANGES = st.lists(DAMAGE, max_size=2)


class Malformed(Exception):
    """The plain reading finds no run, or no judgements."""


HEADER = {"query-id", "corpus-id", "score"}


def rows(raw, counts):
    """The columns of each line that has any, by the rules of docs/score-rankings.md, line by line."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed from error
    if "\0" in text or raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise Malformed
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    lines = [line.removeprefix("\ufeff") for line in lines]
    first = next((line for line in lines if "\t" in line), "")
    by_tabs = len(columns(first, True)) in counts
    found = [words for line in lines if (words := columns(line, by_tabs))]
    return found[1:] if found and set(found[0]) <= HEADER and len(found[0]) in counts else found


def columns(line, by_tabs):
    if by_tabs and "\t" in line:
        return [word for part in line.split("\t") if (word := part.strip(" \v\f"))]
    return re.findall(r"[^ \t\v\f]+", line)


def number(word):
    try:
        return np.nan if "_" in word or not word.isascii() else float(word)
    except ValueError:
        return np.nan


def pairs(lines, columns, kept, valid):
    """{query: {document: number}} of lines that all have `columns` words, and queries with one twice."""
    found, twice = {}, set()
    for words in lines:
        if len(words) != columns:
            raise Malformed
        query, document, value = (words[column] for column in kept)
        if not valid(number(value)):
            raise Malformed
        if document in found.setdefault(query, {}):
            twice.add(query)
        found[query][document] = number(value)
    if not found:
        raise Malformed
    return found, twice


def plain_run(raw):
    return pairs(rows(raw, {6}), 6, (0, 2, 4), lambda value: not np.isnan(value))


def plain_judgements(raw):
    lines = rows(raw, {3, 4})
    if not lines:
        raise Malformed
    count = 3 if len(lines[0]) == 3 else 4
    kept = (0, count - 2, count - 1)
    return pairs(lines, count, kept, lambda value: abs(value) < 2**31 and value % 1 == 0)


def outcome(run, qrels):
    """What a score of both is: its means, or that it is refused."""
    try:
        return score_run(run, qrels, MEASURES).means
    except ValueError as error:
        line = str(error)
        assert "\n" not in line and 0 < len(line) < 600, ascii(line)
        return "refused"


def outcome_of_plain_reading(run, qrels):
    """Queries of the run that are not judged are ignored, documents that they have twice, too."""
    try:
        (retrieved, twice), (judged, judged_twice) = plain_run(run), plain_judgements(qrels)
    except Malformed:
        return "refused"
    return "refused" if judged_twice or twice & set(judged) else outcome(retrieved, judged)


@pytest.mark.parametrize("judgements", [QRELS, TSV], ids=["qrels", "tsv"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_damaged_text_is_scored_as_it_reads_or_refused_in_one_line(judgements, pack):
    outcomes = {"scored": 0, "refused": 0}

    @given(CHANGES, CHANGES)
    def check(changes_of_run, changes_of_qrels):
        texts = damaged(RUN, changes_of_run), damaged(judgements, changes_of_qrels)
        expected = outcome_of_plain_reading(*texts)
        with tempfile.TemporaryDirectory() as folder:
            paths = Path(folder, "run.txt"), Path(folder, "qrels.txt")
            for path, text in zip(paths, texts):
                path.write_bytes(pack(text))
            assert outcome(*paths) == expected
        outcomes["refused" if expected == "refused" else "scored"] += 1

    check()
    assert min(outcomes.values()) > 5, outcomes


@settings(max_examples=settings.default.max_examples // 2)
@given(st.lists(DAMAGE, min_size=1, max_size=2))
def test_a_damaged_gzip_file_is_refused_or_unpacks_to_what_it_was(changes):
    whole = outcome_of_packed(gzip.compress(RUN))
    assert outcome_of_packed(damaged(gzip.compress(RUN), changes)) in (whole, "refused")


def outcome_of_packed(contents):
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder, "run.gz"), Path(folder, "qrels.txt")
        for path, text in zip(paths, (contents, QRELS)):
            path.write_bytes(text)
        return outcome(*paths)
