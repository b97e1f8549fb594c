"""Tables: statistics against scipy and hand values, marks, holes, exact CSV, escaped Markdown and LaTeX."""

import itertools
import math
import re
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from models import model_of, table_of
from scipy import stats

from reporting import frames
from reporting.printed import latex, legend, markdown, marks
from reporting.printed.cells import cells
from reporting.statistics import columns

PUBLISHED = Path(__file__).parents[2] / "config" / "published" / "he2018.yaml"


STYLES = {
    method: {"title": title, "family": "listwise", "colour": None, "marker": None, "paper": ""}
    for method, title in (("talr_ap", "TALR-AP"), ("mihash", "MIHash"), ("lsh", "LSH"), ("dtsh", "DTSH"))
}
PROTOCOLS = {"digits": "Digits", "cifar10_s1": "CIFAR-10 (S1)", "cifar10_s2": "CIFAR-10 (S2)"}
PROTOCOLS |= {"nus_wide": "NUS-WIDE"}


def record(method="talr_ap", bits=12, seed=0, score=0.5, protocol="digits", **changes):
    metrics = {"ap": score, "ap_min": score - 0.1, "ap_max": score + 0.1, "ndcg": score}
    plain = {"protocol": protocol, "method": method, "bits": bits, "seed": seed}
    return plain | {"status": "done", "reason": None, "metrics": metrics, "run": {}} | changes


def table(**changes):
    plain = {
        "name": "small",
        "title": "A small table",
        "description": "For tests.",
        "seeds": [0, 1, 2],
        "methods": ["talr_ap", "mihash", "lsh"],
        "styles": STYLES,
        "protocols": PROTOCOLS,
        "blocks": [{"protocol": "digits", "metric": "ap", "bits": [12, 24]}],
    }
    return plain | changes


def cell(frame, method, bits, metric="ap", protocol="digits"):
    rows = frame[
        (frame["method"] == method)
        & (frame["bits"] == bits)
        & (frame["metric"] == metric)
        & (frame["protocol"] == protocol)
    ]
    assert len(rows) == 1
    return rows.iloc[0]


# -- statistics -----------------------------------------------------------------------------------


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
    frame = frames.tidy(*model_of(table(seeds=[0]), [record(score=0.25)]))
    row = cell(frame, "talr_ap", 12)
    assert (row["seeds"], row["mean"], row["status"]) == (1, 0.25, "done")
    assert row[["std", "ci_low", "ci_high"]].isna().all()


# -- tidy -----------------------------------------------------------------------------------------


def test_one_row_per_cell_in_the_order_of_the_table():
    blocks = [
        {"protocol": "digits", "metric": "ap", "bits": [24, 12], "methods": ["lsh", "talr_ap"]},
        {"protocol": "digits", "metric": "ndcg", "bits": [12]},
    ]
    frame = frames.tidy(*model_of(table(blocks=blocks), []))
    assert tuple(frame.columns) == frames.COLUMNS
    assert list(zip(frame["metric"], frame["method"], frame["bits"], strict=True)) == [
        ("ap", "talr_ap", 24),
        ("ap", "talr_ap", 12),
        ("ap", "lsh", 24),
        ("ap", "lsh", 12),
        ("ndcg", "talr_ap", 12),
        ("ndcg", "mihash", 12),
        ("ndcg", "lsh", 12),
    ]


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
    frame = frames.tidy(*model_of(table(), records))
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
    assert cell(frame, "talr_ap", 24)["mean"] == 0.5


def test_a_method_with_fewer_seeds_is_done_with_these():
    runs = [record(seed=seed, score=0.5 + seed / 10) for seed in (0, 1, 2)]
    runs += [record("mihash", seed=seed, score=0.5 + seed / 10) for seed in (0, 1, 2)]
    of = table(methods=["talr_ap", "mihash"], seeds=[2, 0, 1], fewer_seeds={"mihash": 2})
    frame = frames.tidy(*model_of(of, runs))
    ours, fewer = (cell(frame, method, 12) for method in ("talr_ap", "mihash"))
    assert (ours["seeds"], ours["status"], ours["mean"]) == (3, "done", pytest.approx(0.6))
    assert (fewer["seeds"], fewer["status"], fewer["mean"]) == (2, "done", pytest.approx(0.6))
    assert fewer["std"] == pytest.approx(np.std([0.7, 0.5], ddof=1))  # the first two: 2 and 0
    assert "over 2 to 3 seeds" in legend.seeds_sentence(frame)
    lacking = frames.tidy(
        *model_of(of, [run for run in runs if (run["method"], run["seed"]) != ("mihash", 0)])
    )
    assert cell(lacking, "mihash", 12)["reason"] == "seed 0: no run was recorded"


def test_published_values_and_differences():
    def source(name, value, method="talr_ap"):
        entry = {"protocol": "digits", "metric": "ap", "method": method, "bits": 12, "value": value}
        return {"source": name, "citation": name, "url": "", "values": [entry]}

    sources = [source("second", 0.7), source("first", 0.25), source("unnamed", 0.1, "lsh")]
    asked = table(published=["first", "second"], seeds=[0])
    frame = frames.tidy(*model_of(asked, [record(score=0.75), record("lsh", score=0.5)], sources))
    assert cell(frame, "talr_ap", 12)[["published", "difference"]].tolist() == [0.25, 0.5]
    assert math.isnan(cell(frame, "lsh", 12)["published"])
    assert frame["published"].notna().sum() == 1
    assert frames.tidy(*model_of(table(), [], sources))["published"].isna().all()
    with pytest.raises(ValueError, match="source 'third' is not known"):
        frames.tidy(*model_of(table(published=["third"]), [], sources))
    twice = {**sources[0], "values": sources[0]["values"] * 2}
    with pytest.raises(ValueError, match="digits, ap, talr_ap, 12 bits is given twice"):
        frames.tidy(*model_of(table(published=["second"]), [], [twice]))


@pytest.mark.parametrize(
    ("records", "blocks", "message"),
    [
        ([record(), record()], None, "digits/talr_ap/12/0: two records"),
        ([record(status="running")], None, "status is 'running'"),
        ([record(metrics={"ap": math.nan})], None, "ap is nan"),
        ([], [{"protocol": "digits", "metric": "ap", "bits": [12]}] * 2, "is in the table twice"),
    ],
)
def test_errors_are_clear(records, blocks, message):
    with pytest.raises(ValueError, match=message):
        frames.tidy(*model_of(table(**({"blocks": blocks} if blocks else {})), records))


# -- wide and CSV ---------------------------------------------------------------------------------


def awkward():
    """Scores whose shortest decimal form needs all 17 digits, holes, and a comma in a reason."""
    random = np.random.default_rng(0)
    records = [
        record(method, bits, seed, score=float(random.uniform()) * 10.0 ** -int(random.integers(0, 12)))
        for method in ("talr_ap", "mihash")
        for bits in (12, 24)
        for seed in (0, 1, 2)
    ]
    return records + [record("lsh", 12, 0, status="refused", reason='a "quoted", long\nreason')]


def test_wide_is_the_layout_of_the_paper():
    blocks = [
        {"protocol": "digits", "metric": "ap", "bits": [12, 24]},
        {"protocol": "digits", "metric": "ndcg", "bits": [12], "methods": ["mihash"]},
    ]
    asked = table(blocks=blocks, seeds=[0])
    frame = frames.tidy(*model_of(asked, [record(score=0.5), record("mihash", score=0.25)]))
    layout = frames.wide(frame, table_of(asked))
    expected = pd.DataFrame(
        {
            "method": ["talr_ap", "mihash", "lsh"],
            "digits ap 12": [0.5, 0.25, math.nan],
            "digits ap 24": [math.nan] * 3,
            "digits ndcg 12": [math.nan, 0.25, math.nan],
        }
    )
    pd.testing.assert_frame_equal(layout, expected)
    assert frames.to_csv(layout) == (
        "method,digits ap 12,digits ap 24,digits ndcg 12\ntalr_ap,0.5,,\nmihash,0.25,,0.25\nlsh,,,\n"
    )


def read_wide(text, like):
    return frames.read_csv(text, like.columns, like.select_dtypes("float").columns)


def test_csv_gives_every_bit_back():
    asked = table()
    frame = frames.tidy(*model_of(asked, awkward()))
    for original in (frame, frames.wide(frame, table_of(asked))):
        text = frames.to_csv(original)
        assert "\r" not in text and text.endswith("\n")
        again = frames.from_csv(text) if original is frame else read_wide(text, original)
        pd.testing.assert_frame_equal(again, original, check_exact=True)
        for column in original.select_dtypes("float"):
            assert [struct.pack("d", value) for value in again[column].dropna()] == [
                struct.pack("d", value) for value in original[column].dropna()
            ]
        assert frames.to_csv(again) == text


def test_the_order_of_the_records_does_not_matter():
    assert frames.to_csv(frames.tidy(*model_of(table(), awkward()))) == frames.to_csv(
        frames.tidy(*model_of(table(), awkward()[::-1]))
    )


# -- marks, Markdown, LaTeX -----------------------------------------------------------------------


def scored(**scores):
    return [record(method, 12, 0, score=score) for method, score in scores.items()]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ({"talr_ap": 0.9, "mihash": 0.8, "lsh": 0.1}, {"talr_ap": "best", "mihash": "second"}),
        ({"talr_ap": 0.9, "mihash": 0.9, "lsh": 0.1}, {"talr_ap": "best", "mihash": "best", "lsh": "second"}),
        (
            {"talr_ap": 0.9, "mihash": 0.5, "lsh": 0.5},
            {"talr_ap": "best", "mihash": "second", "lsh": "second"},
        ),
        # equal after rounding, not before
        ({"talr_ap": 0.80001, "mihash": 0.80002}, {"mihash": "best", "talr_ap": "second"}),
        ({"talr_ap": 0.9}, {}),
    ],
)
def test_best_and_second(scores, expected):
    asked = table(seeds=[0], blocks=[{"protocol": "digits", "metric": "ap", "bits": [12]}])
    found = marks.marks(marks.places(frames.tidy(*model_of(asked, scored(**scores))), table_of(asked)))
    assert found == {("digits", "ap", method, 12): mark for method, mark in expected.items()}


def test_markdown_to_the_letter():
    asked = table(
        title="A|B_c", blocks=[{"protocol": "digits", "metric": "ap", "bits": [12, 24]}], seeds=[0, 1]
    )
    records = [record(seed=seed, score=0.5 + seed / 10) for seed in (0, 1)]
    records += [record("mihash", seed=seed, score=0.25) for seed in (0, 1)]
    records += [record("mihash", 24, seed, status="refused", reason="no *labels*") for seed in (0, 1)]
    assert markdown.to_markdown(cells(frames.tidy(*model_of(asked, records)), table_of(asked))) == (
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
    asked = table(seeds=[0, 1, 2, 3, 4], blocks=[{"protocol": "digits", "metric": "ap", "bits": [12]}])
    runs = []
    for method, mean in {"talr_ap": 0.8, "mihash": 0.78, "lsh": 0.3}.items():
        for seed in range(5):
            # Queries agree on each difference, seeds spread by 0.04: the smaller one is open.
            scores = mean + 0.02 * seed + np.linspace(-0.1, 0.1, 40)
            runs.append(record(method, 12, seed, float(scores.mean()), per_query={"ap": scores}))
    frame, compared = frames.tidy(*model_of(asked, runs)), columns.comparisons(*model_of(asked, runs))
    text = markdown.to_markdown(cells(frame, table_of(asked), compared))
    assert "| MIHash | <ins>0.820</ins> ± 0.032 ? |" in text and "| LSH | 0.340 ± 0.032 |" in text
    assert "?: queries and runs do not tell from the best of the column." in text
    assert "No mark says that two scores are equal" in text and "≈" not in text
    typeset = latex.to_latex(cells(frame, table_of(asked), compared))
    assert "\\textsuperscript{?}" in typeset and "queries and runs do not tell" in typeset
    assert "?" not in markdown.to_markdown(cells(frame, table_of(asked)))


def test_latex_is_escaped_and_balanced():
    asked = table(
        title=r"50% of a_b & c#d {e} ~f^g \h $i",
        methods=["talr_ap", "my_method", "lsh"],
        blocks=[
            {"protocol": "my_protocol", "metric": "ap", "bits": [12, 24, 32, 48]},
            {"protocol": "digits", "metric": "ap@1000", "bits": [12, 24, 32, 48]},
            {"protocol": "digits", "metric": "precision_radius_2", "bits": [12, 24], "methods": ["talr_ap"]},
        ],
    )
    records = [
        record(method, 12, seed, 0.5, "my_protocol")
        for method in ("talr_ap", "my_method")
        for seed in (0, 1, 2)
    ]
    text = latex.to_latex(cells(frames.tidy(*model_of(asked, records)), table_of(asked)))
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
        cmidrule multicolumn textbf underline scriptsize pm mathrm textsuperscript par smallskip
        footnotesize raggedright textasciitilde textasciicircum textbackslash"""
    assert set(re.findall(r"\\([a-zA-Z]+)", text)) <= set(allowed.split())


def test_panels_of_table_1_are_those_of_the_paper():
    blocks = [
        {"protocol": protocol, "metric": metric, "bits": bits}
        for protocol, metric, bits in [
            ("cifar10_s1", "ap", [12, 24, 32, 48]),
            ("nus_wide", "ap", [12, 24, 32, 48]),
            ("cifar10_s2", "ap", [16, 24, 32, 48]),
            ("nus_wide", "ap@5000", [12, 24, 32, 48]),
        ]
    ]
    laid_out = table_of(table(blocks=blocks)).panels()
    assert [[group.title for group in panel.groups] for panel in laid_out] == [
        ["CIFAR-10 (S1)", "NUS-WIDE"],
        ["CIFAR-10 (S2)", "NUS-WIDE"],
    ]


# -- published figures ----------------------------------------------------------------------------

# Typed from the tables of the paper: protocol, metric, method, then bits:score.
PRINTED = """
cifar10_s1 ap bre 12:0.361 24:0.448 32:0.502 48:0.533
cifar10_s1 ap machash 12:0.628 24:0.707 32:0.726 48:0.734
cifar10_s1 ap fasthash 12:0.678 24:0.729 32:0.742 48:0.757
cifar10_s1 ap structhash 12:0.664 24:0.693 32:0.691 48:0.700
cifar10_s1 ap dpsh 12:0.720 24:0.757 32:0.757 48:0.767
cifar10_s1 ap dtsh 12:0.725 24:0.773 32:0.781 48:0.810
cifar10_s1 ap mihash 12:0.687 24:0.775 32:0.786 48:0.822
cifar10_s1 ap talr_ap 12:0.732 24:0.789 32:0.800 48:0.826
cifar10_s1 ap talr_ap_continuation 12:0.751 24:0.804 32:0.813 48:0.830
cifar10_s2 ap dpsh 16:0.908 24:0.909 32:0.917 48:0.932
cifar10_s2 ap dtsh 16:0.916 24:0.924 32:0.927 48:0.934
cifar10_s2 ap mihash 16:0.929 24:0.933 32:0.938 48:0.942
cifar10_s2 ap talr_ap 16:0.939 24:0.941 32:0.943 48:0.945
nus_wide ap bre 12:0.561 24:0.578 32:0.589 48:0.607
nus_wide ap machash 12:0.361 24:0.361 32:0.361 48:0.361
nus_wide ap fasthash 12:0.646 24:0.686 32:0.698 48:0.712
nus_wide ap structhash 12:0.639 24:0.645 32:0.666 48:0.669
nus_wide ap dpsh 12:0.658 24:0.674 32:0.695 48:0.700
nus_wide ap dtsh 12:0.660 24:0.700 32:0.707 48:0.723
nus_wide ap mihash 12:0.652 24:0.693 32:0.709 48:0.723
nus_wide ap talr_ap 12:0.709 24:0.734 32:0.745 48:0.752
nus_wide ap@5000 dpsh 12:0.758 24:0.793 32:0.818 48:0.830
nus_wide ap@5000 dtsh 12:0.773 24:0.813 32:0.820 48:0.838
nus_wide ap@5000 mihash 12:0.767 24:0.784 32:0.809 48:0.834
nus_wide ap@5000 talr_ap 12:0.795 24:0.835 32:0.848 48:0.862
imagenet100 ap@1000 hashnet 16:0.5059 32:0.6306 48:0.6633 64:0.6835
imagenet100 ap@1000 mihash 16:0.5688 32:0.6608 48:0.6852 64:0.6947
imagenet100 ap@1000 talr_ap 16:0.5892 32:0.6689 48:0.6985 64:0.7053
nus_wide_levels ndcg bre 16:0.805 32:0.817 48:0.827 64:0.834
nus_wide_levels ndcg machash 16:0.821 32:0.821 48:0.821 64:0.821
nus_wide_levels ndcg fasthash 16:0.885 32:0.896 48:0.899 64:0.902
nus_wide_levels ndcg dpsh 16:0.895 32:0.905 48:0.909 64:0.909
nus_wide_levels ndcg dtsh 16:0.896 32:0.905 48:0.911 64:0.913
nus_wide_levels ndcg structhash 16:0.889 32:0.893 48:0.894 64:0.898
nus_wide_levels ndcg mihash 16:0.886 32:0.903 48:0.909 64:0.912
nus_wide_levels ndcg talr_ndcg 16:0.903 32:0.910 48:0.916 64:0.927
labelme ndcg bre 16:0.807 32:0.848 48:0.871 64:0.880
labelme ndcg machash 16:0.683 32:0.683 48:0.683 64:0.687
labelme ndcg fasthash 16:0.844 32:0.868 48:0.855 64:0.864
labelme ndcg dpsh 16:0.844 32:0.856 48:0.871 64:0.874
labelme ndcg dtsh 16:0.838 32:0.852 48:0.859 64:0.862
labelme ndcg structhash 16:0.857 32:0.888 48:0.904 64:0.915
labelme ndcg mihash 16:0.860 32:0.889 48:0.907 64:0.914
labelme ndcg talr_ndcg 16:0.866 32:0.895 48:0.908 64:0.917
"""


def test_published_figures_are_those_of_the_paper():
    printed = {}
    for line in PRINTED.split("\n"):
        if line:
            protocol, metric, method, *scores = line.split()
            for score in scores:
                bits, value = score.split(":")
                printed[protocol, metric, method, int(bits)] = float(value)
    source = yaml.safe_load(PUBLISHED.read_text())
    asked = table(published=["he2018"])
    assert {
        cell: value for cell, (value, _, _) in table_of(asked, [source]).published_values.items()
    } == printed


FAMILIES = {"lsh": "unsupervised", "mihash": "listwise", "talr_ap": "listwise"}


def test_rows_stand_by_family_with_published_values_where_asked():
    blocks = [{"protocol": "cifar10_s1", "metric": "ap", "bits": [12]}]
    asked = table(blocks=blocks, seeds=[0], families=FAMILIES, published=["he2018"], print_published=True)
    records = [record("talr_ap", score=0.75, protocol="cifar10_s1")]
    printed = [yaml.safe_load(PUBLISHED.read_text())]
    frame = frames.tidy(*model_of(asked, records, printed))
    assert list(frames.wide(frame, table_of(asked))["method"]) == ["lsh", "talr_ap", "mihash"]
    assert (
        "| *Unsupervised* | |\n| LSH | – <sup>a</sup> |\n| *Lists* | |\n"
        "| TALR-AP | 0.750 (0.732) |\n| MIHash | – (0.687) <sup>a</sup> |\n"
    ) in markdown.to_markdown(cells(frame, table_of(asked)))
    text = latex.to_latex(cells(frame, table_of(asked)))
    assert (
        "\\multicolumn{2}{l}{\\emph{Unsupervised}} \\\\\nLSH & --\\textsuperscript{a} \\\\\n\\addlinespace\n"
        in text
    )
    assert "TALR-AP & 0.750\\,{\\scriptsize(.732)} \\\\" in text
    assert "In parentheses: as published." in text
    assert ".732" not in latex.to_latex(cells(frame, table_of(asked | {"print_published": False})))


def test_one_family_needs_no_heading():
    asked = table(families=dict.fromkeys(FAMILIES, "listwise"))
    assert "Lists" not in markdown.to_markdown(cells(frames.tidy(*model_of(asked, [])), table_of(asked)))


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
            {"protocol": "cifar10_s1", "metric": "ap", "bits": lengths},
            {"protocol": "nus_wide", "metric": "ap", "bits": lengths},
            {"protocol": "nus_wide", "metric": "ap@5000", "bits": lengths, "methods": ["talr_ap", "mihash"]},
            {"protocol": "digits", "metric": "ndcg", "bits": [12], "title": "A very long title of a block"},
        ],
    )
    records = [
        record(method, bits, seed, 0.5 + seed / 7, protocol)
        for method in ("talr_ap", "lsh")
        for protocol in ("cifar10_s1", "nus_wide")
        for bits in lengths[1:]
        for seed in (0,)
    ]
    seeds = [0, 1, 2]
    spread = [
        record(r["method"], r["bits"], seed, seed / 7, r["protocol"]) for r in records for seed in seeds
    ]
    printed = [yaml.safe_load(PUBLISHED.read_text())]
    parts = [
        latex.to_latex(cells(frames.tidy(*model_of(asked, records, printed)), table_of(asked))),
        *(
            latex.to_latex(cells(frames.tidy(*model_of(several, spread, printed)), table_of(several)))
            for several in (asked | {"seeds": seeds}, asked | {"seeds": seeds, "print_published": False})
        ),
    ]
    document = "\n".join(
        [
            r"\documentclass[twocolumn]{article}",
            r"\usepackage{booktabs}",
            r"\begin{document}",
            *parts,
            "Text.",
            r"\end{document}",
        ]
    )
    (tmp_path / "table.tex").write_text(document)
    done = subprocess.run(
        [program, "-interaction=nonstopmode", "-halt-on-error", "table.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "table.pdf").stat().st_size > 10_000
    overfull = re.findall(r"Overfull .hbox.*", done.stdout)
    assert not overfull, overfull


# -- what a method sees, and features without codes -----------------------------------------------


def test_a_dagger_marks_methods_that_see_more_than_the_training_set():
    styles = {name: style | {"sees": "training set"} for name, style in STYLES.items()}
    styles["mihash"]["sees"] = "database labels"
    of = table(styles=styles, seeds=[0])
    scores = {"mihash": 0.9, "talr_ap": 0.6, "lsh": 0.3}
    frame = frames.tidy(*model_of(of, [record(method=name, score=scores[name]) for name in of["methods"]]))
    assert dict(zip(frame["method"], frame["sees"], strict=True)) == {
        "talr_ap": "training set",
        "mihash": "database labels",
        "lsh": "training set",
    }
    assert frames.from_csv(frames.to_csv(frame)).equals(frame)
    text, tex = markdown.to_markdown(cells(frame, table_of(of))), latex.to_latex(cells(frame, table_of(of)))
    assert "| MIHash† | 0.900 |" in text and "| LSH | <ins>0.300</ins> |" in text and "**0.600**" in text
    assert text.count("† Learns from database labels besides the training set; neither best nor second.") == 1
    assert r"MIHash\dag{} &" in tex and tex.count(r"\dag{} Learns from database labels") == 1
    plain = table(seeds=[0])
    text = markdown.to_markdown(cells(frames.tidy(*model_of(plain, [record()])), table_of(plain)))
    assert "†" not in text


def test_protocols_with_the_codes_of_another_say_whose_they_are():
    of = table(seeds=[0])
    name = of["blocks"][0]["protocol"]
    taken = of | {"settings": {name: {"codes_of": "other"}}, "protocols": {"other": "Other S1"}}
    for entry, said in ((of, 0), (taken, 1)):
        text = markdown.to_markdown(cells(frames.tidy(*model_of(entry, [record()])), table_of(entry)))
        title = table_of(entry).protocol_title(name)
        assert text.count(f"Codes on {title} are those of the runs on Other S1") == said


def test_uncoded_features_are_a_row_without_marks_notes_or_seeds():
    of = table(seeds=[0])
    records = [
        record(method=m, bits=b, score=s) for m, s in (("talr_ap", 0.5), ("lsh", 0.3)) for b in (12, 24)
    ]
    frame = frames.tidy(*model_of(of, records, uncoded={"digits": {"ap": 0.875}, "other": {"ap": 0.1}}))
    rows = frame[frame["status"] == "uncoded"]
    assert list(zip(rows["method"], rows["bits"], rows["seeds"], rows["mean"], strict=True)) == [
        ("uncoded", 12, 0, 0.875),
        ("uncoded", 24, 0, 0.875),
    ]
    assert rows[["std", "ci_low", "ci_high", "published", "difference"]].isna().all(axis=None)
    assert frames.from_csv(frames.to_csv(frame)).equals(frame)
    # It is higher than all, and yet the best is a method.
    methods_alone = frames.tidy(*model_of(of, records))
    ranked = marks.places(frame, table_of(of))
    assert ranked == marks.places(methods_alone, table_of(of))
    assert marks.marks(ranked)["digits", "ap", "talr_ap", 12] == "best"
    assert marks.notes(frame, table_of(of)) == marks.notes(methods_alone, table_of(of))
    wide = frames.wide(frame, table_of(of))
    assert wide["method"].tolist() == ["talr_ap", "mihash", "lsh", "uncoded"]
    assert wide.iloc[3, 1:].tolist() == [0.875, 0.875]
    text = markdown.to_markdown(cells(frame, table_of(of)))
    assert "| *Uncoded features (cosine)* | 0.875 | 0.875 |\n" in text
    assert "Uncoded features (cosine): ranked by the features themselves, no code" in text
    assert r"\emph{Uncoded features (cosine)} & 0.875 & 0.875 \\" in latex.to_latex(
        cells(frame, table_of(of))
    )


def test_bounds_are_a_group_of_their_own_outside_of_all_comparisons():
    of = table(seeds=[0, 1], blocks=[{"protocol": "digits", "metric": "ap", "bits": [12, 24]}])
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
    frame, without = (
        frames.tidy(*model_of(with_bound, records + bound)),
        frames.tidy(*model_of(plain, records)),
    )
    assert frames.wide(frame, table_of(with_bound))["method"].tolist()[-1] == "onehot"
    assert marks.places(frame, table_of(with_bound)) == marks.places(
        without, table_of(plain)
    )  # though it is higher than all
    compared = columns.comparisons(*model_of(with_bound, records + bound), 50)
    alone = columns.comparisons(*model_of(plain, records), 50)
    of_bound = compared[compared["method"] == "onehot"]
    assert compared[compared["method"] != "onehot"].reset_index(drop=True).equals(alone)
    assert set(of_bound["verdict"]) == set(of_bound["best"]) == {""}
    assert of_bound["mean"].tolist() == pytest.approx([0.9, 0.9]) and of_bound["difference"].isna().all()
    text = markdown.to_markdown(cells(frame, table_of(with_bound)))
    assert "| *Baselines* | | |\n| onehot | 0.900 ± 0.000 |" in text
    assert (
        "Baselines: codes of a linear classifier trained on the same features; neither best nor second."
        in text
    )
    assert "Baselines" not in markdown.to_markdown(cells(without, table_of(plain)))


def test_a_table_of_two_protocols_leaves_the_other_columns_of_the_features_empty():
    blocks = [{"protocol": name, "metric": "ap", "bits": [12]} for name in ("digits", "nus_wide")]
    of = table(blocks=blocks, seeds=[0])
    frame = frames.tidy(*model_of(of, [], uncoded={"nus_wide": {"ap": 0.25}}))
    assert r"\emph{Uncoded features (cosine)} &  & 0.250 \\" in latex.to_latex(cells(frame, table_of(of)))
    assert markdown.to_markdown(cells(frame, table_of(of))).count("*Uncoded features") == 1


def test_a_score_of_features_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="uncoded features of digits: ap is nan"):
        frames.tidy(*model_of(table(), [], uncoded={"digits": {"ap": math.nan}}))
