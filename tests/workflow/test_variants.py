"""Variants through the real Snakefile: a row of their own, trained by their class's code."""

import re

import pytest


@pytest.mark.thorough
def test_variants_have_runs_of_their_own_by_the_code_of_their_class(laboratory, tiny):
    """One with settings of its own, and one without, which makes the codes of its class."""
    short = {"class": "talr_ap", "title": "TALR-AP, short", "defaults": {"epochs": 1}}
    tiny["methods"] |= {"short": short, "bare": {"class": "talr_ap"}}
    tiny["tables"]["tiny"]["methods"] += ["short", "bare"]
    before = laboratory.stamps("results/runs/**/*")
    laboratory.made("results/tiny.csv", config=tiny)
    after = laboratory.stamps("results/runs/**/*")
    assert {path: after[path] for path in before} == before  # the other runs are left alone
    assert {path.split("/")[3] for path in after.keys() - before.keys()} == {"short", "bare"}
    record = laboratory.record("short")
    assert (record["method"], record["class"]) == ("short", "talr_ap")
    assert record["hyperparameters"]["epochs"] == 1
    # The class's settings for this protocol: batches of 20, 8 bins.
    assert record["hyperparameters"] | {"epochs": 2} == laboratory.record("talr_ap")["hyperparameters"]
    bare, of_class = (laboratory.run_folder(method) / "codes.npz" for method in ("bare", "talr_ap"))
    assert bare.read_bytes() == of_class.read_bytes()
    found = {row.pop("method"): tuple(row.values()) for row in laboratory.rows("tiny.csv")}
    # A training of one epoch is not one of two, and a variant's row is not a copy of its class's.
    assert len(found) == 4 and len(set(found.values())) == 3 and found["bare"] == found["talr_ap"]
    # An edit of the class makes them again.
    with (laboratory.checkout / "methods/talr_ap.py").open("a") as file:
        file.write("\n# An edit.\n")
    planned = laboratory.made("results/tiny.csv", config=tiny, options=["--dry-run"]).stdout
    assert set(re.findall(r"train (\w+)", planned)) == {"short", "bare", "talr_ap"}
