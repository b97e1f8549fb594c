"""Tables that take rows from the leaderboard: what is run, what is filled and marked, what is refused."""

import re
import shutil
import statistics
from collections import defaultdict

import numpy as np
import pytest
import yaml

from reporting import leaderboard, load_results
from reporting.tables.titles import BOUND
from workflow.configuration import leaderboard_rows
from workflow.configuration.merged import load
from workflow.plan.runs import Cell, Plan

from conftest import COMMIT, ROOT, lay_out, read_rows, refused  # isort: skip


@pytest.fixture(scope="module")
def boards(prepared, tmp_path_factory):
    """A checkout with a leaderboard of the prepared run, LSH and TALR-AP: to look at."""
    laboratory = lay_out(tmp_path_factory.mktemp("boards"))
    shutil.copytree(prepared.directory, laboratory.directory)
    laboratory.publish("tiny", laboratory.checkout / "leaderboard")
    return laboratory.checkout


@pytest.fixture
def published(empty_laboratory, boards):
    """A laboratory without results, whose checkout has that leaderboard."""
    shutil.copytree(boards / "leaderboard", empty_laboratory.checkout / "leaderboard")
    return empty_laboratory


@pytest.fixture
def mine(tiny):
    """The tiny configuration with a table of one method, filled from the leaderboard."""
    blocks = [{"protocol": "tiny", "metric": "ap", "bits": [8, 11]}]
    tiny["tables"]["mine"] = {"methods": ["itq"], "seeds": [3], "compare": "leaderboard", "blocks": blocks}
    return tiny


@pytest.mark.thorough
def test_one_method_is_run_and_the_others_are_filled(published, mine):
    published.made("results/mine.csv", config=mine)
    results = published.results
    runs = sorted(str(path.parent.relative_to(results)) for path in results.glob("runs/**/run.json"))
    assert runs == ["runs/tiny/itq/11/3", "runs/tiny/itq/8/3"]
    board = read_rows(published.checkout / "leaderboard" / "tiny.tidy.csv")
    known = {(row["method"], row["bits"]): row for row in board if row["metric"] == "ap"}
    found = {(row["method"], row["bits"]): row for row in published.rows("mine.tidy.csv")}
    assert {method for method, _ in found} == {"itq", "lsh", "talr_ap"}
    for (method, bits), row in found.items():
        if method == "itq":
            assert (row["status"], row["seeds"], row["std"]) == ("done", "1", "")
            assert float(row["mean"]) == published.metrics("itq", bits, 3)["ap"]
        else:
            assert (row["status"], row["seeds"]) == ("leaderboard", "2")
            for column in ("mean", "std", "ci_low", "ci_high"):
                assert row[column] == known[method, bits][column]  # to the last bit
    wide = {row["method"]: row["from_leaderboard"] for row in published.rows("mine.csv")}
    assert wide == {"itq": "", "lsh": "all", "talr_ap": "all"}
    # All are tested against the best, by the leaderboard's scores per query; no health is known of its codes.
    for row in published.rows("mine.statistics.csv"):
        assert row["seeds"] == ("1" if row["method"] == "itq" else "2") and row["verdict"]
        assert row["verdict"] in ("best", "too few runs", "undecided", "worse")
    assert {row["method"] for row in published.rows("mine.health.csv")} == {"itq"}
    frame = load_results("mine", results).set_index(["method", "bits", "seed"])
    assert set(frame.loc["lsh"]["status"]) == {"leaderboard"} and len(frame) == 2 + 2 * 2 * 2
    assert np.mean(frame.loc[("lsh", 8), "score"]) == float(known["lsh", "8"]["mean"])
    assert set(frame.loc["itq"]["status"]) == {"done"}


@pytest.mark.thorough
def test_a_list_narrows_the_rows_and_a_table_that_is_published_gives_its_own_alone(published, mine):
    mine["tables"]["mine"]["compare"] = {"leaderboard": ["lsh"]}
    published.made("results/mine.csv", config=mine)
    assert {row["method"] for row in published.rows("mine.tidy.csv")} == {"itq", "lsh"}
    folder = published.checkout / "leaderboard"
    before = leaderboard.read("tiny", folder)
    published.publish("mine", folder)
    after = leaderboard.read("tiny", folder)
    assert after.methods == ["lsh", "talr_ap", "itq"]
    of = [run for run in after.runs if run["method"] != "itq"]
    assert of == before.runs and len(after.runs) == len(of) + 2


@pytest.mark.thorough
def test_scores_of_other_data_are_refused_in_one_line(published, mine):
    with np.load(published.sources / "tiny.npz") as arrays:
        X, y = arrays["X"], arrays["y"]
    np.savez(published.sources / "tiny.npz", X=X + 1, y=y)
    line = published.refused("results/mine.csv", config=mine)
    assert "table mine: tiny has another dataset here (" in line and "leave out `compare`" in line
    assert not (published.results / "mine.csv").exists()


def test_filled_cells_have_what_figures_of_other_rankings_read():
    example = yaml.safe_load((ROOT / "docs/examples/text_embeddings.yaml").read_text(encoding="utf-8"))
    block = {"protocol": "scifact", "metric": "estimated_ndcg@10", "bits": [64]}
    mine = {"seeds": [0], "methods": ["lsh"], "compare": {"leaderboard": ["rabitq"]}, "blocks": [block]}
    configuration = load(ROOT, example | {"tables": {"mine": mine}})
    table, claims = configuration["tables"]["mine"], [{"claims": [{"metric": "recall@100"}]}]
    assert "recall@100" not in leaderboard_rows.filled(configuration, table, [])["records"][0]["metrics"]
    for record in leaderboard_rows.filled(configuration, table, claims)["records"]:
        names = set(record["metrics"])
        assert {"estimated_bytes", "ndcg@10", "ndcg@10_min", "estimated_ndcg@10", "recall@100"} <= names
        assert any(name.startswith("candidates_radius_") for name in names)


def test_what_the_leaderboard_has_is_no_row_that_is_run(published, mine):
    plan = Plan(load(published.checkout, mine))
    assert plan.cells("mine") == (Cell("tiny", "itq", 8), Cell("tiny", "itq", 11))
    table = plan.table_settings("mine")["table"]
    assert table["methods"] == ["itq", "lsh", "talr_ap"]
    assert table["styles"]["talr_ap"]["title"] == "TALR-AP" and table["families"]["lsh"] == "unsupervised"
    earlier = [{"methods": ["talr_ap"], "commits": [COMMIT], "differs": "its loss"}]
    (published.checkout / "leaderboard" / "earlier_forms.yaml").write_text(yaml.safe_dump(earlier))
    marked = Plan(load(published.checkout, mine)).table_settings("mine")["table"]["styles"]
    assert marked["talr_ap"]["earlier"] == "its loss" and marked["lsh"] == table["styles"]["lsh"]
    # A length that is not there is a hole of the row. LSH is run for one block, and no row of the other.
    table = mine["tables"]["mine"]
    table["blocks"] = [
        {"protocol": "tiny", "metric": "ap", "bits": [8, 16]},
        {"protocol": "tiny", "metric": "ndcg", "bits": [11], "methods": ["lsh"]},
    ]
    table["methods"] = ["itq", "lsh"]
    settings = Plan(load(published.checkout, mine)).table_settings("mine")
    methods = [block["methods"] for block in settings["table"]["blocks"]]
    assert methods == [["itq", "lsh", "talr_ap"], ["lsh", "talr_ap"]]
    records = settings["filled"]["records"]
    found = {(record["bits"], record["status"]) for record in records}
    assert found == {(8, "done"), (11, "done"), (16, "missing")}
    assert {record["method"] for record in records} == {"talr_ap"}


def test_bounds_are_filled_where_the_leaderboard_has_them():
    example = yaml.safe_load((ROOT / "docs" / "examples" / "unseen_classes.yaml").read_text("utf-8"))
    board = leaderboard.read("cifar10_unseen", ROOT / "leaderboard").tidy
    table = {"methods": ["talr_ap"], "compare": {"leaderboard": ["itq"]}}
    table["blocks"] = [{"protocol": "cifar10_unseen", "metric": "ap", "bits": [32]}]
    example["tables"] = {"mine": table}
    configuration = load(ROOT, example)
    plan = Plan(configuration)
    assert {cell.method for cell in plan.cells("mine")} == {"talr_ap"}
    bounds = {name for name, about in configuration.files.items() if about.family == BOUND}
    settings = plan.table_settings("mine")
    assert set(settings["table"]["methods"]) == {"talr_ap", "itq", *bounds}
    scores = defaultdict(list)
    for record in settings["filled"]["records"]:
        scores[record["method"]].append(record["metrics"]["ap"])
    means = {method: statistics.mean(values) for method, values in scores.items()}
    board = board[(board["protocol"] == "cifar10_unseen") & (board["metric"] == "ap")]
    of_board = board.set_index("method")["mean"]
    assert means == pytest.approx({name: of_board[name] for name in ("itq", *bounds)}, rel=1e-12)
    assert settings["uncoded"] == ["cifar10_unseen"]  # it needs no training


def test_the_example_of_the_documentation_runs_its_own_method_alone():
    page = (ROOT / "docs" / "add-a-method.md").read_text(encoding="utf-8")
    variant, table = (yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL))
    plan = Plan(load(ROOT, {"methods": variant["methods"]} | table))
    assert plan.cells("mine") == (Cell("digits", "talr_ap_wide", 12), Cell("digits", "talr_ap_wide", 48))
    board = leaderboard.read("digits", ROOT / "leaderboard")
    assert set(plan.table_settings("mine")["table"]["methods"]) == {"talr_ap_wide", *board.methods}


def compared(*methods):
    return {"compare": {"leaderboard": list(methods)}}


def block(**change):
    return {"blocks": [{"protocol": "tiny", "metric": "ap", "bits": [8]} | change]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"compare": "leaderbord"}, "'leaderbord' is not allowed; did you mean 'leaderboard'?"),
        (compared("talr_pa"), "unknown method of the leaderboard 'talr_pa'; did you mean"),
        ({"compare": {"leaderboards": ["lsh"]}}, "unknown key; did you mean 'leaderboard'?"),
        ({"compare": ["lsh"]}, "is not of type"),
        ({"methods": ["lsh", "talr_ap"]}, "the leaderboard has no rows besides those that the table"),
        (block(bits=[9]), "has no codes of 9 bits; it has: 8, 11"),
        (block(protocol="digits"), "has no protocol 'digits'; known: tiny"),
        (block(metric="ap@20"), "has no ap@20; did you mean 'ap@10'?"),
        ({"reference_lines": ["lhs"]}, "unknown method of the table 'lhs'; did you mean 'lsh'?"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line_that_names_the_key(boards, mine, change, message):
    mine["protocols"]["tiny"]["at"] = [10, 20]
    mine["tables"]["mine"] |= change
    line = refused(mine, boards)
    assert line.startswith("--configfile: tables.mine.") and message in line


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input": {"kind": "features", "centre": False}}, "input of tiny is"),
        ({"ap_at_normaliser": "min"}, "ap_at_normaliser of tiny is 'min', not 'hits' as in the leaderboard"),
        ({"split": {"kind": "per_class", "query": 4, "training": 15}}, "split.query of tiny is 4, not 5"),
        ({"seed": 1}, "seed of tiny is 1, not 0 as in the leaderboard, so their scores do not compare"),
    ],
)
def test_another_protocol_of_the_same_name_is_refused_before_anything_runs(boards, mine, change, message):
    mine["protocols"]["tiny"] |= change
    line = refused(mine, boards)
    assert "tables.mine.compare" in line and message in line


def test_figures_may_name_filled_methods(boards, mine):
    figures = {"tie_ranges": {"methods": ["itq", "lsh"]}}
    mine["tables"]["mine"] |= {"reference_lines": ["lsh"], "figures": figures}
    assert load(boards, mine)["tables"]["mine"]["reference_lines"] == ["lsh"]
