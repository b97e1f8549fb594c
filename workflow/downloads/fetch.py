"""Download of source files over HTTP: several mirrors, resumed, retried, verified, and whole or absent.

requests handles connections, redirects, proxies and certificates, urllib3 the retries. pooch would be the
usual choice on top of them, but it restarts an interrupted download, which may never finish for archives of
gigabytes on slow hosts, does not continue with another mirror, and deletes a file with a wrong checksum.
"""

import fcntl
import logging
import time
from pathlib import Path, PurePosixPath

import requests
from requests.adapters import HTTPAdapter
from urllib3 import Retry
from urllib3.exceptions import HTTPError

from tiebench.files import publish
from tiebench.messages import one_line
from workflow.configuration import source_checks

log = logging.getLogger("tiebench")

TIMEOUT = (10.0, 60.0)  # seconds to connect, and between two bytes
# What may pass: no connection, an interruption, these answers; with the pause that the mirror asks for.
RETRIES = Retry(
    total=5,
    backoff_factor=1,
    status_forcelist=(408, 425, 429, 500, 502, 503, 504),
    redirect=None,
    retry_after_max=60,
)
_PROGRESS = 1 << 20  # bytes after which the count of interruptions starts again


class DownloadError(OSError):
    """No mirror delivered the file; the message, one line, has the reason of each."""


class _Refused(Exception):
    """A permanent failure of a mirror."""


def fetch(source, target, report, retries=RETRIES, timeout=TIMEOUT):
    """Download a source to `target` unless it exists; returns the URL that it came from, or None.

    source: {"file", "urls"} and any of "sha256", "md5", "bytes"; target: a path that ends in the source's
    `file`; report: called about once a second with {"file", "megabytes", "of", "megabytes_per_second"};
    retries: a urllib3.Retry, of each mirror; timeout: seconds (to connect, between bytes).

    With a recorded checksum, received bytes are kept in `<target>.partial`, and a later call, or another
    mirror, continues from there; the checksum says whether the parts belong together. Without one, nothing
    would, and the download starts again. A file with a wrong checksum is kept as `<target>.rejected`.

    Raises DownloadError if no mirror delivers the file, ValueError for an existing `target` with wrong
    checksums (it is not changed) and for a `file` that would lead out of its folder.
    """
    target, file = Path(target), source["file"]
    parts = PurePosixPath(file).parts
    if not source_checks.is_plain(file) or target.parts[-len(parts) :] != parts:
        raise ValueError(f"{file!r} is not a valid file name for a download to {target}")
    if target.exists():
        source_checks.check(target, source)
        return None
    target.parent.mkdir(parents=True, exist_ok=True)
    failures = []
    with _Partial(target, source, report) as partial, requests.Session() as session:
        session.headers.update({"User-Agent": "TieBench", "Accept-Encoding": "identity"})
        for scheme in ("https://", "http://"):
            session.mount(scheme, HTTPAdapter(max_retries=retries))
        for url in source_checks.mirrors(source):
            try:
                _complete(partial, session, url, retries, timeout)
            except (_Refused, HTTPError, requests.RequestException) as failure:
                failures.append(f"{url}: {one_line(failure)}")
                log.warning("%s from %s", file, failures[-1])
                continue
            if not source_checks.has_checksum(source):
                sha256 = partial.sums.found()["sha256"]
                log.warning("%s: no checksum is recorded, so nothing was checked; sha256 %s", file, sha256)
            publish(partial.path, target)
            return url
    reasons = "; ".join(failures) or "it has no URL"
    by_hand = source.get("instructions") or f"put it into {target.parent}/ yourself"
    raise DownloadError(f"{file} could not be downloaded: {reasons}. If you know no other URL: {by_hand}")


def _complete(partial, session, url, retries, timeout):
    """Complete and verify the partial file from one URL. Raises _Refused and the errors of both libraries."""
    left, may_restart = retries, True
    while not partial.is_whole():
        if not source_checks.has_checksum(partial.source):
            partial.restart()
        before = partial.sums.bytes
        try:
            appended = _receive(partial, session, url, timeout)
        except HTTPError as error:
            if partial.sums.bytes - before >= _PROGRESS:
                left = retries
            left = left.increment("GET", url, error=error)
            values = (partial.source["file"], url, partial.sums.bytes, one_line(error))
            log.warning("%s from %s: interrupted after %d bytes (%s)", *values)
            left.sleep()
            continue
        wrong = source_checks.mistake(partial.sums.found(), partial.source)
        if wrong is None:
            return
        if not appended or not may_restart:
            raise _Refused(f"{wrong}: kept as {partial.reject()}")
        log.warning("%s %s: it was resumed, so it is downloaded again", partial.path, wrong)
        partial.restart()
        may_restart = False


def _receive(partial, session, url, timeout):
    """The body of one response in the partial file; whether it continued what was there, as servers may not.

    Raises _Refused, HTTPError, RequestException.
    """
    source, size = partial.source, partial.sums.bytes
    headers = {"Range": f"bytes={size}-"} if size else {}
    with session.get(url, headers=headers, stream=True, timeout=timeout) as response:
        for hop in (*response.history, response):
            if not source_checks.is_trusted(hop.url, source):
                raise _Refused(f"leads to {hop.url}, which is not https, and no checksum is recorded")
        if size and response.status_code == 416:
            return True  # the part is longer than the mirror's file; its checksum is wrong
        appended = bool(size) and response.status_code == 206
        if not appended:
            if response.status_code != 200:
                raise _Refused(f"{response.status_code} {response.reason}")
            partial.restart()
        length = response.headers.get("Content-Length", "")
        partial.expect(int(length) if length.isdigit() else None)
        # Undecoded: some hosts declare .gz files to be an encoding of their content. Raises HTTPError for a
        # body that ends before its Content-Length.
        while block := response.raw.read1(source_checks.BLOCK, decode_content=False):
            partial.write(block)
        partial.tell()
        return appended


class _Partial:
    """The received part of a source, `<target>.partial`, locked, with its checksums so far.

    sums: the `Sums` of what was received. It is left for a later call if a checksum could verify it.
    """

    def __init__(self, target, source, report):
        self.target, self.source, self._report = target, source, report
        self.path = target.with_name(target.name + ".partial")

    def __enter__(self):
        self._file = self.path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise DownloadError(
                f"{self.path} is being written by another process: wait until it ends"
            ) from None
        except OSError:  # a file system without locks
            pass
        self._file.seek(0)
        self.sums = source_checks.Sums().read(self._file)
        return self

    def __exit__(self, *error):
        self._file.close()
        if not (self.sums.bytes and source_checks.has_checksum(self.source)):
            self.path.unlink(missing_ok=True)

    def is_whole(self):
        """Whether the part is the file already, as after a kill just before it was renamed."""
        return (
            source_checks.has_checksum(self.source)
            and source_checks.mistake(self.sums.found(), self.source) is None
        )

    def restart(self):
        self._file.truncate(0)
        self.sums = source_checks.Sums()

    def reject(self):
        """Rename the file, start a new one, return the new name."""
        rejected = self.target.with_name(self.target.name + ".rejected")
        publish(self.path, rejected)
        self._file.close()
        self.__enter__()
        return rejected

    def expect(self, more):
        """A body of `more` bytes, or None, follows."""
        self._first = self.sums.bytes
        self._of = self.source.get("bytes") or (None if more is None else self._first + more)
        self._begun = self._told = time.monotonic()

    def write(self, block):
        recorded = self.source.get("bytes")
        if recorded and self.sums.bytes + len(block) > recorded:
            self.restart()
            raise _Refused(f"sends more than the recorded {recorded} bytes")
        try:
            self._file.write(block)
            self._file.flush()  # so that it survives a SIGKILL
        except OSError as error:  # a full disk
            raise DownloadError(f"{self.path}: {error.strerror} after {self.sums.bytes} bytes") from error
        self.sums.add(block)
        if time.monotonic() - self._told >= 1:
            self.tell()

    def tell(self):
        self._told = time.monotonic()
        size, seconds = self.sums.bytes, max(self._told - self._begun, 1e-6)
        self._report(
            {
                "file": self.source["file"],
                "megabytes": size / 1e6,
                "of": None if self._of is None else self._of / 1e6,
                "megabytes_per_second": (size - self._first) / 1e6 / seconds,
            }
        )
