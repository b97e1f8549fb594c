"""An extension of Sphinx: formulas in LaTeX as MathML, which browsers render by themselves.

Sphinx's own renderers need a network (MathJax) or a TeX (images). Each formula keeps its LaTeX as `alttext`.
"""

import html
import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging


def _render(translator, node):
    latex, block = " ".join(node.astext().split()), isinstance(node, nodes.math_block)
    try:
        made = convert(latex, display="block" if block else "inline")
        if unknown := re.search(r"\\[A-Za-z]+", made):
            raise ValueError(f"unknown command {unknown[0]}")
    except Exception as error:  # the converter raises errors of many classes
        logging.getLogger(__name__).warning("%r is no formula: %r", latex, error, location=node)
        made = html.escape(latex)
    made = made.replace("<math ", f'<math alttext="{html.escape(latex)}" ', 1)
    # A long formula scrolls by itself; with the keyboard, too.
    translator.body.append(f'<div class="formula" tabindex="0">{made}</div>' if block else made)
    raise nodes.SkipNode


def setup(app):
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", inline_renderers=(_render, None), block_renderers=(_render, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
