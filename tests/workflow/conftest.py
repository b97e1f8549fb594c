"""Tiny runs of the real Snakefile: a copy of this checkout and its results, made once, copied for each test.

So a test can edit a method or add one, and takes finished runs for a start.
"""

import copy
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import forked
import numpy as np
import pytest
import yaml
from files import made_once
from settings_once import parsed_once

from reporting import published
from reporting.page import document

ROOT = Path(__file__).parents[2]
CONTENTS = (
    "Snakefile",
    "environment.yml",
    "config",
    "profiles",
    "datasets",
    "networks",
    "methods",
    "tiebench",
    "reporting",
)
CONTENTS += ("workflow",)

TINY = {
    "datasets": {"tiny": {"loader": "features_file", "sources": [{"file": "tiny.npz"}]}},
    "protocols": {
        "tiny": {
            "dataset": "tiny",
            "split": {"kind": "per_class", "query": 5, "training": 15},
            "affinity": {"kind": "class"},
            "at": [10],
            "runs_per_job": {"seeds": 2, "bits": [8, 11]},
        }
    },
    "methods": {"talr_ap": {"protocols": {"tiny": {"epochs": 2, "batch_size": 20, "bins": 8}}}},
    "tables": {
        "tiny": {
            "seeds": [0, 1],
            "methods": ["lsh", "talr_ap"],
            "supervised_bounds": False,  # fewer runs
            "blocks": [{"protocol": "tiny", "metric": "ap", "bits": [8, 11]}],
        }
    },
}


def class_vectors():
    """X float32 (160, 12) and y (160,): four classes of forty."""
    generator = np.random.default_rng(0)
    y = np.arange(160) % 4
    centres = generator.normal(size=(4, 12))
    return (centres[y] + generator.normal(size=(160, 12))).astype(np.float32), y


@dataclass
class Laboratory:
    """place: holds a checkout and the folder that it runs in; sources: what TIEBENCH_RESOURCES names."""

    place: Path
    sources: Path

    @property
    def checkout(self):
        return self.place / "checkout"

    @property
    def directory(self):
        return self.place / "run"

    def command(self, *targets, config=TINY, options=()):
        """The command line of a run with `config` on top of the checkout's configuration."""
        file = self.place / "tiny.yaml"
        if not file.exists() or file.read_text() != yaml.safe_dump(config):
            file.write_text(yaml.safe_dump(config))
        snakefile = self.checkout / "Snakefile"
        program = [sys.executable, "-m", "snakemake", "--snakefile", snakefile, "--directory", self.directory]
        return list(map(str, [*program, "--cores", "2", *options, "--configfile", file, "--", *targets]))

    def variables(self, **more):
        # Nothing of the test's own Python path: jobs must find the checkout's packages by themselves.
        kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        return kept | {"TIEBENCH_RESOURCES": str(self.sources)} | more

    def run(self, *targets, config=TINY, options=(), **variables):
        """Run to the end; a completed process with text output."""
        _, *arguments = self.command(*targets, config=config, options=options)
        return forked.run(arguments, cwd=self.place, env=self.variables(**variables), timeout=900)

    def made(self, *targets, **settings):
        """Run, and require success."""
        done = self.run(*targets, **settings)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def stamps(self, pattern="results/**/*"):
        """Relative path -> (inode, modification time) of files: equal where nothing was written."""
        return {
            str(path.relative_to(self.directory)): (path.stat().st_ino, path.stat().st_mtime_ns)
            for path in self.directory.glob(pattern)
            if path.is_file()
        }

    def page(self, table):
        """The page of a table that was made, without its figures, which take long to draw."""
        return document.page(
            table, [published.view(published.read(table, self.directory / "results"), {})], {}
        )

    def tables(self):
        """Name -> bytes of every CSV of results/."""
        return {path.name: path.read_bytes() for path in (self.directory / "results").glob("*.csv")}


def lay_out(place):
    """A checkout with what is compiled of it, and the source file."""
    for name in CONTENTS:
        source, target = ROOT / name, place / "checkout" / name
        if source.is_dir():
            # What is compiled lies in __pycache__, and knows its sources by their times.
            # Files with another ending are being written.
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.pyc.*"))
        elif source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    (place / "sources").mkdir()
    X, y = class_vectors()
    np.savez(place / "sources" / "tiny.npz", X=X, y=y)
    return Laboratory(place, place / "sources")


@pytest.fixture(autouse=True, scope="session")
def settings_parsed_once():
    with parsed_once():
        yield


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """The laboratory after an uninterrupted run of the tiny table, to look at: no test may write there.

    Made once for all workers of the tests, by ordinary processes, which others are compared with.
    """

    def run(place):
        laboratory = lay_out(place)
        command, variables = laboratory.command("results/tiny.csv"), laboratory.variables()
        done = subprocess.run(command, cwd=place, env=variables, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    place = made_once(tmp_path_factory, "prepared", run)
    return Laboratory(place, place / "sources")


@pytest.fixture(scope="session")
def site_sources(tmp_path_factory):
    """The folder of the pages that Sphinx makes the documentation site of: to look at.

    TIEBENCH_SITE_SOURCES names one that `make docs SOURCES=FOLDER` has written of this checkout, if it has.
    """
    if written := os.environ.get("TIEBENCH_SITE_SOURCES"):
        return Path(written)
    from workflow.documentation import sources

    return made_once(tmp_path_factory, "sources of the site", lambda folder: sources.write(folder, ROOT))


@pytest.fixture
def laboratory(prepared, tmp_path):
    """A copy of the prepared laboratory, elsewhere, for one test."""
    place = tmp_path / "place"
    shutil.copytree(prepared.place, place, symlinks=True)
    return Laboratory(place, prepared.sources)


@pytest.fixture
def empty_laboratory(tmp_path):
    """A laboratory in which nothing was run."""
    return lay_out(tmp_path / "place")


@pytest.fixture
def tiny():
    """The configuration of the prepared run, to be changed at will."""
    return copy.deepcopy(TINY)
