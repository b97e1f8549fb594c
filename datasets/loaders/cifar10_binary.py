"""CIFAR-10 from its binary version, read inside cifar-10-binary.tar.gz (or a folder of the same files).

A record is one byte of label, then 1,024 bytes each of red, green and blue, row by row; five files of 10,000
records are for training, one is for testing. Rows are data_batch_1 .. data_batch_5, then test_batch.

Source: A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009,
https://www.cs.toronto.edu/~kriz/cifar.html.
"""

import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np

from datasets.description import Description
from datasets.files import creating_items
from datasets.readers.archives import existing, members
from datasets.specification import refuse_unknown_options
from tiebench.texts import of_bytes

OPTIONS: dict[str, str] = {}

BATCHES = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")
NAMES_FILE = "batches.meta.txt"
RECORDS = 10_000  # in a file
SIDE = 32
RECORD_BYTES = 1 + 3 * SIDE * SIDE
CLASSES = 10

logger = logging.getLogger("tiebench")


def describe(sources: list[Path], **options) -> Description:
    """Labels int64 (60000,), names of classes, given split 0 (train) or 1 (test); pixels are passed over.

    sources: the archive, or a folder. Raises FileNotFoundError where it is missing; ValueError for a damaged
    archive, a file that is missing, of the wrong length or there twice, a label above 9, and for any option.
    """
    return _read(sources, options, lambda first, images: None)


def load(sources: list[Path], folder: Path, **options) -> Description:
    """Write items.npy uint8 (60000, 32, 32, 3), RGB, labels.npy and given_split.npy; raises as `describe`."""
    shape = (len(BATCHES) * RECORDS, SIDE, SIDE, 3)
    with creating_items(Path(folder) / "items.npy", shape, np.uint8) as items:

        def keep(first: int, images: np.ndarray) -> None:
            items.view()[first : first + len(images)] = images

        description = _read(sources, options, keep)
    description.write(Path(folder))
    return description


def _read(sources: list[Path], options: dict, keep: Callable[[int, np.ndarray], None]) -> Description:
    """`keep` is called with (first row, uint8 (10000, 32, 32, 3)) of each file, in the archive's order."""
    refuse_unknown_options(options, OPTIONS, "cifar10_binary")
    if len(sources) != 1:
        raise ValueError(f"loader cifar10_binary: takes one archive or folder, got {len(sources)} sources")
    (source,) = existing(sources)
    labels = np.zeros(len(BATCHES) * RECORDS, np.int64)
    class_names, seen = None, set()
    for path, contents in members(source):
        name = path.rpartition("/")[2]
        if name not in (*BATCHES, NAMES_FILE):
            continue
        if name in seen:
            raise ValueError(f"{source}: holds {name} twice")
        seen.add(name)
        if name == NAMES_FILE:
            class_names = _class_names(source, contents())
            continue
        records = _records(source, name, contents())
        first = BATCHES.index(name) * RECORDS
        labels[first : first + RECORDS] = records[:, 0]
        # Stored plane by plane; images are kept pixel by pixel.
        keep(first, records[:, 1:].reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1))
        logger.info("%s: %s", source.name, name)
    for name in (*BATCHES, NAMES_FILE):
        if name not in seen:
            raise ValueError(f"{source}: has no {name}; is it the binary version of CIFAR-10?")
    given_split = np.repeat(np.array([0, 0, 0, 0, 0, 1], np.int64), RECORDS)
    return Description(
        len(labels), labels, given_split, class_names, (SIDE, SIDE, 3), "images", ["train", "test"]
    )


def _records(source: Path, name: str, contents: bytes) -> np.ndarray:
    """uint8 (10000, 3073) of one file."""
    if len(contents) != RECORDS * RECORD_BYTES:
        raise ValueError(
            f"{source}: {name} has {len(contents)} bytes, not {RECORDS * RECORD_BYTES} "
            f"({RECORDS} records of {RECORD_BYTES})"
        )
    records = np.frombuffer(contents, np.uint8).reshape(RECORDS, RECORD_BYTES)
    wrong = records[:, 0] >= CLASSES
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{source}: {name}: record {row} has label {records[row, 0]}; labels are 0 to 9")
    return records


def _class_names(source: Path, contents: bytes) -> list[str]:
    names = of_bytes(f"{source}: {NAMES_FILE}", contents).contents.decode().split()
    if len(names) != CLASSES or len(set(names)) != CLASSES:
        raise ValueError(f"{source}: {NAMES_FILE} must name {CLASSES} classes, one a line, not {len(names)}")
    return names
