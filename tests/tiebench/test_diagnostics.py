"""Health of codes against brute force, closed forms and other libraries."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from refusals import refused

import tiebench
from tiebench import diagnostics
from tiebench.codes import collapse


def brute_force(query, database):
    """Every field of `Health` but ap_range, from unpacked codes, item by item."""
    items, bits = database.shape
    counts = Counter(map(bytes, database))
    shares = [count / items for count in counts.values()]
    varying = [k for k in range(bits) if 0 < database[:, k].sum() < items]
    pairs = itertools.combinations(varying, 2)
    found = [abs(np.corrcoef(database[:, one], database[:, two])[0, 1]) for one, two in pairs]
    sizes, nearest = {10: [], 100: [], 1000: []}, []
    for code in query:
        distances = sorted((code != item).sum() for item in database)
        nearest.append(distances[0])
        for rank in sizes:
            sizes[rank].append(distances.count(distances[rank - 1]) if rank <= items else math.nan)
    return {
        "queries": len(query),
        "database": items,
        "bits": bits,
        "ones": database.mean(axis=0).tolist(),
        "constant_bits": bits - len(varying),
        "constant_bits_of_queries": sum(len(set(column)) == 1 for column in query.T.tolist()),
        "correlation_mean": np.mean(found) if found else None,
        "correlation_max": max(found, default=None),
        "distinct_codes": len(counts),
        "entropy": -sum(share * math.log2(share) for share in shares),
        "effective_bits": -math.log2(sum(share**2 for share in shares)),
        "largest_bucket": max(counts.values()),
        **{f"tie@{rank}": None if math.isnan(of[0]) else np.mean(of) for rank, of in sizes.items()},
        **{f"nearest_radius_{radius}": np.mean([near == radius for near in nearest]) for radius in (0, 1, 2)},
        "ap_range": None,
    }


@pytest.mark.parametrize("bits", [1, 5, 8, 48, 64, 65, 130])
@pytest.mark.parametrize("kind", ["random", "few", "constant"])
def test_health_is_brute_force(bits, kind):
    generator = np.random.default_rng(bits)
    database = generator.integers(0, 2, (150, bits)).astype(bool)
    if kind == "few":  # buckets, constant bits, and bits that are copies of others
        database = database[generator.integers(0, 7, len(database))]
        database[:, bits // 2] = database[:, 0]
        database[:, -1] = True
    elif kind == "constant":
        database[:] = database[0]
    query = database[:6] ^ (generator.random((6, bits)) < 1 / bits)
    found = tiebench.health(query, database).as_dict()
    wanted = brute_force(query, database)
    assert list(found) == list(wanted)
    for name, value in wanted.items():
        assert found[name] == pytest.approx(value, abs=1e-12), name
    packed = tiebench.health(np.packbits(query, axis=1), np.packbits(database, axis=1), bits=bits, threads=2)
    assert packed.as_dict() == found


def test_the_range_of_ap_is_a_share_of_it():
    classes = np.repeat(np.arange(8), [10, 20, 30, 40, 50, 60, 70, 120])
    given = np.eye(8, dtype=bool), np.eye(8, dtype=bool)[classes], np.arange(8)
    assert tiebench.health(*given, classes).ap_range == 0
    worse = tiebench.score(*given, classes[::-1]).means
    found = tiebench.health(*given, classes[::-1]).ap_range
    assert found == pytest.approx((worse["ap_max"] - worse["ap_min"]) / worse["ap"]) and found > 0


def test_different_codes_of_one_hash_are_told_apart(monkeypatch):
    codes = np.random.default_rng(3).integers(0, 4, (500, 17)).astype(np.uint8)
    codes[:, 1:16] = 0
    wanted = sorted(Counter(map(bytes, codes)).values())
    assert sorted(collapse.code_counts(codes)) == wanted
    monkeypatch.setattr(collapse, "_ODD", np.uint64(0))  # every code has the hash 0
    assert sorted(collapse.code_counts(codes)) == wanted


def test_blocks_and_a_sample_of_the_items(monkeypatch):
    generator = np.random.default_rng(4)
    codes = np.packbits(generator.random((999, 20)) < generator.random(20), axis=1)
    unpacked = np.unpackbits(codes, axis=1, count=20).astype(np.int64)
    monkeypatch.setattr(diagnostics, "_ITEMS_AT_ONCE", 100)
    monkeypatch.setattr(collapse, "_ITEMS_AT_ONCE", 100)
    np.testing.assert_array_equal(diagnostics.bits_set_together(codes, 20), unpacked.T @ unpacked)
    wide = np.tile(codes, (1, 5))
    assert sorted(collapse.code_counts(wide)) == sorted(collapse.code_counts(codes))
    monkeypatch.setattr(diagnostics, "_MOST_BIT_PAIRS", 20**2 * 334)
    found = tiebench.health(codes, codes, bits=20)
    sample = np.abs(np.corrcoef(unpacked[::3].T)[np.triu_indices(20, 1)])
    assert found.correlation_mean == pytest.approx(sample.mean())
    np.testing.assert_allclose(found.ones, unpacked.mean(axis=0))


TEN, TWO = {"class_counts": [50] * 10}, {"class_counts": [50, 50]}
ONE_HOT = TEN | {"unused_bits": 38}
COLLAPSES = {
    "half constant, no classes": ((48, 24, 500, 7.0), {}, ""),
    "more than half constant": ((48, 25, 500, 7.0), {}, "25 of 48 bits are constant"),
    "all lost": ((48, 48, 1, 0.0), TEN, "48 of 48 bits are constant, 1 distinct code"),
    "CSQ, ten classes": ((64, 4, 10, 3.3), TEN, ""),
    "one-hot, declared": ((48, 38, 10, 3.3), ONE_HOT, ""),
    "one-hot, undeclared": ((48, 38, 10, 3.3), TEN, "38 of 48 bits are constant"),
    "one class never predicted": ((48, 39, 9, 3.1), ONE_HOT, "9 distinct codes of 10 classes"),
    "two classes, codes half apart": ((48, 36, 2, 1.0), TWO, ""),
    "two classes, too near": ((48, 37, 2, 1.0), TWO, "37 of 48 bits are constant"),
    "classes that are absent": ((48, 0, 3, 1.5), {"class_counts": [50, 0, 50, 0, 50]}, ""),
    "fewer codes than classes exist": ((3, 0, 8, 3.0), {"class_counts": [5] * 20}, ""),
    "nearly all items share a code": (
        (48, 20, 30, 0.4),
        TEN,
        "codes of 0.40 bits of entropy, classes of 3.32",
    ),
    "unequal classes": ((48, 20, 2, 0.08), {"class_counts": [990, 10]}, ""),
}


@pytest.mark.parametrize(("given", "more", "reason"), COLLAPSES.values(), ids=COLLAPSES)
def test_collapse(given, more, reason):
    found = collapse.collapse_reason(*given, **more)
    assert found == reason or (reason and found.startswith(reason))


@pytest.mark.parametrize("kind", ["bernoulli", "hadamard"])
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_random_codes_of_classes_are_not_collapsed(classes, kind):
    """The rule's premise: 1,000 draws of class codes, none of which it takes for collapsed."""
    generator = np.random.default_rng(classes)
    for _ in range(1000):
        codes = generator.integers(0, 2, (classes, 48)).astype(bool)
        if kind == "hadamard":  # balanced rows, any two half apart
            rows = np.array([[bin(i & j).count("1") % 2 for j in range(64)] for i in (1, 2, 4, 8, 16, 32)])
            codes = rows[generator.integers(0, 6, classes)] ^ rows[0] if classes > 6 else rows[:classes]
            codes = codes[:, generator.permutation(64)].astype(bool)
            if len({bytes(code) for code in codes}) < classes:
                continue
        constant = int((codes.all(axis=0) | ~codes.any(axis=0)).sum())
        given = codes.shape[1], constant, classes, math.log2(classes)
        assert not collapse.collapse_reason(*given, [50] * classes)


def test_refuses_one_side_of_the_labels_and_codes_that_are_not_binary():
    codes = np.zeros((3, 8), bool)
    with refused("go together"):
        tiebench.health(codes, codes, query_labels=[0, 1, 2])
    with refused("unpacked query must all be in"):
        tiebench.health(codes + 0.5, codes)


def test_the_command_prints_what_the_function_returns_and_judges_with_labels_alone(tmp_path, printed, fails):
    generator = np.random.default_rng(5)
    labels = generator.integers(0, 4, 90)
    codes = np.eye(9, dtype=bool)[labels]  # five of nine bits are unused
    arrays = {"query": codes[:10], "database": codes[10:]}
    file = tmp_path / "codes.npz"
    np.savez(file, **arrays)
    assert printed("health", file) == tiebench.health(**arrays).as_dict() | {
        "collapsed": "5 of 9 bits are constant"
    }
    for given in (labels, np.eye(6, dtype=np.uint8)[labels]):
        both = {"query_labels": given[:10], "database_labels": given[10:]}
        np.savez(file, **arrays, **both)
        found = printed("health", file, "--unused-bits", "5", "--threads", "2")
        assert found == tiebench.health(**arrays, **both).as_dict() | {"classes": 4, "collapsed": None}
        assert found["ap_range"] == 0
    np.savez(file, query=codes)
    assert "lacks database; it holds query" in fails("health", file)
