"""Block cuts against exhaustive search over all codes of a block."""

import itertools

import networkx as nx
import numpy as np
import pytest
from sets import pairs_of

from methods.learners import graph_cuts
from methods.learners.graph_cuts import BlockCuts
from methods.relations.pairs import Pairs

POINTS = 11
CODES = np.array(list(itertools.product([-1.0, 1.0], repeat=POINTS)))
EVERY_PAIR = np.array(list(itertools.combinations(range(POINTS), 2)), np.int32)
PRODUCTS = CODES[:, EVERY_PAIR[:, 0]] * CODES[:, EVERY_PAIR[:, 1]]


def some_pairs(items, share=1.0, generator=None):
    return pairs_of(np.zeros(items), share, generator)


def one_block(pairs):
    return BlockCuts(pairs, [np.arange(pairs.items)])


def plain_objective(pairs, codes, weights, linear):
    total = 0.0
    for first, second, weight in zip(pairs.first, pairs.second, weights):
        total += weight * codes[first] * codes[second]
    for item in range(pairs.items):
        total += 0.0 if linear is None else linear[item] * codes[item]
    return total


def draw(kind, generator):
    """Weights of all pairs, none above 0, and linear terms."""
    weights = -generator.random(len(EVERY_PAIR))
    linear = generator.normal(size=POINTS) * 2
    if kind == "sparse":
        weights *= generator.random(len(weights)) < 0.2
        linear *= generator.random(POINTS) < 0.6
    elif kind == "integers":  # many ties, and every value is exact
        weights = -generator.integers(0, 4, len(weights)).astype(float)
        linear = generator.integers(-9, 10, POINTS).astype(float)
    elif kind == "weights apart":
        weights *= 10 ** generator.uniform(-9, 0, len(weights))
    elif kind == "pulls apart":
        linear *= 10 ** generator.uniform(-9, 0, POINTS)
        weights *= 0.05
    elif kind == "weak pairs":
        weights *= 1e-9
    elif kind == "weak pulls":
        linear *= 1e-5
    elif kind == "one strong pull":
        linear[3] *= 1e6
    elif kind == "one against all":
        linear = np.abs(linear)
        linear[5] *= -3
    elif kind == "one way":
        linear = np.abs(linear) * generator.choice([-1, 1])
        linear[: POINTS // 2] = 0
    elif kind == "no pull":
        linear[:] = 0
    elif kind == "no weight":
        weights[:] = 0
        linear *= generator.random(POINTS) < 0.6
    return weights, linear


KINDS = ["plain", "sparse", "integers", "weights apart", "pulls apart", "weak pairs", "weak pulls"]
KINDS += ["one strong pull", "one against all", "one way", "no pull", "no weight"]


@pytest.fixture(params=[0, 8], autouse=True)
def tried(request, monkeypatch):
    """With and without trying all codes of the few items that are left undecided."""
    monkeypatch.setattr(graph_cuts, "_TRIED", request.param)


@pytest.mark.parametrize("magnitude", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("kind", KINDS)
def test_one_block_takes_its_best_codes(kind, magnitude):
    cuts = one_block(some_pairs(POINTS))
    for seed in range(15):
        generator = np.random.default_rng(seed)
        weights, linear = draw(kind, generator)
        weights, linear = magnitude * weights, magnitude * linear
        values = PRODUCTS @ weights + CODES @ linear
        start = generator.choice([-1.0, 1.0], POINTS)
        codes = cuts.lower(start, weights, generator, linear)
        assert codes.dtype == np.float64
        assert np.all(np.abs(codes) == 1)
        # Capacities are rounded to a billionth of what the pulls of the weaker side add up to.
        slack = 1e-7 * np.abs(linear).sum() + 1e-14 * np.abs(weights).sum()
        reached = plain_objective(cuts.pairs, codes, weights, linear)
        assert reached <= values.min() + slack
        if kind == "integers" and magnitude == 1:
            assert reached == values.min()


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_missing_pairs_weigh_nothing(share):
    for seed in range(40):
        generator = np.random.default_rng(seed)
        pairs = some_pairs(POINTS, share, generator)
        weights, linear = -generator.random(len(pairs)), generator.normal(size=POINTS)
        values = CODES @ linear + (CODES[:, pairs.first] * CODES[:, pairs.second]) @ weights
        codes = one_block(pairs).lower(np.ones(POINTS), weights, generator, linear)
        # Without ties the best codes are known, not only their value.
        assert np.array_equal(codes, CODES[np.argmin(values)])


def test_codes_that_nothing_betters_are_kept():
    """With no pull both constants are best; other codes are left for one of them, and a best one stays."""
    pairs = some_pairs(6)
    cuts = one_block(pairs)
    generator = np.random.default_rng(0)
    weights = -generator.random(len(pairs))
    for start in (np.ones(6), -np.ones(6)):
        assert np.array_equal(cuts.lower(start, weights, generator), start)
    mixed = cuts.lower(np.array([1.0, -1, 1, -1, 1, -1]), weights, generator)
    assert abs(mixed.sum()) == 6
    start = generator.choice([-1.0, 1.0], 6)
    assert np.array_equal(cuts.lower(start, np.zeros(len(pairs)), generator, np.zeros(6)), start)


def test_the_start_is_not_written_to_and_integers_serve():
    pairs = some_pairs(6)
    generator = np.random.default_rng(0)
    start = np.ones(6, np.int8)
    linear = np.arange(6) - 1.5
    codes = one_block(pairs).lower(start, np.zeros(len(pairs)), generator, linear)
    assert start.tolist() == [1] * 6
    assert codes.tolist() == [1, 1, -1, -1, -1, -1]
    assert codes.dtype == np.float64


def several(seed, items=24, blocks=4, share=0.4, submodular=True):
    """A problem with blocks of uneven sizes; weights across them of any sign, within them none above 0 if
    submodular."""
    generator = np.random.default_rng(seed)
    pairs = some_pairs(items, share, generator)
    where = np.concatenate([np.arange(blocks), generator.integers(0, blocks, items - blocks)])
    generator.shuffle(where)
    weights = generator.normal(size=len(pairs))
    if submodular:
        inside = where[pairs.first] == where[pairs.second]
        weights[inside] = -np.abs(weights[inside])
    cuts = BlockCuts(pairs, [np.flatnonzero(where == number) for number in range(blocks)])
    linear = generator.normal(size=items) if seed % 2 else None
    return cuts, where, weights, linear, generator


@pytest.mark.parametrize("seed", range(6))
def test_the_objective_is_that_of_a_plain_loop(seed):
    cuts, _, weights, linear, generator = several(seed, submodular=False)
    codes = generator.choice([-1, 1], 24)
    expected = plain_objective(cuts.pairs, codes, weights, linear)
    for kind in (np.float64, np.int8):
        value = cuts.objective(codes.astype(kind), weights, linear)
        assert isinstance(value, float)
        assert value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("submodular", [True, False])
@pytest.mark.parametrize("blocks", [1, 2, 5, 24])
def test_the_objective_never_rises(blocks, submodular):
    for seed in range(20):
        cuts, _, weights, linear, generator = several(seed, blocks=blocks, submodular=submodular)
        codes = generator.choice([-1.0, 1.0], 24)
        value = cuts.objective(codes, weights, linear)
        for _ in range(4):
            codes = cuts.lower(codes, weights, generator, linear, passes=1)
            lowered = cuts.objective(codes, weights, linear)
            assert lowered <= value + 1e-12 * np.abs(weights).sum()
            value = lowered


@pytest.mark.parametrize("seed", range(6))
def test_integer_weights_in_units_and_pairs_in_any_order_lower_alike(seed):
    cuts, where, _, linear, generator = several(seed, submodular=False)
    integers = generator.integers(-9, 10, len(cuts.pairs), np.int32)
    order = generator.permutation(len(integers))
    parts = cuts.pairs.first, cuts.pairs.second, cuts.pairs.similar
    pairs = Pairs(cuts.pairs.items, *(part[order] for part in parts))
    mixed = BlockCuts(pairs, [np.flatnonzero(where == number) for number in np.unique(where)])
    start = generator.choice([-1.0, 1.0], 24)

    def lowered(problem, weights, **more):
        return problem.lower(start, weights, np.random.default_rng(seed), linear, passes=3, **more).tolist()

    expected = lowered(cuts, 0.25 * integers)
    assert lowered(cuts, integers, unit=0.25) == expected
    assert lowered(mixed, 0.25 * integers[order]) == expected
    assert expected != start.tolist()


@pytest.mark.parametrize("blocks", [2, 4, 24])
def test_at_the_end_no_block_can_do_better_given_the_others(blocks):
    for seed in range(10):
        cuts, where, weights, linear, generator = several(seed, items=24, blocks=blocks)
        codes = cuts.lower(np.ones(24), weights, generator, linear, passes=100)
        assert np.array_equal(cuts.lower(codes, weights, generator, linear, passes=1), codes)
        value = cuts.objective(codes, weights, linear)
        for number in range(blocks):
            block = np.flatnonzero(where == number)[:12]  # of larger blocks, changes to twelve items
            others = np.tile(codes, (2 ** len(block), 1))
            others[:, block] = list(itertools.product([-1, 1], repeat=len(block)))
            values = (others[:, cuts.pairs.first] * others[:, cuts.pairs.second]) @ weights
            values += 0 if linear is None else others @ linear
            assert values.min() >= value - 1e-6


def test_positive_weights_within_a_block_do_not_stop_it():
    """They count as 0 where the cut is made: the pulls are followed where that lowers the true objective."""
    pairs = Pairs(2, np.array([0], np.int32), np.array([1], np.int32), np.array([True]))
    cuts = one_block(pairs)
    generator = np.random.default_rng(0)
    # The best of the pulls alone is (-1, -1), worth 0.1 - 2; it is taken from (1, 1), worth 0.1 + 2.
    assert cuts.lower(np.ones(2), np.array([0.1]), generator, np.ones(2)).tolist() == [-1, -1]
    # Worth 5 - 2, it is not taken in exchange for (1, -1), worth -5.
    start = np.array([1.0, -1.0])
    assert cuts.lower(start, np.array([5.0]), generator, np.ones(2)).tolist() == [1, -1]


def test_a_pair_across_blocks_is_seen_from_both():
    pairs = Pairs(2, np.array([0], np.int32), np.array([1], np.int32), np.array([False]))
    cuts = BlockCuts(pairs, [np.array([0]), np.array([1])])
    for seed in range(10):
        codes = cuts.lower(np.ones(2), np.array([1.0]), np.random.default_rng(seed))
        assert sorted(codes) == [-1, 1]


@pytest.mark.parametrize("unbalanced", [1.0, 1e3, 1e6])
def test_larger_blocks_reach_the_minimum_cut_of_networkx(unbalanced):
    for seed in range(3):
        generator = np.random.default_rng(seed)
        pairs = some_pairs(60, 0.2, generator)
        weights, linear = -generator.random(len(pairs)), 5 * generator.normal(size=60)
        linear[linear > 0] *= unbalanced  # the capacities out of the source then dwarf those into the sink
        graph = nx.DiGraph()
        for first, second, weight in zip(pairs.first, pairs.second, weights):
            graph.add_edge(first, second, capacity=-2 * weight)
            graph.add_edge(second, first, capacity=-2 * weight)
        for item, pull in enumerate(linear):
            if pull > 0:
                graph.add_edge("source", item, capacity=2 * pull)
            else:
                graph.add_edge(item, "sink", capacity=-2 * pull)
        # What is cut is paid on top of every weight and every pull at its lowest.
        cut, _ = nx.minimum_cut(graph, "source", "sink")
        codes = one_block(pairs).lower(np.ones(60), weights, generator, linear)
        value = plain_objective(pairs, codes, weights, linear)
        lowest = weights.sum() - np.abs(linear).sum()
        assert value == pytest.approx(lowest + cut, abs=1e-9 * np.abs(linear).sum() + 1e-6)
