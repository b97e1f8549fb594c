"""StructHash: its master problem against linear programs with every ranking, and what its records say."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog
from sets import clusters, graded, labelled, unit_set
from test_rankings import orderings

from methods.relations.rankings import make_lists, most_violated
from methods.structhash import Master, StructHash


def small_lists(seed, levels=2):
    """Lists of at most four items each."""
    generator = np.random.default_rng(seed)
    upper = np.triu(generator.integers(0, levels, (7, 7)), 1)
    made = unit_set(np.zeros(7, int), upper + upper.T, tuple(range(levels)))
    return make_lists(made, 2, 2, generator)


def parted(lists, seed, bits):
    """Random bits of the items, as mismatches of the pairs: bool (bits, p). Not all of them are useful."""
    codes = np.random.default_rng(seed).integers(0, 2, (bits, lists.pairs.items))
    return codes[:, lists.pairs.first] != codes[:, lists.pairs.second]


def full_value(lists, mismatches, C, equal=False):
    """Value of the master problem with all rankings of all lists: a slack per list, the mean of which is the
    one slack, as the most violated combination consists of the most violated rankings of every list."""
    bits, count = len(mismatches), len(lists.relevant)
    rows, bounds = [], []
    for number, relevant in enumerate(lists.relevant):
        own = mismatches[:, lists.places[lists.starts[number] : lists.starts[number + 1]]].astype(float)
        losses, signs = orderings(relevant, own.shape[1] - relevant)
        apart = own[:, None, relevant:] - own[:, :relevant, None]
        for loss, wrong in zip(losses, 1 - signs):  # the right ranking's signs are 1
            difference = (wrong * apart).mean(axis=(1, 2))
            rows.append(np.r_[difference.sum() if equal else difference, np.arange(count) == number])
            bounds.append(loss)
    costs = np.r_[bits if equal else np.ones(bits), C * lists.weights]
    return linprog(costs, A_ub=-np.array(rows), b_ub=-np.array(bounds), method="highs").fun


CASES = list(itertools.product(range(2), (0.5, 10.0, 300.0), (2, 3)))


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize(("seed", "C", "levels"), CASES)
def test_cutting_planes_reach_the_value_with_all_rankings(seed, C, levels, equal):
    lists = small_lists(seed, levels)
    mismatches = parted(lists, seed, 6)
    master, tolerance = Master(lists, 6, C), 1e-3
    for bits in range(7):
        solution = master.solve(equal, tolerance, 500)
        full = full_value(lists, mismatches[:bits], C, equal and bits > 0)
        assert solution.violation <= tolerance
        # With some of the constraints the value is too low, by what the slack lacks at most.
        assert full - C * tolerance - 1e-5 * C <= solution.value <= full + 1e-5 * C
        # Strong duality: the constraints' right sides, weighed by their multipliers.
        assert solution.multipliers @ master.losses == pytest.approx(solution.value, abs=1e-8 * (1 + C))
        assert np.all(solution.multipliers >= 0)
        assert solution.multipliers.sum() <= C * (1 + 1e-9)
        assert len(solution.weights) == bits
        assert np.all(solution.weights >= 0)
        assert not equal or len(set(solution.weights.tolist())) <= 1
        assert solution.value == pytest.approx(solution.weights.sum() + C * solution.slack)
        if bits < 6:
            master.add_column(mismatches[bits])


def test_the_price_of_a_bit_says_whether_it_lowers_the_value():
    """Linear programming duality: a column lowers the restricted problem only if its price is over 1."""
    over, under = [], []
    for seed in range(6):
        lists = small_lists(seed, levels=2 + seed % 2)
        master = Master(lists, 3, 30.0)
        for bit in parted(lists, seed, 2):
            master.add_column(bit)
        solution = master.solve(False, 1e-6, 500)
        before = master._restricted(False)[0]
        weights = master.pair_weights(solution.multipliers)
        for candidate in parted(lists, 100 + seed, 40):
            price = float(weights @ candidate)
            # As the constraints' multipliers weigh its coefficients.
            coefficients = np.array(master.shifts, np.float64) @ candidate
            assert price == pytest.approx(solution.multipliers @ coefficients, abs=1e-4)
            tried = Master(lists, 3, 30.0)
            tried.shifts, tried.losses = list(master.shifts), list(master.losses)
            tried.columns, tried.coefficients = 2, master.coefficients.copy()
            tried.mismatches[:2] = master.mismatches[:2]
            tried.add_column(candidate)
            (over if price > 1 + 1e-5 else under).append(before - tried._restricted(False)[0])
    assert len(over) > 20 and len(under) > 20
    assert max(under) < 1e-4
    # Where several multipliers are best, a price over 1 may still be no gain.
    assert np.mean(np.array(over) > 1e-6) > 0.9


def test_cutting_planes_stop_at_their_number_and_say_what_is_missing():
    lists = small_lists(0)
    master = Master(lists, 4, 100.0)
    for bit in parted(lists, 0, 4):
        master.add_column(bit)
    solution = master.solve(False, 1e-9, 2)
    assert len(master) == 2
    assert solution.violation > 1e-9
    assert solution.multipliers @ master.losses == pytest.approx(solution.value, abs=1e-6)
    value = solution.value
    for _ in range(5):
        further = master.solve(False, 1e-9, 1).value  # more constraints, no lower a value
        assert further >= value - 1e-9
        value = further


def test_constraints_that_stay_without_a_multiplier_are_dropped_and_no_other():
    master = Master(small_lists(0), 1, 10.0)
    shifts = [np.full(len(master.lists.pairs), number, np.float32) for number in range(3)]
    master.shifts, master.losses, master.idle = list(shifts), [0.1, 0.2, 0.3], [20, 20, 3]
    master.coefficients = np.array([[1.0], [2], [3]])
    master._drop_idle(np.array([0.0, 0.5, 0.0]))
    assert master.losses == [0.2, 0.3]
    assert master.idle == [0, 4]
    assert master.coefficients.tolist() == [[2], [3]]
    assert [shift[0] for shift in master.shifts] == [1, 2]


def class_set(classes=4, spread=1.0, seed=0, levels=2, **more):
    vectors, labels = clusters(60, 8, classes, spread, seed)
    affinity = graded(labels) if levels > 2 else None
    return labelled(vectors, labels, affinity, levels=tuple(range(levels)), **more)


def fitted(made, **settings):
    chosen = {"bits": 6, "trees": 10, "relevant": 8, "irrelevant": 10, "features": 4, "cutting_planes": 200}
    return StructHash(**(chosen | settings)).fit(made)


@pytest.mark.parametrize("levels", [2, 3])
@pytest.mark.parametrize("bit_weights", ["learned", "equal"])
def test_the_last_record_is_worth_what_codes_and_weights_are(bit_weights, levels):
    """Recomputed from the codes that `encode` gives to the training items: one stump per bit does not make of
    them what was asked for."""
    records = []
    made = class_set(levels=levels, spread=2.0, log=records.append)
    method = fitted(made, bit_weights=bit_weights, seed=2, C=50.0, trees=1, depth=1)
    lists = make_lists(made, 8, 10, np.random.default_rng(2))
    codes = method.encode(made.items)
    distances = (codes[lists.pairs.first] != codes[lists.pairs.second]) @ method.bit_weights_
    shift, loss = most_violated(lists, -distances)
    value = method.bit_weights_.sum() + 50 * max(0, loss - shift @ distances)
    last = records[-1]
    assert last["violation"] <= 0.01
    assert last["objective"] - 1e-4 <= value <= last["objective"] + 50 * 0.01 + 1e-4
    assert last["slack"] == pytest.approx((last["objective"] - method.bit_weights_.sum()) / 50)
    assert [record["bit"] for record in records] == list(range(1, 7))
    assert {record["bits"] for record in records} == {6}
    assert all(record["planes"] > 0 and 0.5 <= record["fitted"] < 1 for record in records)


@pytest.mark.parametrize("levels", [2, 3])
@pytest.mark.parametrize("C", [10.0, 100.0, 1000.0])
def test_the_objective_falls_bit_by_bit_while_weights_are_learned(C, levels):
    for seed in range(2):
        records = []
        made = class_set(levels=levels, seed=seed, spread=1.5, log=records.append)
        fitted(made, C=C, tolerance=0.002, seed=seed)
        learned = list(itertools.takewhile(lambda record: record["weighted"], records))
        assert len(learned) > 2
        assert not any(record["weighted"] for record in records[len(learned) :])
        assert all(record["violation"] <= 0.002 for record in records)
        assert all(record["price"] > 1 for record in learned)
        objectives = np.array([record["objective"] for record in learned])
        assert np.all(np.diff(objectives) <= 0.002 * C)
        assert objectives[-1] < objectives[0]


def test_the_first_bit_is_chosen_by_the_lists_turned_round():
    """Without bits the most violated rankings have all irrelevant items above all relevant ones, and the only
    constraint's multiplier is C."""
    lists = small_lists(2)
    master = Master(lists, 1, 7.0)
    solution = master.solve(False, 1e-6, 10)
    assert len(master) == 1
    assert solution.multipliers.tolist() == pytest.approx([7.0])
    expected = np.zeros(len(lists.pairs))
    for number, relevant in enumerate(lists.relevant):
        own = lists.places[lists.starts[number] : lists.starts[number + 1]]
        for j, k in itertools.product(own[:relevant], own[relevant:]):
            share = 7 * lists.weights[number] * 2 / (relevant * (len(own) - relevant))
            expected[j] -= share
            expected[k] += share
    assert master.pair_weights(solution.multipliers) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("C", [10.0, 1000.0])
def test_once_no_bit_lowers_the_value_the_rest_share_one_weight(C):
    """Two classes and one bit are all that there is to say. What follows is the same bit again, at a price
    of 1: rounding must not make a gain of it."""
    for seed in range(3):
        records = []
        made = class_set(2, spread=0.05, seed=seed, log=records.append)
        method = fitted(made, bits=4, seed=seed, C=C)
        assert [record["weighted"] for record in records] == [True, False, False, False]
        assert records[1]["price"] == pytest.approx(1, abs=1e-3)
        assert np.all(method.bit_weights_ == method.bit_weights_[0])
        # The same work is shared out: neither value nor sum of weights changes.
        assert [record["objective"] for record in records] == pytest.approx([records[0]["objective"]] * 4)
