"""Splits against brute force, trees against scikit-learn's, boosting against a plain AdaBoost."""

import itertools
import math

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from methods.learners.boosting import (
    LEVELS,
    BoostedTrees,
    Quantiser,
    _best_split,
    _rank_levels,
    boost,
    scores_of,
)


def problem(seed, items=120, dimensions=6, most=40, noise=0.6):
    """Levels uint8 (d, n), codes (n,) that depend on a few of them, and uneven weights."""
    generator = np.random.default_rng(seed)
    levels = generator.integers(0, most, (dimensions, items)).astype(np.uint8)
    centred = levels / most - 0.5
    scores = centred[0] + 3 * centred[1 % dimensions] * centred[2 % dimensions]
    codes = np.where(scores + noise * generator.normal(size=items) * scores.std() > 0, 1, -1)
    weights = generator.exponential(size=items) + 0.01
    return levels, codes, weights


def by_item(levels):
    return np.ascontiguousarray(levels.T)


def leaf_of(function, tree, levels):
    """The leaf of each item, level by level of the tree; levels: (d, n)."""
    inner = function.features.shape[1]
    node = np.zeros(levels.shape[1], int)
    while node[0] < inner:
        above = levels[function.features[tree][node], np.arange(len(node))] > function.thresholds[tree][node]
        node = 2 * node + 1 + above
    return node - inner


def tree_scores(function, tree, levels):
    return function.leaves[tree][leaf_of(function, tree, levels)].astype(np.float64)


def impurity(codes, weights):
    """Weight times Gini impurity."""
    total = weights.sum()
    if total == 0:
        return 0.0
    positive = weights[codes > 0].sum() / total
    return total * 2 * positive * (1 - positive)


def split(levels, rows, codes, weights, pool, tries):
    """(feature, threshold), as levels: (-1, -1) if there is none."""
    values, distinct = np.empty((len(levels), LEVELS), np.uint8), np.empty(len(levels), np.int64)
    ranks = _rank_levels(levels, values, distinct)
    assert all(values[k, : distinct[k]].tolist() == np.unique(levels[k]).tolist() for k in range(len(levels)))
    whole = np.round(weights[rows] * (2**31 / weights[rows].sum())).astype(np.uint64)
    masses = np.where(codes[rows] > 0, whole << np.uint64(32), whole)
    histogram = np.zeros((4, LEVELS), np.uint64)
    feature, rank = _best_split(ranks, distinct, rows.astype(np.uint32), masses, pool, tries, histogram)
    assert not histogram.any()
    return feature, (int(values[feature, rank]) if feature >= 0 else rank)


@pytest.mark.parametrize("most", [2, 5, 256])
@pytest.mark.parametrize("tries", [1, 3, 6])
def test_a_split_has_the_least_gini_impurity_of_all_features_and_thresholds(most, tries):
    for seed in range(10):
        levels, codes, weights = problem(seed, items=40, most=most)
        generator = np.random.default_rng(seed)
        rows = np.sort(generator.choice(40, 25, replace=False))
        pool = generator.permutation(6)
        weights[generator.random(40) < 0.1] = 0  # examples that weigh nothing do not matter
        feature, threshold = split(levels, rows, codes, weights, pool, tries)
        own_codes, own_weights = codes[rows], weights[rows]
        found = {}
        for tried, at in itertools.product(pool[:tries], range(most)):
            left = levels[tried, rows] <= at
            found[tried, at] = impurity(own_codes[left], own_weights[left]) + impurity(
                own_codes[~left], own_weights[~left]
            )
        # Weights are integers of 2^-31 of their sum.
        assert found[feature, threshold] == pytest.approx(min(found.values()), rel=1e-7)
        assert found[feature, threshold] < impurity(own_codes, own_weights)


def test_there_is_no_split_where_none_lowers_the_impurity():
    rows, pool = np.arange(8), np.arange(2)
    constant = np.full((2, 8), 7, np.uint8)
    codes = np.array([1, 1, 1, -1, 1, -1, 1, 1])
    weights = np.random.default_rng(0).random(8)
    assert split(constant, rows, codes, weights, pool, 2) == (-1, -1)
    # Each half holds both codes in the same proportion.
    levels = np.repeat([[0, 0, 0, 0, 1, 1, 1, 1]], 2, axis=0).astype(np.uint8)
    for half in ([1, -1, 1, -1], [1, 1, -1, 1], [-1, -1, -1, 1]):
        assert split(levels, rows, np.array(half * 2), np.full(8, 0.1), pool, 2) == (-1, -1)


def sklearn_tree(levels, codes, weights, depth):
    tree = DecisionTreeClassifier(criterion="gini", max_depth=depth, min_samples_split=5, random_state=0)
    return tree.fit(levels.T, codes, sample_weight=weights)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("most", [3, 40, 256])
def test_a_tree_is_that_of_scikit_learn(depth, most):
    for seed in range(8):
        levels, codes, weights = problem(seed, items=150, most=most)
        function, _ = boost(levels, codes, weights, 0, trees=1, depth=depth, features=6, trimming=1.0)
        theirs = sklearn_tree(levels, codes, weights, depth)
        assert np.array_equal(np.sign(tree_scores(function, 0, levels)), theirs.predict(levels.T))
        # The same impurity is left: the leaves part the examples in the same way, not only by their signs.
        # Leaves of one sign whose parent has that sign, too, make no difference to predictions.
        ours, others = leaf_of(function, 0, levels), theirs.apply(levels.T)
        left = [
            sum(impurity(codes[leaf == at], weights[leaf == at]) for at in np.unique(leaf))
            for leaf in (ours, others)
        ]
        assert left[0] == pytest.approx(left[1], rel=1e-9)


def test_nodes_of_fewer_than_five_examples_are_not_split():
    levels = np.arange(9, dtype=np.uint8)[None]
    codes = np.array([1, 1, 1, 1, 1, -1, 1, -1, -1])
    function, scores = boost(levels, codes, np.ones(9), 0, trees=1, depth=4, features=1)
    # The first split leaves four examples on the right, most of them -1.
    assert np.sign(scores).tolist() == [1, 1, 1, 1, 1, -1, -1, -1, -1]
    assert len(np.unique(leaf_of(function, 0, levels))) == 2
    # With one more example there it is split: five are enough.
    levels, codes = np.arange(10, dtype=np.uint8)[None], np.append(codes, -1)
    function, scores = boost(levels, codes, np.ones(10), 0, trees=1, depth=4, features=1)
    assert len(np.unique(leaf_of(function, 0, levels))) == 3


def test_nodes_of_almost_no_weight_are_not_split():
    levels = np.arange(20, dtype=np.uint8)[None]
    codes = np.array([1] * 10 + [-1] * 5 + [1] * 5)
    for light, leaves in ((1e-2, 3), (1e-4, 2)):
        weights = np.r_[np.ones(10), np.full(10, light)]
        function, _ = boost(levels, codes, weights, 0, trees=1, depth=2, features=1, trimming=1.0)
        assert len(np.unique(leaf_of(function, 0, levels))) == leaves


@pytest.mark.parametrize("code", [1, -1])
def test_codes_of_one_value_make_trees_of_one_leaf(code):
    levels, _, weights = problem(0)
    function, scores = boost(levels, np.full(120, code), weights, 0, trees=3, depth=3, features=6)
    assert np.all(np.sign(scores) == code)
    # A perfect tree's vote, of the weight of all examples, whose mean is 1.
    assert np.abs(scores) == pytest.approx(3 * (math.log(120) + math.log(1e8)), rel=1e-6)
    others = np.random.default_rng(1).integers(0, 256, (50, 6)).astype(np.uint8)
    assert np.all(np.sign(scores_of([function], others)[:, 0]) == code)


def heaviest(weights, share):
    """The fewest examples, heaviest first, that carry the share of the weight; with ties at the end, all of
    them."""
    order = np.argsort(-weights, kind="stable")
    count = int(np.searchsorted(np.cumsum(weights[order]), share * weights.sum())) + 1
    return weights >= weights[order[min(count, len(weights)) - 1]]


@pytest.mark.parametrize("trimming", [1.0, 0.99, 0.8])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_votes_and_predictions_are_those_of_a_plain_adaboost(depth, trimming):
    trimmed = 0
    for seed in range(3):
        levels, codes, weights = problem(seed, noise=0.6 if depth < 4 else 2.0)
        function, scores = boost(
            levels, codes, weights, 0, trees=12, depth=depth, features=6, trimming=trimming
        )
        assert len(function.leaves) == 12
        weights = weights / weights.mean()
        expected = np.zeros(120)
        for tree in range(12):
            kept = heaviest(weights, trimming)
            trimmed += np.count_nonzero(~kept)
            found = tree_scores(function, tree, levels)
            predicted = sklearn_tree(levels[:, kept], codes[kept], weights[kept], depth).predict(levels.T)
            assert np.array_equal(np.sign(found[kept]), predicted[kept])
            # Where in the gap between two examples a threshold lies is seen by those that were left out only.
            predicted[~kept] = np.sign(found[~kept])
            right, wrong = weights[predicted == codes].sum(), weights[predicted != codes].sum()
            vote = 0.5 * np.log(right / wrong)
            assert found == pytest.approx(vote * predicted, rel=1e-5)
            expected += vote * predicted
            weights = weights * np.exp(-vote * codes * predicted)
            weights = weights / weights.mean()
        assert scores == pytest.approx(expected, rel=1e-4, abs=1e-5)
    assert (trimmed > 0) == (trimming < 1)


def test_trees_without_a_vote_are_dropped():
    levels = np.full((3, 10), 8, np.uint8)
    codes = np.array([1, -1] * 5)
    function, scores = boost(levels, codes, np.ones(10), 0, trees=5, depth=2, features=3)
    assert function.features.shape == function.thresholds.shape == (0, 3)
    assert function.leaves.shape == (0, 4)
    assert scores.tolist() == [0] * 10
    assert scores_of([function], by_item(levels))[:, 0].tolist() == [0] * 10
    # Of the parts of a trimmed problem a tree may fit one and fail at the whole: here a tree sees the four
    # heavy examples only, which are of one code, and is wrong about more than half of the weight.
    codes = np.array([1] * 4 + [-1] * 96)
    weights = np.r_[np.full(4, 10.0), np.ones(96)]
    function, scores = boost(np.zeros((1, 100), np.uint8), codes, weights, 0, 2, features=1, trimming=0.2)
    assert len(function.leaves) == 0
    assert scores.tolist() == [0] * 100


@pytest.mark.parametrize("case", ["plain", "ones", "few"])
def test_scores_of_the_training_items_are_the_returned_ones_to_the_last_bit(case):
    """Bits are signs of scores, and later bits build on those of the training items: a sum that is 0 but for
    rounding must have one sign only."""
    for seed in range(150):
        generator = np.random.default_rng(seed)
        if case == "plain":
            levels, codes, weights = problem(seed, items=60)
        else:  # equal weights and few levels make votes that cancel
            items = 60 if case == "ones" else int(generator.integers(4, 25))
            levels = generator.integers(0, 4, (3, items)).astype(np.uint8)
            codes, weights = generator.choice([-1, 1], items), np.ones(items)
        function, scores = boost(levels, codes, weights, seed, trees=9, depth=1, features=6)
        assert scores.dtype == np.float32
        assert np.array_equal(scores_of([function], by_item(levels))[:, 0], scores)
        summed = sum((tree_scores(function, t, levels) for t in range(len(function.leaves))), np.zeros(1))
        assert scores == pytest.approx(np.broadcast_to(summed, scores.shape), rel=1e-5, abs=1e-5)


def test_a_seed_decides_which_features_are_tried():
    levels, codes, weights = problem(0)

    def made(seed, features):
        function, scores = boost(levels, codes, weights, seed, trees=30, depth=2, features=features)
        return function.features.tobytes(), function.leaves.tobytes(), scores.tobytes()

    assert made(1, 2) == made(1, 2) != made(2, 2)
    # Where all are tried, there is nothing left to draw; more than there are is all.
    assert made(1, 6) == made(2, 6) == made(1, 600)
    function, _ = boost(levels, codes, weights, 1, trees=200, depth=1, features=1)
    # With one feature per node, each has its turn: a stump on any feature has some vote.
    counts = np.bincount(function.features[:, 0], minlength=6)
    assert counts.min() > 10


def test_arguments_are_left_alone_and_scales_of_weights_and_kinds_of_codes_do_not_matter():
    levels, codes, weights = problem(4)
    before = levels.copy(), codes.copy(), weights.copy()
    function, scores = boost(levels, codes, weights, 0, trees=10, depth=3, features=3)
    for array, copy in zip((levels, codes, weights), before):
        assert np.array_equal(array, copy)
    for other_codes, other_weights in (
        (codes.astype(np.int8), weights * 2.0**40),
        (codes.astype(np.float64), weights * 2.0**-40),
    ):
        same, same_scores = boost(levels, other_codes, other_weights, 0, trees=10, depth=3, features=3)
        assert np.array_equal(same.features, function.features)
        assert same_scores == pytest.approx(scores, rel=1e-5)


def test_examples_that_weigh_nothing_change_nothing_unless_none_weighs_anything():
    levels, codes, weights = problem(6)
    _, none = boost(levels, codes, np.zeros(120), 0, trees=10, depth=3, features=6)
    _, equal = boost(levels, codes, np.ones(120), 0, trees=10, depth=3, features=6)
    assert np.array_equal(none, equal)
    weights[100:] = 0
    function, scores = boost(levels, codes, weights, 0, trees=8, depth=3, features=6)
    alone, alone_scores = boost(
        np.ascontiguousarray(levels[:, :100]), codes[:100], weights[:100], 0, trees=8, depth=3, features=6
    )
    assert np.array_equal(function.features, alone.features)
    assert np.array_equal(function.thresholds, alone.thresholds)
    assert function.leaves == pytest.approx(alone.leaves, rel=1e-6)
    assert scores[:100] == pytest.approx(alone_scores, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("items", [1, 2, 4])
def test_a_handful_of_items_gets_the_majority(items):
    levels = np.arange(items, dtype=np.uint8)[None]
    codes = np.array([1, 1, 1, -1][:items])
    _, scores = boost(levels, codes, np.ones(items), 0, trees=1)
    assert np.all(scores > 0)


@pytest.mark.parametrize("depth", [1, 2, 4, 6])
@pytest.mark.parametrize("items", [1, 256, 600])
def test_scores_of_several_functions_are_those_of_walks_down_their_trees(depth, items):
    generator = np.random.default_rng(depth)
    inner = 2**depth - 1
    functions = [
        BoostedTrees(
            generator.integers(0, 5, (trees, inner)).astype(np.int32),
            generator.integers(0, LEVELS, (trees, inner)).astype(np.uint8),
            generator.normal(size=(trees, inner + 1)).astype(np.float32),
        )
        for trees in (3, 0, 1, 2)
    ]
    levels = generator.integers(0, LEVELS, (items, 5)).astype(np.uint8)
    expected = np.zeros((items, len(functions)), np.float32)
    for column, function in enumerate(functions):
        for tree, leaves in enumerate(function.leaves):
            expected[:, column] += leaves[leaf_of(function, tree, levels.T)]
    assert np.array_equal(scores_of(functions, levels), expected)


def test_levels_divide_the_widened_range_of_each_feature():
    items = (np.random.default_rng(0).normal(size=(400, 5)) * [1e-3, 1, 50, 1e6, 1]).astype(np.float32)
    levels = Quantiser.fit(items)(items)
    assert levels.dtype == np.uint8
    assert levels.shape == (400, 5)
    for column in range(5):
        values = items[:, column].astype(np.float64)
        margin = (values.max() - values.min()) / 1000
        edges = np.linspace(values.min() - margin, values.max() + margin, LEVELS + 1)
        expected = np.searchsorted(edges, values, side="right") - 1
        # Within single precision of an edge, either side will do.
        near = np.abs(values[:, None] - edges).min(axis=1) < 1e-5 * (edges[-1] - edges[0])
        assert near.mean() < 0.05
        assert np.array_equal(levels[~near, column], expected[~near])
        assert np.abs(levels[:, column].astype(int) - expected).max() <= 1
        order = np.argsort(values)
        assert np.all(np.diff(levels[order, column].astype(int)) >= 0)
    # The widening is less than a level: both ends are in use.
    assert levels.min(axis=0).tolist() == [0] * 5
    assert levels.max(axis=0).tolist() == [LEVELS - 1] * 5


def test_values_outside_the_training_range_take_the_nearest_level():
    quantiser = Quantiser.fit(np.array([[0.0, -1], [1, 1]], np.float32))
    outside = np.array([[-0.5, 1.5], [-1e30, 1e30], [2, -7], [-np.inf, np.inf]], np.float32)
    assert quantiser(outside).tolist() == [[0, 255], [0, 255], [255, 0], [0, 255]]


@pytest.mark.parametrize("width", [1e-38, 1e-42, 1e-44, 1e-45])
def test_a_range_of_the_smallest_floats_gives_some_levels_and_no_warning(width):
    items = np.array([[0], [width]], np.float32)
    levels = Quantiser.fit(items)(items)
    assert levels[0, 0] <= levels[1, 0]


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        *((np.full(6, value, np.float32), 1) for value in (0.0, -3.5, 1e-30, 1e30)),
        (np.float32(1e6) + np.arange(8, dtype=np.float32) / 16, 8),  # single precision just tells them apart
        (np.arange(256, dtype=np.uint8), 256),
    ],
)
def test_a_feature_has_as_many_levels_as_it_has_values(values, levels):
    found = Quantiser.fit(values[:, None])(values[:, None])[:, 0].astype(int)
    assert len(np.unique(found)) == levels
    assert np.all(np.diff(found) >= 0)
