"""The measurement of orders: the scores of rankings against those of the library, and who sorts stably."""

import importlib.util

import numpy as np
import torch

from benchmarks import orders
from tiebench.codes.packing import pack


def test_scores_of_programs_are_those_of_their_rankings():
    rng = np.random.default_rng(0)
    codes, classes = pack(rng.integers(0, 2, (2020, 5))), rng.integers(0, 4, 2020)
    query, places = np.arange(20), rng.permutation(np.arange(20, 2020))
    faiss = importlib.import_module("faiss") if importlib.util.find_spec("faiss") else None
    cells = orders._scored(codes, query, places, classes, 5, torch, faiss)
    low, high = (np.array(cells[name], float) for name in ("worst order", "best order"))
    for values in cells.values():
        inside = [low[i] <= float(value) <= high[i] for i, value in enumerate(values) if value]
        assert inside and all(inside)
    distances = (np.unpackbits(codes[query] ^ codes[places][:, None], axis=2)).sum(axis=2).T
    ranking = np.argsort(distances, axis=1, kind="stable")
    hits = classes[places][ranking] == classes[query][:, None]
    values = [orders._ap(one) for one in (hits, hits[:, :100], hits[:, :1000])] + [hits[:, :100].mean()]
    assert cells["position (a stable sort)"] == [f"{value:.3f}" for value in values]
