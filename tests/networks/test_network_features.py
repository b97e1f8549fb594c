"""Extraction against one pass over all images; resumed, restarted and refused."""

import json

import numpy as np
import pytest
import torch

import networks
from networks.base import features
from tests.tiebench.refusals import refused
from tiebench.files import write_json

BATCH = 4


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(features, "ROWS_A_SHARD", 2 * BATCH)


@pytest.fixture
def items(tmp_path):
    """A memory map of uint8 (27, 20, 24, 3)."""
    values = np.random.default_rng(0).integers(0, 256, (27, 20, 24, 3), np.uint8)
    np.save(tmp_path / "items.npy", values)
    return np.load(tmp_path / "items.npy", mmap_mode="r")


def small(seed=0):
    return networks.make("small", seed=seed, width=16)


def gist(prefilter=4.0):
    return networks.make("gist", size=32, extension=8, prefilter=prefilter)


class Counted(torch.nn.Module):
    """A network that counts the images it saw and can be killed after some."""

    def __init__(self, inner, limit=None):
        super().__init__()
        self.inner, self.limit, self.seen = inner, limit, 0
        self.width, self.preprocess, self.settings = inner.width, inner.preprocess, inner.settings

    def forward(self, images):
        if self.limit is not None and self.seen >= self.limit:
            raise Killed
        self.seen += len(images)
        return self.inner(images)


def extracted(items, path, network=small, limit=None, batch_size=BATCH):
    """How many images the network saw."""
    counted = Counted(network(), limit)
    features.extract(counted, items, path, batch_size, "cpu")
    return counted.seen


def killed(items, path, limit, network=small):
    with pytest.raises(Killed):
        extracted(items, path, network, limit)


def test_features_are_those_of_one_pass(items, tmp_path):
    network = small().train()
    reports = []
    features.extract(network, items, tmp_path / "out.npy", BATCH, "cpu", reports.append)
    found = np.load(tmp_path / "out.npy")
    assert found.dtype == np.float32 and found.shape == (27, 16)
    assert isinstance(np.load(tmp_path / "out.npy", mmap_mode="r"), np.memmap)
    with torch.inference_mode():
        pixels = torch.from_numpy(np.array(items)).permute(0, 3, 1, 2)
        expected = network(network.preprocess(pixels)).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert network.training
    assert sorted(path.name for path in tmp_path.iterdir()) == ["items.npy", "out.npy"]
    assert (reports[-1]["images"], reports[-1]["of"]) == (27, 27) and reports[-1]["seconds"] > 0


@pytest.mark.parametrize("network", [small, gist])
def test_a_killed_extraction_goes_on_and_gives_the_same_bytes(network, items, tmp_path):
    whole, path = tmp_path / "whole.npy", tmp_path / "out.npy"
    extracted(items, whole, network)
    killed(items, path, 12, network)  # a shard of 8 and half of the next
    killed(items, path, 8, network)  # the second shard
    assert not path.exists()
    assert extracted(items, path, network) == 27 - 16
    assert path.read_bytes() == whole.read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["items.npy", "out.npy", "whole.npy"]


def test_rows_not_recorded_as_complete_are_computed_again(items, tmp_path, monkeypatch):
    path, shards = tmp_path / "out.npy", []

    def killed_at_the_second(target, value):
        shards.append(target)
        if len(shards) == 2:
            raise Killed
        write_json(target, value)

    with monkeypatch.context() as patch:
        patch.setattr(features, "write_json", killed_at_the_second)
        killed(items, path, 27)
    assert extracted(items, path) == 27 - 8


def test_a_slow_network_loses_no_more_than_its_seconds(items, tmp_path, monkeypatch):
    """Each batch takes longer than a shard may: each is recorded."""
    monkeypatch.setattr(features, "SECONDS_A_SHARD", 0.0)
    monkeypatch.setattr(features, "ROWS_A_SHARD", 1024)
    killed(items, tmp_path / "out.npy", 12)
    assert json.loads((tmp_path / "out.npy.progress").read_text("utf-8"))["rows"] == 12


def one_pixel(items):
    changed = np.array(items)
    changed[-1, 19, 23, 2] ^= 1
    return changed


# The network before, and items, network and batch size after.
CHANGES = {
    "weights": (small, lambda items: items, lambda: small(1), BATCH),
    "a parameter": (gist, lambda items: items, lambda: gist(2.0), BATCH),
    "order": (small, lambda items: items[::-1], small, BATCH),
    "batch": (small, lambda items: items, small, 5),
    "one pixel": (small, one_pixel, small, BATCH),
}


@pytest.mark.parametrize(("before", "change", "network", "batch_size"), CHANGES.values(), ids=CHANGES.keys())
def test_a_change_restarts_the_extraction(before, change, network, batch_size, items, tmp_path):
    path, fresh = tmp_path / "out.npy", tmp_path / "fresh.npy"
    killed(items, path, 20, before)
    assert extracted(change(items), path, network, batch_size=batch_size) == 27
    extracted(change(items), fresh, network, batch_size=batch_size)
    assert path.read_bytes() == fresh.read_bytes()


@pytest.mark.parametrize(
    "damage",
    [
        lambda partial, progress: progress.write_text('{"fingerprint": "', encoding="utf-8"),
        lambda partial, progress: progress.write_text("[1]", encoding="utf-8"),
        lambda partial, progress: progress.unlink(),
        lambda partial, progress: partial.unlink(),
        lambda partial, progress: partial.write_bytes(partial.read_bytes()[:-7]),
        lambda partial, progress: progress.write_text(
            json.dumps(json.loads(progress.read_text("utf-8")) | {"rows": 28}), encoding="utf-8"
        ),
    ],
)
def test_damaged_partial_files_are_discarded(damage, items, tmp_path):
    path, whole = tmp_path / "out.npy", tmp_path / "whole.npy"
    extracted(items, whole)
    killed(items, path, 20)
    damage(tmp_path / "out.npy.partial", tmp_path / "out.npy.progress")
    assert extracted(items, path) == 27 and path.read_bytes() == whole.read_bytes()


def test_an_earlier_result_is_kept_until_the_new_one_is_complete(items, tmp_path):
    path = tmp_path / "out.npy"
    extracted(items, path)
    earlier = path.read_bytes()
    killed(items, path, 12, lambda: small(1))
    assert path.read_bytes() == earlier


def test_features_that_are_not_finite_stop_it_with_the_item(items, tmp_path):
    network = small()
    network.blocks[1].bias.data[3] = np.inf
    with refused("features of item 1 are not finite"):
        features.extract(network, items, tmp_path / "out.npy", BATCH, "cpu")
    assert not (tmp_path / "out.npy").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"items": np.zeros((3, 8, 8, 3), np.float32)}, r"uint8 images \(n, h, w, 3\), not float32"),
        ({"items": np.zeros((3, 8, 8), np.uint8)}, r"not uint8 \(3, 8, 8\)"),
        ({"items": np.zeros((0, 8, 8, 3), np.uint8)}, r"not uint8 \(0, 8, 8, 3\)"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
    ],
)
def test_wrong_calls_are_refused(change, words, items, tmp_path):
    call = {"items": items, "path": tmp_path / "out.npy", "batch_size": 4, "device": "cpu"}
    with refused(pattern=words):
        features.extract(small(), **(call | change))
    assert [path.name for path in tmp_path.iterdir()] == ["items.npy"]
