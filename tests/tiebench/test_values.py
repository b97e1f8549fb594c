"""The one reading of values: what is taken and to what, what is refused and in which words."""

import re

import numpy as np
import pytest
import torch
from refusals import refused

import tiebench
from tiebench import scoring, training, values
from tiebench.affinities import SharedLabels
from tiebench.codes.packing import check_packed, pack
from tiebench.search import export
from tiebench.splits import check

LARGEST = 2**63 - 1


@pytest.mark.parametrize(
    "make",
    [int, np.int8, np.uint64, float, np.float32, np.array, torch.tensor, lambda n: torch.tensor(1.0 * n)],
)
def test_whole_numbers_of_every_type_are_integers(make):
    found = values.integer(make(20), "bits", 1, 1024)
    assert (type(found), found) == (int, 20)


NO_INTEGERS = (True, 2.5, np.nan, np.inf, "4", b"4", None, [4])


@pytest.mark.parametrize(
    ("given", "range_", "said"),
    [
        *((value, (1, 8), f"an integer between 1 and 8, not {value!r}") for value in NO_INTEGERS),
        *((true, (1, 8), "an integer between 1 and 8, not True") for true in (np.True_, torch.tensor(True))),
        *((value, (1, 8), f"between 1 and 8, not {value!r}") for value in (0, 9.0)),
        (np.array([4]), (1, 8), "an integer between 1 and 8, not int64 (1,)"),
        (0, (1,), "a positive integer, not 0"),
        (-1, (0,), "an integer of at least 0, not -1"),
        (2**63, (1,), f"a positive integer of at most {LARGEST}, not {2**63}"),
        (1e300, (), f"an integer of at most {LARGEST}, not 1e+300"),
    ],
)
def test_what_is_no_integer_of_the_range_is_refused_with_the_limit_and_the_value(given, range_, said):
    with refused(pattern=f"^bits must be {re.escape(said)}$"):
        values.integer(given, "bits", *range_)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        *((seven, (7,)) for seven in (7, 7.0, np.int16(7), torch.tensor(7))),
        *((two, (5, 7)) for two in ([5, 7.0, 5], np.array([5.0, 7.0]), torch.tensor([5, 7]))),
        *(((), ()), (range(1, 3), (1, 2)), (10**12, (10**12,))),
    ],
)
def test_cutoffs_are_one_or_several_each_once(given, found):
    assert values.cutoffs(given) == found


@pytest.mark.parametrize("given", [0, [0], "10", ["10"], [1.5], True, None, [None], 10**18, [[1, 2]]])
def test_what_is_no_cutoff_is_refused(given):
    with refused(pattern=r"^the cut K must be a positive integer"):
        values.cutoffs(given)


@pytest.mark.parametrize(
    "kind", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4", ">u8", "f2", "f4", "f8", ">f8", "O"]
)
def test_integers_of_every_type_have_their_values(kind):
    given = np.array([[1, 0], [100, 3]]).astype(kind)
    found = values.integers(given, "grade")
    assert found.dtype.kind in "iu"
    assert np.array_equal(found, [[1, 0], [100, 3]])
    assert np.array_equal(values.rows(given.ravel(), "rows", 101), [1, 0, 100, 3])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.array([0, 2**64 - 1], np.uint64), f"grade[1] is {2**64 - 1}; it must be an integer of 64 bits"),
        ([0, 2**70], f"grade[1] is {2**70}; it must be an integer of 64 bits"),
        (np.array([0, np.uint64(2**63)], object), f"grade[1] is {2**63}; it must be an integer of 64 bits"),
        (np.array([1.0, 2**53 + 1], object), f"grade[1] is {2**53 + 1}; it must be an integer of at most"),
        ([1.0, 0.5], "grade[1] is 0.5; it must be an integer"),
        ([[1.0], [np.nan]], "grade[1, 0] is nan; it must be an integer"),
        ([1.0, -np.inf], "grade[1] is -inf; it must be an integer"),
        (np.array([1, None], object), "grade[1] is None; it must be a number or text"),
        (np.array([1, "1"], object), "grade must be all integers or all text: it holds '1' and 1"),
        ([True, False], "grade must be integers, not bool (2,)"),
        ([1 + 0j], "grade must be integers, not complex128 (1,)"),
        (["1"], "grade must be integers, not <U1 (1,)"),
        (np.array(["2020-01-01"], "M8[D]"), "grade must be integers, not datetime64[D] (1,)"),
        ([[1], [1, 2]], "grade cannot be read as an array"),
        ({1: 2}, "grade must be an array, a tensor or a list, not dict"),
        (None, "grade must be an array, a tensor or a list, not NoneType"),
        (np.ma.array([1, 2], mask=[0, 1]), "grade: 1 of its 2 values are masked"),
        (torch.ones(2, 2).to_sparse(), "grade cannot be read as an array"),
    ],
)
def test_the_first_value_that_is_no_integer_is_named(given, said):
    with refused(pattern=f"^{re.escape(said)}"):
        values.integers(given, "grade")


def test_text_is_an_integer_only_where_it_may_be_written():
    written = values.integers(np.array(["1.0", "-2", "1e2"]), "grade", written=True)
    assert written.tolist() == [1, -2, 100]
    with refused(pattern=r"^grade\[1\] is not an integer: '1O'$"):
        values.integers([b"1", b"1O"], "grade", written=True)


def test_a_mask_that_hides_nothing_is_no_mask():
    masked = np.ma.array([3, 1], mask=[False, False])
    assert type(values.as_array(masked)) is np.ndarray
    assert values.integers(masked, "grade").tolist() == [3, 1]


CLASSES = [1, 0, 1, 2, 0]


@pytest.mark.parametrize("kind", ["i1", "u8", ">i2", "f2", "f8", "O"])
def test_classes_of_every_type_score_alike(kind):
    codes = np.eye(5, 4, dtype=np.uint8)
    expected = tiebench.score(codes, codes, CLASSES, CLASSES, at=2).means
    given = np.array(CLASSES).astype(kind)
    assert tiebench.score(codes, codes, given, CLASSES, at=2).means == expected
    names = np.array(["a", "", "ç"])[CLASSES]
    encoded = np.char.encode(names, "utf-8")
    kinds = names.astype(object), names.astype(np.dtypes.StringDType()), encoded.astype(object)
    for text in (names, encoded, *kinds, names.tolist()):
        assert tiebench.score(codes, codes, text, names, at=2).means == expected


@pytest.mark.parametrize(("row", "remedy"), [(False, "query_labels[:, 0]"), (True, "query_labels[0]")])
@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.str_])
def test_a_column_or_a_row_of_classes_is_refused_and_both_readings_are_named(row, remedy, dtype):
    codes = np.eye(4, dtype=np.uint8)
    classes = np.array([0, 1, 0, 1]).astype(dtype)
    given = classes[None] if row else classes[:, None]
    for function in (tiebench.score, tiebench.health):
        with refused(remedy):
            function(codes, codes, given, given)
    with refused(remedy.replace("query_labels", "labels of a batch")):
        training.TieAwareRetrieval(4).update(codes, given, "query")


def test_the_second_column_that_the_message_asks_for_makes_one_label():
    codes = np.eye(4, dtype=np.uint8)
    one = np.array([[0], [1], [0], [1]])
    padded = np.pad(one, ((0, 0), (0, 1)))
    expected = scoring.score_codes(pack(codes), pack(codes), 4, SharedLabels(one, one))
    assert tiebench.score(codes, codes, padded, padded).means == expected.means


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([0.0, np.nan], "query_labels[1] is nan; it must be an integer"),
        (np.ma.array([0, 1], mask=[1, 0]), "query_labels: 1 of its 2 values are masked"),
        (np.array([1, "1"], object), "query_labels must be all integers or all text"),
        (np.array([1, None], object), "query_labels[1] is None"),
        (np.array([0, 1j]), "query_labels must be integers or strings of shape (n,), not complex128 (2,)"),
        (np.array([b"a", b"\xff"]), "query_labels[1] holds bytes that are not UTF-8"),
        ([[1, 0], [1, -1]], "query_labels[1, 1] is -1; a matrix of labels"),
        ([[1, 0], [1, np.nan]], "query_labels[1, 1] is nan; a matrix of labels"),
    ],
)
def test_labels_that_are_none_are_refused_in_one_line(given, said):
    codes = np.eye(2, dtype=np.uint8)
    with refused(pattern=f"^{re.escape(said)}"):
        tiebench.score(codes, codes, given, [0, 1])


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (np.array([1, "1"], object), "all integers or all text"),
        ([1.5, 2.0], "is 1.5; it must be an integer"),
        ([1.0, 1.0], "has '1' twice"),
        ([True, False], "integers or strings (n,), not bool"),
        (np.ma.array([1, 2], mask=[0, 1]), "masked"),
        ([[1], [2]], "integers or strings (n,), not int64 (2, 1)"),
    ],
)
def test_ids_that_are_none_are_refused_in_one_line(names, said):
    with refused(pattern=f"^database_ids.*{re.escape(said)}"):
        export.check_ids(names, 2, "database_ids")


def test_names_of_a_split_are_of_one_type():
    part = check.Part
    leak = check.check({"query": part(torch.tensor([1, 2])), "database": part(np.array([2.0, 3.0]))})
    assert leak["overlaps"]["query_in_database"] == 1
    with refused("integers in all parts, or by text, not query by int, database by str"):
        check.check({"query": part([1, 2]), "database": part(["1", "2"])})
    with refused("classes must be integers in all parts, or text in all"):
        check.check({"query": part([1], [(1,)]), "database": part([2], [("1",)])})


BITS = np.random.default_rng(0).random((6, 32)) < 0.5
PACKED = np.packbits(BITS, axis=1)
# What sentence-transformers calls the precision "binary".
BINARY = (PACKED - 128).astype(np.int8)


REMEDIES = {
    "codes.astype('uint8')": lambda codes: codes.astype("uint8"),
    "(codes.astype('int16') + 128).astype('uint8')": lambda codes: (codes.astype(int) + 128).astype("uint8"),
}


@pytest.mark.parametrize(
    "codes", [BINARY, BINARY.astype(np.int64), PACKED.astype(np.int64), PACKED.astype(np.uint16)]
)
@pytest.mark.parametrize("function", ["score", "health", "check_packed", "update"])
def test_packed_codes_of_another_type_are_refused_with_what_makes_them_right(codes, function):
    """The message's own expression, evaluated, gives the codes that `numpy.packbits` made."""
    labels = np.zeros(6, int)
    call = {
        "score": lambda: tiebench.score(codes, codes, labels, labels, bits=32),
        "health": lambda: tiebench.health(codes, codes, bits=32),
        "check_packed": lambda: check_packed(codes, 32),
        "update": lambda: training.TieAwareRetrieval(32).update(codes, labels, "query"),
    }[function]
    with refused(f"{codes.dtype} (6, 4); packed codes") as caught:
        call()
    remedy = REMEDIES[str(caught.value).partition("give ")[2]]
    assert np.array_equal(remedy(codes), PACKED)


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        (BITS * (1 + 0j), "must hold numbers, not complex128"),
        (BITS.astype(str), "must hold numbers, not <U5"),
        (BITS.astype(object), "must hold numbers, not object"),
        (np.where(BITS, 1.0, np.nan), "there is a NaN"),
        (BINARY, "packed codes are uint8 and need `bits`"),
    ],
)
def test_the_cause_of_unpacked_codes_that_are_refused_is_named(codes, said):
    with refused(said):
        tiebench.score(codes, codes, np.zeros(6, int), np.zeros(6, int))
