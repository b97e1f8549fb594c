"""Tie-aware metrics against other libraries, closed forms, identities and known values."""

import numpy as np
import pytest
from refusals import refused
from scipy.stats import hypergeom
from sklearn.metrics import average_precision_score, ndcg_score
from test_orders import histogram

from tiebench.counting.histograms import JointHistograms
from tiebench.rankings import exact, radius


def random_case(seed, items=3000, bits=16, levels=(0, 1, 2, 3)):
    rng = np.random.default_rng(seed)
    affinities = rng.choice(levels, items, p=[0.7] + [0.3 / (len(levels) - 1)] * (len(levels) - 1))
    distances = np.clip(rng.binomial(bits, 0.5, items) - affinities, 0, bits)
    return distances, affinities, histogram(list(zip(distances, affinities)), bits)


@pytest.mark.parametrize("at", [None, 10, 100, 1000])
def test_ndcg_equals_scikit_learn_which_averages_over_ties(at):
    for seed in range(3):
        distances, affinities, joint = random_case(seed)
        theirs = ndcg_score([2.0**affinities - 1], [-distances.astype(float)], k=at)
        assert exact.ndcg(joint, at).expected[0] == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("normaliser", exact.AP_AT_NORMALISERS)
@pytest.mark.parametrize("at", [7, 150, 1000])
def test_large_cuts_equal_sums_over_the_hypergeometric_distribution(at, normaliser):
    """An independent form: condition on the hits in the cut tie (scipy's pmf), sum precisions by rank."""
    for seed in range(4):
        distances, affinities, joint = random_case(seed, items=1500, bits=8, levels=(0, 1))
        relevant = affinities > 0
        before_sum, hits, seen = 0.0, 0, 0
        for distance in range(9):
            tied = distances == distance
            n, r = int(tied.sum()), int(relevant[tied].sum())
            m = min(n, at - seen)
            outcomes = np.arange(max(0, m - (n - r)), min(m, r) + 1)
            ranks = np.arange(1, m + 1)
            value = 0.0
            for h in outcomes:
                precisions = (hits + 1 + (ranks - 1) * (h - 1) / max(m - 1, 1)) / (seen + ranks)
                total = before_sum + (h / m * precisions.sum() if h else 0.0)
                everything = relevant.sum()
                divisor = {"hits": hits + h, "min": min(at, everything), "relevant": everything}[normaliser]
                value += hypergeom(n, r, m).pmf(h) * (total / divisor if divisor else 0.0)
            if seen + n >= at:
                break
            slope = (r - 1) / max(n - 1, 1)
            before_sum += r / n * sum((hits + 1 + (j - 1) * slope) / (seen + j) for j in range(1, n + 1))
            hits, seen = hits + r, seen + n
        found = exact.average_precision(joint, at, normaliser).expected[0]
        assert found == pytest.approx(value, abs=1e-10)


@pytest.mark.parametrize(
    ("items", "relevant", "at"),
    [
        *((400_000, 200_000, 200_000), (100_000, 30_000, 70_001), (50_000, 49_000, 900)),
        *((1000, 100, None), (50, 1, None), (10, 10, None)),
    ],
)
def test_one_tie_has_a_closed_form(items, relevant, at):
    """The mean precision is linear in the hits h, and their mean m r / n. The probabilities of h span
    thousands of powers of ten here."""
    joint = JointHistograms(np.arange(2), np.array([[[items - relevant], [relevant]]]))
    cut = at or items
    slope = (cut * relevant / items - 1) / (cut - 1)
    expected = slope + (1 - slope) * np.sum(1 / np.arange(1, cut + 1)) / cut
    assert exact.average_precision(joint, at).expected[0] == pytest.approx(expected, abs=1e-12)


def test_ap_equals_scikit_learn_where_nothing_is_tied():
    rng = np.random.default_rng(0)
    relevant = rng.random(200) < 0.3
    distances = rng.permutation(200)
    joint = histogram(list(zip(distances, relevant.astype(int))), 200)
    theirs = average_precision_score(relevant, -distances)
    for value in exact.average_precision(joint):
        assert value[0] == pytest.approx(theirs, abs=1e-12)
    for lowest, highest in [exact.ndcg(joint)[1:], exact.average_precision(joint, 50)[1:]]:
        assert lowest == pytest.approx(highest, abs=1e-12)


def test_known_values():
    joint = JointHistograms(np.arange(2), np.array([[[1, 1, 4], [2, 1, 0]]]))
    known = (0.7620370370370370, 0.5888888888888889, 0.9166666666666666)
    assert np.allclose([part[0] for part in exact.average_precision(joint)], known, rtol=0, atol=1e-12)
    counts = np.zeros((1, 4, 3), np.int64)
    for distance, gains in enumerate([[2, 0, 1], [3, 0], [0, 1]]):
        for gain in gains:
            counts[0, gain, distance] += 1
    assert exact.ndcg(JointHistograms(np.arange(4), counts)).expected[0] == pytest.approx(0.615604, abs=5e-7)


def test_a_radius_is_2_where_none_is_given():
    _, _, joint = random_case(0)
    assert radius.precision_within_radius(joint) == radius.precision_within_radius(joint, 2)


def test_curve_of_precision_at_k_of_more_ties_than_16_bits_count():
    items = 40_000  # each at a distance of its own, every other relevant
    counts = np.zeros((1, 2, items), np.int64)
    counts[0, np.arange(items) % 2, np.arange(items)] = 1
    found = exact.precision_at_curve(JointHistograms(np.arange(2), counts), [2, 32_769, items])
    assert found == pytest.approx([1 / 2, 16_384 / 32_769, 1 / 2])


@pytest.mark.parametrize("at", [0, -1, 2.5])
def test_cutoffs_that_are_not_positive_integers_are_refused(at):
    _, _, joint = random_case(0, items=10)
    metrics = [exact.average_precision, exact.ndcg, exact.precision, exact.recall, exact.success]
    for metric in (*metrics, exact.reciprocal_rank, exact.average_cumulative_gain):
        with refused("positive integer"):
            metric(joint, at)
    with refused("positive integer"):
        exact.precision_at_curve(joint, [3, at])
    with refused("normaliser"):
        exact.average_precision(joint, 3, "mean")
