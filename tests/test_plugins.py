"""What is found by itself, of every kind: found by its file, states what it must, refused in one line."""

import importlib
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import networks
from datasets import affinity, loaders, splits
from methods.base import catalogue
from networks import backbones
from reporting import figures
from tests.tiebench.refusals import refused
from tiebench import commands
from tiebench.discovery import ROOT, Kind

KINDS = {
    kind.what: kind
    for kind in (
        *(catalogue.KIND, networks.KIND, figures.KIND, affinity.KIND, splits.KIND, loaders.KIND),
        *(backbones.KIND, commands.KIND),
    )
}
PLUGINS = {(what, name): found for what, kind in KINDS.items() for name, found in kind.find().items()}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
every_plugin = pytest.mark.parametrize("plugin", PLUGINS.values(), ids=map("-".join, PLUGINS))


@every_kind
def test_files_without_a_leading_underscore_are_found_in_order(kind):
    found = kind.find()
    stems = {path.stem for path in kind.folder.glob("*.py") if path.stem[0] != "_"}
    assert {plugin.path.stem for plugin in found.values()} == stems and len(stems) > 3
    assert list(found) == sorted(found)
    assert all(plugin.name == name and kind.named(name).path == plugin.path for name, plugin in found.items())


@every_plugin
def test_what_is_read_from_the_source_is_what_the_file_has(plugin):
    made, of_class = plugin.load(), plugin.kind.base is not None
    for name, value in vars(plugin.said).items():
        expected = plugin.kind.says[name]
        default = {} if isinstance(expected, type) else {"default": expected}
        written = name if of_class else name.upper()
        assert getattr(made, written, *default.values()) == value, name
    assert all(callable(getattr(made, name)) for name in plugin.kind.defines)
    assert plugin.summary and made.__module__ == plugin.module if of_class else made.__name__ == plugin.module
    assert plugin.summary == (importlib.import_module(plugin.module).__doc__ or "").strip().split("\n")[0]


@every_plugin
def test_keys_and_options_are_described_and_labels_are_known(plugin):
    for said in ("needs", "options"):
        texts = getattr(plugin.said, said, {})
        assert isinstance(texts, tuple) or all(isinstance(text, str) and text for text in texts.values())
    labels = getattr(plugin.said, "labels", ("none",))
    assert labels and set(labels) <= {"classes", "multi-hot", "none"}


@every_kind
def test_a_wrong_name_is_one_line_with_the_nearest(kind):
    name = max(kind.find(), key=len)
    for wrong in (name[:-2] + name[-1], name.upper()[:1] + name[1:], "", 3, ["x"], None):
        with refused(name, pattern=f"^there is no {kind.what} {re.escape(repr(wrong))}; "):
            kind.named(wrong)
    with refused(f"did you mean '{name}'"):
        kind.named(name[:-2] + name[-1])


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """Function of a kind and a text: the one plug-in of a folder, which can be imported."""

    def made(kind, text):
        (tmp_path / "broken_.py").write_bytes(text if isinstance(text, bytes) else text.encode())
        (tmp_path / "_helper.py").write_text("raise RuntimeError('never read')\n")
        package = importlib.import_module(kind.package)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
        [plugin] = replace(kind, folder=tmp_path).find().values()
        assert plugin.name == "broken"
        return plugin

    yield made
    for kind in KINDS.values():
        sys.modules.pop(f"{kind.package}.broken_", None)


@every_kind
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(:\n", ", line 1: "),
        (b"\xff\xfe\x00class", "broken_.py"),
        ("", ": must define "),
        ("class Other: ...\n", ": must define "),
    ],
)
def test_a_file_that_is_wrong_is_named_in_one_line(kind, text, message, broken, tmp_path):
    with refused(message, pattern=f"^{tmp_path}/broken_.py"):
        broken(kind, text).said  # noqa: B018


@every_kind
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nowhere\n", ", line 1: cannot be imported: ModuleNotFoundError: No module named 'nowhere'"),
        ("import sys; sys.exit(3)\n", ": cannot be imported: it calls sys.exit.3."),
        ("raise KeyError('a\\nb')\n", ", line 1: cannot be imported: KeyError: "),
    ],
)
def test_a_file_that_cannot_be_imported_is_named_in_one_line(kind, text, message, broken, tmp_path):
    with refused(pattern=f"^{tmp_path}/broken_.py{message}"):
        broken(kind, text).load()


@every_kind
def test_a_file_named_as_a_folder_is_not_taken_for_it(kind, broken, tmp_path):
    plugin = broken(kind, "")
    (tmp_path / "broken_").mkdir()
    with pytest.raises(ValueError, match=r"broken_\.py: cannot be imported: a folder has the same name$"):
        plugin.load()


SAYS = {"options": dict, "labels": tuple, "unseen": False, "named": None}
MODULE = "OPTIONS, LABELS = {'a': 'b'}, ['none']\nUNSEEN: bool = True\ndef load(): ...\n"
CLASS = (
    "from methods.base import deep\n"
    "class _Half(deep.DeepHashing):\n    options = {'a': 'b'}\n    unseen = computed()\n    size: int = 3\n"
    "class Whole(_Half):\n    labels = ('none',)\n    unseen = True\n"
)


def test_constants_of_a_file_and_attributes_of_a_class_say_the_same(broken):
    kind = Kind("thing", "datasets", Path(), SAYS, ("load",))
    said = vars(broken(kind, MODULE).said)
    assert said == {"options": {"a": "b"}, "labels": ["none"], "unseen": True, "named": None}
    found = broken(Kind("thing", "datasets", Path(), SAYS, base="HashingMethod"), CLASS)
    assert vars(found.said) == said | {"labels": ("none",)}
    assert list(found.classes) == ["Whole", "_Half", "DeepHashing", "HashingMethod"]
    assert found.classes["_Half"].fields == {"size": "int"}


def test_a_base_may_be_imported_from_the_package_of_the_file(broken):
    kind = Kind("thing", "methods", Path(), SAYS, base="HashingMethod")
    text = "from .base.deep import DeepHashing\n" + CLASS.partition("\n")[2].replace("deep.", "")
    assert list(broken(kind, text).classes) == ["Whole", "_Half", "DeepHashing", "HashingMethod"]


def test_a_class_that_takes_the_name_of_the_class_it_is_derived_from_is_refused(broken):
    kind = Kind("thing", "datasets", Path(), SAYS, base="HashingMethod")
    with pytest.raises(ValueError, match="LSH has the name of one of its bases"):
        broken(kind, "from methods.lsh import LSH\nclass LSH(LSH): ...\n").said  # noqa: B018


@pytest.mark.parametrize(
    ("base", "change", "message"),
    [
        (None, ("OPTIONS, LABELS = {'a': 'b'},", "LABELS ="), "must define options, as each thing"),
        (None, ("def load", "def loads"), "must define load, as each thing"),
        (None, ("{'a': 'b'}", "dict()"), "OPTIONS must be a literal"),
        (None, ("{'a': 'b'}", "3"), "OPTIONS must be a dictionary, not 3"),
        (None, ("= True", "= 1"), "UNSEEN must be True or False, not 1"),
        ("HashingMethod", ("unseen = True", "labelled = 1"), "unseen must be a literal"),
        ("HashingMethod", ("('none',)", "3"), "labels must be a tuple, not 3"),
        ("HashingMethod", ("unseen = True", "unseen: bool = True"), "unseen must be a plain class attribute"),
        (
            "HashingMethod",
            ("Whole", "_Whole"),
            "must define one class derived from HashingMethod, found: none",
        ),
        ("HashingMethod", ("_Half", "Half"), "found: Half, Whole"),
        ("HashingMethod", ("Whole", "DeepHashing"), "DeepHashing has the name of one of its bases"),
        ("ImageNetwork", ("", ""), "must define one class derived from ImageNetwork, found: none"),
    ],
)
def test_what_is_wrong_is_said(base, change, message, broken):
    kind = Kind("thing", "datasets", Path(), SAYS, () if base else ("load",), base)
    with refused(pattern=f"(?i){message}"):
        broken(kind, (CLASS if base else MODULE).replace(*change)).said  # noqa: B018


def test_finding_and_reading_imports_no_plug_in_and_nothing_that_is_slow():
    program = (
        "import sys\nsys.path.insert(0, 'tests')\nfrom test_plugins import PLUGINS\n"
        "modules = [plugin.module for plugin in PLUGINS.values() if plugin.said and plugin.summary]\n"
        "slow = ['torch', 'matplotlib', 'scipy', 'PIL', 'numba', 'pandas', 'sklearn', 'snakemake']\n"
        "print([name for name in [*modules, *slow] if name in sys.modules], len(modules) > 60)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "[] True", done.stderr
