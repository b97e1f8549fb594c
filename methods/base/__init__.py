"""What a method is, what it learns from, and what its codes must look like: the public base of all methods.

`HashingMethod`, `TrainingSet` and `Refusal` are what a method needs; deep ones derive from
`methods.base.deep.DeepHashing`. docs/add-a-method.md walks through examples.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

import numpy as np

from tiebench.files import read_npz
from tiebench.messages import did_you_mean, one_line

ENCODE_ROWS = 16_384  # items encoded at once: bounds the memory of a million items
TRAINING_SET = "training set"
DATABASE_LABELS = "database labels"  # of `sees`: all of the database is the training set, with its labels
_ENCODE_BYTES = 1 << 28  # of images read at once


class Refusal(ValueError):
    """A method cannot serve this training set (too few items, more bits than it can make, …): one clear line.

    The cell stays empty in the tables, with this message as its reason.
    """


class Diverged(Refusal):
    """Training broke down on settings that could have served: a search counts it as a trial that lost."""


def _ignore(record: dict[str, Any]) -> None:
    pass


@dataclass(frozen=True)
class TrainingSet:
    """What a method learns from: neither the queries nor the rest of the database.

    Parameters
    ----------
    items : float32 (n, d), or uint8 (n, H, W, 3)
        Images for methods that train `end_to_end`, maybe of an object that reads them when it is indexed.
    affinity : function
        affinity(rows, columns) is the affinity of the items at two index arrays, int64 (len(rows),
        len(columns)).
    levels : tuple of int
        The values that the affinity can take, ascending from 0.
    labels : int64 (n,), uint8 (n, L) or None
        Classes, or multi-hot labels.
    log : function
        To call with a dict of plain values (objective, seconds, …) once per epoch, iteration or bit: it
        becomes a line of training.jsonl.
    network : dict or None
        The network that images go through before the hash layer: `architecture`, a name of
        networks.catalogue, and `options` of its class.
    weights : Path or None
        The file of the network's pretrained weights.
    average_precision : function or None
        average_precision(codes, places, bits) is AP_T of packed codes of items, (of queries, of a database),
        which are these items of the training set: for logs. It is given, and not imported, so that metrics do
        not decide what a method learns.
    checkpoint : Path or None
        The file where a long training may keep what it needs to resume after an interruption. It is the
        caller's to delete, once the result is safe.
    """

    items: Any
    affinity: Callable[[np.ndarray, np.ndarray], np.ndarray]
    levels: tuple[int, ...] = (0, 1)
    labels: np.ndarray | None = None
    log: Callable[[dict[str, Any]], None] = field(default=_ignore)
    network: dict[str, Any] | None = None
    weights: Path | None = None
    average_precision: Callable[[Sequence[np.ndarray], Sequence[np.ndarray], int], float] | None = None
    checkpoint: Path | None = None

    def __len__(self) -> int:
        return len(self.items)

    @property
    def classes(self) -> int:
        """Number of classes that occur, or of labels.

        Raises
        ------
        Refusal
            Without labels.
        """
        return self._numbered_labels[1]

    def label_rows(self, indices: np.ndarray) -> np.ndarray:
        """Labels of some items: 1 for each that an item has, else 0.

        Returns
        -------
        float32 (len(indices), classes)
            Columns of single labels are the classes in ascending order.

        Raises
        ------
        Refusal
            Without labels.
        """
        labels, count = self._numbered_labels
        if labels.ndim == 2:
            return labels[indices].astype(np.float32)
        rows = np.zeros((len(indices), count), np.float32)
        rows[np.arange(len(indices)), labels[indices]] = 1
        return rows

    @cached_property
    def _numbered_labels(self):
        if self.labels is None:
            raise Refusal("the method learns from labels, and the dataset has none")
        if self.labels.ndim == 2:
            return self.labels, self.labels.shape[1]
        classes, numbers = np.unique(self.labels, return_inverse=True)
        return numbers, len(classes)


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
      time), "pairwise" (triplets, that is pairs of pairs), "listwise" (rankings); besides, "classwise" (an
      item and its class), "unsupervised" (no labels) and "bound" (what hashing has to beat: a row of every
      table with a supervised method, which takes no part in its comparisons);
    * `end_to_end`: True if it can learn from images, through a network;
    * `space`: what tuning chooses from, hyper-parameter -> list of values, or {"log_uniform": [low, high]}
      (empty: nothing to tune);
    * `common_space`: the same for hyper-parameters that a base class gives to all of its methods;
    * `trainers`: list of spaces, of which a trial takes one: its values replace those of `space`, as a
      learning rate must where another optimiser is chosen, unless a list of `space` has them among others;
    * `bounds`: hyper-parameter -> the interval of values that mean something, as "[1, inf)" or "(0, 1]"; a
      class adds its own to those of its base classes, and `check_settings` refuses others;
    * `sees`: what training has access to, "training set" or "database labels" (all items of the database and
      their labels are its training set); tables mark the methods of the latter;
    * `several_labels`: whether a method that learns from labels has a form for items with several of them;
      without one, its cells of such protocols are refused before anything runs.
    """

    title: ClassVar[str | None] = None
    paper: ClassVar[str | None] = None
    colour: ClassVar[str | None] = None
    marker: ClassVar[str | None] = None
    supervision: ClassVar[str] = "binary"
    family: ClassVar[str] = "unsupervised"
    end_to_end: ClassVar[bool] = False
    space: ClassVar[dict[str, Any]] = {}
    common_space: ClassVar[dict[str, Any]] = {}
    trainers: ClassVar[list[dict[str, Any]]] = [{}]
    bounds: ClassVar[dict[str, str]] = {}
    sees: ClassVar[str] = "training set"
    several_labels: ClassVar[bool] = True

    # Attributes that `fit` sets and `encode` reads, arrays and numbers; of a class that has others, `state`.
    learned: ClassVar[tuple[str, ...]] = ()

    bits: int = 32
    seed: int = 0

    def fit(self, training_set: TrainingSet) -> Self:
        """Learn from a `TrainingSet`; returns self.

        Raises
        ------
        Refusal
            If it cannot be served.
        """
        # Abstract: what a method is; conformance tests call it on every one.
        raise NotImplementedError(f"{type(self).__name__} does not define fit")

    def encode(self, items: Any) -> np.ndarray:
        """Codes of items: bool (n, bits). Items as in the training set, encoded in blocks."""
        step = ENCODE_ROWS
        if len(items):
            step = max(1, min(step, _ENCODE_BYTES // max(1, np.asarray(items[:1]).nbytes)))
        blocks = [
            self.encode_block(np.asarray(items[begin : begin + step])) for begin in range(0, len(items), step)
        ]
        if any(np.ndim(block) == 0 for block in blocks):  # no codes: `check_codes` says what it is
            return blocks[0]
        return np.concatenate(blocks) if blocks else np.zeros((0, self.bits), bool)

    def learned_codes(self) -> np.ndarray | None:
        """Codes of the training items that training found itself, bool (n, bits), or None.

        Of methods whose `sees` is "database labels": their training set is the database, whose codes in
        scores are then these instead of `encode`'s.
        """
        return None

    def raw_scores(self, items: Any) -> np.ndarray | None:
        """Real numbers whose signs are the codes of items: float (n, bits), or None if there are none.

        What asymmetric search keeps of a query: projections before the sign.
        """
        return None

    def unused_bits(self) -> int:
        """How many bits are constant by design after `fit`, as those of one-hot codes beyond the classes.

        They are no sign of collapsed codes (`tiebench.codes.collapse`). Deep methods are also asked after
        each epoch.
        """
        return 0

    # A method defines the following itself; conformance tests call all of it on every method.

    def encode_block(self, items: np.ndarray) -> np.ndarray:
        """Codes of at most `ENCODE_ROWS` items: bool (n, bits)."""
        # Abstract: as `fit`.
        raise NotImplementedError(f"{type(self).__name__} does not define encode_block")

    def state(self) -> dict[str, np.ndarray]:
        """What was learned, as a dict of arrays: everything that `encode` needs besides hyper-parameters.
        Here the attributes that `learned` names."""
        return {name: np.asarray(getattr(self, name)) for name in self.learned}

    def set_state(self, state: dict[str, np.ndarray]) -> None:
        """Take over what `state` returned; single numbers become those of Python."""
        for name in self.learned:
            setattr(self, name, state[name].item() if state[name].ndim == 0 else state[name])

    def hyperparameters(self) -> dict[str, Any]:
        """Field name -> value, JSON-ready."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    def save(self, folder: Path | str) -> None:
        """Write model.npz (arrays only, no pickle) into an existing folder."""
        settings = np.frombuffer(json.dumps(self.hyperparameters()).encode(), np.uint8)
        members: dict[str, Any] = {"hyperparameters": settings}
        for name, value in self.state().items():
            members[f"state.{name}"] = array = np.asarray(value)
            if array.dtype == object:  # it would be pickled, and `load` reads no pickles
                raise TypeError(
                    f"{type(self).__name__}: {name}, of what is learned, must be an array or a number, "
                    f"not {type(value).__name__}"
                )
        with Path(folder, "model.npz").open("wb") as file:
            np.savez(file, **members)

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """The method that `save` wrote.

        Raises
        ------
        ValueError
            One line that names the file, if it is damaged.
        """
        path, prefix = Path(folder, "model.npz"), "state."
        arrays = read_npz(path)
        try:
            method = cls(**json.loads(arrays["hyperparameters"].tobytes()))
            state = {k.removeprefix(prefix): array for k, array in arrays.items() if k.startswith(prefix)}
            method.set_state(state)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            # Of another class, or edited: what a method makes of its state fails in many ways.
            raise ValueError(f"{path} is not a model of {cls.__name__}: {one_line(error)}") from error
        return method


def check_settings(method: HashingMethod) -> None:
    """Check hyper-parameters that are annotated Literal[...] or have `bounds`. `fit` begins with it.

    Raises
    ------
    Refusal
        For a value that is not one of these.
    """
    checked: set[str] = set()
    for cls in type(method).__mro__:
        for name, interval in vars(cls).get("bounds", {}).items():
            value = vars(method)[name]
            if name not in checked and value is not None and not _inside(value, interval):
                raise Refusal(f"{name} must be in {interval}, not {value}")
            checked.add(name)
    for name, annotation in get_type_hints(type(method)).items():
        parts = get_args(annotation) if get_origin(annotation) is not Literal else (annotation,)
        literals = [part for part in parts if get_origin(part) is Literal]
        value = getattr(method, name, None)
        if literals and get_origin(annotation) is not ClassVar:
            known = [choice for part in literals for choice in get_args(part)]
            if value not in known and not (value is None and type(None) in parts):
                raise Refusal(f"unknown {name} {value!r}{did_you_mean(value, known)}")


def _inside(value: float, interval: str) -> bool:
    """Whether a number is in an interval such as "[0, inf)"."""
    low, high = (float(end) for end in interval[1:-1].split(","))
    above = value >= low if interval[0] == "[" else value > low
    below = value <= high if interval[-1] == "]" else value < high
    return above and below


def check_codes(codes: Any, items: int, bits: int, name: str, function: str = "encode") -> np.ndarray:
    """What `encode` returned for `items` items, as bool (items, bits).

    Parameters
    ----------
    codes
        Booleans, 0/1 or -1/+1, as integers or floats (items, bits).
    name, function : str
        For the message, of the method and of what returned the codes.

    Raises
    ------
    ValueError
        One line that names the method and what it returned, for everything else: packing bits or comparing
        with 0 would turn it into wrong codes without a warning.
    """
    try:
        array = np.asarray(codes)
    except Exception:  # whatever a foreign object raises when it is converted
        array = np.asarray(None)
    if array.dtype.kind not in "biuf":
        found = f"an object of type {type(codes).__name__}"
        if isinstance(codes, np.ndarray):
            found = f"an array of type {array.dtype}"
    elif array.shape != (items, bits):
        found = f"an array of shape {array.shape}"
    elif array.dtype == bool:
        return array
    elif not np.isfinite(array).all():
        found = "NaN or infinite values"
    else:
        ones = array == 1
        if (ones | (array == 0)).all() or (ones | (array == -1)).all():
            return ones
        values = np.unique(array)
        listed = ", ".join(f"{value:g}" for value in values[:4])
        found = f"the values {listed}" + (f" … {values[-1]:g}" if len(values) > 4 else "")
    raise ValueError(
        f"method {name}: {function} must return boolean, 0/1 or -1/+1 codes of shape ({items}, {bits}), "
        f"but it returned {found}"
    )


def check_raw_scores(scores: Any, items: int, bits: int, name: str) -> np.ndarray:
    """What `raw_scores` returned for `items` items, as float32 (items, bits).

    Raises
    ------
    ValueError
        One line, for anything else.
    """
    array = np.asarray(scores, np.float32)
    if array.shape != (items, bits) or not np.isfinite(array).all():
        found = f"shape {array.shape}" if array.shape != (items, bits) else "NaN or infinite values"
        raise ValueError(
            f"method {name}: raw_scores must return finite numbers ({items}, {bits}), but returned {found}"
        )
    return array


@contextmanager
def no_exit(name: str) -> Iterator[None]:
    """Turn a call of sys.exit inside the block into a ValueError, one line that names the method."""
    try:
        yield
    except SystemExit as error:
        raise ValueError(
            f"method {name} calls sys.exit({error.code!r}) instead of raising an error"
        ) from error
