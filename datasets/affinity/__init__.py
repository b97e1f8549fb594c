"""The affinity of items: a non-negative integer for any two of them.

A kind of affinity is a file of this folder, named as in `affinity: {kind: <name>, …}` (class_.py for the
Python keyword), with one subclass of `Affinity`, whose attributes are literals.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from datasets.description import Description, kind_of_labels, labels_or_none
from datasets.specification import kind_of
from tiebench.discovery import Kind
from tiebench.files import read_json, read_result_array

KIND = Kind(
    "kind of affinity",
    __name__,
    Path(__file__).parent,
    {
        **{"needs": dict, "options": dict, "labels": tuple},
        **{"from_features": bool, "of_queries_only": bool, "decided_by_labels": None},
    },
    base="Affinity",
)
# Affinities of queries and database are kept for this many pairs, a byte or two each.
MOST_KEPT_PAIRS = 1 << 28
_LABELS = {"classes": "has classes", "multi-hot": "has multi-hot labels", "none": "has no labels"}


@dataclass(frozen=True)
class Inputs:
    """What an affinity can be computed from; what a kind does not need may be None.

    labels:   (n,) integer classes, (n, L) multi-hot of 0 and 1, or None where the dataset has none
    features: real (n, d), what methods see under the protocol
    training: (t,) integer indices of the training items
    measured: the metadata of an earlier `make` with the same specification, so that nothing is measured twice
    dataset:  folder of the dataset, for kinds that read a file of their own there
    query, database: integer indices of the queries and of the database of the split
    """

    labels: np.ndarray | None = None
    features: np.ndarray | None = None
    training: np.ndarray | None = None
    measured: Mapping | None = None
    dataset: Path | None = None
    query: np.ndarray | None = None
    database: np.ndarray | None = None


class Affinity:
    """The affinity of any two items of one dataset; made by `make` or `load`.

    A kind sets `needs` and `options` (the keys that a specification must and may have, each with a one-line
    description) and `labels` (the kinds of labels it works with, of "classes", "multi-hot" and "none"), and
    defines `make` and `block`; it overrides `check_values` where its keys have values to check, and
    `scoring` where scoring is faster with labels than with `block`.

    kind:          its name, that of its file
    from_features: whether it is measured on what methods see under the protocol, which then has to be made
                   first; its thresholds are kept in affinity.json, and its blocks are slow
    of_queries_only: whether it is known for pairs of a query and a database item alone: methods that learn
                   from affinities or labels are refused, the others train without it
    decided_by_labels: what of two items' labels alone decides it: "equal" classes, the number of "shared"
                   labels or "any" shared label; None where more does
    levels:        all values that are possible, ascending, 0 included
    """

    kind: ClassVar[str] = ""
    needs: ClassVar[Mapping[str, str]] = {}
    options: ClassVar[Mapping[str, str]] = {}
    labels: ClassVar[tuple[str, ...]] = ()
    from_features: ClassVar[bool] = False
    of_queries_only: ClassVar[bool] = False
    decided_by_labels: ClassVar[str | None] = None
    levels: tuple[int, ...]

    def __init_subclass__(cls, **others) -> None:
        super().__init_subclass__(**others)
        cls.kind = cls.__module__.rpartition(".")[2].removesuffix("_")

    @classmethod
    def check_values(cls, spec: Mapping) -> None:
        """Raise ValueError for values of `spec` that are wrong on any dataset; its keys are known to fit."""

    @classmethod
    def make(cls, spec: Mapping, inputs: Inputs) -> Self:
        """The affinity of a checked specification. Raises ValueError where the inputs do not fit."""
        # Abstract: every kind is made and compared with its recorded values by the tests.
        raise NotImplementedError(f"{cls.__name__} does not define make")

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Affinity of items `rows` (r,) and `columns` (c,), integer indices into the dataset: int64 (r, c).

        Each entry depends on its two items alone, not on what else is asked for. Raises ValueError for
        indices that are not 1-D integers (see `indices`), IndexError for items that do not exist.
        """
        # Abstract: as `make`.
        raise NotImplementedError(f"{type(self).__name__} does not define block")

    def among(self, query: np.ndarray, database: np.ndarray) -> "Affinity":
        """The affinity of items of the training set, int64, as queries and database of their own."""
        return self

    def scoring(self, query: np.ndarray, database: np.ndarray, keep: bool = False):
        """Affinity of items `query` (q,) with items `database` (d,), for the functions of `tiebench.scoring`.

        keep: remember what was computed, for scoring several runs.
        """
        from tiebench.affinities import AffinityBlocks

        kind = np.min_scalar_type(max(self.levels))

        def compute(begin, end):
            return self.block(query[begin:end], database).astype(kind)

        if keep and len(query) * len(database) <= MOST_KEPT_PAIRS:
            compute = functools.cache(compute)
        return AffinityBlocks(compute, tuple(int(level) for level in self.levels))

    def metadata(self) -> dict:
        """Kind, levels, and what was measured; ready for JSON."""
        return {"kind": self.kind, "levels": [int(level) for level in self.levels]}

    @staticmethod
    def load(spec: Mapping, dataset: Path, protocol: Path, split: Any, measure: bool = False) -> "Affinity":
        """The affinity of a protocol, from files.

        dataset: folder that a loader wrote; protocol: folder with features.npy and affinity.json, which are
        read only for kinds with `from_features`; split: the `datasets.splits.Split`; measure: measure
        thresholds instead of reading them from affinity.json, to write it.
        Raises OSError or ValueError for files that are missing or damaged, and ValueError as `make`.
        """
        features = measured = None
        if check_spec(spec).from_features:
            features = read_result_array(Path(protocol, "features.npy"), True)
            measured = None if measure else read_json(Path(protocol, "affinity.json"))
        labels = read_result_array(Path(dataset, "labels.npy"))
        return make(
            spec, labels, features, split.training, measured, Path(dataset), split.query, split.database
        )


def check_spec(spec: Mapping) -> type[Affinity]:
    """The kind of a specification, whose keys and values are checked; no dataset is needed. Raises
    ValueError."""
    kind: type[Affinity] = kind_of(spec, KIND, "affinity").load()
    kind.check_values(spec)
    return kind


def check(spec: Mapping, description: Description) -> None:
    """Raise ValueError, of one line, for an affinity that is misspelt or that the dataset cannot have."""
    _require_labels(check_spec(spec), description.label_kind)


def make(spec: Mapping, labels: ArrayLike | None, *others: Any, **named: Any) -> Affinity:
    """The affinity that `spec` asks for.

    labels, others, named: the fields of `Inputs`, but labels may also be (n, 0) where there are none.

    Raises ValueError where spec, labels, features or training do not fit.
    """
    kind = check_spec(spec)
    labels = None if labels is None else labels_or_none(np.asarray(labels))
    if labels is not None and not (labels.ndim in (1, 2) and labels.dtype.kind in "biu"):
        raise ValueError(
            f"affinity: labels must be integers of shape (n,) or (n, L), not {labels.dtype} {labels.shape}"
        )
    _require_labels(kind, kind_of_labels(labels))
    made = kind.make(spec, Inputs(labels, *others, **named))
    if not hasattr(made, "levels"):
        raise ValueError(
            f"affinity: kind '{kind.kind}' must set `levels`, all values that its blocks can have"
        )
    return made


def indices(values: np.ndarray, name: str) -> np.ndarray:
    """`values` as int64 (n,); raises ValueError unless they are a list of integers."""
    values = np.asarray(values)
    if values.ndim != 1 or (values.dtype.kind not in "iu" and values.size):
        raise ValueError(f"affinity: {name} must be a list of row numbers, not {values.dtype} {values.shape}")
    return values.astype(np.int64, copy=False)


def _require_labels(kind: type[Affinity], label_kind: str) -> None:
    if label_kind not in kind.labels:
        fitting = [name for name, other in KIND.find().items() if label_kind in other.said.labels]
        raise ValueError(
            f"affinity: kind '{kind.kind}' does not fit a dataset that {_LABELS[label_kind]}; "
            f"kinds that do: {', '.join(fitting)}"
        )
