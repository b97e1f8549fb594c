"""Notebooks of docs/notebooks/, run and stored by `python -m workflow.documentation.notebooks`; their pages.

Cells are plain Python, which a program of its own runs in a copy of the checkout. Jupyter's own tools
(nbclient, myst-nb) would bring a kernel and 44 packages, as many as the whole site needs, for this file.
"""

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tiebench.command_line import Parser

ROOT = Path(__file__).parents[2]
FOLDER = "docs/notebooks"
# What a run creates is not copied; what is compiled, which is below __pycache__, is.
_LEFT_OUT = (".*", "results", "resources", "site", "*.pyc.*")


def places(root: Path) -> dict[str, str]:
    """Notebook, path in the repository -> its page, path among the site's sources."""
    found = sorted(path.stem for path in (root / FOLDER).glob("*.ipynb"))
    return {f"{FOLDER}/{name}.ipynb": f"example-{name.replace('_', '-')}.md" for name in found}


def run(root: Path, name: str) -> str:
    """Text of a notebook of a checkout with the outputs of a run. Raises RuntimeError if a cell fails."""
    notebook = json.loads((root / FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    with tempfile.TemporaryDirectory() as folder:
        place, program, shown = (Path(folder, one) for one in ("checkout", "run.py", "shown.jsonl"))
        shutil.copytree(root, place, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        # One program, that meets nothing of this module.
        cells = ["".join(cell["source"]) + f"\nend_cell({str(shown)!r})" for cell in code]
        begin = ["import io, sys", "sys.stdout = io.StringIO()", inspect.getsource(end_cell)]
        program.write_text("\n".join([*begin, *cells, ""]), encoding="utf-8")
        shown.touch()
        done = _done(program, place / FOLDER, os.environ | {"MPLBACKEND": "agg", "PYTHONPATH": str(place)})
        outputs = [json.loads(line) for line in shown.read_text(encoding="utf-8").splitlines()]
    if done.returncode:
        failed = f"{FOLDER}/{name}.ipynb, code cell {len(outputs) + 1}, failed"
        raise RuntimeError(f"{failed}:\n{done.stderr[-3000:]}")
    for cell, output in zip(code, outputs):
        cell["outputs"] = output
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _done(program: Path, folder: Path, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """A program of Python, run to its end in a folder with these variables."""
    command = [sys.executable, str(program)]
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True)


def end_cell(file: str) -> None:
    """Append what a cell printed and drew to a file, a line of JSON per cell; in the program of the cells."""
    import base64
    import io
    import json
    import sys
    from pathlib import Path
    from typing import Any

    printed: Any = sys.stdout
    lines, sys.stdout = printed.getvalue().splitlines(keepends=True), io.StringIO()
    outputs: list[dict] = [{"output_type": "stream", "name": "stdout", "text": lines}] if lines else []
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    for figure in pyplot.get_fignums() if pyplot else ():
        # Without the version of Matplotlib, which would change the file where the picture is the same.
        pyplot.figure(figure).savefig(picture := io.BytesIO(), dpi=110, metadata={"Software": None})
        data = {"image/png": base64.b64encode(picture.getvalue()).decode()}
        outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
        pyplot.close(figure)
    with Path(file).open("a", encoding="utf-8") as shown:
        shown.write(json.dumps(outputs) + "\n")


def page(path: Path) -> str:
    """The page of a notebook with its stored outputs."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            if output["output_type"] == "stream":
                parts.append(f"```text\n{''.join(output['text']).rstrip()}\n```")
            else:
                # Its name is that of the section.
                heading = re.findall(r"(?m)^#+ (.+)$", re.sub(r"(?s)```.*?```", "", "\n".join(parts)))[-1]
                parts.append(f"![{heading}](data:image/png;base64,{output['data']['image/png']})")
    note = f"*The notebook for Jupyter or Colab: {{download}}`{path.name} <notebooks/{path.name}>`*"
    title, _, rest = parts[0].partition("\n")
    return "\n\n".join([title, note, rest.strip("\n"), *parts[1:]]) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run notebooks and store them with their outputs; returns the exit status."""
    parser = Parser(
        prog="python -m workflow.documentation.notebooks",
        description="Run the notebooks of docs/notebooks/ and store their outputs in them.",
    )
    parser.parse_args(arguments)
    for path in places(ROOT):
        (ROOT / path).write_text(run(ROOT, Path(path).stem), encoding="utf-8")
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
