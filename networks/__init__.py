"""Networks: images to feature vectors, one file each, found by themselves.

A file of this folder with a public class is an architecture, named as the file; docs/add-a-protocol.md
describes what it defines. Nothing here imports torch: networks are made by `networks.catalogue.make`.
"""

import ast
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tiebench.messages import did_you_mean


@dataclass(frozen=True)
class Architecture:
    """An architecture of `networks/<name>.py`, read from its source.

    module:       to import, as "networks.small"
    class_name:   its class, an `ImageNetwork`
    summary:      first line of the file's docstring
    options:      argument of the class -> one-line description
    takes_model:  whether it is a family, named `<name>/<model>`: the model is the argument `model`
    trainable:    whether a method can train it end to end
    """

    name: str
    module: str
    class_name: str
    summary: str
    options: Mapping[str, str]
    takes_model: bool
    trainable: bool


def architectures() -> dict[str, Architecture]:
    """Name -> architecture, sorted by name. Raises ValueError, naming the file, for an incomplete one."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("[!_]*.py")):
        architecture = _read(path, path.stat().st_mtime_ns)
        if architecture is not None:
            found[path.stem] = architecture
    return found


def architecture(name: object) -> tuple[Architecture, dict[str, str]]:
    """The architecture of a name in config/networks.yaml, and the arguments that the name stands for.

    Raises ValueError, with the nearest known name, for an unknown one.
    """
    known = architectures()
    family, slash, model = str(name).partition("/")
    if family in known and bool(slash) == known[family].takes_model and bool(slash) == bool(model):
        return known[family], {"model": model} if slash else {}
    names = [f"{one}/<model>" if known[one].takes_model else one for one in known]
    raise ValueError(f"unknown architecture {name!r}{did_you_mean(name, names)}")


def check_options(name: object, options: Mapping[str, object]) -> None:
    """Raise ValueError for an architecture or an option of it that does not exist; values are not checked."""
    found, _ = architecture(name)
    for option in options:
        if option not in found.options:
            raise ValueError(f"network {name} has no option '{option}'{did_you_mean(option, found.options)}")


@functools.cache
def _read(path: Path, _changed: int) -> Architecture | None:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"{path}: is not valid Python ({error})") from error
    classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_"]
    if not classes:
        return None
    if len(classes) > 1:
        raise ValueError(f"{path}: must have one public class, not {', '.join(classes)}")
    constants: dict[str, ast.expr] = {}
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name) and target.id in ("OPTIONS", "TRAINABLE"):
                constants[target.id] = node.value
    try:
        options = dict(ast.literal_eval(constants["OPTIONS"]))
        trainable = bool(ast.literal_eval(constants["TRAINABLE"])) if "TRAINABLE" in constants else True
    except (KeyError, ValueError, TypeError) as error:
        raise ValueError(f"{path}: must define OPTIONS, a dictionary of literals") from error
    summary = " ".join((ast.get_docstring(tree) or "").split("\n\n")[0].split())
    takes_model = options.pop("model", None) is not None
    return Architecture(
        path.stem, f"networks.{path.stem}", classes[0], summary, options, takes_model, trainable
    )
