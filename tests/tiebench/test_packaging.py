"""The wheel of the library: the package tiebench/ and nothing of the suite around it."""

import ast
import configparser
import importlib
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

import tiebench

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The built wheel. Built from a copy: a build writes beside its sources."""
    pytest.importorskip("setuptools", reason="building a wheel offline needs setuptools here")
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "sources"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    without = shutil.ignore_patterns("__pycache__")
    for package in ("tiebench", "datasets", "methods", "workflow"):  # the last three must stay out
        shutil.copytree(ROOT / package, copy / package, ignore=without)
    # As pip asks for it.
    build = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    command = [sys.executable, "-c", build, folder]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built


def test_type_checkers_know_what_is_loaded_at_its_first_use():
    stub = ast.parse((ROOT / "tiebench" / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    given = [(node.module, alias.name, alias.asname) for node in imports for alias in node.names]
    assert sorted(name for *_, name in given) == sorted(tiebench.__all__)
    for module, name, called in given:
        home = importlib.import_module(module)
        found = getattr(home, name, None) or importlib.import_module(f"{module}.{name}")
        assert name == called and getattr(tiebench, called) is found


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    information = f"tiebench-{tiebench.__version__}.dist-info"
    assert {name.split("/")[0] for name in names} == {"tiebench", information}
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tiebench").rglob("*.py*")}
    sources = {name for name in sources if "__pycache__" not in name}
    assert sources > {"tiebench/__init__.pyi", "tiebench/commands/score.py"}
    assert {name for name in names if name.startswith("tiebench/")} == sources | {"tiebench/py.typed"}
    assert f"{information}/licenses/LICENSE" in names


def test_the_wheel_says_what_it_needs_and_has_the_command(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (place,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        metadata = message_from_string(archive.read(place).decode())
        commands = configparser.ConfigParser()
        commands.read_string(archive.read(place.replace("METADATA", "entry_points.txt")).decode())
    assert dict(commands["console_scripts"]) == {"tiebench": "tiebench.__main__:main"}
    assert metadata["Version"] == tiebench.__version__
    needed = metadata.get_all("Requires-Dist")
    assert [text.split(";")[0].strip() for text in needed if "extra" not in text] == ["numpy>=2.0"]
    extras = {"fast", "torch", "compare", "faiss", "distributed", "all"}
    assert set(metadata.get_all("Provides-Extra")) == extras


def test_every_requirement_of_the_library_has_a_lower_bound_and_all_is_all():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    for requirement in [*project["dependencies"], *extras["all"]]:
        assert ">=" in requirement
    assert set(extras["all"]) == {text for name in extras if name != "all" for text in extras[name]}


def test_installing_an_extra_from_a_clone_with_uv_overrides_no_requirement():
    """uv obeys [tool.uv] of the folder that it runs in, also for `uv pip install ".[torch]"`."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert "override-dependencies" not in tools.get("uv", {})
