"""Extraction against one pass over all images; resumed, restarted and refused."""

import json

import numpy as np
import pytest
import torch

import networks
from networks.base import features
from networks.gist import gist
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


class Counted(torch.nn.Module):
    """A network that counts the images it saw and can be killed after some."""

    def __init__(self, seed=0, limit=None):
        super().__init__()
        self.inner = networks.make("small", seed=seed, width=16)
        self.limit, self.seen = limit, 0
        self.image_size, self.width = self.inner.image_size, self.inner.width
        self.interpolation, self.antialias = self.inner.interpolation, self.inner.antialias
        self.preprocess, self.settings = self.inner.preprocess, self.inner.settings

    def forward(self, images):
        if self.limit is not None and self.seen >= self.limit:
            raise Killed
        self.seen += len(images)
        return self.inner(images)


def killed(items, path, limit, seed=0, **options):
    with pytest.raises(Killed):
        features.extract(Counted(seed, limit), items, path, BATCH, "cpu", **options)
    assert not path.exists()


def test_features_are_those_of_one_pass(items, tmp_path):
    network = networks.make("small", width=16).train()
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


def test_a_killed_extraction_goes_on_and_gives_the_same_bytes(items, tmp_path):
    whole = tmp_path / "whole.npy"
    features.extract(Counted(), items, whole, BATCH, "cpu")
    path = tmp_path / "out.npy"
    killed(items, path, 12)  # a shard of 8 and half of the next
    killed(items, path, 8)  # the second shard
    network = Counted()
    features.extract(network, items, path, BATCH, "cpu")
    assert network.seen == 27 - 16
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
        with pytest.raises(Killed):
            features.extract(Counted(), items, path, BATCH, "cpu")
    network = Counted()
    features.extract(network, items, path, BATCH, "cpu")
    assert network.seen == 27 - 8


def test_a_slow_network_loses_no_more_than_its_seconds(items, tmp_path, monkeypatch):
    """Each batch takes longer than a shard may: each is recorded."""
    monkeypatch.setattr(features, "SECONDS_A_SHARD", 0.0)
    monkeypatch.setattr(features, "ROWS_A_SHARD", 1024)
    path = tmp_path / "out.npy"
    killed(items, path, 12)
    assert json.loads((tmp_path / "out.npy.progress").read_text("utf-8"))["rows"] == 12


CHANGES = {
    "weights": lambda items, path: (Counted(seed=1), items, path, BATCH, "cpu"),
    "order": lambda items, path: (Counted(), items[::-1], path, BATCH, "cpu"),
    "batch": lambda items, path: (Counted(), items, path, 5, "cpu"),
    "one pixel": lambda items, path: (Counted(), one_pixel(items), path, BATCH, "cpu"),
}


def one_pixel(items):
    changed = np.array(items)
    changed[-1, 19, 23, 2] ^= 1
    return changed


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_restarts_the_extraction(change, items, tmp_path):
    path, fresh = tmp_path / "out.npy", tmp_path / "fresh.npy"
    killed(items, path, 20)
    arguments = CHANGES[change](items, path)
    features.extract(*arguments)
    assert arguments[0].seen == 27
    features.extract(*CHANGES[change](items, fresh))
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
    features.extract(Counted(), items, whole, BATCH, "cpu")
    killed(items, path, 20)
    damage(tmp_path / "out.npy.partial", tmp_path / "out.npy.progress")
    network = Counted()
    features.extract(network, items, path, BATCH, "cpu")
    assert network.seen == 27 and path.read_bytes() == whole.read_bytes()


def test_an_earlier_result_is_kept_until_the_new_one_is_complete(items, tmp_path):
    path = tmp_path / "out.npy"
    features.extract(Counted(), items, path, BATCH, "cpu")
    earlier = path.read_bytes()
    with pytest.raises(Killed):
        features.extract(Counted(1, limit=12), items, path, BATCH, "cpu")
    assert path.read_bytes() == earlier


def test_gist_resumed_or_not(items, tmp_path, monkeypatch):
    parameters = {"size": 32, "extension": 8}
    whole, path = tmp_path / "whole.npy", tmp_path / "out.npy"
    features.extract(networks.make("gist", **parameters), items, whole, BATCH, "cpu")
    np.testing.assert_allclose(np.load(whole), gist(np.array(items), **parameters), rtol=1e-5)
    network, calls = networks.make("gist", **parameters), []
    forward = network.forward

    def limited(images):
        calls.append(len(images))
        if sum(calls) > 20:
            raise Killed
        return forward(images)

    monkeypatch.setattr(network, "forward", limited)
    with pytest.raises(Killed):
        features.extract(network, items, path, BATCH, "cpu")
    monkeypatch.undo()
    calls.clear()
    monkeypatch.setattr(network, "forward", lambda images: calls.append(len(images)) or forward(images))
    features.extract(network, items, path, BATCH, "cpu")
    assert sum(calls) == 27 - 16 and path.read_bytes() == whole.read_bytes()


def test_gist_with_other_parameters_of_the_same_width_starts_again(items, tmp_path):
    """What was half extracted with another filter is not continued."""
    path = tmp_path / "out.npy"
    features.extract(networks.make("gist", size=32, extension=8, prefilter=2.0), items, path, BATCH)
    expected = path.read_bytes()
    with pytest.raises(Killed):
        network = networks.make("gist", size=32, extension=8, prefilter=4.0)
        network.forward = Limited(network.forward, 8)
        features.extract(network, items, path, BATCH)
    features.extract(networks.make("gist", size=32, extension=8, prefilter=2.0), items, path, BATCH)
    assert path.read_bytes() == expected


class Limited:
    """A function of images that can be called for a number of images only."""

    def __init__(self, function, limit):
        self.function, self.limit, self.seen = function, limit, 0

    def __call__(self, images):
        if self.seen >= self.limit:
            raise Killed
        self.seen += len(images)
        return self.function(images)


def test_features_that_are_not_finite_stop_it_with_the_item(items, tmp_path):
    network = networks.make("small", width=16)
    network.blocks[1].bias.data[3] = np.inf
    with pytest.raises(ValueError, match="features of item 1 are not finite"):
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
    with pytest.raises(ValueError, match=words):
        features.extract(networks.make("small"), **(call | change))
    assert [path.name for path in tmp_path.iterdir()] == ["items.npy"]


def test_a_device_that_is_not_there_is_refused(items, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="no CUDA device"):
        features.extract(networks.make("small"), items, tmp_path / "out.npy", 4, "cuda")
