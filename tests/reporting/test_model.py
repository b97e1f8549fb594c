"""The model of reporting: settings of tables and records of runs as typed objects, and back."""

import json
import math

import pytest
from models import model_of, table_of

from reporting.tables import titles
from reporting.tables.model import Group, Style, Table
from reporting.tables.runs import NO_RECORD, Results, Run, Tuning

ENTRY = {
    "name": "t",
    "methods": ["b", "a"],
    "seeds": [3, 1, 2],
    "fewer_seeds": {"b": 2},
    "families": {"a": "unsupervised", "b": "listwise", "bound": "bound"},
    "styles": {"a": {"title": "A", "sees": "database labels"}, "b": {"external": True}},
    "protocols": {"p": "P", "q": "Q"},
    "settings": {"p": {"dataset": "d", "unseen": False}, "q": {"dataset": "d", "unseen": True}},
    "folds": {"q": ["q1", "q2"]},
    "budgets": [{"protocol": "p", "method": "a", "bits": 8, "trials": 5, "budget": "few"}],
    "blocks": [
        {"protocol": "p", "metric": "ap", "bits": [8, 16]},
        {"protocol": "q", "metric": "ndcg", "bits": [8], "methods": ["b", "bound"], "title": "Quite"},
    ],
}


def record(**changes):
    plain = {"protocol": "p", "method": "a", "bits": 8, "seed": 3, "status": "done"}
    return plain | {"metrics": {"ap": 0.5, "ap_min": 0.25, "ap_max": 0.75}, "curves": {}} | changes


def test_a_table_is_what_its_file_asks_for():
    table = table_of(ENTRY, refused=[{"protocol": "p", "method": "b", "bits": 16, "reason": "no"}])
    assert table.groups == (
        Group("p", "ap", "P", (8, 16), ("a", "b")),
        Group("q", "ndcg", "Quite", (8,), ("b", "bound")),
    )
    assert table.methods == ("b", "a", "bound") and table.rows == ["a", "b", "bound"]
    assert list(table.cells)[:3] == [("p", "a", 8), ("p", "a", 16), ("p", "b", 8)]
    assert [group.protocol for group in table.cells["q", "bound", 8]] == ["q"]
    assert table.heading == "t" and table.title == table.description == ""
    assert (table.method_seeds("a"), table.method_seeds("b")) == ([3, 1, 2], [3, 1])
    assert table.members("q") == ["q1", "q2"] and table.members("p") == ["p"]
    assert [table.protocol_title(name) for name in ("q", "p", "x")] == ["Quite", "P", "x"]
    assert table.tunings == {("p", "a", 8): Tuning(5, "few")} and table.refused == {("p", "b", 16): "no"}
    assert table.style("a") == Style(title="A", sees="database labels") and table.style("x") == Style()


def test_a_method_competes_by_its_family_and_by_what_it_sees():
    table = table_of(ENTRY)
    assert not table.competes("a") and not table.competes("a", "p") and not table.competes("bound")
    assert table.competes("a", "q")  # where no method sees labels of the classes that are asked for
    whole = {"p": {"dataset": "d", "split": {"kind": "given", "training": "all"}}}
    table_of_all = table_of(ENTRY | {"settings": whole})  # where the training set is the database
    assert table_of_all.competes("a") and table_of_all.row_title("a") == "A"
    assert table.competes("b") and (table.row_title("a"), table.row_title("b")) == ("A†", "b¶")


def test_a_selection_keeps_everything_but_rows_and_blocks():
    table = table_of(ENTRY)
    part = table.only(methods=["b"], blocks=["q/ndcg"])
    assert part.groups == (Group("q", "ndcg", "Quite", (8,), ("b",)),)
    assert part.methods == table.methods and part.styles is table.styles
    for given in ({"methods": ["c"]}, {"blocks": ["r"]}, {"methods": ["bound"], "blocks": ["p"]}):
        with pytest.raises(ValueError, match=r"^table t"):
            table.only(**given)


def test_settings_that_lack_a_part_or_have_a_cell_twice_are_refused():
    with pytest.raises(ValueError, match=r"table t: blocks\[1\]: p, ap, a, 8 bits is in the table twice"):
        table_of(ENTRY | {"blocks": [ENTRY["blocks"][0]] * 2})
    with pytest.raises(KeyError):
        Table.from_json({"table": {"name": "t"}})


def test_results_have_the_seeds_of_the_table_in_its_order():
    table, results = model_of(ENTRY, [record(seed=seed) for seed in (2, 3, 9)])
    assert list(results.cell("p", "a", 8)) == [3, 2] and results.cell("p", "a", 16) == {}
    assert results.scores("p", "ap", "a", 8) == {3: 0.5, 2: 0.5}
    assert results.outcomes(table, ("p", "ap", "a", 8))[1] == (None, "missing", NO_RECORD)
    assert results.mean_range("p", "ap", "a", 8) == (0.25, 0.5, 0.75)
    assert {run.seed for run in results} == {2, 3}
    # Those of the leaderboard have their own.
    _, filled = model_of(ENTRY, [record(seed=seed, source="leaderboard") for seed in (9, 4)])
    assert list(filled.cell("p", "a", 8)) == [4, 9]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ([record(), record()], "run p/a/8/3: two records of one run"),
        ([record(status="odd")], "run p/a/8/3: status is 'odd', it must be one of: done, refused, missing"),
    ],
)
def test_wrong_records_are_named(wrong, words):
    with pytest.raises(ValueError, match=words):
        Results.of(table_of(ENTRY), map(Run.from_json, wrong))


def test_an_outcome_says_why_there_is_no_score():
    assert Run.from_json(record()).outcome("ap") == (0.5, "done", "")
    assert Run.from_json(record()).outcome("ndcg") == (None, "missing", "the run has no score named ndcg")
    refused = Run.from_json(record(status="refused", reason="it needs labels"))
    assert refused.outcome("ap") == (None, "refused", "it needs labels")
    with pytest.raises(ValueError, match="run p/a/8/3: ap is nan"):
        Run.from_json(record(metrics={"ap": math.nan})).score("ap")


@pytest.mark.parametrize(
    "given",
    [
        record(source="leaderboard", health={"collapsed": "x"}, tuning={"trials": 2, "budget": "b"})
        | {"run": {"seconds": 2.0, "seconds_by_part": {"fit": 1.5}, "threads": 1, "device": "cpu"}},
        record(source="leaderboard", status="refused", reason="no", metrics={}, run={}),
        record(source="leaderboard", run={"folds": {"p1": 500, "p2": 400}, "fingerprints": {"split": "s"}}),
    ],
)
def test_a_run_of_the_leaderboard_survives_its_record(given):
    run = Run.from_json(given)
    back = json.loads(json.dumps(run.to_json()))
    assert Run.from_json(back) == run
    same = [key for key in given if key not in ("run", "reason")]
    assert [back[key] for key in same] == [given[key] for key in same]


def test_a_block_s_title_is_that_of_its_protocol():
    plain = ENTRY["blocks"][0]
    table = table_of(ENTRY | {"blocks": [plain, plain | {"metric": "ndcg", "title": "Of both"}]})
    assert table.protocol_title("p") == "Of both"


def test_families_without_a_name_keep_their_name():
    assert titles.family_title("pairwise") == "Triplets"
    assert titles.family_title("quantum") == "quantum"
