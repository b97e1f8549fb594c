"""The files of a folder, a tar (plain, gz, bz2, xz) or a zip, none of which is ever unpacked to disk."""

import os
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from lzma import LZMAError
from pathlib import Path
from typing import IO

# (path from the root, function that reads the file's contents, good until the next step)
Member = tuple[str, Callable[[], bytes]]

DAMAGED_TAR_ERRORS = (tarfile.TarError, EOFError, zlib.error)
# zipfile raises RuntimeError for encrypted members and NotImplementedError for unknown compressions.
DAMAGED_ZIP_ERRORS = (
    zipfile.BadZipFile,
    EOFError,
    zlib.error,
    LZMAError,
    RuntimeError,
    NotImplementedError,
)
ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
COMPRESSED_STARTS = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00")


class DamagedArchiveError(ValueError):
    """No file inside is to blame: the archive itself is cut short or damaged."""


def existing(sources: Iterable[Path]) -> list[Path]:
    """The sources as paths. Raises FileNotFoundError for the first that is not there."""
    paths = [Path(source) for source in sources]
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file or folder")
    return paths


def members(source: Path, nested: Collection[str] = ()) -> Iterator[Member]:
    """The files of a folder (in order of names) or of an archive (in the archive's order).

    nested: file names of tars inside a tar whose files are wanted too, as if the tar were a folder. Of a
    plain tar only headers are read, and the files whose contents are asked for.
    Raises ValueError for a damaged archive and for one with links, absolute names or "..".
    """
    if source.is_dir():
        yield from _folder_members(source, "", (os.path.realpath(source),))
    elif is_zip(source):
        yield from _zip_members(source)
    else:
        yield from _tar_members(source, nested)


def is_zip(source: Path) -> bool:
    """Whether the file starts as a zip does; zipfile's own test is also met by a tar that ends in a zip."""
    return _start(source).startswith(ZIP_STARTS)


def _start(source: Path) -> bytes:
    with source.open("rb") as file:
        return file.read(8)


def _folder_members(folder: Path, prefix: str, above: tuple[str, ...]) -> Iterator[Member]:
    """Links are followed here: the folder is the user's own. A folder linked below itself is refused."""
    with os.scandir(folder) as entries:
        ordered = sorted(entries, key=lambda entry: entry.name)
    for entry in ordered:
        if entry.is_dir():
            real = os.path.realpath(entry.path)
            if real in above:
                raise ValueError(f"{entry.path}: a link to a folder that it lies in")
            yield from _folder_members(Path(entry.path), f"{prefix}{entry.name}/", (*above, real))
        elif entry.is_file() or entry.is_symlink():
            yield prefix + entry.name, Path(entry.path).read_bytes


def _zip_members(source: Path) -> Iterator[Member]:
    try:
        with zipfile.ZipFile(source) as archive:
            for info in archive.infolist():
                kind = info.external_attr >> 16
                name = _safe_name(source, info.filename, "a link" if stat.S_ISLNK(kind) else None)
                if not info.is_dir():
                    yield name, partial(_zip_contents, source, archive, info)
    except DAMAGED_ZIP_ERRORS as error:
        raise _damaged(source, "zip", error) from error


def _zip_contents(source: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    try:
        return archive.read(info)
    except DAMAGED_ZIP_ERRORS as error:
        raise _damaged(source, "zip", error) from error


class _Member(tarfile.TarInfo):
    """A member whose damaged or missing header is an error: tarfile takes it for the end of the archive."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> tarfile.TarInfo:
        try:
            return super().fromtarfile(archive)
        except tarfile.EOFHeaderError:
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(f"{error} after {archive.offset} bytes") from error


def _tar_members(
    source: Path, nested: Collection[str], inside: IO[bytes] | None = None, folder: str = ""
) -> Iterator[Member]:
    """`inside`: the stream of a tar in `source` to walk instead, its name with a "/" being `folder`."""
    where = f"{source}: '{folder.rstrip('/')}'" if folder else source
    try:
        # A plain tar is sought in, not read through: of 150 GB, a tenth may be wanted.
        if _start(source).startswith(COMPRESSED_STARTS):
            mode = "r|*" if inside is None else "r|"
        else:
            mode = "r:"
        with tarfile.open(source, mode, fileobj=inside, tarinfo=_Member) as archive:
            while (member := archive.next()) is not None:
                # tarfile remembers every member; none is visited again.
                archive.members.clear()
                what = None
                if not (member.isfile() or member.isdir()):
                    what = "a link" if member.issym() or member.islnk() else "neither a file nor a folder"
                name = folder + _safe_name(where, member.name, what)
                if member.isdir():
                    continue
                if inside is None and name.rpartition("/")[2] in nested:
                    yield from _tar_members(source, (), archive.extractfile(member), f"{name}/")
                else:
                    yield name, partial(_tar_contents, where, archive, member)
    except DAMAGED_TAR_ERRORS as error:
        raise _damaged(where, "tar", error) from error


def _tar_contents(where: Path | str, archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    try:
        return archive.extractfile(member).read()
    except DAMAGED_TAR_ERRORS as error:
        raise _damaged(where, "tar", error) from error


def _damaged(where: Path | str, kind: str, error: Exception) -> DamagedArchiveError:
    return DamagedArchiveError(f"{where}: cut short, damaged or not a {kind} archive ({error})")


def _safe_name(where: Path | str, name: str, what: str | None) -> str:
    """The path of a member from the root of the archive; ValueError for what has no place in a dataset.

    what: said of a member that is neither a file nor a folder
    """
    parts = re.split(r"[/\\]", name)
    if parts[0] == "" or re.match(r"[A-Za-z]:", parts[0]):
        raise ValueError(f"{where}: member '{name}' has an absolute name")
    if ".." in parts:
        raise ValueError(f"{where}: member '{name}' leads out of the archive ('..')")
    if what is not None:
        raise ValueError(f"{where}: member '{name}' is {what}")
    return "/".join(part for part in name.split("/") if part not in ("", "."))
