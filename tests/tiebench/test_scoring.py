"""Scores of codes against plain counts and rankings, query by query, and scikit-learn's NDCG."""

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from tiebench import scoring
from tiebench.affinities import EqualLabels, SharedLabels
from tiebench.codes.packing import pack
from tiebench.scoring import score_codes


def codes_and_labels(queries=9, items=40, bits=6, labels=4):
    generator = np.random.default_rng(5)
    codes = generator.integers(0, 2, (queries, bits)), generator.integers(0, 2, (items, bits))
    tags = generator.random((queries, labels)) < 0.4, generator.random((items, labels)) < 0.4
    tags[0][2] = False  # a query without relevant items
    return codes, tags


def by_hand(codes, tags, at):
    """Metric name -> (Q,): scikit-learn's NDCG, which averages over ties, and what can be counted."""
    distances = (codes[0][:, None] != codes[1]).sum(axis=2)
    affinity = tags[0].astype(int) @ tags[1].T.astype(int)
    empty = ~affinity.any(axis=1)
    values = {}
    for name, cut in (("ndcg", None), (f"ndcg@{at}", at)):
        found = [ndcg_score([2.0**a - 1], [-d.astype(float)], k=cut) for a, d in zip(affinity, distances)]
        values[name] = np.where(empty, 1, found)
    near = distances <= 2
    values["precision_radius_2"] = ((affinity > 0) & near).sum(axis=1) / np.maximum(near.sum(axis=1), 1)
    # Of 400 random orders, the lowest and the highest number of relevant items before the cut are met.
    generator = np.random.default_rng(0)
    hits = []
    for _ in range(400):
        order = np.lexsort((generator.random(distances.shape), distances), axis=1)[:, :at]
        hits.append((np.take_along_axis(affinity, order, axis=1) > 0).mean(axis=1))
    values |= {f"precision@{at}_min": np.min(hits, axis=0), f"precision@{at}_max": np.max(hits, axis=0)}
    return values


@pytest.mark.parametrize("at_once", [1, 2, 4, 9, 512])
def test_scores_are_those_counted_query_by_query(at_once, monkeypatch):
    monkeypatch.setattr(scoring, "_CELLS_AT_ONCE", 7 * at_once + 6)
    codes, tags = codes_and_labels()
    scores = score_codes(*map(pack, codes), 6, SharedLabels(*tags), at=(3,))
    for name, expected in by_hand(codes, tags, 3).items():
        assert scores.per_query[name] == pytest.approx(expected, abs=1e-12), name
        assert scores.means[name] == pytest.approx(expected.mean(), abs=1e-12)
    assert (scores.means["queries"], scores.means["database"], scores.means["bits"]) == (9, 40, 6)
    assert scores.means["queries_without_relevant"] == 2  # one of them made so


def test_curves_are_those_of_pairs_and_ranks():
    codes, _ = codes_and_labels()
    generator = np.random.default_rng(6)
    classes = generator.integers(0, 3, 9), generator.integers(0, 3, 40)
    curves = score_codes(*map(pack, codes), 6, EqualLabels(*classes)).curves
    distances = (codes[0][:, None] != codes[1]).sum(axis=2)
    relevant = classes[0][:, None] == classes[1]
    for near in range(7):
        within = distances <= near
        found, items = (within & relevant).sum(axis=1), within.sum(axis=1)
        precision, recall = found / np.maximum(items, 1), found / relevant.sum(axis=1)
        f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-300)
        expected = {
            "precision": precision[items > 0].mean(),
            "precision_or_0": precision.mean(),
            "recall": recall.mean(),
            "f1": f1.mean(),
            "candidates": items.mean(),
            "empty": (items == 0).mean(),
            "relevant_at": (distances[relevant] == near).mean(),
            "irrelevant_at": (distances[~relevant] == near).mean(),
        }
        for name, value in expected.items():
            assert curves[name][near] == pytest.approx(value), name
    assert curves["cuts"].tolist() == [1, 2, 3, 5, 7, 10, 15, 22, 32, 40]
    assert curves["precision_at"][-1] == pytest.approx(relevant.mean())
    # A relevant item stands first as often as its tie at the smallest distance has relevant items.
    nearest = distances == distances.min(axis=1, keepdims=True)
    first = (nearest & relevant).sum(axis=1) / nearest.sum(axis=1)
    assert curves["precision_at"][0] == pytest.approx(first.mean())


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
