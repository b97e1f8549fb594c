"""`python -m reporting` on published files: what it prints and writes, and one line for each mistake."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest
import yaml
from leaderboards import make_run
from models import block, model_of, table_of

from reporting import __main__ as command
from reporting import frames, published
from reporting.claims import verdicts
from reporting.printed import health
from reporting.printed.table_files import table_files
from reporting.records.read import table_runs
from reporting.statistics import columns

ROOT = Path(__file__).parents[2]
METHODS = {"itq": ("ITQ", 0.7), "lsh": ("LSH", 0.5), "talr_ap": ("TALR-AP", 0.8)}
TABLE = {"name": "small", "title": "A small table", "seeds": [0, 1, 2], "methods": list(METHODS)}
TABLE["styles"] = {name: {"title": title, "family": "listwise"} for name, (title, _) in METHODS.items()}
TABLE["blocks"] = [block(bits=[8, 16], title="Digits")]
TABLE["blocks"] += [block(metric="precision_radius_2", bits=[8], title="Digits")]
TABLE |= {"claims": ["somebody"], "published": [], "figures": {"tie_ranges": {"width": 5.0, "title": "none"}}}
CLAIM = {"id": "best", "claim": "TALR-AP is best.", "of": "Table 1", "stated_for": ["digits"], "kind": "best"}
CLAIM |= {"method": "talr_ap", "where": {"metric": "ap"}}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A folder of results as the workflow writes it: runs, then the files of a table."""
    folder = tmp_path_factory.mktemp("published") / "results"
    random = np.random.default_rng(0)
    shared = 0.1 * random.normal(size=60)
    for method, (_, mean) in METHODS.items():
        for bits in (8, 16):
            own = 0.05 * random.normal(size=60)
            for seed in TABLE["seeds"]:
                middle = np.clip(mean + bits / 400 + shared + own + 0.01 * random.normal(), 0.05, 0.95)
                arrays = {"ap": middle, "ap_min": middle - 0.05, "ap_max": middle + 0.05}
                arrays["precision_radius_2"] = middle / 2
                training = [{"objective": 1.0, "seconds": 0.5}]
                make_run(folder, "digits", method, bits, seed, arrays, training=training)
    file = {"source": "somebody", "citation": "", "url": "", "claims": [CLAIM]}
    settings = {"table": TABLE, "published": [], "refused": [], "claims": [file]}
    (folder / "small.json").write_text(json.dumps(settings))
    table, results = model_of(TABLE, table_runs(table_of(TABLE), folder / "runs", also=["per_query"]))
    tidy, compared = frames.tidy(table, results), columns.comparisons(table, results)
    judged = verdicts.judge([file], table, results)
    for ending, text in table_files(table, tidy, compared, judged, health.frame(table, results)).items():
        (folder / f"small{ending}").write_text(text)
    return folder


def run(results, *words):
    return command.main([*words, "--results", str(results)])


def test_a_published_table_is_read_back_to_the_last_bit(results):
    found = published.read("small", results)
    model = found.table, found.results(["per_query"])
    pd.testing.assert_frame_equal(found.tidy, frames.tidy(*model), check_exact=True)
    pd.testing.assert_frame_equal(found.compared, columns.comparisons(*model), check_exact=True)
    judged = verdicts.judge(found.table.claims, *model)
    assert found.judged == judged and judged[0]["verdict"] == "too few runs"


def test_list_names_tables_blocks_methods_and_figures(results, capsys):
    assert run(results, "list") == 0
    text = capsys.readouterr().out
    blocks = "  digits/ap: 8, 16 bits\n  digits/precision_radius_2: 8 bits\n"
    assert text.startswith(f"small: A small table\n{blocks}")
    assert "  methods: itq, lsh, talr_ap\n" in text and "tie_ranges" in text.rpartition("figures: ")[2]


def test_a_table_is_printed_as_the_workflow_wrote_it(results, capsys):
    expected = (results / "small.md").read_text()
    assert run(results, "table", "small") == 0
    printed = capsys.readouterr().out
    assert expected.startswith(printed) and "| TALR-AP |" in printed
    for form in ("tex", "csv"):
        assert run(results, "table", "small", "--format", form) == 0
        assert capsys.readouterr().out == (results / f"small.{form}").read_text()


def test_a_part_of_a_table_has_its_own_best_and_its_own_digits(results, capsys, tmp_path):
    target = tmp_path / "part.md"
    words = ("--methods", "lsh,itq", "--blocks", "digits/ap", "--digits", "2", "--output", str(target))
    assert run(results, "table", "small", *words) == 0
    assert capsys.readouterr().out == ""
    text = target.read_text()
    assert "TALR-AP" not in text and "Precision" not in text
    rows = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("| ")}
    assert rows["ITQ"].count("**") == 4 and "**" not in rows["LSH"]
    assert rows["ITQ"].split("**")[1].startswith("0.7") and len(rows["ITQ"].split("**")[1]) == 4
    _, _, compared = published.select(published.read("small", results), ["lsh", "itq"])
    assert set(compared["best"]) == {"itq"}


def test_a_figure_obeys_the_command_line_then_the_configuration(results, tmp_path, capsys):
    target = tmp_path / "new" / "figure.svg"
    assert run(results, "figure", "small", "tie_ranges", "--output", str(target)) == 0
    assert capsys.readouterr().out == f"{target}\n"
    width = 'width="360'  # 5 inches of 72 points
    assert width in target.read_text()[:2000]
    assert "How far the order" not in target.read_text()  # the configuration leaves the title out
    words = ("--width", "3.4", "--title", "My own title", "--methods", "itq,lsh")
    assert run(results, "figure", "small", "tie_ranges", *words, "--output", str(target)) == 0
    text = target.read_text()
    assert width not in text[:2000] and 'width="244.8' in text[:2000]
    assert run(results, "figure", "small", "metric_by_bits", "--font-size", "10") == 0
    assert (results / "figures/metric_by_bits_small.pdf").read_bytes().startswith(b"%PDF")


def test_a_page_is_made_from_published_files(results, tmp_path, capsys):
    target = tmp_path / "page.html"
    assert run(results, "page", "small", "--output", str(target)) == 0
    text = target.read_text()
    assert "A small table" in text and "TALR-AP is best." in text
    assert "python -m reporting page small" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("table", "smal"), "has no table 'smal'; did you mean 'small'? Known: small"),
        (("page", "small", "smale"), "has no table 'smale'; did you mean 'small'?"),
        (("figure", "small", "tie_range"), "there is no figure 'tie_range'; did you mean 'tie_ranges'?"),
        (("figure", "small", "ranks"), "figure ranks does not apply to table small; figures that do: "),
        (("figure", "small", "tie_ranges", "--methods", "itk"), "no method 'itk'; did you mean 'itq'?"),
        (("table", "small", "--blocks", "digit/ap"), "no block 'digit/ap'; did you mean 'digits/ap'?"),
        (("figure", "small", "tie_ranges", "--output", "x.pfd"), "unknown kind of file; did you mean 'pdf'?"),
        (("figure", "small", "tie_ranges", "--width", "400"), "width must be a number of inches from 2 to"),
    ],
)
def test_each_mistake_is_one_line_with_the_nearest_name(results, capsys, words, message):
    assert run(results, *words) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("error: ") and captured.err.count("\n") == 1
    assert message in captured.err


def test_a_file_that_is_absent_is_named_once_and_without_a_number(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command.main(["docs", "absent.md"]) == 1
    assert capsys.readouterr().err == "error: absent.md: No such file or directory\n"


def test_an_interruption_is_one_line(results, capsys, monkeypatch):
    def interrupted(options):
        raise KeyboardInterrupt

    monkeypatch.setitem(command.COMMANDS, "list", interrupted)
    assert run(results, "list") == 130
    assert capsys.readouterr().err == "error: interrupted\n"


def test_a_folder_without_tables_says_how_to_make_one(tmp_path, capsys):
    assert run(tmp_path, "list") == 1
    assert "snakemake --cores all -- results/quick.csv" in capsys.readouterr().err


def test_files_of_another_version_are_named(results, tmp_path, capsys):
    for path in results.glob("small.*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "small.statistics.csv").write_text("table,verdict\nsmall,best\n")
    assert run(tmp_path, "table", "small") == 1
    assert "small.statistics.csv is not what this version writes" in capsys.readouterr().err


def test_runs_that_another_table_made_again_are_refused(results, tmp_path, capsys):
    """Tables of a protocol share its runs: a figure would mix one table's files with another's scores."""
    shutil.copytree(results, tmp_path / "results")
    path = tmp_path / "results" / "runs" / "digits" / "lsh" / "16" / "1" / "scores.json"
    scores = json.loads(path.read_text())
    scores["metrics"]["ap"] += 1e-4
    path.write_text(json.dumps(scores))
    for words in (["figure", "small", "tie_ranges"], ["table", "small", "--methods", "lsh,itq"]):
        assert run(tmp_path / "results", *words) == 1
        assert "lsh/16: these runs are not those of small.tidy.csv" in capsys.readouterr().err
    assert run(tmp_path / "results", "table", "small") == 0  # of its files alone


def test_help_of_each_command_and_a_run_as_a_program(capsys):
    done = subprocess.run(
        [sys.executable, "-m", "reporting", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for word in ("figure", "table", "page", "list", "examples:"):
        assert word in done.stdout
    with pytest.raises(SystemExit):
        command.main(["table", "x", "--digits", "0"])
    assert "invalid choice: 0" in capsys.readouterr().err


def test_the_schema_allows_what_figures_understand():
    schema = yaml.safe_load((ROOT / "workflow/schemas/tables.yaml").read_text())
    check = jsonschema.Draft202012Validator(schema["properties"]["figures"] | {"$defs": schema["$defs"]})
    check.validate({"tie_ranges": {"width": 3.4, "font_size": 8, "title": "none", "methods": ["itq"]}})
    check.validate({"tie_ranges": {"title": False, "blocks": ["digits/ap"]}})
    for wrong in ({"widht": 3.4}, {"width": 99}, {"methods": []}):
        with pytest.raises(jsonschema.ValidationError):
            check.validate({"tie_ranges": wrong})
