"""ImageNet100 in small archives of its real layouts: rows by hand, pixels against Pillow; bad sources."""

import io
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from datasets import splits
from datasets.description import Description
from datasets.loaders import imagenet100
from tests.files import changed, resource, tarred, written

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
GIVEN = {
    "kind": "given",
    "query": "query",
    "database": ["database", "training"],
    "training": {"split": "training"},
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(imagenet100, "CLASSES", 3)
    monkeypatch.setattr(imagenet100, "COUNTS", {"train": 3, "test": 4, "database": 6})


def picture(name: str) -> bytes:
    """A JPEG of random pixels; one of them is grey, one a PNG under the same ending, one CMYK."""
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    image = Image.fromarray(generator.integers(0, 256, (25, 18, 3), np.uint8))
    image = image.convert({"n01514668_100.JPEG": "L", "n02526121_44.JPEG": "CMYK"}.get(name, "RGB"))
    buffer = io.BytesIO()
    image.save(buffer, "png" if name == "n02526121_5.JPEG" else "jpeg")
    return buffer.getvalue()


def resized(name: str) -> np.ndarray:
    image = Image.open(io.BytesIO(picture(name))).convert("RGB")
    return np.asarray(image.resize((SIZE[1], SIZE[0]), Image.Resampling.BICUBIC))


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
    inner = {
        f"{wnid}.tar": tarred({name: picture(name) for name in DATABASE if name.startswith(wnid)})
        for wnid in WNIDS
    }
    inner["n01514668.tar"] = tarred(
        {"n01514668_999.JPEG": b"on no list"}
        | {name: picture(name) for name in DATABASE if name.startswith("n01514668")}
    )
    return {"n00000001.tar": b"damaged" * 1000} | inner


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


@pytest.mark.parametrize("form", ["official", "compressed", "folder", "one archive", "one folder"])
def test_every_form_gives_the_same(tmp_path, form):
    sources = forms(tmp_path)[form]
    description = imagenet100.load(sources, tmp_path, size=SIZE)
    items, labels, given = (
        np.load(tmp_path / name) for name in ("items.npy", "labels.npy", "given_split.npy")
    )
    assert labels.tolist() == LABELS and given.tolist() == PARTS
    np.testing.assert_array_equal(items, [resized(name) for name in ROWS])
    assert items.dtype == np.uint8 and labels.dtype == given.dtype == np.int64
    assert description.class_names == list(WNIDS)
    assert description.metadata()["split_counts"] == {"query": 4, "database": 3, "training": 3}
    described = imagenet100.describe(sources, size=SIZE)
    assert (
        described.metadata()
        == description.metadata()
        == Description.read(tmp_path, description.metadata()).metadata()
    )


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (changed("train.txt", None), "no train.txt in the sources"),
        (lambda f: f | {"parts/database3.txt": b""}, "database3.txt: the list is there as a whole too"),
        (lambda f: f | {"parts/train.txt": b""}, "parts/train.txt: there is another train.txt"),
        (
            changed("test.txt", lambda d: d[: d.rindex(b"val_image")]),
            "test.txt: names 3 images, not 4",
        ),
        (changed("test.txt", lambda d: d[:-3]), "test.txt: line 4: after the path there must be 3 values"),
        (
            changed("test.txt", lambda d: d.replace(b"0 1 0", b"0 1 1", 1)),
            "test.txt: line 1: after the path",
        ),
        (changed("test.txt", lambda d: d.replace(b"val_0", b"cal_0")), "not an image of this list"),
        (changed("test.txt", lambda d: b"\xff" + d), "test.txt: line [0-9]+ is not UTF-8 text"),
        (
            changed("database.txt", lambda d: b"\n" + d),
            "database.txt: line 1: '' is not an image of this list",
        ),
        (
            changed("database.txt", lambda d: d.replace(b"n13044778_12", b"n13044778_3")),
            "database.txt: line 5: 'n13044778_3.JPEG' was there before",
        ),
        (
            changed("database.txt", lambda d: d.replace(b"n13044778_12", b"n02526121_12")),
            "the database list has n13044778 and n02526121 both as class 2",
        ),
        (
            changed("database.txt", lambda d: d.replace(b"n13044778_", b"n02526121_1")),
            "the database list has 3 classes by label and 2 by name, not 3",
        ),
        (
            changed("train.txt", lambda d: d.replace(b"n02526121_5", b"n02526121_6")),
            "'n02526121_6.JPEG' is of class 1 on the training list and not on the database list",
        ),
        (
            changed("train.txt", lambda d: d.replace(b"0 1 0", b"1 0 0")),
            "'n02526121_5.JPEG' is of class 0 on the training list and of class 1 on the database list",
        ),
    ],
)
def test_damaged_lists(tmp_path, damage, message):
    source = written(tmp_path / "labels.zip", damage(lists()))
    with pytest.raises(ValueError, match=message) as caught:
        imagenet100.describe([source])
    assert "\n" not in str(caught.value)


def inner(name: str, change):
    """Damage: the named inner tar, changed."""
    return lambda files: files | {name: change(files[name])}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (inner("n02526121.tar", lambda d: d[:700]), r"train.tar: 'n02526121.tar': cut short, damaged"),
        (
            inner("n02526121.tar", lambda d: tarred({"../../n02526121_5.JPEG": b""})),
            r"train.tar: 'n02526121.tar': member '../../n02526121_5.JPEG' leads out of the archive",
        ),
        (
            inner("n02526121.tar", lambda d: tarred({})),
            "2 of 10 images are missing: 'n02526121_44.JPEG', 'n02526121_5.JPEG' ",
        ),
        (
            inner(
                "n02526121.tar", lambda d: tarred({f"n02526121_{n}.JPEG": b"\xff\xd8\xff" for n in (5, 44)})
            ),
            "2 of 10 images cannot be read: 'n02526121_5.JPEG', 'n02526121_44.JPEG'; the first: .*n02526121",
        ),
        (lambda f: f | {"copy/n02526121.tar": f["n02526121.tar"]}, "which was there before"),
    ],
)
@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_damaged_training_archives(tmp_path, damage, message, mode):
    sources = forms(tmp_path)["official"]
    sources[1].write_bytes(tarred(damage(train_tar()), mode))
    with pytest.raises(ValueError, match=message) as caught:
        imagenet100.load(sources, tmp_path, size=SIZE)
    assert "\n" not in str(caught.value)
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
    split = splits.draw(GIVEN, description, 0)
    assert [len(rows) for rows in (split.query, split.training, split.database)] == [5_000, 13_000, 128_503]
