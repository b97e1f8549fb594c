"""MS-COCO in small archives of its real layouts: labels by hand, pixels against Pillow; bad sources."""

import io
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import yaml
from made_contents import encoded, resized

from datasets import splits
from datasets.loaders import coco
from datasets.readers import json_arrays
from tests.files import changed, written
from tests.tiebench.refusals import refused

PROTOCOLS = yaml.safe_load((Path(__file__).parents[2] / "config" / "protocols.yaml").read_text())
CATEGORIES = ("apple", "bowl", "person", "zebra")
IDENTIFIERS = {"zebra": 24, "apple": 53, "bowl": 51, "person": 1}
SIZE = [6, 8]


def named(part: str, number: int) -> str:
    return f"COCO_{part}2014_{number:012}.jpg"


# Categories of each image; two images have none.
OF_IMAGE = {
    named("train", 9): ("bowl", "apple"),
    named("train", 25): ("zebra",),
    named("train", 30): (),
    named("train", 581921): ("person",),
    named("train", 34): ("zebra", "person"),
    named("val", 42): ("person", "bowl"),
    named("val", 73): (),
    named("val", 74): ("apple",),
    named("val", 133): ("bowl",),
}
ROWS = sorted(name for name, categories in OF_IMAGE.items() if categories)
LABELS = [[int(category in OF_IMAGE[name]) for category in CATEGORIES] for name in ROWS]
QUERIES = [named("val", 42), named("train", 25)]
TRAINING = [named("train", 9), named("train", 581921)]
REST = [named("train", 34), named("val", 133), named("val", 74)]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(coco, "CATEGORIES", CATEGORIES)
    monkeypatch.setattr(coco, "IMAGES", {"train2014": 5, "val2014": 4})
    monkeypatch.setattr(coco, "COUNTS", {"train": (2,), "test": (2,), "database": (5, 3)})


def jpeg(name: str) -> bytes:
    number = int(name[-10:-4])
    return encoded(number, 20 + number % 7, 31, "L" if number == 34 else "RGB")


def lines(names, prefix="./data/coco/") -> bytes:
    text = ""
    for name in names:
        values = " ".join(str(int(category in OF_IMAGE[name])) for category in CATEGORIES)
        text += f"{prefix}{name[5:10].rstrip('_2')}2014/{name} {values}\n"
    return text.encode()


def lists(database=(*REST, *QUERIES)) -> dict[str, bytes]:
    """By default as HashNet ships them: the database list holds the queries, not the training images."""
    return {"train.txt": lines(TRAINING), "test.txt": lines(QUERIES), "database.txt": lines(database)}


def lists_in_parts() -> dict[str, bytes]:
    files = {"coco/train.txt": lines(TRAINING, "/home/somebody/coco/")}
    for kind, names in (("test", QUERIES), ("database", [*REST, *QUERIES])):
        files |= {f"coco/test/{kind}{part}.txt": lines(names[part::2]) for part in (0, 1)}
    return files


def instances(part: str) -> dict:
    names = [name for name in OF_IMAGE if f"_{part}2014_" in name]
    number = {name: int(name[-16:-4]) for name in names}
    annotations = [
        {
            "segmentation": {"counts": [7, 1], "size": [4, 2]} if category == "person" else [[1.5, 2.25]],
            "iscrowd": int(category == "person"),
            "image_id": number[name],
            "category_id": IDENTIFIERS[category],
            "id": index,
        }
        for name in names
        for index, category in enumerate((*OF_IMAGE[name], *OF_IMAGE[name][:1]))
    ]
    return {
        "info": {"description": "COCO 2014 Dataset", "year": 2014},
        "images": [{"license": 3, "file_name": name, "height": 1, "id": number[name]} for name in names],
        "licenses": [{"url": "x", "id": 1}],
        "annotations": annotations,
        "categories": [{"supercategory": "a", "id": i, "name": name} for name, i in IDENTIFIERS.items()],
    }


def annotations(**changes) -> dict[str, bytes]:
    """The members of annotations_trainval2014.zip, those of captions, too."""
    files = {f"annotations/captions_{part}2014.json": b"{" for part in ("train", "val")}
    for part in ("train", "val"):
        text = json.dumps(instances(part) | changes.get(part, {}))
        files[f"annotations/instances_{part}2014.json"] = text.encode()
    return files


def pictures(*parts: str) -> dict[str, bytes]:
    return {
        f"{part}2014/{name}": jpeg(name) for part in parts for name in OF_IMAGE if f"_{part}2014_" in name
    }


def forms(folder: Path) -> dict[str, list[Path]]:
    """The same dataset in the forms in which it is found."""
    folder.mkdir(exist_ok=True)
    parts = written(folder / "parts", lists_in_parts())
    whole = written(folder / "annotations", annotations())
    images = [written(folder / f"{part}2014.zip", pictures(part)) for part in ("train", "val")]
    both = written(folder / "images", pictures("val", "train"))
    return {
        "listed": [*sorted(parts.rglob("*.txt")), *images],
        "listed in a zip": [both, written(folder / "lists.zip", lists())],
        "annotations": [written(folder / "annotations_trainval2014.zip", annotations()), *images],
        "annotations in a folder": [whole, both],
        "annotations as files": [*sorted(whole.rglob("*.json")), both],
    }


def test_every_form_gives_the_same(tmp_path):
    for form, sources in forms(tmp_path / "sources").items():
        (tmp_path / form).mkdir()
        description = coco.load(sources, tmp_path / form, size=SIZE)
        np.testing.assert_array_equal(np.load(tmp_path / form / "labels.npy"), LABELS)
        expected = [resized(jpeg(name), SIZE) for name in ROWS]
        np.testing.assert_array_equal(np.load(tmp_path / form / "items.npy"), expected)
        assert description.class_names == list(CATEGORIES) and description.label_kind == "multi-hot"
        parts = {"database": 3, "query and database": 2, "training": 2}
        found = description.metadata()
        assert found.get("split_counts") == (parts if form.startswith("listed") else None), form


def names_of(rows) -> set[str]:
    return {ROWS[row] for row in rows}


@pytest.mark.parametrize(
    ("protocol", "database"), [("coco", {*REST, *TRAINING}), ("coco_without_training", set(REST))]
)
def test_the_protocols_leave_the_queries_out_of_the_database(tmp_path, protocol, database):
    """HashNet's database list holds them, and a protocol with that list is refused."""
    description = coco.describe([written(tmp_path / "lists.zip", lists())])
    spec = PROTOCOLS[protocol]["split"]
    split = splits.draw(spec, description, 0)
    assert (names_of(split.query), names_of(split.training)) == (set(QUERIES), set(TRAINING))
    assert names_of(split.database) == database
    shipped = spec | {"database": ["database", "query and database"]}
    with refused(pattern="part query and database is both in query and in database"):
        splits.draw(shipped, description, 0)


def test_lists_that_are_disjoint_or_hold_the_training_images(tmp_path):
    for database, parts in (
        (REST, {"database": 3, "query": 2, "training": 2}),
        ([*REST, *TRAINING], {"database": 3, "database and training": 2, "query": 2}),
    ):
        source = written(tmp_path / f"{len(database)}.zip", lists(database))
        assert coco.describe([source]).metadata()["split_counts"] == parts


def replaced(change):
    """Damage: other contents of instances_val2014.json."""
    return changed("instances_val2014.json", change)


def instances_with(**changes):
    """Damage: other values of its keys."""
    return lambda files: files | annotations(val=changes)


ONE = {"image_id": 42, "category_id": 1}
VAL = "annotations/instances_val2014.json"


@pytest.mark.parametrize(
    ("files", "damage", "message"),
    [
        (lists, changed("database.txt", lambda d: b""), "database.txt: names 0 images, not 5 or 3"),
        (
            lists,
            changed("test.txt", lambda d: d.replace(b" 0 1 1 0", b" 1 1 1 0")),
            f"the lists disagree: '{QUERIES[0]}' has other labels as database than as query",
        ),
        (lists, lambda f: f | annotations(), r"\.txt: there are labels in .*instances_train2014.json too"),
        (dict, lambda f: {"readme.md": b""}, "the sources hold no labels; labels are HashNet's lists"),
        (annotations, replaced(None), "no instances_val2014.json in the sources"),
        (annotations, lambda f: f | {"b/" + VAL: f[VAL]}, "instances_val2014.json: there is another one"),
        (annotations, replaced(lambda d: d[:-30]), "val2014.json: not the JSON .* at "),
        (annotations, replaced(lambda d: b"\xff" + d), "not text .invalid start byte"),
        (annotations, replaced(lambda d: b""), "the file ends in the middle"),
        (annotations, replaced(lambda d: b'{"images": 3}'), "'images' must be an array"),
        (annotations, replaced(lambda d: b'{"images": [3]}'), "must be objects"),
        (annotations, instances_with(images=[]), "instances_val2014.json: has 0 images, not 4"),
        (annotations, instances_with(images=[{"id": 1, "file_name": "a.jpg"}]), "of id 1 is 'a.jpg'"),
        (annotations, instances_with(annotations=[ONE | {"image_id": 7}]), "is of image 7, which"),
        (annotations, instances_with(annotations=[ONE | {"category_id": 9}]), "is of category 9, which"),
        (annotations, instances_with(annotations=[ONE | {"image_id": "7"}]), "'image_id' must be an integer"),
        (annotations, instances_with(categories=[{"id": 1, "name": "aple"}]), "'aple'; did you mean 'apple'"),
        (annotations, instances_with(categories=[{"id": 1, "name": "apple"}]), "has 1 categories, not the 4"),
        (annotations, instances_with(categories=[{"id": 1, "name": "zebra"}] * 2), "the id 1 is there twice"),
    ],
)
def test_damaged_labels(tmp_path, files, damage, message):
    source = written(tmp_path / "labels.zip", damage(files()))
    with refused(pattern=message) as caught:
        coco.describe([source])
    assert len(str(caught.value)) < 1000


def test_the_categories_of_coco(monkeypatch):
    """80, in the order of HashNet's columns, of which some were told from images on the lists."""
    monkeypatch.undo()
    assert len(set(coco.CATEGORIES)) == 80 and sorted(coco.CATEGORIES) == list(coco.CATEGORIES)
    assert [coco.CATEGORIES.index(name) for name in ("apple", "orange", "person", "zebra")] == [1, 46, 49, 79]
    assert sum(coco.IMAGES.values()) == 123_287


def reader(data: bytes):
    file = io.BytesIO(data)
    return lambda size: file.read(size)


@pytest.mark.parametrize("chunk", [1, 2, 7, 64, 1 << 20])
def test_elements_are_those_of_json(monkeypatch, chunk):
    monkeypatch.setattr(json_arrays, "CHUNK", chunk)
    document = {
        "n": 12345,
        "a": [{"x": [1, -2.5e3, None], "y": 'ü\u20ac\U0001f600"\\[{'}, {}, {"z": {"w": [[], {}]}}],
        "s": "]}",
        "f": -2.5e-30,
        "b": [],
        "c": [{"q": True}],
        "last": -7,
    }
    for text in (json.dumps(document), json.dumps(document, indent=2, ensure_ascii=False), "{}", " { } \n"):
        found = list(json_arrays.array_elements(reader(text.encode()), "file", ("a", "b", "c")))
        expected = json.loads(text)
        assert found == [(key, one) for key in ("a", "b", "c") for one in expected.get(key, [])]


def elements_by_json(data: bytes):
    """(key, number of keys) of the elements of arrays "a" and "b" by json.loads, or None if it refuses."""
    try:
        pairs = json.loads(data.decode(), object_pairs_hook=lambda pairs: ("object", pairs))
    except ValueError:
        return None
    if not isinstance(pairs, tuple):
        return None
    found = []
    for key, value in pairs[1]:
        if key in ("a", "b"):
            if not isinstance(value, list) or not all(isinstance(one, tuple) for one in value):
                return None
            found += [(key, len(one[1])) for one in value]
    return found


def test_damaged_json_is_read_as_the_standard_library_does_or_refused(monkeypatch):
    monkeypatch.setattr(json_arrays, "CHUNK", 16)
    document = {"n": [1, {"a": 2}], "a": [{"x": [1.5, "é"]}, {"y": 0}, {}], "b": [{"z": "\n"}]}
    whole = json.dumps(document).encode()
    random = np.random.default_rng(0)
    outcomes = {True: 0, False: 0}
    for _ in range(400):
        data = bytearray(whole)
        at = int(random.integers(len(data)))
        if random.random() < 0.5:
            data[at] = int(random.choice(list(b'{}[],:"0 ab\xff')))
        else:
            del data[at : at + int(random.integers(1, 4))]
        expected = elements_by_json(bytes(data))
        try:
            found = list(json_arrays.array_elements(reader(bytes(data)), "file", ("a", "b")))
        except ValueError as error:
            assert expected is None and "\n" not in str(error), data
        else:
            # Of an object with equal keys the reader keeps the last, so only their number may differ.
            assert [key for key, _ in found] == [key for key, _ in expected], data
            assert all(len(one) <= count for (_, one), (_, count) in zip(found, expected)), data
        outcomes[expected is None] += 1
    assert min(outcomes.values()) > 20


def test_memory_does_not_grow_with_the_file(monkeypatch):
    monkeypatch.setattr(json_arrays, "CHUNK", 1 << 12)
    element = json.dumps({"segmentation": [[1.5] * 40], "image_id": 1}).encode()

    def pieces():
        yield b'{"a": [' + element
        for _ in range(3_000):
            yield b"," + element
        yield b"]}"

    left = pieces()
    tracemalloc.start()
    try:
        read = sum(1 for _ in json_arrays.array_elements(lambda _: next(left, b""), "file", ("a",)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert read == 3_001 and 3_001 * len(element) > 15 * peak


def test_an_element_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(json_arrays, "CHUNK", 100)
    monkeypatch.setattr(json_arrays, "LARGEST_VALUE", 1000)
    endless = iter(b'{"a": [{"b": "' + b"x" * 100 if number == 0 else b"x" * 100 for number in range(10**9))
    with refused(pattern="no value ends within 1000 characters"):
        list(json_arrays.array_elements(lambda _: next(endless), "file", ("a",)))
    nested = b'{"a": [' + b"[" * 200_000
    with refused("not the JSON that it should be"):
        list(json_arrays.array_elements(reader(nested), "file", ("a",)))
