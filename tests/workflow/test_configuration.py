"""Mistakes in the configuration: each ends in one line that names the place and what would be right."""

import copy
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from workflow import hyperparameter_checks, run_groups
from workflow.code_dependencies import code_files
from workflow.configuration import load
from workflow.errors import ConfigurationError
from workflow.plan import Cell, Plan

ROOT = Path(__file__).parents[2]
DIGITS = {"dataset": "digits", "split": {"kind": "random", "query": 20, "training": 60}}
MINE = DIGITS | {"affinity": {"kind": "class"}, "at": [10]}
BLOCK = {"protocol": "mine", "metric": "ap", "bits": [8]}
TABLE = {"seeds": [0], "methods": ["lsh", "talr_ap"], "blocks": [BLOCK]}
GOOD = {"protocols": {"mine": MINE}, "tables": {"mine": TABLE}}


def changed(*keys, to):
    """GOOD with one value set, or taken away where `to` is None."""
    values = copy.deepcopy(GOOD)
    place = values
    for key in keys[:-1]:
        place = place.setdefault(key, {}) if isinstance(place, dict) else place[key]
    if to is None:
        del place[keys[-1]]
    else:
        place[keys[-1]] = to
    return values


def of_published(methods=None, **changes):
    """A published file with one value."""
    value = {"protocol": "digits", "metric": "ap", "method": "lsh", "bits": 8, "value": 0.5} | changes
    methods = {} if methods is None else {"methods": methods}
    return {"published": {"mine": {"source": "mine", "values": [value], **methods}}}


def space_of(axis, name="learning_rate"):
    """A tuning with one axis."""
    entry = {"protocol": "digits", "methods": ["talr_ap"], "bits": [8], "space": {name: axis}}
    return {"tuning": {"mine": entry}}


def of_claim(**changes):
    """A file of claims with one claim."""
    claim = {"id": "a", "claim": "b", "of": "c", "stated_for": ["digits"], "kind": "best", "method": "lsh"}
    return {"claims": {"mine": {"source": "mine", "claims": [claim | changes]}}}


def test_the_configuration_of_this_checkout_and_a_user_s_own_are_good():
    assert "quick" in load(ROOT)["tables"]
    mine = load(ROOT, GOOD)
    assert "mine" in mine["tables"]
    assert "quick" in mine["tables"]


def line_of(overrides):
    with pytest.raises(ConfigurationError) as caught:
        load(ROOT, overrides)
    line = str(caught.value)
    assert "\n" not in line
    assert len(line) < 400
    return line


# What is changed -> words that the line must hold: the key, and what would be right.
MISTAKES = {
    "unknown section": ({"tabels": {}}, ["tabels", "did you mean 'tables'"]),
    "section of another type": ({"tables": ["quick"]}, ["tables", "mapping"]),
    "device typo": ({"device": "cuad"}, ["device", "'cuad'", "did you mean 'cuda'", "cpu, cuda, auto"]),
    "device of another type": ({"device": 1}, ["device", "cpu, cuda, auto"]),
    "threads 0": ({"threads": {"train": 0}}, ["threads.train", "minimum of 1"]),
    "threads of a stage that is none": (
        {"threads": {"training": 2}},
        ["threads.training", "did you mean 'train'"],
    ),
    "unknown key of a dataset": (
        {"datasets": {"d": {"loader": "digits", "source": []}}},
        ["datasets.d.source", "did you mean 'sources'"],
    ),
    "dataset without a loader": ({"datasets": {"d": {"sources": []}}}, ["datasets.d", "'loader' is missing"]),
    "unknown loader": (
        {"datasets": {"d": {"loader": "feature_file"}}},
        ["datasets.d.loader", "did you mean 'features_file'", "images"],
    ),
    "unknown option of a loader": (
        {"datasets": {"d": {"loader": "images", "options": {"side": 32, "sizes": 3}}}},
        ["datasets.d.options.", "images"],
    ),
    "option of a loader that has none": (
        {"datasets": {"d": {"loader": "digits", "options": {"shuffle": True}}}},
        ["datasets.d.options.shuffle", "digits"],
    ),
    "bad checksum": (
        {"datasets": {"d": {"loader": "features_file", "sources": [{"file": "a.npz", "sha256": "12"}]}}},
        ["datasets.d.sources[0].sha256"],
    ),
    "source without a file": (
        {"datasets": {"d": {"loader": "features_file", "sources": [{"name": "a.npz"}]}}},
        ["datasets.d.sources[0]", "file"],
    ),
    "unknown key of a protocol": (
        changed("protocols", "mine", "run_per_job", to={"seeds": 3}),
        ["protocols.mine.run_per_job", "did you mean 'runs_per_job'"],
    ),
    "runs of a job as a number": (
        changed("protocols", "mine", "runs_per_job", to=3),
        ["protocols.mine.runs_per_job", "object"],
    ),
    "unknown key of the runs of a job": (
        changed("protocols", "mine", "runs_per_job", to={"seed": 3}),
        ["protocols.mine.runs_per_job.seed", "did you mean 'seeds'"],
    ),
    "jobs of no seed": (
        changed("protocols", "mine", "runs_per_job", to={"seeds": 0}),
        ["protocols.mine.runs_per_job.seeds", "minimum of 1"],
    ),
    "lengths of a job that are not a list": (
        changed("protocols", "mine", "runs_per_job", to={"bits": "all"}),
        ["protocols.mine.runs_per_job.bits", "'all'", "array"],
    ),
    "a length of a job twice": (
        changed("protocols", "mine", "runs_per_job", to={"bits": [8, 8]}),
        ["protocols.mine.runs_per_job.bits", "unique"],
    ),
    "length 0 of a job": (
        changed("protocols", "mine", "runs_per_job", to={"bits": [8, 0]}),
        ["protocols.mine.runs_per_job.bits[1]", "minimum of 1"],
    ),
    "percentiles without levels": (
        changed(
            *("protocols", "mine", "affinity"),
            to={"kind": "distance_levels", "percentiles": [5, 1], "levels": [1]},
        ),
        ["protocols.mine.affinity", "2 percentiles and 1 levels"],
    ),
    "unknown dataset": (
        changed("protocols", "mine", "dataset", to="digit"),
        ["protocols.mine.dataset", "did you mean 'digits'"],
    ),
    "protocol without affinity": (
        changed("protocols", "mine", "affinity", to=None),
        ["protocols.mine", "'affinity' is missing"],
    ),
    "split without a kind": (
        changed("protocols", "mine", "split", to={"query": 2}),
        ["protocols.mine.split", "'kind' is missing"],
    ),
    "unknown kind of split": (
        changed("protocols", "mine", "split", to={"kind": "per_clas"}),
        ["protocols.mine.split", "did you mean 'per_class'"],
    ),
    "unknown key of a split": (
        changed("protocols", "mine", "split", to={"kind": "random", "query": 2, "train": 3, "training": 2}),
        ["protocols.mine.split", "'train'", "did you mean 'training'"],
    ),
    "unknown affinity": (
        changed("protocols", "mine", "affinity", to={"kind": "clas"}),
        ["protocols.mine.affinity", "did you mean 'class'"],
    ),
    "cut 0": (changed("protocols", "mine", "at", to=[0]), ["protocols.mine.at[0]", "minimum of 1"]),
    "unknown input": (
        changed("protocols", "mine", "input", to={"kind": "feature"}),
        ["protocols.mine.input.kind", "did you mean 'features'"],
    ),
    "unknown normaliser": (
        changed("protocols", "mine", "ap_at_normaliser", to="hit"),
        ["protocols.mine.ap_at_normaliser", "did you mean 'hits'", "relevant"],
    ),
    "seed of another type": (
        changed("protocols", "mine", "seed", to="one"),
        ["protocols.mine.seed", "integer"],
    ),
    "hyper-parameters taken from an unknown protocol": (
        changed("protocols", "mine", "hyperparameters_of", to="digts"),
        ["protocols.mine.hyperparameters_of", "did you mean 'digits'"],
    ),
    "hyper-parameters of the protocol itself": (
        changed("protocols", "mine", "hyperparameters_of", to="mine"),
        ["protocols.mine.hyperparameters_of", "names the protocol itself"],
    ),
    "hyper-parameters of a protocol that has those of another": (
        changed("protocols", "mine", "hyperparameters_of", to="cifar10_s1_without_training"),
        ["protocols.mine.hyperparameters_of", "from cifar10_s1; name that protocol"],
    ),
    "published scores of an unknown protocol": (
        changed("protocols", "mine", "published_of", to="cifar10_s3"),
        ["protocols.mine.published_of", "did you mean 'cifar10_s"],
    ),
    "unknown method in methods": (
        {"methods": {"talr_pa": {}}},
        ["methods.talr_pa", "did you mean 'talr_ap'"],
    ),
    "unknown hyper-parameter": (
        {"methods": {"talr_ap": {"defaults": {"learning_rat": 1}}}},
        ["methods.talr_ap.defaults.learning_rat", "did you mean 'learning_rate'"],
    ),
    "hyper-parameter of another method": (
        {"methods": {"lsh": {"defaults": {"iterations": 5}}}},
        ["methods.lsh.defaults.iterations", "lsh has no such hyper-parameter"],
    ),
    "bits as a hyper-parameter": (
        {"methods": {"lsh": {"defaults": {"bits": 5}}}},
        ["methods.lsh.defaults.bits", "no such hyper-parameter"],
    ),
    "unknown hyper-parameter of a protocol": (
        changed("methods", "itq", "protocols", "mine", "iteration", to=5),
        ["methods.itq.protocols.mine.iteration", "did you mean 'iterations'"],
    ),
    "unknown hyper-parameter of a length": (
        {"methods": {"itq": {"defaults": {"by_bits": {12: {"iteration": 5}}}}}},
        ["methods.itq.defaults.by_bits.12.iteration", "did you mean 'iterations'"],
    ),
    "by_bits of something that is not a length": (
        {"methods": {"itq": {"defaults": {"by_bits": {"twelve": {"iterations": 5}}}}}},
        ["methods.itq.defaults.by_bits", "twelve"],
    ),
    "hyper-parameters of an unknown protocol": (
        {"methods": {"itq": {"protocols": {"digit": {"iterations": 5}}}}},
        ["methods.itq.protocols.digit", "did you mean 'digits'"],
    ),
    "hyper-parameters that are not a mapping": (
        {"methods": {"itq": {"defaults": 5}}},
        ["methods.itq.defaults", "object"],
    ),
    "hyper-parameter of another type": (
        {"methods": {"itq": {"defaults": {"iterations": "many"}}}},
        ["methods.itq.defaults.iterations", "'many'"],
    ),
    "5e-4, which is text in YAML": (
        {"methods": {"talr_ap": {"defaults": yaml.safe_load("weight_decay: 5e-4")}}},
        ["methods.talr_ap.defaults.weight_decay", "5e-4"],
    ),
    "variant of an unknown method": (
        {"methods": {"mine": {"class": "talr_pa"}}},
        ["methods.mine.class", "unknown method 'talr_pa'", "did you mean 'talr_ap'"],
    ),
    "variant of a variant": (
        {"methods": {"a": {"class": "talr_ap"}, "b": {"class": "a"}}},
        ["methods.b.class", "a is itself a variant", "talr_ap"],
    ),
    "variant named like a method": (
        {"methods": {"mihash": {"class": "talr_ap"}}},
        ["methods.mihash.class", "methods/mihash.py", "another name"],
    ),
    "hyper-parameter that the class of a variant has not": (
        {"methods": {"mine": {"class": "talr_ap", "defaults": {"tanh_scales": 5}}}},
        ["methods.mine.defaults.tanh_scales", "did you mean 'tanh_scale'"],
    ),
    "colour that is none": (
        {"methods": {"mine": {"class": "talr_ap", "colour": "redd"}}},
        ["methods.mine.colour", "'redd'"],
    ),
    "marker that is none": (
        {"methods": {"mine": {"class": "talr_ap", "marker": "ss"}}},
        ["methods.mine.marker", "'ss'"],
    ),
    "hyper-parameter that the method inherits but never uses": (
        {"methods": {"dpsh": {"defaults": {"tanh_scale": 7}}}},
        ["methods.dpsh.defaults.tanh_scale", "dpsh has no such hyper-parameter"],
    ),
    "misspelt variant in a table": (
        changed("tables", "mine", "methods", to=["talr_ap_continuatoin"]),
        ["tables.mine.methods", "did you mean 'talr_ap_continuation'"],
    ),
    "value of an unknown protocol": (of_published(protocol="digit"), ["values[0].protocol", "mean 'digits'"]),
    "value of an unknown metric": (
        of_published(metric="app"),
        ["published.mine.values[0].metric", "'app'", "mean 'ap'"],
    ),
    "value of a misspelt method": (
        of_published(method="talr_pa"),
        ["published.mine.values[0].method", "'talr_pa'", "mean 'talr_ap'", "`methods`"],
    ),
    "value in percent": (
        of_published(value=36.1),
        ["published.mine.values[0].value", "between 0 and 1", "36.1", "fractions"],
    ),
    "negative value": (of_published(value=-0.1), ["published.mine.values[0].value", "between 0 and 1"]),
    "published method that no value has": (
        of_published({"cnnh": {"title": "CNNH"}}, method="lsh"),
        ["published.mine.methods.cnnh", "no value"],
    ),
    "published method without a title": (
        of_published({"cnnh": {}}, method="cnnh"),
        ["published.mine.methods.cnnh", "'title' is missing"],
    ),
    "claim on an unknown metric": (
        of_claim(where={"metric": "app"}),
        ["claims.mine.claims[0].where.metric", "'app'", "mean 'ap'"],
    ),
    "claim on unknown metrics": (
        of_claim(where={"metric": ["ap", "mAP@100"]}),
        ["claims.mine.claims[0].where.metric", "'mAP@100'", "mean 'ap@K'"],
    ),
    "side of a claim on an unknown metric": (
        of_claim(kind="side_above", left={"metric": "ap"}, right={"metric": "apat100"}),
        ["claims.mine.claims[0].right.metric", "'apat100'"],
    ),
    "tie range of a metric that has none": (
        of_claim(kind="tie_ranges_shrink", where={"metric": "precision_radius_2"}),
        ["claims.mine.claims[0].where.metric", "has no range"],
    ),
    "continuous axis of another kind": (
        space_of({"uniform": [0.1, 1.0]}),
        ["tuning.mine.space.learning_rate", "'log_uniform' is missing"],
    ),
    "continuous axis from 0": (
        space_of({"log_uniform": [0, 1.0]}),
        ["tuning.mine.space.learning_rate.log_uniform[0]", "minimum of 0"],
    ),
    "continuous axis upside down": (
        space_of({"log_uniform": [1.0, 0.1]}),
        ["tuning.mine.space.learning_rate.log_uniform", "a lower and a higher number"],
    ),
    "continuous axis of a number that must be whole": (
        space_of({"log_uniform": [0.5, 8]}, "epochs"),
        ["tuning.mine.space.epochs", "talr_ap must be int, not 0.5"],
    ),
    "settings of trials that no method has": (
        {"tuning": {"mine": {**space_of([0.1])["tuning"]["mine"], "trial_settings": {"epoch": 5}}}},
        ["tuning.mine.trial_settings.epoch", "did you mean 'epochs'"],
    ),
    "settings of trials of another type": (
        {"tuning": {"mine": {**space_of([0.1])["tuning"]["mine"], "trial_settings": {"epochs": 0.5}}}},
        ["tuning.mine.trial_settings.epochs", "talr_ap must be int, not 0.5"],
    ),
    "settings of trials that are searched, too": (
        {"tuning": {"mine": {**space_of([0.1])["tuning"]["mine"], "trial_settings": {"learning_rate": 0.1}}}},
        ["tuning.mine.trial_settings.learning_rate", "is in the space, too"],
    ),
    "candidates of an unknown method": (
        {
            "tuning": {
                "mine": space_of([0.1])["tuning"]["mine"] | {"candidates": {"itk": [{"iterations": 5}]}}
            }
        },
        ["tuning.mine.candidates.itk", "mean 'itq'"],
    ),
    "candidate with a hyper-parameter that does not exist": (
        {"tuning": {"mine": space_of([0.1])["tuning"]["mine"] | {"candidates": {"talr_ap": [{"epoch": 5}]}}}},
        ["tuning.mine.candidates.talr_ap[0].epoch", "did you mean 'epochs'"],
    ),
    "candidate by lengths": (
        {
            "tuning": {
                "mine": space_of([0.1])["tuning"]["mine"]
                | {"candidates": {"talr_ap": [{"epochs": 5}, {"by_bits": {8: {"epochs": 5}}}]}}
            }
        },
        ["tuning.mine.candidates.talr_ap[1].by_bits", "is for all lengths"],
    ),
    "candidate with a setting of all trials": (
        {
            "tuning": {
                "mine": space_of([0.1])["tuning"]["mine"]
                | {"candidates": {"talr_ap": [{"epochs": 5}]}, "trial_settings": {"epochs": 6}}
            }
        },
        ["tuning.mine.candidates.talr_ap[0].epochs", "is among the trial_settings, too"],
    ),
    "fewer further trials than none": (
        {"tuning": {"mine": {"protocol": "digits", "methods": ["itq"], "bits": [8], "widen": -1}}},
        ["tuning.mine.widen", "minimum of 0"],
    ),
    "choice for an unknown protocol": (
        {"tuned": {"digit": {"itq": {"search": {"trials": 2}}}}},
        ["--configfile: tuned.digit", "did you mean 'digits'"],
    ),
    "choice for an unknown method": (
        {"tuned": {"digits": {"iqt": {"search": {"trials": 2}}}}},
        ["tuned.digits.iqt", "did you mean 'itq'"],
    ),
    "choice of an unknown hyper-parameter": (
        {"tuned": {"digits": {"itq": {"search": {"trials": 2}, "iteration": 3}}}},
        ["tuned.digits.itq.iteration", "did you mean 'iterations'"],
    ),
    "choice of a value of another type": (
        {"tuned": {"digits": {"itq": {"search": {"trials": 2}, "by_bits": {8: {"iterations": "x"}}}}}},
        ["tuned.digits.itq.by_bits.8.iterations", "int", "'x'"],
    ),
    "choice of nobody": (
        {"tuned": {"digits": {"itq": {"iterations": 3}}}},
        ["tuned.digits.itq", "'search' is missing"],
    ),
    "choice after no trial": (
        {"tuned": {"digits": {"itq": {"search": {"name": "x"}}}}},
        ["tuned.digits.itq.search", "'trials' is missing"],
    ),
    "choice with an unknown key of its search": (
        {"tuned": {"digits": {"itq": {"search": {"trials": 2, "trails": 2}}}}},
        ["tuned.digits.itq.search.trails", "did you mean 'trials'"],
    ),
    "trials at something that is not a length": (
        {"tuned": {"digits": {"itq": {"search": {"trials": 2, "tried": {"many": 2}}}}}},
        ["tuned.digits.itq.search.tried.many", "a number of bits"],
    ),
    "choice for a method that takes none": (
        {
            "methods": {"plain": {"class": "itq", "tuned": False}},
            "tuned": {"digits": {"plain": {"search": {"trials": 2}}}},
        },
        ["tuned.digits.plain", "has `tuned: false`"],
    ),
    "search for a method that takes no choice": (
        {
            "methods": {"plain": {"class": "itq", "tuned": False}},
            "tuning": {"mine": {"protocol": "digits", "methods": ["plain"], "bits": [8]}},
        },
        ["tuning.mine.methods", "plain has `tuned: false`"],
    ),
    "search of a method's settings, beside what tuned has": (
        {"methods": {"itq": {"defaults": {"search": {"trials": 2}}}}},
        ["methods.itq.defaults.search", "no such hyper-parameter"],
    ),
    "tuning by an unknown metric": (
        {
            "tuning": {
                "mine": {
                    "protocol": "digits",
                    "methods": ["itq"],
                    "bits": [8],
                    "space": {"iterations": [1]},
                    "metric": "mAP",
                }
            }
        },
        ["tuning.mine.metric", "'mAP'", "mean 'ap'"],
    ),
    "mAP": (changed("tables", "mine", "blocks", 0, "metric", to="mAP"), ["metric", "'mAP'", "mean 'ap'"]),
    "unknown key of a table": (
        changed("tables", "mine", "method", to=["lsh"]),
        ["tables.mine.method", "did you mean 'methods'"],
    ),
    "table without blocks": (
        changed("tables", "mine", "blocks", to=None),
        ["tables.mine", "'blocks' is missing"],
    ),
    "no blocks": (changed("tables", "mine", "blocks", to=[]), ["tables.mine.blocks"]),
    "unknown method in a table": (
        changed("tables", "mine", "methods", to=["talr_ap", "mihas"]),
        ["tables.mine.methods", "'mihas'", "did you mean 'mihash'"],
    ),
    "method twice": (
        changed("tables", "mine", "methods", to=["lsh", "lsh"]),
        ["tables.mine.methods", "unique"],
    ),
    "no seeds": (changed("tables", "mine", "seeds", to=[]), ["tables.mine.seeds"]),
    "duplicate seeds": (changed("tables", "mine", "seeds", to=[1, 1]), ["tables.mine.seeds", "unique"]),
    "negative seed": (changed("tables", "mine", "seeds", to=[-1]), ["tables.mine.seeds[0]", "minimum of 0"]),
    "seeds as a number": (changed("tables", "mine", "seeds", to=3), ["tables.mine.seeds", "array"]),
    "unknown published source": (
        changed("tables", "mine", "published", to=["he2019"]),
        ["tables.mine.published", "did you mean 'he2018'"],
    ),
    "unknown protocol": (
        changed("tables", "mine", "blocks", 0, "protocol", to="digit"),
        ["tables.mine.blocks[0].protocol", "did you mean 'digits'"],
    ),
    "unknown metric": (
        changed("tables", "mine", "blocks", 0, "metric", to="map"),
        ["tables.mine.blocks[0].metric", "'map'", "ndcg"],
    ),
    "metric at a cut that is not scored": (
        changed("tables", "mine", "blocks", 0, "metric", to="ap@20"),
        ["tables.mine.blocks[0].metric", "ap@20 is not scored", "add 20", "mine", "[10]"],
    ),
    "bits 0": (
        changed("tables", "mine", "blocks", 0, "bits", to=[0]),
        ["tables.mine.blocks[0].bits[0]", "minimum of 1"],
    ),
    "bits 2000": (
        changed("tables", "mine", "blocks", 0, "bits", to=[8, 2000]),
        ["tables.mine.blocks[0].bits[1]", "maximum of 1024"],
    ),
    "bits as text": (
        changed("tables", "mine", "blocks", 0, "bits", to=["8"]),
        ["tables.mine.blocks[0].bits[0]", "integer"],
    ),
    "bits twice": (
        changed("tables", "mine", "blocks", 0, "bits", to=[8, 8]),
        ["tables.mine.blocks[0].bits", "unique"],
    ),
    "method of a block that the table has not": (
        changed("tables", "mine", "blocks", 0, "methods", to=["itq"]),
        ["tables.mine.blocks[0].methods", "itq", "lsh, talr_ap"],
    ),
    "method of a block twice": (
        changed("tables", "mine", "blocks", 0, "methods", to=["lsh", "lsh"]),
        ["tables.mine.blocks[0].methods"],
    ),
    # What the table's own code would only say after the last run was scored:
    "an unknown figure": (
        changed("tables", "mine", "figures", to={"tie_range": {}}),
        ["tables.mine.figures.tie_range", "no figure is named 'tie_range'; did you mean 'tie_ranges'?"],
    ),
    "a figure of an unknown method": (
        changed("tables", "mine", "figures", to={"tie_ranges": {"methods": ["lsg"]}}),
        ["tables.mine.figures.tie_ranges", "no method 'lsg'; did you mean 'lsh'?"],
    ),
    "an unknown option of a figure": (
        changed("tables", "mine", "figures", to={"tie_ranges": {"widht": 3}}),
        ["tables.mine.figures.tie_ranges", "widht"],
    ),
    "an unknown method of the gallery": (
        changed("tables", "mine", "figures", to={"gallery": {"methods": ["lsg"]}}),
        ["tables.mine.figures.gallery", "no method 'lsg'; did you mean 'lsh'?"],
    ),
    "an option that the gallery has not": (
        changed("tables", "mine", "figures", to={"gallery": {"width": 3}}),
        ["tables.mine.figures.gallery", "the gallery takes `methods` only, not 'width'"],
    ),
    "a cell asked for twice": (
        changed("tables", "mine", "blocks", to=[BLOCK, BLOCK | {"bits": [12, 8]}]),
        ["tables.mine.blocks[1]", "twice"],
    ),
    "published source under another name": (
        {
            "published": {"mine": {"source": "other2020", "values": []}},
            **changed("tables", "mine", "published", to=["mine"]),
        },
        ["published.mine.source", "other2020"],
    ),
    "published figure that is not a number": (
        {
            "published": {
                "mine": {
                    "source": "mine",
                    "values": [
                        {"protocol": "mine", "metric": "ap", "method": "lsh", "bits": 8, "value": "high"}
                    ],
                }
            }
        },
        ["published.mine.values[0].value", "'high'"],
    ),
    # Names become folders and file names, and what a rule's pattern does not match would not be found:
    "name of a table that is not a file name": (
        {"tables": {"My-Table": TABLE}, "protocols": {"mine": MINE}},
        ["tables.My-Table", "name"],
    ),
    "name of a protocol that is not a folder name": (
        {"protocols": {"Mine": MINE}},
        ["protocols.Mine", "name"],
    ),
    "name of a dataset that is not a folder name": (
        {"datasets": {"../mine": {"loader": "digits"}}},
        ["datasets.../mine", "name"],
    ),
}


@pytest.mark.parametrize(("overrides", "words"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_one_line_that_names_key_and_remedy(overrides, words):
    line = line_of(overrides)
    assert line.startswith("--configfile: ")
    for word in words:
        assert word in line


# -- the same in the files of a checkout -------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path):
    for package in ("config", "methods", "workflow"):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignore)
    return tmp_path


IN_FILES = {
    "config/config.yaml": [
        ("device: gpu\n", "config/config.yaml: device: 'gpu' is not allowed"),
        ("devise: cpu\n", "config/config.yaml: devise: unknown key; did you mean 'device'"),
        ("- device\n", "config/config.yaml"),
        ("device: [cpu\n", "line 2: not valid YAML"),
        (None, "No such file"),
        (b"\xff\xfe\x00d", "config.yaml"),
    ],
    "config/datasets.yaml": [
        ("digits: {loader: digit}\n", "config/datasets.yaml: digits.loader: unknown loader 'digit'"),
        ("- digits\n", "config/datasets.yaml: must be a mapping"),
        ("digits: {loader: digits\n", "not valid YAML"),
    ],
    "config/protocols.yaml": [
        ("digits: {dataset: digits}\n", "config/protocols.yaml: digits: 'split' is missing"),
        ("digits:\n", "config/protocols.yaml: digits: "),
    ],
    "config/methods.yaml": [
        ("itq: {default: {}}\n", "config/methods.yaml: itq.default: unknown key; did you mean 'defaults'"),
        ("itqq: {}\n", "config/methods.yaml: itqq: unknown method 'itqq'; did you mean 'itq'"),
    ],
    "config/tables/quick.yaml": [
        ("", "config/tables/quick.yaml: "),
        ("methods: [lsh]\nblocks: {}\n", "config/tables/quick.yaml: blocks: "),
        ("methods: [lsh]\nblocks: [\n", "quick.yaml"),
    ],
    "config/published/he2018.yaml": [
        ("source: he2018\n", "config/published/he2018.yaml: 'values' is missing"),
    ],
    "methods/broken.py": [
        ("class Broken\n", "methods/broken.py, line 1"),
        ('"""No class. 2020."""\n', "methods/broken.py must define one class"),
    ],
}


@pytest.mark.parametrize(
    ("file", "text", "beginning"),
    [(file, text, beginning) for file, cases in IN_FILES.items() for text, beginning in cases],
)
def test_a_mistake_in_a_file_is_one_line_that_names_the_file(checkout, file, text, beginning):
    path = checkout / file
    if text is None:
        path.unlink()
    else:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigurationError) as caught:
        load(checkout)
    line = str(caught.value)
    assert "\n" not in line
    assert beginning in line
    assert path.name in line


# -- checks that read a dataset ----------------------------------------------------------------------------

IMPOSSIBLE = {
    "more training items than there are": (
        {"split": {"kind": "per_class", "query": 20, "training": 500}},
        ["20 + 500", "class"],
    ),
    "more queries than there are": ({"split": {"kind": "random", "query": 1797, "training": 1}}, ["1797"]),
    "per label on classes": ({"split": {"kind": "per_label", "query": 2, "training": 3}}, ["multi-hot"]),
    "affinity of labels that it has not": ({"affinity": {"kind": "shared_label"}}, ["affinity", "class"]),
    "pixels of vectors": ({"input": {"kind": "pixels"}}, ["pixels", "features"]),
    "no such file": ({"dataset": "absent"}, ["absent.npz", "TIEBENCH_RESOURCES", "resources/downloads"]),
}


@pytest.mark.parametrize(("change", "words"), IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_what_a_dataset_cannot_give_is_one_line_that_names_protocol_and_dataset(change, words):
    absent = {"loader": "features_file", "sources": [{"file": "absent.npz"}]}
    configuration = load(ROOT, {"protocols": {"mine": MINE | change}, "datasets": {"absent": absent}})
    with pytest.raises(ConfigurationError) as caught:
        configuration.check_split("mine")
    line = str(caught.value)
    assert "\n" not in line
    for word in [*words, change.get("dataset", "protocol mine on dataset digits")]:
        assert word in line


def test_a_split_that_fits_passes():
    load(ROOT, GOOD).check_split("mine")


def test_a_missing_source_says_how_to_obtain_it():
    absent = {
        "loader": "features_file",
        "sources": [{"file": "absent.npz", "instructions": "ask the authors"}],
    }
    with pytest.raises(ConfigurationError, match=r"absent\.npz.*ask the authors"):
        load(ROOT, {"datasets": {"absent": absent}}).sources.of_dataset("absent")


def test_a_tilde_in_the_search_folders_is_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "data").mkdir(parents=True)
    (tmp_path / "home" / "data" / "here.npz").touch()
    # As from a quoted value, and from a second entry, which no shell expands.
    monkeypatch.setenv("TIEBENCH_RESOURCES", os.pathsep.join([str(tmp_path), "~/data"]))
    dataset = {"loader": "features_file", "sources": [{"file": "here.npz"}]}
    sources = load(ROOT, {"datasets": {"here": dataset}}).sources
    assert sources.of_dataset("here") == [str(tmp_path / "home" / "data" / "here.npz")]
    assert sources.absent_folders() is None


def test_a_search_folder_that_does_not_exist_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "file").touch()
    folders = [str(tmp_path / name) for name in ("data", "dtaa", "file")]
    monkeypatch.setenv("TIEBENCH_RESOURCES", os.pathsep.join(folders))
    dataset = {"loader": "features_file", "sources": [{"file": "absent.npz"}]}
    sources = load(ROOT, {"datasets": {"absent": dataset}}).sources
    with pytest.raises(ConfigurationError) as caught:
        sources.of_dataset("absent")
    data, misspelt, file = folders
    assert f"resources/downloads, {data}, {misspelt} (no such folder), {file} (not a folder)" in str(
        caught.value
    )
    # Also where nothing is missing: a file that is downloaded again may lie in the folder that was meant.
    line = sources.absent_folders()
    assert line.startswith(f"TIEBENCH_RESOURCES: {misspelt}, {file} are not folders")
    assert data not in line.replace(misspelt, "")


def test_sources_are_sought_in_downloads_then_in_the_named_folders_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in [*folders, tmp_path / "resources" / "downloads"]:
        folder.mkdir(parents=True)
    monkeypatch.setenv("TIEBENCH_RESOURCES", os.pathsep.join(map(str, folders)))
    dataset = {"loader": "features_file", "sources": [{"file": "here.npz"}]}
    configuration = load(ROOT, {"datasets": {"here": dataset}})
    (folders[1] / "here.npz").touch()
    assert configuration.sources.of_dataset("here") == [str(folders[1] / "here.npz")]
    (folders[0] / "here.npz").touch()
    assert configuration.sources.of_dataset("here") == [str(folders[0] / "here.npz")]
    Path("resources/downloads/here.npz").touch()
    assert configuration.sources.of_dataset("here") == ["resources/downloads/here.npz"]
    absolute = {"loader": "features_file", "sources": [{"file": str(folders[1] / "here.npz")}]}
    assert load(ROOT, {"datasets": {"here": absolute}}).sources.of_dataset("here") == [
        str(folders[1] / "here.npz")
    ]


# -- merging, cells, hyper-parameters ----------------------------------------------------------------------


def test_a_user_s_values_replace_key_by_key_and_leave_the_rest():
    plain = load(ROOT)
    changes = {
        "device": "auto",
        "protocols": {"digits": {"split": {"kind": "random", "query": 3, "training": "all"}}},
        "methods": {"talr_ap": {"defaults": {"epochs": 3}}},
        "tables": {"quick": {"seeds": [7]}},
    }
    kept = copy.deepcopy(changes)
    mine = load(ROOT, changes)
    assert changes == kept
    assert mine["device"] == "auto"
    assert mine["threads"] == plain["threads"]
    # A split is one thing: a key left over from another kind would be nonsense.
    assert mine["protocols"]["digits"]["split"] == {"kind": "random", "query": 3, "training": "all"}
    assert mine["protocols"]["digits"]["at"] == plain["protocols"]["digits"]["at"]
    assert mine["methods"]["talr_ap"]["defaults"] == plain["methods"]["talr_ap"]["defaults"] | {"epochs": 3}
    assert mine["methods"]["mihash"] == plain["methods"]["mihash"]
    assert mine["tables"]["quick"] == plain["tables"]["quick"] | {"seeds": [7]}


def test_hyperparameters_go_from_general_to_special():
    methods = {
        "talr_ap": {
            "defaults": {
                "epochs": 1,
                "tanh_scale": 2,
                "momentum": 0.5,
                "by_bits": {8: {"tanh_scale": 3, "bins": 4}},
            },
            "protocols": {
                "mine": {"momentum": 0.6, "bins": 5, "by_bits": {"8": {"momentum": 0.7}}},
                "inheriting": {"bins": 6},
            },
        }
    }
    protocols = {"mine": MINE, "other": MINE} | {
        name: MINE | {"hyperparameters_of": "mine"} for name in ("inheriting", "inheriting_all")
    }
    configuration = load(ROOT, GOOD | {"protocols": protocols, "methods": methods, "device": "auto"})

    def chosen(protocol, bits):
        values = Plan(configuration).hyperparameters(Cell(protocol, "talr_ap", bits))
        assert values.pop("device") == "auto"
        assert "by_bits" not in values
        return {name: values[name] for name in ("epochs", "tanh_scale", "momentum", "bins")}

    assert chosen("mine", 8) == {"epochs": 1, "tanh_scale": 3, "momentum": 0.7, "bins": 5}
    assert chosen("mine", 9) == {"epochs": 1, "tanh_scale": 2, "momentum": 0.6, "bins": 5}
    assert chosen("other", 8) == {"epochs": 1, "tanh_scale": 3, "momentum": 0.5, "bins": 4}
    assert chosen("inheriting_all", 8) == chosen("mine", 8)
    assert chosen("inheriting", 8) == chosen("mine", 8) | {"bins": 6}
    assert Plan(configuration).hyperparameters(Cell("mine", "lsh", 8)) == {}  # it knows no device


def test_published_scores_of_a_method_that_the_suite_has_not_need_its_title():
    cnnh = {"cnnh": {"title": "CNNH"}}
    found = load(ROOT, of_published(cnnh, method="cnnh"))
    assert found["published"]["mine"]["methods"] == cnnh
    # A claim may then name the method too.
    load(ROOT, of_published(cnnh, method="cnnh") | of_claim(method="cnnh"))
    with pytest.raises(ConfigurationError, match="'cnnh'"):
        load(ROOT, of_published(method="cnnh"))


@pytest.mark.parametrize(
    ("annotation", "accepted", "refused"),
    [
        ("int", [1, -3], [1.0, True, "1", None]),
        ("float", [1, 0.5], [False, "0.5"]),
        ("bool", [True], [1, "yes"]),
        ("int | None", [None, 2], [False, 2.5]),
        ("list[int]", [[], [1, 2]], [[1, "a"], 1, {}]),
        ("tuple[float, ...]", [[0.5, 1]], [0.5, ["a"]]),
        ("tuple[int, str]", [[1, "a"]], [[1], ["a", 1]]),
        ("Literal['sgd', 'adam']", ["adam"], ["adm", 1, None]),
        ("Literal['cosine'] | None", [None, "cosine"], ["cos"]),
        ("list[int | None]", [[1, None]], [[1.5]]),
        ("SomeClass", [1, "a", None], []),
    ],
)
def test_a_value_fits_the_annotation_of_its_field(annotation, accepted, refused):
    assert all(hyperparameter_checks.fits(value, annotation) for value in accepted)
    assert not any(hyperparameter_checks.fits(value, annotation) for value in refused)


VARIANTS = {
    "talr_ap": {
        "defaults": {"epochs": 1, "tanh_scale": 2.0, "bins": 4},
        "protocols": {"mine": {"momentum": 0.6, "by_bits": {8: {"bins": 5, "tanh_scale": 3.0}}}},
    },
    "wide": {
        "class": "talr_ap",
        "title": "TALR-AP, wide",
        "defaults": {"tanh_scale": 9.0},
        "protocols": {"mine": {"by_bits": {8: {"epochs": 7}}}},
    },
    "bare": {"class": "talr_ap"},
}


def test_a_variant_has_its_class_s_hyperparameters_with_its_own_on_top():
    configuration = load(ROOT, GOOD | {"methods": VARIANTS})

    def chosen(method, protocol, bits):
        values = Plan(configuration).hyperparameters(Cell(protocol, method, bits))
        return {name: values[name] for name in ("epochs", "tanh_scale", "momentum", "bins")}

    assert chosen("wide", "mine", 8) == {"epochs": 7, "tanh_scale": 9.0, "momentum": 0.6, "bins": 5}
    assert chosen("wide", "mine", 9) == {"epochs": 1, "tanh_scale": 9.0, "momentum": 0.6, "bins": 4}
    assert chosen("bare", "mine", 8) == chosen("talr_ap", "mine", 8)
    assert chosen("talr_ap", "mine", 8) == {"epochs": 1, "tanh_scale": 3.0, "momentum": 0.6, "bins": 5}


def test_a_variant_inherits_what_its_class_states_and_is_known_by_its_own_name():
    configuration = load(ROOT, GOOD | {"methods": VARIANTS})
    of_class, variant = configuration.metadata("talr_ap"), configuration.metadata("wide")
    assert variant.name == "wide"
    assert (
        (variant.family, variant.supervision)
        == (of_class.family, of_class.supervision)
        == ("listwise", "binary")
    )
    assert variant.parameters == of_class.parameters
    assert (variant.title, variant.colour, variant.marker) == ("TALR-AP, wide", None, None)
    assert configuration.metadata("bare").title == "bare"  # not its class's: two rows would share a title
    restyled = load(ROOT, {"methods": {"talr_ap": {"title": "Ours", "colour": "#112233", "marker": "D"}}})
    own = restyled.metadata("talr_ap")
    assert (own.title, own.colour, own.marker) == ("Ours", "#112233", "D")
    assert [configuration.class_of(name) for name in ("wide", "bare", "lsh")] == ["talr_ap", "talr_ap", "lsh"]
    assert {"wide", "bare", "lsh", "talr_ap_continuation"} <= set(configuration.methods_known())
    for ask in (configuration.metadata, configuration.class_of):
        with pytest.raises(ConfigurationError, match="unknown method 'wid'; did you mean 'wide'"):
            ask("wid")


def test_the_continuation_of_the_appendix_is_talr_ap_whose_scale_increases_to_40():
    configuration = load(ROOT)
    plain = Plan(configuration).hyperparameters(Cell("cifar10_s1", "talr_ap", 24))
    variant = Plan(configuration).hyperparameters(Cell("cifar10_s1", "talr_ap_continuation", 24))
    assert variant == plain | {"tanh_scale_final": 40}
    assert {cell.protocol for cell in Plan(configuration).cells("table_alpha")} == {"cifar10_s1"}


BY_CLASS = '''"""By class: labels only. 2020."""

from methods.base import HashingMethod


class ByClass(HashingMethod):
    supervision = "labels"
'''


def test_cells_are_each_run_once_and_refusals_are_known_beforehand(checkout):
    (checkout / "methods" / "by_class.py").write_text(BY_CLASS)
    blocks = [
        BLOCK,
        BLOCK | {"metric": "ndcg", "bits": [12, 8], "methods": ["by_class"]},
        BLOCK | {"protocol": "digits_levels", "metric": "ndcg"},
    ]
    table = {"supervised_bounds": False, "seeds": [3, 1], "methods": ["lsh", "by_class"], "blocks": blocks}
    configuration = load(checkout, {"protocols": {"mine": MINE}, "tables": {"mine": table}})
    cells = Plan(configuration).cells("mine")
    assert cells == (
        Cell("mine", "lsh", 8),
        Cell("mine", "by_class", 8),
        Cell("mine", "by_class", 12),
        Cell("digits_levels", "lsh", 8),
        Cell("digits_levels", "by_class", 8),
    )
    reasons = [Plan(configuration).refusal(cell) for cell in cells]
    assert reasons[:4] == [None] * 4
    assert "by_class" in reasons[4]
    assert "digits_levels" in reasons[4]


BOTH = ("itq", "lsh")


def table(seeds, bits, methods=BOTH, protocol="mine"):
    block = {"protocol": protocol, "metric": "ap", "bits": bits}
    return {"seeds": seeds, "methods": list(methods), "blocks": [block], "supervised_bounds": False}


def groups(tables, root=ROOT, **protocols):
    """Groups of these protocols, as (protocol, methods, bits, runs)."""
    found = run_groups.groups(Plan(load(root, {"protocols": protocols, "tables": tables})))
    return [(g.protocol, g.methods, g.bits, g.runs) for g in found if g.protocol in protocols]


def test_without_runs_per_job_every_run_is_a_job_of_its_own():
    assert groups({"a": table([0, 1, 2], [8, 16])}, mine=MINE) == []


def test_seeds_go_together_by_their_number_and_lengths_by_the_protocol_s_list():
    mine = MINE | {"runs_per_job": {"seeds": 3, "bits": [16, 8, 32]}}
    # Seed 4 is the only one of 3 to 5; at 12 bits, which are not on the list, it is a job of its own.
    assert groups({"a": table([0, 1, 2, 4], [16, 8, 12])}, mine=mine) == [
        ("mine", BOTH, (8, 16, 32), tuple((bits, seed) for bits in (8, 16) for seed in (0, 1, 2))),
        ("mine", BOTH, (8, 16, 32), ((8, 4), (16, 4))),
        ("mine", BOTH, (12,), ((12, 0), (12, 1), (12, 2))),
    ]


def test_a_group_holds_what_all_tables_ask_for_and_nothing_else():
    mine = MINE | {"runs_per_job": {"seeds": 2, "bits": [8, 16]}}
    asked = {
        "a": table([0, 1], [8]),
        "b": table([0], [16], methods=["lsh", "mihash"]),
        "c": table([0], [8], methods=["mihash"]),
        "d": table([2], [8], methods=["talr_ap"]),  # alone
    }
    assert groups(asked, mine=mine) == [
        ("mine", ("itq",), (8, 16), ((8, 0), (8, 1))),
        ("mine", ("lsh",), (8, 16), ((8, 0), (8, 1), (16, 0))),
        ("mine", ("mihash",), (8, 16), ((8, 0), (16, 0))),
    ]


def test_protocols_are_grouped_each_by_its_own_setting():
    pair, seeds = {"runs_per_job": {"bits": [8, 16]}}, {"runs_per_job": {"seeds": 2}}
    asked = {"a": table([0, 1], [8, 16]), "b": table([0, 1], [8, 16], protocol="other")}
    assert groups(asked, mine=MINE | pair, other=MINE | seeds) == [
        ("mine", BOTH, (8, 16), ((8, 0), (16, 0))),
        ("mine", BOTH, (8, 16), ((8, 1), (16, 1))),
        ("other", BOTH, (8,), ((8, 0), (8, 1))),
        ("other", BOTH, (16,), ((16, 0), (16, 1))),
    ]


def test_what_a_method_cannot_serve_is_in_no_group(checkout):
    (checkout / "methods" / "by_class.py").write_text(BY_CLASS)
    levels = {"affinity": {"kind": "distance_levels", "percentiles": [5], "levels": [1]}}
    mine = MINE | levels | {"runs_per_job": {"bits": [8, 16]}}
    asked = {"a": table([0], [8, 16], methods=["by_class", "lsh"])}
    assert groups(asked, root=checkout, mine=mine) == [("mine", ("lsh",), (8, 16), ((8, 0), (16, 0)))]


# -- the code that decides a number ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "module",
    ["methods.lsh", "methods.talr_ap", "methods.mihash", "datasets.splits", "datasets.features_file"],
)
def test_code_files_hold_every_module_that_importing_loads(module):
    program = (
        "import importlib, sys; from pathlib import Path; importlib.import_module(sys.argv[1]);"
        "files = [getattr(m, '__file__', None) for m in list(sys.modules.values())];"
        "print(*[f for f in files if f and Path(f).is_relative_to(Path.cwd()) and '.venv' not in f])"
    )
    listed = subprocess.run(
        [sys.executable, "-c", program, module], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = {str(Path(file).relative_to(ROOT)) for file in listed.stdout.split()}
    files = set(code_files(ROOT, module))
    of_packages = {f"{path}/__init__.py" for path in ("methods", "datasets", "tiebench")}
    assert loaded - of_packages - {"tiebench/_version.py"} <= files
    assert all((ROOT / file).is_file() for file in files)


def test_code_files_of_a_method_hold_no_other_method():
    for name in ("lsh", "itq", "mihash", "talr_ap"):
        files = code_files(ROOT, f"methods.{name}")
        others = {
            Path(f).stem for f in files if Path(f).parent == Path("methods") and not f.startswith("methods/_")
        }
        assert others == {name}
    assert "methods/base/deep.py" not in code_files(ROOT, "methods.lsh")


def test_sources_are_described_before_anything_runs(tmp_path):
    """check_split reads labels and shapes: its errors name a wrong features file."""
    bad = tmp_path / "bad.npz"
    np.savez(bad, X=np.zeros((4, 2)), y=np.zeros(3, int))
    dataset = {"loader": "features_file", "sources": [{"file": str(bad)}]}
    configuration = load(
        ROOT, {"datasets": {"bad": dataset}, "protocols": {"mine": MINE | {"dataset": "bad"}}}
    )
    with pytest.raises(ConfigurationError, match=r"protocol mine on dataset bad: .*bad\.npz.*y has 3 rows"):
        configuration.check_split("mine")
