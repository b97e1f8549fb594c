"""The items that the queries and the databases of protocols are, from `resources`, where runs were made."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tiebench.files import read_json, read_result_array, read_result_npz
from tiebench.query_identity import PARTS, describe

if TYPE_CHECKING:
    import pandas as pd


def split_of(protocol: str, fingerprint: str | None, resources: str | Path) -> dict[str, np.ndarray] | None:
    """Row numbers of the "query" and the "database" of a protocol, int64 (n,); None where it has no split.

    fingerprint: of the split that runs were made with, as run.json has it; None if nothing is known of it.
    Raises ValueError where the split is another one.
    """
    folder = Path(resources, "protocols", protocol)
    if not (folder / "split.npz").is_file():
        return None
    known = (folder / "split.json").is_file()
    found = read_json(folder / "split.json").get("fingerprint") if known else None
    if None not in (fingerprint, found) and fingerprint != found:
        raise _other_split(protocol, resources)
    return read_result_npz(folder / "split.npz", PARTS)


def dataset_file(name: str, fingerprint: str | None, resources: str | Path) -> Path | None:
    """A file of the dataset with a fingerprint, None where there is none."""
    for about in sorted(Path(resources).glob("datasets/*/dataset.json")):
        file = about.parent / name
        if fingerprint is not None and file.is_file() and read_json(about).get("fingerprint") == fingerprint:
            return file
    return None


def identity(protocol: str, fingerprints: Mapping, resources: str | Path) -> dict | None:
    """What `query_identity.describe` says of a protocol; None where its split or its dataset is not there.

    fingerprints: "dataset" and "split", as run.json has them. Labels are left out for a dataset without any.
    Raises ValueError for another split.
    """
    split = split_of(protocol, fingerprints.get("split"), resources)
    file = dataset_file("labels.npy", fingerprints.get("dataset"), resources)
    if split is None or file is None:
        return None
    labels = read_result_array(file, memory_map=True)
    if labels.ndim == 2 and labels.shape[1] == 0:
        return describe(items=split)
    return describe({part: labels[split[part]] for part in PARTS}, split)


class Queries:
    """The items that the queries of protocols are, each read once from `resources`."""

    def __init__(self, resources: Path):
        self.resources = resources
        self._split = functools.cache(lambda name, fingerprint: split_of(name, fingerprint, resources))
        self._ids = functools.cache(lambda dataset: dataset_file("ids.npy", dataset, resources))

    def of(self, protocol: str, fingerprints: Mapping, count: int) -> "tuple[pd.array, list[str]]":
        """Item index and id of each query; <NA> and "" where the protocol's files are not there."""
        import pandas as pd  # plans read the leaderboard by this module

        split = self._split(protocol, fingerprints.get("split"))
        if split is None:
            return pd.array([pd.NA] * count, dtype="Int64"), [""] * count
        items = split["query"]
        if len(items) != count:
            raise _other_split(protocol, self.resources)
        ids = self._ids(fingerprints.get("dataset"))
        names = items if ids is None else read_result_array(ids, memory_map=True)[items]
        return pd.array(items, dtype="Int64"), [str(name) for name in names.tolist()]


def _other_split(protocol: str, resources: str | Path) -> ValueError:
    path = Path(resources, "protocols", protocol, "split.npz")
    return ValueError(
        f"{path} is not the split that the runs of {protocol} were made with; run the workflow again"
    )
