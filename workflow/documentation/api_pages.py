"""Pages of the API reference: one a public module, of docstrings and signatures; and one of the commands.

Modules are read, not imported. Functions and classes become directives of Sphinx's Python domain, in
Markdown.
"""

import ast
import copy
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from tiebench import commands
from workflow.documentation.prose import as_markdown, reference

# What files of methods import, besides the library.
BASES = ("methods.base", "methods.base.deep")
INDEX, COMMANDS = "api/index.md", "api/commands.md"
HEAD = """# API reference

What a program can import from `tiebench`; `import tiebench` alone loads none of the modules. Names with a
leading underscore, and modules that are not listed here, may change without notice.

`tiebench` itself has: {functions}.

| module | what it has |
|:---|:---|
{modules}

Files of methods also import the base classes: {bases}. Programs in a shell use the [commands](commands.md).

{tree}
"""


def modules(root: Path) -> list[str]:
    """Dotted names of the library's public modules, sorted: those that `tiebench.__all__` names."""
    names = _literal(root / "tiebench" / "__init__.py", "__all__")
    return [f"tiebench.{name}" for name in sorted(names) if (root / "tiebench" / f"{name}.py").is_file()]


def identifiers(root: Path) -> dict[str, str]:
    """What pages call an object -> its name here: "tiebench.score" -> "tiebench.scoring.score"."""
    found: dict[str, str] = {}
    for module in (*modules(root), *BASES):
        found |= {module: module} | {f"{module}.{name}": f"{module}.{name}" for name in _names(root, module)}
    short = _literal(root / "tiebench" / "__init__.py", "__all__")
    for name in set(short) - {module.partition(".")[2] for module in modules(root)}:
        full = [one for one in found.values() if one.startswith("tiebench.") and one.endswith(f".{name}")]
        if full:
            found[f"tiebench.{name}"] = full[0]
    return found


def local_identifiers(root: Path, module: str, known: Mapping[str, str]) -> dict[str, str]:
    """`identifiers`, and what the docstrings of a module call its own objects and those of its neighbours."""
    found = dict(known)
    for name, full in known.items():
        if name.startswith("tiebench.") and name.count(".") == 2:
            found.setdefault(name.removeprefix("tiebench."), full)
    found |= {name: f"{module}.{name}" for name in _names(root, module) if f"{module}.{name}" in known}
    return found


def place(module: str) -> str:
    """A module's page, path among the site's sources."""
    return f"api/{module}.md"


def pages(root: Path) -> dict[str, str]:
    """Path among the site's sources -> text, of every page."""
    known = identifiers(root)
    every = (*modules(root), *BASES)
    made = {place(name): _module(root, name, local_identifiers(root, name, known)) for name in every}
    rows = [f"| [`{name}`]({name}.md) | {as_markdown(_summary(root, name))} |" for name in modules(root)]
    functions = [reference(name, full) for name, full in sorted(known.items()) if name != full]
    bases = [f"[`{name}`]({name}.md)" for name in BASES]
    tree = toctree([*(f"{name}.md" for name in every), "commands.md"], hidden=True)
    made[INDEX] = HEAD.format(
        functions=", ".join(functions), modules="\n".join(rows), bases=" and ".join(bases), tree=tree
    )
    made[COMMANDS] = _commands(root)
    return made


def toctree(pages: Iterable[str], hidden: bool = False, caption: str = "") -> str:
    """A tree of pages for Sphinx. pages: paths below the page that has the tree."""
    options = [
        *([f":caption: {caption}"] if caption else []),
        *([":hidden:"] if hidden else []),
        ":maxdepth: 1",
    ]
    return "\n".join(["```{toctree}", *options, "", *pages, "```"])


def _module(root, module, links):
    """The page of a module: its docstring, then every public object with its signature and docstring."""
    file = module_file(root, module).relative_to(root)
    tree = _tree(root / file)
    text = as_markdown(ast.get_docstring(tree) or "", (), {k: v for k, v in links.items() if v != module})
    parts = [f"# {module}", f"```{{py:module}} {module}\n```", text, f"File: [{file}](../../{file})"]
    for node in _public(tree):
        described = _class if isinstance(node, ast.ClassDef) else _function
        parts += [f"## {node.name}", described(node, links, "function")]
    return "\n\n".join(parts) + "\n"


def _function(node, links, kind):
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    options = [f":{name}:" for name in ("classmethod", "staticmethod") if name in decorators]
    arguments = node.args
    names = {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    if kind == "method" and "staticmethod" not in decorators:
        arguments = copy.deepcopy(arguments)
        (arguments.posonlyargs or arguments.args).pop(0)
    returns = ast.unparse(node.returns) if node.returns else ""
    signature = f"{node.name}({ast.unparse(arguments)})" + (f" -> {returns}" if returns else "")
    if decorators & {"property", "cached_property", "functools.cached_property"}:
        kind, signature, options = "property", node.name, [f":type: {returns}"] if returns else []
    return _directive(kind, signature, options, as_markdown(ast.get_docstring(node) or "", names, links))


def _class(node, links, _):
    """A class: its fields as parameters, and its public methods."""
    bases = {ast.unparse(base) for base in node.bases}
    plain = bool(bases & {"NamedTuple"}) or any(
        "dataclass" in ast.unparse(one) for one in node.decorator_list
    )
    fields = [one for one in node.body if isinstance(one, ast.AnnAssign) and not _hidden(one)]
    methods = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}
    signature = node.name
    if plain and fields:
        signature += f"({', '.join(ast.unparse(one) for one in fields)})"
    elif "__init__" in methods:
        arguments = copy.deepcopy(methods["__init__"].args)
        arguments.args.pop(0)
        signature += f"({ast.unparse(arguments)})"
    names = {one.target.id for one in fields if isinstance(one.target, ast.Name)}
    if "__init__" in methods:
        names |= {one.arg for one in (*methods["__init__"].args.args, *methods["__init__"].args.kwonlyargs)}
    own = links | {
        one: f"{links.get(node.name, node.name)}.{one}" for one in methods if not one.startswith("_")
    }
    text = as_markdown(ast.get_docstring(node) or "", names, own)
    inner = [_function(one, own, "method") for name, one in methods.items() if not name.startswith("_")]
    kind = "exception" if any(base.endswith("Error") for base in bases) else "class"
    return _directive(kind, signature, [], "\n\n".join([text, *inner]), outer=True)


def _hidden(field):
    return field.target.id.startswith("_") or ast.unparse(field.annotation).startswith("ClassVar")


def _directive(kind, signature, options, text, outer=False):
    fence = "`" * (7 if outer else 5)
    return "\n".join([f"{fence}{{py:{kind}}} {signature}", *options, "", text, fence])


def _commands(root):
    parts = ["# Commands", "`python -m tiebench` is the same program as `tiebench`."]
    for name in ("", *commands.KIND.find()):
        parts += [f"## tiebench {name}".rstrip(), f"```text\n{_help(root, name)}\n```"]
    return "\n\n".join(parts) + "\n"


def _help(root, name):
    words = [sys.executable, "-m", "tiebench", *filter(None, [name]), "--help"]
    environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run(words, cwd=root, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def module_file(root: Path, module: str) -> Path:
    """The file of a module, of a package its __init__.py."""
    path = root.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _tree(path):
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def _public(tree):
    """The public functions and classes that a module defines."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    return [node for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")]


def _names(root, module):
    return [node.name for node in _public(_tree(module_file(root, module)))]


def _summary(root, module):
    text = (ast.get_docstring(_tree(module_file(root, module))) or "").strip().split("\n")[0]
    if not text:
        raise ValueError(f"{module_file(root, module)} has no docstring")
    return text


def _literal(path, name):
    for node in _tree(path).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == name:
            return ast.literal_eval(node.value)
    raise ValueError(f"{path} does not define {name}")
