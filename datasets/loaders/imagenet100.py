"""ImageNet100: the 100 classes of ILSVRC2012 that HashNet's lists name, and the split that they make.

Sources are folders, zips, tars and text files in any order; contents are inferred from file names:

- the lists (see `datasets.readers.image_lists`), with one label for each image
- the images, found by file name: ILSVRC2012_img_train.tar (a tar of one tar for each class, of which the 100
  that are wanted are read) and ILSVRC2012_img_val.tar; or folders, zips or tars of images

A tar is taken for images only: it would have to be read through for anything else.

The training images are part of the database. Rows are the queries and then the database, both by file name:
their order depends neither on the form of the lists nor on that of the images.

Source: Z. Cao et al., "HashNet: Deep Learning to Hash by Continuation", ICCV 2017, github.com/thuml/HashNet;
O. Russakovsky et al., "ImageNet Large Scale Visual Recognition Challenge", IJCV 2015.
"""

import re
from pathlib import Path

import numpy as np

from datasets.readers.image_lists import is_list, read_list
from datasets.readers.photographs import Labelled, PhotographLoader
from datasets.readers.texts import matched, texts_among

CLASSES = 100
# Images on each list.
COUNTS = {"train": 13_000, "test": 5_000, "database": 128_503}
# The parts of the given split: on the test list; on the database list alone; on the training list too.
SPLIT_NAMES = ["query", "database", "training"]

QUERY_FILE = re.compile(r"ILSVRC2012_val_[0-9]{8}\.JPEG")
DATABASE_FILE = re.compile(r"(n[0-9]{8})_[0-9]+\.JPEG")


def _labelled(sources: list[Path], photographs: bool) -> Labelled:
    """Labels int64 (n,), the class names (WordNet ids) and the given split, from the lists."""
    texts, pictures = texts_among(sources, is_list)
    classes = {}
    for kind, count in COUNTS.items():
        image = QUERY_FILE if kind == "test" else DATABASE_FILE
        found = read_list(texts, kind, image, CLASSES, [count], exactly_one=True)
        classes[kind] = {name: labels.index("1") for name, labels in found.items()}
    class_names = _class_names(classes["database"])
    for name, number in classes["train"].items():
        if classes["database"].get(name) != number:
            otherwise = f"of class {classes['database'][name]}" if name in classes["database"] else "not"
            raise ValueError(
                f"the lists disagree: '{name}' is of class {number} on the training list and {otherwise} "
                "on the database list"
            )
    queries, database = sorted(classes["test"]), sorted(classes["database"])
    labels = [classes["test"][name] for name in queries]
    labels += [classes["database"][name] for name in database]
    given = [0] * len(queries) + [2 if name in classes["train"] else 1 for name in database]
    return Labelled(
        queries + database,
        pictures,
        np.array(labels, np.int64),
        class_names,
        np.array(given, np.int64),
        SPLIT_NAMES,
        nested={f"{name}.tar" for name in class_names},
    )


def _class_names(classes: dict[str, int]) -> list[str]:
    """The WordNet id of each class, from the names of the database's images."""
    names: dict[int, str] = {}
    for name, number in classes.items():
        identifier = matched(DATABASE_FILE, name)
        if names.setdefault(number, identifier) != identifier:
            raise ValueError(f"the database list has {names[number]} and {identifier} both as class {number}")
    if len(names) != CLASSES or len(set(names.values())) != CLASSES:
        by_name = len(set(names.values()))
        raise ValueError(
            f"the database list has {len(names)} classes by label and {by_name} by name, not {CLASSES}"
        )
    return [names[number] for number in range(CLASSES)]


OPTIONS = {
    "size": "[height, width] in pixels that images are resized to (bicubic; default [227, 227])",
    "images": "'resized' (default), or 'none': labels only, the items are one zero each",
    "missing": "'error' (default), or 'skip': leave out images that are missing or cannot be decoded",
}
LOADER = PhotographLoader("imagenet100", (227, 227), _labelled, OPTIONS)
describe, load = LOADER.describe, LOADER.load
