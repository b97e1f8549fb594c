"""Intervals, tests and ranks: against SciPy, hand values, printed tables, simulated data of known truth."""

import math
import warnings

import numpy as np
import pytest
from scipy import special, stats

from reporting import frames, statistics

METHODS = ("talr_ap", "mihash", "lsh")


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def table(**changes):
    plain = {
        "name": "small",
        "title": "A small table",
        "seeds": [0, 1, 2],
        "methods": list(METHODS),
        "blocks": [{"protocol": "digits", "metric": "ap", "bits": [12, 24]}],
    }
    return plain | changes


def record(method, bits, seed, scores, metric="ap", protocol="digits"):
    scores = np.asarray(scores, dtype=np.float64)
    plain = {"protocol": protocol, "method": method, "bits": bits, "seed": seed, "status": "done"}
    return plain | {
        "reason": None,
        "metrics": {metric: float(np.mean(scores))},
        "per_query": {metric: scores},
    }


def records(methods=METHODS, bits=(12, 24), seeds=(0, 1, 2), queries=60, gap=0.5, spread=0.1, seed=0):
    """Scores shaped like AP: difficult and easy queries, alike for all; each method `gap` below the last."""
    random = np.random.default_rng(seed)
    result = []
    for length in bits:
        difficulty = random.normal(size=queries)
        for row, method in enumerate(methods):
            for number in seeds:
                noise = 0.8 * random.normal(size=queries) + spread * random.normal()
                scores = special.expit(1 + 1.2 * difficulty + noise - gap * row)
                result.append(record(method, length, number, scores))
    return result


def row_of(frame, method, bits=12):
    rows = frame[(frame["method"] == method) & (frame["bits"] == bits)]
    assert len(rows) == 1
    return rows.iloc[0]


# -- against SciPy --------------------------------------------------------------------------------


def test_every_number_of_a_column_is_scipys():
    runs = records()
    frame = statistics.comparisons(table(), runs)
    assert tuple(frame.columns) == statistics.COLUMNS
    assert list(zip(frame["method"], frame["bits"], strict=True)) == [
        (method, bits) for method in METHODS for bits in (12, 24)
    ]
    tidy = frames.tidy(table(), runs)
    assert frame["mean"].tolist() == tidy["mean"].tolist()
    for bits in (12, 24):
        scores = {
            method: np.array(
                [r["per_query"]["ap"] for r in runs if (r["method"], r["bits"]) == (method, bits)]
            )
            for method in METHODS
        }
        means = {method: values.mean() for method, values in scores.items()}
        best = max(means, key=means.get)
        p = {}
        for method in METHODS:
            row = row_of(frame, method, bits)
            assert (row["queries"], row["best"]) == (60, best)
            assert row["difference"] == pytest.approx(means[method] - means[best], abs=1e-15)
            if method == best:
                assert row["verdict"] == "best"
                assert row[["p_queries", "p_seeds", "p", "p_adjusted"]].isna().all()
                continue
            paired = stats.ttest_rel(scores[method].mean(axis=0), scores[best].mean(axis=0)).pvalue
            welch = stats.ttest_ind(
                scores[method].mean(axis=1), scores[best].mean(axis=1), equal_var=False
            ).pvalue
            assert row["p_queries"] == pytest.approx(paired, rel=1e-9)
            assert row["p_seeds"] == pytest.approx(welch, rel=1e-9)
            assert row["p"] == max(row["p_queries"], row["p_seeds"])
            p[method] = row["p"]
        (first, second) = sorted(p, key=p.get)
        assert row_of(frame, first, bits)["p_adjusted"] == min(1, 2 * p[first])
        assert row_of(frame, second, bits)["p_adjusted"] == max(2 * p[first], p[second])
    assert set(frame["verdict"]) >= {"best", "below best"}


def test_intervals_are_scipys_bootstrap_of_each_row():
    # Multiples of 1/256 are exact in every sum, so SciPy's own resampling must give the same bits.
    rows = np.random.default_rng(0).integers(0, 257, (4, 90)) / 256
    low, high = statistics.intervals(rows, "a name", resamples=300, confidence=0.9)
    generator = statistics.generator("a name")
    expected = stats.bootstrap(
        (rows,), np.mean, axis=1, n_resamples=300, batch=statistics.BATCH, confidence_level=0.9,
        method="percentile", rng=generator,
    ).confidence_interval  # fmt: skip
    assert low.tolist() == expected.low.tolist()
    assert high.tolist() == expected.high.tolist()


def test_a_row_does_not_depend_on_the_others_nor_on_their_number():
    rows = np.random.default_rng(1).beta(2, 1, (9, 333))
    low, high = statistics.intervals(rows, "a name")
    for index, row in enumerate(rows):
        alone = statistics.intervals(row[None], "a name")
        assert (alone[0][0], alone[1][0]) == (low[index], high[index])
    other = statistics.intervals(rows, "another name")
    assert (other[0] != low).all()


def test_paired_tests_are_scipys():
    random = np.random.default_rng(2)
    left, right = random.uniform(size=(2, 5, 40))
    expected = stats.ttest_rel(left, right, axis=1).pvalue
    assert statistics.query_p(left, right) == pytest.approx(expected, rel=1e-12)
    for count in (2, 3, 7):
        one, two = random.uniform(size=(2, count))
        assert statistics.paired_seed_p(one, two) == pytest.approx(stats.ttest_rel(one, two).pvalue, rel=1e-9)


def test_holm_by_hand():
    # Sorted: 0.01 x 4, 0.02 x 3, 0.03 x 2 (raised to 0.06), 0.9 x 1; NaN is not counted.
    adjusted = statistics.holm([0.03, math.nan, 0.9, 0.01, 0.02])
    assert adjusted == pytest.approx([0.06, math.nan, 0.9, 0.04, 0.06], nan_ok=True)
    assert statistics.holm([0.5, 0.6]).tolist() == [1.0, 1.0]
    assert statistics.holm([]).tolist() == []


# -- order, holes, degenerate cases ---------------------------------------------------------------


def test_neither_the_order_of_records_nor_other_cells_change_a_byte():
    runs = records()
    frame = statistics.comparisons(table(), runs)
    shuffled = [runs[index] for index in np.random.default_rng(0).permutation(len(runs))]
    assert frames.to_csv(statistics.comparisons(table(), shuffled)) == frames.to_csv(frame)
    only = table(methods=["talr_ap", "mihash"], blocks=[{"protocol": "digits", "metric": "ap", "bits": [24]}])
    fewer = statistics.comparisons(only, runs)
    told = ["mean", "ci_low", "ci_high", "difference", "difference_low", "difference_high", "p"]
    for method in ("talr_ap", "mihash"):
        assert row_of(fewer, method, 24)[told].equals(row_of(frame, method, 24)[told])


def test_holes_and_runs_without_scores_per_query_stay_empty():
    runs = [r for r in records() if not (r["method"] == "lsh" and r["bits"] == 12)]
    for run in runs:
        if run["bits"] == 24 and run["method"] != "talr_ap":
            run["per_query"] = {}
    refused = {"protocol": "digits", "method": "lsh", "bits": 12, "seed": 0, "status": "refused"}
    runs.append(refused | {"reason": "no labels", "metrics": {}, "per_query": {}})
    frame = statistics.comparisons(table(), runs)
    for method, bits in (("lsh", 12), ("mihash", 24), ("lsh", 24)):
        row = row_of(frame, method, bits)
        assert row[list(statistics.NUMBERS)].isna().all()
        assert (row["queries"], row["best"], row["verdict"]) == (0, "", "")
    # alone in its column: an interval, but nothing to compare with
    row = row_of(frame, "talr_ap", 24)
    assert row[["mean", "ci_low", "ci_high"]].notna().all()
    assert (row["best"], row["verdict"]) == ("", "") and math.isnan(row["difference"])
    assert row_of(frame, "mihash", 12)["best"] == "talr_ap"
    empty = statistics.comparisons(table(), [])
    assert empty[list(statistics.NUMBERS)].isna().all(axis=None) and set(empty["verdict"]) == {""}


def test_paired_comparisons_are_over_shared_seeds():
    runs = [r for r in records() if (r["method"], r["seed"]) != ("mihash", 1)]
    row = row_of(statistics.comparisons(table(), runs), "mihash")
    of = {
        (r["method"], r["seed"]): r["per_query"]["ap"]
        for r in runs
        if r["bits"] == 12 and r["method"] != "lsh"
    }
    left, right = (np.mean([of[method, seed] for seed in (0, 2)], axis=0) for method in ("mihash", "talr_ap"))
    assert row["p_queries"] == pytest.approx(stats.ttest_rel(left, right).pvalue, rel=1e-9)
    assert row["difference"] == pytest.approx((left - right).mean(), abs=1e-15)
    assert row["difference_low"] < row["difference"] < row["difference_high"]
    assert row["mean"] == pytest.approx(left.mean(), abs=1e-15)
    welch = stats.ttest_ind(
        [of["mihash", seed].mean() for seed in (0, 2)],
        [of["talr_ap", seed].mean() for seed in (0, 1, 2)],
        equal_var=False,
    )
    assert row["p_seeds"] == pytest.approx(welch.pvalue, rel=1e-9)


def test_two_methods_without_a_shared_seed_are_not_compared():
    runs = [record("talr_ap", 12, 0, [0.9, 0.8, 0.7]), record("mihash", 12, 1, [0.1, 0.2, 0.1])]
    row = row_of(statistics.comparisons(table(), runs), "mihash")
    assert row[["difference", "difference_low", "p", "p_adjusted"]].isna().all()
    assert row["verdict"] == "not distinguishable from best"


def test_ties_for_best_share_it_and_constant_differences_have_a_p():
    scores = np.array([0.25, 0.5, 0.75, 1.0])
    runs = [record("talr_ap", 12, seed, scores) for seed in (0, 1)]
    runs += [record("mihash", 12, seed, scores) for seed in (0, 1)]
    runs += [record("lsh", 12, seed, scores - 0.125) for seed in (0, 1)]
    frame = statistics.comparisons(table(), runs)
    tie, below = row_of(frame, "mihash"), row_of(frame, "lsh")
    told = ["difference", "difference_low", "difference_high", "p_queries", "p_seeds", "p", "p_adjusted"]
    assert (tie["best"], tie["verdict"]) == ("talr_ap", "best")
    assert tie[told].tolist() == [0, 0, 0, 1, 1, 1, 1]
    # every query and every seed agree on the difference
    assert below[told].tolist() == [-0.125, -0.125, -0.125, 0, 0, 0, 0]
    assert below["verdict"] == "below best"


def test_a_constant_difference_that_rounds_is_still_constant():
    left = np.random.default_rng(0).uniform(size=(1, 50))
    assert statistics.query_p(left, left - 0.1).tolist() == [0.0]
    assert statistics.query_p(left, left + 1e-17).tolist() == [1.0]


def test_one_query_and_one_seed_decide_nothing():
    runs = [record("talr_ap", 12, 0, [0.9]), record("mihash", 12, 0, [0.1])]
    frame = statistics.comparisons(table(), runs)
    row = row_of(frame, "mihash")
    assert row["difference"] == pytest.approx(-0.8)
    assert row[["ci_low", "ci_high", "difference_low", "p_queries", "p_seeds", "p"]].isna().all()
    assert row["verdict"] == "not distinguishable from best"
    # one query, but seeds
    runs = [record(m, 12, s, [0.1 + 0.4 * (m == "talr_ap") + s / 100]) for m in METHODS for s in (0, 1, 2)]
    row = row_of(statistics.comparisons(table(), runs), "mihash")
    assert math.isnan(row["p_queries"]) and row["p"] == row["p_seeds"] < 0.05


def test_the_larger_p_decides():
    # Queries agree on a difference, seeds do not: one seed of the better method is bad.
    base = np.random.default_rng(0).uniform(0.3, 0.6, 200)
    runs = [record("talr_ap", 12, seed, base + up) for seed, up in enumerate((0.25, 0.0, 0.02))]
    runs += [record("mihash", 12, seed, base + 0.001 * seed) for seed in (0, 1, 2)]
    row = row_of(statistics.comparisons(table(), runs), "mihash")
    assert row["p_queries"] < 1e-10 and row["p_seeds"] > 0.05
    assert row["verdict"] == "not distinguishable from best"
    one_seed = row_of(statistics.comparisons(table(seeds=[0]), runs), "mihash")
    assert math.isnan(one_seed["p_seeds"]) and one_seed["verdict"] == "below best"


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([record("talr_ap", 12, 0, [0.5] * 3), record("mihash", 12, 0, [0.5] * 4)], "3 and 4 queries"),
        ([record("talr_ap", 12, 0, [0.5, 0.5]) | {"per_query": {"ap": [0.5, math.inf]}}], "ap of a query"),
        ([record("talr_ap", 12, 0, [0.5])] * 2, "two records of one run"),
    ],
)
def test_errors_are_clear(runs, message):
    with pytest.raises(ValueError, match=message):
        statistics.comparisons(table(), runs)


# -- simulated data of known truth ----------------------------------------------------------------

# Normal nodes and weights: the mean of a logistic of a normal has no closed form.
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
# mean, difficulty of queries, noise of a method, how far the other method is below; all before the logistic
SHAPES = {
    "skewed, high": (2.5, 1.6, 0.8, 0.3),
    "middle": (0.0, 1.2, 0.8, 0.2),
    "skewed, low": (-2.2, 1.5, 1, 0.3),
}


def drawn(random, shape, trials, queries):
    """Scores of two methods, each (trials, queries), and the true means of both."""
    middle, difficulty, noise, gap = SHAPES[shape]
    shared = difficulty * random.normal(size=(trials, queries))
    pair = [middle + shared + noise * random.normal(size=shared.shape) - down for down in (0.0, gap)]
    width = math.hypot(difficulty, noise)
    truth = [
        float((WEIGHTS * special.expit(middle - down + width * NODES)).sum() / WEIGHTS.sum())
        for down in (0.0, gap)
    ]
    return special.expit(pair), truth


@pytest.mark.parametrize("queries", [100, 1000])
@pytest.mark.parametrize("shape", SHAPES)
def test_intervals_cover_the_truth_about_as_often_as_they_say(shape, queries):
    trials, block = 2000, 100
    random = np.random.default_rng(queries)
    covered = np.zeros(2)
    for start in range(0, trials, block):
        (left, right), (mean, other) = drawn(random, shape, block, queries)
        low, high = statistics.intervals(np.concatenate([left, right - left]), f"block {start}")
        for index, truth in enumerate((mean, other - mean)):
            part = slice(index * block, (index + 1) * block)
            covered[index] += np.count_nonzero((low[part] <= truth) & (truth <= high[part]))
    assert ((covered / trials >= 0.93) & (covered / trials <= 0.97)).all(), covered / trials


@pytest.mark.parametrize("shape", SHAPES)
def test_the_paired_test_keeps_its_level_and_finds_real_differences(shape):
    random = np.random.default_rng(3)
    (left, right), _ = drawn(random, shape, 4000, 100)
    middle, difficulty, noise, _ = SHAPES[shape]
    shared = middle + difficulty * random.normal(size=left.shape)
    same, again = special.expit(shared + noise * random.normal(size=(2, *left.shape)))
    false = np.mean(statistics.query_p(same, again) < 0.05)
    assert 0.035 < false < 0.065
    # Power of the t-test from its noncentral distribution, at the simulated effect size.
    difference = left - right
    effect = difference.mean() / difference.std() * math.sqrt(100)
    critical = stats.t.isf(0.025, 99)
    power = stats.nct.sf(critical, 99, effect) + stats.nct.cdf(-critical, 99, effect)
    assert np.mean(statistics.query_p(left, right) < 0.05) == pytest.approx(power, abs=0.03)


@pytest.mark.parametrize(
    ("count", "seeds", "most", "each"), [(2, 1, 0.07, 0.04), (8, 1, 0.17, 0.04), (8, 3, 0.05, 0.01)]
)
def test_equally_good_methods_are_seldom_called_below_best(count, seeds, most, each):
    # The bounds are those that the docstring gives, and three standard errors of 600 columns.
    methods = [f"method_{index}" for index in range(count)]
    lengths = list(range(10, 70))
    blocks = [{"protocol": "digits", "metric": "ap", "bits": lengths}]
    asked = table(methods=methods, seeds=list(range(seeds)), blocks=blocks)
    some = calls = 0
    for seed in range(10):
        runs = records(methods, lengths, range(seeds), queries=100, gap=0, spread=0, seed=seed)
        frame = statistics.comparisons(asked, runs, resamples=2)
        below = (frame["verdict"] == "below best").groupby(frame["bits"]).sum()
        some, calls = some + int((below > 0).sum()), calls + int(below.sum())
    assert some / 600 < most
    assert calls / 600 / count < each


def test_real_differences_are_called_so():
    asked = table(blocks=[{"protocol": "digits", "metric": "ap", "bits": list(range(10, 40))}])
    runs = records(bits=range(10, 40), queries=1000, gap=0.5, spread=0.02)
    frame = statistics.comparisons(asked, runs, resamples=2)
    assert (
        frame["verdict"] == frame["method"].map(lambda m: "best" if m == "talr_ap" else "below best")
    ).all()


# -- ranks ----------------------------------------------------------------------------------------


def scored(columns):
    """Records of one seed from method -> scores of columns 12, 13, ..."""
    return [
        record(method, 12 + index, 0, [score])
        for method, scores in columns.items()
        for index, score in enumerate(scores)
    ]


def ranked(columns, methods=None):
    count = max(len(scores) for scores in columns.values())
    blocks = [{"protocol": "digits", "metric": "ap", "bits": list(range(12, 12 + count))}]
    asked = table(methods=methods or list(columns), seeds=[0], blocks=blocks)
    return statistics.ranks(asked, scored(columns))


# Demšar (JMLR 2006), table 6: AUC of C4.5 with and without its parameters tuned, on 14 data sets.
DEMSAR = {
    "plain": [.763, .599, .954, .628, .882, .936, .661, .583, .775, 1.0, .940, .619, .972, .957],
    "m": [.768, .591, .971, .661, .888, .931, .668, .583, .838, 1.0, .962, .666, .981, .978],
    "cf": [.771, .590, .968, .654, .886, .916, .609, .563, .866, 1.0, .965, .614, .9751, .946],
    "both": [.798, .569, .967, .657, .898, .931, .685, .625, .875, 1.0, .962, .669, .975, .970],
}  # fmt: skip


def test_average_ranks_of_demsars_example():
    found = ranked(DEMSAR)
    # Printed there: 3.143, 2.000, 2.893, 1.964, and a critical difference of 1.25 at 0.05 for k 4, N 14.
    assert found["average_rank"] == pytest.approx(
        {"both": 1.964, "m": 2.000, "cf": 2.893, "plain": 3.143}, abs=5e-4
    )
    assert found["methods"] == ["both", "m", "cf", "plain"] == list(found["average_rank"])
    assert found["critical_difference"] == pytest.approx(1.25, abs=5e-3)
    assert found["columns"] == 14 and found["left_out"] == []
    assert found["friedman_p"] == stats.friedmanchisquare(*DEMSAR.values()).pvalue


# Demšar (JMLR 2006), table 5: q of the two-tailed Nemenyi test at 0.05 for 2 to 10 classifiers.
@pytest.mark.parametrize(
    ("count", "q"), [(3, 2.343), (4, 2.569), (5, 2.728), (6, 2.850), (7, 2.949), (8, 3.031), (10, 3.164)]
)
def test_critical_differences_have_the_printed_quantiles(count, q):
    random = np.random.default_rng(count)
    found = ranked({f"m{index}": random.uniform(size=5).tolist() for index in range(count)})
    expected = q * math.sqrt(count * (count + 1) / 30)
    assert found["critical_difference"] == pytest.approx(expected, rel=4e-4)


def test_ties_share_ranks_and_incomplete_methods_are_left_out():
    found = ranked({"a": [0.9, 0.9, 0.9], "b": [0.5, 0.9, 0.1], "c": [0.5, 0.1, 0.2], "d": [1.0, 1.0]})
    assert found["average_rank"] == {"a": pytest.approx(3.5 / 3), "b": pytest.approx(7 / 3), "c": 2.5}
    assert found["left_out"] == ["d"] and found["columns"] == 3
    everything_equal = ranked({"a": [0.5, 0.5], "b": [0.5, 0.5], "c": [0.5, 0.5]})
    assert everything_equal["friedman_p"] is None and set(everything_equal["average_rank"].values()) == {2.0}


def test_too_little_has_no_ranks():
    assert ranked({"a": [0.1, 0.2], "b": [0.3, 0.1]}) is None
    assert ranked({"a": [0.1], "b": [0.3], "c": [0.2]}) is None
    assert statistics.ranks(table(), []) is None


def test_ranks_need_no_published_figures():
    runs = records()
    assert statistics.ranks({**table(), "published": ["he2018"]}, runs) == statistics.ranks(table(), runs)


def test_ranks_do_not_depend_on_the_order_of_records():
    runs = records()
    assert statistics.ranks(table(), runs) == statistics.ranks(table(), runs[::-1])
