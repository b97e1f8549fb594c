"""NUS-WIDE in small archives of its real layouts: labels by hand, pixels against Pillow; bad sources."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from made_contents import encoded, resized

from datasets import splits
from datasets.loaders import nus_wide
from datasets.readers import texts as _texts
from tests.files import changed, resource, written
from tests.tiebench.refusals import refused

CONCEPTS = ("animal", "clouds", "sky", "water", "window")
# Concepts of each image; how often: sky 5, clouds 3, water 3, animal 2, window 1.
IMAGES = (
    *(("sky", "clouds"), ("window",), (), ("sky", "water", "animal"), ("sky",), ("clouds", "water")),
    *(("sky", "clouds", "water"), ("animal",), ("sky",)),
)
# The file names of rows 0 and 3 are the same, in two folders.
PATHS = (
    *(
        "actor/0001_11.jpg",
        "actor/0002_12.jpg",
        "actor/0003_13.jpg",
        "zebra/0001_11.jpg",
        "zebra/0002_14.jpg",
    ),
    *("sea/0001_15.jpg", "sea/0002_16.jpg", "sea/0003_17.jpg", "sea/0004_18.jpg"),
)
SIZE = [6, 8]
THREE = ["sky", "clouds", "water"]
KEPT = [0, 3, 4, 5, 6, 8]  # those with one of the three


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(nus_wide, "IMAGES", len(IMAGES))
    monkeypatch.setattr(nus_wide, "CONCEPTS", len(CONCEPTS))


def jpeg(row: int) -> bytes:
    return encoded(row, 20 + row, 31 - row)


def ground_truth() -> dict[str, bytes]:
    files = {
        f"Groundtruth/AllLabels/Labels_{concept}.txt": "".join(
            f"{int(concept in of_image)}\n" for of_image in IMAGES
        ).encode()
        for concept in CONCEPTS
    }
    part = {f"Groundtruth/TrainTestLabels/Labels_{concept}_Train.txt": b"1\n0\n" for concept in CONCEPTS}
    return files | part


def small_texts() -> dict[str, bytes]:
    """The two-file form; ids are not alphabetical, images without concepts are left out."""
    identifiers = {"sky": 3, "window": 0, "animal": 4, "water": 1, "clouds": 2}
    lines = [
        f"{row}\t{' '.join(str(identifiers[c]) for c in of_image)}\n"
        for row, of_image in enumerate(IMAGES)
        if of_image
    ]
    return {
        "label_ids.txt": "".join(f"{i}\t{c}\n" for c, i in identifiers.items()).encode(),
        "mul_label_ids.txt": "".join(lines).encode(),
    }


def concepts_list() -> dict[str, bytes]:
    return {
        "ConceptsList/Concepts81.txt": "\r\n".join(CONCEPTS).encode(),
        "ConceptsList/Concepts81.mat": b"?",
    }


def image_list(prefix: str = "C:\\ImageData\\Flickr\\", slash: str = "\\") -> dict[str, bytes]:
    lines = "".join(f"{prefix}{path.replace('/', slash)}\r\n" for path in PATHS)
    return {"ImageList/Imagelist.txt": lines.encode(), "ImageList/TrainImagelist.txt": b"actor\\0001_11.jpg"}


def pictures(prefix: str = "Flickr/") -> dict[str, bytes]:
    return {prefix + path: jpeg(row) for row, path in reversed(list(enumerate(PATHS)))}


def forms(folder: Path) -> dict[str, list[Path]]:
    """The same dataset in the forms in which it is found."""
    texts = written(folder / "texts", small_texts())
    some, others = (dict(part) for part in (list(pictures().items())[:4], list(pictures().items())[4:]))
    return {
        "official": [
            written(folder / "Groundtruth.zip", ground_truth()),
            written(folder / "ConceptsList.zip", concepts_list()),
            written(folder / "ImageList.zip", image_list()),
            written(folder / "Flickr.tar", pictures()),
        ],
        "compressed": [
            written(folder / "Flickr.tar.gz", pictures("./")),
            written(folder / "list", image_list(prefix="", slash="/")) / "ImageList" / "Imagelist.txt",
            written(folder / "truth", ground_truth()) / "Groundtruth" / "AllLabels",
        ],
        "small texts": [
            texts / "mul_label_ids.txt",
            texts / "label_ids.txt",
            written(folder / "list2", image_list(prefix="", slash="\\")),
            written(folder / "images", pictures("")),
        ],
        "one folder": [written(folder / "all", ground_truth() | concepts_list() | image_list() | pictures())],
        "parts": [
            written(folder / "part1.zip", ground_truth() | some),
            written(folder / "part2.zip", image_list(slash="/") | others),
        ],
    }


def test_every_form_gives_the_same(tmp_path):
    for sources in forms(tmp_path / "sources").values():
        description = nus_wide.load(sources, tmp_path, concepts=3, size=SIZE)
        items, labels = (np.load(tmp_path / name) for name in ("items.npy", "labels.npy"))
        np.testing.assert_array_equal(labels, [[int(c in IMAGES[row]) for c in THREE] for row in KEPT])
        assert labels.dtype == np.uint8 and description.given_split is None
        np.testing.assert_array_equal(items, [resized(jpeg(row), SIZE) for row in KEPT])
        assert description.metadata()["class_counts"] == {"sky": 5, "clouds": 3, "water": 3}


def test_flat_image_folders_where_file_names_suffice(tmp_path):
    sources = forms(tmp_path)["small texts"][:3]
    flat = {
        path.rpartition("/")[2].upper(): data for path, data in pictures().items() if "0001_11" not in path
    }
    sources.append(written(tmp_path / "flat", flat))
    with refused("2 of 6 images are missing: 'actor/0001_11.jpg', 'zebra/0001_11.jpg'"):
        nus_wide.load(sources, tmp_path, concepts=3, size=SIZE)
    nus_wide.load(sources, tmp_path, concepts=3, size=SIZE, missing="skip")
    expected = [resized(jpeg(row), SIZE) for row in KEPT[2:]]
    np.testing.assert_array_equal(np.load(tmp_path / "items.npy"), expected)


def test_number_of_concepts(tmp_path):
    source = written(tmp_path / "texts", ground_truth())
    everything = nus_wide.describe([source], concepts=5, images="none")
    assert everything.class_names == ["sky", "clouds", "water", "animal", "window"]
    assert everything.items == 8
    assert nus_wide.describe([source], concepts=1, images="none").items == 5
    for concepts, message in (
        (0, "option concepts: must be a positive integer"),
        (2, "concepts: clouds and water have 3 images each"),
        (6, "option concepts: there are 5, not 6"),
    ):
        with refused(message):
            nus_wide.describe([source], concepts=concepts, images="none")


def in_list(old, new):
    return changed("Imagelist.txt", lambda d: d.replace(old, new, 1))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (changed("Labels_sky.txt", lambda d: d[:-2]), "Labels_sky.txt: has 8 lines, not 9"),
        (changed("Labels_sky.txt", lambda d: b"2" + d[1:]), "Labels_sky.txt: line 1 is '2'; .* 0 or 1"),
        (changed("Labels_sky.txt", None), "Concepts81.txt: there are no labels of the concept 'sky'"),
        (
            lambda f: {p.replace("Labels_sky.", "Labels_skye."): d for p, d in f.items()},
            "does not have the concept 'skye'; did you mean 'sky'",
        ),
        (changed("Imagelist.txt", lambda d: d[: len(d) // 2]), "Imagelist.txt: has 5 lines, not 9"),
        (changed("Imagelist.txt", lambda d: b"\xff" + d), "Imagelist.txt: line 1 is not UTF-8 text"),
        (in_list(b"0002_12", b"0001_11"), "line 2: 'actor/0001_11.jpg' was there before"),
        (in_list(b"C:\\ImageData\\Flickr\\actor\\", b""), "line 1 is '0001_11.jpg', no <folder>"),
        (changed("Imagelist.txt", None), "no Imagelist.txt in the sources"),
        (lambda f: f | {"x/Imagelist.txt": b""}, "x/Imagelist.txt: there is another Imagelist.txt, "),
        (lambda f: f | small_texts(), "label_ids.txt: there are labels in .*Labels_animal.txt too"),
        (lambda f: image_list(), "the sources hold no labels; labels are AllLabels"),
        (lambda f: {p: b"0\n" * 9 if "Labels_" in p else d for p, d in f.items()}, "have 0 images each"),
    ],
)
def test_damaged_texts(tmp_path, damage, message):
    source = written(tmp_path / "texts.zip", damage(ground_truth() | concepts_list() | image_list()))
    with refused(pattern=message):
        nus_wide.describe([source], concepts=3)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (changed("mul_label_ids.txt", lambda d: d + b"9\t1\n"), "line 9 is about row 9; rows must ascend"),
        (changed("mul_label_ids.txt", lambda d: b"\n" + d), "line 1 is ''; it must be 'row<TAB>id"),
        (changed("mul_label_ids.txt", lambda d: d.replace(b"4\t3", b"4\t")), "line 4 is '4'; it must be"),
        (changed("/label_ids.txt", lambda d: d + b"5\n"), "label_ids.txt: line 6 is '5'; it must be"),
        (changed("/label_ids.txt", lambda d: d + b"3\tsea\n"), "line 6: '3 sea' is there before"),
        (changed("/label_ids.txt", lambda d: d + b"5\tsea\n"), "has 5 concepts; there are labels of 6"),
        (changed("/label_ids.txt", None), "mul_label_ids.txt: needs label_ids.txt beside it"),
    ],
)
def test_damaged_small_texts(tmp_path, damage, message):
    files = damage({f"nus-wide/{name}": contents for name, contents in small_texts().items()})
    source = written(tmp_path / "texts", files)
    with refused("" if "labels of 6" in message else str(source), message):
        nus_wide.describe([source], concepts=3, images="none")


@pytest.mark.thorough
def test_the_real_ground_truth(monkeypatch, tmp_path):
    """Counts that were published, and checksums of matrices that were made from the files independently."""
    monkeypatch.undo()
    real_texts = [resource(f"nus-wide/{name}.txt") for name in ("mul_label_ids", "label_ids")]
    description = nus_wide.load(real_texts, tmp_path, images="none")
    labels = np.load(tmp_path / "labels.npy")
    assert labels.shape == (195_834, 21) and description.items == 195_834
    counts = description.metadata()["class_counts"]
    assert (counts["sky"], counts["clouds"], counts["mountain"]) == (74_190, 54_087, 5_099)
    assert list(counts.values()) == sorted(counts.values(), reverse=True) and sum(counts.values()) == 411_438
    assert np.bincount(labels.sum(axis=1)).tolist() == [
        *(0, 89_862, 48_899, 27_472, 15_083, 8_377, 4_315, 1_414, 357, 49, 6)
    ]
    digest = hashlib.sha256(labels.tobytes()).hexdigest()
    assert digest == "36c96c4e3675732bde8b4ef917ef7c32f2ebfb7cbae509f0ccd5dac837f2ad5d"
    every = nus_wide._labels(_texts.texts_among(real_texts, nus_wide._is_text)[0])[0]
    digest = hashlib.sha256(every.tobytes()).hexdigest()
    assert every.shape == (269_648, 81)
    assert digest == "d66bc00a204fa898b63d48183287d1759b90df750a896732796f09af47c920c7"
    split = splits.draw({"kind": "per_label", "query": 100, "training": 500}, description, 0)
    assert [len(rows) for rows in (split.query, split.training, split.database)] == [2_100, 10_500, 193_734]
