"""The page, parsed: every number is there, nothing is fetched, ids are unique, text is escaped."""

import base64
import functools
import gzip
import itertools
import json
import math
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest
from models import block, model_of, record, small, table_of
from styles import STYLES

from reporting import figures, frames, published
from reporting.drawing import axes
from reporting.figures import tie_ranges
from reporting.page import document, embedding, table_view
from reporting.printed import health, table_files
from reporting.printed import marks as printing
from reporting.printed.cells import cells as printed_cells
from reporting.statistics import columns as statistics
from tiebench import figure_style

ASSETS = Path(document.__file__).parents[1] / "assets"

ENDED_BY = {"td": {"td", "th", "tr"}, "th": {"td", "th", "tr"}, "tr": {"tr"}}
VOID = {"meta", "link", "br", "use", "img", "input", "hr"}
METHODS = ["talr_ap", "mihash", "lsh"]
TABLE = small(
    title="A <small> table & more",
    description="For tests.",
    seeds=[0, 1],
    families={"talr_ap": "listwise", "mihash": "listwise", "lsh": "unsupervised"},
    published=["paper"],
    blocks=[
        block("digits", "ap", [12, 24], title="Digits"),
        block("digits_levels", "ndcg", [12], methods=["talr_ap", "mihash"]),
        block("digits", "ap@100", [12]),
    ],
)
OF_DIGITS = {"protocol": "digits", "metric": "ap"}
PUBLISHED = [{"source": "paper", "citation": "A. Author. A Paper.", "url": "https://example.org/paper"}]
PUBLISHED[0]["values"] = [
    OF_DIGITS | {"method": "talr_ap", "bits": 12, "value": 0.9, "note": "tuned"},
    OF_DIGITS | {"method": "lsh", "bits": 24, "value": 0.5892},
]


def records():
    result = []
    cells = itertools.product(("digits", "digits_levels"), enumerate(METHODS), (12, 24), (0, 1))
    for protocol, (row, method), bits, seed in cells:
        score = 0.9 - 0.21 * row - bits / 333 + seed / 47
        scores = dict.fromkeys(("ap", "ndcg", "ap@100"), score)
        scores |= {"ap_min": score - 0.1, "ap_max": score + 0.05}
        run = {"seconds_by_part": {"fit": 10.5 + row + bits + seed, "encode": 0.25 + seed}, "seed": seed}
        run |= {"peak_memory_mb": 300.0 + bits, "versions": {"numpy": "2.4.1"}, "git_commit": "0123abcd"}
        run |= {"device": "cpu", "hyperparameters": {"rate": 0.1, "layers": [3, 5], "name": "<b>"}}
        run |= {"fingerprints": {"dataset": f"data-{protocol}", "split": f"split-{protocol}"}}
        of = record(method, bits, seed, scores, protocol, reason=None, run=run, curves={}, training=[])
        if (protocol, method, bits) == ("digits", "lsh", 24):
            of |= {"status": "refused", "reason": "it <cannot> & will not", "metrics": {}, "run": {}}
        if seed == 1:
            of["run"]["log"] = f"results/logs/of a run/{method}.log"
        result.append(of)
    return result


def statistics_of(frame):
    """As the statistics of a table are: TALR-AP is best, MIHash has too few runs, LSH is worse."""
    result = frame[["table", "protocol", "metric", "method", "bits", "seeds", "mean"]].copy()
    result["verdict"] = result["method"].map({"talr_ap": "best", "mihash": "too few runs", "lsh": "worse"})
    result["seeds_needed"] = result["method"].map({"talr_ap": math.nan, "mihash": 5.0, "lsh": math.nan})
    result["best"] = "talr_ap"
    result["ci_low"], result["ci_high"] = result["mean"] - 0.011, result["mean"] + 0.012
    result["difference"] = result["method"].map({"talr_ap": 0.0, "mihash": -0.21, "lsh": -0.42})
    result["difference_low"], result["difference_high"] = result["difference"] - 0.013, math.nan
    result.loc[result["method"] == "lsh", "difference_high"] = -0.4
    result["p_adjusted"] = result["method"].map({"talr_ap": math.nan, "mihash": 0.25, "lsh": 0.0002})
    return result


FIGURE = {"words": "AP_T of <one> minus another", "left": 0.51234, "right": None, "difference": -0.25}
FIGURE |= {"low": -0.5, "high": None, "p": 0.0123, "p_adjusted": None, "outcome": "against"}
FIGURE |= {"reason": "of a & b", "left_lost": "1 of 10 seeds collapsed", "right_lost": ""}
OPEN = FIGURE | {"outcome": "open", "low": 0.125, "high": 0.375, "p": None, "p_adjusted": 0.0004}
REFUTED = {"id": "a claim", "claim": "One <is> ahead.", "source": "A Paper", "of": "Table 1"}
REFUTED |= {"verdict": "not reproduced", "summary": "It is not.", "elsewhere": "elsewhere it is"}
UNKNOWN = {"id": "b", "claim": "Nothing is known.", "source": "A Paper", "of": "", "verdict": "undecided"}
UNKNOWN |= {"summary": "No run.", "elsewhere": "", "figures": []}
CLAIMS = [REFUTED | {"figures": [FIGURE, OPEN]}, UNKNOWN]


class Parsed(HTMLParser):
    """Tags with their attributes, and text; complains of tags that do not nest."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.words = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        # Of rows and cells, HTML lets end tags be left out.
        while self.open and self.open[-1] in ENDED_BY and tag in ENDED_BY[self.open[-1]]:
            self.open.pop()
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            while self.open[-1] != tag and self.open[-1] in ENDED_BY:
                self.open.pop()
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def drawn(table, these):
    return figure_style.render(tie_ranges.draw(*model_of(table, these)), "svg").decode()


@functools.cache
def drawn_of_records():
    return drawn(TABLE, records())


def view_of(table=TABLE, these=None, statistics=None, svg=None, **changes):
    """Of a table and its records with what the paper prints; figures are those of TABLE, if not given."""
    model = model_of(table, records() if these is None else these, PUBLISHED)
    frame = frames.tidy(*model)
    svg = svg or drawn_of_records()
    drawings = {
        "tie_ranges": table_view.Drawing(tie_ranges.TITLE, tie_ranges.CAPTION, svg),
        "another one": table_view.Drawing("Another <one>", "Of AP_T & more", svg),
    }
    notes = "a  \n<b>%20\u00b1 'c' \"d\"  "
    files = {f"{table['name']}.csv": frames.to_csv(frame), "notes & all.txt": notes}
    parts = {"figures": drawings, "claims": [], "files": files} | changes
    return table_view.TableView(*model, printed_cells(frame, model[0], statistics), **parts)


def made(*given, command="", **changes):
    return document.page([view_of(*given, **changes)], command)


@pytest.fixture(scope="module")
def page():
    """Of TABLE and its records."""
    return made()


@pytest.fixture(scope="module")
def tidy():
    return view_of().printed.tidy


def cells(text):
    """(method, column of the first table of scores) -> what the cell says, unescaped."""
    body = re.search(r'<table class="scores".*?</table>', text, flags=re.DOTALL)[0]
    result = {}
    for method, row in re.findall(r'<tr data-method="(\w+)">(.*?)</tr>', body, flags=re.DOTALL):
        for column, cell in enumerate(re.findall(r"<td\b.*?</td>", row, flags=re.DOTALL)):
            parsed = Parsed(cell)
            result[method, column] = (parsed.text, parsed.tags[0][1].get("title"))
    return result


def test_every_number_is_on_the_page(page, tidy):
    parsed = Parsed(page)
    exact = [attributes.get("data-value") for tag, attributes in parsed.tags if tag == "td"]
    for row in tidy.to_dict(orient="records"):
        if row["seeds"]:
            assert f"{row['mean']:.3f}" in parsed.text and f"± {row['std']:.3f}" in parsed.text
            assert repr(row["mean"]) in exact
    assert "pub. 0.900" in parsed.text and "pub. 0.5892" in parsed.text
    for run in records():
        if run["status"] == "done" and (run["protocol"], run["bits"]) != ("digits_levels", 24):
            assert all(f"{seconds:.4g}" in parsed.text for seconds in run["run"]["seconds_by_part"].values())
    for words in ("rate = 0.1", "layers = [3, 5]", "name = <b>", "0123abcd", "numpy 2.4.1", "Seeds: 0, 1."):
        assert words in parsed.text
    for protocol in ("digits", "digits_levels"):
        assert f"data-{protocol}" in parsed.text and f"split-{protocol}" in parsed.text


def test_best_second_and_holes_in_the_cells(page, tidy):
    _, marks = printing.ranked(tidy, table_of(TABLE))
    means = {(r.protocol, r.metric, r.method, r.bits): f"{r.mean:.3f}" for r in tidy.itertuples()}
    for mark in ("best", "second"):
        values = re.findall(rf'<span class="{mark}">([\d.]+)</span>', page)
        expected = [means[cell] for cell, found in marks.items() if found == mark]
        assert sorted(values) == sorted(expected) and values
    assert "LSH on Digits (24 bits) – it <cannot> & will not" in Parsed(page).text
    assert page.count('href="#small-note-a"') == 1 and '<li id="small-note-a">' in page


def test_rows_stand_in_groups_by_kind_of_loss(page):
    table = re.search(r'<table class="scores".*?</table>', page, flags=re.DOTALL)[0]
    bodies = re.findall(r"<tbody>.*?</tbody>", table, flags=re.DOTALL)
    found = {
        re.search(r"<span>(.*?)</span>", body)[1]: re.findall(r'data-method="(\w+)"', body) for body in bodies
    }
    assert found == {"Unsupervised": ["lsh"], "Lists": ["talr_ap", "mihash"]}
    assert '<tr class="family">' not in made(TABLE | {"families": {}})
    text = Parsed(made(TABLE | {"families": {"lsh": "pairwise"}})).text
    assert "Triplets LSH" in text and "Other TALR-AP" in text


def test_a_cell_tells_its_seeds_and_intervals(page):
    # 0.9 - 12 / 333 and that + 1 / 47: mean 0.87460, deviation (1 / 47) / sqrt(2), t(0.975, 1) = 12.7062
    _, about = cells(page)["talr_ap", 0]
    assert about.split("\n") == [
        "Mean 0.87460 over 2 seeds, best of its column",
        "Seeds 0.8640, 0.8852; standard deviation 0.0150",
        "95% Student interval over seeds 0.7394 to 1.0098",
        "\u22120.0254 from the published value",
        "Hyper-parameters as given",
    ]
    assert cells(page)["lsh", 1] == ("\u2013 a pub. 0.5892", "it <cannot> & will not")


def test_a_page_says_which_methods_have_fewer_seeds(page):
    text = Parsed(made(TABLE | {"fewer_seeds": {"mihash": 1}})).text
    assert "Every cell is a mean over 1 to 2 seeds" in text and "Seeds: 0, 1; of MIHash the first 1." in text
    # The table has two seeds, and no ADSH.
    for text in (page, made(TABLE | {"fewer_seeds": {"mihash": 5, "adsh": 1}})):
        text = Parsed(text).text
        assert "Every cell is a mean over 2 seeds" in text and "Seeds: 0, 1." in text


def test_statistics_stand_with_their_cells(page, tidy):
    text = made(statistics=statistics_of(tidy))
    found = cells(text)
    words, about = found["mihash", 0]
    mean = 0.9 - 0.21 - 12 / 333 + 1 / 94
    assert words == "0.665 \u00b1 0.015 ?s too few runs to tell from the best"
    assert about.split("\n")[3:-1] == [
        f"95% bootstrap interval over queries {mean - 0.011:.4f} to {mean + 0.012:.4f}",
        "\u22120.2100 from the best (TALR-AP), adjusted p = 0.250: too few runs",
        "About 5 seeds of each would decide",
    ]
    words, about = found["lsh", 0]
    interval = "interval \u22120.4330 to \u22120.4000, adjusted p < 0.001: worse"
    assert about.split("\n")[-2] == f"\u22120.4200 from the best (TALR-AP), {interval}"
    assert words.startswith("0.455")
    assert "from the best" not in found["talr_ap", 0][1] and "bootstrap" in found["talr_ap", 0][1]
    assert "?s: too few runs to tell from the best of the column" in Parsed(text).text
    assert "?s" not in Parsed(page).text
    hole = statistics_of(tidy).assign(verdict="", ci_low=math.nan)
    assert cells(made(statistics=hole)) == cells(page)


def test_a_cell_and_the_legend_tell_the_budget_of_hyper_parameters(page):
    tuned = {"protocol": "digits", "method": "talr_ap", "trials": 9, "budget": "8 trials & <4> more"}
    text = made(TABLE | {"budgets": [tuned | {"bits": bits} for bits in (12, 24)]})
    assert "Hyper-parameters: the best of 9 trials (8 trials & <4> more)" in cells(text)["talr_ap", 0][1]
    line = "default settings, no search; 8 trials & <4> more, for TALR-AP on Digits."
    assert f"Unequal hyper-parameter search: {line}" in Parsed(text).text
    assert "Unequal hyper" not in Parsed(page).text


def test_claims_are_told_with_word_and_symbol(page):
    said = Parsed(made(claims=CLAIMS)).text
    for words in (
        "One <is> ahead. \u2717 not reproduced It is not. A Paper, Table 1. Elsewhere it is",
        "0 reproduced, 1 not reproduced, 1 undecided, 0 too few runs, of 2.",
        "2 comparisons Comparisons",
        "AP T of <one> minus another 0.5123 (1 of 10 seeds collapsed) \u2013 "
        "\u22120.2500 \u2013 0.012 \u2013 \u2717 against",
        "against \u2013 of a & b",
        "+0.1250 to +0.3750 \u2013 < 0.001 ? open",
        "Nothing is known. ? undecided No run. A Paper",
    ):
        assert words in said
    assert "Claims" not in Parsed(page).text


def test_runs_link_the_files_that_lie_beside_the_page(page):
    tags = Parsed(page).tags
    links = [attributes["href"] for tag, attributes in tags if tag == "a" and "href" in attributes]
    links = [link for link in links if not link.startswith(("#", "data:", "https:"))]
    done = [
        r for r in records() if r["status"] == "done" and (r["protocol"], r["bits"]) != ("digits_levels", 24)
    ]
    done = [r for r in done if (r["protocol"], r["method"]) != ("digits_levels", "lsh")]
    expected = [f"runs/{r['protocol']}/{r['method']}/{r['bits']}/{r['seed']}/" for r in done]
    (files,) = {attributes["data-files"] for _, attributes in tags if "data-files" in attributes}
    assert files == "run.json training.jsonl scores.json"
    logs = [link for link in links if link.startswith("logs/")]
    assert sorted(set(links) - set(logs)) == sorted(expected)
    # A log of several runs stands once, and the runs of seed 1, done or refused, lead to it.
    assert sorted(logs) == sorted(f"logs/of%20a%20run/{method}.log" for method in METHODS)
    shared = [a["href"] for tag, a in tags if tag == "a" and a.get("href", "").startswith("#small-l")]
    assert len(shared) == len(done) // 2 + 1 and set(shared) == {f"#small-l{n}" for n in (1, 2, 3)}


def test_runs_of_the_same_hyper_parameters_share_a_row_of_them():
    these = records()
    for one in these:
        if one["status"] == "done":
            one["run"]["hyperparameters"] |= {"bits": one["bits"], "seed": one["seed"]}
            if one["method"] == "talr_ap" and one["bits"] == 24:
                one["run"]["hyperparameters"] |= {"rate": 0.5}
    text = made(TABLE, these)
    rows = re.findall(r'<tr id="small-s(\d+)">(.*?)</tr>', text, re.DOTALL)
    assert [number for number, _ in rows] == [str(place + 1) for place in range(len(rows))]
    found = [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for _, row in rows]
    assert [one[:2] for one in found if one[0] == "TALR-AP"] == [["TALR-AP", "12"], ["TALR-AP", "24"]]
    assert [one[0] for one in found].count("MIHash") == 1
    assert all("seed" not in one[2] and "bits" not in one[2] for one in found)
    assert "layers = [3, 5], name = &lt;b&gt;, rate = 0.5" in text
    links = re.findall(r'href="#small-s(\d+)"', text)
    assert len(links) > len(rows) and set(links) == {number for number, _ in rows}


def test_nothing_is_fetched():
    text = made(claims=CLAIMS)
    links = []
    for tag, attributes in Parsed(text).tags:
        assert tag not in ("img", "iframe", "object", "embed", "base")
        assert not {"src", "srcset", "xlink:href", "action", "data", "poster"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
        if "href" in attributes:
            (links if tag == "a" else []).append(attributes["href"])
            assert tag == "a" or attributes["href"].startswith(("#", "data:"))
        for name, value in attributes.items():
            assert name in ("href", "data-packed") or "//" not in (value or "") or tag == "meta"
    assert [link for link in links if link.startswith("http")] == ["https://example.org/paper"]
    assert all(link.startswith(("#", "data:", "https://example.org/", "runs/", "logs/")) for link in links)
    shown = re.sub(r"<script>.*?</script>|href=\"data:[^\"]*\"", "", text, flags=re.DOTALL)
    assert "@import" not in shown and not re.search(r"url\((?!#)", shown)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy == (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
    )
    script = (ASSETS / "page.js").read_text(encoding="utf-8")
    assert not re.search(r"fetch\(|XMLHttpRequest|WebSocket|import\(|innerHTML|eval\(|localStorage", script)
    assert "sourceMappingURL" not in text


def test_downloads_are_the_files():
    view = view_of()
    large = "a,b\n" + "1,2\n" * 20_000
    view.files["large.csv"] = large
    tags = Parsed(document.page([view])).tags
    found = {a["download"]: a["href"].split(",", 1) for _, a in tags if "download" in a}
    head, content = found.pop("large.csv.gz")  # offered compressed
    assert head == "data:application/gzip;base64"
    assert gzip.decompress(base64.b64decode(content)).decode() == view.files.pop("large.csv")
    assert {name: unquote_to_bytes(content).decode() for name, (_, content) in found.items()} == view.files
    media = {name: head for name, (head, _) in found.items()}
    assert media["small.csv"] == "data:text/csv;charset=utf-8"
    assert media["notes & all.txt"] == "data:text/plain;charset=utf-8"
    files = [attributes["data-file"] for _, attributes in tags if "data-file" in attributes]
    assert files == [f"{name}_small.svg" for name in view.figures]


@pytest.mark.parametrize("text", ["", " ", "a b  ", "\t\r\n", "\u00b1\U0001f600%25#?&\"'<>\\^`{}", "a\x00b"])
def test_a_data_url_keeps_every_byte(text):
    url = embedding.data_url("x.csv", text)
    # browsers cut off spaces at the end and drop tabs and line ends
    assert url == url.strip() and not re.search(r"[\x00-\x1f\x7f-\U0010ffff#<>\"]", url)
    assert unquote_to_bytes(url.split(",", 1)[1]).decode() == text


def test_text_of_people_does_not_end_an_attribute_of_a_figure():
    table = TABLE | {"blocks": [TABLE["blocks"][0] | {"title": 'A "<b>" & more'}]}
    text = made(table, svg=drawn(table, records()))
    panels = {a["data-panel"] for _, a in Parsed(text).tags if "data-panel" in a}
    assert panels == {f'A "<b>" & more, {bits} bits' for bits in (12, 24)}


def test_the_points_of_a_figure_have_the_values_of_the_records(page):
    """Of the ranges: the mean over seeds of the exact mean, and of the worst and the best order."""
    figure = re.search(r"<figure .*?</figure>", page, flags=re.DOTALL)[0]
    found = {}
    for _, attributes in Parsed(figure).tags:
        if "data-names" in attributes:
            bits, names = attributes["data-bits"], attributes["data-names"]
        if "data-values" in attributes and names.startswith("AP_T"):
            assert names == "AP_T;mAP in the worst order;in the best order"
            found[attributes["data-method"], int(bits)] = attributes["data-values"]
    for (method, bits), values in found.items():
        cell = ("digits", method, bits)
        of = [run["metrics"] for run in records() if (run["protocol"], run["method"], run["bits"]) == cell]
        means = [sum(run[name] for run in of) / len(of) for name in ("ap", "ap_min", "ap_max")]
        assert [float(value) for value in values.split()] == pytest.approx(means, abs=5e-4)
    assert len(found) == 2 * len(METHODS) - 1  # one was refused


def test_several_tables_share_a_page():
    other = TABLE | {"name": "other table", "title": "Other", "methods": ["a method", "lsh"], "families": {}}
    other["blocks"] = [block("digits", "precision@5", [12])]
    other["blocks"].append(block(bits=[12]))
    text = document.page([view_of(claims=CLAIMS), view_of(other)])
    assert text.count("function sortRows") == 1
    parsed = Parsed(text)
    asked, ids = references(parsed.tags, text)
    assert set(asked) <= set(ids) and len(ids) == len(set(ids))
    headings = re.findall(r"<h([1-6])[^>]*>(.*?)</h\1>", text)
    assert (
        headings[0] == ("1", "TieBench report")
        and ("2", "Other") in headings
        and ("3", "Results") in headings
    )
    assert all(int(after) <= int(before) + 1 for (before, _), (after, _) in itertools.pairwise(headings))
    assert {("a", "#small"), ("a", "#other-table")} <= {(tag, a.get("href")) for tag, a in parsed.tags}
    boxes = [a["value"] for tag, a in parsed.tags if tag == "input" and a.get("name") == "method"]
    assert boxes == ["lsh", "talr_ap", "mihash", "a method"]
    assert "Precision@5" in parsed.text and parsed.text.count("How each metric is defined") == 2
    with pytest.raises(ValueError, match="two tables of a page are named 'small'"):
        document.page([view_of()] * 2)


def references(tags, text):
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    asked = [a["href"][1:] for _, a in tags if a.get("href", "").startswith("#")]
    asked += re.findall(r"url\(#([^)]+)\)", text)
    for name in ("aria-labelledby", "aria-controls", "for", "data-searches"):
        asked += [word for _, a in tags if name in a for word in a[name].split()]
    return asked, ids


def test_tables_say_what_their_headings_are_for(page):
    tags = Parsed(page).tags
    assert ("html", {"lang": "en"}) in tags
    headings = [attributes for tag, attributes in tags if tag == "th"]
    assert all(a.get("scope") in ("col", "row", "colgroup", "rowgroup") for a in headings)
    assert [tag for tag, _ in tags].count("caption") == [tag for tag, _ in tags].count("table")
    # every row of scores has as many cells as its head has columns
    for body in re.findall(r'<table class="scores.*?</table>', page, flags=re.DOTALL):
        columns = max(int(column) for column in re.findall(r'data-column="(\d+)"', body))
        for row in re.findall(r"<tr data-method.*?</tr>", body, flags=re.DOTALL):
            assert len(re.findall(r"<td\b", row)) == columns


def test_titles_are_escaped_and_the_command_is_named():
    text = made(command="snakemake <x>")
    assert "<title>A &lt;small&gt; table &amp; more</title>" in text
    parsed = Parsed(text)
    for words in ("snakemake <x>", "Of AP T & more", "Another <one>", "tuned"):
        assert words in parsed.text


def test_the_same_records_in_any_order_give_the_same_page(page):
    assert made(TABLE, records()[::-1]) == page


def test_no_records_still_make_a_page():
    text = Parsed(made(TABLE, [])).text
    assert "no run was recorded" in text and "No cell has a score; 0 of" in text
    frame = statistics_of(view_of(TABLE, []).printed.tidy)
    nothing = frame.assign(verdict="", ci_low=math.nan, ci_high=math.nan)
    assert Parsed(made(TABLE, [], statistics=nothing, figures={}, files={})).text


SVG = """<?xml version="1.0"?>
<!DOCTYPE svg>
<svg xmlns:xlink="http://www.w3.org/1999/xlink" width="252pt" viewBox="0 0 252 1.5">
 <metadata>made by</metadata>
 <defs>
  <style type="text/css">*{stroke-linejoin: round}</style>
  <clipPath id="clip one"><rect x="0.123456" y="1" width="2" height="1"/></clipPath>
  <path id="dot" d="M 0.005678 -1.239999 L 1 2" style="fill: #332288"/>
 </defs>
 <g id="unused"><!-- words -->
  <use xlink:href="#dot" style="stroke: #000000"/>
  <g clip-path="url(#clip one)"><text>0.123456 #dot</text></g>
  <image xlink:href="data:image/png;base64,AAAA"/>
 </g>
</svg>
"""


def test_an_svg_stands_in_the_page_beside_others():
    assert str(embedding.inline_svg(SVG, "a table-b_c", 'Of "it"', "f3")) == (
        '<svg id="figure-a-table-b-c" viewBox="0 0 252 1.5" role="img" aria-label="Of &quot;it&quot;"'
        ' style="--share:0.500"><defs>'
        '<style type="text/css">#figure-a-table-b-c *{stroke-linejoin: round}</style>'
        '<clipPath id="f3-1"><rect x=".1" y="1" width="2" height="1"/></clipPath>'
        '<path id="f3-0" d="m.01-1.24 .99 3.24" style="fill:var(--c332288)"/></defs>'
        '<use href="#f3-0" style="stroke:currentColor"/>'
        '<g clip-path="url(#f3-1)"><text>0.123456 #dot</text></g>'
        '<image xlink:href="data:image/png;base64,AAAA"/></svg>'
    )
    dark = STYLES | {"lsh": STYLES["lsh"] | {"colour": "#332288"}}
    assert "--c332288: #332288" in made(TABLE | {"styles": dark})


def content(inside):
    """Of an SVG in a page; ids of what is referred to are a."""
    found = embedding.inline_svg(f'<svg viewBox="0 0 2 1">{inside}</svg>', "x", "", "f0")
    return re.sub(r"#f0-0", "#a", re.search(r"<svg[^>]*>(.*)</svg>", found)[1])


def test_the_errors_of_steps_do_not_add_up():
    """A path drawn by SVG's rules: m and what follows it are relative to the point before."""
    places = [(37 * n % 101 / 7, n * n / 13) for n in range(200)]
    steps = content(f'<path d="M{"L".join(f"{x:.3f} {y:.3f}" for x, y in places)}"/>')
    numbers = [float(number) for number in re.findall(r"-?\d*\.?\d+", steps)]
    for at, values in enumerate((numbers[::2], numbers[1::2])):
        assert list(itertools.accumulate(values)) == pytest.approx([p[at] for p in places], abs=0.0501)


PAIR = '<use href="#a" x="1" style="fill:red"/><use href="#a" x="2" style="fill:blue"/>'
TURNED = '<text transform="rotate(-90 1 2)">b</text>'
# z goes back to the start of its part.
STEPS = {
    "M 1 2 \nL 3 4 \nL 5 6 \nz\n": "m1 2 2 2 2 2z",
    "M 1 2 L 0.5 2.04 M 1 1 L 2 2 z L 3 3": "m1 2-.5 0m.5-1 1 1zl2 2",
    "M 1 2 C 1 2 3 4 5 6 L 7 8": "M1 2C1 2 3 4 5 6L7 8",
    "": "",
}
STYLE = "stroke: red; stroke-dasharray: 1,2; stroke-dashoffset: 0;  fill: none"


@pytest.mark.parametrize(
    ("given", "short"),
    [
        (f"<g>{PAIR}</g>", PAIR),
        ('<g><g clip-path="none"><g><path d="z"/></g></g></g>', '<g clip-path="none"><path d="z"/></g>'),
        ('<text transform="rotate(-0 1 2)">a</text>' + TURNED, "<text>a</text>" + TURNED),
        *((f'<path d="{path}"/>', f'<path d="{steps}"/>') for path, steps in STEPS.items()),
        (f'<path style="{STYLE}"/>', '<path style="stroke:red;stroke-dasharray:1,2;fill:none"/>'),
    ],
)
def test_what_repeats_or_says_nothing_is_left_out_of_a_figure(given, short):
    assert content(given) == short


def test_a_style_that_repeats_is_a_class_and_a_picture_stands_once():
    path = '<path d="M 0 0 L 1 0" clip-path="url(#a)" style="stroke:red"/>'
    rule = "<style>#figure-x .s0{{clip-path:url(#a);stroke:red}}</style>".format()
    assert content(path) == path.replace("M 0 0 L 1 0", "m0 0 1 0")
    assert content(path * 2) == rule + '<path d="m0 0 1 0" class="s0"/>' * 2
    picture = '<image href="data:image/png;base64,AA" transform="scale({})" width="8"/>'
    image = '<defs><image id="{}" href="data:image/png;base64,AA" width="8"/></defs>'
    found = content(picture.format(1) + picture.format(2))
    (name,) = re.findall(r'image id="([^"]*)"', found)
    uses = "".join(f'<use href="#{name}" transform="scale({scale})"/>' for scale in (1, 2))
    assert found == image.format(name) + uses and content(picture.format(1)) == picture.format(1)


def test_something_else_than_an_svg_is_refused():
    with pytest.raises(ValueError, match="figure x: not an SVG"):
        embedding.inline_svg("<html>", "x", "", "f0")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with everything that a page reads of a table, as the workflow writes it; figure -> its SVG."""
    folder, these = tmp_path_factory.mktemp("published"), records()
    refused = [one for one in these if one["status"] == "refused" and one["seed"] == 0]
    claims = [{"source": "A Paper", "claims": [{"id": "a claim", "claim": "One <is> ahead."}]}]
    settings = {"table": TABLE, "published": PUBLISHED, "refused": refused, "claims": claims}
    (folder / "small.json").write_text(json.dumps(settings))
    model = model_of(TABLE, these, PUBLISHED)
    judged = [CLAIMS[0] | {"figures": [FIGURE | {"p_adjusted": 0.5}]}]
    of_runs = frames.tidy(*model), statistics.comparisons(*model), judged, health.frame(*model)
    texts = table_files.table_files(model[0], *of_runs)
    for ending, text in texts.items():
        (folder / f"small{ending}").write_text(text, encoding="utf-8")
    for one in these:
        run = folder / "runs" / "/".join(str(one[k]) for k in ("protocol", "method", "bits", "seed"))
        run.mkdir(parents=True)
        scores = {key: one[key] for key in ("status", "reason", "metrics", "curves")}
        (run / "scores.json").write_text(json.dumps(scores))
        (run / "run.json").write_text(json.dumps(one["run"]))
        (run / "training.jsonl").touch()
    drawings = {name: folder / "figures" / f"{name}_small.svg" for name in ("tie_ranges", "cost", "training")}
    (folder / "figures").mkdir()
    for figure, path in drawings.items():
        try:
            figure_style.save(figures.draw(figure, *model), path)
        except axes.NothingToDraw as error:
            figure_style.save(axes.message(str(error)), path)
    return folder, drawings


def test_a_view_of_published_files_has_all_of_them(written):
    folder, drawings = written
    view = published.view(published.read("small", folder), drawings)
    # the records have no training log: that figure says so, and the page leaves it out
    assert list(view.figures) == ["tie_ranges", "cost"]
    assert view.figures["cost"].svg == drawings["cost"].read_text() and view.figures["cost"].title == "Cost"
    [claim] = view.claims
    assert all(claim[key] == REFUTED[key] for key in ("claim", "verdict", "elsewhere"))
    assert set(view.files) == {f"small{ending}" for ending in table_files.ENDINGS}
    text = document.page([view])
    assert "0.5123" in Parsed(text).text and repr(float(view.printed.tidy["mean"][0])) in text


def test_a_gallery_is_a_figure_of_its_files(written, tmp_path):
    plain = drawn_of_records()
    picture = figure_style.render(tie_ranges.draw(*model_of(TABLE, records())), "png")
    (tmp_path / "gallery_small.svg").write_text(plain)
    (tmp_path / "gallery_small.png").write_bytes(picture)
    view = published.view(published.read("small", written[0]), {}, tmp_path / "gallery_small.svg")
    assert list(view.figures) == ["gallery"] and view.figures["gallery"].svg == plain


@pytest.mark.parametrize("missing", ["small.json", "small.tidy.csv", "figures/cost_small.svg"])
def test_a_missing_file_is_named(written, tmp_path, missing):
    folder, drawings = shutil.copytree(written[0], tmp_path / "copy"), written[1]
    (folder / missing).unlink()
    copied = {figure: folder / "figures" / path.name for figure, path in drawings.items()}
    with pytest.raises((OSError, ValueError), match=re.escape(missing)):
        published.view(published.read("small", folder), copied)
