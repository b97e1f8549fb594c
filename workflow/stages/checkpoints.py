"""Progress of long computations: files whose names identify everything that decides the result."""

import hashlib
import json
import platform
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from datasets import affinity
from networks import architecture
from tiebench.files import sha256
from workflow.code_dependencies import code_files

_ROOT = Path(__file__).parents[2]
# What makes a run and is not in its record by value, as settings, split and data are. A test makes none, nor
# does a script that prepares somebody's data.
_PACKAGES = ("datasets", "methods", "networks", "reporting", "tiebench", "workflow")
_CODE = ("Snakefile", "workflow/*.smk", *(f"{package}/*.py" for package in _PACKAGES))


def versions():
    """Versions of Python and of the packages that compute: name -> version."""
    found = {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")}
    if "torch" in sys.modules:
        found["torch"] = sys.modules["torch"].__version__
    return {"python": platform.python_version(), **found}


def git_commit(folder=_ROOT):
    """Commit of the checkout in a folder, with "+" if code in it is not committed; None outside of one.

    Changed configuration, documents and results leave the commit as it is.
    """
    git = ["git", "-C", str(folder)]
    try:
        # And the folder in it, which fails for an unpacked archive inside of somebody's own repository.
        parsed = subprocess.run(
            [*git, "rev-parse", "HEAD", "HEAD:./"], capture_output=True, text=True, check=True
        )
        status = [*git, "status", "--porcelain", "--", *_CODE]
        changes = subprocess.run(status, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return parsed.stdout.split()[0] + ("+" if changes.stdout.strip() else "")


def decided_by(settings, weights, *more):
    """What decides the result of a training besides its settings: code, pretrained weights, versions.

    settings: of the job, of which "class", "affinity" and "network", that which is trained or None, name
    code; weights: the network's file, or None; more: further modules.
    """
    kind = affinity.KIND.named(settings["affinity"]["kind"])
    modules = ["workflow.stages.protocol_data", f"methods.{settings['class']}", "datasets.affinity"]
    modules += [kind.module, *more]
    if (network := settings.get("network")) is not None:
        modules += [architecture(network["architecture"])[0].module, "networks"]
    files = [_ROOT / file for file in code_files(_ROOT, *modules)]
    code = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    # Of the content: the same file may be found in another folder, or at another time, when a run resumes.
    return [code, None if weights is None else sha256(weights), versions()]


def checkpoint_path(computation, decisive, suffix):
    """Where progress is kept: results/checkpoints/<computation>/<mark of decisive>.<suffix>."""
    mark = hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:16]
    return Path("results/checkpoints", computation, f"{mark}.{suffix}")


def remove_checkpoint(path):
    """Delete a checkpoint, if there is one, and what a writer that was killed left beside it."""
    path.unlink(missing_ok=True)
    for left in path.parent.glob(f".{path.name}.*"):
        left.unlink(missing_ok=True)
    with suppress(OSError):  # not there, or not empty: other runs train beside this one
        path.parent.rmdir()
