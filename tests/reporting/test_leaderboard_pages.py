"""Tables and figures of pages, made from the leaderboard: numbers, marks, errors, what `--check` notices."""

import hashlib
import itertools
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from leaderboards import make_run, make_uncoded, publish_table
from models import block
from styles import texts

from reporting import figures
from reporting.__main__ import main
from reporting.leaderboard import (
    columns,
    measured,
    pages,
    pictures,
    quantities,
    summary_text,
    tables,
    verdicts,
)
from reporting.leaderboard.boards import Boards
from reporting.leaderboard.publishing import publish
from reporting.leaderboard.tables import render
from reporting.tables.titles import EN_DASH

ROOT = Path(__file__).parents[2]
# Of two seeds, by method and bits: AP, AP@2, seconds of fitting, peak memory.
AP = {
    ("lsh", 8): (0.25, 0.375), ("lsh", 16): (0.375, 0.375),
    ("talr", 8): (0.5, 0.75), ("talr", 16): (0.75, 0.75),
    ("wide", 8): (0.5, 0.5), ("wide", 16): (0.625, 0.875),
    ("onehot", 8): (0.875, 0.875), ("onehot", 16): (0.875, 0.875),
}  # fmt: skip
PRINTED = {("lsh", 8): 0.3605, ("talr", 8): 0.602, ("talr", 16): 0.75, ("wide", 8): 0.501, ("wide", 16): 0.7}
TRIALS = {"lsh": 1, "onehot": 7, "talr": 9, "wide": 8}
STYLES = {
    "lsh": {"title": "LSH", "family": "unsupervised"},
    "talr": {"title": "TALR_AP", "family": "listwise"},
    "wide": {"title": "Wide", "family": "pointwise", "sees": "database labels"},
    "onehot": {"title": "One-hot", "family": "bound"},
}


@pytest.fixture
def folder(published, tmp_path):
    """The leaderboard of `published`, a copy, beside its results."""
    shutil.copytree(published, tmp_path, dirs_exist_ok=True)
    return tmp_path / "leaderboard"


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Results and leaderboard of p, with methods above, and of q, with two folds and LSH and TALR alone."""
    results = tmp_path_factory.mktemp("results")
    for (method, bits), scores in AP.items():
        for seed, ap in enumerate(scores):
            values = {"ap": ap, "ap_min": ap / 2, "ap_max": ap + 0.125, "ap@2": ap / 4}
            values = {name: [value, value] for name, value in values.items()}
            cost = {"fit": bits + seed, "encode": 1.0}
            more = {"seconds_by_part": cost, "seconds": sum(cost.values()), "peak_memory_mb": 100.0 * bits}
            if (method, bits, seed) == ("talr", 8, 1):
                more["scores"] = {"health": {"collapsed": "few codes"}}
            make_run(results, "p", method, bits, seed, values, **more)
    for fold, size in (("q_fold1", 1), ("q_fold2", 3)):
        for method, ap in (("lsh", 0.25), ("talr", 0.5)):
            values = {"ap": [ap / size] * size, "transfer_accuracy": [ap] * size}
            make_run(results, fold, method, 8, 0, values)
        make_uncoded(results, fold, ap=0.5, queries=size)
    make_uncoded(results, "p", ap=0.3125, queries=2)
    table = {"name": "t", "methods": list(STYLES), "seeds": [0, 1], "styles": STYLES, "published": ["paper"]}
    table |= {"families": {name: style["family"] for name, style in STYLES.items()}}
    table |= {"protocols": {"p": "Protocol P"}, "settings": {"p": {"split": {"kind": "random"}}}}
    table |= {"blocks": [block("p", bits=[8, 16])], "budgets": []}
    for (method, trials), bits in itertools.product(TRIALS.items(), (8, 16)):
        budget = {"trials": trials, "budget": "8 trials" if trials > 1 else "nothing to choose"}
        table["budgets"].append({"protocol": "p", "method": method, "bits": bits} | budget)
    cells = [{"protocol": "p", "metric": "ap", "method": method, "bits": bits} for method, bits in PRINTED]
    values = [cell | {"value": value} for cell, value in zip(cells, PRINTED.values())]
    publish_table(results, table, ["p"], published=[{"source": "paper", "values": values}])
    split = {"kind": "unseen_classes", "unseen": [[0, 1], [2]]}
    more = {"name": "u", "published": [], "methods": ["lsh", "talr"], "seeds": [0]}
    more |= {"folds": {"q": ["q_fold1", "q_fold2"]}}
    more |= {"protocols": {"q": "Protocol Q"}, "settings": {"q": {"split": split, "unseen": True}}}
    more["blocks"] = [block("q", metric, [8]) for metric in ("ap", "transfer_accuracy")]
    publish_table(results, table | more, ["q"])
    publish(["t", "u"], results, results / "leaderboard")
    return results


def add(folder, method, bits, *runs):
    """Publish runs of a method at other bits, one seed after the other: what `make_run` takes of each."""
    results = folder.parent
    scores = {"ap": [0.5], "ap_min": [0.25], "ap_max": [1.0], "ap@2": [0.5]}
    for seed, more in enumerate(runs):
        make_run(results, "p", method, bits, seed, scores, **more)
    table = json.loads((results / "t.json").read_text())["table"]
    table |= {"name": "new", "methods": [method], "seeds": list(range(len(runs))), "published": []}
    publish_table(results, table | {"blocks": [block("p", bits=[bits])]}, ["p"])
    publish(["new"], results, folder)


def rendered(folder, settings):
    return render(yaml.safe_load(settings), folder.parent / "docs" / "results", Boards(folder))


LEGEND = (
    *("over 2 seeds", "† Learns from database labels", "TALR_AP (8 bits, 1 of 2 seeds)."),
    "[How to read it](../results.md#how-to-read-the-tables).",
    "Data: [p](../../leaderboard/p.tidy.csv).",
)


def test_a_table_by_default_has_families_best_marks_and_a_legend(folder):
    lines = rendered(folder, "protocol: p").splitlines()
    assert lines[:12] == [
        "| Method | 8 bits | 16 bits |",
        "|:---|---:|---:|",
        "| *Unsupervised* |  |  |",
        "| LSH | 0.312 ± 0.088 | 0.375 ± 0.000 |",
        "| *Pairs* |  |  |",
        "| Wide† | 0.500 ± 0.000 | 0.750 ± 0.177 |",
        "| *Lists* |  |  |",
        r"| TALR\_AP | **0.625** ± 0.177‡ | **0.750** ± 0.000 |",
        "| *Baselines* |  |  |",
        "| One-hot | 0.875 ± 0.000 | 0.875 ± 0.000 |",
        "| *Uncoded features (cosine)* | 0.312 | 0.312 |",
        "",
    ]
    legend = " ".join(lines[12:])
    assert [words for words in LEGEND if words not in legend] == [] and max(map(len, lines[12:])) <= 120


def test_methods_that_are_left_out(folder):
    """The others keep their families, and their best is marked."""
    lines = rendered(folder, "{protocol: p, legend: false, without: [talr, lsh]}").splitlines()
    assert lines[2:] == [
        "| *Pairs* |  |  |",
        "| Wide† | 0.500 ± 0.000 | 0.750 ± 0.177 |",
        "| *Baselines* |  |  |",
        "| One-hot | 0.875 ± 0.000 | 0.875 ± 0.000 |",
        "| *Uncoded features (cosine)* | 0.312 | 0.312 |",
    ]
    with pytest.raises(ValueError, match="no method 'tarl' there; did you mean 'talr'"):
        rendered(folder, "{protocol: p, without: [tarl]}")


def test_every_kind_of_column(folder):
    settings = """
        protocol: p
        methods: [talr, lsh]
        uncoded: false
        best: false
        legend: false
        columns:
          - {metric: ap, spread: false, decimals: 2}
          - range
          - {metric: ap@2, layout: joined, spread: false}
          - {show: fit_seconds, layout: joined}
          - {show: encode_seconds, bits: 16, decimals: 0, heading: "encode {bits} bits"}
          - {show: peak_memory, layout: highest}
          - {show: health, of: constant_bits, bits: 8, decimals: 1}
          - {show: health, of: entropy, bits: 8}
    """
    heading, _, talr, lsh = rendered(folder, settings).splitlines()
    assert heading == (
        "| Method | AP<sub>T</sub>, 8 bits | AP<sub>T</sub>, 16 bits "
        "| worst–best AP<sub>T</sub>, 8 bits | worst–best AP<sub>T</sub>, 16 bits "
        "| AP@2 8 / 16 | fit s | encode 16 bits | peak MB | Constant bits | Entropy |"
    )
    assert talr == (
        r"| TALR\_AP | 0.62‡ | 0.75 | 0.312–0.750 | 0.375–0.875 | 0.156‡ / 0.188 "
        "| 8.5 / 16.5 | 1 | 1600 | 0.5 | 3.1 |"
    )
    assert lsh == (
        "| LSH | 0.31 | 0.38 | 0.156–0.438 | 0.188–0.500 | 0.078 / 0.094 "
        "| 8.5 / 16.5 | 1 | 1600 | 0.5 | 3.1 |"
    )


def test_columns_of_searches_are_those_of_the_published_trials(folder):
    lines = ["protocol,method,bits,trial,settings,score,seconds,rung,chosen,ends"]
    for bits, ends in ((8, "bins epochs"), (16, "")):
        lines += [
            f"p,talr,{bits},0,{{}},0.5,30,2,True,{ends}",
            f"p,talr,{bits},0,{{}},0.25,15,2,True,{ends}",
            f"p,talr,{bits},1,{{}},0.75,30,2,False,",
            f"p,talr,{bits},1,{{}},,10,2,False,",  # lost its score on a part of a later rung
            f"p,talr,{bits},2,{{}},,0,1,False,",
        ]
    (folder.parent / "tuning").mkdir()
    (folder.parent / "tuning" / "long.csv").write_text("\n".join(lines))
    publish(["t"], folder.parent, folder, tunings=["long"])
    columns = "{show: search, of: trials, layout: joined}, {show: search, of: minutes, bits: 8}"
    columns += ", {show: search, of: ends}"
    settings = f"{{protocol: p, methods: [talr, lsh], uncoded: false, legend: false, columns: [{columns}]}}"
    assert rendered(folder, settings).splitlines() == [
        "| Method | trials | core minutes | at ends of axes, 8 bits | at ends of axes, 16 bits |",
        "|:---|---:|---:|---:|---:|",
        r"| TALR\_AP | 2 / 2 | 1.4 | bins, epochs | none |",
        f"| LSH | {EN_DASH} | {EN_DASH} | {EN_DASH} | {EN_DASH} |",
    ]
    path = folder / "p.trials.csv"
    path.write_text(path.read_text().replace(",ends\n", ",unknown\n"))  # of a search that did not record them
    about = json.loads((folder / "p.provenance.json").read_text())
    about["sha256"]["p.trials.csv"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "p.provenance.json").write_text(json.dumps(about))
    settings = (
        "{protocol: p, methods: [talr], uncoded: false, legend: false, columns: [{show: search, of: ends}]}"
    )
    assert rendered(folder, settings).splitlines()[2] == rf"| TALR\_AP | {EN_DASH} | {EN_DASH} |"


def test_layout_and_spread_of_all_columns_but_those_that_say_otherwise(folder):
    settings = "{protocol: p, methods: [lsh], uncoded: false, legend: false, layout: joined, spread: false"
    settings += ", columns: [score, {spread: true, layout: columns, bits: 8}]}"
    heading, _, row = rendered(folder, settings).splitlines()
    assert (
        heading == "| Method | AP<sub>T</sub> 8 / 16 | 8 bits |"
        and row == "| LSH | 0.312 / 0.375 | 0.312 ± 0.088 |"
    )


def test_columns_of_what_papers_print(folder):
    settings = """
        protocol: p
        best: false
        legend: false
        columns:
          - {show: published, layout: joined}
          - {show: difference, bits: 8, decimals: 2}
          - {show: difference, layout: highest, heading: farthest}
    """
    heading, _, *rows = rendered(folder, settings).splitlines()
    assert heading == "| Method | published 8 / 16 | difference 8 | farthest |"
    # TALR is 0.023 above at 8 bits and level at 16; Wide 0.001 below and 0.05 above.
    assert [row for row in rows if not row.startswith("| *")] == [
        "| LSH | 0.360 / – | −0.05 | −0.048 |",
        "| Wide† | 0.501 / 0.700 | 0.00 | +0.050 |",
        r"| TALR\_AP | 0.602 / 0.750 | +0.02 | +0.023 |",
        "| One-hot | not printed | – | – |",
    ]
    # The largest difference is the one farthest from 0, whatever its sign.
    settings = "{protocol: p, methods: [lsh], legend: false, uncoded: false, columns: [difference]}"
    assert rendered(folder, settings).splitlines()[-1] == "| LSH | −0.048 | – |"


def test_a_column_of_some_rows_is_blank_in_the_others_and_has_no_holes_there(folder):
    settings = """
        protocol: p
        bits: 8
        methods: [lsh, talr]
        columns:
          - score
          - {protocol: q, metric: transfer_accuracy, methods: [talr]}
    """
    _, _, *rows = rendered(folder, settings).splitlines()
    assert rows[:3] == [
        "| LSH | 0.312 ± 0.088 |  |",
        r"| TALR\_AP | **0.625** ± 0.177‡ | 0.500 |",
        "| *Uncoded features (cosine)* | 0.312 |  |",
    ]
    assert not [row for row in rows if row.startswith("<sup>")]


def test_columns_of_some_rows_may_show_the_same_score(folder):
    settings = """
        protocol: p
        bits: 8
        best: false
        spread: false
        columns:
          - {show: score, methods: [lsh]}
          - {show: range, methods: [talr]}
          - score
          - {show: score, heading: again, methods: [talr]}
    """
    lines = rendered(folder, settings).splitlines()
    assert "| LSH | 0.312 |  | 0.312 |  |" in lines and "| One-hot |  |  | 0.875 |  |" in lines
    assert r"| TALR\_AP |  | 0.312–0.750 | 0.625‡ | 0.625‡ |" in lines


def test_standard_deviations_over_protocols(folder):
    settings = "{bits: 8, uncoded: false, columns: [{show: deviation, protocols: [p, q]}]}"
    rows = rendered(folder, settings).splitlines()
    assert rows[0] == "| Method | standard deviation |"
    # 0.625 and 0.25: they are 0.375 apart, and 0.375 / sqrt(2) is their deviation.
    assert r"| TALR\_AP | 0.265 |" in rows
    assert "| One-hot | – |" in rows


def test_folds_other_protocols_and_holes(folder):
    settings = """
        sort: {protocol: p, bits: 8}
        bits: 8
        uncoded: first
        columns:
          - {protocol: q, show: folds}
          - {protocol: q, show: mean_of_folds}
          - {protocol: q, heading: all}
          - {protocol: q, metric: transfer_accuracy}
          - {protocol: p}
    """
    heading, _, uncoded, *rows = rendered(folder, settings).splitlines()
    assert heading == (
        "| Method | {0, 1} | {2} | mean of folds | all | Protocol Q, Transfer accuracy, 8 bits "
        "| Protocol P, AP<sub>T</sub>, 8 bits |"
    )
    assert uncoded == "| *Uncoded features (cosine)* | 0.500 | 0.500 | 0.500 | 0.500 | – | 0.312 |"
    hole = "– <sup>a</sup>"
    # Folds of 1 and 3 queries: over all queries TALR has (0.5 + 3 * 0.1667) / 4, LSH (0.25 + 3 * 0.0833) / 4.
    assert rows[:4] == [
        f"| One-hot | {hole} | {hole} | – | {hole} | {hole} | 0.875 ± 0.000 |",
        r"| TALR\_AP | **0.500** | **0.167** | 0.333 | **0.250** | **0.500** | **0.625** ± 0.177‡ |",
        f"| Wide† | {hole} | {hole} | – | {hole} | {hole} | 0.500 ± 0.000 |",
        "| LSH | 0.250 | 0.083 | 0.167 | 0.125 | 0.250 | 0.312 ± 0.088 |",
    ]
    assert rows[-1].startswith(
        "<sup>a</sup> Wide on {0, 1} (8 bits); One-hot on {0, 1} (8 bits); Wide on {2}"
    )
    assert rows[-1].endswith("no run was recorded")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("protocol: pp", "has no protocol 'pp'; did you mean 'p'? Known: p, q"),
        ("{protocol: p, metric: app}", "there is no metric 'app'; did you mean 'ap'?"),
        ("{protocol: p, metric: ap@3}", "the leaderboard of p has no ap@3; did you mean 'ap@2'?"),
        ("{protocol: p, bits: 12}", "the leaderboard of p has no codes of 12 bits; it has: 8, 16"),
        ("{protocol: p, methods: [lhs]}", "no method 'lhs' there; did you mean 'lsh'?"),
        ("{protocol: p, colums: [score]}", "unknown key 'colums' of a table; did you mean 'columns'?"),
        ("{protocol: p, columns: [scores]}", "unknown show 'scores' of a column; did you mean 'score'?"),
        ("{columns: [{show: deviation, protocols: [p]}]}", "protocols, two at least"),
        ("{columns: [{show: range, protocols: [p, q]}]}", "protocols, two at least"),
        ("{protocol: p, columns: [{layuot: joined}]}", "unknown key 'layuot' of a column; did you mean 'lay"),
        ("{protocol: p, columns: [{layout: join}]}", "unknown layout 'join' of a column; did you mean 'j"),
        ("{protocol: p, columns: [folds]}", "p has no folds"),
        ("{protocol: p, columns: [{show: health, of: entropi}]}", "did you mean 'entropy'?"),
        ("{protocol: p, columns: [{show: search, of: trails}]}", "did you mean 'trials'?"),
        ("{protocol: p, bits: eight}", "bits of a table must be of type int or list, not 'eight'"),
        ("{protocol: p, best: 1}", "best of a table must be of type bool, not 1"),
        ("{protocol: p, uncoded: middle}", "uncoded must be first, last or false, not 'middle'"),
        ("{protocol: p, sort: {metric: ap@2}}", "no column of scores is sorted by: p, ap@2, 16 bits"),
        ("columns: [score]", "a column needs a protocol"),
        ("{figure: tie_range, protocol: p}", "there is no figure 'tie_range'; did you mean"),
        ("{figure: tie_ranges}", "a figure needs the key protocol"),
        ("{figure: training, protocol: p}", "training of runs, which the leaderboard of p"),
        ("{figure: tie_ranges, protocol: p, bits: all}", "bits of a figure must be of type"),
        ("[protocol, p]", "the marker must hold settings"),
        ("protocol: [p", "the marker is not YAML"),
    ],
)  # fmt: skip
def test_each_mistake_is_one_line_that_names_page_and_line(published, tmp_path, capsys, settings, message):
    page = tmp_path / "page.md"
    below = "![x](x.png)" if "figure" in settings else "<!-- end -->"
    page.write_text(text := f"# Title\n\n<!-- leaderboard: {settings} -->\n{below}\n")
    assert main(["docs", str(page), "--folder", str(published / "leaderboard")]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: {page}, line 3: ") and said.count("\n") == 1
    assert message in said
    assert page.read_text() == text


PAGE = """# Title

<!-- leaderboard: {protocol: p, legend: false, families: false, uncoded: false, methods: [lsh], bits: 8} -->
old
<!-- end -->

```markdown
<!-- leaderboard: {protocol: nowhere} -->
<!-- end -->
```

    <!-- leaderboard: {protocol: nowhere} -->

<!-- leaderboard:
figure: tie_ranges
protocol: p
bits: 8
-->

![Ranges of AP](images/ranges.png)

AP of LSH is **?<!-- mean p ap 8 lsh -->**, at 16 bits 9.1<!-- mean p ap 16 lsh -->.
"""


def test_a_page_is_rewritten_between_its_markers_and_nowhere_else(folder, tmp_path, capsys):
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    page.write_text(PAGE)
    command = ["docs", str(page), "--folder", str(folder)]
    assert main([*command, "--check"]) == 1
    said = capsys.readouterr()
    places = [line.partition(": ")[0] for line in said.out.splitlines()]
    assert places == [f"{page}, line {line}" for line in (3, 22, 22, 14)]
    assert "4 generated parts are not up to date: run python -m reporting docs" in said.err
    assert page.read_text() == PAGE
    assert main(command) == 0
    image = tmp_path / "docs" / "images" / "ranges.png"
    assert capsys.readouterr().out.split() == [str(image), str(page)]
    table = "\n| Method | 8 bits |\n|:---|---:|\n| LSH | 0.312 ± 0.088 |\n\n"
    low, high = (f"{np.mean(AP['lsh', bits]):.{decimals}f}" for bits, decimals in ((8, 3), (16, 1)))
    written = PAGE.replace("old\n", table).replace("?<", f"{low}<").replace("9.1<", f"{high}<")
    assert page.read_text() == written
    assert main([*command, "--check"]) == 0
    assert main(command) == 0  # nothing left to write
    assert capsys.readouterr().out == ""


def test_a_figure_says_what_it_was_drawn_from_and_is_drawn_again_when_that_changes(folder, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace("images/", ""))
    image = tmp_path / "ranges.png"
    pages.rewrite([page], Boards(folder))
    about = json.loads((folder / "p.provenance.json").read_text())
    source = json.loads(pictures.recorded(image))
    files = ("p.tidy.csv", "p.runs.csv")
    assert source["sha256"] == {name: about["sha256"][name] for name in files}
    assert source["settings"]["bits"] == 8
    drawn = image.read_bytes()
    page.write_text(page.read_text().replace("bits: 8\n", "bits: 16\n"))
    (fault,) = pages.outdated([page], Boards(folder))
    assert fault.endswith("ranges.png was drawn from other scores or with other settings")
    pages.rewrite([page], Boards(folder))
    assert image.read_bytes() != drawn
    page.write_text(page.read_text().replace("bits: 16\n", "bits: 8\n"))
    pages.rewrite([page], Boards(folder))
    assert image.read_bytes() == drawn
    add(folder, "lsh", 32, {})
    assert len(pages.outdated([page], Boards(folder))) == 1
    image.write_bytes(b"no picture")
    with pytest.raises(ValueError, match=r"ranges\.png is not a PNG file"):
        pages.outdated([page], Boards(folder))


def test_seeds_and_machines_are_those_of_the_rows(folder):
    add(folder, "lsh", 32, {"device": "another machine"})
    columns = "[{show: health, of: entropy}, {show: fit_seconds, layout: joined}]"
    text = rendered(folder, f"{{protocol: p, methods: [talr], bits: 8, columns: {columns}}}")
    assert "Mean over 2 seeds." in text and "Seconds on 1 thread of cpu; means" in " ".join(text.split())
    columns = "[{show: fit_seconds, layout: joined}]"
    text = rendered(folder, f"{{protocol: p, methods: [talr, wide, lsh], columns: {columns}}}")
    assert "on 1 thread of cpu; 1 thread of another machine for LSH; means" in " ".join(text.split())


def test_the_dots_of_a_figure_are_the_means_of_the_leaderboard(folder, tmp_path):
    settings = {"figure": "tie_ranges", "protocol": "p"}
    picture = pictures.parse(settings, "x.png", tmp_path, Boards(folder))
    drawn = figures.draw(picture.kind, picture.table, picture.results)
    for (method, bits), scores in AP.items():
        (dot,) = drawn.findobj(lambda artist, gid=f"dot-p-{bits}-{method}": artist.get_gid() == gid)
        assert dot.get_xdata()[0] == pytest.approx(np.mean(scores))


@pytest.mark.parametrize("logged", ["objective", "ap"])
def test_a_figure_of_trainings_is_drawn_from_the_published_curves(folder, tmp_path, logged):
    curves = {seed: [(seed + 1) / (k + 1) for k in range(5)] for seed in (0, 1)}
    logs = [
        {"training": [{"epoch": k + 1, "objective": 7.0, logged: value} for k, value in enumerate(curve)]}
        for curve in curves.values()
    ]
    add(folder, "talr_ap", 64, *logs)
    settings = {"figure": "training", "protocol": "p", "bits": 64}
    picture = pictures.parse(settings, "x.png", tmp_path, Boards(folder))
    assert set(json.loads(picture.source)["sha256"]) == {"p.tidy.csv", "p.runs.csv", "p.training.csv"}
    drawn = figures.draw(picture.kind, picture.table, picture.results)
    words = " ".join(text.get_text() for text in texts(drawn))
    assert ("Objective while" in words, "Average precision of training items" in words) == (
        logged != "ap",
        logged == "ap",
    )
    for seed, curve in curves.items():
        (line,) = drawn.findobj(lambda artist, gid=f"line-p-64-talr_ap-{seed}": artist.get_gid() == gid)
        assert line.get_ydata() == pytest.approx(curve, rel=1e-5)


@pytest.mark.parametrize(
    ("settings", "below", "lacks"),
    [
        ("{}", "", "<!-- end -->"),
        ("{}", "<!-- leaderboard: {} -->\n<!-- end -->\n", "<!-- end -->"),
        ("{figure: tie_ranges}", "", "![words](image.png) below"),
        ("{figure: tie_ranges}", "words ![x](x.png)\n", "![words](image.png) below"),
        ("{figure: tie_ranges}", "[x](x.png)\n", "![words](image.png) below"),
    ],
)
def test_a_marker_without_what_belongs_below_is_refused(settings, below, lacks):
    with pytest.raises(ValueError, match=re.escape(f"line 2: there is no {lacks}")):
        pages.regions(f"\n<!-- leaderboard: {settings} -->\n\n{below}")


def test_a_figure_that_is_no_png_is_refused(folder, tmp_path):
    with pytest.raises(ValueError, match=r"image must be a .png file, not 'x.svg'"):
        pictures.parse({"figure": "tie_ranges", "protocol": "p"}, "x.svg", tmp_path, Boards(folder))


def test_the_documentation_has_every_key():
    text = (ROOT / "docs" / "development" / "generated-parts.md").read_text(encoding="utf-8")
    for section, names in {
        "Tables": [*tables.KEYS, *columns.KEYS, *columns.SHOWN, *columns.LAYOUTS],
        "Verdicts": verdicts.KEYS,
        "Figures": pictures.KEYS,
        "Summaries": [*summary_text.KEYS, "ranks", *summary_text.PARTS],
        "Measurements": measured.KEYS,
        "Numbers": quantities.QUANTITIES,
    }.items():
        words = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)[1]
        assert [name for name in names if f"`{name}`" not in words] == []
