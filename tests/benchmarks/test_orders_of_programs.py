"""The measurement of orders: the scores of rankings against those of the library, and who sorts stably."""

import importlib.util

import numpy as np
import pytest

from benchmarks import orders
from tiebench.codes.packing import pack


def test_scores_of_programs_are_those_of_their_rankings():
    rng = np.random.default_rng(0)
    codes, classes = pack(rng.integers(0, 2, (2020, 5))), rng.integers(0, 4, 2020)
    query, places = np.arange(20), rng.permutation(np.arange(20, 2020))
    faiss = importlib.import_module("faiss") if importlib.util.find_spec("faiss") else None
    found = orders.scores(codes, query, places, classes, 5, faiss)
    low, high = found["the worst order"], found["the best order"]
    assert low < high and all(low <= value <= high for value in found.values())
    distances = np.unpackbits(codes[query][:, None] ^ codes[places], axis=2).sum(axis=2, dtype=np.uint8)
    for name, kind in (("a stable sort", "stable"), ("`numpy.argsort`, uint8 distances", None)):
        ranking = np.argsort(distances, axis=1, kind=kind)[:, : orders.CUT]
        hits = classes[places][ranking] == classes[query][:, None]
        precisions = np.cumsum(hits, axis=1) / np.arange(1, orders.CUT + 1)
        by_hand = np.mean((precisions * hits).sum(axis=1) / hits.sum(axis=1))
        assert found[name] == pytest.approx(by_hand, abs=1e-12)
