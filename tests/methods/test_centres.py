"""Hash centres: distances by counting, columns by comparing all pairs of them."""

import itertools

import numpy as np
import pytest
from refusing import refused

from methods.class_codes import centres
from methods.class_codes.centres import (
    KINDS,
    balanced_codes,
    constant_bits,
    hadamard_centres,
    make_centres,
    random_centres,
    separation,
    spread_hadamard_centres,
)


def distances(codes):
    return [int((a != b).sum()) for a, b in itertools.combinations(codes, 2)]


@pytest.mark.parametrize(("classes", "bits"), [(10, 16), (10, 64), (64, 64), (100, 64), (21, 16)])
def test_published_centres_are_half_of_the_bits_apart(classes, bits):
    codes = hadamard_centres(classes, bits)
    assert codes.shape == (classes, bits)
    found = set(distances(codes))
    assert found <= {bits // 2, bits}  # a row and its negative differ everywhere
    assert (bits in found) == (classes > bits)


def test_published_centres_refuse_what_has_no_hadamard_matrix():
    for classes, bits in ((10, 12), (33, 16)):
        with refused("power of two"):
            hadamard_centres(classes, bits)


@pytest.mark.parametrize("classes", [2, 5, 10, 21, 100, 200])
@pytest.mark.parametrize("bits", [1, 8, 12, 16, 48, 64, 100])
def test_spread_centres_have_different_columns_and_nearly_half_distance(classes, bits):
    order = 1 << (bits - 1).bit_length()
    if classes > 2 * order:
        with refused("Hadamard centres of at most"):
            spread_hadamard_centres(classes, bits)
        return
    codes = spread_hadamard_centres(classes, bits)
    assert codes.shape == (classes, bits) and set(np.unique(codes)) <= {-1, 1}
    columns = len({tuple(column) for column in codes.T})
    # The rows 1, 2, 4, ... tell columns apart; with fewer classes than these, as many as there are.
    assert columns == min(bits, 2 ** min(classes, order.bit_length() - 1))
    if bits == order and classes < order:
        assert set(distances(codes)) == {bits // 2}


@pytest.mark.parametrize(
    ("classes", "bits", "least"), [(10, 12, 4), (10, 24, 8), (10, 48, 16), (64, 48, 16), (100, 64, 32)]
)
def test_spread_centres_stay_apart_where_the_matrix_is_cut(classes, bits, least):
    assert min(distances(spread_hadamard_centres(classes, bits))) >= least


@pytest.mark.parametrize(("classes", "bits"), [(10, 12), (100, 64), (3, 7)])
def test_random_centres_are_balanced_and_the_best_of_their_draws(classes, bits):
    codes = random_centres(classes, bits, np.random.default_rng(0), draws=50)
    assert ((codes == 1).sum(axis=1) == bits // 2).all()
    generator = np.random.default_rng(0)
    tried = [balanced_codes(classes, bits, generator) for _ in range(50)]
    assert separation(codes) == max(separation(one) for one in tried)


def test_separation_counts_differing_bits():
    codes = np.random.default_rng(1).choice([-1, 1], (7, 13))
    found = distances(codes)
    assert separation(codes) == (min(found), pytest.approx(np.mean(found)))
    assert separation(codes[:1]) == (13, 13.0)


# As many classes as there are codes, or nearly: drawn once, most of them have the code of another class.
CROWDED = [("bernoulli", 8, 3), ("random", 20, 6), ("published", 200, 12)]


@pytest.mark.parametrize(("kind", "classes", "bits"), [*CROWDED, ("spread_hadamard", 32, 12)])
@pytest.mark.parametrize("seed", range(3))
def test_no_two_classes_have_the_same_code(kind, classes, bits, seed):
    codes = make_centres(kind, classes, bits, np.random.default_rng((seed, 11)))
    assert len({tuple(code) for code in codes.tolist()}) == classes
    if kind in ("random", "published"):
        assert ((codes == 1).sum(axis=1) == bits // 2).all()


def test_only_repeated_codes_are_drawn_again(monkeypatch):
    """Codes that other classes do not have are those of the draws without a check."""
    given = (200, 12, np.random.default_rng((0, 11)), 5)
    codes = random_centres(*given)
    monkeypatch.setattr(centres, "_made_distinct", lambda codes, draw: codes)
    drawn = random_centres(200, 12, np.random.default_rng((0, 11)), 5)
    seen, changed = set(), 0
    for code, before in zip(codes.tolist(), drawn.tolist()):
        repeats = tuple(before) in seen
        assert repeats or code == before
        changed += repeats
        seen.add(tuple(before))
    assert changed > 0


@pytest.mark.parametrize(
    ("kind", "classes", "bits", "balanced", "enough"),
    [
        ("bernoulli", 9, 3, "", 4),
        ("separated", 17, 4, "", 5),
        ("random", 71, 8, ": 70 codes have 4 ones", 9),
        ("published", 1000, 12, ": 924 codes have 6 ones", 13),
        ("published", 200, 7, ": 35 codes have 3 ones", 10),
    ],
)
def test_more_classes_than_codes_are_refused(kind, classes, bits, balanced, enough):
    words = f"^{bits} bits cannot tell {classes} classes apart{balanced}; that takes {enough} bits$"
    with refused(pattern=words):
        make_centres(kind, classes, bits, np.random.default_rng(0))


@pytest.mark.parametrize(("bits", "constant"), [(16, 1), (32, 2), (64, 4)])
def test_published_centres_of_ten_classes_have_sixteen_columns_of_which_one_is_constant(bits, constant):
    codes = hadamard_centres(10, bits)
    columns = [tuple(column) for column in codes.T.tolist()]
    assert len(set(columns)) == 16
    assert constant_bits(codes) == sum(len(set(column)) == 1 for column in columns) == constant


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_made_and_repeats_by_seed(kind):
    one, other = (make_centres(kind, 10, 16, np.random.default_rng(4)) for _ in range(2))
    assert one.dtype == np.int8 and one.shape == (10, 16) and np.array_equal(one, other)


def test_an_unknown_kind_is_refused():
    with refused("centres must be one of published, hadamard"):
        make_centres("sylvester", 10, 16, np.random.default_rng(0))
