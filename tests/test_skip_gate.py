"""The gate of tests/skip_gate.py: a run of pytest that skips what is listed passes, all others fail."""

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
skip_gate.ALLOWED[:] = [skip_gate.Allowed("moon", "*test_sample.py*", "no moon", "a moon")]
"""


@pytest.mark.parametrize(
    ("reason", "must_run", "said"),
    [
        ("no moon", "", None),
        ("no stars", "", "no stars (not listed in tests/skip_gate.py)"),
        ("no moon", "moon", "names 'moon': provide a moon"),
        ("no moon", "mon", "unknown: mon (known: moon)"),
    ],
)
@pytest.mark.parametrize(
    "skip", ["def test_it(): pytest.skip({!r})", "pytest.importorskip('no', reason={!r})"]
)
@pytest.mark.thorough
def test_only_listed_skips_pass(tmp_path, reason, must_run, said, skip):
    (tmp_path / "conftest.py").write_text(CONFTEST.format(tests=str(ROOT / "tests")))
    (tmp_path / "test_sample.py").write_text(f"import pytest\n{skip.format(reason)}\n")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "TIEBENCH"))}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-ra"]
    done = subprocess.run(
        command, cwd=tmp_path, env=kept | {"TIEBENCH_MUST_RUN": must_run}, capture_output=True, text=True
    )
    assert (done.returncode == 1) == (said is not None), done.stdout
    assert (said or "1 skipped") in done.stdout


def test_every_entry_names_tests_that_exist():
    """A pattern of files that are gone would hide new skips."""
    names = [entry.name for entry in skip_gate.ALLOWED]
    assert len(names) == len(set(names))
    for entry in skip_gate.ALLOWED:
        assert list(ROOT.glob(entry.tests.split("::")[0])), entry.tests
        assert entry.needs and entry.reason
