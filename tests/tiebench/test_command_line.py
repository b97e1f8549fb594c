"""The command tiebench: codes in every form, and one-line errors for files that cannot be scored."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from tiebench import commands
from tiebench.__main__ import main
from tiebench.affinities import EqualLabels
from tiebench.codes.packing import pack
from tiebench.commands import search
from tiebench.metric_table import METRICS
from tiebench.scoring import score_codes


@pytest.fixture
def arrays():
    rng = np.random.default_rng(0)
    return {
        "query": rng.integers(0, 2, (9, 13)),
        "database": rng.integers(0, 2, (40, 13)),
        "query_labels": rng.integers(0, 3, 9),
        "database_labels": rng.integers(0, 3, 40),
    }


@pytest.fixture
def scored(tmp_path, printed):
    """Function of arrays and options: what `tiebench score` prints."""

    def run(arrays, *options):
        np.savez(tmp_path / "codes.npz", **arrays)
        return printed("score", tmp_path / "codes.npz", *options)

    return run


class Payload:
    """Unpickling it makes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("form", ["file", "folder"])
def test_nothing_is_ever_unpickled(tmp_path, fails, arrays, form):
    made = tmp_path / "made"
    arrays["query_labels"] = np.array([Payload(made)] * 9)
    if form == "file":
        np.savez(tmp_path / "codes", **arrays)
    else:
        (tmp_path / "codes").mkdir()
        for name, array in arrays.items():
            np.save(tmp_path / "codes" / name, array)
    words, name = ("not a readable", "codes.npz") if form == "file" else ("not a NumPy array", "codes")
    assert words in fails("score", tmp_path / name)
    assert not made.exists()


def test_labels_are_taken_by_rows_of_a_split(tmp_path, printed, fails, misused, arrays):
    """As codes of runs of the suite have none of their own."""
    np.savez(tmp_path / "whole", **arrays)
    np.savez(tmp_path / "codes", query=arrays["query"], database=arrays["database"])
    rows = np.random.default_rng(1).permutation(60)
    labels = np.full(60, 99)
    np.savez(tmp_path / "split", query=rows[:9], database=rows[9:49])
    labels[rows[:9]], labels[rows[9:49]] = arrays["query_labels"], arrays["database_labels"]
    np.save(tmp_path / "labels", labels)
    codes, given = tmp_path / "codes.npz", ["--split", tmp_path / "split.npz"]
    both = [*given, "--labels", tmp_path / "labels.npy"]
    assert printed("score", codes, *both) == printed("score", tmp_path / "whole.npz")
    assert "--split and --labels give labels by rows of a dataset" in fails("score", codes)
    assert "--labels goes with --split" in misused("score", codes, *both[2:])
    assert "--split goes with --labels" in misused("score", codes, *given)
    np.save(tmp_path / "labels", labels[:40])
    assert "does not have all rows of" in fails("score", codes, *both)


def test_the_normaliser_of_ap_at_k_is_the_one_asked_for(scored):
    # One query whose ranking has relevant items at ranks 1 and 3 of 5: sums of precision 1 and 1 + 2/3.
    codes = {"query": np.ones((1, 5)), "database": np.tri(5)[::-1], "query_labels": np.array([4])}
    codes |= {"database_labels": np.array([4, 3, 4, 3, 3])}
    for normaliser, value in {"hits": 1.0, "min": 1 / 2, "relevant": 1 / 2}.items():
        found = scored(codes, "--at", "1", "--at", "2", "--at", "4", "--ap-at-normaliser", normaliser)
        assert found["ap@2"] == pytest.approx(value)
        assert found["ap@4"] == found["ap"] == pytest.approx((1 + 2 / 3) / 2)
        assert found["ap@1"] == {"relevant": 1 / 2}.get(normaliser, 1.0)
    assert scored(codes, "--at", "2")["ap@2"] == 1.0
    assert scored(codes, "--at", "1,2") == scored(codes, "--at", "1", "--at", "2")


def test_per_query_values_average_to_the_printed_ones(tmp_path, scored, arrays):
    found = scored(arrays, "--at", "7", "--per-query", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as per_query:
        assert {"ap", "ap_min", "ap@7"} < set(per_query.files)
        assert {name: np.mean(per_query[name]) for name in per_query.files}.items() <= found.items()


def torch_file(path):
    torch.save({"query": torch.zeros(3, 4)}, path)


@pytest.mark.parametrize(
    ("name", "write", "message"),
    [
        ("codes.pt", torch_file, "not an .npz file; save the arrays first: numpy.savez("),
        ("codes.csv", lambda path: path.write_text("0,1\n"), "not an .npz file; save the arrays first"),
        ("query.npy", lambda path: np.save(path, np.zeros((3, 4))), "not an .npz file; save the arrays"),
        ("codes.npz", lambda path: np.savez(path, a=np.zeros(3)), "lacks query, database, query_labels"),
        ("codes.npz", lambda path: np.savez(path, querry=np.zeros(3)), "database_labels; it holds querry"),
    ],
)
def test_other_files_are_refused_with_what_to_do(tmp_path, fails, name, write, message):
    write(tmp_path / name)
    error = fails("score", tmp_path / name)
    assert message in error and name in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["codes.npz"], "the command is missing: tiebench score codes.npz"),
        (["--at", "5", "codes.npz"], "the command is missing: tiebench score codes.npz"),
        ([], "the command is missing: tiebench score FILE.npz"),
        (["scores", "codes"], "there is no command 'scores'; did you mean 'score'?"),
        (["healt", "codes.npz"], "there is no command 'healt'; did you mean 'health'?"),
        (["a" * 300], "there is no command 'aaa"),
        (["score"], "the following arguments are required: FILE.npz"),
        (["score", "codes.npz", "--ordr=file"], "arguments: --ordr=file; did you mean '--order'?"),
        (["score", "codes.npz", "--at", "0"], "must be a positive integer, not '0'"),
        (["score", "codes.npz", "--at", "5,x"], "must be a positive integer, not 'x'"),
        (["score", "codes.npz", "--at", "1" + 18 * "0"], "positive integer of at most 999999999999999999"),
        (["score", "codes.npz", "--ap-at-normaliser", "hit"], "invalid choice: 'hit'"),
    ],
)
def test_a_wrong_command_line_ends_in_a_line_that_helps(misused, arguments, message):
    assert message in misused(*arguments)


def test_help_and_list_name_every_metric(capsys):
    assert main(["metrics"]) == 0
    listed = capsys.readouterr().out
    for arguments in (["--help"], ["score", "--help"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 0
    helped = capsys.readouterr().out
    assert "{" not in listed
    for name, metric in METRICS.items():
        assert name in helped and name in listed.splitlines() and metric.source in listed
    assert "score" in helped and "--merge" in helped


def test_the_module_runs_as_the_command(tmp_path, arrays):
    np.savez(tmp_path / "codes.npz", **arrays)
    command = [sys.executable, "-m", "tiebench", "score", str(tmp_path / "codes.npz"), "--at", "5"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    codes = [pack(arrays[name]) for name in ("query", "database")]
    affinity = EqualLabels(arrays["query_labels"], arrays["database_labels"])
    assert json.loads(done.stdout) == score_codes(*codes, 13, affinity, at=(5,)).means


def test_a_reader_that_has_enough_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "tiebench", "metrics"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_search_ends_with_its_reader(tmp_path, arrays, monkeypatch):
    """Lines that nobody reads are not made."""
    np.savez(tmp_path / "codes.npz", **arrays)
    made, text = [], search._answer
    monkeypatch.setattr(search, "_answer", lambda *given: made.append(1) or text(*given))

    def print_to_nobody(*_, **__):
        raise BrokenPipeError

    monkeypatch.setattr(commands, "print", print_to_nobody, raising=False)
    monkeypatch.setattr(commands.os, "dup2", lambda *_: None)
    assert main(["search", str(tmp_path / "codes.npz")]) == 0 and len(made) == 1
