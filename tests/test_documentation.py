"""The documentation: the commands that it shows work, and the tree that it describes is the real one."""

import ast
import importlib
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections import defaultdict
from functools import cache, reduce
from pathlib import Path

import forked
import numpy as np
import pytest
import yaml
from files import mappings, tarred
from PIL import Image

from reporting.leaderboard import pages
from reporting.leaderboard.boards import Boards
from tiebench.leaderboards import read_provenance, stems
from workflow.configuration import source_checks
from workflow.configuration.merged import load, merge_settings
from workflow.plan.runs import Cell, Plan

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [
        *(page for page in ROOT.glob("*.md") if page.name != "CHANGELOG.md"),  # names what is gone, too
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "docs").rglob("*.yaml"),
        *(ROOT / "results").glob("*.md"),
        ROOT / "Snakefile",
    ]
)
PROGRAMS = ("make", "snakemake", "python", "tiebench", "pip", "conda", "cosmic-ray", "cr-report", "uvx")
# A template, not a command: the reader fills it in.
PLACEHOLDER = re.compile(r"<\w+>|\.\.\.|…|\b(FILE|FOLDER|NAME|TASK|BENCHMARK|TABLE|KIND|mine)\b|\*")


def commands_of(text):
    """Commands of a page: lines of code blocks and of comments, and code spans; without their variables."""
    text = re.sub(r"^ *#  ?", "    ", text, flags=re.MULTILINE)  # comments of YAML files
    text = re.sub(r"\s*\\\n\s*#?\s*", " ", text)
    found = []
    for line in [*text.splitlines(), *re.findall(r"`([^`\n]+)`", text)]:
        line = line.strip()
        line = re.sub(r"^(?:[A-Z_]+=\S+\s+)+", "", line)
        line = re.sub(r"\s{2,}.*$|\s+#\s.*$", "", line)  # an explanation beside it
        line = line.removeprefix(".venv/bin/")
        if line.split(" ")[0] in PROGRAMS and " " in line:
            found.append(line)
    return found


def test_commands_are_found_wherever_they_are_shown():
    text = (
        "Text `make quick` text.\n\n    A=b snakemake --cores all \\\n      x.csv\n\n"
        "```\npython -m tiebench f.npz\n```\n"
        "#   snakemake -n results/a.csv   what would run\n\n    make test     # the tests\n"
    )
    assert sorted(commands_of(text)) == [
        "make quick",
        "make test",
        "python -m tiebench f.npz",
        "snakemake --cores all x.csv",
        "snakemake -n results/a.csv",
    ]


SHOWN = sorted({command for page in PAGES for command in commands_of(page.read_text(encoding="utf-8"))})


def test_the_documentation_shows_commands_of_every_kind():
    assert {command.split(" ")[0] for command in SHOWN} >= {"make", "snakemake", "python", "tiebench", "pip"}
    assert len(SHOWN) > 25


def shown(program):
    """Parameters for a test: the commands of one program, without templates."""
    return [c for c in SHOWN if c.split(" ")[0] == program and not PLACEHOLDER.search(c)]


def run(command, **options):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize("target", ["setup", "docs", "distributed"])
def test_an_environment_behind_a_link_is_not_emptied(target, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "kept").touch()
    (tmp_path / "link").symlink_to("other")
    name = {"setup": "VENV", "docs": "DOCS_VENV", "distributed": "DISTRIBUTED_VENV"}[target]
    ended = run(["make", target, f"{name}={tmp_path / 'link'}"])
    assert ended.returncode and f"{tmp_path / 'link'} is a symbolic link" in ended.stderr
    assert (tmp_path / "other" / "kept").is_file()


@pytest.mark.parametrize("command", shown("make"))
def test_make_targets_exist(command):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split()
    targets = [word for word in command.split()[1:] if "=" not in word]
    assert targets and set(targets) <= set(phony), command
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
        assert target == "help" or re.search(rf'^\t@echo "make {target} ', makefile, re.MULTILINE), (
            "not in `make help`"
        )


def named_sources():
    """Every source of a file that the configuration and the examples name, as a mapping."""
    pages = [*(ROOT / "config").rglob("*.yaml"), *(ROOT / "docs" / "examples").glob("*.yaml")]
    settings = [yaml.safe_load(page.read_text(encoding="utf-8")) for page in pages]
    return [part for part in mappings(settings) if isinstance(part.get("file"), str)]


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A folder with what the user has to supply, but small: the features, the embeddings and the archive
    of images as a dry run reads them, an empty file for every other source that cannot be downloaded.
    """
    folder = tmp_path_factory.mktemp("sources")
    for source in named_sources():
        if not source_checks.mirrors(source):
            file = folder / source["file"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
    y = np.arange(31_000) % 10
    np.savez(folder / "cifar10-mobilenetv2.npz", X=np.eye(31_000, 8, dtype=np.float32), y=y)
    y, split = np.arange(10_000) % 200, np.arange(10_000) >= 9_000
    X = np.eye(10_000, 64, dtype=np.float32)
    np.savez(folder / "tiny-imagenet-efficientnet.npz", X=X, y=y, split=split.astype(np.int64))
    vectors = {"database": np.eye(9, 384), "query": np.eye(2, 384)}
    np.savez(folder / "scifact-minilm.npz", **vectors, qrels_test=np.array([[0, 3, 1], [1, 4, 1]]))
    topics = np.arange(1200)[:, None] % np.arange(2, 8) == 0
    split = np.where(np.arange(1200) % 4, "train", "test")
    X = np.eye(1200, 384, dtype=np.float32)
    np.savez(folder / "reuters-minilm.npz", X=X, y=topics.astype(np.uint8), split=split)
    picture = io.BytesIO()
    Image.new("RGB", (32, 32)).save(picture, "JPEG")
    names = [
        f"cifar10-jpeg/{split}/{label}/{number}.jpg"
        for split in ("train", "test")
        for label in range(10)
        for number in range(310)
    ]
    (folder / "cifar10-jpeg.tar.xz").write_bytes(tarred(dict.fromkeys(names, picture.getvalue())))
    return folder


def snakemake_settings():
    """Options -> targets, of the commands shown: Snakemake plans all targets of the same settings at once."""
    found = defaultdict(set)
    for command in shown("snakemake"):
        words = [word for word in shlex.split(command)[1:] if word not in ("--", "-n")]
        targets = {word for word in words if word.startswith(("results/", "resources/"))}
        words = re.sub(r"--cores \w+ ?", "", shlex.join(word for word in words if word not in targets))
        found[words.strip()] |= targets
    return found


def of_few_jobs(words, file):
    """Options with a file of settings more, in which every table has one seed and its longest codes: others
    are more of the same jobs, and take as many times as long."""
    examples = [ROOT / word for word in words if word.endswith(".yaml")]
    tables = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / "config/tables").glob("*.yaml")}
    for path in examples:
        tables |= yaml.safe_load(path.read_text(encoding="utf-8")).get("tables", {})
    few = {name: {"seeds": table["seeds"][:1]} for name, table in tables.items() if "seeds" in table}
    for name in few:
        blocks = tables[name].get("blocks", ())
        few[name] |= {"blocks": [block | {"bits": block["bits"][-1:]} for block in blocks]} if blocks else {}
    file.write_text(yaml.safe_dump({"tables": few}))
    return [*words, *([] if examples else ["--configfile"]), str(file)]


@pytest.mark.parametrize(("options", "targets"), snakemake_settings().items())
@pytest.mark.thorough
def test_snakemake_commands_pass_a_dry_run(options, targets, sources, tmp_path):
    words = [*of_few_jobs(shlex.split(options), tmp_path / "seeds.yaml"), "--", *sorted(targets)]
    made = forked.run(
        ["-m", "snakemake", "--dry-run", "--directory", tmp_path, *words],
        cwd=ROOT,
        env=os.environ | {"TIEBENCH_RESOURCES": str(sources)},
        timeout=900,
    )
    assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-2000:]
    assert re.search(r"^total +[1-9]", made.stdout, re.MULTILINE), "no job would run"


def tables_of_results():
    """Files of settings -> tables, of the commands on the pages of results, which may name tables apart."""
    found = defaultdict(set)
    for page in sorted((ROOT / "docs" / "results").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        tables = set(re.findall(r"results/(\w+)\.html", text))
        for command in commands_of(text):
            if command.startswith("snakemake "):
                found[tuple(re.findall(r"docs/\S+\.yaml", command))] |= tables
    return found


@pytest.mark.thorough
def test_the_commands_of_the_pages_of_results_have_the_settings_of_the_published_rows():
    other, compared = [], 0
    for files, tables in tables_of_results().items():
        every = [yaml.safe_load((ROOT / file).read_text(encoding="utf-8")) for file in files]
        plan = Plan(load(ROOT, reduce(merge_settings, every, {})))
        blocks = [plan["tables"][table]["blocks"] for table in tables & set(plan["tables"])]
        protocols = {block["protocol"] for of_table in blocks for block in of_table}
        for protocol in protocols.intersection(stems(ROOT / "leaderboard")):
            member = plan.configuration.members(protocol)[0]
            for cell, published in read_provenance(protocol, ROOT / "leaderboard")["hyperparameters"].items():
                method, bits = re.fullmatch(r"(\w+), (\d+) bits", cell).groups()
                now = plan.hyperparameters(Cell(member, method, int(bits))) | {"device": None}
                names = [set(now) & set(one) - {"device"} for one in published]
                compared += 1
                if not any(all(now[name] == one[name] for name in of) for one, of in zip(published, names)):
                    other.append(f"{protocol}: {cell}")
    assert compared > 500
    assert not other


@cache
def help_of(*program):
    made = run([sys.executable, *program, "--help"])
    assert made.returncode == 0, made.stderr
    return made.stdout


@pytest.mark.parametrize("command", shown("python") + shown("tiebench"))
def test_python_commands_know_their_options(command):
    words = ["-m", *shlex.split(command)] if command.startswith("tiebench") else shlex.split(command)[1:]
    program, arguments = (words[:2], words[2:]) if words[0] == "-m" else (words[:1], words[1:])
    if program == ["-m", "pytest"]:
        assert all((ROOT / argument).exists() for argument in arguments)
        return
    if (
        program[-1] in ("networks", "reporting", "tiebench")
        and arguments
        and not arguments[0].startswith("-")
    ):
        program, arguments = [*program, arguments[0]], arguments[1:]  # unknown subcommands have no help
    elif program[-1] == "benchmarks" and arguments and not arguments[0].startswith("-"):
        assert arguments[0] in help_of(*program)
    if words[0] == "-c":
        for node in ast.walk(ast.parse(words[1])):
            if isinstance(node, ast.ImportFrom):
                module = importlib.import_module(node.module)
                assert all(hasattr(module, alias.name) for alias in node.names)
        return
    text = help_of(*program)
    for option in (argument for argument in arguments if argument.startswith("--")):
        assert re.search(rf"{re.escape(option)}\b", text), f"{option} is not an option of {program}"


@pytest.mark.parametrize("command", shown("pip"))
def test_pip_installs_what_the_project_has(command):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    words = shlex.split(command)[2:]
    if words[0] == "--group":
        assert words[1] in project["dependency-groups"]
    elif words[0].startswith("."):
        extras = re.findall(r"[\w-]+", words[0][1:])
        assert set(extras) <= set(project["project"]["optional-dependencies"])
        assert (ROOT / "pyproject.toml").exists()


@pytest.mark.parametrize("command", [*shown("conda"), *shown("cosmic-ray"), *shown("uvx")])
def test_files_of_other_commands_exist(command):
    named = [word for word in shlex.split(command) if re.search(r"\.(yml|toml|lock)$", word)]
    assert named and all((ROOT / name).is_file() for name in named)


# -- the tree, and the way to each page ------------------------------------------------------------------


def documented_tree():
    """Folder -> description of each line of the tree in the page."""
    text = (ROOT / "docs" / "development" / "architecture.md").read_text(encoding="utf-8")
    found, folder = {}, ""
    for line in re.search(r"```text\n(.*?)```", text, re.DOTALL)[1].splitlines():
        name, description = re.fullmatch(r" *(\S+) +(\S.*)", line).groups()
        inside = line.startswith("  ")
        folder = folder if inside else name
        path = folder + name if inside else name
        assert path not in found, f"{path} is described twice"
        found[path] = description
    return found


def real_tree():
    """Folders of the top two levels that git tracks, or would."""
    listed = run(["git", "ls-files", "--cached", "--others", "--exclude-standard"])
    if listed.returncode:
        pytest.skip("no git checkout: the real tree is not known")
    found = set()
    for file in listed.stdout.splitlines():
        if (ROOT / file).exists():
            *folders, _ = file.split("/")
            found |= {"/".join(folders[:depth]) + "/" for depth in (1, 2) if len(folders) >= depth}
    return found


def test_the_documented_tree_is_the_real_one():
    documented, real = set(documented_tree()), real_tree()
    assert real - documented == set(), "add a line to the tree of docs/development/architecture.md"
    assert documented - real == set(), "remove these lines from the tree of docs/development/architecture.md"


def test_every_page_can_be_reached_from_the_readme():
    pending, reached = [ROOT / "README.md"], set()
    while pending:
        page = pending.pop()
        if page not in reached and page.is_file():
            reached.add(page)
            links = re.findall(r"\]\(([^)\s#:]+\.md)", page.read_text(encoding="utf-8"))
            pending += [(page.parent / link).resolve() for link in links]
    every = {ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")}
    assert every - reached == set()


def test_placeholders_are_code_because_markdown_takes_them_for_html():
    taken = {}
    for page in (page for page in PAGES if page.suffix == ".md"):
        text = re.sub(
            r"^ *```.*?^ *```|<!--.*?-->",
            "",
            page.read_text(encoding="utf-8"),
            flags=re.DOTALL | re.MULTILINE,
        )
        text = re.sub(r"(`+).*?\1", "", text, flags=re.DOTALL)
        taken[page.name] = set(re.findall(r"<(\w+)>", text)) - {"sub", "sup", "br"}
    assert {name: words for name, words in taken.items() if words} == {}


# -- tables and figures from the leaderboard ------------------------------------------------------------


@pytest.mark.thorough
def test_generated_parts_are_what_the_leaderboard_has():
    found = pages.find(ROOT)
    assert ROOT / "docs" / "results" / "cifar10-features.md" in found
    assert pages.outdated(found, Boards(ROOT / "leaderboard")) == [], "run: python -m reporting docs"


# -- the workflow of the hosting service ---------------------------------------------------------------


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "results").glob("*.md")), ids=lambda page: page.stem)
def test_pages_of_results_have_one_shape(page):
    """A number that is computed before the table; two figures; how it was made; limits; little prose."""
    text = page.read_text(encoding="utf-8")
    kinds = [next(iter(region.settings)) for region in pages.regions(text)]
    assert kinds[0] == "number" and kinds.count("figure") >= 2
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    known = ["Verdicts", "Figures", "How it was made", "Limits"]
    own = [name for name in headings if name in known]
    assert own in (known, known[1:]) and headings[-2:] == known[-2:]
    for region in reversed(pages.regions(text)):
        text = text[: region.start] + text[region.end :]
    text = re.sub(r"<!-- .*?-->", "", text, flags=re.DOTALL)
    prose = [line for line in text.splitlines() if not line.startswith(("|", "#", "    "))]
    assert sum(len(re.findall(r"\w\S*", line)) for line in prose) <= 300


def test_the_hosted_workflow_runs_commands_that_exist():
    """It cannot run here: its syntax, its targets and its versions of Python can be checked."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    classifiers = [c.rpartition(" ")[2] for c in project["classifiers"] if re.search(r":: 3\.\d+$", c)]
    steps = []
    for job in workflow["jobs"].values():
        assert job["strategy"]["matrix"]["python"] == classifiers
        assert job["timeout-minutes"] > 0
        steps += job["steps"]
    assert all(("uses" in step) != ("run" in step) for step in steps)
    assert all(re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"]) for step in steps if "uses" in step)
    lines = [line for step in steps for line in step.get("run", "").splitlines()]
    targets = [line.split()[1] for line in lines if line.startswith("make ")]
    assert targets == ["setup", "lint", "docs", "distributed", "test-all", "quick"]
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
    assert any(re.search(r"pip\" install \.$", line) for line in lines)
    assert any("tiebench score" in line for line in lines)


def test_shell_scripts_parse():
    made = run(["bash", "-n", ".ci/run"])
    assert made.returncode == 0, made.stderr
