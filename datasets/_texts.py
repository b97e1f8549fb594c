"""Small text files beside the images of a dataset, wherever among its sources they lie."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from datasets._archives import is_zip, members
from tiebench.messages import shorten

LONGEST_SHOWN = 60


@dataclass(frozen=True)
class Text:
    """A text file: its path, as messages call it, and its contents."""

    path: str
    contents: bytes

    def lines(self) -> list[str]:
        """Lines without the blank ones at the end. Raises ValueError if it is not text."""
        try:
            lines = self.contents.decode("utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{self.path}: not a text file ({error.reason} at byte {error.start})"
            ) from error
        while lines and not lines[-1].strip():
            lines.pop()
        return lines


def texts_among(sources: Sequence[Path], wanted: Callable[[str], bool]) -> tuple[dict[str, Text], list[Path]]:
    """The text files of these paths, by file name, and the sources that may hold images: all but .txt files.

    wanted: whether a path is that of a text file; paths are absolute, with "/" between their components
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
        texts[name] = Text(path, read())

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
