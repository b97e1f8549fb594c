"""What all commands of this repository share: options that name files, and output that any terminal can show.

An option that names a path has `type=Reads(...)` or `type=Writes(...)`, one that takes any other text has
`type=word`. `Parser` then refuses to write a file that the same command reads, before anything is computed.
"""

import argparse
import codecs
import fnmatch
import glob
import io
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from tiebench.messages import did_you_mean

# Typography of help and messages -> what stands for it where the encoding of the output lacks it.
_PLAIN = {
    "…": "...",
    "–": "-",
    "—": "-",
    "−": "-",
    "×": "x",
    "±": "+/-",
    "≤": "<=",
    "≥": ">=",
    "→": "->",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "\N{NO-BREAK SPACE}": " ",
}


_HANDLERS = ("strict", "surrogateescape", "backslashreplace")  # those that Python gives to a stream


def word(text: str) -> str:
    """The type of an option that takes text and names no path."""
    return text


class Reads:
    """The type of an option that names what a command reads: a file or a folder.

    members: shell patterns of the paths inside a folder that are read, such as "*.npy"; `*` also matches `/`.
    A value that is no path but a pattern stands for the paths that it matches.
    """

    def __init__(self, *members: str):
        self.members = members

    def __call__(self, text: str) -> str:
        return _path(text)

    def paths(self, value: str) -> Iterator[Path]:
        """The paths that a value stands for: each file or folder, and what is read inside a folder."""
        whole = Path(value.removeprefix("file://"))
        # Those of Path raise for a folder that may not be entered.
        there = os.path.exists(whole)  # noqa: PTH110
        matched = [] if there else glob.glob(str(whole), recursive=True)  # noqa: PTH207
        for path in [Path(one) for one in matched] or [whole]:
            yield path
            if self.members and os.path.isdir(path):  # noqa: PTH112
                for name in _below(path):
                    if any(fnmatch.fnmatchcase(name, pattern) for pattern in self.members):
                        yield path / name


class Writes:
    """The type of an option that names a file, or with `folder` a folder, that a command writes.

    also: endings that make the names of further files beside it, which are written too.
    """

    def __init__(self, folder: bool = False, also: Sequence[str] = ()):
        self.folder, self.also = folder, tuple(also)

    def __call__(self, text: str) -> str:
        return _path(text)


def _path(text: str) -> str:
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError(f"{text!r} cannot be a path")
    return text


def _below(folder: Path) -> Iterator[str]:
    """Paths of all that is below a folder, relative to it, through links to folders as well."""
    seen, waiting = set(), [""]
    while waiting:
        inside = waiting.pop()
        where = folder / inside
        if (identity := _identity(where)) is None or identity in seen:
            continue
        seen.add(identity)
        try:
            with os.scandir(where) as entries:
                for entry in entries:
                    yield f"{inside}{entry.name}"
                    if entry.is_dir():
                        waiting.append(f"{inside}{entry.name}/")
        except OSError:  # a folder that cannot be read holds nothing that is read
            continue


def _identity(path: str | os.PathLike) -> tuple[int, int] | None:
    """What a file or folder is, whatever it is called; None if there is none."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def names(text: str) -> list[str]:
    """The type of an option that lists names, with commas between them; one at least."""
    found = [name.strip() for name in text.split(",") if name.strip()]
    if not found:
        raise argparse.ArgumentTypeError("must name one at least")
    return found


class _Output(NamedTuple):
    option: str
    folder: bool
    path: str


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose options name what they read and write; its subcommands are such parsers too.

    Ends the process with one line where a file to be written is read as well, by whatever spelling or link,
    where two options write the same file, and where a folder stands in the place of a file.
    """

    def __init__(self, *arguments: Any, **settings: Any):
        super().__init__(*arguments, **settings)
        self._without_option: list[tuple[str, Reads, str]] = []

    def also_reads(self, what: str, path: str | os.PathLike, *members: str) -> None:
        """Declare a path that the command reads without an option for it, called `what` in messages."""
        self._without_option.append((what, Reads(*members), os.fspath(path)))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does, with the nearest name of an unknown option, then the check of the paths."""
        print_in_any_encoding()
        options, rest = super().parse_known_args(args, namespace)
        for unknown in rest:
            if unknown.startswith("--"):
                hint = did_you_mean(unknown.partition("=")[0], self._option_string_actions)
                self.error(f"unrecognized arguments: {unknown}{hint}")
        self._check_paths(options)
        return options, rest

    def _check_paths(self, options: argparse.Namespace) -> None:
        read, written = list(self._without_option), []
        for action in self._actions:
            name = "/".join(action.option_strings) or str(action.metavar or action.dest)
            for value in _values(getattr(options, action.dest, None)):
                if isinstance(action.type, Reads):
                    read.append((f"{name} {value}", action.type, value))
                elif isinstance(action.type, Writes):
                    endings = ("", *action.type.also)
                    written += [_Output(name, action.type.folder, value + ending) for ending in endings]
        before: dict[Any, _Output] = {}
        for output in written:
            if (found := self._checked(output)) is None:
                continue
            first = before.setdefault(found, output)
            if first is not output:
                kind = "folder" if output.folder else "file"
                self._refuse(output, f"{first.option} {first.path} is the same {kind}")
            for what, kind_of_source, path in read:
                if any(_identity(one) == found for one in kind_of_source.paths(path)):
                    self._refuse(output, f"it is read ({what}), and what is read is never written")

    def _checked(self, output: _Output) -> tuple[int, int] | str | None:
        """What tells an output from others; None for a device or a pipe, where nothing can be lost."""
        try:
            mode = Path(output.path).stat().st_mode
        except OSError:
            return os.path.realpath(output.path)
        if stat.S_ISDIR(mode) and not output.folder:
            self._refuse(output, "a folder; name a file in it")
        if output.folder and not stat.S_ISDIR(mode):
            self._refuse(output, "not a folder")
        return _identity(output.path) if stat.S_ISDIR(mode) or stat.S_ISREG(mode) else None

    def _refuse(self, output: _Output, reason: str) -> NoReturn:
        line = " ".join(f"{output.option} {output.path}: {reason}".split())
        self.exit(2, f"{self.prog}: error: {line}\n")


def _values(value: Any) -> list[str]:
    """The texts that were given to an option."""
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


# -- any encoding ----------------------------------------------------------------------------------------


def print_in_any_encoding() -> None:
    """Let standard output and standard error show every text, whatever their encoding.

    What an encoding lacks is written as plain typography, or as an escape such as `\\u0107`.
    """
    codecs.register_error("tiebench.plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        if not isinstance(stream, io.TextIOWrapper) or stream.errors not in _HANDLERS:
            continue
        # Streams of the C locale are UTF-8 that gives back the bytes of names of files.
        if (stream.errors, codecs.lookup(stream.encoding).name) != ("surrogateescape", "utf-8"):
            stream.reconfigure(errors="tiebench.plain")


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    """Handler of encoding errors: plain typography, else escapes."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    end = error.start + 1
    character = error.object[error.start]
    if character in _PLAIN:
        return _PLAIN[character], end
    return character.encode("ascii", "backslashreplace").decode("ascii"), end
