"""The received part of a download, on disk: locked, resumed, published or rejected."""

import fcntl
import hashlib

from tiebench.files import publish, read_json, write_json

SUMS = ("sha256", "md5")
BLOCK = 1 << 20  # bytes


class DownloadError(OSError):
    """No mirror delivered the file; the message, one line, has the reason of each."""


class PartialFile:
    """The received part of a file, on disk, with its checksums so far.

    size: its bytes; total: bytes of the whole file, None if unknown; pieces: the number of responses it comes
    from: with several, a wrong checksum may mean that they are of different versions.
    """

    def __init__(self, target):
        self.target = target
        self.path = target.with_name(target.name + ".partial")
        self.origin_path = target.with_name(target.name + ".partial.json")

    def __enter__(self):
        self.path.touch()
        self.file = self.path.open("r+b")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.file.close()
            raise DownloadError(
                f"{self.path} is being written by another process: wait until it ends"
            ) from None
        except OSError:  # a file system without locks
            pass
        self._begin_sums()
        while block := self.file.read(BLOCK):
            self._add(block)
        self.origin = read_json(self.origin_path) if self.size and self.origin_path.is_file() else {}
        self.total = self.origin.get("total")
        self.pieces = 1 if self.size else 0
        return self

    def __exit__(self, *error):
        self.file.close()
        if self.size == 0:
            self._remove()

    def _remove(self):
        self.path.unlink(missing_ok=True)
        self.origin_path.unlink(missing_ok=True)

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
        """Discard the received part."""
        self.file.seek(0)
        self.file.truncate()
        self.origin_path.unlink(missing_ok=True)
        self._begin_sums()
        self.origin, self.total, self.pieces = {}, None, 0

    def begin_piece(self, url, validator, total):
        """Record the origin of the response that follows; what was received before is kept."""
        self.origin = {"url": url, "validator": validator, "total": total}
        self.total = total
        self.pieces += 1
        write_json(self.origin_path, self.origin)

    def write(self, block):
        try:
            self.file.write(block)
            self.file.flush()  # so that it survives a SIGKILL
        except OSError as error:  # a full disk
            raise DownloadError(f"{self.path}: {error.strerror} after {self.size} bytes") from error
        self._add(block)

    def validator(self, url):
        """The ETag or date that identifies the version of the part, if it came from this URL, or None."""
        return self.origin.get("validator") if self.origin.get("url") == url else None

    def publish(self):
        publish(self.path, self.target)
        self._remove()

    def reject(self):
        """Rename the file, start a new one, return the new name."""
        rejected = self.target.with_name(self.target.name + ".rejected")
        publish(self.path, rejected)
        self.file.close()
        self._remove()
        self.__enter__()
        return rejected
