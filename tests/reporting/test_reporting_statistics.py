"""Intervals, tests and ranks of tables: those of `paired`, hand values, SciPy's."""

import dataclasses
import functools
import itertools
import math

import models
import numpy as np
import pytest
from models import block, model_of, row_of, small
from scipy import special, stats

from reporting import frames
from reporting.statistics import columns as statistics
from reporting.statistics.samples import sample
from tiebench import metrics, paired

pytestmark = pytest.mark.filterwarnings("error")

METHODS = ("talr_ap", "mihash", "lsh")
SEEDS = (0, 1, 2, 3, 4)
NUMBERS = [name for name, kind in statistics.KINDS.items() if kind == "float64"]


table = functools.partial(small, seeds=list(SEEDS))
AT_12 = [block(bits=[12])]


def record(method, bits, seed, scores, metric="ap"):
    scores = np.asarray(scores, dtype=np.float64)
    metrics = {metric: float(np.mean(scores))}
    return models.record(method, bits, seed, metrics, per_query={metric: scores})


def compared(asked, runs):
    return statistics.comparisons(*model_of(asked, runs))


def records(methods=METHODS, bits=(12, 24), seeds=SEEDS, queries=60, gap=0.5, spread=0.1, seed=0):
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


def test_every_number_of_a_column_is_that_of_all_runs_of_two_methods():
    """By `paired.difference`, which tests/tiebench/test_paired.py compares with SciPy."""
    runs = records(gap=0.15)
    frame = compared(table(), runs)
    assert list(frame.columns) == list(statistics.KINDS)
    cells = zip(frame["method"], frame["bits"], strict=True)
    assert list(cells) == list(itertools.product(METHODS, (12, 24)))
    tidy = frames.tidy(*model_of(table(), runs))
    assert frame["mean"].tolist() == tidy["mean"].tolist()
    for bits in (12, 24):
        of = {}
        for method in METHODS:
            mine = [run for run in runs if (run["method"], run["bits"]) == (method, bits)]
            rows = np.array([run["per_query"]["ap"] for run in mine])
            of[method] = paired.scores_of(rows.mean(axis=1), rows)
        best = max(of, key=lambda method: of[method].mean)
        pairs = [frozenset(pair) for pair in itertools.combinations(METHODS, 2)]
        adjusted = paired.holm([paired.difference(*(of[method] for method in pair)).p for pair in pairs])
        for method in METHODS:
            row, found = row_of(frame, method, bits), paired.difference(of[method], of[best])
            assert (row["queries"], row["seeds"], row["best"]) == (60, 5, best)
            assert row["difference"] == pytest.approx(found.mean, abs=1e-15)
            if method == best:
                assert row["verdict"] == "best" and math.isnan(row["p"])
                continue
            expected = found.low, found.high, found.p, adjusted[pairs.index({method, best})]
            columns = ["difference_low", "difference_high", "p", "p_adjusted"]
            assert row[columns].tolist() == pytest.approx(expected, rel=1e-9)
            assert row["over"] == "queries and runs"
            assert row["verdict"] == ("worse" if expected[-1] < 0.05 else "undecided")


def test_the_mean_over_seeds_is_no_score_of_a_run():
    """A leaderboard gives each run the scores per query of the mean: they tell nothing of residuals."""
    runs = [r for r in records() if (r["method"], r["bits"]) == ("lsh", 12)]
    of = model_of(table(), runs)[1].cell("digits", "lsh", 12)
    mean = np.mean([run.per_query["ap"] for run in of.values()], axis=0)
    kept = {seed: dataclasses.replace(run, per_query={"ap": mean}) for seed, run in of.items()}
    whole, alone = sample(of, "ap"), sample(kept, "ap")
    assert whole.residual > 0 == alone.residual
    assert (alone.mean, alone.variance, alone.runs) == (whole.mean, whole.variance, 5)
    assert alone.per_query == pytest.approx(whole.per_query)


def test_two_scores_of_the_same_runs_are_paired_by_run():
    runs = [record("lsh", 12, seed, [seed / 7, seed / 5]) for seed in SEEDS]
    for run in runs:
        run["metrics"]["ap@5"] = run["metrics"]["ap"] + 0.01 * (1 + run["seed"] % 2)
    of = model_of(table(), runs)[1].cell("digits", "lsh", 12)
    found = sample(of, "ap@5", minus="ap")
    assert found.mean == pytest.approx(0.014) and found.per_query is None
    assert found.variance == pytest.approx(np.var([0.01, 0.02, 0.01, 0.02, 0.01], ddof=1))
    assert sample({}, "ap") is None


def test_a_single_file_of_another_program_is_all_there_is_of_its_codes():
    """One run of a method may be luck, given codes are what they are: a verdict is on them."""
    runs = [r for r in records(queries=200) if r["method"] == "talr_ap" or r["seed"] == 0]
    asked = table(methods=list(METHODS), styles={"lsh": {"external": True}})
    frame = compared(asked, runs)
    assert row_of(frame, "lsh")["verdict"] == "worse" and row_of(frame, "mihash")["verdict"] == "too few runs"
    # Seeds that no file was given for are no runs.
    absent = [
        r | {"status": "missing", "metrics": {}, "per_query": {}} for r in records() if r["method"] == "lsh"
    ]
    holes = [*runs, *(r for r in absent if r["seed"] > 0)]
    assert row_of(compared(asked, holes), "lsh")["verdict"] == "worse"
    two = [*runs, *(r for r in records(queries=200) if r["method"] == "lsh" and r["seed"] == 1)]
    assert row_of(compared(asked, two), "lsh")["verdict"] == "too few runs"


def test_neither_the_order_of_records_nor_other_cells_change_a_byte():
    runs = records()
    frame = compared(table(), runs)
    shuffled = [runs[index] for index in np.random.default_rng(0).permutation(len(runs))]
    assert frames.to_csv(compared(table(), shuffled)) == frames.to_csv(frame)
    # Another column changes nothing; other methods change what is adjusted over the column alone.
    shorter = table(blocks=[block("digits", "ap", [24])])
    alone = compared(shorter, runs)
    assert frames.to_csv(alone) == frames.to_csv(frame[frame["bits"] == 24])
    fewer = compared(shorter | {"methods": ["talr_ap", "mihash"]}, runs)
    same = ["mean", "ci_low", "ci_high", "difference", "difference_low", "difference_high", "over", "p"]
    for method in ("talr_ap", "mihash"):
        assert row_of(fewer, method, 24)[same].equals(row_of(frame, method, 24)[same])


def test_holes_stay_empty_and_runs_without_scores_per_query_are_compared_over_runs():
    runs = [r for r in records() if not (r["method"] == "lsh" and r["bits"] == 12)]
    for run in runs:
        if run["bits"] == 24 and run["method"] != "talr_ap":
            run["per_query"] = {}
    refused = {"protocol": "digits", "method": "lsh", "bits": 12, "seed": 0, "status": "refused"}
    runs.append(refused | {"reason": "no labels", "metrics": {}, "per_query": {}})
    frame = compared(table(), runs)
    row = row_of(frame, "lsh", 12)
    assert row[NUMBERS].isna().all()
    assert (row["queries"], row["best"], row["verdict"]) == (0, "", "")
    for method in ("mihash", "lsh"):
        row = row_of(frame, method, 24)
        assert (row["queries"], row["best"], row["over"]) == (0, "talr_ap", "runs")
        assert row[["ci_low", "ci_high"]].isna().all() and row[["mean", "difference", "p"]].notna().all()
    row = row_of(frame, "talr_ap", 24)
    assert row[["mean", "ci_low", "ci_high"]].notna().all() and row["verdict"] == "best"
    assert row_of(frame, "mihash", 12)["best"] == "talr_ap"
    for run in runs:
        run["per_query"] = {}
    for nothing in ([], runs):  # no column has any
        empty = compared(table(), nothing)
        assert empty[NUMBERS].isna().all(axis=None) and set(empty["verdict"]) == {""}


def test_each_method_is_compared_with_all_its_seeds():
    runs = [r for r in records() if (r["method"], r["seed"]) != ("mihash", 1)]
    row = row_of(compared(table(), runs), "mihash")
    of = {(r["method"], r["seed"]): r["per_query"]["ap"] for r in runs if r["bits"] == 12}
    left = np.mean([of["mihash", seed] for seed in (0, 2, 3, 4)], axis=0)
    right = np.mean([of["talr_ap", seed] for seed in SEEDS], axis=0)
    assert row["verdict"] == "too few runs" and math.isnan(row["p"])
    assert row["difference"] == pytest.approx((left - right).mean(), abs=1e-15)
    assert row["difference_low"] < row["difference"] < row["difference_high"]
    assert row["mean"] == pytest.approx(left.mean(), abs=1e-15)
    assert row["seeds"] == 4
    assert row_of(compared(table(), runs), "talr_ap")["seeds"] == 5


def test_ties_for_best_share_it_and_constant_differences_have_a_p():
    scores = np.array([0.25, 0.5, 0.75, 1.0])
    runs = [record("talr_ap", 12, seed, scores) for seed in (0, 1)]
    runs += [record("mihash", 12, seed, scores) for seed in (0, 1)]
    runs += [record("lsh", 12, seed, scores - 0.125) for seed in (0, 1)]
    frame = compared(table(), runs)
    tie, below = row_of(frame, "mihash"), row_of(frame, "lsh")
    columns = ["difference", "difference_low", "difference_high", "p", "p_adjusted"]
    assert (tie["best"], tie["verdict"]) == ("talr_ap", "best")
    assert tie[columns].tolist() == [0, 0, 0, 1, 1]
    # every query and every seed agree on the difference
    assert below[columns].tolist() == [-0.125, -0.125, -0.125, 0, 0]
    assert below["verdict"] == "worse"


def test_one_query_and_one_seed_decide_nothing_and_one_query_leaves_the_runs_to_decide():
    runs = [record("talr_ap", 12, 0, [0.9]), record("mihash", 12, 0, [0.1])]
    row = row_of(compared(table(), runs), "mihash")
    assert row["difference"] == pytest.approx(-0.8)
    assert row[["ci_low", "ci_high", "difference_low", "p"]].isna().all()
    assert (row["verdict"], row["over"]) == ("too few runs", "")
    runs = [record(m, 12, s, [0.1 + 0.4 * (m == "talr_ap") + s / 100]) for m in METHODS for s in SEEDS]
    row = row_of(compared(table(), runs), "mihash")
    assert (row["over"], row["verdict"]) == ("runs", "worse") and row["p"] < 0.05


def test_queries_that_agree_do_not_outvote_runs_that_do_not():
    # One run of the better method is good.
    base = np.random.default_rng(0).uniform(0.3, 0.6, 200)
    runs = [record("talr_ap", 12, seed, base + up) for seed, up in enumerate((0.25, 0.0, 0.02, 0.01, 0.1))]
    runs += [record("mihash", 12, seed, base + 0.001 * seed) for seed in SEEDS]
    row = row_of(compared(table(), runs), "mihash")
    assert row["p"] > 0.05 and row["verdict"] == "undecided" and 5 < row["seeds_needed"] <= 30
    # Beside a third method, at the level of its three pairs.
    third = [record("lsh", 12, seed, base - 0.3) for seed in SEEDS]
    assert row_of(compared(table(), [*runs, *third]), "mihash")["seeds_needed"] > row["seeds_needed"]


def test_where_lower_is_better_the_lowest_mean_is_best(monkeypatch):
    lower = dataclasses.replace(metrics.METRICS["ap"], name="cost", higher_is_better=False)
    monkeypatch.setitem(metrics.METRICS, "cost", lower)
    asked = table(blocks=[block("digits", "cost", [12, 24])])
    runs = [
        record(r["method"], r["bits"], r["seed"], 1 - r["per_query"]["ap"], "cost") for r in records(gap=1.0)
    ]
    frame, turned = compared(asked, runs), compared(table(), records(gap=1.0))
    assert frame["verdict"].tolist() == turned["verdict"].tolist()
    assert frame["best"].tolist() == turned["best"].tolist()
    assert frame["difference"].to_numpy() == pytest.approx(-turned["difference"].to_numpy(), abs=1e-15)


def shaped(methods, means, seeds, spread, queries=200, noise=0.12):
    """Runs whose means are `means` plus a spread of seeds, on queries that differ as they do for AP."""
    random = np.random.default_rng(12)
    shared = random.normal(size=queries)
    result = []
    for method, mean in zip(methods, means, strict=True):
        own = random.normal(size=queries)
        for seed in range(seeds):
            scores = 0.15 * shared + noise * own + 0.02 * random.normal(size=queries)
            scores += mean - scores.mean() + spread * (seed - (seeds - 1) / 2)
            result.append(record(method, 12, seed, scores))
    return result


def test_marks_and_legend_say_what_is_open():
    methods = ["a", "b", "c", "d"]
    asked = table(methods=methods, blocks=AT_12)
    runs = shaped(methods[:3], [0.605, 0.332, 0.60], 5, 0.02) + shaped(["d"], [0.4], 3, 0.02)
    frame = compared(asked, runs)
    found = {row.method: row.verdict for row in frame.itertuples()}
    assert found == {"a": "best", "b": "worse", "c": "undecided", "d": "too few runs"}
    marks = {cell[2]: mark for cell, mark in statistics.cell_marks(frame).items()}
    assert marks == {"c": "?", "d": "?s"}
    legend = statistics.marks_legend(frame)
    assert "?s: too few runs" in legend and "?: queries and runs" in legend
    assert "No mark says that two scores are equal" in legend


def test_marks_of_too_few_runs_do_not_stand_on_every_cell():
    frame = compared(table(seeds=[0, 1, 2]), records(seeds=(0, 1, 2)))
    assert set(frame["verdict"]) == {"best", "too few runs"} and statistics.cell_marks(frame) == {}
    assert statistics.marks_legend(frame).startswith("Too few runs to tell methods apart")
    assert statistics.marks_legend(compared(table(), [])) == ""


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([record("talr_ap", 12, 0, [0.5] * 3), record("mihash", 12, 0, [0.5] * 4)], "3 and 4 queries"),
        ([record("talr_ap", 12, 0, [0.5, 0.5]) | {"per_query": {"ap": [0.5, math.inf]}}], "ap of a query"),
    ],
)
def test_errors_are_clear(runs, message):
    with pytest.raises(ValueError, match=message):
        compared(table(), runs)


def test_too_few_runs_say_how_many_would_decide():
    base = np.random.default_rng(0).uniform(0.3, 0.6, 200)
    ups = {"talr_ap": (0.02, 0.0, 0.04), "mihash": (0.0, -0.02, 0.02, 0.0)}
    runs = [record(m, 12, seed, base + up) for m, of in ups.items() for seed, up in enumerate(of)]
    of = table(methods=list(ups), seeds=[0, 1, 2, 3], blocks=AT_12)
    row = row_of(compared(of, runs), "mihash")
    variance = sum(np.var(of, ddof=1) for of in ups.values())
    quantiles = stats.norm.ppf(0.8) + stats.norm.ppf(0.975)
    assert row["verdict"] == "too few runs"
    assert row["seeds_needed"] == max(5, math.ceil(quantiles**2 * variance / 0.02**2))
