"""Settings of Sphinx for the documentation site."""

import functools
import inspect
import os
import re
import sys
from pathlib import Path

from docutils import nodes
from numpy.typing import ArrayLike
from sphinx import addnodes
from sphinx.ext.autodoc.mock import undecorate
from sphinx.transforms import SphinxTransform
from sphinx.util.typing import stringify_annotation

import tiebench
from workflow.documentation.api_pages import FUNCTIONS, MODULES

ROOT = Path(__file__).parents[2]

project = "TieBench"
author = "The TieBench authors"
copyright = "the TieBench authors, MIT licence"
version = release = tiebench.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.linkcode",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "workflow.documentation.formulas",
]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
smartquotes = False  # quotation marks of code are kept
highlight_language = "shell"  # of blocks that name none: commands
copybutton_exclude = ".linenos, .gp, .go"

# Docstrings have numpydoc's sections. The site's environment lacks what the code computes with.
autodoc_mock_imports = ["distributed", "fsspec", "pyarrow", "torch", "zarr"]
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_inherit_docstrings = False
autosummary_generate = False
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
napoleon_google_docstring = False
napoleon_use_param = napoleon_use_rtype = False  # arguments of one description stay together
default_role = "py:obj"
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "pydata_sphinx_theme"
html_title = "TieBench"
html_context = {"default_mode": "auto"}
html_static_path = ["static", "../../reporting/assets"]
html_css_files = ["site.css"]
html_js_files = ["header.js"]
html_favicon = "static/favicon.svg"
html_copy_source = False
html_show_sourcelink = False
html_last_updated_fmt = None
html_sidebars: dict[str, list[str]] = {"index": [], "quick-start": [], "faq": [], "leaderboards/*": []}
html_theme_options = {
    "logo": {"text": f"TieBench {version}"},
    "header_links_before_dropdown": 8,  # About and Development under "More"
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "back_to_top_button": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def linkcode_resolve(domain, about):
    """Called by Sphinx: the address of the line that defines an object; None without a SOURCE_URL."""
    base = os.environ.get("SOURCE_URL", "").rstrip("/")
    if not base:
        return None
    value = functools.reduce(getattr, about["fullname"].split("."), sys.modules[about["module"]])
    value = undecorate(value)
    value = inspect.unwrap(getattr(value, "fget", getattr(value, "func", value)))
    if not (inspect.isfunction(value) or inspect.isclass(value)):
        return None  # a field
    file = Path(inspect.getfile(value)).relative_to(ROOT)
    return f"{base}/{file.as_posix()}#L{inspect.getsourcelines(value)[1]}"


class NamesOfObjects(SphinxTransform):
    """Names of the library in backquotes lead to the API reference, where it has them."""

    default_priority = 20

    def apply(self, **_):
        for node in list(self.document.findall(nodes.literal)):
            name = node.astext()
            inside = isinstance(node.parent, (nodes.title, nodes.reference, addnodes.pending_xref))
            if re.fullmatch(r"(tiebench|methods\.base)(\.\w+)+", name) and not inside:
                about = {"refdomain": "py", "reftype": "obj", "reftarget": name, "refdoc": self.env.docname}
                node.replace_self(addnodes.pending_xref("", node.deepcopy(), **about))


def _short_name(app, environment, node, content):
    """`tiebench.score` is `tiebench.scoring.score`, `relaxed` and `tiebench.relaxed` are a module."""
    _, _, name = node.get("reftarget", "").rpartition("tiebench.")
    first, *rest = name.split(".")
    place = MODULES.get(first) or f"{FUNCTIONS.get(first)}.{first}"
    target = ".".join(["tiebench", place, *rest])
    domain = environment.get_domain("py")
    return domain.resolve_xref(environment, node["refdoc"], app.builder, "obj", target, node, content)


def _short_types(app, what, name, value, options, signature, returns):
    """`ArrayLike` is shown by its name, not by all that it stands for."""
    return signature and signature.replace(stringify_annotation(ArrayLike, "smart"), "ArrayLike"), returns


def _skip_fields(app, what, name, value, skip, options):
    """Fields of a named tuple, which have no docstrings of their own."""
    return type(value).__name__ == "_tuplegetter" or None


def _add_leaderboard_files(app, page, template, context, tree):
    """Style and scripts of the pages of leaderboards, which no other page loads."""
    if page.startswith("leaderboards/"):
        for name in ("tables.css", "figures.css", "leaderboards.css"):
            app.add_css_file(name)
        for name in ("sorting.js", "figures.js", "page.js", "comparison.js") * (not page.endswith("/index")):
            app.add_js_file(name, loading_method="defer")


def setup(app):
    """Called by Sphinx."""
    app.add_transform(NamesOfObjects)
    app.connect("missing-reference", _short_name)
    app.connect("autodoc-process-signature", _short_types)
    app.connect("autodoc-skip-member", _skip_fields)
    app.connect("html-page-context", _add_leaderboard_files)
