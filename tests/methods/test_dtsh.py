"""DTSH: triplets drawn from the right places, their loss and step against formulas written out, refusals."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from batches import batch
from refusing import refused
from sets import graded, unit_set
from slopes import central_differences

from methods.base import supervision
from methods.base.supervision import single_classes
from methods.dtsh import DTSH
from methods.relations.triplets import ClassGroups, LevelGroups, triplet_likelihood

FEW = {"positives": 5, "negatives": 4}


def likelihood_by_loops(anchors, table, positives, negatives, margin):
    """(sum of -ln sigmoid(T), number of triplets)."""
    total, triplets = 0.0, 0
    for i, group in itertools.product(range(positives.shape[0]), range(positives.shape[1])):
        if positives[i, group, 0] < 0 or negatives[i, group, 0] < 0:
            continue
        for p, n in itertools.product(positives[i, group], negatives[i, group]):
            t = anchors[i] @ table[p] / 2 - anchors[i] @ table[n] / 2 - margin
            total += math.log1p(math.exp(-t)) if t > -700 else -t
            triplets += 1
    return total, triplets


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 2e-5)])
@pytest.mark.parametrize("scale", [0.0, 1.0, 6.0, 40.0, 300.0])
@pytest.mark.parametrize("shape", [(3, 2, 5, 4), (1, 1, 1, 1), (2, 3, 17, 1), (2, 1, 1, 30)])
def test_likelihood_and_derivative_are_those_of_loops(dtype, tolerance, scale, shape):
    anchors_count, groups, p, n = shape
    generator = np.random.default_rng(3)
    table = (scale * generator.normal(size=(20, 6))).astype(dtype)
    anchors = (scale * generator.normal(size=(anchors_count, 6))).astype(dtype)
    positives = generator.integers(0, 20, (anchors_count, groups, p)).astype(np.int32)
    negatives = generator.integers(0, 20, (anchors_count, groups, n)).astype(np.int32)
    if groups > 1:
        positives[0, 1], negatives[-1, 0] = -1, -1  # groups that are left out
    loss, slopes = triplet_likelihood(*map(torch.from_numpy, (anchors, table)), positives, negatives, 2.5)
    wide, wide_table = anchors.astype(np.float64), table.astype(np.float64)
    expected, _ = likelihood_by_loops(wide, wide_table, positives, negatives, 2.5)
    assert loss.dtype == slopes.dtype == torch.from_numpy(table).dtype
    assert loss.item() == pytest.approx(expected, rel=10 * tolerance, abs=1e-12)
    by_hand = np.zeros_like(wide)
    for i, group in itertools.product(range(anchors_count), range(groups)):
        if positives[i, group, 0] < 0 or negatives[i, group, 0] < 0:
            continue
        for j, k in itertools.product(positives[i, group], negatives[i, group]):
            difference = wide_table[j] - wide_table[k]
            t = wide[i] @ difference / 2 - 2.5
            by_hand[i] -= difference / 2 / (1 + math.exp(min(t, 700)))
    size = np.abs(by_hand).max() + scale
    assert slopes.numpy() == pytest.approx(by_hand, abs=100 * tolerance * size)


def test_thousands_of_negatives_of_a_group_overflow_nowhere():
    """theta = v: T is 0 for 2,500 triplets, and 1,000 for as many: no products of exponentials."""
    table = torch.tensor([[1000.0], [0.0], [-0.5]], dtype=torch.float64)
    positives = np.array([[[0, 1]]], np.int32)
    negatives = np.full((1, 1, 2500), 2, np.int32)
    for chosen in (positives, positives[:, :, 1:]):
        anchor = torch.full((1, 1), 2.0, dtype=torch.float64)
        loss, slopes = triplet_likelihood(anchor, table, chosen, negatives, 0.5)
        assert loss.item() == pytest.approx(2500 * math.log(2))
        assert slopes.item() == pytest.approx(-2500 * 0.5 * (0 - -0.5) / 2)


def test_scores_that_are_not_numbers_reach_the_likelihood():
    table = torch.zeros(4, 2)
    table[2, 1] = math.nan
    chosen = [np.array([[[0, 1]]], np.int32), np.array([[[2, 3]]], np.int32)]
    assert math.isnan(triplet_likelihood(torch.ones(1, 2), table, *chosen, 1.0)[0].item())
    assert math.isnan(triplet_likelihood(torch.ones(1, 2), table, *chosen[::-1], 1.0)[0].item())


def one_step(method, made, scores, indices):
    """(loss, gradient by the batch's scores, the triplets it drew) of a first step with a table of scores."""
    memory = method.prepare(made)
    memory.table = torch.from_numpy(scores.copy())
    drawn = memory.groups.draw(
        indices, method.positives, method.negatives, np.random.default_rng((method.seed, 1, 1))
    )
    outputs = torch.from_numpy(scores[indices]).requires_grad_()
    loss = method.loss(outputs, batch(memory=memory, indices=torch.from_numpy(indices)))
    loss.backward()
    return loss.item(), outputs.grad.numpy(), drawn


@pytest.mark.parametrize("levels", [(0, 1), (0, 1, 2)])
@pytest.mark.parametrize("margin", [None, 0.5])
def test_the_loss_is_the_published_one_and_the_step_has_its_direction(levels, margin):
    labels = np.arange(40) % 4
    made = unit_set(labels, graded(labels) if len(levels) > 2 else None, levels)
    scores = np.random.default_rng(1).normal(size=(40, 6))
    indices, eta = np.array([3, 17, 20]), 7.0
    method = DTSH(bits=6, seed=4, eta=eta, margin=margin, batch_size=8, **FEW)
    loss, gradient, (positives, negatives) = one_step(method, made, scores, indices)
    margin = 3.0 if margin is None else margin
    total, triplets = likelihood_by_loops(scores[indices], scores, positives, negatives, margin)
    errors = scores[indices] - np.sign(scores[indices])
    # As if the anchors had the published number of triplets, all of which cost the mean.
    assert loss * 3 * 22_500 == pytest.approx(total * 3 * 22_500 / triplets + eta * (errors**2).sum())
    direction = np.zeros_like(errors)
    for i, group in itertools.product(range(3), range(positives.shape[1])):
        for p, n in itertools.product(positives[i, group], negatives[i, group]):
            t = scores[indices[i]] @ (scores[p] - scores[n]) / 2 - margin
            direction[i] += (1 - 1 / (1 + math.exp(-t))) * (scores[p] - scores[n])
    direction *= 3 * 22_500 / triplets
    direction -= 4 * eta * errors
    assert -gradient * 3 * 5_000 == pytest.approx(direction, abs=1e-6)


def test_the_step_is_nine_times_the_gradient_of_the_objective_by_the_anchors():
    labels, eta, indices = np.arange(40) % 4, 7.0, np.array([3, 17, 20])
    scores = np.random.default_rng(1).normal(size=(40, 6))
    method = DTSH(bits=6, eta=eta, batch_size=8, **FEW)
    _, gradient, drawn = one_step(method, unit_set(labels), scores, indices)

    def objective(anchors):
        total, triplets = likelihood_by_loops(anchors, scores, *drawn, 3.0)
        return total / triplets + eta / 22_500 * ((anchors - np.sign(anchors)) ** 2).sum() / 3

    expected = 9 * central_differences(objective, scores[indices])
    assert gradient == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_the_mean_is_over_the_groups_that_are_not_left_out_and_item_0_is_an_item():
    scores = np.random.default_rng(2).normal(size=(6, 4))
    indices, eta = np.array([4, 5]), 7.0
    left_out = [-1, -1, -1]
    positives = np.array([[[0, 1, 2], left_out], [[1, 0, 2], [2, 1, 0]]], np.int32)
    negatives = np.array([[[3, 1], [3, 0]], [[0, 2], left_out[:2]]], np.int32)
    method = DTSH(bits=4, positives=3, negatives=2, eta=eta)
    memory = SimpleNamespace(
        table=torch.from_numpy(scores.copy()),
        groups=SimpleNamespace(draw=lambda *given: (positives, negatives)),
    )
    given = batch(memory=memory, indices=torch.from_numpy(indices))
    loss = method.loss(torch.from_numpy(scores[indices]), given)
    total, triplets = likelihood_by_loops(scores[indices], scores, positives, negatives, 2.0)
    assert triplets == 2 * 3 * 2
    errors = scores[indices] - np.sign(scores[indices])
    assert loss.item() == pytest.approx(total / triplets + eta / 22_500 * (errors**2).sum() / 2)


def test_rows_of_the_batch_are_written_into_the_table_and_others_stay():
    method = DTSH(bits=6, batch_size=8, **FEW)
    memory = method.prepare(unit_set(np.arange(40) % 4))
    expected = torch.zeros(40, 6)
    assert torch.equal(memory.table, expected)
    expected[[5, 0]] = 1
    method.loss(expected[[5, 0]], batch(memory=memory, indices=torch.tensor([5, 0])))
    assert torch.equal(memory.table, expected)


def test_steps_draw_anew_and_the_seed_decides():
    def drawn(seed):
        method = DTSH(bits=6, seed=seed, batch_size=8, **FEW)
        memory = method.prepare(unit_set(np.arange(40) % 4))
        groups, kept = memory.groups, []
        memory.groups = SimpleNamespace(draw=lambda *given: kept.append(groups.draw(*given)) or kept[-1])
        for iteration in range(3):
            given = batch(memory=memory, iteration=iteration, indices=torch.tensor([0, 1, 2]))
            method.loss(torch.ones(3, 6), given)
        return [np.concatenate(both, axis=2) for both in kept]

    first, again, other = drawn(0), drawn(0), drawn(1)
    assert all(map(np.array_equal, first, again))
    assert not any(map(np.array_equal, first, other))
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(first[1], first[2])


def test_class_triplets_hold_the_classes_leave_out_the_batch_and_repeat_nothing():
    generator = np.random.default_rng(0)
    classes = generator.permutation(np.arange(200) % 5)
    anchors = generator.permutation(200)[:30]
    positives, negatives = ClassGroups(classes).draw(anchors, 7, 9, generator)
    assert positives.shape == (30, 4, 7)
    assert negatives.shape == (30, 4, 9)
    for i, anchor in enumerate(anchors):
        assert np.all(classes[positives[i]] == classes[anchor])
        others = classes[negatives[i]]
        assert np.all(others == others[:, :1])
        assert sorted(others[:, 0]) == sorted(set(range(5)) - {classes[anchor]})
        for group in range(4):
            assert len(set(positives[i, group])) == 7
            assert len(set(negatives[i, group])) == 9
    assert not np.isin(positives, anchors).any()
    assert not np.isin(negatives, anchors).any()
    # positives are drawn again for every other class
    assert not np.array_equal(np.sort(positives[:, 0]), np.sort(positives[:, 1]))


def test_all_items_outside_of_the_batch_are_equally_likely():
    classes, anchors = np.arange(60) % 3, np.arange(12)
    groups, generator = ClassGroups(classes), np.random.default_rng(0)
    counts = np.zeros((2, 60))
    for _ in range(400):
        for side, chosen in enumerate(groups.draw(anchors, 4, 4, generator)):
            np.add.at(counts[side], chosen.ravel(), 1)
    assert not counts[:, :12].any()
    expected = 400 * 12 * 2 * 4 / 48
    # The four of a group differ, so that counts vary less than binomial ones do.
    assert np.all(np.abs(counts[:, 12:] - expected) < 5 * math.sqrt(expected))


def test_other_classes_can_be_drawn_for_each_anchor():
    generator = np.random.default_rng(0)
    classes, anchors = np.arange(240) % 12, np.arange(48)
    _, negatives = ClassGroups(classes, classes_per_anchor=3).draw(anchors, 2, 2, generator)
    assert negatives.shape == (48, 3, 2)
    met = classes[negatives[:, :, 0]]
    assert all(len(set(row)) == 3 for row in met)
    assert not np.any(met == classes[anchors][:, None])
    assert len({tuple(row) for row in met}) > 20
    assert set(met.ravel()) == set(range(12))
    assert ClassGroups(classes, classes_per_anchor=50).draw(anchors, 2, 2, generator)[1].shape == (48, 11, 2)


def test_a_class_that_the_batch_leaves_few_of_is_drawn_with_replacement_or_left_out():
    classes, generator = np.array([0] * 10 + [1] * 10 + [2] * 10), np.random.default_rng(0)
    anchors = np.concatenate([np.arange(8), np.arange(10, 20)])  # leaves 2 of class 0 and none of class 1
    positives, negatives = ClassGroups(classes).draw(anchors, 5, 5, generator)
    assert set(positives[0].ravel()) == {8, 9}
    assert np.all(negatives[0, 0] == -1)
    assert len(set(negatives[0, 1])) == 5
    assert np.all(positives[8:] == -1)


def test_level_triplets_have_positives_of_the_level_and_negatives_below_and_leave_out_the_batch():
    generator = np.random.default_rng(0)
    levels = (0, 1, 2, 5, 10)
    affinity = np.asarray(levels)[generator.choice(5, (150, 150), p=[0.5, 0.2, 0.2, 0.09, 0.01])]
    affinity = np.maximum(affinity, affinity.T)
    affinity[3, affinity[3] == 5] = 10  # an item without level 5
    affinity[4] = np.maximum(affinity[4], 1)  # and one without level 0
    anchors = np.arange(40)
    outside = np.arange(40, 150)
    groups = LevelGroups(unit_set(np.zeros(150, np.int64), affinity, levels))
    positives, negatives = groups.draw(anchors, 6, 8, generator)
    assert positives.shape == (40, 4, 6)
    assert negatives.shape == (40, 4, 8)
    seen = set()
    for i, (place, level) in itertools.product(anchors, enumerate(levels[1:])):
        there = outside[affinity[i, outside] == level]
        below = outside[affinity[i, outside] < level]
        for chosen, among, wanted in ((positives, there, 6), (negatives, below, 8)):
            drawn = chosen[i, place]
            if len(among) == 0:
                assert np.all(drawn == -1)
                seen.add("none")
            else:
                assert set(drawn) <= set(among)
                assert len(set(drawn)) == wanted or len(among) < wanted
                seen.add("few" if len(among) < wanted else "enough")
    assert seen == {"none", "few", "enough"}
    assert np.all(positives[3, 2] == -1)
    assert np.all(negatives[4, 0] == -1)


def test_levels_made_batch_by_batch_are_those_that_are_kept(monkeypatch):
    labels = np.arange(40) % 4
    made = unit_set(labels, graded(labels), (0, 1, 2))
    kept = LevelGroups(made)
    monkeypatch.setattr(supervision, "KEPT_PAIRS", 40**2 - 1)
    remade = LevelGroups(made)
    assert kept.kept is not None
    assert remade.kept is None
    drawn = [groups.draw(np.arange(9), 4, 5, np.random.default_rng(0)) for groups in (kept, remade)]
    for first, second in zip(*drawn):
        assert np.array_equal(first, second)


def test_classes_serve_where_affinity_is_theirs_and_levels_elsewhere():
    labels = np.arange(40) % 4
    assert np.array_equal(single_classes(unit_set(labels + 5)), labels)
    assert single_classes(unit_set(labels, has_labels=False)) is None
    assert single_classes(unit_set(labels, graded(labels), (0, 1, 2))) is None
    near = (np.abs(np.arange(40)[:, None] - np.arange(40)) < 4).astype(np.int64)
    assert single_classes(unit_set(labels, near)) is None
    for affinity, kind in ((None, ClassGroups), (near, LevelGroups)):
        made = unit_set(labels, affinity)
        assert isinstance(DTSH(batch_size=8, **FEW).prepare(made).groups, kind)


@pytest.mark.parametrize("items", [4, 5, 9, 40])
def test_batches_are_half_of_the_training_set_at_most(items):
    method = DTSH(batch_size=16, seed=3)
    batches = method.draw_batches(items, epoch=2)
    assert sorted(np.concatenate(batches)) == list(range(items))
    assert max(map(len, batches)) == min(16, items // 2)


def test_training_lowers_the_objective_and_ranks_the_levels():
    labels, records = np.arange(120) % 4, []
    affinity = graded(labels)
    made = unit_set(labels, affinity, (0, 1, 2), log=records.append)
    method = DTSH(bits=8, epochs=30, batch_size=30, learning_rate=0.05, eta=10.0, positives=15, negatives=15)
    codes = method.fit(made).encode(made.items)
    assert records[-1]["objective"] < records[0]["objective"] - 1
    distances = (codes[:, None] != codes).sum(axis=2)
    means = [distances[affinity == level].mean() for level in (0, 1, 2)]
    assert np.all(np.diff(means) < -0.5)


@pytest.mark.parametrize(
    ("labels", "settings", "message"),
    [
        (np.zeros(40, np.int64), {}, "one class"),
        (np.arange(40) % 4, {"positives": 9}, "too few training items per class: 8 .* take 9"),
        (np.arange(40) % 4, {"negatives": 9}, "too few training items per class: 8 .* take 9"),
        (np.array([0] * 30 + [1] * 4), {}, "too few training items per class"),
        (np.arange(3) % 2, {}, "at least 4 training items"),
    ],
)
def test_classes_without_enough_triplets_are_refused_in_one_line(labels, settings, message):
    method = DTSH(**({"bits": 4, "epochs": 1, "batch_size": 8} | FEW | settings))
    with refused(pattern=message):
        method.fit(unit_set(labels))


@pytest.mark.parametrize("level", [0, 2])
def test_levels_without_triplets_are_refused_whatever_items_are_to_themselves(level):
    affinity = np.full((20, 20), level)
    np.fill_diagonal(affinity, 10)
    with refused("no triplets"):
        DTSH(bits=4, epochs=1).fit(unit_set(np.arange(20), affinity, (0, 2, 10)))
    affinity[18, 19] = affinity[19, 18] = 1
    DTSH(bits=4, epochs=1).fit(unit_set(np.arange(20), affinity, (0, 1, 2, 10)))


def test_a_handful_of_items_trains():
    made = unit_set(np.arange(4) % 2)
    method = DTSH(bits=3, epochs=3, batch_size=2, positives=1, negatives=1).fit(made)
    assert method.encode(made.items).shape == (4, 3)
