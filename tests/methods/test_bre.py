"""BRE: the line search against brute force, the whole descent against the algorithm written out plainly."""

from itertools import pairwise

import numpy as np
import pytest
from refusing import refused
from scipy.spatial.distance import cdist
from sets import labelled, units

from methods import bre as module
from methods.base import TrainingSet
from methods.bre import BRE, draw_partners
from methods.learners.bre_kernels import Descent, candidates_between


def problem(seed, items=23, bits=5, anchors=4, scale=1, zeros=0.2, share=0.3, ties=False):
    """What a `Descent` is made of, at random. Kernel values are symmetric in sign, a part of them exactly 0;
    with `ties` they and the weights are small integers, so that many thresholds are equal."""
    generator = np.random.default_rng(seed)
    union = min(items, 3 * anchors)
    columns = generator.normal(size=(union, items))
    if ties:
        columns = np.sign(columns) * generator.integers(1, 3, columns.shape)
    columns[generator.random(columns.shape) < zeros] = 0
    places = np.stack([generator.choice(union, anchors, replace=False) for _ in range(bits)])
    weights = generator.normal(size=places.shape)
    if ties:
        weights = np.round(weights * 2) / 2
    partners = draw_partners(items, share, generator)
    targets = generator.integers(0, scale * bits + 1, partners.shape).astype(np.int32)
    return columns, places, weights, partners, targets, scale


def squares(codes, partners, targets, scale):
    """The sum over pairs of (scale * Hamming distance - target)^2, in plain integers."""
    hamming = (codes[:, None] != codes[partners]).sum(axis=2)
    return int(np.sum((scale * hamming - targets) ** 2))


def kernel_sums(columns, places, weights):
    return np.stack([own @ columns[rows] for own, rows in zip(weights, places)])


def plain_descent(columns, places, weights, partners, targets, scale, steps):
    """The authors' algorithm as it is written: at every threshold one item flips, and the errors of the pairs
    that hold it are brought up to date through lists of its partners and of the items it is a partner of.

    Returns weights and codes (n, bits). Errors are integers, in 1/scale of a bit.
    """
    items, weights = columns.shape[1], weights.copy()
    forward = [[(i, c) for c in range(partners.shape[1])] for i in range(items)]
    reverse = [[] for _ in range(items)]
    for i, row in enumerate(partners):
        for c, j in enumerate(row):
            reverse[j].append((i, c))
    sums = kernel_sums(columns, places, weights)
    codes = (sums > 0).astype(int).T
    for bit, anchor in steps:
        column, weight = columns[places[bit, anchor]], weights[bit, anchor]
        moving = [i for i in range(items) if column[i] != 0]
        if not moving:
            continue
        thresholds = {i: weight - sums[bit, i] / column[i] for i in moving}
        moving.sort(key=thresholds.get)
        edges = [thresholds[i] for i in moving]
        candidates = [edges[0] - 5e-7, *[(a + b) / 2 for a, b in pairwise(edges)], edges[-1] + 5e-7]
        trial = codes.copy()
        trial[:, bit] = sums[bit] + (candidates[0] - weight) * column > 0
        errors = scale * (trial[:, None] != trial[partners]).sum(axis=2) - targets
        objective = int(np.sum(errors**2))
        walk = [objective]
        for i in moving:
            step = 1 - 2 * trial[i, bit]
            for row, c in forward[i] + reverse[i]:
                other = partners[row, c] if row == i else row
                old = errors[row, c]
                errors[row, c] += scale * step * (1 - 2 * trial[other, bit])
                objective += int(errors[row, c] ** 2 - old**2)
            trial[i, bit] += step
            walk.append(objective)
        best = int(np.argmin(walk))
        sums[bit] += (candidates[best] - weight) * column
        weights[bit, anchor] = candidates[best]
        codes[:, bit] = sums[bit] > 0
    return weights, codes


def random_steps(seed, bits, anchors, count):
    generator = np.random.default_rng(seed)
    return list(zip(generator.integers(bits, size=count), generator.integers(anchors, size=count)))


def vectors(seed=0, items=80):
    return units(items, 10, 4, spread=0.7, seed=seed)


@pytest.fixture
def descents(monkeypatch):
    """Every `Descent` that a fit makes, with its arguments and calls."""
    made = []

    class Watched(Descent):
        def __init__(self, columns, places, weights, partners, targets, scale):
            self.made_of = columns.copy(), places.copy(), weights.copy(), partners, targets, scale
            self.steps = []
            super().__init__(columns, places, weights, partners, targets, scale)
            made.append(self)

        def update(self, bit, anchor):
            self.steps.append((bit, anchor))
            super().update(bit, anchor)

    monkeypatch.setattr(module, "Descent", Watched)
    return made


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("scale", [1, 3])
@pytest.mark.parametrize("seed", range(2))
def test_no_value_of_the_weight_is_better_than_the_one_chosen(seed, scale, ties):
    columns, places, weights, partners, targets, scale = problem(seed, scale=scale, ties=ties)
    descent = Descent(columns, places, weights, partners, targets, scale)
    tried = 0
    for bit, anchor in random_steps(seed, 5, 4, 15):
        before = descent.weights.copy()
        descent.update(bit, anchor)
        changed = descent.weights != before
        changed[bit, anchor] = False
        assert not changed.any()
        codes, column = descent.codes.T.astype(int), columns[places[bit, anchor]]
        seen = set()  # most values give codes that another has given
        for value in [*np.linspace(-40, 40, 801), -1e4, 1e4, before[bit, anchor]]:
            trial, sums = codes.copy(), descent.sums[bit] + (value - descent.weights[bit, anchor]) * column
            if np.any((np.abs(sums) < 1e-9) & (column != 0)):
                continue  # a threshold itself, which is not a candidate
            trial[:, bit] = sums > 0
            tried += 1
            if trial[:, bit].tobytes() not in seen:
                seen.add(trial[:, bit].tobytes())
                assert squares(trial, partners, targets, scale) >= descent.squares
    assert tried > 9000


@pytest.mark.parametrize("seed", range(6))
def test_the_objective_is_that_of_the_kernel_sums_and_never_rises(seed):
    made = problem(seed, items=40, bits=7, scale=2, ties=seed % 2)
    columns, places, _, partners, targets, scale = made
    descent = Descent(*made)
    last = descent.squares
    for bit, anchor in random_steps(seed, 7, 4, 80):
        descent.update(bit, anchor)
        assert descent.squares <= last
        last = descent.squares
        assert descent.squares == squares(descent.codes.T, partners, targets, scale)
    assert np.array_equal(descent.codes, kernel_sums(columns, places, descent.weights) > 0)
    hamming = (descent.codes.T[:, None] != descent.codes.T[partners]).mean(axis=2)
    descent.flip_changes(np.zeros(40, np.int32))  # errors lack only the flips of the last update
    assert descent.errors == pytest.approx(scale * 7 * hamming - targets, abs=1e-9)
    expected = np.sum((hamming - targets / (scale * 7)) ** 2) / 2
    assert descent.objective() == pytest.approx(expected, rel=1e-12)


def test_kernel_values_that_are_rounding_errors_count_as_zero():
    columns, *rest = problem(0)
    noise = np.where(columns == 0, 1e-15, 0)
    assert (noise > 0).any()
    plain, noisy = Descent(columns, *rest), Descent(columns + noise, *rest)
    for step in random_steps(0, 5, 4, 20):
        plain.update(*step)
        noisy.update(*step)
    assert np.array_equal(plain.weights, noisy.weights)
    assert np.array_equal(plain.codes, noisy.codes)


def test_no_candidate_lies_between_thresholds_too_close_to_tell_apart():
    thresholds = np.array([-1.0, -1.0, -1 + 1e-13, 2.0, 2 + 1e-6])
    candidates, valid = candidates_between(thresholds, 0.5)
    assert valid.tolist() == [True, False, False, True, True, True]
    assert candidates[valid] == pytest.approx([-1 - 5e-7, 0.5, 2 + 5e-7, 2 + 1.5e-6], abs=1e-12)
    # The outer ones are outside even where 5e-7 would be lost to rounding.
    candidates, valid = candidates_between(np.array([-1e13, 1e13]), 0.0)
    assert valid.all()
    assert candidates[0] < -1e13
    assert candidates[2] > 1e13


@pytest.mark.parametrize("bits", [1, 6, 64, 67, 130])
def test_the_descent_is_the_plain_algorithm_bit_for_bit(bits):
    made = problem(bits, items=31, bits=bits, anchors=5, scale=1 + bits % 3)
    made[0][made[1][0, 4]] = 0  # an anchor without a threshold
    steps = random_steps(bits, bits, 5, 60)
    descent = Descent(*made)
    for step in steps:
        descent.update(*step)
    weights, codes = plain_descent(*made, steps)
    assert np.array_equal(descent.weights, weights)
    assert np.array_equal(descent.codes.T, codes)
    assert descent.squares == squares(codes, *made[3:])


@pytest.mark.parametrize("settings", [{}, {"kernel": "rbf"}, {"target": "euclidean"}])
def test_a_fit_is_the_plain_algorithm_with_the_same_draws(settings, descents):
    items, labels = vectors()
    method = BRE(bits=7, anchors=6, tolerance=0, max_sweeps=8, **settings).fit(labelled(items, labels))
    (descent,) = descents
    assert len(descent.steps) % 7 == 0
    weights, codes = plain_descent(*descent.made_of, descent.steps)
    assert np.array_equal(descent.weights, weights)
    assert np.array_equal(method.encode(items), codes.astype(bool))


@pytest.mark.parametrize(("target", "tolerance"), [("affinity", 1e-3), ("affinity", 0), ("euclidean", 1e-4)])
def test_the_objective_falls_until_a_sweep_gains_too_little(target, tolerance):
    items, labels = vectors()
    records = []
    settings = {"bits": 8, "tolerance": tolerance, "target": target}
    BRE(**settings).fit(labelled(items, labels, log=records.append))
    objectives = np.array([record["objective"] for record in records])
    gains = -np.diff(objectives)
    pairs = 80 * 4
    assert [record["sweep"] for record in records] == list(range(1, len(records) + 1))
    assert {record["sweeps"] for record in records} == {1000}
    assert len(records) > 3
    assert np.all(gains[:-1] > tolerance * pairs)
    assert 0 <= gains[-1] <= tolerance * pairs
    assert objectives[-1] < 0.95 * objectives[0]
    short = []
    BRE(**settings, max_sweeps=2).fit(labelled(items, labels, log=short.append))
    assert [record["objective"] for record in short] == objectives[:2].tolist()


def test_another_seed_makes_another_model():
    made = labelled(*vectors())
    one, other = (BRE(bits=9, seed=seed, training_items=60, max_sweeps=5).fit(made) for seed in (3, 4))
    assert not np.array_equal(one.weights, other.weights)


@pytest.mark.parametrize(
    ("items", "share", "count"), [(100, 0.05, 5), (30, 0.05, 2), (9, 0.05, 1), (2, 0.5, 1), (6, 1.0, 5)]
)
def test_partners_are_others_without_repetition(items, share, count):
    partners = draw_partners(items, share, np.random.default_rng(0))
    assert partners.shape == (items, count)
    assert partners.dtype == np.int32
    assert np.all(np.diff(partners, axis=1) > 0)
    assert partners.min() >= 0
    assert partners.max() < items
    assert not (partners == np.arange(items)[:, None]).any()


def test_every_other_item_is_as_likely_a_partner():
    drawn = np.stack([draw_partners(6, 1 / 3, np.random.default_rng(seed)) for seed in range(3000)])
    for item in range(6):
        counts = np.bincount(drawn[:, item].ravel(), minlength=6)
        assert counts[item] == 0
        assert np.delete(counts, item) == pytest.approx(1200, abs=120)


def test_anchors_are_drawn_for_each_bit_and_weights_are_small_at_first(descents):
    items, labels = vectors(items=300)
    BRE(bits=40, anchors=30, weight_scale=0.01, max_sweeps=1).fit(labelled(items, labels))
    columns, places, weights, *_ = descents[0].made_of
    assert places.shape == weights.shape == (40, 30)
    assert len({tuple(sorted(row)) for row in places.tolist()}) == 40
    assert all(len(set(row)) == 30 for row in places.tolist())
    assert np.std(weights) == pytest.approx(0.01, rel=0.1)
    assert abs(np.mean(weights)) < 0.002
    assert columns.shape == (len(np.unique(places)), 300)


@pytest.mark.parametrize(
    ("settings", "expected", "scale"),
    [
        ({}, lambda affinity: 1 - affinity / 5, 5),
        ({"target": "binary"}, lambda affinity: 1.0 * (affinity == 0), 1),
    ],
)
def test_affinity_targets_are_exact(settings, expected, scale, descents, monkeypatch):
    monkeypatch.setattr(module, "_ROWS", 17)
    items, labels = vectors()
    affinity = np.random.default_rng(0).choice([0, 1, 2, 5], (80, 80), p=[0.7, 0.1, 0.1, 0.1])
    made = labelled(items, labels, affinity, levels=(0, 1, 2, 5))
    BRE(bits=7, max_sweeps=1, **settings).fit(made)
    *_, partners, targets, used_scale = descents[0].made_of
    assert used_scale == scale
    own = np.take_along_axis(affinity, partners.astype(int), axis=1)
    assert targets / (7 * scale) == pytest.approx(expected(own), abs=1e-15)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_euclidean_targets_are_scaled_by_the_largest_of_all_pairs(kernel, descents, monkeypatch):
    monkeypatch.setattr(module, "_ROWS", 17)
    items, labels = vectors()
    items = items * np.linspace(0.5, 2, 80, dtype=np.float32)[:, None]
    BRE(bits=7, max_sweeps=1, kernel=kernel, target="euclidean").fit(labelled(items, labels))
    *_, partners, targets, scale = descents[0].made_of
    distances = cdist(items.astype(float), items.astype(float)) ** 2
    if kernel == "linear":
        distances = distances / 2
    else:
        distances = 1 - np.exp(-distances / (2 * distances.sum() / (80 * 79)))
    own = np.take_along_axis(distances / distances.max(), partners.astype(int), axis=1)
    assert targets / (7 * scale) == pytest.approx(own, abs=0.51 / (7 * scale))
    assert own.max() < 1  # the largest distance of all is not among the sampled pairs


def test_euclidean_targets_need_no_affinity():
    items, _ = vectors()
    method = BRE(bits=24, target="euclidean").fit(TrainingSet(items, affinity=None))
    codes = method.encode(items)
    hamming, euclidean = cdist(codes, codes, "hamming"), cdist(items, items, "sqeuclidean")
    upper = np.triu_indices(len(items), 1)
    assert np.corrcoef(hamming[upper], euclidean[upper])[0, 1] > 0.7


def test_more_affinity_levels_than_steps_of_a_bit_are_rounded(descents):
    items, labels = vectors()
    affinity = np.random.default_rng(0).integers(0, 10_001, (80, 80))
    BRE(bits=3, max_sweeps=1).fit(labelled(items, labels, affinity, levels=tuple(range(10_001))))
    *_, partners, targets, scale = descents[0].made_of
    own = np.take_along_axis(affinity, partners.astype(int), axis=1)
    assert targets / (3 * scale) == pytest.approx(1 - own / 10_000, abs=1 / (3 * scale))


def test_training_items_are_a_random_part_and_their_affinities_go_along(descents):
    items, labels = vectors(items=200)
    made = labelled(items, labels)
    BRE(bits=5, training_items=50, max_sweeps=1, kernel="rbf", anchors=1000).fit(made)
    columns, _, _, partners, targets, _ = descents[0].made_of
    assert columns.shape == (50, 50)  # anchors: all there are
    assert np.array_equal(columns.argmax(axis=1), np.arange(50))
    assert columns.mean(axis=1) == pytest.approx(0, abs=1e-12)
    # Which items were taken is seen in the order of the draws: they come first.
    rows = np.sort(np.random.default_rng(0).choice(200, 50, replace=False))
    different = labels[rows][:, None] != labels[rows][partners]
    assert np.array_equal(targets, 5 * different)


def test_more_training_items_than_there_are_means_all():
    made = labelled(*vectors())
    whole, more = (BRE(bits=5, max_sweeps=3, training_items=count).fit(made) for count in (None, 1000))
    assert np.array_equal(whole.weights, more.weights)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_codes_are_signs_of_explicit_kernel_sums(kernel, descents, monkeypatch):
    monkeypatch.setattr(module, "_ROWS", 17)
    items, labels = vectors()
    others, _ = vectors(seed=1)
    method = BRE(bits=9, anchors=7, kernel=kernel, max_sweeps=4).fit(labelled(items, labels))
    (descent,) = descents
    anchors = items[np.unique(descent_anchors(0, 80, 9, 7))].astype(float)
    values = others.astype(float) @ anchors.T
    if kernel == "rbf":
        squared = cdist(items.astype(float), items.astype(float)) ** 2
        of_training, values = (
            np.exp(-(cdist(rows.astype(float), anchors) ** 2) / (2 * squared.sum() / (80 * 79)))
            for rows in (items, others)
        )
        values -= of_training.mean(axis=0)
    sums = np.stack([values[:, rows] @ own for rows, own in zip(descent.places, descent.weights)], axis=1)
    assert np.array_equal(method.encode(others), sums > 0)
    assert np.array_equal(method.encode(items), descent.codes.T)


def descent_anchors(seed, items, bits, anchors):
    """The anchors that a fit of all items draws: after the partners, whose draws come first."""
    generator = np.random.default_rng(seed)
    draw_partners(items, BRE.partners, generator)
    return [generator.choice(items, anchors, replace=False) for _ in range(bits)]


def test_images_are_vectors():
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (40, 4, 4, 3)).astype(np.uint8)
    labels = np.arange(40) % 2
    of_images = BRE(bits=5, max_sweeps=3).fit(labelled(images, labels))
    of_rows = BRE(bits=5, max_sweeps=3).fit(labelled(images.reshape(40, -1), labels))
    assert np.array_equal(of_images.encode(images), of_rows.encode(images.reshape(40, -1)))


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_items_are_refused(count):
    items, labels = vectors()
    with refused(f"at least 2 training items, there are {count}"):
        BRE().fit(labelled(items[:count], labels[:count]))


@pytest.mark.parametrize("settings", [{"kernel": "rbf"}, {"target": "euclidean"}])
@pytest.mark.parametrize("seed", range(2))
def test_equal_items_are_refused_where_distances_count(settings, seed):
    item = np.random.default_rng(seed).normal(5, 1, 70).astype(np.float32)
    with refused(pattern=r"that differ|all pairs are equal"):
        BRE(**settings).fit(labelled(np.tile(item, (30, 1)), np.arange(30) % 2))
