"""Tables of measurements on pages: those of the files that benchmarks write."""

import pytest
import yaml

from reporting.leaderboard import measured, pages
from reporting.leaderboard.boards import Boards
from tests.tiebench.refusals import refused


@pytest.fixture
def folder(tmp_path):
    """A page's folder with two files of measurements below it."""
    (tmp_path / "results").mkdir()
    place = {"machine": "one thread", "versions": "numpy 2", "date": "2026-01-01"}
    for name, more in (("a", place), ("b", place | {"machine": "two threads"})):
        waits = {"head": ["what", "time"], "rows": [[f"one {name}", "3 s"], ["`two`", "−4"]]}
        if name == "b":
            waits = {"head": ["what", "time", "command"], "rows": [["three", "5", "`make`"]]}
        file = {"command": f"run {name}"} | more | {"tables": {"waits": waits, f"own_{name}": waits}}
        (tmp_path / "results" / f"{name}.yaml").write_text(yaml.safe_dump(file))
    return tmp_path


def test_a_table_of_one_file_says_where_it_was_measured(folder):
    assert measured.render({"measured": "results/a.yaml", "table": "waits"}, folder).splitlines() == [
        "| what | time |",
        "|:---|---:|",
        "| one a | 3 s |",
        "| `two` | −4 |",
        "",
        "`run a`: one thread; 2026-01-01.",
    ]
    few = measured.render({"measured": "results/a.yaml", "table": "waits", "columns": ["time"]}, folder)
    assert few.splitlines()[:3] == ["| time |", "|---:|", "| 3 s |"]


def test_a_table_of_a_folder_has_the_command_and_the_machine_of_each_row(folder):
    assert measured.render({"measured": "results", "table": "waits"}, folder).splitlines() == [
        "| what | time | command | on |",
        "|:---|---:|:---|:---|",
        "| one a | 3 s | `run a` | a |",
        "| `two` | −4 | `run a` | a |",
        "| three | 5 | `make` | b |",
        "",
        "a: one thread; 2026-01-01. b: two threads; 2026-01-01.",
    ]
    (own, *_) = measured.render({"measured": "results", "table": "own_b"}, folder).splitlines()
    assert own == "| what | time | command | on |"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"measured": "results", "table": "wait"}, "results has no table 'wait'; did you mean 'waits'"),
        ({"measured": "results/a.yaml"}, "results/a.yaml has no table ''"),
        (
            {"measured": "results", "table": "waits", "columns": ["tim"]},
            "table waits has no column 'tim'; did you mean 'time'",
        ),
        ({"measured": "results", "tables": "waits"}, "unknown key 'tables' of a table of measurements"),
    ],
)
def test_settings_that_do_not_fit_are_refused_in_one_line(settings, said, folder):
    with refused(said):
        measured.render(settings, folder)


def test_a_page_that_differs_from_its_measurements_is_found_and_rewritten(folder):
    page = folder / "page.md"
    page.write_text("<!-- leaderboard: {measured: results/a.yaml, table: waits} -->\n<!-- end -->\n")
    boards = Boards(folder)
    (fault,) = pages.outdated([page], boards)
    assert "line 1" in fault
    assert pages.rewrite([page], boards) == [page]
    assert "| one a | 3 s |" in page.read_text()
    assert pages.outdated([page], boards) == []
