"""Items of backbones: the images of a folder or archive, or the texts of a file, from any row on."""

from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from datasets.loaders.images import DEFAULT_EXTENSIONS, DEFAULT_PATHS, find, formats_of
from datasets.readers.archives import DamagedArchiveError, members
from datasets.readers.image_lists import ranks
from datasets.readers.npz import check_printable
from datasets.readers.pictures import decoding, in_threads, upright
from datasets.readers.text_items import ENDINGS, TextItems, read_text_items
from networks.backbones import BackboneError
from networks.base.features import ROWS_A_SHARD
from tiebench.messages import one_line, printable


class Images:
    """Images of a folder, tar or zip, in its own order.

    kind, count, names (their paths); identity: what tells changed images from the same ones; columns: arrays
    of the file of features. Raises as `datasets.loaders.images.find`.
    """

    kind = "images"

    def __init__(self, source: Path, paths: str = DEFAULT_PATHS, corrupt: str = "error") -> None:
        self.source, found, has_split = find(source, paths, needs_class=False)
        self.names, self.count, self.corrupt = list(found), len(found), corrupt
        self.formats = formats_of(DEFAULT_EXTENSIONS)
        self.columns: dict[str, np.ndarray] = {"ids": texts_array(source, "ids", self.names)}
        classes = [label for _, label, _ in found.values()]
        if "{class}" in paths:
            names, labels = ranks(classes)
            self.columns |= {"y": labels, "class_names": texts_array(source, "class_names", names)}
        if has_split:
            self.columns["split"] = texts_array(source, "split", [split for split, _, _ in found.values()])
        self.identity = [self.names, self._stamps(), corrupt]

    def _stamps(self) -> list[list[int]]:
        # Sizes and times, as make would: reading a hundred gigabytes twice is no price for a resumption.
        files = [self.source / name for name in self.names] if self.source.is_dir() else [self.source]
        found = [file.stat() for file in files if file.exists()]
        return [[one.st_size, one.st_mtime_ns] for one in found]

    def step(self, batch_size: int) -> int:
        """Items that are encoded at once."""
        return batch_size

    def groups(self, start: int, step: int, prepare: Callable | None) -> Iterator[list]:
        """Lists of `step` prepared images, the last one shorter, from image `start` on; None stands for an
        image that cannot be decoded, if these are skipped.

        Images are decoded and prepared by threads, a few ahead. Raises ValueError for one that cannot be
        decoded otherwise, and for a source that has changed.
        """
        assert prepare is not None  # of every backbone of images
        group: list = []
        expected = start
        for row, made in in_threads(self._jobs(start, prepare)):
            if row != expected:
                raise ValueError(f"{self.source}: changed while it was read")
            expected += 1
            try:
                group.append(made.result())
            except (DamagedArchiveError, BackboneError):
                raise
            except ValueError as error:
                if self.corrupt != "skip":
                    raise ValueError(f"{error} (--corrupt skip leaves it out)") from error
                group.append(None)
            if len(group) == step:
                yield group
                group = []
        if expected != self.count:
            raise ValueError(f"{self.source}: changed while it was read")
        if group:
            yield group

    def _jobs(
        self, start: int, prepare: Callable
    ) -> Iterator[tuple[int, Callable[[], bytes], Callable[[bytes], object]]]:
        wanted = {name: row for row, name in enumerate(self.names)}
        for name, contents in members(self.source):
            row = wanted.get(name, -1)
            if row >= start:
                yield row, partial(self._read, name, contents), partial(self._prepared, prepare, name)

    def _read(self, name: str, contents: Callable[[], bytes]) -> bytes:
        with decoding(self.source, name, self.formats):
            return contents()

    def _prepared(self, prepare: Callable, name: str, contents: bytes) -> Any:
        with (
            decoding(self.source, name, self.formats),
            Image.open(BytesIO(contents), formats=self.formats) as image,
        ):
            pixels = upright(image)
        try:
            return prepare(pixels)
        except Exception as error:
            # What a library's own code raises says nothing against the image.
            raise BackboneError(
                f"the model's preprocessing of '{printable(name)}': {one_line(error)}"
            ) from error


class Texts:
    """Texts of a .txt, .tsv or .jsonl file; attributes and methods as those of `Images`."""

    kind = "texts"

    def __init__(self, source: Path) -> None:
        self.items: TextItems = read_text_items(source)
        self.source, self.count = self.items.path, self.items.count
        found = self.items.columns
        self.names = found.get("id")
        self.columns = {}
        if self.names is not None:
            self.columns["ids"] = texts_array(source, "ids", self.names)
        if "class" in found:
            names, labels = ranks(found["class"])
            self.columns |= {"y": labels, "class_names": texts_array(source, "class_names", names)}
        if "split" in found:
            self.columns["split"] = texts_array(source, "split", found["split"])
        self.identity = [self.items.sha256]

    def step(self, batch_size: int) -> int:
        """Many batches at once: texts of like length are then encoded together."""
        return max(1, ROWS_A_SHARD // batch_size) * batch_size

    def groups(self, start: int, step: int, prepare: Callable | None) -> Iterator[list[str]]:
        """Lists of `step` texts, the last one shorter, from text `start` on."""
        texts, row = self.items.texts(start), start
        while group := list(islice(texts, step)):
            row += len(group)
            yield group
        if row != self.count:
            raise ValueError(f"{self.source}: changed while it was read")


def is_text(source: Path) -> bool:
    """Whether a source is a file of texts, by its ending."""
    return Path(Path(source).name.removesuffix(".gz")).suffix in ENDINGS


def texts_array(source: Path, name: str, values: list[str]) -> np.ndarray:
    """UTF-8 bytes (n,): a quarter of the memory of NumPy's own text.

    Raises ValueError for what the loader of the written file refuses, before the network runs.
    """
    check_printable(source, name, values)
    return np.array([value.encode() for value in values])
