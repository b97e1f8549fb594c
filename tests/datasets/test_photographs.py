"""What loaders of photographs share: pixels against Pillow, options, images that are missing or damaged."""

import itertools
import os
import zipfile
from collections import Counter
from pathlib import Path

import made_contents
import numpy as np
import pytest
from made_contents import encoded

from datasets import loaders
from datasets.description import Description
from datasets.readers import pictures as _pictures
from datasets.readers.photographs import Labelled, PhotographLoader
from tests.files import changed, written
from tests.tiebench.refusals import refused

SIZE = [6, 8]
NAMES = [f"{number}.jpg" for number in range(6)]
LABELS = np.array([[1, 0], [0, 1], [1, 1], [1, 0], [0, 1], [1, 1]], np.uint8)
GIVEN = np.array([0, 1, 1, 0, 1, 1])
LOADERS = [
    name
    for name, loader in loaders.KIND.find().items()
    if isinstance(getattr(loader.load().load, "__self__", None), PhotographLoader)
]


def labelled(sources, photographs, scale=1):
    return Labelled(NAMES, sources, scale * LABELS, ["a", "b"], GIVEN, ["query", "database"])


TOY = PhotographLoader("toy", (5, 7), labelled, dict.fromkeys(("scale", "size", "images", "missing"), ""))


def jpeg(row: int) -> bytes:
    """A photograph, one of them grey, one a PNG under the same ending, one CMYK."""
    mode, kind = {1: ("L", "jpeg"), 2: ("CMYK", "jpeg"), 3: ("RGB", "png")}.get(row, ("RGB", "jpeg"))
    return encoded(row, 20 + row, 31 - row, mode, kind)


def resized(row: int, size=SIZE) -> np.ndarray:
    return made_contents.resized(jpeg(row), size)


def pictures() -> dict[str, bytes]:
    found = {f"set/{name}": jpeg(row) for row, name in reversed(list(enumerate(NAMES)))}
    return found | {"set/other.jpg": b"not wanted", "set/readme.txt": b""}


def loaded(folder: Path, name: str) -> np.ndarray:
    return np.load(folder / f"{name}.npy")


@pytest.mark.parametrize("form", ["set", "set.zip", "set.tar", "set.tar.gz"])
def test_every_form_gives_the_same(tmp_path, form):
    source = written(tmp_path / form, pictures())
    description = TOY.load([source], tmp_path, size=SIZE)
    np.testing.assert_array_equal(loaded(tmp_path, "items"), [resized(row) for row in range(6)])
    np.testing.assert_array_equal(loaded(tmp_path, "labels"), LABELS)
    np.testing.assert_array_equal(loaded(tmp_path, "given_split"), GIVEN)
    described = TOY.describe([source], size=SIZE).metadata()
    assert described == description.metadata() == Description.read(tmp_path, described).metadata()
    TOY.load([source], tmp_path)
    np.testing.assert_array_equal(loaded(tmp_path, "items"), [resized(row, (5, 7)) for row in range(6)])


def test_without_images(tmp_path):
    description = TOY.load([], tmp_path, images="none", scale=2)
    items = loaded(tmp_path, "items")
    assert items.dtype == np.float32 and items.shape == (6, 1) and not items.any()
    assert description.kind == "vectors" and description.item_shape == (1,)
    np.testing.assert_array_equal(loaded(tmp_path, "labels"), 2 * LABELS)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (changed("4.jpg", None), "1 of 6 images are missing: '4.jpg' .option missing: skip"),
        (
            lambda f: {"set/5.jpg": f["set/5.jpg"]},
            "5 of 6 images are missing: '0.jpg', '1.jpg', '2.jpg', ... ",
        ),
        (changed("5.jpg", lambda d: d[:400]), "1 of 6 images cannot be read: '5.jpg'.*[Tt]runcated"),
        (changed("4.jpg", lambda d: b"GIF89a"), "'set/4.jpg' is not an image of JPEG, PNG"),
        (lambda f: f | {"copy/4.jpg": b""}, "'copy/4.jpg' is image '4.jpg', which was there before"),
        (lambda f: f | {"../sea.jpg": b""}, "member '../sea.jpg' leads out of the archive"),
        (lambda f: f | {"/sea.jpg": b""}, "member '/sea.jpg' has an absolute name"),
        (lambda f: {"readme.txt": b""}, "holds none of the 6 images, such as '0.jpg'"),
    ],
)
@pytest.mark.parametrize("ending", [".zip", ".tar", ".tar.gz"])
def test_damaged_images(tmp_path, damage, message, ending):
    source = written(tmp_path / f"set{ending}", damage(pictures()))
    with refused(pattern=message):
        TOY.load([source], tmp_path, size=SIZE)
    assert not list(tmp_path.glob("*.npy*"))


@pytest.mark.parametrize("ending", [".zip", ".tar", ".tar.gz"])
def test_archives_cut_short(tmp_path, ending):
    cut = written(tmp_path / f"set{ending}", pictures())
    whole = cut.read_bytes()
    for part, missing in itertools.product((0.3, 0.9), ("error", "skip")):
        cut.write_bytes(whole[: int(part * len(whole.rstrip(b"\0")))])  # a tar ends in padding
        with refused(pattern=rf"set{ending}: cut short, damaged"):
            TOY.load([cut], tmp_path, size=SIZE, missing=missing)
    assert not list(tmp_path.glob("*.npy*"))


def test_a_zip_with_a_damaged_image_or_an_encrypted_one_or_a_link(tmp_path):
    with zipfile.ZipFile(tmp_path / "stored.zip", "w") as archive:
        for name, contents in pictures().items():
            archive.writestr(name, contents)
    whole = (tmp_path / "stored.zip").read_bytes()
    at = whole.index(jpeg(5)) + 300
    flags = whole.index(b"PK\x01\x02") + 8
    bad = tmp_path / "bad.zip"
    for contents, message in (
        (whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :], "bad.zip: cut short, damaged.*CRC-32"),
        (whole[:flags] + bytes([whole[flags] | 1]) + whole[flags + 1 :], "bad.zip: .*encrypted"),
    ):
        bad.write_bytes(contents)
        with refused(pattern=message):
            TOY.load([bad], tmp_path, size=SIZE, missing="skip")
    link = zipfile.ZipInfo("set/link.jpg")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "stored.zip", "a") as archive:
        archive.writestr(link, "/etc/passwd")
    with refused(pattern=r"stored.zip: member 'set/link.jpg' is a link"):
        TOY.load([tmp_path / "stored.zip"], tmp_path, size=SIZE)


def test_skipping_leaves_out_missing_and_damaged_images(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr("datasets.files.MOVED_AT_ONCE", 300)  # two images at a time
    files = changed("1.jpg", None)(pictures()) | {"set/4.jpg": b"GIF89a"}
    source = written(tmp_path / "images", files)
    (source / "set" / "2.jpg").unlink()
    (source / "set" / "2.jpg").symlink_to("nowhere")
    with caplog.at_level("WARNING", "tiebench"):
        description = TOY.load([source], tmp_path, size=SIZE, missing="skip")
    kept = [0, 3, 5]
    assert (description.items, description.left_out) == (3, 3)
    np.testing.assert_array_equal(loaded(tmp_path, "items"), [resized(row) for row in kept])
    np.testing.assert_array_equal(loaded(tmp_path, "labels"), LABELS[kept])
    np.testing.assert_array_equal(loaded(tmp_path, "given_split"), GIVEN[kept])
    assert "1 of 6 images are missing: '1.jpg'; left out" in caplog.text
    assert "2 of 6 images cannot be read: '2.jpg', '4.jpg'; left out" in caplog.text


def test_reading_stops_after_many_unreadable_images(tmp_path):
    bad = written(tmp_path / "bad.tar", changed(".jpg", lambda d: b"")(pictures()))
    row_of = {f"set/{name}": row for row, name in enumerate(NAMES)}.get
    with refused(pattern="at least 2 of 6 images cannot be read"):
        _pictures.save_photographs(
            tmp_path / "items.npy", [bad], row_of, NAMES, SIZE, "error", most_unreadable=2
        )


def test_few_images_wait_at_any_time(tmp_path, monkeypatch):
    """Contents are read no faster than pixels are taken: memory does not grow with the archive."""
    source = written(tmp_path / "many", {f"{number}.jpg": jpeg(0) for number in range(60)})
    read = Counter()
    original = Path.read_bytes

    def counting(path):
        read["files"] += 1
        return original(path)

    monkeypatch.setattr(Path, "read_bytes", counting)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1}, raising=False)
    rows = []
    for row, future in _pictures._decoded([source], lambda name: int(name[:-4]), SIZE, ()):
        rows.append(row)
        np.testing.assert_array_equal(future.result(), resized(0))
        assert read["files"] <= len(rows) + 2 * _pictures.WAITING_PER_THREAD
    assert rows == sorted(range(60), key=lambda number: f"{number}.jpg")


MISTAKES = [
    ({"images": "no"}, "option images: unknown value 'no'"),
    ({"missing": "skipp"}, "option missing: unknown value 'skipp'; did you mean 'skip'"),
    ({"missing": True}, "option missing: unknown value True"),
    ({"size": 224}, r"option size: must be \[height, width\]"),
    ({"size": [0, 1]}, "option size: must be a positive integer"),
    ({"sizes": [1, 1]}, "unknown option 'sizes'; did you mean 'size'"),
]


@pytest.mark.parametrize("name", LOADERS)
def test_every_loader_has_the_options_of_photographs(name, tmp_path):
    assert len(LOADERS) >= 4
    loader = loaders.KIND.named(name).load()
    assert {"size", "images", "missing"} <= loader.OPTIONS.keys()
    (tmp_path / "empty").mkdir()
    for call in (loader.describe, lambda sources, **options: loader.load(sources, tmp_path, **options)):
        for options, message in MISTAKES:
            with refused(pattern=message):
                call([tmp_path / "empty"], **options)
        with refused("sources"):
            call([tmp_path / "empty"])
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]
