"""Items of single classes, which methods are trained on: any, and those of a file of CIFAR-10's features."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.commands import Failed
from datasets import splits
from datasets.loaders import features_file
from methods.base import TrainingSet

FILE = "cifar10-mobilenetv2.npz"
SPLIT = {"kind": "per_class", "query": 100, "training": 500}


@dataclass(frozen=True)
class Items:
    """Items as methods get them, (n, ...), and their classes, int64 (n,)."""

    vectors: np.ndarray
    classes: np.ndarray

    def training_set(self, rows=slice(None), **more):
        """A `TrainingSet` of some of them; more: of its arguments."""
        classes = self.classes[rows]

        def affinity(one, other):
            return (classes[one][:, None] == classes[other]).astype(np.int64)

        return TrainingSet(self.vectors[rows], affinity, labels=classes, **more)


def made(items, dimensions, classes):
    """Items of unit length around centres of classes."""
    generator = np.random.default_rng(0)
    labels = generator.integers(0, classes, items)
    vectors = generator.standard_normal((items, dimensions), np.float32)
    vectors += generator.standard_normal((classes, dimensions), np.float32)[labels] / 4
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return Items(vectors, labels)


def find():
    """The path of `FILE` in the folders of TIEBENCH_RESOURCES. Raises `Failed` where there is none."""
    folders = filter(None, os.environ.get("TIEBENCH_RESOURCES", "").split(os.pathsep))
    for folder in folders:
        if (path := Path(folder).expanduser() / FILE).is_file():
            return path
    raise Failed(f"no {FILE}, features X and labels y of CIFAR-10, in the folders of TIEBENCH_RESOURCES")


def read(path):
    """All items of the file, centred by the training items and of unit length as in a run, and the rows that
    `SPLIT` draws with seed 0."""
    description = features_file.describe([path])
    rows = splits.draw(SPLIT, description, 0)
    with np.load(path, allow_pickle=False) as archive:
        scale = archive["scale"] if "scale" in archive.files else 1.0
        vectors = archive["X"].astype(np.float32) * scale
    vectors -= vectors[rows.training].mean(axis=0, dtype=np.float64)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-30)
    return Items(vectors.astype(np.float32), description.labels), rows
