"""Notebooks of docs/notebooks/, run in a copy of the checkout, and the pages of docs/ with their outputs.

`python -m workflow.documentation.notebooks` runs them and writes docs/example-<name>.md and its pictures.
Notebooks are stored without outputs, so that their history is that of their text; the pages are what a
reader of the site sees. Cells are plain Python without magics, so no kernel is needed: each notebook
runs in an interpreter of its own, and a cell shows what it prints and the figures that it leaves open, as
in Jupyter.
"""

import argparse
import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = "docs/notebooks"
# What a run creates is not copied; compiled kernels, which are below __pycache__, are.
_LEFT_OUT = (".*", "results", "resources", "site", "*.pyc")


@dataclass(frozen=True)
class Output:
    """What one cell shows: printed text, and figures as the contents of PNG files."""

    text: str
    pictures: tuple[bytes, ...]


def names(root: Path) -> list[str]:
    """Stems of the notebooks, sorted."""
    return sorted(path.stem for path in (root / FOLDER).glob("*.ipynb"))


def cells(root: Path, name: str) -> list[tuple[str, str]]:
    """Kind ("markdown" or "code") and source of each cell."""
    notebook = json.loads((root / FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    return [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]


def run(root: Path, name: str) -> list[Output]:
    """Run a notebook in a copy of a checkout; the outputs of its code cells, in order.

    Raises RuntimeError with the end of what it printed if a cell fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        place, result = Path(folder, "checkout"), Path(folder, "outputs.json")
        shutil.copytree(root, place, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        command = [sys.executable, "-m", "workflow.documentation.notebooks", "--cells", str(result), name]
        variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        variables |= {"MPLBACKEND": "agg", "PYTHONPATH": str(place)}
        done = subprocess.run(command, cwd=place, env=variables, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{FOLDER}/{name}.ipynb failed:\n{(done.stdout + done.stderr)[-3000:]}")
        outputs = json.loads(result.read_text(encoding="utf-8"))
    return [Output(text, tuple(map(bytes.fromhex, pictures))) for text, pictures in outputs]


def run_cells(sources: Sequence[str]) -> list[tuple[str, list[bytes]]]:
    """Run cells one after another in one namespace: what each prints, and the figures that it leaves open."""
    namespace: dict = {"__name__": "__main__"}
    found = []
    for number, source in enumerate(sources, 1):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, f"code cell {number}", "exec"), namespace)
        found.append((printed.getvalue(), _open_figures()))
    return found


def _open_figures() -> list[bytes]:
    if "matplotlib.pyplot" not in sys.modules:
        return []
    from matplotlib import pyplot

    drawn = []
    for number in pyplot.get_fignums():
        with io.BytesIO() as file:
            # Without the version of matplotlib, which would change the file where the picture is the same.
            pyplot.figure(number).savefig(file, format="png", dpi=110, metadata={"Software": None})
            drawn.append(file.getvalue())
    pyplot.close("all")
    return drawn


def page(root: Path, name: str, outputs: Sequence[Output]) -> tuple[str, dict[str, bytes]]:
    """The page of a notebook with its outputs, and its pictures: path below docs/ -> contents."""
    place = f"{FOLDER}/{name}.ipynb".removeprefix("docs/")
    parts, pictures = [], {}
    remaining = iter(outputs)
    for kind, source in cells(root, name):
        if kind == "markdown":
            parts.append(source.replace("](../", "]("))  # the page is one folder above the notebook
            continue
        output = next(remaining)
        parts.append(_fenced("python", source))
        if output.text.strip():
            parts.append(_fenced("text", output.text.rstrip()))
        for contents in output.pictures:
            file = f"images/example_{name}_{len(pictures) + 1}.png"
            pictures[file] = contents
            parts.append(f"![{_heading(parts)}]({file})")
    title, _, rest = parts[0].partition("\n")
    note = f"*This page is the notebook [{place}]({place}), with its outputs: open it in Jupyter or Colab.*"
    return "\n\n".join([title, note, rest.strip("\n"), *parts[1:]]) + "\n", pictures


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"


def _heading(parts: Sequence[str]) -> str:
    """The last heading of a page: what the picture below it is called."""
    return re.findall(r"^#+ (.+)$", "\n".join(part for part in parts if part[:3] != "```"), re.MULTILINE)[-1]


def printed(page: str) -> list[str]:
    """The printed texts of a page, in order."""
    return re.findall(r"^```text\n(.*?)\n```$", page, re.MULTILINE | re.DOTALL)


def page_file(name: str) -> str:
    """The page of a notebook: path in the repository."""
    return f"docs/example-{name.replace('_', '-')}.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run notebooks and write their pages; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m workflow.documentation.notebooks",
        description="Run the notebooks of docs/notebooks/ and write their pages, docs/example-<name>.md.",
    )
    parser.add_argument("names", nargs="*", help="of notebooks, without .ipynb; all by default")
    parser.add_argument("--cells", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    known = names(ROOT)
    for name in options.names:
        if name not in known:
            parser.error(f"no notebook {name} in {FOLDER}; there are {', '.join(known)}")
    if options.cells:
        sources = [source for kind, source in cells(ROOT, options.names[0]) if kind == "code"]
        os.chdir(ROOT / FOLDER)
        found = [(text, [one.hex() for one in pictures]) for text, pictures in run_cells(sources)]
        options.cells.write_text(json.dumps(found), encoding="utf-8")
        return 0
    for name in options.names or known:
        text, pictures = page(ROOT, name, run(ROOT, name))
        for file, contents in pictures.items():
            (ROOT / "docs" / file).write_bytes(contents)
        (ROOT / page_file(name)).write_text(text, encoding="utf-8")
        print(page_file(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
