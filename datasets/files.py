"""Arrays that are written to files, at once or block by block, and appear when they are complete."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tiebench.files import create_array, replaced

MOVED_AT_ONCE = 64 << 20  # bytes


def save_array(path: Path, array: np.ndarray) -> None:
    """Write `array` to `path` as .npy, never pickled."""
    with replaced(path) as temporary, temporary.open("wb") as file:
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
    """Yield an `ItemsFile` of that shape and dtype (C order); `path` appears if no error ends the block.

    Raises OSError if the disk has too little space for it.
    """
    with replaced(path) as temporary:
        found, offset = create_array(temporary, shape, dtype)
        yield ItemsFile(temporary, shape, found, offset)
