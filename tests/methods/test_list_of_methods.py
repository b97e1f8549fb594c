"""`python -m methods`, and the page that it writes."""

import re
import subprocess
import sys
from pathlib import Path

from methods.__main__ import page
from methods.base.catalogue import catalogue, load_class

ROOT = Path(__file__).parents[2]


def command(*options):
    program = [sys.executable, "-m", "methods", *options]
    return subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_the_page_of_the_documentation_is_what_the_command_prints():
    text = command()
    assert (ROOT / "docs" / "methods.md").read_text(encoding="utf-8") == text, "run the command on that page"
    assert text == page()


def test_names_are_printed_one_a_line():
    assert command("--names").splitlines() == list(catalogue())


def test_each_method_has_one_row_with_its_metadata():
    rows = {row[1]: row[0] for row in re.finditer(r"^\| `(\w+)` \|.*$", page(), re.MULTILINE)}
    found = catalogue()
    assert rows.keys() == found.keys()
    for name, about in found.items():
        cells = re.split(r"(?<!\\) \| ", rows[name].strip("| "))
        assert cells[1] == f"[{about.title}]({about.paper})"
        assert cells[3] == about.family and cells[5] == about.sees
        assert int(cells[7]) == len(about.path.read_bytes().splitlines())
    assert " | database labels | " in rows["adsh"]
    assert [name for name in rows if " | database labels | " in rows[name]] == ["adsh"]


def test_the_oracle_of_each_method_is_in_a_test_file_that_names_it():
    text = (ROOT / "docs" / "development" / "trust.md").read_text(encoding="utf-8")
    section = text[text.index("\n## Methods") :].partition("\n## ")[2].partition("\n## ")[0]
    told = set()
    for row in re.findall(r"^\| `.*$", section, re.MULTILINE):
        names, _, files = row.strip("| ").split(" | ")
        sources = [
            (ROOT / "tests" / "methods" / file).read_text() for file in re.findall(r"`([^`]+)`", files)
        ]
        for name in re.findall(r"`(\w+)`", names):
            told.add(name)
            words = (name, catalogue()[name].title, load_class(name).__name__)
            every_method = "catalogue()"  # conformance, which finds all of them
            named = [any(word in source for word in (*words, every_method)) for source in sources]
            assert any(named) or "relaxed" in files, name
    assert told == catalogue().keys()
