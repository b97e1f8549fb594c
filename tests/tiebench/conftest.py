"""The command `tiebench`, run in this process: what it prints, or the one line in which it ends."""

import json

import pytest

from tiebench.__main__ import main


@pytest.fixture
def said(capsys):
    """Function of the words of a command that succeeds: what it prints."""

    def run(*words):
        assert main([*map(str, words)]) == 0
        return capsys.readouterr().out

    return run


@pytest.fixture
def printed(said):
    """What a command prints that succeeds, read as JSON."""
    return lambda *words: json.loads(said(*words))


@pytest.fixture
def leaking(capsys):
    """Function of the words of a check that finds leaks: its report, with which the lines on stderr agree."""

    def run(*words):
        assert main(["check-split", *map(str, words)]) == 1
        printed = capsys.readouterr()
        report = json.loads(printed.out)
        assert printed.err.splitlines() == [f"leak: {leak}" for leak in report["leaks"]]
        return report

    return run


@pytest.fixture
def fails(capsys):
    """Function of the words of a command that fails: its line on stderr, the only one."""

    def run(*words):
        assert main([*map(str, words)]) == 1
        found = capsys.readouterr()
        assert found.out == "" and found.err.startswith("error: ") and found.err.count("\n") == 1, found
        return found.err

    return run


@pytest.fixture
def misused(capsys):
    """Function of words that are no command: the last line on stderr."""

    def run(*words):
        with pytest.raises(SystemExit) as caught:
            main([*map(str, words)])
        assert caught.value.code == 2
        return capsys.readouterr().err.splitlines()[-1]

    return run
