"""ADSH through the real Snakefile: the database is its training set, and its codes are the learned ones."""

import numpy as np
import pytest

from methods.base.catalogue import load_class

SETTINGS = {"epochs": 6, "epochs_per_round": 3, "samples": 40, "batch_size": 20, "learning_rate": 0.1}


@pytest.mark.thorough
def test_adsh_learns_codes_of_the_database_and_tables_mark_it(laboratory, tiny):
    tiny["methods"]["adsh"] = {"protocols": {"tiny": SETTINGS}}
    tiny["tables"]["tiny"] |= {"methods": ["lsh", "adsh", "adsh_symmetric"], "seeds": [0]}
    laboratory.made("results/tiny.csv", config=tiny)
    features, split = laboratory.features(), laboratory.split()
    packed, learned = {}, {}
    for name in ("adsh", "adsh_symmetric"):
        folder = laboratory.run_folder(name)
        method = load_class("adsh").load(folder)
        learned[name] = method.learned_codes()
        expected = {part: method.encode(features[getattr(split, part)]) for part in ("query", "database")}
        if name == "adsh":
            expected["database"] = learned[name]
        with np.load(folder / "codes.npz") as archive:
            packed[name] = {part: archive[part] for part in expected}
        for part, codes in expected.items():
            assert np.array_equal(packed[name][part], np.packbits(codes, axis=1)), (name, part)
    assert learned["adsh"].shape == (len(split.database), 8)
    assert learned["adsh_symmetric"] is None
    # One training, two ways to encode the database.
    assert np.array_equal(packed["adsh"]["query"], packed["adsh_symmetric"]["query"])
    assert not np.array_equal(packed["adsh"]["database"], packed["adsh_symmetric"]["database"])

    sees = {row["method"]: row["sees"] for row in laboratory.rows("tiny.tidy.csv")}
    assert sees == {"lsh": "training set", "adsh": "database labels", "adsh_symmetric": "database labels"}
