"""All commands of the repository: no file is written that is read, and any terminal shows what they print."""

import argparse
import ast
import importlib
import io
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from tiebench import commands
from tiebench.command_line import Parser, Reads, Writes, print_in_any_encoding

ROOT = Path(__file__).parents[1]
PACKAGES = ("benchmarks", "datasets", "methods", "networks", "reporting", "tiebench", "workflow")
MODULES = (
    "benchmarks.__main__",
    "methods.__main__",
    "networks.__main__",
    "reporting.__main__",
    "tiebench.__main__",
    "workflow.documentation.__main__",
    "workflow.documentation.notebooks",
)


class _Made(Exception):
    """Carries the parser of a command."""


def _parsers():
    """Words of a command -> its parser: those of `MODULES` and of their subcommands."""
    found = {}
    for name in MODULES:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Parser, "parse_known_args", lambda self, *_: _raise(_Made(self)))
            try:
                importlib.import_module(name).main(list(commands.KIND.find()))
            except _Made as made:
                waiting = [((name,), made.args[0])]
        while waiting:
            words, parser = waiting.pop()
            below = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
            waiting += [((*words, key), value) for one in below for key, value in one.choices.items()]
            if not below:
                found[words] = parser
    return found


def _raise(error):
    raise error


PARSERS = _parsers()
ids = " ".join


def test_every_program_is_listed():
    makes = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("ArgumentParser", "Parser"))
    }
    # Scripts are started by rules alone, whose files Snakemake keeps apart.
    assert makes - {"workflow.scripts._job"} == set(MODULES)


@pytest.mark.parametrize("words", PARSERS, ids=ids)
def test_each_option_says_whether_it_names_a_path(words):
    parser = PARSERS[words]
    assert isinstance(parser, Parser)
    for action in parser._actions:
        if action.nargs != 0 and action.choices is None:
            # Without a type, or as plain text, nobody would know.
            assert action.type not in (None, str, Path), action.option_strings or action.dest


def _pairs():
    for words, parser in PARSERS.items():
        outputs = [one for one in parser._actions if isinstance(one.type, Writes)]
        for number, output in enumerate(outputs):
            for other in parser._actions:
                if isinstance(other.type, Reads) or (
                    other in outputs[:number] and other.type.folder == output.type.folder
                ):
                    yield words, output, other


PAIRS = list(_pairs())


def test_the_pairs_are_those_of_the_commands():
    assert len(PAIRS) > 20
    named = {(words[-1], output.dest, other.dest) for words, output, other in PAIRS}
    assert {
        ("score", "per_query", "files"),
        ("export", "qrels", "output"),
        ("table", "output", "results"),
    } <= named


def _name(action):
    return action.option_strings[0] if action.option_strings else action.metavar or action.dest


def _line(words, **values):
    """A command line in which these options have these values, and all that must be given has one."""
    parser, line = PARSERS[words], list(words[1:])
    for action in parser._actions:
        needed = action.required or (not action.option_strings and action.nargs in (None, "+"))
        if action.dest not in values and not needed:
            continue
        value = values.get(action.dest) or (next(iter(action.choices)) if action.choices else "1")
        line += [*action.option_strings[:1], value]
    return line


def _refused(words, line, capsys):
    """The one line with which a command refuses what was given."""
    with pytest.raises(SystemExit) as caught:
        importlib.import_module(words[0]).main(line)
    printed = capsys.readouterr()
    assert caught.value.code == 2 and printed.out == "" and printed.err.count("\n") == 1, printed
    return printed.err


def _same(path):
    yield str(path)
    yield f"{path.parent}/../{path.parent.name}/./{path.name}"
    link = path.with_name("link")
    link.symlink_to(path)
    yield str(link)
    if path.is_file():
        hard = path.with_name("hard")
        os.link(path, hard)
        yield str(hard)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: " ".join([*pair[0], _name(pair[1]), _name(pair[2])]))
def test_what_is_read_is_not_written_nor_one_file_twice(pair, tmp_path, capsys, monkeypatch):
    words, output, other = pair
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "here" / "a.npz"
    if output.type.folder:
        path.mkdir(parents=True)
    else:
        path.parent.mkdir()
        path.write_bytes(b"of the user")
    for written in _same(path):
        line = _refused(words, _line(words, **{output.dest: written, other.dest: str(path)}), capsys)
        assert all(_name(one) in line for one in (output, other))
    assert output.type.folder or path.read_bytes() == b"of the user"


MEMBERS = [pair for pair in PAIRS if getattr(pair[2].type, "members", ()) and not pair[1].type.folder]


@pytest.mark.parametrize(
    "pair", MEMBERS, ids=lambda pair: " ".join([*pair[0], _name(pair[1]), _name(pair[2])])
)
def test_what_is_read_inside_a_folder_is_not_written(pair, tmp_path, capsys, monkeypatch):
    words, output, other = pair
    monkeypatch.chdir(tmp_path)
    folder, link = tmp_path / "folder", tmp_path / "elsewhere"
    for pattern in other.type.members:
        path = folder / pattern.replace("*", "deep/a.npz")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"of the user")
        link.unlink(missing_ok=True)
        os.link(path, link)
        for written in (path, link):
            line = _line(words, **{output.dest: str(written), other.dest: str(folder)})
            line = _refused(words, line, capsys)
            assert _name(output) in line and f"{_name(other)} {folder}" in line


def test_a_folder_is_no_file_to_write_and_a_new_file_beside_what_is_read_is(tmp_path, capsys):
    parser = Parser("program")
    parser.add_argument("read", type=Reads("*.npy"))
    parser.add_argument("--write", type=Writes(also=(".more",)))
    parser.add_argument("--other", type=Writes())
    (tmp_path / "a.npy").touch()
    (tmp_path / "used.txt").touch()
    for name in ("new.npy", "used.txt", "../elsewhere"):
        assert parser.parse_args([str(tmp_path), "--write", f"{tmp_path}/{name}"]).write.endswith(name)
    for device in ("/dev/null", "/dev/zero"):
        parser.parse_args([str(tmp_path), "--write", device, "--other", device])
    for given, message in (
        (["--write", str(tmp_path)], f"error: --write {tmp_path}: a folder; name a file in it"),
        (["--write", ""], "error: argument --write: '' cannot be a path"),
        (["--write", "x", "--other", "./x.more"], "error: --other ./x.more: --write x.more is the same file"),
        (["--write", "x", "--other", "y/../x"], "error: --other y/../x: --write x is the same file"),
    ):
        with pytest.raises(SystemExit):
            parser.parse_args([str(tmp_path), *given])
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit):
        parser.parse_args([f"{tmp_path}/*.npy", "--write", f"{tmp_path}/a.npy"])
    assert f"it is read (read {tmp_path}/*.npy)" in capsys.readouterr().err


def test_pages_are_never_written_over_what_they_are_made_of(capsys):
    for folder in (ROOT, ROOT / "docs", ROOT / "docs/images", ROOT / "leaderboard"):
        for given in ([str(folder)], ["--sources", str(folder)]):
            assert str(folder) in _refused(("workflow.documentation.__main__",), given, capsys)


# -- any encoding ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437", "utf-8"])
def test_every_help_can_be_shown(encoding, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for words in [*PARSERS, *((module,) for module in MODULES)]:
        shown = io.BytesIO()
        for name in ("stdout", "stderr"):
            monkeypatch.setattr(sys, name, io.TextIOWrapper(shown, encoding))
        with pytest.raises(SystemExit) as caught:
            importlib.import_module(words[0]).main([*words[1:], "--help"])
        sys.stdout.flush()
        assert caught.value.code == 0
        text = shown.getvalue().decode(encoding)
        assert "usage:" in text and "\\u" not in text, words
        # Commands to be copied stand on one line.
        assert not [line for line in text.split("\n") if len(line) > 80 and " -m " not in line], words
        if encoding == "utf-8" and words[-1] == "score":
            assert "B,B,…" in text


@pytest.mark.parametrize(
    ("encoding", "shown"), [("ascii", "... \\u0107 \\xe9 -"), ("cp437", "... \\u0107 é -")]
)
def test_what_an_encoding_lacks_is_plain_typography_or_an_escape(encoding, shown, monkeypatch):
    out = io.BytesIO()
    for name, errors in (("stdout", "strict"), ("stderr", "backslashreplace")):
        monkeypatch.setattr(sys, name, io.TextIOWrapper(out, encoding, errors))
    print_in_any_encoding()
    for stream in (sys.stdout, sys.stderr):
        print("… ć é –", file=stream, flush=True)
    assert out.getvalue().decode(encoding).splitlines() == [shown, shown]


def test_names_of_files_stay_bytes_in_the_c_locale(monkeypatch):
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, "utf-8", "surrogateescape"))
    print_in_any_encoding()
    print("…", os.fsdecode(b"\xe9"), flush=True)
    assert out.getvalue() == "…".encode() + b" \xe9\n"


# -- whole commands --------------------------------------------------------------------------------------


@pytest.fixture
def codes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = np.random.default_rng(0).integers(0, 2, (12, 8))
    labels = np.arange(12) % 3
    np.savez("a.npz", query=made, database=made, query_labels=labels, database_labels=labels)
    Path("folder").mkdir()
    for name, array in np.load("a.npz").items():
        np.save(f"folder/{name}.npy", array)
    Path("run.txt").write_text("q Q0 d 1 1.0 x\n", encoding="utf-8")
    Path("qrels.txt").write_text("q 0 d 1\n", encoding="utf-8")
    return tmp_path


def test_a_pipe_is_not_replaced_by_a_file(codes, capsys):
    os.mkfifo("pipe")
    words = ["score-run", "run.txt", "qrels.txt", "--per-query", "pipe"]
    assert importlib.import_module("tiebench.__main__").main(words) == 1
    assert capsys.readouterr().err == "error: pipe: exists and is not a file\n" and Path("pipe").is_fifo()


def test_a_writer_leaves_hidden_files_of_the_user_alone(codes, capsys):
    kept = [codes / name for name in (".out.npz.bak", ".out.npz.12345678")]
    for path in kept:
        path.touch()
    assert (
        importlib.import_module("tiebench.__main__").main(["score", "a.npz", "--per-query", "out.npz"]) == 0
    )
    assert all(path.exists() for path in kept) and np.load("out.npz")["ap"].shape == (12,)
