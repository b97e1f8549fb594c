"""Affinity against plain loops over pairs, thresholds against plain percentiles, and what does not fit."""

import json

import numpy as np
import pytest

from datasets.affinity import Affinity, check, check_spec, make, neighbours
from datasets.affinity.distance_levels import MOST_PAIRS
from datasets.description import Description
from tests.tiebench.refusals import refused

GENERATOR = np.random.default_rng(8)
CLASSES = GENERATOR.integers(0, 5, 60)
MULTI_HOT = (GENERATOR.random((60, 9)) < 0.3).astype(np.uint8)
ROWS, COLUMNS = GENERATOR.permutation(60)[:17], GENERATOR.integers(0, 60, 41)
LEVELS = {"kind": "distance_levels", "percentiles": [5, 1, 0.2, 0.1], "levels": [1, 2, 5, 10]}


def pairs(function) -> np.ndarray:
    return np.array([[function(int(row), int(column)) for column in COLUMNS] for row in ROWS])


def shared(row: int, column: int) -> int:
    return len(set(np.flatnonzero(MULTI_HOT[row])) & set(np.flatnonzero(MULTI_HOT[column])))


@pytest.mark.parametrize(
    ("kind", "labels", "plain", "levels"),
    [
        ("class", CLASSES, lambda r, c: int(CLASSES[r] == CLASSES[c]), (0, 1)),
        ("shared_label", MULTI_HOT, lambda r, c: int(shared(r, c) > 0), (0, 1)),
        ("shared_labels", MULTI_HOT, shared, tuple(range(MULTI_HOT.sum(axis=1).max() + 1))),
    ],
)
def test_affinity_of_labels_against_plain_loops(kind, labels, plain, levels):
    affinity = make({"kind": kind}, labels)
    block = affinity.block(ROWS, COLUMNS)
    assert block.dtype == np.int64
    np.testing.assert_array_equal(block, pairs(plain))
    assert affinity.levels == levels
    assert affinity.metadata()["levels"] == list(levels)
    assert affinity.block(ROWS[:0], COLUMNS).shape == (0, 41)


def test_shared_labels_count_beyond_a_byte():
    """300 labels in common do not fit uint8: no wrapping in sums or products."""
    affinity = make({"kind": "shared_labels"}, np.ones((3, 300), np.uint8))
    assert affinity.block([0], [1, 2]).tolist() == [[300, 300]]
    assert affinity.levels[-1] == 300


def hazen(values: np.ndarray, percentile: float) -> float:
    """MATLAB's prctile: the k-th of n sorted values is at 100 (k - 0.5) / n, linear between."""
    values = np.sort(values)
    return float(np.interp(percentile, 100 * (np.arange(1, len(values) + 1) - 0.5) / len(values), values))


@pytest.mark.parametrize("count", [40, 1500])  # within one block of rows, and across blocks
def test_thresholds_against_plain_percentiles(count):
    features = np.random.default_rng(1).normal(size=(count + 20, 6)).astype(np.float32)
    training = np.random.default_rng(2).permutation(count + 20)[:count]
    affinity = make(LEVELS, None, features, training)
    points = features[training].astype(np.float64)
    distances = np.concatenate(
        [np.sqrt(((points[row] - points[row + 1 :]) ** 2).sum(axis=1)) for row in range(count - 1)]
    )
    expected = [hazen(distances, percentile) for percentile in LEVELS["percentiles"]]
    np.testing.assert_allclose(affinity.thresholds, expected, rtol=1e-12)
    assert affinity.levels == (0, 1, 2, 5, 10)
    # Among the training pairs themselves each level must be as frequent as its percentile says.
    block = affinity.block(training, training)[np.triu_indices(count, 1)]
    for percentile, level in zip(LEVELS["percentiles"], LEVELS["levels"]):
        assert abs((block >= level).sum() - percentile / 100 * len(block)) <= 0.5 + 1e-9


def test_known_thresholds_on_a_line():
    """Points 0, 1, 3, 6 (distances 1, 2, 3, 3, 5, 6): the k-th of six is at 100 (k - 0.5) / 6 percent."""
    points = np.array([[0.0], [1.0], [3.0], [6.0], [100.0], [101.0], [102.5]])
    spec = {"kind": "distance_levels", "percentiles": [75, 50, 25], "levels": [1, 2, 7]}
    affinity = make(spec, None, points, np.array([3, 0, 2, 1]))
    # 75% is the fifth value; 50% lies between the third and the fourth; 25% is the second.
    np.testing.assert_allclose(affinity.thresholds, [5.0, 3.0, 2.0], rtol=1e-15)
    block = affinity.block(np.array([4, 0]), np.array([5, 6, 3, 2, 1, 0]))
    # Distances 1, 2.5, 94 ... and 101, 102.5, 6, 3, 1, 0: one equal to a threshold does not exceed it.
    assert block.tolist() == [[7, 2, 0, 0, 0, 0], [0, 0, 0, 2, 7, 7]]
    measured = {"percentiles": [75.0, 50.0, 25.0], "thresholds": list(affinity.thresholds)}
    assert affinity.metadata() == {"kind": "distance_levels", "levels": [0, 1, 2, 7]} | measured


def test_equal_thresholds_give_the_highest_level():
    corners = np.array([[0.0, 0.0], [0.0, 2.0], [np.sqrt(3), 1.0]])  # all three distances 2
    for features in (corners, np.array([[0.0, 0.0], [1.0, 0.0]])):
        affinity = make(LEVELS, None, features, np.arange(len(features)))
        assert max(affinity.thresholds) - min(affinity.thresholds) < 1e-12
        assert affinity.block([0], [0]).tolist() == [[10]]


def test_entries_do_not_depend_on_the_block():
    """Entries of the whole matrix, single pairs and the transpose agree, with pairs at the thresholds."""
    features = np.random.default_rng(0).normal(size=(70, 131)).astype(np.float32)
    spec = {"kind": "distance_levels", "percentiles": [50.0, 10.0], "levels": [1, 2]}
    affinity = make(spec, None, features, np.array([0, 1, 2]))  # thresholds are distances that occur
    everything = np.arange(70)
    whole = affinity.block(everything, everything)
    np.testing.assert_array_equal(whole, whole.T)
    single = np.array([[affinity.block([row], [column])[0, 0] for column in range(70)] for row in range(70)])
    np.testing.assert_array_equal(whole, single)
    for rows in (3, 8, 17, 69):
        np.testing.assert_array_equal(affinity.block(everything[:rows], everything[5:]), whole[:rows, 5:])
    # The median of three distances is one of them, and the pair that it belongs to is within it.
    assert (whole[:3, :3][np.triu_indices(3, 1)] >= 1).sum() == 2


def test_small_distances_far_from_the_origin():
    """Where |x|^2 + |y|^2 - 2xy has lost all digits, distances still are those of the differences."""
    features = 1e6 + np.array([[0.0], [0.25], [0.75], [1.5]], np.float32)
    spec = {"kind": "distance_levels", "percentiles": [50, 10], "levels": [1, 2]}
    affinity = make(spec, None, features.astype(np.float32), np.arange(4))
    # Distances 0.25, 0.5, 0.75, 0.75, 1.25, 1.5.
    np.testing.assert_allclose(affinity.thresholds, [0.75, 0.25 + 0.1 * 0.25], rtol=1e-12)


def plain_neighbours(points, query, database, k):
    """The k nearest of each query, and all that tie with the k-th, by sorted distances."""
    found = []
    for row in query:
        distances = ((points[database] - points[row]) ** 2).sum(axis=1)
        found.append(set(database[distances <= np.sort(distances)[k - 1]].tolist()))
    return found


@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
@pytest.mark.parametrize("k", [1, 3, 10])
def test_neighbours_against_sorted_distances(distance, k, monkeypatch):
    """On a grid of integers, where many distances tie, far from the origin, and in small blocks."""
    monkeypatch.setattr(neighbours, "_DISTANCES_AT_ONCE", 700)
    monkeypatch.setattr(neighbours, "_DATABASE_VALUES", 90)
    generator = np.random.default_rng(k)
    points = generator.integers(0, 4, (140, 3)) + (1 if distance == "cosine" else 1000)
    points[5] = 0
    rows = generator.permutation(140)
    query, database = np.sort(rows[:40]), np.sort(rows[40:])
    spec, split = {"kind": "neighbours", "k": k, "distance": distance}, {"query": query, "database": database}
    made = make(spec, None, points.astype(np.float32), **split)
    plain = points.astype(float)
    if distance == "cosine":
        plain /= np.maximum(np.linalg.norm(plain, axis=1, keepdims=True), 1e-300)
    expected = plain_neighbours(plain, query, database, k)
    assert sum(map(len, expected)) > 40 * k  # there are ties
    block = made.block(query, np.arange(140))
    assert [set(np.flatnonzero(row).tolist()) for row in block] == expected
    assert not made.block(database, query).any()  # it is not symmetric
    parts = database[:30], database[30:]
    of_parts = made.among(*parts).block(parts[0], np.arange(140))
    assert [set(np.flatnonzero(row).tolist()) for row in of_parts] == plain_neighbours(plain, *parts, k)
    again = make(spec, None, points, measured=json.loads(json.dumps(made.metadata())), **split)
    assert np.array_equal(again.block(query, database), made.block(query, database))
    with refused(pattern="neighbours of another k, distance or split"):
        make({"kind": "neighbours", "k": k + 1}, None, points, measured=made.metadata(), **split)


FEATURES = np.random.default_rng(0).normal(size=(60, 4))
PAIR = np.array([0, 1])


@pytest.mark.parametrize(
    ("spec", "labels", "others", "message"),
    [
        ({"kind": "clas"}, CLASSES, {}, "there is no kind of affinity 'clas'; did you mean 'class'"),
        ({}, CLASSES, {}, "key 'kind' is missing"),
        ("class", CLASSES, {}, "must be a mapping"),
        ({"kind": "class", "levels": [1]}, CLASSES, {}, "unknown key 'levels' for kind 'class'"),
        (
            {"kind": "class"},
            MULTI_HOT,
            {},
            "has multi-hot labels; kinds that do: distance_levels, judgements, ",
        ),
        ({"kind": "shared_label"}, CLASSES, {}, "a dataset that has classes; kinds that do: class"),
        ({"kind": "shared_labels"}, None, {}, "has no labels; kinds that do: distance_levels"),
        ({"kind": "neighbours", "k": 0}, None, {}, "'k': must be a positive integer, not 0"),
        ({"kind": "neighbours", "k": 5, "distance": "cosin"}, None, {}, "did you mean 'cosine'"),
        ({"kind": "neighbours", "k": 5}, None, {"features": FEATURES}, "its queries and its database"),
        (
            {"kind": "neighbours", "k": 5},
            None,
            {"features": FEATURES, "query": PAIR, "database": PAIR},
            "k is 5, and the database has only 2 items",
        ),
        ({"kind": "judgements"}, CLASSES, {}, "needs a dataset that comes with judgements"),
        ({"kind": "class"}, np.zeros((60, 0)), {}, "has no labels"),
        ({"kind": "class"}, CLASSES / 2, {}, "must be integers"),
        ({"kind": "shared_labels"}, MULTI_HOT * 2, {}, "must be 0 or 1"),
        ({"kind": "distance_levels", "levels": [1]}, None, {}, "key 'percentiles' is missing"),
        (LEVELS | {"levels": [1, 2]}, None, {}, "4 percentiles and 2 levels"),
        (LEVELS | {"percentiles": [0.1, 0.2, 1, 5]}, None, {}, "'percentiles' must descend"),
        (LEVELS | {"levels": [1, 2, 2, 3]}, None, {}, "'levels' must ascend"),
        (LEVELS | {"levels": [0, 1, 2, 3]}, None, {}, "'levels': must be a positive integer, not 0"),
        (LEVELS | {"percentiles": [100, 1, 0.2, 0.1]}, None, {}, "between 0 and 100, not 100"),
        (LEVELS | {"percentiles": 5}, None, {}, "'percentiles' must be a list of numbers, not 5"),
        (LEVELS, None, {"features": FEATURES}, "needs the features of the dataset and its training set"),
        (LEVELS, None, {"features": FEATURES, "training": [1]}, "needs at least two training items"),
        (
            LEVELS,
            None,
            {"features": FEATURES, "training": [0.5, 1]},
            "training must be a list of row numbers",
        ),
    ],
)
def test_what_does_not_fit(spec, labels, others, message):
    with refused(pattern=f"^affinity.*{message}"):
        make(spec, labels, **others)


def test_too_many_training_pairs_are_refused_before_memory_is_asked_for():
    features = np.zeros((30_000, 1), np.float32)
    with refused(pattern="at most 22361 training items, not 30000"):
        make(LEVELS, None, features, np.arange(30_000))
    assert 22_361 * 22_360 // 2 <= MOST_PAIRS < 22_362 * 22_361 // 2


def test_check_says_it_without_data():
    pixels = Description(4, np.arange(4), None, None, (8, 8, 3), "images")
    check({"kind": "class"}, pixels)
    with refused(pattern="does not fit a dataset that has classes"):
        check({"kind": "shared_labels"}, pixels)
    check(LEVELS, pixels)  # measured on what a network makes of the images


@pytest.mark.parametrize("rows", [[True, False], [0.0], [[1]], 3])
def test_block_takes_lists_of_row_numbers(rows):
    affinity = make({"kind": "class"}, CLASSES)
    with refused(pattern="rows must be a list of row numbers"):
        affinity.block(rows, COLUMNS)
    with pytest.raises(IndexError):
        affinity.block([60], COLUMNS)


def test_a_kind_that_sets_no_levels_is_named(monkeypatch):
    kind = check_spec({"kind": "class"})
    monkeypatch.setattr(kind, "make", lambda spec, inputs: Affinity())
    monkeypatch.delattr(kind, "levels", raising=False)
    with refused(pattern=r"^affinity: kind 'class' must set `levels`"):
        make({"kind": "class"}, CLASSES)


def test_neighbours_of_large_values_are_those_of_small_ones():
    features = np.random.default_rng(0).standard_normal((40, 2)).astype(np.float32)
    items = np.arange(40)
    for scale in (1e18, 3e19, 1e37):
        large = (features.astype(np.float64) * scale).astype(np.float32)
        for distance in neighbours.DISTANCES:
            found = neighbours.nearest(large, items, items, 4, distance)
            expected = neighbours.nearest(features, items, items, 4, distance)
            assert [one.tolist() for one in found] == [one.tolist() for one in expected]
