"""Splits: their defining properties item by item, what cannot be drawn, and the file they are kept in."""

import hashlib

import numpy as np
import pytest

from datasets.description import Description
from datasets.splits import Split, check, draw
from tests.tiebench.refusals import refused


def described(labels: np.ndarray, given=None, names=None, parts=None) -> Description:
    return Description(len(labels), labels, given, names, (1,), "vectors", parts)


def of_classes(counts: dict[int, int], **others) -> Description:
    labels = np.repeat(list(counts), list(counts.values())).astype(np.int64)
    return described(np.random.default_rng(0).permutation(labels), **others)


def counted(labels: np.ndarray, rows: np.ndarray) -> dict[int, int]:
    return dict(zip(*(array.tolist() for array in np.unique(labels[rows], return_counts=True))))


def rows_of(split: Split) -> tuple[set, set, set]:
    return tuple(set(getattr(split, name).tolist()) for name in ("query", "database", "training"))


CLASSES = of_classes({0: 40, 2: 30, 7: 25})
LABELS = described((np.random.default_rng(0).random((3000, 5)) < [0.1, 0.4, 0.05, 0.4, 0.2]).astype(np.uint8))
PARTS = {"given": np.tile([0, 1, 2], 60).astype(np.int64), "parts": ["test", "train", "extra"]}
GIVEN = of_classes({0: 60, 1: 60, 2: 60}, **PARTS)
NONE = Description(50, None, None, None, (1,), "vectors")
OUTSIDE = {"training_in_database": False}


@pytest.mark.parametrize("training", [10, "all"])
def test_per_class_counts_of_each_class(training):
    split = draw({"kind": "per_class", "query": 5, "training": training}, CLASSES, seed=1)
    assert counted(CLASSES.labels, split.query) == {0: 5, 2: 5, 7: 5}
    assert counted(CLASSES.labels, split.database) == {0: 35, 2: 25, 7: 20}
    expected = {0: 10, 2: 10, 7: 10} if training == 10 else {0: 35, 2: 25, 7: 20}
    assert counted(CLASSES.labels, split.training) == expected
    query, database, learned = rows_of(split)
    assert query | database == set(range(95)) and learned <= database


def test_per_class_training_outside_the_database():
    spec = {"kind": "per_class", "query": 5, "training": 10} | OUTSIDE
    split = draw(spec, CLASSES, seed=1)
    query, database, learned = rows_of(split)
    assert query | database | learned == set(range(95)) and not learned & database
    assert split.metadata()["training_in_database"] is False
    # Where the training set lies changes nothing in what is drawn.
    inside = draw(spec | {"training_in_database": True}, CLASSES, seed=1)
    np.testing.assert_array_equal(inside.training, split.training)


@pytest.mark.parametrize(
    ("spec", "description"),
    [
        ({"kind": "per_class", "query": 2, "training": 3}, CLASSES),
        ({"kind": "per_class", "query": 2, "training": 3} | OUTSIDE, CLASSES),
        ({"kind": "random", "query": 3, "training": 7}, NONE),
        ({"kind": "random", "query": 3, "training": 7, "database": 30}, NONE),
    ],
)
def test_folds_share_no_query_and_no_training_item(spec, description):
    folds = [draw(spec | {"folds": 5, "fold": fold}, description, seed=1) for fold in range(1, 6)]
    assert folds[0].fingerprint == draw(spec, description, seed=1).fingerprint
    learned = [rows for one in folds for rows in (one.query, one.training)]
    assert len(set(np.concatenate(learned).tolist())) == sum(map(len, learned))
    for one in folds:
        assert one.metadata()["training_in_database"] is spec.get("training_in_database", True)
        assert len(one.database) == len(folds[0].database)
        if description is CLASSES:
            assert counted(CLASSES.labels, one.query) == {0: 2, 2: 2, 7: 2}


@pytest.mark.parametrize("training", [{"per_class": 18}, {"random": 59}])
def test_given_training_outside_the_database(training):
    spec = {"kind": "given", "query": 0, "database": "train", "training": training}
    inside, outside = (draw(spec | {"training_in_database": where}, GIVEN, seed=1) for where in (True, False))
    assert inside.fingerprint == draw(spec, GIVEN, seed=1).fingerprint
    np.testing.assert_array_equal(inside.training, outside.training)
    np.testing.assert_array_equal(inside.query, outside.query)
    _, database, learned = rows_of(outside)
    assert database | learned == rows_of(inside)[1] and not database & learned and database


def consumed(description: Description, split: Split, order: list[int], query: int, training: int) -> None:
    """Hold that `split` can come from the sequential sampler.

    There, each label takes exactly `query` and `training` of the items that hold it and that no label before
    it took. So the chosen items can be dealt out to the labels, each to one that it holds: a full matching.
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_bipartite_matching

    for rows, each in ((split.query, query), (split.training, training)):
        assert len(rows) == each * len(order)
        places = np.repeat(order, each)
        holds = csr_matrix(description.labels[rows][:, places])
        assert (maximum_bipartite_matching(holds, perm_type="column") >= 0).all()


@pytest.mark.parametrize("order", ["frequency", "columns"])
def test_per_label_is_a_sequential_draw(order):
    spec = {"kind": "per_label", "query": 10, "training": 50, "order": order}
    split = draw(spec, LABELS, seed=4)
    query, database, learned = rows_of(split)
    labelled = set(np.flatnonzero(LABELS.labels.any(axis=1)).tolist())
    assert labelled != set(range(3000))
    assert query | database == labelled and not query & database
    assert learned <= database
    consumed(LABELS, split, list(range(5)), 10, 50)


def test_per_label_frequent_labels_come_first():
    """All items hold one label, six the other, each label takes six: only the rare one first can succeed."""
    labels = np.zeros((30, 2), np.uint8)
    labels[:, 0], labels[:6, 1] = 1, 1
    nested = described(labels[:, ::-1].copy())
    spec = {"kind": "per_label", "query": 2, "training": 4}
    # Column 0 is rare here: in order of columns it takes all of its six items, whatever the seed.
    for seed in range(20):
        split = draw(spec | {"order": "columns"}, nested, seed)
        assert set(range(6)) <= rows_of(split)[0] | rows_of(split)[2]
        assert len(split.query) == 4 and len(split.training) == 8
    check(spec, nested)
    with refused(pattern=r"2 \+ 4 items of label 0, of which the labels before it left [0-5]$"):
        for seed in range(20):
            draw(spec, nested, seed)


def test_per_label_ties_of_frequency_go_to_the_lower_column():
    """Columns 0 and 1 are as frequent and 2 more so: the draw is that of columns 2, 0, 1 in this order."""
    labels = np.zeros((200, 3), np.uint8)
    labels[:100, 0] = labels[50:150, 1] = labels[:150, 2] = 1
    spec = {"kind": "per_label", "query": 3, "training": 5}
    columns = draw(spec | {"order": "columns"}, described(labels[:, [2, 0, 1]].copy()), 7)
    assert draw(spec, described(labels), 7).fingerprint == columns.fingerprint


@pytest.mark.parametrize(
    ("keys", "database", "training", "inside"),
    [
        ({"training": 20}, 41, 20, True),
        ({"training": "all"}, 41, 41, True),
        ({"training": 20, "database": 30}, 30, 20, True),
        ({"training": "all", "database": 30}, 30, 30, True),
        ({"training": 20, "database": "all"}, 41, 20, True),
        ({"training": 20, "training_in_database": False}, 21, 20, False),
        ({"training": 20, "database": 10, "training_in_database": False}, 10, 20, False),
    ],
)
def test_random_sizes(keys, database, training, inside):
    card = draw({"kind": "random", "query": 9} | keys, NONE, 5).metadata()
    sizes = (card["query"], card["database"], card["training"], card["training_in_database"])
    assert sizes == (9, database, training, inside)


def test_random_training_set_does_not_depend_on_the_size_of_the_database():
    spec = {"kind": "random", "query": 9, "training": 10}
    one, two, three = (draw(spec | {"database": size}, NONE, 3).training for size in (10, 20, "all"))
    assert one.tolist() == two.tolist() == three.tolist()


@pytest.mark.parametrize("by_name", [False, True])
def test_given(by_name):
    query, database = ("test", ["train", "extra"]) if by_name else (0, [1, 2])
    spec = {"kind": "given", "query": query, "database": database}
    split = draw(spec | {"training": "all"}, GIVEN, 0)
    np.testing.assert_array_equal(split.query, np.flatnonzero(GIVEN.given_split == 0))
    np.testing.assert_array_equal(split.database, np.flatnonzero(GIVEN.given_split > 0))
    np.testing.assert_array_equal(split.training, split.database)

    split = draw(spec | {"training": {"per_class": 7}}, GIVEN, 0)
    assert counted(GIVEN.labels, split.training) == {0: 7, 1: 7, 2: 7}
    assert rows_of(split)[2] <= rows_of(split)[1]
    split = draw(spec | {"training": {"random": 11}}, GIVEN, 0)
    assert len(split.training) == 11 and rows_of(split)[2] <= rows_of(split)[1]
    split = draw(spec | {"training": {"split": "extra" if by_name else 2}}, GIVEN, 0)
    np.testing.assert_array_equal(split.training, np.flatnonzero(GIVEN.given_split == 2))


def test_what_is_drawn_stays_the_same_for_ever():
    """Published splits are named by seed and fingerprint: a change here breaks them."""
    in_order = described(np.repeat(np.arange(3), 8).astype(np.int64))
    split = draw({"kind": "per_class", "query": 2, "training": 3}, in_order, 42)
    # From the raw output of PCG64(42), by the definition: per class, rows in the order of the raw values.
    raw = np.random.PCG64(42)
    query, training = [], []
    for value in range(3):
        numbers = [int(raw.random_raw()) for _ in range(8)]
        rows = [value * 8 + place for place in sorted(range(8), key=numbers.__getitem__)]
        query += rows[:2]
        training += rows[2:5]
    assert split.query.tolist() == sorted(query) and split.training.tolist() == sorted(training)
    assert split.fingerprint == "4bfe18b6539f7b60fe9fc6090b25b5413bc18c107cfb1eff2ec7e8cdc7144a1f"


def test_fingerprint_is_the_sha256_of_the_three_arrays():
    split = Split(np.array([5, 1]), np.array([2, 0, 3], np.int32), np.array([3], np.uint8))
    text = b"".join(
        name + b" %d\n" % len(rows) + b"".join(row.to_bytes(8, "little") for row in rows)
        for name, rows in ((b"query", [1, 5]), (b"database", [0, 2, 3]), (b"training", [3]))
    )
    assert split.fingerprint == hashlib.sha256(text).hexdigest()
    sizes = {"query": 2, "database": 3, "training": 1, "training_in_database": True}
    assert split.metadata() == sizes | {"fingerprint": split.fingerprint}


def test_saved_splits_come_back_and_have_the_same_bytes(tmp_path, monkeypatch):
    split = draw({"kind": "random", "query": 9, "training": 20}, NONE, 1)
    split.save(tmp_path / "one.npz")
    monkeypatch.setattr("time.time", lambda: 2e9)
    split.save(tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    assert Split.load(tmp_path / "one.npz").fingerprint == split.fingerprint
    with np.load(tmp_path / "one.npz", allow_pickle=False) as arrays:
        assert sorted(arrays) == ["database", "query", "training"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["one.npz", "two.npz"]


@pytest.mark.parametrize(
    "contents",
    [b"", b"text", {"query": [1]}, {"query": [1], "database": [1], "training": [2]}, {"query": [None]}],
)
def test_what_is_not_a_split_is_not_loaded(tmp_path, contents):
    path = tmp_path / "bad.npz"
    if isinstance(contents, bytes):
        path.write_bytes(contents)
    else:
        np.savez(path, **contents)
    with refused(pattern=r"bad\.npz: not a split"):
        Split.load(path)
    with pytest.raises(FileNotFoundError, match=r"nothing\.npz"):
        Split.load(tmp_path / "nothing.npz")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (([1, 1], [2], [2]), "query holds row 1 twice"),
        (([1], [2, 3, 2], [3]), "database holds row 2 twice"),
        (([1], [1, 2], [2]), "row 1 is both in query and in database"),
        (([1], [2, 3], [1]), "row 1 is both in query and in training"),
        (([1], [2], []), "training must be a non-empty"),
        (([-1], [2], [2]), "negative row number -1"),
        (([1.0], [2], [2]), "query must be a non-empty list of row numbers"),
        (([[1]], [2], [2]), "query must be a non-empty list of row numbers"),
    ],
)
def test_constructor_refuses(parts, message):
    with refused(pattern=message):
        Split(*(np.array(part, None if part else np.int64) for part in parts))


PER_CLASS = {"kind": "per_class", "query": 5, "training": 10}
PER_LABEL = {"kind": "per_label", "query": 10, "training": 50}
RANDOM = {"kind": "random", "query": 9, "training": 20}
BY_PART = {"kind": "given", "query": 0, "database": 1, "training": "all"}
NAMED = of_classes({0: 10, 1: 30}, names=["cat", "dog"])
SPARSE = described(np.repeat(np.eye(3, dtype=np.uint8), 10, axis=0))
TOGETHER = described(np.ones((30, 4), np.uint8))
WITHOUT = {key: value for key, value in RANDOM.items() if key != "query"}
SIX = of_classes({0: 3, 1: 3}, given=np.array([0, 1, 1, 1, 1, 0]))
NOTHING_LEFT = "leave nothing to the database"


@pytest.mark.parametrize(
    ("spec", "description", "message"),
    [
        (None, NONE, "must be a mapping"),
        ({"query": 5}, NONE, "key 'kind' is missing"),
        ({"kind": "per_clas"}, CLASSES, "no kind of split 'per_clas'; did you mean 'per_class'"),
        (PER_CLASS | {"trainig": 5}, CLASSES, "unknown key 'trainig' .*; did you mean 'training'"),
        (WITHOUT, NONE, "key 'query' is missing for kind 'random'"),
        (PER_CLASS | {"query": "5"}, CLASSES, "'query': must be a positive integer, not '5'"),
        (PER_CLASS | {"query": 0}, CLASSES, "'query': must be a positive integer, not 0"),
        (PER_CLASS | {"query": True}, CLASSES, "must be a positive integer, not True"),
        (PER_CLASS | {"training": 2.5}, CLASSES, "'training': must be a positive integer or 'all', not 2.5"),
        (PER_CLASS | {"training_in_database": "no"}, CLASSES, "must be true or false, not 'no'"),
        (PER_CLASS | {"training": "all"} | OUTSIDE, CLASSES, NOTHING_LEFT),
        (PER_CLASS | {"folds": 1}, CLASSES, "'folds' must be at least 2"),
        (PER_CLASS | {"folds": 2, "training": "all"}, CLASSES, "'folds' needs a number of training items"),
        (PER_CLASS | {"folds": 2}, CLASSES, r"asks for 2 x \(5 \+ 10\) items of class 7, which has 25"),
        (PER_CLASS | {"fold": 1}, CLASSES, "'fold' needs the key 'folds'"),
        (RANDOM | {"folds": 2}, NONE, r"asks for 2 x \(9 \+ 20\) items of a dataset that has 50"),
        (RANDOM | {"training": 5, "folds": 2, "fold": 3}, NONE, "fold 3 does not exist, there are 2"),
        (PER_CLASS | {"training": 21}, CLASSES, r"asks for 5 \+ 21 items of class 7, which has 25"),
        (PER_CLASS | {"training": 6}, NAMED, r"asks for 5 \+ 6 items of class cat, which has 10"),
        (PER_CLASS | {"query": 10, "training": "all"}, of_classes({0: 10}), NOTHING_LEFT),
        (PER_CLASS, LABELS, "needs labels: classes.*multi-hot; kinds that fit it: given, per_label, random"),
        (PER_CLASS, NONE, "needs labels: classes.*none; kinds that fit it: given, random"),
        (PER_LABEL, CLASSES, "needs labels: multi-hot.*kinds that fit it: given, per_class, random"),
        (PER_LABEL | {"order": "frequent"}, LABELS, "unknown order 'frequent'; did you mean 'frequency'"),
        (PER_LABEL, SPARSE, r"asks for 10 \+ 50 items of label 0, which has 10"),
        (PER_LABEL | {"training": 1, "query": 8}, TOGETHER, "each of the 4 labels up to 3, which 30 items"),
        (PER_LABEL | {"training": "all"}, SPARSE, NOTHING_LEFT),
        (RANDOM | {"query": 40}, NONE, r"ask for 40 \+ 20 items of a dataset that has 50"),
        (RANDOM | {"database": 10}, NONE, "training asks for 20 of the 10 items of the database"),
        (RANDOM | {"database": 22} | OUTSIDE, NONE, r"ask for 9 \+ 20 \+ 22 items"),
        (BY_PART, CLASSES, "needs a dataset that comes with a split"),
        (BY_PART | {"query": 3}, GIVEN, "'query': .* own split has no part 3; .*test, train, extra"),
        (BY_PART | {"query": "tset"}, GIVEN, "has no part 'tset'; did you mean 'test'"),
        (BY_PART | {"query": []}, GIVEN, "'query': names no part"),
        (BY_PART | {"database": [1, 0]}, GIVEN, "part test is both in query and in database"),
        (BY_PART | {"training": 500}, GIVEN, "must be all, {per_class: k}"),
        (BY_PART | {"training": {"per_class": 2}} | OUTSIDE, SIX, NOTHING_LEFT),
        (BY_PART | {"training": {"random": 60}} | OUTSIDE, GIVEN, NOTHING_LEFT),
        (BY_PART | {"training": "all"} | OUTSIDE, GIVEN, NOTHING_LEFT),
        (BY_PART | {"training": {"split": 2}} | OUTSIDE, GIVEN, "'training_in_database' is of training: "),
        (BY_PART | {"training": {"perclass": 5}}, GIVEN, "key 'perclass' .*; did you mean 'per_class'"),
        (BY_PART | {"training": {"random": 61}}, GIVEN, "asks for 61 of the 60 items of the database"),
        (BY_PART | {"training": {"per_class": 100}}, GIVEN, "asks for 100 items of class 0, of which the"),
        (BY_PART | {"training": {"split": 0}}, GIVEN, "part test is both in query and in training"),
    ],
)
def test_check_and_draw_refuse_alike(spec, description, message):
    for attempt in (lambda: check(spec, description), lambda: draw(spec, description, 0)):
        with refused(pattern=f"^split.*{message}"):
            attempt()


@pytest.mark.parametrize("seed", [-1, 1.5, "1", True, None])
def test_bad_seeds(seed):
    with refused(pattern="seed must be a non-negative integer"):
        draw(RANDOM, NONE, seed)
