"""Protocols of several folds in the configuration and the plan; transfer from codes."""

import numpy as np
import pytest

from workflow.configuration.hyperparameters import hyperparameters
from workflow.configuration.merged import load
from workflow.plan import targets
from workflow.plan.groups import groups
from workflow.plan.runs import Plan
from workflow.stages import transfer

from conftest import ROOT, refused  # isort: skip

MEMBERS = ("tiny_fold1", "tiny_fold2")


@pytest.fixture
def folded(tiny):
    """The tiny configuration with a protocol of two folds."""
    tiny["protocols"]["tiny"] |= {
        "title": "Tiny",
        "split": {"kind": "unseen_classes", "folds": 2, "query": 5, "training": 15},
        "transfer": True,
    }
    tiny["tables"]["tiny"] |= {"uncoded": True}
    return tiny


def test_a_fold_is_a_protocol_with_runs_of_its_own(folded):
    plan = Plan(load(ROOT, folded))
    assert [plan["protocols"][name]["title"] for name in MEMBERS] == ["Tiny, fold 1", "Tiny, fold 2"]
    assert [plan.split_settings(name)["split"]["fold"] for name in MEMBERS] == [1, 2]
    runs = plan.table_runs("tiny", ["run.json"])
    assert len(runs) == 2 * 2 * 2 * 2 == len(set(runs))
    assert {run.split("/")[2] for run in runs} == set(MEMBERS)
    assert [protocol for protocol, *_ in groups(plan) if "tiny" in protocol] == list(MEMBERS)
    assert plan.uncoded_files("tiny") == [f"results/uncoded/{name}.json" for name in MEMBERS]
    needed = targets.needs(plan, "results/tiny.csv")
    assert {protocol for kind, protocol, *_ in needed if kind == "run"} == set(MEMBERS)
    table = plan.table_settings("tiny")["table"]
    assert table["folds"] == {"tiny": MEMBERS} and table["blocks"][0]["protocol"] == "tiny"
    assert table["settings"]["tiny"]["unseen"] and table["settings"]["tiny"]["training_per_class"] == 15
    assert plan.run_settings("tiny_fold1", "lsh", bits=8)["database_labels"] is False


def test_a_fold_has_what_was_chosen_in_the_same_fold_of_the_other_protocol(folded):
    entry = folded["protocols"]["tiny"] | {"hyperparameters_of": "tiny"}
    for name, change in (("among_all", {"database": "all"}), ("three", {"folds": 3})):
        folded["protocols"][name] = entry | {"split": entry["split"] | change}
    rule = {"name": "mine", "trials": 8, "tried": {8: 8}}
    folded["tuned"] = {
        name: {"talr_ap": {"search": rule, "epochs": 30 + place}} for place, name in enumerate(MEMBERS)
    }
    found = load(ROOT, folded)

    def epochs(*protocols):
        return [hyperparameters(found, protocol, "talr_ap", 8)["epochs"] for protocol in protocols]

    (ordinary,) = epochs("tiny")
    assert ordinary not in (30, 31)
    assert epochs("among_all_fold1", "among_all_fold2") == [30, 31]
    assert epochs(*(f"three_fold{number}" for number in (1, 2, 3))) == [ordinary] * 3


def test_a_fold_takes_the_codes_of_the_same_fold(tiny):
    entry = tiny["protocols"]["tiny"]
    entry["split"] = {"kind": "per_class", "folds": 2, "query": 5, "training": 15}
    outside = {"split": entry["split"] | {"training_in_database": False}, "codes_of": "tiny"}
    tiny["protocols"]["outside"] = entry | outside
    plan = Plan(load(ROOT, tiny))
    codes, run = plan.taken_run("outside_fold2", "talr_ap", 8, 0)
    assert codes == "results/runs/tiny_fold2/talr_ap/8/0/codes.npz" and run.endswith("run.json")
    assert plan.taken_split("outside_fold2") == "resources/protocols/tiny_fold2/split.npz"
    assert plan.protocol_settings("outside")["codes_of"] == "tiny"
    tiny["protocols"]["outside"]["split"]["folds"] = 3
    assert "codes_of: tiny has 2 folds, this protocol 3" in refused(tiny)


def test_mistakes_with_folds_are_one_line(folded):
    with pytest.raises(ValueError, match="a split for each fold, ask for one: tiny_fold1, tiny_fold2"):
        Plan(load(ROOT, folded)).dataset_card("tiny")
    folded["protocols"]["tiny_fold2"] = folded["protocols"]["tiny"]
    assert "tiny_fold2: is the name of a fold of tiny" in refused(folded)
    del folded["protocols"]["tiny_fold2"]
    folded["protocols"]["tiny"]["split"] = {"kind": "unseen_classes", "query": 5, "training": 15}
    line = refused(folded)
    assert "protocols.tiny.split: " in line and "one of the keys 'folds' and 'unseen'" in line


def test_transfer_is_scored_where_it_is_asked_for(folded):
    block = {"protocol": "tiny", "metric": "transfer_accuracy", "bits": [8]}
    folded["tables"]["tiny"]["blocks"].append(block)
    assert Plan(load(ROOT, folded)).score_settings("tiny_fold1")["transfer"] is True
    folded["protocols"]["tiny"]["transfer"] = False
    assert "add `transfer: true` to protocol tiny" in refused(folded)


def test_transfer_of_codes_that_tell_all_some_or_no_classes():
    """Right for queries whose code names their class, the most frequent class where codes say nothing."""
    generator = np.random.default_rng(0)
    labels = [generator.integers(0, 3, n) for n in (60, 200)]
    labels[1][:150] = 9  # a class of the database that no query has
    codes = [np.packbits(np.eye(10, 12, dtype=bool)[y], axis=1) for y in labels]
    assert transfer.of_codes(*codes, 12, *labels).tolist() == [1.0] * 60
    merged = [np.packbits(np.eye(10, 12, dtype=bool)[np.minimum(y, 1)], axis=1) for y in labels]
    most = 1 + np.bincount(labels[1][150:], minlength=3)[1:].argmax()
    right = (labels[0] == 0) | (labels[0] == most)
    assert np.array_equal(transfer.of_codes(*merged, 12, *labels), right)
    constant = [np.zeros((len(y), 2), np.uint8) for y in labels]
    frequent = np.bincount(labels[1][150:], minlength=3).argmax()
    assert np.array_equal(transfer.of_codes(*constant, 12, *labels), labels[0] == frequent)


def test_transfer_does_not_depend_on_the_scale_of_features():
    generator = np.random.default_rng(1)
    y = [generator.integers(0, 3, n) for n in (50, 300)]
    x = [(np.eye(3)[one] + generator.normal(size=(len(one), 3))).astype(np.float32) for one in y]
    found = transfer.correctness(*x, *y)
    assert 0.4 < found.mean() < 0.95
    assert np.array_equal(found, transfer.correctness(x[0] * 8, x[1] * 8, *y))
    with pytest.raises(ValueError, match="two classes"):
        transfer.correctness(x[0], x[1], np.zeros(50, int), y[1])
