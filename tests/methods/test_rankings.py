"""Lists and loss-augmented inference, against exhaustive search over all orderings and plain loops."""

import functools
import itertools
import math

import numpy as np
import pytest
from refusing import refused
from sets import affinity_of, from_matrix

from methods.base import supervision
from methods.relations.pairs import Pairs
from methods.relations.rankings import RankingLists, ideal_dcg, infer, make_lists, most_violated

SHAPES = [(p, q) for p in range(1, 6) for q in range(1, 6) if p + q <= 6]


def dcg(gains):
    """Of gains in ranking order."""
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


@functools.cache
def orderings(relevant, irrelevant):
    """All rankings of the items 0 .. P + Q - 1, the first P of them relevant: their 1 - NDCG (o,), and y_jk
    as float64 (o, P, Q)."""
    losses, signs = [], []
    for order in itertools.permutations(range(relevant + irrelevant)):
        gains = [float(item < relevant) for item in order]
        losses.append(1 - dcg(gains) / dcg(sorted(gains, reverse=True)))
        place = {item: rank for rank, item in enumerate(order)}
        signs.append(
            [
                [1.0 if place[j] < place[relevant + k] else -1.0 for k in range(irrelevant)]
                for j in range(relevant)
            ]
        )
    return np.array(losses), np.array(signs)


def psi(signs, mismatches, relevant):
    """sum_jk y_jk (m_k - m_j) / PQ by a double loop; mismatches: of a list's P + Q items, with the query."""
    total, irrelevant = 0.0, len(mismatches) - relevant
    for j in range(relevant):
        for k in range(irrelevant):
            total += signs[j][k] * (mismatches[relevant + k] - mismatches[j])
    return total / (relevant * irrelevant)


def all_values(high, low):
    """loss + w' psi of all orderings, for scores of the relevant and of the irrelevant items."""
    losses, signs = orderings(len(high), len(low))
    margins = np.asarray(high)[:, None] - np.asarray(low)
    return losses + (signs * margins).sum(axis=(1, 2)) / margins.size


def lists_of(shapes, weights=None, pairs=None, places=None):
    """`RankingLists` of the shapes [(P, Q)], over pairs of their own if none are given."""
    sizes = [p + q for p, q in shapes]
    count = sum(sizes) if pairs is None else pairs
    every = np.arange(count, dtype=np.int32)
    return RankingLists(
        Pairs(count + 1, every, every + 1, np.ones(count, bool)),
        every if places is None else np.asarray(places, np.int32),
        np.concatenate([[0], np.cumsum(sizes)]),
        np.array([p for p, _ in shapes], np.int32),
        np.full(len(shapes), 1 / len(shapes)) if weights is None else np.asarray(weights),
    )


def draw_scores(count, generator, kind):
    if kind == "tied":  # what equal bit weights give: a few values, each several times
        return -generator.integers(0, 3, count) * generator.choice([0.1, 0.25, 1.0])
    if kind == "all tied":
        return np.full(count, -0.7)
    return generator.normal(size=count) * 10 ** generator.uniform(-2, 1)


@pytest.mark.parametrize("kind", ["continuous", "tied", "all tied"])
@pytest.mark.parametrize(("relevant", "irrelevant"), [*SHAPES, (3, 4), (5, 2)])
def test_no_ordering_has_more_loss_and_margin(relevant, irrelevant, kind):
    lists = lists_of([(relevant, irrelevant)])
    for seed in range(25):
        scores = draw_scores(relevant + irrelevant, np.random.default_rng(seed), kind)
        shift, loss = most_violated(lists, scores)
        assert shift.dtype == np.float32
        right = psi(np.ones((relevant, irrelevant)), -scores, relevant)
        # loss + w' psi(y) = loss - w' (psi(y*) - psi(y)) + w' psi(y*), and mismatches times w are -scores.
        reached = loss - shift.astype(np.float64) @ -scores + right
        scale = 1 + np.abs(scores).max()
        assert reached == pytest.approx(
            all_values(scores[:relevant], scores[relevant:]).max(), abs=1e-6 * scale
        )


def inferred(high, low):
    """m of `infer`, for descending scores."""
    p, q = len(high), len(low)
    discounts = 1 / np.log2(np.arange(p + q + 1) + 2.0)
    above = np.empty(p, np.int64)
    scratch = np.empty(p + 1), np.empty(p, np.int64)
    infer(np.array(high), np.array(low), discounts, ideal_dcg(p), *scratch, above)
    return above


def ranking_value(above, high, low):
    """loss + w' psi of the ranking that puts the first m_j irrelevant items above relevant j."""
    p, q = len(high), len(low)
    gain = sum(1 / math.log2(j + m + 2) for j, m in enumerate(above))
    margin = sum((-1 if k < m else 1) * (high[j] - low[k]) for j, m in enumerate(above) for k in range(q))
    return 1 - gain / ideal_dcg(p) + margin / (p * q)


@pytest.mark.parametrize("kind", ["continuous", "tied", "all tied"])
@pytest.mark.parametrize(("relevant", "irrelevant"), [(1, 40), (2, 20), (4, 7), (7, 4), (30, 1)])
def test_longer_lists_get_the_best_of_all_rankings_that_keep_both_orders(relevant, irrelevant, kind):
    """That no other orderings have to be tried is shown by the exhaustive search over short ones."""
    candidates = list(itertools.combinations_with_replacement(range(irrelevant + 1), relevant))
    for seed in range(10):
        scores = draw_scores(relevant + irrelevant, np.random.default_rng(seed), kind)
        high, low = np.sort(scores[:relevant])[::-1], np.sort(scores[relevant:])[::-1]
        above = inferred(high, low)
        assert np.all(np.diff(above) >= 0)
        assert above.min() >= 0 and above.max() <= irrelevant
        best = max(ranking_value(candidate, high, low) for candidate in candidates)
        assert ranking_value(above, high, low) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_shift_and_loss_are_weighted_means_over_lists(seed):
    """From the best ordering of every list, found exhaustively, by the definition of psi(y*) - psi(y): for
    each pair alone as the bit that parts it, and for bits that part many."""
    generator = np.random.default_rng(seed)
    shapes = [SHAPES[at] for at in generator.integers(0, len(SHAPES), 6)]
    weights = generator.dirichlet(np.ones(6))
    # Lists share pairs: those of a query for several thresholds do, and two queries share the one they make.
    places = np.concatenate([generator.choice(12, p + q, replace=False) for p, q in shapes])
    lists = lists_of(shapes, weights, pairs=12, places=places)
    scores = generator.normal(size=12) * 0.5
    bits = np.concatenate([np.eye(12), generator.integers(0, 2, (5, 12))])
    expected_shift, expected_loss = np.zeros(len(bits)), 0.0
    for number, (p, _) in enumerate(shapes):
        own = lists.places[lists.starts[number] : lists.starts[number + 1]]
        losses, signs = orderings(*shapes[number])
        # Scores differ, and so do values of rankings: there is one best ordering of relevant and irrelevant.
        worst = np.argmax(all_values(scores[own[:p]], scores[own[p:]]))
        expected_loss += weights[number] * losses[worst]
        for row, bit in enumerate(bits):
            right, wrong = psi(np.ones_like(signs[worst]), bit[own], p), psi(signs[worst], bit[own], p)
            expected_shift[row] += weights[number] * (right - wrong)
    shift, loss = most_violated(lists, scores)
    assert loss == pytest.approx(expected_loss, abs=1e-12)
    assert bits @ shift == pytest.approx(expected_shift, abs=1e-6)


def graded(seed, items=12, levels=(0, 1, 2, 3)):
    """Symmetric affinities of which every item has 0 and, most of them, all the others."""
    generator = np.random.default_rng(seed)
    upper = np.triu(generator.choice(levels, (items, items)), 1)
    affinity = upper + upper.T
    for item in range(items):
        affinity[item, (item + items // 2) % items] = 0
    return affinity + max(levels) * np.eye(items, dtype=int)


def classes(counts):
    return affinity_of(np.repeat(np.arange(len(counts)), counts))


def unpacked(lists):
    """(query, relevant items, irrelevant items, weight) of each list."""
    found = []
    for number in range(len(lists.relevant)):
        places = lists.places[lists.starts[number] : lists.starts[number + 1]]
        ends = [{int(lists.pairs.first[place]), int(lists.pairs.second[place])} for place in places]
        (query,) = set.intersection(*ends)
        others = [next(iter(pair - {query})) for pair in ends]
        count = lists.relevant[number]
        found.append((query, others[:count], others[count:], lists.weights[number]))
    return found


@pytest.mark.parametrize("levels", [(0, 1), (0, 1, 2, 3), (0, 1, 2, 5, 10)])
@pytest.mark.parametrize(("relevant", "irrelevant"), [(2, 3), (1, 1), (50, 50)])
def test_lists_hold_who_they_say_and_no_more_than_asked(levels, relevant, irrelevant):
    affinity = graded(0, 30, levels)
    lists = make_lists(from_matrix(affinity, levels), relevant, irrelevant, np.random.default_rng(1))
    # Query by query, threshold by threshold, wherever there is somebody on either side.
    expected = [
        (query, threshold)
        for query, row in enumerate(affinity)
        for threshold in levels[1:]
        if (row >= threshold).sum() > 1 and (row < threshold).any()
    ]
    found = unpacked(lists)
    assert len(found) == len(expected)
    for (query, threshold), (owner, high, low, _) in zip(expected, found):
        assert owner == query
        above = np.setdiff1d(np.flatnonzero(affinity[query] >= threshold), query)
        below = np.flatnonzero(affinity[query] < threshold)
        assert len(set(high)) == len(high) == min(relevant, len(above))
        assert len(set(low)) == len(low) == min(irrelevant, len(below))
        assert set(high) <= set(above) and set(low) <= set(below)
    pairs = lists.pairs
    assert pairs.items == 30
    assert np.all(pairs.first < pairs.second)
    assert len(set(zip(pairs.first, pairs.second))) == len(pairs) == len(np.unique(lists.places))
    parted = {frozenset((owner, other)) for owner, _, low, _ in found for other in low}
    ends = map(frozenset, zip(pairs.first.tolist(), pairs.second.tolist()))
    assert pairs.similar.tolist() == [pair not in parted for pair in ends]
    if len(levels) == 2:
        assert np.array_equal(pairs.similar, affinity[pairs.first, pairs.second] > 0)
    kinds = [array.dtype for array in (lists.places, lists.relevant, lists.weights)]
    assert kinds == [np.int32, np.int32, np.float64]


@pytest.mark.parametrize("levels", [(0, 1), (0, 1, 2, 3), (0, 2), (0, 1, 2, 5, 10)])
def test_weights_add_up_to_one_and_queries_count_the_same(levels):
    for sizes in ((50, 50), (2, 2)):
        lists = make_lists(from_matrix(graded(1, 30, levels), levels), *sizes, np.random.default_rng(0))
        assert lists.weights.sum() == pytest.approx(1, abs=1e-12)
        assert np.all(lists.weights > 0)
        per_query = np.zeros(30)
        for query, _, _, weight in unpacked(lists):
            per_query[query] += weight
        assert per_query == pytest.approx(np.full(30, 1 / 30), abs=1e-12)


@pytest.mark.parametrize("levels", [(0, 1), (0, 1, 2, 3), (0, 3), (0, 1, 2, 5, 10)])
@pytest.mark.parametrize("seed", range(4))
def test_the_losses_of_one_ranking_add_up_to_its_graded_loss(levels, seed):
    """With all items in the lists, one ranking per query has 1 - NDCG of gains 2^v - 1 as the sum."""
    affinity, items = graded(seed, 12, levels), 12
    lists = make_lists(from_matrix(affinity, levels), 50, 50, np.random.default_rng(0))
    generator = np.random.default_rng(seed)
    orders = {
        query: [other for other in generator.permutation(items) if other != query] for query in range(items)
    }
    expected = np.mean(
        [
            1 - dcg(gains) / dcg(sorted(gains, reverse=True))
            for query, order in orders.items()
            for gains in [[2.0 ** affinity[query, other] - 1 for other in order]]
        ]
    )
    found = 0.0
    for query, high, low, weight in unpacked(lists):
        assert sorted(high + low) == sorted(orders[query])
        hits = [float(other in set(high)) for other in orders[query]]
        found += weight * (1 - dcg(hits) / ideal_dcg(len(high)))
    assert found == pytest.approx(expected, abs=1e-12)


def test_queries_without_a_list_count_nothing():
    """Items alone in their class have no relevant others; the rest share the weight."""
    training_set = from_matrix(classes([1, 3, 1, 4]), (0, 1))
    found = unpacked(make_lists(training_set, 50, 50, np.random.default_rng(0)))
    assert [query for query, *_ in found] == [1, 2, 3, 5, 6, 7, 8]
    assert [weight for *_, weight in found] == pytest.approx([1 / 7] * 7)
    # The same with a threshold that no item reaches.
    found = unpacked(
        make_lists(from_matrix(classes([1, 3, 1, 4]), (0, 1, 2)), 50, 50, np.random.default_rng(0))
    )
    assert [weight for *_, weight in found] == pytest.approx([1 / 7] * 7)


@pytest.mark.parametrize("counts", [[8], [1] * 8, [2], [1], [1, 1], []])
def test_a_set_without_both_kinds_of_items_for_a_query_is_refused(counts):
    with refused("relevant and irrelevant"):
        make_lists(from_matrix(classes(counts), (0, 1)), 5, 5, np.random.default_rng(0))


def test_a_generator_decides_everything(monkeypatch):
    training_set = from_matrix(graded(3, 40), (0, 1, 2, 3))

    def drawn(seed):
        made = make_lists(training_set, 3, 4, np.random.default_rng(seed))
        return [made.places, made.starts, made.relevant, made.weights, made.pairs.first, made.pairs.second]

    first = drawn(0)
    monkeypatch.setattr(supervision, "_ROWS_AT_ONCE", 7)  # how many rows at once changes nothing
    assert all(np.array_equal(one, two) for one, two in zip(first, drawn(0)))
    assert not all(np.array_equal(one, two) for one, two in zip(first, drawn(1)))
