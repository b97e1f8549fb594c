"""Rules of source files: their names and addresses, and whether a file is the one that is recorded."""

import hashlib
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from tiebench.files import read_json, write_json

SUMS = ("sha256", "md5")
BLOCK = 1 << 20  # bytes read at once
_LOCAL = {"localhost", "127.0.0.1"}


def is_plain(file):
    """Whether a source's `file` is a relative path that does not leave its folder."""
    parts = file.split("/")
    return can_be_name(file) and "\\" not in file and not {"", ".", ".."} & set(parts)


def can_be_name(file):
    """Whether a path is short enough for file systems, printable, and without Snakemake's braces."""
    parts = file.split("/")
    short = len(file.encode(errors="replace")) < 4096 and all(len(part.encode()) <= 255 for part in parts)
    named = file.isprintable() and {"{", "}"}.isdisjoint(file)
    return short and named and all(part.strip() == part for part in parts)


def url_mistake(url):
    """What is wrong with the URL of a mirror, in words, or None."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 (raises for a port that is not a number)
    except ValueError as error:
        return f"not a valid URL ({error})"
    if parts.scheme not in ("http", "https"):
        return f"must begin with https://, not {parts.scheme or url[:20]!r}"
    return None if parts.hostname else "has no host"


def is_trusted(url, source):
    """Whether a download from a URL is protected against modification on the way.

    https is, and so is http from this machine; other http only if a checksum of the file is recorded.
    """
    parts = urlsplit(url)
    return parts.scheme == "https" or (
        parts.scheme == "http" and (parts.hostname in _LOCAL or has_checksum(source))
    )


def mirrors(source):
    """The URLs of a source that may be used, in their order; none for an absolute path."""
    if PurePosixPath(source["file"]).is_absolute():
        return []
    return [url for url in source.get("urls", ()) if is_trusted(url, source)]


def has_checksum(source):
    return any(source.get(kind) for kind in SUMS)


class Sums:
    """bytes and checksums of a file, of `kinds`, block by block."""

    def __init__(self, kinds=SUMS):
        self.bytes = 0
        self._sums = {kind: hashlib.new(kind, usedforsecurity=False) for kind in kinds}

    def add(self, block):
        self.bytes += len(block)
        for total in self._sums.values():
            total.update(block)

    def read(self, file):
        """Add the rest of an open file. Returns self."""
        while block := file.read(BLOCK):
            self.add(block)
        return self

    def found(self):
        """{"bytes", kind: hexadecimal digest}."""
        return {"bytes": self.bytes} | {kind: total.hexdigest() for kind, total in self._sums.items()}


def mistake(found, source):
    """How `found`, {"bytes", "sha256", …}, differs from what the source records, in words, or None."""
    for kind in SUMS:  # before the length, which says less
        if source.get(kind) and found[kind] != source[kind]:
            return f"has {kind} {found[kind]}, not the recorded {source[kind]}"
    if source.get("bytes") and found["bytes"] != source["bytes"]:
        return f"has {found['bytes']} bytes, not the recorded {source['bytes']}"
    return None


def stamp(path):
    """Size and time of a file, [bytes, nanoseconds]; None where there is none.

    Snakemake looks for files that are newer than what was made of them: one that is put in place of another
    keeps its own time, which may be before.
    """
    if not Path(path).is_file():
        return None
    stat = Path(path).stat()
    return [stat.st_size, stat.st_mtime_ns]


def check(path, source, memory=None):
    """Compare a file with what its source records.

    Returns {"bytes", "mtime_ns"} and the recorded kinds of checksums; {} for a folder, which is not checked.
    Raises ValueError with both checksums if they differ.

    memory: .json file that keeps checksums of files, by path; they are computed again only after the size or
    modification time of a file has changed.
    """
    path = Path(path)
    if not path.is_file():
        return {}
    known = read_json(memory) if memory is not None and Path(memory).is_file() else {}
    stat = path.stat()
    found = known.get(str(path), {})
    needed = [kind for kind in SUMS if source.get(kind)]
    unchanged = (found.get("bytes"), found.get("mtime_ns")) == (stat.st_size, stat.st_mtime_ns)
    if not unchanged or not set(needed) <= found.keys():
        found = {"bytes": stat.st_size, "mtime_ns": stat.st_mtime_ns}
        if needed:
            with path.open("rb") as file:
                found |= Sums(needed).read(file).found()
            if memory is not None:
                write_json(memory, known | {str(path): found})
    if wrong := mistake(found, source):
        raise ValueError(f"{path} {wrong}: the file is wrong or damaged; replace or remove it")
    return found
