"""Scores of codes of several queries, and curves, against those of each query and plain counts."""

import numpy as np
import pytest

from tiebench import scoring
from tiebench.affinities import SharedLabels
from tiebench.codes.packing import pack
from tiebench.scoring import score_codes


def codes_and_labels(queries=9, items=40, bits=6, labels=4):
    generator = np.random.default_rng(5)
    codes = generator.integers(0, 2, (queries, bits)), generator.integers(0, 2, (items, bits))
    tags = generator.random((queries, labels)) < 0.4, generator.random((items, labels)) < 0.4
    tags[0][2] = False  # a query without relevant items
    return codes, tags


def mean(values):
    return values.mean() if values.size else np.nan


@pytest.mark.parametrize("at_once", [1, 2, 4, 9, 512])
def test_scores_are_those_of_each_query_alone(at_once, monkeypatch):
    """test_definitions.py has those of a query; here they are computed some queries at a time."""
    codes, tags = codes_and_labels()
    query, database = map(pack, codes)
    alone = [
        score_codes(query[[q]], database, 6, SharedLabels(tags[0][[q]], tags[1]), at=(3,)) for q in range(9)
    ]
    monkeypatch.setattr(scoring, "_CELLS_AT_ONCE", 7 * at_once + 6)
    scores = score_codes(query, database, 6, SharedLabels(*tags), at=(3,))
    for name, found in scores.per_query.items():
        expected = [one.per_query[name][0] for one in alone]
        assert found == pytest.approx(expected, abs=1e-12), name
        assert scores.means[name] == pytest.approx(np.mean(expected), abs=1e-12)
    assert (scores.means["queries"], scores.means["database"], scores.means["bits"]) == (9, 40, 6)
    assert scores.means["queries_without_relevant"] == 2  # one of them made so


@pytest.mark.parametrize("queries", [9, 1], ids=["some without relevant items", "none with any"])
def test_curves_are_those_of_pairs_and_ranks(queries):
    codes, tags = codes_and_labels(bits=12)
    first = slice(2, 2 + queries) if queries == 1 else slice(None)
    codes, tags = (codes[0][first], codes[1]), (tags[0][first], tags[1])
    curves = score_codes(*map(pack, codes), 12, SharedLabels(*tags)).curves
    distances = (codes[0][:, None] != codes[1]).sum(axis=2)
    relevant = tags[0] @ tags[1].T
    some = relevant.any(axis=1)
    for near in range(13):
        within = distances <= near
        found, items = (within & relevant).sum(axis=1), within.sum(axis=1)
        precision, recall = found / np.maximum(items, 1), found / np.maximum(relevant.sum(axis=1), 1)
        f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-300)
        expected = {
            "precision": mean(precision[items > 0]),
            "precision_or_0": mean(precision),
            "recall": mean(recall[some]),
            "f1": mean(f1[some]),
            "candidates": mean(items),
            "empty": mean(items == 0),
            "relevant_at": mean(distances[relevant] == near),
            "irrelevant_at": mean(distances[~relevant] == near),
        }
        found = {name: curves[name][near] for name in expected}
        assert found == pytest.approx(expected, nan_ok=True), near
    assert np.isnan(curves["precision"][0])  # no item is so near
    assert curves["cuts"].tolist() == [1, 2, 3, 5, 7, 10, 15, 22, 32, 40]
    nearer = (distances[:, None] < distances[:, :, None]).sum(axis=2)
    tied = (distances[:, None] == distances[:, :, None]).sum(axis=2)
    for cut, value in zip(curves["cuts"], curves["precision_at"], strict=True):
        chances = np.clip((cut - nearer) / tied, 0, 1)  # that an item is among the first
        assert value == pytest.approx((chances * relevant).sum(axis=1).mean() / cut), cut


def test_forty_thousand_classes_at_a_length_that_is_no_power_of_two():
    """One relevant item each: AP_T is the mean of 1/rank over the places of its tie."""
    generator = np.random.default_rng(0)
    count = 40_000
    codes, queries = generator.random((count, 13)) < 0.5, generator.random((5, 13)) < 0.5
    classes = generator.permutation(count)
    scores = scoring.score(queries, codes, classes[:5], classes)
    for query, code in enumerate(queries):
        distances = (code != codes).sum(axis=1)
        nearer, tied = (distances < distances[query]).sum(), (distances == distances[query]).sum()
        expected = np.mean(1 / np.arange(nearer + 1, nearer + tied + 1))
        assert scores.per_query["ap"][query] == pytest.approx(expected, rel=1e-9)
