"""The examples of docs/add-a-method.md, run: they pass the conformance tests that every method must pass."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from methods.base.batch import ATTRIBUTES
from methods.base.deep import DeepHashing

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "add-a-method.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^`((?:\w+/)+\w+\.py)`:\n\n```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
EXAMPLES = [Path(name).stem for name in FILES if name.startswith("methods/")]


def test_there_are_a_shallow_and_two_deep_examples():
    assert set(EXAMPLES) == {"median_signs", "contrast", "softmax_codes"}
    assert len(FILES) == TEXT.count("```python")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A checkout that also holds the examples."""
    place = tmp_path_factory.mktemp("checkout")
    for name in ("tiebench", "networks", "datasets", "pyproject.toml"):
        (place / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "methods", place / "methods", ignore=shutil.ignore_patterns("__pycache__"))
    of_methods = [f"methods/{name}.py" for name in ("test_conformance", "refusing", "resuming", "sets")]
    for name in (*of_methods, "batches.py", "tiebench/refusals.py"):
        (place / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "tests" / name, place / "tests" / name)
    for name, text in FILES.items():
        (place / name).write_text(text, encoding="utf-8")
    return place


def test_the_examples_pass_the_conformance_tests(place):
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/methods"]
    done = subprocess.run(
        [*command, "-k", " or ".join([*EXAMPLES, "titles"])],
        cwd=place,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(place), str(place / "tests")])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 12 * len(EXAMPLES)


@pytest.mark.parametrize("hook", re.findall(r"^\| `(\w+)(?:\(.*?\))?` \|", TEXT, re.MULTILINE))
def test_the_hooks_arguments_and_attributes_in_the_tables_exist(hook):
    assert hook in ATTRIBUTES or hasattr(DeepHashing, hook)


def test_every_hook_and_hyperparameter_of_deep_methods_is_documented():
    own = {name for name in vars(DeepHashing) if not name.startswith("_")}
    inherited = {"fit", "state", "set_state", "encode_block"}
    machinery = {"half_precision", "precision", "augments"}
    missing = {
        name for name in own - inherited - machinery if f"`{name}" not in TEXT and f"self.{name}" not in TEXT
    }
    assert not missing
    assert all(f"| `{name}`" in TEXT for name in ATTRIBUTES)
