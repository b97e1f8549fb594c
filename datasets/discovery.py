"""Modules of a folder that are plug-ins: found by looking, registered nowhere."""

import importlib
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from tiebench.messages import one_line


def public_modules(package: str, folder: Path) -> dict[str, ModuleType]:
    """Name -> module of each file of `folder` whose name does not start with an underscore, sorted by name.

    The name is the file's stem; one trailing underscore is dropped, for names that are Python keywords
    (class_.py is `class`). Raises ValueError, which names the file, if one cannot be imported.
    """
    found = {}
    for path in sorted(folder.glob("[!_]*.py")):
        try:
            module = importlib.import_module(f"{package}.{path.stem}")
        except (Exception, SystemExit) as error:
            # A file that a user wrote can fail with any error.
            raise ValueError(
                f"{path}: cannot be imported: {type(error).__name__}: {one_line(error)}"
            ) from error
        found[path.stem.removesuffix("_")] = module
    return found


def summary(module: object) -> str:
    """First line of the docstring."""
    return (module.__doc__ or "").strip().partition("\n")[0]


def require(module: ModuleType, names: Iterable[str], what: str) -> None:
    """Raise ValueError, which names the file, unless `module` defines all of `names`."""
    missing = [name for name in names if not hasattr(module, name)]
    if missing:
        raise ValueError(f"{module.__file__}: {what} must define {', '.join(missing)}")
