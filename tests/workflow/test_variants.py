"""Variants through the real Snakefile: a row of their own, trained by their class's code."""

import csv
import json
import re
from pathlib import Path

import pytest
import yaml

from workflow.configuration.merged import load

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]


def with_variant(tiny, **settings):
    tiny["methods"]["short"] = {"class": "talr_ap", "title": "TALR-AP, short", **settings}
    tiny["tables"]["tiny"]["methods"].append("short")
    return tiny


def rows(laboratory):
    with (laboratory.directory / "results/tiny.csv").open(newline="") as file:
        return {row.pop(next(iter(row))): row for row in csv.DictReader(file)}


def run_file(laboratory, method, name):
    return json.loads((laboratory.directory / f"results/runs/tiny/{method}/8/0/{name}").read_text())


def test_a_variant_is_trained_with_its_own_settings_and_leaves_other_runs_alone(laboratory, tiny):
    before = laboratory.stamps("results/runs/**/*")
    laboratory.made("results/tiny.csv", config=with_variant(tiny, defaults={"epochs": 1}))
    after = laboratory.stamps("results/runs/**/*")
    assert {path: after[path] for path in before} == before
    assert after.keys() - before.keys()
    assert all(path.startswith("results/runs/tiny/short/") for path in after.keys() - before.keys())
    record = run_file(laboratory, "short", "run.json")
    assert (record["method"], record["class"]) == ("short", "talr_ap")
    own, of_class = (
        run_file(laboratory, method, "run.json")["hyperparameters"] for method in ("short", "talr_ap")
    )
    assert (own["epochs"], of_class["epochs"]) == (1, 2)
    assert own | {"epochs": 2} == of_class  # the class's settings for this protocol: batches of 20, 8 bins
    found = rows(laboratory)
    assert len(found) == 3
    # A training of one epoch is not one of two, and a variant's row is not a copy of its class's.
    assert len({tuple(row.values()) for row in found.values()}) == 3


def test_a_variant_without_settings_makes_the_codes_of_its_class(laboratory, tiny):
    laboratory.made("results/runs/tiny/short/8/0/scores.json", config=with_variant(tiny))
    runs = laboratory.directory / "results/runs/tiny"
    assert (runs / "short/8/0/codes.npz").read_bytes() == (runs / "talr_ap/8/0/codes.npz").read_bytes()


def test_an_edit_of_the_class_reruns_its_variants(laboratory, tiny):
    config = with_variant(tiny, defaults={"epochs": 1})
    laboratory.made("results/tiny.csv", config=config)
    with (laboratory.checkout / "methods/talr_ap.py").open("a") as file:
        file.write("\n# An edit.\n")
    planned = laboratory.made("results/tiny.csv", config=config, options=["--dry-run"]).stdout
    assert "train short" in planned
    assert "train talr_ap" in planned
    assert "train lsh" not in planned


def test_a_run_of_a_misspelt_variant_is_refused_with_the_nearest_name(laboratory, tiny):
    done = laboratory.run("results/runs/tiny/shrot/8/0/codes.npz", config=with_variant(tiny))
    assert done.returncode != 0
    assert "unknown method 'shrot'; did you mean 'short'" in done.stdout + done.stderr


def test_the_variant_of_the_documentation_is_accepted():
    page = (ROOT / "docs" / "add-a-method.md").read_text(encoding="utf-8")
    section = page[page.index("## A variant of a method") :]
    example = yaml.safe_load(re.search(r"```yaml\n(.*?)```", section, re.S)[1])
    configuration = load(ROOT, example)
    (name,) = example["methods"]
    assert configuration.class_of(name) == example["methods"][name]["class"]
    assert configuration.metadata(name).title == example["methods"][name]["title"]
