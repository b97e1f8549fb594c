"""Texts to embed: plain lines, tab-separated columns, or JSON lines. Read as a stream, never held whole.

| ending | items |
|---|---|
| `.txt` | each line is a text |
| `.tsv` | a header names the columns: `text`, and optionally `id`, `class`, `split`; no quoting |
| `.jsonl` | each line is an object of these keys; also BEIR's `_id`, and `title`, put before the text |

Files are as `tiebench.texts` opens them, also gzip (`.txt.gz`). Other columns and keys are ignored. A key of
the first item must be in every item.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tiebench import texts
from tiebench.messages import did_you_mean, printable

ENDINGS = (".txt", ".tsv", ".jsonl")
FIELDS = ("id", "class", "split")


@dataclass(frozen=True)
class TextItems:
    """Items of a file but their texts. columns: of `id`, `class`, `split`, those that the file has."""

    path: Path
    count: int
    columns: dict[str, list[str]]
    sha256: str

    def texts(self, start: int = 0) -> Iterator[str]:
        """The texts from item `start` on."""
        for number, item in enumerate(_items(self.path)):
            if number >= start:
                yield item["text"]


def read_text_items(path: Path) -> TextItems:
    """Read all but the texts, and check these.

    Raises FileNotFoundError; ValueError, naming the line, for another ending, a line that is not as the
    module says, and a repeated id.
    """
    path = Path(path)
    if (ending := _ending(path)) not in ENDINGS:
        raise ValueError(f"{path}: unknown kind of texts{did_you_mean(ending, ENDINGS)}")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    columns: dict[str, list[str]] = {}
    digest, count, seen = hashlib.sha256(), 0, set()
    for count, item in enumerate(_items(path), start=1):
        if count == 1:
            columns = {field: [] for field in FIELDS if field in item}
        for field, values in columns.items():
            if field not in item:
                raise ValueError(f"{path}: item {count} has no '{field}', the first item has")
            values.append(item[field])
        for field in FIELDS:
            if field in item and field not in columns:
                raise ValueError(f"{path}: item {count} has '{field}', the first item has not")
        if "id" in item:
            if item["id"] in seen:
                raise ValueError(f"{path}: id '{printable(item['id'])}' of item {count} was there before")
            seen.add(item["id"])
        digest.update(json.dumps([item[field] for field in sorted(item)]).encode())
    if not count:
        raise ValueError(f"{path}: holds no text")
    return TextItems(path, count, columns, digest.hexdigest())


def _items(path: Path) -> Iterator[dict[str, str]]:
    """Fields of each item, all text."""
    read = {".txt": _plain, ".tsv": _tabs, ".jsonl": _objects}[_ending(path)]
    return read(path, _lines(path))


def _ending(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).suffix


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """(number from 1, line without its end); blank lines at the end of the file are left out."""
    blank = []
    for number, line in texts.lines(path):
        if not line.strip():
            blank.append((number, line))
            continue
        yield from blank
        blank = []
        yield number, line


def _plain(path: Path, lines: Iterator[tuple[int, str]]) -> Iterator[dict[str, str]]:
    for number, line in lines:
        if not line.strip():
            raise ValueError(f"{path}: line {number} is blank; every line is one text")
        yield {"text": line}


def _tabs(path: Path, lines: Iterator[tuple[int, str]]) -> Iterator[dict[str, str]]:
    header = next(lines, (1, ""))[1].split("\t")
    if "text" not in header:
        raise ValueError(f"{path}: its first line must name the columns, among them 'text', tabs between")
    if len(set(header)) < len(header):
        raise ValueError(f"{path}: a column is named twice in the first line")
    for number, line in lines:
        values = line.split("\t")
        if len(values) != len(header):
            raise ValueError(f"{path}: line {number} has {len(values)} columns, the header {len(header)}")
        row = dict(zip(header, values))
        yield {field: row[field] for field in ("text", *FIELDS) if field in row}


def _objects(path: Path, lines: Iterator[tuple[int, str]]) -> Iterator[dict[str, str]]:
    for number, line in lines:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}: line {number} is not valid JSON") from error
        if not isinstance(found, dict):
            raise ValueError(f'{path}: line {number} must be an object such as {{"text": "..."}}')
        if "id" not in found and "_id" in found:
            found["id"] = found["_id"]
        if "text" not in found:
            raise ValueError(f"{path}: line {number} has no key 'text'{did_you_mean('text', found)}")
        item = {}
        for field in ("text", "title", *FIELDS):
            if field not in found:
                continue
            value = found[field]
            if isinstance(value, bool) or not isinstance(value, (str, int)):
                raise ValueError(f"{path}: line {number}: '{field}' must be text or an integer")
            item[field] = str(value)
            if any("\ud800" <= character <= "\udfff" for character in item[field]):
                raise ValueError(
                    f"{path}: line {number}: '{field}' holds half a character (a lone surrogate)"
                )
        # As BEIR's own code joins them.
        item["text"] = f"{item.pop('title', '')} {item['text']}".strip()
        yield item
