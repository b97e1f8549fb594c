"""The readings of docs/results.md against the tables that they stand beside, which are generated.

A reading is typed: when results are published anew its figures stay. Each figure of three decimals is one of
the tables of its section, a difference that is computed here again, or listed with where else it is from.
"""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "results.md").read_text(encoding="utf-8")
GENERATED = re.compile(r"<!-- leaderboard:.*?-->(.*?)<!-- end -->", re.DOTALL)
FIGURE = re.compile(r"(?<![\d.])\d\.\d{3}(?!\d)")

SETTING_1 = "CIFAR-10 setting 1, networks fine-tuned end to end"
SETTING_2 = "CIFAR-10 setting 2, networks fine-tuned end to end"
FEATURES = "CIFAR-10 setting 1, hash functions on MobileNetV2 features"
UNSEEN = "Unseen classes: CIFAR-10 on MobileNetV2 features, 32 bits"
FEW = "Few labels: CIFAR-10 on MobileNetV2 features, 32 bits"
GIST = "Published rows, made again: CIFAR-10 on GIST"
# (row, column) minus (row, column), by section and the figure of the reading.
DIFFERENCES = {
    (SETTING_1, "0.055"): (("TALR-AP", "48 bits"), ("MIHash", "48 bits")),
    (SETTING_1, "0.085"): (("TALR-AP", "12 bits"), ("MIHash", "12 bits")),
    (UNSEEN, "0.016"): (("DSDH", "unseen"), ("ITQ", "unseen")),
    (FEW, "0.022"): (("ITQ", "500"), ("ITQ", "10")),
    (FEW, "0.084"): (("CSQ", "50"), ("TALR-AP", "50")),
    (GIST, "0.028"): (("KSH", "centred, unit length"), ("KSH (2,000 labelled)", "12 bits")),
    (GIST, "0.021"): (
        ("FastHash", "centred, unit length"),
        ("FastHash", "the same, without training images"),
    ),
    (GIST, "0.014"): (("KSH", "centred, unit length"), ("KSH", "second split")),
    (GIST, "0.006"): (("KSH", "centred, unit length"), ("KSH", "the same, without training images")),
    (GIST, "0.013"): (
        ("SDH (sigma 0.7)", "centred, unit length"),
        ("SDH (sigma 0.7)", "the same, without training images"),
    ),
}
# Figures of no generated table, and their source.
ELSEWHERE = {
    FEATURES: {
        "an earlier table, with linear heads and plain SGD": "0.482 0.551 0.441 0.530 0.533 0.576",
        "config/published": "0.497 0.541 0.668 0.749 0.303 0.356",
    },
    SETTING_1: {"rates of trials on parts of the training set": "0.003 0.002 0.001"},
    SETTING_2: {
        "the table of setting 1": "0.706 0.586",
        "figures of config/published": "0.013",
        "the rate of a training that no file has": "0.001",
    },
    UNSEEN: {"a table with default hyper-parameters, of commit eb5f6ea": "0.551 0.544 0.521"},
    "Text embeddings": {
        "scores of the floats (docs/examples/text_embeddings.yaml)": "0.925",
        "a bound of ranges of ties, and a standard error": "0.005 0.024",
    },
}


def sections():
    """Title -> (text without its tables, generated text) of each section that has tables or figures."""
    found = {}
    for part in re.split(r"(?m)^## ", PAGE)[1:]:
        title, _, text = part.partition("\n")
        if generated := "".join(GENERATED.findall(text)):
            found[title] = GENERATED.sub("", text), generated
    return found


SECTIONS = sections()


def cells(generated):
    """(row, column) -> text, of all tables; later tables do not replace earlier ones."""
    found = {}
    for table in re.findall(r"(?m)(?:^\|.*\n)+", generated):
        headings, _, *rows = (
            [cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()
        )
        for name, *values in rows:
            for heading, value in zip(headings[1:], values):
                found.setdefault((name, heading), value)
    return found


@pytest.mark.parametrize("title", SECTIONS)
def test_figures_of_a_reading_are_those_of_its_tables(title):
    prose, generated = SECTIONS[title]
    known = set(FIGURE.findall(generated))
    known |= {figure for section, figure in DIFFERENCES if section == title}
    known |= {figure for figures in ELSEWHERE.get(title, {}).values() for figure in figures.split()}
    assert [figure for figure in FIGURE.findall(prose) if figure not in known] == []


@pytest.mark.parametrize("title", SECTIONS)
def test_a_figure_behind_the_name_of_a_method_is_of_its_row(title):
    """As in "MACHash (0.342)"."""
    prose, generated = SECTIONS[title]
    elsewhere = {figure for figures in ELSEWHERE.get(title, {}).values() for figure in figures.split()}
    rows = {}
    for (name, _), text in cells(generated).items():
        rows.setdefault(re.sub(r"[*†‡]|<.*?>", "", name), []).append(text)
    wrong = []
    for name, figure in re.findall(r"([\w²-]+) \((\d\.\d{3})\)", " ".join(prose.split())):
        if name in rows and figure not in elsewhere and not any(figure in text for text in rows[name]):
            wrong.append((name, figure))
    assert wrong == []


@pytest.mark.parametrize(("title", "figure"), DIFFERENCES)
def test_differences_are_those_of_the_tables(title, figure):
    prose, generated = SECTIONS[title]
    table = cells(generated)
    more, less = (float(FIGURE.search(table[cell])[0]) for cell in DIFFERENCES[title, figure])
    assert f"{more - less:.3f}" == figure and figure in prose


@pytest.mark.parametrize("title", ELSEWHERE)
def test_what_is_listed_as_from_elsewhere_is_still_said(title):
    prose, _ = SECTIONS[title]
    listed = [figure for figures in ELSEWHERE[title].values() for figure in figures.split()]
    assert [figure for figure in listed if figure not in FIGURE.findall(prose)] == []


def test_there_are_readings_to_look_at():
    assert len(SECTIONS) >= 5 and sum(len(FIGURE.findall(prose)) for prose, _ in SECTIONS.values()) > 100
