"""Writes what Sphinx reads: the pages of docs/ and those made from code, with links that hold in the site."""

import re
import shutil
from pathlib import Path

from methods.base.catalogue import catalogue
from workflow.documentation import api_pages, leaderboard_pages, links, method_pages, navigation, prose

_LANGUAGES = {".py": "python", ".yaml": "yaml", ".cff": "yaml"}


def write(folder: Path, root: Path) -> None:
    """Write every page, picture and file of the site into a folder that is empty or absent.

    Raises ValueError, one line, for a link that leads nowhere.
    """
    written, files = pages(root)
    for name, text in written.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for name in ("images", "notebooks"):
        shutil.copytree(root / "docs" / name, folder / name, dirs_exist_ok=True)
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / file, folder / file)


def pages(root: Path) -> tuple[dict[str, str], set[str]]:
    """Page -> text of the whole site; and the files of the repository that pages offer for download."""
    methods, known = catalogue(), api_pages.identifiers(root)
    boards = leaderboard_pages.read(root / "leaderboard")
    made = method_pages.pages(methods, root, boards) | api_pages.pages(root)
    made |= leaderboard_pages.pages(boards, method_pages.places(methods, root))
    own = {navigation.page_of(path.relative_to(root)): path for path in sorted((root / "docs").rglob("*.md"))}
    own |= {page: root / path for path, page in links.PAGES.items()}
    texts = {page: path.read_text(encoding="utf-8") for page, path in own.items()}
    index = {leaderboard_pages.INDEX: made[leaderboard_pages.INDEX]}
    sections = navigation.section_pages(texts | index)

    titles = {page: navigation.heading(text) for page, text in (sections | texts | made).items()}
    shown: set[str] = set()  # files that have a page of their text
    offered: set[str] = set()  # and those to download
    result = {}
    for page, text in (sections | texts | made).items():
        path = str(own[page].relative_to(root)) if page in own else f"docs/{page}"
        changed, targets = links.rewritten(text, path, page, root, titles)
        offered |= {one for one in targets if one.endswith(links.DOWNLOADS)}
        shown |= {one for one in targets if not one.endswith(links.DOWNLOADS)}
        if page in texts:
            changed = links.outside_code(changed, lambda part: prose.linked(part, known))
        result[page] = changed
    result["index.md"] += "\n" + navigation.of_home()
    for page, tree in navigation.of_folders(texts).items():
        result[page] += "\n" + tree
    result[navigation.METHODS] = (
        _with_pages(result[navigation.METHODS]) + "\n" + navigation.of_methods(methods)
    )
    result |= {links.source_page(path): _source(path, root) for path in shown}
    return result, offered


def _with_pages(text):
    """The list of methods with links to their pages."""
    return re.sub(
        r"^\| `(\w+)` \|",
        lambda row: f"| [`{row[1]}`]({method_pages.place(row[1])}) |",
        text,
        flags=re.MULTILINE,
    )


def _source(path, root):
    """A page with the text of a file."""
    text = (root / path).read_text(encoding="utf-8").rstrip("\n")
    language = _LANGUAGES.get(Path(path).suffix, "text")
    return f"---\norphan: true\nnosearch: true\n---\n# {path}\n\n`````{language}\n{text}\n`````\n"
