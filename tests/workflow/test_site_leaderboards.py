"""Pages of the leaderboards, read as HTML: numbers, ranks and links are those of the files."""

import csv
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from methods.base.catalogue import catalogue
from reporting import leaderboard
from reporting.leaderboard import pairs
from reporting.leaderboard.per_query import with_scores
from reporting.tables.titles import UNCODED
from workflow.documentation import leaderboard_pages, method_pages

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "leaderboard"
NAMES = leaderboard.protocols(FOLDER)
PLACES = method_pages.places(catalogue(), ROOT)


@pytest.fixture(scope="module")
def protocols():
    return {one.name: one for one in leaderboard_pages.read(FOLDER)}


@pytest.fixture(scope="module")
def pages(site_sources):
    """Page -> text, of leaderboards and of methods."""
    return {
        f"{folder}/{path.name}": path.read_text(encoding="utf-8")
        for folder in ("leaderboards", "methods")
        for path in (site_sources / folder).glob("*.md")
    }


class Tables(HTMLParser):
    """tables: id -> rows of cells, each (attributes, text); others: (tag, attributes) of all elements."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.elements, self.rows, self.links = {}, [], None, []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.elements.append((tag, given))
        if tag == "table":
            self.rows = self.tables.setdefault(given["id"], [])
        elif tag == "tr":
            self.rows.append((given, []))
        elif tag in ("td", "th"):
            self.rows[-1][1].append([given | {"tag": tag}, ""])
        elif tag == "a" and self.rows:
            self.links.append((self.rows[-1][0].get("data-method"), given["href"]))

    def handle_endtag(self, tag):
        if tag == "table":
            self.rows = None

    def handle_data(self, data):
        if self.rows and self.rows[-1][1]:
            self.rows[-1][1][-1][1] += data


def cells_of(name):
    with (FOLDER / f"{name}.tidy.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["protocol"] == name and row["mean"]]
    return {(row["metric"], row["method"], int(row["bits"])): row for row in rows}


def main_metric(known):
    """The metric that a page is about: of the first row of its file."""
    return next(iter(known))[0]


LABELS = {
    "ap": "APT",
    "ndcg": "NDCGT",
    "recall@100": "Recall@100",
    "recall@10": "Recall@10",
    "ndcg@10": "NDCG@10",
}


@pytest.mark.parametrize("name", NAMES)
def test_every_method_has_one_row_with_its_means_spreads_and_ranks(name, pages, protocols):
    protocol, known = protocols[name], cells_of(name)
    metric = main_metric(known)
    read = Tables(pages[f"leaderboards/{name}.md"])
    (_, groups), (_, headings), *rows = read.tables["scores-table"]
    lengths = protocol.board.bits
    assert [text.strip() for _, text in groups][: 1 + len(lengths)] == [
        "Method",
        *(f"{bits} bits" for bits in lengths),
    ]
    assert [text.strip() for _, text in headings][: 2 * len(lengths)] == [LABELS[metric], "rank"] * len(
        lengths
    )
    methods = [given["id"] for given, _ in rows]
    assert sorted(methods) == sorted({method for _, method, _ in known}) == sorted(set(methods))
    for (given, cells), method in zip(rows, methods):
        assert given.get("data-method", UNCODED) == method
        for place, bits in enumerate(lengths):
            (attributes, text), (_, rank) = cells[1 + 2 * place : 3 + 2 * place]
            if (row := known.get((metric, method, bits))) is None:
                # A refused run has a note with its reason, and another length of a protocol has none.
                assert (text[:1], rank) == ("–", "–")
                assert f'id="scores-note-{text[1:]}"' in pages[f"leaderboards/{name}.md"] or text == "–"
                continue
            spread = f" ± {float(row['std']):.3f}" if row["std"] else ""
            mark = "‡ collapsed codes" if int(row["collapsed"]) else ""
            assert text == f"{float(row['mean']):.3f}{spread}{mark}"
            assert float(attributes["data-value"]) == pytest.approx(float(row["mean"]), rel=1e-5)
            assert rank == protocol.rank(method, bits).partition(" ")[0]
            assert (", best of its column" in attributes["title"]) == (rank == "1")
    longest = [float(known[found]["mean"]) for m in methods if (found := (metric, m, lengths[-1])) in known]
    assert longest == sorted(longest, reverse=True)


@pytest.mark.parametrize("name", NAMES)
def test_tables_have_captions_scopes_and_one_sorted_column(name, pages):
    for page in (f"leaderboards/{name}.md", f"leaderboards/{name}-compare.md"):
        read = Tables(pages[page])
        ids = [given["id"] for _, given in read.elements if "id" in given]
        assert len(ids) == len(set(ids))
        tables = sum(tag == "table" for tag, _ in read.elements)
        assert tables and tables == sum(tag == "caption" for tag, _ in read.elements)
        headings = [given for tag, given in read.elements if tag == "th"]
        assert all(given.get("scope") in ("col", "row", "colgroup") for given in headings)
        for tag, given in read.elements:
            if given.get("role") == "region" and "aria-labelledby" in given:
                assert given["aria-labelledby"] in ids
            if tag == "svg":
                assert given.get("aria-hidden") == "true" or len(given["aria-label"]) > 20
    sorted_ = [
        given for _, given in Tables(pages[f"leaderboards/{name}.md"]).elements if "aria-sort" in given
    ]
    assert [order for given in sorted_ if (order := given["aria-sort"]) != "none"] == ["descending"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cifar10_gist", "2 to 5 seeds each"),
        ("cifar10_gist_raw", "5 seeds each"),
        ("cifar10_unseen", "3 seeds each"),
    ],
)
def test_the_seeds_are_those_of_the_methods_and_not_of_the_board(name, said, pages):
    """KSH with 1,000 anchors has two of the five seeds of CIFAR-10 on GIST."""
    assert re.search(rf">{said}<", pages[f"leaderboards/{name}.md"])


@pytest.mark.parametrize("name", NAMES)
def test_rows_lead_to_pages_of_methods_and_these_back(name, pages):
    read = Tables(pages[f"leaderboards/{name}.md"])
    methods = {method for _, method, _ in cells_of(name)} - {UNCODED}
    for method in methods:
        assert (method, f"#{method}") in read.links
        assert (method, f"../{PLACES[method].removesuffix('.md')}.html") in read.links
        assert f'<a href="../leaderboards/{name}.html#{method}">' in pages[PLACES[method]]


@pytest.mark.parametrize("name", NAMES)
def test_the_script_has_every_pair_as_the_statistics_have_it(name, pages, protocols):
    text = pages[f"leaderboards/{name}-compare.md"]
    data = json.loads(re.search(r'<script type="application/json" id="pairs">(.*?)</script>', text)[1])
    names = [method for method, *_ in data["methods"]]
    protocol, known = protocols[name], cells_of(name)
    metric = main_metric(known)
    assert sorted(names) == sorted({method for _, method, _ in known} - {UNCODED})
    scored = with_scores(protocol.board, FOLDER)
    for bits, length in data["lengths"].items():
        column = pairs.pairs(protocol.board, protocol.table, metric, int(bits), scored)
        for method, cell in zip(names, length["cells"], strict=True):
            if (row := known.get((metric, method, int(bits)))) is None:
                assert cell is None or cell[0] is None
            else:
                assert cell[0] == pytest.approx(float(row["mean"]), rel=1e-3)
                lost = int(row["collapsed"])
                runs = "run" if row["seeds"] == "1" else "runs"
                assert cell[6] == (f"{lost} of {row['seeds']} {runs} lost bits" if lost else "")
        places = [(i, j) for i in range(len(names)) for j in range(i + 1, len(names))]
        assert len(length["pairs"]) == len(places)
        for (i, j), shown in zip(places, length["pairs"]):
            if None in (length["cells"][i], length["cells"][j]):
                assert shown is None and not {(names[i], names[j]), (names[j], names[i])} & set(column)
                continue
            difference, low, high, p, adjusted, over = shown
            pair = column.get((names[i], names[j]))
            pair = pair or pairs.reversed_pair(column[names[j], names[i]])
            expected = (pair.found.mean, pair.found.low, pair.found.high, pair.found.p, pair.p_adjusted)
            for value, wanted in zip((difference, low, high, p, adjusted), expected):
                close = value is not None and math.isclose(value, wanted, rel_tol=1e-3, abs_tol=1e-12)
                assert close or (value is None and wanted != wanted), (value, wanted)
            assert over == pair.over


def test_the_index_has_every_protocol_with_its_first_three(pages, protocols):
    index = pages["leaderboards/index.md"]
    assert index.count('<li id="') == len(protocols) > 3
    for name, protocol in protocols.items():
        bits, known = protocol.board.bits[-1], cells_of(name)
        means = sorted(
            (float(row["mean"]) for (metric, method, length), row in known.items()
             if metric == main_metric(known) and length == bits and protocol.rank(method, bits) != "–"),
            reverse=True,
        )  # fmt: skip
        first = [mean for mean in means if means.index(mean) < 3]  # and those level with the third
        card = re.search(rf'<li id="{name}">(.*?)</ol>', index, re.DOTALL)[1]
        assert re.findall(r'class="mean">([\d.]+)<', card) == [f"{mean:.3f}" for mean in first]
        assert f'<a href="{name}.html">{protocol.title}</a>' in card
        assert f"{len(protocol.board.about['seeds'])} seed" in card
        assert protocol.board.about["published"][0]["date"] in card


def test_a_method_has_one_colour_on_all_pages(pages, protocols):
    colours = {}
    for name in protocols:
        page = pages[f"leaderboards/{name}.md"]
        found = re.findall(r'<label data-method="(\w+)"><input[^>]*><svg[^>]*style="color: ([^"]+)"', page)
        found += re.findall(r'<tr id="(\w+)"[^>]*>\s*<th[^>]*><svg[^>]*style="color: ([^"]+)"', page)
        assert found
        for method, colour in found:
            assert colours.setdefault(method, colour) == colour
    assert len(set(colours.values())) == len(colours) > 30


@pytest.mark.parametrize("name", NAMES)
def test_charts_have_every_method_as_a_group_that_the_script_marks(name, pages, protocols):
    page, board = pages[f"leaderboards/{name}.md"], protocols[name].board
    with (FOLDER / f"{name}.runs.csv").open(encoding="utf-8") as file:
        runs = list(csv.DictReader(file))
    timed = {part: {run["method"] for run in runs if float(run.get(f"run.seconds_{part}") or 0) > 0}
             for part in ("fit", "encode")}  # fmt: skip
    drawn = {"bits": set(board.methods)} if len(board.bits) > 1 else {}
    drawn |= {part: methods for part, methods in timed.items() if methods}
    scores = ("recall_radius_2", "candidates_radius_2")
    drawn["lookup"] = {run["method"] for run in runs if run[scores[0]] and float(run[scores[1]] or 0) > 0}
    found = re.findall(r'<figure id="figure-(\w+)"(.*?)</figure>', page, re.DOTALL)
    assert [chart for chart, _ in found] == list(drawn)
    for chart, figure in found:
        assert set(re.findall(r'<g data-method="(\w+)"', figure)) == drawn[chart]
