"""Checks of what a user wrote in a configuration, shared by loaders, splits and affinities."""

from collections.abc import Mapping

import numpy as np

from tiebench.discovery import Kind, Plugin
from tiebench.messages import did_you_mean


def refuse_unknown_options(given: Mapping[str, object], options: Mapping[str, str], loader: str) -> None:
    """Raise ValueError for the first of `given` that is none of the loader's `options`, with the nearest."""
    for name in given:
        if name not in options:
            raise ValueError(f"loader {loader}: unknown option '{name}'{did_you_mean(name, options)}")


def kind_of(spec: object, kinds: Kind, where: str) -> Plugin:
    """The kind of `spec`, whose keys are checked; `where` opens the messages. Raises ValueError."""
    if not isinstance(spec, Mapping):
        raise ValueError(f"{where}: must be a mapping with a key 'kind', not {spec!r}")
    if "kind" not in spec:
        raise ValueError(f"{where}: key 'kind' is missing; known: {', '.join(kinds.find())}")
    try:
        kind = kinds.named(spec["kind"])
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    needed = kind.said.needs
    known = sorted({*needed, *kind.said.options})
    for key in spec:
        if key != "kind" and key not in known:
            raise ValueError(f"{where}: unknown key {key!r} for kind '{kind.name}'{did_you_mean(key, known)}")
    for key in sorted(needed):
        if key not in spec:
            raise ValueError(f"{where}: key '{key}' is missing for kind '{kind.name}'")
    return kind


def positive(value: object, where: str, otherwise: str = "") -> int:
    """`value` as a positive integer; raises ValueError, which also names the alternative `otherwise`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{where}: must be a positive integer{otherwise}, not {value!r}")
    return value


def present(values: np.ndarray | None, what: str) -> np.ndarray:
    """`values` of a dataset, as its labels; raises ValueError, which opens with `what`, where it has none."""
    if values is None:
        raise ValueError(f"{what}: the dataset has none")
    return values
