"""What a method is, and what it is given to learn from."""

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

ENCODE_ROWS = 16_384  # items encoded at once: bounds the memory of a million items
_ENCODE_BYTES = 1 << 28  # of images read at once


class Refusal(ValueError):
    """A method cannot serve this training set (too few items, more bits than it can make, …): one clear line.

    The cell stays empty in the tables, with this message as its reason.
    """


def _ignore(record):
    pass


@dataclass(frozen=True)
class TrainingSet:
    """What a method learns from. Queries and the rest of the database are not in it.

    items: float32 (n, d), or uint8 images (n, H, W, 3) for methods that train `end_to_end`, which may be an
    object that reads them when indexed; affinity(rows, columns): int64 (len(rows), len(columns)), the
    affinity of the items at two index arrays; levels: the values it can take, ascending from 0; labels: int64
    (n,) classes, uint8 (n, L) multi-hot, or None; report: call it with a dict of plain values (objective,
    seconds, …) once per epoch or bit: it becomes a line of training.jsonl.
    network: what images go through before the hash layer, or None: a dict of `architecture`, a name of
    networks.catalogue, and `options` of its class; weights: the file of its pretrained weights, or None;
    checkpoint: the file where a long training may keep what it needs to go
    on after an interruption, or None.
    """

    items: np.ndarray
    affinity: Callable
    levels: tuple = (0, 1)
    labels: np.ndarray | None = None
    report: Callable = field(default=_ignore)
    network: dict | None = None
    weights: Path | None = None
    checkpoint: Path | None = None

    def __len__(self):
        return len(self.items)


@dataclass(kw_only=True)
class HashingMethod:
    """Base of all methods. Hyper-parameters are dataclass fields; constructing a method does nothing else.

    Metadata are class attributes, written as literals so that they can be read without importing the module:

    * `title`: name for display, as "TALR-AP" (None: the name of the file);
    * `paper`: URL or DOI of the publication;
    * `colour`, `marker`: its look in figures, "#RRGGBB" and a filled marker of matplotlib (None: the figure
      chooses);
    * `supervision`: what it learns from, "none", "binary" (affinity > 0), "graded" (values of the affinity)
      or "labels";
    * `family`: what its loss looks at, as He et al. (2018) group methods: "pointwise" (one pair of items at a
      time), "pairwise" (triplets, that is pairs of pairs), "listwise" (rankings), or "unsupervised" (no
      labels);
    * `end_to_end`: True if it can learn from images, through a network;
    * `space`: what tuning chooses from, hyper-parameter -> list of values (empty: nothing to tune);
    * `sees`: what training has access to; tables mark every method for which it is not the training set.
    """

    title: ClassVar[str | None] = None
    paper: ClassVar[str | None] = None
    colour: ClassVar[str | None] = None
    marker: ClassVar[str | None] = None
    supervision: ClassVar[str] = "binary"
    family: ClassVar[str] = "unsupervised"
    end_to_end: ClassVar[bool] = False
    space: ClassVar[dict[str, list[Any]]] = {}
    sees: ClassVar[str] = "training set"

    bits: int = 32
    seed: int = 0

    def fit(self, training_set):
        """Learn from a `TrainingSet`; returns self. Raises `Refusal` if it cannot be served."""
        # Abstract: what a method is; conformance tests call it on every one.
        raise NotImplementedError(f"{type(self).__name__} does not define fit")

    def encode(self, items):
        """Codes of items: bool (n, bits). Items as in the training set; works in blocks."""
        step = ENCODE_ROWS
        if len(items):
            step = max(1, min(step, _ENCODE_BYTES // max(1, np.asarray(items[:1]).nbytes)))
        blocks = [
            self.encode_block(np.asarray(items[begin : begin + step])) for begin in range(0, len(items), step)
        ]
        return np.concatenate(blocks) if blocks else np.zeros((0, self.bits), bool)

    # From here on what a method must define itself: conformance tests call all of it on every method.

    def encode_block(self, items):
        """Codes of at most `ENCODE_ROWS` items: bool (n, bits)."""
        raise NotImplementedError(f"{type(self).__name__} does not define encode_block")

    def state(self):
        """What was learned, as a dict of arrays: everything that `encode` needs besides hyper-parameters."""
        raise NotImplementedError(f"{type(self).__name__} does not define state")

    def set_state(self, state):
        """Take over what `state` returned."""
        raise NotImplementedError(f"{type(self).__name__} does not define set_state")

    def hyperparameters(self):
        """Field name -> value, JSON-ready."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    def save(self, folder):
        """Write model.npz (arrays only, no pickle) into an existing folder."""
        state = {f"state.{name}": np.asarray(value) for name, value in self.state().items()}
        settings = np.frombuffer(json.dumps(self.hyperparameters()).encode(), np.uint8)
        with Path(folder, "model.npz").open("wb") as file:
            np.savez(file, hyperparameters=settings, **state)

    @classmethod
    def load(cls, folder):
        """The method that `save` wrote."""
        with np.load(Path(folder, "model.npz"), allow_pickle=False) as archive:
            method = cls(**json.loads(archive["hyperparameters"].tobytes()))
            prefix = "state."
            method.set_state({k[len(prefix) :]: archive[k] for k in archive.files if k.startswith(prefix)})
        return method


def method_class(module):
    """The one class that a method's module defines. Raises TypeError if there is none, or more."""
    found = [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, HashingMethod)
        and value.__module__ == module.__name__
        and not value.__name__.startswith("_")
    ]
    if len(found) != 1:
        names = ", ".join(value.__name__ for value in found) or "none"
        raise TypeError(f"{module.__file__} must define one class derived from HashingMethod, found: {names}")
    return found[0]
