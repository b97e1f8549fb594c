"""Tables: statistics against scipy and hand values, marks, holes, exact CSV, escaped Markdown and LaTeX."""

import functools
import itertools
import math
import re
import shutil
import subprocess
from pathlib import Path

import models
import numpy as np
import pandas as pd
import pytest
import yaml
from models import block, model_of, row_of, small, table_of
from scipy import stats
from styles import STYLES

from reporting import frames
from reporting.printed import latex, legend, markdown, marks
from reporting.printed.cells import cells
from reporting.statistics import columns

PAPER = yaml.safe_load((Path(__file__).parents[2] / "config" / "published" / "he2018.yaml").read_text())


table = functools.partial(
    small,
    description="For tests.",
    protocols={"digits": "Digits", "cifar10_s1": "CIFAR-10 (S1)", "nus_wide": "NUS-WIDE"},
)
AT_12 = [block(bits=[12])]


def record(method="talr_ap", bits=12, seed=0, score=0.5, protocol="digits", **changes):
    metrics = {"ap": score, "ap_min": score - 0.1, "ap_max": score + 0.1, "ndcg": score}
    return models.record(method, bits, seed, metrics, protocol) | changes


def tidy(entry, records, *published, **uncoded):
    return frames.tidy(*model_of(entry, records, *published, **uncoded))


def texts(entry, frame, compared=None):
    """What is printed of a table: in Markdown, and in LaTeX."""
    found = cells(frame, table_of(entry, [PAPER]), compared)
    return markdown.to_markdown(found), latex.to_latex(found)


@pytest.mark.parametrize("count", [2, 3, 5, 10])
def test_interval_is_scipys(count):
    values = np.random.default_rng(count).uniform(0.3, 0.9, count)
    mean, std, low, high = frames.t_interval(values.tolist())
    assert mean == pytest.approx(values.mean(), rel=1e-14)
    assert std == pytest.approx(values.std(ddof=1), rel=1e-12)
    expected = stats.t.interval(0.95, count - 1, loc=values.mean(), scale=stats.sem(values))
    assert (low, high) == pytest.approx(expected, rel=1e-12)


def test_equal_values_have_no_spread_and_order_does_not_matter():
    assert frames.t_interval([0.1, 0.1, 0.1]) == (0.1, 0.0, 0.1, 0.1)
    values = [0.1, 0.7, 0.3, 1e-9]
    assert frames.t_interval(values) == frames.t_interval(values[::-1])


def test_one_seed_has_neither_std_nor_interval():
    frame = tidy(table(seeds=[0]), [record(score=0.25)])
    row = row_of(frame, "talr_ap", 12)
    assert (row["seeds"], row["mean"], row["status"]) == (1, 0.25, "done")
    assert row[["std", "ci_low", "ci_high"]].isna().all()


def test_one_row_per_cell_in_the_order_of_the_table():
    blocks = [block("digits", "ap", [24, 12], methods=["lsh", "talr_ap"]), block("digits", "ndcg", [12])]
    frame = tidy(table(blocks=blocks), [])
    assert list(frame.columns) == list(frames.KINDS)
    expected = [("ap", method, bits) for method in ("talr_ap", "lsh") for bits in (24, 12)]
    expected += [("ndcg", method, 12) for method in ("talr_ap", "mihash", "lsh")]
    assert list(zip(frame["metric"], frame["method"], frame["bits"], strict=True)) == expected


def test_holes_keep_their_reason():
    refused = {"status": "refused", "reason": "it needs labels", "metrics": {}}
    records = [
        *(record(seed=seed, score=0.5 + seed / 10) for seed in (0, 1, 2)),
        record(bits=24, seed=0, score=0.5),
        record(bits=24, seed=1, **refused),
        *(record("mihash", 12, seed, **refused) for seed in (0, 1, 2)),
        record("mihash", 24, 0, **refused),
        record("lsh", 12, 0, metrics={"ndcg": 1.0}),
        record("lsh", 12, 7, score=0.9),
        record("unasked", 12, 0, score=0.9),
    ]
    frame = tidy(table(), records)
    found = {
        (row.method, row.bits): (row.seeds, row.status, row.reason) for row in frame.itertuples(index=False)
    }
    assert found == {
        ("talr_ap", 12): (3, "done", ""),
        ("talr_ap", 24): (1, "partial", "seed 1: it needs labels; seed 2: no run was recorded"),
        ("mihash", 12): (0, "refused", "it needs labels"),
        ("mihash", 24): (0, "refused", "seed 0: it needs labels; seeds 1, 2: no run was recorded"),
        ("lsh", 12): (0, "missing", "seed 0: the run has no score named ap; seeds 1, 2: no run was recorded"),
        ("lsh", 24): (0, "missing", "no run was recorded"),
    }
    holes = frame[frame["seeds"] == 0]
    assert holes[["mean", "std", "ci_low", "ci_high", "difference"]].isna().all(axis=None)
    assert row_of(frame, "talr_ap", 24)["mean"] == 0.5


def test_a_method_with_fewer_seeds_is_done_with_these():
    runs = [record(seed=seed, score=0.5 + seed / 10) for seed in (0, 1, 2)]
    runs += [record("mihash", seed=seed, score=0.5 + seed / 10) for seed in (0, 1, 2)]
    of = table(methods=["talr_ap", "mihash"], seeds=[2, 0, 1], fewer_seeds={"mihash": 2})
    frame = tidy(of, runs)
    ours, fewer = (row_of(frame, method, 12) for method in ("talr_ap", "mihash"))
    assert (ours["seeds"], ours["status"], ours["mean"]) == (3, "done", pytest.approx(0.6))
    assert (fewer["seeds"], fewer["status"], fewer["mean"]) == (2, "done", pytest.approx(0.6))
    assert fewer["std"] == pytest.approx(np.std([0.7, 0.5], ddof=1))  # the first two: 2 and 0
    words = "standard deviation over 2 to 3 seeds."
    assert legend.seeds_sentence(frame, table_of(of)) == f"Mean ± {words}"
    folded = table_of(of | {"folds": {"digits": ["digits_fold1", "digits_fold2"]}})
    assert legend.seeds_sentence(frame, folded) == f"Mean of 2 folds ± its {words}"
    lacking = tidy(of, [run for run in runs if (run["method"], run["seed"]) != ("mihash", 0)])
    assert row_of(lacking, "mihash", 12)["reason"] == "seed 0: no run was recorded"


def test_published_values_and_differences():
    def source(name, value, method="talr_ap"):
        entry = {"protocol": "digits", "metric": "ap", "method": method, "bits": 12, "value": value}
        return {"source": name, "citation": name, "url": "", "values": [entry]}

    sources = [source("first", 0.25), source("second", 0.7)]
    asked = table(seeds=[0])
    frame = tidy(asked, [record(score=0.75), record("lsh", score=0.5)], sources)
    assert row_of(frame, "talr_ap", 12)[["published", "difference"]].tolist() == [0.25, 0.5]
    assert math.isnan(row_of(frame, "lsh", 12)["published"])
    assert frame["published"].notna().sum() == 1
    assert tidy(asked, [])["published"].isna().all()


def awkward():
    """Scores whose shortest decimal form needs all 17 digits, holes, and a comma in a reason."""
    random = np.random.default_rng(0)
    records = [
        record(*run, score=float(random.uniform()) * 10.0 ** -int(random.integers(0, 12)))
        for run in itertools.product(("talr_ap", "mihash"), (12, 24), (0, 1, 2))
    ]
    return records + [record("lsh", 12, 0, status="refused", reason='a "quoted", long\nreason')]


def test_wide_is_the_layout_of_the_paper():
    blocks = [block(), block("digits", "ndcg", [12], methods=["mihash"])]
    asked = table(blocks=blocks, seeds=[0])
    frame = tidy(asked, [record(score=0.5), record("mihash", score=0.25)])
    layout = frames.wide(frame, table_of(asked))
    assert frames.to_csv(layout) == (
        "method,digits ap 12,digits ap 24,digits ndcg 12\ntalr_ap,0.5,,\nmihash,0.25,,0.25\nlsh,,,\n"
    )


def test_csv_gives_every_bit_back_whatever_the_order_of_records():
    asked = table()
    frame = tidy(asked, awkward())
    for original in (frame, frames.wide(frame, table_of(asked))):
        text = frames.to_csv(original)
        assert "\r" not in text and text.endswith("\n")
        again = frames.from_csv(text, original.dtypes.astype("str").to_dict())
        if original is frame:
            again = frames.from_csv(text)
        pd.testing.assert_frame_equal(again, original, check_exact=True)
        assert frames.to_csv(again) == text
    assert frames.to_csv(tidy(asked, awkward()[::-1])) == frames.to_csv(frame)


TWO = ("mihash", "lsh")


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ({"talr_ap": 0.9, "mihash": 0.8, "lsh": 0.1}, {"talr_ap": "best", "mihash": "second"}),
        ({"talr_ap": 0.9, "mihash": 0.9, "lsh": 0.1}, {"talr_ap": "best", "mihash": "best", "lsh": "second"}),
        ({"talr_ap": 0.9, "mihash": 0.5, "lsh": 0.5}, {"talr_ap": "best"} | dict.fromkeys(TWO, "second")),
        # equal after rounding, not before
        ({"talr_ap": 0.80001, "mihash": 0.80002}, {"mihash": "best", "talr_ap": "second"}),
        ({"talr_ap": 0.9}, {}),
    ],
)
def test_best_and_second(scores, expected):
    asked = table(seeds=[0], blocks=AT_12)
    records = [record(method, 12, 0, score=score) for method, score in scores.items()]
    _, found = marks.ranked(tidy(asked, records), table_of(asked))
    assert found == {("digits", "ap", method, 12): mark for method, mark in expected.items()}


def test_markdown_to_the_letter():
    asked = table(title="A|B_c", seeds=[0, 1])
    records = [record(seed=seed, score=0.5 + seed / 10) for seed in (0, 1)]
    records += [record("mihash", seed=seed, score=0.25) for seed in (0, 1)]
    records += [record("mihash", 24, seed, status="refused", reason="no *labels*") for seed in (0, 1)]
    assert texts(asked, tidy(asked, records))[0] == (
        "# A\\|B\\_c\n\nFor tests.\n\n## Digits, AP<sub>T</sub>\n\n"
        "| Method | 12 bits | 24 bits |\n|:---|---:|---:|\n"
        "| TALR-AP | **0.550** ± 0.071 | – <sup>a</sup> |\n"
        "| MIHash | <ins>0.250</ins> ± 0.000 | – <sup>b</sup> |\n"
        "| LSH | – <sup>a</sup> | – <sup>a</sup> |\n\n"
        "Best in bold, second underlined. Mean ± standard deviation over seeds.\n\n"
        "<sup>a</sup> TALR-AP on Digits (24 bits); LSH on Digits (12, 24 bits) – no run was recorded\n\n"
        "<sup>b</sup> MIHash on Digits (24 bits) – no \\*labels\\*\n"
    )


def test_marks_of_what_is_open_stand_beside_the_scores_and_are_explained():
    asked = table(seeds=[0, 1, 2, 3, 4], blocks=AT_12)
    runs = []
    for method, mean in {"talr_ap": 0.8, "mihash": 0.78, "lsh": 0.3}.items():
        for seed in range(5):
            # Queries agree on each difference, seeds spread by 0.04: the smaller one is open.
            scores = mean + 0.02 * seed + np.linspace(-0.1, 0.1, 40)
            runs.append(record(method, 12, seed, float(scores.mean()), per_query={"ap": scores}))
    frame, compared = tidy(asked, runs), columns.comparisons(*model_of(asked, runs))
    text, typeset = texts(asked, frame, compared)
    assert "| MIHash | <ins>0.820</ins> ± 0.032 ? |" in text and "| LSH | 0.340 ± 0.032 |" in text
    assert "?: queries and runs do not tell from the best of the column." in text
    assert "No mark says that two scores are equal" in text and "≈" not in text
    assert "\\textsuperscript{?}" in typeset and "queries and runs do not tell" in typeset
    assert "?" not in texts(asked, frame)[0]


def test_latex_is_escaped_and_balanced():
    asked = table(
        title=r"50% of a_b & c#d {e} ~f^g \h $i",
        methods=["talr_ap", "my_method", "lsh"],
        blocks=[
            block("my_protocol", "ap", [12, 24, 32, 48]),
            block("digits", "ap@1000", [12, 24, 32, 48]),
            block("digits", "precision_radius_2", [12, 24], methods=["talr_ap"]),
        ],
    )
    scored = itertools.product(("talr_ap", "my_method"), (0, 1, 2))
    records = [record(method, 12, seed, 0.5, "my_protocol") for method, seed in scored]
    _, text = texts(asked, tidy(asked, records))
    plain = re.sub(r"\\[%&_#{}$]", "", text)
    assert r"50\% of a\_b \& c\#d \{e\} \textasciitilde{}f\textasciicircum{}g \textbackslash{}h \$i." in text
    assert r"my\_method" in text and r"\textbf{my\_protocol}, AP$_\mathrm{T}$" in text
    assert r"\textbf{0.500}\,{\scriptsize$\pm$.000}" in text
    assert "%" not in plain and "#" not in plain and "_" not in re.sub(r"\$_\\mathrm{T}\$", "", plain)
    assert plain.count("{") == plain.count("}") and plain.count("$") % 2 == 0
    assert text.isascii()
    begins, ends = (re.findall(rf"\\{word}{{(\w+\*?)}}", text) for word in ("begin", "end"))
    assert begins == ends[::-1] == ["table*", "tabular"]
    # every row of the tabular spans 1 + 8 columns
    body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
    rows = [re.sub(r"\\&", "", line) for line in body.splitlines() if line.endswith(r"\\")]
    for row in rows:
        spans = [int(span) - 1 for span in re.findall(r"\\multicolumn{(\d+)}", row)]
        assert row.count("&") + sum(spans) in ((8, 2) if spans else (8,))
    # the panel of one method lists that method alone
    assert len([row for row in rows if row.startswith("LSH")]) == 1
    allowed = """begin end centering small setlength tabcolsep caption label toprule midrule bottomrule
        shortstack cmidrule multicolumn textbf underline scriptsize pm mathrm textsuperscript par smallskip
        footnotesize raggedright textasciitilde textasciicircum textbackslash"""
    assert set(re.findall(r"\\([a-zA-Z]+)", text)) <= set(allowed.split())


def test_panels_of_table_1_are_those_of_the_paper():
    asked = [("cifar10_s1", "ap"), ("nus_wide", "ap"), ("cifar10_s2", "ap"), ("nus_wide", "ap@5000")]
    blocks = [{"protocol": name, "metric": metric, "bits": [12, 24, 32, 48]} for name, metric in asked]
    laid_out = table_of(table(blocks=blocks)).panels()
    found = [[(group.protocol, group.metric) for group in groups] for groups, _ in laid_out]
    assert found == [asked[:2], asked[2:]]


# Typed from the tables of the paper: protocol, metric and bits, then methods with their scores.
PRINTED = """
cifar10_s1 ap 12 24 32 48 | bre .361 .448 .502 .533 | machash .628 .707 .726 .734
cifar10_s1 ap 12 24 32 48 | fasthash .678 .729 .742 .757 | structhash .664 .693 .691 .700
cifar10_s1 ap 12 24 32 48 | dpsh .720 .757 .757 .767 | dtsh .725 .773 .781 .810 | mihash .687 .775 .786 .822
cifar10_s1 ap 12 24 32 48 | talr_ap .732 .789 .800 .826 | talr_ap_continuation .751 .804 .813 .830
cifar10_s2 ap 16 24 32 48 | dpsh .908 .909 .917 .932 | dtsh .916 .924 .927 .934 | mihash .929 .933 .938 .942
cifar10_s2 ap 16 24 32 48 | talr_ap .939 .941 .943 .945
nus_wide ap 12 24 32 48 | bre .561 .578 .589 .607 | machash .361 .361 .361 .361
nus_wide ap 12 24 32 48 | fasthash .646 .686 .698 .712 | structhash .639 .645 .666 .669
nus_wide ap 12 24 32 48 | dpsh .658 .674 .695 .700 | dtsh .660 .700 .707 .723 | mihash .652 .693 .709 .723
nus_wide ap 12 24 32 48 | talr_ap .709 .734 .745 .752
nus_wide ap@5000 12 24 32 48 | dpsh .758 .793 .818 .830 | dtsh .773 .813 .820 .838
nus_wide ap@5000 12 24 32 48 | mihash .767 .784 .809 .834 | talr_ap .795 .835 .848 .862
imagenet100 ap@1000 16 32 48 64 | hashnet .5059 .6306 .6633 .6835 | mihash .5688 .6608 .6852 .6947
imagenet100 ap@1000 16 32 48 64 | talr_ap .5892 .6689 .6985 .7053
nus_wide_levels ndcg 16 32 48 64 | bre .805 .817 .827 .834 | machash .821 .821 .821 .821
nus_wide_levels ndcg 16 32 48 64 | fasthash .885 .896 .899 .902 | dpsh .895 .905 .909 .909
nus_wide_levels ndcg 16 32 48 64 | dtsh .896 .905 .911 .913 | structhash .889 .893 .894 .898
nus_wide_levels ndcg 16 32 48 64 | mihash .886 .903 .909 .912 | talr_ndcg .903 .910 .916 .927
labelme ndcg 16 32 48 64 | bre .807 .848 .871 .880 | machash .683 .683 .683 .687
labelme ndcg 16 32 48 64 | fasthash .844 .868 .855 .864 | dpsh .844 .856 .871 .874
labelme ndcg 16 32 48 64 | dtsh .838 .852 .859 .862 | structhash .857 .888 .904 .915
labelme ndcg 16 32 48 64 | mihash .860 .889 .907 .914 | talr_ndcg .866 .895 .908 .917
"""


def test_published_figures_are_those_of_the_paper():
    printed = {}
    for line in PRINTED.strip().split("\n"):
        (protocol, metric, *bits), *rows = (part.split() for part in line.split(" | "))
        for method, *scores in rows:
            for length, score in zip(bits, scores, strict=True):
                printed[protocol, metric, method, int(length)] = float(score)
    found = table_of(table(published=["he2018"]), [PAPER]).published_values
    assert {cell: value for cell, (value, _, _) in found.items()} == printed


FAMILIES = {"lsh": "unsupervised", "mihash": "listwise", "talr_ap": "listwise"}


def test_rows_stand_by_family_with_published_values_where_asked():
    blocks = [block("cifar10_s1", "ap", [12])]
    asked = table(blocks=blocks, seeds=[0], families=FAMILIES, published=["he2018"], print_published=True)
    records = [record("talr_ap", score=0.75, protocol="cifar10_s1")]
    frame = tidy(asked, records, [PAPER])
    text, typeset = texts(asked, frame)
    assert list(frames.wide(frame, table_of(asked))["method"]) == ["lsh", "talr_ap", "mihash"]
    assert (
        "| *Unsupervised* | |\n| LSH | – <sup>a</sup> |\n| *Lists* | |\n"
        "| TALR-AP | 0.750 (0.732) |\n| MIHash | – (0.687) <sup>a</sup> |\n"
    ) in text
    head, row = r"\multicolumn{2}{@{}l}{\emph{Unsupervised}} \\", r"LSH & --\textsuperscript{a} \\"
    assert f"{head}\n{row}\n\\addlinespace\n" in typeset
    assert r"TALR-AP & 0.750\,{\scriptsize(.732)} \\" in typeset
    assert "In parentheses: as published." in typeset
    assert ".732" not in texts(asked | {"print_published": False}, frame)[1]
    noted = asked | {"methods": ["dpsh", "bre"], "families": {}}
    note = "as published; DPSH: trained with the parameters recommended by the authors of DTSH."
    assert all(f"In parentheses: {note}" in printed for printed in texts(noted, tidy(noted, [], [PAPER])))
    alike = table(families=dict.fromkeys(FAMILIES, "listwise"))
    assert "Lists" not in texts(alike, tidy(alike, []))[0]


# The tables of the paper with the bits of all or of one, and one without published scores.
SHORT = [block("imagenet100", "ap@1000", [16, 32, 48, 64], title="ImageNet100")]
ONE_COLUMN = [block(*of, [12]) for of in (("cifar10_s1", "ap"), ("nus_wide", "ap"), ("nus_wide", "ap@5000"))]
LONG = [block(*of, [12, 24, 32, 48]) for of in (("cifar10_s1", "ap"), ("nus_wide", "ap"))]
LIKE_THE_PAPERS = [
    table(seeds=[0], published=["he2018"], print_published=True, blocks=blocks)
    for blocks in (LONG, SHORT, ONE_COLUMN)
]
LIKE_THE_PAPERS.append(table(blocks=[block("digits", "ap", [12, 24, 32, 48])]))


def printed_frame(entry, records):
    """The frame of an entry with scores, with published ones and of the features themselves."""
    protocols = {group["protocol"]: dict.fromkeys((group["metric"], "ap"), 0.5) for group in entry["blocks"]}
    return tidy(entry, records, [PAPER], uncoded=protocols)


def scored(entry):
    columns_of = {(of["protocol"], bits) for of in entry["blocks"] for bits in of["bits"]}
    runs = itertools.product(entry["methods"], columns_of, entry["seeds"])
    metrics = ("ap", "ap@1000", "ap@5000")
    return [
        models.record(method, bits, seed, dict.fromkeys(metrics, 0.5 + seed / 7), protocol)
        for method, (protocol, bits), seed in runs
    ]


def test_latex_is_as_wide_as_what_it_prints():
    for entry, count in zip(LIKE_THE_PAPERS, (8, 4, 3, 4), strict=True):
        _, wide = texts(entry, printed_frame(entry, scored(entry)))
        assert wide.startswith(r"\begin{table*}") and f"{{@{{}}l{'c' * count}@{{}}}}" in wide
    # Without spreads, published scores and the features' row four columns fit one of a paper.
    plain = entry | {"seeds": [0]}
    assert texts(plain, tidy(plain, scored(plain)))[1].startswith(r"\begin{table}")


def test_latex_compiles_within_the_page(tmp_path):
    program = shutil.which("pdflatex")
    if program is None:
        pytest.skip("there is no pdflatex on this machine")
    lengths = [12, 24, 32, 48]
    asked = table(
        title=r"50% of a_b & c#d {e} ~f^g \h $i – ±",
        seeds=[0],
        families=FAMILIES,
        published=["he2018"],
        print_published=True,
        blocks=[
            block("cifar10_s1", "ap", lengths),
            block("nus_wide", "ap", lengths),
            block("nus_wide", "ap@5000", lengths, methods=["talr_ap", "mihash"]),
            block("digits", "ndcg", [12], title="A very long title of a block"),
        ],
    )
    runs = itertools.product(("talr_ap", "lsh"), ("cifar10_s1", "nus_wide"), lengths[1:], (0, 1, 2))
    records = [record(method, bits, seed, 0.5 + seed / 7, of) for method, of, bits, seed in runs]
    several = asked | {"seeds": [0, 1, 2]}
    entries = (asked, several, several | {"print_published": False}, *LIKE_THE_PAPERS)
    parts = [texts(entry, printed_frame(entry, records))[1] for entry in entries]
    head = "\\documentclass[twocolumn]{article}\n\\usepackage{booktabs}\n\\begin{document}\n"
    (tmp_path / "table.tex").write_text(head + "\n".join(parts) + "\nText.\n\\end{document}")
    command = [program, "-interaction=nonstopmode", "-halt-on-error", "table.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "table.pdf").stat().st_size > 10_000
    overfull = re.findall(r"Overfull .hbox.*", done.stdout)
    assert not overfull, overfull


def test_a_cell_that_lacks_a_run_is_ranked_and_has_its_note():
    runs = [models.record("talr_ap", 12, 0, {"ap": 0.9})]
    runs += [models.record("mihash", 12, seed, {"ap": 0.5}) for seed in (0, 1)]
    asked = small(methods=["talr_ap", "mihash"], seeds=[0, 1], blocks=[block(bits=[12])])
    model = model_of(asked, runs)
    found = cells(frames.tidy(*model), model[0])
    cell = found.of["digits", "ap", "talr_ap", 12]
    assert (cell.status, cell.rank, cell.note) == ("partial", "best", "a")
    assert "seed 1" in found.notes[0].reason


def test_a_dagger_marks_methods_that_see_more_than_the_training_set():
    of = table(styles=STYLES | {"mihash": STYLES["mihash"] | {"sees": "database labels"}}, seeds=[0])
    scores = {"mihash": 0.9, "talr_ap": 0.6, "lsh": 0.3}
    frame = tidy(of, [record(method=name, score=scores[name]) for name in of["methods"]])
    assert set(frame["sees"][frame["method"] == "mihash"]) == {"database labels"}
    assert set(frame["sees"][frame["method"] != "mihash"]) == {"training set"}
    assert frames.from_csv(frames.to_csv(frame)).equals(frame)
    text, tex = texts(of, frame)
    assert "| MIHash† | 0.900 |" in text and "| LSH | <ins>0.300</ins> |" in text and "**0.600**" in text
    assert text.count("† Learns from database labels besides the training set; neither best nor second.") == 1
    assert r"MIHash\dag{} &" in tex and tex.count(r"\dag{} Learns from database labels") == 1
    plain = table(seeds=[0])
    assert "†" not in texts(plain, tidy(plain, [record()]))[0]


def test_protocols_with_the_codes_of_another_say_whose_they_are():
    of = table(seeds=[0])
    name = of["blocks"][0]["protocol"]
    taken = of | {"settings": {name: {"codes_of": "other"}}, "protocols": {"other": "Other S1"}}
    for entry, said in ((of, 0), (taken, 1)):
        text, _ = texts(entry, tidy(entry, [record()]))
        title = table_of(entry).protocol_title(name)
        assert text.count(f"Codes on {title} are those of the runs on Other S1") == said


def test_uncoded_features_are_a_row_without_marks_notes_or_seeds():
    of = table(seeds=[0])
    records = [
        record(method=m, bits=b, score=s) for m, s in (("talr_ap", 0.5), ("lsh", 0.3)) for b in (12, 24)
    ]
    frame = tidy(of, records, uncoded={"digits": {"ap": 0.875}, "other": {"ap": 0.1}})
    with pytest.raises(ValueError, match="uncoded features of digits: ap is nan, not a finite number"):
        tidy(of, records, uncoded={"digits": {"ap": math.nan}})
    rows = frame[frame["status"] == "uncoded"]
    found = rows[["method", "bits", "seeds", "mean"]].values.tolist()
    assert found == [["uncoded", 12, 0, 0.875], ["uncoded", 24, 0, 0.875]]
    assert rows[["std", "ci_low", "ci_high", "published", "difference"]].isna().all(axis=None)
    assert frames.from_csv(frames.to_csv(frame)).equals(frame)
    # It is higher than all, and yet the best is a method.
    methods_alone = tidy(of, records)
    ranked = marks.ranked(frame, table_of(of))
    assert ranked == marks.ranked(methods_alone, table_of(of))
    assert ranked[1]["digits", "ap", "talr_ap", 12] == "best"
    assert marks.notes(frame, table_of(of)) == marks.notes(methods_alone, table_of(of))
    wide = frames.wide(frame, table_of(of))
    assert wide["method"].tolist() == ["talr_ap", "mihash", "lsh", "uncoded"]
    assert wide.iloc[3, 1:].tolist() == [0.875, 0.875]
    text, typeset = texts(of, frame)
    assert "| *Uncoded features (cosine)* | 0.875 | 0.875 |\n" in text
    assert "Uncoded features (cosine): ranked by the features themselves, no code" in text
    assert r"\emph{Uncoded features} & 0.875 & 0.875 \\" in typeset


def test_bounds_are_a_group_of_their_own_outside_of_all_comparisons():
    of = table(seeds=[0, 1])
    scores = {"talr_ap": 0.5, "mihash": 0.4, "lsh": 0.3}
    records = [
        record(method=m, bits=b, seed=seed, score=score + 0.01 * seed)
        for (m, score), b, seed in itertools.product(scores.items(), (12, 24), (0, 1))
    ]
    for one in records:
        one["per_query"] = {"ap": np.linspace(0, 2 * one["metrics"]["ap"], 5)}
    bound = [
        each | {"method": "onehot", "metrics": {"ap": 0.9}, "per_query": {"ap": np.full(5, 0.9)}}
        for each in records
        if each["method"] == "lsh"
    ]
    with_bound = of | {"methods": [*of["methods"], "onehot"], "families": {"onehot": "bound", **FAMILIES}}
    plain = of | {"families": FAMILIES}
    frame, without = tidy(with_bound, records + bound), tidy(plain, records)
    assert frames.wide(frame, table_of(with_bound))["method"].tolist()[-1] == "onehot"
    # Though it is higher than all.
    assert marks.ranked(frame, table_of(with_bound)) == marks.ranked(without, table_of(plain))
    compared = columns.comparisons(*model_of(with_bound, records + bound))
    alone = columns.comparisons(*model_of(plain, records))
    of_bound = compared[compared["method"] == "onehot"]
    assert compared[compared["method"] != "onehot"].reset_index(drop=True).equals(alone)
    assert set(of_bound["verdict"]) == set(of_bound["best"]) == {""}
    assert of_bound["mean"].tolist() == pytest.approx([0.9, 0.9]) and of_bound["difference"].isna().all()
    text, _ = texts(with_bound, frame)
    assert "| *Baselines* | | |\n| onehot | 0.900 ± 0.000 |" in text
    assert "Baselines: codes of a linear classifier" in text
    assert "Baselines" not in texts(plain, without)[0]


def test_a_table_of_two_protocols_leaves_the_other_columns_of_the_features_empty():
    blocks = [{"protocol": name, "metric": "ap", "bits": [12]} for name in ("digits", "nus_wide")]
    of = table(blocks=blocks, seeds=[0])
    text, typeset = texts(of, tidy(of, [], uncoded={"nus_wide": {"ap": 0.25}}))
    assert r"\emph{Uncoded features} &  & 0.250 \\" in typeset
    assert text.count("*Uncoded features") == 1
