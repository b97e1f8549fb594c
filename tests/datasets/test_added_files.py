"""The files that docs/add-a-dataset.md and docs/add-a-protocol.md show work where they say."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from datasets import affinity, loaders, splits

ROOT = Path(__file__).parents[2]

PROGRAM = """
import numpy as np
from pathlib import Path
from datasets import affinity, loaders, splits

Path("p.txt").write_text("1;2;7\\n3;4;8\\n5;6;9\\n")
Path("out").mkdir()
loader = loaders.KIND.named("points").load()
made = loader.load([Path("p.txt")], Path("out"), delimiter=";")
assert np.load("out/items.npy").tolist() == [[1, 2], [3, 4], [5, 6]] and made.labels.tolist() == [7, 8, 9]
assert loader.describe([Path("p.txt")], delimiter=";").metadata() == made.metadata()
split = splits.draw({"kind": "first_rows", "query": 1}, made, 0)
assert split.query.tolist() == [0] and split.training.tolist() == [1, 2]
wrong = ({"kind": "first_rows", "query": 3}, "less than the 3"), ({"kind": "first_rows"}, "missing")
for spec, words in wrong:
    try:
        splits.check(spec, made)
    except ValueError as error:
        assert words in str(error), error
    else:
        raise AssertionError(spec)
parity = affinity.make({"kind": "parity"}, made.labels)
assert parity.block([0, 1], [0, 1, 2]).tolist() == [[1, 0, 1], [0, 1, 0]]

import networks
assert not networks.KIND.named("mean_colour").said.trainable
import torch
images = torch.arange(3 * 64).reshape(1, 3, 8, 8).to(torch.uint8)
network = networks.make("mean_colour")
assert torch.equal(network(network.preprocess(images)), images.float().mean(dim=(2, 3)))
"""


def blocks(language):
    pages = (ROOT / "docs" / name for name in ("add-a-dataset.md", "add-a-protocol.md"))
    return [
        block
        for page in pages
        for block in re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    ]


@pytest.mark.thorough
def test_each_file_of_the_pages_is_all_that_is_needed(tmp_path):
    for package in ("datasets", "networks", "tiebench"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    for block in blocks("python"):
        name = re.match(r"# (\S+\.py)\n", block)[1]
        assert not (tmp_path / name).exists()
        (tmp_path / name).write_text(block)
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_configuration_of_the_pages_is_accepted():
    from workflow.configuration.merged import load

    found = [yaml.safe_load(block) for block in blocks("yaml")]
    assert found
    for values in found:
        load(ROOT, values)


def test_every_loader_and_kind_is_on_a_page():
    text = "".join((ROOT / "docs" / name).read_text() for name in ("add-a-dataset.md", "add-a-protocol.md"))
    names = [name for package in (loaders, splits, affinity) for name in package.KIND.find()]
    assert [name for name in names if f"`{name}`" not in text] == []
