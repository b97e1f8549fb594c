"""Images by class from a folder, or from a tar (plain, gz, bz2, xz) or zip that is never unpacked to disk.

A pattern says how paths from the root of the folder or archive are made, for example
"cifar10-jpeg/{split}/{class}/{name}": fields are {class}, {split} and {name}, `*` stands for one entire
component. Rows are sorted by (split, class, name). Pixels are RGB, upright as EXIF says; transparency is
dropped. In a folder, an image that is reached by a link as well is counted once.
"""

import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from datasets.description import Description
from datasets.files import creating_items
from datasets.readers.archives import DamagedArchiveError, existing, members
from datasets.readers.image_lists import ranks
from datasets.readers.pictures import (
    IMAGES_A_VIEW,
    SECONDS_BETWEEN_REPORTS,
    CorruptImagesError,
    check_size,
    decoding,
    listed,
    pixels_of,
    shape_of,
)
from datasets.specification import refuse_unknown_options
from tiebench.files import write_text
from tiebench.messages import did_you_mean, printable

OPTIONS: dict[str, str] = {
    "paths": "pattern of paths: {class}, {split}, {name}, literal parts, * (default {class}/{name})",
    "size": "[height, width] in pixels that images are resized to (bilinear); needed where sizes differ",
    "corrupt": "'error' (default), or 'skip': leave out images that cannot be decoded",
    "extensions": "endings of image files, in either case (default .jpg .jpeg .png .bmp .webp .ppm)",
}
# Beside the items: images that were left out.
LIST_OF_CORRUPT = "corrupt_images.txt"
DEFAULT_PATHS = "{class}/{name}"
DEFAULT_EXTENSIONS = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".ppm")

logger = logging.getLogger("tiebench")


@dataclass(frozen=True)
class _Options:
    """As of `OPTIONS`."""

    paths: str = DEFAULT_PATHS
    size: Sequence[int] | None = None
    corrupt: str = "error"
    extensions: Sequence[str] = DEFAULT_EXTENSIONS


def describe(sources: list[Path], **options) -> Description:
    """Labels and given split from names alone; no pixel is decoded (without `size`, one header is read).

    sources: one folder, tar or zip. labels are int64 (n,), the rank of the class name in sorted order;
    given_split is int64 (n,), the rank of the split's name, or None without {split} in `paths`.
    Raises FileNotFoundError where the source is missing; ValueError for a bad option, for a damaged archive
    or one with links, absolute names or "..", and where no file matches. With `corrupt: skip`, `load` may
    leave out images that this counts.
    """
    return _plan(sources, options).description


def reads(
    *, paths: str = DEFAULT_PATHS, extensions: Sequence[str] = DEFAULT_EXTENSIONS, **options: object
) -> Callable[[str], bool]:
    """Whether a file, by its path from the root of the source, is one of the images, as a function.

    Raises ValueError for wrong options.
    """
    pattern, _ = _compiled(paths), formats_of(extensions)
    endings = tuple(extension.lower() for extension in extensions)
    return lambda path: _fields(path, pattern, endings) is not None


def load(sources: list[Path], folder: Path, **options) -> Description:
    """Write items.npy uint8 (n, height, width, 3), labels.npy and given_split.npy; see `describe`.

    Raises as `describe`, and ValueError, without `size`, for images that differ in size. Images that cannot
    be decoded are left out with `corrupt: skip`, and listed in corrupt_images.txt; else CorruptImagesError
    names all of them.
    """
    plan, folder = _plan(sources, options), Path(folder)
    height, width, _ = plan.description.item_shape
    row_of = {name: row for row, name in enumerate(plan.names)}
    done, reported = 0, time.monotonic()
    kept, failed = np.ones(len(row_of), bool), []
    first: ValueError | None = None  # of the failed ones
    with creating_items(folder / "items.npy", (len(row_of), height, width, 3), np.uint8) as items:
        for name, contents in members(plan.source):
            row = row_of.get(name)
            if row is None:
                continue
            try:
                with (
                    decoding(plan.source, name, plan.formats),
                    Image.open(BytesIO(contents()), formats=plan.formats) as image,
                ):
                    pixels = pixels_of(image, plan.options.size)
            except DamagedArchiveError:
                raise
            except ValueError as error:
                kept[row], first = False, first or error
                failed.append(printable(name))
                continue
            if pixels.shape != (height, width, 3):
                sized, other = printable(plan.sized), printable(name)
                raise ValueError(
                    f"{plan.source}: images differ in size: '{sized}' is {height} x {width} pixels and "
                    f"'{other}' {pixels.shape[0]} x {pixels.shape[1]}: set option size: [height, width]"
                )
            if done % IMAGES_A_VIEW == 0:
                view = items.view()
            view[row] = pixels
            done += 1
            if time.monotonic() - reported > SECONDS_BETWEEN_REPORTS:
                reported = time.monotonic()
                logger.info("%s: %d of %d images", plan.source.name, done, len(row_of))
        seen = done + len(failed)
        if seen != len(row_of):
            raise ValueError(
                f"{plan.source}: changed while it was read ({seen} of {len(row_of)} images seen)"
            )
        description = plan.description
        if first is not None:
            failed.sort()
            _refuse_or_report(plan.source, failed, len(row_of), first, plan.options.corrupt)
            items.keep(kept)
            description = description.without(~kept)
            write_text(folder / LIST_OF_CORRUPT, "\n".join(failed) + "\n")
    description.write(folder)
    return description


def _refuse_or_report(source: Path, failed: list[str], images: int, first: ValueError, corrupt: str) -> None:
    found = f"{len(failed)} of {images} images cannot be read: {listed(failed)}"
    if corrupt == "skip" and len(failed) < images:
        logger.warning("%s: %s; left out; one reason: %s", source, found, first)
        return
    if len(failed) == 1:
        raise CorruptImagesError(f"{first} (option corrupt: skip leaves it out)", failed)
    raise CorruptImagesError(
        f"{source}: {found}; one reason: {first} (option corrupt: skip leaves them out)", failed
    )


@dataclass(frozen=True)
class _Plan:
    options: _Options
    source: Path
    names: list[str]  # in order of rows
    description: Description
    formats: list[str]  # those that Pillow may take a file for
    sized: str  # the image that gave the size, where no option did


def _plan(sources: list[Path], given: dict) -> _Plan:
    refuse_unknown_options(given, OPTIONS, "images")
    options = _Options(**given)
    size, corrupt = options.size, options.corrupt
    if size is not None:
        check_size(size)
    if corrupt not in ("error", "skip"):
        raise ValueError(
            f"option corrupt: unknown value {corrupt!r}{did_you_mean(corrupt, ('error', 'skip'))}"
        )
    if len(sources) != 1:
        raise ValueError(f"loader images: takes one folder, tar or zip, got {len(sources)} sources")
    shape = None if size is None else (*size, 3)
    sized, damaged = "", None

    def look(name: str, contents: Callable[[], bytes]) -> None:
        nonlocal shape, sized, damaged
        if shape is not None:
            return
        # The next one may be whole: `load` names all that are corrupt.
        try:
            with (
                decoding(Path(sources[0]), name, formats),
                Image.open(BytesIO(contents()), formats=formats) as image,
            ):
                shape, sized = (*shape_of(image), 3), name
        except DamagedArchiveError:
            raise
        except ValueError as error:
            damaged = damaged or error

    formats = formats_of(options.extensions)
    source, found, has_split = find(sources[0], options.paths, options.extensions, look=look)
    if shape is None:
        raise CorruptImagesError(f"{damaged} (and none of the {len(found)} images can)", sorted(found))
    names = sorted(found, key=lambda name: (*found[name], name))
    class_names, labels = ranks([found[name][1] for name in names])
    split_names, given_split = ranks([found[name][0] for name in names]) if has_split else (None, None)
    description = Description(len(names), labels, given_split, class_names, shape, "images", split_names)
    return _Plan(options, source, names, description, formats, sized)


def find(
    source: Path,
    paths: str = DEFAULT_PATHS,
    extensions: Sequence[str] = DEFAULT_EXTENSIONS,
    needs_class: bool = True,
    look: Callable[[str, Callable[[], bytes]], None] | None = None,
) -> tuple[Path, dict[str, tuple[str, str, str]], bool]:
    """The images of a folder or archive in its own order: the source, path -> (split, class, name), "" for
    fields that `paths` lacks, and whether `paths` has {split}.

    needs_class: whether `paths` must have {class}; look: called with the path of each image and what reads
    its contents. Raises as `describe`.
    """
    pattern = _compiled(paths, needs_class)
    formats_of(extensions)  # raises for unknown ones
    if not Path(source).exists():
        raise FileNotFoundError(f"{source}: no such folder or archive")
    (source,) = existing([source])
    endings = tuple(extension.lower() for extension in extensions)
    found: dict[str, tuple[str, str, str]] = {}
    others, example = 0, None
    for name, contents in members(source):
        fields = _fields(name, pattern, endings)
        if fields is None:
            others, example = others + 1, example or name
            continue
        if name in found:
            raise ValueError(f"{source}: holds '{printable(name)}' twice")
        found[name] = (fields.get("split", ""), fields.get("class", ""), fields.get("name", ""))
        if look is not None:
            look(name, contents)
    if not found:
        seen = f"there is for example '{printable(example)}'" if example else "it holds no file"
        raise ValueError(
            f"{source}: no file matches paths '{paths}' with extensions {', '.join(endings)}; {seen}"
        )
    if source.is_dir():
        doubles = _reached_by_links_too(source, found)
        for name in doubles:
            del found[name]
        if doubles:
            logger.warning(
                "%s: %d images are reached by links as well and are counted once: %s",
                source.name,
                len(doubles),
                listed([printable(name) for name in doubles]),
            )
    logger.info(
        "%s: %d images, %d files left out%s",
        source.name,
        len(found),
        others,
        f" (the first: {example})" if example else "",
    )
    return source, found, "split" in pattern.groupindex


def _fields(name: str, pattern: re.Pattern, endings: tuple[str, ...]) -> dict[str, str] | None:
    """The fields of an image's path; None for a file that is no image."""
    match = pattern.fullmatch(name)
    # Hidden files are left by file managers ("._0001.jpg" in archives made on macOS), not images.
    hidden = name.rpartition("/")[2].startswith(".")
    return None if match is None or hidden or not name.lower().endswith(endings) else match.groupdict()


def _reached_by_links_too(source: Path, names: Iterable[str]) -> list[str]:
    """Of the names of one file, all but one: that without links, or else the first."""
    real_folders: dict[str, str] = {}
    first: dict[str, str] = {}
    root, doubles = os.path.realpath(source), []
    for name in sorted(names):
        folder, _, file = name.rpartition("/")
        if folder not in real_folders:
            real_folders[folder] = os.path.realpath(source / folder)
        real = f"{real_folders[folder]}/{file}"
        other = first.setdefault(real, name)
        if other != name and f"{root}/{name}" == real:
            first[real] = name
            doubles.append(other)
        elif other != name:
            doubles.append(name)
    return doubles


def _compiled(paths: object, needs_class: bool = True) -> re.Pattern:
    """The regular expression of a pattern of paths."""
    where = f"option paths {paths!r}"
    if not isinstance(paths, str):
        raise ValueError(f"{where}: must be text such as '{DEFAULT_PATHS}'")
    known, seen, components = ("class", "split", "name"), set(), []
    for component in paths.split("/"):
        if component in ("", ".", ".."):
            raise ValueError(f"{where}: '{component}' is not a component of a path relative to the source")
        if component == "*":
            components.append("[^/]+")
            continue
        expression = ""
        # Splitting at a group leaves literal parts at even positions and fields at odd ones.
        for position, part in enumerate(re.split(r"\{([^{}]*)\}", component)):
            if position % 2 == 0:
                if re.search(r"[{}*]", part):
                    raise ValueError(
                        f"{where}: '{component}' is neither * nor made of {{fields}} and literal parts"
                    )
                expression += re.escape(part)
            elif part not in known:
                raise ValueError(f"{where}: unknown field '{part}'{did_you_mean(part, known)}")
            elif part in seen:
                raise ValueError(f"{where}: field '{part}' is given twice")
            else:
                seen.add(part)
                expression += f"(?P<{part}>[^/]+?)"
        components.append(expression)
    if needs_class and "class" not in seen:
        raise ValueError(f"{where}: field {{class}} is missing")
    # Names may hold any character, line ends included.
    return re.compile("/".join(components), re.DOTALL)


def formats_of(extensions: object) -> list[str]:
    """Pillow's names of the formats of these extensions.

    Files are only ever tried as one of these: some other formats of Pillow start programs to be read.
    """
    if isinstance(extensions, str) or not isinstance(extensions, (list, tuple)) or not extensions:
        raise ValueError(f"option extensions: must be a list such as [.jpg, .png], not {extensions!r}")
    registered = Image.registered_extensions()
    for extension in extensions:
        if not isinstance(extension, str) or extension.lower() not in registered:
            raise ValueError(
                f"option extensions: {extension!r} is not a known image format"
                f"{did_you_mean(extension, DEFAULT_EXTENSIONS)}"
            )
    return sorted({registered[extension.lower()] for extension in extensions})
