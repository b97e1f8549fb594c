"""Mistakes in the configuration: each ends in one line that names the place and what would be right."""

import ast
import copy
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from settings_once import BLOCK, GOOD, MINE

from workflow.code_dependencies import code_files
from workflow.configuration import dataset_checks, hyperparameter_checks
from workflow.configuration.merged import load, merge_settings
from workflow.configuration.sources import Place
from workflow.errors import ConfigurationError
from workflow.plan import groups as run_groups
from workflow.plan.runs import Cell, Plan

from conftest import ROOT, refused  # isort: skip


def test_a_mistake_is_looked_for_in_the_files_that_were_given():
    """The last that has most of the keys; --config is no file."""
    one, other = {"tables": {"mine": {"methods": ["itq"]}}}, {"tables": {"mine": {"seeds": [-1]}}}
    wrong = {"tables": {"mine": one["tables"]["mine"] | other["tables"]["mine"]}}
    wrong["tables"]["mine"]["blocks"] = [{"protocol": "digits", "metric": "ap", "bits": [8]}]
    for given, name in (
        ([("a.yaml", one), ("b.yaml", other)], "b.yaml"),
        ([("b.yaml", other), ("a.yaml", one)], "b.yaml"),
        ([("a.yaml", {})], "--config"),
        ([], "--configfile"),
    ):
        with pytest.raises(ConfigurationError, match=rf"^{name}: tables\.mine\.seeds"):
            load(ROOT, wrong, given)


@pytest.fixture
def checkout(tmp_path):
    for package in ("config", "methods", "workflow"):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignore)
    return tmp_path


IN_FILES = [
    ("config/config.yaml", "device: gpu\n", "config/config.yaml: device: 'gpu' is not allowed"),
    ("config/config.yaml", None, "No such file"),
    ("config/datasets.yaml", "digits: {loader: digit}\n", "digits.loader: unknown loader 'digit'"),
    ("config/protocols.yaml", "digits: {dataset: digits}\n", "digits: 'split' is missing"),
    ("config/methods.yaml", "itqq: {}\n", "itqq: unknown method 'itqq'; did you mean 'itq'"),
    ("config/tables/quick.yaml", "methods: [lsh]\nblocks: {}\n", "config/tables/quick.yaml: blocks: "),
    ("config/tables/quick.yaml", "", "config/tables/quick.yaml: 'blocks' is missing"),
    ("config/published/he2018.yaml", "source: he2018\n", "'values' is missing"),
    ("methods/broken.py", '"""No class. 2020."""\n', "methods/broken.py: must define one class"),
]


@pytest.mark.parametrize(("file", "text", "words"), IN_FILES)
def test_a_mistake_in_a_file_is_one_line_that_names_the_file(checkout, file, text, words):
    path = checkout / file
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    line = refused({}, checkout)
    assert words in line and path.name in line


IMPOSSIBLE = {
    "per label on classes": ({"split": {"kind": "per_label", "query": 2, "training": 3}}, ["multi-hot"]),
    "affinity of labels that it has not": ({"affinity": {"kind": "shared_label"}}, ["affinity", "class"]),
    "pixels of vectors": ({"input": {"kind": "pixels"}}, ["pixels", "features"]),
    "a network on vectors": ({"end_to_end": "small"}, ["end_to_end needs a dataset of images"]),
    "more queries than items": ({"split": {"kind": "random", "query": 5000, "training": 1}}, ["5000"]),
}


@pytest.mark.parametrize(("change", "words"), IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_what_a_dataset_cannot_give_is_one_line_that_names_protocol_and_dataset(change, words):
    configuration = load(ROOT, {"protocols": {"mine": MINE | change}})
    with pytest.raises(ConfigurationError) as caught:
        dataset_checks.check(configuration, "mine")
    line = str(caught.value)
    assert "\n" not in line
    assert [word for word in (*words, "protocol mine on dataset digits") if word not in line] == []


def test_sources_are_described_before_anything_runs(tmp_path):
    """dataset_checks reads labels and shapes: its errors name a wrong features file."""
    bad = tmp_path / "bad.npz"
    np.savez(bad, X=np.zeros((4, 2)), y=np.zeros(3, int))
    dataset = {"loader": "features_file", "sources": [{"file": str(bad)}]}
    protocols = {"mine": MINE | {"dataset": "bad"}}
    configuration = load(ROOT, {"datasets": {"bad": dataset}, "protocols": protocols})
    with pytest.raises(ConfigurationError, match=r"protocol mine on dataset bad: .*bad\.npz.*y has 3 rows"):
        dataset_checks.check(configuration, "mine")


def test_a_search_folder_that_does_not_exist_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "file").touch()
    folders = [str(tmp_path / name) for name in ("data", "dtaa", "file")]
    monkeypatch.setenv("TIEBENCH_RESOURCES", os.pathsep.join(folders))
    dataset = {"loader": "features_file", "sources": [{"file": "absent.npz"}]}
    missing = load(ROOT, {"datasets": {"absent": dataset}}).sources.missing()
    (line,) = (line for (_, *owner), (line, _) in missing.items() if owner == ["datasets", "absent"])
    data, misspelt, file = folders
    searched = f"resources/downloads, {data}, {misspelt} (no such folder), {file} (not a folder)"
    assert f"{searched}: put it into" in line
    assert "add its folder to TIEBENCH_RESOURCES" in line
    # Also where nothing is missing: a file that is downloaded again may lie in the folder that was meant.
    line = load(ROOT).sources.absent_folders()
    assert line.startswith(f"TIEBENCH_RESOURCES: {misspelt}, {file} are not folders")
    assert data not in line.replace(misspelt, "")


def test_a_search_folder_that_cannot_be_looked_into_is_as_one_that_does_not_exist(monkeypatch):
    folder = f"/{'d' * 256}"  # fails as one without permission does, also for the superuser
    monkeypatch.setenv("TIEBENCH_RESOURCES", folder)
    sources = load(ROOT).sources
    assert sources.absent_folders().startswith(f"TIEBENCH_RESOURCES: {folder} is not a folder")
    assert f"{folder} (no such folder)" in str(sources.missing())


@pytest.mark.parametrize("folder", ["/data/{2024}", "/data/a}"])
def test_braces_in_the_path_of_a_source_are_refused(monkeypatch, folder):
    dataset = {"loader": "features_file", "sources": [{"file": f"{folder}/a.npz"}]}
    with pytest.raises(ConfigurationError, match=r"must be a file name.* without braces"):
        load(ROOT, {"datasets": {"mine": dataset}})
    monkeypatch.setenv("TIEBENCH_RESOURCES", folder)
    with pytest.raises(ConfigurationError, match=r"TIEBENCH_RESOURCES: /data/.* braces for wildcards"):
        load(ROOT)


def test_sources_are_sought_in_downloads_then_in_the_named_folders_in_order(tmp_path, monkeypatch):
    """`~` is the home folder, also in a second entry, which no shell expands."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TIEBENCH_RESOURCES", os.pathsep.join([str(tmp_path / "first"), "~/data"]))
    folders = ["home/data", "first", "resources/downloads"]
    for folder in folders:
        Path(folder).mkdir(parents=True)
    sources = load(ROOT).sources
    assert sources.absent_folders() is None
    for folder in folders:  # each goes before those that have it already
        path = Path(folder, "here.npz")
        path.touch()
        found = sources.locate({"file": "here.npz"})
        assert (Path(found.path).absolute(), found.state) == (path.absolute(), "here")
    absolute = str(tmp_path / "home" / "data" / "here.npz")
    assert sources.locate({"file": absolute}) == Place(absolute, "here")


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


def test_files_are_put_over_one_another_as_over_the_repository():
    split = {"kind": "per_class", "query": 10, "training": 50, "folds": 3}
    one = {"protocols": {"mine": MINE | {"split": split, "input": {"kind": "features", "centre": False}}}}
    one |= {"tuned": None, "skip": ["a"]}
    other = {"protocols": {"mine": {"split": {"kind": "random", "query": 2, "training": 5}, "at": [7]}}}
    other |= {"tuned": {"digits": {"itq": {"search": {"trials": 4}, "iterations": 9}}}, "skip": ["b"]}
    last = {"protocols": {"mine": {"input": {"kind": "features"}}}}
    last |= {"tuned": {"digits": {"itq": {"search": {"trials": 5}}}}}
    before = copy.deepcopy([one, other, last])
    found = merge_settings(merge_settings(one, other), last)
    assert found["protocols"]["mine"] == MINE | other["protocols"]["mine"] | last["protocols"]["mine"]
    assert found["tuned"] == last["tuned"] and found["skip"] == ["b"]
    assert [one, other, last] == before


def test_two_places_of_an_anchor_are_checked_apart():
    """The checks of a table complete its blocks: with its methods, and the bounds."""
    text = """
        protocols:
          mine: {dataset: digits, split: {kind: random, query: 20, training: 60}, affinity: {kind: class}}
        tables:
          one: {methods: [lsh, itq], blocks: &blocks [{protocol: mine, metric: ap, bits: [8]}]}
          two: {methods: [sdh, talr_ap], blocks: *blocks}
    """
    tables = load(ROOT, yaml.safe_load(text))["tables"]
    assert tables["one"]["blocks"][0]["methods"] == ["lsh", "itq"]
    assert tables["two"]["blocks"][0]["methods"][:2] == ["sdh", "talr_ap"]


def test_hyperparameters_go_from_general_to_special():
    talr = yaml.safe_load("""
        defaults: {epochs: 1, tanh_scale: 2, momentum: 0.5, by_bits: {8: {tanh_scale: 3, bins: 4}}}
        protocols:
          mine: {momentum: 0.6, bins: 5, by_bits: {"8": {momentum: 0.7}}}
          inheriting: {bins: 6}
    """)
    protocols = {"mine": MINE, "other": MINE} | {
        name: MINE | {"hyperparameters_of": "mine"} for name in ("inheriting", "inheriting_all")
    }
    configuration = load(
        ROOT, GOOD | {"protocols": protocols, "methods": {"talr_ap": talr}, "device": "auto"}
    )

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
    value = {"protocol": "digits", "metric": "ap", "method": "cnnh", "bits": 8, "value": 0.5}
    mine = {"source": "mine", "values": [value]}
    claim = {"id": "a", "claim": "b", "of": "c", "stated_for": ["digits"], "kind": "best", "method": "cnnh"}
    # A claim may then name the method too.
    titled = {"published": {"mine": mine | {"methods": {"cnnh": {"title": "CNNH"}}}}}
    load(ROOT, titled | {"claims": {"mine": {"source": "mine", "claims": [claim]}}})
    assert "'cnnh'" in refused({"published": {"mine": mine}})


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


VARIANTS = yaml.safe_load("""
talr_ap:
  defaults: {epochs: 1, tanh_scale: 2.0, bins: 4}
  protocols: {mine: {momentum: 0.6, by_bits: {8: {bins: 5, tanh_scale: 3.0}}}}
wide:
  class: talr_ap
  title: TALR-AP, wide
  defaults: {tanh_scale: 9.0}
  protocols: {mine: {by_bits: {8: {epochs: 7}}}}
bare: {class: talr_ap}
""")


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
    assert (variant.family, variant.supervision) == (of_class.family, of_class.supervision)
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


def test_cells_are_each_run_once_and_refusals_are_known_beforehand():
    blocks = [
        BLOCK,
        BLOCK | {"metric": "ndcg", "bits": [12, 8], "methods": ["onehot"]},
        BLOCK | {"protocol": "digits_levels", "metric": "ndcg"},
    ]
    table = {"supervised_bounds": False, "seeds": [3, 1], "methods": ["lsh", "onehot"], "blocks": blocks}
    plan = Plan(load(ROOT, {"protocols": {"mine": MINE}, "tables": {"mine": table}}))
    cells = [("mine", "lsh", 8), ("mine", "onehot", 8), ("mine", "onehot", 12)]
    cells += [("digits_levels", "lsh", 8), ("digits_levels", "onehot", 8)]
    assert plan.cells("mine") == tuple(Cell(*cell) for cell in cells)
    *none, reason = map(plan.refusal, plan.cells("mine"))
    assert none == [None] * 4 and "onehot" in reason and "digits_levels" in reason


BOTH = ("itq", "lsh")


def table(seeds, bits, methods=BOTH, protocol="mine"):
    block = {"protocol": protocol, "metric": "ap", "bits": bits}
    return {"seeds": seeds, "methods": list(methods), "blocks": [block], "supervised_bounds": False}


def groups(tables, **protocols):
    """Groups of these protocols, as (protocol, methods, bits, runs)."""
    found = run_groups.groups(Plan(load(ROOT, {"protocols": protocols, "tables": tables})))
    return [group for group in found if group[0] in protocols]


def test_seeds_go_together_by_their_number_and_lengths_by_the_protocol_s_list():
    assert groups({"a": table([0, 1, 2], [8, 16])}, mine=MINE) == []  # every run is a job of its own
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


def test_what_a_method_cannot_serve_is_in_no_group():
    levels = {"affinity": {"kind": "distance_levels", "percentiles": [5], "levels": [1]}}
    mine = MINE | levels | {"runs_per_job": {"bits": [8, 16]}}
    asked = {"a": table([0], [8, 16], methods=["onehot", "lsh"])}
    assert groups(asked, mine=mine) == [("mine", ("lsh",), (8, 16), ((8, 0), (16, 0)))]


@pytest.mark.parametrize(
    "module",
    [
        pytest.param("methods.talr_ap", marks=pytest.mark.thorough),
        "datasets.splits",
        "datasets.loaders.features_file",
    ],
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
    # Files of folders that hold a docstring alone, and the library's, which imports nothing.
    of_packages = {"tiebench/__init__.py", "datasets/__init__.py", "datasets/loaders/__init__.py"}
    for file in loaded:
        text = (ROOT / file).read_text(encoding="utf-8")
        if file.endswith("__init__.py") and len(ast.parse(text).body) == 1:
            of_packages.add(file)
    words = {"tiebench/_version.py", "tiebench/messages.py"}
    assert loaded - of_packages - words <= files
    assert all((ROOT / file).is_file() for file in files)


def test_code_files_hold_what_is_imported_from_the_package_of_a_file(tmp_path):
    (tmp_path / "methods" / "base").mkdir(parents=True)
    for name in ("__init__", "_other", "_turn", "base/__init__", "base/_scale"):
        (tmp_path / "methods" / f"{name}.py").write_text("")
    (tmp_path / "methods" / "base" / "deep.py").write_text("from .._other import two\nfrom . import _scale\n")
    (tmp_path / "methods" / "mine.py").write_text("from ._turn import turn\nfrom .base import deep\n")
    found = {Path(file).stem for file in code_files(tmp_path, "methods.mine")}
    assert found == {"mine", "_turn", "__init__", "deep", "_scale", "_other"}


def test_code_files_of_a_method_hold_no_other_method():
    for name in ("lsh", "itq", "mihash", "talr_ap"):
        files = code_files(ROOT, f"methods.{name}")
        assert {Path(f).stem for f in files if Path(f).parent == Path("methods")} == {name}
    assert "methods/base/deep.py" not in code_files(ROOT, "methods.lsh")
