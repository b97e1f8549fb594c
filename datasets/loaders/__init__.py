"""Loaders, one file each, found by themselves: docs/add-a-dataset.md describes what such a file defines."""

from collections.abc import Callable, Iterable
from pathlib import Path

from tiebench.discovery import Kind

KIND = Kind("loader", __name__, Path(__file__).parent, {"options": dict}, ("describe", "load"))


def state(loader: str, folders: Iterable[Path], **options: object) -> str:
    """A digest that changes when a file of these folders that a loader reads is added, removed or replaced.

    It is made of names, sizes and times; no file is opened. Raises OSError for a folder that is not there,
    ValueError for an unknown loader, wrong options and a link to a folder above it.
    """
    from datasets.readers import archives

    reads = getattr(KIND.named(loader).load(), "reads", _all_but_hidden)
    wanted = reads(**options)
    return " ".join(archives.state(Path(folder), wanted) for folder in folders)


def _all_but_hidden(**options: object) -> Callable[[str], bool]:
    return lambda path: not path.rpartition("/")[2].startswith(".")
