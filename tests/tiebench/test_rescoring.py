"""Rescoring against all choices from the tie that the cut divides; asymmetric rankings against plain sums."""

from itertools import combinations

import numpy as np
import pytest
from refusals import refused
from test_runs import plain

from tiebench.affinities import SparseJudgements
from tiebench.codes.packing import pack
from tiebench.search.rescoring import (
    asymmetric_similarity,
    estimated_similarity,
    ranked_histograms,
    rescored,
    rescored_by,
)

AT = (1, 3, 20)
METRICS = (*(f"{name}@{cut}" for name in ("ndcg", "recall") for cut in AT), "reciprocal_rank")


def judgements_of(affinity):
    return SparseJudgements(*np.nonzero(affinity), affinity[affinity > 0], affinity.shape)


def case(seed, items=11, bits=4):
    rng = np.random.default_rng(seed)
    query, database = rng.integers(0, 2, (3, bits)), rng.integers(0, 2, (items, bits))
    affinity = rng.choice([0, 0, 0, 1, 2], (3, items)) * (rng.random((3, 1)) < 0.9)
    scores = rng.integers(0, 6, (3, items)) / 2 if seed % 2 else rng.normal(size=(3, items))
    return query, database, affinity, scores, judgements_of(affinity)


@pytest.mark.parametrize("candidates", [1, 2, 4, 7, 11, 30])
@pytest.mark.parametrize("seed", range(6))
def test_rescoring_equals_brute_force_over_all_choices(seed, candidates):
    query, database, affinity, scores, judged = case(seed)
    codes = pack(query), pack(database), 4
    found = rescored(*codes, judged, lambda q, items: scores[q, items], candidates, AT)
    check_all_choices(found, (query[:, None] != database).sum(axis=2), affinity, scores, candidates)


@pytest.mark.parametrize("candidates", [1, 5, 11])
def test_rescoring_by_any_distance_equals_brute_force_over_all_choices(candidates):
    _, _, affinity, scores, judged = case(8)
    distances = np.random.default_rng(8).integers(-3, 3, affinity.shape) / 7
    found = rescored_by(lambda q: distances[q], judged, lambda q, items: scores[q, items], candidates, AT)
    check_all_choices(found, distances, affinity, scores, candidates)


def check_all_choices(found, distances, affinity, scores, candidates):
    for q, distance in enumerate(distances):
        taken = min(candidates, len(distance))
        cut = np.sort(distance)[taken - 1]
        certain = np.flatnonzero(distance < cut)
        judged, every = dict(enumerate(affinity[q].tolist())), []
        for some in combinations(np.flatnonzero(distance == cut), taken - len(certain)):
            chosen = np.sort(np.concatenate([certain, some])).astype(int)
            order = chosen[np.argsort(-scores[q, chosen], kind="stable")]
            every.append(order.tolist())
        assert set(found) == set(METRICS)
        for name, values in found.items():
            expected = [plain(name, one, judged, "exponential", without_relevant=1.0) for one in every]
            assert values.minimum[q] <= values.expected[q] <= values.maximum[q], name
            assert values.expected[q] == pytest.approx(np.mean(expected), abs=1e-12), name
            assert values.minimum[q] == pytest.approx(min(expected), abs=1e-12), name
            assert values.maximum[q] == pytest.approx(max(expected), abs=1e-12), name


def test_asymmetric_and_estimated_similarities_are_plain_sums_and_equal_items_tie():
    rng = np.random.default_rng(4)
    query, same = rng.normal(size=(7, 37)), np.concatenate([np.arange(50), rng.integers(0, 50, 40)])
    database = rng.integers(0, 2, (90, 37))[same]
    factors = rng.normal(size=(90, 2)).astype(np.float32)[same]
    plain = [[sum(q * (1 if bit else -1) for q, bit in zip(row, code)) for code in database] for row in query]
    found = asymmetric_similarity(query, pack(database), 37)
    assert np.allclose(found, plain) and np.array_equal(found, found[:, same])
    found = estimated_similarity(query, pack(database), factors, 37)
    assert np.allclose(found, factors[:, 0] * plain + factors[:, 1]) and np.array_equal(found, found[:, same])
    for wrong in (factors[:5], np.full((90, 2), np.nan)):
        with refused("factors must be finite, of shape (90, 2)"):
            estimated_similarity(query, pack(database), wrong, 37)


def test_counts_of_ties_by_hand():
    """Similarities .9, .5 twice, and three that are joined, being irrelevant, as is the first of query 1."""
    similarity = np.array([[0.5, 0.9, 0.5, -1.0, -2.0, -3.0]] * 2)
    level = np.array([[0, 1, 1, 0, 0, 0], [0, 0, 0, 0, 1, 0]])
    ranked = ranked_histograms(similarity, level, np.arange(2))
    assert ranked.counts.tolist() == [[[0, 1, 3], [1, 1, 0]], [[4, 0, 1], [0, 1, 0]]]


NONE = np.zeros(0, int)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"candidates": 0}, "candidates must be a positive integer, not 0"),
        ({"at": (0,)}, "K must be a positive integer, not 0"),
        ({"judgements": SparseJudgements(NONE, NONE, NONE, (3, 12))}, "3 queries and 12 items do not fit 3"),
        ({"judgements": SparseJudgements([0], [1], [1100], [3, 11])}, "255"),
        ({"similarity": lambda q, items: items[:1] * np.nan}, "similarity of query 0 must be finite"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    query, database, _, scores, judged = case(0)
    given = {"judgements": judged, "similarity": lambda q, items: scores[q, items], "candidates": 3}
    with refused(message):
        rescored(pack(query), pack(database), 4, **(given | change))


def test_similarities_and_levels_that_do_not_fit_are_refused():
    _, database, _, scores, judged = case(0)
    for floats, message in ((np.ones((2, 3)), "must be (n, 4), not"), (np.full((2, 4), np.nan), "finite")):
        with refused(message):
            asymmetric_similarity(floats, pack(database), 4)
    for distances in (np.full(11, np.nan), np.zeros(10)):
        with refused("distances of query 0 must be finite, of shape"):
            rescored_by(lambda q, of=distances: of, judged, lambda q, items: scores[q, items], 3)
    for score, level, message in ((np.nan, 0, "finite"), (1, -1, "level must be 0 to 1"), (1, 2, "0 to 1")):
        with refused(message):
            ranked_histograms(np.full((1, 1), score), np.full((1, 1), level), np.arange(2))
    with refused("affinities must be 0 to 255"):  # levels of one byte would be others
        ranked_histograms(np.ones((1, 1)), np.zeros((1, 1), int), np.arange(300))
    assert ranked_histograms(np.ones((2, 0)), np.zeros((2, 0), int), np.arange(2)).counts.sum() == 0
