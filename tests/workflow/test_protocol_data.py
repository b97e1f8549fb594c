"""What adapters read of a protocol."""

from types import SimpleNamespace

import numpy as np
import pytest

from datasets import affinity
from tiebench import score
from workflow.stages.protocol_data import ProtocolData


@pytest.fixture
def protocol():
    """A `ProtocolData` of 700 vectors with levels of distance, one of which needs more than a byte."""
    features = np.random.default_rng(0).normal(size=(700, 3)).astype(np.float32)
    spec = {"kind": "distance_levels", "percentiles": [50, 5], "levels": [1, 300]}
    made = object.__new__(ProtocolData)
    made.affinity = affinity.make(spec, None, features, np.arange(700))
    made._kept = None
    return made


def test_pairs_have_the_affinity_that_their_items_have(protocol):
    generator = np.random.default_rng(1)
    for count in (650, 600, 650):  # more than a block of rows; each set its own
        rows = generator.permutation(700)[:count]
        i, j = generator.integers(0, count, 40), generator.integers(0, count, 50)
        found = protocol.pair_affinity(rows)(i, j)
        assert found.dtype == np.int64
        assert np.array_equal(found, protocol.affinity.block(rows[i], rows[j]))
        assert set(np.unique(found)) == {0, 1, 300}


def test_average_precision_of_training_items_is_that_of_a_score(protocol):
    generator = np.random.default_rng(2)
    labels, rows = generator.integers(0, 4, 700), generator.permutation(700)[:300]
    protocol.affinity = affinity.make({"kind": "class"}, labels, None, np.arange(700))
    measured = protocol.average_precision(protocol.pair_affinity(rows))
    codes = generator.integers(0, 256, (200, 2), dtype=np.uint8)
    places = generator.permutation(300)[:200]
    own = labels[rows[places]]
    expected = score(codes[:50], codes[50:], own[:50], own[50:], bits=16).means["ap"]
    assert measured(np.split(codes, [50]), np.split(places, [50]), 16) == expected


def test_distances_are_computed_once_for_the_runs_of_a_job(protocol, monkeypatch):
    asked = []
    block = type(protocol.affinity).block
    monkeypatch.setattr(
        type(protocol.affinity), "block", lambda self, *pair: asked.append(1) or block(self, *pair)
    )
    rows = np.arange(700)
    first = protocol.pair_affinity(rows)
    count = len(asked)
    assert count > 0
    again = protocol.pair_affinity(rows.copy())
    assert np.array_equal(first(rows, rows), again(rows, rows))
    assert len(asked) == count


@pytest.mark.parametrize(
    ("training", "database", "counts"),
    [
        ([0, 1, 2, 3], [4, 5, 6, 7, 8], [2, 2, 1]),  # all classes are learned
        ([0, 1], [4, 5, 6, 7, 8], [2, 2, 0]),  # the database has a class that nothing was learned of
        ([2, 3], [4, 5, 6, 7], [2, 2, 0]),  # unseen classes alone: none of those is left out
    ],
)
def test_classes_that_codes_are_to_tell_apart(training, database, counts):
    made = object.__new__(ProtocolData)
    labels = np.array([0, 1, 2, 2, 0, 0, 1, 1, 2])
    made.split = SimpleNamespace(training=np.array(training), database=np.array(database))
    for made.labels in (labels, np.eye(3, dtype=np.uint8)[labels]):
        assert made.class_counts().tolist() == counts
    made.labels = None
    assert made.class_counts() is None
