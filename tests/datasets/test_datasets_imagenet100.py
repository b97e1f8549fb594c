"""ImageNet100 in small archives of its real layouts: rows by hand, pixels against Pillow; bad sources."""

import zlib
from pathlib import Path

import numpy as np
import pytest
from made_contents import encoded, resized

from datasets import splits
from datasets.loaders import imagenet100
from tests.files import changed, resource, tarred, written
from tests.tiebench.refusals import refused

WNIDS = ("n01514668", "n02526121", "n13044778")
SIZE = [7, 5]
# file name -> class, in the lists' own, mixed, order
QUERIES = {
    "ILSVRC2012_val_00000080.JPEG": 1,
    "ILSVRC2012_val_00000007.JPEG": 0,
    "ILSVRC2012_val_00049999.JPEG": 2,
    "ILSVRC2012_val_00000300.JPEG": 1,
}
DATABASE = {
    "n13044778_3.JPEG": 2,
    "n01514668_10026.JPEG": 0,
    "n01514668_100.JPEG": 0,
    "n02526121_5.JPEG": 1,
    "n13044778_12.JPEG": 2,
    "n02526121_44.JPEG": 1,
}
TRAINING = ("n02526121_5.JPEG", "n01514668_100.JPEG", "n13044778_3.JPEG")
ROWS = [
    *("ILSVRC2012_val_00000007.JPEG", "ILSVRC2012_val_00000080.JPEG", "ILSVRC2012_val_00000300.JPEG"),
    *("ILSVRC2012_val_00049999.JPEG", "n01514668_100.JPEG", "n01514668_10026.JPEG", "n02526121_44.JPEG"),
    *("n02526121_5.JPEG", "n13044778_12.JPEG", "n13044778_3.JPEG"),
]
LABELS = [0, 1, 1, 2, 0, 0, 1, 1, 2, 2]
PARTS = [0, 0, 0, 0, 2, 1, 1, 2, 1, 2]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(imagenet100, "CLASSES", 3)
    monkeypatch.setattr(imagenet100, "COUNTS", {"train": 3, "test": 4, "database": 6})


def picture(name: str) -> bytes:
    """A JPEG of random pixels; one of them is grey, one a PNG under the same ending, one CMYK."""
    mode = {"n01514668_100.JPEG": "L", "n02526121_44.JPEG": "CMYK"}.get(name, "RGB")
    return encoded(zlib.crc32(name.encode()), 25, 18, mode, "png" if name == "n02526121_5.JPEG" else "jpeg")


def line(name: str, number: int, prefix: str = "") -> str:
    folder = "val_image" if name.startswith("ILSVRC") else "image"
    return f"{prefix}{folder}/{name} {' '.join('1' if n == number else '0' for n in range(3))}\n"


def lists(prefix: str = "") -> dict[str, bytes]:
    texts = {
        "train.txt": [line(name, DATABASE[name], prefix) for name in TRAINING],
        "test.txt": [line(*entry, prefix) for entry in QUERIES.items()],
        "database.txt": [line(*entry, prefix) for entry in DATABASE.items()],
    }
    return {name: "".join(lines).encode() for name, lines in texts.items()}


def lists_in_parts() -> dict[str, bytes]:
    whole = lists("./data/imagenet/")
    parts = {"imagenet/train.txt": whole["train.txt"]}
    for name, amount in (("test", 2), ("database", 3)):
        lines = whole[f"{name}.txt"].splitlines(keepends=True)[::-1]
        for part in range(amount):
            parts[f"imagenet/test/{name}{part}.txt"] = b"".join(lines[part::amount])
    return parts


def train_tar() -> dict[str, bytes]:
    """Inner tars by name; that of a class that is not wanted is damaged, which must not matter."""
    files = {"n01514668_999.JPEG": b"on no list"} | {name: picture(name) for name in DATABASE}
    by_class = {wnid: {name: files[name] for name in files if name.startswith(wnid)} for wnid in WNIDS}
    return {"n00000001.tar": b"damaged" * 1000} | {f"{w}.tar": tarred(by_class[w]) for w in WNIDS}


def forms(folder: Path) -> dict[str, list[Path]]:
    """The same dataset in the forms in which it is found."""
    val = {name: picture(name) for name in ["ILSVRC2012_val_00000001.JPEG", *QUERIES]}
    flat = {f"val_image/{name}": contents for name, contents in val.items()}
    flat |= {f"image/{name}": picture(name) for name in DATABASE}
    parts = written(folder / "caffe", lists_in_parts())
    whole = written(folder / "labels.zip", lists())
    return {
        "official": [
            whole,
            written(folder / "ILSVRC2012_img_train.tar", train_tar()),
            written(folder / "ILSVRC2012_img_val.tar", val),
        ],
        "compressed": [
            parts,
            written(folder / "ILSVRC2012_img_train.tar.gz", train_tar()),
            written(folder / "val.zip", val),
        ],
        "folder": [whole, written(folder / "imagenet", flat)],
        "one archive": [
            *sorted(parts.rglob("*.txt")),
            written(folder / "imagenet.tar.gz", {f"./imagenet/{name}": flat[name] for name in flat}),
        ],
        "one folder": [written(folder / "all", lists("/home/somebody/imagenet/") | flat)],
    }


def test_every_form_gives_the_same(tmp_path):
    for sources in forms(tmp_path / "sources").values():
        description = imagenet100.load(sources, tmp_path, size=SIZE)
        items, labels, given = (
            np.load(tmp_path / f"{name}.npy") for name in ("items", "labels", "given_split")
        )
        assert labels.tolist() == LABELS and given.tolist() == PARTS
        np.testing.assert_array_equal(items, [resized(picture(name), SIZE) for name in ROWS])
        assert labels.dtype == given.dtype == np.int64 and description.class_names == list(WNIDS)
        assert description.metadata()["split_counts"] == {"query": 4, "database": 3, "training": 3}


def replaced(name, old, new, count=-1):
    """Damage: other bytes in a list."""
    return changed(f"{name}.txt", lambda data: data.replace(old, new, count))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (changed("train.txt", None), "no train.txt in the sources"),
        (lambda f: f | {"parts/database3.txt": b""}, "database3.txt: the list is there as a whole too"),
        (lambda f: f | {"parts/train.txt": b""}, "parts/train.txt: there is another train.txt"),
        (changed("test.txt", lambda d: d[: d.rindex(b"val_image")]), "test.txt: names 3 images, not 4"),
        (changed("test.txt", lambda d: d[:-3]), "test.txt: line 4: after the path there must be 3 values"),
        (replaced("test", b"0 1 0", b"0 1 1", 1), "test.txt: line 1: after the path"),
        (replaced("test", b"val_0", b"cal_0"), "not an image of this list"),
        (changed("database.txt", lambda d: b"\n" + d), "line 1: '' is not an image of this list"),
        (
            replaced("database", b"n13044778_12", b"n13044778_3"),
            "line 5: 'n13044778_3.JPEG' was there before",
        ),
        (replaced("database", b"n13044778_12", b"n02526121_12"), "n13044778 and n02526121 both as class 2"),
        (replaced("database", b"n13044778_", b"n02526121_1"), "has 3 classes by label and 2 by name, not 3"),
        (replaced("train", b"n02526121_5", b"n02526121_6"), "'n02526121_6.JPEG' .* not on the database list"),
        (replaced("train", b"0 1 0", b"1 0 0"), "'n02526121_5.JPEG' is of class 0 on .* and of class 1 on"),
    ],
)
def test_damaged_lists(tmp_path, damage, message):
    source = written(tmp_path / "labels.zip", damage(lists()))
    with refused(pattern=message):
        imagenet100.describe([source])


def inner(change):
    """Damage: an inner tar, changed."""
    return lambda files: files | {"n02526121.tar": change(files["n02526121.tar"])}


UNREADABLE = {f"n02526121_{number}.JPEG": b"\xff\xd8\xff" for number in (5, 44)}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (inner(lambda d: d[:700]), r"train.tar: 'n02526121.tar': cut short, damaged"),
        (inner(lambda d: tarred({"../n02526121_5.JPEG": b""})), "tar': member .* leads out of the archive"),
        (inner(lambda d: tarred({})), "2 of 10 images are missing: 'n02526121_44.JPEG', 'n02526121_5.JPEG' "),
        (inner(lambda d: tarred(UNREADABLE)), "2 of 10 images cannot be read: .*; the first: .*n02526121"),
        (lambda f: f | {"copy/n02526121.tar": f["n02526121.tar"]}, "which was there before"),
    ],
)
@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_damaged_training_archives(tmp_path, damage, message, mode):
    sources = forms(tmp_path)["official"]
    sources[1].write_bytes(tarred(damage(train_tar()), mode))
    with refused(pattern=message):
        imagenet100.load(sources, tmp_path, size=SIZE)
    assert not list(tmp_path.glob("*.npy*"))


@pytest.mark.thorough
def test_the_real_lists(monkeypatch):
    """Counts of the published lists; sizes of the classes that have fewer than 1,300 images."""
    monkeypatch.undo()
    description = imagenet100.describe([resource("imagenet100/labels.zip")], images="none")
    names = description.class_names
    assert names == sorted(names)
    assert (names[0], names[33], names[99]) == ("n01514668", "n02256656", "n13044778")
    labels, given = description.labels, description.given_split
    assert np.bincount(labels[given == 0]).tolist() == [50] * 100
    assert np.bincount(labels[given == 2]).tolist() == [130] * 100
    sizes = dict(zip(names, np.bincount(labels[given > 0]).tolist()))
    assert sum(sizes.values()) == 128_503
    assert {name: size for name, size in sizes.items() if size != 1_300} == {
        **{"n02526121": 1165, "n03045698": 1029, "n03680355": 1137, "n03690938": 1272, "n03803284": 1133},
        **{"n03814639": 1180, "n03899768": 1152, "n03944341": 1117, "n04201297": 1249, "n04238763": 1162},
        "n07584110": 1207,
    }
    spec = {"kind": "given", "query": "query", "database": ["database", "training"]}
    split = splits.draw(spec | {"training": {"split": "training"}}, description, 0)
    assert [len(rows) for rows in (split.query, split.training, split.database)] == [5_000, 13_000, 128_503]
