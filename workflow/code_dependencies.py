"""Which source files decide a number, and how jobs find this checkout."""

import ast
import functools
import hashlib
import os
import sys
from pathlib import Path

from tiebench.discovery import imported_from, tree

_ALONE = ("workflow.scripts.", "workflow.stages.protocol_data", "workflow.stages.run_records")
_WORDS = ("tiebench._version", "tiebench.messages")  # decide no number, and change with every release
# Where statements have statements. Expressions, most of a tree, have no imports.
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def use_this_python(root):
    """Make jobs, `python -m workflow.scripts.<rule>`, run with this interpreter from any working directory
    and find this checkout's packages before installed ones of the same name (PyPI has a `datasets`)."""
    for variable, first in (("PATH", Path(sys.executable).parent), ("PYTHONPATH", root)):
        known = os.environ.get(variable, "").split(os.pathsep)
        os.environ[variable] = os.pathsep.join([str(first), *(f for f in known if f and f != str(first))])


def code_files(root, *modules):
    """Source files of modules (as 'tiebench.scoring') and of everything of this project they import.

    Of an adapter, and of what opens files for adapters, it is the file alone: what decides a number among all
    that these import, for any job, is named beside them.
    """
    pending, found = list(modules), {}
    while pending:
        module = pending.pop()
        if module not in found:
            found[module], imported = _source(Path(root), module)
            pending += () if module.startswith(_ALONE) else imported
    return sorted({file for module, file in found.items() if file and module not in _WORDS})


def code_digests(root, *modules):
    """`code_files`, each with a digest of its content: path relative to root -> digest."""
    return {file: _digest(Path(root, file)) for file in code_files(root, *modules)}


# All are cached: the jobs of a table need the same few files.
@functools.cache
def _digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


@functools.cache
def _packages(root):
    return {path.parent.name for path in root.glob("*/__init__.py")}


@functools.cache
def _source(root, module):
    """A module's file, relative to root, and the names that it imports; None and () if it is not ours."""
    if module.split(".")[0] not in _packages(root):
        return None, ()
    path = root / (module.replace(".", "/") + ".py")
    if not path.is_file():  # a package: its own code is what its __init__ holds
        path = root / module.replace(".", "/") / "__init__.py"
    file = path.relative_to(root)
    return (str(file), _imported_by(path, ".".join(file.parent.parts))) if path.is_file() else (None, ())


def _imported_by(path, package):
    """Names that a source file of a package imports."""
    names, pending = [], [tree(path)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.ImportFrom):
            module = imported_from(node, package)
            names += [module, *(f"{module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        for part in _BLOCKS:
            pending += getattr(node, part, ())
    return names
