"""What is known of a dataset besides its items: labels, the split it comes with, names."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from datasets.files import save_array
from tiebench.files import read_array


def kind_of_labels(labels: np.ndarray | None) -> str:
    """ "classes", "multi-hot" or "none"."""
    if labels is None:
        return "none"
    return "classes" if labels.ndim == 1 else "multi-hot"


def labels_or_none(labels: np.ndarray) -> np.ndarray | None:
    """Labels as labels.npy holds them: None for (n, 0), which stands for none."""
    return None if labels.ndim == 2 and labels.shape[1] == 0 else labels


@dataclass(frozen=True, eq=False)
class Description:
    """A dataset without its items.

    items:       number of items, n
    labels:      int64 (n,) classes, or uint8 (n, L) multi-hot with values 0 and 1, or None
    given_split: int64 (n,), the part of each item in the dataset's own split, or None
    class_names: names of the classes 0, 1, ... (or of the label columns), or None
    item_shape:  shape of one item: (d,) or (height, width, 3)
    kind:        "vectors" (items are float32) or "images" (items are uint8, RGB)
    split_names: names of the values 0, 1, ... of given_split, or None
    ids:         int64 or text (n,), the name of each item elsewhere, or None
    left_out:    number of items of the sources that could not be read and were left out

    Raises ValueError where shapes or dtypes are not these.
    """

    items: int
    labels: np.ndarray | None
    given_split: np.ndarray | None
    class_names: list[str] | None
    item_shape: tuple[int, ...]
    kind: str
    split_names: list[str] | None = None
    ids: np.ndarray | None = None
    left_out: int = 0

    def __post_init__(self) -> None:
        if self.kind not in ("vectors", "images"):
            raise ValueError(f"description: kind must be 'vectors' or 'images', not {self.kind!r}")
        if self.labels is not None:
            expected = {1: np.int64, 2: np.uint8}.get(self.labels.ndim)
            if self.labels.dtype != expected or len(self.labels) != self.items:
                raise ValueError(
                    f"description: labels must be int64 ({self.items},) or uint8 ({self.items}, L), "
                    f"not {self.labels.dtype} {self.labels.shape}"
                )
        given = self.given_split
        if given is not None and (given.dtype != np.int64 or given.shape != (self.items,)):
            raise ValueError(
                f"description: given_split must be int64 ({self.items},), not {given.dtype} {given.shape}"
            )
        ids = self.ids
        if ids is not None and (ids.shape != (self.items,) or ids.dtype.kind not in "iU"):
            raise ValueError(
                f"description: ids must be integers or text ({self.items},), not {ids.dtype} {ids.shape}"
            )

    @property
    def label_kind(self) -> str:
        """As of `kind_of_labels`."""
        return kind_of_labels(self.labels)

    def class_name(self, index: int) -> str:
        """How messages and metadata call class (or label column) `index`: its name, or else its number."""
        if self.class_names is not None and 0 <= index < len(self.class_names):
            return self.class_names[index]
        return str(index)

    def split_name(self, value: int) -> str:
        """How messages and metadata call part `value` of the given split: its name, or else its number."""
        if self.split_names is not None and 0 <= value < len(self.split_names):
            return self.split_names[value]
        return str(value)

    def metadata(self) -> dict:
        """Summary of the dataset, ready for JSON; counts are keyed by name or number."""
        metadata = {
            "items": self.items,
            "kind": self.kind,
            "item_shape": list(self.item_shape),
            "class_names": self.class_names,
            "labels": self.label_kind,
            "class_counts": None,
            "split_names": self.split_names,
            "split_counts": None,
        }
        labels = self.labels
        if labels is not None and labels.ndim == 1:
            values, counts = np.unique(labels, return_counts=True)
            metadata["class_counts"] = {self.class_name(int(v)): int(c) for v, c in zip(values, counts)}
        elif labels is not None:
            counts = labels.sum(axis=0, dtype=np.int64)
            metadata["class_counts"] = {self.class_name(column): int(c) for column, c in enumerate(counts)}
            metadata["labels_per_item"] = float(counts.sum() / self.items)
        if self.given_split is not None:
            values, counts = np.unique(self.given_split, return_counts=True)
            metadata["split_counts"] = {self.split_name(int(v)): int(c) for v, c in zip(values, counts)}
        if self.left_out:
            metadata["left_out"] = self.left_out
        return metadata

    def without(self, rows: np.ndarray) -> "Description":
        """The description without the items of the mask `rows`, bool (n,), which could not be read."""

        def kept(values: np.ndarray | None) -> np.ndarray | None:
            return None if values is None else values[~rows]

        return replace(
            self,
            items=int(np.count_nonzero(~rows)),
            labels=kept(self.labels),
            given_split=kept(self.given_split),
            ids=kept(self.ids),
            left_out=self.left_out + int(np.count_nonzero(rows)),
        )

    def write(self, folder: Path) -> None:
        """Write labels.npy ((n, 0) where there are none), given_split.npy ((0,) where there is none) and
        ids.npy (left out where there are none)."""
        labels = np.zeros((self.items, 0), np.uint8) if self.labels is None else self.labels
        given = np.zeros(0, np.int64) if self.given_split is None else self.given_split
        save_array(folder / "labels.npy", np.ascontiguousarray(labels))
        save_array(folder / "given_split.npy", np.ascontiguousarray(given))
        if self.ids is not None:
            save_array(folder / "ids.npy", self.ids)
        else:
            (folder / "ids.npy").unlink(missing_ok=True)

    @classmethod
    def read(cls, folder: Path, metadata: dict | None = None) -> "Description":
        """The description of a folder that a loader wrote; names come from its `metadata`, if given.

        Raises FileNotFoundError where a file is missing, ValueError where one is not what a loader writes.
        """
        arrays = {}
        for name in ("items", "labels", "given_split", "ids"):
            path = folder / f"{name}.npy"
            if name == "ids" and not path.exists():
                continue
            if not path.is_file():
                raise FileNotFoundError(f"{path}: missing; the loader writes it")
            arrays[name] = read_array(path, memory_map=name == "items")
        items, labels, given = arrays["items"], arrays["labels"], arrays["given_split"]
        if items.ndim not in (2, 4):
            raise ValueError(
                f"{folder / 'items.npy'}: must be (n, d) or (n, height, width, 3), not {items.shape}"
            )
        return cls(
            items=len(items),
            labels=labels_or_none(labels),
            given_split=None if len(given) == 0 else given,
            class_names=(metadata or {}).get("class_names"),
            item_shape=tuple(items.shape[1:]),
            kind="vectors" if items.ndim == 2 else "images",
            split_names=(metadata or {}).get("split_names"),
            ids=arrays.get("ids"),
            left_out=(metadata or {}).get("left_out", 0),
        )
