"""Pages of the site that are made from code: they say what the code, the settings and the scores say."""

import ast
import csv
import importlib
import inspect
import os
import re
from pathlib import Path

import pytest

from methods.base.catalogue import catalogue, load_class
from workflow.documentation import api_pages, links, method_pages, navigation, prose, source_links, sources

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
CATALOGUE = catalogue()
KINDS = {
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}
PARTS = ("Paper", "Formula", "What differs from the paper", "Hyper-parameters", "Leaderboard")


@pytest.fixture(scope="module")
def site():
    """Made here and not above, where each worker would make it to find the tests."""
    return sources.pages(ROOT)


@pytest.fixture(scope="module")
def pages(site):
    return site[0]


@pytest.fixture(scope="module")
def files(site):
    return site[1]


def section(page, title):
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)[1].strip()


# -- docstrings ------------------------------------------------------------------------------------------


def test_parameters_become_a_list_where_they_are_described():
    text = (
        "Score codes.\n\nquery (Q, b), database (N, b): codes, or\n"
        "tensors. bits: of the codes; at: cutoffs K.\nnote: no parameter.\n\nReturns `Scores`."
    )
    assert prose.as_markdown(text, {"query", "database", "bits", "at"}, {"Scores": "t.Scores"}) == (
        "Score codes.\n\n"
        "- **`query`** (Q, b), **`database`** (N, b): codes, or\n  tensors.\n"
        "- **`bits`**: of the codes\n"
        "- **`at`**: cutoffs K.\n  note: no parameter.\n\n"
        "Returns {py:obj}`Scores <t.Scores>`."
    )


def test_examples_formulas_and_code_are_kept():
    text = "Text a < b.\n\n$$a < b \\\\ c$$\n\n    code < code\n\n>>> 1 < 2\nTrue"
    assert prose.as_markdown(text) == (
        "Text a &lt; b.\n\n$$a < b \\\\ c$$\n\n    code < code\n\n```pycon\n>>> 1 < 2\nTrue\n```"
    )


def test_only_names_outside_of_code_and_links_lead_to_the_reference():
    text = "`a.b` and [`a.b`](x.md), `` `a.b` ``\n\n    `a.b`\n\n# `a.b`\n\n`a.c`\n"
    assert prose.linked(text, {"a.b": "a.x.b"}) == text.replace("`a.b`", "{py:obj}`a.b <a.x.b>`", 1)


# -- links -----------------------------------------------------------------------------------------------


def test_links_of_the_repository_become_links_of_the_site():
    text = (
        "<!-- a comment -->\n[docs/results.md](docs/results.md#x) [y](https://y.org) [z](#z)\n"
        "[scores](leaderboard/digits.tidy.csv) [code](methods/lsh.py)\n```\n[a](docs/b.md)\n```\n"
    )
    changed, files = links.rewritten(text, "CHANGELOG.md", "changelog.md", ROOT, {"results.md": "Results"})
    assert changed == (
        "[Results](results.md#x) [y](https://y.org) [z](#z)\n"
        "[scores](leaderboard/digits.tidy.csv) [code](source/methods-lsh.py.md)\n```\n[a](docs/b.md)\n```\n"
    )
    assert files == {"leaderboard/digits.tidy.csv", "methods/lsh.py"}


def test_a_link_that_leads_nowhere_is_refused_with_its_page():
    with pytest.raises(ValueError, match=r"^docs/a\.md: the link to b\.md leads to no file$"):
        links.rewritten("[b](b.md)", "docs/a.md", "a.md", ROOT, {})


def test_every_link_of_every_page_has_a_target(pages, files):
    """As Sphinx's own check, without Sphinx: pages, files, pictures and headings."""
    headings = {
        page: {
            re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            for title in re.findall(r"^#+ (.+?)\s*$", links.outside_code(text, str), re.MULTILINE)
        }
        for page, text in pages.items()
    }
    broken, seen = [], 0
    for page, text in pages.items():
        if page.startswith(links.SOURCES):
            continue
        plain = re.sub(r"^([ \t]*)(`{3,}).*?^\1\2", "", text, flags=re.DOTALL | re.MULTILINE)
        for link in re.findall(r"\]\(([^)\s]+)\)", plain):
            seen += 1
            target, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            place = os.path.normpath(os.path.join(os.path.dirname(page), target)) if target else page  # noqa: PTH118, PTH120
            found = place in pages or place in files or (ROOT / "docs" / place).is_file()
            if not found or (anchor and anchor not in headings[place]):
                broken.append(f"{page}: {link}")
    assert broken == [] and seen > 500


# -- the navigation --------------------------------------------------------------------------------------


def test_every_page_stands_in_one_tree_only(pages):
    listed = ["index.md"]
    for page, text in pages.items():
        for tree in re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            entries = [line for line in tree.splitlines() if line and not line.startswith(":")]
            for entry in entries:
                target = re.sub(r"^.*<(.*)>$", r"\1", entry)
                listed.append(os.path.normpath(os.path.join(os.path.dirname(page), target)))  # noqa: PTH118, PTH120
    assert sorted(listed) == sorted(page for page in pages if not page.startswith(links.SOURCES))


def test_every_page_of_a_section_is_described(pages):
    for page, (_, _, listed) in navigation.SECTIONS.items():
        lines = re.findall(r"^- \[[^\]]+\]\(([^)]+)\)(?:: \S)", pages[page], re.MULTILINE)
        assert set(listed) <= set(lines), page
        assert len(lines) == len(re.findall(r"^- ", pages[page], re.MULTILINE)), page


def test_a_new_page_of_docs_stands_in_the_first_section():
    texts = {one: "# Title\n" for _, _, listed in navigation.SECTIONS.values() for one in listed}
    made = navigation.section_pages(texts | {"new.md": "# New\n"})
    first, *others = made.values()
    assert "- [New](new.md)\n" in first and "\nnew.md\n" in first
    assert not any("new.md" in text for text in others)


def test_a_page_in_a_folder_stands_below_the_page_of_its_name():
    texts = {one: "# Title\n" for _, _, listed in navigation.SECTIONS.values() for one in listed}
    texts |= dict.fromkeys(("results/new.md", "development/new.md", "elsewhere/new.md"), "# New\n")
    trees = navigation.of_folders(texts)
    assert {page: tree.count(".md") for page, tree in trees.items()} == {"results.md": 1, "development.md": 1}
    assert "\nresults/new.md\n" in trees["results.md"]
    first, *others = navigation.section_pages(texts).values()
    assert "(elsewhere/new.md)" in first and "results/new.md" not in first + "".join(others)


# -- methods ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_method_has_a_page_with_all_of_its_parts(name, pages):
    about, page = CATALOGUE[name], pages[f"methods/{name}.md"]
    assert page.startswith(f"# {about.title}\n")
    assert all(section(page, part) for part in PARTS)
    assert about.paper in section(page, "Paper")
    assert re.search(r"\d{4}", section(page, "Paper")), "the year of the paper"
    formula = re.search(r"^\$\$.+?\$\$$", section(page, "Formula"), re.DOTALL | re.MULTILINE)
    assert formula and formula[0].count("{") == formula[0].count("}"), "no formula"
    assert "$$" in about.description, "the formula belongs into the docstring of the class"


@pytest.mark.parametrize("name", CATALOGUE)
def test_hyperparameters_have_the_defaults_of_the_class(name, pages):
    method = load_class(name)()
    rows = re.findall(r"^\| `(\w+)` \| `.+?` \| `(.+?)` \|", pages[f"methods/{name}.md"], re.MULTILINE)
    for parameter, default in rows:
        assert str(getattr(method, parameter)).strip("'") == default.strip("'"), parameter
    own = set(vars(type(method)).get("__annotations__", ())) - {"bits", "seed"}
    assert own <= {parameter for parameter, _ in rows}


def scores_of(protocol, method):
    with (ROOT / "leaderboard" / f"{protocol}.tidy.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] == "ap" and row["protocol"] == protocol]
    return [row for row in rows if row["method"] == method], rows


@pytest.mark.parametrize("protocol", ["cifar10_features", "digits", "cifar10_unseen"])
@pytest.mark.parametrize("name", ["talr_ap", "itq", "onehot", "adsh"])
def test_rows_of_the_leaderboard_are_those_of_its_files(name, protocol, pages):
    page = section(pages[f"methods/{name}.md"], "Leaderboard")
    shown = re.findall(
        rf"^\| \[[^\]]+\]\(\.\./leaderboards/{protocol}\.md\) "
        rf'\| <a href="\.\./leaderboards/{protocol}\.html#{name}">{re.escape(CATALOGUE[name].title)}</a> '
        r"\| (\d+) \| "
        r"([\d.]+)[^|]*\|[^|]*\|[^|]*\| (\S+)",
        page,
        re.MULTILINE,
    )
    own, every = scores_of(protocol, name)
    assert [(bits, f"{float(mean):.3f}") for bits, mean, _ in shown] == [
        (row["bits"], f"{float(row['mean']):.3f}") for row in sorted(own, key=lambda row: int(row["bits"]))
    ]
    outside = {"uncoded", "onehot", "classifier_codes"}
    if "unseen" not in protocol:  # there, ADSH has no more labels than others
        outside |= {"adsh", "adsh_symmetric"}
    for bits, mean, place in shown:
        others = [float(r["mean"]) for r in every if r["bits"] == bits and r["method"] not in outside]
        above = [
            other for other in others if other > next(float(r["mean"]) for r in own if r["bits"] == bits)
        ]
        assert place == ("–" if name in outside else str(len(above) + 1)), mean


def test_rows_of_differences_go_to_the_methods_that_they_name():
    text = (
        "## Objectives of `talr_ap`\n\n| here | paper | effect |\n|---|---|---|\n| a | b | c |\n\n"
        "## Others\n\n| here | paper | effect |\n|---|---|---|\n| x | y | z |\n\n"
        "| method | here | paper | effect |\n|---|---|---|---|\n"
        "| `talr_*`, `itq` | d | e | f |\n| | g | h | i |\n| `lsh` | j | k \\| k | [l](m.md#n) |\n"
    )
    assert method_pages.differences(text, ["talr_ap", "itq", "lsh"]) == {
        "talr_ap": [("a", "b", "c"), ("d", "e", "f"), ("g", "h", "i")],
        "itq": [("d", "e", "f"), ("g", "h", "i")],
        "lsh": [("j", "k \\| k", "[l](../m.md#n)")],
    }


def test_every_row_of_differences_that_names_a_method_is_on_its_page(pages):
    text = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| ([^|]+) \|", text, re.MULTILINE)
    pairs = [(name, here) for named, here in rows for name in re.findall(r"\w+", named) if name in CATALOGUE]
    assert len(pairs) > 40
    assert [pair for pair in pairs if f"| {pair[1]} |" not in pages[f"methods/{pair[0]}.md"]] == []


# -- the reference ---------------------------------------------------------------------------------------


def described(module, pages):
    """Name -> signature of every function, class and method on the page of a module."""
    page, found, owner = pages[f"api/{module}.md"], {}, ""
    for fence, kind, signature in re.findall(r"^(`+)\{py:(\w+)\} (.+)$", page, re.MULTILINE):
        name = re.match(r"\w+", signature)[0]
        owner = name if len(fence) == 7 else owner
        found[f"{owner}.{name}" if kind in ("method", "property") else name] = signature
    return found


@pytest.mark.parametrize("module", [*api_pages.modules(ROOT), *api_pages.BASES])
def test_the_reference_has_every_public_object_with_its_real_signature(module, pages):
    found, code = described(module, pages), importlib.import_module(module)
    public = {
        name: value
        for name, value in vars(code).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module
        and (inspect.isfunction(value) or inspect.isclass(value))
    }  # fmt: skip
    assert public.keys() <= found.keys()
    functions = {name: value for name, value in public.items() if inspect.isfunction(value)}
    for name, value in public.items():
        if inspect.isclass(value):
            own = {key: method for key, method in vars(value).items() if inspect.isfunction(method)}
            functions |= {f"{name}.{key}": m for key, m in own.items() if m.__qualname__ == f"{name}.{key}"}
    compared = 0
    for name, value in functions.items():
        if name.rpartition(".")[2].startswith("_"):
            continue
        shown = ast.parse(f"def {found[name]}: pass").body[0].args  # the page's own text
        real = list(inspect.signature(value).parameters.values())[("." in name) :]
        wanted = [(one.name, KINDS.get(one.kind, "")) for one in real]
        given = [(one.arg, "") for one in (*shown.posonlyargs, *shown.args)]
        given += [(shown.vararg.arg, "*")] if shown.vararg else []
        given += [(one.arg, "keyword") for one in shown.kwonlyargs]
        given += [(shown.kwarg.arg, "**")] if shown.kwarg else []
        assert given == wanted, name
        defaults = [*shown.defaults, *(one for one in shown.kw_defaults if one is not None)]
        assert len(defaults) == sum(one.default is not one.empty for one in real), name
        compared += 1
    assert compared == len([name for name in functions if not name.rpartition(".")[2].startswith("_")])


def test_the_reference_shows_the_examples_that_are_run(pages):
    assert "```pycon\n>>> import tiebench\n" in pages["api/tiebench.scoring.md"]


def test_every_command_has_its_help(pages):
    page = pages[api_pages.COMMANDS]
    for name in ("score", "score-run", "compare", "check-split", "health", "lookup", "metrics"):
        assert f"## tiebench {name}\n" in page and f"usage: tiebench {name}" in page


# -- links to the code -----------------------------------------------------------------------------------


def test_links_to_the_code_have_the_lines_that_python_reports():
    resolve = source_links.resolver("https://example.org/blob/main/")
    for module, name in (
        ("tiebench.scoring", "score"),
        ("tiebench.training", "TieAwareRetrieval.update"),
        ("methods.base", "HashingMethod"),
    ):
        value = importlib.import_module(module)
        for part in name.split("."):
            value = getattr(value, part)
        value = inspect.unwrap(value)
        lines, first = inspect.getsourcelines(value)
        first += next(place for place, line in enumerate(lines) if not line.lstrip().startswith("@"))
        file = Path(inspect.getsourcefile(value)).relative_to(ROOT)
        assert (
            resolve("py", {"module": module, "fullname": name})
            == f"https://example.org/blob/main/{file}#L{first}"
        )


def test_there_are_no_links_to_the_code_without_its_address():
    assert source_links.resolver("")("py", {"module": "tiebench.scoring", "fullname": "score"}) is None


def test_an_object_that_the_code_does_not_have_fails():
    with pytest.raises(KeyError):
        source_links.resolver("https://example.org")("py", {"module": "tiebench.scoring", "fullname": "scor"})
