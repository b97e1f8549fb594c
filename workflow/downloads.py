"""Download of source files over HTTP: several mirrors, resumed, retried, verified, and whole or absent.

requests handles connections, redirects, proxies and certificates. pooch would be the usual choice on top of
it, but it restarts an interrupted download, which may never finish for archives of gigabytes on slow hosts,
does not continue with another mirror, and deletes a file with a wrong checksum. This module does those
three things.
"""

import hashlib
import logging
import re
import time
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from tiebench.files import read_json, write_json
from tiebench.messages import one_line
from workflow.partial_file import BLOCK, SUMS, DownloadError, PartialFile

log = logging.getLogger("tiebench")

DELAYS = (1.0, 2.0, 4.0, 8.0, 16.0)  # seconds before each retry of a mirror
TIMEOUT = (10.0, 60.0)  # seconds to connect, and between two bytes
_LONGEST_DELAY = 60.0  # seconds of a mirror's Retry-After that are respected
_PROGRESS = 1 << 20  # bytes after which the count of failures in a row starts again
_LOCAL = {"localhost", "127.0.0.1"}
_TEMPORARY = {408, 425, 429}  # the 4xx that may be retried


class _Retry(Exception):
    """A temporary failure. seconds: how long the mirror asks to wait."""

    def __init__(self, reason, seconds=0.0):
        super().__init__(reason)
        self.seconds = seconds


class _NextMirror(Exception):
    """A permanent failure of a mirror."""


@dataclass(frozen=True)
class Fetched:
    """A file that `fetch` downloaded or found.

    url: the mirror it came from; checked: what it was compared with: "sha256", "md5", "length" (recorded, or
    stated by the mirror) or "nothing". sha256 and url are None if the file existed before.
    """

    bytes: int
    sha256: str | None
    url: str | None
    checked: str


# -- sources -----------------------------------------------------------------------------------------------


def is_plain(file):
    """Whether a source's `file` is a relative path that does not leave its folder."""
    parts = file.split("/")
    return can_be_name(file) and "\\" not in file and not {"", ".", ".."} & set(parts)


def can_be_name(file):
    """Whether a path is short enough for file systems, and printable."""
    parts = file.split("/")
    short = len(file.encode(errors="replace")) < 4096 and all(len(part.encode()) <= 255 for part in parts)
    return short and file.isprintable() and all(part.strip() == part for part in parts)


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
        parts.scheme == "http" and (parts.hostname in _LOCAL or _has_checksum(source))
    )


def mirrors(source):
    """The URLs of a source that may be used, in their order; none for an absolute path."""
    if PurePosixPath(source["file"]).is_absolute():
        return []
    return [url for url in source.get("urls", ()) if is_trusted(url, source)]


def _has_checksum(source):
    return any(source.get(kind) for kind in SUMS)


def mistake(found, source):
    """How `found`, {"bytes", "sha256", …}, differs from what the source records, in words, or None."""
    for kind in SUMS:  # before the length, which says less
        if source.get(kind) and found[kind] != source[kind]:
            return f"has {kind} {found[kind]}, not the recorded {source[kind]}"
    if source.get("bytes") and found["bytes"] != source["bytes"]:
        return f"has {found['bytes']} bytes, not the recorded {source['bytes']}"
    return None


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
        sums = {kind: hashlib.new(kind, usedforsecurity=False) for kind in needed}
        with path.open("rb") as file:
            while needed and (block := file.read(BLOCK)):
                for total in sums.values():
                    total.update(block)
        found = {"bytes": stat.st_size, "mtime_ns": stat.st_mtime_ns}
        found |= {kind: total.hexdigest() for kind, total in sums.items()}
        if memory is not None and needed:
            write_json(memory, known | {str(path): found})
    if wrong := mistake(found, source):
        raise ValueError(f"{path} {wrong}: the file is wrong or damaged; replace or remove it")
    return found


# -- one file ----------------------------------------------------------------------------------------------


def fetch(source, target, report, delays=DELAYS, timeout=TIMEOUT):
    """Download a source to `target` unless it exists; returns a `Fetched`.

    source: {"file", "urls"} and any of "sha256", "md5", "bytes"; target: a path that ends in the source's
    `file`; report: called about once a second with {"file", "megabytes", "of", "megabytes_per_second"};
    delays: seconds before the second, third, … try of a mirror; timeout: seconds (to connect, between bytes).

    Received bytes are kept in `<target>.partial`, the version of the file in `<target>.partial.json`; a later
    call resumes from there. A file with a wrong checksum is kept as `<target>.rejected`.

    Raises DownloadError if no mirror delivers the file, ValueError for an existing `target` with wrong
    checksums (it is not changed) and for a `file` that would lead out of its folder.
    """
    import requests

    target, file = Path(target), source["file"]
    parts = PurePosixPath(file).parts
    if not is_plain(file) or target.parts[-len(parts) :] != parts:
        raise ValueError(f"{file!r} is not a valid file name for a download to {target}")
    if target.exists():
        check(target, source)
        return Fetched(target.stat().st_size, None, None, _checked(source, target.stat().st_size))
    target.parent.mkdir(parents=True, exist_ok=True)
    failures = []
    with PartialFile(target) as partial, requests.Session() as session:
        session.headers.update({"User-Agent": "TieBench", "Accept-Encoding": "identity"})
        for url in mirrors(source):
            mirror = _Mirror(url, source, partial, session, report, delays, timeout)
            try:
                mirror.complete()
            except _NextMirror as failure:
                failures.append(f"{url}: {failure}")
                log.warning("%s from %s: %s", file, url, failure)
                continue
            fetched = Fetched(partial.size, partial.sums()["sha256"], url, _checked(source, partial.total))
            partial.publish()
            if not _has_checksum(source):
                what = "only its length was" if fetched.checked == "length" else "nothing was"
                log.warning("%s: no checksum is recorded, %s checked; sha256 %s", file, what, fetched.sha256)
            return fetched
    reasons = "; ".join(failures) or "it has no URL"
    by_hand = source.get("instructions") or f"put it into {target.parent}/ yourself"
    raise DownloadError(f"{file} could not be downloaded: {reasons}. If you know no other URL: {by_hand}")


def _checked(source, length):
    kinds = [kind for kind in SUMS if source.get(kind)]
    return kinds[0] if kinds else "length" if source.get("bytes") or length is not None else "nothing"


@dataclass
class _Mirror:
    """One URL, requested until the file is complete or the mirror fails permanently."""

    url: str
    source: dict
    partial: PartialFile
    session: object
    report: object
    delays: tuple
    timeout: tuple

    def complete(self):
        """Complete and verify the partial file. Raises _NextMirror."""
        failed, may_restart = 0, True
        while True:
            before = self.partial.size
            try:
                if not self._has_all():
                    self._request()
            except _Retry as failure:
                failed = 1 if self.partial.size - before >= _PROGRESS else failed + 1
                if failed > len(self.delays):
                    raise _NextMirror(f"{failure}, {failed} times in a row") from failure
                seconds = max(self.delays[failed - 1], failure.seconds)
                values = (self.source["file"], self.url, failure, self.partial.size, seconds)
                log.warning("%s from %s: %s; received %d bytes, retrying in %g s", *values)
                time.sleep(seconds)
                continue
            wrong = mistake(self.partial.sums(), self.source)
            if wrong is None:
                return
            if self.partial.pieces > 1 and may_restart:
                log.warning(
                    "%s %s: it was resumed, so it is downloaded again from the start",
                    self.partial.path,
                    wrong,
                )
                self.partial.restart()
                may_restart = False
                continue
            raise _NextMirror(f"{wrong}: kept as {self.partial.reject()}")

    def _has_all(self):
        """Whether the part is complete already, as after a kill just before the rename."""
        partial = self.partial
        whole = self.source.get("bytes") or partial.total
        if not partial.size or whole is None or partial.size < whole:
            return False
        if partial.size > whole:
            partial.restart()
            return False
        partial.pieces += 1  # the number of responses is unknown: if it is wrong, one more try is worth it
        return True

    def _request(self):
        """Send one request and append its response to the partial file. Raises _Retry, _NextMirror."""
        import requests

        partial, headers = self.partial, {}
        validator = partial.validator(self.url)
        if partial.size and validator is None and not _has_checksum(self.source):
            partial.restart()  # nothing would show that the rest is of the same version
        if partial.size:
            headers["Range"] = f"bytes={partial.size}-"
            if validator is not None:
                headers["If-Range"] = validator
        try:
            response = self.session.get(self.url, headers=headers, stream=True, timeout=self.timeout)
        except requests.exceptions.SSLError as error:
            raise _NextMirror(f"no secure connection ({_cause(error)})") from error
        except requests.exceptions.Timeout as error:
            raise _Retry("timed out") from error
        except (requests.exceptions.ConnectionError, requests.exceptions.ChunkedEncodingError) as error:
            raise _Retry(f"no connection ({_cause(error)})") from error
        except requests.exceptions.RequestException as error:
            raise _NextMirror(_cause(error)) from error
        with response:
            total = self._accept(response)
            broken = self._write_body(response)
        whole = self.source.get("bytes") or total
        if broken is None and (whole is None or partial.size >= whole):
            return
        # A mirror that announces more bytes than its file has: the checksum decides.
        if _has_checksum(self.source) and mistake(partial.sums(), self.source) is None:
            return
        raise _Retry(broken or f"ended after {partial.size} of {whole} bytes")

    def _accept(self, response):
        """Check the headers of a response; returns the bytes of the whole file, or None if unknown."""
        partial, status = self.partial, response.status_code
        for hop in (*response.history, response):
            if not is_trusted(hop.url, self.source):
                raise _NextMirror(f"leads to {hop.url}, which is not https, and no checksum is recorded")
        said = f"{status} {response.reason}"
        if status in _TEMPORARY or status >= 500:
            raise _Retry(said, _seconds(response.headers.get("Retry-After")))
        if status == 416:  # the part is not the start of the mirror's file
            partial.restart()
            raise _Retry(said)
        if status not in (200, 206):
            raise _NextMirror(said)
        if status == 206:
            answered = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
            total = int(answered[2]) if answered and answered[2] != "*" else None
            other = partial.total is not None and total is not None and total != partial.total
            if answered is None or int(answered[1]) != partial.size or not partial.size or other:
                partial.restart()
                raise _Retry("the rest belongs to another version of the file")
        else:
            length = response.headers.get("Content-Length", "")
            total = int(length) if length.isdigit() else None
        recorded = self.source.get("bytes")
        if recorded and total is not None and total != recorded:
            raise _NextMirror(f"its file has {total} bytes, not the recorded {recorded}")
        if status == 200 and partial.size:
            log.warning(
                "%s from %s: not resumable, or changed: downloading from its beginning", *self._names()
            )
            partial.restart()
        tag = response.headers.get("ETag", "")
        strong = tag if tag.startswith('"') else None  # If-Range does not accept weak ones
        partial.begin_piece(self.url, strong or response.headers.get("Last-Modified"), total)
        return total

    def _write_body(self, response):
        """Write the body as it arrives; returns why it was interrupted, or None at its end."""
        import urllib3

        partial, recorded = self.partial, self.source.get("bytes")
        begun, first, reported = time.monotonic(), partial.size, time.monotonic()

        def report():
            seconds = max(time.monotonic() - begun, 1e-6)
            of = recorded or partial.total
            self.report(
                {
                    "file": self.source["file"],
                    "megabytes": partial.size / 1e6,
                    "of": None if of is None else of / 1e6,
                    "megabytes_per_second": (partial.size - first) / 1e6 / seconds,
                }
            )

        broken = None
        while True:
            try:
                # Undecoded: some hosts declare .gz files to be an encoding of their content.
                block = response.raw.read1(BLOCK, decode_content=False)
            except urllib3.exceptions.ReadTimeoutError:
                broken = f"nothing received for {self.timeout[1]:g} s"
                break
            except urllib3.exceptions.HTTPError as error:
                broken = f"interrupted after {partial.size} bytes ({_cause(error)})"
                break
            if not block:
                break
            partial.write(block)
            if recorded and partial.size > recorded:
                partial.restart()
                raise _NextMirror(f"sends more than the recorded {recorded} bytes")
            if time.monotonic() - reported >= 1:
                reported = time.monotonic()
                report()
        report()
        return broken

    def _names(self):
        return self.source["file"], self.url


def _seconds(retry_after):
    return min(float(retry_after), _LONGEST_DELAY) if retry_after and retry_after.isdigit() else 0.0


def _cause(error):
    """The innermost reason of an error of requests."""
    seen = set()
    while id(error) not in seen:
        seen.add(id(error))
        inner = getattr(error, "reason", None) or error.__cause__ or error.__context__
        inner = inner or next((part for part in error.args if isinstance(part, BaseException)), None)
        if not isinstance(inner, BaseException):
            break
        error = inner
    return getattr(error, "strerror", None) or one_line(error)
