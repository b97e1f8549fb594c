"""The simulation of verdicts, on a column whose error rates are known."""

import math

import numpy as np
import pytest
from scipy import stats

from benchmarks import statistics
from tiebench import paired


def column(spreads, runs=3, size=0, queries=0.0):
    """Methods whose runs have these standard deviations, and independent scores of queries."""
    plain = np.arange(runs) - (runs - 1) / 2
    values = [spread * plain / plain.std(ddof=1) for spread in spreads]
    counts = np.full(len(spreads), runs)
    names = [f"m{place}" for place in range(len(spreads))]
    covariance = queries * np.eye(len(spreads))
    return statistics.Column(12, names, values, counts, np.maximum(counts, 5), covariance, size)


def rate(of, rule, i, j, draws=20_000):
    generator = np.random.default_rng(0)
    one, two = (statistics._drawn(of, rule, "normal", draws, generator) for _ in range(2))
    (p,) = statistics._p_values(of, rule, i, j, one, two if i == j else one, generator)
    return np.mean(p < 0.05)


def test_a_noisy_method_is_told_from_itself_by_the_pooled_rule_alone():
    of = column([0.09, *[0.01] * 8])
    assert rate(of, "pooled", 0, 0) > 0.15 and rate(of, "pooled", 1, 1) < 0.02
    # Two sets of five runs of one method: Welch's test, at most 0.05.
    assert rate(of, "own", 0, 0) == pytest.approx(rate(of, "own", 1, 1), abs=0.01)
    assert 0.035 < rate(of, "own", 0, 0) < 0.055


def test_methods_of_equal_variance_are_tested_with_the_pooled_variance():
    """Two methods alone: Student's test with the pooled variance, 4 degrees of freedom."""
    of = column([0.02, 0.02])
    one = statistics._drawn(of, "pooled", "normal", 5, np.random.default_rng(1))
    (p,) = statistics._p_values(of, "pooled", 0, 1, one, one, np.random.default_rng(2))
    means, variances, _ = one
    error = np.sqrt(variances.mean(axis=0) * 2 / 3)
    assert p == pytest.approx(2 * stats.t.sf(np.abs(means[0] - means[1]) / error, 4))


def test_the_own_rule_is_that_of_the_library():
    of = column([0.02, 0.05], runs=6, size=50, queries=1e-4)
    generator = np.random.default_rng(3)
    one = statistics._drawn(of, "own", "resampled", 4, generator)
    state = generator.bit_generator.state
    (p,) = statistics._p_values(of, "own", 0, 1, one, one, generator)
    generator.bit_generator.state = state
    mean = one[0][0] - one[0][1] + math.sqrt(2e-4) * generator.standard_normal(4)
    queries = 2e-4 * generator.chisquare(49, 4) / 49
    for place in range(4):
        runs = [(variance / 6, 5) for variance in one[1][:, place]]
        errors = paired.error_sources((queries[place], 49), runs)
        assert p[place] == pytest.approx(float(paired.p_value(mean[place], errors)))
