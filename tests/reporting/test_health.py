"""Health of codes in tables, pages and figures: values by hand, and marks where a run collapsed."""

import math
import re

import models
import pytest
from models import block, model_of, small, table_of

from reporting import figures, frames
from reporting.page import document, table_view
from reporting.printed import health, latex, markdown
from reporting.printed.cells import cells
from reporting.records.folds import merged_health
from reporting.tables.runs import Run
from tiebench import figure_style

BLOCKS = [block(metric=metric, title="Digits") for metric in ("ap", "ndcg")]
TABLE = small(seeds=[0, 1], methods=["lsh", "dtsh"], blocks=BLOCKS)
REASON = "12 of 12 bits are constant, 1 distinct code of 10 classes"


def record(method, bits, seed, distinct, collapsed=None, epoch=None):
    found = dict.fromkeys((*health.COUNTS, *health.NUMBERS), 0)
    found |= {"distinct_codes": distinct, "entropy": math.log2(distinct), "tie@10": 2.5 * (seed + 1)}
    found |= {"correlation_mean": None, "tie@1000": None, "classes": None, "ones": [0.25, 0.75, 0.5]}
    found |= {"collapsed": collapsed, "collapsed_epoch": epoch}
    scores = {"ap": 0.5, "ndcg": 0.5, "ap_min": 0.4, "ap_max": 0.6}
    return models.record(method, bits, seed, scores, health=found)


RUNS = [("lsh", 12, 0, 100), ("lsh", 12, 1, 300), ("dtsh", 12, 0, 64), ("dtsh", 12, 1, 1, REASON, 8)]
RUNS += [("dtsh", 24, 0, 2, "x", 3), ("dtsh", 24, 1, 2, "x")]
RECORDS = [*(record(*run) for run in RUNS), record("lsh", 24, 0, 5) | {"health": {}}]


def test_one_row_per_run_and_the_same_bits_read_back():
    frame = health.frame(*model_of(TABLE, RECORDS))
    # Two metrics share the runs; a run without health has no row; NaN and <NA> stay apart from 0.
    assert list(zip(frame["method"], frame["bits"], frame["seed"])) == [run[:3] for run in RUNS]
    assert frame["collapsed"].tolist() == ["", "", "", REASON, "x", "x"]
    assert frame["collapsed_epoch"].isna().tolist() == [True, True, True, False, False, True]
    assert frame["correlation_mean"].isna().all() and frame["classes"].isna().all()
    assert set(frame["ones_lowest"]) == {0.25} and set(frame["ones_highest"]) == {0.75}
    assert frames.from_csv(frames.to_csv(frame), health.KINDS).equals(frame)
    with pytest.raises(ValueError, match="its columns are a"):
        frames.from_csv("a\n1\n", health.KINDS)


def test_printed_rows_are_means_over_seeds_with_the_seeds_that_collapsed():
    found = health.rows(table_of(TABLE), health.frame(*model_of(TABLE, RECORDS)))
    by_cell = {(row["name"], row["bits"]): row for row in found}
    assert list(by_cell) == [("LSH", 12), ("DTSH", 12), ("DTSH", 24)]
    headings = [name for name, *_ in health.PRINTED]
    values = dict(zip(headings, by_cell["LSH", 12]["values"], strict=True))
    assert values["Distinct codes"] == (200.0, "200")
    assert values["Tie at 10"] == (3.75, "4") and values["Tie at 1,000"] == (None, "–")
    assert by_cell["LSH", 12]["collapsed"] == ""
    assert by_cell["DTSH", 12]["collapsed"] == f"seed 1 since epoch 8: {REASON}"
    assert by_cell["DTSH", 24]["collapsed"] == "seed 0 since epoch 3: x; seed 1: x"


def test_every_table_marks_a_mean_that_includes_collapsed_codes():
    tidy = frames.tidy(*model_of(TABLE, RECORDS))
    of = {(r.metric, r.method, r.bits): r.collapsed for r in tidy.itertuples()}
    assert of["ap", "dtsh", 12] == 1 and of["ndcg", "dtsh", 24] == 2
    assert of["ap", "lsh", 12] == of["ap", "lsh", 24] == 0
    assert frames.from_csv(frames.to_csv(tidy)).equals(tidy)
    printed = cells(tidy, table_of(TABLE))
    text, tex = markdown.to_markdown(printed), latex.to_latex(printed)
    assert text.count("‡ Collapsed codes") == 1 and text.count("‡") == 5
    assert "DTSH (12 bits, 1 of 2 seeds; 24 bits, 2 of 2 seeds)." in text
    assert all("‡" not in line for line in text.splitlines() if line.startswith("| LSH"))
    assert tex.count(r"\textsuperscript{\ddag{}}") == 4 and "‡" not in tex
    folds = table_of(TABLE | {"folds": {"digits": ["digits_fold1", "digits_fold2"]}})
    of_folds = markdown.to_markdown(cells(tidy, folds))
    assert "DTSH (12 bits, 1 of 2 seeds in some fold; 24 bits, 2 of 2 seeds in some fold)." in of_folds
    plain = frames.tidy(*model_of(TABLE, [one for one in RECORDS if not Run.from_json(one).collapsed]))
    assert "‡" not in markdown.to_markdown(cells(plain, table_of(TABLE)))


def test_the_page_and_every_figure_mark_the_method():
    tidy, frame = frames.tidy(*model_of(TABLE, RECORDS)), health.frame(*model_of(TABLE, RECORDS))
    parts = cells(tidy, table_of(TABLE)), {}, [], {}, frame
    view = table_view.TableView(*model_of(TABLE, RECORDS, []), *parts)
    assert [entry["name"] for entry in document.content([view, view])["methods"]] == ["LSH", "DTSH‡"]
    html = document.page([view])
    assert "2 of 3 cells have collapsed codes." in html and f"seed 1 since epoch 8: {REASON}" in html
    assert html.count('<span class="unseen"> collapsed codes</span>') == 4
    assert "Collapsed codes: 1 of 2 seeds" in html
    for kind, title in (("metric_by_bits", False), ("tie_ranges", None)):
        svg = figure_style.render(figures.draw(kind, *model_of(TABLE, RECORDS), title=title), "svg").decode()
        assert "DTSH‡" in svg and " LSH‡" not in svg and ">LSH‡" not in svg, kind
        words = " ".join(" ".join(re.findall(r">([^<]+)</", svg)).split())
        assert "‡ Collapsed codes: DTSH at 12, 24 bits." in words, kind
    with pytest.raises(ValueError, match="unknown option 'note'"):
        figures.draw("tie_ranges", *model_of(TABLE, RECORDS), note="x")


def test_folds_are_averaged_and_the_one_that_collapsed_is_named():
    parts = {"a": record("lsh", 12, 0, 4)["health"], "b": record("lsh", 12, 1, 7, "x", 6)["health"]}
    merged = merged_health(parts)
    assert (merged["distinct_codes"], merged["entropy"]) == (6, (2 + math.log2(7)) / 2)
    assert (merged["collapsed"], merged["collapsed_epoch"], merged["tie@1000"]) == ("b: x", 6, None)
    assert merged["tie@10"] == 3.75 and merged["ones"] == [0.25, 0.75, 0.5]
    assert merged_health(parts | {"c": {}}) == {}
