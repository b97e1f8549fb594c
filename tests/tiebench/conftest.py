"""The command `tiebench`, run in this process: what it prints, or the one line in which it ends."""

import json

import pytest

from tiebench.__main__ import main


@pytest.fixture
def printed(capsys):
    """Function of the words of a command that succeeds: what it prints, read as JSON."""

    def run(*words):
        assert main([*map(str, words)]) == 0
        return json.loads(capsys.readouterr().out)

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
