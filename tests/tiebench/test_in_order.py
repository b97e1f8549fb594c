"""Scores in one order of tied items, against a stable sort by hand."""

import json
import math

import numpy as np
import pytest
import torch
from refusals import refused
from test_orders import DEFINITIONS, named

import tiebench
from tiebench.__main__ import main
from tiebench.affinities import AffinityBlocks, EqualLabels, SharedLabels, SparseJudgements
from tiebench.codes.packing import pack
from tiebench.metric_table import METRICS
from tiebench.scoring import fault_of_order, score_codes
from tiebench.search import in_order


def by_hand(distance, affinity, at, normaliser):
    """Every metric of one query with distances and affinities (N,) in an order, by a stable sort."""
    ranking = sorted(zip(distance.tolist(), affinity.tolist()), key=lambda item: item[0])
    return {
        name: DEFINITIONS[metric.name](ranking, *given, *([normaliser] if metric.takes_normaliser else []))
        for name, (metric, given) in named(at).items()
        if metric.in_order is not None
    }


def problem(rng, kind, queries, items, bits):
    """Codes (n, bits), an affinity, and its values (queries, items)."""
    codes = [rng.integers(0, 2, (n, bits)) for n in (queries, items)]
    if kind == "classes":
        affinity = EqualLabels(rng.integers(0, 3, queries), rng.integers(0, 4, items))
    elif kind == "labels":
        affinity = SharedLabels(*(rng.random((n, 5)) < 0.3 for n in (queries, items)))
    else:
        levels = rng.choice([0, 0, 0, 1, 4], (queries, items))
        if kind == "judgements":
            rows, columns = np.nonzero(levels)
            affinity = SparseJudgements(rows, columns, levels[rows, columns], levels.shape)
        else:
            affinity = AffinityBlocks(lambda begin, end: levels[begin:end], (1, 4))
    return codes, affinity, affinity.levels[affinity.block(0, queries)]


@pytest.mark.parametrize("numba", [True, False])
@pytest.mark.parametrize(
    ("kind", "normaliser"),
    [("classes", "hits"), ("labels", "relevant"), ("levels", "min"), ("judgements", "hits")],
)
def test_every_metric_is_that_of_a_stable_sort(kind, normaliser, numba, monkeypatch):
    monkeypatch.setattr(in_order, "NUMBA", numba)
    monkeypatch.setattr(in_order, "_PAIRS_AT_ONCE", 100)  # a few queries at a time
    rng = np.random.default_rng(0)
    for queries, items, bits in ((1, 1, 1), (9, 40, 3), (130, 25, 8), (5, 60, 12), (4, 30, 70)):
        codes, affinity, values = problem(rng, kind, queries, items, bits)
        at = (1, 5, 10, 100)
        for order in ("file", rng.permutation(items)):
            given = *map(pack, codes), bits, affinity, at, normaliser
            scores = score_codes(*given, threads=2, order=order).per_query
            ending = "_in_file_order" if isinstance(order, str) else "_in_order"
            places = np.arange(items) if isinstance(order, str) else order
            distance = (codes[0][:, None] != codes[1][places]).sum(axis=2)
            for q in range(0, queries, 1 + queries // 16):
                expected = by_hand(distance[q], values[q, places], at, normaliser)
                for name, value in expected.items():
                    found = scores[name + ending][q]
                    assert math.isclose(found, value, rel_tol=0, abs_tol=1e-12), (name, q, found, value)
                    low, high = scores[f"{name}_min"][q], scores[f"{name}_max"][q]
                    assert low - 1e-9 <= value <= high + 1e-9, (name, q)
            assert {name.removesuffix(ending) for name in scores if name.endswith(ending)} == set(expected)


def test_every_metric_with_a_range_has_an_order():
    assert all((metric.in_order is not None) == metric.has_range for metric in METRICS.values())


def test_tensors_packed_codes_and_a_copy_of_the_database_agree():
    rng = np.random.default_rng(2)
    query, database = rng.integers(0, 2, (20, 12)), rng.integers(0, 2, (300, 12))
    labels = rng.integers(0, 5, 20), rng.integers(0, 5, 300)
    order = rng.permutation(300)
    expected = tiebench.score(query, database[order], labels[0], labels[1][order], [10], order="file")
    packed = [np.packbits(codes, axis=1) for codes in (query, database)]
    tensors = [torch.tensor(part) for part in (query, database, *labels)]
    for scores in (
        tiebench.score(query, database, *labels, [10], order=order),
        tiebench.score(*packed, *labels, [10], bits=12, order=order.tolist()),
        tiebench.score(*tensors, [10], order=torch.tensor(order)),
    ):
        for name, value in expected.means.items():
            assert scores.means[name.replace("_in_file_order", "_in_order")] == value
    plain = tiebench.score(query, database, *labels, [10])
    assert plain.means.items() <= expected.means.items()
    assert not [name for name in plain.means if "order" in name]


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ("sorted", "order must be 'file' or an array of 4 places, not 'sorted'"),
        ([0, 1, 2], "order must hold each of 0 to 3 once, shape (4,)"),
        ([0, 1, 2, 2], "order must hold each of 0 to 3 once"),
        ([[0, 1, 2, 3]], "order must hold each of 0 to 3 once"),
        ([0.5, 1, 2, 3], "order"),
    ],
)
def test_what_is_no_order_is_refused_in_one_line(order, words):
    codes, labels = np.eye(4, dtype=int), np.arange(4)
    with refused(words):
        tiebench.score(codes, codes, labels, labels, order=order)


def sorted_by_class(rng, items=3000):
    """Codes of 6 bits that say a little of their class, and classes, ascending."""
    classes = np.sort(rng.integers(0, 4, items))
    codes = rng.integers(0, 2, (items, 6))
    codes[:, 0] = classes % 2
    return codes, classes


def test_only_an_order_outside_the_spread_of_random_ones_is_warned_of():
    rng = np.random.default_rng(3)
    database, classes = sorted_by_class(rng)
    query, labels = database[::100], classes[::100]

    def fault(places):
        given = pack(query), pack(database[places]), 6, EqualLabels(labels, classes[places])
        return fault_of_order(score_codes(*given, (50,), order="file"), *given, (50,))

    line = fault(np.arange(len(classes)))
    assert "4 of 17 metrics beyond random orders, ap_radius_1 most" in line and "\n" not in line
    assert [fault(rng.permutation(len(classes))) for _ in range(10)] == [""] * 10
    # Any order of few items is far from the mean, and says nothing of the file.
    small = pack([[0, 0, 1]]), pack([[0, 0, 1], [0, 1, 1], [1, 0, 1]]), 3, EqualLabels([1], [1, 1, 2])
    assert fault_of_order(score_codes(*small, order="file"), *small) == ""


def test_the_command_prints_the_order_of_the_file_and_warns(tmp_path, capsys, misused):
    database, classes = sorted_by_class(np.random.default_rng(4))
    file = str(tmp_path / "codes.npz")
    query, labels = database[::100], classes[::100]
    np.savez(file, query=query, query_labels=labels, database=database, database_labels=classes)
    assert main(["score", file, "--order", "file", "--at", "50"]) == 0
    result = capsys.readouterr()
    assert json.loads(result.out) == tiebench.score(query, database, labels, classes, 50, order="file").means
    assert result.err.startswith(f"warning: {file}: the order of the file moves ")
    assert result.err.count("\n") == 1
    for more in (["--prefixes", "2,4"], ["--part", "1/2", "--histograms", f"{file}.npz"], ["--merge"]):
        assert "--order needs the codes of the whole file" in misused("score", file, "--order", "file", *more)
