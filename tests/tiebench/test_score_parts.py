"""The command `tiebench score-parts` without a cluster: what `tiebench score` prints, or one line."""

import json
import sys

import pytest
from part_databases import arrays, write, write_queries

from tiebench.__main__ import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    made = arrays()
    monkeypatch.chdir(tmp_path)
    write(tmp_path, made, "npz")
    write(tmp_path, made, "npy")
    write_queries(tmp_path, made)
    return tmp_path


@pytest.mark.parametrize("files", [["part?.npz"], ["part*.codes.npy", "--labels", "part*.labels.npy"]])
def test_the_command_prints_what_score_prints(folder, capsys, files):
    given = ["--at", "10", "--ap-at-normaliser", "min", "--per-query", "out.npz"]
    assert main(["score", "whole.npz", *given]) == 0
    expected, per_query = capsys.readouterr().out, (folder / "out.npz").read_bytes()
    more = ["--queries", "queries.npz", "--part-items", "70", "--keep", "kept"]
    for kept in ("", " of them kept from before"):
        assert main(["score-parts", *files, *more, *given]) == 0
        printed = capsys.readouterr()
        assert printed.out == expected and (folder / "out.npz").read_bytes() == per_query
        assert printed.err.count("\n") == 1 and "300 of 300 items" in printed.err
        assert kept in printed.err
    assert main(["score-parts", *files, "--queries", "queries.npz", "--quiet"]) == 0
    printed = capsys.readouterr()
    assert printed.err == "" and json.loads(printed.out)["database"] == 300


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["part?.npz", "--queries", "none.npz"], "none.npz"),
        (["part?.npz", "--queries", "s3://a/q.npz"], "a file or folder of this machine, not s3://a/q.npz"),
        (["part?.npz", "--queries", "queries.npz", "--keep", "s3://a/b"], "keep must be a folder of this"),
        (["part?.npz", "--queries", "part0.npz"], "part0.npz lacks query"),
        (["part?.npz", "--queries", "queries.npz", "--names", "a,database_labels"], "it lacks 'a'; known:"),
    ],
)
def test_errors_of_the_command_are_one_line(folder, capsys, given, message):
    assert main(["score-parts", *given]) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ") and message in error


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--workers", "2", "--scheduler", "tcp://a:1"], "give one of them"),
        (["--names", "a"], "must be two names such as database,database_labels, not 'a'"),
        (["--part-items", "0"], "must be a positive integer"),
    ],
)
def test_options_that_do_not_go_together(misused, given, message):
    assert message in misused("score-parts", "a.npz", "--queries", "q.npz", *given)


def test_missing_dask_is_named(folder, fails, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    for option in (["--workers", "1"], ["--scheduler", "tcp://127.0.0.1:1"]):
        error = fails("score-parts", "part0.npz", "--queries", "queries.npz", *option)
        assert f"{option[0]} needs Dask: pip install distributed" in error
