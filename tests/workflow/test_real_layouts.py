"""From archives in the layouts of the paper's datasets to a table: tiny, but written byte by byte."""

import copy
from importlib import import_module

import numpy as np
import pytest
import scipy.io
import yaml
from files import written

from conftest import ROOT  # isort: skip

pytestmark = pytest.mark.thorough

VGG = {"channels": [8, 16, 16, 16, 16], "width": 32}
# What the loaders demand of the real archives, and of these.
SIZES = {
    "cifar10_binary": {"RECORDS = 10_000": "RECORDS = 7"},
    "nus_wide": {"IMAGES = 269_648": "IMAGES = 9", "CONCEPTS = 81": "CONCEPTS = 5"},
    "imagenet100": {
        "CLASSES = 100": "CLASSES = 3",
        'COUNTS = {"train": 13_000, "test": 5_000, "database": 128_503}': (
            'COUNTS = {"train": 3, "test": 4, "database": 6}'
        ),
    },
    "coco": {
        'COUNTS = {"train": (10_000,), "test": (5_000,), "database": (112_218, 107_218, 117_218)}': (
            'CATEGORIES = ("apple", "bowl", "person", "zebra")\n'
            'COUNTS = {"train": (2,), "test": (2,), "database": (5,)}'
        ),
    },
}


def write_sources(folder):
    """All archives, and files of a small VGG-F and AlexNet. Returns the sources of each dataset."""
    import matconvnet_files

    import networks

    # The modules that test the loaders write archives in the real layout.
    loaders = ("cifar10_binary", "nus_wide", "imagenet100", "coco")
    cifar10, nus_wide, imagenet100, coco = (import_module(f"test_datasets_{name}") for name in loaders)
    images, labels = cifar10.images_and_labels()
    batches = {"cifar-10-batches-bin/batches.meta.txt": "\n".join(cifar10.NAMES).encode()}
    for number, name in enumerate(cifar10.BATCHES):
        rows = range(number * cifar10.RECORDS, (number + 1) * cifar10.RECORDS)
        records = b"".join(cifar10.record(images[row], labels[row]) for row in rows)
        batches[f"cifar-10-batches-bin/{name}"] = records
    archives = {
        "cifar-10-binary.tar.gz": batches,
        "Groundtruth.zip": nus_wide.ground_truth(),
        "ConceptsList.zip": nus_wide.concepts_list(),
        "ImageList.zip": nus_wide.image_list(),
        "Flickr.tar": nus_wide.pictures(),
        "labels.zip": imagenet100.lists(),
        "train.tar": imagenet100.train_tar(),
        "val.tar": {name: imagenet100.picture(name) for name in imagenet100.QUERIES},
        "lists.zip": coco.lists(),
        "train2014.zip": coco.pictures("train"),
        "val2014.zip": coco.pictures("val"),
    }
    for name, files in archives.items():
        written(folder / name, files)
    gist = np.random.default_rng(0).random((60, 512)).astype(np.float32)
    order = np.random.default_rng(1).permutation(60) + 1.0
    variables = {"gist": gist, "ndxtrain": order[None, 10:], "ndxtest": order[None, :10]}
    scipy.io.savemat(folder / "LabelMe_gist.mat", variables)

    for name in ("vgg_f", "caffe_alexnet"):
        matconvnet_files.save(networks.make(name, seed=1, **VGG), folder / f"{name}.mat")
    return {
        "cifar10": ["cifar-10-binary.tar.gz"],
        "nus_wide": ["Groundtruth.zip", "ConceptsList.zip", "ImageList.zip", "Flickr.tar"],
        "imagenet100": ["labels.zip", "train.tar", "val.tar"],
        "coco": ["lists.zip", "train2014.zip", "val2014.zip"],
        "labelme": ["LabelMe_gist.mat"],
    }


# The protocols of the paper, with splits and networks that fit the sizes of those sources.
CONFIG = yaml.safe_load("""
datasets:
  nus_wide: {options: {concepts: 3, size: [32, 32]}}
  imagenet100: {options: {size: [32, 32]}}
  coco: {options: {size: [32, 32]}}
  cifar10: {}
  labelme: {}
networks:
  vgg_f: {weights: {file: vgg_f.mat}}
  caffe_alexnet: {weights: {file: caffe_alexnet.mat}}
protocols:
  cifar10_s1: {split: {kind: random, query: 6, training: 20}}
  nus_wide: {split: {kind: random, query: 1, training: all}, seed: 1}
  imagenet100: {split: {kind: given, query: query, database: [database, training], training: all}}
  labelme:
    split: {kind: random, query: 10, training: 30}
    affinity: {kind: distance_levels, percentiles: [50, 20], levels: [1, 2]}
methods:
  talr_ap:
    protocols:
      cifar10_s1: &deep {epochs: 1, batch_size: 8, learning_rate: 0.001, by_bits: {}}
      nus_wide: *deep
      imagenet100: *deep
      labelme: *deep
tables:
  layouts:
    seeds: [0]
    methods: [lsh, talr_ap]
    supervised_bounds: false
    blocks:
      - {protocol: cifar10_s1, metric: ap, bits: [8]}
      - {protocol: nus_wide, metric: ap, bits: [8]}
      - {protocol: imagenet100, metric: ap@1000, bits: [8]}
      - {protocol: coco, metric: ap@5000, bits: [8], methods: [lsh]}
      - {protocol: labelme, metric: ndcg, bits: [8]}
""")


@pytest.fixture
def archives(empty_laboratory, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tests" / "datasets")
    for name, changes in SIZES.items():
        file = empty_laboratory.checkout / "datasets" / "loaders" / f"{name}.py"
        text = file.read_text()
        for old, new in changes.items():
            assert f"\n{old}" in text
            text = text.replace(old, new)
        file.write_text(text)
    return empty_laboratory


def test_archives_of_all_datasets_become_a_table(archives):
    config = copy.deepcopy(CONFIG)
    for name, files in write_sources(archives.sources).items():
        config["datasets"][name]["sources"] = [{"file": file} for file in files]
    for entry in config["networks"].values():
        entry["options"] = VGG
    archives.made("results/layouts.csv", config=config)
    assert [row["status"] for row in archives.rows("layouts.tidy.csv")] == ["done"] * 9
    shapes = {
        "datasets/cifar10/items": (42, 32, 32, 3),
        "datasets/nus_wide/labels": (6, 3),
        "datasets/imagenet100/items": (10, 32, 32, 3),
        "datasets/coco/items": (7, 32, 32, 3),
        "datasets/labelme/items": (60, 512),
        "features/cifar10/vgg_f": (42, 32),
        "features/imagenet100/caffe_alexnet": (10, 32),
    }
    resources = archives.directory / "resources"
    assert {name: np.load(resources / f"{name}.npy").shape for name in shapes} == shapes
    # By file name: the queries, which HashNet's database list holds, are rows 1 and 4.
    split = archives.split("coco")
    parts = [part.tolist() for part in (split.query, split.database, split.training)]
    assert parts == [[1, 4], [0, 2, 3, 5, 6], [0, 3]]
