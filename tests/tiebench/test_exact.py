"""Tie-aware metrics against brute force over every order, other libraries, identities and known values."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, ndcg_score

from tiebench.counting.histograms import JointHistograms
from tiebench.rankings import exact, radius

TOLERANCE = 1e-12


def histograms(distances, affinities, bits=None, levels=None):
    """One query's joint histogram, counted item by item."""
    distances, affinities = np.asarray(distances), np.asarray(affinities)
    levels = np.unique([0, *affinities]) if levels is None else np.asarray(levels)
    counts = np.zeros((1, len(levels), (distances.max() if bits is None else bits) + 1), np.int64)
    for distance, affinity in zip(distances, affinities):
        counts[0, np.flatnonzero(levels == affinity)[0], distance] += 1
    return JointHistograms(levels, counts)


def plain_ap(relevant, at, normaliser):
    hits, total = 0, 0.0
    for rank, is_relevant in enumerate(relevant[:at], start=1):
        if is_relevant:
            hits += 1
            total += hits / rank
    everything = sum(relevant)
    divisor = {"hits": hits, "min": min(at, everything), "relevant": everything}[normaliser]
    return total / divisor if divisor else 0.0


def assert_range(found, expected):
    assert np.allclose([part[0] for part in found], expected, rtol=0, atol=TOLERANCE)


def random_case(seed, items=3000, bits=16, levels=(0, 1, 2, 3)):
    rng = np.random.default_rng(seed)
    affinities = rng.choice(levels, items, p=[0.7] + [0.3 / (len(levels) - 1)] * (len(levels) - 1))
    distances = np.clip(rng.binomial(bits, 0.5, items) - affinities, 0, bits)
    return distances, affinities, histograms(distances, affinities, bits, levels)


@pytest.mark.parametrize("at", [None, 10, 100, 1000])
def test_ndcg_equals_scikit_learn_which_averages_over_ties(at):
    for seed in range(3):
        distances, affinities, joint = random_case(seed)
        theirs = ndcg_score([2.0**affinities - 1], [-distances.astype(float)], k=at)
        assert exact.ndcg(joint, at).expected[0] == pytest.approx(theirs, abs=1e-12)


def test_ap_equals_scikit_learn_where_nothing_is_tied():
    rng = np.random.default_rng(0)
    relevant = rng.random(200) < 0.3
    distances = rng.permutation(200)
    joint = histograms(distances, relevant.astype(int), 200)
    theirs = average_precision_score(relevant, -distances)
    for value in exact.average_precision(joint):
        assert value[0] == pytest.approx(theirs, abs=1e-12)
    for lowest, highest in [exact.ndcg(joint)[1:], exact.average_precision(joint, 50)[1:]]:
        assert lowest == pytest.approx(highest, abs=1e-12)


@pytest.mark.parametrize("normaliser", exact.AP_AT_NORMALISERS)
@pytest.mark.parametrize("at", [7, 150, 1000])
def test_large_cuts_equal_sums_over_the_hypergeometric_distribution(at, normaliser):
    """An independent form: condition on the hits in the cut tie (scipy's pmf), sum precisions by rank."""
    from scipy.stats import hypergeom

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
                divisor = {
                    "hits": hits + h,
                    "min": min(at, relevant.sum()),
                    "relevant": relevant.sum(),
                }[normaliser]
                value += hypergeom(n, r, m).pmf(h) * (total / divisor if divisor else 0.0)
            if seen + n >= at:
                break
            before_sum += (
                r
                / n
                * sum((hits + 1 + (j - 1) * (r - 1) / max(n - 1, 1)) / (seen + j) for j in range(1, n + 1))
            )
            hits, seen = hits + r, seen + n
        found = exact.average_precision(joint, at, normaliser).expected[0]
        assert found == pytest.approx(value, abs=1e-10)


def test_a_large_tie_that_is_cut_has_a_closed_form():
    """All tied: the mean precision is linear in the hits h, and their mean m r / n. The probabilities of h
    span thousands of powers of ten here."""
    for items, relevant, at in [
        (400_000, 200_000, 200_000),
        (100_000, 30_000, 70_001),
        (50_000, 49_000, 900),
    ]:
        joint = JointHistograms(np.arange(2), np.array([[[items - relevant], [relevant]]]))
        slope = (at * relevant / items - 1) / (at - 1)
        expected = slope + (1 - slope) * np.sum(1 / np.arange(1, at + 1)) / at
        assert exact.average_precision(joint, at).expected[0] == pytest.approx(expected, abs=1e-12)


def test_large_values_equal_a_term_by_term_sum_in_extended_precision():
    _, _, joint = random_case(5, items=200_000, bits=12, levels=(0, 1))
    counts = joint.counts[0].astype(np.longdouble)
    total, before, relevant_before = np.longdouble(0), 0, np.longdouble(0)
    for irrelevant, relevant in counts.T:
        n = irrelevant + relevant
        ranks = np.arange(1, int(n) + 1, dtype=np.longdouble)
        if n:
            slope = (relevant - 1) / (n - 1) if n > 1 else 0
            total += relevant / n * np.sum((relevant_before + 1 + (ranks - 1) * slope) / (before + ranks))
        before, relevant_before = before + int(n), relevant_before + relevant
    assert exact.average_precision(joint).expected[0] == pytest.approx(
        float(total / counts[1].sum()), abs=1e-13
    )


def test_random_orders_average_to_the_expected_value():
    rng = np.random.default_rng(3)
    distances, affinities, joint = random_case(3, items=400, bits=6)
    sample = []
    for _ in range(400):
        order = np.lexsort((rng.random(400), distances))
        sample.append(plain_ap(list(affinities[order] > 0), 60, "hits"))
    error = np.std(sample) / np.sqrt(len(sample))
    assert abs(np.mean(sample) - exact.average_precision(joint, 60).expected[0]) < 4 * error


@pytest.mark.parametrize("seed", range(5))
def test_minimum_expected_and_maximum_are_in_order(seed):
    _, _, joint = random_case(seed)
    found = [exact.average_precision(joint), exact.ndcg(joint), exact.precision(joint, 33)]
    found += [
        exact.average_precision(joint, at, how) for at in (1, 33, 999) for how in exact.AP_AT_NORMALISERS
    ]
    found += [exact.ndcg(joint, at) for at in (1, 33, 999)]
    for expected, minimum, maximum in found:
        assert 0 <= minimum[0] <= expected[0] + 1e-12
        assert expected[0] <= maximum[0] + 1e-12 <= 1 + 2e-12


def test_known_values():
    joint = JointHistograms(np.arange(2), np.array([[[1, 1, 4], [2, 1, 0]]]))
    assert_range(exact.average_precision(joint), (0.7620370370370370, 0.5888888888888889, 0.9166666666666666))
    counts = np.zeros((1, 4, 3), np.int64)
    for distance, gains in enumerate([[2, 0, 1], [3, 0], [0, 1]]):
        for gain in gains:
            counts[0, gain, distance] += 1
    assert exact.ndcg(JointHistograms(np.arange(4), counts)).expected[0] == pytest.approx(0.615604, abs=5e-7)


def test_all_tied_codes_score_what_the_base_rate_gives():
    for items, relevant in [(1000, 100), (50, 1), (10, 10)]:
        joint = JointHistograms(np.arange(2), np.array([[[items - relevant], [relevant]]]))
        ranks = np.arange(1, items + 1)
        slope = (relevant - 1) / (items - 1)
        expected = np.mean((1 + (ranks - 1) * slope) / ranks)
        assert exact.average_precision(joint).expected[0] == pytest.approx(expected, abs=1e-12)
        assert exact.average_precision(joint).maximum[0] == pytest.approx(1.0)


def test_queries_without_relevant_items_score_ap_0_and_ndcg_1():
    joint = JointHistograms(np.arange(2), np.array([[[3, 2], [0, 0]], [[0, 2], [3, 0]]]))
    assert exact.queries_without_relevant(joint) == 1
    assert exact.queries_without_relevant(JointHistograms(joint.levels, joint.counts[[0, 1, 1]])) == 1
    for at in (None, 2, 4):
        assert [part[0] for part in exact.average_precision(joint, at)] == [0, 0, 0]
        assert [part[0] for part in exact.ndcg(joint, at)] == [1, 1, 1]
        assert [part[1] for part in exact.average_precision(joint, at)] == pytest.approx([1, 1, 1])


def test_radius_and_precision_recall_count_whole_ties():
    joint = JointHistograms(
        np.arange(2), np.array([[[0, 1, 1, 4], [0, 2, 0, 2]], [[0, 0, 0, 5], [0, 0, 0, 5]]])
    )
    assert radius.precision_within_radius(joint, 2) == pytest.approx([0.5, 0.0])
    assert radius.precision_within_radius(joint) == pytest.approx([0.5, 0.0])  # 2, as the field does
    assert radius.precision_within_radius(joint, 1) == pytest.approx([2 / 3, 0.0])
    at_once = JointHistograms(np.arange(3), np.array([[[3, 0, 9], [1, 0, 0], [1, 0, 0]]]))
    assert radius.precision_within_radius(at_once, 0) == pytest.approx([2 / 5])
    assert radius.precision_within_radius(at_once, 1) == pytest.approx([2 / 5])
    curves = radius.lookup_curves(joint)
    assert np.isnan(curves["precision"][0])
    assert curves["precision"][1:] == pytest.approx([2 / 3, 0.5, (0.4 + 0.5) / 2])
    assert curves["precision_or_0"] == pytest.approx([0, 2 / 6, 0.5 / 2, (0.4 + 0.5) / 2])
    assert curves["recall"] == pytest.approx([0, 0.25, 0.25, 1])
    assert curves["f1"] == pytest.approx([0, (2 * 2 / 7) / 2, (2 * 2 / 8) / 2, (8 / 14 + 10 / 15) / 2])
    assert curves["candidates"] == pytest.approx([0, 1.5, 2, 10])
    assert curves["empty"] == pytest.approx([1, 0.5, 0.5, 0])


def test_precision_and_recall_are_averaged_over_the_queries_that_have_any():
    # Relevant: 4 of the first query, 1 of the second, none of the third.
    counts = np.array([[[0, 2, 0], [0, 1, 3]], [[0, 2, 3], [1, 0, 0]], [[2, 2, 2], [0, 0, 0]]])
    curves = radius.lookup_curves(JointHistograms(np.arange(2), counts))
    precision, recall = curves["precision"], curves["recall"]
    assert precision == pytest.approx([(1 + 0) / 2, (1 / 3 + 1 / 3 + 0) / 3, (4 / 6 + 1 / 6 + 0) / 3])
    assert recall == pytest.approx([(0 + 1) / 2, (1 / 4 + 1) / 2, 1])
    curves = radius.lookup_curves(JointHistograms(np.arange(2), counts[2:]))
    assert curves["precision"].tolist() == [0, 0, 0]
    for name in ("recall", "f1"):
        assert curves[name].shape == (3,) and np.isnan(curves[name]).all()


@pytest.mark.parametrize("seed", range(5))
def test_curve_of_precision_at_k_is_the_mean_of_precision_at_each_k(seed):
    _, _, joint = random_case(seed, items=30)
    cuts = np.array([1, 2, 3, 7, 29, 30, 31])
    expected = [exact.precision(joint, cut).expected.mean() for cut in cuts]
    assert exact.precision_at_curve(joint, cuts) == pytest.approx(expected, abs=1e-12)
    with pytest.raises(ValueError, match="positive"):
        exact.precision_at_curve(joint, [3, 0])


def test_curve_of_precision_at_k_of_several_queries_with_items_at_distance_0():
    # By rank, relevant items expected: 1/2, 1, 1, 1 of the first query; 0, 2/3, 4/3, 2 of the second.
    joint = JointHistograms(np.arange(2), np.array([[[1, 2], [1, 0]], [[1, 1], [0, 2]]]))
    expected = [(1 / 2 + 0) / 2, (1 + 2 / 3) / 4, (1 + 4 / 3) / 6, (1 + 2) / 8]
    assert exact.precision_at_curve(joint, [1, 2, 3, 4]) == pytest.approx(expected)


def test_distance_shares_count_pairs():
    counts = np.array([[[1, 0, 3], [2, 0, 0], [1, 1, 0]], [[0, 4, 0], [0, 0, 2], [0, 0, 0]]])
    relevant, irrelevant = exact.distance_shares(JointHistograms(np.arange(3), counts))
    assert relevant == pytest.approx([3 / 6, 1 / 6, 2 / 6])
    assert irrelevant == pytest.approx([1 / 8, 4 / 8, 3 / 8])
    relevant, irrelevant = exact.distance_shares(JointHistograms(np.arange(2), np.array([[[1, 2], [0, 0]]])))
    assert np.isnan(relevant).all() and irrelevant == pytest.approx([1 / 3, 2 / 3])


@pytest.mark.parametrize("at", [0, -1, 2.5])
def test_cutoffs_that_are_not_positive_integers_are_refused(at):
    _, _, joint = random_case(0, items=10)
    for metric in (exact.average_precision, exact.ndcg, exact.precision):
        with pytest.raises(ValueError, match="positive integer"):
            metric(joint, at)
    with pytest.raises(ValueError, match="normaliser"):
        exact.average_precision(joint, 3, "mean")
