"""The files of a folder, a tar (plain, gz, bz2, xz) or a zip, none of which is ever unpacked to disk."""

import bz2
import contextlib
import gzip
import hashlib
import io
import lzma
import os
import re
import stat
import tarfile
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Literal, Self

from tiebench.messages import one_line, printable

# (path from the root, function that reads the file's contents, good until the next step)
Member = tuple[str, Callable[[], bytes]]

ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
# Unlike tarfile, these check the sums of what they decompress.
DECOMPRESSORS: dict[bytes, Callable[[Path], io.BufferedIOBase]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
# A member is read into memory whole. No photograph comes near this; a small archive can claim anything.
LARGEST_MEMBER = 1 << 29  # bytes
LARGEST_EXTENDED_HEADER = 1 << 20  # bytes; tarfile reads them whole, too
EXTENDED_HEADERS = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)
STREAM_BYTES = 1 << 18


class ArchiveError(ValueError):
    """An archive that is not read, with the reason in one line."""


class DamagedArchiveError(ArchiveError):
    """No file inside is to blame: the archive itself is cut short or damaged."""


def existing(sources: Iterable[Path]) -> list[Path]:
    """The sources as paths.

    Raises FileNotFoundError for the first that is not there, ValueError for a device or a pipe.
    """
    paths = [Path(source) for source in sources]
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file or folder")
        if not (path.is_file() or path.is_dir()):
            raise ValueError(f"{path}: neither a file nor a folder")
    return paths


def existing_files(sources: Iterable[Path], what: str = "file") -> list[Path]:
    """The sources as paths, all of files; `what` they must be. Raises as `existing`."""
    paths = existing(sources)
    for path in paths:
        if not path.is_file():
            raise ValueError(f"{path}: must be a {what}")
    return paths


def members(source: Path, nested: Collection[str] = ()) -> Iterator[Member]:
    """The files of a folder (in order of names) or of an archive (in the archive's order).

    nested: file names of tars inside a tar whose files are wanted too, as if the tar were a folder. Of a
    plain tar only headers are read, and the files whose contents are asked for.
    Raises ValueError for a damaged archive and for one with links, absolute names or "..".
    """
    if source.is_dir():
        for name, entry in _folder_entries(source, "", (os.path.realpath(source),)):
            yield name, partial(_file_contents, Path(entry.path))
    elif is_zip(source):
        for name, archive, info in _zip_entries(source):
            yield name, partial(_zip_contents, source, archive, info)
    else:
        yield from _tar_members(source, nested)


def state(folder: Path, wanted: Callable[[str], bool]) -> str:
    """A digest of the names, sizes and times, in seconds, of the files of a folder whose paths are wanted.

    Raises OSError for a folder that is not there and for a link to nothing, ValueError as `members`.
    """
    digest = hashlib.sha256()
    for name, entry in _folder_entries(folder, "", (os.path.realpath(folder),)):
        if not wanted(name):
            continue
        about = entry.stat()
        # Whole seconds: copies keep no finer time on every file system.
        digest.update(f"{name}\0{about.st_size}\0{int(about.st_mtime)}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def streams(source: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, Callable[[int], bytes]]]:
    """The files of a folder or zip whose paths are wanted, for files that are too large to be held in memory.

    Yields (path from the root, function that reads up to a number of bytes, none at the end, good until the
    next step). Raises as `members`, and reading raises ValueError for a damaged archive.
    """
    if source.is_dir():
        for name, _ in members(source):
            if wanted(name):
                with (source / name).open("rb") as file:
                    yield name, file.read
        return
    for name, archive, info in _zip_entries(source):
        if wanted(name):
            with reading(source, "zip"):
                opened = archive.open(info)
            with opened:
                yield name, partial(_zip_read, source, opened)


def is_zip(source: Path) -> bool:
    """Whether the file starts as a zip does; zipfile's own test is also met by a tar that ends in a zip."""
    return _start(source).startswith(ZIP_STARTS)


def _start(source: Path) -> bytes:
    with source.open("rb") as file:
        return file.read(8)


def _folder_entries(folder: Path, prefix: str, above: tuple[str, ...]) -> Iterator[tuple[str, os.DirEntry]]:
    """Links are followed here: the folder is the user's own. A folder linked below itself is refused."""
    with os.scandir(folder) as entries:
        ordered = sorted(entries, key=lambda entry: entry.name)
    for entry in ordered:
        if entry.is_dir():
            real = os.path.realpath(entry.path)
            if real in above:
                raise ValueError(f"{entry.path}: a link to a folder that it lies in")
            yield from _folder_entries(Path(entry.path), f"{prefix}{entry.name}/", (*above, real))
        elif entry.is_file() or entry.is_symlink():
            yield prefix + entry.name, entry


def _file_contents(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise ValueError(f"{path}: a link to what is neither a file nor a folder")
    _check_size(path.parent, path.name, path.stat().st_size)
    return path.read_bytes()


def _check_size(where: Path | str, name: str, size: int) -> None:
    if size > LARGEST_MEMBER:
        raise ArchiveError(
            f"{where}: member '{printable(name)}' has {size} bytes; more than {LARGEST_MEMBER} are not read"
        )


def _zip_entries(source: Path) -> Iterator[tuple[str, zipfile.ZipFile, zipfile.ZipInfo]]:
    with reading(source, "zip"), zipfile.ZipFile(source) as archive:
        for info in archive.infolist():
            kind = info.external_attr >> 16
            name = _safe_name(source, info.filename, "a link" if stat.S_ISLNK(kind) else None)
            if not info.is_dir():
                yield name, archive, info


def _zip_read(source: Path, file: IO[bytes], size: int) -> bytes:
    with reading(source, "zip"):
        return file.read(size)


def _zip_contents(source: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    _check_size(source, info.filename, info.file_size)
    with reading(source, "zip"):
        return archive.read(info)


@contextlib.contextmanager
def reading(where: Path | str, kind: str) -> Iterator[None]:
    """Whatever the reader of a damaged archive fails with, errors of every kind, becomes one of ours."""
    try:
        yield
    except ArchiveError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise DamagedArchiveError(
            f"{where}: cut short, damaged or not a {kind} archive ({one_line(error)})"
        ) from error


class _Member(tarfile.TarInfo):
    """A member whose damaged or missing header is an error: tarfile takes it for the end of the archive."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(archive)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]  # not in typeshed
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(f"{error} after {archive.offset} bytes") from error

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        too_long = self.type in EXTENDED_HEADERS and self.size > LARGEST_EXTENDED_HEADER
        if self.size < 0 or too_long:
            raise tarfile.ReadError(f"a header of {self.size} bytes after {archive.offset} bytes")
        return super()._proc_member(archive)  # type: ignore[misc]  # not in typeshed


def _tar_members(
    source: Path,
    nested: Collection[str],
    inside: IO[bytes] | io.BufferedIOBase | None = None,
    folder: str = "",
) -> Iterator[Member]:
    """`inside`: the stream of a tar in `source` to walk instead, its name with a "/" being `folder`."""
    where = f"{source}: '{printable(folder.rstrip('/'))}'" if folder else source
    outermost = inside is None
    with contextlib.ExitStack() as stack:
        stack.enter_context(reading(where, "tar"))
        if outermost:
            inside = _decompressed(source, stack)
        # A plain tar is sought in, not read through: of 150 GB, a tenth may be wanted.
        mode: Literal["r:", "r|"] = "r:" if inside is None else "r|"
        archive = stack.enter_context(
            tarfile.open(source, mode, fileobj=inside, tarinfo=_Member, bufsize=STREAM_BYTES)
        )
        while (member := archive.next()) is not None:
            # tarfile remembers every member; none is visited again.
            archive.members.clear()  # type: ignore[attr-defined]  # not in typeshed
            if member.size < 0 or archive.offset < member.offset_data:
                raise tarfile.ReadError(f"a member of {member.size} bytes")
            what = None
            if not (member.isfile() or member.isdir()):
                what = "a link" if member.issym() or member.islnk() else "neither a file nor a folder"
            name = folder + _safe_name(where, member.name, what)
            if member.isdir():
                continue
            if outermost and name.rpartition("/")[2] in nested:
                yield from _tar_members(source, (), _extracted(archive, member), f"{name}/")
            else:
                yield name, partial(_tar_contents, where, archive, member)
        if outermost and inside is not None:
            # The checksum of the decompressed data is at the very end.
            while inside.read(STREAM_BYTES):
                pass


def _decompressed(source: Path, stack: contextlib.ExitStack) -> io.BufferedIOBase | None:
    """The stream inside a compressed file; None for a file that is not compressed."""
    start = _start(source)
    for magic, opened in DECOMPRESSORS.items():
        if start.startswith(magic):
            return stack.enter_context(opened(source))
    return None


def _extracted(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    file = archive.extractfile(member)
    assert file is not None  # of every member that is a file
    return file


def _tar_contents(where: Path | str, archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    _check_size(where, member.name, member.size)
    with reading(where, "tar"):
        return _extracted(archive, member).read()


def _safe_name(where: Path | str, name: str, what: str | None) -> str:
    """The path of a member from the root of the archive; ValueError for what has no place in a dataset.

    what: said of a member that is neither a file nor a folder
    """
    parts = re.split(r"[/\\]", name)
    if parts[0] == "" or re.match(r"[A-Za-z]:", parts[0]):
        raise ArchiveError(f"{where}: member '{printable(name)}' has an absolute name")
    if ".." in parts:
        raise ArchiveError(f"{where}: member '{printable(name)}' leads out of the archive ('..')")
    if what is not None:
        raise ArchiveError(f"{where}: member '{printable(name)}' is {what}")
    return "/".join(part for part in name.split("/") if part not in ("", "."))
