"""Scores of the features themselves: against all orders of tied items, and as a row of tables."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from tiebench import score_array
from workflow.stages import uncoded
from workflow.stages.uncoded import cosine_scores

from conftest import class_vectors, read_json  # isort: skip


@pytest.fixture
def problem():
    """Features (22, 3) with copies, so that similarities tie; items of queries and database; affinities."""
    generator = np.random.default_rng(0)
    features = generator.integers(-2, 3, (22, 3)).astype(np.float32)
    features[15] = features[16] = features[17] = [1, 2, -1]
    features[20] = 0  # similar to none
    query, database = np.arange(15), np.array([15, 20, 16, 21, 17, 19])
    levels = generator.choice([0, 1, 3], (22, 22))
    return features, query, database, lambda rows, columns: levels[np.ix_(rows, columns)]


def test_scores_are_the_means_over_all_orders_of_equal_similarities(problem):
    features, query, database, affinity = problem
    rows = features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-30)
    rows = rows.astype(np.float64)  # of the rounded rows
    similarity = (rows[query] @ rows[database].T).astype(np.float32)
    assert any(len(np.unique(one)) < len(one) for one in similarity)
    found = cosine_scores(features, query, database, affinity, (0, 1, 3), at=[3])
    # Compared with all orders in tests/tiebench/test_runs.py; every query has a relevant item.
    settings = {"gains": "exponential", "ap_at_normaliser": "hits", "without_relevant": "skip"}
    expected = score_array(similarity, affinity(query, database), ["ap", "ap@3", "ndcg"], **settings)
    assert len(expected.queries) == len(query)
    for name in expected.per_query:
        assert found[name] == pytest.approx(expected.means[name], abs=1e-9), name
    assert found["ap_min"] < found["ap"] < found["ap_max"]


def test_scores_do_not_depend_on_lengths_or_on_the_size_of_blocks(problem, monkeypatch):
    features, *rest = problem
    expected = cosine_scores(features, *rest, (0, 1, 3), at=[3])
    assert cosine_scores(4 * features, *rest, (0, 1, 3), at=[3]) == expected  # a power of two: no rounding
    monkeypatch.setattr(uncoded, "_SIMILARITIES_AT_ONCE", 13)  # two queries at a time
    assert cosine_scores(features, *rest, (0, 1, 3), at=[3]) == pytest.approx(expected, abs=1e-12)
    monkeypatch.setattr(uncoded, "_ITEMS_AT_ONCE", 5)
    assert cosine_scores(features, *rest, (0, 1, 3), at=[3]) == pytest.approx(expected, abs=1e-12)


def test_metrics_of_hamming_distances_are_left_out(problem):
    found = cosine_scores(*problem, (0, 1, 3))
    assert {"ap", "ndcg", "ap_min"} <= found.keys()
    assert not [name for name in found if "radius" in name]


def test_features_that_are_not_finite_are_refused(problem):
    features, *rest = problem
    features[15, 0] = np.nan
    with pytest.raises(ValueError, match="NaN or infinite"):
        cosine_scores(features, *rest, (0, 1, 3))


def test_a_table_that_asks_for_it_has_a_row_of_the_features(laboratory, tiny):
    before = laboratory.tables()["tiny.csv"]
    runs = laboratory.stamps("results/runs/**/*")
    tiny["tables"]["tiny"]["uncoded"] = True
    laboratory.made("results/tiny.csv", config=tiny)
    assert laboratory.stamps("results/runs/**/*") == runs
    features, split, labels = laboratory.features().astype(np.float64), laboratory.split(), class_vectors()[1]
    rows = features / np.linalg.norm(features, axis=1, keepdims=True)
    nearest = np.argsort(-(rows[split.query] @ rows[split.database].T), axis=1)
    same = labels[split.database][nearest] == labels[split.query][:, None]
    scores = read_json(laboratory.results / "uncoded/tiny.json")["metrics"]
    for name, at in (("ap", None), ("ap@10", 10)):
        expected = np.mean([average_precision_score(one[:at], -np.arange(140)[:at]) for one in same])
        assert scores[name] == pytest.approx(expected, abs=1e-6)  # float32 may swap neighbours
    # Below the rows of methods, which stay as they are.
    text = laboratory.tables()["tiny.csv"]
    assert text.startswith(before) and text.count(b"\n") == before.count(b"\n") + 1
    last = laboratory.rows("tiny.csv")[-1]
    assert last.pop("method") == "uncoded"
    assert [float(value) for value in last.values()] == [scores["ap"]] * 2
    tidy = [row for row in laboratory.rows("tiny.tidy.csv") if row["status"] == "uncoded"]
    found = [(row["method"], row["bits"], row["seeds"], row["sees"]) for row in tidy]
    assert found == [("uncoded", "8", "0", ""), ("uncoded", "11", "0", "")]
    assert not [row for row in laboratory.rows("tiny.statistics.csv") if row["method"] == "uncoded"]
