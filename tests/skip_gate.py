"""The skips that are allowed. Any other skipped or expected-to-fail test fails the run, also under xdist.

A test that is skipped everywhere protects nothing, and a green run does not show it. So each skip must match
an entry of `ALLOWED`, which says what a machine needs to run the test. Where that is present, name the entry
in TIEBENCH_MUST_RUN (comma-separated): its tests may then not be skipped either.

tests/conftest.py installs the two hooks.
"""

import fnmatch
import os
import re
from dataclasses import dataclass

import pytest

MUST_RUN = "TIEBENCH_MUST_RUN"


@dataclass(frozen=True)
class Allowed:
    """name: for TIEBENCH_MUST_RUN; tests: pattern (fnmatch) of ids, or a file; reason: regular expression
    searched in the reason; needs: what lets the tests run.
    """

    name: str
    tests: str
    reason: str
    needs: str


ALLOWED = [
    Allowed(
        "browser",
        "tests/*/*_in_browser.py*",
        r"(?i)chrom",
        "a Chromium or Chrome of the system",
    ),
    Allowed(
        "firefox",
        "tests/*/*_in_firefox.py*",
        r"firefox",
        "a Firefox of the system",
    ),
    Allowed(
        "latex",
        "tests/reporting/test_reporting_tables.py::test_latex_*",
        r"pdflatex",
        "pdflatex (TeX Live)",
    ),
    Allowed(
        "real data",
        "tests/*",
        r"^(Skipped: )?no .* in the folders of TIEBENCH_RESOURCES",
        "the named files in a folder of TIEBENCH_RESOURCES",
    ),
    Allowed("cuda", "tests/*", r"(?i)\bno CUDA|needs? (a )?CUDA|CUDA is not available", "a CUDA device"),
    Allowed("no cuda", "tests/methods/test_deep.py::*", r"there is a CUDA device", "a machine without CUDA"),
    Allowed(
        "mount",
        "tests/workflow/test_bad_results.py::*",
        r"mount",
        "a user who may mount a small tmpfs (root)",
    ),
    Allowed(
        "peak memory", "tests/workflow/*", r"keeps? (only )?one peak", "a writable /proc/self/clear_refs"
    ),
    Allowed(
        "site",
        "tests/workflow/test_*site*.py*",
        r"the packages of `make docs` are not installed",
        "the environment that `make docs` creates",
    ),
    Allowed("git", "tests/test_documentation.py::*", r"no git checkout", "a checkout by git"),
    Allowed(
        "torchvision",
        "tests/networks/test_torchvision.py*",
        r"torchvision is not installed",
        "the release of torchvision that goes with the installed torch",
    ),
    Allowed(
        "backbones",
        "tests/networks/test_backbone_libraries.py",
        r"is not installed: make backbones",
        "timm, torchvision, transformers and sentence-transformers: make backbones",
    ),
    Allowed(
        "postgresql",
        "tests/tiebench/test_export_sql.py",
        r"no PostgreSQL: install",
        "PostgreSQL 14 or later: Debian's postgresql, or pgserver from PyPI",
    ),
    Allowed(
        "pgvector",
        "tests/tiebench/test_export_sql.py::test_the_operator_of_pgvector_*",
        r"no PostgreSQL",
        "PostgreSQL with pgvector 0.7 or later",
    ),
    Allowed(
        "distributed",
        "tests/tiebench/*",
        r"is not installed: make distributed",
        "the environment that `make distributed` creates: Dask, s3fs, pyarrow, zarr, moto",
    ),
    Allowed("ranx", "tests/tiebench/test_export.py::*", r"ranx is not installed", "ranx from PyPI"),
    Allowed("linux", "tests/*", r"Linux|/proc", "Linux"),
]


def reason_of(report):
    """The reason for which a report's test was skipped, or expected to fail."""
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return getattr(report, "wasxfail", None) or str(report.longrepr)


def entry_for(nodeid, reason, allowed):
    """The first entry that allows this skip, or None."""
    for entry in allowed:
        named = fnmatch.fnmatchcase(nodeid, entry.tests) or nodeid.split("::")[0] == entry.tests
        if named and re.search(entry.reason, reason):
            return entry
    return None


def refused(reports, allowed=None, must_run=()):
    """(test id, reason, what to do) of every skip that no entry allows, or whose entry must run."""
    found = []
    for report in reports:
        reason = reason_of(report)
        entry = entry_for(report.nodeid, reason, ALLOWED if allowed is None else allowed)
        if entry is None:
            found.append((report.nodeid, reason, "not listed in tests/skip_gate.py"))
        elif entry.name in must_run:
            found.append((report.nodeid, reason, f"{MUST_RUN} names '{entry.name}': provide {entry.needs}"))
    return found


def _refused_of_run(config):
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(
        config, "workerinput"
    ):  # workers of xdist: their reports reach the controller
        return []
    skips = [*reporter.stats.get("skipped", []), *reporter.stats.get("xfailed", [])]
    must_run = {name.strip() for name in os.environ.get(MUST_RUN, "").split(",") if name.strip()}
    unknown = must_run - {entry.name for entry in ALLOWED}
    if unknown:
        known = ", ".join(entry.name for entry in ALLOWED)
        return [(MUST_RUN, f"unknown: {', '.join(sorted(unknown))}", f"known: {known}")]
    return refused(skips, must_run=must_run)


def pytest_sessionfinish(session, exitstatus):
    if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) and _refused_of_run(
        session.config
    ):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    """After pytest's own list of skips and their reasons (-ra), those that make the run fail."""
    found = _refused_of_run(config)
    if found:
        terminalreporter.section("skips that are not allowed", red=True)
        for nodeid, reason, remedy in found:
            terminalreporter.line(f"{nodeid}: {reason} ({remedy})")
