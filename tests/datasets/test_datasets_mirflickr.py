"""MIRFLICKR-25K in small archives of its real layouts: labels by hand, pixels against Pillow; bad sources."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from made_contents import encoded, resized

from datasets import splits
from datasets.loaders import mirflickr
from tests.files import changed, resource, written
from tests.tiebench.refusals import refused

CONCEPTS = ("baby", "baby_r1", "sky")
# Images by number, from 1: their concepts and tags.
OF_IMAGE = (
    *(("sky",), (), ("baby", "baby_r1"), ("baby", "sky"), ("baby",), ("sky",)),
    *((), ("sky",), (), (), ("sky",)),
)
TAGS = (
    *(b"sun\nrare", b"sun", b"rare", b"\xff\xe9t\xe9\n", b"", b"sun\r\nx"),
    *(b"", b"sunny", b"", b"x", b"x\nsun"),
)
PARTS = {"train": [4, 10, 1], "test": [11, 7], "database": [2, 3, 5, 6, 8, 9]}
SIZE = [6, 8]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(mirflickr, "POTENTIAL", ("baby", "sky"))
    monkeypatch.setattr(mirflickr, "CONCEPTS", CONCEPTS)
    monkeypatch.setattr(mirflickr, "IMAGES", len(OF_IMAGE))
    monkeypatch.setattr(mirflickr, "COUNTS", {"train": (3,), "test": (2,), "database": (6,)})


def labels_of(numbers, concepts=CONCEPTS) -> list[list[int]]:
    return [[int(concept in OF_IMAGE[number - 1]) for concept in concepts] for number in numbers]


def jpeg(number: int) -> bytes:
    return encoded(number, 20 + number, 31)


def annotations() -> dict[str, bytes]:
    numbered = list(enumerate(OF_IMAGE, start=1))
    files = {
        f"{concept}.txt": "".join(f"{number}\r\n" for number, of in numbered if concept in of).encode()
        for concept in CONCEPTS
    }
    return {"README.txt": b"one file for each concept"} | files


def lists() -> dict[str, bytes]:
    files = {}
    for name, numbers in PARTS.items():
        text = ""
        for number, values in zip(numbers, labels_of(numbers)):
            text += f"im{number}.jpg {' '.join(map(str, values))}\n"
        files[f"{name}.txt"] = text.encode()
    return files


def archive() -> dict[str, bytes]:
    """The members of mirflickr25k.zip."""
    files = {
        "mirflickr/doc/common_tags.txt": b"sun 30\r\n\xff\xe9t\xe9 21\n",
        "mirflickr/doc/people.txt": b"",
    }
    for number, tags in enumerate(TAGS, start=1):
        files[f"mirflickr/im{number}.jpg"] = jpeg(number)
        files[f"mirflickr/meta/tags/tags{number}.txt"] = tags
        files[f"mirflickr/meta/tags_raw/tags{number}.txt"] = b"sun"
    return files


def forms(folder: Path) -> dict[str, list[Path]]:
    """The same dataset in the forms in which it is found."""
    folder.mkdir(exist_ok=True)
    images = written(folder / "mirflickr25k.zip", archive())
    listed = written(folder / "lists", lists())
    return {
        "official": [written(folder / "mirflickr25k_annotations_v080.zip", annotations()), images],
        "unpacked": [written(folder / "images", archive()), written(folder / "truth", annotations())],
        "lists": [*sorted(listed.iterdir()), images],
    }


ITEMS = {"all": list(range(1, 12)), "labelled": [1, 3, 4, 5, 6, 8, 11], "tagged": [1, 4, 6, 11]}


@pytest.mark.parametrize("items", ITEMS)
def test_every_form_gives_the_same(tmp_path, items):
    numbers = ITEMS[items]
    for form, sources in forms(tmp_path / "sources").items():
        for concepts, names in ((3, CONCEPTS), (2, ("baby", "sky"))):
            description = mirflickr.load(sources, tmp_path, concepts=concepts, items=items, size=SIZE)
            np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), labels_of(numbers, names))
            expected = [resized(jpeg(number), SIZE) for number in numbers]
            np.testing.assert_array_equal(np.load(tmp_path / "items.npy"), expected)
            assert description.class_names == list(names)
            assert (description.given_split is not None) == (form == "lists")


def test_the_split_of_the_lists(tmp_path):
    sources = forms(tmp_path)["lists"][:-1]
    description = mirflickr.describe(sources, concepts=3, images="none")
    spec = {"kind": "given", "query": "query", "database": "database", "training": {"split": "training"}}
    split = splits.draw(spec, description, 0)
    for name, rows in (("test", split.query), ("train", split.training), ("database", split.database)):
        assert sorted(rows + 1) == sorted(PARTS[name])
    assert split.metadata()["training_in_database"] is False


@pytest.mark.parametrize(
    ("files", "damage", "message"),
    [
        (annotations, changed("sky.txt", None), "no sky.txt in the sources, beside .*baby"),
        (annotations, changed("sky.txt", lambda d: d + b"12\n"), "sky.txt: line 6 is '12'; .* 1 to 11"),
        (annotations, changed("sky.txt", lambda d: d + b"11\n"), "line 6: image 11 was there before"),
        (annotations, lambda f: f | {"copy/sky.txt": b""}, r"/sky\.txt: there is another sky.txt"),
        (annotations, lambda f: f | lists(), r"\.txt: there are labels in .*baby.txt too; give one of both"),
        (annotations, lambda f: {"README.txt": b""}, "the sources hold no labels; labels are <concept>.txt"),
        (lists, changed("test.txt", lambda d: d.replace(b"im7", b"im4")), "'im4.jpg' has other labels as"),
        (lists, changed("test.txt", lambda d: d.replace(b"im7", b"im9")), "im7.jpg is on none of the lists"),
    ],
)
def test_damaged_labels(tmp_path, files, damage, message):
    source = written(tmp_path / "labels.zip", damage(files()))
    with refused(pattern=message):
        mirflickr.describe([source], concepts=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concepts": 24}, "option concepts: must be 3 or 2, not 24"),
        ({"items": "taged"}, "option items: unknown value 'taged'; did you mean 'tagged'"),
    ],
)
def test_bad_options(tmp_path, options, message):
    with refused(message):
        mirflickr.describe([written(tmp_path / "truth", annotations())], **({"concepts": 3} | options))


@pytest.mark.parametrize("name", ["doc/common_tags.txt", "meta/tags/tags8.txt"])
def test_missing_tags_are_named(tmp_path, name):
    sources = forms(tmp_path)["official"]
    written(sources[1], changed(f"/{name}", None)(archive()))
    with refused(f"no {name} in the sources"):
        mirflickr.load(sources, tmp_path, concepts=3, items="tagged", size=SIZE)


def test_the_concepts_of_mirflickr(monkeypatch):
    monkeypatch.undo()
    assert (len(mirflickr.POTENTIAL), len(mirflickr.RELEVANT), len(mirflickr.CONCEPTS)) == (24, 14, 38)
    assert set(mirflickr.RELEVANT) < set(mirflickr.POTENTIAL)
    assert sorted(mirflickr.POTENTIAL) == list(mirflickr.POTENTIAL)
    # The columns of DeepHash-pytorch's lists.
    for name, column in {"baby_r1": 2, "indoor": 16, "night_r1": 21, "plant_life": 24, "tree_r1": 36}.items():
        assert mirflickr.CONCEPTS[column] == name


def test_the_real_lists(monkeypatch):
    """Sizes, and what holds of the official annotations: where a concept is prominent, it is there."""
    monkeypatch.undo()
    files = [resource(f"mirflickr/{name}.txt") for name in ("train", "test", "database")]
    description = mirflickr.describe(files, images="none")
    assert description.metadata()["split_counts"] == {"database": 20_000, "query": 1_000, "training": 4_000}
    columns = description.class_names.index
    for name in mirflickr.RELEVANT:
        prominent, there = (description.labels[:, columns(one)] for one in (f"{name}_r1", name))
        assert (prominent <= there).all()
    digest = hashlib.sha256(files[1].read_bytes()).hexdigest()
    assert digest == "603be888c4e3f0c35a7b1596aa6d2bdd4f481d59406610da09efc4c8c837796a"
    main = description.labels[:, [columns(name) for name in mirflickr.POTENTIAL]]
    assert main.sum() == 92_902  # as github.com/iTomxy/data counts
