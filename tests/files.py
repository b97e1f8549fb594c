"""Files for several tests: archives, damaged bytes, real data, the Python that builds the site."""

import importlib.util
import io
import os
import sys
import tarfile
from pathlib import Path

import pytest


def resource(name):
    """The path of a file of real data, which is not part of a clone; without it the test is skipped."""
    for folder in filter(None, os.environ.get("TIEBENCH_RESOURCES", "").split(os.pathsep)):
        if Path(folder, name).is_file():
            return Path(folder, name)
    pytest.skip(f"no {name} in the folders of TIEBENCH_RESOURCES")


def documentation_python():
    """A Python that has Sphinx: that of `make docs`, or this one; without either the test is skipped."""
    own = Path(__file__).parents[1] / ".venv-docs" / "bin" / "python"
    if not own.exists() and importlib.util.find_spec("pydata_sphinx_theme") is None:
        pytest.skip("the packages of `make docs` are not installed")
    return str(own) if own.exists() else sys.executable


def tarred(files, mode="w"):
    """An archive of name -> contents, as bytes."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, contents in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(contents)
            archive.addfile(info, io.BytesIO(contents))
    return buffer.getvalue()


def damaged(contents, changes, others=()):
    """The contents after each change; places are shares of the length; others: contents to splice in."""
    data = bytearray(contents)
    for kind, place, what in changes:
        at = int(place * len(data))
        if kind == "set":
            data[at : at + 1] = bytes([what])
        elif kind == "flip" and data:
            data[at] ^= 1 << what
        elif kind == "write":
            data[at : at + len(what)] = what
        elif kind == "insert":
            data[at:at] = what
        elif kind == "remove":
            del data[at : at + what]
        elif kind == "double":
            data[at:at] = data[at : at + what]
        elif kind == "zero":
            data[at : at + what] = bytes(len(data[at : at + what]))
        elif kind == "cut":
            del data[at:]
        elif kind == "splice":
            other, begin, length = what
            begin = int(begin * len(others[other]))
            data[at : at + length] = others[other][begin : begin + length]
    return bytes(data)
