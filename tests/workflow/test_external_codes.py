"""Codes of another program as a row of a table: through the real Snakefile, and their checks alone."""

import os
import re

import numpy as np
import pytest
import yaml

import tiebench
from datasets.splits import Split
from reporting import leaderboard, load_results
from workflow.configuration import external_codes
from workflow.configuration.merged import load
from workflow.plan.runs import Plan

from conftest import ROOT, class_vectors, refused  # isort: skip

pytestmark = pytest.mark.thorough

NAMES = ("query", "database", "query_labels", "database_labels")


@pytest.fixture
def mine(tiny):
    """The tiny configuration with a row of imported codes."""
    tiny["methods"]["mine"] = {"external": "codes/mine", "title": "My codes"}
    tiny["tables"]["tiny"]["methods"].append("mine")
    return tiny


def codes_of(bits, seed):
    """Codes of all 160 items: a random one for each class, and a tenth of the bits flipped."""
    generator = np.random.default_rng([bits, seed])
    labels = class_vectors()[1]
    return generator.integers(0, 2, (4, bits))[labels] ^ (generator.random((160, bits)) < 0.1)


def save(laboratory, bits, seed, order=None, folder="codes/mine/tiny", **more):
    """The file of a run, in the order of the split or shuffled; the scores that the library gives it."""
    split, codes, labels = laboratory.split(), codes_of(bits, seed), class_vectors()[1]
    rows = {"query": split.query, "database": split.database}
    if order is not None:
        rows = {part: order(items) for part, items in rows.items()}
    path = laboratory.directory / folder / str(bits) / f"{seed}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {part: codes[items] for part, items in rows.items()}
    arrays |= {f"{part}_labels": labels[items] for part, items in rows.items()}
    if order is not None:
        arrays |= {f"{part}_items": items for part, items in rows.items()}
    arrays |= more
    np.savez(path, **arrays)
    return tiebench.score(*(arrays[name] for name in NAMES)).means["ap"]


def by_cell(laboratory, name):
    return {(row["method"], row["bits"]): row for row in laboratory.rows(name)}


def shuffled(rows):
    return np.random.default_rng(5).permutation(rows)


def test_codes_are_a_row_like_any_other_and_a_missing_file_is_a_hole(laboratory, mine):
    before = laboratory.stamps("results/runs/**/*")
    expected = {
        (8, 0): save(laboratory, 8, 0),
        (8, 1): save(laboratory, 8, 1, order=shuffled),  # put in order by its row numbers
        (11, 0): save(laboratory, 11, 0),
    }
    done = laboratory.made("results/tiny.csv", config=mine)
    after = laboratory.stamps("results/runs/**/*")
    assert {path: after[path] for path in before} == before  # the other rows stay as they are
    found = by_cell(laboratory, "tiny.tidy.csv")
    eight, eleven = found["mine", "8"], found["mine", "11"]
    assert float(eight["mean"]) == pytest.approx((expected[8, 0] + expected[8, 1]) / 2, abs=1e-12)
    assert (eight["status"], eight["seeds"], eight["reason"]) == ("done", "2", "")
    assert float(eleven["mean"]) == pytest.approx(expected[11, 0], abs=1e-12)
    assert (eleven["status"], eleven["seeds"]) == ("partial", "1")
    assert "external codes: codes/mine/tiny/11/1.npz does not exist" in eleven["reason"]
    assert "codes/mine/tiny/11/1.npz does not exist" in done.stdout + done.stderr
    assert (eight["budget"], eight["trials"]) == ("chosen elsewhere", "1")

    markdown, latex, page = laboratory.text("tiny.md"), laboratory.text("tiny.tex"), laboratory.page("tiny")
    assert "| My codes¶ |" in markdown and "| LSH |" in markdown
    assert "¶ Codes of another program, checked against the split" in markdown
    assert "chosen elsewhere, for My codes" in markdown
    assert r"My codes\P{} &" in latex and r"\P{} Codes of another program" in latex
    assert ">My codes¶</th>" in page and "Codes of another program, checked" in page
    tests = by_cell(laboratory, "tiny.statistics.csv")
    assert tests["mine", "8"]["seeds"] == "2" and tests["lsh", "8"]["verdict"] != ""
    health = laboratory.rows("tiny.health.csv")
    runs = {(row["bits"], row["seed"]) for row in health if row["method"] == "mine"}
    assert runs == {("8", "0"), ("8", "1"), ("11", "0")}
    frame = load_results("tiny", laboratory.results).set_index(["method", "bits", "seed"])
    assert frame.loc[("mine", 8, 1), "score"] == pytest.approx(expected[8, 1], abs=1e-12)
    assert frame.loc[("mine", 11, 1), "status"] == "missing"
    external = laboratory.record("mine", 8, 1)["external"]
    assert external["checked_by"] == ["labels", "items"]
    assert external["file"] == "codes/mine/tiny/8/1.npz"

    # The file that was missing is added, and another replaced, both older than the runs, as what was moved or
    # unpacked is: these two are imported, and no other.
    before = laboratory.stamps("results/runs/**/*")
    expected[11, 1] = save(laboratory, 11, 1)
    other = 1 - codes_of(8, 0)[laboratory.split().database]
    expected[8, 0] = save(laboratory, 8, 0, database=other)
    for name in ("8/0", "11/1"):
        os.utime(laboratory.directory / "codes/mine/tiny" / f"{name}.npz", (1e9, 1e9))
    laboratory.made("results/tiny.csv", config=mine)
    after = laboratory.stamps("results/runs/**/*")
    changed = {path.rsplit("/", 1)[0] for path in before if after[path] != before[path]}
    assert changed == {"results/runs/tiny/mine/8/0", "results/runs/tiny/mine/11/1"}
    found = by_cell(laboratory, "tiny.tidy.csv")
    assert found["mine", "11"]["status"] == "done"
    for bits in (8, 11):
        mean = (expected[bits, 0] + expected[bits, 1]) / 2
        assert float(found["mine", str(bits)]["mean"]) == pytest.approx(mean, abs=1e-12)
    assert found["mine", "8"]["mean"] != eight["mean"]

    # What only another program can make again is not published: the leaderboard gets the other rows.
    laboratory.publish("tiny", laboratory.place / "leaderboard")
    assert leaderboard.read("tiny", laboratory.place / "leaderboard").methods == ["lsh", "talr_ap"]


def test_codes_of_other_items_end_in_one_line_and_leave_the_table_as_it_was(laboratory, mine):
    before = laboratory.tables()
    for bits in (8, 11):
        for seed in (0, 1):
            save(laboratory, bits, seed)
    labels = class_vectors()[1][laboratory.split().query]
    save(laboratory, 8, 1, query_labels=labels[::-1])
    line = laboratory.refused("results/tiny.csv", config=mine)
    assert line.startswith("error: tiny/mine/8 bits/seed 1: codes/mine/tiny/8/1.npz: ")
    assert "the query labels are not those of protocol tiny in its order" in line
    assert laboratory.tables() == before


def test_a_folder_that_is_not_there_and_no_file_at_all_are_holes(laboratory, mine):
    laboratory.made("results/tiny.csv", config=mine)
    found = [row for row in laboratory.rows("tiny.tidy.csv") if row["method"] == "mine"]
    reason = "external codes: the folder codes/mine does not exist"
    assert {(row["status"], row["reason"]) for row in found} == {("missing", reason)}


def test_a_database_in_parts_imports_codes_too(laboratory, mine):
    mine["protocols"]["parts"] = mine["protocols"]["tiny"] | {"database_parts": 3}
    table = mine["tables"]["tiny"] | {"methods": ["mine"], "seeds": [0]}
    mine["tables"] = {"parts": table | {"blocks": [{"protocol": "parts", "metric": "ap", "bits": [8]}]}}
    # The same seed and kind of split: the same rows as those of `tiny`.
    expected = save(laboratory, 8, 0, folder="codes/mine/parts")
    laboratory.made("results/parts.csv", config=mine)
    (row,) = laboratory.rows("parts.tidy.csv")
    assert float(row["mean"]) == pytest.approx(expected, abs=1e-12)


def test_a_row_may_say_that_it_learned_from_the_labels_of_the_database(mine):
    mine["methods"]["mine"]["sees"] = "database labels"
    table = Plan(load(ROOT, mine)).table_settings("tiny")["table"]
    assert table["styles"]["mine"]["sees"] == "database labels" and table["styles"]["mine"]["external"]
    assert "external" not in table["styles"]["lsh"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"external": "c", "class": "lsh"}, "methods.mine.class: does not go with `external`"),
        ({"external": "c", "defaults": {"a": 1}}, "methods.mine.defaults: does not go with `external`"),
        ({"external": ""}, "methods.mine.external"),
        ({"external": "results/mine"}, "is in results/, which the workflow writes"),
        ({"external": "./resources/mine"}, "is in resources/, which the workflow writes"),
        ({"external": "c", "sees": "everything"}, "methods.mine.sees"),
        ({"class": "lsh", "sees": "database labels"}, "methods.mine.sees: goes with `external`"),
        ({"externel": "c"}, "did you mean 'external'"),
    ],
)
def test_entries_that_say_two_things_are_refused(mine, entry, message):
    mine["methods"]["mine"] = entry
    assert message in refused(mine)


def test_codes_of_another_program_are_no_method_and_cannot_be_tuned(mine):
    taken = mine["methods"] | {"lsh": {"external": "codes"}}
    assert "methods/lsh.py is a method: give these codes another" in refused(mine | {"methods": taken})
    tuning = {"protocol": "tiny", "methods": ["mine"], "bits": [8], "metric": "ap"}
    tuned = {"tiny": {"mine": {"search": {"trials": 2}}}}
    for more, where in (
        ({"tuning": {"t": tuning}}, "tuning.t.methods"),
        ({"tuned": tuned}, "tuned.tiny.mine"),
    ):
        assert f"{where}: mine is external: there are no hyper-parameters" in refused(mine | more)


def test_the_example_of_the_documentation_is_a_table():
    page = (ROOT / "docs" / "compare-your-codes.md").read_text(encoding="utf-8")
    section = page[page.index("## As a row of a table") :]
    example = yaml.safe_load(re.search(r"```yaml\n(.*?)```", section, re.S)[1])
    plan = Plan(load(ROOT, example))
    (table,) = example["tables"]
    assert example["methods"]["mine"]["external"] == "codes/mine"
    runs = [run for run in plan.table_runs(table, ["run.json"]) if "/mine/" in run]
    assert runs and all(f"`codes/mine/digits/12/{seed}.npz`" in section for seed in (0, 1))
    found = external_codes.run_settings(plan, "digits", "mine", "12", "0")
    assert found == {"folder": "codes/mine", "file": "codes/mine/digits/12/0.npz", "stamp": None}


SPLIT = Split([1, 4, 6], [0, 2, 3, 7, 9], [0, 2])
LABELS = np.array([0, 1, 1, 2, 2, 0, 0, 2, 1, 1])
IDS = np.array([f"img_{row}" for row in range(10)])
BITS = (np.arange(10)[:, None] >> np.arange(9)) & 1  # item i has the bits of i


def arrays(query=SPLIT.query, database=SPLIT.database, kinds=("labels",)):
    found = {"query": BITS[query], "database": BITS[database]}
    of = {"labels": LABELS, "items": np.arange(10), "ids": IDS}
    for kind in kinds:
        found |= {f"query_{kind}": of[kind][query], f"database_{kind}": of[kind][database]}
    return found


def read(folder, given, labels=LABELS, ids=IDS, bits=9):
    np.savez(folder / "0.npz", **given)
    return external_codes.read(folder / "0.npz", bits, SPLIT, labels, ids, "protocol p")


@pytest.mark.parametrize("kinds", [("labels",), ("items",), ("ids",), ("labels", "items", "ids")])
def test_codes_come_out_in_the_order_of_the_split(tmp_path, kinds):
    generator = np.random.default_rng(1)
    orders = [(SPLIT.query, SPLIT.database)]
    if kinds != ("labels",):
        orders += [(generator.permutation(SPLIT.query), generator.permutation(SPLIT.database))] * 3
    for order in orders:
        plain = arrays(*order, kinds)
        packed = {part: np.packbits(plain[part], axis=1) for part in ("query", "database")}
        for given in (plain, plain | packed | {"bits": 9}):
            codes, checked_by = read(tmp_path, given)
            assert checked_by == [kind for kind in ("labels", "items", "ids") if kind in kinds]
            for part in ("query", "database"):
                unpacked = np.unpackbits(codes[part], axis=1, count=9)
                assert np.array_equal(unpacked, BITS[getattr(SPLIT, part)])


def test_names_of_classes_and_ids_that_are_numbers_play_no_part(tmp_path):
    named = arrays() | {
        f"{part}_labels": np.array(["cat", "dog", "eel"])[LABELS[getattr(SPLIT, part)]]
        for part in ("query", "database")
    }
    assert read(tmp_path, named)[1] == ["labels"]
    numbers = np.zeros(10, int)  # documents and queries have numbers of their own
    numbers[SPLIT.query], numbers[SPLIT.database] = [30, 10, 20], range(10, 60, 10)
    given = arrays(kinds=()) | {"query_ids": numbers[SPLIT.query], "database_ids": numbers[SPLIT.database]}
    assert read(tmp_path, given, ids=numbers)[1] == ["ids"]


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (arrays(kinds=()), {}, "nothing tells which items the codes are of: add query_labels and"),
        (arrays(kinds=()), {"labels": None}, "codes are of: add query_items and database_items"),
        (arrays(), {"labels": None}, "it has labels, and the dataset of protocol p has none"),
        (arrays(), {"bits": 12}, "codes of 9 bits where 12 are expected"),
        (arrays(query=[1, 4]), {}, "the codes are of 2 queries and 5 database items, protocol p has 3"),
        (arrays(query=[4, 1, 6]), {}, "labels are not those of protocol p in its order"),
        (arrays(database=[0, 2, 3, 7, 7]), {}, "the database labels are not those of protocol p"),
        (arrays(query=[1, 4, 5], kinds=["items"]), {}, "query_items are not `query` of the split of "
         "protocol p: 1 are others, as row 5"),
        (arrays(query=[1, 4, 4], kinds=["items"]), {}, "query_items has the item of row 4 twice"),
        (arrays(kinds=["items"]) | {"query_items": [1.5, 4, 6]}, {}, "query_items[0] is 1.5; it must be an"),
        (arrays(kinds=["ids"]) | {"query_items": [1, 4, 6], "database_items": [2, 0, 3, 7, 9]}, {},
         "database_items and database_ids are of different items"),
        (arrays(kinds=["ids"]), {"ids": None}, "the dataset has no ids: give row numbers, query_items"),
        (arrays(kinds=["ids"]) | {"query_ids": ["img_1", "img_x", "y"]}, {},
         "query_ids has 'img_x', which is no id of `query` of the split of protocol p (2 are not)"),
        (arrays(kinds=["labels"]) | {"query_items": [1, 4, 6]}, {}, "it lacks database_items: give both"),
        (arrays(kinds=["items"]) | {"query_items": ["1", "4", "6"]}, {}, "query_items must be row numbers"),
        (arrays(kinds=["items"]) | {"query_items": [1, 4]}, {}, "there are 3 query codes but 2 query_items"),
        (arrays() | {"query": BITS[SPLIT.query] * 2}, {}, "must all be in {0, 1}"),
    ],
)  # fmt: skip
def test_codes_that_do_not_fit_the_split_are_refused_in_one_line(tmp_path, given, options, message):
    with pytest.raises(ValueError) as caught:
        read(tmp_path, given, **options)
    assert str(caught.value).startswith(f"{tmp_path / '0.npz'}: ") and message in str(caught.value)


def test_labels_of_the_wrong_item_are_found_beside_right_row_numbers(tmp_path):
    given = arrays(shuffled(SPLIT.query), SPLIT.database, ["labels", "items"])
    assert read(tmp_path, given)[1] == ["labels", "items"]
    given["query_items"] = SPLIT.query  # not the order that the labels are in
    with pytest.raises(ValueError, match="labels are not those of protocol p in its order"):
        read(tmp_path, given)
