"""The lock files: pip's and conda's pins agree, and nothing is left out."""

import ast
import re
import sys
import tomllib
from importlib import metadata

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from workflow import environment

from conftest import ROOT  # isort: skip

HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}$")


def locked(name="requirements.lock"):
    """(requirement, number of hashes) of every entry of a lock file, read on its own account."""
    found = []
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        text = line.strip().removesuffix("\\").strip()
        if not text or text.startswith("#"):
            continue
        if text.startswith("--hash"):
            assert HASH.match(text), text
            found[-1][1] += 1
        else:
            found.append([Requirement(text), 0])
    return found


LOCKED = locked()
LOCKED_FOR_DOCS = locked("requirements-docs.lock")
LOCKED_FOR_CLUSTERS = locked("requirements-distributed.lock")
TORCH = [
    Requirement(line)
    for line in (ROOT / "requirements-torch.txt").read_text(encoding="utf-8").splitlines()
    if line.strip() and not line.startswith("#")
]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
GROUPS = PROJECT["dependency-groups"]
EXTRAS = PROJECT["project"]["optional-dependencies"]


def here(requirement):
    """Whether a requirement is meant for this Python on this machine."""
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


def names(texts):
    """The names of requirements, given as such or as text."""
    return {canonicalize_name(Requirement(str(text)).name) for text in texts}


HERE = [requirement for requirement, _ in LOCKED if here(requirement)]


def needed_by(name):
    return [one for one in map(Requirement, metadata.requires(name) or []) if here(one)]


def test_every_lock_entry_is_an_exact_pin_with_hashes():
    assert len(LOCKED) > 50 and len(LOCKED_FOR_DOCS) > 20 and len(LOCKED_FOR_CLUSTERS) > 50
    for requirement, hashes in [*LOCKED, *LOCKED_FOR_DOCS, *LOCKED_FOR_CLUSTERS]:
        (pin,) = requirement.specifier
        assert pin.operator == "==", str(requirement)
        assert hashes > 0, str(requirement)
    assert [str(requirement) for requirement in TORCH] == [f"torch{TORCH[0].specifier}"]
    (pin,) = TORCH[0].specifier
    assert pin.operator == "=="


def test_each_package_has_one_pin_on_this_machine():
    assert len(HERE) == len(names(HERE))


def test_environment_yml_is_what_the_lock_files_make():
    assert (ROOT / "environment.yml").read_text(encoding="utf-8") == environment.conda_environment()


def test_environment_yml_holds_the_pins_of_the_lock_files_and_no_others():
    conda = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    (pip,) = [entry["pip"] for entry in conda["dependencies"] if isinstance(entry, dict)]
    expected = {str(requirement) for requirement, _ in LOCKED} | {str(requirement) for requirement in TORCH}
    assert {str(Requirement(pin)) for pin in pip} == expected
    assert len(pip) == len(expected)
    (python,) = [entry for entry in conda["dependencies"] if str(entry).startswith("python=")]
    minimum = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert Version(python.removeprefix("python=")) >= Version(minimum)


def direct():
    """Requirements that pyproject.toml names: the suite's, and those of groups in requirements.lock."""
    apart = {"docs", "distributed", "backbones"}  # locks of their own; torchvision's builds belong to torch's
    groups = [entry for name, group in GROUPS.items() if name not in apart for entry in group]
    return [*PROJECT["project"]["dependencies"], *(entry for entry in groups if isinstance(entry, str))]


def test_every_requirement_is_locked_to_a_version_that_it_allows():
    for lock, texts in (
        (LOCKED, direct()),
        (LOCKED_FOR_DOCS, GROUPS["docs"]),
        (LOCKED_FOR_CLUSTERS, GROUPS["distributed"]),
    ):
        for wanted in map(Requirement, texts):
            (pin,) = [r.specifier for r, _ in lock if names([r]) == names([wanted]) and here(r)]
            (version,) = pin
            assert wanted.specifier.contains(version.version), wanted


def test_what_computes_has_the_same_versions_on_a_cluster():
    """Others may differ: botocore needs an older python-dateutil."""
    suite, cluster = (
        {canonicalize_name(r.name): str(r) for r, _ in lock} for lock in (LOCKED, LOCKED_FOR_CLUSTERS)
    )
    for name in ("numpy", "numba", "llvmlite"):
        assert cluster[name] == suite[name]


def test_the_environment_for_clusters_has_every_package_of_the_extra():
    assert names(EXTRAS["distributed"]) <= names(GROUPS["distributed"])


def test_both_lock_files_have_the_same_versions():
    suite, site = ({str(r) for r, _ in lock if here(r)} for lock in (LOCKED, LOCKED_FOR_DOCS))
    assert suite & site and len(names(suite | site)) == len(suite | site)


def test_the_lock_has_no_torch_and_nothing_of_cuda():
    """torch comes from requirements-torch.txt: locked, it would force one build on every machine."""
    locked = names(requirement for requirement, _ in LOCKED)
    assert "torchmetrics" in locked  # depends on torch
    assert not [n for n in locked if n == "torch" or n.startswith(("nvidia", "cuda", "triton"))]


def test_the_lock_is_complete():
    """It is installed without resolving dependencies, so every package that another needs must be in it."""
    needed = names(one for name in names(HERE) for one in needed_by(name))
    assert needed - names(HERE) <= {"torch"}


def test_what_torch_needs_is_locked_too():
    """So that installing torch after the lock brings no package of another version."""
    needed = [one for one in needed_by("torch") if not one.extras]
    own = ("nvidia-", "cuda-", "triton")
    assert [name for name in names(needed) - names(HERE) if not name.startswith(own)] == []
    for requirement in needed:
        for pin in (pin for pin in HERE if names([pin]) == names([requirement])):
            (version,) = pin.specifier
            assert requirement.specifier.contains(version.version)


def test_every_third_party_import_of_the_code_is_asked_for():
    """By name in pyproject.toml, or as a part of something named there (llvmlite of Numba)."""
    own = {path.name for path in ROOT.iterdir() if path.is_dir()} | {"conftest"}
    imported, of_the_site = set(), set()
    for package in ("datasets", "networks", "tiebench", "reporting", "methods", "workflow"):
        for path in (ROOT / package).rglob("*.py"):
            found = of_the_site if path.parent == ROOT / "workflow" / "documentation" else imported
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    found |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    found.add(node.module.split(".")[0])
    distributions = metadata.packages_distributions()
    asked = names([*GROUPS["suite"], *(text for extra in EXTRAS.values() for text in extra)])
    # Those of clusters are not installed here, or not all.
    asked |= names(
        one for name in asked - names(EXTRAS["distributed"]) for one in metadata.requires(name) or []
    )
    asked |= names(GROUPS["backbones"])  # used if installed: networks/ reports their absence
    foreign = imported - set(sys.stdlib_module_names) - own
    assert {"numpy", "torch", "yaml"} <= foreign
    unasked = [name for name in foreign - {"torch"} if not asked & names(distributions.get(name, [name]))]
    assert unasked == []
    foreign = names(of_the_site - set(sys.stdlib_module_names) - own)
    assert {"sphinx", "latex2mathml"} <= foreign <= names(r for r, _ in LOCKED_FOR_DOCS)
