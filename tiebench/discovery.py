"""What is found by itself: the files of a folder, and what each says of itself.

Methods, networks, figures, loaders, kinds of split and of affinity, libraries of backbones and commands are
plug-ins. Every file of their folder whose name does not start with an underscore is one, named as the file.
What it says of itself are literals, read from its source: nothing is imported before it is used. They are
constants in capitals, as `OPTIONS = {}`, or, where a file defines a class, attributes of the class, as
`options = {}`, which inherits those of its bases.
"""

import ast
import functools
import importlib
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tiebench.messages import did_you_mean, one_line

ROOT = Path(__file__).parents[1]
TYPES = {str: "a text", dict: "a dictionary", tuple: "a tuple", bool: "True or False"}


@dataclass
class Body:
    """What the statements of a module or of a class define.

    Attributes
    ----------
    docstring : str
    bases, decorators : list of str
        Of a class, as written: "HashingMethod" or "deep.DeepHashing", "dataclass(kw_only=True)".
    literals : dict
        Name -> value.
    computed : set of str
        Names whose values are no literals.
    fields : dict
        Name -> annotation, of the annotated attributes of a class that are no `ClassVar`.
    defaults : dict
        Name -> source of the default of such a field.
    classes : dict
        Name -> `Body`.
    functions : set of str
    imports : dict
        Name -> what it stands for: "deep" -> "methods.base.deep".
    """

    docstring: str = ""
    bases: list[str] = field(default_factory=list)
    decorators: list[str] = field(default_factory=list)
    literals: dict[str, Any] = field(default_factory=dict)
    computed: set[str] = field(default_factory=set)
    fields: dict[str, str] = field(default_factory=dict)
    defaults: dict[str, str] = field(default_factory=dict)
    classes: dict[str, "Body"] = field(default_factory=dict)
    functions: set[str] = field(default_factory=set)
    imports: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of plug-in.

    Parameters
    ----------
    what : str
        What messages call one, as "loader".
    package : str
        Dotted name of the package of its files.
    folder : Path
        Folder of its files.
    says : Mapping
        What a file says of itself, in lower case: name -> the type of a value that it must give, or the
        value that stands for one that it does not give.
    defines : tuple of str
        Functions that a file must define.
    base : str, optional
        Name of the class from which the one public class of each file derives.
    hyphens : bool
        Whether an underscore in the name of a file is a hyphen in that of the plug-in.
    """

    what: str
    package: str
    folder: Path
    says: Mapping[str, Any]
    defines: tuple[str, ...] = ()
    base: str | None = None
    hyphens: bool = False

    def find(self, folder: Path | None = None) -> dict[str, "Plugin"]:
        """Find the files of the folder, or of another; none is opened.

        Returns
        -------
        dict
            Name -> `Plugin`, sorted by name. An underscore at the end of a file's name, for words that Python
            reserves, is no part of the plug-in's name: class_.py is `class`.
        """
        found = {}
        for path in (folder or self.folder).glob("[!_]*.py"):
            name = path.stem.removesuffix("_")
            found[name.replace("_", "-") if self.hyphens else name] = path
        return {name: Plugin(self, name, found[name]) for name in sorted(found)}

    def named(self, name: object) -> "Plugin":
        """The plug-in of a name; raises ValueError, with the nearest name, if there is none."""
        found = self.find()
        if not isinstance(name, str) or name not in found:
            raise ValueError(f"there is no {self.what} {name!r}{did_you_mean(name, found)}")
        return found[name]


@dataclass(frozen=True)
class Plugin:
    """A file that was found; it is read when the first attribute is asked for, and imported by `load`."""

    kind: Kind
    name: str
    path: Path

    @property
    def module(self) -> str:
        """Dotted name of the module."""
        return f"{self.kind.package}.{self.path.stem}"

    @functools.cached_property
    def source(self) -> Body:
        """What the file defines; raises ValueError, one line naming the file, if it is not Python."""
        return source(self.path, self.kind.package)

    @property
    def summary(self) -> str:
        """First line of the docstring."""
        return self.source.docstring.partition("\n")[0]

    @functools.cached_property
    def classes(self) -> dict[str, Body]:
        """Name -> what it defines: of the plug-in's class, then of its bases, nearest first.

        Raises
        ------
        ValueError
            One line that names the file, if it does not define exactly one such class, or one that has the
            name of a base.
        """
        lines = [list(_line(name, self.source)) for name in self.source.classes if name[0] != "_"]
        found = [line for line in lines if self.kind.base in dict(line)]
        if len(found) != 1:
            names = ", ".join(line[0][0] for line in found) or "none"
            raise ValueError(
                f"{self.path}: must define one class derived from {self.kind.base}, found: {names} (a file of"
                " helpers has a name with a leading underscore)"
            )
        classes: dict[str, Body] = {}
        for name, body in found[0]:
            if classes.setdefault(name, body) is not body:
                raise ValueError(f"{self.path}: {name} has the name of one of its bases")
        return classes

    @functools.cached_property
    def said(self) -> SimpleNamespace:
        """What the file says of itself, as attributes with the names of `Kind.says`.

        Raises
        ------
        ValueError
            One line that names the file, if something is missing, no literal or of another type.
        """
        of_class = self.kind.base is not None
        bodies = list(self.classes.values()) if of_class else [self.source]
        found, missing = {}, []
        for name, expected in self.kind.says.items():
            written = name if of_class else name.upper()
            body = next((one for one in bodies if written in one.literals or written in one.computed), Body())
            if of_class and any(written in one.fields for one in bodies):
                raise ValueError(
                    f"{self.path}: {written} must be a plain class attribute, without annotation"
                )
            if written in body.computed:
                raise ValueError(
                    f"{self.path}: {written} must be a literal: it is read without importing the module"
                )
            if written not in body.literals and isinstance(expected, type):
                missing.append(written)
                continue
            value = found[name] = body.literals.get(written, expected)
            kind = expected if isinstance(expected, type) else type(expected)
            if kind in TYPES and not isinstance(value, (tuple, list) if kind is tuple else kind):
                raise ValueError(f"{self.path}: {written} must be {TYPES[kind]}, not {value!r}")
        known = {*self.source.functions, *self.source.imports, *self.source.computed}
        missing += [name for name in self.kind.defines if name not in known]
        if missing:
            raise ValueError(f"{self.path}: must define {', '.join(missing)}, as each {self.kind.what}")
        return SimpleNamespace(**found)

    def load(self) -> Any:
        """The module, imported, or its class where the kind has a base.

        Raises
        ------
        ValueError
            One line that names the file, if it cannot be imported.
        """
        if self.path.with_suffix("").is_dir():
            raise ValueError(f"{self.path}: cannot be imported: a folder has the same name")
        try:
            module = importlib.import_module(self.module)
        except SystemExit as error:
            raise ValueError(f"{self.path}: cannot be imported: it calls sys.exit({error.code!r})") from error
        except Exception as error:
            # A file that a user wrote can fail with any error.
            frames = traceback.extract_tb(error.__traceback__)
            lines = [frame.lineno for frame in frames if frame.filename == str(self.path)]
            where = f"{self.path}, line {lines[-1]}" if lines else str(self.path)
            message = f"{where}: cannot be imported: {type(error).__name__}: {one_line(error)}"
            raise ValueError(message) from error
        return module if self.kind.base is None else getattr(module, next(iter(self.classes)))


def source(path: Path, package: str) -> Body:
    """What a Python file of a package defines; raises ValueError, one line naming the file, if it is not
    Python."""
    return _module(path.read_bytes(), str(path), package)


def tree(path: Path) -> ast.Module:
    """The syntax tree of a Python file; raises as `source`."""
    return _tree(path.read_bytes(), str(path))


def imported_from(statement: ast.ImportFrom, package: str) -> str:
    """Dotted name of the module that a file of a package imports from, as `from ._helper import ...`."""
    names = package.split(".")
    above = names[: len(names) - statement.level + 1] if statement.level else []
    return ".".join([*above, *filter(None, [statement.module])])


@functools.lru_cache(maxsize=1000)  # every configuration reads the same files
def _tree(text: bytes, path: str) -> ast.Module:
    try:
        return ast.parse(text, path)
    except SyntaxError as error:
        raise ValueError(f"{path}, line {error.lineno}: {error.msg}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


@functools.lru_cache(maxsize=1000)
def _module(text: bytes, path: str, package: str) -> Body:
    return _body(_tree(text, path), package)


def _body(node: ast.Module | ast.ClassDef, package: str) -> Body:
    found = Body((ast.get_docstring(node) or "").strip())
    of_class = isinstance(node, ast.ClassDef)
    if isinstance(node, ast.ClassDef):
        found.bases = [ast.unparse(base) for base in node.bases]
        found.decorators = [ast.unparse(one) for one in node.decorator_list]
    for statement in node.body:
        match statement:
            case ast.ClassDef():
                found.classes[statement.name] = _body(statement, package)
            case ast.FunctionDef():
                found.functions.add(statement.name)
            case ast.Import() | ast.ImportFrom():
                start = ""
                if isinstance(statement, ast.ImportFrom):
                    start = f"{imported_from(statement, package)}."
                for alias in statement.names:
                    found.imports[alias.asname or alias.name] = start + alias.name
            case ast.Assign():
                for target in statement.targets:
                    _assign(found, target, statement.value)
            case ast.AnnAssign(target=ast.Name(id=name)):
                annotation = ast.unparse(statement.annotation)
                if of_class and not annotation.startswith("ClassVar"):
                    found.fields[name] = annotation
                    if statement.value is not None:
                        found.defaults[name] = ast.unparse(statement.value)
                elif statement.value is not None:
                    _assign(found, statement.target, statement.value)
    return found


def _assign(found: Body, target: ast.expr, value: ast.expr) -> None:
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    values = value.elts if isinstance(value, ast.Tuple) and len(names) == len(value.elts) > 1 else [value]
    for place, name in enumerate(names):
        if isinstance(name, ast.Name):
            try:
                found.literals[name.id] = ast.literal_eval(values[place])
            except (ValueError, TypeError, AttributeError, IndexError):
                found.computed.add(name.id)


def _line(name: str, module: Body, inside: tuple[str, ...] = ()) -> Iterator[tuple[str, Body]]:
    """A class that a module knows by a name, and its bases, nearest first, as far as they are in `ROOT`.

    inside: classes of the module whose bases are looked for: a base of the same name is one that it imports.
    """
    if name in module.classes and name not in inside:
        yield name, module.classes[name]
        for base in module.classes[name].bases:
            yield from _line(base, module, (*inside, name))
        return
    first, _, rest = name.partition(".")
    if first in module.imports:
        place, _, name = ".".join([module.imports[first], *filter(None, [rest])]).rpartition(".")
        path = ROOT.joinpath(*place.split("."))
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                yield from _line(name, source(file, ".".join(file.relative_to(ROOT).parent.parts)))
