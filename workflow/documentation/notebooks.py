"""Notebooks of docs/notebooks/, run in a copy of the checkout, and the pages of docs/ with their outputs.

`python -m workflow.documentation.notebooks` runs them and writes docs/example-<name>.md and its pictures.
Notebooks are stored without outputs, so that their history is that of their text; the pages are what a
reader of the site sees. Cells are plain Python without magics, so no kernel is needed: each notebook
runs in an interpreter of its own, and a cell shows what it prints and the figures that it leaves open, as
in Jupyter.
"""

import inspect
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

from tiebench.command_line import Parser, word

ROOT = Path(__file__).parents[2]
FOLDER = "docs/notebooks"
_END = "\x1eend of cell\n"
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
    sources = [source for kind, source in cells(root, name) if kind == "code"]
    with tempfile.TemporaryDirectory() as folder:
        place, program = Path(folder, "checkout"), Path(folder, f"{name}.py")
        shutil.copytree(root, place, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        program.write_text(_as_program(sources, folder), encoding="utf-8")
        variables = os.environ | {"MPLBACKEND": "agg", "PYTHONPATH": str(place)}
        command = [sys.executable, str(program)]
        done = subprocess.run(
            command, cwd=place / FOLDER, env=variables, capture_output=True, text=True, check=False
        )
        if done.returncode:
            failed = f"{FOLDER}/{name}.ipynb, code cell {done.stdout.count(_END) + 1}, failed"
            raise RuntimeError(f"{failed}:\n{(done.stdout + done.stderr)[-3000:]}")
        drawn = [sorted(Path(folder).glob(f"{number}-*.png")) for number in range(len(sources))]
        pictures = [tuple(path.read_bytes() for path in paths) for paths in drawn]
    return [Output(*shown) for shown in zip(done.stdout.split(_END), pictures)]


def _as_program(sources: Sequence[str], folder: str) -> str:
    """Cells as one program that says where each ends."""
    # Its own text, not an import: a cell of a notebook meets nothing of this module.
    lines = ["import sys", "from pathlib import Path", f"_END = {_END!r}", inspect.getsource(end_cell)]
    for number, source in enumerate(sources):
        lines += [source, f"end_cell({number}, {folder!r})"]
    return "\n".join(lines) + "\n"


def end_cell(number: int, folder: str) -> None:
    """Mark the end of a cell in what the program prints, and write the figures that the cell leaves open."""
    print(end=_END, flush=True)
    if "matplotlib.pyplot" not in sys.modules:
        return
    from matplotlib import pyplot

    for figure in pyplot.get_fignums():
        # Without the version of Matplotlib, which would change the file where the picture is the same.
        path = Path(folder, f"{number}-{figure:02}.png")
        pyplot.figure(figure).savefig(path, dpi=110, metadata={"Software": None})
    pyplot.close("all")


def page(root: Path, name: str, outputs: Sequence[Output]) -> tuple[str, dict[str, bytes]]:
    """The page of a notebook with its outputs, and its pictures: path below docs/ -> contents."""
    place = f"{FOLDER}/{name}.ipynb".removeprefix("docs/")
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
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
    parser = Parser(
        prog="python -m workflow.documentation.notebooks",
        description="Run the notebooks of docs/notebooks/ and write their pages, docs/example-<name>.md.",
    )
    parser.add_argument("names", nargs="*", type=word, help="of notebooks, without .ipynb; all by default")
    options = parser.parse_args(arguments)
    known = names(ROOT)
    for name in options.names:
        if name not in known:
            parser.error(f"no notebook {name} in {FOLDER}; there are {', '.join(known)}")
    for name in options.names or known:
        text, pictures = page(ROOT, name, run(ROOT, name))
        for file, contents in pictures.items():
            (ROOT / "docs" / file).write_bytes(contents)
        (ROOT / page_file(name)).write_text(text, encoding="utf-8")
        print(page_file(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
