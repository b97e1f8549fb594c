"""Which methods there are and what they take, read from their source: listing them imports none of them."""

import ast
import importlib
from dataclasses import dataclass
from pathlib import Path

from methods.base import method_class

FOLDER = Path(__file__).parent
SUPERVISION = ("none", "binary", "graded", "labels")
FAMILIES = ("pointwise", "pairwise", "listwise", "unsupervised")


@dataclass(frozen=True)
class MethodCard:
    """A method as its source states it. parameters: hyper-parameter -> annotation, also inherited ones;
    end_to_end: whether it can learn from images, through a network."""

    name: str
    path: Path
    supervision: str
    family: str
    end_to_end: bool
    parameters: dict
    summary: str


def catalogue(folder=FOLDER):
    """Method name -> `MethodCard` for every file of the folder whose name does not begin with an underscore.

    Raises ValueError, naming the file, for one that is not a method: no such class, more than one, or a
    `supervision` or `family` that is not one of the known words.
    """
    shared = {}
    for helper in sorted({*FOLDER.glob("_*.py"), *FOLDER.glob("base/*.py")} - {Path(__file__)}):
        shared |= _classes(helper)
    cards = {}
    for path in sorted(Path(folder).glob("*.py")):
        if path.stem.startswith("_"):
            continue
        classes = _classes(path)
        known = shared | classes
        chosen = [name for name in classes if not name.startswith("_") and _is_method(name, known)]
        if len(chosen) != 1:
            found = ", ".join(chosen) or "none"
            raise ValueError(f"{path} must define one class derived from HashingMethod, found: {found}")
        attributes, parameters = _inherit(chosen[0], known)
        for key, allowed in (("supervision", SUPERVISION), ("family", FAMILIES)):
            if attributes.get(key) not in allowed:
                raise ValueError(f"{path}: {key} must be one of {allowed}, not {attributes.get(key)!r}")
        summary = (ast.get_docstring(ast.parse(path.read_bytes())) or "").strip().split("\n")[0]
        cards[path.stem] = MethodCard(
            path.stem,
            path,
            attributes["supervision"],
            attributes["family"],
            bool(attributes.get("end_to_end")),
            parameters,
            summary,
        )
    return cards


def load_class(name):
    """The class of a method, imported."""
    return method_class(importlib.import_module(f"methods.{name}"))


def _classes(path):
    """Class name -> (base names, literal class attributes, annotated fields) of one source file."""
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except SyntaxError as error:
        raise ValueError(f"{path}, line {error.lineno}: {error.msg}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    classes = {}
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        bases = [
            base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in node.bases
        ]
        attributes, parameters = {}, {}
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                name = statement.target.id
                if name in ("supervision", "family"):
                    raise ValueError(f"{path}: {name} must be a plain class attribute, without annotation")
                parameters[name] = ast.unparse(statement.annotation)
            elif isinstance(statement, ast.Assign):
                literal = isinstance(statement.value, ast.Constant)
                for target in statement.targets:
                    if isinstance(target, ast.Name):
                        attributes[target.id] = statement.value.value if literal else None
        classes[node.name] = (bases, attributes, parameters)
    return classes


def _is_method(name, known):
    return name == "HashingMethod" or any(_is_method(base, known) for base in known.get(name, ([],))[0])


def _inherit(name, known):
    attributes, parameters = {}, {}
    if name in known:
        bases, own_attributes, own_parameters = known[name]
        for base in bases:
            inherited_attributes, inherited_parameters = _inherit(base, known)
            attributes |= inherited_attributes
            parameters |= inherited_parameters
        attributes |= own_attributes
        parameters |= own_parameters
    return attributes, parameters
