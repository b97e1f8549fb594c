"""Drawing the queries, the database and the training set of a protocol.

kinds of split, as written in a protocol:

- {kind: per_class, query: 100, training: 500 | all}: per class at random; the database is everything else but
  the queries. Setting 1 of CIFAR-10 in "Hashing as Tie-Aware Learning to Rank" (He et al., CVPR 2018).
- {kind: per_label, query: 100, training: 500 | all, order: frequency | columns}: multi-hot labels one after
  the other, from the items that hold the label and were not chosen before. NUS-WIDE in the same paper.
- {kind: random, query: 2000, training: 5000 | all, database: all | k}: whatever the labels. LabelMe there.
- {kind: given, query: V, database: V, training: all | {per_class: k} | {random: k} | {split: V}}: parts V of
  the dataset's own split, one value or a list (numbers, or names where the parts have names).

The first three take `training_in_database: false` to keep the training set out of the database.
"""

import hashlib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from datasets._description import Description
from datasets._files import replacing
from datasets._specification import kind_of, nearest, positive

KINDS: dict[str, tuple[set[str], set[str]]] = {
    "per_class": ({"query", "training"}, {"training_in_database"}),
    "per_label": ({"query", "training"}, {"training_in_database", "order"}),
    "random": ({"query", "training"}, {"training_in_database", "database"}),
    "given": ({"query", "database", "training"}, set()),
}
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

    def card(self) -> dict:
        """Sizes, whether all training items are in the database, and the fingerprint; ready for JSON."""
        inside = np.isin(self.training, self.database, assume_unique=True)
        return {name: len(getattr(self, name)) for name in PARTS} | {
            "training_in_database": bool(inside.all()),
            "fingerprint": self.fingerprint,
        }

    def save(self, path: Path) -> None:
        """Write an uncompressed .npz of the three arrays; the same split gives the same bytes."""
        with replacing(Path(path)) as temporary, zipfile.ZipFile(temporary, "w") as archive:
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
        try:
            with np.load(path, allow_pickle=False) as arrays:
                return cls(*(arrays[name] for name in PARTS))
        except Exception as error:
            # Of a damaged file NumPy says so with errors of every kind.
            raise ValueError(f"{path}: not a split ({' '.join(str(error).split())})") from error


def check(spec: dict, description: Description) -> None:
    """Raise ValueError, of one line, for a split that is badly written or that the dataset cannot give.

    Nothing is drawn. Of `per_label`, whose later draws depend on the earlier ones, this finds what no draw
    could give; the rare rest is found by `draw`.
    """
    _CHECKS[kind_of(spec, KINDS, "split")](spec, description)


def draw(spec: dict, description: Description, seed: int) -> Split:
    """The split that `spec` asks for; the same spec, labels and seed give the same split, anywhere, always.

    Random orders are made from the raw output of PCG64, which NumPy promises never to change
    (it does not promise so of Generator.permutation). Raises ValueError as `check`.
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(f"split: seed must be a non-negative integer, not {seed!r}")
    check(spec, description)
    return _DRAWS[spec["kind"]](spec, description, np.random.Generator(np.random.PCG64(int(seed))))


def _shuffled(rows: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    return rows[np.argsort(generator.bit_generator.random_raw(len(rows)), kind="stable")]


def _amount(spec: Mapping, key: str) -> int | None:
    """A positive integer, or None for `all`."""
    return None if spec[key] == "all" else positive(spec[key], f"split: key '{key}'", " or 'all'")


def _training_in_database(spec: Mapping) -> bool:
    inside = spec.get("training_in_database", True)
    if not isinstance(inside, bool):
        raise ValueError(f"split: key 'training_in_database' must be true or false, not {inside!r}")
    if not inside and spec["training"] == "all":
        raise ValueError(
            "split: training: all and training_in_database: false leave nothing to the database; "
            "give a number of training items"
        )
    return inside


def _require_labels(description: Description, needed: str, what: str) -> None:
    if description.label_kind != needed:
        fits = {"classes": "per_class, random, given", "multi-hot": "per_label, random, given"}
        raise ValueError(
            f"split: {what} needs labels: {needed}, the dataset has labels: {description.label_kind}; "
            f"kinds that fit it: {fits.get(description.label_kind, 'random, given')}"
        )


def _require_rest(rest: int) -> None:
    if rest < 1:
        raise ValueError("split: query and training leave nothing to the database; ask for fewer")


def _asked(query: int, training: int | None) -> str:
    return f"{query}" if training is None else f"{query} + {training}"


def _parts(available: np.ndarray, query: np.ndarray, training: np.ndarray | None, inside: bool) -> Split:
    """The split of the rows that the mask `available` (n,) leaves in; training None: all but the queries."""
    rest = available.copy()
    rest[query] = False
    if training is None:
        training = np.flatnonzero(rest)
    elif not inside:
        rest[training] = False
    return Split(query, np.flatnonzero(rest), training)


# per_class


def _check_per_class(spec: Mapping, description: Description) -> None:
    query, training = positive(spec["query"], "split: key 'query'"), _amount(spec, "training")
    inside = _training_in_database(spec)
    _require_labels(description, "classes", "kind 'per_class'")
    values, counts = np.unique(description.labels, return_counts=True)
    for value, count in zip(values, counts):
        if query + (training or 0) > count:
            raise ValueError(
                f"split: query + training asks for {_asked(query, training)} items of class "
                f"{description.class_name(int(value))}, which has {count}"
            )
    _require_rest(description.items - len(values) * (query + (0 if inside else training or 0)))


def _draw_per_class(spec: Mapping, description: Description, generator: np.random.Generator) -> Split:
    query, training = spec["query"], _amount(spec, "training")
    queries, trainings = [], []
    for value in np.unique(description.labels):
        rows = _shuffled(np.flatnonzero(description.labels == value), generator)
        queries.append(rows[:query])
        trainings.append(rows[query : query + (training or 0)])
    return _parts(
        np.ones(description.items, bool),
        np.concatenate(queries),
        None if training is None else np.concatenate(trainings),
        _training_in_database(spec),
    )


# per_label


def _label_order(spec: Mapping, labels: np.ndarray) -> np.ndarray:
    """Columns in the order in which they are drawn from; ties of frequency go to the lower column."""
    if spec.get("order", "frequency") == "columns":
        return np.arange(labels.shape[1])
    return np.argsort(-labels.sum(axis=0, dtype=np.int64), kind="stable")


def _check_per_label(spec: Mapping, description: Description) -> None:
    query, training = positive(spec["query"], "split: key 'query'"), _amount(spec, "training")
    inside = _training_in_database(spec)
    order = spec.get("order", "frequency")
    if order not in ("frequency", "columns"):
        raise ValueError(f"split: unknown order {order!r}; {nearest(order, ('frequency', 'columns'))}")
    _require_labels(description, "multi-hot", "kind 'per_label'")
    labels, need = description.labels, query + (training or 0)
    counts = labels.sum(axis=0, dtype=np.int64)
    reached = np.zeros(description.items, bool)
    for step, column in enumerate(_label_order(spec, labels), start=1):
        name = description.class_name(int(column))
        if need > counts[column]:
            raise ValueError(
                f"split: query + training asks for {_asked(query, training)} items of label {name}, "
                f"which has {counts[column]}"
            )
        reached |= labels[:, column] == 1
        # The items of the first labels are distinct: there must be that many with any of these labels.
        if need * step > np.count_nonzero(reached):
            raise ValueError(
                f"split: query + training asks for {_asked(query, training)} items of each of the {step} "
                f"labels up to {name}, which {np.count_nonzero(reached)} items hold together"
            )
    _require_rest(int(np.count_nonzero(reached)) - len(counts) * (query + (0 if inside else training or 0)))


def _draw_per_label(spec: Mapping, description: Description, generator: np.random.Generator) -> Split:
    query, training = spec["query"], _amount(spec, "training")
    labels, need = description.labels, query + (training or 0)
    chosen = np.zeros(description.items, bool)
    queries, trainings = [], []
    for column in _label_order(spec, labels):
        candidates = np.flatnonzero((labels[:, column] == 1) & ~chosen)
        if len(candidates) < need:
            raise ValueError(
                f"split: query + training asks for {_asked(query, training)} items of label "
                f"{description.class_name(int(column))}, of which the labels before it left {len(candidates)}"
            )
        rows = _shuffled(candidates, generator)[:need]
        chosen[rows] = True
        queries.append(rows[:query])
        trainings.append(rows[query:])
    return _parts(
        labels.any(axis=1),
        np.concatenate(queries),
        None if training is None else np.concatenate(trainings),
        _training_in_database(spec),
    )


# random


def _check_random(spec: Mapping, description: Description) -> None:
    query, training = positive(spec["query"], "split: key 'query'"), _amount(spec, "training")
    inside = _training_in_database(spec)
    database = _amount(spec, "database") if "database" in spec else None
    if inside and training is not None and database is not None and training > database:
        raise ValueError(
            f"split: training asks for {training} of the {database} items of the database; "
            "ask for fewer, or set training_in_database: false"
        )
    outside = 0 if inside else training
    needed = query + outside + (database or (1 if training is None or not inside else training))
    if needed > description.items:
        parts = [str(query)] + ([str(outside)] if outside else [])
        parts.append(str(needed - query - outside))
        raise ValueError(
            f"split: query, training and database ask for {' + '.join(parts)} items of a dataset "
            f"that has {description.items}"
        )


def _draw_random(spec: Mapping, description: Description, generator: np.random.Generator) -> Split:
    query, training = spec["query"], _amount(spec, "training")
    rows = _shuffled(np.arange(description.items), generator)
    queries, rest = rows[:query], rows[query:]
    # Training comes first, so that its items stay the same whatever the size of the database.
    database = rest if _training_in_database(spec) else rest[training:]
    if "database" in spec:
        database = database[: _amount(spec, "database")]
    return Split(queries, database, database if training is None else rest[:training])


# given


def _values(value: object, key: str, description: Description) -> list[int]:
    """Values of the given split that `value` means: one or a list of numbers or names."""
    where = f"split: key '{key}'"
    present = np.unique(description.given_split)
    names = description.split_names or []
    known = [description.split_name(int(number)) for number in present]
    found = []
    for one in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(one, str) and one in names:
            one = names.index(one)
        if isinstance(one, bool) or not isinstance(one, (int, np.integer)) or one not in present:
            raise ValueError(f"{where}: the dataset's own split has no part {one!r}; {nearest(one, known)}")
        found.append(int(one))
    if not found:
        raise ValueError(f"{where}: names no part of the dataset's own split; known: {', '.join(known)}")
    return found


def _check_given(spec: Mapping, description: Description) -> None:
    if description.given_split is None:
        raise ValueError("split: kind 'given' needs a dataset that comes with a split, this one has none")
    query, database = (_values(spec[key], key, description) for key in ("query", "database"))
    for value in query:
        if value in database:
            raise ValueError(f"split: part {description.split_name(value)} is both in query and in database")
    training = spec["training"]
    if training == "all":
        return
    ways = ("per_class", "random", "split")
    if not isinstance(training, Mapping) or len(training) != 1:
        raise ValueError(
            "split: key 'training' must be all, {per_class: k}, {random: k} or {split: value} "
            f"for kind 'given', not {training!r}"
        )
    ((way, amount),) = training.items()
    if way not in ways:
        raise ValueError(f"split: unknown key {way!r} in training; {nearest(way, ways)}")
    if way == "split":
        for value in _values(amount, "training.split", description):
            if value in query:
                raise ValueError(
                    f"split: part {description.split_name(value)} is both in query and in training"
                )
        return
    positive(amount, f"split: key 'training.{way}'")
    available = np.isin(description.given_split, database)
    if way == "random":
        if amount > np.count_nonzero(available):
            raise ValueError(
                f"split: training.random asks for {amount} of the {np.count_nonzero(available)} items "
                "of the database"
            )
        return
    _require_labels(description, "classes", "training.per_class")
    for value in np.unique(description.labels):
        count = np.count_nonzero(available & (description.labels == value))
        if amount > count:
            raise ValueError(
                f"split: training.per_class asks for {amount} items of class "
                f"{description.class_name(int(value))}, of which the database has {count}"
            )


def _draw_given(spec: Mapping, description: Description, generator: np.random.Generator) -> Split:
    def rows_of(value: object, key: str) -> np.ndarray:
        return np.flatnonzero(np.isin(description.given_split, _values(value, key, description)))

    query, database = (rows_of(spec[key], key) for key in ("query", "database"))
    training = spec["training"]
    if training == "all":
        return Split(query, database, database)
    ((way, amount),) = training.items()
    if way == "split":
        return Split(query, database, rows_of(amount, "training.split"))
    if way == "random":
        return Split(query, database, _shuffled(database, generator)[:amount])
    classes = description.labels[database]
    drawn = [
        _shuffled(database[classes == value], generator)[:amount] for value in np.unique(description.labels)
    ]
    return Split(query, database, np.concatenate(drawn))


_CHECKS = {
    "per_class": _check_per_class,
    "per_label": _check_per_label,
    "random": _check_random,
    "given": _check_given,
}
_DRAWS = {
    "per_class": _draw_per_class,
    "per_label": _draw_per_label,
    "random": _draw_random,
    "given": _draw_given,
}
