"""Loaders, kinds of split and kinds of affinity are found by themselves, and draw what they always drew."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import recorded_cases as cases

import datasets
from datasets import splits

ROOT = Path(datasets.__file__).parents[1]
RECORDED = json.loads(Path(__file__).with_name("recorded.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(cases.SPLITS))
def test_split_files_have_the_recorded_arrays(name, tmp_path):
    """Arrays, not the file: releases of Python write other headers of the same zip."""
    labels, spec, seed = cases.SPLITS[name]
    splits.draw(spec, cases.description(labels), seed).save(tmp_path / "split.npz")
    assert digest_of_arrays(tmp_path / "split.npz") == RECORDED["splits"][name]


def digest_of_arrays(path):
    digest = hashlib.sha256()
    with np.load(path) as arrays:
        for name in sorted(arrays.files):
            array = arrays[name]
            digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
            digest.update(array.tobytes())
    return digest.hexdigest()


@pytest.mark.parametrize("name", sorted(cases.AFFINITIES))
def test_affinities_have_the_recorded_values(name, tmp_path):
    made = cases.made_affinity(name, tmp_path)
    block = made.block(cases.ROWS, cases.COLUMNS).astype("<i8")
    recorded = RECORDED["affinities"][name]
    assert hashlib.sha256(block.tobytes()).hexdigest() == recorded["block"]
    metadata = made.metadata()
    metadata.pop("neighbours", None)  # what the block says already
    assert metadata == {key: value for key, value in recorded["metadata"].items() if value is not None}


def test_every_kind_has_a_recorded_case():
    assert {spec["kind"] for _, spec, _ in cases.SPLITS.values()} == set(datasets.split_kinds())
    assert {spec["kind"] for _, spec in cases.AFFINITIES.values()} == set(datasets.affinity_kinds())


@pytest.mark.parametrize("kind", sorted(datasets.affinity_kinds()))
def test_scoring_sees_the_affinity_of_the_block(kind, tmp_path):
    """Joint histograms of affinity and distance, against a plain count over pairs."""
    from tiebench.counting.histograms import joint_histograms

    name = next(name for name, case in cases.AFFINITIES.items() if case[1]["kind"] == kind)
    made = cases.made_affinity(name, tmp_path)
    query, database = np.arange(0, 120, 3), np.arange(1, 300, 3)
    assert made.block(query, database).any()
    bits = np.random.default_rng(0).random((300, 12)) < 0.5
    packed = np.packbits(bits, axis=1)
    block = made.block(query, database)
    distances = (bits[query][:, None] != bits[database][None]).sum(axis=2)
    for keep in (False, True):
        found = joint_histograms(packed[query], packed[database], 12, made.scoring(query, database, keep))
        levels = found.levels.tolist()
        assert set(np.unique(block)) <= set(levels) <= set(made.levels)
        for row in range(len(query)):
            for place, level in enumerate(levels):
                expected = np.bincount(distances[row][block[row] == level], minlength=13)
                np.testing.assert_array_equal(found.counts[row, place], expected)


def run(program, *places):
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=places[0] if places else ROOT,
        capture_output=True,
        text=True,
    )


def test_discovery_imports_no_torch():
    program = (
        "import sys, datasets, networks\n"
        "names = [*datasets.loader_kinds(), *datasets.split_kinds(), *datasets.affinity_kinds()]\n"
        "names += networks.architectures()\n"
        "assert names and 'torch' not in sys.modules, names"
    )
    assert run(program).returncode == 0, run(program).stderr


def test_descriptions_are_complete():
    for found in (datasets.loader_kinds(), datasets.split_kinds(), datasets.affinity_kinds()):
        assert list(found) == sorted(found)
    for loader in datasets.loader_kinds().values():
        assert loader.summary and all(loader.options.values())
    for kind in (*datasets.split_kinds().values(), *datasets.affinity_kinds().values()):
        assert set(kind.labels) <= {"classes", "multi-hot", "none"} and kind.labels
        assert all({**kind.needs, **kind.options}.values())


@pytest.fixture
def checkout(tmp_path):
    """A copy of the packages, to add files to."""
    import shutil

    for package in ("datasets", "networks", "tiebench"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


NEW = {
    "loader_kinds": (
        "datasets/loaders/two_points.py",
        "OPTIONS = {}\ndef describe(s): ...\ndef load(s, f): ...\n",
    ),
    "split_kinds": (
        "datasets/splits/first_rows.py",
        "NEEDS, OPTIONS, LABELS = {'query': 'how many'}, {}, ('none',)\n"
        "def check(spec, description): ...\ndef draw(spec, description, generator): ...\n",
    ),
    "affinity_kinds": (
        "datasets/affinity/never.py",
        "from datasets.affinity import Affinity\nclass Never(Affinity):\n    labels = ('none',)\n",
    ),
}


@pytest.mark.parametrize("what", sorted(NEW))
def test_a_new_file_is_found_and_a_helper_is_not(what, checkout):
    file, text = NEW[what]
    name = Path(file).stem
    (checkout / file).write_text(text)
    (checkout / file).with_name("_helper.py").write_text("raise RuntimeError('never imported')\n")
    found = run(f"import datasets; print(*datasets.{what}())", checkout)
    assert name in found.stdout.split() and found.returncode == 0, found.stderr


@pytest.mark.parametrize("what", sorted(NEW))
@pytest.mark.parametrize("text", ["import nowhere\n", "import sys; sys.exit(3)\n", "def f(:\n"])
def test_a_file_that_cannot_be_imported_is_named(what, text, checkout):
    file = checkout / NEW[what][0]
    file.write_text(text)
    found = run(f"import datasets; datasets.{what}()", checkout)
    assert f"ValueError: {file}: cannot be imported: " in found.stderr


@pytest.mark.parametrize(
    ("what", "text", "message"),
    [
        ("loader_kinds", "def load(s, f): ...\n", "a loader must define OPTIONS, describe"),
        ("split_kinds", "NEEDS = {}\n", "a kind of split must define OPTIONS, LABELS, check, draw"),
        ("affinity_kinds", "", "must define one subclass of datasets.affinity.Affinity, not 0"),
    ],
)
def test_a_file_that_is_not_complete_is_named(what, text, message, checkout):
    file = checkout / NEW[what][0]
    file.write_text(text)
    found = run(f"import datasets; datasets.{what}()", checkout)
    assert f"ValueError: {file}: {message}" in found.stderr
