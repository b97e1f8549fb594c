"""LabelMe-22K: the GIST descriptors of 22,019 images from LabelMe_gist.mat, or from a zip that holds it.

Of the file (MATLAB version 5 to 7) only these variables are read: gist, (n, 512); and where there are both,
ndxtrain and ndxtest, which number the items of the authors' own split from 1. Its largest variable, DistLM of
22,019 x 22,019, is passed over. Affinity is defined by distances of descriptors, so there are no labels.

Source: A. Torralba, R. Fergus, Y. Weiss, "Small Codes and Large Image Databases for Recognition", CVPR 2008.
"""

import contextlib
import logging
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from datasets.description import Description
from datasets.files import save_array
from datasets.readers.archives import existing_files, is_zip, reading
from datasets.readers.matlab import check_matlab
from datasets.specification import refuse_unknown_options
from tiebench.files import machine_memory
from tiebench.messages import one_line, printable

OPTIONS: dict[str, str] = {}

MEMBER = "LabelMe_gist.mat"
DIMENSIONS = 512
PARTS = ("ndxtrain", "ndxtest")

logger = logging.getLogger("tiebench")


def describe(sources: list[Path], **options) -> Description:
    """Shape and given split, 0 (train) or 1 (test), or None where the file has none; labels are None.

    sources: the .mat file or a zip with one LabelMe_gist.mat. Of gist only the header is read.
    Raises FileNotFoundError where it is missing, ValueError where it is not as the module says.
    """
    with _opened(sources, options) as (where, file):
        return _description(where, file)


def load(sources: list[Path], folder: Path, **options) -> Description:
    """Write items.npy float32 (n, 512), labels.npy and given_split.npy; see `describe`.

    Raises as `describe`, and ValueError for a descriptor that is not finite.
    """
    with _opened(sources, options) as (where, file):
        description = _description(where, file)
        gist = _variables(where, file, ["gist"])["gist"]
    shape = (description.items, DIMENSIONS)
    if gist.shape != shape or gist.dtype.kind not in "biuf":
        raise ValueError(f"{where}: gist must be {shape} real numbers, not {gist.dtype} {gist.shape}")
    with np.errstate(over="ignore"):
        gist = gist.astype(np.float32)
    finite = np.isfinite(gist)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise ValueError(f"{where}: gist({row + 1}, {column + 1}) is not finite (in float32)")
    save_array(Path(folder) / "items.npy", gist)
    description.write(Path(folder))
    return description


@contextlib.contextmanager
def _opened(sources: list[Path], options: dict) -> Iterator[tuple[str, IO[bytes]]]:
    """What messages call the .mat file, and the file; damage of a zip becomes a ValueError."""
    refuse_unknown_options(options, OPTIONS, "labelme_gist")
    if len(sources) != 1:
        raise ValueError(f"loader labelme_gist: takes one .mat or zip file, got {len(sources)} sources")
    (source,) = existing_files(sources, f".mat file or a zip with {MEMBER}")
    if not is_zip(source):
        with source.open("rb") as file:
            yield str(source), file
        return
    with contextlib.ExitStack() as stack:
        with reading(source, "zip"):
            archive = stack.enter_context(zipfile.ZipFile(source))
            found = [info for info in archive.infolist() if info.filename.rpartition("/")[2] == MEMBER]
            member = stack.enter_context(archive.open(found[0])) if len(found) == 1 else None
        if member is None:
            raise ValueError(f"{source}: must hold one {MEMBER}, holds {len(found)}")
        yield f"{source}/{printable(found[0].filename)}", member


def _description(where: str, file: IO[bytes]) -> Description:
    shapes = {name: shape for name, shape, _ in _matlab(where, file, "whosmat")}
    if "gist" not in shapes:
        raise ValueError(f"{where}: has no variable gist; it has {printable(', '.join(shapes)) or 'none'}")
    shape = shapes["gist"]
    if len(shape) != 2 or shape[0] < 1 or shape[1] != DIMENSIONS:
        raise ValueError(f"{where}: gist must be (n, {DIMENSIONS}), not {tuple(shape)}")
    if shape[0] * DIMENSIONS * 8 > machine_memory():
        raise ValueError(f"{where}: gist of shape {tuple(shape)} is larger than the memory of this machine")
    given = None
    present = [name for name in PARTS if name in shapes]
    if len(present) == len(PARTS):
        given = _given_split(where, _variables(where, file, list(PARTS)), shape[0])
    else:
        logger.info("%s: no given split (%s)", where, f"only {present[0]}" if present else "no ndxtrain")
    names = None if given is None else ["train", "test"]
    return Description(shape[0], None, given, None, (DIMENSIONS,), "vectors", names)


def _given_split(where: str, numbers: dict[str, np.ndarray], items: int) -> np.ndarray:
    """int64 (items,) from the numbers, counted from 1, of the items of each part."""
    given = np.full(items, -1, np.int64)
    for part, name in enumerate(PARTS):
        values = numbers[name].ravel()
        if values.dtype.kind not in "iuf" or not np.isin(values, np.arange(1, items + 1)).all():
            raise ValueError(f"{where}: {name} must hold numbers of items, 1 to {items}")
        rows = values.astype(np.int64) - 1
        twice = len(np.unique(rows)) < len(rows)
        if twice or (given[rows] != -1).any():
            raise ValueError(f"{where}: {name} holds an item twice{'' if twice else ', or one of ndxtrain'}")
        given[rows] = part
    if (given == -1).any():
        number = int(np.argmax(given == -1)) + 1
        raise ValueError(f"{where}: item {number} is neither in ndxtrain nor in ndxtest")
    return given


def _variables(where: str, file: IO[bytes], names: list[str]) -> dict[str, np.ndarray]:
    return _matlab(where, file, "loadmat", variable_names=names)


def _matlab(where: str, file: IO[bytes], function: str, **arguments):
    """What that function of scipy.io says of the file; ValueError for a file that is not as it should be."""
    import scipy.io  # every dry run would pay for it

    try:
        check_matlab(file, arguments.get("variable_names", ()))
        file.seek(0)
        return getattr(scipy.io, function)(file, **arguments)
    except NotImplementedError as error:  # how SciPy says that it does not read HDF5
        raise ValueError(
            f"{where}: a file of MATLAB's version 7.3 (or newer), which is not read here; save it with -v7"
        ) from error
    except Exception as error:
        # The reader of damaged files fails with errors of every kind.
        raise ValueError(f"{where}: cut short, damaged or not a MATLAB file ({one_line(error)})") from error
