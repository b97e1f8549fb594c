"""The built site: every link and anchor resolves, nothing comes from the network, formulas are rendered.

Built once, strictly, with the environment that `make docs` creates; without it these tests are skipped.
TIEBENCH_SITE names the site that `make docs SOURCE_URL=https://example.org/owner/name/blob/main` has built of
this checkout, if it has: .ci/run builds it once.
"""

import importlib
import inspect
import itertools
import json
import os
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from files import documentation_python

from methods.base.catalogue import catalogue

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
SOURCES = "https://example.org/owner/name/blob/main/"


class Page(HTMLParser):
    """ids: anchors; links: addresses of <a>; loads: of what a browser fetches by itself; words: its text."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loads, self.words = set(), [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids |= {given["id"]} if given.get("id") else set()
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") not in ("search", "next", "prev", "index", "canonical"):
            self.loads.append(given["href"])
        elif tag in ("script", "img", "iframe", "source", "video") and given.get("src"):
            self.loads.append(given["src"])

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    python = documentation_python()
    if built := os.environ.get("TIEBENCH_SITE"):
        return Path(built)
    folder = tmp_path_factory.mktemp("site")
    words = [python, "-m", "workflow.documentation", str(folder), "--source-url", SOURCES]
    made = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))
            if "_static" not in path.parts}  # fmt: skip


def test_every_internal_link_and_anchor_resolves(site, pages):
    broken, seen = [], 0
    for path, page in pages.items():
        for link in {*page.links, *page.loads}:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            seen += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                broken.append(f"{path.relative_to(site)}: {link}")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                broken.append(f"{path.relative_to(site)}: {link} (no such anchor)")
    assert broken == [] and seen > 5000


def test_nothing_is_loaded_from_the_network(site, pages):
    loads = {(path.name, load) for path, page in pages.items() for load in page.loads}
    own = re.compile(r"data:image/png|(?!\w+:|//)")
    assert [pair for pair in loads if not own.match(pair[1])] == []
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", sheet.read_text(encoding="utf-8")), (
            sheet
        )


def test_formulas_are_rendered_and_none_is_left(site, pages):
    methods = {path: page for path, page in pages.items() if path.parent.name == "methods"}
    assert len(methods) == len(catalogue())
    for path, page in pages.items():
        if path.parent.name != "source" and "add-a-method" not in path.name:  # which show it in code
            assert "$$" not in "".join(page.words), path.name


def test_the_search_knows_methods_functions_and_words(site):
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text[text.index("{") : text.rindex("}") + 1])
    assert {about.title for about in catalogue().values()} <= set(index["titles"])
    names = {name for found in index["objects"].values() for *_, name in found}
    assert any(name.endswith("score_histograms") for name in names)
    assert "rescor" in index["terms"]  # stemmed
    sources = {place for place, name in enumerate(index["docnames"]) if name.startswith("source/")}
    places = ([one] if isinstance(one, int) else one for one in index["terms"].values())
    assert sources and sources.isdisjoint(itertools.chain(*places))  # code is not searched


def objects(path, page):
    """Names of what a page of the reference describes, without their module."""
    return {one.removeprefix(f"{path.stem}.") for one in page.ids if one.startswith(f"{path.stem}.")}


def test_the_reference_has_every_public_object_and_links_to_its_line(site, pages):
    linked = 0
    for path in site.glob("api/*.*.html"):
        page, module = pages[path], importlib.import_module(path.stem)
        public = {
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == path.stem
            and (inspect.isfunction(value) or inspect.isclass(value))
        }  # fmt: skip
        assert public <= objects(path, page), path.name
        for link in [link for link in page.links if link.startswith(SOURCES)]:
            file, _, line = link.removeprefix(SOURCES).partition("#L")
            lines = (ROOT / file).read_text(encoding="utf-8").splitlines()[int(line) - 1 :]
            first = next(line for line in lines if not line.lstrip().startswith("@"))
            assert re.match(r" *(?:def|class) (\w+)", first), (path.name, link)
            linked += 1
    assert linked > 100


def test_names_in_pages_and_docstrings_lead_to_the_reference(site, pages):
    assert "api/tiebench.scoring.html#tiebench.scoring.score" in pages[site / "use-the-library.html"].links
    assert "#tiebench.scoring.score_codes" in pages[site / "api" / "tiebench.scoring.html"].links
