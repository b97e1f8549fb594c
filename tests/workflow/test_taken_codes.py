"""Codes of another protocol's runs: joined by item, and scored as if they had been trained here."""

import copy
import os

import numpy as np
import pytest
import yaml

from datasets.splits import Split
from tiebench.affinities import EqualLabels
from tiebench.scoring import score_codes
from workflow.configuration.merged import merge
from workflow.stages.taken_codes import prefix, taken

from conftest import class_vectors  # isort: skip

TAKEN = yaml.safe_load("""
methods: {talr_ap: {protocols: {again: {epochs: 1, batch_size: 20, bins: 8}}}}
tables:
  taken:
    seeds: [0]
    methods: [talr_ap]
    supervised_bounds: false
    blocks: [{protocol: again, metric: ap, bits: [8]}, {protocol: taken, metric: ap, bits: [8]}]
""")


@pytest.fixture
def theirs():
    """A split of a hundred items, and codes that name the item."""
    order = np.random.default_rng(0).permutation(100)
    split = Split(query=order[:10], database=order[10:], training=order[10:40])
    codes = {part: getattr(split, part)[:, None].astype(np.uint8) for part in ("query", "database")}
    codes["raw_query"] = split.query[:, None] + np.array([0.0, 0.5])
    codes["estimate_factors"] = split.database[:, None].astype(np.float32)
    return split, codes | {"bits": np.array(8)}


def test_codes_are_those_of_the_items(theirs):
    split, codes = theirs
    database = np.setdiff1d(split.database, split.training)
    ours = Split(query=split.query[::2], database=database, training=split.training)
    found = taken(codes, split, ours, "theirs")
    for part in ("query", "database"):
        assert found[part][:, 0].tolist() == getattr(ours, part).tolist()
    assert found["raw_query"].tolist() == (ours.query[:, None] + [0.0, 0.5]).tolist()
    assert found["estimate_factors"][:, 0].tolist() == ours.database.tolist()
    assert found["bits"] == 8 and found.keys() == codes.keys()


def test_codes_of_a_refused_run_stay_empty(theirs):
    split, _ = theirs
    empty = np.zeros((0, 1), np.uint8)
    found = taken({"query": empty, "database": empty, "bits": np.array(8)}, split, split, "theirs")
    assert len(found["query"]) == len(found["database"]) == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"training": slice(5, None)}, "theirs learns from other items"),
        ({"query": [100]}, "theirs has no codes of 1 items of `query` of this split, as row 100"),
        ({"database": [3, 4, 200, 300]}, "no codes of 2 items of `database` of this split, as row 200"),
    ],
)
def test_codes_of_other_items_are_refused(theirs, change, words):
    split, codes = theirs
    parts = {name: getattr(split, name) for name in ("query", "database", "training")}
    for name, value in change.items():
        more = np.setdiff1d(value, np.concatenate(list(parts.values()))) if name != "training" else []
        parts[name] = parts[name][value] if name == "training" else np.concatenate([parts[name], more])
    with pytest.raises(ValueError, match=words):
        taken(codes, split, Split(**parts), "theirs")


@pytest.mark.parametrize("bits", [1, 8, 11, 16])
def test_a_prefix_is_the_packed_first_bits(bits):
    whole = np.random.default_rng(1).random((5, 16)) < 0.5
    scores = np.random.default_rng(2).normal(size=(5, 16)).astype(np.float32)
    packed = np.packbits(whole, axis=1)
    arrays = {"query": packed, "database": packed[::-1], "raw_query": scores, "estimate_factors": scores}
    found = prefix(arrays | {"bits": np.array(16)}, bits)
    assert found.keys() == {"query", "database", "raw_query", "bits"} and found["bits"] == bits
    np.testing.assert_array_equal(found["query"], np.packbits(whole[:, :bits], axis=1))
    np.testing.assert_array_equal(found["database"], found["query"][::-1])
    np.testing.assert_array_equal(found["raw_query"], scores[:, :bits])


def test_a_prefix_longer_than_the_codes_is_refused():
    codes = np.zeros((2, 1), np.uint8)
    with pytest.raises(ValueError, match="9 bits was asked for of codes of 8 bits"):
        prefix({"query": codes, "database": codes, "bits": np.array(8)}, 9)


@pytest.mark.thorough
def test_taken_codes_are_scored_and_nothing_is_trained(laboratory, tiny):
    """Those of the other split, and the first bits of longer ones: with the costs and settings of theirs."""
    of = tiny["protocols"]["tiny"] | {"codes_of": "tiny"}
    tiny["protocols"]["first"] = of | {"prefix_of": 11}
    tiny["protocols"]["without"] = of | {"split": of["split"] | {"training_in_database": False}}
    blocks = [{"protocol": "without", "metric": "ap", "bits": [8, 11]}]
    blocks += [{"protocol": "first", "metric": "ap", "bits": [5, 8]}]
    tiny["tables"]["tiny"]["blocks"] += blocks
    theirs = laboratory.run_folder("lsh", 11, 1) / "codes.npz"
    whole = theirs.read_bytes()
    theirs.write_bytes(whole[:50])
    line = laboratory.refused("results/runs/without/lsh/11/1/codes.npz", config=tiny)
    assert "results/runs/tiny/lsh/11/1/codes.npz" in line
    theirs.write_bytes(whole)
    before = laboratory.stamps("results/runs/tiny/**/codes.npz")
    laboratory.made("results/tiny.csv", config=tiny)
    assert laboratory.stamps("results/runs/tiny/**/codes.npz") == before
    split, labels = laboratory.split(), class_vectors()[1]
    kept = ~np.isin(split.database, split.training)
    for method in ("lsh", "talr_ap"):
        codes = np.load(laboratory.run_folder(method, 11, 1) / "codes.npz")
        record = laboratory.record(method, 11, 1)
        query, database = (np.unpackbits(codes[part], axis=1) for part in ("query", "database"))
        for protocol, bits, rows in (("without", 11, kept), ("first", 5, ...), ("first", 8, ...)):
            packed = (np.packbits(part[:, :bits], axis=1) for part in (query, database[rows]))
            affinity = EqualLabels(labels[split.query], labels[split.database[rows]])
            expected = score_codes(*packed, bits, affinity, at=[10])
            assert laboratory.metrics(method, bits, 1, protocol=protocol)["ap"] == expected.means["ap"]
            own = laboratory.record(method, bits, 1, protocol=protocol)
            assert (own["bits"], own["codes_of"]) == (bits, "tiny")
            assert own.get("prefix_of") == (11 if protocol == "first" else None)
            assert own["hyperparameters"] == record["hyperparameters"]
            assert own["seconds"] == record["seconds"]
            same_split = own["fingerprints"]["split"] == record["fingerprints"]["split"]
            assert same_split == (protocol == "first")
    assert laboratory.has_nothing_to_do("results/tiny.csv", config=tiny)


def test_other_codes_are_taken_where_the_configuration_says_so(laboratory, tiny):
    """Of runs that are older than those that had been made of the first."""
    config = merge(tiny, copy.deepcopy(TAKEN))
    config["protocols"]["again"] = config["protocols"]["tiny"] | {"title": "Again"}
    config["protocols"]["taken"] = config["protocols"]["tiny"] | {"title": "Taken", "codes_of": "tiny"}
    laboratory.made("results/taken.csv", config=config)

    def ap(protocol):
        return laboratory.metrics("talr_ap", protocol=protocol)["ap"]

    assert ap("taken") == ap("tiny") != ap("again")
    for path in laboratory.run_folder("talr_ap", protocol="taken").iterdir():
        os.utime(path)
    config["protocols"]["taken"]["codes_of"] = "again"
    laboratory.made("results/taken.csv", config=config)
    assert ap("taken") == ap("again")
    assert laboratory.has_nothing_to_do("results/taken.csv", config=config)
