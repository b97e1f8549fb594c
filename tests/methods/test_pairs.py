"""Sampled pairs and blocks without a dissimilar pair, against plain loops over small training sets."""

import numpy as np
import pytest
from refusing import refused
from sets import affinity_of, from_matrix

from methods.base import supervision
from methods.relations.pairs import Pairs, make_blocks, sample_pairs


def classes(labels):
    labels = np.asarray(labels)
    return from_matrix(labels[:, None] == labels, labels=labels)


def several_labels(seed, items=60, labels=5):
    """Items with up to a few of the labels each, affinity the number of shared ones; some have none."""
    hot = (np.random.default_rng(seed).random((items, labels)) < 0.25).astype(np.uint8)
    return from_matrix(affinity_of(hot), labels=hot)


def irregular(seed, items=60, share=0.2):
    """A symmetric affinity of 0 to 3 that comes from nothing, zero on its diagonal here and there."""
    generator = np.random.default_rng(seed)
    upper = np.triu(generator.integers(1, 4, (items, items)) * (generator.random((items, items)) < share))
    return from_matrix(upper + np.triu(upper, 1).T)


def matrix(training_set):
    everything = np.arange(len(training_set))
    return training_set.affinity(everything, everything)


SETS = {
    "classes": classes(np.arange(70) % 4),
    "classes of one, two and many": classes([0] + [1] * 2 + [2] * 40 + [3] * 7),
    "several labels": several_labels(0),
    "irregular": irregular(1),
    "almost all similar": irregular(2, share=0.95),
    "almost all dissimilar": irregular(3, share=0.03),
    "two similar, one other": classes([0, 0, 1]),
}
every_set = pytest.mark.parametrize("name", SETS)


@every_set
@pytest.mark.parametrize(("similar", "dissimilar"), [(3, 5), (1, 1), (10, 2), (1000, 1000)])
def test_pairs_are_distinct_true_and_enough_for_everybody(name, similar, dissimilar):
    training_set = SETS[name]
    items, related = len(training_set), matrix(training_set) > 0
    pairs = sample_pairs(training_set, similar, dissimilar, np.random.default_rng(0))
    assert pairs.items == items
    assert pairs.first.dtype == pairs.second.dtype == np.int32
    assert pairs.similar.dtype == bool
    assert np.all(pairs.first < pairs.second)
    assert pairs.first.min() >= 0 and pairs.second.max() < items
    seen = set(zip(pairs.first.tolist(), pairs.second.tolist()))
    assert len(seen) == len(pairs) == len(pairs.similar)
    assert np.array_equal(pairs.similar, related[pairs.first, pairs.second])
    np.fill_diagonal(related, False)
    unrelated = ~related
    np.fill_diagonal(unrelated, False)
    for wanted, most, there in ((True, similar, related), (False, dissimilar, unrelated)):
        chosen = pairs.similar == wanted
        partners = np.bincount(np.r_[pairs.first[chosen], pairs.second[chosen]], minlength=items)
        available = there.sum(axis=1)
        assert np.all(partners >= np.minimum(available, most))
        assert np.all(partners <= available)
        assert np.count_nonzero(chosen) <= np.minimum(available, most).sum()


def test_one_less_than_all_is_not_all():
    """Of two similar others everybody draws one: all three pairs of a class come together by chance only."""
    training_set = classes([0, 0, 0, 1])
    counts = [sample_pairs(training_set, 1, 1, np.random.default_rng(s)).similar.sum() for s in range(30)]
    assert set(counts) == {2, 3}


def test_draws_are_without_a_preference():
    """Each of 39 similar others is drawn by an item with the same chance, and so are pairs."""
    training_set = classes(np.repeat([0, 1], 40))
    counts = np.zeros((80, 80))
    for seed in range(100):
        pairs = sample_pairs(training_set, 4, 4, np.random.default_rng(seed))
        counts[pairs.first, pairs.second] += 1
    upper = np.triu_indices(80, 1)
    same = (np.arange(80) // 40)[upper[0]] == (np.arange(80) // 40)[upper[1]]
    for kind, others in ((same, 39), (~same, 40)):
        chance = 1 - (1 - 4 / others) ** 2  # drawn from either side
        spread = np.sqrt(100 * chance * (1 - chance))
        assert abs(counts[upper][kind].mean() - 100 * chance) < 0.5
        assert np.abs(counts[upper][kind] - 100 * chance).max() < 6 * spread


@every_set
def test_a_generator_decides_everything(name, monkeypatch):
    def drawn(seed):
        generator = np.random.default_rng(seed)
        pairs = sample_pairs(SETS[name], 3, 3, generator)
        return pairs, make_blocks(pairs, None, generator)

    pairs, blocks = drawn(5)
    monkeypatch.setattr(supervision, "_ROWS_AT_ONCE", 7)  # how many rows at once changes nothing
    again, blocks_again = drawn(5)
    for field in ("first", "second", "similar"):
        assert np.array_equal(getattr(pairs, field), getattr(again, field))
    assert [block.tolist() for block in blocks] == [block.tolist() for block in blocks_again]
    other, _ = drawn(6)
    assert name == "two similar, one other" or not (
        len(other) == len(pairs) and np.array_equal(other.second, pairs.second)
    )


@pytest.mark.parametrize(
    ("labels", "missing"),
    [
        (np.zeros(9, int), "dissimilar"),
        (np.arange(9), "similar"),
        ([0, 0], "dissimilar"),
        ([0, 1], "similar"),
        ([0], "similar"),
        ([], "similar"),
    ],
)
def test_a_set_without_both_kinds_of_pairs_is_refused(labels, missing):
    with refused(pattern=rf"\bno {missing} pair"):
        sample_pairs(classes(np.array(labels, int)), 4, 4, np.random.default_rng(0))


def test_sums_are_over_the_pairs_an_item_is_in():
    pairs = sample_pairs(SETS["several labels"], 3, 4, np.random.default_rng(0))
    values = np.random.default_rng(1).normal(size=len(pairs))
    expected = np.zeros(pairs.items)
    for first, second, value in zip(pairs.first, pairs.second, values):
        expected[first] += value
        expected[second] += value
    assert pairs.sums(values) == pytest.approx(expected, abs=1e-12)
    # Items after the last that is in a pair count, too.
    lonely = Pairs(5, np.array([0], np.int32), np.array([1], np.int32), np.array([True]))
    assert lonely.sums(np.array([2.5])).tolist() == [2.5, 2.5, 0, 0, 0]


def check_blocks(pairs, blocks):
    assert np.array_equal(np.sort(np.concatenate(blocks)), np.arange(pairs.items))
    where = np.empty(pairs.items, int)
    for number, block in enumerate(blocks):
        assert block.dtype == np.int64
        assert np.all(np.diff(block) > 0)
        where[block] = number
    inside = where[pairs.first] == where[pairs.second]
    assert np.all(pairs.similar[inside])
    return where


@pytest.mark.parametrize("name", ["classes", "classes of one, two and many", "two similar, one other"])
def test_classes_are_the_blocks(name):
    training_set = SETS[name]
    pairs = sample_pairs(training_set, 3, 3, np.random.default_rng(0))
    blocks = make_blocks(pairs, training_set.labels, np.random.default_rng(1))
    where = check_blocks(pairs, blocks)
    labels = training_set.labels
    assert np.array_equal(where[:, None] == where, labels[:, None] == labels)


@every_set
@pytest.mark.parametrize("seed", range(4))
def test_blocks_cover_the_items_and_hold_no_dissimilar_pair(name, seed):
    training_set = SETS[name]
    generator = np.random.default_rng(seed)
    pairs = sample_pairs(training_set, 4, 4, generator)
    labels = training_set.labels if np.ndim(training_set.labels) == 2 else None
    where = check_blocks(pairs, make_blocks(pairs, labels, generator))
    # Each block has taken in all that it could of what was free when it grew: two blocks are always kept
    # apart by a dissimilar pair.
    apart = {(min(pair), max(pair)) for pair in zip(where[pairs.first], where[pairs.second])} - {
        (number, number) for number in range(where.max() + 1)
    }
    dissimilar = ~pairs.similar
    by_dissimilar = {
        (min(pair), max(pair))
        for pair in zip(where[pairs.first[dissimilar]], where[pairs.second[dissimilar]])
    }
    assert apart <= by_dissimilar
    assert len(by_dissimilar) == (where.max() + 1) * where.max() // 2


def test_multi_hot_labels_are_treated_as_no_labels():
    training_set = SETS["several labels"]
    pairs = sample_pairs(training_set, 4, 4, np.random.default_rng(0))
    without = make_blocks(pairs, None, np.random.default_rng(2))
    multi_hot = make_blocks(pairs, training_set.labels, np.random.default_rng(2))
    assert [block.tolist() for block in multi_hot] == [block.tolist() for block in without]


def test_similar_items_come_before_others():
    """A chain of similar pairs and no dissimilar one but between 0 and its far end, 3: whichever the root,
    its similar items are in its block."""
    pairs = Pairs(
        4,
        np.array([0, 0, 1, 2], np.int32),
        np.array([1, 3, 2, 3], np.int32),
        np.array([True, False, True, True]),
    )
    grouped = {
        tuple(sorted(map(tuple, make_blocks(pairs, None, np.random.default_rng(seed))))) for seed in range(60)
    }
    # From 0: 1 and then 2. From 1: 0 and 2. From 2: 1 and 3, which bars 0. From 3: 2, then 1.
    assert grouped == {((0, 1, 2), (3,)), ((0,), (1, 2, 3))}


def test_a_member_bars_others_even_if_the_root_does_not():
    """Nothing bars 2 from the root 0; its member 1 does."""
    pairs = Pairs(3, np.array([0, 1], np.int32), np.array([1, 2], np.int32), np.array([True, False]))
    for seed in range(20):
        blocks = make_blocks(pairs, None, np.random.default_rng(seed))
        check_blocks(pairs, blocks)
        assert len(blocks) == 2
