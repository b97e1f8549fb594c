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
    distances = (np.unpackbits(codes[query] ^ codes[places][:, None], axis=2)).sum(axis=2).T
    ranking = np.argsort(distances, axis=1, kind="stable")
    hits = classes[places][ranking] == classes[query][:, None]
    assert found["a stable sort"] == pytest.approx(orders.average_precision(hits[:, : orders.CUT]), abs=1e-12)
