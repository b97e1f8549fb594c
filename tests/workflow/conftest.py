"""Tiny runs of the real Snakefile: a copy of this checkout and its results, made once, copied for each test.

So a test can edit a method or add one, and takes finished runs for a start.
"""

import copy
import csv
import json
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

from datasets.splits import Split
from reporting import published
from reporting.leaderboard.publishing import publish
from reporting.page import document
from workflow.configuration.merged import load
from workflow.errors import ConfigurationError

ROOT = Path(__file__).parents[2]
CONTENTS = "Snakefile environment.yml config profiles datasets networks methods tiebench reporting workflow"
COMMIT = "c" * 40

TINY = yaml.safe_load("""
datasets:
  tiny: {loader: features_file, sources: [{file: tiny.npz}]}
protocols:
  tiny:
    dataset: tiny
    split: {kind: per_class, query: 5, training: 15}
    affinity: {kind: class}
    at: [10]
    runs_per_job: {seeds: 2, bits: [8, 11]}
methods:
  talr_ap: {protocols: {tiny: {epochs: 2, batch_size: 20, bins: 8}}}
tables:
  tiny:
    seeds: [0, 1]
    methods: [lsh, talr_ap]
    supervised_bounds: false  # fewer runs
    blocks: [{protocol: tiny, metric: ap, bits: [8, 11]}]
""")


def class_vectors():
    """X float32 (160, 12) and y (160,): four classes of forty."""
    generator = np.random.default_rng(0)
    y = np.arange(160) % 4
    centres = generator.normal(size=(4, 12))
    return (centres[y] + generator.normal(size=(160, 12))).astype(np.float32), y


def refused(settings, checkout=ROOT):
    """The line in which loading the configuration of a checkout, and settings on top of it, ends."""
    with pytest.raises(ConfigurationError) as caught:
        load(checkout, settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def read_rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8"))


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

    @property
    def results(self):
        return self.directory / "results"

    def run_folder(self, method="lsh", bits=8, seed=0, protocol="tiny"):
        return self.results / "runs" / protocol / method / str(bits) / str(seed)

    def record(self, *run, name="run.json", **protocol):
        return read_json(self.run_folder(*run, **protocol) / name)

    def metrics(self, *run, **protocol):
        return self.record(*run, name="scores.json", **protocol)["metrics"]

    def rows(self, name):
        """The rows of a CSV of results/."""
        return read_rows(self.results / name)

    def text(self, name):
        return (self.results / name).read_text(encoding="utf-8")

    def features(self, protocol="tiny"):
        return np.load(self.directory / "resources" / "protocols" / protocol / "features.npy")

    def split(self, protocol="tiny"):
        return Split.load(self.directory / "resources" / "protocols" / protocol / "split.npz")

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

    def has_nothing_to_do(self, *targets, **settings):
        return "Nothing to be done" in self.made(*targets, **settings).stderr

    def refused(self, *targets, **settings):
        """Run, and require that it ends in one line, which jobs beside one another may each say; the line."""
        done = self.run(*targets, **settings)
        assert done.returncode != 0
        assert "Traceback" not in done.stdout + done.stderr
        (line,) = {line for line in done.stderr.splitlines() if line.startswith("error: ")}
        return line

    def stamps(self, pattern="results/**/*"):
        """Relative path -> (inode, modification time) of files: equal where nothing was written."""
        return {
            str(path.relative_to(self.directory)): (path.stat().st_ino, path.stat().st_mtime_ns)
            for path in self.directory.glob(pattern)
            if path.is_file()
        }

    def keep_figure(self, name):
        """Take the other figures away: drawing all of them takes longer than a test of one."""
        for path in (self.checkout / "reporting" / "figures").glob("[a-z]*.py"):
            if path.stem != name:
                path.unlink()

    def page(self, table):
        """The page of a table that was made, without its figures, which take long to draw."""
        return document.page([published.view(published.read(table, self.results), {})])

    def tables(self):
        """Name -> bytes of every CSV of results/."""
        return {path.name: path.read_bytes() for path in self.results.glob("*.csv")}

    def publish(self, table, leaderboard):
        """Of runs of a commit: the checkout is no clone."""
        for path in self.results.glob("runs/*/*/*/*/run.json"):
            record = read_json(path)
            path.write_text(json.dumps(record if "external" in record else record | {"git_commit": COMMIT}))
        publish([table], self.results, leaderboard, resources=self.directory / "resources")


def lay_out(place):
    """A checkout with what is compiled of it, and the source file."""
    for name in CONTENTS.split():
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


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The pages of leaderboards, for browsers: to look at."""
    import leaderboard_site

    return leaderboard_site.write_site(tmp_path_factory)


@pytest.fixture(scope="session")
def protocols(tmp_path_factory):
    """Name -> the leaderboard that such a page shows."""
    import leaderboard_site

    return leaderboard_site.read(tmp_path_factory)


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
