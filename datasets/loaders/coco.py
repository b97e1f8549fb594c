"""MS-COCO 2014: images of train2014 and val2014 that hold at least one of 80 categories, as multi-hot labels.

Sources are folders, zips, tars (of images only), and .txt or .json files, in any order; contents are inferred
from file names. Labels are one of

- HashNet's lists (see `datasets.readers.image_lists`), which make a split, too. HashNet's database list holds
  the queries and not the training images. An image's part of the split names all lists that it is on, such as
  "query and database"; a protocol puts the parts together, and none can have an item as query and in the
  database
- instances_train2014.json and instances_val2014.json of annotations_trainval2014.zip; no split is given

The images are found by file name, in train2014.zip and val2014.zip. Those without a category are left out.

Rows are in the order of file names, label columns in the alphabetical order of categories, which is that of
HashNet's lists: neither depends on the form of the sources. Annotations are read object by object, so memory
does not grow with them; they are read in every dry run, too, which the lists make faster.

Source: T.-Y. Lin et al., "Microsoft COCO: Common Objects in Context", ECCV 2014; Z. Cao et al., "HashNet:
Deep Learning to Hash by Continuation", ICCV 2017, github.com/thuml/HashNet.
"""

import re
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from datasets.readers.archives import is_zip, streams
from datasets.readers.image_lists import as_matrix, is_list, merged, ranks, read_list
from datasets.readers.json_arrays import array_elements
from datasets.readers.photographs import Labelled, PhotographLoader
from datasets.readers.texts import matched, shown, texts_among
from tiebench.messages import did_you_mean

CATEGORIES = (
    *("airplane", "apple", "backpack", "banana", "baseball bat", "baseball glove", "bear", "bed", "bench"),
    *("bicycle", "bird", "boat", "book", "bottle", "bowl", "broccoli", "bus", "cake", "car", "carrot", "cat"),
    *("cell phone", "chair", "clock", "couch", "cow", "cup", "dining table", "dog", "donut", "elephant"),
    *("fire hydrant", "fork", "frisbee", "giraffe", "hair drier", "handbag", "horse", "hot dog", "keyboard"),
    *("kite", "knife", "laptop", "microwave", "motorcycle", "mouse", "orange", "oven", "parking meter"),
    *("person", "pizza", "potted plant", "refrigerator", "remote", "sandwich", "scissors", "sheep", "sink"),
    *("skateboard", "skis", "snowboard", "spoon", "sports ball", "stop sign", "suitcase", "surfboard"),
    *("teddy bear", "tennis racket", "tie", "toaster", "toilet", "toothbrush", "traffic light", "train"),
    *("truck", "tv", "umbrella", "vase", "wine glass", "zebra"),
)
# Images of the two official parts, and on the lists. Database lists: HashNet's, with queries and without
# training images; with both left out; with training images and without queries.
IMAGES = {"train2014": 82_783, "val2014": 40_504}
COUNTS = {"train": (10_000,), "test": (5_000,), "database": (112_218, 107_218, 117_218)}

IMAGE_FILE = re.compile(r"COCO_(?:train|val)2014_[0-9]{12}\.jpg")
ANNOTATIONS = re.compile(r"(?:.*/)?instances_(train2014|val2014)\.json", re.DOTALL)


def _labelled(sources: list[Path], photographs: bool) -> Labelled:
    """Labels uint8 (n, 80), the categories and, of lists, the given split."""
    texts, pictures = texts_among([source for source in sources if not _is_json(source)], is_list)
    annotated = next((path for path, _, _ in _annotation_streams(sources)), None)
    if texts and annotated:
        raise ValueError(
            f"{next(iter(texts.values())).path}: there are labels in {annotated} too; give one of both"
        )
    if not texts and not annotated:
        raise ValueError(
            "the sources hold no labels; labels are HashNet's lists train.txt, test.txt and "
            "database.txt, or instances_train2014.json and instances_val2014.json"
        )
    parts: dict[str, str] | None = None
    if texts:
        lists = {
            kind: read_list(texts, kind, IMAGE_FILE, len(CATEGORIES), counts)
            for kind, counts in COUNTS.items()
        }
        of_images, parts = merged(lists)
        every = sorted(of_images)
        labels = as_matrix([of_images[name] for name in every])
    else:
        every, labels = _annotated(sources)
    labelled = np.asarray(labels.any(axis=1))
    names = [name for name, keep in zip(every, labelled) if keep]
    if not names:
        raise ValueError("the labels of COCO give no image any category")
    split_names, given = (None, None) if parts is None else ranks([parts[name] for name in names])
    return Labelled(names, pictures, labels[labelled], CATEGORIES, given, split_names)


def _is_json(source: Path) -> bool:
    return source.is_file() and source.suffix == ".json"


Stream = Callable[[int], bytes]


def _annotation_streams(sources: list[Path]) -> Iterator[tuple[str, str, Stream]]:
    """(path, train2014 or val2014, function that reads) of each file of annotations."""
    for source in sources:
        if _is_json(source):
            path = str(source.absolute()).replace("\\", "/")
            if match := ANNOTATIONS.fullmatch(path):
                with source.open("rb") as file:
                    yield path, match[1], file.read
        elif source.is_dir() or is_zip(source):
            for name, read in streams(source, lambda name: bool(ANNOTATIONS.fullmatch(name))):
                yield f"{source.absolute()}/{name}", matched(ANNOTATIONS, name), read


def _annotated(sources: list[Path]) -> tuple[list[str], np.ndarray]:
    """File names of all images, sorted, and their labels uint8 (n, 80)."""
    seen: dict[str, str] = {}
    names: list[str] = []
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    for path, part, read in _annotation_streams(sources):
        if part in seen:
            raise ValueError(f"{path}: there is another one, {seen[part]}")
        seen[part] = path
        of_part, images, columns = _annotations(path, part, read)
        pairs.append((images + len(names), columns))
        names += of_part
    for part in IMAGES:
        if part not in seen:
            raise ValueError(f"no instances_{part}.json in the sources, beside {next(iter(seen.values()))}")
    labels = np.zeros((len(names), len(CATEGORIES)), np.uint8)
    for images, columns in pairs:
        labels[images, columns] = 1
    order = sorted(range(len(names)), key=names.__getitem__)
    return [names[row] for row in order], labels[order]


def _annotations(path: str, part: str, read: Stream) -> tuple[list[str], np.ndarray, np.ndarray]:
    """File names of the images, and of each annotation the place of its image among them and its column."""
    image = re.compile(rf"COCO_{part}_[0-9]{{12}}\.jpg")
    files: dict[int, str] = {}
    categories: dict[int, str] = {}
    of_image, of_category = array("q"), array("q")
    for key, entry in array_elements(read, path, ("images", "annotations", "categories")):
        if key == "annotations":
            of_image.append(_integer(entry, "image_id", path, key))
            of_category.append(_integer(entry, "category_id", path, key))
            continue
        found, what = (files, "file_name") if key == "images" else (categories, "name")
        identifier, name = _integer(entry, "id", path, key), entry.get(what)
        if identifier in found:
            raise ValueError(f"{path}: {key}: the id {identifier} is there twice")
        if not isinstance(name, str) or (key == "images" and not image.fullmatch(name)):
            raise ValueError(f"{path}: {key}: '{what}' of id {identifier} is {shown(repr(name))}")
        found[identifier] = name
    if len(files) != IMAGES[part] or len(set(files.values())) != IMAGES[part]:
        raise ValueError(f"{path}: has {len(set(files.values()))} images, not {IMAGES[part]}")
    for name in categories.values():
        if name not in CATEGORIES:
            raise ValueError(f"{path}: unknown category '{shown(name)}'{did_you_mean(name, CATEGORIES)}")
    if sorted(categories.values()) != list(CATEGORIES):
        raise ValueError(f"{path}: has {len(categories)} categories, not the {len(CATEGORIES)} of COCO")
    place = {identifier: index for index, identifier in enumerate(files)}
    column = {identifier: CATEGORIES.index(name) for identifier, name in categories.items()}
    return (
        list(files.values()),
        _looked_up(of_image, place, f"{path}: an annotation is of image"),
        _looked_up(of_category, column, f"{path}: an annotation is of category"),
    )


def _integer(entry: dict, key: str, path: str, where: str) -> int:
    value = entry.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise ValueError(f"{path}: {where}: '{key}' must be an integer, not {shown(repr(value))}")
    return value


def _looked_up(identifiers: array, found: dict[int, int], message: str) -> np.ndarray:
    try:
        return np.fromiter((found[identifier] for identifier in identifiers), np.int64, len(identifiers))
    except KeyError as error:
        raise ValueError(f"{message} {error}, which is not in the file") from error


OPTIONS = {
    "size": "[height, width] in pixels that images are resized to (bicubic; default [224, 224])",
    "images": "'resized' (default), or 'none': labels only, the items are one zero each",
    "missing": "'error' (default), or 'skip': leave out images that are missing or cannot be decoded",
}
LOADER = PhotographLoader("coco", (224, 224), _labelled, OPTIONS)
describe, load = LOADER.describe, LOADER.load
