"""Cost of lookups against tables that are built and probed, bucket by bucket."""

from itertools import combinations

import numpy as np
import pytest
from refusals import refused

from tiebench.codes.packing import pack
from tiebench.search import lookup
from tiebench.search.lookup import bucket_count, lookup_cost, substring_bits, table_radii


def buckets_around(code, radius):
    """All codes, as tuples, within a Hamming distance of one."""
    for distance in range(radius + 1):
        for flipped in combinations(range(len(code)), distance):
            changed = list(code)
            for place in flipped:
                changed[place] ^= 1
            yield tuple(changed)


def by_probing(query, database, radius, tables):
    """Buckets, candidates, distinct candidates and items within the radius of one query."""
    edges = np.cumsum([0, *substring_bits(len(query), tables)])
    probed, candidates = 0, []
    for begin, end, near in zip(edges, edges[1:], table_radii(radius, tables)):
        table = {}
        for item, code in enumerate(database):
            table.setdefault(tuple(code[begin:end].tolist()), []).append(item)
        for bucket in buckets_around(query[begin:end].tolist(), near):
            probed += 1
            candidates += table.get(bucket, [])
    within = np.flatnonzero((database != query).sum(axis=1) <= radius)
    assert set(within) <= set(candidates)  # nothing within the radius is missed
    return probed, len(candidates), len(set(candidates)), len(within)


@pytest.mark.parametrize(
    ("bits", "tables"), [(1, 1), (7, 1), (9, 2), (10, 3), (12, 4), (11, 11), (13, 5), (20, 2)]
)
@pytest.mark.parametrize("at_once", [7, 1 << 16])
def test_costs_are_those_of_tables_that_are_probed(bits, tables, at_once, monkeypatch):
    monkeypatch.setattr(lookup, "_ITEMS_AT_ONCE", at_once)
    generator = np.random.default_rng(bits)
    centres = generator.integers(0, 2, (4, bits))
    codes = centres[generator.integers(0, 4, 60)] ^ (generator.random((60, bits)) < 0.15)
    query, database = codes[:6], codes[6:]
    for radius in {0, 1, 2, 3, min(5, bits)} & set(range(bits + 1)):
        cost = lookup_cost(pack(query), pack(database), bits, radius, tables)
        assert cost.radius.tolist() == [radius] * 6
        for row, code in enumerate(query):
            found = tuple(int(part[row]) for part in cost[1:])
            assert found == by_probing(code, database, radius, tables)


@pytest.mark.parametrize(("bits", "tables"), [(16, 1), (70, 1), (70, 3), (200, 2), (300, 40)])
def test_neighbours_are_searched_to_the_smallest_radius_that_holds_them(bits, tables):
    generator = np.random.default_rng(bits + tables)
    codes = generator.integers(0, 2, (55, bits))
    query, database = codes[:5], codes[5:]
    cost = lookup_cost(pack(query), pack(database), bits, tables=tables, neighbours=7)
    distances = (query[:, None] != database).sum(axis=2)
    edges = np.cumsum([0, *substring_bits(bits, tables)])
    for row in range(5):
        radius = np.sort(distances[row])[6]
        assert cost.radius[row] == radius
        assert cost.within[row] == (distances[row] <= radius).sum() >= 7
        assert cost.buckets[row] == bucket_count(bits, int(radius), tables)
        near = [
            (query[row, a:b] != database[:, a:b]).sum(axis=1) <= reach
            for a, b, reach in zip(edges, edges[1:], table_radii(int(radius), tables))
        ]
        assert cost.candidates[row] == np.sum(near)
        assert cost.distinct[row] == np.any(near, axis=0).sum()


def in_clusters(generator, centres, items):
    """Packed 32-bit codes that share buckets: each a centre with 6 % of its bits flipped."""
    flips = np.packbits(generator.random((items, 32)) < 0.06, axis=1)
    return flips ^ centres[generator.integers(0, len(centres), items)]


@pytest.mark.parametrize("flips", [0, 1, 2])
@pytest.mark.parametrize("tables", [1, 4])
def test_counts_are_those_of_faiss(tables, flips):
    faiss = pytest.importorskip("faiss")
    generator = np.random.default_rng(flips)
    centres = generator.integers(0, 256, (20, 4), np.uint8)
    database, query = in_clusters(generator, centres, 3000), in_clusters(generator, centres, 40)
    index = faiss.IndexBinaryHash(32, 32) if tables == 1 else faiss.IndexBinaryMultiHash(32, 4, 8)
    index.nflip = flips
    index.add(database)
    radius = tables * (flips + 1) - 1  # the largest at which every table is searched so far
    faiss.cvar.indexBinaryHash_stats.reset()
    limits, _, _ = index.range_search(query, radius + 1)  # FAISS excludes its radius
    counted = faiss.cvar.indexBinaryHash_stats
    cost = lookup_cost(query, database, 32, radius=radius, tables=tables)
    assert cost.distinct.sum() == counted.ndis > 40
    np.testing.assert_array_equal(cost.within, np.diff(limits.astype(np.int64)))
    if tables > 1:  # with one table FAISS does not count the empty buckets
        assert sum(cost.buckets) == counted.nlist + counted.n0


def test_numbers_of_buckets_are_sums_of_binomials():
    assert [bucket_count(48, radius) for radius in (0, 1, 2)] == [1, 49, 1 + 48 + 1128]
    assert bucket_count(128, 128) == 2**128  # beyond 64 bits
    # Radius 5 = 4 + 1 in four tables of 16 bits: two are searched to radius 1, two to radius 0.
    assert table_radii(5, 4) == [1, 1, 0, 0]
    assert bucket_count(64, 5, 4) == 2 * 17 + 2 * 1
    assert table_radii(2, 4) == [0, 0, 0, -1]
    assert substring_bits(10, 4) == [3, 3, 2, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radius": -1}, "radius must be between 0 and 8"),
        ({"radius": 9}, "radius must be between 0 and 8"),
        ({"radius": 1.5}, "radius must be an integer between 0 and 8"),
        ({"tables": 0}, "tables must be between 1 and 8"),
        ({"tables": 9}, "tables must be between 1 and 8"),
        ({"neighbours": 6}, "neighbours must be between 1 and 5"),
        ({"neighbours": 2, "radius": 1}, "radius and neighbours exclude each other"),
        ({"bits": 9}, "must be uint8 of shape (n, 2)"),
    ],
)
def test_numbers_out_of_range_are_refused(options, message):
    codes = np.zeros((5, 1), np.uint8)
    with refused(message):
        lookup_cost(codes, codes, **{"bits": 8} | options)


def test_the_command_prints_means_and_largest_counts(tmp_path, printed, fails, misused):
    generator = np.random.default_rng(1)
    query, database = generator.integers(0, 2, (5, 12)), generator.integers(0, 2, (80, 12))
    file = tmp_path / "codes.npz"
    np.savez(file, query=query, database=database)
    found = printed("lookup", file, "--radius", "3", "--tables", "2")
    cost = lookup_cost(pack(query), pack(database), 12, 3, 2)
    assert [found[name] for name in ("queries", "database", "bits", "tables")] == [5, 80, 12, 2]
    for name, values in cost._asdict().items():
        assert (found[name], found[f"{name}_max"]) == (pytest.approx(np.mean(values)), max(values))
    assert found["empty"] == np.mean(cost.within == 0) and isinstance(found["buckets"], int)
    np.savez(tmp_path / "packed.npz", query=pack(query), database=pack(database), bits=12)
    assert printed("lookup", tmp_path / "packed.npz", "--neighbours", "4")["within"] >= 4
    assert "codes.npz: radius must be between 0 and 12" in fails("lookup", file, "--radius", "13")
    assert "codes.npz: tables must be between 1 and 12" in fails("lookup", file, "--tables", "40")
    assert "exclude each other" in misused("lookup", file, "--radius", "3", "--neighbours", "2")
