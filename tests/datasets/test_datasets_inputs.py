"""Exact duplicates between parts of a split, against a comparison of all pairs."""

import numpy as np
import pytest

from datasets.inputs import duplicates


@pytest.mark.parametrize("shape", [(3,), (2, 2, 3)])
def test_duplicates_against_all_pairs(shape):
    items = np.random.default_rng(0).integers(0, 2, (60, *shape)).astype(np.float32)
    items[30], items[31] = items[3], items[3]
    rows, others = np.arange(0, 20), np.arange(20, 60)
    flat = items.reshape(60, -1)
    expected = [row for row in rows if (flat[row] == flat[others]).all(axis=1).any()]
    assert duplicates(items, rows, others).tolist() == expected
    assert len(expected) > 0
    assert duplicates(np.arange(180.0).reshape(60, 3), rows, others).tolist() == []


def test_items_of_labels_alone_are_no_duplicates():
    assert duplicates(np.zeros((5, 1), np.float32), np.arange(2), np.arange(2, 5)).tolist() == []
