"""ADSH through the real Snakefile: the database is its training set, and its codes are the learned ones."""

import csv

import numpy as np
import pytest

from methods.base.catalogue import load_class

SETTINGS = {"epochs": 6, "epochs_per_round": 3, "samples": 40, "batch_size": 20, "learning_rate": 0.1}


@pytest.mark.thorough
def test_adsh_learns_codes_of_the_database_and_tables_mark_it(laboratory, tiny):
    tiny["methods"]["adsh"] = {"protocols": {"tiny": SETTINGS}}
    tiny["tables"]["tiny"] |= {"methods": ["lsh", "adsh", "adsh_symmetric"], "seeds": [0]}
    laboratory.made("results/tiny.csv", config=tiny)
    protocol = laboratory.directory / "resources/protocols/tiny"
    features = np.load(protocol / "features.npy")
    with np.load(protocol / "split.npz") as split:
        query, database = split["query"], split["database"]
    packed, learned = {}, {}
    for name in ("adsh", "adsh_symmetric"):
        folder = laboratory.directory / "results/runs/tiny" / name / "8/0"
        method = load_class("adsh").load(folder)
        learned[name] = method.learned_codes()
        encoded = {
            part: method.encode(features[rows]) for part, rows in (("query", query), ("database", database))
        }
        expected = encoded | ({"database": learned[name]} if name == "adsh" else {})
        with np.load(folder / "codes.npz") as archive:
            packed[name] = {part: archive[part] for part in expected}
        for part, codes in expected.items():
            assert np.array_equal(packed[name][part], np.packbits(codes, axis=1)), (name, part)
    assert learned["adsh"].shape == (len(database), 8)
    assert learned["adsh_symmetric"] is None
    # One training, two ways to encode the database.
    assert np.array_equal(packed["adsh"]["query"], packed["adsh_symmetric"]["query"])
    assert not np.array_equal(packed["adsh"]["database"], packed["adsh_symmetric"]["database"])

    results = laboratory.directory / "results"
    with (results / "tiny.tidy.csv").open(newline="") as file:
        sees = {row["method"]: row["sees"] for row in csv.DictReader(file)}
    assert sees == {"lsh": "training set", "adsh": "database labels", "adsh_symmetric": "database labels"}
    sentence = "Learns from database labels besides the training set; neither best nor second."
    texts = {ending: (results / f"tiny{ending}").read_text() for ending in (".md", ".tex")}
    texts[".html"] = laboratory.page("tiny")
    for ending, text in texts.items():
        dagger = r"\dag{}" if ending == ".tex" else "†"
        assert text.count(f"{dagger} {sentence}") == 1, ending
        assert f"ADSH{dagger}" in text and f"ADSH (symmetric){dagger}" in text, ending
        assert f"LSH{dagger}" not in text, ending
