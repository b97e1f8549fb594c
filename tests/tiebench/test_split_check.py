"""The check of splits: lists with faults put in, counted by hand; equal contents; published lists."""

import hashlib
import zipfile

import numpy as np
import pytest
from refusals import refused

from datasets.splits import Split
from tests.files import resource, written
from tiebench.__main__ import main
from tiebench.splits import check
from tiebench.splits import lists as splits_lists

CLASSES = 4


def line(name, *classes):
    return f"{name} {' '.join('1' if c in classes else '0' for c in range(CLASSES))}\n"


def lists(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


def faulty(folder):
    """Two queries of five in the database, one of them in the training set too; all other kinds of faults."""
    named = ("a/1.jpg", 0), ("a/2.jpg", 1), ("a/3.jpg", 3), ("a/4.jpg",), ("a/5.jpg", 0, 1)
    query = [line(*one) for one in named]
    database = [line("./a/1.jpg", 0), line("b/1.jpg", 0, 2), line("b/2.jpg", 1), line("a\\2.jpg", 2)]
    training = [line("b/1.jpg", 0, 2), line("a/2.jpg", 1), line("c/1.jpg", 0), line("c/1.jpg", 0)]
    parts = {"database0": "".join(database[:2]), "database1": "\n" + "".join(database[2:])}
    return lists(folder, test="".join(query), train="".join(training), **parts)


EXPECTED = {
    "sizes": {"query": 5, "database": 4, "training": 4},
    "duplicates": {"query": 0, "database": 0, "training": 1},
    "overlaps": {"query_in_database": 2, "query_in_training": 1, "training_in_database": 2},
    "same_content": None,
    "labels": {
        "classes": {"query": 3, "database": 3, "training": 3},
        "without_labels": {"query": 1, "database": 0, "training": 0},
        "contradicting": 1,
        "missing_classes": {"query": [2], "database": [3], "training": [3]},
        # Shares of labels: queries 2 2 0 1 of 5, database 2 1 2 0 of 5, training 3 1 1 0 of 5.
        "distance": {"query": pytest.approx(0.4), "training": pytest.approx(0.2)},
        "queries_without_relevant": 2,  # the one of class 3, and the one without labels
    },
    "examples": {
        "duplicates.training": ["c/1.jpg"],
        "query_in_database": ["a/1.jpg", "a/2.jpg"],
        "query_in_training": ["a/2.jpg"],
        "training_in_database": ["b/1.jpg", "a/2.jpg"],
        "without_labels.query": ["a/4.jpg"],
        "contradicting": ["a/2.jpg"],
    },
    "leaks": [
        "2 of 5 queries are in the database, the first is 'a/1.jpg'",
        "1 of 5 queries are in the training set, the first is 'a/2.jpg'",
    ],
}


def test_every_fault_that_was_put_in_is_counted(tmp_path, leaking):
    faulty(tmp_path)
    with zipfile.ZipFile(tmp_path / "lists.zip", "w") as archive:
        for file in tmp_path.glob("*.txt"):
            archive.write(file, f"data/{file.name}")
    named = ["--query", "test.txt", "--training", "train.txt", "--database", "database0.txt", "database1.txt"]
    named = [word if word.startswith("-") else tmp_path / word for word in named]
    for sources in ([tmp_path], [tmp_path / "lists.zip"], named):
        assert leaking(*sources) == EXPECTED


def test_the_text_says_what_the_numbers_say(tmp_path, capsys):
    assert main(["check-split", str(faulty(tmp_path)), "--text"]) == 1
    text = capsys.readouterr().out.splitlines()
    assert text[0] == "5 queries, 4 database items, 4 training items"
    assert text[1].startswith("by name: 2 queries in the database, 1 queries in the training set, 2 training")
    assert {f"classes missing in the {part}: {c}" for part, c in (("query set", 2), ("database", 3))} < set(
        text
    )
    assert "distance of label distributions to the database's: queries 0.400, training items 0.200" in text
    for fault in (
        "without labels: 1 ",
        "items of one name with different labels: 1",
        "queries without a rel",
    ):
        assert any(line.startswith(fault) for line in text)
    assert text[-2:] == [f"leak: {leak}" for leak in EXPECTED["leaks"]]


def test_every_query_that_is_met_again_counts(tmp_path, leaking):
    folder = lists(tmp_path, query="a.jpg 0\na.jpg 0\nb.jpg 1\n", database="a.jpg 0\nc.jpg 1\n")
    report = leaking(folder)
    assert report["leaks"] == ["2 of 3 queries are in the database, the first is 'a.jpg'"]
    assert report["overlaps"] == {"query_in_database": 1}  # distinct names


def test_equal_images_are_found_under_other_names(tmp_path, printed, leaking):
    folder = lists(
        tmp_path,
        query="root/1.jpg 0\nroot/2.jpg 1\nroot/absent.jpg 1\n",
        database="other/3.jpg 0\nother/4.jpg 1\nother/5.jpg 1\n",
    )
    images = {"1.jpg": b"x", "2.jpg": b"y", "other/3.jpg": b"y", "other/4.jpg": b"z", "5.jpg": b"z"}
    written(tmp_path / "images", images)
    assert printed("check-split", folder)["leaks"] == []
    report = leaking(folder, "--images", tmp_path / "images")
    assert report["same_content"] == {
        "duplicates": {"query": 0, "database": 1},
        "overlaps": {"query_in_database": 1},
        "not_found": {"query": 1, "database": 0},
    }
    (leak,) = report["leaks"]
    assert leak == "1 of 3 queries are in the database with the same content, the first is 'root/2.jpg'"
    assert leaking(folder, "--images", tmp_path / "images" / "other" / "..") == report


def test_lists_that_name_folders_differently_are_compared_by_file_name(tmp_path, capsys, leaking):
    folder = lists(tmp_path, test="/home/one/n01/1.jpg 0\n", database="data/n01/1.jpg 0\ndata/2.jpg 0\n")
    assert main(["check-split", str(folder)]) == 0
    note = capsys.readouterr().err
    assert note.startswith("note: 1 queries have the file and folder of items in database, as ")
    assert "'/home/one/n01/1.jpg' and 'data/n01/1.jpg': --by-file-name" in note and note.count("\n") == 1
    assert leaking(folder, "--by-file-name")["overlaps"] == {"query_in_database": 1}


def test_row_numbers_are_checked_and_equal_rows_found(tmp_path, printed, leaking):
    """A saved split of a protocol is clean; then a row of its items is made equal to another."""
    rng = np.random.default_rng(0)
    order = rng.permutation(60)
    Split(order[:10], order[10:50], order[20:30]).save(tmp_path / "split.npz")
    items, labels = rng.random((60, 3)), rng.integers(0, 3, 60)
    np.save(tmp_path / "items.npy", items)
    np.save(tmp_path / "labels.npy", labels)
    beside = ["--items", tmp_path / "items.npy", "--labels", tmp_path / "labels.npy"]
    report = printed("check-split", tmp_path / "split.npz", *beside)
    assert report["overlaps"] == {"query_in_database": 0, "query_in_training": 0, "training_in_database": 10}
    assert report["same_content"]["overlaps"] == report["overlaps"]
    assert report["labels"]["queries_without_relevant"] == 0
    items[order[3]] = items[order[45]]
    multi_hot = np.eye(3, dtype=int)[labels]
    arrays = {"query": order[:10], "database": order[10:50], "items": items, "labels": multi_hot}
    np.savez(tmp_path / "whole.npz", **arrays)
    again = leaking(tmp_path / "whole.npz")
    assert again["same_content"]["overlaps"] == {"query_in_database": 1}
    assert again["labels"]["distance"]["query"] == report["labels"]["distance"]["query"]


@pytest.mark.parametrize(
    ("texts", "arguments", "message"),
    [
        ({"test": "\n", "database": "b 0\n"}, [], "test.txt: no lines"),
        ({"database": "b 0\n"}, [], "a split has query and database or training, not database"),
        ({"other": "b 0\n"}, [], "has no list: train.txt, test.txt or query.txt, database.txt"),
        ({"test": "a 0\n", "database": "b 0\n"}, ["--images", "absent"], "none of the 2 images is there"),
    ],
)
def test_lists_that_cannot_be_read_are_refused_in_one_line(tmp_path, fails, texts, arguments, message):
    assert message in fails("check-split", lists(tmp_path, **texts), *arguments)


def test_a_list_of_unknown_kind_is_refused_and_wrong_arguments_too(tmp_path, fails, misused):
    (tmp_path / "list.txt").write_text("a 0\n")
    assert "give it as --query, --database or --training" in fails("check-split", tmp_path / "list.txt")
    np.savez(tmp_path / "rows.npz", query=np.array([0, 7]), database=np.array([1]), labels=np.zeros(5, int))
    assert "row of labels, query[1] is 7; row numbers must be 0 to 4" in fails(
        "check-split", tmp_path / "rows.npz"
    )
    assert "SOURCE" in misused("check-split")
    assert "a whole split" in misused("check-split", "a.npz", "b.txt")
    assert "belong" in misused("check-split", "a", "--items", "b")


def test_labels_of_another_length_are_refused():
    parts = {"query": check.Part(["a"], [(1,), (2,)]), "training": check.Part(["b"])}
    with refused("query has 1 items but 2 labels"):
        check.check(parts)


def test_the_published_lists_of_imagenet100_are_clean(printed):
    """HashNet's lists: 5,000 queries, 128,503 database images, 13,000 of them for training, 130 a class."""
    lists = resource("imagenet100/labels.zip")
    report = printed("check-split", lists)
    assert report["sizes"] == {"query": 5000, "database": 128503, "training": 13000}
    clean = {"query_in_database": 0, "query_in_training": 0}
    assert report["overlaps"] == clean | {"training_in_database": 13000}
    assert set(report["labels"]["classes"].values()) == {100}
    assert report["labels"]["distance"]["training"] == pytest.approx(0.0103681, abs=1e-7)
    assert not report["labels"]["contradicting"] and not report["labels"]["queries_without_relevant"]
    with zipfile.ZipFile(lists) as archive:
        text = archive.read("train.txt")
    assert len({hashlib.sha256(one).digest() for one in text.splitlines()}) == 13000


def test_lists_of_zeros_and_ones_are_labels_as_their_array_is_and_classes_have_no_order():
    rows = [[0, 1], [1, 0]]
    given = {"query": check.Part(["q"], rows[:1]), "database": check.Part(["a", "b"], rows)}
    arrays = {part: one._replace(labels=np.array(one.labels)) for part, one in given.items()}
    assert check.check(given) == check.check(arrays)
    same = {"query": check.Part(["a"], [(0, 1)]), "database": check.Part(["a", "b"], [(1, 0), (0,)])}
    assert check.check(same)["labels"]["contradicting"] == 0


def test_files_that_are_no_split_are_named_in_one_line(tmp_path):
    rows = {"query": np.array([0]), "database": np.array([1, 2])}
    np.savez(tmp_path / "split.npz", **rows, labels=np.array(3))
    with refused("labels must have a row for each item"):
        splits_lists.read_arrays(str(tmp_path / "split.npz"))
    with refused("there is no list of query"):
        splits_lists.read_sources([], {"query": []})
    with zipfile.ZipFile(tmp_path / "lists.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("test.txt", "".join(f"a/{number}.jpg {number % 7}\n" for number in range(5000)))
    whole = bytearray((tmp_path / "lists.zip").read_bytes())
    whole[200:260] = bytes(60)
    (tmp_path / "lists.zip").write_bytes(whole)
    with refused("not a readable zip file"):
        splits_lists.read_sources([str(tmp_path / "lists.zip")], {})


def test_a_zero_with_a_sign_is_the_same_content(tmp_path):
    rows = {"query": np.array([0]), "database": np.array([1, 2])}
    np.savez(tmp_path / "split.npz", **rows, items=np.array([[0.0, 1.0], [-0.0, 1.0], [2.0, 1.0]]))
    found = check.check(splits_lists.read_arrays(str(tmp_path / "split.npz")))
    assert found["same_content"]["overlaps"]["query_in_database"] == 1
