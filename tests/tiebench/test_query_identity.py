"""Which queries codes are of: summaries that ignore what changes no score, and messages on what differs."""

import json

import numpy as np
import pytest
from refusals import refused

from tiebench.query_identity import check, describe

QUERY, DATABASE = np.array([4, 4, 7, 1]), np.array([1, 7, 7, 4, 9, 4, 7])
CLASSES = {"query": QUERY, "database": DATABASE}
ITEMS = {"query": np.array([0, 5, 6, 9]), "database": np.array([1, 2, 3, 4, 7, 8, 10])}


def one_hot(labels):
    return np.eye(10, dtype=np.uint8)[labels]


def test_neither_names_nor_types_of_classes_count():
    found = describe(CLASSES)
    assert (found["queries"], found["database"]) == (4, 7)
    assert sorted(found["query_counts"]) == [0, 1, 1, 2]
    assert found["database_counts"] == [2, 3, 1, 1]  # of 4, 7, 1, 9: in the order of their first appearance
    names = np.array([*"jazqbcidhe"])
    same = {part: names[labels] for part, labels in CLASSES.items()}
    for other in (
        same,
        {part: labels.astype(object) for part, labels in same.items()},
        {part: labels.astype(np.int32) + 100 for part, labels in CLASSES.items()},
        {"query": QUERY.astype(np.uint64) + 2**60, "database": DATABASE + 2**60},
        {part: one_hot(labels) for part, labels in CLASSES.items()},
        {part: one_hot(labels)[:, ::-1].astype(bool) for part, labels in CLASSES.items()},
    ):
        assert describe(other) == found
    assert json.loads(json.dumps(found)) == found


def test_the_order_of_columns_does_not_count_and_that_of_items_does():
    rng = np.random.default_rng(0)
    labels = {"query": rng.random((6, 5)) < 0.4, "database": rng.random((40, 5)) < 0.4}
    found = describe(labels)
    columns = rng.permutation(5)
    padded = {part: np.pad(of[:, columns], ((0, 0), (0, 2))) for part, of in labels.items()}
    assert describe(padded) == found
    assert sorted(found["query_counts"]) == sorted(labels["query"].sum(axis=0))
    moved = labels | {"database": labels["database"][::-1]}
    assert describe(moved)["database_labels"] != found["database_labels"]
    assert describe(moved)["query_labels"] == found["query_labels"]
    other = labels | {"query": labels["query"].copy()}
    other["query"][3, 2] ^= True
    assert describe(other)["query_labels"] != found["query_labels"]


def test_what_is_compared_is_what_both_know():
    recorded = describe(CLASSES, ITEMS)
    assert check(describe(CLASSES), recorded, "it") == ["sizes", "labels"]
    assert check(describe(CLASSES, ITEMS), recorded, "it") == ["sizes", "labels", "items"]
    assert check(describe(CLASSES, {"query": ITEMS["query"]}), recorded, "it") == ["sizes", "labels", "items"]
    assert check(describe(CLASSES), {"queries": 4, "database": 7}, "it") == ["sizes"]
    assert check(describe(CLASSES), {}, "it") == []


@pytest.mark.parametrize(
    ("labels", "items", "message"),
    [
        (CLASSES | {"database": DATABASE[:6]}, None, "of 4 queries and 6 database items, protocol p has 4 "),
        (
            CLASSES | {"database": np.array([1, 7, 7, 4, 9, 4, 9])},
            None,
            "the database labels are not those of protocol p: classes of 2 and 2 items instead of 1 and 3",
        ),
        (
            CLASSES | {"query": np.array([4, 4, 4, 1])},
            None,
            "the query labels are not those of protocol p: 2 classes or labels instead of 3",
        ),
        (
            CLASSES | {"database": DATABASE[::-1]},
            None,
            "the database labels are not those of protocol p in its",
        ),
        (
            CLASSES | {"query": QUERY[[0, 2, 1, 3]]},
            None,
            "the query labels are not those of protocol p in its",
        ),
        # Queries 0 and 1 have one class: only their row numbers can tell that they were exchanged.
        (
            CLASSES,
            ITEMS | {"query": ITEMS["query"][[1, 0, 2, 3]]},
            "query_items are not `query` of the split",
        ),
        (CLASSES, ITEMS | {"database": np.arange(7)}, "database_items are not `database` of the split"),
    ],
)
def test_what_differs_is_said_in_one_line(labels, items, message):
    with refused(message):
        check(describe(labels, items), describe(CLASSES, ITEMS), "protocol p")


def test_row_numbers_that_fit_no_labels_are_refused():
    with refused("4 queries labels, but 3 row numbers"):
        describe(CLASSES, {"query": np.arange(3)})
    with refused("query_items[1] is 0.5; it must be an integer"):
        describe(CLASSES, {"query": np.arange(4) / 2})
    assert describe(CLASSES, {"query": np.arange(4.0)}) == describe(CLASSES, {"query": np.arange(4)})


@pytest.mark.parametrize("labels", [DATABASE.astype(str), one_hot(DATABASE)], ids=["text", "one-hot"])
def test_labels_of_two_kinds_are_refused(labels):
    with refused("query_labels and database_labels must be alike, not int64 (4,) and"):
        describe({"query": QUERY, "database": labels})


@pytest.mark.parametrize(
    ("mine", "recorded", "said"),
    [
        ((1, 5, 6), (2, 3, 7), "of 1, 5, 6 items instead of 2, 3, 7"),
        ((1, 5, 6, 9), (2, 4, 7, 8), "of 1, 5, 6, … (4 classes) items instead of 2, 4, 7, … (4 classes)"),
    ],
)
def test_three_sizes_of_classes_that_differ_are_said(mine, recorded, said):
    one, other = (
        describe({"query": QUERY, "database": np.repeat(np.arange(len(sizes)), sizes)})
        for sizes in (mine, recorded)
    )
    with refused(f"the database labels are not those of it: classes {said}"):
        check(one, other, "it")
