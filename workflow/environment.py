"""environment.yml from the lock files: conda users get the pins that pip users get.

python -m workflow.environment writes it; the tests compare it with what this makes.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHON = "3.11"
HEADER = """\
# Made from requirements.lock and requirements-torch.txt by `make lock`: edit pyproject.toml, not this file.
name: tiebench
channels:
  - conda-forge
dependencies:
  - python={python}
  - pip
  - pip:
"""


def pins():
    """'name==version' or 'name==version ; marker' of every locked package, torch last."""
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    locked = [line.removesuffix("\\").strip() for line in lines if re.match(r"^[a-z0-9][^ ]*==", line)]
    lines = (ROOT / "requirements-torch.txt").read_text().splitlines()
    torch = [line.strip() for line in lines if "==" in line]
    return locked + torch


def conda_environment():
    return HEADER.format(python=PYTHON) + "".join(
        f'      - "{pin.replace(chr(34), chr(39))}"\n' for pin in pins()
    )


if __name__ == "__main__":
    (ROOT / "environment.yml").write_text(conda_environment())
