"""The one way in which text from users is opened and read: lines, columns, headers, numbers.

A text is UTF-8, with byte-order marks or without, plain or gzip: its contents say so, not its name. Lines end
with a line feed, a carriage return or both. What is no such text is refused in one line with the file and the
number of the line: another encoding, NUL bytes, a damaged gzip file.
"""

import gzip
import posixpath
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import IO

from tiebench.messages import one_line, printable

AnyPath = str | PathLike[str]
LARGEST = 2**63 - 1
LONGEST_LINE = 1 << 24  # bytes: a file without line ends is not lines of text
_MARK = b"\xef\xbb\xbf"  # U+FEFF in UTF-8
_OTHER_MARKS = (b"\xff\xfe", b"\xfe\xff")  # UTF-16, and UTF-32 in the order of most machines
_GZIP = b"\x1f\x8b"
_BLOCK = 1 << 20  # bytes that are read at a time
_MARKS_OF_LINES = re.compile(rb"^" + _MARK, re.MULTILINE)
_WORD = re.compile(r"[^\t-\r ]+")  # as isspace of C: not the white space of Unicode, nor its line ends
_BLANKS = "\t\n\v\f\r "
_LABEL = re.compile(r"[^\t-\r ,]+")
_ENDS_OF_PATHS = [re.compile(mark) for mark in ("\t", "[\t-\r ]", ",")]
_GLUED = re.compile(r"[\s,;|:][+-]?[0-9]+(\.0*)?$")
_DECIMAL = re.compile(r"([+-]?)(?=\.?[0-9])([0-9]*)\.?([0-9]*)(?:[eE]([+-]?)0*([0-9]+))?")
_HEXADECIMAL = re.compile(r"[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)([pP][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(inf|infinity|nan)", re.IGNORECASE)
# Words of headers over runs and judgements, in small letters and with "_" for "-" and blanks.
_HEADER_WORDS = {
    *("query", "query_id", "queryid", "q", "qid", "topic", "topic_id"),
    *("q0", "iter", "iteration"),
    *("document", "document_id", "doc", "doc_id", "docid", "docno", "corpus_id", "passage_id", "pid"),
    *("item", "item_id"),
    *("rank", "score", "rel", "relevance", "label", "grade", "judgement", "judgment"),
    *("tag", "run", "run_id", "run_name", "run_tag", "system"),
}


@dataclass(frozen=True)
class Text:
    """A text: its path, as messages call it, and its contents, UTF-8 without marks and with line feeds."""

    path: str
    contents: bytes

    def lines(self) -> list[str]:
        """Lines without the blank ones at the end."""
        lines = self.contents.decode().split("\n")
        while lines and not lines[-1].strip(_BLANKS):
            lines.pop()
        return lines


def read(path: AnyPath) -> Text:
    """The text of a file.

    Raises OSError for a file that cannot be read, ValueError for one that is not text as the module says.
    """
    return of_bytes(str(path), Path(path).read_bytes())


def of_bytes(path: str, contents: bytes) -> Text:
    """The text of these bytes, as of a member of a zip; path: what messages call it. Raises as `read`."""
    if contents.startswith(_GZIP):
        with _unpacking(path):
            contents = gzip.decompress(contents)
    return Text(path, _plain(path, contents, 1))


def lines(path: AnyPath) -> Iterator[tuple[int, str]]:
    """(number from 1, line without its end) of a file that need not fit into memory. Raises as `read`."""
    number = 1
    with Path(path).open("rb") as file:
        packed = file.read(len(_GZIP)) == _GZIP
        file.seek(0)
        with gzip.open(file) if packed else file as stream:
            for block in _blocks(path, stream):
                found = _plain(path, block, number).decode().removesuffix("\n").split("\n")
                yield from enumerate(found, number)
                number += len(found)


def fields(line: str) -> list[str]:
    """Columns of a line: what stands between tabs where it has tabs, else words between white space.

    White space around a column is no part of it; several tabs separate as one does.
    """
    if "\t" not in line:
        return _WORD.findall(line)
    return [field for part in line.split("\t") if (field := part.strip(_BLANKS))]


def is_header(words: list[str]) -> bool:
    """Whether the columns of a first line name columns: each is a known name, as "query-id" or "score"."""
    plain = [re.sub("[- ]", "_", word.lower()) for word in words]
    return all(word in _HEADER_WORDS or (word == "0" and place == 1) for place, word in enumerate(plain))


def path_and_labels(line: str) -> tuple[str, str]:
    """The path of a line of a split's list, and the labels behind it, still one text ("" if there are none).

    The path ends at the first tab; in a line without tabs at the first white space; in one without any at the
    first comma. It is spelt with "/" and without "." and "..", so that one item has one path. A blank line
    has neither. Raises ValueError, for the caller to say where, for a path that is empty, in quotes or ends
    in a label.
    """
    line = line.lstrip(_BLANKS)
    if not line:
        return "", ""
    end = next((found for mark in _ENDS_OF_PATHS if (found := mark.search(line))), None)
    path, labels = (line, "") if end is None else (line[: end.start()], line[end.end() :])
    path = path.rstrip(_BLANKS + ",")
    if not path or path[0] in "\"'" or _GLUED.search(path):
        raise ValueError(
            f"must be a path and, behind white space or a comma, labels, not {printable(line, 60)!r}"
        )
    if "\\" in path or "//" in path or "/." in path or path.startswith("."):
        path = re.sub("^//", "/", posixpath.normpath(path.replace("\\", "/")))
    return path, labels.strip(_BLANKS + ",")


def labels(text: str) -> list[int]:
    """The integers of a list's labels, between white space or commas. Raises ValueError as `integer`."""
    return [integer(word) for word in _LABEL.findall(text)]


def identifier(value: object) -> str:
    """How an id is written: text as it is, bytes as UTF-8, numbers in decimal digits."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def number(text: str) -> float:
    """The number that strtod of C reads in the whole of the text, also inf and nan.

    Raises ValueError that begins with "is", for the caller to say what is, for another text.
    """
    if _DECIMAL.fullmatch(text) or _NOT_FINITE.fullmatch(text):
        return float(text)
    if _HEXADECIMAL.fullmatch(text):
        try:
            return float.fromhex(text)
        except OverflowError:
            return float("-inf" if text.startswith("-") else "inf")
    raise ValueError(f"is not a number: {printable(text, 60)!r}")


def integer(text: str, smallest: int = -LARGEST - 1, largest: int = LARGEST) -> int:
    """The integer of the text: decimal digits, or a number that is whole, as "1.0" and "1e2".

    Raises ValueError that begins with "is", for the caller to say what is: for another text, and for a number
    outside of the limits, which it names and which lie below 10^40.
    """
    parts = _DECIMAL.fullmatch(text)
    value = None if parts is None else _whole(*parts.groups())
    if value is None:
        raise ValueError(f"is not an integer: {printable(text, 60)!r}")
    if not smallest <= value <= largest:
        side, limit = ("larger", largest) if value > largest else ("smaller", smallest)
        raise ValueError(f"is {side} than {_written(limit)}: {printable(text, 60)!r}")
    return value


def _whole(sign: str, before: str, after: str, minus: str | None, exponent: str | None) -> int | None:
    """The value of a decimal number, exact below 10^40, at least that else; None if it is not whole."""
    digits = (before + after).rstrip("0")
    if not digits.strip("0"):
        return 0
    # Exponents are cut: neither 10^999999999 nor its digits are ever made.
    power = int((minus or "") + (exponent or "0")[:10]) + len(before) - len(digits)
    if power < 0:
        return None
    digits = digits.lstrip("0")
    size = 10**40 if len(digits) + power > 40 else int(digits) * 10**power
    return -size if sign == "-" else size


def _written(limit):
    """An integer as messages say it: limits of machine integers as powers of 2."""
    if limit > 2**30 and (limit + 1).bit_count() == 1:
        return f"2^{limit.bit_length()} - 1"
    if limit < -(2**30) and (-limit).bit_count() == 1:
        return f"-2^{(-limit).bit_length() - 1}"
    return str(limit)


def _blocks(path: AnyPath, stream: IO[bytes] | gzip.GzipFile) -> Iterator[bytes]:
    """Whole lines of a stream, about `_BLOCK` bytes at a time."""
    rest, number = b"", 1
    while True:
        with _unpacking(path):
            found = stream.read(_BLOCK)
        block = rest + found
        # A carriage return at the end may have its line feed in the next block.
        end = len(block) if not found else max(block.rfind(b"\n"), block.rfind(b"\r", 0, -1)) + 1
        if end:
            yield block[:end]
            number += len(re.findall(rb"\r\n|\r|\n", block[:end]))
        rest = block[end:]
        if len(rest) > LONGEST_LINE:
            raise ValueError(f"{path}: line {number} is longer than {LONGEST_LINE} bytes")
        if not found:
            return


@contextmanager
def _unpacking(path: AnyPath) -> Iterator[None]:
    """Errors of a damaged gzip file, as ValueErrors of one line."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: not a whole gzip file ({one_line(error)})") from error


def _plain(path: AnyPath, contents: bytes, first: int) -> bytes:
    """Lines of a text without marks and with line feeds; first: the number of the first line."""
    if contents.startswith(_OTHER_MARKS):
        raise ValueError(f"{path}: line {first} is not UTF-8 text but UTF-16 or UTF-32; save it as UTF-8")
    if b"\r" in contents:
        contents = contents.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if (place := contents.find(b"\0")) >= 0:
        line = first + contents.count(b"\n", 0, place)
        raise ValueError(f"{path}: line {line} is not UTF-8 text (it holds a NUL byte)")
    if not contents.isascii():
        try:
            contents.decode()
        except UnicodeDecodeError as error:
            line = first + contents.count(b"\n", 0, error.start)
            raise ValueError(f"{path}: line {line} is not UTF-8 text ({error.reason})") from error
        if _MARK in contents:  # also where files were put together
            contents = _MARKS_OF_LINES.sub(b"", contents)
    return contents
