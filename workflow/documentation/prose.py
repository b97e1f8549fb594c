"""Docstrings as Markdown: parameters become lists, examples become code, names become links.

The docstrings of this project are prose. A line, or a sentence, that begins with names of parameters and a
colon describes these:

    query (Q, b), database (N, b): codes, as arrays or tensors.
    bits: b of packed codes; threads: how many share the queries.
"""

import re
from collections.abc import Collection, Mapping

_NAME = r"[A-Za-z_]\w*(?: \([^()]*(?:\([^()]*\)[^()]*)*\))?"
_NAMES = rf"{_NAME}(?:, {_NAME})*"
_FORMULA = re.compile(r"^\$\$.*?\$\$$", re.DOTALL)
_SPAN = re.compile(r"(``.+?``|`[^`]+`|\$[^$\n]+\$)", re.DOTALL)


def as_markdown(docstring: str, names: Collection[str] = (), links: Mapping[str, str] | None = None) -> str:
    """The text of a docstring as Markdown.

    names: parameters or fields that it may describe. links: what stands in backquotes, as "tiebench.score",
    -> the identifier of the object in the API reference.
    """
    blocks = re.split(r"\n[ \t]*\n", docstring.strip("\n"))
    return "\n\n".join(_block(block, names, links or {}) for block in blocks)


def _block(block: str, names: Collection[str], links: Mapping[str, str]) -> str:
    if block.lstrip().startswith(">>>"):
        return f"```pycon\n{block}\n```"
    if block.startswith("    ") or _FORMULA.match(block):
        return block
    lines = [_inline(line, links) for line in _sentences(block, names)]
    return "\n".join(_item(line, names) for line in lines)


def _sentences(block: str, names: Collection[str]) -> list[str]:
    """The block, cut where the description of a parameter begins; a list keeps its lines."""
    if re.match(r"[*-] ", block):
        return [block]
    text = re.sub(r"\s*\n\s*", "\n", block)
    pieces, start = [], 0
    for found in re.finditer(rf"(?:^|(?<=[.;)] )|(?<=\n))({_NAMES}): ", text):
        if found.start(1) > start and _all_known(found[1], names):
            pieces.append(text[start : found.start(1)])
            start = found.start(1)
    return [piece.strip() for piece in (*pieces, text[start:])]


def _all_known(described: str, names: Collection[str]) -> bool:
    found = re.findall(r"(?:^|, )([A-Za-z_]\w*)(?= \(|, |$)", re.sub(r"\([^,]*,[^)]*\)", "()", described))
    return bool(found) and all(name in names for name in found)


def _item(line: str, names: Collection[str]) -> str:
    """A description of parameters as an item of a list; what else there is unchanged."""
    found = re.match(rf"({_NAMES}): ", line)
    if not found or not _all_known(found[1], names):
        return line
    described = re.sub(r"([A-Za-z_]\w*)(?=(?: \(|, |$))", lambda name: _bold(name[1], names), found[1])
    text = line[found.end() :].rstrip(";").replace("\n", "\n  ")
    return f"- {described}: {text}"


def _bold(word: str, names: Collection[str]) -> str:
    return f"**`{word}`**" if word in names else word


def _inline(text: str, links: Mapping[str, str]) -> str:
    """Text with links from names in backquotes, and without what Markdown takes for HTML."""
    parts = _SPAN.split(text)
    for place, part in enumerate(parts):
        if place % 2 == 0:
            parts[place] = part.replace("&", "&amp;").replace("<", "&lt;").replace("*)", "\\*)")
        elif part.strip("`") in links:
            parts[place] = reference(part.strip("`"), links[part.strip("`")])
    return "".join(parts)


def reference(text: str, identifier: str) -> str:
    """A link to an object of the API reference."""
    return f"{{py:obj}}`{text} <{identifier}>`"


def linked(markdown: str, links: Mapping[str, str]) -> str:
    """A page whose names in backquotes lead to the API reference; code, links and headings are unchanged."""
    kept = re.compile(
        r"^(?:```.*?^```[ \t]*$|(?:    |\t|#).*?$)|``.+?``|!?\[[^\]]*\]\([^)]*\)",
        re.DOTALL | re.MULTILINE,
    )
    pieces, start = [], 0
    for found in [*kept.finditer(markdown), None]:
        text = markdown[start : found.start() if found else len(markdown)]
        pieces.append(
            re.sub(
                r"(?<![\[`])`([\w.]+)`(?!`)",
                lambda name: reference(name[1], links[name[1]]) if name[1] in links else name[0],
                text,
            )
        )
        if found:
            pieces.append(found[0])
            start = found.end()
    return "".join(pieces)
