"""`python -m methods`, and the page that it writes."""

import re
from pathlib import Path

import pytest

from methods.__main__ import main, page
from methods.base.catalogue import catalogue

ROOT = Path(__file__).parents[2]


def test_the_page_of_the_documentation_is_what_the_command_prints(capsys):
    main([])
    text = capsys.readouterr().out
    assert (ROOT / "docs" / "methods.md").read_text(encoding="utf-8") == text, "run the command on that page"


def test_a_faulty_file_is_named_in_one_line(monkeypatch):
    def faulty():
        raise ValueError("methods/mine.py: must define one class")

    monkeypatch.setattr("methods.__main__.catalogue", faulty)
    with pytest.raises(SystemExit, match="error: methods/mine"):
        main([])


def test_names_are_printed_one_a_line(capsys):
    main(["--names"])
    assert capsys.readouterr().out.splitlines() == list(catalogue())


def test_papers_are_printed_as_bibtex(capsys):
    main(["--bibtex", "talr_ndcg", "https://arxiv.org/abs/1705.08562", "fsdh"])
    first, second = capsys.readouterr().out.split("\n\n")  # of two methods of one paper it is there once
    assert first == (
        "@inproceedings{talr_ndcg,\n"
        "  author    = {He and Cakir and Bargal and Sclaroff},\n"
        "  title     = {{Hashing as Tie-Aware Learning to Rank}},\n"
        "  booktitle = {CVPR},\n"
        "  year      = {2018},\n"
        "  url       = {https://arxiv.org/abs/1705.08562}\n}"
    )
    assert second.startswith("@article{fsdh,\n") and "  journal   = {arXiv},\n" in second
    for name, about in catalogue().items():
        assert re.search(r"year      = \{(20|19)\d\d\}", about.bibtex), name
    with pytest.raises(SystemExit, match="did you mean 'talr_ap'"):
        main(["--bibtex", "talr_app"])


def test_each_method_has_one_row_with_its_metadata():
    rows = {row[1]: row[0] for row in re.finditer(r"^\| `(\w+)` \|.*$", page(), re.MULTILINE)}
    found = catalogue()
    assert rows.keys() == found.keys()
    for name, about in found.items():
        cells = re.split(r"(?<!\\) \| ", rows[name].strip("| "))
        assert cells[1] == f"[{about.title}]({about.paper})"
        assert cells[3] == about.family and cells[5] == about.sees
    assert " | database labels | " in rows["adsh"]
    assert [name for name in rows if " | database labels | " in rows[name]] == ["adsh"]


def test_the_page_names_the_tests_of_each_method():
    text = (ROOT / "docs" / "development" / "trust.md").read_text(encoding="utf-8")
    section = text[text.index("\n## Methods") :].partition("\n## ")[2].partition("\n## ")[0]
    rows = [row.strip("| ").split(" | ") for row in re.findall(r"^\| `.*$", section, re.MULTILINE)]
    assert {name for names, *_ in rows for name in re.findall(r"`(\w+)`", names)} == catalogue().keys()
    for file in {file for *_, files in rows for file in re.findall(r"`([^`]+)`", files)}:
        assert (ROOT / "tests" / "methods" / file).is_file(), file
