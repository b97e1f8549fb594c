"""MIRFLICKR-25K: images with 24 potential concepts, 14 of which are there again where they are prominent.

Sources are folders, zips, tars (of images only) and text files in any order; contents are inferred from file
names:

- labels, either the official annotations (<concept>.txt and <concept>_r1.txt: numbers of images, from 1), or
  lists in the form of HashNet's (see `datasets.readers.image_lists`) with 38 columns, such as those of
  swuxyj/DeepHash-pytorch, which make a split, too
- doc/common_tags.txt and meta/tags/tags<number>.txt of mirflickr25k.zip, for `items: tagged` only
- the images, found by file name: im<number>.jpg

A tar is taken for images only: it would have to be read through for anything else.

Rows are in the order of the images' numbers, label columns in the alphabetical order of concepts, each
<concept>_r1 after its <concept>: neither depends on the form of the sources.

Source: M. J. Huiskes, M. S. Lew, "The MIR Flickr Retrieval Evaluation", MIR 2008. `items: tagged` cleans as
Q.-Y. Jiang, W.-J. Li, "Deep Cross-Modal Hashing", CVPR 2017, according to github.com/iTomxy/data.
"""

import re
from pathlib import Path

import numpy as np

from datasets.readers.image_lists import as_matrix, is_list, merged, ranks, read_list
from datasets.readers.photographs import Labelled, PhotographLoader
from datasets.readers.texts import matched, shown, texts_among
from tiebench.messages import did_you_mean
from tiebench.texts import Text, integer

IMAGES = 25_000
# Images on each list.
COUNTS = {"train": (4_000,), "test": (1_000,), "database": (20_000,)}
POTENTIAL = (
    *("animals", "baby", "bird", "car", "clouds", "dog", "female", "flower", "food", "indoor", "lake"),
    *("male", "night", "people", "plant_life", "portrait", "river", "sea", "sky", "structures", "sunset"),
    *("transport", "tree", "water"),
)
RELEVANT = (
    *("baby", "bird", "car", "clouds", "dog", "female", "flower", "male", "night", "people", "portrait"),
    *("river", "sea", "tree"),
)
CONCEPTS = tuple(sorted((*POTENTIAL, *(f"{name}_r1" for name in RELEVANT))))

IMAGE_FILE = re.compile(r"im([1-9][0-9]{0,4})\.jpg")
TEXTS_OF_TAGS = re.compile(r".*/(?:doc/common_tags|tags/tags[1-9][0-9]{0,4})\.txt", re.DOTALL)


def _labelled(
    sources: list[Path], photographs: bool, concepts: int = len(CONCEPTS), items: str = "all"
) -> Labelled:
    """Labels uint8 (n, 38 or 24), the concepts and, of lists, the given split."""
    if isinstance(concepts, bool) or concepts not in (len(CONCEPTS), len(POTENTIAL)):
        raise ValueError(f"option concepts: must be {len(CONCEPTS)} or {len(POTENTIAL)}, not {concepts!r}")
    allowed = ("all", "labelled", "tagged")
    if items not in allowed:
        raise ValueError(f"option items: unknown value {items!r}{did_you_mean(items, allowed)}")
    annotations = {f"{name}.txt" for name in CONCEPTS}

    def wanted(path: str) -> bool:
        if items == "tagged" and TEXTS_OF_TAGS.fullmatch(path):
            return True
        return is_list(path) or path.rpartition("/")[2] in annotations

    texts, pictures = texts_among(sources, wanted, lambda path: bool(TEXTS_OF_TAGS.fullmatch(path)))
    labels, parts = _labels(texts)
    class_names = CONCEPTS if concepts == len(CONCEPTS) else POTENTIAL
    labels = labels[:, [CONCEPTS.index(name) for name in class_names]]
    kept = np.ones(len(labels), bool) if items == "all" else labels.any(axis=1)
    if items == "tagged":
        kept &= _tagged(texts)
    if not kept.any():
        raise ValueError(f"option items: {items} leaves no image of MIRFLICKR")
    names = [f"im{row + 1}.jpg" for row in np.flatnonzero(kept)]
    split_names, given = (None, None) if parts is None else ranks([parts[name] for name in names])
    return Labelled(names, pictures, labels[kept], class_names, given, split_names)


def _labels(texts: dict[str, Text]) -> tuple[np.ndarray, dict[str, str] | None]:
    """uint8 (25000, 38), and the part of each image by file name, if lists make a split."""
    lists = [name for name in texts if is_list(name)]
    annotations = [name for name in texts if name.removesuffix(".txt") in CONCEPTS]
    if lists and annotations:
        raise ValueError(
            f"{texts[lists[0]].path}: there are labels in {texts[annotations[0]].path} too; give one of both"
        )
    if lists:
        return _labels_of_lists(texts)
    if not annotations:
        raise ValueError(
            "the sources hold no labels; labels are <concept>.txt of mirflickr25k_annotations_v080.zip, or "
            "the lists train.txt, test.txt and database.txt"
        )
    labels = np.zeros((IMAGES, len(CONCEPTS)), np.uint8)
    for column, concept in enumerate(CONCEPTS):
        if f"{concept}.txt" not in texts:
            raise ValueError(f"no {concept}.txt in the sources, beside {texts[annotations[0]].path}")
        text = texts[f"{concept}.txt"]
        for number, line in enumerate(text.lines(), start=1):
            try:
                image = integer(line.strip(), 1, IMAGES)
            except ValueError as error:
                raise ValueError(
                    f"{text.path}: line {number} is '{shown(line)}'; it must be the number of an image, "
                    f"1 to {IMAGES}"
                ) from error
            if labels[image - 1, column]:
                raise ValueError(f"{text.path}: line {number}: image {image} was there before")
            labels[image - 1, column] = 1
    return labels, None


def _labels_of_lists(texts: dict[str, Text]) -> tuple[np.ndarray, dict[str, str]]:
    of_images, parts = merged(
        {kind: read_list(texts, kind, IMAGE_FILE, len(CONCEPTS), counts) for kind, counts in COUNTS.items()}
    )
    names = [f"im{number}.jpg" for number in range(1, IMAGES + 1)]
    for name in names:
        if name not in of_images:
            raise ValueError(f"{name} is on none of the lists, which must name all {IMAGES} images")
    if len(of_images) != IMAGES:
        other = max(of_images, key=lambda name: int(matched(IMAGE_FILE, name)))
        raise ValueError(f"the lists name {other}; the images are im1.jpg to im{IMAGES}.jpg")
    return as_matrix([of_images[name] for name in names]), parts


def _tagged(texts: dict[str, Text]) -> np.ndarray:
    """bool (25000,), the images with at least one of the tags of common_tags.txt.

    Tags are compared as bytes: they come in many languages, and nothing states their encoding.
    """
    if "common_tags.txt" not in texts:
        raise ValueError(
            "no doc/common_tags.txt in the sources: option items: tagged needs mirflickr25k.zip whole"
        )
    common = {words[0] for line in texts["common_tags.txt"].contents.splitlines() if (words := line.split())}
    tagged = np.zeros(IMAGES, bool)
    for row in range(IMAGES):
        text = texts.get(f"tags{row + 1}.txt")
        if text is None:
            raise ValueError(
                f"no meta/tags/tags{row + 1}.txt in the sources: option items: tagged needs mirflickr25k.zip "
                "whole"
            )
        tagged[row] = any(line.strip() in common for line in text.contents.splitlines())
    return tagged


OPTIONS = {
    "concepts": "38 (default), or 24: the potential concepts alone",
    "items": "'all' images (default), 'labelled': those with a concept, or 'tagged': with a common tag, too",
    "size": "[height, width] in pixels that images are resized to (bicubic; default [224, 224])",
    "images": "'resized' (default), or 'none': labels only, the items are one zero each",
    "missing": "'error' (default), or 'skip': leave out images that are missing or cannot be decoded",
}
LOADER = PhotographLoader("mirflickr", (224, 224), _labelled, OPTIONS)
describe, load = LOADER.describe, LOADER.load
