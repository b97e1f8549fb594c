"""Cells from the leaderboard beside cells that were run: marks and tests of both, equal data."""

import hashlib
import math

import models
import numpy as np
import pytest
from leaderboards import make_run
from models import block, model_of, table_of
from styles import texts

from reporting import figures, frames
from reporting.claims import verdicts
from reporting.page import document, table_view
from reporting.printed import latex, markdown, marks
from reporting.printed.cells import cells
from reporting.printed.legend import filled_sentence
from reporting.records import filled
from reporting.records.marked import collapsed_methods, filled_methods
from reporting.records.read import table_runs
from reporting.statistics import columns
from reporting.tables.runs import Run

# LSH was run at 8 bits and is filled at 16, ITQ is filled, TALR was run; TALR at 16 bits is missing there.
TABLE = {"name": "t", "seeds": [0, 1], "methods": ["lsh", "itq", "talr"]}
TABLE["styles"] = {name: {"title": name.upper()} for name in TABLE["methods"]}
TABLE["blocks"] = [block("p", bits=[length], title="P") for length in (8, 16)]
CLAIM = {"id": "c", "claim": "ITQ is above LSH.", "of": "x", "stated_for": ["p"], "kind": "above"}
CLAIM |= {"where": {"metric": "ap"}, "methods": ["itq"], "others": ["lsh"]}


def record(method, bits, seed, ap, **more):
    scores = {"ap": ap, "ap_min": ap - 0.05, "ap_max": ap + 0.05}
    per_query = {} if "source" in more else {"ap": ap + 0.01 * np.sin(np.arange(50))}
    return models.record(method, bits, seed, scores, "p", per_query=per_query) | more


LEADERBOARD = {"source": "leaderboard"}
RECORDS = [
    *(record("lsh", 8, seed, 0.25 + seed / 50) for seed in (0, 1)),
    *(record("talr", 8, seed, 0.5 + seed / 50) for seed in (0, 1)),
    *(record("itq", 8, seed, 0.75 + seed / 50, **LEADERBOARD) for seed in (0, 1, 7)),
    *(record("lsh", 16, seed, 0.25 + seed / 50, **LEADERBOARD) for seed in (3, 4, 5)),
    record("itq", 16, 3, 0.75, **LEADERBOARD),
    record("talr", 16, 0, 0, status="missing", reason="not there", metrics={}, **LEADERBOARD),
]


@pytest.fixture
def tidy():
    return frames.tidy(*model_of(TABLE, RECORDS))


def test_a_cell_from_the_leaderboard_has_its_own_seeds_and_its_status(tidy):
    of = tidy.set_index(["method", "bits"])
    assert dict(of["status"]) == {
        ("lsh", 8): "done", ("itq", 8): "leaderboard", ("talr", 8): "done",
        ("lsh", 16): "leaderboard", ("itq", 16): "leaderboard", ("talr", 16): "missing",
    }  # fmt: skip
    assert dict(of["seeds"]) == {
        ("lsh", 8): 2, ("itq", 8): 3, ("talr", 8): 2, ("lsh", 16): 3, ("itq", 16): 1, ("talr", 16): 0
    }  # fmt: skip
    assert of.loc[("itq", 8), "mean"] == pytest.approx(np.mean([0.75, 0.77, 0.89]))
    assert of.loc[("talr", 16), "reason"] == "not there"
    assert frames.from_csv(frames.to_csv(tidy)).equals(tidy)


def test_rows_are_marked_where_all_is_from_the_leaderboard_and_cells_elsewhere(tidy):
    assert frames.filled_marks(tidy) == ({"itq"}, {("p", "ap", "lsh", 16)})
    alone = tidy[tidy["status"] != "done"]  # with a hole, too
    assert frames.filled_marks(alone) == (set(), set())
    wide = frames.wide(tidy, table_of(TABLE))
    assert list(wide["from_leaderboard"]) == ["p ap 16", "all", ""]
    text = markdown.to_markdown(cells(tidy, table_of(TABLE)))
    assert "| ITQ§ | **0.803** ± 0.076 |" in text and "| ITQ§ | **0.750** |" in text
    assert "| LSH | 0.260 ± 0.014 |" in text and "| LSH | <ins>0.330</ins> ± 0.020§ |" in text
    assert "| TALR | <ins>0.510</ins> ± 0.014 |" in text and "| TALR | – <sup>a</sup> |" in text
    assert "§ From the leaderboard, of 1 to 3 seeds, not run here." in text
    text = latex.to_latex(cells(tidy, table_of(TABLE)))
    assert r"ITQ\S{} &" in text and r"\textsuperscript{\S{}}" in text and text.count(r"\S{}") == 3
    compared = table_of(TABLE), columns.comparisons(*model_of(TABLE, RECORDS))
    view = table_view.TableView(*model_of(TABLE, RECORDS, []), cells(tidy, *compared), {}, [], {})
    text = document.page([view])
    assert ">ITQ§</th>" in text and ">LSH</th>" in text and ">TALR</th>" in text
    assert text.count('<span class="unseen"> from the leaderboard</span>') == 1
    assert text.count('<td class="reason">leaderboard: not run here') == 7
    assert "4 of 4 runs are done." in text


def test_figures_mark_methods_that_have_cells_from_there():
    drawn = figures.draw("tie_ranges", *model_of(TABLE, RECORDS))
    words = " ".join(text.get_text() for text in texts(drawn))
    assert "ITQ§" in words and "LSH§" in words and "TALR§" not in words and "§ From the leaderboard." in words
    assert "‡" not in words  # no codes collapsed


def test_collapsed_runs_of_seeds_that_the_table_lacks_are_marked_as_their_means_are():
    lost = [record("itq", 8, 9, 0.3, health={"collapsed": "few codes"}, **LEADERBOARD)]
    model = model_of(TABLE, RECORDS + lost)
    tidy = frames.tidy(*model).set_index(["method", "bits"])
    assert tidy.loc[("itq", 8), "collapsed"] == 1 and collapsed_methods(*model) == {"itq": [8]}


def test_nothing_is_marked_where_everything_is_from_there():
    records = [one for one in RECORDS if "source" in one]
    tidy = frames.tidy(*model_of(TABLE | {"methods": ["itq"]}, records))
    assert set(tidy["status"]) == {"leaderboard"} and filled_sentence(tidy) == ""
    assert "from_leaderboard" not in frames.wide(tidy, table_of(TABLE | {"methods": ["itq"]}))
    assert filled_methods(*model_of(TABLE, records)) == []


def test_cells_with_scores_per_query_are_tested_as_if_they_were_run():
    noise = 0.01 * np.sin(np.arange(50))
    here = [one | {"per_query": {name: of + noise for name, of in one["metrics"].items()}} for one in RECORDS]
    compared = columns.comparisons(*model_of(TABLE, here)).set_index(["method", "bits"])
    run = [{key: value for key, value in one.items() if key != "source"} for one in here]
    of_runs = columns.comparisons(*model_of(TABLE | {"seeds": [0, 1, 3, 4, 5, 7]}, run))
    assert compared.equals(of_runs.set_index(["method", "bits"]))
    assert dict(compared["seeds"].loc["itq"]) == {8: 3, 16: 1}
    assert compared.loc[("lsh", 8), ["best", "verdict"]].tolist() == ["itq", "too few runs"]
    (judged,) = verdicts.judge([{"source": "s", "claims": [CLAIM]}], *model_of(TABLE, here))
    assert [(one["outcome"], one["reason"]) for one in judged["figures"]] == [
        ("too few runs", ""), ("too few runs", "")
    ]  # fmt: skip


def test_scores_per_query_are_read_from_the_files_that_the_table_was_made_with(tmp_path, monkeypatch):
    (tmp_path / "leaderboard").mkdir()
    path = tmp_path / "leaderboard" / "p.per_query.npz"
    scores = np.array([0.25, 0.5], dtype=np.float32)
    np.savez(path, query=np.arange(2), **{"ap/itq/8": scores})
    monkeypatch.setattr(filled, "SHIPPED", path.parent)
    itq = [one for one in RECORDS if one["method"] == "itq"]
    given = {"records": itq, "fingerprints": {}}
    table = table_of(TABLE, filled=given)
    assert filled.filled_runs(table, ["per_query"])["p", "itq", 8][0].per_query == {}
    of_file = {path.name: hashlib.sha256(path.read_bytes()).hexdigest()}
    table = table_of(TABLE, filled={**given, "per_query": of_file})
    for run in filled.filled_runs(table, ["per_query", "training"])["p", "itq", 8]:
        assert not run.training and run.per_query["ap"].tolist() == [0.25, 0.5]
    assert filled.filled_runs(table, ["per_query"])["p", "itq", 16][0].per_query == {}
    np.savez(path, query=np.arange(2))
    with pytest.raises(ValueError, match="not what this table was made with"):
        filled.filled_runs(table, ["per_query"])


def test_each_run_has_its_own_scores_of_queries_where_they_are_kept():
    runs = [Run("p", "itq", 8, seed) for seed in (7, 3, 5)]
    scores = {"ap": np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]), "ndcg": np.array([0.25, 0.5])}
    found = filled.with_scores_of_queries(runs, {("p", "itq", 8): scores})
    assert [run.per_query["ap"].tolist() for run in found] == [[0.5, 0.6], [0.1, 0.2], [0.3, 0.4]]
    assert all(run.per_query["ndcg"].tolist() == [0.25, 0.5] for run in found)
    (one,) = filled.with_scores_of_queries(runs[:1], {("p", "itq", 8): scores})  # not all seeds are here
    np.testing.assert_allclose(one.per_query["ap"], [0.3, 0.4])


def test_cells_without_scores_per_query_are_compared_over_runs(tidy):
    """The best mean of the column is one of them: others are tested with what is shown as the best."""
    compared = columns.comparisons(*model_of(TABLE, RECORDS)).set_index(["method", "bits"])
    best = compared.loc[("itq", 8)]
    assert best["verdict"] == "best" and best["queries"] == 0 and math.isnan(best["ci_low"])
    assert compared.loc[("talr", 8), ["best", "verdict"]].tolist() == ["itq", "too few runs"]
    assert marks.ranked(tidy, table_of(TABLE))[1]["p", "ap", "itq", 8] == "best"
    (judged,) = verdicts.judge([{"source": "s", "claims": [CLAIM]}], *model_of(TABLE, RECORDS))
    assert judged["verdict"] == "too few runs"


def test_runs_of_other_data_than_the_leaderboard_s_are_refused(tmp_path):
    make_run(tmp_path, "p", "lsh", 8, 0, {"ap": [1.0]}, fingerprints={"dataset": "same", "split": "other"})
    table = TABLE | {"seeds": [0], "methods": ["lsh", "itq"], "blocks": TABLE["blocks"][:1]}
    theirs = {"dataset": "same", "split": "theirs"}
    given = {"records": [one for one in RECORDS if one["method"] == "itq"], "fingerprints": {"p": theirs}}
    with pytest.raises(ValueError, match=r"p has another split here \(other…\).* \(theirs…\)"):
        table_runs(table_of(table, filled=given), tmp_path / "runs")
    theirs["split"] = "other"
    found = table_runs(table_of(table, filled=given), tmp_path / "runs")
    assert [(run.method, run.bits, run.seed) for run in found] == [
        ("itq", 8, 0), ("itq", 8, 1), ("itq", 8, 7), ("lsh", 8, 0)
    ]  # fmt: skip
