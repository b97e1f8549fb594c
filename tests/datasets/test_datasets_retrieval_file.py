"""Embeddings with judgements: what is written, and one line for every file that is not as it should be."""

import numpy as np
import pytest

from datasets import affinity, splits
from datasets.description import Description
from datasets.loaders import retrieval_file
from tests.files import resource
from tests.tiebench.refusals import refused

GENERATOR = np.random.default_rng(4)
DATABASE, QUERY = GENERATOR.normal(size=(6, 3)).astype(np.float16), GENERATOR.normal(size=(4, 3))
GOOD = {
    "database": DATABASE,
    "query": QUERY,
    "database_ids": np.array([50, 40, 30, 20, 10, 7]),
    "query_ids": np.array([7, 8, 9, 11]),
    "qrels_test": np.array([[9, 40, 1], [7, 10, 2], [7, 50, -1]]),
    "qrels_dev": np.array([[11, 7, 1]]),
}
PLAIN = {"database.npy": DATABASE, "query.npy": QUERY}
TEXT = {
    "database_ids.txt": "d0\nd1\nd2\nd3\nd4\nd5\n",
    "query_ids.txt": "q0\nq1\nq2\nq3\n",
    "test.tsv": "query-id\tcorpus-id\tscore\nq2\td1\t1\nq0\td4\t2\n",
    "dev.tsv": "q3 0 d5 1\n",
}


def npz(folder, **changes):
    arrays = {name: value for name, value in (GOOD | changes).items() if value is not None}
    np.savez(folder / "r.npz", **arrays)
    return [folder / "r.npz"]


def plain(folder, **changes):
    for name, value in PLAIN.items():
        np.save(folder / name, value)
    for name, value in (TEXT | changes).items():
        (folder / name).write_text(value)
    return [folder / name for name in (PLAIN | TEXT)]


@pytest.mark.parametrize("written", [npz, plain])
def test_items_parts_and_judgements(written, tmp_path):
    (tmp_path / "out").mkdir()
    made = retrieval_file.load(written(tmp_path), tmp_path / "out")
    items = np.load(tmp_path / "out" / "items.npy")
    assert items.dtype == np.float32
    assert np.array_equal(items, np.concatenate([DATABASE, QUERY]).astype(np.float32))
    assert made.split_names == ["documents", "dev", "test", "not judged"]
    assert made.given_split.tolist() == [0] * 6 + [2, 3, 2, 1]
    listed = np.load(tmp_path / "out" / "judgements.npy").tolist()
    assert [row for row in listed if row[2]] == [[6, 4, 2], [8, 1, 1], [9, 5, 1]]
    assert Description.read(tmp_path / "out", made.metadata()).ids.tolist() == made.ids.tolist()
    assert str(made.ids[1]) in ("40", "d1") and str(made.ids[8]) in ("9", "q2")

    spec = {"kind": "given", "query": "test", "database": "documents", "training": "all"}
    split = splits.draw(spec, made, 0)
    assert split.query.tolist() == [6, 8] and split.database.tolist() == list(range(6))
    judged = affinity.make({"kind": "judgements"}, None, dataset=tmp_path / "out")
    assert judged.levels == (0, 1, 2)
    assert judged.block(split.query, split.database).tolist() == [[0, 0, 0, 0, 2, 0], [0, 1, 0, 0, 0, 0]]
    # A part of the database, as jobs count it.
    part = judged.scoring(split.query, np.array([1, 4]))
    assert part.block(0, 2).tolist() == [[0, 2], [1, 0]]


def test_parts_can_be_chosen_and_ids_left_out(tmp_path):
    listed = np.array([[0, 5, 1], [3, 0, 1]])
    sources = npz(tmp_path, database_ids=None, query_ids=None, qrels_test=listed, qrels_dev=None)
    assert retrieval_file.describe(sources).given_split.tolist() == [0] * 6 + [1, 2, 2, 1]
    made = retrieval_file.describe(npz(tmp_path, qrels_dev=GOOD["qrels_test"]), parts=["test"])
    assert made.split_names == ["documents", "test", "not judged"]


NAN = QUERY.copy()
NAN[2, 1] = np.nan


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query": None}, "has no array 'query'"),
        ({"query": QUERY[:, :2]}, "database has 3 dimensions, query has 2"),
        ({"query": QUERY[0]}, r"query must be embeddings \(n, d\)"),
        ({"query": QUERY.astype(str)}, "it must hold real numbers"),
        ({"query_ids": np.array([7, 8, 9])}, "4 rows of query have ids of shape"),
        ({"query_ids": np.array([7, 8, 9, 9])}, "query_ids holds an id twice"),
        ({"qrels_test": None, "qrels_dev": None}, "has no judgements: add qrels_<part>"),
        ({"qrels_test": np.array([[9, 41, 1]])}, "test: document 41 is not among the ids .1 of 1 rows."),
        ({"qrels_test": np.array([[1, 40, 1]])}, "test: query 1 is not among the ids"),
        ({"qrels_test": np.array([[9, 40, 0.5]])}, "it must be an integer"),
        ({"qrels_test": np.array([["9", "40", "x"]])}, r"score of qrels_test\[0\] is not an integer: 'x'"),
        ({"qrels_test": np.array([[9, 40]])}, "must be .j, 3.: query, document, score"),
        ({"qrels_test": np.array([[9, 40, 1], [9, 40, 2]])}, "document 40 is judged twice for query 9"),
        ({"qrels_test": np.array([[11, 40, 1]])}, "query 11 is judged in dev and in test; choose one"),
        ({"query": NAN}, r"query\[2\] must be finite"),
    ],
)
def test_one_line_for_arrays_that_do_not_fit(changes, message, tmp_path):
    with refused("r.npz", pattern=message):
        retrieval_file.load(npz(tmp_path, **changes), tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test.tsv": "q2\td1\n"}, "test.tsv: line 1: 2 columns where judgements have"),
        ({"test.tsv": "query\tdocument\tscore\n"}, "test.tsv: no lines"),
        (
            {"test.tsv": "q2\td1\t1\nq2\td2\thigh\n"},
            "test.tsv: line 2: the relevance is not an integer: 'high'",
        ),
    ],
)
def test_one_line_for_plain_files_that_do_not_fit(changes, message, tmp_path):
    with refused(message):
        retrieval_file.load(plain(tmp_path, **changes), tmp_path)


def test_sources_and_options_that_do_not_fit(tmp_path):
    arrays, files = npz(tmp_path), plain(tmp_path)
    (tmp_path / "other").mkdir()
    for name in ("quer.npy", "other/query.npy", "test.tsv.gz"):
        (tmp_path / name).touch()
    for sources, options, message in (
        ([], {}, "got 0 sources"),
        ([path for path in files if path.name != "query.npy"], {}, "query.npy is missing"),
        ([tmp_path / "quer.npy", tmp_path / "query.npy"], {}, "did you mean 'query.npy'"),
        ([*files, tmp_path / "other/query.npy"], {}, "query.npy has the same name"),
        ([*files, tmp_path / "test.tsv.gz"], {}, "test.tsv has the same name"),
        (arrays, {"parts": ["tests"]}, "no judgements of part 'tests'; did you mean 'test'"),
        (arrays, {"parts": []}, "must be a list of names"),
    ):
        with refused(message):
            retrieval_file.describe(sources, **options)


def test_the_published_score_of_real_embeddings(tmp_path):
    """all-MiniLM-L6-v2 on SciFact: nDCG@10 0.645 on the leaderboards of BEIR; here .6451 by cosine."""
    from workflow.stages.uncoded import cosine_scores

    made = retrieval_file.load([resource("scifact-minilm.npz")], tmp_path)
    spec = {"kind": "given", "query": "test", "database": "documents", "training": "all"}
    split = splits.draw(spec, made, 0)
    assert (len(split.query), len(split.database)) == (300, 5183)
    judged = affinity.make({"kind": "judgements"}, None, dataset=tmp_path)
    items = np.load(tmp_path / "items.npy")
    means = cosine_scores(items, split.query, split.database, judged.block, judged.levels, [10, 100])
    assert means["ndcg@10"] == pytest.approx(0.6451, abs=5e-5)


@pytest.mark.parametrize("grades", [["2", "0"], ["2.0", "0.0"], [b"2", b"0e1"]])
def test_grades_as_text_are_those_as_numbers(grades, tmp_path):
    numbers = np.array([[9, 40, 2], [9, 50, 0]])
    written = np.array([["9", "40", ""], ["9", "50", ""]]).astype(np.array(grades).dtype.kind + "9")
    written[:, 2] = grades
    for name, judged in (("numbers", numbers), ("text", written)):
        (tmp_path / name).mkdir()
        retrieval_file.load(npz(tmp_path, qrels_test=judged), tmp_path / name)
    assert np.array_equal(*(np.load(tmp_path / name / "judgements.npy") for name in ("numbers", "text")))
