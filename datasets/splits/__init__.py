"""Drawing the queries, the database and the training set of a protocol.

A kind of split is a file of this folder, named as in `split: {kind: <name>, …}`. It defines

- `NEEDS` and `OPTIONS`: the keys that a specification must and may have, each with a one-line description;
- `LABELS`: the kinds of labels it works with, of "classes", "multi-hot" and "none";
- `check(spec, description)`: raise ValueError for values that are wrong or that the dataset cannot give;
- `draw(spec, description, generator) -> Split`: `generator` is a seeded `numpy.random.Generator` on PCG64;
- optional: `folds(spec)`, for a kind whose protocols can be made of several splits: how many, None for one,
  of a `spec` that may have mistakes (ValueError). It has an option `fold`, from 1, that names one of them;
- optional: `UNSEEN = True`, where the queries' classes are not those of the training set: no method may learn
  from the labels of the database; `TRAINING_PER_CLASS = True`, where a number `training` is one per class.

Constants are literals. The keys and the labels are checked before either is called. `_drawing.py` has what
several kinds share.
"""

import hashlib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from datasets.description import Description
from datasets.specification import kind_of
from tiebench.discovery import Kind, Plugin
from tiebench.files import read_npz, reading_result, replaced
from tiebench.messages import one_line

KIND = Kind(
    "kind of split",
    __name__,
    Path(__file__).parent,
    {"needs": dict, "options": dict, "labels": tuple, "unseen": False, "training_per_class": False},
    ("check", "draw"),
)
PARTS = ("query", "database", "training")


@dataclass(frozen=True, eq=False)
class Split:
    """Items of a dataset, as sorted int64 arrays of row numbers (given in any order), read-only.

    The training set lies inside the database or outside of it, never among the queries.
    Raises ValueError for an empty part, a duplicate, a negative row, and where queries are met again.
    """

    query: np.ndarray
    database: np.ndarray
    training: np.ndarray

    def __post_init__(self) -> None:
        for name in PARTS:
            rows = np.asarray(getattr(self, name))
            if rows.ndim != 1 or len(rows) == 0 or rows.dtype.kind not in "iu":
                raise ValueError(f"split: {name} must be a non-empty list of row numbers")
            rows = np.sort(rows.astype(np.int64))
            if rows[0] < 0:
                raise ValueError(f"split: {name} holds the negative row number {rows[0]}")
            same = rows[1:] == rows[:-1]
            if same.any():
                raise ValueError(f"split: {name} holds row {rows[int(np.argmax(same))]} twice")
            rows.flags.writeable = False
            object.__setattr__(self, name, rows)
        for name in ("database", "training"):
            shared = np.intersect1d(self.query, getattr(self, name), assume_unique=True)
            if len(shared):
                raise ValueError(f"split: row {shared[0]} is both in query and in {name}")

    @property
    def fingerprint(self) -> str:
        """sha256, in hexadecimal, over name, length and values (little-endian int64) of the three arrays."""
        digest = hashlib.sha256()
        for name in PARTS:
            rows = getattr(self, name)
            digest.update(f"{name} {len(rows)}\n".encode())
            digest.update(rows.astype("<i8").tobytes())
        return digest.hexdigest()

    def metadata(self) -> dict:
        """Sizes, whether all training items are in the database, and the fingerprint; ready for JSON."""
        inside = np.isin(self.training, self.database, assume_unique=True)
        return {name: len(getattr(self, name)) for name in PARTS} | {
            "training_in_database": bool(inside.all()),
            "fingerprint": self.fingerprint,
        }

    def save(self, path: Path) -> None:
        """Write an uncompressed .npz of the three arrays; the same split gives the same bytes."""
        with replaced(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
            for name in PARTS:
                # All that a zip says of its members besides their contents is fixed here.
                member = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
                member.create_system, member.external_attr = 3, 0o644 << 16
                with archive.open(member, "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, getattr(self, name).astype("<i8"), allow_pickle=False)

    @classmethod
    def load(cls, path: Path) -> "Split":
        """Read what `save` wrote. Raises FileNotFoundError, or ValueError naming the file."""
        if not Path(path).is_file():
            raise FileNotFoundError(f"{path}: no such file")
        with reading_result(path):
            try:
                arrays = read_npz(path, PARTS)
                return cls(*(arrays[name] for name in PARTS))
            except (KeyError, ValueError) as error:
                raise ValueError(f"{path}: not a split ({one_line(error)})") from error


def check_keys(spec: object) -> Plugin:
    """The kind of a specification, whose keys are checked; no dataset is needed. Raises ValueError."""
    return kind_of(spec, KIND, "split")


def folds(spec: dict) -> int | None:
    """How many folds a specification stands for; None for a split of its own, also one fold of several.

    Raises ValueError as `check_keys`, and for folds that are misspelt.
    """
    kind = check_keys(spec)
    if "fold" in spec or "folds" not in kind.source.functions:
        return None
    found: int | None = kind.load().folds(spec)
    return found


def check(spec: dict, description: Description) -> None:
    """Raise ValueError, of one line, for a split that is misspelt or that the dataset cannot give.

    Nothing is drawn. Of `per_label`, whose later draws depend on the earlier ones, this finds what no draw
    could give; the rare rest is found by `draw`.
    """
    kind = check_keys(spec)
    require_labels(description, kind.said.labels, f"kind '{kind.name}'")
    kind.load().check(spec, description)


def draw(spec: dict, description: Description, seed: int) -> Split:
    """The split that `spec` asks for; the same spec, labels and seed give the same split on every machine.

    Random orders are made from the raw output of PCG64, which NumPy promises never to change
    (it does not promise so of Generator.permutation). Raises ValueError as `check`.
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(f"split: seed must be a non-negative integer, not {seed!r}")
    check(spec, description)
    generator = np.random.Generator(np.random.PCG64(int(seed)))
    drawn: Split = check_keys(spec).load().draw(spec, description, generator)
    return drawn


def require_labels(description: Description, needed: tuple[str, ...], what: str) -> None:
    """Raise ValueError, which names the kinds that fit, unless the dataset's kind of labels is one of
    `needed`."""
    if description.label_kind not in needed:
        fitting = [name for name, kind in KIND.find().items() if description.label_kind in kind.said.labels]
        raise ValueError(
            f"split: {what} needs labels: {' or '.join(needed)}, the dataset has labels: "
            f"{description.label_kind}; kinds that fit it: {', '.join(fitting)}"
        )
