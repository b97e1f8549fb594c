"""Histograms by matrix products of tensors, on each device, against the compiled kernels' integers."""

import numpy as np
import pytest
import torch
from refusals import refused
from test_score import assert_same

import tiebench
from tiebench.affinities import AffinityBlocks, EqualLabels, SharedLabels
from tiebench.codes.packing import pack
from tiebench.counting import on_device
from tiebench.counting.histograms import joint_histograms
from tiebench.training import TieAwareRetrieval

# (queries, items, bits): around bytes, words and the bounds of the 16-bit types.
SHAPES = [
    *((1, 1, 1), (3, 70, 7), (5, 513, 8), (70, 129, 12), (9, 300, 48), (4, 65, 64), (6, 90, 65)),
    *((3, 40, 255), (3, 40, 256), (2, 33, 1000), (4, 50, 1024)),
]


def drawn(queries, items, bits):
    """bool codes with distances from 0 to b among them, as tensors packed and of signs, and affinities."""
    rng = np.random.default_rng(queries * items + bits)
    codes = rng.integers(0, 2, (queries + items, bits)).astype(bool)
    codes[:queries:2], codes[queries::3], codes[-1] = False, True, False
    query, database = codes[:queries], codes[queries:]
    classes = EqualLabels(rng.integers(-2, 3, queries), rng.integers(-2, 3, items))
    labels = rng.random((queries, 11)) < 0.4, rng.random((items, 11)) < 0.4
    return query, database, (classes, SharedLabels(*labels), SharedLabels(*labels, binary=True))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("precision", list(on_device.EXACT_UP_TO), ids=str)
def test_tensors_are_counted_as_the_kernels_count(shape, precision, device):
    query, database, affinities = drawn(*shape)
    bits = shape[2]
    packed = pack(query), pack(database)
    tensors = [torch.from_numpy(part).to(device) for part in packed]
    signs = [torch.from_numpy(part).to(device).float() * 2 - 1 for part in (query, database)]
    for affinity in affinities:
        expected = joint_histograms(*packed, bits, affinity)
        if bits > on_device.EXACT_UP_TO[precision]:
            with refused("exact in"):
                on_device.joint_histograms(*tensors, bits, affinity, precision=precision)
            continue
        few = [pairs for pairs in (1, 7, 130, 1000) if shape[0] * shape[1] <= 300 * pairs]
        mixed = signs[0].to(torch.int8), tensors[1]
        for codes, at_once in ((tensors, [*few, 1 << 20]), (signs, [1 << 20]), (mixed, [1 << 20])):
            for pairs in at_once:
                found = on_device.joint_histograms(*codes, bits, affinity, pairs, precision)
                assert np.array_equal(found.levels, expected.levels)
                assert found.counts.dtype == np.int64
                assert np.array_equal(found.counts, expected.counts)


def test_sums_of_the_largest_codes_are_exact_in_the_narrowest_type():
    """b - <u, v> reaches 2 b: what a type must hold is b only, and it does so for every distance."""
    for precision, most in on_device.EXACT_UP_TO.items():
        bits = min(most, 1024)
        assert torch.equal(torch.arange(-bits, bits + 1).to(precision).long(), torch.arange(-bits, bits + 1))
        database = torch.where(torch.arange(bits) < torch.arange(bits + 1)[:, None], -1, 1)
        query = torch.ones(1, bits)
        labels = EqualLabels(np.zeros(1, int), np.zeros(bits + 1, int))
        found = on_device.joint_histograms(query, database, bits, labels, precision=precision)
        assert np.array_equal(found.counts[0], [np.zeros(bits + 1), np.ones(bits + 1)])


@pytest.mark.parametrize("bits", [512, 768, 1024])
def test_autocast_changes_no_count(bits):
    """Its 16 bits hold fewer integers than the type that was checked to hold them all."""
    generator = np.random.default_rng(0)
    first = generator.integers(0, 2, bits)
    signs = [torch.from_numpy(2.0 * (first ^ (generator.random((n, bits)) < 0.05)) - 1) for n in (20, 300)]
    labels = EqualLabels(generator.integers(0, 3, 20), generator.integers(0, 3, 300))
    expected = on_device.joint_histograms(*signs, bits, labels).counts
    with torch.autocast("cpu", torch.bfloat16):
        assert np.array_equal(on_device.joint_histograms(*signs, bits, labels).counts, expected)


@pytest.mark.parametrize("bits", [12, 65])
def test_codes_and_outputs_on_a_device_have_the_scores_of_arrays(bits, device):
    """`score` and the metric of a training loop, at a size where a device works on several blocks."""
    generator = np.random.default_rng(bits)
    query, database = generator.normal(size=(300, bits)), generator.normal(size=(60_000, bits))
    labels = [generator.integers(0, 10, len(part)) for part in (query, database)]
    expected = tiebench.score(query > 0, database > 0, *labels, at=(1000,))
    on_it = [torch.from_numpy(part).float().to(device) for part in (query, database)]
    tensors = [torch.from_numpy(part).to(device) for part in labels]
    found = tiebench.score(*(part > 0 for part in on_it), *tensors, at=(1000,))
    metric = TieAwareRetrieval(bits, at=(1000,))
    for role, part, its in zip(("query", "database"), on_it, tensors):
        for begin in range(0, len(part), 7000):
            metric.update(part[begin : begin + 7000], its[begin : begin + 7000], role)
    assert_same(found, expected)
    assert_same(metric.scores(), expected)


def test_unsigned_and_large_classes_are_distinguished():
    query, database = np.array([2**62, 2**62 + 1], np.uint64), np.array([2**62 + 1, 3], np.uint64)
    codes = torch.zeros(2, 1, dtype=torch.uint8)
    found = on_device.joint_histograms(codes, codes, 3, EqualLabels(query, database))
    assert found.counts[:, 1, 0].tolist() == [0, 1]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"bits": 0}, "between 1 and 1024"),
        ({"bits": 7}, "beyond bit 7"),
        ({"bits": 9}, "must be packed"),
        ({"query": torch.zeros(0, 1, dtype=torch.uint8)}, "no codes"),
        ({"query": torch.zeros(2, 8)}, "{-1, +1}"),
        ({"query": torch.ones(2, 8, dtype=torch.bool)}, "must be packed"),
        ({"query": torch.ones(3, 8)}, "3 query codes but 2"),
        ({"query": torch.ones(2, 8, device="meta")}, "one device"),
        ({"affinity": AffinityBlocks(None, (1,))}, "not AffinityBlocks"),
        ({"pairs_at_once": 0}, "pairs_at_once must be a positive integer, not 0"),
        ({"precision": torch.float64}, "not in torch.float64"),
    ],
)
def test_what_does_not_fit_is_refused(changes, message):
    codes = torch.full((2, 1), 255, dtype=torch.uint8)
    labels = EqualLabels(np.zeros(2, int), np.zeros(2, int))
    given = {"query": codes, "database": codes, "bits": 8, "affinity": labels}
    assert on_device.joint_histograms(**given).counts[:, 1, 0].tolist() == [2, 2]
    with refused(message):
        on_device.joint_histograms(**given | changes)
