"""Links of the repository's Markdown, which are relative to its files, as links of the site's pages."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

# Pages outside of docs/ that the site has too: path in the repository -> path among the site's sources.
PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "leaderboard/README.md": "leaderboard.md",
    "results/README.md": "result-files.md",
}
SOURCES = "source/"
DOWNLOADS = (".csv", ".json")  # files that the site offers as they are; others have a page of their text
_FENCED = re.compile(r"^([ \t]*)(```+|~~~+).*?^\1\2[`~]*[ \t]*$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<=\[)([^\[\]]*)(\]\()([^)\s]+)(\))")
_COMMENT = re.compile(r"^<!--.*?-->[ \t]*\n?", re.DOTALL | re.MULTILINE)


def source_page(path: str) -> str:
    """The site's page of a file of the repository that is no page itself."""
    return f"{SOURCES}{path.replace('/', '-')}.md"


def site_path(path: str) -> str:
    """Where the site has a file of the repository: path among the sources.

    README.md is the home page. Other files have a page with their text, or are offered for download.
    """
    if path == "README.md":
        return "index.md"
    if path in PAGES:
        return PAGES[path]
    if path.startswith("docs/") and not path.startswith("docs/examples/"):
        return path.removeprefix("docs/")
    return path if path.endswith(DOWNLOADS) else source_page(path)


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """`change` applied to the parts of a page that are not fenced code."""
    pieces, start = [], 0
    for block in _FENCED.finditer(text):
        pieces += [change(text[start : block.start()]), block[0]]
        start = block.end()
    return "".join([*pieces, change(text[start:])])


def rewritten(
    text: str, repository_path: str, page: str, root: Path, made: Mapping[str, str]
) -> tuple[str, set[str]]:
    """A page's text with links that hold in the site, without HTML comments; and the files that it links to.

    repository_path: of the page's file, as "docs/faq.md"; page: its path among the site's sources; made:
    page of the site -> its title, which replaces the name of a file as the text of a link. The files are
    those of the repository that have no page of their own: `source_page` of each must be made, or the file
    be copied (`DOWNLOADS`).

    Raises ValueError, one line, for a link to a file that is not there.
    """
    files: set[str] = set()

    def change(part: str) -> str:
        return _LINK.sub(replace, _COMMENT.sub("", part))

    def replace(link: re.Match) -> str:
        target, hash_, anchor = link[3].partition("#")
        if not target or re.match(r"[a-z]+:", target):
            return link[0]
        path = os.path.normpath(os.path.join(os.path.dirname(repository_path), target))  # noqa: PTH118, PTH120
        place = path.removeprefix("docs/")
        if not (path.startswith("docs/") and place in made):
            if path.startswith("..") or not (root / path).exists():
                raise ValueError(f"{repository_path}: the link to {target} leads to no file")
            if (root / path).is_dir():
                path = f"{path}/README.md"
            if not (root / path).is_file():
                raise ValueError(f"{repository_path}: the site has no page for the folder {target}")
            place = site_path(path)
            if place.startswith(SOURCES) or place == path:
                files.add(path)
        relative = os.path.relpath(place, os.path.dirname(page) or ".")  # noqa: PTH120
        shown = link[1]
        if shown.endswith(".md") and target.endswith(shown.rpartition("/")[2]):
            shown = made[place]
        return f"{shown}{link[2]}{relative}{hash_}{anchor}{link[4]}"

    return outside_code(text, change), files
