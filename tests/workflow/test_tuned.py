"""What searches chose: which cells take it, what a search starts from, and what its files say."""

import csv
import io
import json

import pytest
import yaml

from workflow.configuration.hyperparameters import search_of
from workflow.configuration.merged import load, merge_settings
from workflow.errors import ConfigurationError
from workflow.plan import targets
from workflow.plan.runs import Cell, Plan
from workflow.plan.searches import TuningPlan
from workflow.tuning.files import choices, trials

from conftest import ROOT  # isort: skip

SEARCH = {"name": "mine", "trials": 8}
RULE = {"name": "mine", "trials": 2, "rungs": [1], "shares": {"fit": 0.5, "query": 0.1}}


@pytest.fixture
def found(tiny):
    """found(tuned, method, bits, protocol): (hyper-parameters, trials of the search or None)."""

    def of(tuned, method="talr_ap", bits=8, protocol="tiny"):
        plan = Plan(load(ROOT, tiny | {"tuned": tuned}))
        cell = Cell(protocol, method, bits)
        search = search_of(plan.configuration, protocol, method, bits)
        return plan.hyperparameters(cell), search and search["tried"]

    return of


def test_a_choice_goes_over_all_other_settings_of_its_method(found, tiny):
    given, none = found({})
    assert given["epochs"] == 2 and none is None
    tuned = {"tiny": {"talr_ap": {"search": SEARCH, "epochs": 5, "by_bits": {8: {"bins": 4}}}}}
    assert found(tuned) == (given | {"epochs": 5, "bins": 4}, 8)
    assert found(tuned, bits=9) == (given | {"epochs": 5}, 8)
    assert found(tuned, protocol="cifar10_s1")[1] is None
    tiny["protocols"]["other"] = tiny["protocols"]["tiny"] | {"hyperparameters_of": "tiny"}
    assert found(tuned, protocol="other") == (given | {"epochs": 5, "bins": 4}, 8)
    own = {"other": {"talr_ap": {"search": SEARCH | {"trials": 3}, "epochs": 6}}}
    # The search for it started without that choice.
    assert found(tuned | own, protocol="other") == (given | {"epochs": 6}, 3)


@pytest.mark.thorough
def test_a_length_that_was_not_searched_has_the_choice_of_the_nearest_or_of_the_one_named(found):
    search = SEARCH | {"tried": {"32": 11, 8: 8}}
    tuned = {"tiny": {"talr_ap": {"search": search, "by_bits": {8: {}, "32": {"epochs": 5}}}}}
    lengths = (4, 8, 15, 16, 17, 32, 48)  # 16 is as near to 8 as to 32
    assert [found(tuned, bits=bits)[1] for bits in lengths] == [8, 8, 8, 8, 11, 11, 11]
    assert [found(tuned, bits=bits)[0]["epochs"] for bits in lengths] == [2, 2, 2, 2, 5, 5, 5]
    search["taken"] = {"16": 32, 48: 8}
    assert [found(tuned, bits=bits)[1] for bits in lengths] == [8, 8, 8, 11, 11, 11, 8]
    assert [found(tuned, bits=bits)[0]["epochs"] for bits in lengths] == [2, 2, 2, 5, 5, 5, 2]
    at_one = {"tiny": {"talr_ap": {"search": SEARCH | {"tried": {8: 9}}, "epochs": 5}}}
    assert [found(at_one, bits=bits)[1] for bits in (8, 24)] == [9, 9]
    at_one["tiny"]["talr_ap"]["by_bits"] = {24: {"epochs": 6}}
    with pytest.raises(ConfigurationError, match="24: no run has it: the search tried 8 bits"):
        found(at_one)


def test_a_variant_has_its_class_s_choice_under_its_own_settings(found, tiny):
    tiny["methods"] |= {
        "steep": {"class": "talr_ap", "defaults": {"tanh_scale": 40.0}},
        "published": {"class": "talr_ap", "tuned": False},
    }
    tuned = {"tiny": {"talr_ap": {"search": SEARCH, "tanh_scale": 2.0, "by_bits": {8: {"epochs": 5}}}}}
    values, count = found(tuned, "steep")
    assert (values["tanh_scale"], values["epochs"], count) == (40.0, 5, 1)
    assert found(tuned, "published") == found({})
    # The search of a variant starts without its class's choice.
    tuned["tiny"]["steep"] = {"search": SEARCH | {"trials": 4}, "bins": 6}
    assert found(tuned, "steep") == (found({}, "steep")[0] | {"bins": 6}, 4)


def test_a_choice_replaces_another_as_a_whole():
    one = {"p": {"a": {"search": {"trials": 2}, "epochs": 3}, "b": {"search": {"trials": 2}}}, "q": {"c": {}}}
    two = {"p": {"a": {"search": {"trials": 4}}}}
    merged = {"p": {"a": {"search": {"trials": 4}}, "b": {"search": {"trials": 2}}}, "q": {"c": {}}}
    assert merge_settings({"tuned": one}, {"tuned": two}) == {"tuned": merged}
    assert one["p"]["a"]["epochs"] == 3
    configuration = load(ROOT, {"tuned": {"digits": {"dtsh": {"search": {"trials": 4}}, "dpsh": None}}})
    assert configuration["tuned"]["digits"]["dtsh"] == {"search": {"trials": 4}}
    assert {"machash", "hashnet"} < set(configuration["tuned"]["digits"])
    plan = Plan(configuration)
    assert plan.hyperparameters(Cell("digits", "dtsh", 24))["learning_rate"] == 0.5
    assert search_of(plan.configuration, "digits", "dpsh", 24) is None


def test_a_tuning_of_folds_searches_in_each(tiny):
    tiny["protocols"]["tiny"]["split"] = {"kind": "unseen_classes", "folds": 2, "query": 5, "training": 15}
    shares, methods = {"fit": 0.5, "query": 0.1, "hold_out": "classes"}, ["lsh", "talr_ap"]
    tiny["tuning"] = {"mine": {"protocol": "tiny", "methods": methods, "bits": [8], "shares": shares}}
    tiny["methods"]["talr_ap"]["protocols"]["tiny_fold2"] = {"epochs": 7}
    plan = Plan(load(ROOT, tiny))
    searches = TuningPlan(plan)
    files = [f"tiny_fold{fold}/{method}/8.json" for fold in (1, 2) for method in methods]
    assert searches.choices("mine") == [f"results/tuning/mine/{file}" for file in files]
    assert searches.split("mine", "tiny_fold2") == "resources/protocols/tiny_fold2/split.npz"
    settings = [searches.settings("mine", f"tiny_fold{fold}", "talr_ap", "8") for fold in (1, 2)]
    assert [one["hyperparameters"]["epochs"] for one in settings] == [2, 7]
    assert [one["search"]["shares"] for one in settings] == [shares, shares]
    needed = targets.needs(plan, "results/tuning/mine.yaml")
    assert needed == targets.needs(plan, "results/tuning/mine.csv")
    assert {protocol for _, protocol, *_ in needed} == {"tiny_fold1", "tiny_fold2"}
    with pytest.raises(ConfigurationError, match="in protocol tiny, but in tiny_fold1, tiny_fold2"):
        searches.split("mine", "tiny")


def of_search(method, bits, trials, chosen=0, protocol="tiny", **given):
    """What `tune_method` writes; trials: [(settings, scores or a reason), ...]."""
    made = []
    for settings, scores in trials:
        scored = [{"score": one, "seconds": 1.5, "status": "scored", "reason": None} for one in scores or ()]
        lost = [{"score": None, "seconds": 0.5, "status": "refused", "reason": "too, few"}]
        trial = {"settings": settings, "origin": "drawn", "rung": 1, "confirmations": []}
        made.append(trial | {"evaluations": scored or lost})
    search = RULE | {"seconds": None}
    found = {"protocol": protocol, "method": method, "bits": bits, "search": search, "unchanged": given}
    return json.loads(json.dumps(found | {"trials": made, "chosen": chosen, "ends": ["bins", "epochs"]}))


def test_written_choices_are_a_configuration_that_the_plan_takes(tiny):
    searches = [
        of_search("lsh", 8, [({}, [0.5])]),
        of_search("talr_ap", 8, [({}, [0.5]), ({"epochs": 4, "learning_rate": 0.5}, [0.6])], chosen=1),
        of_search("itq", 8, [({}, [0.5]), ({"iterations": 4}, [0.4])]),
        of_search("itq", 16, [({}, [0.5]), ({"iterations": 4}, [0.6]), ({"iterations": 5}, [0.6])], chosen=1),
    ]
    text = choices("mine", searches)
    plan = Plan(load(ROOT, tiny | yaml.safe_load(text)))
    assert plan.hyperparameters(Cell("tiny", "talr_ap", 99))["epochs"] == 4
    for method, counts in (("lsh", [1, 1, 1]), ("talr_ap", [2, 2, 2]), ("itq", [2, 3, 3])):
        found = [search_of(plan.configuration, "tiny", method, bits)["tried"] for bits in (8, 16, 24)]
        assert found == counts
    iterations = [plan.hyperparameters(Cell("tiny", "itq", bits))["iterations"] for bits in (8, 16, 24)]
    assert iterations == [50, 4, 4]
    assert plan["tuned"]["tiny"]["lsh"]["search"] == RULE | {"tried": {8: 1}}
    assert "&" not in text  # an entry can be copied without the others


def test_every_trial_is_a_row_with_all_of_its_settings_or_the_reason_why_it_has_no_score():
    tried = [({}, [0.5, 0.25]), ({"epochs": 4}, None)]
    rows = list(csv.DictReader(io.StringIO(trials([of_search("talr_ap", 8, tried, epochs=2, bins=8)]))))
    names = ("trial", "partition", "score", "status", "reason", "chosen", "ends")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("0", "0", "0.5", "scored", "", "True", "bins epochs"),
        ("0", "1", "0.25", "scored", "", "True", "bins epochs"),
        ("1", "0", "", "refused", "too, few", "False", ""),
    ]
    settings = [json.loads(row["settings"]) for row in rows[1:]]
    assert settings == [{"bins": 8, "epochs": 2}, {"bins": 8, "epochs": 4}]
    assert {(row["protocol"], row["method"], row["bits"]) for row in rows} == {("tiny", "talr_ap", "8")}


def test_settings_of_a_table_tell_the_budget_of_each_cell(tiny):
    rule = {"name": "mine", "trials": 8, "widen": 4, "rungs": [3, 8], "seconds": 60}
    tiny["protocols"]["tiny"]["split"] = {"kind": "unseen_classes", "folds": 2, "query": 5, "training": 15}
    tiny["methods"]["published"] = {"class": "talr_ap", "tuned": False}
    tiny["methods"]["wide"] = {"class": "talr_ap", "defaults": {"bins": 4}}
    tiny["tables"]["tiny"]["methods"] = ["lsh", "talr_ap", "published", "wide"]
    tiny["tuned"] = {
        "tiny_fold1": {"talr_ap": {"search": rule | {"tried": {8: 9}}}},
        "tiny_fold2": {"talr_ap": {"search": rule | {"tried": {8: 12}}}},
    }

    def budgets():
        found = Plan(load(ROOT, tiny)).table_settings("tiny")["table"]["budgets"]
        return {
            (one["protocol"], one["method"]): (one["trials"], one["budget"])
            for one in found
            if one["bits"] == 8
        }

    words = "8 trials and up to 4 more, on 3/8 parts, 60 s"
    assert budgets() == {
        **{(protocol, "lsh"): (1, "nothing to choose") for protocol in ("tiny", "tiny_fold1", "tiny_fold2")},
        **{(protocol, "published"): (1, "as given") for protocol in ("tiny", "tiny_fold1", "tiny_fold2")},
        **{(f"tiny{fold}", "wide"): (1, "the choice of talr_ap") for fold in ("", "_fold1", "_fold2")},
        ("tiny", "talr_ap"): (12, words),
        ("tiny_fold1", "talr_ap"): (9, words),
        ("tiny_fold2", "talr_ap"): (12, words),
    }
    del tiny["tuned"]["tiny_fold2"]
    assert budgets()["tiny", "talr_ap"] == (9, f"{words}; as given")
    tiny["tuned"]["tiny"] = {"talr_ap": {"search": {"trials": 2, "rungs": [1]}}}
    assert budgets()["tiny", "talr_ap"] == (9, f"{words}; 2 trials, on 1 part")
