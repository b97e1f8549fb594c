"""CIFAR-10's binary archive: against records that the test wrote pixel by pixel; damaged archives."""

import numpy as np
import pytest

from datasets.description import Description
from datasets.loaders import cifar10_binary
from tests.files import changed, written
from tests.tiebench.refusals import refused

NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
BATCHES = [f"data_batch_{number}.bin" for number in range(1, 6)] + ["test_batch.bin"]
RECORDS = 7  # in a file, instead of 10,000


def images_and_labels() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (6 * RECORDS, 32, 32, 3), np.uint8)
    return images, generator.integers(0, 10, 6 * RECORDS)


def record(image: np.ndarray, label: int) -> bytes:
    """As the format is described: the label, then the planes one after the other, each by rows."""
    planes = (bytes(image[y, x, colour] for y in range(32) for x in range(32)) for colour in range(3))
    return bytes([label]) + b"".join(planes)


@pytest.fixture(scope="module")
def whole() -> dict[str, bytes]:
    """The archive's files by path, in another order than that of the rows."""
    images, labels = images_and_labels()
    records = [record(image, label) for image, label in zip(images, labels)]
    files = {"cifar-10-batches-bin/batches.meta.txt": ("\n".join(NAMES) + "\n\n").encode()}
    for number in (2, 0, 1, 5, 4, 3):
        part = b"".join(records[number * RECORDS : (number + 1) * RECORDS])
        files[f"cifar-10-batches-bin/{BATCHES[number]}"] = part
    files["cifar-10-batches-bin/readme.html"] = b"<html>"
    return files


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    monkeypatch.setattr(cifar10_binary, "RECORDS", RECORDS)


@pytest.mark.parametrize("as_folder", [False, True])
def test_pixels_labels_and_parts(tmp_path, whole, as_folder):
    source = written(tmp_path / ("c" if as_folder else "c.tar.gz"), whole)
    source = source / "cifar-10-batches-bin" if as_folder else source
    description = cifar10_binary.load([source], tmp_path)
    images, labels = images_and_labels()
    np.testing.assert_array_equal(np.load(tmp_path / "items.npy"), images)
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), labels)
    np.testing.assert_array_equal(np.load(tmp_path / "given_split.npy"), [0] * 5 * RECORDS + [1] * RECORDS)
    assert description.class_names == list(NAMES)
    assert description.metadata()["split_counts"] == {"train": 5 * RECORDS, "test": RECORDS}
    described = cifar10_binary.describe([source])
    np.testing.assert_array_equal(described.labels, labels)
    read = Description.read(tmp_path, description.metadata())
    assert described.metadata() == description.metadata() == read.metadata()


def test_a_published_file_has_so_many_bytes(monkeypatch):
    monkeypatch.undo()
    assert cifar10_binary.RECORDS * cifar10_binary.RECORD_BYTES == 30_730_000


def renamed(name: str, other: str):
    return lambda files: {path.replace(name, other): data for path, data in files.items()}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (changed("batch_3.bin", lambda data: data[:-1]), f"data_batch_3.bin has {7 * 3073 - 1} bytes, not"),
        (changed("test_batch.bin", lambda data: data + data), "test_batch.bin has .* bytes, not"),
        (
            changed("batch_2.bin", lambda data: data[: 4 * 3073] + b"\x0c" + data[4 * 3073 + 1 :]),
            "data_batch_2.bin: record 4 has label 12",
        ),
        (renamed("data_batch_5.bin", "data_batch_5.mat"), "has no data_batch_5.bin; is it the binary"),
        (
            # as in the version for Python
            lambda files: {path.removesuffix(".bin"): data[:-1] for path, data in files.items()},
            "has no data_batch_1.bin; is it the binary",
        ),
        (renamed("batches.meta.txt", "batches.meta"), "has no batches.meta.txt"),
        (changed("meta.txt", lambda data: data[:20]), "must name 10 classes, one a line, not 2"),
        (lambda files: files | {"again/test_batch.bin": b""}, "holds test_batch.bin twice"),
        (lambda files: files | {"a/../../test_batch.bin": b""}, "leads out of the archive"),
        (lambda files: {}, "has no data_batch_1.bin"),
    ],
)
def test_damaged_contents(tmp_path, whole, damage, message):
    source = written(tmp_path / "cifar-10-binary.tar.gz", damage(whole))
    for read in (cifar10_binary.describe, lambda sources: cifar10_binary.load(sources, tmp_path)):
        with refused(str(source), pattern=message):
            read([source])
    assert not list(tmp_path.glob("*.npy*"))


def test_two_sources(tmp_path):
    with refused("got 2 sources"):
        cifar10_binary.describe([tmp_path, tmp_path])
