"""docs/add-a-table.md: its configuration loads, its Python runs, its lists are those of the code."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from reporting import figures
from reporting.records.read import RUN_COLUMNS, SCORE_COLUMNS
from reporting.statistics import columns
from tests.reporting.leaderboards import make_run
from workflow.configuration.merged import load
from workflow.plan.runs import Plan

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "add-a-table.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
YAML = [text for language, text in BLOCKS if language == "yaml"]


def section(title):
    return re.search(rf"^#+ {title}\n(.*?)(?=^#|\Z)", PAGE, re.DOTALL | re.MULTILINE)[1]


def first_cells(text):
    """Names in code spans of the first column of the tables of a text."""
    cells = (line.split("|")[1] for line in text.splitlines() if line.startswith("|"))
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


@pytest.mark.parametrize("block", YAML)
def test_each_block_of_configuration_loads_and_has_cells(block):
    given = yaml.safe_load(block)
    plan = Plan(load(ROOT, given))
    for name in given["tables"]:
        assert list(plan.cells(name))


def test_all_blocks_load_together():
    merged = {}
    for block in YAML:
        for part, entries in yaml.safe_load(block).items():
            merged.setdefault(part, {}).update(entries)
    assert len(YAML) >= 5 and len(merged["tables"]) == 5
    load(ROOT, merged)


def test_the_columns_verdicts_and_marks_are_those_of_the_code():
    assert first_cells(section("Columns")) == list(columns.KINDS)
    verdicts = {columns.BEST, columns.WORSE, columns.UNDECIDED, *columns.MARKS}
    for verdict in verdicts:
        assert f"`{verdict}`" in section("Columns")
    assert set(first_cells(section("Marks in tables"))) == set(columns.MARKS.values())
    for column in (*RUN_COLUMNS, *SCORE_COLUMNS, "seconds", "memory", "status", "query", "item", "item_id"):
        assert f"`{column}`" in section("Read results from Python")


def test_the_figures_are_those_of_the_code():
    listed = [name for name in first_cells(section("Figures")) if name != "gallery"]
    assert sorted(listed) == figures.names()


def test_the_python_runs(tmp_path):
    results = tmp_path / "results"
    blocks = [{"protocol": "digits", "metric": "ap", "bits": [12]}]
    table = {"name": "quick", "methods": ["itq"], "seeds": [0], "blocks": blocks}
    make_run(results, "digits", "itq", 12, 0, {"ap": [0.25, 0.75]}, fingerprints={})
    settings = {"table": table, "published": [], "refused": [], "claims": []}
    (results / "quick.json").write_text(json.dumps(settings))
    protocol = tmp_path / "resources/protocols/digits"
    protocol.mkdir(parents=True)
    np.savez(protocol / "split.npz", query=np.array([4, 2]))
    (code,) = (text for language, text in BLOCKS if language == "python")
    printing = code + "\nprint(best.loc[12, 'itq'])\nprint(hardest.to_dict())\n"
    done = subprocess.run(
        [sys.executable, "-c", printing],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "0.5\n{'4': 0.25, '2': 0.75}\n", done.stderr
