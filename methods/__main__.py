"""The command `python -m methods`: all methods as a Markdown table, the page docs/methods.md.

python -m methods > docs/methods.md
"""

import sys
from collections.abc import Sequence

from methods.base.catalogue import FAMILIES, MethodMetadata, catalogue
from tiebench.command_line import Parser, word
from tiebench.messages import did_you_mean, one_line

LEARNS_FROM = {  # supervision -> words for it
    "none": "no labels",
    "binary": "binary affinity",
    "graded": "graded affinity",
    "labels": "labels",
}
HEAD = """# Methods

Every file of `methods/`, as `python -m methods > docs/methods.md` lists them. *Family* is what the loss
compares: an item with its class (classwise), pairs (pointwise), triplets (pairwise) or lists; a bound is what
hashing has to beat; *learns from*
is the supervision that it needs; *sees* what its training has access to.
End to end: it can also train a network on images. `python -m methods --names` prints the names alone.

[differences.md](differences.md) says what differs from the papers, and [add-a-method.md](add-a-method.md)
how to add one. Variants, which are the same methods with other settings, are entries of
`config/methods.yaml` with a `class`.
"""


def page() -> str:
    """The text of docs/methods.md."""
    found = sorted(catalogue().values(), key=lambda about: (FAMILIES.index(about.family), about.name))
    rows = [
        "| name | title | description | family | learns from | sees | end to end |",
        "|:---|:---|:---|:---|:---|:---|:---|",
        *map(_row, found),
    ]
    return "\n".join([HEAD, *rows]) + "\n"


def _row(about: MethodMetadata) -> str:
    title = f"[{about.title}]({about.paper})" if about.paper else about.title
    cells = [
        f"`{about.name}`",
        title,
        about.summary.partition(": ")[2] or about.summary,
        about.family,
        LEARNS_FROM[about.supervision],
        about.sees,
        "yes" if about.end_to_end else "no",
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the page, or what an option asks for."""
    parser = Parser(prog="python -m methods", description="List the methods.")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--names", action="store_true", help="names alone, one a line")
    kind.add_argument(
        "--bibtex",
        nargs="*",
        type=word,
        metavar="METHOD",
        help="papers of methods (default: all) as BibTeX; a method, or the address of its paper",
    )
    options = parser.parse_args(arguments)
    try:
        catalogue()
    except ValueError as error:
        raise SystemExit(f"error: {one_line(error)}") from None
    try:
        if options.bibtex is not None:
            print("\n\n".join(_entries(options.bibtex)))
        elif options.names:
            print("\n".join(catalogue()))
        else:
            print(page(), end="")
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, say `head`, has enough
        sys.stderr.close()


def _entries(names: Sequence[str]) -> list[str]:
    """BibTeX entries of methods, of one paper that several are of the first; exits for an unknown name."""
    found = catalogue()
    entries: dict[str, str] = {}
    of_papers = {about.paper: about for about in reversed(found.values()) if about.paper}
    for name in names or found:
        if name not in found and name not in of_papers:
            raise SystemExit(f"error: there is no method {name!r}{did_you_mean(name, found)}")
        about = found.get(name) or of_papers[name]
        entries.setdefault(about.reference.partition(". ")[0] + str(about.paper), about.bibtex)
    return list(entries.values())


if __name__ == "__main__":
    main()
