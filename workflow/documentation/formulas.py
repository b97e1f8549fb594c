"""An extension of Sphinx: formulas in LaTeX as MathML, which browsers render by themselves.

No script, no font and no network is needed. Each formula keeps its LaTeX as `alttext`.
"""

import html
import re

from docutils import nodes
from latex2mathml.converter import convert


def to_mathml(latex: str, display: bool) -> str:
    """A formula as MathML. Raises ValueError, one line with the formula, for LaTeX without translation."""
    latex = " ".join(latex.split())
    try:
        made = convert(latex, display="block" if display else "inline")
    except Exception as error:  # the converter raises errors of many classes
        raise ValueError(f"the formula {latex!r} cannot be converted: {error!r}") from error
    if unknown := re.search(r"\\[A-Za-z]+", re.sub(r'alttext="[^"]*"', "", made)):
        raise ValueError(f"the formula {latex!r} has an unknown command: {unknown[0]}")
    return made.replace("<math ", f'<math alttext="{html.escape(latex)}" ', 1)


def _inline(translator, node):
    translator.body.append(_made(node, display=False))
    raise nodes.SkipNode


def _block(translator, node):
    # A long formula scrolls by itself; with the keyboard, too.
    translator.body.append(f'<div class="formula" tabindex="0">{_made(node, display=True)}</div>')
    raise nodes.SkipNode


def _made(node, display):
    try:
        return to_mathml(node.astext(), display)
    except ValueError as error:
        from sphinx.util import logging

        logging.getLogger(__name__).warning("%s", error, location=node)
        return html.escape(node.astext())


def setup(app):
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
