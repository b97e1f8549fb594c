"""The pages of leaderboards, as a site for tests in browsers.

They are those of the site that TIEBENCH_SITE names, as in tests/workflow/test_documentation_site.py, or a
few are built, whose links to other pages lead nowhere.
"""

import functools
import os
import subprocess
from pathlib import Path

from files import documentation_python, made_once

from methods.base.catalogue import catalogue
from reporting.printed.marks import number
from workflow.documentation import leaderboard_models, leaderboard_pages, method_pages
from workflow.documentation.api_pages import toctree

ROOT = Path(__file__).parents[2]
SHOWN = ("digits", "cifar10_unseen", "scifact")
PAGES = ("index.html", "digits.html", "cifar10_unseen.html")


def write_site(tmp_path_factory):
    """The folder of the pages; without a site and the packages of `make docs`, the test is skipped."""
    if built := os.environ.get("TIEBENCH_SITE"):
        return Path(built, "leaderboards")
    write = functools.partial(_write, documentation_python(), _leaderboards(tmp_path_factory))
    return made_once(tmp_path_factory, "a site", write) / "leaderboards"


def read(tmp_path_factory):
    """Name -> protocol, of the leaderboards with PAGES."""
    return {one.name: one for one in leaderboard_models.read(_leaderboards(tmp_path_factory))}


def _leaderboards(tmp_path_factory):
    return made_once(tmp_path_factory, "leaderboard", _link)


def _link(folder):
    for file in (ROOT / "leaderboard").iterdir():
        if file.name.split(".")[0] in (*SHOWN, "earlier_forms"):
            (folder / file.name).symlink_to(file)


def difference(found):
    """What a comparison says of a difference and its interval."""
    mean, low, high = (number(value, 3, "+") for value in (found.mean, found.low, found.high))
    return f"{mean}, 95% interval {low} to {high}"


def _write(python, leaderboards, site):
    sources = site / "sources"
    sources.mkdir()
    places = method_pages.places(catalogue(), ROOT)
    pages = leaderboard_pages.pages(leaderboard_models.read(leaderboards), places)
    home = "# Home\n\n" + toctree([leaderboard_pages.INDEX]) + "\n"
    for name, text in (pages | {"index.md": home}).items():
        (sources / name).parent.mkdir(exist_ok=True)
        (sources / name).write_text(text, encoding="utf-8")
    settings = ROOT / "workflow" / "documentation"
    words = [python, "-m", "sphinx", "-Q", "-b", "html", "-c", str(settings), str(sources), str(site)]
    subprocess.run(words, cwd=ROOT, check=True)
