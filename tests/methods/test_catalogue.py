"""The catalogue: metadata of methods, and errors in their files."""

import pytest

from methods.base.catalogue import catalogue

GOOD = '''"""Good: a method. Somebody. Something. 2020."""

from dataclasses import dataclass

from methods.base import HashingMethod


@dataclass(kw_only=True)
class Good(HashingMethod):
    supervision = "none"
    family = "unsupervised"

    strength: float = 1.0
'''

FULL = GOOD.replace(
    '    supervision = "none"',
    """    title = "Good-2"
    paper = "https://example.org/good"
    colour = "#12aBef"
    marker = "P"
    sees = "database labels"
    space = {"strength": [0.1, 1.0], "seed": [1, 2]}
    supervision = "none\"""",
)

DEEP = '''"""Deep: a method. 2021."""

from dataclasses import dataclass

from methods.base import deep


@dataclass(kw_only=True)
class _Half(deep.ListwiseHashing):
    margin: float = 0.5


@dataclass(kw_only=True)
class Deep(_Half):
    supervision = "graded"
    steepness: float = 2.0
    bins: int = 3
'''


@pytest.fixture
def write(tmp_path):
    def written(**files):
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        return tmp_path

    return written


def test_metadata_are_read_from_the_source(write):
    metadata = catalogue(write(good=FULL))["good"]
    assert metadata.title == "Good-2"
    assert metadata.paper == "https://example.org/good"
    assert (metadata.colour, metadata.marker) == ("#12aBef", "P")
    assert metadata.sees == "database labels"
    assert metadata.space == {"strength": [0.1, 1.0], "seed": [1, 2]}
    continuous = catalogue(write(good=FULL.replace("[0.1, 1.0]", '{"log_uniform": [0.1, 1]}')))["good"]
    assert continuous.space == {"strength": {"log_uniform": [0.1, 1]}, "seed": [1, 2]}


def test_metadata_that_a_class_does_not_give_are_those_of_the_base_class(write):
    metadata = catalogue(write(good=GOOD))["good"]
    assert metadata.title == "good"
    assert metadata.summary == "Good: a method. Somebody. Something. 2020."
    assert tuple(metadata.parameters) == ("bits", "seed", "strength")
    assert (metadata.paper, metadata.colour, metadata.marker) == (None, None, None)
    assert metadata.space == {} and metadata.spaces == [{}]
    assert metadata.sees == "training set"


def test_a_trainer_replaces_values_of_the_space_and_the_space_those_that_are_common(write):
    spaces = """    common_space = {"strength": [5.0, 6.0], "bits": [1, 2]}
    trainers = [{}, {"seed": [9]}, {"seed": [2], "bits": [1]}]
    supervision"""
    metadata = catalogue(write(good=FULL.replace("    supervision", spaces)))["good"]
    assert metadata.spaces == [
        {"strength": [0.1, 1.0], "bits": [1, 2], "seed": [1, 2]},
        {"strength": [0.1, 1.0], "bits": [1, 2], "seed": [9]},
        {"strength": [0.1, 1.0], "bits": [1], "seed": [1, 2]},  # 2 is among the method's own
    ]


def test_metadata_are_inherited_the_nearer_class_first(write):
    text = FULL.replace("class Good(HashingMethod)", "class _Base(HashingMethod)")
    text += """

class _Other:
    title = "Other"
    colour = "#000000"


class Good(_Base, _Other):
    colour = "#ABCDEF"
"""
    metadata = catalogue(write(good=text))["good"]
    assert (metadata.title, metadata.colour) == ("Good-2", "#ABCDEF")


@pytest.mark.parametrize("name", ["MyMethod", "my-method"])
def test_a_file_whose_name_no_table_could_have_is_refused(write, name):
    with pytest.raises(
        ValueError, match=f"{name}.py: the file of a method must have a name of a-z, 0-9 and _"
    ):
        catalogue(write(**{name: GOOD}))


def test_parameters_and_attributes_are_inherited(write):
    metadata = catalogue(write(deep=DEEP))["deep"]
    assert metadata.family == "listwise"
    assert metadata.supervision == "graded"
    inherited = set(catalogue()["talr_ap"].parameters) - {"simplified"}
    assert {"bits", "learning_rate", "tanh_scale", "delta"} < inherited
    assert set(metadata.parameters) == inherited | {"margin", "steepness"}


BAD = {
    "no class": ('"""Nothing. 2020."""\nx = 1\n', "must define one class derived from HashingMethod"),
    "no method": ("class Other:\n    pass\n", "found: none"),
    "two methods": (
        GOOD + "\n\nclass Better(Good):\n    pass\n",
        "must define one class derived from HashingMethod, found: Good, Better",
    ),
    "no dataclass": (
        GOOD.replace("@dataclass(kw_only=True)\n", ""),
        "Good must be decorated with @dataclass",
    ),
    "default without annotation": (
        GOOD.replace("    strength", "    bits = 8\n    strength"),
        "Good must annotate bits, as in `bits: int = ...`",
    ),
    "a constructor": (
        GOOD + "\n    def __init__(self, **settings):\n        pass\n",
        "Good must not define __init__: hyper-parameters are its fields",
    ),
    "one name where several stand": (
        GOOD.replace("    supervision", '    learned = "weights"\n    supervision'),
        "Good: learned must be a tuple of names, as ('weights',)",
    ),
    "supervision without a family": (
        GOOD.replace('supervision = "none"', 'supervision = "binary"'),
        "family must be given",
    ),
    "unknown supervision": (GOOD.replace('"none"', '"labelled"'), "supervision must be one of"),
    # Read from the source without importing it: a non-literal would be replaced by the inherited value.
    "supervision that is computed": (GOOD.replace('"none"', "str()"), "supervision"),
    "supervision with an annotation": (GOOD.replace("supervision =", "supervision: str ="), "supervision"),
    "space that is computed": (FULL.replace("[0.1, 1.0]", "list(range(3))"), "space must be a literal"),
    "title that is a number": (FULL.replace('"Good-2"', "2"), "title must be text, not 2"),
    "colour by name": (FULL.replace("#12aBef", "red"), "colour must be '#RRGGBB', not 'red'"),
    "unknown marker": (FULL.replace('"P"', '"@"'), "marker must be one of o s"),
    "space of an unknown hyper-parameter": (
        FULL.replace('"strength": [', '"strenght": ['),
        "unknown hyper-parameter 'strenght'; did you mean 'strength'?",
    ),
    "space of one value": (FULL.replace("[0.1, 1.0]", "0.1"), "strength must be a list of values, not 0.1"),
    "unknown hyper-parameter of a trainer": (
        FULL.replace("    supervision", '    trainers = [{"sed": [1]}]\n    supervision'),
        "trainers names an unknown hyper-parameter 'sed'",
    ),
    "no trainers": (FULL.replace("    supervision", "    trainers = []\n    supervision"), "list of spaces"),
    "continuous axis of another kind": (
        FULL.replace("[0.1, 1.0]", '{"uniform": [0.1, 1.0]}'),
        'strength must be {"log_uniform": [low, high]}, 0 < low < high',
    ),
    "continuous axis from 0": (FULL.replace("[0.1, 1.0]", '{"log_uniform": [0, 1.0]}'), "0 < low < high"),
    "empty list in space": (FULL.replace("[0.1, 1.0]", "[]"), "strength must be a list of values, not []"),
    "bounds of an unknown hyper-parameter": (
        FULL.replace("    supervision", '    bounds = {"strenght": "(0, inf)"}\n    supervision'),
        "bounds names an unknown hyper-parameter 'strenght'; did you mean 'strength'?",
    ),
    "bounds that are no interval": (
        FULL.replace("    supervision", '    bounds = {"strength": "> 0"}\n    supervision'),
        "strength must be an interval",
    ),
    "not Python": (GOOD.replace("class Good", "clas Good"), "line 9"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD.keys())
def test_a_bad_file_is_one_clear_line_that_names_it(write, text, message):
    folder = write(good=GOOD, bad=text)
    with pytest.raises(ValueError) as caught:
        catalogue(folder)
    line = str(caught.value)
    assert "\n" not in line
    assert str(folder / "bad.py") in line
    assert message in line
