"""Adapters on images: affinity from distances of what a network makes of them, corrupt images, duplicates."""

import json
import platform
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from datasets.affinity import Affinity
from datasets.splits import Split

from conftest import ROOT, read_json  # isort: skip

LEVELS = {"kind": "distance_levels", "percentiles": [40, 10], "levels": [1, 3]}


@pytest.fixture
def adapter(tmp_path):
    """Run an adapter in an empty folder that holds 24 images, two of them equal."""
    generator = np.random.default_rng(0)
    for number in range(24):
        place = tmp_path / f"pictures/{'ab'[number % 2]}"
        place.mkdir(parents=True, exist_ok=True)
        pixels = generator.integers(0, 256, (16, 16, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(place / f"{number:02}.png")
    (tmp_path / "pictures/a/99.png").write_bytes((tmp_path / "pictures/a/00.png").read_bytes())

    def run(name, settings, /, **arguments):
        file = tmp_path / f"{name}.settings.json"
        file.write_text(json.dumps(settings))
        words = [sys.executable, "-m", f"workflow.scripts.{name}", "--log", f"{name}.log"]
        words += ["--settings", str(file)]
        for key, value in arguments.items():
            words += [f"--{key}", *([value] if isinstance(value, str) else value)]
        variables = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
        return subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, text=True)

    run.place = tmp_path
    return run


def made(adapter, name, settings, /, **arguments):
    done = adapter(name, settings, **arguments)
    assert done.returncode == 0, done.stderr
    return done


IMAGES = {"loader": "images", "options": {}, "sources": [{"file": "pictures"}]}


@pytest.mark.thorough
def test_levels_of_distance_of_the_gist_of_images(adapter):
    """As LabelMe from its images: thresholds and levels against plain distances of the features."""
    place = adapter.place
    made(adapter, "load_dataset", IMAGES, name="d", folder="data", sources="pictures")
    split = {"split": {"kind": "random", "query": 5, "training": 12}, "seed": 0}
    made(adapter, "split_protocol", split, name="p", dataset="data", folder="protocol")
    gist = {"architecture": "gist", "options": {"size": 16, "extension": 4, "blocks": 2}}
    gist |= {"batch_size": 8, "device": "cpu"}
    made(adapter, "extract_features", gist, name="g", images="data/items.npy", output="gist.npy")
    inputs = {"input": {"kind": "features", "centre": True, "l2_normalise": True}}
    files = {"split": "protocol/split.npz", "output": "protocol/features.npy"}
    made(adapter, "normalise_features", inputs, name="p", items="gist.npy", **files)
    files |= {"dataset": "data", "output": "protocol/affinity.json"}
    made(adapter, "affinity_thresholds", {"affinity": LEVELS}, name="p", **files)
    split = Split.load(place / "protocol/split.npz")
    features = np.load(place / "protocol/features.npy").astype(np.float64)
    assert features.shape == (25, 128)
    distances = np.linalg.norm(features[:, None] - features[None], axis=2)
    pairs = distances[np.ix_(split.training, split.training)][np.triu_indices(12, 1)]
    expected = np.percentile(pairs, LEVELS["percentiles"], method="hazen")
    kept = read_json(place / "protocol/affinity.json")
    np.testing.assert_allclose(kept["thresholds"], expected, rtol=1e-9)
    affinity = Affinity.load(LEVELS, place / "data", place / "protocol", split)
    block = affinity.block(np.arange(25), np.arange(25))
    clear = np.abs(distances[..., None] - expected).min(axis=2) > 1e-9
    plain = np.where(distances <= expected[1], 3, np.where(distances <= expected[0], 1, 0))
    np.testing.assert_array_equal(block[clear], plain[clear])
    assert set(np.unique(block)) == {0, 1, 3}
    # Thresholds of other percentiles are not taken for these.
    other = LEVELS | {"percentiles": [40, 20]}
    with pytest.raises(ValueError, match=r"delete affinity\.json"):
        Affinity.load(other, place / "data", place / "protocol", split)


def test_corrupt_images_are_listed_in_a_file(adapter):
    names = ["a/00.png", "a/02.png", "b/01.png", "b/03.png", "b/05.png"]
    for name in names:
        (adapter.place / "pictures" / name).write_bytes(b"no image")
    done = adapter("load_dataset", IMAGES, name="d", folder="data", sources="pictures")
    assert done.returncode == 1 and "5 of 25 images cannot be read" in done.stderr
    assert "data/corrupt_images.txt lists all" in done.stderr
    assert (adapter.place / "data/corrupt_images.txt").read_text().split() == names
    assert not (adapter.place / "data/items.npy").exists()


def test_what_another_loader_wrote_is_removed(adapter):
    arrays = {
        "query": np.eye(2),
        "database": np.eye(3, 2),
        "query_ids": ["a", "b"],
        "database_ids": ["c", "d", "e"],
    }
    np.savez(adapter.place / "r.npz", qrels_test=[["a", "c", "1"], ["b", "d", "1"]], **arrays)
    np.savez(adapter.place / "f.npz", X=np.eye(5, 2), y=np.arange(5))
    for loader, file, kept in (("retrieval_file", "r.npz", True), ("features_file", "f.npz", False)):
        settings = {"loader": loader, "options": {}, "sources": [{"file": file}]}
        made(adapter, "load_dataset", settings, name="d", folder="data", sources=file)
        for name in ("ids.npy", "judgements.npy"):
            assert (adapter.place / "data" / name).is_file() == kept


def test_duplicates_between_query_and_database_are_counted_and_warned_of(adapter):
    made(adapter, "load_dataset", IMAGES, name="d", folder="data", sources="pictures")
    items = np.load(adapter.place / "data/items.npy")
    equal = [row for row in range(25) if (items == items[row]).all(axis=(1, 2, 3)).sum() > 1]
    for seed in range(8):  # until one of the two equal images is a query
        split = {"split": {"kind": "random", "query": 12, "training": "all"}, "seed": seed}
        done = made(adapter, "split_protocol", split, name="p", dataset="data", folder="protocol")
        rows = Split.load(adapter.place / "protocol/split.npz").query.tolist()
        expected = int(len(set(equal) & set(rows)) == 1)
        found = read_json(adapter.place / "protocol/split.json")
        assert found["queries_with_a_duplicate"] == {"database": expected, "training": expected}
        assert ("1 of 12 queries have an exact duplicate in the database" in done.stderr) == bool(expected)
        if expected:
            return
    pytest.fail("no seed put one of the equal images among the queries")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library than glibc")
def test_freed_memory_is_kept_for_the_next_arrays():
    """Resident pages after 200 MB were written and freed."""
    program = """
import numpy as np
from workflow.scripts import _job

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 >> 20

_job.keep_memory()
before = resident()
blocks = [np.ones(5 << 20) for _ in range(5)]
assert resident() - before > 190
del blocks
print(resident() - before)
"""
    made = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    assert int(made.stdout) > 190
