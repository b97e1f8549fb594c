"""Pages of the API reference: one a public module, which autodoc fills, and one of the commands."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import tiebench
from tiebench import commands

# Module or function that `tiebench` itself has -> its module.
MODULES: dict[str, str] = vars(tiebench)["_MODULES"]
FUNCTIONS: dict[str, str] = vars(tiebench)["_FUNCTIONS"]
# Where an addition to the library is made.
ENTRIES = "metric_table"
INDEX = "api/index.md"
# What files of methods import, besides the library.
BASES = ("methods.base", "methods.base.deep")
HEAD = """# API reference

Names with a leading underscore, and modules that are not listed here, may change without notice.
Files of methods import the base classes too. Programs in a shell use the [commands](commands.md).
"""


def modules(root: Path) -> list[str]:
    """Full names of the public modules of the library, sorted, then `BASES`."""
    names = [f"tiebench.{place}" for place in {*MODULES.values(), *FUNCTIONS.values(), ENTRIES}]
    return [*sorted(one for one in names if not root.joinpath(*one.split(".")).is_dir()), *BASES]


def pages(root: Path) -> dict[str, str]:
    """Path among the site's sources -> text, of every page."""
    made = {"api/commands.md": _commands(root)}
    for name in modules(root):
        path = Path(*name.split("."))
        file = path / "__init__.py" if (root / path).is_dir() else path.with_suffix(".py")
        made[f"api/{name}.md"] = f"# {name}\n\nFile: [{file}](../../{file})\n\n{_automodule(name)}"
    table = "```{eval-rst}\n.. autosummary::\n\n   " + "\n   ".join(modules(root)) + "\n```\n"
    tree = toctree([*(f"{name}.md" for name in modules(root)), "commands.md"])
    made[INDEX] = "\n".join([HEAD, table, _automodule("tiebench", ":no-members:"), tree]) + "\n"
    return made


def _automodule(name, option=""):
    return f"```{{eval-rst}}\n.. automodule:: {name}\n   {option}\n```\n"


def toctree(pages: Iterable[str], caption: str = "", glob: bool = False) -> str:
    """A tree of pages for Sphinx, hidden from readers. pages: paths below the page that has the tree."""
    options = [f":caption: {caption}"] * bool(caption) + [":hidden:"] + [":glob:"] * glob
    return "\n".join(["```{toctree}", *options, ":maxdepth: 1", "", *pages, "```"])


def _commands(root):
    parts = ["# Commands", "`python -m tiebench` is the same program as `tiebench`."]
    environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1"}
    for name in ("", *commands.KIND.find()):
        words = [sys.executable, "-m", "tiebench", *filter(None, [name]), "--help"]
        done = subprocess.run(words, cwd=root, env=environment, capture_output=True, text=True, check=True)
        parts += [f"## tiebench {name}".rstrip(), f"```text\n{done.stdout.strip()}\n```"]
    return "\n\n".join(parts) + "\n"
