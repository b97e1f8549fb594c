"""Loaders, one file each, found by themselves: docs/add-a-dataset.md describes what such a file defines."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Loader:
    """A loader of `datasets/loaders/<name>.py`.

    summary:  first line of its docstring
    options:  option -> one-line description
    describe: `describe(sources, **options) -> Description`, reads as little as possible
    load:     `load(sources, folder, **options) -> Description`, writes items.npy and the labels
    reads:    `reads(**options)`, a function that says whether a file of a folder, by its path there, is read:
              a change of the others changes nothing. All but hidden files, where the loader does not say
    """

    name: str
    summary: str
    options: Mapping[str, str]
    describe: Callable
    load: Callable
    reads: Callable[..., Callable[[str], bool]]

    def state(self, folders: Iterable[Path], **options: object) -> str:
        """A digest that changes when a file of these folders that is read is added, removed or replaced.

        It is made of names, sizes and times; no file is opened. Raises OSError for a folder that is not
        there, ValueError for wrong options and for a link to a folder above it.
        """
        from datasets.readers.archives import state

        wanted = self.reads(**options)
        return " ".join(state(Path(folder), wanted) for folder in folders)


def _all_but_hidden(**options: object) -> Callable[[str], bool]:
    return lambda path: not path.rpartition("/")[2].startswith(".")


def kinds() -> dict[str, Loader]:
    """Name -> loader, sorted by name. Raises ValueError for a loader that is not complete."""
    from datasets.discovery import public_modules, require, summary

    found = {}
    for name, module in public_modules(__name__, Path(__file__).parent).items():
        require(module, ("OPTIONS", "describe", "load"), "a loader")
        found[name] = Loader(
            name,
            summary(module),
            module.OPTIONS,
            module.describe,
            module.load,
            getattr(module, "reads", _all_but_hidden),
        )
    return found
