"""The lock files: pip's and conda's pins agree, and nothing is left out."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from workflow import environment

ROOT = Path(__file__).parents[2]
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


def here(requirement):
    """Whether a requirement is meant for this Python on this machine."""
    return requirement.marker is None or requirement.marker.evaluate()


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
    names = [canonicalize_name(requirement.name) for requirement, _ in LOCKED if here(requirement)]
    assert len(names) == len(set(names))


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
    groups = [
        entry for name, group in PROJECT["dependency-groups"].items() if name not in apart for entry in group
    ]
    return [*PROJECT["project"]["dependencies"], *(entry for entry in groups if isinstance(entry, str))]


def test_every_requirement_is_locked_to_a_version_that_it_allows():
    groups = PROJECT["dependency-groups"]
    locks = [
        (LOCKED, direct()),
        (LOCKED_FOR_DOCS, groups["docs"]),
        (LOCKED_FOR_CLUSTERS, groups["distributed"]),
    ]
    for lock, texts in locks:
        for wanted in map(Requirement, texts):
            name = canonicalize_name(wanted.name)
            (pin,) = [r.specifier for r, _ in lock if canonicalize_name(r.name) == name and here(r)]
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
    group = {
        canonicalize_name(Requirement(text).name) for text in PROJECT["dependency-groups"]["distributed"]
    }
    extra = PROJECT["project"]["optional-dependencies"]["distributed"]
    assert {canonicalize_name(Requirement(text).name) for text in extra} <= group


def test_both_lock_files_have_the_same_versions():
    suite, site = ({str(r) for r, _ in lock if here(r)} for lock in (LOCKED, LOCKED_FOR_DOCS))
    names = [canonicalize_name(Requirement(text).name) for text in suite | site]
    assert suite & site and len(names) == len(set(names))


def test_the_lock_has_no_torch_and_nothing_of_cuda():
    """torch comes from requirements-torch.txt: locked, it would force one build on every machine."""
    names = {canonicalize_name(requirement.name) for requirement, _ in LOCKED}
    assert "torchmetrics" in names  # depends on torch
    assert not [n for n in names if n == "torch" or n.startswith(("nvidia", "cuda", "triton"))]


def test_the_lock_is_complete():
    """It is installed without resolving dependencies, so every package that another needs must be in it."""
    names = {canonicalize_name(requirement.name) for requirement, _ in LOCKED if here(requirement)}
    missing = set()
    for name in names:
        for text in metadata.requires(name) or []:
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                missing |= {canonicalize_name(needed.name)} - names
    assert missing <= {"torch"}


def test_what_torch_needs_is_locked_too():
    """So that installing torch after the lock brings no package of another version."""
    needed = [Requirement(text) for text in metadata.requires("torch") or []]
    names = {canonicalize_name(r.name) for r, _ in LOCKED if here(r)}
    plain = [r for r in needed if (r.marker is None or r.marker.evaluate({"extra": ""})) and not r.extras]
    missing = {
        canonicalize_name(r.name)
        for r in plain
        if not r.name.startswith(("nvidia-", "cuda-", "triton")) and canonicalize_name(r.name) not in names
    }
    assert missing == set()
    for requirement in plain:
        pins = [r for r, _ in LOCKED if canonicalize_name(r.name) == canonicalize_name(requirement.name)]
        for pin in (p for p in pins if here(p)):
            (version,) = pin.specifier
            assert requirement.specifier.contains(version.version)


def test_every_third_party_import_of_the_code_is_asked_for():
    """By name in pyproject.toml, or as a part of something named there (llvmlite of Numba)."""
    import ast
    import sys

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
    extras = [text for extra in PROJECT["project"]["optional-dependencies"].values() for text in extra]
    texts = [*PROJECT["dependency-groups"]["suite"], *extras]
    asked = {canonicalize_name(Requirement(text).name) for text in texts}
    of_clusters = PROJECT["project"]["optional-dependencies"]["distributed"]  # not installed here, or not all
    for name in asked - {canonicalize_name(Requirement(text).name) for text in of_clusters}:
        asked |= {canonicalize_name(Requirement(text).name) for text in metadata.requires(name) or []}
    # Used if installed: networks/ reports their absence.
    asked |= {canonicalize_name(Requirement(text).name) for text in PROJECT["dependency-groups"]["backbones"]}
    foreign = imported - set(sys.stdlib_module_names) - own
    assert {"numpy", "torch", "yaml"} <= foreign
    missing = {
        name
        for name in foreign - {"torch"}
        if not asked & {canonicalize_name(d) for d in distributions.get(name, [name])}
    }
    assert missing == set()
    foreign = {canonicalize_name(name) for name in of_the_site - set(sys.stdlib_module_names) - own}
    assert {"sphinx", "latex2mathml"} <= foreign <= {canonicalize_name(r.name) for r, _ in LOCKED_FOR_DOCS}
