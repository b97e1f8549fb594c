"""The notebooks of docs/notebooks/: as they are stored, what they print, and the pages made from both."""

import ast
import io
import json
import re
from pathlib import Path

import nbformat
import numpy as np
import pytest
from PIL import Image

from workflow.documentation import notebooks

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
NAMES = notebooks.names(ROOT)
# Training on another processor gives other last digits; pages print two or three.
TOLERANCE = 0.03
NUMBER = r"-?\d+(?:\.\d+)?"


def page_of(name):
    return (ROOT / notebooks.page_file(name)).read_text(encoding="utf-8")


def test_there_is_a_notebook_for_each_kind_of_reader_and_a_page_for_each():
    assert NAMES == ["add_a_method", "check_a_claim", "score_your_codes", "train_with_talr"]
    pages = {path.name for path in (ROOT / "docs").glob("example-*.md")}
    assert pages == {Path(notebooks.page_file(name)).name for name in NAMES}
    listed = (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8")
    assert all(f"(notebooks/{name}.ipynb)" in listed for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_jupyter_shows_nothing_that_its_page_does_not(name):
    """Jupyter also shows the value of a last expression: no cell ends in one, but for calls of print."""
    for kind, source in notebooks.cells(ROOT, name):
        if kind == "code" and isinstance(last := ast.parse(source).body[-1], ast.Expr):
            assert ast.unparse(last).startswith("print("), source


@pytest.mark.parametrize("name", NAMES)
def test_it_is_valid_canonical_and_has_no_outputs(name):
    text = (ROOT / notebooks.FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) > 3
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    assert all(ast.parse(cell.source) for cell in code)  # plain Python: no magics
    assert any("assert " in cell.source for cell in code)
    assert text == json.dumps(json.loads(text), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def differences(made, stored):
    """Outputs that differ in words, or in a number by more than `TOLERANCE`."""
    found = [] if len(made) == len(stored) else [("outputs", len(made), len(stored))]
    for one, two in zip(made, stored):
        words = [re.sub(rf"{NUMBER}| +", " ", text).split() for text in (one, two)]
        numbers = [np.array(re.findall(NUMBER, text), float) for text in (one, two)]
        if words[0] != words[1] or not np.allclose(*numbers, rtol=0, atol=TOLERANCE):
            found.append((one, two))
    return found


def test_outputs_are_compared_by_words_and_numbers():
    assert differences(["ap 0.50 of 3"], ["ap  0.51 of 3"]) == []
    for other in ("ap 0.55 of 3", "ap 0.50 of 4", "map 0.50 of 3"):
        assert differences(["ap 0.50 of 3"], [other])
    assert differences(["a"], ["a", "b"])


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_and_its_page_shows_what_it_prints_and_draws(name):
    """Its own assertions hold, too: a cell that fails ends the run."""
    made, pictures = notebooks.page(ROOT, name, notebooks.run(ROOT, name))
    stored = page_of(name)
    texts = [re.sub(r"^```text\n.*?\n```$", "", text, flags=re.M | re.S) for text in (made, stored)]
    assert texts[0] == texts[1], "run `make notebooks`"
    assert differences(*map(notebooks.printed, (made, stored))) == [], "run `make notebooks`"
    drawn = (ROOT / "docs" / "images").glob(f"example_{name}_*.png")
    assert {f"images/{path.name}" for path in drawn} == set(pictures)
    for file, contents in pictures.items():
        new, old = (
            np.asarray(Image.open(source).convert("L"), float)
            for source in (io.BytesIO(contents), ROOT / "docs" / file)
        )
        assert new.shape == old.shape and abs(new - old).mean() < 5


def fake_checkout(folder, *sources):
    """A checkout with one notebook, "one", of these code cells."""
    (folder / "docs" / "notebooks").mkdir(parents=True)
    (folder / "workflow").symlink_to(ROOT / "workflow")
    cells = [{"cell_type": "code", "source": [source]} for source in sources]
    cells.insert(0, {"cell_type": "markdown", "source": ["# One\n", "\n", "[b](../b.md)"]})
    (folder / "docs" / "notebooks" / "one.ipynb").write_text(json.dumps({"cells": cells}))
    return folder


def test_cells_share_a_namespace_and_show_what_they_print_and_draw(tmp_path):
    root = fake_checkout(
        tmp_path / "checkout",
        "from pathlib import Path\nx = 2",
        "print(x + 1)\nimport matplotlib.pyplot as plt\nplt.figure(figsize=(2, 1))",
        "print(Path.cwd().parts[-2:], plt.get_fignums())",
    )
    silent, drawing, last = notebooks.run(root, "one")
    assert silent == notebooks.Output("", ())
    assert drawing.text == "3\n" and Image.open(io.BytesIO(*drawing.pictures)).size == (220, 110)
    assert last.text == "('docs', 'notebooks') []\n"
    text, pictures = notebooks.page(root, "one", [silent, drawing, last])
    assert pictures == {"images/example_one_1.png": drawing.pictures[0]}
    assert text.startswith("# One\n\n*This page is the notebook [notebooks/one.ipynb](notebooks/one.ipynb)")
    assert "[b](b.md)" in text and text.index("```text\n3\n```") < text.index(
        "![One](images/example_one_1.png)"
    )
    assert notebooks.printed(text) == ["3", "('docs', 'notebooks') []"]


def test_a_cell_that_fails_is_named_with_its_error(tmp_path):
    root = fake_checkout(tmp_path / "checkout", "x = 1", "assert x == 2, 'not two'")
    with pytest.raises(RuntimeError, match=r"(?s)one\.ipynb, code cell 2, failed:.*not two"):
        notebooks.run(root, "one")


def test_a_run_leaves_the_checkout_as_it_is(tmp_path):
    root = fake_checkout(tmp_path / "checkout", "from pathlib import Path\nPath('made').touch()")
    notebooks.run(root, "one")
    assert [path.name for path in (root / "docs" / "notebooks").iterdir()] == ["one.ipynb"]


def test_an_unknown_notebook_ends_in_one_line_with_the_known_ones(capsys):
    with pytest.raises(SystemExit) as ended:
        notebooks.main(["train"])
    assert ended.value.code == 2
    assert f"no notebook train in docs/notebooks; there are {', '.join(NAMES)}" in capsys.readouterr().err
