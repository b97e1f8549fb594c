"""Kinds of split and of affinity draw and compute what they always did."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import recorded_cases as cases

from datasets import affinity, splits

RECORDED = json.loads(Path(__file__).with_name("recorded.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(cases.SPLITS))
def test_split_files_have_the_recorded_arrays(name, tmp_path):
    """Arrays, not the file: releases of Python write other headers of the same zip."""
    labels, spec, seed = cases.SPLITS[name]
    splits.draw(spec, cases.description(labels), seed).save(tmp_path / "split.npz")
    assert digest_of_arrays(tmp_path / "split.npz") == RECORDED["splits"][name]


@pytest.mark.parametrize("name", sorted(cases.SPLITS))
def test_same_seed_same_split_other_seed_another(name):
    labels, spec, seed = cases.SPLITS[name]
    described = cases.description(labels)
    first = splits.draw(spec, described, seed)
    np.random.seed(5)  # noqa: NPY002 (the global generator must not matter)
    other = splits.draw(spec, described, seed + 1)
    again = splits.draw(dict(reversed(spec.items())), described, np.int64(seed))
    assert again.fingerprint == first.fingerprint
    assert (other.fingerprint == first.fingerprint) == (name in ("given, all", "given, split"))
    for part in ("query", "database", "training"):
        rows = getattr(first, part)
        assert rows.dtype == np.int64 and (np.diff(rows) > 0).all() and not rows.flags.writeable


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
    digest = hashlib.sha256(block.tobytes()).hexdigest()
    assert name in RECORDED["affinities"], f"record this case in recorded.json: {digest}, {made.metadata()}"
    recorded = RECORDED["affinities"][name]
    assert digest == recorded["block"]
    metadata = made.metadata()
    metadata.pop("neighbours", None)  # what the block says already
    assert metadata == recorded["metadata"]


def test_every_kind_has_a_recorded_case():
    assert {spec["kind"] for _, spec, _ in cases.SPLITS.values()} == set(splits.KIND.find())
    assert {spec["kind"] for _, spec in cases.AFFINITIES.values()} == set(affinity.KIND.find())


@pytest.mark.parametrize("kind", affinity.KIND.find())
def test_scoring_sees_the_affinity_of_the_block(kind, tmp_path):
    """Joint histograms of affinity and distance, against a plain count over pairs."""
    from tiebench.counting.histograms import joint_histograms

    name = next((name for name, case in cases.AFFINITIES.items() if case[1]["kind"] == kind), None)
    assert name is not None, f"{kind} has no case in AFFINITIES of tests/datasets/recorded_cases.py"
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
