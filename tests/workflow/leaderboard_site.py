"""The pages of a few leaderboards, as a site for tests in browsers; links to other pages lead nowhere."""

import functools
import subprocess
from pathlib import Path

from files import documentation_python, made_once

from methods.base.catalogue import catalogue
from reporting.page.words import signed
from workflow.documentation import leaderboard_pages, method_pages
from workflow.documentation.api_pages import toctree

ROOT = Path(__file__).parents[2]
SHOWN = ("digits", "cifar10_unseen", "scifact")
PAGES = ("index.html", "digits.html", "cifar10_unseen.html", "digits-compare.html")


def write_site(tmp_path_factory):
    """The folder of the pages; without the packages of `make docs`, the test is skipped."""
    python = documentation_python()
    return made_once(tmp_path_factory, "a site", functools.partial(_write, python)) / "leaderboards"


def read(folder):
    """Name -> protocol, of those that the site in this folder has pages of."""
    return {one.name: one for one in leaderboard_pages.read(folder.parent / "leaderboard")}


def difference(found):
    """What a comparison says of a difference and its interval."""
    return f"{signed(found.mean, 3)}, 95% interval {signed(found.low, 3)} to {signed(found.high, 3)}"


def _write(python, site):
    sources, few = site / "sources", site / "leaderboard"
    sources.mkdir()
    few.mkdir()
    for file in (ROOT / "leaderboard").iterdir():
        if file.name.split(".")[0] in (*SHOWN, "earlier_forms"):
            (few / file.name).symlink_to(file)
    places = method_pages.places(catalogue(), ROOT)
    pages = leaderboard_pages.pages(leaderboard_pages.read(few), places)
    home = "# Home\n\n" + toctree([leaderboard_pages.INDEX]) + "\n"
    for name, text in (pages | {"index.md": home}).items():
        (sources / name).parent.mkdir(exist_ok=True)
        (sources / name).write_text(text, encoding="utf-8")
    settings = ROOT / "workflow" / "documentation"
    words = [python, "-m", "sphinx", "-Q", "-b", "html", "-c", str(settings), str(sources), str(site)]
    subprocess.run(words, cwd=ROOT, check=True)
