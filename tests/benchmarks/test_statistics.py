"""The simulation of verdicts, on a column whose error rates are known."""

import dataclasses
import math

import numpy as np
import pytest

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


def rate(of, i, j, kind="normal", draws=20_000):
    generator = np.random.default_rng(0)
    one, two = (statistics._drawn(of, kind, draws, generator) for _ in range(2))
    (p,) = statistics._p_values(of, i, j, one, two if i == j else one, generator, pooled=kind == "pooled")
    return np.mean(p < 0.05)


def test_two_sets_of_runs_of_one_method_are_seldom_told_apart():
    """Welch's test of five runs each, at most 0.05, whatever the other methods of the column vary by."""
    of = column([0.09, *[0.01] * 8])
    assert rate(of, 0, 0) == pytest.approx(rate(of, 1, 1), abs=0.01)
    assert 0.035 < rate(of, 0, 0) < 0.055


def test_a_pooled_variance_errs_where_methods_vary_unequally():
    """It is exact where they vary alike; else the noisiest is called different from itself."""
    assert rate(column([0.02] * 9), 0, 0, "pooled") == pytest.approx(0.05, abs=0.01)
    assert rate(column([0.09, *[0.01] * 8]), 0, 0, "pooled") > 0.4


def test_the_rule_is_that_of_the_library():
    of = column([0.02, 0.05], runs=6, size=50, queries=1e-4)
    generator = np.random.default_rng(3)
    one = statistics._drawn(of, "resampled", 4, generator)
    state = generator.bit_generator.state
    (p,) = statistics._p_values(of, 0, 1, one, one, generator)
    generator.bit_generator.state = state
    mean = one[0][0] - one[0][1] + math.sqrt(2e-4) * generator.standard_normal(4)
    queries = 2e-4 * generator.chisquare(49, 4) / 49
    for place in range(4):
        runs = [(variance / 6, 5) for variance in one[1][:, place]]
        errors = paired.error_sources((queries[place], 49), runs)
        assert p[place] == pytest.approx(float(paired.p_value(mean[place], errors)))


class Published:
    """Draws what is published: the differences of these splits, and the variance over these queries."""

    def __init__(self, apart):
        self.apart = apart / apart.std(ddof=1)

    def standard_normal(self, shape):
        return np.broadcast_to(self.apart, shape)

    def chisquare(self, freedom, draws):
        return np.full(draws, freedom)


def test_splits_decide_where_runs_are_few_as_in_the_library():
    """Scores of five splits and one run each: the p of `difference`, and at most its level."""
    per_query = np.random.default_rng(5).random((2, 50))
    scores = [paired.scores_of([row.mean()], row[None], splits=[10] * 5) for row in per_query]
    splits = [one.of_splits[None] for one in scores]
    known = {"queries": np.cov(per_query) / 50, "size": 50, "splits": splits, "by_splits": [True, True]}
    of = dataclasses.replace(column([0.01, 0.01], runs=2), **known)
    (p,) = statistics._p_over_splits(of, 0, 1, 1, Published((splits[0] - splits[1])[0]))
    assert p[0] == pytest.approx(paired.difference(*scores).p, rel=1e-9)
    assert statistics._pairs(of, False) == [(0, 1)] and statistics._pairs(of, False, "pooled") == []
    (rate,) = statistics._rates(of, [(0, 1)], "normal", 20_000, np.random.default_rng(0))
    assert rate < 0.05
    alone = dataclasses.replace(of, queries=np.zeros((2, 2)), size=0)
    (exact,) = statistics._rates(alone, [(0, 1)], "normal", 50_000, np.random.default_rng(0))
    assert exact == pytest.approx(0.05, abs=0.003)
