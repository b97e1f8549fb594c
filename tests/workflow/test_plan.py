"""The plan: from configuration to settings, groups, figures and missing sources, without running anything."""

import copy
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from datasets import affinity
from methods.base.catalogue import load_class
from tests.tiebench.refusals import refused
from tiebench.affinities import EqualLabels, SharedLabels
from workflow.configuration.merged import load
from workflow.errors import ConfigurationError
from workflow.plan import targets
from workflow.plan.groups import run_jobs
from workflow.plan.pages import PagePlan
from workflow.plan.runs import SCORED, TABLE_ENDINGS, TRAINED, Cell, Plan, write_settings
from workflow.plan.searches import TuningPlan

from conftest import ROOT  # isort: skip


@pytest.fixture
def plan(tmp_path, monkeypatch, tiny):
    """A function that makes the plan of a configuration, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIEBENCH_RESOURCES", str(tmp_path / "sources"))
    (tmp_path / "sources").mkdir()

    def make(config=tiny):
        return Plan(load(ROOT, config))

    return make


def place(*paths):
    for path in paths:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).touch()


def place_run(protocol="tiny", method="lsh", bits=8, seed=0, names=(*TRAINED, *SCORED)):
    place(*(f"results/runs/{protocol}/{method}/{bits}/{seed}/{name}" for name in names))


def place_table(names=(*TRAINED, *SCORED)):
    for method in ("lsh", "talr_ap"):
        for bits in (8, 11):
            for seed in (0, 1):
                place_run("tiny", method, bits, seed, names)


# -- settings ----------------------------------------------------------------------------------------------


def test_settings_are_written_once_to_a_file_named_for_their_content(tmp_path):
    folder = tmp_path / "a" / "settings"
    path = Path(write_settings({"b": [1, 2], "a": None}, folder))
    assert re.fullmatch(r"[0-9a-f]{16}\.json", path.name)
    assert json.loads(path.read_text()) == {"a": None, "b": [1, 2]}
    before = path.stat()
    assert write_settings({"a": None, "b": [1, 2]}, folder) == str(path)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert write_settings({"a": None, "b": [2, 1]}, folder) != str(path)
    assert len(list(folder.iterdir())) == 2
    # One plan that writes a file leaves alone what another is just writing.
    writing = folder / f".{path.name}.abcd1234.writing"
    writing.touch()
    path.unlink()
    write_settings({"b": [1, 2], "a": None}, folder)
    assert writing.exists()


def test_settings_of_a_run_have_each_length_of_its_job_and_survive_json(plan, tiny):
    tiny["methods"]["talr_ap"]["protocols"]["tiny"]["by_bits"] = {11: {"epochs": 3}}
    found = json.loads(json.dumps(plan().run_settings("tiny", "talr_ap", together=(8, 11))))
    assert found["class"] == "talr_ap" and found["network"] is None
    assert [found["hyperparameters"][bits]["epochs"] for bits in ("8", "11")] == [2, 3]
    assert found == json.loads(json.dumps(plan().run_settings("tiny", "talr_ap", bits="11")))
    assert list(plan().run_settings("tiny", "lsh", bits="9")["hyperparameters"]) == [9]


def test_where_a_file_is_found_or_fetched_is_no_setting_of_a_dataset(plan, tiny):
    before = plan().dataset_settings("tiny")
    where = {"urls": ["https://example.org/tiny.npz"], "instructions": "ask"}
    tiny["datasets"]["tiny"]["sources"][0] |= where
    assert plan().dataset_settings("tiny") == before
    tiny["datasets"]["tiny"]["sources"][0]["sha256"] = "0" * 64
    assert plan().dataset_settings("tiny") != before


def test_another_file_without_a_checksum_is_another_setting_though_it_is_older(plan, tiny):
    file = Path("sources", tiny["datasets"]["tiny"]["sources"][0]["file"])
    place(file)
    before = plan().dataset_settings("tiny")
    os.utime(file, (1e9, 1e9))
    assert plan().dataset_settings("tiny") != before
    for key, value in (("sha256", "0" * 64), ("urls", ["https://example.org/tiny.npz"])):  # says what it is
        tiny["datasets"]["tiny"]["sources"][0][key] = value
        assert "state" not in plan().dataset_settings("tiny")
        del tiny["datasets"]["tiny"]["sources"][0][key]


@pytest.mark.parametrize(("loader", "file"), [("images", "a/1.png"), ("coco", "deep/er/1.jpg")])
def test_the_files_of_a_source_folder_are_a_setting_of_its_dataset(plan, tiny, loader, file):
    folder = Path("sources/folder")
    tiny["datasets"]["tiny"] = {"loader": loader, "sources": [{"file": "folder"}]}
    seen = []

    def changed():
        seen.append(json.dumps(plan().dataset_settings("tiny")))
        return seen[-1] not in seen[:-1]

    place(folder / file)
    assert changed() and not changed()
    before = folder.stat().st_mtime_ns
    added = folder / Path(file).with_stem("2")
    added.write_bytes(b"12")
    assert changed() and folder.stat().st_mtime_ns == before  # all that Snakemake would look at
    os.utime(added, (1e9, 1e9))  # another, older file
    assert changed()
    added.write_bytes(b"123")
    os.utime(added, (1e9, 1e9))
    assert changed()
    linked = folder / Path(file).with_stem("3")
    linked.symlink_to(added.resolve())
    assert changed()
    os.utime(added, (2e9, 2e9))
    assert changed()
    linked.unlink()
    added.unlink()
    assert not changed()  # as in the beginning
    for other in (".hidden.png", *(["notes.txt"] if loader == "images" else [])):
        (folder / file).with_name(other).touch()
        assert not changed()


def test_a_dataset_whose_folder_is_gone_stays_what_it_was_made_of(plan, tiny):
    tiny["datasets"]["tiny"] = {"loader": "images", "sources": [{"file": "folder"}]}
    place("sources/folder/a/1.png")
    made = plan().dataset_settings("tiny")
    place("resources/datasets/tiny/dataset.json")
    Path("resources/datasets/tiny/dataset.json").write_text(json.dumps({"made_from": made}))
    shutil.rmtree("sources/folder")
    assert "state" in made and plan().dataset_settings("tiny") == made


def test_settings_of_a_table_bring_titles_styles_and_refusals(plan, tiny):
    tiny["methods"]["mine"] = {"class": "talr_ap", "title": "Mine", "colour": "#123456"}
    tiny["tables"]["tiny"]["methods"].append("mine")
    tiny["protocols"]["tiny"]["title"] = "Tiny vectors"
    tiny["skip"] = ["tiny"]
    found = plan().table_settings("tiny")
    table = json.loads(json.dumps(found["table"]))
    assert table["name"] == "tiny"
    assert table["blocks"][0]["title"] == "Tiny vectors"
    assert table["protocols"] == {"tiny": "Tiny vectors"}
    assert list(table["styles"]) == list(table["families"]) == ["lsh", "talr_ap", "mine"]
    assert table["styles"]["mine"]["title"] == "Mine"
    assert (table["styles"]["mine"]["colour"], table["styles"]["mine"]["marker"]) == ("#123456", None)
    assert table["styles"]["mine"]["family"] == table["families"]["talr_ap"] == "listwise"
    assert len(found["refused"]) == 6
    assert {cell["reason"] for cell in found["refused"]} == {"skipped"}


def test_titles_of_protocols_and_methods_that_only_claims_name_come_with_the_table(plan):
    table = plan({"tables": {"table2": {"methods": ["talr_ap"]}}}).table_settings("table2")["table"]
    assert "imagenet100" in table["protocols"]
    assert set(table["protocols"]) > {block["protocol"] for block in table["blocks"]}
    assert table["titles"]["mihash"] == "MIHash" and "talr_ap" not in table["titles"]


def test_only_affinities_from_distances_need_files_of_their_own(plan, tiny):
    assert plan().affinity_files("tiny") == []
    tiny["protocols"]["tiny"]["affinity"] = {"kind": "distance_levels", "percentiles": [20], "levels": [1]}
    folder = "resources/protocols/tiny"
    assert plan().affinity_files("tiny") == [f"{folder}/features.npy", f"{folder}/affinity.json"]


def test_a_deep_method_trains_on_images_and_others_see_features(plan):
    of = plan({})
    images = "resources/datasets/cifar10/items.npy"
    assert of.run_items("cifar10_s1", "talr_ap_continuation") == images
    assert of.run_weights("cifar10_s1", "dpsh") == of.network_weights("vgg_f") != []
    assert of.run_check("cifar10_s1", "dpsh") == ["resources/networks/vgg_f.json"]
    assert of.run_items("cifar10_s1", "bre") == "resources/protocols/cifar10_s1/features.npy"
    assert of.run_weights("cifar10_s1", "bre") == of.run_check("cifar10_s1", "bre") == []
    assert of.protocol_items("cifar10_s1") == "resources/features/cifar10/vgg_f.npy"
    assert of.protocol_items("digits") == "resources/datasets/digits/items.npy"


def test_of_files_with_the_same_weights_the_first_that_is_found_counts(plan):
    name = "efficientnet_lite0"
    file, other = "efficientnet-lite0-57934424.pth", "efficientnet-lite0-imagenet.npz"

    def chosen():
        of = plan({})
        ((path,), settings) = of.network_weights(name), of.weights_settings(name)
        assert Path(path).name == settings["file"]
        return settings["file"], settings["sha256"][:8], of.sources.locate(of.sources.weights(name)).state

    assert chosen() == (file, "57934424", "missing")
    (line,) = (line for (path, *_), (line, _) in plan({}).sources.missing().items() if path.endswith(".pth"))
    assert f"network {name} needs {file}" in line and "pip download" in line
    place(f"sources/{other}")
    assert chosen() == (other, "f46693b0", "here")
    assert not any("efficientnet" in path for path, *_ in plan({}).sources.missing())
    place(f"sources/{file}")
    assert chosen() == (file, "57934424", "here")


def test_code_of_runs_and_scores_has_what_decides_them(plan, tiny):
    assert "networks/vgg_f.py" in plan({}).run_code("cifar10_s1", "talr_ap")
    affinity_file = "datasets/affinity/class_.py"
    of = plan()
    for code in (of.run_code("tiny", "lsh"), of.score_code("tiny")):
        assert affinity_file in code
    assert "workflow/scripts/affinity_thresholds.py" in of.thresholds_code("tiny")
    assert "workflow/tuning/validation.py" in TuningPlan(of).code("tiny", "lsh")
    before = of.score_settings("tiny")
    tiny["protocols"]["tiny"]["ap_at_normaliser"] = "relevant"
    assert plan().score_settings("tiny") != before


def test_weights_without_a_checksum_are_known_by_their_size_and_time(plan):
    given = {"networks": {"mine": {"architecture": "small", "weights": {"file": "w.npz"}}}}
    assert plan(given).weights_settings("mine") == {"file": "w.npz"}
    place("sources/w.npz")
    found = plan(given).weights_settings("mine")
    os.utime("sources/w.npz", ns=(1, 1))  # an older file in its place
    assert plan(given).weights_settings("mine")["state"] == [0, 1] != found["state"]
    # A file that is gone is the one that was checked.
    Path("sources/w.npz").unlink()
    Path("resources/networks").mkdir(parents=True)
    Path("resources/networks/mine.json").write_text(json.dumps(found))
    assert plan(given).weights_settings("mine") == found
    recorded = {"networks": {"mine": {"architecture": "small", "weights": {"file": "w.npz", "bytes": 4}}}}
    assert plan(recorded).weights_settings("mine") == {"file": "w.npz", "bytes": 4, "state": found["state"]}


def test_alternatives_agree_with_other_entries_for_the_same_file(plan):
    other = {"file": "efficientnet-lite0-imagenet.npz", "sha256": "0" * 64}
    weights = {"file": "a.pth", "alternatives": [other]}
    with pytest.raises(ConfigurationError, match=r"networks.mine.weights.alternatives\[0\].sha256"):
        plan({"networks": {"mine": {"architecture": "small", "weights": weights}}})


def test_another_network_changes_the_settings_of_features(plan):
    config = {"protocols": {"mine": {"dataset": "cifar10", "affinity": {"kind": "class"}}}}
    config["protocols"]["mine"]["split"] = {"kind": "random", "query": 5, "training": 9}
    found = []
    for network in ("vgg_f", "caffe_alexnet"):
        config["protocols"]["mine"]["input"] = {"kind": "network", "network": network}
        found.append(plan(config).feature_settings("mine"))
    assert found[0] != found[1]


def test_long_jobs_come_first_and_methods_that_learn_nothing_last(plan):
    of = plan()
    assert of.training_priority("talr_ap", ("8/0", "8/1", "11/0")) == 27
    assert of.training_priority("talr_ap", ("{bits}/{seed}",), bits="48") == 48
    assert of.training_priority("lsh", ("8/0",)) == of.training_priority("nobody", ("8/0",)) == 0


def test_gpus_are_for_methods_with_a_device(plan, tiny):
    assert plan().gpus("talr_ap") == 0
    tiny["device"] = "cuda"
    assert (plan().gpus("talr_ap"), plan().gpus("lsh"), plan().gpus("nobody")) == (1, 0, 0)


def test_each_attempt_asks_for_twice_as_much(plan):
    of = plan()
    minutes = [of.resource("minutes", "train", attempt) for attempt in (1, 2, 3)]
    assert minutes == [of["minutes"]["train"] * factor for factor in (1, 2, 4)]


def test_a_method_may_have_the_first_seeds_alone(plan, tiny):
    tiny["tables"]["tiny"] |= {"seeds": [3, 1, 2], "fewer_seeds": {"talr_ap": 2}}
    tiny["protocols"]["tiny"]["runs_per_job"] = {"seeds": 2, "bits": [8, 11]}
    of = plan(tiny)
    expected = {("tiny", "lsh", bits, seed) for bits in (8, 11) for seed in (1, 2, 3)}
    expected |= {("tiny", "talr_ap", bits, seed) for bits in (8, 11) for seed in (1, 3)}
    files = of.table_runs("tiny", ["run.json"])
    assert set(files) == {"results/runs/{}/{}/{}/{}/run.json".format(*run) for run in expected}
    assert len(files) == len(expected)
    assert targets.needs(of, "results/tiny.csv") == {("run", *run) for run in expected}
    grouped = {job.methods: job.runs for job in run_jobs(of) if job.protocol == "tiny" and "8/3" in job.runs}
    assert grouped == {"lsh": ("8/2", "8/3", "11/2", "11/3"), "talr_ap": ("8/3", "11/3")}
    assert of.table_settings("tiny")["table"]["fewer_seeds"] == {"talr_ap": 2}


def test_a_table_with_slow_methods_can_be_narrowed(plan, tiny):
    """To fewer seeds than a slow method has, and to other methods."""
    tiny["tables"]["tiny"] |= {"seeds": [1], "methods": ["lsh"], "fewer_seeds": {"talr_ap": 2, "lsh": 3}}
    of = plan(tiny)
    assert targets.needs(of, "results/tiny.csv") == {("run", "tiny", "lsh", bits, 1) for bits in (8, 11)}


def jobs_that_make(run, jobs):
    """The jobs that have a run.json among their outputs; as Snakemake matches it: a look-ahead in the first
    wildcard sees the rest of the path."""
    found = []
    for job in jobs:
        runs = "|".join(re.sub(r"\{\w+\}", r"\\d+", one) for one in job.runs)
        pattern = rf"results/runs/(?:{job.protocols})/(?:{job.methods})/(?:{runs})/run\.json"
        found += [job] if runs and re.fullmatch(pattern, run) else []
    return found


def test_every_run_has_one_job_that_makes_it_and_one_that_scores_it(plan, tiny):
    """Codes of another program are made by none."""
    tiny["methods"]["mine"] = {"external": "codes/mine"}
    tiny["tables"]["tiny"]["methods"].append("mine")
    block = {"protocol": "tiny", "metric": "ap", "bits": [8, 9]}
    tiny["tables"]["more"] = tiny["tables"]["tiny"] | {"seeds": [0, 1, 2], "blocks": [block]}
    of = plan()
    for run in of.table_runs("tiny", ["run.json"]) + of.table_runs("more", ["run.json"]):
        counts = [len(jobs_that_make(run, run_jobs(of, scored=scored))) for scored in (False, True)]
        assert counts == [0 if "/mine/" in run else 1, 1], run


def test_a_protocol_may_stand_beside_the_published_scores_of_another(plan, tiny):
    value = {"protocol": "tiny", "metric": "ap", "method": "lsh", "bits": 8, "value": 0.5}
    own = value | {"protocol": "other", "bits": 11, "value": 0.25}
    tiny["published"] = {"paper": {"source": "paper", "values": [value, value | {"bits": 11}, own]}}
    tiny["protocols"]["other"] = tiny["protocols"]["tiny"] | {"published_of": "tiny"}
    tiny["tables"]["tiny"] |= {"published": ["paper"]}
    tiny["tables"]["other"] = copy.deepcopy(tiny["tables"]["tiny"])
    tiny["tables"]["other"]["blocks"][0]["protocol"] = "other"
    made = plan(tiny)
    values = {name: made.table_settings(name)["published"][0]["values"] for name in ("tiny", "other")}
    assert values["tiny"] == tiny["published"]["paper"]["values"]
    # At 11 bits the paper has a value of its own.
    assert values["other"] == [*values["tiny"], value | {"protocol": "other"}]


def test_a_page_reads_published_files_and_the_figures_that_its_tables_use(plan, tiny):
    blocks = [{"protocol": "tiny", "metric": "ndcg", "bits": [8]}]
    tiny["tables"]["gains"] = tiny["tables"]["tiny"] | {"blocks": blocks}
    tiny["report"] = ["tiny", "gains"]
    found = PagePlan(plan()).page_published("report")
    for table in ("tiny", "gains"):
        assert {f"results/{table}{ending}" for ending in TABLE_ENDINGS} <= set(found)
        assert f"results/figures/metric_by_bits_{table}.svg" in found
        assert f"results/figures/tie_ranges_{table}.svg" in found
    assert not [file for file in found if "galler" in file]  # vectors without pictures
    settings = PagePlan(plan()).page_settings("report", ["/x/mine.yaml"])
    assert [table["name"] for table in settings["tables"]] == ["tiny", "gains"]
    assert settings["tables"][0]["figures"]["tie_ranges"] == "results/figures/tie_ranges_tiny.svg"
    given = "--configfile /x/mine.yaml --config report='[tiny, gains]'"
    assert settings["command"] == f"snakemake --cores all {given} -- results/report.html"
    tiny["skip"] = ["digits_levels"]
    for page, told in (("report", " report='[tiny, gains]'"), ("tiny", "")):
        given = f"--config skip='[digits_levels]'{told} -- results/{page}.html"
        assert PagePlan(plan()).page_settings(page)["command"] == f"snakemake --cores all {given}"


def test_a_table_without_runs_has_no_figures(plan, tiny):
    tiny["skip"] = ["tiny"]
    assert PagePlan(plan()).table_figures("tiny") == []


def test_a_figure_that_does_not_apply_is_one_line_with_those_that_do(plan):
    with pytest.raises(ConfigurationError, match=r"few_labels does not apply to table table2; .*_by_bits"):
        PagePlan(plan({})).figure_runs("few_labels", "table2")


def test_a_tuning_without_space_takes_the_one_that_each_method_declares(plan):
    entry = {"protocol": "digits", "methods": ["agh", "mihash"], "bits": [16]}
    given = {"learning_rate": [0.5]}
    of = TuningPlan(plan({"tuning": {"own": entry, "given": entry | {"space": given}}}))
    (space,) = of.settings("own", "digits", "agh", "16")["spaces"]
    assert space == load_class("agh").space
    spaces = of.settings("own", "digits", "mihash", "16")["spaces"]
    kinds = sorted((*space["head"], *space.get("optimiser", ["own"])) for space in spaces)
    assert kinds == [("linear", "adam"), ("mlp", "adam"), ("mlp", "own")]
    rates = {len(space.get("optimiser", [])): space["learning_rate"]["log_uniform"][1] for space in spaces}
    assert rates[1] < rates[0] and all("tanh_scale" in space for space in spaces)
    assert of.settings("given", "digits", "mihash", "16")["spaces"] == [given]


def test_axes_of_one_method_join_those_of_all_or_take_their_place(plan):
    entry = {"protocol": "digits", "methods": ["mihash", "hashnet", "dpsh"], "bits": [16]}
    entry |= {"space": {"learning_rate": [0.5], "batch_size": [64]}}
    own = {"mihash": {"bins": [4]}, "hashnet": {"batch_size": [16]}, "talr_ap": {"bins": [4]}}
    entry |= {"space_of": own}
    of = TuningPlan(plan({"tuning": {"given": entry}}))
    (lists,), (pairs,), (rest,) = (
        of.settings("given", "digits", method, "16")["spaces"] for method in entry["methods"]
    )
    assert lists == {"learning_rate": [0.5], "batch_size": [64], "bins": [4]}
    assert pairs == {"learning_rate": [0.5], "batch_size": [16]}
    assert rest == {"learning_rate": [0.5], "batch_size": [64]}


def test_a_gallery_shows_twelve_methods_spread_over_the_rows_or_those_that_are_named(plan):
    names = [f"lsh_{number}" for number in range(40)]

    def shown(methods, **table):
        blocks = [{"protocol": "digits", "metric": "ap", "bits": [16, 8]}]
        table = {"methods": methods, "blocks": blocks} | table
        of = plan({"methods": {name: {"class": "lsh"} for name in names}, "tables": {"mine": table}})
        cells = PagePlan(of).gallery_cells("mine")
        assert {(cell.protocol, cell.bits) for cell in cells} == {("digits", 8)}
        return [cell.method for cell in cells]

    assert shown(names) == [names[round(39 * place / 11)] for place in range(12)]
    assert shown(names, figures={"gallery": {"methods": ["lsh_7", "lsh_3"]}}) == ["lsh_3", "lsh_7"]
    assert shown(names[:8]) == names[:8]
    blocks = [
        {"protocol": "digits", "metric": "ap", "bits": [bits], "methods": [name]}
        for bits, name in [(4, "lsh"), (8, "itq")]
    ]
    figures = {"gallery": {"methods": ["itq"]}}
    assert shown(["lsh", "itq"], blocks=blocks, figures=figures) == ["itq"]  # whatever lengths others have


# -- targets -----------------------------------------------------------------------------------------------

KNOWN = """tiny.csv tiny.tidy.csv tiny.json report.html figures/tie_ranges.svg figures/tie_ranges_tiny.pdf
figures/gallery_tiny.png runs/tiny/lsh/8/0/scores.json runs/tiny/lsh/8/0/parts/3.npz uncoded/tiny.json
tuning/digits.yaml tuning/digits.csv tuning/digits/digits/dtsh/16.json"""
UNKNOWN = {
    "figures/tie_rangs_tiny.pdf": "no figure 'tie_rangs_tiny'; did you mean 'tie_ranges_tiny'",
    "figures/tie_ranges_tiny.jpg": "are drawn as .pdf, .svg, .png files only",
    "tiny.cvs": "no rule makes results/tiny.cvs; did you mean 'tiny.csv'",
    "runs/tinny/lsh/8/0/run.json": "no 'tinny' in protocols; did you mean 'tiny'",
    "uncoded/tinny.json": "no rule makes results/uncoded/tinny.json; did you mean 'tiny.json'",
    "tuning/digist/digts/dtsh/16.json": "no 'digist' in tuning; did you mean 'digits'",
}


def test_what_rules_make_is_not_refused(plan):
    unknown = targets.unknown_results(plan())
    assert [file for file in KNOWN.split() if re.fullmatch(unknown, file)] == []


@pytest.mark.parametrize(("target", "words"), UNKNOWN.items(), ids=UNKNOWN.keys())
def test_what_no_rule_makes_is_one_line_with_the_nearest_name(plan, target, words):
    of = plan()
    assert re.fullmatch(targets.unknown_results(of), target)
    with refused(words) as caught:
        targets.refuse_unknown(of, target)
    assert isinstance(caught.value, ConfigurationError) and len(str(caught.value)) < 400


def test_targets_say_which_runs_datasets_and_features_they_need(plan):
    of = plan()
    runs = {("run", "tiny", m, bits, seed) for m in ("lsh", "talr_ap") for bits in (8, 11) for seed in (0, 1)}
    for target in ("tiny.csv", "tiny.html", "figures/tie_ranges_tiny.pdf", "figures/cost_tiny.svg"):
        assert targets.needs(of, f"results/{target}") == runs
    run = {("run", "tiny", "lsh", 8, 0)}
    assert targets.needs(of, "./results/runs/tiny/lsh/8/0/codes.npz") == run
    assert targets.needs(of, "resources/protocols/tiny/split.npz") == {("dataset", "tiny")}
    features = {("dataset", "cifar10"), ("features", "cifar10", "vgg_f")}
    assert targets.needs(of, "resources/protocols/cifar10_s1/features.npy") == features
    assert targets.needs(of, "elsewhere/x") == set()
    needed = targets.needs(of, "results/figures/tie_ranges.pdf")
    assert {(kind, protocol) for kind, protocol, *_ in needed} == {("run", "cifar10_s1")}
    with pytest.raises(ConfigurationError, match="did you mean 'tiny'"):
        targets.needs(of, "results/tinny.csv")
    with pytest.raises(ConfigurationError, match="unknown method 'talr_pa'; did you mean 'talr_ap'"):
        of.run_settings("tiny", "talr_pa", bits="8")  # of results/runs/tiny/talr_pa/8/0/run.json


def test_a_missing_source_is_found_from_the_targets(plan):
    line = targets.missing_sources(plan(), ["results/tiny.csv"])
    assert line.startswith("dataset tiny needs tiny.npz, which is not in ") and "\n" not in line
    assert targets.missing_sources(plan(), ["resources/datasets/tiny/dataset.json"]) == line
    assert targets.missing_sources(plan(), ["results/quick.csv"]) is None


def test_what_has_been_made_needs_no_source(plan, tiny):
    place_table()
    for target in ("tiny.csv", "tiny.html", "figures/tie_ranges_tiny.pdf"):
        assert targets.missing_sources(plan(), [f"results/{target}"]) is None
    tiny["tables"]["tiny"]["seeds"].append(2)
    assert targets.missing_sources(plan(), ["results/tiny.csv"])
    files = [f"resources/datasets/tiny/{name}" for name in ("items.npy", "labels.npy", "given_split.npy")]
    place(*files)
    assert targets.missing_sources(plan(), ["results/tiny.csv"])
    card = "resources/datasets/tiny/dataset.json"
    for made_from, missing in ((plan().dataset_settings("tiny"), False), ({"loader": "another"}, True)):
        Path(card).write_text(json.dumps({"made_from": made_from}))
        assert bool(targets.missing_sources(plan(), ["results/tiny.csv"])) == missing
    for damaged in ("", "[]", '{"made_from": []}'):
        Path(card).write_text(damaged)
        assert "needs tiny.npz" in targets.missing_sources(plan(), ["results/tiny.csv"])
    # Complete runs on other data than the configuration names are not passed off as runs on these.
    tiny["tables"]["tiny"]["seeds"].pop()
    assert "needs tiny.npz" in targets.missing_sources(plan(), ["results/tiny.csv"])


def test_runs_that_only_have_to_be_scored_need_no_weights(plan):
    place_run("cifar10_s1", "dpsh", 12, 0, TRAINED)
    place(*(f"resources/datasets/cifar10/{name}" for name in ("items.npy", "labels.npy", "given_split.npy")))
    Path("resources/datasets/cifar10/dataset.json").write_text("{}")
    config = {"networks": {"vgg_f": {"weights": {"file": "absent.mat"}}}}
    run = "results/runs/cifar10_s1/{}/12/0/scores.json".format
    assert targets.missing_sources(plan(config), [run("dpsh")]) is None
    for method in ("dtsh", "bre"):  # trained end to end; sees features that would have to be extracted
        assert "network vgg_f needs absent.mat" in targets.missing_sources(plan(config), [run(method)])
    place("resources/features/cifar10/vgg_f.npy")
    assert targets.missing_sources(plan(config), [run("bre")]) is None
    assert targets.missing_sources(plan(config), [run("dtsh")])


def test_scores_of_features_need_the_features_until_they_exist(plan, tiny):
    for table in (False, True):
        tiny["tables"]["tiny"]["uncoded"] = table
        of = plan()
        assert of.uncoded_files("tiny") == (["results/uncoded/tiny.json"] if table else [])
        assert of.table_settings("tiny")["uncoded"] == (["tiny"] if table else [])
        assert targets.needs(of, "results/uncoded/tiny.json") == {("dataset", "tiny")}
        assert (("dataset", "tiny") in targets.needs(of, "results/tiny.csv")) == table
    assert ("features", "cifar10", "vgg_f") in targets.needs(of, "results/uncoded/cifar10_s1.json")
    assert plan(tiny | {"skip": ["tiny"]}).uncoded_files("tiny") == []
    place("results/uncoded/tiny.json")
    assert targets.needs(of, "results/uncoded/tiny.json") == targets.needs(of, "elsewhere/x")
    assert ("dataset", "tiny") not in targets.needs(of, "results/tiny.csv")


def test_reporting_is_told_how_labels_decide_the_affinity(plan):
    """By the affinity that scoring is given: of any other kind labels alone decide nothing."""
    labels = {"classes": np.array([0, 1, 0, 2]), "multi-hot": np.array([[1, 1], [0, 1], [1, 1], [1, 0]])}
    rows, found = np.arange(4), {}
    for name in ("digits", "nus_wide", "nus_wide_levels", "labelme"):
        kind = plan().affinity_kind(name).said
        scored = None
        if not kind.from_features:
            made = affinity.make(plan()["protocols"][name]["affinity"], labels[kind.labels[0]])
            scored = made.scoring(rows, rows)
        named = {EqualLabels: "equal", SharedLabels: "any" if getattr(scored, "binary", False) else "shared"}
        found[name] = plan().protocol_settings(name)["label_affinity"]
        assert found[name] == named.get(type(scored))
    assert set(found.values()) == {"equal", "any", "shared", None}
    assert plan().protocol_settings("nus_wide")["ap_at_normaliser"] == "hits"


def test_a_dataset_is_skipped_with_all_of_its_protocols_and_a_protocol_alone(plan):
    cells = [Cell(name, "lsh", 16) for name in ("digits", "digits_levels")]
    blocks = [{"protocol": of.protocol, "metric": "ndcg", "bits": [16]} for of in cells]
    table = {"seeds": [0], "methods": ["lsh"], "uncoded": True, "blocks": blocks}
    for skip, expected in (("digits_levels", [None, "skipped"]), ("digits", ["skipped"] * 2)):
        of = plan({"skip": [skip], "tables": {"mine": table}})
        assert [of.refusal(cell) for cell in cells] == expected
        left = [cell.protocol for cell, reason in zip(cells, expected) if reason is None]
        assert of.uncoded_protocols("mine") == left
