"""Loaders of photographs that are found by name, and whose labels are in lists or annotations beside them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from datasets.description import Description
from datasets.files import creating_items
from datasets.readers.archives import existing
from datasets.readers.pictures import check_size, save_photographs
from datasets.specification import refuse_unknown_options
from tiebench.messages import did_you_mean


@dataclass(frozen=True)
class Labelled:
    """Photographs and their labels; no photograph was looked at.

    names:    what each row is called: the file name of its photograph, unless `row_of` finds it otherwise
    pictures: sources that may hold photographs
    row_of:   row of the file of that path in its source, or None for a file that is not wanted
    nested:   see `datasets.readers.archives.members`

    All others are of `Description`.
    """

    names: Sequence[str]
    pictures: Sequence[Path]
    labels: np.ndarray
    class_names: Sequence[str]
    given_split: np.ndarray | None = None
    split_names: list[str] | None = None
    row_of: Callable[[str], int | None] | None = None
    nested: Collection[str] = ()


@dataclass(frozen=True)
class PhotographLoader:
    """What the functions of such a loader's file have in common.

    name:     of the loader
    size:     (height, width), the default
    labelled: function of the sources, of whether photographs are wanted and of the loader's own options;
              returns `Labelled`, raises ValueError for an option or a text file that is wrong
    options:  option -> what it is
    """

    name: str
    size: tuple[int, int]
    labelled: Callable[..., Labelled]
    options: Mapping[str, str]

    def describe(self, sources: list[Path], **options) -> Description:
        """The labels, names of classes and, where there is one, the given split; images are not looked at.

        With `missing: skip`, `load` may therefore find fewer items.
        Raises FileNotFoundError where a source is missing; ValueError for a bad option, and for lists,
        annotations or other text files that are missing, there twice, incomplete or not as the loader's file
        says.
        """
        return self._read(sources, options)[1]

    def load(self, sources: list[Path], folder: Path, **options) -> Description:
        """Write items.npy uint8 (n, height, width, 3), labels.npy and given_split.npy; see `describe`.

        With `images: none` items are float32 (n, 1), all 0: good for all that needs labels only (splits,
        affinities, scoring codes that come from elsewhere); a method that is given them learns nothing.
        Raises as `describe`, and ValueError for images that are missing or damaged, unless `missing` is
        "skip".
        """
        found, description, missing = self._read(sources, options)
        path = Path(folder, "items.npy")
        if description.kind == "vectors":
            with creating_items(path, (description.items, 1), np.float32):
                pass
        else:
            row_of = found.row_of or _by_file_name(found.names)
            size = description.item_shape[:2]
            kept = save_photographs(path, found.pictures, row_of, found.names, size, missing, found.nested)
            if not kept.all():
                description = description.without(~kept)
        description.write(Path(folder))
        return description

    def _read(self, sources: list[Path], given: Mapping) -> tuple[Labelled, Description, str]:
        refuse_unknown_options(given, self.options, self.name)
        shared = {"images": "resized", "size": self.size, "missing": "error"}
        images, size, missing = (given.get(name, value) for name, value in shared.items())
        for option, value, allowed in (
            ("images", images, ("resized", "none")),
            ("missing", missing, ("error", "skip")),
        ):
            if value not in allowed:
                raise ValueError(f"option {option}: unknown value {value!r}{did_you_mean(value, allowed)}")
        check_size(size)
        own = {name: value for name, value in given.items() if name not in shared}
        found = self.labelled(existing(sources), images == "resized", **own)
        shape, kind = ((*size, 3), "images") if images == "resized" else ((1,), "vectors")
        description = Description(
            len(found.labels),
            found.labels,
            found.given_split,
            list(found.class_names),
            shape,
            kind,
            found.split_names,
        )
        return found, description, missing


def _by_file_name(names: Sequence[str]) -> Callable[[str], int | None]:
    """`Labelled.row_of` of files that are known by their names alone."""
    row_of = {name: row for row, name in enumerate(names)}
    return lambda member: row_of.get(member.replace("\\", "/").rpartition("/")[2])
