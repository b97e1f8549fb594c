"""The catalogue: which files are methods, and what a bad one is told."""

import subprocess
import sys
from pathlib import Path

import pytest

from methods._catalogue import FOLDER, catalogue, load_class

GOOD = '''"""Good: a method. Somebody. Something. 2020."""

from dataclasses import dataclass

from methods.base import HashingMethod


@dataclass(kw_only=True)
class Good(HashingMethod):
    supervision = "none"
    family = "unsupervised"

    strength: float = 1.0
'''

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


def test_cards_are_found_by_file_name_and_underscores_are_helpers(write):
    folder = write(good=GOOD, _helper="nonsense = 1", __init__="", deep=DEEP)
    cards = catalogue(folder)
    assert list(cards) == ["deep", "good"]
    card = cards["good"]
    assert (card.name, card.path, card.supervision, card.family) == (
        "good",
        folder / "good.py",
        "none",
        "unsupervised",
    )
    assert card.summary == "Good: a method. Somebody. Something. 2020."
    assert tuple(card.parameters) == ("bits", "seed", "strength")


def test_parameters_and_attributes_are_inherited(write):
    card = catalogue(write(deep=DEEP))["deep"]
    assert card.family == "listwise"
    assert card.supervision == "graded"
    deep = ("bits", "seed", "learning_rate", "lr_gamma", "lr_step_size", "momentum")
    deep += (
        "weight_decay",
        "epochs",
        "batch_size",
        "tanh_scale",
        "tanh_scale_final",
        "backbone_lr_multiplier",
        "horizontal_flip",
    )
    deep += ("mixed_precision", "device", "bins", "delta")
    assert tuple(card.parameters) == (*deep, "margin", "steepness")


def test_an_empty_folder_has_no_methods(tmp_path):
    assert catalogue(tmp_path) == {}


BAD = {
    "no class": ('"""Nothing. 2020."""\nx = 1\n', "must define one class derived from HashingMethod"),
    "no method": ("class Other:\n    pass\n", "found: none"),
    "two methods": (
        GOOD + "\n\nclass Better(Good):\n    pass\n",
        "must define one class derived from HashingMethod, found: Good, Better",
    ),
    "unknown supervision": (GOOD.replace('"none"', '"labelled"'), "supervision must be one of"),
    # Read from the source without importing it: what is no literal would be taken for the inherited value.
    "supervision that is computed": (GOOD.replace('"none"', "str()"), "supervision"),
    "supervision with an annotation": (GOOD.replace("supervision =", "supervision: str ="), "supervision"),
    "unknown family": (GOOD.replace('"unsupervised"', '"triplets"'), "family must be one of"),
    "not Python": (GOOD.replace("class Good", "clas Good"), "line 9"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD.keys())
def test_a_bad_file_is_one_clear_line_that_names_it(write, text, message):
    folder = write(good=GOOD, bad=text)
    with pytest.raises(ValueError) as told:
        catalogue(folder)
    line = str(told.value)
    assert "\n" not in line
    assert str(folder / "bad.py") in line
    assert message in line


def test_a_file_that_is_not_text_is_a_value_error_that_names_it(write):
    folder = write(good=GOOD)
    (folder / "bad.py").write_bytes(b"\xff\xfe\x00class")
    with pytest.raises(ValueError, match=r"bad\.py"):
        catalogue(folder)


def test_this_folder_s_cards_agree_with_its_files():
    names = {path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_")}
    cards = catalogue()
    assert set(cards) == names
    assert {"lsh", "itq", "mihash", "talr_ap", "talr_ndcg"} <= names
    for name, card in cards.items():
        assert load_class(name).__module__ == f"methods.{name}"
        assert card.summary


def test_listing_methods_imports_none_of_them_nor_torch():
    program = (
        "import sys; from methods._catalogue import catalogue;"
        "unwanted = [f'methods.{n}' for n in catalogue()];"
        "print([name for name in [*unwanted, 'torch'] if name in sys.modules])"
    )
    root = Path(__file__).parents[2]
    told = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "[]"
