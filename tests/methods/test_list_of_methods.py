"""`python -m methods`, and the page that it writes."""

import re
import subprocess
import sys
from pathlib import Path

from methods.__main__ import page
from methods._catalogue import catalogue

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


def test_the_readme_names_every_method():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text[text.index("\n## Methods") :].partition("\n## ")[2].partition("\n## ")[0]
    assert set(re.findall(r"`(\w+)`", section)) >= catalogue().keys()
