"""Writes what Sphinx reads: the pages of docs/ and those made from code, with links that hold in the site."""

import functools
import os
import re
import shutil
from pathlib import Path

from methods.base.catalogue import catalogue
from workflow.documentation import (
    api_pages,
    leaderboard_models,
    leaderboard_pages,
    method_pages,
    navigation,
    notebooks,
)

# Pages outside of docs/ that the site has too: path in the repository -> path among the site's sources.
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "leaderboard/README.md": "leaderboard.md",
    "results/README.md": "result-files.md",
}
DOWNLOADS = (".csv", ".json", ".ipynb")  # files that the site offers as they are; others are pages of text
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".cff": "yaml"}
_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)\s#]+)(?=[)#])")


def write(folder: Path, root: Path) -> None:
    """Write every page, picture and file of the site into a folder that is empty or absent."""
    written, files = pages(root)
    shutil.copytree(root / "docs" / "images", folder / "images", dirs_exist_ok=True)
    contents = {place: text.encode() for place, text in written.items()}
    for place, data in (contents | {to: (root / path).read_bytes() for to, path in files.items()}).items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(data)


def pages(root: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Page -> text of the whole site; and the files for download, place in the site -> path."""
    methods, boards = catalogue(), leaderboard_models.read(root / "leaderboard")
    made = api_pages.pages(root) | method_pages.pages(methods, root, boards) | navigation.section_pages()
    made |= leaderboard_pages.pages(boards, method_pages.places(methods, root))
    places = PAGES | notebooks.places(root)
    texts = {f"docs/{page}": text for page, text in made.items()}
    texts |= {path: notebooks.page(root / path) for path in notebooks.places(root)}
    own = [*(root / "docs").rglob("*.md"), *(root / path for path in PAGES if path != "README.md")]
    texts |= {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in own}
    texts[f"docs/{navigation.METHODS}"] = _with_pages(texts[f"docs/{navigation.METHODS}"])
    for page, tree in navigation.trees(methods).items():
        texts[f"docs/{page}"] += f"\n{tree}\n"

    # Place in the site -> file of the repository without a page of its own.
    linked = {path.removeprefix("docs/"): path for path in notebooks.places(root)}
    result = {}
    for path, text in texts.items():
        page = places.get(path) or path.removeprefix("docs/")
        change = functools.partial(_in_site, path, page, root, places, linked)
        result[page] = _LINK.sub(change, text)
    shown = {place: path for place, path in linked.items() if not path.endswith(DOWNLOADS)}
    result |= {place: _source(path, root) for place, path in shown.items()}
    return result, {place: path for place, path in linked.items() if place not in shown}


def _in_site(path, page, root, places, linked, link):
    """A link of a file of the repository as one of its page. Sphinx reports what leads nowhere."""
    found = os.path.normpath(os.path.join(os.path.dirname(path), link[0]))  # noqa: PTH118, PTH120
    if (root / found).is_dir():
        found += "/README.md"
    place = places.get(found) or found.removeprefix("docs/")
    if (place == found or found.startswith("docs/examples/")) and (root / found).is_file():
        place = found if found.endswith(DOWNLOADS) else f"source/{found.replace('/', '-')}.md"
        linked[place] = found
    return os.path.relpath(place, os.path.dirname(page) or ".")  # noqa: PTH120


def _with_pages(text):
    """The list of methods with links to their pages."""
    return re.sub(r"(?m)^\| `(\w+)` \|", lambda row: f"| [`{row[1]}`]({method_pages.place(row[1])}) |", text)


def _source(path, root):
    """A page with the text of a file."""
    text = (root / path).read_text(encoding="utf-8").rstrip("\n")
    language = _LANGUAGES.get(Path(path).suffix, "text")
    return f"---\norphan: true\nnosearch: true\n---\n# {path}\n\n`````{language}\n{text}\n`````\n"
