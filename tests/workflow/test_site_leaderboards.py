"""Pages of the leaderboards, read as HTML: numbers, ranks and links are those of the files."""

import itertools
import json
import re

import pytest
import yaml

from methods.base.catalogue import catalogue
from reporting.statistics.samples import reversed_pair
from reporting.tables.titles import UNCODED
from tiebench.leaderboards import stems
from workflow.documentation import leaderboard_models, method_pages

from conftest import ROOT, read_rows  # isort: skip

pytestmark = pytest.mark.thorough

FOLDER = ROOT / "leaderboard"
NAMES = stems(FOLDER)
PLACES = method_pages.places(catalogue(), ROOT)


@pytest.fixture(scope="module")
def protocols():
    return {one.name: one for one in leaderboard_models.read(FOLDER)}


@pytest.fixture(scope="module")
def pages(site_sources):
    """Page -> text, of leaderboards and of methods."""
    return {
        f"{folder}/{path.name}": path.read_text(encoding="utf-8")
        for folder in ("leaderboards", "methods")
        for path in (site_sources / folder).glob("*.md")
    }


def scores_of(text):
    """(method, "" for the features; column) -> cell of the first table of scores, as HTML."""
    table = re.search(r'<table class="scores">.*?</table>', text, re.DOTALL)[0]
    rows = re.findall(r'<tr[^>]*?(?:data-method="(\w+)"|class="uncoded")>(.*?)</tr>', table, re.DOTALL)
    return {
        (method, place): cell
        for method, row in rows
        for place, cell in enumerate(re.findall(r"<td.*?</td>", row, re.DOTALL))
    }


def cells_of(name):
    rows = read_rows(FOLDER / f"{name}.tidy.csv")
    rows = [row for row in rows if row["protocol"] == name and row["mean"]]
    return {(row["metric"], row["method"], int(row["bits"])): row for row in rows}


def main_metric(known):
    """The metric that a page is about: of the first row of its file."""
    return next(iter(known))[0]


@pytest.mark.parametrize("name", NAMES)
def test_every_score_of_the_files_is_a_cell(name, pages, protocols):
    protocol, known = protocols[name], cells_of(name)
    shown, lengths = scores_of(pages[f"leaderboards/{name}.md"]), protocol.board.bits
    found = set()
    for (method, place), cell in shown.items():
        if place >= len(lengths):  # another metric, or a fold
            continue
        row = known.get((main_metric(known), method or UNCODED, lengths[place]))
        if row is None:
            assert not re.search(r"0\.\d", cell)
            continue
        found.add((method or UNCODED, lengths[place]))
        assert f'data-value="{float(row["mean"])!r}"' in cell and f"{float(row['mean']):.3f}" in cell
        assert (f" ± {float(row['std']):.3f}" if row["std"] else "</td>") in cell
        assert ("collapsed codes" in cell) == (int(row["collapsed"]) > 0)
        best = method and protocol.rank(method, lengths[place]).startswith("1 ")
        assert bool(best) == (", best of its column" in cell)
    assert found == {(m, bits) for metric, m, bits in known if metric == main_metric(known)}


@pytest.mark.parametrize("name", NAMES)
def test_every_id_of_a_page_is_its_own(name, pages):
    ids = re.findall(r' id="([^"]+)"', pages[f"leaderboards/{name}.md"])
    assert len(ids) == len(set(ids)) > 5


def test_the_seeds_are_those_of_the_methods_and_not_of_the_board(pages):
    """KSH with 1,000 anchors has two of the five seeds of CIFAR-10 on GIST."""
    assert "Every cell is a mean over 2 to 5 seeds." in pages["leaderboards/cifar10_gist.md"]


@pytest.mark.parametrize("name", NAMES)
def test_rows_lead_to_pages_of_methods_and_these_back(name, pages):
    page = pages[f"leaderboards/{name}.md"]
    for method in {method for _, method, _ in cells_of(name)} - {UNCODED}:
        place = PLACES[method].removesuffix(".md")
        row = rf'<tr id="{method}" data-method="{method}"><th[^>]*><a href="../{place}.html">'
        assert len(re.findall(row, page)) == 1
        assert f'<a href="../leaderboards/{name}.html#{method}">' in pages[PLACES[method]]


@pytest.mark.parametrize("name", NAMES)
def test_the_script_has_every_pair_as_the_statistics_have_it(name, pages, protocols):
    text = pages[f"leaderboards/{name}.md"]
    data = json.loads(re.search(r'<script type="application/json" id="pairs">(.*?)</script>', text)[1])
    names = [method for method, *_ in data["methods"]]
    protocol, known = protocols[name], cells_of(name)
    metric = main_metric(known)
    assert sorted(names) == sorted({method for _, method, _ in known} - {UNCODED})
    for bits, length in data["lengths"].items():
        column = protocol.pairs[int(bits)]
        for method, cell in zip(names, length["cells"], strict=True):
            if (row := known.get((metric, method, int(bits)))) is None:
                assert cell is None or cell[0] is None
            else:
                assert cell[0] == pytest.approx(float(row["mean"]), rel=1e-3)
                lost = int(row["collapsed"])
                seeds = "seed" if row["seeds"] == "1" else "seeds"
                words = f"{lost} of {row['seeds']} {seeds} collapsed" + " in some fold" * bool(
                    protocol.board.folds
                )
                assert cell[6] == (words if lost else "")
        places = [(i, j) for i in range(len(names)) for j in range(i + 1, len(names))]
        assert len(length["pairs"]) == len(places)
        for (i, j), shown in zip(places, length["pairs"]):
            if None in (length["cells"][i], length["cells"][j]):
                assert shown is None and not {(names[i], names[j]), (names[j], names[i])} & set(column)
                continue
            difference, low, high, p, adjusted, over = shown
            pair = column.get((names[i], names[j]))
            pair = pair or reversed_pair(column[names[j], names[i]])
            expected = (pair.found.mean, pair.found.low, pair.found.high, pair.found.p, pair.p_adjusted)
            for value, wanted in zip((difference, low, high, p, adjusted), expected):
                assert (value is None and wanted != wanted) or value == pytest.approx(
                    wanted, rel=1e-3, abs=1e-12
                )
            assert data["over"][over] == pair.over


def test_the_index_lists_every_protocol(pages, protocols):
    row = re.compile(r"^- \[(.+)\]\((\w+)\.md\): (\d+) methods, .+, dataset (\w+)$", re.MULTILINE)
    rows = row.findall(pages["leaderboards/index.md"])
    expected = [(one.title, name, str(len(one.board.methods))) for name, one in protocols.items()]
    assert [found[:3] for found in rows] == expected
    assert ("10 labels a class", "cifar10_few_10", "14", "cifar10_mobilenetv2") in rows
    assert len(rows) > 3


def test_a_method_has_one_colour_on_all_pages(pages, protocols):
    colours = {}
    for name in protocols:
        page = pages[f"leaderboards/{name}.md"]
        found = re.findall(r'<label data-method="(\w+)"><input[^>]*><svg[^>]*style="color: ([^"]+)"', page)
        assert found
        for method, colour in found:
            assert colours.setdefault(method, colour) == colour
    assert len(set(colours.values())) == len(colours) > 30


def test_a_row_is_marked_where_its_own_runs_are_of_an_earlier_form(tmp_path, protocols):
    """Two protocols have the method; the commit named is of the runs of one."""
    method = "lsh"
    commits = {
        name: {run["run.git_commit"] for run in known.board.runs}
        for name, known in protocols.items()
        if method in known.board.methods
    }
    one, other = next((a, b) for a, b in itertools.permutations(commits, 2) if not commits[a] & commits[b])
    for file in FOLDER.iterdir():
        if file.name.split(".")[0] in (one, other):
            (tmp_path / file.name).symlink_to(file)
    entry = {"methods": [method], "commits": sorted(commits[one]), "differs": "its bits"}
    (tmp_path / "earlier_forms.yaml").write_text(yaml.safe_dump([entry]))
    found = {known.name: known.table.style(method).earlier for known in leaderboard_models.read(tmp_path)}
    assert found == {one: "its bits", other: ""}


@pytest.mark.parametrize("name", NAMES)
def test_charts_have_every_method_as_a_group_that_the_script_marks(name, pages, protocols):
    page, board = pages[f"leaderboards/{name}.md"], protocols[name].board
    runs = read_rows(FOLDER / f"{name}.runs.csv")
    timed = {part: {run["method"] for run in runs if float(run.get(f"run.seconds_{part}") or 0) > 0}
             for part in ("fit", "encode")}  # fmt: skip
    drawn = [("Score against bits", set(board.methods))] * (len(board.bits) > 1)
    titles = {"fit": "Score against seconds of training", "encode": "Score against seconds of encoding"}
    drawn += [(titles[part], methods) for part, methods in timed.items() if methods]
    scores = ("recall_radius_2", "candidates_radius_2")
    looked_up = {run["method"] for run in runs if run[scores[0]] and float(run[scores[1]] or 0) > 0}
    drawn.append(("Recall of a lookup against its candidates", looked_up))
    found = re.findall(r"<figure .*?<h3>(.*?)</h3>(.*?)</figure>", page, re.DOTALL)
    assert [(title, set(re.findall(r'<g data-method="(\w+)"', of))) for title, of in found] == drawn
