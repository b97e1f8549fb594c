"""Pretrained models of other libraries: images or texts to vectors. One file a library, found by itself.

A model is named `<library>/<model>`, for example `timm/resnet18`. The library is the file's name with hyphens
for underscores, and the model is what the library itself calls it. A file defines

- `ITEMS`: what its models take, of ("images", "texts");
- `PACKAGES`: the packages that it needs, as `pip install` calls them;
- `OPTIONS`: option of `load` -> one-line description;
- `models()`: the names that the library knows, or [] where they are names on a server;
- `load(model, items, weights, seed, **options)`: a `Backbone`, with pretrained weights if `weights` (a file)
  and `seed` (random weights) are None.

`python -m networks features` writes the vectors (docs/make-features.md).
"""

import contextlib
import importlib.util
import os
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from networks.base.features import Backbone, BackboneError
from tiebench.discovery import Kind, Plugin
from tiebench.messages import did_you_mean, nearest, one_line

KIND = Kind(
    "library",
    __name__,
    Path(__file__).parent,
    {"items": tuple, "packages": tuple, "options": dict},
    ("models", "load"),
    hyphens=True,
)
INSTALL = "make backbones"
# Errors of the libraries' downloads, wherever in a chain of errors: their classes belong to many packages.
UNREACHABLE = ("Connection", "Timeout", "URLError", "gaierror", "Offline", "LocalEntryNotFound")
UNREACHABLE_WORDS = ("couldn't connect", "offline", "connection error", "failed to resolve")


def find(name: str) -> tuple[Plugin, str]:
    """The library of a model, and the model's name there. Raises BackboneError with the nearest library."""
    library, _, model = name.partition("/")
    try:
        found = KIND.named(library.replace("_", "-"))
    except ValueError as error:
        raise BackboneError(f"model '{name}': {error}") from error
    if not model:
        raise BackboneError(f"model '{name}': the name of a model is missing, as in {library}/NAME")
    return found, model


def load(
    name: str,
    items: str,
    weights: str | os.PathLike | None = None,
    seed: int | None = None,
    **options: object,
) -> Backbone:
    """The model called `<library>/<model>`, for `items` ("images" or "texts").

    weights: a file of weights; seed: random weights by this seed; pretrained weights without both. options:
    those of the library's file. Raises BackboneError, in one line, for an unknown name or option, a missing
    package, and whatever the library reports. Nothing that is unpickled may run code.
    """
    library, model = find(name)
    takes, known = library.said.items, library.said.options
    if items not in takes:
        can = [one for one, other in KIND.find().items() if items in other.said.items]
        raise BackboneError(f"model '{name}' takes {' and '.join(takes)}; {items}: {', '.join(can)}")
    for option in options:
        if option not in known:
            shown = option.replace("_", "-")
            raise BackboneError(f"model '{name}' has no option '{shown}'{did_you_mean(option, known)}")
    if weights is not None and seed is not None:
        raise BackboneError(f"model '{name}': weights come from a file or are random, not both")
    if weights is not None and not Path(weights).is_file():
        raise FileNotFoundError(f"{weights}: no such file of weights")
    check_installed(library)
    try:
        with without_code_in_weights():
            made: Backbone = library.load().load(model, items, weights, seed, **options)
            return made
    except BackboneError:
        raise
    except Exception as error:
        # The libraries raise errors of every kind.
        raise BackboneError(_reason(name, error)) from error


def unknown(name: str, known: Sequence[str]) -> BackboneError:
    """The error about a model that a library does not know."""
    library, _, model = name.partition("/")
    close = nearest(model, known, 3)
    meant = f"; did you mean {' or '.join(map(repr, close))}?" if close else ";"
    return BackboneError(
        f"{library} has no model '{model}'{meant} python -m networks models {library} lists them"
    )


def check_installed(library: Plugin) -> None:
    """Raise BackboneError, which says how to install it, where a package of a library is missing."""
    missing = [package for package in library.said.packages if not installed(package)]
    if missing:
        raise BackboneError(
            f"models of {library.name} need {' and '.join(missing)}: not installed; run {INSTALL}"
        )


def installed(package: str) -> bool:
    """Whether a package is installed."""
    return importlib.util.find_spec(package.replace("-", "_")) is not None


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Package -> installed version."""
    return {package: metadata.version(package) for package in packages}


@contextlib.contextmanager
def without_code_in_weights() -> Iterator[None]:
    """Files of weights that are pickles are read as plain tensors, whatever a library asks torch for."""
    name = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@contextlib.contextmanager
def seeded(seed: int | None) -> Iterator[None]:
    """Initial weights by `seed`, with torch's generator put back as it was."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed or 0)
        yield


def hub_name(name: str, model: str) -> str:
    """What a library of Hugging Face takes for `model`: a name on the hub, or the path of a local folder.

    Raises BackboneError, which names the model as `name`, for a folder that is not there.
    """
    folder = Path(model).expanduser()
    if model.startswith((".", "/", "~")) and not folder.is_dir():
        raise BackboneError(f"model '{name}': there is no such folder")
    return str(folder) if model.startswith("~") else model


def fill_without(module: Any, layers: Sequence[str], path: str | os.PathLike) -> None:
    """Put the weights of a file into a module that lacks these layers of it. Raises ValueError as `fill`."""
    from networks.weights.by_name import fill, read_weights

    read = read_weights(path)
    fill(module, {name: read[name] for name in read if name.rpartition(".")[0] not in layers}, path)


def stacked(items: list, device: Any) -> Any:
    """Prepared images, float32 (c, h, w) each, as one batch on the device."""
    import torch

    return torch.stack(items).to(device)


def _reason(name: str, error: Exception) -> str:
    """One line about an error of a library."""
    chain: list[BaseException] = []
    seen: BaseException | None = error
    while seen is not None and len(chain) < 10:
        chain.append(seen)
        seen = seen.__cause__ or seen.__context__
    kinds = " ".join(type(one).__name__ for one in chain)
    words = " ".join(str(one).lower() for one in chain)
    if any(kind in kinds for kind in UNREACHABLE) or any(word in words for word in UNREACHABLE_WORDS):
        return (
            f"model '{name}': its files could not be downloaded ({type(chain[-1]).__name__}) and are not in "
            "the cache of the library: name a local folder or file, see docs/make-features.md"
        )
    return f"model '{name}': {one_line(error)}"
