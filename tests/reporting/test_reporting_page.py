"""The page, parsed: every number is there, nothing is fetched, ids are unique, text is escaped."""

import base64
import dataclasses
import gzip
import itertools
import json
import math
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pandas as pd
import pytest
from models import model_of, table_of
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
TABLE = {
    "name": "small",
    "title": "A <small> table & more",
    "description": "For tests.",
    "seeds": [0, 1],
    "methods": ["talr_ap", "mihash", "lsh"],
    "families": {"talr_ap": "listwise", "mihash": "listwise", "lsh": "unsupervised"},
    "published": ["paper"],
    "blocks": [
        {"protocol": "digits", "metric": "ap", "bits": [12, 24], "title": "Digits"},
        {"protocol": "digits_levels", "metric": "ndcg", "bits": [12], "methods": ["talr_ap", "mihash"]},
        {"protocol": "digits", "metric": "ap@100", "bits": [12]},
    ],
    "styles": {method: STYLES[method] for method in ("talr_ap", "mihash", "lsh")},
}
PUBLISHED = [
    {
        "source": "paper",
        "citation": "A. Author. A Paper.",
        "url": "https://example.org/paper",
        "values": [
            {
                "protocol": "digits",
                "metric": "ap",
                "method": "talr_ap",
                "bits": 12,
                "value": 0.9,
                "note": "tuned",
            },
            {"protocol": "digits", "metric": "ap", "method": "lsh", "bits": 24, "value": 0.5892},
        ],
    }
]


def records():
    result = []
    for protocol in ("digits", "digits_levels"):
        for row, method in enumerate(TABLE["methods"]):
            for bits in (12, 24):
                for seed in (0, 1):
                    score = 0.9 - 0.21 * row - bits / 333 + seed / 47
                    plain = {
                        "protocol": protocol,
                        "method": method,
                        "bits": bits,
                        "seed": seed,
                        "reason": None,
                    }
                    scores = {
                        "ap": score,
                        "ap_min": score - 0.1,
                        "ap_max": score + 0.05,
                        "ndcg": score,
                        "ap@100": score,
                    }
                    run = {
                        "seconds_by_part": {"fit": 10.5 + row + bits + seed, "encode": 0.25 + seed},
                        "peak_memory_mb": 300.0 + bits,
                        "versions": {"numpy": "2.4.1"},
                        "git_commit": "0123abcd",
                        "device": "cpu",
                        "hyperparameters": {"rate": 0.1, "layers": [3, 5], "name": "<b>"},
                        "fingerprints": {"dataset": f"data-{protocol}", "split": f"split-{protocol}"},
                        "seed": seed,
                    }
                    result.append(
                        plain
                        | {"status": "done", "metrics": scores, "run": run, "curves": {}, "training": []}
                    )
    for record in result:
        if (record["protocol"], record["method"], record["bits"]) == ("digits", "lsh", 24):
            record.update(status="refused", reason="it <cannot> & will not", metrics={}, run={})
        if record["seed"] == 1:
            record["run"]["log"] = f"results/logs/of a run/{record['method']}.log"
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


FIGURE = {
    "words": "AP_T of <one> minus another",
    "left": 0.51234,
    "right": None,
    "difference": -0.25,
    "low": -0.5,
    "high": None,
    "p": 0.0123,
    "p_adjusted": None,
    "outcome": "against",
    "reason": "of a & b",
    "left_lost": "1 of 10 runs lost bits",
    "right_lost": "",
}
CLAIMS = [
    {
        "id": "a claim",
        "claim": "One <is> ahead.",
        "source": "A Paper",
        "of": "Table 1",
        "verdict": "not reproduced",
        "summary": "It is not.",
        "elsewhere": "elsewhere it is",
        "figures": [
            FIGURE,
            FIGURE | {"outcome": "open", "low": 0.125, "high": 0.375, "p": None, "p_adjusted": 0.0004},
        ],
    },
    {
        "id": "b",
        "claim": "Nothing is known.",
        "source": "A Paper",
        "of": "",
        "verdict": "undecided",
        "summary": "No run.",
        "elsewhere": "",
        "figures": [],
    },
]


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


def view_of(table, these, sources=(), statistics=None, **changes):
    frame = frames.tidy(*model_of(table, these, sources))
    drawn = figure_style.render(tie_ranges.draw(*model_of(table, these)), "svg").decode()
    drawings = {
        "tie_ranges": table_view.Drawing(tie_ranges.TITLE, tie_ranges.CAPTION, drawn),
        "another one": table_view.Drawing("Another <one>", "Of AP_T & more", drawn),
    }
    arguments = {
        "figures": drawings,
        "claims": [],
        "files": {
            f"{table['name']}.csv": frames.to_csv(frame),
            "notes & all.txt": "a  \n<b>%20\u00b1 'c' \"d\"  ",
        },
    }
    model = model_of(table, list(these), list(sources))
    printed = printed_cells(frame, model[0], statistics)
    return table_view.TableView(*model, printed, **(arguments | changes))


def made(these=None, command="", **changes):
    view = view_of(TABLE, records() if these is None else these, PUBLISHED, **changes)
    return document.page(TABLE["title"], [view], command), view.printed.tidy


def cells(text):
    """(method, column of the first table of scores) -> what the cell says, unescaped."""
    body = re.search(r'<table class="scores".*?</table>', text, flags=re.DOTALL)[0]
    result = {}
    for method, row in re.findall(r'<tr data-method="(\w+)">(.*?)</tr>', body, flags=re.DOTALL):
        for column, cell in enumerate(re.findall(r"<td\b.*?</td>", row, flags=re.DOTALL)):
            parsed = Parsed(cell)
            result[method, column] = (parsed.text, parsed.tags[0][1].get("title"))
    return result


def test_every_number_is_on_the_page():
    text, frame = made()
    parsed = Parsed(text)
    exact = [attributes.get("data-value") for tag, attributes in parsed.tags if tag == "td"]
    for row in frame.to_dict(orient="records"):
        if row["seeds"]:
            assert f"{row['mean']:.3f}" in parsed.text and f"± {row['std']:.3f}" in parsed.text
            assert repr(row["mean"]) in exact
    assert "pub. 0.900" in parsed.text and "pub. 0.5892" in parsed.text
    for record in records():
        if record["status"] == "done" and (record["protocol"], record["bits"]) != ("digits_levels", 24):
            for part in ("fit", "encode"):
                assert f"{record['run']['seconds_by_part'][part]:.4g}" in parsed.text
    for words in ("rate = 0.1", "layers = [3, 5]", "name = <b>", "0123abcd", "numpy 2.4.1", "Seeds: 0, 1."):
        assert words in parsed.text
    for protocol in ("digits", "digits_levels"):
        assert f"data-{protocol}" in parsed.text and f"split-{protocol}" in parsed.text


def test_best_second_and_holes_in_the_cells():
    text, frame = made()
    marks = printing.marks(printing.places(frame, table_of(TABLE)))
    for mark in ("best", "second"):
        values = re.findall(rf'<span class="{mark}">([\d.]+)</span>', text)
        cells = {cell for cell, found in marks.items() if found == mark}
        expected = [
            f"{row['mean']:.3f}"
            for row in frame.to_dict(orient="records")
            if (row["protocol"], row["metric"], row["method"], row["bits"]) in cells
        ]
        assert sorted(values) == sorted(expected) and values
    parsed = Parsed(text)
    assert "LSH on Digits (24 bits) – it <cannot> & will not" in parsed.text
    assert text.count('href="#small-note-a"') == 1 and '<li id="small-note-a">' in text


def test_rows_stand_in_groups_by_kind_of_loss():
    table = re.search(r'<table class="scores".*?</table>', made()[0], flags=re.DOTALL)[0]
    bodies = re.findall(r"<tbody>.*?</tbody>", table, flags=re.DOTALL)
    found = {
        re.search(r"<span>(.*?)</span>", body)[1]: re.findall(r'data-method="(\w+)"', body) for body in bodies
    }
    assert found == {"Unsupervised": ["lsh"], "Lists": ["talr_ap", "mihash"]}
    plain = TABLE | {"families": {}}
    text = document.page("x", [view_of(plain, records(), PUBLISHED)])
    assert '<tr class="family">' not in text
    some = TABLE | {"families": {"lsh": "pairwise"}}
    text = Parsed(document.page("x", [view_of(some, records(), PUBLISHED)])).text
    assert "Triplets LSH" in text and "Other TALR-AP" in text


def test_a_cell_tells_its_seeds_and_intervals():
    # 0.9 - 12 / 333 and that + 1 / 47: mean 0.87460, deviation (1 / 47) / sqrt(2), t(0.975, 1) = 12.7062
    _, about = cells(made()[0])["talr_ap", 0]
    assert about.split("\n") == [
        "Mean 0.87460 over 2 seeds, best of its column",
        "Seeds 0.8640, 0.8852; standard deviation 0.0150",
        "95% Student interval over seeds 0.7394 to 1.0098",
        "\u22120.0254 from the published value",
        "Hyper-parameters as given",
    ]
    assert cells(made()[0])["lsh", 1] == ("\u2013 a pub. 0.5892", "it <cannot> & will not")


def test_a_page_says_which_methods_have_fewer_seeds():
    fewer = TABLE | {"fewer_seeds": {"mihash": 1}}
    text = Parsed(document.page("x", [view_of(fewer, records(), PUBLISHED)])).text
    assert "Every cell is a mean over 1 to 2 seeds" in text and "Seeds: 0, 1; of MIHash the first 1." in text
    more = TABLE | {"fewer_seeds": {"mihash": 5, "adsh": 1}}  # and the table has two seeds, and no ADSH
    for text in (
        Parsed(made()[0]).text,
        Parsed(document.page("x", [view_of(more, records(), PUBLISHED)])).text,
    ):
        assert "Every cell is a mean over 2 seeds" in text and "Seeds: 0, 1." in text


def test_statistics_stand_with_their_cells():
    frame = frames.tidy(*model_of(TABLE, records(), PUBLISHED))
    text, _ = made(statistics=statistics_of(frame))
    found = cells(text)
    words, about = found["mihash", 0]
    mean = 0.9 - 0.21 - 12 / 333 + 1 / 94
    assert words == "0.665 \u00b1 0.015 ?s too few runs to tell from the best" and about.split("\n")[
        3:-1
    ] == [
        f"95% bootstrap interval over queries {mean - 0.011:.4f} to {mean + 0.012:.4f}",
        "\u22120.2100 from the best (TALR-AP), adjusted p = 0.250: too few runs",
        "About 5 seeds of each would decide",
    ]
    words, about = found["lsh", 0]
    assert words.startswith("0.455") and about.split("\n")[-2] == (
        "\u22120.4200 from the best (TALR-AP), interval \u22120.4330 to \u22120.4000, "
        "adjusted p < 0.001: worse"
    )
    assert "from the best" not in found["talr_ap", 0][1] and "bootstrap" in found["talr_ap", 0][1]
    assert "?s: too few runs to tell from the best of the column" in Parsed(text).text
    assert "?s" not in Parsed(made()[0]).text and "\u2248" not in text
    hole = statistics_of(frame).assign(verdict="", ci_low=math.nan)
    assert cells(made(statistics=hole)[0]) == cells(made()[0])


def test_a_cell_and_the_legend_tell_the_budget_of_hyper_parameters():
    budgets = [
        {
            "protocol": "digits",
            "method": "talr_ap",
            "bits": bits,
            "trials": 9,
            "budget": "8 trials & <4> more",
        }
        for bits in (12, 24)
    ]
    text = document.page("One", [view_of(TABLE | {"budgets": budgets}, records(), PUBLISHED)])
    assert "Hyper-parameters: the best of 9 trials (8 trials & <4> more)" in cells(text)["talr_ap", 0][1]
    said = Parsed(text).text
    line = "default settings, no search; 8 trials & <4> more, for TALR-AP on Digits."
    assert f"Unequal hyper-parameter search: {line}" in said
    assert "Unequal hyper" not in Parsed(made()[0]).text


def test_claims_are_told_with_word_and_symbol():
    text, _ = made(claims=CLAIMS)
    said = Parsed(text).text
    for words in (
        "One <is> ahead. \u2717 not reproduced It is not. A Paper, Table 1. Elsewhere it is",
        "0 reproduced, 1 not reproduced, 1 undecided, 0 too few runs, of 2.",
        "2 comparisons Comparisons",
        "AP T of <one> minus another 0.5123 (1 of 10 runs lost bits) \u2013 "
        "\u22120.2500 \u2013 0.012 \u2013 \u2717 against",
        "against \u2013 of a & b",
        "+0.1250 to +0.3750 \u2013 < 0.001 ? open",
        "Nothing is known. ? undecided No run. A Paper",
    ):
        assert words in said
    assert "Claims" not in Parsed(made()[0]).text


def test_runs_link_the_files_that_lie_beside_the_page():
    tags = Parsed(made()[0]).tags
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
    assert sorted(logs) == sorted(f"logs/of%20a%20run/{method}.log" for method in TABLE["methods"])
    shared = [a["href"] for tag, a in tags if tag == "a" and a.get("href", "").startswith("#small-l")]
    assert len(shared) == len(done) // 2 + 1 and set(shared) == {f"#small-l{n}" for n in (1, 2, 3)}


def test_runs_of_the_same_hyper_parameters_share_a_row_of_them():
    these = records()
    for record in these:
        if record["status"] == "done":
            own = {"bits": record["bits"], "seed": record["seed"]}
            record["run"]["hyperparameters"] = record["run"]["hyperparameters"] | own
            if record["method"] == "talr_ap" and record["bits"] == 24:
                record["run"]["hyperparameters"] |= {"rate": 0.5}
    text = made(these)[0]
    rows = re.findall(r'<tr id="small-s(\d+)">(.*?)</tr>', text, re.DOTALL)
    assert [number for number, _ in rows] == [str(place + 1) for place in range(len(rows))]
    methods = [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for _, row in rows]
    title = {method: STYLES[method]["title"] for method in TABLE["methods"]}
    assert [cells[:2] for cells in methods if cells[0] == title["talr_ap"]] == [
        [title["talr_ap"], "12"],
        [title["talr_ap"], "24"],
    ]
    assert len([cells for cells in methods if cells[0] == title["mihash"]]) == 1
    assert all("seed" not in cells[2] and "bits" not in cells[2] for cells in methods)
    assert "layers = [3, 5], name = &lt;b&gt;, rate = 0.5" in text
    links = re.findall(r'href="#small-s(\d+)"', text)
    assert len(links) > len(rows) and set(links) == {number for number, _ in rows}


def test_a_large_file_is_offered_compressed():
    large = "a,b\n" + "1,2\n" * 20_000
    text = document.page(
        "x", [dataclasses.replace(view_of(TABLE, records(), PUBLISHED), files={"b.csv": large})]
    )
    (found,) = [a for tag, a in Parsed(text).tags if "download" in a]
    head, content = found["href"].split(",", 1)
    assert (found["download"], head) == ("b.csv.gz", "data:application/gzip;base64")
    assert gzip.decompress(base64.b64decode(content)).decode() == large


def test_nothing_is_fetched():
    text, _ = made(claims=CLAIMS)
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
    view = view_of(TABLE, records(), PUBLISHED)
    text = document.page("x", [view])
    found = {
        attributes["download"]: attributes["href"].split(",", 1)
        for tag, attributes in Parsed(text).tags
        if "download" in attributes
    }
    assert {name: unquote_to_bytes(content).decode() for name, (_, content) in found.items()} == view.files
    media = {name: head for name, (head, _) in found.items()}
    assert media["small.csv"] == "data:text/csv;charset=utf-8"
    assert media["notes & all.txt"] == "data:text/plain;charset=utf-8"
    figures = [attributes["data-file"] for _, attributes in Parsed(text).tags if "data-file" in attributes]
    assert figures == [f"{name}_small.svg" for name in view.figures]


@pytest.mark.parametrize("text", ["", " ", "a b  ", "\t\r\n", "\u00b1\U0001f600%25#?&\"'<>\\^`{}", "a\x00b"])
def test_a_data_url_keeps_every_byte(text):
    url = embedding.data_url("x.csv", text)
    # browsers cut off spaces at the end and drop tabs and line ends
    assert url == url.strip() and not re.search(r"[\x00-\x1f\x7f-\U0010ffff#<>\"]", url)
    assert unquote_to_bytes(url.split(",", 1)[1]).decode() == text


def test_text_of_people_does_not_end_an_attribute_of_a_figure():
    table = TABLE | {"blocks": [TABLE["blocks"][0] | {"title": 'A "<b>" & more'}]}
    text = document.page("x", [view_of(table, records(), PUBLISHED)])
    panels = {a["data-panel"] for _, a in Parsed(text).tags if "data-panel" in a}
    assert panels == {f'A "<b>" & more, {bits} bits' for bits in (12, 24)}


def test_the_points_of_a_figure_have_the_values_of_the_records():
    """Of the ranges: the mean over seeds of the exact mean, and of the worst and the best order."""
    text, _ = made()
    figure = re.search(r"<figure .*?</figure>", text, flags=re.DOTALL)[0]
    found = {}
    for _, attributes in Parsed(figure).tags:
        if "data-names" in attributes:
            bits, names = attributes["data-bits"], attributes["data-names"]
        if "data-values" in attributes and names.startswith("AP_T"):
            assert names == "AP_T;mAP in the worst order;in the best order"
            found[attributes["data-method"], int(bits)] = attributes["data-values"]
    for (method, bits), values in found.items():
        scores = [
            [record["metrics"][name] for name in ("ap", "ap_min", "ap_max")]
            for record in records()
            if (record["protocol"], record["method"], record["bits"]) == ("digits", method, bits)
        ]
        means = [sum(column) / len(column) for column in zip(*scores)]
        assert [float(value) for value in values.split()] == pytest.approx(means, abs=5e-4)
    assert len(found) == 2 * len(TABLE["methods"]) - 1  # one was refused


def test_several_tables_share_a_page():
    other = TABLE | {"name": "other table", "title": "Other", "methods": ["a method", "lsh"], "families": {}}
    other["blocks"] = [{"protocol": "digits", "metric": "precision@5", "bits": [12]}]
    other["blocks"].append({"protocol": "digits", "metric": "ap", "bits": [12]})
    first = view_of(TABLE, records(), PUBLISHED, claims=CLAIMS)
    text = document.page("Both", [first, view_of(other, records(), PUBLISHED)])
    assert text.count("function sortRows") == 1
    parsed = Parsed(text)
    asked, ids = references(parsed.tags, text)
    assert set(asked) <= set(ids) and len(ids) == len(set(ids))
    headings = re.findall(r"<h([1-6])[^>]*>(.*?)</h\1>", text)
    assert headings[0] == ("1", "Both") and ("2", "Other") in headings and ("3", "Results") in headings
    assert all(int(after) <= int(before) + 1 for (before, _), (after, _) in itertools.pairwise(headings))
    assert {("a", "#small"), ("a", "#other-table")} <= {(tag, a.get("href")) for tag, a in parsed.tags}
    boxes = [a["value"] for tag, a in parsed.tags if tag == "input" and a.get("name") == "method"]
    assert boxes == ["lsh", "talr_ap", "mihash", "a method"]
    assert "Precision@5" in parsed.text and parsed.text.count("How each metric is defined") == 2
    with pytest.raises(ValueError, match="two tables are named 'small'"):
        document.page("x", [view_of(TABLE, records(), PUBLISHED)] * 2)
    with pytest.raises(ValueError, match="there is no table"):
        document.page("x", [])


def references(tags, text):
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    asked = [a["href"][1:] for _, a in tags if a.get("href", "").startswith("#")]
    asked += re.findall(r"url\(#([^)]+)\)", text)
    for name in ("aria-labelledby", "aria-controls", "for", "data-searches"):
        asked += [word for _, a in tags if name in a for word in a[name].split()]
    return asked, ids


def test_tables_say_what_their_headings_are_for():
    tags = Parsed(made()[0]).tags
    assert ("html", {"lang": "en"}) in tags
    headings = [attributes for tag, attributes in tags if tag == "th"]
    assert all(a.get("scope") in ("col", "row", "colgroup", "rowgroup") for a in headings)
    assert [tag for tag, _ in tags].count("caption") == [tag for tag, _ in tags].count("table")
    # every row of scores has as many cells as its head has columns
    text = made()[0]
    for body in re.findall(r'<table class="scores.*?</table>', text, flags=re.DOTALL):
        columns = max(int(column) for column in re.findall(r'data-column="(\d+)"', body))
        for row in re.findall(r"<tr data-method.*?</tr>", body, flags=re.DOTALL):
            assert len(re.findall(r"<td\b", row)) == columns


def test_titles_are_escaped_and_the_command_is_named():
    text, _ = made(command="snakemake <x>")
    assert "<title>A &lt;small&gt; table &amp; more</title>" in text
    parsed = Parsed(text)
    for words in ("snakemake <x>", "Of AP T & more", "Another <one>", "tuned"):
        assert words in parsed.text


def test_the_same_records_in_any_order_give_the_same_page():
    assert made()[0] == made(records()[::-1])[0]


def test_no_records_still_make_a_page():
    text, frame = made([])
    assert "no run was recorded" in Parsed(text).text and "<canvas" not in text
    statistics = statistics_of(frame).assign(verdict="", ci_low=math.nan, ci_high=math.nan)
    assert Parsed(made([], statistics=pd.DataFrame(statistics), figures={}, files={})[0]).text


SVG = """<?xml version="1.0"?>
<!DOCTYPE svg>
<svg xmlns:xlink="http://www.w3.org/1999/xlink" width="2pt" viewBox="0 0 2 1.5">
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
    own = f"f{zlib.crc32(b'figure-a-table-b-c'):x}"
    assert str(embedding.inline_svg(SVG, "a table-b_c", 'Of "it"')) == (
        '<svg id="figure-a-table-b-c" viewBox="0 0 2 1.5" role="img" aria-label="Of &quot;it&quot;"><defs>'
        '<style type="text/css">#figure-a-table-b-c *{stroke-linejoin: round}</style>'
        f'<clipPath id="{own}-1"><rect x=".1" y="1" width="2" height="1"/></clipPath>'
        f'<path id="{own}-0" d="m.01-1.24 .99 3.24" style="fill:var(--c332288)"/></defs>'
        f'<use href="#{own}-0" style="stroke:currentColor"/>'
        f'<g clip-path="url(#{own}-1)"><text>0.123456 #dot</text></g>'
        '<image xlink:href="data:image/png;base64,AAAA"/></svg>'
    )
    dark = [{**STYLES["lsh"], "colour": "#332288"}]
    own = TABLE | {"styles": TABLE["styles"] | {"lsh": dark[0]}}
    assert "--c332288: #332288" in document.page("x", [view_of(own, records(), PUBLISHED)])


@pytest.mark.parametrize(
    ("path", "short"),
    [
        ("M 1 2 \nL 3 4 \nL 5 6 \nz\n", "m1 2 2 2 2 2z"),
        ("M 1 2 L 0.5 2.04 M 1 1 L 2 2 z L 3 3", "m1 2-.5 0m.5-1 1 1zl2 2"),
        ("M 1 2 C 1 2 3 4 5 6 L 7 8", "M1 2C1 2 3 4 5 6L7 8"),
        ("", ""),
    ],
)
def test_a_path_is_written_as_steps(path, short):
    assert embedding._compact(path, 1) == short


def test_the_errors_of_steps_do_not_add_up():
    """Two paths drawn by SVG's rules: m and l are relative to the point before, z goes back to the start."""
    places = [(37 * n % 101 / 7, n * n / 13) for n in range(200)]
    steps = embedding._compact("M" + "L".join(f"{x:.3f} {y:.3f}" for x, y in places), 1)
    numbers = [float(number) for number in re.findall(r"-?\d*\.?\d+", steps)]
    for at, values in enumerate((numbers[::2], numbers[1::2])):
        assert list(itertools.accumulate(values)) == pytest.approx([p[at] for p in places], abs=0.0501)


def test_markers_of_one_style_have_it_once():
    alike = '<use href="#a" x="1" style="fill:red"/><use href="#a" x="2" style="fill:red"/>'
    once = '<g style="fill:red"><use href="#a" x="1"/><use href="#a" x="2"/></g>'
    mixed = alike.replace('x="2" style="fill:red"', 'x="2" style="fill:blue"')
    bare = alike.replace('x="2" style="fill:red"', 'x="2"')
    for given, expected in ((alike, once), (mixed, mixed), (bare, bare)):
        assert content(f"<g>{given}</g>") == expected


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


def test_an_outline_leaves_to_its_markers_what_all_of_them_say():
    outline = '<path id="a" d="M 0 0 L 1 0" style="fill:red;stroke:blue;stroke-linejoin:miter"/>'
    markers = '<use href="#a" style="fill:red;stroke:{};stroke-linejoin:miter"/>'
    found = content(outline + markers.format("blue") + markers.format("green"))
    assert 'd="m0 0 1 0" style="stroke:blue;stroke-linejoin:miter"' in found


def content(inside):
    """Of an SVG in a page; ids of what is referred to are a."""
    found = embedding.inline_svg(f'<svg viewBox="0 0 2 1">{inside}</svg>', "x")
    return re.sub(r"#f[0-9a-f]+-0", "#a", re.search(r"<svg[^>]*>(.*)</svg>", found)[1])


def test_what_says_nothing_is_left_out_of_a_figure():
    assert (
        content('<g><g clip-path="none"><g><path d="z"/></g></g></g>')
        == '<g clip-path="none"><path d="z"/></g>'
    )
    turned = '<text transform="rotate({}-0 1 2)">a</text><text transform="rotate(-90 1 2)">b</text>'
    assert content(turned.replace("{}", "")) == '<text>a</text><text transform="rotate(-90 1 2)">b</text>'
    style = "stroke: red; stroke-dasharray: 1,2; stroke-dashoffset: 0;  fill: none"
    assert content(f'<path style="{style}"/>') == '<path style="stroke:red;stroke-dasharray:1,2;fill:none"/>'
    text = "<text style=\"font-size: 7px; font-family: 'A B', serif; x: 1\">a</text>"
    found = embedding.inline_svg(f'<svg viewBox="0 0 2 1">{text}{text}</svg>', "x")
    assert "style=\"font-family:'A B', serif\"><style>#figure-x .s0{font-size:7px;x:1}</style>" in found
    other = text.replace("serif", "sans-serif")
    assert content(text + other).count("font-family") == 2


def test_something_else_than_an_svg_is_refused():
    with pytest.raises(ValueError, match="figure x: not an SVG"):
        embedding.inline_svg("<html>", "x")


# -- from published files -------------------------------------------------------------------------


def publish(folder, name, these=None, figure_names=("tie_ranges", "cost", "training")):
    """Everything that a page reads of a table, as the workflow writes it; figure -> its SVG file."""
    table = TABLE | {"name": name, "title": f"Table {name}"}
    these = records() if these is None else these
    refused = [
        {key: record[key] for key in ("protocol", "method", "bits", "reason")}
        for record in these
        if record["status"] == "refused" and record["seed"] == 0
    ]
    claims = [{"source": "A Paper", "claims": [{"id": "a claim", "claim": "One <is> ahead."}]}]
    settings = {"table": table, "published": PUBLISHED, "refused": refused, "claims": claims}
    (folder / f"{name}.json").write_text(json.dumps(settings))
    tidy = frames.tidy(*model_of(table, these, PUBLISHED))
    judged = [CLAIMS[0] | {"figures": [FIGURE | {"p_adjusted": 0.5}]}]
    texts = table_files.table_files(
        table_of(table),
        tidy,
        statistics.comparisons(*model_of(table, these)),
        judged,
        health.frame(*model_of(table, these)),
    )
    for ending, text in texts.items():
        (folder / f"{name}{ending}").write_text(text, encoding="utf-8")
    for record in these:
        run = folder / "runs" / "/".join(str(record[k]) for k in ("protocol", "method", "bits", "seed"))
        run.mkdir(parents=True, exist_ok=True)
        (run / "run.json").write_text(json.dumps(record["run"]))
        (run / "scores.json").write_text(
            json.dumps({key: record[key] for key in ("status", "reason", "metrics", "curves")})
        )
        (run / "training.jsonl").write_text("".join(json.dumps(line) + "\n" for line in record["training"]))
    drawn = {}
    (folder / "figures").mkdir(exist_ok=True)
    for figure in figure_names:
        drawn[figure] = folder / "figures" / f"{figure}_{name}.svg"
        try:
            figure_style.save(figures.draw(figure, *model_of(table, these)), drawn[figure])
        except axes.NothingToDraw as error:
            figure_style.save(axes.message(str(error)), drawn[figure])
    return drawn


def test_a_view_of_published_files_is_that_of_the_records(tmp_path):
    drawn = publish(tmp_path, "small")
    view = published.view(published.read("small", tmp_path), drawn)
    # the records have no training log: that figure says so, and the page leaves it out
    assert list(view.figures) == ["tie_ranges", "cost"]
    assert view.figures["cost"].svg == drawn["cost"].read_text() and view.figures["cost"].title == "Cost"
    pd.testing.assert_frame_equal(
        view.printed.tidy, frames.tidy(*model_of(view.table, records(), PUBLISHED)), check_dtype=False
    )
    made_of = statistics.comparisons(*model_of(view.table, records()))
    for column in ("difference_low", "p_adjusted", "verdict", "seeds"):
        found = [getattr(cell.comparison, column) for cell in view.printed.of.values()]
        assert found == pytest.approx(made_of[column].tolist(), nan_ok=True) or (
            found == made_of[column].tolist()
        )
    [claim] = view.claims
    assert (claim["claim"], claim["verdict"], claim["elsewhere"]) == (
        "One <is> ahead.",
        "not reproduced",
        "elsewhere it is",
    )
    assert [one["words"] for one in claim["figures"]] == [FIGURE["words"]]
    assert set(view.files) == {f"small{ending}" for ending in table_files.ENDINGS}
    text = document.page("x", [view])
    assert "0.5123" in Parsed(text).text and repr(float(view.printed.tidy["mean"][0])) in text


def test_a_gallery_is_the_smaller_of_its_files(tmp_path):
    figure = tie_ranges.draw(*model_of(TABLE, records()))
    plain = figure_style.render(figure, "svg").decode()
    assert embedding.smallest_svg(plain, figure_style.render(figure, "png")) == plain
    large = plain.replace("</svg>", f"<!--{'x' * 1_000_000}--></svg>")
    small = embedding.smallest_svg(large, figure_style.render(figure, "png"))
    assert small.startswith("<svg ") and "data:image/webp;base64," in small and len(small) < 300_000
    drawn = publish(tmp_path, "small", figure_names=[])
    for kind in ("svg", "png"):
        figure_style.save(figure, tmp_path / f"gallery_small.{kind}")
    view = published.view(published.read("small", tmp_path), drawn, tmp_path / "gallery_small.svg")
    assert list(view.figures) == ["gallery"] and view.figures["gallery"].svg == plain


@pytest.mark.parametrize("missing", ["small.json", "small.tidy.csv", "figures/cost_small.svg"])
def test_a_missing_file_is_named(tmp_path, missing):
    drawn = publish(tmp_path, "small")
    (tmp_path / missing).unlink()
    with pytest.raises((OSError, ValueError), match=re.escape(missing)):
        published.view(published.read("small", tmp_path), drawn)
