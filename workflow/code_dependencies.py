"""Which source files decide a number, and how jobs find this checkout."""

import ast
import functools
import hashlib
import os
import sys
from pathlib import Path

from tiebench.discovery import tree


def use_this_python(root):
    """Make jobs, `python -m workflow.scripts.<rule>`, run with this interpreter from any working directory
    and find this checkout's packages before installed ones of the same name (PyPI has a `datasets`)."""
    for variable, first in (("PATH", Path(sys.executable).parent), ("PYTHONPATH", root)):
        known = os.environ.get(variable, "").split(os.pathsep)
        os.environ[variable] = os.pathsep.join([str(first), *(f for f in known if f and f != str(first))])


def code_files(root, *modules):
    """Source files of modules (as 'tiebench.scoring') and of everything of this project they import."""
    root, pending, found = Path(root), list(modules), {}
    while pending:
        module = pending.pop()
        if module not in found:
            found[module] = file = _file(root, module)
            pending += _imported_by(root / file) if file else []
    return sorted(filter(None, found.values()))


def code_digests(root, *modules):
    """`code_files`, each with a digest of its content: path relative to root -> digest."""
    return {file: _digest(Path(root, file)) for file in code_files(root, *modules)}


# These are cached: the jobs of a table need the same few files.
@functools.cache
def _file(root, module):
    """The source file of a module, relative to root; None if it is not of this project."""
    package, path = module.split(".")[0], module.replace(".", "/")
    # A package: its own code is what its __init__ holds.
    files = [f"{path}.py", f"{path}/__init__.py"] if (root / package / "__init__.py").is_file() else []
    return next((file for file in files if (root / file).is_file()), None)


@functools.cache
def _digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


@functools.cache
def _imported_by(path):
    """Names that a source file imports."""
    names, pending = [], [tree(path)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        # Statements alone: walking through expressions, too, takes ten times as long.
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            pending += inner if isinstance(inner := getattr(node, part, None), list) else []
    return names
