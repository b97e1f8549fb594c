"""The pages of leaderboards alone, as a site for tests in browsers; links to other pages lead nowhere."""

import subprocess
from pathlib import Path

from files import documentation_python

from methods.base.catalogue import catalogue
from workflow.documentation import leaderboard_pages, method_pages
from workflow.documentation.api_pages import toctree

ROOT = Path(__file__).parents[2]
PROTOCOLS = {one.name: one for one in leaderboard_pages.read(ROOT / "leaderboard")}
PAGES = ("index.html", "digits.html", "cifar10_unseen.html", "digits-compare.html")


def write_site(tmp_path_factory):
    """The folder of the pages; without the packages of `make docs`, the test is skipped."""
    python = documentation_python()
    sources, site = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("a site")
    places = method_pages.places(catalogue(), ROOT)
    pages = leaderboard_pages.pages(list(PROTOCOLS.values()), places)
    home = "# Home\n\n" + toctree([leaderboard_pages.INDEX]) + "\n"
    for name, text in (pages | {"index.md": home}).items():
        (sources / name).parent.mkdir(exist_ok=True)
        (sources / name).write_text(text, encoding="utf-8")
    settings = ROOT / "workflow" / "documentation"
    words = [python, "-m", "sphinx", "-Q", "-b", "html", "-c", str(settings), str(sources), str(site)]
    subprocess.run(words, cwd=ROOT, check=True)
    return site / "leaderboards"
