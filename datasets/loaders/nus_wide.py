"""NUS-WIDE: the images that carry at least one of the most frequent concepts, and these as multi-hot labels.

Sources are folders, zips, tars and text files in any order; contents are inferred from file names:

- labels, either the official Groundtruth (AllLabels/Labels_<concept>.txt, a line of 0 or 1 for each of the
  269,648 images) or two small files: mul_label_ids.txt (lines "row<TAB>id id ...", rows counted from 0 in the
  official order, images without concepts left out) and label_ids.txt (lines "id<TAB>concept")
- Concepts81.txt of ConceptsList, optional: the names that the labels must have
- Imagelist.txt of ImageList: the image of each row, as "C:\\ImageData\\Flickr\\<folder>\\<number>_<id>.jpg"
- the images, found by file name, and by folder where two have the same file name

A tar is taken for images only: it would have to be read through for anything else.

Rows are in the official order, label columns by descending frequency (alphabetical where equally frequent):
neither depends on the form of the sources.

Source: T.-S. Chua et al., "NUS-WIDE: A Real-World Web Image Database from National University of Singapore",
CIVR 2009. The 21 most frequent concepts are those of "Hashing as Tie-Aware Learning to Rank" (He et al., CVPR
2018) and of most papers on hashing.
"""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from datasets.readers.photographs import Labelled, PhotographLoader
from datasets.readers.texts import matched, shown, texts_among
from datasets.specification import positive
from tiebench.messages import nearest
from tiebench.texts import Text, fields, integer
from tiebench.texts import labels as labels_of

IMAGES = 269_648
CONCEPTS = 81
DEFAULT_CONCEPTS = 21

# The ground truth holds files for parts of the images too, in another folder.
LABELS_OF_CONCEPT = re.compile(r".*/AllLabels/Labels_[^/]+\.txt", re.DOTALL)
LABELS_FILE = re.compile(r"Labels_([^/]+)\.txt", re.DOTALL)
KNOWN_TEXTS = ("Concepts81.txt", "Imagelist.txt", "label_ids.txt", "mul_label_ids.txt")


def _labelled(sources: list[Path], photographs: bool, concepts: int = DEFAULT_CONCEPTS) -> Labelled:
    """Labels uint8 (n, concepts) from the text files; there is no given split.

    Raises ValueError, too, where equal frequencies leave open which concepts are the most frequent ones.
    """
    if positive(concepts, "option concepts") > CONCEPTS:
        raise ValueError(f"option concepts: there are {CONCEPTS}, not {concepts}")
    texts, pictures = texts_among(sources, _is_text)
    labels, names = _labels(texts)
    columns = _most_frequent(labels, names, concepts)
    labels = labels[:, columns]
    kept = np.asarray(labels.any(axis=1))
    if not kept.any():
        raise ValueError("the ground truth of NUS-WIDE gives no image any label")
    class_names = [names[column] for column in columns]
    if not photographs:
        return Labelled((), pictures, labels[kept], class_names)
    paths = _image_list(texts)
    wanted = [path for path, keep in zip(paths, kept) if keep]
    return Labelled(wanted, pictures, labels[kept], class_names, row_of=_by_folder_and_name(paths, kept))


def _by_folder_and_name(paths: list[str], kept: np.ndarray) -> Callable[[str], int | None]:
    """The row of an image file, or None for other files.

    paths: the image list; kept: bool (269648,), which of its images are items.
    """
    rows = np.where(kept, np.cumsum(kept) - 1, -1)
    row_of: dict[str, int | None] = {}
    for path, row in zip(paths, rows.tolist()):
        row = row if row >= 0 else None
        name = path.rpartition("/")[2].lower()
        # None marks equal names: the folder decides.
        row_of[name] = None if name in row_of else row
        row_of[path.lower()] = row

    def found(path: str) -> int | None:
        parts = path.replace("\\", "/").lower().split("/")
        return row_of.get("/".join(parts[-2:]), row_of.get(parts[-1]))

    return found


def _is_text(path: str) -> bool:
    return path.rpartition("/")[2] in KNOWN_TEXTS or bool(LABELS_OF_CONCEPT.fullmatch(path))


def _labels(texts: dict[str, Text]) -> tuple[np.ndarray, list[str]]:
    """uint8 (269648, 81), columns in alphabetical order of concepts, and the names of these."""
    of_concepts = sorted(name for name in texts if LABELS_FILE.fullmatch(name))
    small = [name for name in ("label_ids.txt", "mul_label_ids.txt") if name in texts]
    if of_concepts and small:
        raise ValueError(
            f"{texts[small[0]].path}: there are labels in {texts[of_concepts[0]].path} too; give one of both"
        )
    if not of_concepts and len(small) < 2:
        lacking = "mul_label_ids.txt" if "label_ids.txt" in small else "label_ids.txt"
        seen = f"{texts[small[0]].path}: needs {lacking} beside it" if small else "the sources hold no labels"
        raise ValueError(
            f"{seen}; labels are AllLabels/Labels_<concept>.txt, or label_ids.txt and mul_label_ids.txt"
        )
    labels, names = _labels_by_concept(texts, of_concepts) if of_concepts else _labels_by_image(texts)
    if "Concepts81.txt" in texts:
        _check_concepts(texts["Concepts81.txt"], names)
    if len(names) != CONCEPTS:
        raise ValueError(f"NUS-WIDE has {CONCEPTS} concepts; there are labels of {len(names)}")
    return labels, names


def _labels_by_concept(texts: dict[str, Text], files: list[str]) -> tuple[np.ndarray, list[str]]:
    named = sorted((matched(LABELS_FILE, file), file) for file in files)
    labels = np.zeros((IMAGES, len(named)), np.uint8)
    for column, (_, file) in enumerate(named):
        text = texts[file]
        values = text.contents.split()
        if len(values) != IMAGES:
            raise ValueError(f"{text.path}: has {len(values)} lines, not {IMAGES}")
        joined = np.frombuffer(b"".join(values), np.uint8)
        if len(joined) != IMAGES or not np.isin(joined, (ord("0"), ord("1"))).all():
            line = next(line for line, value in enumerate(values, start=1) if value not in (b"0", b"1"))
            raise ValueError(f"{text.path}: line {line} is '{shown(values[line - 1])}'; each must be 0 or 1")
        labels[:, column] = joined - ord("0")
    return labels, [concept for concept, _ in named]


def _labels_by_image(texts: dict[str, Text]) -> tuple[np.ndarray, list[str]]:
    concepts = texts["label_ids.txt"]
    name_of: dict[int, str] = {}
    for number, line in enumerate(concepts.lines(), start=1):
        try:
            identifier, name = fields(line)
            concept = integer(identifier, 0)
        except ValueError as error:
            raise ValueError(
                f"{concepts.path}: line {number} is '{shown(line)}'; it must be 'id<TAB>concept'"
            ) from error
        if concept in name_of or name in name_of.values():
            raise ValueError(
                f"{concepts.path}: line {number}: '{shown(line)}' is there before in part or whole"
            )
        name_of[concept] = name
    names = sorted(name_of.values())
    column_of = {identifier: names.index(name) for identifier, name in name_of.items()}

    of_images = texts["mul_label_ids.txt"]
    rows, columns, before = [], [], -1
    for number, line in enumerate(of_images.lines(), start=1):
        try:
            row, *identifiers = labels_of(line)
        except ValueError:
            identifiers = []
        if not identifiers or row < 0:
            raise ValueError(
                f"{of_images.path}: line {number} is '{shown(line)}'; it must be 'row<TAB>id id ...'"
            )
        if not before < row < IMAGES:
            raise ValueError(
                f"{of_images.path}: line {number} is about row {row}; rows must ascend and stay below "
                f"{IMAGES}"
            )
        before = row
        for concept in identifiers:
            if concept not in column_of:
                raise ValueError(
                    f"{of_images.path}: line {number} has the id '{concept}', which is not in {concepts.path}"
                )
            rows.append(before)
            columns.append(column_of[concept])
    labels = np.zeros((IMAGES, len(names)), np.uint8)
    labels[rows, columns] = 1
    return labels, names


def _check_concepts(text: Text, names: list[str]) -> None:
    listed = [line.strip() for line in text.lines()]
    for name in names:
        if name not in listed:
            raise ValueError(f"{text.path}: does not have the concept '{name}'{_nearest_of(name, listed)}")
    for name in listed:
        if name not in names:
            raise ValueError(f"{text.path}: there are no labels of the concept '{shown(name)}'")


def _nearest_of(name: str, listed: list[str]) -> str:
    close = nearest(name, listed, 1)
    return f"; did you mean '{shown(close[0])}'?" if close else f"; it has {len(listed)} concepts"


def _most_frequent(labels: np.ndarray, names: list[str], concepts: int) -> np.ndarray:
    """Columns of that many concepts, the most frequent first; int64 (concepts,)."""
    counts = labels.sum(axis=0, dtype=np.int64)
    order = np.argsort(-counts, kind="stable")
    if concepts < len(order) and counts[order[concepts - 1]] == counts[order[concepts]]:
        inside, outside = (names[order[place]] for place in (concepts - 1, concepts))
        raise ValueError(
            f"option concepts: {inside} and {outside} have {counts[order[concepts]]} images each, so the "
            f"{concepts} most frequent concepts are not defined; choose another number"
        )
    return order[:concepts]


def _image_list(texts: dict[str, Text]) -> list[str]:
    """ "<folder>/<file name>" of each row."""
    if "Imagelist.txt" not in texts:
        raise ValueError(
            "no Imagelist.txt in the sources: it says which image a row of the labels is about (option "
            "images: none does without)"
        )
    text = texts["Imagelist.txt"]
    paths = [line.strip().replace("\\", "/") for line in text.lines()]
    if len(paths) != IMAGES:
        raise ValueError(f"{text.path}: has {len(paths)} lines, not {IMAGES}")
    paths = ["/".join(path.split("/")[-2:]) for path in paths]
    seen = set()
    for number, path in enumerate(paths, start=1):
        if not re.fullmatch(r"[^/]+/[^/]+", path):
            raise ValueError(f"{text.path}: line {number} is '{shown(path)}', no <folder>\\<file name>")
        if path.lower() in seen:
            raise ValueError(f"{text.path}: line {number}: '{shown(path)}' was there before")
        seen.add(path.lower())
    return paths


OPTIONS = {
    "concepts": "how many concepts, the most frequent ones, are labels (default 21)",
    "size": "[height, width] in pixels that images are resized to (bicubic; default [224, 224])",
    "images": "'resized' (default), or 'none': labels only, the items are one zero each",
    "missing": "'error' (default), or 'skip': leave out images that are missing or cannot be decoded",
}
LOADER = PhotographLoader("nus_wide", (224, 224), _labelled, OPTIONS)
describe, load = LOADER.describe, LOADER.load
