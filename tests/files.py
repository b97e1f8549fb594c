"""Archives, damaged bytes, settings, real data, folders made once; the site's Python."""

import importlib.util
import io
import os
import sys
import tarfile
import zipfile
from pathlib import Path

import filelock
import pytest


def made_once(tmp_path_factory, name, make):
    """The folder that `make` fills once for all workers of the tests: to look at, no test may write there."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    place, made = folder / name, folder / f"{name}.made"
    with filelock.FileLock(folder / f"{name}.lock"):
        if not made.exists():
            place.mkdir()
            make(place)
            made.touch()
    return place


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


def mappings(values):
    """Every mapping inside of nested values."""
    if isinstance(values, dict):
        yield values
        values = list(values.values())
    for part in values if isinstance(values, list) else ():
        yield from mappings(part)


def tarred(files, mode="w"):
    """An archive of name -> contents, as bytes."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, contents in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(contents)
            archive.addfile(info, io.BytesIO(contents))
    return buffer.getvalue()


def zipped(files):
    """A zip of name -> contents, as bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, contents in files.items():
            archive.writestr(name, contents)
    return buffer.getvalue()


def written(path, files):
    """name -> contents as a zip, tar or tar.gz, by the ending of `path`, else as a folder; the path."""
    if path.suffix == ".zip":
        path.write_bytes(zipped(files))
    elif path.suffix in (".tar", ".gz"):
        path.write_bytes(tarred(files, "w:gz" if path.suffix == ".gz" else "w"))
    else:
        for name, contents in files.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(contents)
    return path


def changed(name, change):
    """A function of name -> contents: changes the contents of files whose names end so; None takes them
    away."""

    def of_files(files):
        return {
            path: change(contents) if path.endswith(name) else contents
            for path, contents in files.items()
            if change is not None or not path.endswith(name)
        }

    return of_files


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
