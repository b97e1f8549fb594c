"""The hand-written vector code of bitslice.c, compiled when asked for."""

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from tiebench import _bitslice

SOURCE = Path(__file__).with_name("bitslice.c")
MAX_BITS = 64  # of what bitslice.c counts
_FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")


class Unavailable(Exception):
    """No C compiler is installed, or it cannot compile the file; the message says which."""


def load():
    """Compile bitslice.c for this processor and return count_equal_labels(prepared, counts).

    Raises `Unavailable` where that cannot be done.
    """
    compiler = shutil.which("gcc")
    if compiler is None:
        raise Unavailable("no gcc on the path")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "bitslice.so"
        made = subprocess.run(
            [compiler, *_FLAGS, str(SOURCE), "-o", str(library)], capture_output=True, text=True, check=False
        )
        if made.returncode:
            reason = (made.stderr.strip().splitlines() or ["no message"])[0]
            raise Unavailable(f"gcc does not compile {SOURCE.name}: {reason}")
        function = ctypes.CDLL(str(library)).count_equal_labels  # stays mapped when its file is gone
    pointer, integer = ctypes.c_void_p, ctypes.c_int64
    function.argtypes = [pointer, integer, pointer, integer, pointer, pointer, ctypes.c_int, pointer]
    function.restype = ctypes.c_int

    def count_equal_labels(prepared, counts):
        """counts int64 (Q, 2, b + 1), zero on entry."""
        arrays = (prepared.planes, prepared.masks, prepared.begin, prepared.end, counts)
        planes, masks, begin, end, out = (array.ctypes.data for array in arrays)
        if function(planes, prepared.items, masks, len(prepared.masks), begin, end, prepared.bits, out):
            raise MemoryError(f"{SOURCE.name} found no memory")

    return count_equal_labels


class Prepared:
    """What both bit-sliced kernels read: planes of the database sorted by class, and the queries' masks."""

    def __init__(self, codes):
        self.bits = codes.bits
        self.items = len(codes.database)
        width = -(-codes.bits // 8) * 8
        order = np.argsort(codes.database_labels, kind="stable")
        classes = codes.database_labels[order]
        self.begin = np.searchsorted(classes, codes.query_labels, side="left")
        self.end = np.searchsorted(classes, codes.query_labels, side="right")
        self.planes = _bitslice.slice_bits(codes.database[order], codes.bits, width)
        ones = np.unpackbits(codes.query, axis=1).astype(bool)
        self.masks = np.where(ones, ~np.uint64(0), np.uint64(0))

    def counts(self):
        return np.zeros((len(self.masks), 2, self.bits + 1), np.int64)


def count_with_the_product(prepared, counts):
    """The library's kernel alone, on the same preparation."""
    _bitslice.count_equal_labels(
        prepared.planes, prepared.items, prepared.masks, prepared.begin, prepared.end, prepared.bits, counts
    )  # fmt: skip
