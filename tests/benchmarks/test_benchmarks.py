"""Peers compared with the library: a peer that computes something else would make its ratio meaningless."""

import contextlib
import dataclasses
import functools
import itertools
import multiprocessing
import os
import re
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import forked
import numpy as np
import pytest
import torch
import yaml

import networks
import tiebench
from benchmarks import __main__ as main
from benchmarks import (
    commands,
    encoding,
    evaluation,
    fits,
    gpu,
    losses,
    methods,
    optional_peers,
    plans,
    probe,
    rankings,
    search,
    synthetic,
    training,
)
from benchmarks.report import SUMMARIES, Report, header
from benchmarks.timing import Competitor, Disagreement, Measurement, agree, interleave
from methods.base import HashingMethod, Refusal
from networks.base.devices import fast_half
from reporting.leaderboard import measured
from tiebench.counting.histograms import joint_histograms
from workflow.forks import THREAD_VARIABLES

pytestmark = pytest.mark.thorough

SMALL = synthetic.Shape("small", 21, 2100, 5)
MULTI_HOT = synthetic.Shape("small, multi-hot", 13, 700, 6, multi_hot=True)


both_shapes = pytest.mark.parametrize("shape", [SMALL, MULTI_HOT], ids=lambda shape: shape.name)


def histograms(codes):
    return joint_histograms(codes.query, codes.database, codes.bits, codes.affinity)


@both_shapes
@pytest.mark.parametrize("bits", [7, 48, 65, 128])
def test_peers_of_a_score_are_compared_with_it(shape, bits):
    codes = synthetic.codes(shape, bits)
    found = histograms(codes)
    libraries = optional_peers.found(optional_peers.PEERS)
    compared = [*evaluation._peers(codes, found, 8), *evaluation._libraries(libraries, codes, found, 2)]
    assert [peer.name for peer in compared if not peer.agrees(peer.call())] == []
    assert {peer.base for peer in compared} == {evaluation.JOINT, evaluation.WHOLE}
    if bits == 48:  # of other codes the same results are wrong
        wrong = histograms(synthetic.codes(shape, bits, seed=1))
        assert not any(peer.agrees(peer.call()) for peer in evaluation._peers(codes, wrong, 8))


def test_header_says_which_peers_are_absent(monkeypatch):
    monkeypatch.setattr(optional_peers, "PEERS", {"numpy": "numpy", "no_such_module": "no-such-package"})
    monkeypatch.setattr(optional_peers, "RUN_PEERS", {})
    present, absent = optional_peers.versions()
    assert present == [f"numpy {np.__version__}"]
    assert absent == ["no-such-package"]
    assert set(optional_peers.found(optional_peers.PEERS)) == {"numpy"}
    assert "not installed, so not timed: no-such-package" in header()


@pytest.mark.parametrize(
    "objective,levels", [*itertools.product(["ap_s", "dcg_s", "mutual information"], [2, 4]), ("dcg_s", 8)]
)
@pytest.mark.parametrize("items,bits,bins", [(17, 12, 12), (40, 16, 5), (33, 8, 20)])
def test_losses_agree_in_float64(objective, levels, items, bits, bins):
    codes, affinity = losses.batch(items, bits, levels, seed=items)
    found = losses.ways(codes.double(), affinity, bins, objective)
    value, gradient = found.pop(losses.AUTOGRAD)()
    assert gradient.abs().max() > 0
    for name, call in found.items():
        other_value, other_gradient = call()
        assert other_value == pytest.approx(value, rel=1e-12), name
        torch.testing.assert_close(other_gradient, gradient, rtol=1e-9, atol=1e-14, msg=name)


def test_measurements_extrapolate_and_compare_within_a_round():
    calls = []
    competitors = {"one": Competitor(lambda: calls.append(1), 1000), "two": lambda: calls.append(2)}
    seen = interleave(competitors, 3, 0)
    assert len(seen["one"].seconds) == len(seen["two"].seconds) == 3
    # Three rounds, one call to warm up and one to estimate.
    assert calls.count(1) == calls.count(2) == 5
    # A slow second round moves both: the ratio stays.
    base, other = Measurement((1.0, 10.0, 1.0)), Measurement((2.0, 20.0, 3.0))
    assert other.ratio_to(base) == 2
    assert other.median == 3


def tables(text):
    """Markdown tables as lists of rows; every row is as long as its head, the second is the ruler."""
    found = []
    for block in text.split("\n\n"):
        lines = [line for line in block.strip().splitlines() if line.startswith("|")]
        if lines:
            assert lines == block.strip().splitlines(), "a table stands by itself"
            rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]
            assert all(set(cell) <= set("-:") for cell in rows[1])
            assert {len(row) for row in rows} == {len(rows[0])}
            found.append([rows[0], *rows[2:]])
    return found


def test_report_escapes_what_would_break_a_table(tmp_path, capsys):
    report = Report()
    report.rows(["what", "a|b"], [("x|y", "1")])
    report.finish(tmp_path / "report.md")
    ((head, row),) = tables((tmp_path / "report.md").read_text())
    assert head[1].strip() == r"a\|b"
    assert row[0].strip() == r"x\|y"
    assert [file.name for file in tmp_path.iterdir()] == ["report.md"]


def test_summaries_come_last_in_print_and_lead_the_saved_report(tmp_path, capsys):
    report = Report()
    report.write("head", "one", "two")
    for command in ("a", "b"):
        report.begin(command)
        report.target("what", "at least 1", 1.23456)
        report.peer("ours", "other", f"2 by {command}")
    report.finish(tmp_path / "report.md")
    words = (tmp_path / "report.md").read_text().split()
    assert words[:3] == ["head", "##", "Beside"] and words[-2:] == ["one", "two"]
    printed = capsys.readouterr().out
    assert printed.split()[:3] == ["head", "one", "two"]
    peers, targets = tables(printed)
    assert [row[2] for row in peers] == [" ratio ", " 2 by a ", " 2 by b "]
    assert targets[1] == [" what ", " at least 1 ", " 1.23 "]


def test_records_are_what_pages_show(tmp_path):
    report = Report()
    report.begin(main.command_line("growth", {"axes": ["bits"], "seconds": 8.0, "methods": None}))
    report.rows(["method", "a|b"], [("`itq`", 2)], keep="fit_bits")
    report.wait("one fit", "2 s")
    report.record(tmp_path)
    made = yaml.safe_load((tmp_path / "growth.yaml").read_text())
    assert made["command"] == "python -m benchmarks growth --axes bits --seconds 8"
    assert {"date", "machine", "versions"} < set(made)
    assert made["tables"] == {
        "fit_bits": {"head": ["method", r"a\|b"], "rows": [["`itq`", "2"]]},
        "waits": {"head": ["what", "time"], "rows": [["one fit", "2 s"]]},
    }
    page = measured.render({"measured": "growth.yaml", "table": "fit_bits"}, tmp_path)
    assert page.splitlines()[:3] == [r"| method | a\|b |", "|:---|---:|", "| `itq` | 2 |"]


def test_every_record_is_of_a_benchmark_that_writes_it():
    # Commands that are timed as they are, and excerpts of a run on another processor.
    plain = {"by_hand": "tiebench score-parts", "quick": "make quick"}
    plain["evaluation_avx2"] = "python -m benchmarks evaluation"
    for path in main.RECORDS.glob("*.yaml"):
        made = yaml.safe_load(path.read_text(encoding="utf-8"))
        if path.stem in plain:
            assert made["command"] == plain[path.stem]
            continue
        assert made["command"].split()[:4] == ["python", "-m", "benchmarks", path.stem]
        assert path.stem in main.BENCHMARKS
        for name, columns in SUMMARIES.items():
            if name in made["tables"]:
                assert made["tables"][name]["head"] == list(columns[1:])


@pytest.mark.parametrize("section", methods.SECTIONS, ids=lambda section: section.__name__.strip("_"))
def test_steps_of_methods_agree_with_their_usual_form(section):
    """A section compares the results of its competitors before it returns them."""
    title, competitors = section(np.random.default_rng(0), 200)
    assert title
    assert next(iter(competitors)) == methods.OURS
    assert len(competitors) == 2


def test_steps_and_codes_that_differ_are_refused():
    agree("something", [1.0, 2.0], [1.0, 2.0 + 1e-6])
    with pytest.raises(Disagreement, match="something"):
        agree("something", [1.0, 2.0], [1.0, 2.1])
    codes = np.zeros((100, 48), bool)
    encoding._agree("something", codes, codes)
    with pytest.raises(Disagreement, match="something"):
        encoding._agree("something", codes, ~codes)


@pytest.mark.parametrize("architecture", ["small", "mobilenet_v2_keras"])
def test_extracted_features_are_those_of_the_forward_pass_beside_them(architecture, tmp_path):
    """It compares the competitors before it returns them."""
    network = networks.make(architecture).eval()
    images = np.random.default_rng(0).integers(0, 256, (5, 32, 32, 3)).astype(np.uint8)
    assert len(encoding._extractions(network, images, 2, tmp_path / "features.npy")) == 3


@pytest.mark.parametrize("case", training.CASES[:3], ids=lambda case: case.name)
def test_all_loops_of_training_go_through_the_network_as_often(case, monkeypatch):
    """In the same arithmetic, on images of the same size."""
    seen = []
    case = dataclasses.replace(case, batch=8, batches=2)
    kind = type(networks.make(case.architecture, **case.options))
    forward = kind.forward

    def counted(self, images):
        features = forward(self, images)
        seen.append((tuple(images.shape), features.dtype, features.requires_grad))
        return features

    monkeypatch.setattr(kind, "forward", counted)
    device = torch.device("cpu")
    found = {}
    for name, epoch in training.competitors(case, device).items():
        seen.clear()
        epoch()
        found[name] = list(seen)
    kinds = {name: {kind for _, kind, _ in calls} for name, calls in found.items()}
    half = fast_half(device, kind.bfloat16_on_cpu) or torch.float32
    assert kinds.pop("float32", {torch.float32}) == {torch.float32}
    assert all(of_one == {half} for of_one in kinds.values())
    expected = [((8, 3, case.side, case.side), True)] * 2
    assert all([(size, learning) for size, _, learning in calls] == expected for calls in found.values())


def test_normalisations_are_compared_before_they_are_timed(monkeypatch):
    assert set(training.normalisations(1)) == {"here", "PyTorch's"}
    monkeypatch.setattr(training, "response_normalisation", lambda maps, *constants: 1.01 * maps)
    with pytest.raises(Disagreement, match="response normalisation"):
        training.normalisations(1)


@pytest.mark.parametrize("section", encoding.SECTIONS, ids=lambda section: section.__name__.strip("_"))
def test_encoders_have_a_limit_and_agree_with_their_peers(section):
    """A section compares the codes of its competitors before it returns them."""
    items = np.random.default_rng(0).random((520, encoding.FEATURES), np.float32)
    title, competitors = section(np.random.default_rng(1), items)
    assert title
    assert {encoding.OURS, encoding.LIMIT} <= set(competitors)
    scales = {entry.scale for entry in competitors.values() if isinstance(entry, Competitor)}
    assert all(scale >= 1 for scale in scales)


def test_a_command_is_run_in_the_checkout_and_a_failure_has_its_last_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "ROOT", tmp_path)
    (tmp_path / "say.py").write_text("import os, sys; print(*sys.argv[1:], os.environ['SAID'])")
    assert commands.python("say", "two", 3, SAID="yes") == "two 3 yes"
    (tmp_path / "fail.py").write_text("raise SystemExit('no such table')")
    with pytest.raises(commands.Failed, match="fail --loud: no such table"):
        commands.python("fail", "--loud")


def test_a_command_is_timed_in_its_folder(tmp_path):
    (tmp_path / "fill.py").write_text("import sys; held = b'x' * 200_000_000; print(*sys.argv[1:])")
    spent = commands.timed(tmp_path, "fill", "two", 3)
    assert spent.text == "two 3"
    assert spent.megabytes > 200 and spent.wall > 0 and spent.processor > 0


def test_plans_have_as_many_jobs_as_runs_and_groups(tmp_path, monkeypatch):
    """Trainings and scores, besides the table, the dataset, and the split and features of a protocol."""

    def snakemake(folder, *options):
        words = ["--cores", commands.CORES, "--directory", folder, *options]
        made = forked.run(["-m", "snakemake", *words], cwd=folder, env=os.environ, timeout=600)
        assert made.returncode == 0, made.stderr
        return commands.Spent(1.0, 1.0, 100.0, made.stdout)

    monkeypatch.setattr(plans, "snakemake", snakemake)
    monkeypatch.setattr(plans, "SEEDS", 2)
    monkeypatch.setattr(plans, "PROTOCOLS", 1)
    methods, bits = plans.METHODS[:2], plans.BITS[:2]
    found = plans.plans(tmp_path, methods, bits)
    runs, grouped, together, others = 2 * 2 * plans.SEEDS, 2 * 2, 2, 4
    expected = [2 * runs + others, 2 * grouped + others, 0, 2 * together + others, 2 * runs + 1]
    assert [jobs for _, jobs in found.values()] == expected
    spent = [commands.Spent(wall, 2.0 * wall, 300, "") for wall in (4.0, 3.0, 2.0, 1.0, 2.0)]
    report = Report()
    report.begin("plans")
    plans.tables(report, {name: (one, 9) for name, one in zip(found, spent)}, runs)
    assert [row[2] for row in report.kept["plans"]["targets"]["rows"]] == ["3 s", "2 s", "2"]


def test_first_calls_are_measured_in_a_process_of_their_own(tmp_path):
    """The compiler's seconds are those of the first of two calls."""
    assert probe.pause({"calls": [3.0, 1.0]}) == 2 and probe.pause({"calls": [1.0, 3.0]}) == 0
    file = evaluation._save(synthetic.codes(SMALL, 12), tmp_path / "codes.npz")
    found, plain = (probe.run(task, file) for task in ("score", "score_without_numba"))
    assert set(found) == set(plain) == {"import", "calls", "peak"} and len(found["calls"]) == 2
    assert plain["peak"] < found["peak"]  # no compiler is loaded
    assert set(probe.loss()) == {"torch", "import", "calls"}


def test_command_prints_and_writes_markdown(tmp_path, monkeypatch, capsys):
    file = tmp_path / "rankings.md"
    monkeypatch.setattr(rankings, "QUICK_QUERIES", 10)
    monkeypatch.setattr(rankings.commands, "python", functools.cache(commands.python))  # started once
    for variable in THREAD_VARIABLES:
        monkeypatch.setenv(variable, "1")
    assert main.main(["--quick", "rankings", "--output", str(file)]) == 0
    printed, written = capsys.readouterr().out, file.read_text()
    head, rest = printed.strip().split("\n## Rankings")
    body, figures = rest.split("\n## What you wait for")
    assert written.split() == f"{head} ## What you wait for{figures} ## Rankings{body}".split()
    assert printed.startswith("# Benchmarks\n") and written.startswith("# Benchmarks\n")
    found = tables(printed)
    assert len(found) == 4
    summary = {row[1].strip(): row[2].strip() for row in found[-1][1:]}
    assert any("plain Python" in name for name in summary)
    assert all(summary.values())


def test_peers_of_runs_compute_the_same(tmp_path):
    """Plain Python always; the libraries where they are installed. Ties must make a difference."""
    files = rankings.write(tmp_path, queries=4)
    libraries = optional_peers.found(optional_peers.RUN_PEERS)
    for competitors in (rankings.from_files(files, libraries), rankings.from_dictionaries(files, libraries)):
        rankings.check(competitors)
    assert tiebench.score_run(*files, rankings.MEASURES).means["tied_lines"] == 0
    tied = tiebench.score_run(*rankings.write(tmp_path, queries=4, levels=3), rankings.MEASURES).means
    assert tied["ap_min"] < tied["ap"] < tied["ap_max"]
    wrong = {"one": lambda: dict.fromkeys(rankings.MEASURES, 0.5)}
    wrong["other"] = lambda: dict.fromkeys(rankings.MEASURES, 0.5 + 1e-6)
    with pytest.raises(Disagreement, match="other"):
        rankings.check(wrong)


def test_a_whole_training_is_measured_without_its_warm_up(monkeypatch):
    trained = []

    class Slow(HashingMethod):
        def fit(self, training_set):
            trained.append(len(training_set))
            if len(training_set) == 301:
                raise Refusal("an odd number of items")
            return self

        def encode(self, items):
            return np.zeros((len(items), self.bits), bool)

    monkeypatch.setattr(fits, "load_class", lambda name: Slow)
    monkeypatch.setattr(fits.commands, "peak_bytes", iter([100e6, 164e6, 0]).__next__)
    monkeypatch.setattr(fits.time, "process_time", iter([1.0, 3.0, 3.5, 0.0]).__next__)
    size = fits.CIFAR10._replace(items=300, bits=8)
    assert fits.measure("slow", size, {}) == {"fit": 2.0, "encode": 0.5, "memory": 64.0}
    odd = size._replace(items=301)
    assert fits.measure("slow", odd, {}) == {"refused": "an odd number of items"}
    assert trained == [200, 300, 200, 301]


def test_the_bare_loop_takes_the_steps_of_a_trial(monkeypatch):
    """Weights are compared before anything is timed."""
    monkeypatch.setattr(search, "GIVEN", {"epochs": 2, "batch_size": 64})
    ours, bare = search.seconds(search.Made(300), 3)
    assert ours > 0 and bare > 0
    monkeypatch.setattr(search, "shuffled_batches", lambda items, size, key: [np.arange(items)])
    with pytest.raises(Disagreement, match="weights of the bare loop"):
        search.seconds(search.Made(300), 3)


def test_a_device_is_compared_with_a_core_and_with_plain_pytorch(monkeypatch):
    """On the CPU as the device: the tables, and that what disagrees is not timed."""
    report, device = Report(), torch.device("cpu")
    report.begin("python -m benchmarks gpu")
    gpu.scoring(report, device, [SMALL], 1)
    gpu.objectives(report, device, [32], 1)
    monkeypatch.setattr(gpu, "images_per_second", lambda name, case, device, number, seconds: 10.0 * number)
    gpu.trainings(report, device, [training.Case("small")], 12, 1)
    (tables,) = report.kept.values()
    assert [row[0] for row in tables["scoring"]["rows"]] == ["`score`, every metric, 21 x 2,100, 48 bits"]
    assert [row[0] for row in tables["losses"]["rows"]] == ["AP_s and its gradient, M = 32, 48 bits"]
    assert tables["trainings"]["rows"] == [["small at 32 pixels", "10", "10", "120", "120"]]
    monkeypatch.setattr(gpu, "sorted_average_precision", lambda *given: 0.9999)
    with pytest.raises(Disagreement, match="scores of small differ"):
        gpu.scoring(report, device, [SMALL], 1)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(commands.Failed, match="no CUDA device"):
        gpu.run(report, quick=True)


def test_trainings_that_share_a_device_are_counted_together(monkeypatch):
    """In threads: processes would import torch for as long as all this takes."""
    monkeypatch.setattr(gpu.multiprocessing, "get_context", lambda _: threading)
    in_threads = lambda count, _, **more: ThreadPoolExecutor(count, **more)  # noqa: E731
    monkeypatch.setattr(gpu, "ProcessPoolExecutor", in_threads)
    case, device = training.Case("small", batch=12, batches=1), torch.device("cpu")
    assert gpu.images_per_second("bare loop", case, device, 2, 0.01) > 0
    with pytest.raises(commands.Failed, match=r"gpu: a training of nothing ended: ValueError: "):
        gpu.images_per_second("bare loop", training.Case("nothing"), device, 1, 0.01)


def killed(name, case, first, seconds):
    """As a training, of which the first one is killed; the others wait at the barrier."""
    with contextlib.suppress(FileExistsError):
        Path(first).touch(exist_ok=False)
        os.kill(os.getpid(), signal.SIGKILL)
    gpu.BARRIER.wait()


def test_a_training_that_was_killed_is_not_waited_for(tmp_path, monkeypatch):
    forking = multiprocessing.get_context("fork")
    monkeypatch.setattr(gpu.multiprocessing, "get_context", lambda _: forking)
    monkeypatch.setattr(gpu, "_train", killed)
    case, device = training.Case("small"), SimpleNamespace(type=str(tmp_path / "first"))
    with pytest.raises(commands.Failed, match=r"gpu: a training of small ended: .* terminated abruptly"):
        gpu.images_per_second("bare loop", case, device, 2, 0.01)
