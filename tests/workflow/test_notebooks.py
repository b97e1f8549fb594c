"""The notebooks of docs/notebooks/: as they are stored, and what a run prints and draws."""

import ast
import base64
import io
import json
import os
import re
from pathlib import Path

import forked
import nbformat
import numpy as np
import pytest
from PIL import Image

from workflow.documentation import notebooks

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
NAMES = [Path(path).stem for path in notebooks.places(ROOT)]
# Training on another processor gives other last digits; cells print two or three.
TOLERANCE = 0.03
NUMBER = r"-?\d+(?:\.\d+)?"


def stored(name):
    return (ROOT / notebooks.FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_it_is_valid_and_canonical_and_jupyter_shows_nothing_else(name):
    notebook = nbformat.reads(stored(name), as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    assert any("assert " in cell.source for cell in notebook.cells)
    canonical = json.dumps(json.loads(stored(name)), indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    assert stored(name) == canonical
    # Jupyter also shows the value of a last expression: no cell ends in one but for print.
    for cell in notebook.cells:
        if cell.cell_type == "code" and isinstance(last := ast.parse(cell.source).body[-1], ast.Expr):
            assert ast.unparse(last).startswith("print("), cell.source


def shown(notebook):
    """Cells without outputs; printed texts without numbers; numbers; pictures as grey values."""
    cells = json.loads(notebook)["cells"]
    outputs = [output for cell in cells for output in cell.pop("outputs", ())]
    text = "\n".join("".join(output["text"]) for output in outputs if "text" in output)
    pictures = [base64.b64decode(output["data"]["image/png"]) for output in outputs if "data" in output]
    grey = [np.asarray(Image.open(io.BytesIO(picture)).convert("L"), float) for picture in pictures]
    words = re.sub(rf"{NUMBER}| +", " ", text).split()
    return cells, words, np.array(re.findall(NUMBER, text), float), grey


@pytest.fixture
def forks(monkeypatch):
    """The program of a notebook is a fork, and so are the Snakemake and the jobs that its cells start."""

    def done(program, folder, variables):
        places = f"{variables['PYTHONPATH']}{os.pathsep}{program.parent}"
        return forked.run(["-m", program.stem], folder, variables | {"PYTHONPATH": places}, timeout=900)

    monkeypatch.setattr(notebooks, "_done", done)


@pytest.mark.usefixtures("forks")
@pytest.mark.parametrize("name", NAMES)
def test_it_runs_and_its_stored_outputs_are_those_of_the_run(name):
    """Its own assertions hold, too: a cell that fails ends the run."""
    new, old = shown(notebooks.run(ROOT, name)), shown(stored(name))
    assert new[:2] == old[:2], "run `make notebooks`"
    assert np.allclose(new[2], old[2], rtol=0, atol=TOLERANCE), "run `make notebooks`"
    assert [one.shape for one in new[3]] == [one.shape for one in old[3]]
    assert all(abs(one - two).mean() < 5 for one, two in zip(new[3], old[3]))


def fake_checkout(folder, *sources):
    """A checkout with one notebook, "one", of these code cells."""
    (folder / "docs" / "notebooks").mkdir(parents=True)
    cells = [{"cell_type": "code", "source": [source]} for source in sources]
    cells.insert(0, {"cell_type": "markdown", "source": ["# One\n", "\n", "[b](../b.md)"]})
    (folder / "docs" / "notebooks" / "one.ipynb").write_text(json.dumps({"cells": cells}))
    return folder


def test_cells_share_a_namespace_and_show_what_they_print_and_draw(tmp_path):
    root = fake_checkout(
        tmp_path / "checkout",
        "from pathlib import Path\nPath('made').touch()\nx = 2",
        "print(x + 1)\nimport matplotlib.pyplot as plt\nplt.figure(figsize=(2, 1))",
        "print(Path.cwd().parts[-2:], plt.get_fignums())",
    )
    made = notebooks.run(root, "one")
    _, words, _, pictures = shown(made)
    assert words == ["('docs',", "'notebooks')", "[]"]
    assert [picture.shape for picture in pictures] == [(110, 220)]
    file = root / "docs" / "notebooks" / "one.ipynb"
    assert list(file.parent.iterdir()) == [file]  # a run leaves the checkout as it is
    file.write_text(made)
    text = notebooks.page(file)
    assert text.startswith("# One\n\n*") and "<notebooks/one.ipynb>" in text
    assert text.index("```text\n3\n```") < text.index("![One](data:image/png;base64,")


def test_a_cell_that_fails_is_named_with_its_error(tmp_path):
    root = fake_checkout(tmp_path / "checkout", "x = 1", "assert x == 2, 'not two'")
    with pytest.raises(RuntimeError, match=r"(?s)one\.ipynb, code cell 2, failed:.*not two"):
        notebooks.run(root, "one")
