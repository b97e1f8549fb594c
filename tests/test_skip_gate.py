"""The gate of tests/skip_gate.py: runs of pytest that skip what is listed pass, all others fail."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import skip_gate

ROOT = Path(__file__).parents[1]

CONFTEST = """
import sys
sys.path.insert(0, {tests!r})
import skip_gate
from skip_gate import pytest_sessionfinish, pytest_terminal_summary
skip_gate.ALLOWED[:] = [skip_gate.Allowed("moon", "*test_sample_*.py*", "no moon", "a moon")]
"""

SKIPS = {
    "a call": "def test_it(): pytest.skip({reason!r})",
    "a mark": "@pytest.mark.skipif(True, reason={reason!r})\ndef test_it(): pass",
    "a module": "pytest.skip({reason!r}, allow_module_level=True)",
    "a fixture": "@pytest.fixture\ndef f(): pytest.skip({reason!r})\ndef test_it(f): pass",
    "a missing package": "pytest.importorskip('no_such_package', reason={reason!r})",
    "an expected failure": "@pytest.mark.xfail(reason={reason!r})\ndef test_it(): assert False",
}


def run(place, bodies, *options, **variables):
    """Run pytest on a file for each of the bodies, and on one whose test passes."""
    (place / "conftest.py").write_text(CONFTEST.format(tests=str(ROOT / "tests")))
    for number, body in enumerate(bodies):
        (place / f"test_sample_{number}.py").write_text(f"import pytest\n{body}\n")
    (place / "test_other.py").write_text("def test_passes(): pass\n")
    (place / "pytest.ini").write_text("[pytest]\naddopts = -q -ra\n")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options],
        cwd=place,
        env={key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "TIEBENCH"))}
        | variables,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("options", [[], ["-n", "1"]], ids=["one process", "xdist"])
@pytest.mark.thorough
def test_only_listed_skips_pass(tmp_path, options):
    done = run(tmp_path, [body.format(reason=f"no moon, {kind}") for kind, body in SKIPS.items()], *options)
    assert done.returncode == 0, done.stdout
    assert all(f"no moon, {kind}" in done.stdout for kind in SKIPS)
    assert "not allowed" not in done.stdout
    done = run(tmp_path, [body.format(reason=f"no stars, {kind}") for kind, body in SKIPS.items()], *options)
    assert done.returncode == 1, done.stdout
    assert "skips that are not allowed" in done.stdout
    for kind in SKIPS:
        assert f"no stars, {kind} (not listed in tests/skip_gate.py)" in done.stdout


@pytest.mark.thorough
def test_a_listed_skip_fails_where_its_tests_must_run(tmp_path):
    body = SKIPS["a call"].format(reason="no moon")
    done = run(tmp_path, [body], TIEBENCH_MUST_RUN="moon")
    assert done.returncode == 1 and "names 'moon': provide a moon" in done.stdout
    done = run(tmp_path, [body], TIEBENCH_MUST_RUN="mon")
    assert done.returncode == 1 and "unknown: mon (known: moon)" in done.stdout


def test_a_failure_stays_a_failure(tmp_path):
    done = run(tmp_path, ["def test_it(): assert False"])
    assert done.returncode == 1 and "not allowed" not in done.stdout


def test_every_entry_names_tests_that_exist():
    """A pattern of files that are gone would hide new skips."""
    names = [entry.name for entry in skip_gate.ALLOWED]
    assert len(names) == len(set(names))
    for entry in skip_gate.ALLOWED:
        assert list(ROOT.glob(entry.tests.split("::")[0])), entry.tests
        assert entry.needs and entry.reason


def test_this_suite_installs_the_gate(pytestconfig):
    hooks = pytestconfig.pluginmanager.hook.pytest_sessionfinish.get_hookimpls()
    assert skip_gate.pytest_sessionfinish in [hook.function for hook in hooks]
