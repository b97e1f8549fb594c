"""The command `python -m methods`: all methods as a Markdown table, the page docs/methods.md.

python -m methods > docs/methods.md
"""

from collections.abc import Sequence

from methods.base.catalogue import FAMILIES, MethodMetadata, catalogue
from tiebench.command_line import Parser

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
is the supervision that it needs; *sees* what its training has access to; *lines* the length of its file.
End to end: it can also train a network on images. `python -m methods --names` prints the names alone.

[differences.md](differences.md) says what differs from the papers, and [add-a-method.md](add-a-method.md)
how to add one. Variants, which are the same methods with other settings, are entries of
`config/methods.yaml` with a `class`.
"""


def page() -> str:
    """The text of docs/methods.md."""
    found = sorted(catalogue().values(), key=lambda about: (FAMILIES.index(about.family), about.name))
    rows = [
        "| name | title | description | family | learns from | sees | end to end | lines |",
        "|:---|:---|:---|:---|:---|:---|:---|---:|",
        *map(_row, found),
    ]
    return "\n".join([HEAD, *rows]) + "\n"


def _row(about: MethodMetadata) -> str:
    title = f"[{about.title}]({about.paper})" if about.paper else about.title
    lines = len(about.path.read_text(encoding="utf-8").splitlines())
    cells = [
        f"`{about.name}`",
        title,
        about.summary.partition(": ")[2] or about.summary,
        about.family,
        LEARNS_FROM[about.supervision],
        about.sees,
        "yes" if about.end_to_end else "no",
        str(lines),
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the page, or with --names the names of all methods, one a line."""
    parser = Parser(prog="python -m methods", description="List the methods.")
    parser.add_argument("--names", action="store_true", help="names alone, one a line")
    names = parser.parse_args(arguments).names
    print("\n".join(catalogue()) if names else page(), end="\n" if names else "")


if __name__ == "__main__":
    main()
