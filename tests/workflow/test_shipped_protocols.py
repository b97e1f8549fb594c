"""The splits of the shipped protocols have the sizes that were published, on labels of the real sizes."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from datasets import splits
from datasets.description import Description
from workflow.configuration.merged import load
from workflow.plan.runs import Plan

ROOT = Path(__file__).parents[2]
FEATURES = yaml.safe_load((ROOT / "docs" / "examples" / "cifar10_features.yaml").read_text())

# Images of the classes of ImageNet100's database list, where these are not 1,300.
SMALLER = [1165, 1029, 1137, 1272, 1133, 1180, 1152, 1117, 1249, 1162, 1207]


def cifar10():
    """50,000 training and 10,000 test images of ten classes."""
    given = np.repeat([0, 1], [50_000, 10_000])
    return Description(60_000, np.arange(60_000) % 10, given, None, (1,), "vectors", ["train", "test"])


def imagenet100():
    """HashNet's lists: 50 queries of each class, and 130 training images among those of the database."""
    labels = np.concatenate([np.repeat(np.arange(100), 50), np.repeat(np.arange(100), [1300] * 89 + SMALLER)])
    given = np.ones(len(labels), np.int64)
    given[:5000] = 0
    for label in range(100):
        given[5000 + np.flatnonzero(labels[5000:] == label)[:130]] = 2
    names = ["query", "database", "training"]
    return Description(len(labels), labels, given, None, (1,), "vectors", names)


def multi_hot(sizes, names):
    """Items with two labels, in parts of these sizes and names."""
    labels = np.ones((sum(sizes), 2), np.uint8)
    given = np.repeat(np.arange(len(sizes)), sizes)
    return Description(len(labels), labels, given, None, (1,), "vectors", names)


def coco():
    """HashNet's lists, of 122,218 images."""
    return multi_hot((107_218, 5_000, 10_000), ["database", "query and database", "training"])


def mirflickr():
    """The lists of DeepHash-pytorch."""
    return multi_hot((20_000, 1_000, 4_000), ["database", "query", "training"])


# protocol -> (labels of its dataset; sizes of query, training, database; whether that holds the training set)
PUBLISHED = {
    "cifar10_s1": (cifar10, (1_000, 5_000, 59_000), True),
    "cifar10_splits_fold1": (cifar10, (1_000, 5_000, 59_000), True),
    "cifar10_s2": (cifar10, (10_000, 50_000, 50_000), True),
    "cifar10_unsupervised_1": (cifar10, (10_000, 50_000, 50_000), True),
    "cifar10_unsupervised_2": (cifar10, (10_000, 5_000, 50_000), True),
    "imagenet100": (imagenet100, (5_000, 13_000, 128_503), True),
    "imagenet100_100_per_class": (imagenet100, (5_000, 10_000, 128_503), True),
    "mirflickr": (mirflickr, (1_000, 4_000, 20_000), False),
    "mirflickr_tagged": (lambda: multi_hot((20_015,), ["all"]), (2_000, 5_000, 18_015), True),
    "coco": (coco, (5_000, 10_000, 117_218), True),
    "coco_annotated": (coco, (5_000, 10_000, 117_218), True),
}


@pytest.fixture(scope="module")
def configuration():
    return load(ROOT, FEATURES)


def drawn(configuration, protocol, described):
    entry = configuration["protocols"][protocol]
    return splits.draw(entry["split"], described(), entry["seed"])


@pytest.mark.parametrize(("protocol", "expected"), PUBLISHED.items(), ids=PUBLISHED)
def test_sizes_of_the_splits(configuration, protocol, expected):
    described, sizes, inside = expected
    split = drawn(configuration, protocol, described)
    assert (len(split.query), len(split.training), len(split.database)) == sizes
    assert split.metadata()["training_in_database"] is inside
    assert len(np.intersect1d(split.training, split.database)) == (sizes[1] if inside else 0)


@pytest.mark.parametrize("name", ["cifar10_s1", "imagenet100", "coco"])
def test_a_protocol_without_training_items_differs_in_its_database_alone(configuration, name):
    described, other = PUBLISHED[name][0], f"{name}_without_training"
    whole, without = (drawn(configuration, protocol, described) for protocol in (name, other))
    np.testing.assert_array_equal(whole.query, without.query)
    np.testing.assert_array_equal(whole.training, without.training)
    np.testing.assert_array_equal(np.setdiff1d(whole.database, whole.training), without.database)
    assert without.metadata()["training_in_database"] is False
    whole, without = (configuration["protocols"][protocol] for protocol in (name, other))
    assert without["codes_of"] == name
    same = ("dataset", "affinity", "input", "end_to_end", "at", "seed")
    assert all(without[key] == whole[key] for key in same)


def test_every_network_of_a_shipped_table_has_settings_of_its_protocol():
    """What trains images never falls back to rates for features of unit length."""
    configuration = load(ROOT)
    plan, lacking = Plan(configuration), set()
    for table in configuration["tables"]:
        for cell in plan.cells(table):
            if plan.end_to_end(cell.protocol, cell.method) is None:
                continue
            entry = configuration["protocols"][cell.protocol]
            places = {cell.protocol, entry["hyperparameters_of"], entry["codes_of"]}
            names = (cell.method, configuration.class_of(cell.method))
            given = {
                name for one in names for name in configuration["methods"].get(one, {}).get("protocols", {})
            }
            if not places & given:
                lacking.add((cell.protocol, cell.method))
    assert lacking == set()
