"""The available methods and their metadata, read from source: listing the methods imports none of them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from methods.base import DATABASE_LABELS, TRAINING_SET, HashingMethod
from tiebench.discovery import Kind, Plugin
from tiebench.messages import did_you_mean

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
KIND = Kind("method", "methods", FOLDER, dict.fromkeys(METADATA), base="HashingMethod")
MARKERS = tuple("osD^v<>Pp*XhHd8")  # of matplotlib: the filled ones
_INTERVAL = re.compile(r"[\[(]-?(\d+(\.\d+)?|inf), (-?\d+(\.\d+)?|inf)[\])]")
_COLOUR = re.compile(r"#[0-9A-Fa-f]{6}")
# The first paper of a reference: "Author, Author. Title. Venue 2018." A title may end in a question mark.
_PAPER = re.compile(
    r"(?P<authors>[^.]+)\. (?P<title>.+?[.?]) (?P<venue>[^.;,()?]+) (?P<year>(?:19|20)\d\d)\b"
)
_JOURNALS = ("TIP", "TPAMI", "IJCV", "TMM", "TOIS", "arXiv")


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
    def bibtex(self) -> str:
        """The first paper of `reference` as a BibTeX entry, with the family names of its authors.

        Raises ValueError, one line, for a reference of another form.
        """
        found = _PAPER.match(" ".join(self.reference.split()))
        if found is None:
            raise ValueError(
                f"{self.path}: the docstring's second paragraph must begin with a reference: Author, Author. "
                "Title. Venue 2018."
            )
        journal = found["venue"] in _JOURNALS
        fields = {
            "author": found["authors"].replace(", ", " and "),
            "title": f"{{{found['title'].removesuffix('.')}}}",
            "journal" if journal else "booktitle": found["venue"],
            "year": found["year"],
        }
        if self.paper:
            fields["url"] = self.paper
        lines = [f"  {name:<9} = {{{value}}}" for name, value in fields.items()]
        return ",\n".join([f"@{'article' if journal else 'inproceedings'}{{{self.name}", *lines]) + "\n}"

    @property
    def spaces(self) -> list[dict[str, Any]]:
        """What tuning chooses from: a space for each of `trainers`. Its values replace the method's, unless a
        list of the method's has them among others."""
        return [
            {**self.common_space, **self.space}
            | {name: axis for name, axis in trainer.items() if not _offers(self.space.get(name), axis)}
            for trainer in self.trainers
        ]


def catalogue(folder: Path | str = FOLDER) -> dict[str, MethodMetadata]:
    """Method name -> `MethodMetadata` for every file of the folder, those with a leading underscore
    excepted.

    Raises ValueError, one line naming the file, if a file does not define exactly one method, or if its
    metadata is not a literal, or not one of the allowed values.
    """
    return {name: _metadata(method) for name, method in KIND.find(Path(folder)).items()}


def _offers(axis: Any, values: Any) -> bool:
    return isinstance(axis, list) and isinstance(values, list) and all(value in axis for value in values)


def load_class(name: str) -> type[HashingMethod]:
    """The class of a method, imported. Raises ValueError, one line, for an unknown name, with the nearest,
    and for a file that cannot be imported."""
    found: type[HashingMethod] = KIND.named(name).load()
    return found


def _metadata(method: Plugin) -> MethodMetadata:
    if not re.fullmatch("[a-z0-9_]+", method.name):
        raise ValueError(f"{method.path}: the file of a method must have a name of a-z, 0-9 and _")
    said = vars(method.said)
    parameters: dict[str, str] = {}
    defaults: dict[str, str] = {}
    for body in reversed(method.classes.values()):
        parameters |= body.fields
        defaults |= body.defaults
    if problem := _problem_of_fields(method.classes, parameters) or _problem(said, parameters):
        raise ValueError(f"{method.path}: {problem}")
    return MethodMetadata(
        name=method.name,
        path=method.path,
        parameters=parameters,
        defaults=defaults,
        summary=method.summary,
        reference=method.source.docstring.partition("\n")[2].strip(),
        classes={name: (body.docstring, tuple(body.fields)) for name, body in method.classes.items()},
        **said | {"title": said["title"] or method.name},
    )


def _problem_of_fields(classes, parameters):
    """What would leave a hyper-parameter at another class's default, without an error of Python's."""
    for name, body in classes.items():
        if "__init__" in body.functions:
            return f"{name} must not define __init__: hyper-parameters are its fields, all else begins in fit"
        for one in ("learned", "changing_memory"):
            if isinstance(body.literals.get(one), str):
                return f"{name}: {one} must be a tuple of names, as ({body.literals[one]!r},)"
        if body.fields and not any("dataclass" in decorator for decorator in body.decorators):
            first = next(iter(body.fields))
            return f"{name} must be decorated with @dataclass(kw_only=True), as it defines {first}"
        for one in parameters:
            if one not in body.fields and (one in body.literals or one in body.computed):
                return f"{name} must annotate {one}, as in `{one}: {parameters[one]} = ...`"
        if problem := _problem_of_bounds(body.literals.get("bounds", {}), parameters):
            return problem
    return None


def _problem_of_bounds(bounds, parameters):
    """What is wrong with the `bounds` of a class, or None."""
    if not isinstance(bounds, dict):
        return f"bounds must map hyper-parameters to intervals, not {bounds!r}"
    for name, interval in bounds.items():
        if name not in parameters:
            return f"bounds names an unknown hyper-parameter {name!r}{did_you_mean(name, parameters)}"
        if not (isinstance(interval, str) and _INTERVAL.fullmatch(interval)):
            return f'bounds: {name} must be an interval, as "[0, inf)" or "(0, 1]", not {interval!r}'
    return None


def _problem(values, parameters):
    """What is wrong with the metadata of a method, or None."""
    choices_of: dict[str, tuple[object, ...]] = {"supervision": SUPERVISION, "family": FAMILIES, "sees": SEES}
    choices_of |= dict.fromkeys(("end_to_end", "several_labels"), (True, False))
    for name, allowed in choices_of.items():
        if values[name] not in allowed:
            return f"{name} must be one of {', '.join(map(str, allowed))}, not {values[name]!r}"
    if values["family"] == "unsupervised" and values["supervision"] != "none":
        return "family must be given: 'unsupervised', the default, is for supervision 'none'"
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
