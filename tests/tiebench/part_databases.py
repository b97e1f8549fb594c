"""Databases in many files, in every format, for several tests; what counting them must give."""

import itertools

import numpy as np
import pytest

from tiebench.codes.inputs import label_affinity
from tiebench.codes.packing import pack
from tiebench.counting.distributed import count_parts
from tiebench.counting.histograms import joint_histograms

FORMATS = ("npz", "npz compressed", "npy", "parquet", "parquet lists", "parquet binary", "zarr")


def needed(name):
    """The module of a package, without which the test is skipped."""
    return pytest.importorskip(name, reason=f"{name} is not installed: make distributed")


def arrays(items=300, bits=21, labels="classes", seed=0, queries=9):
    """query, query_labels, database, database_labels; codes are packed."""
    rng = np.random.default_rng(seed)
    made = {}
    for name, count in (("query", queries), ("database", items)):
        made[name] = pack(rng.integers(0, 2, (count, bits)))
        drawn = rng.integers(0, 5, count)
        if labels == "text":
            drawn = np.array(["cat", "dog", "a bird", "horse", "épée"])[drawn]
        elif labels == "several":
            drawn = rng.integers(0, 2, (count, 6)).astype(np.uint8)
        made[f"{name}_labels"] = drawn
    return made


def whole(made, bits=21):
    """Joint histograms of the arrays in one go: the oracle."""
    affinity = label_affinity(made["query_labels"], made["database_labels"])
    return joint_histograms(made["query"], made["database"], bits, affinity)


def count(made, paths, **options):
    """Those of the files: patterns of codes, and of labels."""
    found, labels = paths
    return count_parts(made["query"], made["query_labels"], found, 21, database_labels=labels, **options)


def assert_same_bytes(found, expected):
    for name in ("levels", "counts"):
        one, other = getattr(found, name), getattr(expected, name)
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


def write(folder, made, form="npz", files=3):
    """Write the database as so many files of unequal sizes; returns patterns of codes, and of labels."""
    items = len(made["database"])
    edges = [0, *(items * (number + 1) // (files + 1) for number in range(1, files)), items]
    for number, (begin, end) in enumerate(itertools.pairwise(edges)):
        codes, labels = made["database"][begin:end], made["database_labels"][begin:end]
        write_one(folder / f"part{number}", codes, labels, form)
    ending = form.split()[0]
    if form == "npy":
        return str(folder / "part*.codes.npy"), str(folder / "part*.labels.npy")
    return str(folder / f"part*.{ending}"), None


def write_queries(folder, made):
    """queries.npz, and whole.npz with the database too, as the commands take them."""
    np.savez(folder / "queries.npz", query=made["query"], query_labels=made["query_labels"], bits=21)
    np.savez(folder / "whole.npz", **made, bits=21)


def write_one(stem, codes, labels, form):
    if form.startswith("npz"):
        save = np.savez if form == "npz" else np.savez_compressed
        save(stem.with_suffix(".npz"), database=codes, database_labels=labels, other=np.zeros(7))
    elif form == "npy":
        np.save(stem.with_suffix(".codes.npy"), codes)
        np.save(stem.with_suffix(".labels.npy"), labels)
    elif form.startswith("parquet"):
        write_parquet(stem.with_suffix(".parquet"), codes, labels, form)
    else:
        zarr = needed("zarr")
        group = zarr.open_group(stem.with_suffix(".zarr"), mode="w")
        width, several = codes.shape[1], labels.shape[1:]
        group.create_array("database", data=codes, chunks=(70, width))
        group.create_array("database_labels", data=labels, chunks=(90, *several))


def write_parquet(path, codes, labels, form="parquet", rows=60):
    pyarrow = needed("pyarrow")
    from pyarrow import parquet

    if form == "parquet lists":
        column = pyarrow.array(list(codes), pyarrow.list_(pyarrow.uint8()))
    else:
        kind = pyarrow.binary(codes.shape[1] if form == "parquet" else -1)
        column = pyarrow.array([code.tobytes() for code in codes], kind)
    several = list(labels) if labels.ndim == 2 else labels
    values = pyarrow.array(several)
    if labels.dtype.kind == "U":
        values = values.dictionary_encode()
    table = pyarrow.table({"other": np.arange(len(codes)), "database_labels": values, "database": column})
    parquet.write_table(table, path, row_group_size=rows)
