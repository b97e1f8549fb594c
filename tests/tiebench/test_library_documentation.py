"""The documentation of the library is run: code of its pages, examples of its docstrings, its table."""

import ast
import doctest
import importlib.util
import json
import os
import re
import shlex
from pathlib import Path

import forked
import pytest

from tiebench.__main__ import main
from tiebench.metric_table import METRICS

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def as_program(page):
    """A page as one program with the page's line numbers; commands become calls of `command`."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    program = [""] * text.count("\n")
    for block in BLOCK.finditer(text):
        language, first, lines = block[1], text[: block.start(2)].count("\n"), block[2].splitlines()
        assert language in ("python", "sh", "yaml"), f"{page}, line {first}: {language!r} is not run"
        if language == "yaml":  # a configuration, in one line: the lines of the page keep their numbers
            lines = [f"open('mine.yaml', 'w').write({block[2]!r})"]
        if language == "sh":
            lines = [f"command({shlex.split(line, comments=True)})" for line in lines]
        program[first : first + len(lines)] = lines
    return "\n".join(program) + "\n"


# Page -> how many commands it shows in blocks of a shell.
PAGES = {
    "../README.md": 0,
    "index.md": 0,
    "quick-start.md": 4,
    "use-the-library.md": 9,
    "large-databases.md": 8,
    "add-a-metric.md": 0,
    "text-embeddings.md": 0,
    "score-rankings.md": 2,
    "check-a-split.md": 2,
    "compare-your-codes.md": 6,
    "use-codes-elsewhere.md": 12,
}


SLOW = pytest.param("compare-your-codes.md", marks=pytest.mark.thorough)  # reads the leaderboards


@pytest.mark.parametrize("page", [*sorted(PAGES.keys() - {*SLOW.values}), SLOW])
def test_every_block_of_a_page_runs(page, tmp_path, monkeypatch, capsys):
    """One after the other, as a reader would run them, in one program and one folder."""
    if page == "large-databases.md":
        pytest.importorskip("distributed", reason="Dask is not installed: make distributed")
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "page.py"
    program.write_text(as_program(page), encoding="utf-8")
    specification = importlib.util.spec_from_file_location("page", program)
    module = importlib.util.module_from_spec(specification)
    ran = []

    def command(words):
        ran.append(words)
        if words[:2] == ["pip", "install"]:
            return  # test_packaging.py builds the wheel and checks its extras
        if words[0] == "snakemake":
            arguments = ["-m", "snakemake", "--snakefile", ROOT / "Snakefile", *words[1:]]
            made = forked.run(arguments, cwd=tmp_path, env=os.environ, timeout=600)
            assert made.returncode == 0, made.stdout + made.stderr
            return
        assert words[0] == "tiebench"
        capsys.readouterr()
        assert main(words[1:]) == (words[1] == "check-split")  # 1: the split shown has a leak
        printed = capsys.readouterr().out
        if words[1] == "score-run" and "qrels.txt" in words:
            assert json.loads(printed) == module.scores.means
        elif words[1] in ("score", "score-parts") and "--part" not in words and "min" not in words:
            found = json.loads(printed)
            assert found == {name: module.scores.means[name] for name in found}

    module.command = command
    kept = dict(METRICS)
    try:
        specification.loader.exec_module(module)
    finally:
        METRICS.clear()
        METRICS.update(kept)
    assert len(ran) == PAGES[page]
    assert page == "check-a-split.md" or module.scores.means["queries"] > 0


LIBRARY = {  # what follows "tiebench." in a module's name -> its text
    ".".join(path.relative_to(ROOT / "tiebench").with_suffix("").parts): path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "tiebench").rglob("*.py"))
}
WITH_EXAMPLES = [module for module, text in LIBRARY.items() if ">>> " in text]


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_of_docstrings_give_what_they_show(module):
    found = doctest.testmod(importlib.import_module(f"tiebench.{module}"))
    assert found.attempted > 0 and found.failed == 0


def test_the_functions_that_most_programs_call_have_examples():
    modules = {"metrics", "prefixes", "losses.relaxed", "runs.scores", "scoring", "training"}
    assert set(WITH_EXAMPLES) >= modules


def test_the_table_of_metrics_in_the_documentation_is_the_table_of_the_code():
    rows = ["| name | what | bounds | without relevant items | source |", "|---|---|---|---|---|"]
    for metric in METRICS.values():
        value = {None: None, "cutoff": "K", "radius": "R"}[metric.parameter]
        endings = ("", "_min", "_max") if metric.has_range else ("",)
        cells = [
            ", ".join(f"`{metric.name}{ending}`" for ending in endings),
            metric.description.format(value),
            f"{metric.low:g} to {metric.high:g}",
            "any" if metric.without_relevant is None else f"{metric.without_relevant:g}",
            metric.source,
        ]
        rows.append(f"| {' | '.join(cells)} |")
    table = "\n".join(rows)
    assert f"\n\n{table}\n\n" in (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8"), table


def public_functions():
    for module, text in LIBRARY.items():
        if module.rpartition(".")[2].startswith("_"):
            continue
        for node in ast.parse(text).body:
            inside = node.body if isinstance(node, ast.ClassDef) else []
            if isinstance(node, ast.ClassDef) and node.name.startswith("_"):
                continue
            for function in (node, *inside):
                if isinstance(function, ast.FunctionDef) and not function.name.startswith("_"):
                    yield module, node.name, function


def is_compiled(function):
    """Whether each call compiles a function for its types; what it takes is in its docstring alone."""
    decorators = [one.func if isinstance(one, ast.Call) else one for one in function.decorator_list]
    return any(isinstance(one, ast.Name) and one.id in ("compiled", "intrinsic") for one in decorators)


def test_public_functions_are_annotated_and_documented():
    missing, seen = [], 0
    for module, owner, function in public_functions():
        arguments = function.args
        given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        given += [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
        annotated = [argument.annotation is not None for argument in given if argument.arg != "self"]
        seen += 1
        if not (all(annotated) and function.returns is not None) and not is_compiled(function):
            missing.append(f"{module}.{owner}.{function.name}: annotations")
        if not ast.get_docstring(function):
            missing.append(f"{module}.{owner}.{function.name}: docstring")
    assert missing == []
    assert seen > 40
