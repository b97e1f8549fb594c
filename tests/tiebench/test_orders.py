"""Metrics against brute force over every order of tied items, closed forms, and exact fractions."""

from fractions import Fraction
from itertools import groupby, permutations, product
from math import comb

import numpy as np
import pytest
from refusals import refused

from tiebench.counting.histograms import JointHistograms
from tiebench.metric_table import METRICS
from tiebench.rankings import exact, ties

TOLERANCE = 1e-12
BITS = 4


def orders(items):
    """Every order of (distance, affinity) items that sorts them by distance, equal affinities kept apart."""
    tied = [list(group) for _, group in groupby(sorted(items), key=lambda item: item[0])]
    for parts in product(*(permutations(tie) for tie in tied)):
        yield [item for part in parts for item in part]


def histogram(items, largest=BITS):
    """One query's joint histogram."""
    distances, found = np.array(items).T
    levels = np.unique([0, *found])
    counts = np.zeros((1, len(levels), largest + 1), np.int64)
    np.add.at(counts[0], (np.searchsorted(levels, found), distances), 1)
    return JointHistograms(levels, counts)


def affinities(ranking):
    return [affinity for _, affinity in ranking]


def hits(ranking, at=None):
    return sum(affinity > 0 for _, affinity in ranking[:at])


def hit_ranks(ranking, at=None):
    return [rank for rank, (_, affinity) in enumerate(ranking[:at], start=1) if affinity]


def share(part, whole):
    return part / whole if whole else 0.0


def ap(ranking, at=None, normaliser="hits"):
    relevant = hits(ranking)
    divisors = {"hits": hits(ranking, at), "min": min(at or relevant, relevant), "relevant": relevant}
    return share(sum(hits(ranking, rank) / rank for rank in hit_ranks(ranking, at)), divisors[normaliser])


def dcg(gains, at):
    return sum(gain / np.log2(rank + 1) for rank, gain in enumerate(gains[:at], start=1))


def ndcg(ranking, at=None, gain=lambda affinity: 2.0**affinity - 1):
    gains = [gain(affinity) for affinity in affinities(ranking)]
    ideal = dcg(sorted(gains, reverse=True), at)
    return dcg(gains, at) / ideal if ideal else 1.0


def acg(ranking, at):
    return sum(affinities(ranking[:at])) / at


def wap(ranking):
    return share(sum(acg(ranking, rank) for rank in hit_ranks(ranking)), hits(ranking))


def reciprocal(ranking, at=None):
    return 1 / hit_ranks(ranking, at)[0] if hits(ranking, at) else 0.0


def ball(ranking, radius):
    return [item for item in ranking if item[0] <= radius]


def precision(ranking, radius):
    return share(hits(ball(ranking, radius)), len(ball(ranking, radius)))


def recall(ranking, radius):
    return share(hits(ball(ranking, radius)), hits(ranking))


def f1(ranking, radius):
    both = precision(ranking, radius), recall(ranking, radius)
    return share(2 * both[0] * both[1], sum(both))


def uneven(affinity):
    """Gains that neither grow with the affinity nor differ."""
    return np.asarray(affinity) % 3 + (np.asarray(affinity) > 4)


# Of one ranking, [(distance, affinity), ...], and K or the radius: every entry of the table of metrics.
DEFINITIONS = {
    "ap": ap,
    "ndcg": ndcg,
    "ndcg_linear": lambda r: ndcg(r, None, float),
    "wap": wap,
    "r_precision": lambda r: share(hits(r, hits(r)), hits(r)),
    "reciprocal_rank": reciprocal,
    "ap@K": ap,
    "ndcg@K": ndcg,
    "precision@K": lambda r, k: hits(r, k) / k,
    "recall@K": lambda r, k: share(hits(r, k), hits(r)),
    "success@K": lambda r, k: float(hits(r, k) > 0),
    "reciprocal_rank@K": reciprocal,
    "ndcg_linear@K": lambda r, k: ndcg(r, k, float),
    "acg@K": acg,
    "precision_radius_R": precision,
    "recall_radius_R": recall,
    "f1_radius_R": f1,
    "ap_radius_R": lambda r, radius: ap(ball(r, radius)),
    "raap_radius_R": lambda r, radius: np.mean([precision(r, near) for near in range(radius + 1)]),
    "candidates_radius_R": lambda r, radius: len(ball(r, radius)),
    "empty_radius_R": lambda r, radius: float(not ball(r, radius)),
}
CASES = 200


def named(cuts):
    """Name -> metric and what its definition is given, nothing, a cut or a radius: all of a score at cuts."""
    return {
        metric.spell(value): (metric, () if value is None else (value,))
        for metric in METRICS.values()
        for value in {None: [None], "cutoff": cuts, "radius": metric.radii}[metric.parameter]
    }


@pytest.fixture(scope="module")
def cases():
    """Random rankings of up to 6 items, K, and all of their orders."""
    generator = np.random.default_rng(20)
    made = []
    for _ in range(CASES):
        size = generator.integers(1, 7)
        levels = [[0, 0, 1], [0, 1, 2], [1, 2, 5], [0, 0, 4]][generator.integers(4)]
        drawn = generator.choice(levels, size)
        distances = generator.integers(0, generator.integers(1, 4), size) + generator.integers(0, 2)
        items = list(zip(distances.tolist(), drawn.tolist()))
        made.append((items, int(generator.integers(1, 8)), list(orders(items))))
    return made


def over_orders(rankings, define, *parameter):
    values = [define(ranking, *parameter) for ranking in rankings]
    return np.mean(values), min(values), max(values)


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_equals_brute_force_over_all_orders_of_ties(name, cases):
    metric, define = METRICS[name], DEFINITIONS[name]
    normalisers = [(how,) for how in ties.AP_AT_NORMALISERS] if metric.takes_normaliser else [()]
    for (items, at, rankings), how in product(cases, normalisers):
        value = {None: (), "cutoff": (at, *how), "radius": (at - 1,)}[metric.parameter]
        mean, low, high = over_orders(rankings, define, *value)
        found = metric.compute(histogram(items), *value)
        assert metric.has_range or high - low < TOLERANCE
        found = [part[0] for part in found] if metric.has_range else [found[0]] * 3
        assert np.allclose(found, [mean, low, high], rtol=0, atol=TOLERANCE), (items, value, found)


def test_any_gains_give_the_range_of_ndcg(cases):
    for items, at, rankings in cases:
        found = [part[0] for part in exact.ndcg(histogram(items), at, uneven)]
        expected = over_orders(rankings, ndcg, at, uneven)
        assert np.allclose(found, expected, rtol=0, atol=TOLERANCE), (items, at)


def test_blocks_of_several_queries_may_differ_in_number_and_leave_relevant_items_out(cases):
    """All cases as one array of blocks; three more relevant items of each were not retrieved."""
    counts = [histogram(items).counts[0] for items, _, _ in cases]
    items = np.array([count.sum(axis=0) for count in counts])
    relevant = items - np.array([count[0] for count in counts])
    tied = ties.from_counts(items, relevant, relevant.sum(axis=1) + 3)
    cuts = np.array([at for _, at, _ in cases])
    found = {
        "hits": ties.hits(tied, cuts),
        "recall": ties.recall(tied, 4),
        "precision": ties.precision(tied, 4),
        "r_precision": ties.r_precision(tied),
        "ap": ties.average_precision(tied, None, "relevant"),
        "ap@4": ties.average_precision(tied, 4, "min"),
    }

    def precisions(ranking, at=None):
        return sum(hits(ranking, rank) / rank for rank in hit_ranks(ranking, at))

    for row, (_, at, rankings) in enumerate(cases):
        everything = relevant[row].sum() + 3
        plain = {
            "hits": lambda r, k=at: hits(r, k),
            "recall": lambda r, n=everything: hits(r, 4) / n,
            "precision": lambda r: hits(r, 4) / 4,
            "r_precision": lambda r, n=everything: hits(r, n) / n,
            "ap": lambda r, n=everything: precisions(r) / n,
            "ap@4": lambda r, n=everything: precisions(r, 4) / min(4, n),
        }
        for name, define in plain.items():
            expected = over_orders(rankings, define)
            assert np.allclose([part[row] for part in found[name]], expected, rtol=0, atol=TOLERANCE), name
    assert np.all(ties.hits(tied, 0).maximum == 0)


def test_the_first_hit_of_large_ties_equals_exact_fractions():
    """P(no hit) = C(n - r, m) / C(n, m); 1 / (N + j) has probability C(n - j, r - 1) / C(n, r)."""
    generator = np.random.default_rng(4)
    for _ in range(300):
        n = int(generator.integers(1, 250))
        r = int(generator.integers(1, n + 1 if generator.random() < 0.6 else min(n, 4) + 1))
        before = int(generator.choice([0, 1, 7, generator.integers(0, 3 * n), 10**5]))
        at = before + int(generator.integers(1, n + 1))
        tied = ties.from_counts(np.array([[before, n]]), np.array([[0, r]]))
        missed = Fraction(comb(n - r, at - before), comb(n, at - before))
        assert ties.success(tied, at).expected[0] == pytest.approx(float(1 - missed), rel=1e-11)
        terms = [Fraction(comb(n - j, r - 1), comb(n, r) * (before + j)) for j in range(1, n - r + 2)]
        assert ties.reciprocal_rank(tied).expected[0] == pytest.approx(float(sum(terms)), rel=1e-12)
        some = float(sum(terms[: at - before]))
        assert ties.reciprocal_rank(tied, at).expected[0] == pytest.approx(some, rel=1e-12)


@pytest.mark.parametrize("relevant", [1, 2, 90, 4_000, 600_000, 10**6 - 1, 10**6])
def test_reciprocal_rank_in_a_tie_of_a_million_equals_the_sum_of_its_terms(relevant):
    n = 10**6
    places = np.arange(1, n - relevant + 2, dtype=np.longdouble)
    none = np.ones_like(places)  # before a place
    np.cumprod((n - relevant - places[:-1] + 1) / (n - places[:-1] + 1), out=none[1:])
    first = none * relevant / (n - places + 1)
    for before in (0, 1, 300, 40_000, 3_000_000):
        found = ties.reciprocal_rank(ties.from_counts(np.array([[before, n]]), np.array([[0, relevant]])))
        expected = float(np.sum(first / (before + places)))
        assert found.expected[0] == pytest.approx(expected, rel=1e-12)
        assert found.minimum[0] == 1 / (before + n - relevant + 1) and found.maximum[0] == 1 / (before + 1)


def test_constant_codes_have_closed_forms():
    """All N items tied, R relevant: what random codes have on average, whatever the bits."""
    for items, relevant, at in [(1000, 100, 10), (50, 1, 50), (12, 12, 3), (40_000, 4_000, 1_000)]:
        joint = JointHistograms(np.arange(2), np.array([[[items - relevant], [relevant]]]))
        rate = relevant / items
        assert exact.precision(joint, at).expected[0] == pytest.approx(rate, abs=1e-12)
        assert exact.recall(joint, at).expected[0] == pytest.approx(at / items, abs=1e-12)
        assert exact.r_precision(joint).expected[0] == pytest.approx(rate, abs=1e-12)
        assert exact.average_cumulative_gain(joint, at).expected[0] == pytest.approx(rate, abs=1e-12)
        missed = Fraction(comb(items - relevant, at), comb(items, at))
        assert exact.success(joint, at).expected[0] == pytest.approx(float(1 - missed), abs=1e-12)
    alone = JointHistograms(np.arange(2), np.array([[[999], [1]]]))
    harmonic = np.sum(1 / np.arange(1, 1001))
    assert exact.reciprocal_rank(alone).expected[0] == pytest.approx(harmonic / 1000, abs=1e-12)


def test_ap_at_k_of_a_cut_behind_millions_of_items_has_a_closed_form():
    """Four tied items, two of them relevant: the cut takes two, of which two, one or none are."""
    for before in (0, 3_000_000):
        tied = ties.from_counts(np.array([[before, 4]]), np.array([[0, 2]]))
        first, second = 1 / (before + 1), 1 / (before + 2)
        both = (first + 2 * second) / 2
        found = ties.average_precision(tied, before + 2, "hits")
        assert found.expected[0] == pytest.approx((both + 2 * first + 2 * second) / 6, rel=1e-5)
        assert found.maximum[0] == pytest.approx(both, rel=1e-5) and found.minimum[0] == 0


def test_gains_must_be_non_negative_numbers():
    joint = histogram([(0, 1), (1, 0)])
    for wrong in (lambda a: -a, lambda a: a * np.nan, lambda a: np.ones(5)):
        with refused("gains must be non-negative numbers"):
            exact.ndcg(joint, gain=wrong)


@pytest.mark.parametrize("normaliser", ties.AP_AT_NORMALISERS)
def test_a_ranking_scores_the_same_beside_a_longer_one(normaliser):
    """Two items of five relevant ones, alone and beside a ranking of eleven."""
    alone = ties.from_counts(np.array([[2]]), np.array([[2]]), np.array([5]))
    beside = ties.from_counts(np.array([[2, 0], [1, 10]]), np.array([[2, 0], [1, 2]]), np.array([5, 3]))
    (expected,) = ties.average_precision(alone, None, normaliser).expected
    assert ties.average_precision(beside, None, normaliser).expected[0] == expected
    assert expected == {"hits": 1.0, "min": 0.4, "relevant": 0.4}[normaliser]


def test_cuts_of_each_ranking_are_checked_and_no_ranking_is_none():
    tied = ties.from_counts(np.array([[2], [3]]), np.array([[1], [1]]))
    with refused("the cut K must be"):
        ties.hits(tied, np.array([2, -1]))
    none = ties.from_counts(np.zeros((0, 4), np.int64), np.zeros((0, 4), np.int64))
    for found in (ties.average_precision(none, 3, "hits"), ties.reciprocal_rank(none)):
        assert [part.shape for part in found] == [(0,)] * 3


@pytest.mark.parametrize(
    ("items", "relevant", "total", "message"),
    [
        ([[1, 2]], [[2, 0]], None, "relevant must be 0 to items"),
        ([[1, 2]], [[1]], None, r"items and relevant must be \(Q, D\)"),
        (np.zeros((1, 0), int), np.zeros((1, 0), int), None, r"D >= 1"),
        ([[1, 2]], [[1, 1]], [1], "total_relevant must be"),
        ([[1, 2]], [[1, 1]], [2, 2], "total_relevant must be"),
    ],
)
def test_counts_that_do_not_fit_are_refused(items, relevant, total, message):
    total = None if total is None else np.array(total)
    with refused(pattern=message):
        ties.from_counts(np.array(items), np.array(relevant), total)


def test_large_counts_do_not_overflow():
    """10^9 items of affinity 200 at one distance and as many of 0; 4 x 10^9 items at two distances."""
    counts = np.array([[[10**9], [10**9]]])
    of_a_tie = ties.from_counts(np.array([[5 * 10**9]]), np.array([[4 * 10**9]]))
    assert ties.precision(of_a_tie, 4 * 10**9).expected == pytest.approx(0.8)
    one = JointHistograms(np.array([0, 200]), counts)
    assert exact.average_cumulative_gain(one, 10**8).expected == pytest.approx(100)
    two = JointHistograms(np.array([0, 1]), np.array([[[10**9, 10**9], [10**9, 10**9]]]))
    assert exact.precision_at_curve(two, [10**9, 3 * 10**9]) == pytest.approx([0.5, 0.5])
