"""Images from folders and archives: against Pillow on single files, against each other; bad sources."""

import tarfile
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from made_contents import encoded
from PIL import Image, ImageOps

from datasets.description import Description
from datasets.loaders import images
from tests.tiebench.refusals import refused

FILES = ("items.npy", "labels.npy", "given_split.npy")
PATHS = "set/{split}/{class}/{name}"


def picture(seed: int, height: int = 12, width: int = 9) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8))


@pytest.fixture
def root(tmp_path) -> Path:
    """Two splits of three classes, JPEG and PNG, as a folder; the files beside them are not part of it."""
    folder = tmp_path / "images"
    for number, (split, name) in enumerate(
        [(split, name) for split in ("train", "test") for name in ("owl", "ant", "bee") for _ in range(3)]
    ):
        place = folder / "set" / split / name
        place.mkdir(parents=True, exist_ok=True)
        ending = (".jpg", ".png", ".JPEG")[number % 3]
        picture(number).save(place / f"{(7 * number) % 18:03}{ending}")
    (folder / "README.txt").write_text("about")
    (folder / "set" / "train" / "owl" / "._000.jpg").write_bytes(b"left by a file manager")
    (folder / "set" / "train" / "owl" / "boxes.csv").write_text("1,2")
    return folder


def packed(root: Path, path: Path, mode: str = "w", backwards: bool = False, dotted: bool = False) -> Path:
    opened = partial(zipfile.ZipFile, mode="w") if mode == "zip" else partial(tarfile.open, mode=mode)
    with opened(path) as archive:
        add = archive.write if mode == "zip" else partial(archive.add, recursive=False)
        for file in sorted(root.rglob("*"), reverse=backwards):
            add(file, ("./" if dotted else "") + str(file.relative_to(root)))
    return path


def loaded(source: Path, folder: Path, **options) -> tuple[dict, list[bytes]]:
    folder.mkdir()
    card = images.load([source], folder, **options).metadata()
    return card, [(folder / name).read_bytes() for name in FILES]


def test_folder_against_pillow(root, tmp_path):
    folder = tmp_path / "out"
    card, _ = loaded(root, folder, paths=PATHS)
    names = [p for p in root.glob("set/*/*/*") if p.suffix.lower() in (".jpg", ".jpeg", ".png")]
    names = sorted((p for p in names if p.name[0] != "."), key=lambda p: p.parts[-3:])
    items, labels, given = (np.load(folder / name) for name in FILES)
    assert items.dtype == np.uint8 and items.shape == (18, 12, 9, 3)
    for row, path in enumerate(names):
        np.testing.assert_array_equal(items[row], np.asarray(Image.open(path).convert("RGB")))
        assert ["ant", "bee", "owl"][labels[row]] == path.parts[-2]
        assert ["test", "train"][given[row]] == path.parts[-3]
    assert card["class_counts"] == {"ant": 6, "bee": 6, "owl": 6}
    assert card["split_counts"] == {"test": 9, "train": 9}
    assert card["item_shape"] == [12, 9, 3] and card["kind"] == "images"


@pytest.mark.parametrize(
    ("mode", "backwards", "dotted"),
    [
        *(("w", False, False), ("w", True, True), ("w:gz", True, False), ("w:bz2", False, True)),
        *(("w:xz", True, False), ("zip", True, False)),
    ],
)
def test_archive_gives_the_bytes_of_the_folder(root, tmp_path, mode, backwards, dotted):
    archive = packed(root, tmp_path / "archive", mode, backwards, dotted)
    assert loaded(archive, tmp_path / "a", paths=PATHS) == loaded(root, tmp_path / "b", paths=PATHS)
    described = images.describe([archive], paths=PATHS)
    read = Description.read(tmp_path / "a", described.metadata())
    assert described.metadata() == read.metadata()
    np.testing.assert_array_equal(described.labels, read.labels)
    np.testing.assert_array_equal(described.given_split, read.given_split)


def test_archives_other_than_gnu_and_long_names(tmp_path):
    folder = tmp_path / "images"
    long = "n" * 150
    for name in ("ä", long):
        (folder / name).mkdir(parents=True)
        picture(1).save(folder / name / "1.png")
    expected = loaded(folder, tmp_path / "folder")
    for number, form in enumerate((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT)):
        with tarfile.open(tmp_path / f"{number}.tar", "w", format=form) as archive:
            archive.add(folder, ".")
        assert loaded(tmp_path / f"{number}.tar", tmp_path / str(number)) == expected
    assert expected[0]["class_names"] == [long, "ä"]


def test_grey_palette_and_transparent_images_become_rgb(tmp_path):
    grey = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
    source = tmp_path / "images"
    (source / "c").mkdir(parents=True)
    Image.fromarray(grey).save(source / "c/1.png")
    Image.fromarray(grey).convert("P").save(source / "c/2.png")
    Image.fromarray(grey).convert("RGBA").save(source / "c/3.png")
    loaded(source, tmp_path / "out")
    for image in np.load(tmp_path / "out/items.npy"):
        np.testing.assert_array_equal(image, np.repeat(grey[..., None], 3, axis=2))


@pytest.mark.parametrize(
    ("paths", "rows", "classes"),
    [
        ("set/train/{class}/{name}", 9, ["ant", "bee", "owl"]),
        ("*/*/{class}/*", 18, ["ant", "bee", "owl"]),
        ("set/{class}/owl/{name}.png", 2, ["test", "train"]),
        ("set/{split}/{name}/{class}.jpg", 6, None),
    ],
)
def test_patterns(root, paths, rows, classes):
    description = images.describe([root], paths=paths)
    assert description.items == rows
    if classes:
        assert description.class_names == classes
    assert (description.given_split is None) == ("{split}" not in paths)


def test_left_out_files_are_counted(root, caplog):
    with caplog.at_level("INFO", "tiebench"):
        images.describe([root], paths=PATHS)
    assert "18 images, 3 files left out (the first: README.txt)" in caplog.text


def test_links_in_a_folder_are_followed_but_not_around(root, tmp_path):
    linked = tmp_path / "linked"
    linked.mkdir()
    for name in ("ant", "owl"):
        (linked / name).symlink_to(root / "set/train" / name)
    assert images.describe([linked]).metadata()["class_counts"] == {"ant": 3, "owl": 3}
    (root / "set/again").symlink_to(root)
    with refused(pattern="a link to a folder that it lies in"):
        images.describe([root], paths=PATHS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"paths": "{class}"}, r"no file matches paths '\{class\}'.*for example '"),
        ({"paths": "set/{split}/{name}"}, "field {class} is missing"),
        ({"paths": "{clas}/{name}"}, "unknown field 'clas'; did you mean 'class'"),
        ({"paths": "{class}/{class}"}, "'class' is given twice"),
        ({"paths": "/data/{class}/{name}"}, "'' is not a component"),
        ({"paths": "../{class}/{name}"}, "'..' is not a component"),
        ({"paths": "set*/{class}/{name}"}, r"neither \* nor"),
        ({"paths": "{class/{name}"}, "neither"),
        ({"paths": 3}, "must be text"),
        ({"size": [32]}, r"must be \[height, width\], not \[32\]"),
        ({"size": [32, 0]}, "positive integer, not 0"),
        ({"size": [32, "32"]}, "positive integer, not '32'"),
        ({"extensions": ".jpg"}, "must be a list"),
        ({"extensions": [".jpgg"]}, "did you mean '.jpg'"),
        ({"extensions": [".webp"], "paths": PATHS}, "no file matches .*extensions .webp; .*README.txt"),
        ({"path": PATHS}, "unknown option 'path'; did you mean 'paths'"),
    ],
)
def test_bad_options(root, options, message):
    with refused(pattern=message):
        images.describe([root], **options)


def test_bad_sources(tmp_path):
    with refused(pattern="got 2 sources"):
        images.describe([tmp_path, tmp_path])
    (tmp_path / "empty").mkdir()
    with refused(pattern="it holds no file"):
        images.describe([tmp_path / "empty"])
    (tmp_path / "text").write_text("not an archive" * 100)
    with refused(pattern="text: cut short, damaged or not a tar"):
        images.describe([tmp_path / "text"])


def test_images_of_two_sizes_are_named(root, tmp_path):
    picture(1, 20, 30).save(root / "set/train/bee/zz.png")
    for source in (root, packed(root, tmp_path / "images.tar")):
        with refused(pattern=r"set/test/ant/.*12 x 9 pixels and 'set/train/bee/zz.png' 20 x 30"):
            images.load([source], tmp_path, paths=PATHS)
        assert not (tmp_path / "items.npy").exists()
    assert images.load([root], tmp_path, paths=PATHS, size=[4, 4]).items == 19


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_archives_cut_short(root, tmp_path, mode):
    """Wherever the cut, an archive never passes for one with fewer images."""
    for number in range(40):
        picture(number).save(root / f"set/train/owl/more{number}.png")
    whole = packed(root, tmp_path / "whole.tar", mode).read_bytes()
    cut = tmp_path / "cut.tar"
    for part in (0.05, 0.5, 0.9):
        cut.write_bytes(whole[: int(len(whole) * part)])
        with refused("cut.tar: cut short, damaged or not a tar"):
            images.load([cut], tmp_path, paths=PATHS)
    assert not list(tmp_path.glob("items.npy*"))


def test_a_plain_archive_cut_between_members_or_damaged_in_a_header(tmp_path):
    with tarfile.open(tmp_path / "whole.tar", "w", format=tarfile.USTAR_FORMAT) as archive:
        for number in range(5):
            archive.addfile(tarfile.TarInfo(f"a/{number}.txt"))
    whole = (tmp_path / "whole.tar").read_bytes()
    bad = tmp_path / "bad.tar"
    for contents in (whole[: 3 * 512], whole[: 2 * 512 + 100], whole[:1024] + b"\xff" * 512 + whole[1536:]):
        bad.write_bytes(contents)
        with refused(pattern="cut short, damaged"):
            images.describe([bad])


BAD = ("set/train/bee/bad.jpg", "set/test/ant/000bad.jpg", "set/train/ant/also.png", "set/train/owl/more.png")


@pytest.fixture
def damaged(root):
    """`root` with four corrupt images, one of them the first of all."""
    whole = encoded(5, 12, 9)
    for name in BAD:
        (root / name).write_bytes(b"" if "more" in name else whole[: len(whole) * 9 // 10])
    return root


@pytest.mark.parametrize("tarred", [False, True])
@pytest.mark.parametrize("size", [None, [8, 8]])
def test_all_corrupt_images_are_named(damaged, tmp_path, tarred, size):
    source = packed(damaged, tmp_path / "images.tar") if tarred else damaged
    with refused("corrupt: skip", pattern=r"4 of 22 images cannot be read: '.*', \.\.\.") as caught:
        images.load([source], tmp_path, paths=PATHS, size=size)
    assert caught.type is images.CorruptImagesError and caught.value.names == sorted(BAD)


@pytest.mark.parametrize("size", [None, [8, 8]])
def test_corrupt_images_can_be_left_out_and_are_counted(root, tmp_path, size, caplog):
    (tmp_path / "whole").mkdir()
    whole = images.load([root], tmp_path / "whole", paths=PATHS, size=size)
    for name in BAD:
        (root / name).write_bytes(b"no image")
    (tmp_path / "rest").mkdir()
    rest = images.load([root], tmp_path / "rest", paths=PATHS, size=size, corrupt="skip")
    for file in FILES:
        np.testing.assert_array_equal(np.load(tmp_path / "rest" / file), np.load(tmp_path / "whole" / file))
    assert rest.metadata() == whole.metadata() | {"left_out": 4}
    assert (tmp_path / "rest" / images.LIST_OF_CORRUPT).read_text().splitlines() == sorted(BAD)
    assert "4 of 22 images cannot be read" in caplog.text
    assert not (tmp_path / "whole" / images.LIST_OF_CORRUPT).exists()


def test_a_dataset_of_corrupt_images_is_refused(tmp_path):
    (tmp_path / "in/a").mkdir(parents=True)
    for number in range(3):
        (tmp_path / f"in/a/{number}.png").write_bytes(b"no image")
    for size in (None, [4, 4]):
        with pytest.raises(images.CorruptImagesError, match=r"is not an image|cannot be read"):
            images.load([tmp_path / "in"], tmp_path, size=size, corrupt="skip")
    with refused(pattern="option corrupt: unknown value 'skpi'; did you mean 'skip'"):
        images.load([tmp_path / "in"], tmp_path, corrupt="skpi")


@pytest.mark.parametrize(
    ("orientations", "size"), [((0, 1, 2, 3, 4, 9), None), ((5, 6, 7, 8), None), (range(10), [10, 20])]
)
def test_exif_orientation_is_obeyed(orientations, size, tmp_path):
    """Against Pillow's own exif_transpose; 0 and 9 are not orientations, 5 to 8 swap height and width."""
    (tmp_path / "in/a").mkdir(parents=True)
    expected = []
    for orientation in orientations:
        exif = Image.Exif()
        exif[0x0112] = orientation
        file = tmp_path / f"in/a/{orientation}.png"
        picture(3).save(file, exif=exif)
        upright = ImageOps.exif_transpose(Image.open(file))
        expected.append(upright if size is None else upright.resize(size[::-1], Image.Resampling.BILINEAR))
    images.load([tmp_path / "in"], tmp_path, size=size)
    np.testing.assert_array_equal(np.load(tmp_path / "items.npy"), [np.asarray(one) for one in expected])


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
def test_damaged_exif_beside_whole_pixels_is_ignored(tmp_path):
    (tmp_path / "in/a").mkdir(parents=True)
    picture(3).save(tmp_path / "in/a/0.png", exif=b"Exif\0\0II*\0\xff\xff\xff\xff broken")
    images.load([tmp_path / "in"], tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "items.npy")[0], np.asarray(picture(3)))


def test_a_link_to_a_class_that_is_also_there_counts_once(root, caplog):
    plain = images.describe([root], paths=PATHS).metadata()
    (root / "set/train/aardvark").symlink_to(root / "set/train/owl")  # before owl in order of names
    (root / "set/train/zebra").symlink_to(root / "set/train/owl")
    assert images.describe([root], paths=PATHS).metadata() == plain
    assert "6 images are reached by links as well and are counted once" in caplog.text


def test_links_to_folders_that_do_not_match_the_pattern_stay(root, tmp_path):
    """As farms of links into a folder of originals do."""
    (root / "mine").mkdir()
    (root / "mine/bird").symlink_to(root / "set/train/owl")
    assert images.describe([root], paths="mine/{class}/{name}").metadata()["class_counts"] == {"bird": 3}
