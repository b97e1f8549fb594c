"""Pages of the site that are made from code: they say what the code, the settings and the scores say."""

import fnmatch
import os
import re
from dataclasses import fields

import pytest

from methods.base.catalogue import catalogue, load_class
from tiebench import commands
from workflow.documentation import method_pages

from conftest import ROOT, read_rows  # isort: skip

pytestmark = pytest.mark.thorough

CATALOGUE = catalogue()
PARTS = ("Paper", "Formula", "What differs from the paper", "Hyper-parameters", "Leaderboard")


@pytest.fixture(scope="module")
def pages(site_sources):
    """Page -> text."""
    return {
        str(path.relative_to(site_sources)): path.read_text(encoding="utf-8")
        for path in site_sources.rglob("*.md")
    }


def section(page, title):
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)[1].strip()


def test_links_of_the_repository_become_links_of_the_site(pages, site_sources):
    """In the site, pages stand at its root; a file is a page of its text or is offered as it is."""
    assert "[docs/tuning.md](tuning.md)" in pages["changelog.md"]
    assert "(../source/methods-itq.py.md)" in pages["methods/itq.md"]
    for file in ("leaderboard/digits.tidy.csv", "docs/notebooks/train_with_talr.ipynb"):
        assert (site_sources / file.removeprefix("docs/")).read_bytes() == (ROOT / file).read_bytes()


def test_every_page_stands_in_one_tree_only(pages):
    listed = ["index.md"]
    for page, text in pages.items():
        for tree in re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            entries = [line for line in tree.splitlines() if line and not line.startswith(":")]
            for entry in entries:
                target = re.sub(r"^.*<(.*)>$", r"\1", entry)
                place = os.path.normpath(os.path.join(os.path.dirname(page), target))  # noqa: PTH118, PTH120
                listed += fnmatch.filter(pages, f"{place}.md") if "*" in place else [place]
    assert sorted(listed) == sorted(page for page in pages if not page.startswith("source/"))


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_method_has_a_page_with_all_of_its_parts(name, pages):
    about, page = CATALOGUE[name], pages[f"methods/{name}.md"]
    assert page.startswith(f"# {about.title}\n")
    assert all(section(page, part) for part in PARTS)
    assert about.paper in section(page, "Paper")
    formula = re.search(r"^\$\$.+?\$\$$", section(page, "Formula"), re.DOTALL | re.MULTILINE)
    assert formula and formula[0].count("{") == formula[0].count("}"), "no formula"


@pytest.mark.parametrize("name", CATALOGUE)
def test_hyperparameters_have_the_defaults_of_the_class(name, pages):
    method = load_class(name)()
    rows = re.findall(r"^\| `(\w+)` \| `.+?` \| `(.+?)` \|", pages[f"methods/{name}.md"], re.MULTILINE)
    for parameter, default in rows:
        assert str(getattr(method, parameter)).strip("'") == default.strip("'"), parameter
    own = {field.name for field in fields(method)} & {*vars(type(method)).get("__annotations__", ())}
    assert own <= {parameter for parameter, _ in rows}


def scores_of(protocol, method):
    rows = read_rows(ROOT / "leaderboard" / f"{protocol}.tidy.csv")
    rows = [row for row in rows if row["metric"] == "ap" and row["protocol"] == protocol]
    return [row for row in rows if row["method"] == method], rows


@pytest.mark.parametrize("protocol", ["cifar10_splits", "digits", "cifar10_unseen"])
@pytest.mark.parametrize("name", ["talr_ap", "itq", "onehot", "adsh"])
def test_rows_of_the_leaderboard_are_those_of_its_files(name, protocol, pages):
    page = section(pages[f"methods/{name}.md"], "Leaderboard")
    shown = re.findall(
        rf"^\| \[[^\]]+\]\(\.\./leaderboards/{protocol}\.md\) "
        rf'\| <a href="\.\./leaderboards/{protocol}\.html#{name}">{re.escape(CATALOGUE[name].title)}</a> '
        r"\| (\d+) \| "
        r"([\d.]+)[^|]*\|[^|]*\|[^|]*\| (\S+)",
        page,
        re.MULTILINE,
    )
    own, every = scores_of(protocol, name)
    assert [(bits, f"{float(mean):.3f}") for bits, mean, _ in shown] == [
        (row["bits"], f"{float(row['mean']):.3f}") for row in sorted(own, key=lambda row: int(row["bits"]))
    ]
    outside = {"uncoded", "onehot", "classifier_codes"}
    if "unseen" not in protocol:  # there, ADSH has no more labels than others
        outside |= {"adsh", "adsh_symmetric"}
    for bits, mean, place in shown:
        others = [float(r["mean"]) for r in every if r["bits"] == bits and r["method"] not in outside]
        above = [
            other for other in others if other > next(float(r["mean"]) for r in own if r["bits"] == bits)
        ]
        assert place == ("–" if name in outside else str(len(above) + 1)), mean


def test_rows_of_differences_go_to_the_methods_that_they_name():
    text = (
        "## Objectives of `talr_ap`\n\n| here | paper | effect |\n|---|---|---|\n| a | b | c |\n\n"
        "## Others\n\n| here | paper | effect |\n|---|---|---|\n| x | y | z |\n\n"
        "| method | here | paper | effect |\n|---|---|---|---|\n"
        "| `talr_*`, `itq` | d | e | f |\n| | g | h | i |\n| `lsh` | j | k \\| k | [l](m.md#n) |\n\n"
        "| method | other form | AP |\n|---|---|---|\n| `itq` | o | p |\n"
    )
    assert method_pages.differences(text, ["talr_ap", "itq", "lsh"]) == {
        "talr_ap": [("a", "b", "c"), ("d", "e", "f"), ("g", "h", "i")],
        "itq": [("d", "e", "f"), ("g", "h", "i")],
        "lsh": [("j", "k \\| k", "[l](../m.md#n)")],
    }


def test_every_row_of_differences_that_names_a_method_is_on_its_page(pages):
    text = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    text = re.sub(r"^### Measured$.*?(?=^#)", "", text, flags=re.DOTALL | re.MULTILINE)
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| ([^|]+) \|", text, re.MULTILINE)
    pairs = [(name, here) for named, here in rows for name in re.findall(r"\w+", named) if name in CATALOGUE]
    assert len(pairs) > 40
    assert [pair for pair in pairs if f"| {pair[1]} |" not in pages[f"methods/{pair[0]}.md"]] == []


def test_every_command_has_its_help(pages):
    for name in commands.KIND.find():
        assert f"## tiebench {name}\n\n```text\nusage: tiebench {name}" in pages["api/commands.md"]
