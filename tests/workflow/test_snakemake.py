"""The real Snakefile, end to end on a tiny table: what it makes, what it remakes, what it refuses."""

import copy
import csv
import hashlib
import io
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from datasets.splits import Split
from methods.base.catalogue import load_class
from reporting.printed.table_files import ENDINGS
from tiebench.affinities import EqualLabels
from tiebench.scoring import score_codes

ROOT = Path(__file__).parents[2]
CELLS = [(method, bits) for method in ("lsh", "talr_ap") for bits in (8, 11)]
every_run = pytest.mark.parametrize(
    ("method", "bits", "seed"), [(method, bits, seed) for method, bits in CELLS for seed in (0, 1)]
)
RUN_FILES = {"codes.npz", "model.npz", "training.jsonl", "run.json", "scores.json", "per_query.npz"}
NOTHING = "Nothing to be done"


def run_folder(laboratory, method, bits, seed, protocol="tiny"):
    return laboratory.directory / "results" / "runs" / protocol / method / str(bits) / str(seed)


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def rows(laboratory, name):
    return list(csv.DictReader(io.StringIO((laboratory.directory / "results" / name).read_text("utf-8"))))


def features(laboratory):
    return np.load(laboratory.directory / "resources" / "protocols" / "tiny" / "features.npy")


def split(laboratory):
    return Split.load(laboratory.directory / "resources" / "protocols" / "tiny" / "split.npz")


def labels(laboratory):
    with np.load(laboratory.sources / "tiny.npz") as source:
        return source["y"]


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


@every_run
def test_a_run_has_all_its_files_and_nothing_half_written(prepared, method, bits, seed):
    assert {path.name for path in run_folder(prepared, method, bits, seed).iterdir()} == RUN_FILES


@every_run
def test_codes_are_what_the_saved_model_makes_of_the_features(prepared, method, bits, seed):
    folder = run_folder(prepared, method, bits, seed)
    model = load_class(method).load(folder)
    assert (model.bits, model.seed) == (bits, seed)
    with np.load(folder / "codes.npz", allow_pickle=False) as codes:
        assert set(codes.files) == {"query", "database", "bits"}
        assert int(codes["bits"]) == bits
        for part in ("query", "database"):
            expected = np.packbits(model.encode(features(prepared)[getattr(split(prepared), part)]), axis=1)
            assert codes[part].dtype == np.uint8
            assert np.array_equal(codes[part], expected)


@every_run
def test_scores_are_those_of_the_codes(prepared, method, bits, seed):
    folder = run_folder(prepared, method, bits, seed)
    parts, y = split(prepared), labels(prepared)
    with np.load(folder / "codes.npz", allow_pickle=False) as codes:
        affinity = EqualLabels(y[parts.query], y[parts.database])
        expected = score_codes(codes["query"], codes["database"], bits, affinity, at=[10])
    scores = read(folder / "scores.json")
    assert (scores["protocol"], scores["method"], scores["bits"], scores["seed"]) == (
        "tiny",
        method,
        bits,
        seed,
    )
    assert scores["status"] == "done"
    assert scores["metrics"] == expected.means
    assert {"ap", "ap_min", "ap_max", "ap@10", "ap@10_min", "ndcg", "ndcg@10_max"} <= scores["metrics"].keys()
    with np.load(folder / "per_query.npz", allow_pickle=False) as per_query:
        assert set(per_query.files) == set(expected.per_query)
        for name in per_query.files:
            assert np.array_equal(per_query[name], expected.per_query[name])


@every_run
def test_run_json_says_how_the_run_was_made(prepared, method, bits, seed):
    folder = run_folder(prepared, method, bits, seed)
    record = read(folder / "run.json")
    assert (record["protocol"], record["method"], record["bits"], record["seed"]) == (
        "tiny",
        method,
        bits,
        seed,
    )
    assert record["status"] == "done"
    assert record["hyperparameters"] == load_class(method).load(folder).hyperparameters()
    if method == "talr_ap":
        settings = record["hyperparameters"]
        assert (settings["epochs"], settings["batch_size"], settings["bins"]) == (2, 20, 8)
        assert "torch" in record["versions"]
    assert {"python", "numpy"} <= record["versions"].keys()
    resources = prepared.directory / "resources"
    digest = hashlib.sha256()
    for name in ("items.npy", "labels.npy"):
        digest.update((resources / "datasets" / "tiny" / name).read_bytes())
    fingerprints = {"dataset": digest.hexdigest(), "split": split(prepared).fingerprint}
    assert record["fingerprints"] == fingerprints
    assert record["device"].startswith("cpu")
    assert record["seconds"] == pytest.approx(sum(record["seconds_by_part"].values()))
    assert record["seconds"] > 0
    assert 20 < record["peak_memory_mb"] < 4000
    assert "git_commit" in record
    assert (prepared.directory / record["log"]).is_file()


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


@every_run
def test_training_jsonl_has_a_line_per_epoch(prepared, method, bits, seed):
    lines = (run_folder(prepared, method, bits, seed) / "training.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert all({"objective", "seconds"} <= record.keys() for record in records)
    assert len(records) == (2 if method == "talr_ap" else 1)


def test_the_split_serves_all_methods_and_keeps_queries_apart(prepared):
    parts, y = split(prepared), labels(prepared)
    assert np.bincount(y[parts.query]).tolist() == [5] * 4
    assert np.bincount(y[parts.training]).tolist() == [15] * 4
    assert sorted([*parts.query, *parts.database]) == list(range(160))
    assert not set(parts.query) & set(parts.training)


def test_the_tidy_table_holds_every_cell_with_the_mean_over_seeds(prepared):
    found = rows(prepared, "tiny.tidy.csv")
    assert [(row["method"], int(row["bits"])) for row in found] == CELLS
    for row in found:
        scores = [
            read(run_folder(prepared, row["method"], row["bits"], seed) / "scores.json")["metrics"]["ap"]
            for seed in (0, 1)
        ]
        assert float(row["mean"]) == statistics.mean(scores)
        assert float(row["std"]) == statistics.stdev(scores)
        assert (row["table"], row["protocol"], row["metric"]) == ("tiny", "tiny", "ap")
        assert (row["seeds"], row["status"], row["reason"]) == ("2", "done", "")
    wide = {row["method"]: row for row in rows(prepared, "tiny.csv")}
    assert list(wide) == ["lsh", "talr_ap"]
    for row in found:
        assert wide[row["method"]][f"tiny ap {row['bits']}"] == row["mean"]


def test_the_source_s_folder_is_never_written_to(prepared):
    assert [path.name for path in prepared.sources.iterdir()] == ["tiny.npz"]
    X, y = np.load(prepared.sources / "tiny.npz")["X"], labels(prepared)
    stored = prepared.directory / "resources" / "datasets" / "tiny"
    assert np.array_equal(np.load(stored / "items.npy"), X)
    assert np.array_equal(np.load(stored / "labels.npy"), y)
    assert not (prepared.directory / "resources" / "downloads").exists()


def test_every_job_left_a_log(prepared):
    logs = set(prepared.stamps("results/logs/**/*.log"))
    assert {
        f"results/logs/{rule}/tiny.log" for rule in ("load_dataset", "split_protocol", "collect_table")
    } <= logs
    for method, bits in CELLS:
        for rule in ("train_and_encode", "score_codes"):
            # One log for the four runs of a method, which one process makes.
            text = (prepared.directory / f"results/logs/{rule}/tiny/{method}/8-11/0-1.log").read_text()
            for seed in (0, 1):
                assert f"tiny/{method}/{bits} bits/seed {seed}" in text


# -- what is remade ----------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_second_run_has_nothing_to_do_even_after_everything_moved(laboratory, prepared):
    before = laboratory.stamps()
    assert NOTHING in laboratory.made("results/tiny.csv").stderr
    assert laboratory.stamps() == before
    assert laboratory.tables() == prepared.tables()


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
    assert NOTHING in laboratory.made("results/tiny.csv").stderr


def test_a_new_method_is_a_file_and_a_name_in_a_table(laboratory, prepared, tiny):
    (laboratory.checkout / "methods" / "first_values.py").write_text(FIRST_VALUES)
    tiny["tables"]["tiny"]["methods"].append("first_values")
    before = laboratory.stamps()
    laboratory.made("results/tiny.csv", config=tiny)
    new = {("first_values", 8), ("first_values", 11)}
    assert what_ran(before, laboratory.stamps()) == (new, new, TABLE_FILES)
    old = prepared.tables()["tiny.csv"].splitlines()
    lines = laboratory.tables()["tiny.csv"].splitlines()
    # A reference like LSH: it is placed after it, before the methods that learn.
    assert lines.pop(2).startswith(b"first_values,") and lines == old
    with np.load(run_folder(laboratory, "first_values", 8, 0) / "codes.npz") as codes:
        expected = features(laboratory)[split(laboratory).query][:, :8] > 0
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
    tiny["tables"]["more"] = copy.deepcopy(tiny["tables"]["tiny"])
    tiny["tables"]["more"]["blocks"][0]["bits"] = [9, 11]
    tiny["tables"]["more"]["seeds"] = [1, 2]
    laboratory.made("results/more.csv", "results/tiny.csv", config=tiny)
    # 9 bits are on no list: jobs of their own. At 11 bits seed 1 is there, and seed 2 of another group.
    both = ("lsh", "talr_ap")
    new = runs(*both, bits=[9], seeds=[1, 2]) | runs(*both, bits=[11], seeds=[2])
    assert trained(laboratory, before) == new
    # Now 3 joins 2, of whose group it is.
    before = laboratory.stamps()
    tiny["tables"]["more"]["seeds"] = [1, 2, 3]
    laboratory.made("results/more.csv", config=tiny)
    assert trained(laboratory, before) == runs(*both, bits=[9, 11], seeds=[2, 3])
    assert NOTHING in laboratory.made("results/more.csv", config=tiny).stderr


@pytest.mark.thorough
def test_a_smaller_table_later_trains_nothing_again(laboratory, prepared, tiny):
    tiny["tables"]["tiny"] |= {"seeds": [0], "methods": ["talr_ap"]}
    tiny["tables"]["tiny"]["blocks"][0]["bits"] = [11]
    before = laboratory.stamps()
    laboratory.made("results/tiny.csv", config=tiny)
    assert not {run for run in trained(laboratory, before) if not run.endswith("*")}
    laboratory.made("results/tiny.csv")
    assert not {run for run in trained(laboratory, before) if not run.endswith("*")}
    assert laboratory.tables() == prepared.tables()


@pytest.mark.thorough
def test_a_run_is_the_same_whichever_runs_its_process_made_before(laboratory, prepared, tiny):
    tiny["protocols"]["tiny"]["runs_per_job"] = {"seeds": 1}
    shutil.rmtree(laboratory.directory / "results")
    done = laboratory.made("results/tiny.csv", config=tiny)
    assert len(re.findall(r"^Job \d+: tiny: train", done.stderr + done.stdout, re.MULTILINE)) == 8
    assert laboratory.tables() == prepared.tables()
    for method, bits in CELLS:
        for seed in (0, 1):
            alone, grouped = (run_folder(place, method, bits, seed) for place in (laboratory, prepared))
            for name in ("codes.npz", "model.npz", "scores.json", "per_query.npz"):
                assert (alone / name).read_bytes() == (grouped / name).read_bytes()
            assert (
                read(alone / "run.json")["hyperparameters"] == read(grouped / "run.json")["hyperparameters"]
            )


@pytest.mark.parametrize("affinity", ["class", "distance_levels"])
@pytest.mark.thorough
def test_a_database_in_parts_gives_the_same_bytes(laboratory, prepared, tiny, affinity):
    runs = [("lsh", 8, 0), ("talr_ap", 8, 0)]
    tiny["tables"]["tiny"] |= {"seeds": [0], "blocks": [{"protocol": "tiny", "metric": "ndcg", "bits": [8]}]}
    if affinity == "distance_levels":
        runs = runs[:1]
        tiny["protocols"]["tiny"]["affinity"] = {"kind": affinity, "percentiles": [20, 5], "levels": [1, 2]}
        tiny["tables"]["tiny"]["methods"] = ["lsh"]
        shutil.rmtree(laboratory.directory / "results")
    laboratory.made("results/tiny.csv", config=tiny)
    whole = {}
    for run in runs:
        for name in ("scores.json", "per_query.npz"):
            file = run_folder(laboratory, *run) / name
            whole[file] = file.read_bytes()
            file.unlink()
    tables = laboratory.tables()
    tiny["protocols"]["tiny"]["database_parts"] = 3
    done = laboratory.made("results/tiny.csv", config=tiny)
    jobs = re.findall(r"^Job \d+: tiny: (train|count|score)", done.stderr + done.stdout, re.MULTILINE)
    assert jobs.count("count") == 3 * len(runs) and jobs.count("score") == len(runs) and "train" not in jobs
    assert {file: file.read_bytes() for file in whole} == whole
    assert laboratory.tables() == tables
    assert not list(laboratory.directory.glob("results/runs/*/*/*/*/parts/*"))


@pytest.mark.thorough
def test_each_length_of_a_group_has_its_own_hyperparameters(laboratory, tiny):
    tiny["methods"]["talr_ap"]["protocols"]["tiny"]["by_bits"] = {11: {"epochs": 3}}
    before = laboratory.stamps()
    laboratory.made("results/tiny.csv", config=tiny)
    assert trained(laboratory, before) == runs("talr_ap", bits=[8, 11], seeds=[0, 1])
    epochs = [
        read(run_folder(laboratory, "talr_ap", bits, 1) / "run.json")["hyperparameters"]["epochs"]
        for bits in (8, 11)
    ]
    assert epochs == [2, 3]


@pytest.mark.thorough
def test_an_error_is_told_with_its_run_and_leaves_nothing_of_its_job(laboratory, prepared, tiny):
    text = FIRST_VALUES.replace(
        "def fit(self, training_set):", "def fit(self, training_set):\n        self.check()"
    )
    text += (
        "\n    def check(self):\n        if self.bits == 11:\n            raise RuntimeError('no eleven')\n"
    )
    method = laboratory.checkout / "methods" / "first_values.py"
    method.write_text(text)
    tiny["tables"]["tiny"]["methods"].append("first_values")
    done = laboratory.run("results/tiny.csv", config=tiny)
    assert done.returncode != 0
    assert "error: tiny/first_values/11 bits/seed 0: RuntimeError: no eleven (traceback in " in done.stderr
    folder = run_folder(laboratory, "first_values", 8, 0).parents[1]
    assert not [path for path in folder.rglob("*") if path.is_file()]
    assert laboratory.tables() == prepared.tables()
    method.write_text(FIRST_VALUES)
    laboratory.made("results/tiny.csv", config=tiny)
    assert {path.name for path in run_folder(laboratory, "first_values", 11, 1).iterdir()} == RUN_FILES


FIRST_VALUES = '''"""First values: signs of the first features. Anonymous, 2020."""

from methods.base import HashingMethod


class FirstValues(HashingMethod):
    supervision = "none"

    def fit(self, training_set):
        training_set.log({"objective": None, "seconds": 0.0})
        return self

    def encode_block(self, items):
        return items[:, : self.bits] > 0

    def state(self):
        return {}

    def set_state(self, state):
        pass
'''


# Edited files -> the rules that a dry run then wants to run, and for which methods.
EDITS = {
    "methods/base/deep.py": ({"train_and_encode", "score_codes", "collect_table"}, {"talr_ap"}),
    "tiebench/rankings/exact.py": ({"score_codes", "collect_table"}, {"lsh", "talr_ap"}),
    "methods/itq.py reporting/page/document.py datasets/loaders/digits.py": (set(), set()),
    "methods/base/__init__.py": ({"train_and_encode", "score_codes", "collect_table"}, {"lsh", "talr_ap"}),
    "reporting/printed/latex.py": ({"collect_table"}, set()),
    "datasets/splits/per_class.py": (
        {"split_protocol", "normalise_features", "train_and_encode", "score_codes", "collect_table"},
        {"lsh", "talr_ap"},
    ),
    "datasets/affinity/class_.py": ({"train_and_encode", "score_codes", "collect_table"}, {"lsh", "talr_ap"}),
}


# The first three say most, and are part of every run.
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param(*edit, marks=[pytest.mark.thorough] if place > 2 else [], id=edit[0])
        for place, edit in enumerate(EDITS.items())
    ],
)
def test_an_edit_reruns_the_stages_whose_numbers_it_can_change(laboratory, files, expected):
    for file in files.split():
        path = laboratory.checkout / file
        path.write_text(path.read_text() + "\n# an edit\n")
    done = laboratory.made("results/tiny.csv", options=["--dry-run", "--printshellcmds"])
    rules = set(re.findall(r"-m workflow\.scripts\.(\w+)", done.stdout + done.stderr))
    methods = set(re.findall(r"train_and_encode .*?--method (\w+)", done.stdout + done.stderr))
    trains = "train_and_encode" in expected[0]
    assert rules == expected[0]
    assert methods == (expected[1] if trains else set())


def keep_figures(laboratory, *names):
    """Take the other figures away: drawing all of them takes longer than a test of some needs."""
    for path in (laboratory.checkout / "reporting" / "figures").glob("[a-z]*.py"):
        if path.stem not in names:
            path.unlink()


@pytest.mark.thorough
def test_the_report_has_all_its_tables_and_any_figure_can_be_asked_for(laboratory, tiny):
    keep_figures(laboratory, "cost", "training")
    # Eight values make a picture of two by four; the claim is about metrics that these tables have.
    tiny["datasets"]["tiny"]["picture"] = [3, 4]
    tiny["report"] = ["tiny", "ndcg"]
    tiny["claims"] = {
        "mine": {
            "source": "mine",
            "claims": [
                {
                    "id": "talr_best",
                    "claim": "TALR-AP is best.",
                    "of": "a test",
                    "stated_for": ["tiny"],
                    "kind": "best",
                    "method": "talr_ap",
                }
            ],
        }
    }
    tiny["tables"]["tiny"]["claims"] = ["mine"]
    block = {"protocol": "tiny", "metric": "ndcg", "bits": [8, 11]}
    tiny["tables"]["ndcg"] = tiny["tables"]["tiny"] | {"title": "Gains", "claims": [], "blocks": [block]}
    figures = [f"results/figures/{name}_tiny" for name in ("cost", "training", "gallery")]
    done = laboratory.made("results/report.html", *[f"{name}.pdf" for name in figures], config=tiny)
    jobs = re.findall(r"^Job \d+: (\w+)", done.stdout + done.stderr, re.MULTILINE)
    assert sorted(set(jobs)) == ["Figure", "Gallery", "Page", "Table"]
    page = (laboratory.directory / "results/report.html").read_text()
    for words in ("Gains", "TALR-AP is best.", "data:text/csv", "tiny.statistics.csv", "ndcg.tidy.csv"):
        assert words in page
    assert "Retrieval" in page or "What a tie is" in page
    command = re.search(r"snakemake --cores all[^<]*", page).group()
    assert f"--configfile {laboratory.place / 'tiny.yaml'}" in command and command.endswith(
        "results/report.html"
    )
    for name in figures:
        for ending in ("pdf", "svg", "png"):
            assert (laboratory.directory / f"{name}.{ending}").stat().st_size > 1000
    unknown = laboratory.run("results/figures/cots_tiny.pdf", config=tiny)
    assert unknown.returncode != 0


@pytest.mark.thorough
def test_an_edit_of_a_figure_redraws_it_and_its_pages(laboratory):
    keep_figures(laboratory, "cost", "tie_ranges")
    targets = ["results/tiny.csv", "results/tiny.html", "results/figures/cost_tiny.pdf"]
    laboratory.made(*targets)
    path = laboratory.checkout / "reporting/figures/cost.py"
    path.write_text(path.read_text() + "\n# an edit\n")
    done = laboratory.made(*targets, options=["--dry-run", "--printshellcmds"])
    rules = set(re.findall(r"-m workflow\.scripts\.(\w+)", done.stdout + done.stderr))
    assert rules == {"plot_figure", "render_page"}


# -- what is refused before anything runs ------------------------------------------------------------------


def with_training(tiny):
    tiny["protocols"]["tiny"]["split"]["training"] = 36
    return tiny


def with_absent_source(tiny):
    tiny["datasets"]["tiny"]["sources"][0]["file"] = "absent.npz"
    return tiny


def unchanged(tiny):
    return tiny


REFUSED = {
    "impossible split": (with_training, "results/tiny.csv", ["tiny", "5 + 36", "40"]),
    "missing source": (with_absent_source, "results/tiny.csv", ["tiny", "absent.npz", "TIEBENCH_RESOURCES"]),
    "unknown table": (unchanged, "results/tinny.csv", ["'tinny'", "did you mean 'tiny'"]),
    "unknown file": (unchanged, "results/tiny.cvs", ["did you mean 'tiny.csv'"]),
}


@pytest.mark.parametrize(("change", "target", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_a_mistake_ends_in_one_line_before_any_job(empty_laboratory, tiny, change, target, words):
    done = empty_laboratory.run(target, config=change(tiny))
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    for word in words:
        assert word in line
    assert "Traceback" not in done.stdout + done.stderr
    assert "Exception" not in done.stdout + done.stderr
    for made in ("resources", "results"):
        assert not (empty_laboratory.directory / made).exists()


@pytest.mark.thorough
def test_a_mistake_leaves_earlier_results_as_they_were(laboratory, tiny):
    before = laboratory.stamps(), laboratory.stamps("resources/**/*")
    assert laboratory.run("results/tiny.csv", config=with_training(tiny)).returncode != 0
    assert (laboratory.stamps(), laboratory.stamps("resources/**/*")) == before
    assert NOTHING in laboratory.made("results/tiny.csv").stderr


@pytest.mark.thorough
def test_a_damaged_source_stops_the_run_with_its_reason_and_is_not_touched(empty_laboratory, tiny):
    source = empty_laboratory.sources / "tiny.npz"
    whole = source.read_bytes()
    X = np.ones((160, 12), np.float32)
    X[3, 7] = np.nan
    np.savez(source, X=X, y=np.arange(160) % 4)
    done = empty_laboratory.run("results/tiny.csv")
    assert done.returncode != 0
    assert re.search(r"^error: .*tiny\.npz: X\[3, 7\] is nan", done.stderr, re.MULTILINE)
    datasets = empty_laboratory.directory / "resources" / "datasets" / "tiny"
    assert not [path for path in datasets.rglob("*") if path.is_file()]
    # A recorded checksum is looked at before the file is.
    tiny["datasets"]["tiny"]["sources"][0]["sha256"] = hashlib.sha256(whole).hexdigest()
    found = hashlib.sha256(source.read_bytes()).hexdigest()
    done = empty_laboratory.run("results/tiny.csv", config=tiny)
    assert done.returncode != 0
    assert re.search(rf"^error: .*tiny\.npz has sha256 {found}", done.stderr, re.MULTILINE)


# -- sentinels, and a cell that cannot be made -------------------------------------------------------------

SENTINEL = '''"""Sentinel: {what}. 2020."""

import numpy as np

from methods.base import HashingMethod


class Sentinel(HashingMethod):
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
        text = SENTINEL.format(what=name, codes=expression)
        (laboratory.checkout / "methods" / f"{name}.py").write_text(text)
    y = np.repeat(np.arange(CLASSES), PER_CLASS)
    np.savez(laboratory.sources / "onehot.npz", X=np.eye(CLASSES)[y], y=y)
    protocol = {
        "dataset": "onehot",
        "split": {"kind": "per_class", "query": 10, "training": 5},
        "affinity": {"kind": "class"},
        "input": {"kind": "features", "centre": False, "l2_normalise": False},
        "runs_per_job": {"seeds": 2, "bits": [CLASSES - 1, CLASSES]},
    }
    methods = ["by_label", "constant", "chance", "itq"]
    config = {
        "datasets": {"onehot": {"loader": "features_file", "sources": [{"file": "onehot.npz"}]}},
        "protocols": {"onehot": protocol},
        "tables": {
            "sentinels": {
                "seeds": [0, 1],
                "supervised_bounds": False,
                "methods": methods,
                "blocks": [
                    {"protocol": "onehot", "metric": "ap", "bits": [CLASSES]},
                    {"protocol": "onehot", "metric": "ap", "bits": [CLASSES - 1], "methods": ["itq"]},
                ],
            }
        },
    }
    laboratory.made("results/sentinels.csv", config=config)
    return laboratory


def all_tied_ap():
    """AP of one tie of N items, R of them relevant: the mean over all orders."""
    items, relevant = CLASSES * (PER_CLASS - 10), PER_CLASS - 10
    ranks = range(1, items + 1)
    return sum((1 + (t - 1) * (relevant - 1) / (items - 1)) / t for t in ranks) / items


def sentinel_scores(laboratory, method):
    return [
        read(run_folder(laboratory, method, CLASSES, seed, "onehot") / "scores.json")["metrics"]
        for seed in (0, 1)
    ]


@pytest.mark.thorough
def test_codes_made_from_labels_score_one(sentinels):
    for metrics in sentinel_scores(sentinels, "by_label"):
        assert metrics["ap"] == metrics["ap_min"] == metrics["ap_max"] == 1.0
        assert metrics["ndcg"] == pytest.approx(1.0, abs=1e-12)


def test_constant_codes_score_the_closed_form_of_one_tie(sentinels):
    items, relevant = CLASSES * (PER_CLASS - 10), PER_CLASS - 10
    last = sum(i / (items - relevant + i) for i in range(1, relevant + 1)) / relevant
    for metrics in sentinel_scores(sentinels, "constant"):
        assert metrics["ap"] == pytest.approx(all_tied_ap(), abs=1e-12)
        assert metrics["ap_max"] == pytest.approx(1.0, abs=1e-12)
        assert metrics["ap_min"] == pytest.approx(last, abs=1e-12)


def test_constant_codes_are_marked_as_collapsed_and_no_others(sentinels):
    tidy = {row["method"]: row for row in rows(sentinels, "sentinels.tidy.csv") if row["status"] == "done"}
    collapsed = {method: tidy[method]["collapsed"] for method in ("by_label", "constant", "chance")}
    assert collapsed == {"by_label": "0", "constant": "2", "chance": "0"}
    codes = rows(sentinels, "sentinels.health.csv")
    found = {(row["distinct_codes"], row["constant_bits"]) for row in codes if row["method"] == "constant"}
    assert found == {("1", str(CLASSES))}
    assert {row["distinct_codes"] for row in codes if row["method"] == "by_label"} == {str(CLASSES)}
    markdown = (sentinels.directory / "results" / "sentinels.md").read_text(encoding="utf-8")
    for text in (markdown, sentinels.page("sentinels")):
        assert "‡ Collapsed codes, which the mean includes" in text


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
    found = rows(sentinels, "sentinels.tidy.csv")
    tidy = {row["method"]: row for row in found if row["bits"] == str(CLASSES)}
    assert [row["status"] for row in tidy.values()] == ["done", "done", "done", "refused"]
    assert tidy["itq"]["mean"] == ""
    assert tidy["itq"]["seeds"] == "0"
    assert re.search(r"at most 7 bits .* not 8", tidy["itq"]["reason"])
    wide = {row["method"]: row[f"onehot ap {CLASSES}"] for row in rows(sentinels, "sentinels.csv")}
    assert wide["itq"] == ""
    assert float(wide["by_label"]) == 1.0
    for ending in ("md", "tex"):
        text = (sentinels.directory / "results" / f"sentinels.{ending}").read_text(encoding="utf-8")
        assert "at most 7 bits" in text
    assert "at most 7 bits" in sentinels.page("sentinels")
    for seed in (0, 1):
        folder = run_folder(sentinels, "itq", CLASSES, seed, "onehot")
        assert read(folder / "run.json")["status"] == "refused"
        assert read(folder / "run.json")["reason"] == tidy["itq"]["reason"]
        assert read(folder / "scores.json")["metrics"] == {}
    # One process made both lengths of ITQ.
    (served,) = [row for row in found if row["bits"] == str(CLASSES - 1)]
    assert (served["method"], served["status"], served["seeds"]) == ("itq", "done", "2")
    log = (sentinels.directory / "results/logs/train_and_encode/onehot/itq/7-8/0-1.log").read_text()
    assert "itq/7 bits/seed 1" in log
    assert "itq/8 bits/seed 0" in log


# -- several folders of sources ----------------------------------------------------------------------------


def test_several_folders_of_sources_are_searched_in_order_and_left_alone(empty_laboratory):
    first, second = empty_laboratory.place / "first", empty_laboratory.place / "second"
    first.mkdir()
    second.mkdir()
    (empty_laboratory.sources / "tiny.npz").rename(second / "tiny.npz")
    second.chmod(0o555)
    before = (second / "tiny.npz").stat().st_mtime_ns
    named = os.pathsep.join(map(str, [first, second, empty_laboratory.place / "not_there"]))
    try:
        empty_laboratory.made("resources/datasets/tiny/dataset.json", TIEBENCH_RESOURCES=named)
    finally:
        second.chmod(0o755)
    assert [path.name for path in second.iterdir()] == ["tiny.npz"]
    assert (second / "tiny.npz").stat().st_mtime_ns == before
    assert list(first.iterdir()) == []
    card = read(empty_laboratory.directory / "resources" / "datasets" / "tiny" / "dataset.json")
    assert card["items"] == 160


# -- settings, sources and groups --------------------------------------------------------------------------


@pytest.mark.thorough
def test_tables_that_share_a_group_leave_each_other_s_scores_alone(laboratory, tiny):
    """One user's tables, in files of their own, made in turns: 8 bits alone, then 8 and 11 bits."""
    small, large = tiny, copy.deepcopy(tiny)
    small["tables"]["tiny"]["blocks"][0]["bits"] = [8]
    large["tables"]["large"] = large["tables"].pop("tiny")
    made = [("results/tiny.csv", small), ("results/large.csv", large)]
    for target, config in made:
        laboratory.made(target, config=config)
    before = laboratory.stamps("results/runs/**/*"), laboratory.tables()
    for target, config in made:
        assert NOTHING in laboratory.made(target, config=config).stderr
    assert (laboratory.stamps("results/runs/**/*"), laboratory.tables()) == before


@pytest.mark.thorough
def test_a_page_of_tables_with_long_settings_is_made(laboratory, tiny):
    """Their settings together are longer than one argument of a command may be."""
    table = tiny["tables"]["tiny"] | {"description": "Words. " * 20_000}
    names = ["table_0", "table_1"]
    tiny["tables"] |= {name: table | {"title": f"Number {name}"} for name in names}
    tiny["report"] = names
    before = laboratory.stamps("results/runs/**/*")
    keep_figures(laboratory, "tie_ranges")
    laboratory.made("results/report.html", config=tiny)
    assert laboratory.stamps("results/runs/**/*") == before
    page = (laboratory.directory / "results" / "report.html").read_text()
    settings = laboratory.directory / ".snakemake" / "tiebench" / "settings"
    assert max(path.stat().st_size for path in settings.iterdir()) > 131_072
    for name in names:
        assert f"Number {name}" in page and f"{name}.tidy.csv" in page


@pytest.mark.thorough
def test_finished_runs_need_their_source_no_more(laboratory, tiny):
    """Neither for a new figure and page, nor for another run, as long as the dataset made of it is there."""
    (laboratory.place / "nothing").mkdir()
    gone = {"TIEBENCH_RESOURCES": str(laboratory.place / "nothing")}
    before = laboratory.stamps("results/runs/**/*")
    assert NOTHING in laboratory.made("results/tiny.csv", **gone).stderr
    laboratory.made("results/figures/tie_ranges_tiny.pdf", **gone)
    assert laboratory.stamps("results/runs/**/*") == before
    tiny["tables"]["tiny"]["blocks"][0]["bits"] = [8, 9, 11]
    laboratory.made("results/tiny.csv", config=tiny, **gone)
    assert trained(laboratory, before) == runs("lsh", "talr_ap", bits=[9], seeds=[0, 1])
    # With other options the dataset would have to be made again, and then the source is missed.
    tiny["datasets"]["tiny"]["sources"][0]["bytes"] = 1
    tiny["tables"]["tiny"]["seeds"].append(2)
    done = laboratory.run("results/tiny.csv", config=tiny, **gone)
    assert done.returncode != 0
    assert "error: dataset tiny needs tiny.npz, which is not in " in done.stderr
