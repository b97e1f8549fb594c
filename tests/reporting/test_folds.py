"""Folds of a protocol: their runs together say what one run over all their queries would."""

import json

import numpy as np
import pytest
from leaderboards import make_run, make_uncoded, refuse_runs
from models import block
from styles import texts

from reporting import figures
from reporting.records.read import load_results, table_results, table_runs
from reporting.statistics.samples import sample
from reporting.tables.model import Table
from reporting.tables.runs import Run
from tiebench.paired import difference

SIZES = {"p_fold1": 7, "p_fold2": 4}
CURVES = {"p_fold1": [1, 10, 70], "p_fold2": [1, 10, 40]}


@pytest.fixture
def results(tmp_path):
    """Results of a table whose protocol has two folds: (folder, settings, per-query scores of all folds)."""
    generator, everything = np.random.default_rng(0), {}
    for protocol, size in SIZES.items():
        for method in ("one", "two"):
            for seed in (0, 1):
                values = {name: generator.random(size) for name in ("ap", "ap_min", "ap_max")}
                everything.setdefault((method, seed), []).append(values)
                precision = [0.5, None] if method == "two" else [values["ap"].mean(), 1.0]
                curves = {"cuts": CURVES[protocol], "precision_at": [1.0, size / 10, 0.1]}
                scores = {"metrics": {"queries_without_relevant": 1}}
                scores["curves"] = curves | {"precision": precision}
                cost = {"seconds": 2.0, "peak_memory_mb": 10.0 * size}
                cost["seconds_by_part"] = {"fit": 1.5, "encode": 0.5}
                make_run(tmp_path, protocol, method, 8, seed, values, scores=scores, **cost)
        make_uncoded(tmp_path, protocol, ap=size / 10, queries=size)
    table = {"name": "t", "methods": ["one", "two"], "seeds": [0, 1], "folds": {"p": list(SIZES)}}
    table["blocks"] = [block("p", bits=[8])]
    settings = {"table": table, "refused": [], "published": [], "claims": [], "uncoded": ["p"]}
    (tmp_path / "t.json").write_text(json.dumps(settings))
    (tmp_path / "t.tidy.csv").touch()
    return tmp_path, settings, everything


def test_scores_are_those_of_all_queries_one_after_the_other(results):
    folder, settings, everything = results
    found = table_results(Table.from_json(settings), folder, also=["per_query"])
    assert {(run.protocol, run.method, run.seed) for run in found} == {("p", *key) for key in everything}
    for run in found:
        parts = everything[run.method, run.seed]
        queries = np.concatenate([part["ap"] for part in parts])
        assert np.array_equal(run.per_query["ap"], queries)
        assert run.metrics["ap"] == pytest.approx(queries.mean(), rel=1e-14)
        assert run.metrics["queries"] == 11 and run.metrics["queries_without_relevant"] == 2
        assert run.metrics["bits"] == 8
        assert run.curves["cuts"] == [1, 10]
        assert run.curves["precision_at"] == pytest.approx([1.0, (7 * 0.7 + 4 * 0.4) / 11])
        assert run.curves["precision"][1] == (None if run.method == "two" else 1.0)
        assert (run.seconds, run.peak_memory_mb) == (2.0, 70.0)
        assert (run.fit_seconds, run.encode_seconds) == (1.5, 0.5)
        assert run.folds == SIZES
    assert found.uncoded["p"]["ap"] == pytest.approx((7 * 0.7 + 4 * 0.4) / 11)


def test_a_protocol_of_one_fold_has_the_scores_of_that_fold(results):
    folder, settings, everything = results
    settings["table"]["folds"] = {"p": ["p_fold1"]}
    for run in table_results(Table.from_json(settings), folder, also=["per_query"]):
        assert run.protocol == "p" and run.folds == {"p_fold1": 7}
        assert np.array_equal(run.per_query["ap"], everything[run.method, run.seed][0]["ap"])


def test_a_frame_of_results_has_a_row_per_run_or_query_of_all_folds(results):
    folder, _, everything = results
    runs = load_results("t", folder).set_index(["method", "seed"])
    rows = load_results("t", folder, per_query=True, resources=folder)
    assert len(runs) == 4 and len(rows) == 4 * 11
    for key, parts in everything.items():
        for column, name in (("score", "ap"), ("min", "ap_min"), ("max", "ap_max")):
            queries = np.concatenate([part[name] for part in parts])
            assert runs.loc[key, column] == pytest.approx(queries.mean(), rel=1e-14)
            of = rows[(rows["method"] == key[0]) & (rows["seed"] == key[1])]
            assert np.array_equal(of[column], queries) and of["query"].tolist() == list(range(11))
        assert (runs.loc[key, "seconds"], runs.loc[key, "memory"]) == (2.0, 70.0)


def test_a_refused_fold_refuses_the_protocol(results):
    folder, settings, _ = results
    refuse_runs(folder, "p_fold2/one/8/0")
    runs = table_runs(Table.from_json(settings), folder / "runs", also=["per_query"])
    (refused,) = (run for run in runs if run.status == "refused")
    assert (*refused.cell, refused.seed) == ("p", "one", 8, 0)
    assert refused.reason == "p_fold2: no" and refused.per_query == refused.metrics == {}
    row = load_results("t", folder).set_index(["method", "seed"]).loc[("one", 0)]
    assert row["status"] == "refused" and np.isnan(row["score"])


def test_two_methods_are_compared_over_the_folds_as_well(results):
    folder, settings, everything = results
    table = Table.from_json(settings)
    of = table_results(table, folder, also=["per_query"])
    one, two = (sample(of.cell("p", method, 8), "ap") for method in ("one", "two"))
    assert one.splits == tuple(SIZES.values()) and difference(one, two).over == "queries, runs and splits"
    # Without scores of queries, by the means of the folds.
    of = table_results(table, folder)
    one, two = (sample(of.cell("p", method, 8), "ap") for method in ("one", "two"))
    assert one.per_query is None and difference(one, two).over == "runs and splits"
    means = [[fold["ap"].mean() for fold in everything["one", seed]] for seed in (0, 1)]
    assert one.of_splits == pytest.approx(np.mean(means, axis=0))
    run = of.cell("p", "one", 8)[0]
    assert Run.from_json(json.loads(json.dumps(run.to_json()))).folds == SIZES


@pytest.mark.parametrize(
    ("seeds", "lead"),
    [([0, 1], "Mean over seeds of means over 2 folds; thin"), ([0], "One seed, means over 2 folds.")],
)
def test_a_figure_says_what_its_means_are_over(results, seeds, lead):
    folder, settings, _ = results
    table = Table.from_json(settings | {"table": settings["table"] | {"seeds": seeds}})
    figure = figures.draw("metric_by_bits", table, table_results(table, folder))
    assert any(text.get_text().startswith(lead) for text in texts(figure))
