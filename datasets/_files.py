"""Writing arrays so that nothing half-written is ever taken for whole."""

import contextlib
import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

MOVED_AT_ONCE = 64 << 20  # bytes


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success fsync it and rename it to `path`, else delete it.

    An error of the system that names no file, as that of a full disk, is given the name `path`.
    """
    temporary = path.with_name(path.name + ".partial")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        if error.errno is None:  # NumPy, of a full disk
            raise OSError(f"{path}: cannot be written whole ({error})") from error
        error.filename = error.filename or str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def machine_memory() -> float:
    """Bytes of this machine's memory; without end where it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return float("inf")


def save_array(path: Path, array: np.ndarray) -> None:
    """Write `array` to `path` as .npy, never pickled."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.lib.format.write_array(file, array, allow_pickle=False)


@dataclass(frozen=True)
class ItemsFile:
    """A .npy file of known shape that is filled block by block."""

    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype
    offset: int

    def view(self) -> np.memmap:
        """A fresh writable map of the whole array, shape `self.shape`.

        Ask for one per block and let it go: pages of a map that lives on would all count as memory of
        the process, and a large dataset would look (and under a limit, be) larger than it is.
        """
        return np.memmap(self.path, self.dtype, "r+", self.offset, self.shape)

    def keep(self, rows: np.ndarray) -> None:
        """Drop, in place, the rows that the mask `rows`, bool (n,), leaves out; the file shrinks."""
        if rows.all():
            return
        # Rows only ever move down, over rows that have moved already or are dropped.
        kept = np.flatnonzero(rows)
        step = max(1, MOVED_AT_ONCE * len(rows) // max(1, int(np.prod(self.shape)) * self.dtype.itemsize))
        for first in range(0, len(kept), step):
            view, block = self.view(), kept[first : first + step]
            view[first : first + len(block)] = view[block]
        shape = (len(kept), *self.shape[1:])
        header = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False, "shape": shape}
        with self.path.open("rb+") as file:
            # NumPy pads headers so that they keep their length when the first dimension changes.
            np.lib.format.write_array_header_1_0(file, header)
            if file.tell() != self.offset:
                raise RuntimeError(f"{self.path}: the header for {shape} has another length")
            file.truncate(self.offset + int(np.prod(shape)) * self.dtype.itemsize)


@contextlib.contextmanager
def creating_items(path: Path, shape: tuple[int, ...], dtype: type) -> Iterator[ItemsFile]:
    """Yield an `ItemsFile` of that shape and dtype (C order); `path` appears when the block is left whole.

    Raises OSError where the disk has no room for all of it.
    """
    with replacing(path) as temporary:
        created = np.lib.format.open_memmap(temporary, "w+", np.dtype(dtype), shape)
        items = ItemsFile(temporary, shape, created.dtype, created.offset)
        size = created.offset + created.nbytes
        del created
        # Without room reserved, a full disk would kill the process at some write to the map, with no message.
        if hasattr(os, "posix_fallocate"):
            with temporary.open("rb+") as file:
                try:
                    os.posix_fallocate(file.fileno(), 0, size)
                except OSError as error:
                    if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                        raise
        yield items
