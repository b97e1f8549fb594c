"""Small text files beside the images of a dataset, wherever among its sources they lie."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from datasets.readers.archives import is_zip, members
from tiebench.messages import shorten
from tiebench.texts import Text, of_bytes

LONGEST_SHOWN = 60


def texts_among(
    sources: Sequence[Path],
    wanted: Callable[[str], bool],
    of_unknown_encoding: Callable[[str], bool] = lambda path: False,
) -> tuple[dict[str, Text], list[Path]]:
    """The text files of these paths, by file name, and the sources that may hold images: all but .txt files.

    wanted: whether a path is that of a text file; paths are absolute, with "/" between their components
    of_unknown_encoding: whether its contents are left as they are, for what nobody states the encoding of
    Text files are sources themselves or lie in folders and zips, not in tars: these would have to be read
    through, which takes minutes for images. Raises ValueError where two have the same name.
    """
    texts: dict[str, Text] = {}
    pictures = []

    def add(path: str, read: Callable[[], bytes]) -> None:
        path = path.replace("\\", "/")
        if not wanted(path):
            return
        name = path.rpartition("/")[2]
        if name in texts:
            raise ValueError(f"{path}: there is another {name}, {texts[name].path}")
        texts[name] = Text(path, read()) if of_unknown_encoding(path) else of_bytes(path, read())

    for source in sources:
        if source.is_file() and source.suffix == ".txt":
            add(str(source.absolute()), source.read_bytes)
            continue
        pictures.append(source)
        if source.is_dir() or is_zip(source):
            for name, contents in members(source):
                add(f"{source.absolute()}/{name}", contents)
    return texts, pictures


def shown(text: str | bytes) -> str:
    """The text as part of a message: one line of about 60 characters at most."""
    return shorten(text.decode("latin-1") if isinstance(text, bytes) else text, LONGEST_SHOWN)


def matched(pattern: re.Pattern, name: str) -> str:
    """The first group of a pattern in a name that matches it; raises ValueError for another name."""
    if (match := pattern.fullmatch(name)) is None:
        raise ValueError(f"'{shown(name)}' is not a name like {pattern.pattern}")
    return match[1]
