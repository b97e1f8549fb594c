"""The available methods and their metadata, read from source: listing the methods imports none of them."""

import ast
import functools
import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from methods.base import DATABASE_LABELS, TRAINING_SET, HashingMethod, method_class
from tiebench.messages import did_you_mean, one_line

FOLDER = Path(__file__).parents[1]
SUPERVISION = ("none", "binary", "graded", "labels")
FAMILIES = ("classwise", "pointwise", "pairwise", "listwise", "unsupervised", "bound")
SEES = (TRAINING_SET, DATABASE_LABELS)
METADATA = (
    "title",
    "paper",
    "colour",
    "marker",
    "supervision",
    "family",
    "end_to_end",
    "space",
    "common_space",
    "trainers",
    "sees",
    "several_labels",
)
MARKERS = tuple("osD^v<>Pp*XhHd8")  # of matplotlib: the filled ones
_COLOUR = re.compile(r"#[0-9A-Fa-f]{6}")


@dataclass(frozen=True)
class MethodMetadata:
    """What the source of a method says about it; `methods.base.HashingMethod` describes the attributes.

    parameters: hyper-parameter -> annotation, including inherited ones; defaults: hyper-parameter -> source
    of its default, where it has one; title: the method's name if its class gives none; summary: first line of
    the module's docstring; reference: the rest of it, on the papers; classes: the method's class, then its
    bases, nearest first -> (docstring, hyper-parameters that it declares).
    """

    name: str
    path: Path
    title: str
    paper: str | None
    colour: str | None
    marker: str | None
    supervision: str
    family: str
    end_to_end: bool
    space: Mapping[str, Any]
    common_space: Mapping[str, Any]
    trainers: list[Mapping[str, Any]]
    sees: str
    several_labels: bool
    parameters: Mapping[str, str]
    defaults: Mapping[str, str]
    summary: str
    reference: str
    classes: Mapping[str, tuple[str, tuple[str, ...]]]

    @property
    def description(self) -> str:
        """The docstring of the method's class, "" if it has none."""
        return next(iter(self.classes.values()))[0]

    @property
    def spaces(self) -> list[dict[str, Any]]:
        """What tuning chooses from: a space for each of `trainers`, whose own values replace the method's."""
        return [{**self.common_space, **self.space, **trainer} for trainer in self.trainers]


@dataclass
class _Class:
    """A class statement: names of its bases, its docstring, literal attributes, annotated fields with the
    sources of their defaults, and attributes that are not literals."""

    bases: list[str]
    docstring: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    defaults: dict[str, str] = field(default_factory=dict)
    computed: set[str] = field(default_factory=set)


def catalogue(folder: Path | str = FOLDER) -> dict[str, MethodMetadata]:
    """Method name -> `MethodMetadata` for every file of the folder, those with a leading underscore
    excepted.

    Raises ValueError, one line naming the file, if a file does not define exactly one method, or if its
    metadata is missing, not a literal, or not one of the allowed values.
    """
    shared: dict[str, _Class] = {}
    for helper in sorted({*FOLDER.glob("*/*.py")} - {Path(__file__)}):
        shared |= _classes(helper)
    found = {}
    for path in sorted(Path(folder).glob("*.py")):
        if not path.stem.startswith("_"):
            found[path.stem] = _metadata(path, shared)
    return found


def load_class(name: str) -> type[HashingMethod]:
    """The class of a method, imported. Raises ValueError, one line naming the file, if the import fails."""
    path = FOLDER / f"{name}.py"
    try:
        return method_class(importlib.import_module(f"methods.{name}"))
    except SystemExit as error:
        raise ValueError(f"{path} cannot be imported: it calls sys.exit({error.code!r})") from error
    except Exception as error:
        # A method's file may fail in any way.
        if isinstance(error, ModuleNotFoundError) and error.name == f"methods.{name}":
            raise ValueError(f"there is no method {name!r}{did_you_mean(name, catalogue())}") from error
        raise ValueError(f"{path} cannot be imported: {type(error).__name__}: {one_line(error)}") from error


def _metadata(path, shared):
    tree, classes = _parsed(path), _classes(path)
    known = shared | classes
    chosen = [name for name in classes if not name.startswith("_") and _is_method(name, known)]
    if len(chosen) != 1:
        found = ", ".join(chosen) or "none"
        raise ValueError(f"{path} must define one class derived from HashingMethod, found: {found}")
    merged = _inherit(chosen[0], known)
    for name in METADATA:
        if name in merged.computed:
            raise ValueError(f"{path}: {name} must be a literal: it is read without importing the module")
    values = merged.attributes
    problem = _problem(values, merged.parameters)
    if problem:
        raise ValueError(f"{path}: {problem}")
    summary, _, reference = (ast.get_docstring(tree) or "").strip().partition("\n")
    return MethodMetadata(
        name=path.stem,
        path=path,
        parameters=merged.parameters,
        defaults=merged.defaults,
        summary=summary,
        reference=reference.strip(),
        classes={
            one: (known[one].docstring, tuple(known[one].parameters)) for one in _line(chosen[0], known)
        },
        **{name: values[name] for name in METADATA} | {"title": values["title"] or path.stem},
    )


def _problem(values, parameters):
    """What is wrong with the metadata of a method, or None."""
    choices_of: dict[str, tuple[object, ...]] = {"supervision": SUPERVISION, "family": FAMILIES, "sees": SEES}
    choices_of |= dict.fromkeys(("end_to_end", "several_labels"), (True, False))
    for name, allowed in choices_of.items():
        if values[name] not in allowed:
            return f"{name} must be one of {', '.join(map(str, allowed))}, not {values[name]!r}"
    for name in ("title", "paper"):
        if not (values[name] is None or isinstance(values[name], str)):
            return f"{name} must be text, not {values[name]!r}"
    colour, marker, space = values["colour"], values["marker"], values["space"]
    if not (colour is None or (isinstance(colour, str) and _COLOUR.fullmatch(colour))):
        return f"colour must be '#RRGGBB', not {colour!r}"
    if not (marker is None or marker in MARKERS):
        return f"marker must be one of {' '.join(MARKERS)}, not {marker!r}"
    if not (isinstance(values["trainers"], list) and values["trainers"]):
        return f"trainers must be a list of spaces, not {values['trainers']!r}"
    spaces = [("space", space), ("common_space", values["common_space"])]
    spaces += [("trainers", trainer) for trainer in values["trainers"]]
    return next(filter(None, (_problem_of_space(*named, parameters) for named in spaces)), None)


def _problem_of_space(attribute, space, parameters):
    if not isinstance(space, dict):
        return f"{attribute} must map hyper-parameters to lists of values, not {space!r}"
    for name, choices in space.items():
        if name not in parameters:
            return f"{attribute} names an unknown hyper-parameter {name!r}{did_you_mean(name, parameters)}"
        if not isinstance(choices, dict) and (not isinstance(choices, list) or not choices):
            return f"{attribute}: {name} must be a list of values, not {choices!r}"
        if isinstance(choices, dict) and not _is_range(choices):
            return (
                f'{attribute}: {name} must be {{"log_uniform": [low, high]}}, 0 < low < high, not {choices!r}'
            )
    return None


def _is_range(axis):
    ends = axis.get("log_uniform")
    whole = len(axis) == 1 and isinstance(ends, list) and len(ends) == 2
    return whole and all(type(end) in (int, float) for end in ends) and 0 < ends[0] < ends[1]


def _parsed(path):
    try:
        return _tree(path.read_bytes(), str(path))
    except SyntaxError as error:
        raise ValueError(f"{path}, line {error.lineno}: {error.msg}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


@functools.lru_cache(maxsize=500)  # every configuration reads the same files
def _tree(source, path):
    return ast.parse(source, path)


def _classes(path):
    """Class name -> `_Class` of one source file."""
    classes = {}
    for node in _parsed(path).body:
        if not isinstance(node, ast.ClassDef):
            continue
        found = _Class(
            [
                base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
                for base in node.bases
            ],
            ast.get_docstring(node) or "",
        )
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                name, annotation = statement.target.id, ast.unparse(statement.annotation)
                if annotation.startswith("ClassVar"):
                    _assign(found, name, statement.value)
                elif name in METADATA:
                    raise ValueError(f"{path}: {name} must be a plain class attribute, without annotation")
                else:
                    found.parameters[name] = annotation
                    if statement.value is not None:
                        found.defaults[name] = ast.unparse(statement.value)
            elif isinstance(statement, ast.Assign):
                for target in statement.targets:
                    if isinstance(target, ast.Name):
                        _assign(found, target.id, statement.value)
        classes[node.name] = found
    return classes


def _assign(found, name, value):
    try:
        found.attributes[name] = ast.literal_eval(value)
    except (ValueError, TypeError, AttributeError):
        found.computed.add(name)


def _is_method(name, known):
    return name == "HashingMethod" or (
        name in known and any(_is_method(base, known) for base in known[name].bases)
    )


def _line(name, known):
    """Names of a class and of its known bases, nearest first."""
    if name not in known:
        return []
    return list(dict.fromkeys([name, *(one for base in known[name].bases for one in _line(base, known))]))


def _inherit(name, known):
    """Attributes, fields and computed attributes of a class with those of its bases, nearer ones first."""
    merged = _Class([])
    if name in known:
        own = known[name]
        for part in [*(_inherit(base, known) for base in reversed(own.bases)), own]:
            merged.attributes |= part.attributes
            merged.parameters |= part.parameters
            merged.defaults |= part.defaults
            merged.computed = (merged.computed - part.attributes.keys()) | part.computed
    return merged
