"""Rows that a table has besides those it lists: which blocks get them, and which do not."""

import copy

import pytest

from reporting.tables.titles import BOUND
from workflow.configuration.merged import load
from workflow.plan.runs import Cell, Plan

from conftest import ROOT  # isort: skip

BOUNDS = ["classifier_codes", "onehot"]
DIGITS = {"protocol": "digits", "metric": "ap", "bits": [12]}
LEVELS = {"protocol": "digits_levels", "metric": "ndcg", "bits": [16]}


def rows(table):
    """Methods of each block of a configured table, its methods, and whether it has uncoded features."""
    configuration = load(ROOT, {"tables": {"mine": copy.deepcopy(table)}})
    found = configuration["tables"]["mine"]
    return [block["methods"] for block in found["blocks"]], found["methods"], found["uncoded"]


def test_the_bounds_are_the_methods_of_their_family():
    files = load(ROOT).files
    assert [name for name, about in files.items() if about.family == BOUND] == BOUNDS


@pytest.mark.parametrize(
    ("methods", "blocks", "expected", "uncoded"),
    [
        (["lsh", "talr_ap"], [DIGITS], [["lsh", "talr_ap", *BOUNDS]], True),
        (["lsh", "itq"], [DIGITS], [["lsh", "itq"]], False),  # nothing supervised
        (["talr_ap"], [LEVELS], [["talr_ap"]], True),  # affinities from distances
        (["talr_ap"], [DIGITS, LEVELS], [["talr_ap", *BOUNDS], ["talr_ap"]], True),
        (["lsh", "talr_ap"], [DIGITS | {"methods": ["lsh"]}, LEVELS], [["lsh"], ["lsh", "talr_ap"]], True),
        (["onehot", "lsh", "dpsh"], [DIGITS], [["onehot", "lsh", "dpsh", "classifier_codes"]], True),
        (["onehot"], [DIGITS], [["onehot"]], False),  # a bound of nothing
        # Two blocks with the same columns and other methods: one of them has the bounds.
        (
            ["talr_ap", "dpsh"],
            [DIGITS | {"methods": ["talr_ap"]}, DIGITS | {"methods": ["dpsh"]}],
            [["talr_ap", *BOUNDS], ["dpsh"]],
            True,
        ),
    ],
)
def test_blocks_with_a_supervised_method_and_labels_get_bounds(methods, blocks, expected, uncoded):
    found, listed, has_uncoded = rows({"methods": methods, "blocks": blocks})
    assert found == expected and has_uncoded == uncoded
    assert sorted(listed) == sorted({*methods, *(name for block in expected for name in block)})
    assert listed[: len(methods)] == methods


def test_a_table_decides_for_itself():
    table = {"methods": ["talr_ap"], "blocks": [DIGITS], "supervised_bounds": False}
    for more, protocols in (({}, []), ({"uncoded": True}, ["digits"])):
        plan = Plan(load(ROOT, {"tables": {"mine": table | more}}))
        assert plan.cells("mine") == (Cell("digits", "talr_ap", 12),)
        assert plan.uncoded_protocols("mine") == protocols
    assert rows(table | {"supervised_bounds": True, "uncoded": False})[2] is False


def test_shipped_tables_with_a_supervised_method_have_bounds():
    plan = Plan(load(ROOT))
    for name, table in plan["tables"].items():
        assert (set(BOUNDS) <= set(table["methods"])) == (name != "figure4"), name
        assert plan.uncoded_protocols(name) or name == "figure4"


def test_a_method_of_single_labels_is_refused_before_it_runs_on_several():
    plan = Plan(load(ROOT))
    line = "{} has no form for items with several labels"
    assert plan.refusal(Cell("nus_wide", "classifier_codes", 24)) == line.format("classifier_codes")
    assert plan.refusal(Cell("nus_wide_levels", "fsdh", 32)) == line.format("fsdh")
    assert plan.refusal(Cell("nus_wide", "onehot", 24)) is None
    assert plan.refusal(Cell("cifar10_s1", "classifier_codes", 24)) is None
    assert plan.refusal(Cell("labelme", "onehot", 16)).endswith("has affinities from distances only")
