"""Intervals and tests of methods on the same queries: against SciPy, by hand, and by simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from tiebench import paired


def test_intervals_are_scipys_bootstrap_of_each_row():
    # Multiples of 1/256 are exact in every sum, so SciPy's own resampling must give the same bits.
    rows = np.random.default_rng(0).integers(0, 257, (4, 90)) / 256
    low, high = paired.bootstrap_intervals(rows, "a name", resamples=300)
    generator = paired.generator("a name")
    options = {"n_resamples": 300, "batch": paired.BATCH, "method": "percentile", "rng": generator}
    expected = stats.bootstrap((rows,), np.mean, axis=1, **options).confidence_interval
    # Versions of SciPy round quantiles differently.
    np.testing.assert_allclose(low, expected.low, rtol=0, atol=2e-16)
    np.testing.assert_allclose(high, expected.high, rtol=0, atol=2e-16)


def test_a_row_does_not_depend_on_the_others_nor_on_their_number():
    rows = np.random.default_rng(1).beta(2, 1, (9, 333))
    low, high = paired.bootstrap_intervals(rows, "a name")
    for index, row in enumerate(rows):
        alone = paired.bootstrap_intervals(row[None], "a name")
        assert (alone[0][0], alone[1][0]) == (low[index], high[index])
    other = paired.bootstrap_intervals(rows, "another name")
    assert (other[0] != low).all()


def test_holm_by_hand():
    # Sorted: 0.01 x 4, 0.02 x 3, 0.03 x 2 (raised to 0.06), 0.9 x 1; NaN is not counted.
    adjusted = paired.holm([0.03, math.nan, 0.9, 0.01, 0.02])
    assert adjusted == pytest.approx([0.06, math.nan, 0.9, 0.04, 0.06], nan_ok=True)
    assert paired.holm([0.5, 0.6]).tolist() == [1.0, 1.0]
    assert paired.holm([]).tolist() == []


def methods(seed, spreads, runs=5, queries=50, mixed=0.05):
    """Scores (runs, Q) of methods with normal effects of runs, of queries and of both."""
    random = np.random.default_rng(seed)
    return [
        0.5
        + 0.1 * random.normal(size=queries)
        + spread * random.normal(size=(runs, 1))
        + mixed * random.normal(size=(runs, queries))
        for spread in spreads
    ]


def of(rows, *more):
    return paired.scores_of(rows.mean(axis=1), rows, *more)


def kept_of(rows):
    """As of a leaderboard, which keeps the mean over runs of each query."""
    return paired.scores_of(rows.mean(axis=1), rows.mean(axis=0))


def of_one_run(row, *more):
    return paired.scores_of([row.mean()], row[None], *more)


def scipys_tests():
    """(scores of one method, of another, SciPy's test of their difference, what varies)."""
    random = np.random.default_rng(2)
    rows = random.uniform(size=(2, 40))
    for runs in (1, 3):
        fixed = (of(np.tile(row, (runs, 1)), (), True) for row in rows)
        yield *fixed, stats.ttest_rel(*rows), "queries"
    for counts in ((5, 5), (5, 10), (7, 6)):
        one, two = (scale * random.normal(size=count) for scale, count in zip((1, 3), counts))
        welch = stats.ttest_ind(one, two, equal_var=False)
        yield paired.scores_of(one), paired.scores_of(two), welch, "runs"
    values = random.normal(size=8)
    one_sample = stats.ttest_1samp(values - 0.25, 0)
    yield paired.scores_of(values), paired.scores_of([0.25, 0.25]), one_sample, "runs"
    one, two = random.normal(size=(5, 30)), random.normal(size=(5, 31))  # queries that cannot be paired
    welch = stats.ttest_ind(one.mean(axis=1), two.mean(axis=1), equal_var=False)
    yield of(one), of(two), welch, "runs"


@pytest.mark.parametrize(("left", "right", "expected", "over"), list(scipys_tests()))
def test_where_one_thing_varies_test_and_interval_are_scipys(left, right, expected, over):
    found = paired.difference(left, right)
    assert found.enough and found.over == over and (found.per_query is None) == (over == "runs")
    interval = expected.confidence_interval()
    assert found.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), rel=1e-9)


def test_queries_that_all_differ_alike_leave_welchs_test():
    rows = np.random.default_rng(1).normal(size=(2, 6, 1)) * [[[1.0]], [[2.0]]]
    same = np.random.default_rng(2).normal(size=30)
    found = paired.difference(*(of(one + same) for one in rows))
    expected = stats.ttest_ind(*rows[..., 0], equal_var=False).pvalue
    assert found.p == pytest.approx(expected, rel=1e-6) and found.over == "queries and runs"


@pytest.mark.thorough
def test_the_error_is_that_of_means_drawn_anew():
    """The mean estimate of 2,000 pairs is the variance of their differences."""
    found = []
    for seed in range(2000):
        left, right = methods(seed, (0.01, 0.03), queries=30, mixed=0.2)
        found.append(paired.difference(of(left), of(right)))
    error = np.mean([one.fixed + one.variance / 5 for one in found])
    assert error == pytest.approx(np.var([one.mean for one in found]), rel=0.1)


def test_splits_are_tested_as_wholes_that_contain_queries_and_runs():
    left, right = np.random.default_rng(5).normal(size=(2, 60))
    found = paired.difference(*(of_one_run(row, (20, 20, 20), True) for row in (left, right)))
    folds = (left - right).reshape(3, 20).mean(axis=1)
    expected = stats.ttest_1samp(folds, 0).pvalue
    assert found.over == "queries and splits"
    assert found.p == pytest.approx(max(expected, stats.ttest_rel(left, right).pvalue), rel=1e-9)
    # Shares of the queries are weights.
    error, freedom = paired.split_error(np.array([0.0, 1.0]), (30, 10))
    assert (error, freedom) == (pytest.approx(2 * (0.75**2 * 0.25**2 + 0.25**2 * 0.75**2)), 1.0)


@pytest.mark.parametrize("runs", [1, 2])
def test_five_splits_with_few_runs_each_are_enough_and_alone_say_how_much_trainings_vary(runs):
    left, right = np.random.default_rng(7).normal(size=(2, runs, 100)) + np.array([0.4, 0.0])[:, None, None]
    found, apart = paired.difference(of(left, (20,) * 5), of(right, (20,) * 5)), (left - right).mean(axis=0)
    of_splits = stats.ttest_1samp(apart.reshape(5, 20).mean(axis=1), 0)
    expected = max(of_splits.pvalue, stats.ttest_1samp(apart, 0).pvalue)
    assert found.enough and found.over == "queries and splits"
    assert found.p == pytest.approx(expected, rel=1e-9)
    assert paired.difference(of(left, (25,) * 4), of(right, (25,) * 4)).verdict(0.0) == paired.TOO_FEW

    def splits_of(rows):
        means = rows.mean(axis=0).reshape(5, 20).mean(axis=1)
        return paired.scores_of(rows.mean(axis=1), None, (20,) * 5, False, means)

    # Means of the splits do, without scores of queries; those of one side alone do not.
    found = paired.difference(splits_of(left), splits_of(right))
    assert found.enough and found.over == "splits"
    assert found.p == pytest.approx(of_splits.pvalue, rel=1e-9)
    half = stats.t.isf(0.025, 4) * stats.sem(apart.reshape(5, 20).mean(axis=1))
    assert (found.low, found.high) == pytest.approx((found.mean - half, found.mean + half), rel=1e-9)
    unknown = paired.scores_of(right.mean(axis=1), None, (20,) * 5)
    assert paired.difference(splits_of(left), unknown).verdict(0.0) == paired.TOO_FEW


@pytest.mark.thorough
def test_five_splits_of_one_run_each_call_equal_methods_different_as_rarely_as_asked():
    """Splits, trainings and queries vary: 4,000 pairs of methods without a difference."""
    random, different = np.random.default_rng(8), 0
    for _ in range(4000):
        of_split, of_training = random.normal(size=(2, 5)) * 0.02, random.normal(size=(2, 5)) * 0.02
        rows = random.normal(size=100) + random.normal(size=(2, 100)) * 0.1
        rows += np.repeat(of_split + of_training, 20, axis=1)
        different += paired.difference(*(of_one_run(row, (20,) * 5) for row in rows)).p < paired.LEVEL
    assert 0.02 < different / 4000 < 0.06


FORMS = {"each run": of, "means": kept_of, "none": lambda rows: paired.scores_of(rows.mean(axis=1))}


@pytest.mark.parametrize("known", FORMS)
@pytest.mark.parametrize("weights", [(1, -1), (1 / 3, -1 / 3, -1 / 2, 1 / 2)])
@pytest.mark.parametrize(
    ("widest", "seed", "spreads"), [(0, 0, (0.02, 0.04)), (1, 2, (0.002,)), (2, 0, (0.2, 0))]
)
def test_the_error_is_that_of_a_two_way_table_and_counts_nothing_twice(weights, known, widest, seed, spreads):
    """Of a difference and of a contrast; known: scores of queries of each run, their means, or none."""
    rows = methods(seed, (spreads * 4)[: len(weights)], mixed=0.15)
    found = paired.contrast([(weight, FORMS[known](of)) for weight, of in zip(weights, rows)])
    over_queries = sum(weight * of.mean(axis=0) for weight, of in zip(weights, rows))
    queries, runs, rest = [(over_queries.var(ddof=1) / 50, 49)], [], []
    for weight, of in zip(weights, rows):
        apart = of - of.mean(axis=0) - of.mean(axis=1, keepdims=True) + of.mean()
        runs.append((weight**2 * of.mean(axis=1).var(ddof=1) / 5, 4))
        rest.append((-(weight**2) * (apart**2).sum() / (4 * 49) / 250, 4 * 49))
    queries, rest = ([] if known == "none" else queries), (rest if known == "each run" else [])
    # Of all parts, of the queries alone and of the runs alone: the widest, each in some case.
    halves, p = [], []
    for chosen in filter(None, (queries + runs + rest, queries, runs)):
        total = sum(part for part, _ in chosen)
        freedom = total**2 / sum(part**2 / of for part, of in chosen)
        halves.append(stats.t.isf(0.025, freedom) * math.sqrt(total))
        p.append(2 * stats.t.sf(abs(over_queries.mean()) / math.sqrt(total), freedom))
    assert known != "each run" or np.argmax(halves) == widest
    assert found.high - found.mean == pytest.approx(max(halves), rel=1e-9)
    assert found.mean - found.low == pytest.approx(max(halves), rel=1e-9)
    assert found.p == pytest.approx(max(p), rel=1e-9)
    # More runs lessen the error by the variance of one, and not below that of the queries.
    assert found.variance == pytest.approx(5 * sum(part for part, _ in runs))
    assert found.fixed == pytest.approx(sum(part for part, _ in queries + rest))


def test_folds_of_other_sizes_are_not_paired():
    one, two = np.random.default_rng(1).normal(size=(2, 5, 60))
    left = paired.scores_of(one.mean(axis=1), one, (12,) * 5)
    right = paired.scores_of(two.mean(axis=1), two, (20, 10, 10, 10, 10))
    assert paired.difference(left, right).over == "queries and runs"


def test_below_five_runs_of_a_method_that_varies_there_is_no_verdict_whatever_the_mean():
    many, few = paired.scores_of([0.9, 0.91, 0.9, 0.92, 0.9]), paired.scores_of([0.1, 0.11, 0.1, 0.12])
    fixed, one = paired.scores_of([0.1, 0.1]), paired.scores_of([0.1])
    assert paired.difference(many, few).verdict(0.0) == "too few runs"
    assert math.isnan(paired.difference(many, few).p) and paired.difference(many, few).low > 0.7
    assert paired.difference(many, one).verdict(0.0) == "too few runs"
    assert math.isnan(paired.difference(many, one).low)
    found = paired.difference(many, fixed)
    assert found.verdict(found.p) == "higher" and paired.difference(fixed, many).verdict(found.p) == "lower"
    assert found.verdict(0.05) == found.verdict(math.nan) == "cannot tell"


def test_nothing_to_test_with_is_no_test():
    found = paired.difference(paired.scores_of([0.5, 0.5]), paired.scores_of([0.4, 0.4]))
    assert math.isnan(found.p) and found.over == "" and found.verdict(found.p) == "cannot tell"
    single = [paired.scores_of([value], np.array([[value]]), (), True) for value in (0.9, 0.1)]
    assert math.isnan(paired.difference(*single).p)


def test_without_error_only_an_equal_score_is_undecided():
    left = np.random.default_rng(0).uniform(size=50)

    def p(right):
        return paired.difference(*(of_one_run(row, (), True) for row in (left, right))).p

    assert (p(left - 0.1), p(left + 1e-17), p(left)) == (0.0, 1.0, 1.0)


def test_runs_that_rounding_alone_makes_unequal_are_deterministic():
    assert paired.scores_of([0.1 + 0.2, 0.3]).variance == 0.0


def test_seeds_needed_find_the_difference_about_as_often_as_planned():
    # A difference of 1 of methods whose runs have variance 1: 16 each by the normal approximation.
    plain = paired.Difference(1.0, variance=2.0)
    assert paired.seeds_needed(plain) == math.ceil((1.959964 + 0.841621) ** 2 * 2) == 16
    assert paired.seeds_needed(plain, comparisons=10) > 16
    assert paired.seeds_needed(paired.Difference(9.0, variance=2.0)) == paired.ENOUGH_RUNS
    # More runs do not lessen the error over queries.
    assert paired.seeds_needed(paired.Difference(1.0, variance=2.0, fixed=0.2)) == math.inf
    random = np.random.default_rng(0)
    left, right = random.normal(size=(2, 4000, 16)) + np.array([0, 1])[:, None, None]
    assert np.mean(stats.ttest_ind(left, right, axis=1).pvalue < 0.05) == pytest.approx(0.8, abs=0.04)


@pytest.mark.thorough
@pytest.mark.parametrize("spreads", [(0.0, 0.03), (0.03, 0.03)])
@pytest.mark.parametrize("kept", [False, True])
def test_equally_good_methods_are_called_different_in_at_most_6_of_100_pairs(spreads, kept):
    """By brute force, from scores of each query in each run, with and without them."""
    rejected = 0
    for seed in range(2000):
        sides = map(kept_of if kept else of, methods(seed, spreads))
        rejected += paired.difference(*sides).p < 0.05
    assert rejected / 2000 < 0.06 + 2 * math.sqrt(0.06 * 0.94 / 2000)


def test_arrays_of_pairs_have_the_p_values_of_each():
    errors = np.random.default_rng(7).uniform(size=(3, 4))
    means = np.random.default_rng(8).normal(size=4)
    sources = paired.error_sources((errors[0], 99), [(errors[1], 4), (errors[2], 9)])
    together = paired.p_value(means, sources)
    for place, mean in enumerate(means):
        queries, one, two = errors[:, place]
        sources = paired.error_sources((queries, 99), [(one, 4), (two, 9)])
        assert together[place] == pytest.approx(float(paired.p_value(mean, sources)), rel=1e-12)


def test_runs_whose_means_coincide_are_not_deterministic_where_their_queries_differ():
    """Two trainings with 3 hits of 4 queries each, but not the same ones."""
    rows = np.array([[1.0, 1.0, 1.0, 0.0], [0.0, 1.0, 1.0, 1.0]])
    other = paired.scores_of([0.0, 0.0], np.zeros((2, 4)))
    assert not of(rows).enough and paired.difference(of(rows), other).verdict(0.0) == paired.TOO_FEW
    assert paired.scores_of([0.75, 0.75], rows[[0, 0]]).variance == other.variance == 0


@pytest.mark.parametrize("runs", [6, None])
def test_splits_of_a_side_with_few_runs_decide_whatever_the_other_side_has(runs):
    """Five splits of two runs, against six runs and against codes that are given."""
    random = np.random.default_rng(3)
    left, rows = random.normal(size=(2, 100)) + 0.4, random.normal(size=(runs or 1, 100))
    found = paired.difference(of(left, (20,) * 5), of(rows, (20,) * 5, runs is None))
    apart = left.mean(axis=0) - rows.mean(axis=0)
    of_splits = stats.ttest_1samp(apart.reshape(5, 20).mean(axis=1), 0).pvalue
    assert found.over == "queries and splits"
    assert found.p == pytest.approx(max(of_splits, stats.ttest_1samp(apart, 0).pvalue), rel=1e-9)


def test_means_that_are_close_are_those_of_a_method_that_varies():
    close = paired.scores_of([0.5, 0.5 + 1e-6])
    assert close.variance > 0
    assert paired.difference(close, paired.scores_of([0.1, 0.1])).verdict(0.0) == paired.TOO_FEW
