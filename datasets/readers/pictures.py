"""Image files to arrays of pixels: one at a time, or many of one size by several threads.

Pixels are RGB: transparency is dropped, EXIF orientation is applied.
"""

import contextlib
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TypeVar

import numpy as np
from PIL import Image, UnidentifiedImageError

from datasets.files import creating_items
from datasets.readers.archives import DamagedArchiveError, members
from datasets.specification import positive
from tiebench.messages import one_line, printable

SECONDS_BETWEEN_REPORTS = 5.0
# A new view of the items costs as much as the decoding of a small image.
IMAGES_A_VIEW = 256
# ImageNet holds a PNG that is called .JPEG.
PHOTOGRAPH_FORMATS = ["JPEG", "PNG"]
# Enough waiting files that no thread is idle, few enough that they take no memory to speak of.
WAITING_PER_THREAD = 4
NAMED_IN_MESSAGES = 3

T = TypeVar("T")

logger = logging.getLogger("tiebench")

EXIF_ORIENTATION = 0x0112
# What undoes each orientation; 1 is upright.
UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
# The orientations in which height and width are exchanged.
SIDEWAYS = (5, 6, 7, 8)


class CorruptImagesError(ValueError):
    """Images that cannot be decoded. names: all of them, as messages call them."""

    def __init__(self, message: str, names: Sequence[str]) -> None:
        super().__init__(message)
        self.names = list(names)


def check_size(size: object) -> None:
    """Raise ValueError unless `size` is [height, width] in pixels."""
    if not isinstance(size, (list, tuple)) or len(size) != 2:
        raise ValueError(f"option size: must be [height, width], not {size!r}")
    for value in size:
        positive(value, "option size")


def orientation(image: Image.Image) -> int:
    """The EXIF orientation of an opened image, 1 to 8; 1 (upright) where it has none, or a damaged one."""
    try:
        found = image.getexif().get(EXIF_ORIENTATION, 1)
    except Exception:
        # Metadata can be damaged in every way beside pixels that are whole.
        return 1
    return found if found in UPRIGHT else 1


def shape_of(image: Image.Image) -> tuple[int, int]:
    """(height, width) of an opened image, upright."""
    return (image.width, image.height) if orientation(image) in SIDEWAYS else (image.height, image.width)


def pixels_of(
    image: Image.Image,
    size: Sequence[int] | None,
    resampling: Image.Resampling = Image.Resampling.BILINEAR,
) -> np.ndarray:
    """uint8 (height, width, 3) of an opened image, upright, resized to `size` = (height, width) if given.

    Pillow's resizing widens its filter where an image shrinks, so it does not alias; the aspect is not kept.
    """
    image = upright(image)
    if size is not None:
        image = image.resize((size[1], size[0]), resampling)
    return np.asarray(image)


def upright(image: Image.Image) -> Image.Image:
    """An opened image in RGB, turned as its EXIF orientation says. Raises ValueError for deeper pixels."""
    if image.mode.startswith(("I", "F")):
        # Pillow would clip these to 255 silently.
        raise ValueError(f"its pixels have more than 8 bits, mode {image.mode}")
    turned = UPRIGHT.get(orientation(image))
    image = image.convert("RGB")
    return image if turned is None else image.transpose(turned)


@contextlib.contextmanager
def decoding(source: Path, name: str, formats: Sequence[str]) -> Iterator[None]:
    """Whatever goes wrong with one image becomes a ValueError that names it; `formats` were allowed."""
    try:
        yield
    except DamagedArchiveError:
        raise
    except UnidentifiedImageError as error:
        # Pillow's own message holds the address of a buffer.
        raise ValueError(f"{source}: '{printable(name)}' is not an image of {', '.join(formats)}") from error
    except Exception as error:
        # Pillow raises errors of every kind for damaged files.
        message = f"{source}: image '{printable(name)}' cannot be read: {one_line(error)}"
        raise ValueError(message) from error


def save_photographs(
    path: Path,
    sources: Sequence[Path],
    row_of: Callable[[str], int | None],
    names: Sequence[str],
    size: Sequence[int],
    missing: str,
    nested: Collection[str] = (),
    most_unreadable: int = 100,
) -> np.ndarray:
    """Find n photographs in folders and archives, and write them to `path`, uint8 (kept, height, width, 3).

    row_of: row of the file of that path in its source, or None for files that are not wanted
    names:  what each of the n rows is called in messages
    size:   (height, width) that they are resized to, by bicubic interpolation
    nested: see `datasets.readers.archives.members`
    most_unreadable: photographs after which reading stops, unless they are skipped

    Returns bool (n,), the rows kept: all, unless `missing` is "skip", which leaves out those that are not
    there or cannot be decoded. Raises ValueError for these otherwise, with their number and the first ones,
    and always for a damaged archive, for a photograph that is there twice, and where there is none.
    """
    there = _found(sources, row_of, names, nested)
    where = ", ".join(str(source) for source in sources) or "the list of sources"
    if not there.any():
        raise ValueError(f"{where}: holds none of the {len(there)} images, such as '{names[0]}'")
    if not there.all():
        lost = [names[row] for row in np.flatnonzero(~there).tolist()]
        found = f"{len(lost)} of {len(there)} images are missing: {listed(lost)}"
        if missing == "error":
            raise ValueError(f"{where}: {found} (option missing: skip leaves them out)")
        logger.warning("%s; left out", found)
    with creating_items(path, (len(there), *size, 3), np.uint8) as items:
        kept, reported = there.copy(), time.monotonic()
        unreadable: list[str] = []
        first = None
        done = 0
        for row, decoded in _decoded(sources, row_of, size, nested):
            try:
                pixels = decoded.result()
            except DamagedArchiveError:
                raise
            except ValueError as error:
                kept[row] = False
                first = first or error
                unreadable.append(names[row])
                if missing == "error" and len(unreadable) == most_unreadable:
                    break
                continue
            if done % IMAGES_A_VIEW == 0:
                view = items.view()
            view[row] = pixels
            done += 1
            if time.monotonic() - reported > SECONDS_BETWEEN_REPORTS:
                reported = time.monotonic()
                logger.info("%d of %d images", done, np.count_nonzero(there))
        if unreadable:
            least = "at least " if len(unreadable) == most_unreadable and missing == "error" else ""
            found = f"{least}{len(unreadable)} of {len(there)} images cannot be read: {listed(unreadable)}"
            if missing == "error" or not kept.any():
                raise CorruptImagesError(
                    f"{found}; the first: {first} (option missing: skip leaves them out)", unreadable
                )
            logger.warning("%s; left out; the first: %s", found, first)
        if done != np.count_nonzero(kept):
            raise ValueError(f"{where}: changed while it was read ({done} images seen)")
        items.keep(kept)
    return kept


def _found(
    sources: Sequence[Path],
    row_of: Callable[[str], int | None],
    names: Sequence[str],
    nested: Collection[str],
) -> np.ndarray:
    """bool (n,): which are there. Reads names only, to report a missing one before hours of work."""
    there = np.zeros(len(names), bool)
    for source in sources:
        for name, _ in members(source, nested):
            row = row_of(name)
            if row is None:
                continue
            if there[row]:
                raise ValueError(
                    f"{source}: '{printable(name)}' is image '{names[row]}', which was there before"
                )
            there[row] = True
    return there


def listed(names: list[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:NAMED_IN_MESSAGES])
    return shown + (", ..." if len(names) > NAMED_IN_MESSAGES else "")


def _decoded(
    sources: Sequence[Path],
    row_of: Callable[[str], int | None],
    size: Sequence[int],
    nested: Collection[str],
) -> Iterator[tuple[int, Future]]:
    """(row, its pixels to come), in the order of the sources."""

    def jobs():
        for source in sources:
            for name, contents in members(source, nested):
                row = row_of(name)
                if row is not None:
                    made = partial(_photograph, source, name, size=size)
                    yield row, partial(_contents, source, name, contents), made

    return in_threads(jobs())


def _contents(source: Path, name: str, contents: Callable[[], bytes]) -> bytes:
    with decoding(source, name, PHOTOGRAPH_FORMATS):
        return contents()


def in_threads(
    jobs: Iterable[tuple[T, Callable[[], bytes], Callable[[bytes], object]]],
) -> Iterator[tuple[T, Future]]:
    """(key, result to come) of each job, in order; few are on their way at any time.

    jobs: (key, what reads the contents, what is made of them). Contents are read in this thread, because an
    archive has one position; a thread of a pool makes the result. A ValueError of either is the result's.
    """
    Image.preinit()
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    pool = ThreadPoolExecutor(threads, "decode")
    waiting: deque[tuple[T, Future]] = deque()
    try:
        for key, contents, made in jobs:
            try:
                future = pool.submit(made, contents())
            except ValueError as error:
                future = Future()
                future.set_exception(error)
            waiting.append((key, future))
            if len(waiting) > WAITING_PER_THREAD * threads:
                yield waiting.popleft()
        while waiting:
            yield waiting.popleft()
    finally:
        pool.shutdown(cancel_futures=True)


def _photograph(source: Path, name: str, contents: bytes, size: Sequence[int]) -> np.ndarray:
    with (
        decoding(source, name, PHOTOGRAPH_FORMATS),
        Image.open(BytesIO(contents), formats=PHOTOGRAPH_FORMATS) as image,
    ):
        return pixels_of(image, size, Image.Resampling.BICUBIC)
