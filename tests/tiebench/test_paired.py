"""Intervals and tests of paired scores, against SciPy and by hand.

How often the intervals cover the truth: test_reporting_statistics.py.
"""

import math

import numpy as np
import pytest
from scipy import stats

from tiebench import paired


def test_intervals_are_scipys_bootstrap_of_each_row():
    # Multiples of 1/256 are exact in every sum, so SciPy's own resampling must give the same bits.
    rows = np.random.default_rng(0).integers(0, 257, (4, 90)) / 256
    low, high = paired.bootstrap_intervals(rows, "a name", resamples=300, confidence=0.9)
    generator = paired.generator("a name")
    expected = stats.bootstrap(
        (rows,), np.mean, axis=1, n_resamples=300, batch=paired.BATCH, confidence_level=0.9,
        method="percentile", rng=generator,
    ).confidence_interval  # fmt: skip
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


def test_one_error_is_students_test_and_interval():
    rows = np.random.default_rng(2).normal(0.1, 1, 40)
    error = paired.query_error(rows)
    expected = stats.ttest_1samp(rows, 0)
    assert paired.p_value(rows.mean(), [error]) == pytest.approx(expected.pvalue, rel=1e-9)
    interval = expected.confidence_interval(0.9)
    assert paired.t_bounds(rows.mean(), [error], 0.9) == pytest.approx((interval.low, interval.high))


def test_two_errors_are_welchs_test():
    left, right = np.random.default_rng(3).normal(size=(2, 12))[:, :9] * [[1.0], [3.0]]
    errors = [(of.var(ddof=1) / len(of), len(of) - 1) for of in (left, right)]
    found = paired.p_value(left.mean() - right.mean(), errors)
    assert found == pytest.approx(stats.ttest_ind(left, right, equal_var=False).pvalue, rel=1e-9)


def test_without_error_only_an_equal_score_is_undecided():
    error = paired.query_error(np.full(7, 0.25))
    assert error == (0.0, 6.0) and paired.query_error(np.zeros(1)) is None
    assert paired.p_value(0.25, [error]) == 0.0 and paired.p_value(0.0, [error]) == 1.0
    assert math.isnan(paired.p_value(0.25, [])) and all(map(math.isnan, paired.t_bounds(0.25, [])))


def test_variances_are_pooled_as_the_formula_says():
    own = {"a": (4.0, 2), "b": (1.0, 6), "still": (0.0, 2), "c": (7.0, 1)}
    found, total = paired.pooled(own)
    assert total == 9.0 and found["still"] == (0.0, 2.0)
    # Of the others, weighted by freedom: (6 + 7) / 7, (8 + 7) / 3, (8 + 6) / 8; at most 4 degrees count.
    assert found["a"] == (pytest.approx((4 * 13 / 7 + 2 * 4) / 6), 6.0)
    assert found["b"] == (pytest.approx((3 * 15 / 3 + 6 * 1) / 9), 9.0)
    assert found["c"] == (pytest.approx((4 * 14 / 8 + 7) / 5), 5.0)
    assert paired.pooled({"a": (4.0, 2), "still": (0.0, 3)})[0]["a"] == (4.0, 2.0)
