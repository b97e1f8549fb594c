"""Source files by HTTP: from several mirrors, resumed, retried, checked, and either whole or absent.

requests does connections, redirects, proxies and certificates. pooch would be the usual choice on top of it,
but starts a cut download anew, which for archives of gigabytes on slow hosts may never end; nor does it go on
with another mirror, or keep a wrong file for a look. Those three are here.
"""

import fcntl
import hashlib
import logging
import re
import time
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from tiebench.files import publish, read_json, write_json

log = logging.getLogger("tiebench")

SUMS = ("sha256", "md5")
DELAYS = (1.0, 2.0, 4.0, 8.0, 16.0)  # seconds before each further try of one mirror
TIMEOUT = (10.0, 60.0)  # seconds to connect, and without a byte
_LONGEST_DELAY = 60.0  # that a mirror's Retry-After may ask for
_BLOCK = 1 << 20
_PROGRESS = 1 << 20  # bytes after which a connection that breaks counts as the first to do so
_LOCAL = {"localhost", "127.0.0.1"}
_PASSING = {408, 425, 429}  # the 4xx that ask for another try


class DownloadError(OSError):
    """No mirror gave the file: one line that says what each of them did."""


class _Again(Exception):
    """A failure that may pass. seconds: how long the mirror asks to wait."""

    def __init__(self, reason, seconds=0.0):
        super().__init__(reason)
        self.seconds = seconds


class _NextMirror(Exception):
    """A failure that trying again does not mend."""


@dataclass(frozen=True)
class Fetched:
    """A file that is there.

    url: the mirror it came from; checked: what it was compared with: "sha256", "md5", "length" (recorded, or
    what the mirror says) or "nothing". Of a file that was there before, sha256 and url are None.
    """

    bytes: int
    sha256: str | None
    url: str | None
    checked: str


# -- sources -----------------------------------------------------------------------------------------------


def is_plain(file):
    """Whether a source's `file` is a relative path that stays below the folder it is put in."""
    parts = file.split("/")
    return can_be_name(file) and "\\" not in file and not {"", ".", ".."} & set(parts)


def can_be_name(file):
    """Whether file systems have room for a path, and lines of a log show it as it is."""
    parts = file.split("/")
    short = len(file.encode(errors="replace")) < 4096 and all(len(part.encode()) <= 255 for part in parts)
    return short and file.isprintable() and all(part.strip() == part for part in parts)


def url_mistake(url):
    """What is wrong with the address of a mirror, in words, or None."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 (raises for what is no number)
    except ValueError as error:
        return f"not an address ({error})"
    if parts.scheme not in ("http", "https"):
        return f"must begin with https://, not {parts.scheme or url[:20]!r}"
    return None if parts.hostname else "names no host"


def is_trusted(url, source):
    """Whether what comes from an address can be believed: whoever sits between can change what http brings.

    https is; http is from this machine, and where a recorded sum tells whether the file is the right one.
    """
    parts = urlsplit(url)
    return parts.scheme == "https" or (
        parts.scheme == "http" and (parts.hostname in _LOCAL or _has_sum(source))
    )


def mirrors(source):
    """The `urls` of a source that it may be downloaded from, in their order: none for an absolute path."""
    if PurePosixPath(source["file"]).is_absolute():
        return []
    return [url for url in source.get("urls", ()) if is_trusted(url, source)]


def _has_sum(source):
    return any(source.get(kind) for kind in SUMS)


def mistake(found, source):
    """What of `found`, {"bytes", "sha256", …}, is not as the source records it, in words, or None."""
    for kind in SUMS:  # first: the lengths of two files say less
        if source.get(kind) and found[kind] != source[kind]:
            return f"has {kind} {found[kind]}, not the recorded {source[kind]}"
    if source.get("bytes") and found["bytes"] != source["bytes"]:
        return f"has {found['bytes']} bytes, not the recorded {source['bytes']}"
    return None


def check(path, source, memory=None):
    """Raise ValueError with both sums where a file is not the one that its source records; its sums.

    Returns {"bytes", "mtime_ns"} and the recorded kinds of sums; {} for a folder, which is not looked at.

    memory: .json file that keeps the sums of files, by path: those of a file whose size and time have not
    changed are not computed again.
    """
    path = Path(path)
    if not path.is_file():
        return {}
    known = read_json(memory) if memory is not None and Path(memory).is_file() else {}
    stat = path.stat()
    found = known.get(str(path), {})
    needed = [kind for kind in SUMS if source.get(kind)]
    as_it_was = (found.get("bytes"), found.get("mtime_ns")) == (stat.st_size, stat.st_mtime_ns)
    if not as_it_was or not set(needed) <= found.keys():
        sums = {kind: hashlib.new(kind, usedforsecurity=False) for kind in needed}
        with path.open("rb") as file:
            while needed and (block := file.read(_BLOCK)):
                for total in sums.values():
                    total.update(block)
        found = {"bytes": stat.st_size, "mtime_ns": stat.st_mtime_ns}
        found |= {kind: total.hexdigest() for kind, total in sums.items()}
        if memory is not None and needed:
            write_json(memory, known | {str(path): found})
    if wrong := mistake(found, source):
        raise ValueError(f"{path} {wrong}: a wrong or damaged file, to be replaced or moved away")
    return found


# -- one file ----------------------------------------------------------------------------------------------


def fetch(source, target, report, delays=DELAYS, timeout=TIMEOUT):
    """Download a source to `target` unless it is there; a `Fetched`.

    source: {"file", "urls"} and any of "sha256", "md5", "bytes"; target: a path that ends in the source's
    `file`; report: called about once a second with {"file", "megabytes", "of", "megabytes_per_second"};
    delays: seconds before the second, third … try of a mirror; timeout: seconds (to connect, without a byte).

    What has arrived is in `<target>.partial`, and `<target>.partial.json` says of which version of the file:
    a later call goes on from there. A file with a wrong sum is left in `<target>.rejected`.

    Raises DownloadError if no mirror gives the file, ValueError for a `target` with wrong sums (it is left as
    it is) and for a `file` that would lead out of its folder.
    """
    import requests

    target, file = Path(target), source["file"]
    parts = PurePosixPath(file).parts
    if not is_plain(file) or target.parts[-len(parts) :] != parts:
        raise ValueError(f"{file!r} is no name of a file to be downloaded to {target}")
    if target.exists():
        check(target, source)
        return Fetched(target.stat().st_size, None, None, _checked(source, target.stat().st_size))
    target.parent.mkdir(parents=True, exist_ok=True)
    failures = []
    with _Partial(target) as partial, requests.Session() as session:
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
            if not _has_sum(source):
                what = "only its length" if fetched.checked == "length" else "nothing of it"
                log.warning("%s: no sum is recorded, %s was checked; sha256 %s", file, what, fetched.sha256)
            return fetched
    told = "; ".join(failures) or "it has no address to be downloaded from"
    by_hand = source.get("instructions") or f"put it into {target.parent}/ by hand"
    raise DownloadError(f"{file} could not be downloaded: {told}. If no other address is known: {by_hand}")


def _checked(source, length):
    kinds = [kind for kind in SUMS if source.get(kind)]
    return kinds[0] if kinds else "length" if source.get("bytes") or length is not None else "nothing"


class _Partial:
    """What has arrived of a file, on disk, with its sums so far.

    size: its bytes; total: bytes of the whole file, None where nobody says; pieces: how many answers it is
    made of, so whether a wrong sum may come from pieces that do not belong together.
    """

    def __init__(self, target):
        self.target = target
        self.path = target.with_name(target.name + ".partial")
        self.card = target.with_name(target.name + ".partial.json")

    def __enter__(self):
        self.path.touch()
        self.file = self.path.open("r+b")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.file.close()
            raise DownloadError(f"{self.path} is being written by another process: wait for it") from None
        except OSError:  # a file system without locks
            pass
        self._begin_sums()
        while block := self.file.read(_BLOCK):
            self._add(block)
        self.origin = read_json(self.card) if self.size and self.card.is_file() else {}
        self.total = self.origin.get("total")
        self.pieces = 1 if self.size else 0
        return self

    def __exit__(self, *error):
        self.file.close()
        if self.size == 0:
            self._remove()

    def _remove(self):
        self.path.unlink(missing_ok=True)
        self.card.unlink(missing_ok=True)

    def _begin_sums(self):
        self.size = 0
        self._sums = {kind: hashlib.new(kind, usedforsecurity=False) for kind in SUMS}

    def _add(self, block):
        self.size += len(block)
        for total in self._sums.values():
            total.update(block)

    def sums(self):
        return {kind: total.hexdigest() for kind, total in self._sums.items()} | {"bytes": self.size}

    def restart(self):
        """Forget what has arrived."""
        self.file.seek(0)
        self.file.truncate()
        self.card.unlink(missing_ok=True)
        self._begin_sums()
        self.origin, self.total, self.pieces = {}, None, 0

    def begin_piece(self, url, validator, total):
        """An answer follows. What was there before, if anything, stays."""
        self.origin = {"url": url, "validator": validator, "total": total}
        self.total = total
        self.pieces += 1
        write_json(self.card, self.origin)

    def write(self, block):
        try:
            self.file.write(block)
            self.file.flush()  # so that what has arrived survives a SIGKILL
        except OSError as error:  # a full disk
            raise DownloadError(f"{self.path}: {error.strerror} after {self.size} bytes") from error
        self._add(block)

    def validator(self, url):
        """What tells that a mirror's file is still the one that the part is of, or None."""
        return self.origin.get("validator") if self.origin.get("url") == url else None

    def publish(self):
        publish(self.path, self.target)
        self._remove()

    def reject(self):
        """Put the file aside, begin a new one, return where it is."""
        rejected = self.target.with_name(self.target.name + ".rejected")
        publish(self.path, rejected)
        self.file.close()
        self._remove()
        self.__enter__()
        return rejected


@dataclass
class _Mirror:
    """One address, asked until the file is whole or there is no hope."""

    url: str
    source: dict
    partial: _Partial
    session: object
    report: object
    delays: tuple
    timeout: tuple

    def complete(self):
        """Fill the partial file to a whole and right one. Raises _NextMirror."""
        failed, may_restart = 0, True
        while True:
            before = self.partial.size
            try:
                if not self._has_all():
                    self._ask()
            except _Again as failure:
                failed = 1 if self.partial.size - before >= _PROGRESS else failed + 1
                if failed > len(self.delays):
                    raise _NextMirror(f"{failure}, {failed} times in a row") from failure
                seconds = max(self.delays[failed - 1], failure.seconds)
                told = (self.source["file"], self.url, failure, self.partial.size, seconds)
                log.warning("%s from %s: %s; have %d bytes, trying again in %g s", *told)
                time.sleep(seconds)
                continue
            wrong = mistake(self.partial.sums(), self.source)
            if wrong is None:
                return
            if self.partial.pieces > 1 and may_restart:
                log.warning(
                    "%s %s: made of several pieces, so once more as a whole", self.partial.path, wrong
                )
                self.partial.restart()
                may_restart = False
                continue
            raise _NextMirror(f"{wrong}: kept as {self.partial.reject()}")

    def _has_all(self):
        """Whether nothing is left to ask for, as after a process that was killed at the very end."""
        partial = self.partial
        whole = self.source.get("bytes") or partial.total
        if not partial.size or whole is None or partial.size < whole:
            return False
        if partial.size > whole:
            partial.restart()
            return False
        partial.pieces += 1  # nobody knows from how many answers: if it is wrong, it may come whole
        return True

    def _ask(self):
        """One request, and what it answers added to the partial file. Raises _Again, _NextMirror."""
        import requests

        partial, headers = self.partial, {}
        validator = partial.validator(self.url)
        if partial.size and validator is None and not _has_sum(self.source):
            partial.restart()  # nothing would tell that the rest is of the same file
        if partial.size:
            headers["Range"] = f"bytes={partial.size}-"
            if validator is not None:
                headers["If-Range"] = validator
        try:
            response = self.session.get(self.url, headers=headers, stream=True, timeout=self.timeout)
        except requests.exceptions.SSLError as error:
            raise _NextMirror(f"no secure connection ({_cause(error)})") from error
        except requests.exceptions.Timeout as error:
            raise _Again("no answer in time") from error
        except (requests.exceptions.ConnectionError, requests.exceptions.ChunkedEncodingError) as error:
            raise _Again(f"no connection ({_cause(error)})") from error
        except requests.exceptions.RequestException as error:
            raise _NextMirror(_cause(error)) from error
        with response:
            total = self._accept(response)
            broken = self._pour(response)
        whole = self.source.get("bytes") or total
        if broken is None and (whole is None or partial.size >= whole):
            return
        # A mirror that promises more than its file has: the sums know better.
        if _has_sum(self.source) and mistake(partial.sums(), self.source) is None:
            return
        raise _Again(broken or f"ended after {partial.size} of {whole} bytes")

    def _accept(self, response):
        """Take an answer on, with what it says of itself: the bytes of the whole file, or None."""
        partial, status = self.partial, response.status_code
        for hop in (*response.history, response):
            if not is_trusted(hop.url, self.source):
                raise _NextMirror(f"leads to {hop.url}, which is not https, and no sum is recorded")
        said = f"{status} {response.reason}"
        if status in _PASSING or status >= 500:
            raise _Again(said, _seconds(response.headers.get("Retry-After")))
        if status == 416:  # what is here is no beginning of what the mirror has
            partial.restart()
            raise _Again(said)
        if status not in (200, 206):
            raise _NextMirror(said)
        if status == 206:
            answered = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
            total = int(answered[2]) if answered and answered[2] != "*" else None
            other = partial.total is not None and total is not None and total != partial.total
            if answered is None or int(answered[1]) != partial.size or not partial.size or other:
                partial.restart()
                raise _Again("the rest is not of the file that was begun")
        else:
            length = response.headers.get("Content-Length", "")
            total = int(length) if length.isdigit() else None
        recorded = self.source.get("bytes")
        if recorded and total is not None and total != recorded:
            raise _NextMirror(f"its file has {total} bytes, not the recorded {recorded}")
        if status == 200 and partial.size:
            log.warning("%s from %s: cannot be resumed, or has changed: from its beginning", *self._names())
            partial.restart()
        tag = response.headers.get("ETag", "")
        strong = tag if tag.startswith('"') else None  # If-Range takes no weak ones
        partial.begin_piece(self.url, strong or response.headers.get("Last-Modified"), total)
        return total

    def _pour(self, response):
        """Write the body as it comes; why it broke off, or None at its end."""
        import urllib3

        partial, recorded = self.partial, self.source.get("bytes")
        begun, first, told = time.monotonic(), partial.size, time.monotonic()

        def tell():
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
                # As the file lies there: some hosts declare .gz files to be an encoding of what is inside.
                block = response.raw.read1(_BLOCK, decode_content=False)
            except urllib3.exceptions.ReadTimeoutError:
                broken = f"nothing came for {self.timeout[1]:g} s"
                break
            except urllib3.exceptions.HTTPError as error:
                broken = f"broken off after {partial.size} bytes ({_cause(error)})"
                break
            if not block:
                break
            partial.write(block)
            if recorded and partial.size > recorded:
                partial.restart()
                raise _NextMirror(f"sends more than the recorded {recorded} bytes")
            if time.monotonic() - told >= 1:
                told = time.monotonic()
                tell()
        tell()
        return broken

    def _names(self):
        return self.source["file"], self.url


def _seconds(retry_after):
    return min(float(retry_after), _LONGEST_DELAY) if retry_after and retry_after.isdigit() else 0.0


def _cause(error):
    """The innermost reason of an error of requests, without its wrappings."""
    seen = set()
    while id(error) not in seen:
        seen.add(id(error))
        inner = getattr(error, "reason", None) or error.__cause__ or error.__context__
        inner = inner or next((part for part in error.args if isinstance(part, BaseException)), None)
        if not isinstance(inner, BaseException):
            break
        error = inner
    return " ".join((getattr(error, "strerror", None) or str(error) or type(error).__name__).split())
