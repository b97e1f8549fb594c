"""The page, parsed: every number is there, nothing is fetched, ids are unique, text is escaped."""

import base64
import re
from html.parser import HTMLParser

import pytest

from workflow.reporting import drawing, frames, page
from workflow.reporting.figures import tie_ranges

VOID = {"meta", "link", "br", "use", "img", "input", "hr"}
TABLE = {
    "name": "small",
    "title": "A <small> table & more",
    "description": "For tests.",
    "seeds": [0, 1],
    "methods": ["talr_ap", "mihash", "lsh"],
    "published": ["paper"],
    "blocks": [
        {"protocol": "digits", "metric": "ap", "bits": [12, 24], "title": "Digits"},
        {"protocol": "digits_levels", "metric": "ndcg", "bits": [12], "methods": ["talr_ap", "mihash"]},
        {"protocol": "digits", "metric": "ap@100", "bits": [12]},
    ],
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
                        "seconds": 10.5 + row + bits + seed,
                        "peak_memory_mb": 300.0 + bits,
                        "versions": {"numpy": "2.4.1"},
                        "git_commit": "0123abcd",
                        "device": "cpu",
                        "hyperparameters": {"rate": 0.1, "layers": [3, 5], "name": "<b>"},
                        "fingerprints": {"dataset": f"data-{protocol}", "split": f"split-{protocol}"},
                        "seed": seed,
                    }
                    result.append(plain | {"status": "done", "metrics": scores, "run": run})
    for record in result:
        if (record["protocol"], record["method"], record["bits"]) == ("digits", "lsh", 24):
            record.update(status="refused", reason="it <cannot> & will not", metrics={}, run={})
    return result


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
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def made(these=None, **context):
    these = records() if these is None else these
    frame = frames.tidy(TABLE, these, PUBLISHED)
    drawn = drawing.render(tie_ranges.draw(TABLE, these), "svg").decode()
    drawings = {"tie_ranges": drawn, "another one": drawn}
    return page.page(TABLE, these, frame, drawings, PUBLISHED, context), frame


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
            assert f"{record['run']['seconds']:.1f}" in parsed.text
    for words in ("rate = 0.1", "layers = [3, 5]", "name = <b>", "0123abcd", "numpy 2.4.1", "Seeds: 0, 1."):
        assert words in parsed.text
    for protocol in ("digits", "digits_levels"):
        assert f"data-{protocol}" in parsed.text and f"split-{protocol}" in parsed.text


def test_best_second_and_holes_in_the_cells():
    text, frame = made()
    marks = frames.marks(frame)
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
    assert text.count('href="#note-a"') == 1 and '<li id="note-a">' in text


def test_nothing_is_fetched():
    text, _ = made()
    links = []
    for tag, attributes in Parsed(text).tags:
        assert tag not in ("img", "iframe", "object", "embed", "base")
        assert not {"src", "srcset", "xlink:href", "action", "data", "poster"} & set(attributes)
        if "href" in attributes:
            (links if tag == "a" else []).append(attributes["href"])
            assert tag == "a" or attributes["href"].startswith(("#", "data:"))
        for name, value in attributes.items():
            assert name == "href" or "//" not in (value or "") or tag == "meta"
    assert [link for link in links if link.startswith("http")] == ["https://example.org/paper"]
    assert all(link.startswith(("#", "data:", "https://example.org/")) for link in links)
    assert "@import" not in text and not re.search(r"url\((?!#)", text)


def test_downloads_are_the_csv_files():
    text, frame = made()
    found = {
        attributes["download"]: base64.b64decode(attributes["href"].split("base64,")[1]).decode()
        for tag, attributes in Parsed(text).tags
        if "download" in attributes
    }
    assert found == {
        "small.csv": frames.to_csv(frames.wide(frame, TABLE)),
        "small.tidy.csv": frames.to_csv(frame),
    }


def test_ids_are_unique_and_references_find_them():
    text, _ = made()
    tags = Parsed(text).tags
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    asked = [a["href"][1:] for _, a in tags if a.get("href", "").startswith("#")]
    asked += re.findall(r"url\(#([^)]+)\)", text)
    asked += [a["aria-labelledby"] for _, a in tags if "aria-labelledby" in a]
    assert asked and set(asked) <= set(ids)


def test_tables_say_what_their_headings_are_for():
    tags = Parsed(made()[0]).tags
    assert ("html", {"lang": "en"}) in tags
    headings = [attributes for tag, attributes in tags if tag == "th"]
    assert all(a.get("scope") in ("col", "row", "colgroup") for a in headings)
    assert [tag for tag, _ in tags].count("caption") == [tag for tag, _ in tags].count("table")
    # every row of scores has as many cells as its head has columns
    text = made()[0]
    for body in re.findall(r'<table class="scores.*?</table>', text, flags=re.DOTALL):
        columns = max(int(column) for column in re.findall(r'data-column="(\d+)"', body))
        for row in re.findall(r"<tr>.*?</tr>", body.split("<tbody>")[1], flags=re.DOTALL):
            assert len(re.findall(r"<td\b", row)) == columns


def test_titles_are_escaped_and_the_context_is_used():
    text, _ = made(
        command="snakemake <x>", captions={"another one": "Of AP_T & more"}, paragraphs=["One more."]
    )
    assert "<title>A &lt;small&gt; table &amp; more</title>" in text
    parsed = Parsed(text)
    for words in ("snakemake <x>", "Of AP T & more", "One more.", "tuned"):
        assert words in parsed.text
    with pytest.raises(ValueError, match="unknown context 'comand'"):
        made(comand="x")


def test_the_same_records_in_any_order_give_the_same_page():
    assert made()[0] == made(records()[::-1])[0]


def test_no_records_still_make_a_page():
    text, _ = made([])
    assert "no run was recorded" in Parsed(text).text


def test_something_else_than_an_svg_is_refused():
    with pytest.raises(ValueError, match="figure x: not an SVG"):
        page.inline_svg("<html>", "x")
