"""python -m evaluation: anybody's codes, packed or not, and what is said of files that cannot be scored."""

import json
import subprocess
import sys

import numpy as np
import pytest

from evaluation.__main__ import main


@pytest.fixture
def arrays():
    rng = np.random.default_rng(0)
    return {
        "query": rng.integers(0, 2, (9, 13)),
        "database": rng.integers(0, 2, (40, 13)),
        "query_labels": rng.integers(0, 3, 9),
        "database_labels": rng.integers(0, 3, 40),
    }


def scored(tmp_path, capsys, arrays, *options):
    file = tmp_path / "codes.npz"
    np.savez(file, **arrays)
    assert main([str(file), *options]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_form_of_the_same_codes_scores_the_same(tmp_path, capsys, arrays):
    plain = scored(tmp_path, capsys, arrays, "--at", "5", "--at", "20")
    assert {"ap", "ap_min", "ap_max", "ap@5", "ap@5_min", "ap@20_max", "ndcg", "ndcg_min", "ndcg@20"} <= set(
        plain
    )
    assert (plain["queries"], plain["database"], plain["bits"]) == (9, 40, 13)
    assert plain["queries_without_relevant"] == 0
    signed = arrays | {name: 2 * arrays[name] - 1 for name in ("query", "database")}
    packed = (
        arrays | {name: np.packbits(arrays[name], axis=1) for name in ("query", "database")} | {"bits": 13}
    )
    for form in (signed, packed, arrays | {"bits": 13}):
        assert scored(tmp_path, capsys, form, "--at", "5", "--at", "20") == plain


def test_multi_hot_labels_count_shared_labels(tmp_path, capsys, arrays):
    one_hot = {name: np.eye(3, dtype=int)[arrays[name]] for name in ("query_labels", "database_labels")}
    as_classes = scored(tmp_path, capsys, arrays)
    assert scored(tmp_path, capsys, arrays | one_hot) == pytest.approx(as_classes)


def test_per_query_values_average_to_the_printed_ones(tmp_path, capsys, arrays):
    printed = scored(tmp_path, capsys, arrays, "--at", "7", "--per-query", str(tmp_path / "out.npz"))
    with np.load(tmp_path / "out.npz") as per_query:
        for name in per_query.files:
            assert np.mean(per_query[name]) == printed[name]


def test_no_torch_is_loaded(tmp_path, arrays):
    np.savez(tmp_path / "codes.npz", **arrays)
    script = "import sys, evaluation.__main__ as m; m.main(sys.argv[1:]); assert 'torch' not in sys.modules"
    subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "codes.npz")], check=True, stdout=subprocess.PIPE
    )


def without(name):
    return lambda arrays: {key: value for key, value in arrays.items() if key != name}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("query_labels"), "lacks query_labels"),
        (lambda a: a | {"query": a["query"][:, :5]}, "same width"),
        (lambda a: a | {"query": a["query"] + 1}, "{0, 1}"),
        (lambda a: a | {"query": a["query"][0]}, "matrices"),
        (lambda a: a | {"query": a["query"][:0]}, "at least one"),
        (lambda a: a | {"bits": 16}, "neither 16 bits nor packed"),
        (lambda a: a | {"bits": np.array([13, 13])}, "one integer"),
        (lambda a: a | {"database_labels": a["database_labels"][:-1]}, "39 database labels"),
        (lambda a: a | {"database_labels": a["database_labels"] + 0.5}, "integers"),
        (lambda a: a | {"query_labels": np.array([None] * 9)}, "plain arrays"),
    ],
)
def test_files_that_cannot_be_scored_are_told_in_one_line(tmp_path, capsys, arrays, change, message):
    np.savez(tmp_path / "codes.npz", **change(arrays))
    assert main([str(tmp_path / "codes.npz")]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 truncated"])
def test_damaged_files_are_told_in_one_line(tmp_path, capsys, content):
    (tmp_path / "codes.npz").write_bytes(content)
    assert main([str(tmp_path / "codes.npz")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert main([str(tmp_path / "absent.npz")]) == 1
