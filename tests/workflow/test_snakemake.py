"""The real Snakefile, end to end on a tiny table: what it makes, what it remakes, what it refuses."""

import copy
import hashlib
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from methods.base.catalogue import load_class
from reporting.printed.table_files import ENDINGS
from tiebench.affinities import EqualLabels
from tiebench.scoring import score_codes

from conftest import ROOT, class_vectors  # isort: skip

CELLS = [(method, bits) for method in ("lsh", "talr_ap") for bits in (8, 11)]
RUNS = [(method, bits, seed) for method, bits in CELLS for seed in (0, 1)]
some_runs = pytest.mark.parametrize("run", [RUNS[0], RUNS[-1]], ids=lambda run: "-".join(map(str, run)))
RUN_FILES = {"codes.npz", "model.npz", "training.jsonl", "run.json", "scores.json", "per_query.npz"}
X, LABELS = class_vectors()


def what_ran(before, after):
    """(method, bits) whose runs were trained, and scored, again, and other files of results/ now written."""
    written = {path for path in after if before.get(path) != after[path]}
    trained, scored, others = set(), set(), set()
    for path in written:
        match = re.fullmatch(r"results/runs/\w+/(\w+)/(\d+)/\d+/(.*)", path)
        if match:
            kind = scored if match[3] in ("scores.json", "per_query.npz") else trained
            kind.add((match[1], int(match[2])))
        elif not path.startswith("results/logs/"):
            others.add(path)
    return trained, scored, others


TABLE_FILES = {f"results/tiny{ending}" for ending in (*ENDINGS, ".json")}


# -- what a run makes --------------------------------------------------------------------------------------


def done(method, bits, seed):
    """What each record of a run says."""
    return {"protocol": "tiny", "method": method, "bits": bits, "seed": seed, "status": "done"}


@some_runs
def test_codes_are_what_the_saved_model_makes_of_the_features(prepared, run):
    folder, (method, bits, seed) = prepared.run_folder(*run), run
    model = load_class(method).load(folder)
    assert (model.bits, model.seed) == (bits, seed)
    with np.load(folder / "codes.npz", allow_pickle=False) as codes:
        assert set(codes.files) == {"query", "database", "bits"}
        assert int(codes["bits"]) == bits
        for part in ("query", "database"):
            items = prepared.features()[getattr(prepared.split(), part)]
            assert codes[part].dtype == np.uint8
            assert np.array_equal(codes[part], np.packbits(model.encode(items), axis=1))


@some_runs
def test_scores_are_those_of_the_codes(prepared, run):
    folder, parts = prepared.run_folder(*run), prepared.split()
    with np.load(folder / "codes.npz", allow_pickle=False) as codes:
        affinity = EqualLabels(LABELS[parts.query], LABELS[parts.database])
        expected = score_codes(codes["query"], codes["database"], run[1], affinity, at=[10])
    scores = prepared.record(*run, name="scores.json")
    assert done(*run).items() <= scores.items()
    assert scores["metrics"] == expected.means
    assert {"ap", "ap_min", "ap_max", "ap@10", "ap@10_min", "ndcg", "ndcg@10_max"} <= scores["metrics"].keys()
    with np.load(folder / "per_query.npz", allow_pickle=False) as per_query:
        assert set(per_query.files) == set(expected.per_query)
        for name in per_query.files:
            assert np.array_equal(per_query[name], expected.per_query[name])


@some_runs
def test_the_other_files_of_a_run_say_how_it_was_made(prepared, run):
    folder, record, method = prepared.run_folder(*run), prepared.record(*run), run[0]
    assert {path.name for path in folder.iterdir()} == RUN_FILES
    assert done(*run).items() <= record.items()
    assert record["hyperparameters"] == load_class(method).load(folder).hyperparameters()
    if method == "talr_ap":
        assert {"epochs": 2, "batch_size": 20, "bins": 8}.items() <= record["hyperparameters"].items()
        assert "torch" in record["versions"]
    assert {"python", "numpy"} <= record["versions"].keys()
    digest = hashlib.sha256()
    for name in ("items.npy", "labels.npy"):
        digest.update((prepared.directory / "resources" / "datasets" / "tiny" / name).read_bytes())
    fingerprints = {"dataset": digest.hexdigest(), "split": prepared.split().fingerprint}
    assert record["fingerprints"] == fingerprints
    assert record["device"].startswith("cpu")
    assert record["seconds"] == pytest.approx(sum(record["seconds_by_part"].values()))
    assert record["seconds"] > 0
    assert 20 < record["peak_memory_mb"] < 4000
    assert "git_commit" in record
    assert (prepared.directory / record["log"]).is_file()
    epochs = [json.loads(line) for line in (folder / "training.jsonl").read_text().splitlines()]
    assert all({"objective", "seconds"} <= epoch.keys() for epoch in epochs)
    assert len(epochs) == (2 if method == "talr_ap" else 1)


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the system keeps one peak only")
def test_each_run_of_a_process_has_its_own_peak_of_memory():
    """Measured in a separate process: memory that one run has freed is not part of the next one's peak."""
    program = (
        "import numpy as np; from workflow.scripts import train_and_encode\n"
        "for megabytes in (0, 400, 0):\n"
        "    train_and_encode._forget_peak_memory()\n"
        "    np.ones(megabytes << 17)\n"
        "    print(train_and_encode._peak_memory_mb())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    before, high, after = map(float, done.stdout.split())
    assert high - before == pytest.approx(400, abs=20)
    assert after - before == pytest.approx(0, abs=20)


def test_the_split_serves_all_methods_and_keeps_queries_apart(prepared):
    parts = prepared.split()
    assert np.bincount(LABELS[parts.query]).tolist() == [5] * 4
    assert np.bincount(LABELS[parts.training]).tolist() == [15] * 4
    assert sorted([*parts.query, *parts.database]) == list(range(160))
    assert not set(parts.query) & set(parts.training)


def test_the_tidy_table_holds_every_cell_with_the_mean_over_seeds(prepared):
    found = prepared.rows("tiny.tidy.csv")
    assert [(row["method"], int(row["bits"])) for row in found] == CELLS
    wide = {row["method"]: row for row in prepared.rows("tiny.csv")}
    assert list(wide) == ["lsh", "talr_ap"]
    for row in found:
        scores = [prepared.metrics(row["method"], row["bits"], seed)["ap"] for seed in (0, 1)]
        assert float(row["mean"]) == statistics.mean(scores)
        assert float(row["std"]) == statistics.stdev(scores)
        assert (row["table"], row["protocol"], row["metric"]) == ("tiny", "tiny", "ap")
        assert (row["seeds"], row["status"], row["reason"]) == ("2", "done", "")
        assert wide[row["method"]][f"tiny ap {row['bits']}"] == row["mean"]


def test_the_source_s_folder_is_never_written_to(prepared):
    assert [path.name for path in prepared.sources.iterdir()] == ["tiny.npz"]
    stored = prepared.directory / "resources" / "datasets" / "tiny"
    assert np.array_equal(np.load(stored / "items.npy"), X)
    assert np.array_equal(np.load(stored / "labels.npy"), LABELS)
    assert not (prepared.directory / "resources" / "downloads").exists()


def test_every_job_left_a_log(prepared):
    logs = set(prepared.stamps("results/logs/**/*.log"))
    rules = ("load_dataset", "split_protocol", "collect_table")
    assert {f"results/logs/{rule}/tiny.log" for rule in rules} <= logs
    for method, bits, seed in RUNS:
        for rule in ("train_and_encode", "score_codes"):
            # One log for the four runs of a method, which one process makes.
            text = prepared.text(f"logs/{rule}/tiny/{method}/8-11/0-1.log")
            assert f"tiny/{method}/{bits} bits/seed {seed}" in text


METHOD = '''"""Made by a test: {what}. 2020."""

import numpy as np

from methods.base import HashingMethod


class Made(HashingMethod):
    supervision = "none"

    def fit(self, training_set):
        self.seen = np.zeros(1, np.uint64)
        training_set.log({{"objective": None, "seconds": 0.0}})
        return self

    def encode(self, items):
        items = np.asarray(items[0 : len(items)])
        self.seen = self.seen + 1  # queries and database get codes of their own
        return {codes}

    def state(self):
        return {{"seen": self.seen}}

    def set_state(self, state):
        self.seen = state["seen"]
'''


# -- what is remade ----------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_editing_a_method_reruns_its_cells_and_the_table_alone(laboratory, prepared):
    with (laboratory.checkout / "methods" / "lsh.py").open("a") as file:
        file.write("\n# an edit\n")
    before, data = laboratory.stamps(), laboratory.stamps("resources/**/*")
    laboratory.made("results/tiny.csv")
    lsh = {("lsh", 8), ("lsh", 11)}
    assert what_ran(before, laboratory.stamps()) == (lsh, lsh, TABLE_FILES)
    assert laboratory.stamps("resources/**/*") == data
    assert laboratory.tables() == prepared.tables()  # the edit changed nothing


def test_a_new_method_is_a_file_and_a_name_in_a_table(laboratory, prepared, tiny):
    """As long as it fails, its run is told, and nothing of its job is left."""
    method = laboratory.checkout / "methods" / "first_values.py"
    text = METHOD.format(what="first values", codes="items[:, : self.bits] > 0")
    method.write_text(text.replace("return self", "np.ones(self.bits) + np.ones(8); return self"))
    tiny["tables"]["tiny"]["methods"].append("first_values")
    line = laboratory.refused("results/tiny.csv", config=tiny)
    assert line.startswith("error: tiny/first_values/11 bits/seed 0: ValueError: operands could not be ")
    assert " (traceback in " in line
    folder = laboratory.run_folder("first_values")
    assert not [path for path in folder.parents[1].rglob("*") if path.is_file()]
    assert laboratory.tables() == prepared.tables()

    method.write_text(text)
    before = laboratory.stamps()
    laboratory.made("results/tiny.csv", config=tiny)
    new = {("first_values", 8), ("first_values", 11)}
    assert what_ran(before, laboratory.stamps()) == (new, new, TABLE_FILES)
    old = prepared.tables()["tiny.csv"].splitlines()
    lines = laboratory.tables()["tiny.csv"].splitlines()
    # A reference like LSH: it is placed after it, before the methods that learn.
    assert lines.pop(2).startswith(b"first_values,") and lines == old
    with np.load(folder / "codes.npz") as codes:
        expected = laboratory.features()[laboratory.split().query][:, :8] > 0
        assert np.array_equal(np.unpackbits(codes["query"], axis=1, count=8), expected)


def trained(laboratory, before):
    """method/bits/seed of the runs made since, scored ones with a * if they were not trained."""
    written = {
        path for path, stamp in laboratory.stamps("results/runs/**/*").items() if before.get(path) != stamp
    }
    kinds = {}
    for path in written:
        *_, method, bits, seed, name = path.split("/")
        kinds.setdefault(f"{method}/{bits}/{seed}", set()).add(name)
    return {run if "codes.npz" in names else f"{run}*" for run, names in kinds.items()}


def runs(*methods, bits, seeds):
    return {f"{method}/{b}/{seed}" for method in methods for b in bits for seed in seeds}


@pytest.mark.thorough
def test_a_length_or_a_seed_outside_of_the_groups_leaves_finished_runs_alone(laboratory, tiny):
    """Groups are of 8 and 11 bits, of seeds 0 and 1, of seeds 2 and 3."""
    before = laboratory.stamps()
    tiny["tables"]["more"] = copy.deepcopy(tiny["tables"]["tiny"]) | {"methods": ["lsh"]}
    tiny["tables"]["more"]["blocks"][0]["bits"] = [9, 11]
    tiny["tables"]["more"]["seeds"] = [1, 2]
    laboratory.made("results/more.csv", "results/tiny.csv", config=tiny)
    # 9 bits are on no list: jobs of their own. At 11 bits seed 1 is there, and seed 2 of another group.
    new = runs("lsh", bits=[9], seeds=[1, 2]) | runs("lsh", bits=[11], seeds=[2])
    assert trained(laboratory, before) == new
    # Now 3 joins 2, of whose group it is.
    before = laboratory.stamps()
    tiny["tables"]["more"]["seeds"] = [1, 2, 3]
    laboratory.made("results/more.csv", config=tiny)
    assert trained(laboratory, before) == runs("lsh", bits=[9, 11], seeds=[2, 3])
    assert laboratory.has_nothing_to_do("results/more.csv", config=tiny)


@pytest.mark.thorough
def test_a_run_is_the_same_whichever_runs_its_process_made_before(laboratory, prepared, tiny):
    """Runs of the second seed, which follow those of the first."""
    tiny["protocols"]["tiny"]["runs_per_job"] = {"seeds": 1}
    tiny["tables"]["tiny"]["seeds"] = [1]
    shutil.rmtree(laboratory.results)
    done = laboratory.made("results/tiny.csv", config=tiny)
    assert len(re.findall(r"^Job \d+: tiny: train", done.stderr + done.stdout, re.MULTILINE)) == len(CELLS)
    for cell in CELLS:
        alone, grouped = (place.run_folder(*cell, 1) for place in (laboratory, prepared))
        for name in ("codes.npz", "model.npz", "scores.json", "per_query.npz"):
            assert (alone / name).read_bytes() == (grouped / name).read_bytes()
        assert laboratory.record(*cell, 1)["hyperparameters"] == prepared.record(*cell, 1)["hyperparameters"]


@pytest.mark.thorough
def test_a_database_in_parts_gives_the_same_bytes(laboratory, tiny):
    levels = {"kind": "distance_levels", "percentiles": [20, 5], "levels": [1, 2]}
    tiny["protocols"]["levels"] = tiny["protocols"]["tiny"] | {"affinity": levels}
    block = {"protocol": "tiny", "metric": "ndcg", "bits": [8]}
    blocks = [block, block | {"protocol": "levels", "methods": ["lsh"]}]
    tiny["tables"]["tiny"] |= {"seeds": [0], "blocks": blocks}
    laboratory.made("results/tiny.csv", config=tiny)
    whole = {}
    for method, protocol in (("lsh", "tiny"), ("talr_ap", "tiny"), ("lsh", "levels")):
        for name in ("scores.json", "per_query.npz"):
            file = laboratory.run_folder(method, protocol=protocol) / name
            whole[file] = file.read_bytes()
            file.unlink()
    tables = laboratory.tables()
    for protocol in ("tiny", "levels"):
        tiny["protocols"][protocol]["database_parts"] = 3
    done = laboratory.made("results/tiny.csv", config=tiny)
    jobs = re.findall(r"^Job \d+: \w+: (train|count|score)", done.stderr + done.stdout, re.MULTILINE)
    assert (jobs.count("train"), jobs.count("count"), jobs.count("score")) == (0, 9, 3)
    assert {file: file.read_bytes() for file in whole} == whole
    assert laboratory.tables() == tables
    assert not list(laboratory.directory.glob("results/runs/*/*/*/*/parts/*"))


@pytest.mark.thorough
def test_each_length_of_a_group_has_its_own_hyperparameters(laboratory, tiny):
    tiny["methods"]["talr_ap"]["protocols"]["tiny"]["by_bits"] = {11: {"epochs": 3}}
    before = laboratory.stamps()
    laboratory.made("results/tiny.csv", config=tiny)
    assert trained(laboratory, before) == runs("talr_ap", bits=[8, 11], seeds=[0, 1])
    found = [laboratory.record("talr_ap", bits, 1)["hyperparameters"]["epochs"] for bits in (8, 11)]
    assert found == [2, 3]


# Edited files -> the rules that a dry run then wants to run, and the methods that it trains.
EDITS = {
    "methods/base/deep.py": ({"train_and_encode", "score_codes", "collect_table"}, {"talr_ap"}),
    "tiebench/rankings/exact.py": ({"score_codes", "collect_table"}, set()),
    "methods/itq.py reporting/page/document.py datasets/loaders/digits.py": (set(), set()),
    "reporting/printed/latex.py tiebench/messages.py": ({"collect_table"}, set()),
    "workflow/stages/protocol_data.py": (
        {"train_and_encode", "score_codes", "collect_table"},
        {"lsh", "talr_ap"},
    ),
    "workflow/scripts/score_codes.py": ({"score_codes", "collect_table"}, set()),
    "datasets/splits/per_class.py": (
        {"split_protocol", "normalise_features", "train_and_encode", "score_codes", "collect_table"},
        {"lsh", "talr_ap"},
    ),
    "datasets/affinity/class_.py": ({"train_and_encode", "score_codes", "collect_table"}, {"lsh", "talr_ap"}),
}


# The first three say most, and are part of every run.
@pytest.mark.parametrize(
    "files",
    [
        pytest.param(files, marks=[pytest.mark.thorough] if place > 2 else [])
        for place, files in enumerate(EDITS)
    ],
)
def test_an_edit_reruns_the_stages_whose_numbers_it_can_change(laboratory, files):
    for file in files.split():
        path = laboratory.checkout / file
        path.write_text(path.read_text() + "\n# an edit\n")
    rules, planned = planned_rules(laboratory, "results/tiny.csv")
    assert (rules, set(re.findall(r"train_and_encode .*?--method (\w+)", planned))) == EDITS[files]


def planned_rules(laboratory, *targets, **settings):
    """The rules of a dry run, and what it prints."""
    done = laboratory.made(*targets, options=["--dry-run", "--printshellcmds"], **settings)
    printed = done.stdout + done.stderr
    return set(re.findall(r"-m workflow\.scripts\.(\w+)", printed)), printed


@pytest.mark.thorough
def test_the_report_has_all_its_tables_and_any_figure_can_be_asked_for(laboratory, tiny):
    """Of tables whose settings together are longer than one argument of a command may be."""
    laboratory.keep_figure("training")
    # Eight values make a picture of two by four; the claim is about metrics that these tables have.
    tiny["datasets"]["tiny"]["picture"] = [3, 4]
    tiny["report"] = ["tiny", "ndcg"]
    claim = {"id": "talr_best", "claim": "TALR-AP is best.", "of": "a test", "stated_for": ["tiny"]}
    claim |= {"kind": "best", "method": "talr_ap"}
    tiny["claims"] = {"mine": {"source": "mine", "claims": [claim]}}
    tiny["tables"]["tiny"] |= {"claims": ["mine"], "description": "Words. " * 20_000}
    block = {"protocol": "tiny", "metric": "ndcg", "bits": [8, 11]}
    tiny["tables"]["ndcg"] = tiny["tables"]["tiny"] | {"title": "Gains", "claims": [], "blocks": [block]}
    figures = ["results/figures/training_tiny", "results/figures/gallery_tiny"]
    targets = ["results/report.html", *(f"{name}.pdf" for name in figures)]
    done = laboratory.made(*targets, config=tiny)
    jobs = re.findall(r"^Job \d+: (\w+)", done.stdout + done.stderr, re.MULTILINE)
    assert sorted(set(jobs)) == ["Figure", "Gallery", "Page", "Table"]
    settings = laboratory.directory / ".snakemake" / "tiebench" / "settings"
    assert max(path.stat().st_size for path in settings.iterdir()) > 131_072
    page = laboratory.text("report.html")
    for words in ("Gains", "TALR-AP is best.", "data:text/csv", "tiny.statistics.csv", "ndcg.tidy.csv"):
        assert words in page
    assert "Retrieval" in page or "What a tie is" in page
    command = re.search(r"snakemake --cores all[^<]*", page).group()
    assert f"--configfile {laboratory.place / 'tiny.yaml'}" in command
    assert command.endswith("results/report.html")
    for name in figures:
        for ending in ("pdf", "svg", "png"):
            assert (laboratory.directory / f"{name}.{ending}").stat().st_size > 1000
    laboratory.refused("results/figures/traning_tiny.pdf", config=tiny)
    # An edit of a figure draws it again, and makes its pages again.
    with (laboratory.checkout / "reporting/figures/training.py").open("a") as file:
        file.write("\n# an edit\n")
    assert planned_rules(laboratory, *targets, config=tiny)[0] == {"plot_figure", "render_page"}


# -- what is refused before anything runs ------------------------------------------------------------------

REFUSED = {
    "impossible split": (36, "results/tiny.csv", ["tiny", "5 + 36", "40"]),
    "unknown table": (15, "results/tinny.csv", ["'tinny'", "did you mean 'tiny'"]),
    "unknown file": (15, "results/tiny.cvs", ["did you mean 'tiny.csv'"]),
}


@pytest.mark.parametrize(("training", "target", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_a_mistake_ends_in_one_line_before_any_job(empty_laboratory, tiny, training, target, words):
    tiny["protocols"]["tiny"]["split"]["training"] = training
    line = empty_laboratory.refused(target, config=tiny)
    assert [word for word in words if word not in line] == []
    for made in ("resources", "results"):
        assert not (empty_laboratory.directory / made).exists()


@pytest.mark.thorough
def test_a_damaged_source_stops_the_run_with_its_reason(empty_laboratory):
    damaged = X.copy()
    damaged[3, 7] = np.nan
    np.savez(empty_laboratory.sources / "tiny.npz", X=damaged, y=LABELS)
    line = empty_laboratory.refused("results/tiny.csv")
    assert "tiny.npz: X[3, 7] is nan" in line
    datasets = empty_laboratory.directory / "resources" / "datasets" / "tiny"
    assert not [path for path in datasets.rglob("*") if path.is_file()]


# -- sentinels, and a cell that cannot be made -------------------------------------------------------------

CLASSES, PER_CLASS = 8, 30


@pytest.fixture(scope="module")
def sentinels(tmp_path_factory, prepared):
    """A table of three sentinels and of ITQ, which finds no eight bits in one-hot labels of rank seven."""
    place = tmp_path_factory.mktemp("sentinels") / "place"
    shutil.copytree(prepared.place, place, ignore=shutil.ignore_patterns("run", "tiny.npz"))
    laboratory = replace(prepared, place=place, sources=place / "sources")
    codes = {
        "by_label": "items > 0.5",
        "constant": "np.ones((len(items), self.bits), bool)",
        "chance": "np.random.default_rng([self.seed, *self.seen]).random((len(items), self.bits)) < 0.5",
    }
    for name, expression in codes.items():
        file = laboratory.checkout / "methods" / f"{name}.py"
        file.write_text(METHOD.format(what=name, codes=expression))
    y = np.repeat(np.arange(CLASSES), PER_CLASS)
    np.savez(laboratory.sources / "onehot.npz", X=np.eye(CLASSES)[y], y=y)
    protocol = {
        "dataset": "onehot",
        "split": {"kind": "per_class", "query": 10, "training": 5},
        "affinity": {"kind": "class"},
        "input": {"kind": "features", "centre": False, "l2_normalise": False},
        "runs_per_job": {"seeds": 2, "bits": [CLASSES - 1, CLASSES]},
    }
    block = {"protocol": "onehot", "metric": "ap", "bits": [CLASSES]}
    table = {"seeds": [0, 1], "methods": ["by_label", "constant", "chance", "itq"]}
    table |= {
        "supervised_bounds": False,
        "blocks": [block, block | {"bits": [CLASSES - 1], "methods": ["itq"]}],
    }
    config = {
        "datasets": {"onehot": {"loader": "features_file", "sources": [{"file": "onehot.npz"}]}},
        "protocols": {"onehot": protocol},
        "tables": {"sentinels": table},
    }
    laboratory.made("results/sentinels.csv", config=config)
    return laboratory


def all_tied_ap():
    """AP of one tie of N items, R of them relevant: the mean over all orders."""
    items, relevant = CLASSES * (PER_CLASS - 10), PER_CLASS - 10
    ranks = range(1, items + 1)
    return sum((1 + (t - 1) * (relevant - 1) / (items - 1)) / t for t in ranks) / items


def sentinel_scores(laboratory, method):
    return [laboratory.metrics(method, CLASSES, seed, protocol="onehot") for seed in (0, 1)]


def test_constant_codes_are_marked_as_collapsed_and_no_others(sentinels):
    found = sentinels.rows("sentinels.tidy.csv")
    tidy = {row["method"]: row for row in found if row["status"] == "done"}
    collapsed = {method: tidy[method]["collapsed"] for method in ("by_label", "constant", "chance")}
    assert collapsed == {"by_label": "0", "constant": "2", "chance": "0"}
    codes = sentinels.rows("sentinels.health.csv")
    found = {(row["distinct_codes"], row["constant_bits"]) for row in codes if row["method"] == "constant"}
    assert found == {("1", str(CLASSES))}
    assert {row["distinct_codes"] for row in codes if row["method"] == "by_label"} == {str(CLASSES)}


def test_random_codes_score_what_random_orders_score(sentinels):
    """Codes that know nothing put items into a uniformly random order, ties or not: the same mean."""
    generator = np.random.default_rng(0)
    y = np.repeat(np.arange(CLASSES), PER_CLASS - 10)
    queries = np.repeat(np.arange(CLASSES), 10)
    simulated = []
    for _ in range(200):
        query, database = (
            np.packbits(generator.random((len(part), CLASSES)) < 0.5, axis=1) for part in (queries, y)
        )
        simulated.append(score_codes(query, database, CLASSES, EqualLabels(queries, y)).means["ap"])
    standard_error = statistics.stdev(simulated)
    assert abs(statistics.mean(simulated) - all_tied_ap()) < 4 * standard_error / math.sqrt(200)
    ours = [metrics["ap"] for metrics in sentinel_scores(sentinels, "chance")]
    assert ours[0] != ours[1]
    for value in ours:
        assert abs(value - all_tied_ap()) < 4 * standard_error


def test_a_refused_run_leaves_an_empty_cell_with_its_reason_and_the_rest_is_made(sentinels):
    found = sentinels.rows("sentinels.tidy.csv")
    tidy = {row["method"]: row for row in found if row["bits"] == str(CLASSES)}
    assert [row["status"] for row in tidy.values()] == ["done", "done", "done", "refused"]
    assert tidy["itq"]["mean"] == ""
    assert tidy["itq"]["seeds"] == "0"
    assert re.search(r"at most 7 bits .* not 8", tidy["itq"]["reason"])
    wide = {row["method"]: row[f"onehot ap {CLASSES}"] for row in sentinels.rows("sentinels.csv")}
    assert wide["itq"] == ""
    assert float(wide["by_label"]) == 1.0
    for seed in (0, 1):
        record = sentinels.record("itq", CLASSES, seed, protocol="onehot")
        assert (record["status"], record["reason"]) == ("refused", tidy["itq"]["reason"])
    assert sentinel_scores(sentinels, "itq") == [{}, {}]
    # One process made both lengths of ITQ.
    (served,) = [row for row in found if row["bits"] == str(CLASSES - 1)]
    assert (served["method"], served["status"], served["seeds"]) == ("itq", "done", "2")
    log = sentinels.text("logs/train_and_encode/onehot/itq/7-8/0-1.log")
    assert "itq/7 bits/seed 1" in log
    assert "itq/8 bits/seed 0" in log


@pytest.mark.thorough
def test_tables_that_share_a_group_leave_each_other_s_runs_alone(laboratory, prepared, tiny):
    """One user's tables, in files of their own, made in turns: one cell and seed, then all."""
    small, large = tiny, copy.deepcopy(tiny)
    small["tables"]["tiny"] |= {"seeds": [0], "methods": ["talr_ap"]}
    small["tables"]["tiny"]["blocks"][0]["bits"] = [11]
    large["tables"]["large"] = large["tables"].pop("tiny")
    made = [("results/tiny.csv", small), ("results/large.csv", large)]
    before = laboratory.stamps()
    for target, config in made:
        laboratory.made(target, config=config)
    assert [run for run in trained(laboratory, before) if not run.endswith("*")] == []
    assert laboratory.tables()["large.csv"] == prepared.tables()["tiny.csv"]
    before = laboratory.stamps("results/runs/**/*"), laboratory.tables()
    for target, config in made:
        assert laboratory.has_nothing_to_do(target, config=config)
    assert (laboratory.stamps("results/runs/**/*"), laboratory.tables()) == before


def test_threads_follow_the_configuration_also_on_fewer_cores(laboratory, tiny):
    tiny["threads"] = {"train": 2, "score": 1}
    rules, planned = planned_rules(laboratory, "results/tiny.csv", config=tiny)
    assert rules == {"train_and_encode", "score_codes", "collect_table"}
    assert set(re.findall(r"train_and_encode .*?--threads (\d)", planned)) == {"2"}


def test_results_without_a_record_of_how_they_were_made_are_said_to_be(laboratory):
    words = "results/runs has no .snakemake/metadata"
    assert words not in laboratory.made("results/tiny.csv").stderr
    shutil.rmtree(laboratory.directory / ".snakemake" / "metadata")
    assert words in laboratory.made("results/tiny.csv").stderr


def test_the_time_of_a_source_counts_only_without_a_recorded_checksum(laboratory, tiny):
    own = shutil.copytree(laboratory.sources, laboratory.place / "own")
    laboratory, source, target = replace(laboratory, sources=own), own / "tiny.npz", "results/tiny.csv"
    assert laboratory.has_nothing_to_do(target)
    os.utime(source)
    assert "load_dataset" in planned_rules(laboratory, target)[0]
    target = "resources/datasets/tiny/items.npy"
    tiny["datasets"]["tiny"]["sources"][0]["sha256"] = hashlib.sha256(source.read_bytes()).hexdigest()
    laboratory.made(target, config=tiny)
    os.utime(source)
    assert laboratory.has_nothing_to_do(target, config=tiny)
    tiny["datasets"]["tiny"]["sources"][0]["sha256"] = "0" * 64
    assert "the file is wrong or damaged" in laboratory.refused(target, config=tiny)


@pytest.mark.thorough
def test_finished_runs_need_their_source_no_more(laboratory, tiny):
    """Nor does another run, or a figure, as long as the dataset made of it is there."""
    (laboratory.place / "nothing").mkdir()
    gone = {"TIEBENCH_RESOURCES": str(laboratory.place / "nothing")}
    before = laboratory.stamps("results/runs/**/*")
    assert laboratory.has_nothing_to_do("results/tiny.csv", **gone)
    tiny["tables"]["tiny"] |= {"methods": ["lsh"]}
    tiny["tables"]["tiny"]["blocks"][0]["bits"] = [8, 9, 11]
    laboratory.made("results/tiny.csv", "results/figures/tie_ranges_tiny.pdf", config=tiny, **gone)
    assert trained(laboratory, before) == runs("lsh", bits=[9], seeds=[0, 1])
    # With other options the dataset would have to be made again, and then the source is missed.
    tiny["datasets"]["tiny"]["sources"][0]["bytes"] = 1
    tiny["tables"]["tiny"]["seeds"].append(2)
    before = laboratory.stamps("re*/**/*")
    line = laboratory.refused("results/tiny.csv", config=tiny, **gone)
    assert "error: dataset tiny needs tiny.npz, which is not in " in line
    assert laboratory.stamps("re*/**/*") == before
