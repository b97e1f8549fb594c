"""MACHash: its Z-step against exhaustive search, its objective against the plain formula, where it ends."""

import itertools

import numpy as np
import pytest
from refusing import refused
from sets import pairs_of, units
from test_conformance import training_set

from methods.base import TrainingSet
from methods.machash import CodeSteps, MACHash, _principal_signs
from methods.relations.pairs import sample_pairs


def penalised(codes, hashed, mu, pairs):
    """1/v sum over ordered pairs (z_n . z_m - b y)^2 + mu sum ||z_n - h_n||^2."""
    bits = codes.shape[1]
    partners = 2 * len(pairs) / pairs.items
    products = (codes[pairs.first].astype(int) * codes[pairs.second]).sum(axis=1)
    total = 2 * float(((products - np.where(pairs.similar, bits, -bits)) ** 2).sum()) / partners
    if hashed is not None:
        total += mu * float(((codes.astype(float) - hashed) ** 2).sum())
    return total


def random_codes(generator, items, bits):
    return generator.choice([-1, 1], (items, bits)).astype(np.int8)


@pytest.mark.parametrize("seed", range(10))
def test_the_step_of_a_bit_is_the_best_of_all_codes_of_a_dozen_similar_points(seed):
    generator = np.random.default_rng(seed)
    labels = np.zeros(12, np.int64)
    pairs = pairs_of(labels, 0.8, generator)
    hashed = random_codes(generator, 12, 1)
    mu = generator.choice([0.1, 1.0, 5.0])
    codes = random_codes(generator, 12, 1)
    CodeSteps(pairs, labels, 1, generator, 1).improve(codes, mu, hashed)
    best = min(
        penalised(np.array(choice, np.int8)[:, None], hashed, mu, pairs)
        for choice in itertools.product([-1, 1], repeat=12)
    )
    assert penalised(codes, hashed, mu, pairs) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("mu", [0.0, 0.7, 4.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_settled_bit_is_the_best_for_each_class_given_the_others(mu, seed):
    """12 points of 3 classes: of all codes of one class's points none lowers the objective further."""
    generator = np.random.default_rng(seed)
    labels = np.arange(12) % 3
    pairs = pairs_of(labels, 0.8, generator)
    hashed = random_codes(generator, 12, 2)
    codes = random_codes(generator, 12, 2)
    steps = CodeSteps(pairs, labels, 2, generator, 20)
    for _ in range(20):
        before = codes.copy()
        steps.improve(codes, mu, hashed)
    assert np.array_equal(codes, before)
    value = penalised(codes, hashed, mu, pairs)
    for bit in range(2):
        for label in range(3):
            for choice in itertools.product([-1, 1], repeat=4):
                changed = codes.copy()
                changed[labels == label, bit] = choice
                assert penalised(changed, hashed, mu, pairs) >= value - 1e-9


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_no_step_raises_the_penalised_objective(labelled, seed):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 3, 30)
    pairs = pairs_of(labels, 0.5, generator)
    hashed = random_codes(generator, 30, 4)
    codes = random_codes(generator, 30, 4)
    steps = CodeSteps(pairs, labels if labelled else None, 4, generator, 2)
    values = [penalised(codes, hashed, 0.5, pairs)]
    for _ in range(4):
        steps.improve(codes, 0.5, hashed)
        values.append(penalised(codes, hashed, 0.5, pairs))
    assert all(after <= before + 1e-9 for before, after in itertools.pairwise(values))
    assert values[-1] < values[0]


def fitted(records, **settings):
    made = training_set("machash", log=records.append)
    return MACHash(**({"bits": 8} | settings)).fit(made), made


def test_the_penalty_grows_until_codes_and_functions_agree_and_the_functions_get_better():
    records = []
    fitted(records, C=1.0, dissimilar=60)
    assert [record["mu"] for record in records[:3]] == pytest.approx([0, 0.3, 0.42])
    assert records[-1]["apart"] < records[0]["apart"]
    assert min(record["objective"] for record in records) < records[0]["objective"]
    assert records[0]["codes_objective"] <= min(record["objective"] for record in records)


def test_the_least_objective_logged_is_that_of_the_encoded_training_items():
    records = []
    method, made = fitted(records, C=0.3, dissimilar=60)
    pairs = sample_pairs(made, 100, 60, np.random.default_rng(0))
    codes = np.where(method.encode(made.items), 1, -1).astype(np.int8)
    partners = 2 * len(pairs) / pairs.items
    expected = penalised(codes, None, 0, pairs) * partners / 2 / len(pairs) / 64
    assert min(record["objective"] for record in records) == pytest.approx(expected, rel=1e-9)
    assert records[-1]["objective"] > expected  # strongly regularised functions drift


def test_it_ends_as_soon_as_they_agree():
    records = []
    fitted(records, C=1e4)  # 120 items in 16 dimensions, four tight classes
    assert records[-1]["apart"] == 0
    assert all(record["apart"] > 0 for record in records[:-1])


def test_first_codes_are_signs_of_principal_components_and_random_beyond_them():
    vectors, _ = units(120, 5, 4)
    codes = _principal_signs(vectors.astype(np.float64), 8, np.random.default_rng(0))
    assert codes.shape == (120, 8)
    assert set(np.unique(codes)) == {-1, 1}
    centred = vectors - vectors.mean(axis=0)
    _, _, axes = np.linalg.svd(centred.astype(np.float64), full_matrices=False)
    for bit in range(5):
        agreement = (codes[:, bit] == np.sign(centred @ axes[bit])).mean()
        assert agreement in (0, 1)


def test_constant_codes_are_a_refusal_not_a_result():
    """Everything similar but one pair: the best codes are constant, and no number of the method's."""
    vectors, _ = units(40, classes=4)
    affinity = np.ones((40, 40), np.int64)
    affinity[0, 1] = affinity[1, 0] = 0
    collapsing = TrainingSet(vectors, lambda i, j: affinity[np.ix_(i, j)])
    with refused("collapsed"):
        MACHash(bits=4, C=0.01).fit(collapsing)
