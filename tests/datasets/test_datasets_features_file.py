"""Feature files and the digits: what is written against plain NumPy on the same arrays, and bad files."""

from pathlib import Path

import numpy as np
import pytest
from made_contents import contents_of

from datasets import splits
from datasets.description import Description
from datasets.loaders import digits, features_file
from tests.files import damaged, resource, zipped
from tests.tiebench.refusals import refused

FILES = ("items.npy", "labels.npy", "given_split.npy")


def written(folder: Path) -> list[np.ndarray]:
    return [np.load(folder / name, allow_pickle=False) for name in FILES]


@pytest.mark.parametrize(("order", "scaled"), [("C", False), ("F", True)])
@pytest.mark.parametrize(
    "dtype", ["?", "i1", "u1", "<i2", ">u2", "i4", "u4", "i8", "u8", "f2", "<f4", ">f4", "f8"]
)
def test_every_dtype_becomes_float32_times_scale(tmp_path, monkeypatch, dtype, order, scaled):
    monkeypatch.setattr(features_file, "BLOCK_BYTES", 300)  # many blocks, the last one shorter
    generator = np.random.default_rng(3)
    X = np.asarray(generator.integers(0, 2 if dtype == "?" else 100, (23, 7)).astype(dtype), order=order)
    if np.dtype(dtype).kind == "f":
        X /= np.array(7, dtype)
    y = generator.integers(0, 4, 23)
    extra = {"scale": generator.random(7)} if scaled else {}
    np.savez_compressed(tmp_path / "f.npz", X=X, y=y, split=y.astype("u1") % 2, path=np.array(["a"]), **extra)

    description = features_file.load([tmp_path / "f.npz"], tmp_path)
    items, labels, given = written(tmp_path)

    expected = X.astype(np.float32)
    if scaled:
        expected = expected * extra["scale"].astype(np.float32)
    assert items.dtype == np.float32 and items.flags.c_contiguous
    np.testing.assert_array_equal(items, expected)
    assert labels.dtype == given.dtype == np.int64
    np.testing.assert_array_equal(labels, y)
    np.testing.assert_array_equal(given, y % 2)
    assert (description.items, description.item_shape, description.kind) == (23, (7,), "vectors")
    counts = np.bincount(y)
    assert description.metadata()["class_counts"] == {str(c): n for c, n in enumerate(counts) if n}


@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f4"])
def test_multi_hot_labels(tmp_path, dtype):
    y = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 0, 1]])
    np.savez(tmp_path / "f.npz", X=np.eye(4), y=y.astype(dtype))
    card = features_file.load([tmp_path / "f.npz"], tmp_path).metadata()
    labels = np.load(tmp_path / "labels.npy")
    assert labels.dtype == np.uint8
    np.testing.assert_array_equal(labels, y)
    assert card["labels"] == "multi-hot"
    assert card["class_counts"] == {"0": 2, "1": 1, "2": 3}
    assert card["labels_per_item"] == 6 / 4


def test_no_labels_no_split(tmp_path):
    np.savez(tmp_path / "f.npz", X=np.eye(4))
    description = features_file.load([tmp_path / "f.npz"], tmp_path)
    assert description.labels is None and description.given_split is None
    assert [array.shape for array in written(tmp_path)] == [(4, 4), (4, 0), (0,)]
    assert description.metadata()["labels"] == "none"


def test_classes_keep_their_values(tmp_path):
    np.savez(tmp_path / "f.npz", X=np.eye(3), y=np.array([70.0, 5.0, 5.0]))
    np.testing.assert_array_equal(features_file.describe([tmp_path / "f.npz"]).labels, [70, 5, 5])


@pytest.mark.parametrize("multi_hot", [False, True])
def test_describe_and_read_say_what_load_says(tmp_path, multi_hot):
    y = np.eye(5, dtype=int) if multi_hot else np.arange(5)
    np.savez(tmp_path / "f.npz", X=np.ones((5, 2)), y=y, split=[3, 3, 1, 1, 1])
    loaded = features_file.load([tmp_path / "f.npz"], tmp_path)
    described = features_file.describe([tmp_path / "f.npz"])
    for other in (described, Description.read(tmp_path, loaded.metadata())):
        assert other.metadata() == loaded.metadata()
        np.testing.assert_array_equal(other.labels, loaded.labels)
        np.testing.assert_array_equal(other.given_split, loaded.given_split)


def ones(at=None):
    X = np.ones((3, 2))
    for place, value in (at or {}).items():
        X[place] = value
    return X


# Others are in tests/test_bad_input.py.
BAD_ARRAYS = {
    "NaN": ({"X": ones({(1, 1): np.nan, (2, 0): np.inf})}, r"X\[1, 1\] is nan.*finite"),
    "infinite, Fortran": ({"X": np.asfortranarray(ones({(2, 1): -np.inf}))}, r"X\[2, 1\] is -inf"),
    "beyond float32 once scaled": (
        {"X": ones({(2, 0): 1e30}), "scale": [1e30, 1.0]},
        r"X\[2, 0\] is 1e\+30 \(times scale 1\S*e\+30\)",
    ),
    "scale too short": ({"scale": [1.0]}, r"scale has shape \(1,\).*\(2,\)"),
    "y of three dimensions": ({"y": np.ones((3, 1, 1))}, r"y must be classes \(n,\) or 0/1 \(n, labels\)"),
    "y of classes in a column": ({"y": np.ones((3, 1))}, r"classes are \(n,\), give y\[:, 0\]"),
    "y of classes in a row": ({"y": np.ones((1, 3))}, r"is a row: classes are \(n,\), give y\[0\]"),
    "y huge": ({"y": np.array([0, 2**63, 1], "u8")}, r"y\[1\] is 9223372036854775808"),
    "y of objects": ({"y": np.array(["a", None, "c"], object)}, r"pickled.*\.astype\(str\)"),
    "y of dates": ({"y": np.zeros(3, "datetime64[D]")}, "'y' is of type datetime64.*numbers or text"),
    "y of names in two dimensions": ({"y": [["a", "b"]] * 3}, r"0/1 matrix \(n, labels\), not <U1"),
    "empty name": ({"y": ["a", "", "c"]}, r"y\[1\] is ''; it must be printable text"),
    "name with a line end": ({"y": ["a", "b\nc", "c"]}, r"y\[1\] is 'b.*printable"),
    "name that is not UTF-8": ({"y": [b"a", b"\xff", b"c"]}, "'y' holds bytes that are not text"),
    "name that is too long": ({"y": ["a", "b" * 1001, "c"]}, "more than 1000 characters"),
    "too few names": ({"y": [0, 1, 2], "class_names": ["a", "b"]}, "2 names, but y has class 2"),
    "a name twice": ({"y": [0, 1, 1], "class_names": ["a", "a"]}, "none of them twice"),
    "a class without a name": (
        {"y": ["cat", "dgo", "cat"], "class_names": ["cat", "dog"]},
        r"y\[1\] is 'dgo', which is not in class_names; did you mean 'dog'",
    ),
    "an id twice": ({"ids": ["a", "b", "a"]}, "ids has 'a' twice"),
    "too few ids": ({"ids": [1, 2]}, r"ids has shape \(2,\)"),
    "ids not whole": ({"ids": [1, 2, 2.5]}, r"ids\[2\] is 2.5"),
}


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_bad_arrays_are_named(tmp_path, monkeypatch, case):
    monkeypatch.setattr(features_file, "BLOCK_BYTES", 16)  # a row or a column each
    arrays, message = BAD_ARRAYS[case]
    path = tmp_path / "bad.npz"
    np.savez(path, **{"X": ones()} | arrays)
    with refused(pattern=message) as caught:
        features_file.load([path], tmp_path)
    assert str(caught.value).startswith(str(path))
    assert [file.name for file in tmp_path.iterdir()] == ["bad.npz"], "something half-written was left"


GOOD = {"X": np.random.default_rng(0).random((400, 20)), "y": np.arange(400)}
FLIP = [("flip", 0.5, 0)]


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (damaged(contents_of(np.savez_compressed, **GOOD), FLIP), "damaged"),
        (damaged(contents_of(np.savez, **GOOD), FLIP), "damaged"),
        (b"", "cut short, damaged or not a"),
        (zipped({"X.npy": contents_of(np.save, ones()) + bytes(8)}), "length does not fit its shape"),
        (zipped({"X.npy": b"text"}), "'X' is not a plain .npy array"),
    ],
)
def test_damaged_files_are_refused(tmp_path, contents, message):
    path = tmp_path / "bad.npz"
    path.write_bytes(contents)
    with refused(str(path), message):
        features_file.load([path], tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["bad.npz"]


def test_bad_sources(tmp_path):
    for sources, message in (
        ([tmp_path], "must be a .npz file"),
        ([], "one or more .npz files, got 0 sources"),
    ):
        with refused(message):
            features_file.describe(sources)


@pytest.mark.parametrize("kind", ["U", "S"])
def test_names_of_classes_and_parts(kind, tmp_path):
    y = np.array(["cat", "ant", "cat", "éland"])
    split = np.array(["train", "test", "train", "test"])
    if kind == "S":
        y, split = np.char.encode(y, "utf-8"), np.char.encode(split, "utf-8")
    np.savez(tmp_path / "f.npz", X=np.ones((4, 2)), y=y, split=split)
    made = features_file.load([tmp_path / "f.npz"], tmp_path)
    assert made.class_names == ["ant", "cat", "éland"] and made.labels.tolist() == [1, 0, 1, 2]
    assert made.split_names == ["test", "train"] and made.given_split.tolist() == [1, 0, 1, 0]
    assert made.metadata()["class_counts"] == {"ant": 1, "cat": 2, "éland": 1}
    spec = {"kind": "given", "query": "test", "database": "train", "training": "all"}
    assert splits.draw(spec, made, 0).query.tolist() == [1, 3]
    assert made.ids is None and not (tmp_path / "ids.npy").exists()


def test_class_names_give_the_order_of_names_and_the_names_of_numbers(tmp_path):
    names = ["zebra", "cat", "never seen"]
    for y in (["cat", "zebra", "cat"], [1, 0, 1]):
        np.savez(tmp_path / "f.npz", X=np.ones((3, 2)), y=y, class_names=names)
        made = features_file.describe([tmp_path / "f.npz"])
        assert made.labels.tolist() == [1, 0, 1] and made.class_names == names
        assert made.metadata()["class_counts"] == {"zebra": 1, "cat": 2}
    np.savez(tmp_path / "f.npz", X=np.ones((3, 2)), y=np.eye(3), class_names=names)
    assert features_file.describe([tmp_path / "f.npz"]).class_name(2) == "never seen"


@pytest.mark.parametrize("ids", [["q7", "ü", "a b"], [7, -2, 10**12], np.array([b"x", b"y", b"z"])])
def test_ids_are_kept_and_those_of_an_earlier_load_are_not(ids, tmp_path):
    np.savez(tmp_path / "f.npz", X=np.ones((3, 2)), ids=ids)
    made = features_file.load([tmp_path / "f.npz"], tmp_path)
    read = Description.read(tmp_path, made.metadata())
    expected = [one.decode() if isinstance(one, bytes) else one for one in np.asarray(ids).tolist()]
    assert read.ids.tolist() == made.ids.tolist() == expected
    np.savez(tmp_path / "f.npz", X=np.ones((3, 2)))
    features_file.load([tmp_path / "f.npz"], tmp_path)
    assert Description.read(tmp_path).ids is None


@pytest.mark.parametrize("order", ["C", "F"])
def test_query_and_database_in_files_of_their_own(order, tmp_path, monkeypatch):
    monkeypatch.setattr(features_file, "BLOCK_BYTES", 16)
    generator = np.random.default_rng(0)
    parts = {name: generator.random((rows, 3)).astype(np.float32) for name, rows in (("q", 4), ("d", 7))}
    scale = np.array([1.0, 2.0, 4.0])
    X = {name: np.asarray(part, order=order) for name, part in parts.items()}
    np.savez(tmp_path / "q.npz", X=X["q"], y=["b", "a", "b", "c"], ids=[1, 2, 3, 4])
    np.savez(tmp_path / "d.npz", X=X["d"], y=list("dabaaaa"), ids=np.arange(7), scale=scale)
    sources = [tmp_path / "q.npz", tmp_path / "d.npz"]
    made = features_file.load(sources, tmp_path, parts=["query", "database"])
    expected = np.concatenate([parts["q"], parts["d"] * scale.astype(np.float32)])
    np.testing.assert_array_equal(np.load(tmp_path / "items.npy"), expected)
    assert made.class_names == ["a", "b", "c", "d"]
    assert made.labels.tolist() == [1, 0, 1, 2, 3, 0, 1, 0, 0, 0, 0]
    assert made.ids.tolist() == [1, 2, 3, 4, 0, 1, 2, 3, 4, 5, 6]
    spec = {"kind": "given", "query": "query", "database": "database", "training": {"random": 3}}
    assert splits.draw(spec, made, 0).query.tolist() == [0, 1, 2, 3]
    assert features_file.describe(sources).given_split is None
    described = features_file.describe(sources, parts=["query", "database"])
    assert described.metadata() == made.metadata()


@pytest.mark.parametrize(
    ("first", "second", "parts", "message"),
    [
        ({}, {"X": np.ones((3, 5))}, None, r"b\.npz: features per item must be as in .*a\.npz: 2, not 5"),
        ({"y": [0, 1, 2]}, {}, None, "kind of y must be as in .*: integers, not none"),
        ({"y": [0, 1, 2]}, {"y": ["a", "b", "c"]}, None, "integers, not text"),
        ({"y": np.eye(3)}, {"y": np.ones((3, 2))}, None, "3 columns, not 2 columns"),
        ({"ids": [0, 1, 2]}, {}, None, "kind of ids must be"),
        ({"class_names": ["a"]}, {"class_names": ["b"]}, None, "class_names must be as in"),
        ({"split": [0, 1, 2]}, {"split": [0, 1, 2]}, ["q", "d"], "leave out option parts, or the array"),
        ({}, {}, ["q"], "must name one part per source, not 1 parts of 2 sources"),
        ({}, {}, "q", "must be a list of names such as"),
        ({}, {}, ["q", 3], "must be a list of names such as"),
    ],
)
def test_files_that_do_not_fit_each_other(first, second, parts, message, tmp_path):
    np.savez(tmp_path / "a.npz", **{"X": ones()} | first)
    np.savez(tmp_path / "b.npz", **{"X": ones()} | second)
    with refused(pattern=message):
        features_file.load([tmp_path / "a.npz", tmp_path / "b.npz"], tmp_path / "out", parts=parts)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("place", ["where scikit-learn has it", "elsewhere"])
def test_digits_are_those_of_scikit_learn(tmp_path, monkeypatch, place):
    """The file is read without scikit-learn if it lies where it should, else scikit-learn is asked."""
    from sklearn.datasets import load_digits

    name = "sklearn/datasets/data/digits.csv.gz"
    if place == "elsewhere":
        monkeypatch.setattr(type(digits.metadata.distribution("numpy")), "locate_file", lambda *_: tmp_path)
    else:
        assert digits.metadata.distribution("scikit-learn").locate_file(name).is_file()

    pixels, classes = load_digits(return_X_y=True)
    description = digits.load([], tmp_path)
    items, labels, given = written(tmp_path)
    assert items.dtype == np.float32
    np.testing.assert_array_equal(items, pixels)
    np.testing.assert_array_equal(labels, classes)
    assert given.shape == (0,)
    assert description.metadata() == digits.describe([]).metadata()
    # Counts per digit as the data's own documentation gives them.
    counts = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert description.metadata()["class_counts"] == {str(digit): n for digit, n in enumerate(counts)}


@pytest.mark.thorough
def test_cifar10_features(tmp_path):
    path = resource("cifar10-mobilenetv2.npz")
    description = features_file.load([path], tmp_path)
    items = np.load(tmp_path / "items.npy", mmap_mode="r")
    assert items.shape == (60_000, 1280) and items.dtype == np.float32
    assert description.metadata()["class_counts"] == {str(digit): 6_000 for digit in range(10)}
    assert description.metadata()["split_counts"] == {"0": 50_000, "1": 10_000}
    with np.load(path) as arrays:
        rows = slice(0, None, 997)
        np.testing.assert_array_equal(items[rows], arrays["X"][rows].astype(np.float32) * arrays["scale"])
    card = splits.draw({"kind": "per_class", "query": 100, "training": 500}, description, seed=0).metadata()
    assert (card["query"], card["database"], card["training"]) == (1_000, 59_000, 5_000)
