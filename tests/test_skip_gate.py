"""The gate of tests/skip_gate.py: a run of pytest that skips what is listed passes, all others fail."""

from pathlib import Path

import pytest
import skip_gate

pytest_plugins = ["pytester"]

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
def test_only_listed_skips_pass(pytester, monkeypatch, reason, must_run, said, skip):
    pytester.makeconftest(CONFTEST.format(tests=str(ROOT / "tests")))
    pytester.makepyfile(test_sample=f"import pytest\n{skip.format(reason)}\n")
    monkeypatch.setenv("TIEBENCH_MUST_RUN", must_run)
    done = pytester.runpytest_subprocess("-ra")
    assert (done.ret == 1) == (said is not None)
    assert (said or "1 skipped") in done.stdout.str()


def test_every_entry_names_tests_that_exist():
    """A pattern of files that are gone would hide new skips."""
    names = [entry.name for entry in skip_gate.ALLOWED]
    assert len(names) == len(set(names))
    for entry in skip_gate.ALLOWED:
        assert list(ROOT.glob(entry.tests.split("::")[0])), entry.tests
        assert entry.needs and entry.reason
