"""Links from the API reference to the lines of the repository that define an object.

The site knows no address of its repository: `python -m workflow.documentation --source-url URL` (`make docs
SOURCE_URL=URL`) gives it, as https://host/owner/repository/blob/main. Without one there are no such links.
"""

import ast
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from workflow.documentation.api_pages import module_file

ROOT = Path(__file__).parents[2]


def resolver(url: str) -> Callable[[str, Mapping[str, str]], str | None]:
    """What `sphinx.ext.linkcode` calls for each object: its address below `url`, or None without a URL.

    The address ends in #L and the line, which GitHub, GitLab and Gitea understand.
    """
    base = url.rstrip("/")

    def resolve(domain: str, about: Mapping[str, str]) -> str | None:
        if not base or domain != "py" or not about.get("module"):
            return None
        path = module_file(ROOT, about["module"])
        return f"{base}/{path.relative_to(ROOT).as_posix()}#L{line(path, about['fullname'])}"

    return resolve


def line(path: Path, name: str) -> int:
    """The line of `def` or `class` of an object, "function" or "Class.method"; KeyError if there is none."""
    node: Any = ast.parse(path.read_text(encoding="utf-8"), str(path))
    for part in name.split("."):
        kinds = (ast.FunctionDef, ast.ClassDef)
        found = {one.name: one for one in node.body if isinstance(one, kinds)}
        node = found[part]
    return node.lineno


def setup(app: Any) -> dict[str, bool]:
    """As an extension of Sphinx: the setting `source_url`, and the links."""
    app.add_config_value("source_url", "", "env", types=(str,))
    app.setup_extension("sphinx.ext.linkcode")
    app.connect(
        "config-inited", lambda _, config: setattr(config, "linkcode_resolve", resolver(config.source_url))
    )
    return {"parallel_read_safe": True}
