"""The packages and their layers: which may import which, and what no file may contain."""

import ast
import importlib
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import yaml
from files import mappings

from tiebench.discovery import imported_from

ROOT = Path(__file__).parents[1]
PACKAGES = ("tiebench", "datasets", "networks", "methods", "reporting", "workflow", "benchmarks")
MAY_IMPORT = {
    "tiebench": {"tiebench"},
    "datasets": {"datasets", "tiebench"},
    "networks": {"networks", "datasets", "tiebench"},
    "methods": {"methods", "datasets", "networks", "tiebench"},
    "reporting": {"reporting", "tiebench"},
    "workflow": {"workflow", "reporting", "methods", "datasets", "networks", "tiebench"},
    "benchmarks": {"benchmarks", "workflow", "reporting", "methods", "datasets", "networks", "tiebench"},
}


# What few modules of the library import.
ONLY_IN = {
    "torch": {"tiebench.losses.relaxed", "tiebench.counting.on_device", "tiebench.training"},
    "matplotlib": {"tiebench.figure_style", "tiebench.forest"},
}


def modules():
    """Module name -> path of every Python file of the packages."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


@cache
def source(name):
    """Syntax tree of a module."""
    return ast.parse(MODULES[name].read_text(encoding="utf-8"), str(MODULES[name]))


def imports(name, tree, top_level=False, types=True):
    """Dotted names that a module imports, anywhere in it (or outside functions only; or without types)."""
    package = name if (ROOT / name.replace(".", "/") / "__init__.py").is_file() else name.rpartition(".")[0]
    pending, found = [tree], set()
    while pending:
        node = pending.pop()
        if top_level and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if not types and isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        pending += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = imported_from(node, package)
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module" and node.args:
            words = [part.value for part in ast.walk(node.args[0]) if isinstance(part, ast.Constant)]
            if words and isinstance(words[0], str):
                found.add(words[0].rstrip("."))
    return found


def test_a_package_imports_only_its_layer_and_those_below():
    imported = {name: {other.split(".")[0] for other in imports(name, source(name))} for name in MODULES}
    above = {
        name: others & (set(PACKAGES) | {"tests"}) - MAY_IMPORT[name.split(".")[0]]
        for name, others in imported.items()
    }
    assert {name: others for name, others in above.items() if others} == {}
    for package, where in ONLY_IN.items():
        of_library = {name for name in MODULES if name.startswith("tiebench")}
        assert {name for name in of_library if package in imported[name]} == where


def test_no_method_imports_another():
    for name in (name for name in MODULES if name.startswith("methods.")):
        of_methods = {
            other.split(".")[1] for other in imports(name, source(name)) if other.startswith("methods.")
        }
        # What methods share names none either: methods are found, not listed.
        assert not (of_methods - {*name.split(".")[1:2]}) & names_of("methods"), name


APPLICABLE = """
from reporting import figures
from reporting.tables.model import Table
blocks = [{"protocol": "p", "metric": "ap", "bits": [8]}]
table = Table.from_json({"table": {"name": "x", "methods": ["a"], "seeds": [0], "blocks": blocks}})
assert figures.applicable(table)
"""


@pytest.mark.parametrize(
    ("program", "slow"),
    [
        ("import tiebench.scoring, tiebench.__main__", {"torch", "pandas", "matplotlib"}),
        ("import tiebench.metrics", {"numba"}),
        ("import workflow.configuration.merged", {"torch", "pandas", "matplotlib"}),
        ("import reporting.tables.model", {"numpy"}),
        (APPLICABLE, {"matplotlib", "pandas", "scipy"}),
    ],
    ids=["scoring", "metrics", "configuration", "tables", "applicable figures"],
)
def test_what_is_often_loaded_loads_nothing_that_is_slow(program, slow):
    command = [sys.executable, "-c", f"{program}\nimport sys; print(*sys.modules)"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert not slow & set(done.stdout.split())


def strings(tree):
    """All string constants of a module."""
    return {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def names_of(place):
    """What is found by itself: the stems of the files of a folder, or the entries of a file of settings."""
    if place.endswith(".yaml"):
        return set(yaml.safe_load((ROOT / place).read_text(encoding="utf-8")))
    return {path.stem for path in (ROOT / place).glob("[a-z]*.py")}


# Adding one thing touches one place: packages that would need an edit if they named what is found by itself.
UNNAMED = [
    ("methods", ("tiebench", "datasets", "networks", "reporting", "workflow", "methods.")),
    ("datasets/splits", ("tiebench", "networks", "methods", "reporting", "workflow")),
    ("datasets/affinity", ("tiebench", "networks", "methods", "reporting", "workflow")),
    ("config/protocols.yaml", ("tiebench", "networks", "methods", "reporting", "workflow")),
]


@pytest.mark.parametrize(("place", "packages"), UNNAMED, ids=[place for place, _ in UNNAMED])
def test_no_module_names_what_is_found_by_itself(place, packages):
    names = names_of(place) - {"random", "neighbours"}  # words of many meanings
    assert len(names) >= 3
    listing = {
        name: sorted(strings(source(name)) & names)
        for name in MODULES
        if name.startswith(packages) and not (name.startswith("methods.") and name.split(".")[1] in names)
    }
    assert {name: found for name, found in listing.items() if found} == {}


def modules_of(name, **options):
    """Modules of this project that a module imports, and no packages of which it imports a module."""
    found = {other for other in imports(name, source(name), **options) if other in MODULES and other != name}
    return {other for other in found if not any(one.startswith(f"{other}.") for one in found)}


def test_there_is_no_circle_of_files():
    assert "tiebench.counting.histograms" in imports("tiebench.scoring", source("tiebench.scoring"))
    graph = {
        name: {
            other
            for other in imports(name, source(name), top_level=True)
            if other in MODULES and other != name
        }
        for name in MODULES
    }
    assert set(TopologicalSorter(graph).static_order()) == set(MODULES)  # which fails with a circle


def folder_of(name):
    """The folder of a package that holds a module; a file of the package itself stands alone."""
    package, _, rest = name.partition(".")
    first = rest.split(".")[0]
    return f"{package}/{first}/" if (ROOT / package / first).is_dir() and rest else name


def test_there_is_no_circle_of_folders():
    """Imports inside of functions count, too: a folder is understood from those below it alone."""
    graph = {folder_of(name): set() for name in MODULES}
    for name in MODULES:
        below = {folder_of(other) for other in modules_of(name, types=False)}
        graph[folder_of(name)] |= below - {folder_of(name)}
    assert len([folder for folder in graph if folder.endswith("/")]) > 20
    assert set(TopologicalSorter(graph).static_order()) == set(graph)


def project_files():
    """Files of the packages, the tests and the top level, without those that runs create."""
    tops = [ROOT / top for top in (*PACKAGES, "tests", "config", "docs", "profiles")]
    found = [path for top in tops for path in top.rglob("*") if path.is_file()]
    return [
        path
        for path in [*found, *ROOT.glob("*")]
        if path.is_file() and not {"__pycache__", ".snakemake"} & set(path.parts)
    ]


def test_no_module_is_a_collection_of_unrelated_things():
    vague = {"utils", "util", "common", "misc", "helpers", "helper", "tools", "shared"}
    found = {
        str(path.relative_to(ROOT))
        for path in project_files()
        if path.stem.lower() in vague or vague & {part.lower() for part in path.relative_to(ROOT).parts}
    }
    assert found == {"workflow/rules/common.smk"}


def unsafe_loading(tree):
    """Calls in a source that could run code from a file, of those that the linter's rules do not know."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        last = getattr(node.func, "attr", "")
        named = {part.arg for part in node.keywords}
        if last not in ("load", "to_pickle") and named.isdisjoint({"allow_pickle", None}):
            continue
        called = ast.unparse(node.func)
        options = {part.arg: ast.unparse(part.value) for part in node.keywords}
        wrong = last == "to_pickle"
        wrong |= options.get("allow_pickle", "False") != "False" or "allow_pickle" in options.get(None, "")
        wrong |= called == "torch.load" and options.get("weights_only") != "True"
        wrong |= called in ("np.load", "numpy.load") and len(node.args) > 2
        found += [f"{called}, line {node.lineno}"] if wrong else []
    return found


PLANTED = [
    *("np.load(f, allow_pickle=True)", "np.load(f, None, True)", "np.load(f, allow_pickle=trusted)"),
    *("torch.load(f)", "torch.load(f, weights_only=False)", "torch.load(f,\n  map_location='cpu')"),
    *("frame.to_pickle(f)", "np.load(f, **{'allow_pickle': True})"),
    "np.lib.format.read_array(f, allow_pickle=True)",
]
HARMLESS = [
    *("np.load(f)", "np.load(f, mmap_mode='r', allow_pickle=False)", "json.load(f)", "method.load(f)"),
    "torch.load(f, map_location='cpu',\n  weights_only=True)",
]


def test_the_search_for_unsafe_loading_finds_every_form():
    assert [text for text in PLANTED if not unsafe_loading(ast.parse(text))] == []
    assert [text for text in HARMLESS if unsafe_loading(ast.parse(text))] == []


def test_nothing_loads_a_pickle():
    """Beside what the linter refuses, see pyproject.toml. Tests may write such files."""
    own = Path(__file__).resolve()
    places = [path for path in project_files() if path.suffix == ".py" and path != own]
    assert len(places) > 100
    found = {
        str(path.relative_to(ROOT)): unsafe_loading(ast.parse(path.read_text(encoding="utf-8")))
        for path in places
    }
    assert {path: hits for path, hits in found.items() if hits} == {}
    rules = [path for path in project_files() if path.suffix == ".smk" or path.name == "Snakefile"]
    unsafe = re.compile(r"pickle|joblib|torch\.load|\beval\(|\bexec\(|yaml\.\w*load")
    assert {path.name: unsafe.findall(path.read_text(encoding="utf-8")) for path in rules} == {
        path.name: [] for path in rules
    }


@pytest.mark.parametrize("module", ["workflow.configuration.yaml_reader", "reporting.leaderboard.settings"])
def test_yaml_is_read_by_a_safe_loader(module):
    safe = yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    assert issubclass(importlib.import_module(module)._Loader, safe)


# What reads text: `tiebench.texts` what users give, and these the project's own files and text that
# has no words or numbers of users in it. A new reader of users' text belongs into `tiebench.texts`.
TEXT_READERS = {
    "read_text",
    "splitlines",
    "readline",
    "readlines",
    "loadtxt",
    "genfromtxt",
    "read_csv",
    "DictReader",
}
OWN_TEXT = {
    "tiebench.files": "JSON that the suite wrote",
    "tiebench.leaderboards": "published files, whose sums are compared",
    "datasets.loaders.digits": "a file inside scikit-learn",
    "datasets.loaders.mirflickr": "tags, compared as bytes: nothing states their encoding",
    "networks.backbones.sentence_transformers": "lines of the process that it starts",
    "networks.base.features": "progress that the suite wrote",
    "networks.torchvision": "the message of an error",
    "reporting": "results that the suite wrote, assets, source code",
    "workflow.documentation": "pages and source code of the project",
    "workflow.environment": "lock files of the project",
    "workflow.scripts": "job files that the suite wrote, /proc",
    "workflow.tuning.search": "trials that the suite wrote",
    "benchmarks": "runs and output of its own",
}


def text_readers(tree):
    """Calls of a module that open or split text by themselves."""
    called = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    found = {ast.unparse(node.func) for node in called}
    modes = [
        [
            one.value
            for one in (*node.args, *(part.value for part in node.keywords))
            if isinstance(one, ast.Constant)
        ]
        for node in called
        if ast.unparse(node.func) in ("open", "io.open", "codecs.open", "gzip.open", "Path.open")
    ]
    opened = any(not any(isinstance(one, str) and "b" in one for one in mode) for mode in modes)
    return sorted(name for name in found if name.split(".")[-1] in TEXT_READERS) + ["open"] * opened


def test_only_one_module_opens_and_splits_text_of_users():
    assert text_readers(ast.parse("open(f)\nopen(g, 'rb')\npath.read_text()\ncsv.DictReader(f)")) == [
        *("csv.DictReader", "path.read_text", "open")
    ]
    assert text_readers(ast.parse("open(f, 'rb')\ntexts.read(f).lines()")) == []
    readers = {name for name in MODULES if text_readers(source(name))} - {"tiebench.texts"}
    listed = {name: [one for one in OWN_TEXT if f"{name}.".startswith(f"{one}.")] for name in readers}
    assert [name for name, entries in listed.items() if not entries] == []
    assert {one for entries in listed.values() for one in entries} == set(OWN_TEXT)  # none is out of date


# Files without a known checksum: plain http is not trusted, so users fetch them by hand (`mirrors`).
NOT_DOWNLOADED = {"LabelMe_gist.mat", "nus-wide/ImageList.zip"}


def test_every_url_of_the_configuration_is_https_or_has_a_checksum():
    """For every source of a file, anywhere in config/."""
    from workflow.configuration.source_checks import mirrors

    seen, by_hand = 0, set()
    settings = [yaml.safe_load(path.read_text("utf-8")) for path in (ROOT / "config").rglob("*.yaml")]
    for part in mappings(settings):
        for url in part.get("urls", ()):
            seen += 1
            # A second file with a given MD5 sum cannot be constructed.
            if not (url.startswith("https://") or part.get("sha256") or part.get("md5")):
                assert url not in mirrors(part)
                by_hand.add(part["file"])
    assert seen > 3
    assert by_hand == NOT_DOWNLOADED


def test_tests_have_no_packages_and_unique_names():
    tests = sorted((ROOT / "tests").rglob("*.py"))
    assert not [path for path in tests if path.name == "__init__.py"]
    names = [path.name for path in tests if path.name != "conftest.py"]
    assert len(names) == len(set(names))


def test_every_rule_has_its_adapter_and_every_adapter_its_rule():
    scripts = {path.stem for path in (ROOT / "workflow" / "scripts").glob("[!_]*.py")}
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "workflow" / "rules").glob("*.smk"))
    assert set(re.findall(r"python -m workflow\.scripts\.(\w+)", text)) == scripts
    for script in scripts:
        tree = source(f"workflow.scripts.{script}")
        assert f"_job.parser('{script}')" in ast.unparse(tree)


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "results/README.md", "docs"]
)
def test_links_of_the_documentation_exist(page):
    pages = list((ROOT / "docs").rglob("*.md")) if page == "docs" else [ROOT / page]
    pages = [path for path in pages if path.is_file()]
    assert pages, f"there is no {page}"
    broken = []
    for path in pages:
        text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        links = re.findall(r"\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)", text) + re.findall(
            r"(?:src|href)=\"([^\"]+)\"", text
        )
        for link in links:
            target, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            place = path if not target else path.parent / target
            if not place.exists():
                broken.append(f"{path.name}: {link}")
            elif anchor and place.suffix == ".md" and anchor not in anchors(place):
                broken.append(f"{path.name}: {link} (no such heading)")
    assert broken == []


def anchors(path):
    """Anchors that GitHub gives to the headings of a page."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#{1,6}\s+(.+?)\s*$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
