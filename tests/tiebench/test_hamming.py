"""Joint histograms against a plain XOR-free count, for every kernel, width and layout."""

import os
import subprocess
import sys

import numpy as np
import pytest
from refusals import refused

from tiebench.affinities import AffinityBlocks, EqualLabels, SharedLabels, SparseJudgements
from tiebench.codes.packing import check_packed, pack
from tiebench.counting import histograms
from tiebench.counting.histograms import joint_histograms

WIDTHS = [
    *(1, 7, 8, 9, 12, 16, 24, 31, 40, 48, 56, 57, 63, 64, 65, 72, 88, 96, 103, 120, 121, 127, 128, 129),
    *(200, 1024),
]
SIZES = [1, 63, 65, 511, 513, 1500]


def check(codes, affinity, values):
    """The histograms are those of comparing bits one pair at a time, by the values of the affinity."""
    query, database = codes
    found = joint_histograms(pack(query), pack(database), query.shape[1], affinity)
    levels = np.searchsorted(found.levels, values)
    assert np.array_equal(found.levels[levels], values)
    counts = np.zeros((len(query), len(found.levels), query.shape[1] + 1), int)
    for q, code in enumerate(query):
        distances = (database != code).sum(axis=1)
        np.add.at(counts[q], (levels[q], distances), 1)
    assert np.array_equal(found.counts, counts)
    return found


def equal(query, database):
    """The affinity of classes, and its values."""
    return EqualLabels(query, database), (query[:, None] == database).astype(int)


def shared(query, database, binary=False):
    """The affinity of several labels, and its values."""
    counts = query.astype(int) @ database.T.astype(int)
    return SharedLabels(query, database, binary=binary), np.minimum(counts, 1) if binary else counts


def random_codes(rng, queries, items, bits):
    # Few prototypes plus noise: many ties, and distances from 0 to b.
    prototypes = rng.integers(0, 2, (3, bits))
    codes = prototypes[rng.integers(0, 3, queries + items)] ^ (rng.random((queries + items, bits)) < 0.1)
    codes[0], codes[-1] = 0, 1
    return codes[:queries], codes[queries:]


@pytest.mark.parametrize("bits", WIDTHS)
def test_histograms_equal_a_plain_count(bits):
    rng = np.random.default_rng(bits)
    for items in SIZES:
        codes = random_codes(rng, 5, items, bits)
        check(codes, *equal(rng.integers(-2, 4, 5), rng.integers(-2, 4, items)))

        labels = rng.random((5, 11)) < 0.3, rng.random((items, 11)) < 0.3
        check(codes, *shared(*labels))
        check(codes, *shared(*labels, binary=True))

        table = rng.choice([0, 1, 2, 5, 10], (5, items))
        blocks = AffinityBlocks(lambda i, j, table=table: table[i:j], (1, 2, 5, 10))
        assert check(codes, blocks, table).levels.tolist() == [0, 1, 2, 5, 10]

        judged = np.unique(rng.integers(0, 5 * items, 20))
        values = rng.choice([0, 1, 3], len(judged))
        sparse = SparseJudgements(*divmod(judged, items), values, (5, items))
        dense = np.zeros((5, items), int)
        dense[divmod(judged, items)] = values
        found = check(codes, sparse, dense)
        assert set(found.levels.tolist()) <= {0, 1, 3}
        assert np.array_equal(found.levels[sparse.block(2, 5)], dense[2:])


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ((-128, 0, 127), np.int8),
        ((-3, 65_532), np.int64),
        ((-3, 65_533), np.int64),
        ((-(2**63), 0, 2**63 - 1), np.int64),
        ((0, 2**63 - 1), np.uint64),
    ],
)
def test_histograms_of_classes_of_any_range_equal_a_plain_count(values, dtype):
    rng = np.random.default_rng(5)
    codes = random_codes(rng, 9, 700, 12)
    check(codes, *equal(*(rng.choice(np.array(values, dtype), size) for size in (9, 700))))


@pytest.mark.parametrize("labels", [1, 64, 65, 130])
@pytest.mark.parametrize("bits", [48, 65, 128, 129])
@pytest.mark.parametrize("binary", [False, True])
def test_histograms_of_many_labels_equal_a_plain_count(labels, bits, binary):
    rng = np.random.default_rng(labels)
    codes = random_codes(rng, 11, 1030, bits)
    check(codes, *shared(rng.random((11, labels)) < 0.3, rng.random((1030, labels)) < 0.3, binary))


@pytest.mark.parametrize("queries", [1, 2, 9])
def test_histograms_of_fewer_queries_than_levels_equal_a_plain_count(queries):
    rng = np.random.default_rng(queries)
    codes = random_codes(rng, queries, 530, 20)
    levels = rng.integers(0, 12, (queries, 530))
    check(codes, AffinityBlocks(lambda begin, end: levels[begin:end], range(1, 12)), levels)


def test_affinities_that_are_no_integers_are_refused():
    with refused(pattern=r"values.* is 1\.9"):
        joint_histograms(
            pack(np.eye(3)), pack(np.eye(3)), 3, AffinityBlocks(lambda i, j: [[0] * 3] * 3, (1.9,))
        )


@pytest.mark.thorough
def test_popcounts_read_and_write_nothing_outside_of_their_arrays(tmp_path):
    """Compiled code does not check its indices, except where Numba's environment asks for it."""
    script = """if True:
        import numpy as np
        from tiebench.counting.histograms import joint_histograms
        from tiebench.affinities import AffinityBlocks, SharedLabels
        rng = np.random.default_rng(6)
        for queries, items in ((1, 1), (8, 512), (11, 513), (17, 1100)):
            codes = rng.integers(0, 256, (queries + items, 17), np.uint8)
            labels = rng.integers(0, 2, (queries + items, 70))
            levels = rng.integers(0, 4, (queries, items))
            for affinity in (
                SharedLabels(labels[:queries], labels[queries:]),
                AffinityBlocks(lambda begin, end: levels[begin:end], (1, 2, 3)),
            ):
                found = joint_histograms(codes[:queries], codes[queries:], 136, affinity)
                assert np.all(found.counts.sum(axis=(1, 2)) == items)
    """
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "0", "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


@pytest.mark.parametrize("items", [8191, 8193, 20_000])
def test_histograms_of_a_database_of_several_blocks_equal_a_plain_count(items):
    rng = np.random.default_rng(items)
    codes = random_codes(rng, 3, items, 12)
    check(codes, *equal(np.arange(3), rng.choice(3, items, p=[0.8, 0.15, 0.05])))
    check(codes, *shared(rng.random((3, 5)) < 0.6, rng.random((items, 5)) < 0.3))


@pytest.mark.parametrize("sizes", [[64, 128, 64, 320, 1], [63, 1, 65, 127, 512, 3], [512, 512, 448, 64]])
def test_classes_that_begin_and_end_at_edges_of_words_and_vectors_are_counted_whole(sizes):
    rng = np.random.default_rng(4)
    classes = np.arange(len(sizes))
    check(random_codes(rng, len(sizes), sum(sizes), 9), *equal(classes, np.repeat(classes, sizes)))


def test_affinities_made_some_queries_at_a_time_are_those_made_at_once(monkeypatch):
    rng = np.random.default_rng(3)
    codes = random_codes(rng, 21, 90, 12)
    levels, asked = rng.integers(0, 3, (21, 90)), []

    def compute(begin, end):
        asked.append((begin, end))
        return levels[begin:end]

    affinity = AffinityBlocks(compute, (1, 2))
    check(codes, affinity, levels)
    assert asked == [(0, 21)]
    asked.clear()
    monkeypatch.setattr(histograms, "BLOCK_PAIRS", 1)
    check(codes, affinity, levels)
    assert asked == [(0, 8), (8, 16), (16, 21)]
    short = AffinityBlocks(lambda begin, end: levels[begin : min(end, 20)], (1, 2))
    with refused("queries 16..20 have shape (4, 90), not (5, 90)"):
        joint_histograms(*map(pack, codes), 12, short)


def test_levels_of_shared_labels_reach_the_most_that_can_be_shared():
    three, two, none = np.array([[1, 1, 1, 0]]), np.array([[0, 0, 1, 1], [1, 0, 0, 0]]), np.zeros((1, 4))
    assert SharedLabels(three, two).levels.tolist() == [0, 1, 2]
    assert SharedLabels(two, three).levels.tolist() == [0, 1, 2]
    assert SharedLabels(three, three).levels.tolist() == [0, 1, 2, 3]
    assert SharedLabels(three, three, binary=True).levels.tolist() == [0, 1]
    assert SharedLabels(none, three).levels.tolist() == SharedLabels(three, none).levels.tolist() == [0, 1]


def test_threads_do_not_change_the_counts():
    rng = np.random.default_rng(0)
    query, database = random_codes(rng, 300, 9001, 48)
    labels = EqualLabels(rng.integers(0, 10, 300), rng.integers(0, 10, 9001))
    one = joint_histograms(pack(query), pack(database), 48, labels)
    assert np.array_equal(one.counts, joint_histograms(pack(query), pack(database), 48, labels, 3).counts)
    assert np.all(one.counts.sum(axis=(1, 2)) == 9001)


def test_packing_is_numpy_packbits():
    rng = np.random.default_rng(2)
    bits = rng.integers(0, 2, (6, 13))
    for codes in (bits, bits.astype(bool), bits.astype(np.float32), 2 * bits - 1, (2.0 * bits - 1)):
        assert np.array_equal(pack(codes), np.packbits(bits, axis=1))


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        *((np.array([[0, 2]]), "{0, 1}"), (np.array([[-1, 0]]), "{0, 1}"), (np.array([[np.nan]]), "{0, 1}")),
        *((np.array([0, 1]), "matrix"), (np.array([["a"]]), "numbers")),
    ],
)
def test_unpacked_codes_that_are_not_bits_are_refused(codes, message):
    with refused(message):
        pack(codes)


@pytest.mark.parametrize(
    ("codes", "bits", "message"),
    [
        (np.zeros((2, 2), np.uint8), 17, "shape (n, 3)"),
        (np.zeros((2, 2), np.int64), 16, "uint8"),
        (np.zeros((0, 2), np.uint8), 16, "no codes"),
        (np.full((2, 2), 1, np.uint8), 12, "beyond bit 12"),
        (np.zeros((2, 1), np.uint8), 0, "between 1 and 1024"),
        (np.zeros((2, 129), np.uint8), 1025, "between 1 and 1024"),
    ],
)
def test_packed_codes_of_the_wrong_form_are_refused(codes, bits, message):
    with refused(message):
        check_packed(codes, bits)


def test_labels_that_do_not_fit_are_refused():
    codes = np.zeros((3, 1), np.uint8)
    with refused("same labels"):
        SharedLabels(np.zeros((3, 2)), np.zeros((3, 4)))
    with refused("among"):
        joint_histograms(codes, codes, 8, AffinityBlocks(lambda i, j: np.full((j - i, 3), 7), (1, 2)))


@pytest.mark.parametrize(
    ("rows", "columns", "values", "message"),
    [
        ([0, 1], [0], [1, 1], "2 rows, 1 columns and 2 values"),
        ([0.5], [0], [1], r"rows of judgements\[0\] is 0.5; it must be an integer"),
        ([[0]], [0], [1], r"rows of judgements must be integers of shape \(m,\), not int64 \(1, 1\)"),
        ([2], [0], [1], "rows of judgements must be 0 to 1, not 2"),
        ([0], [-1], [1], "columns of judgements must be 0 to 2, not -1"),
        ([0], [0], [-1], "must not be negative"),
        ([1, 1], [2, 2], [1, 2], "query 1 and item 2 are judged twice"),
    ],
)
def test_judgements_that_do_not_fit_are_refused(rows, columns, values, message):
    with refused(pattern=message):
        SparseJudgements(np.array(rows), np.array(columns), np.array(values), (2, 3))


def test_judgements_of_other_sizes_are_refused_and_none_is_no_error():
    codes, none = np.zeros((3, 1), np.uint8), np.zeros(0, int)
    with refused("judgements of 2 queries and 3 items do not fit 3 query codes"):
        joint_histograms(codes, codes, 8, SparseJudgements(none, none, none, (2, 3)))
    found = joint_histograms(codes, codes, 8, SparseJudgements(none, none, none, (3, 3)))
    assert found.counts[:, 0, 0].tolist() == [3, 3, 3] and found.counts.sum() == 9
