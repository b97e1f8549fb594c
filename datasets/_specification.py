"""Reading what a user wrote in a configuration: the checks shared by loaders, splits and affinities."""

import difflib
from collections.abc import Iterable, Mapping


def nearest(name: object, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the nearest known one, then all of them."""
    known = list(known)
    close = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    hint = f"did you mean '{close[0]}'? " if close else ""
    return f"{hint}known: {', '.join(known) or 'none'}"


def refuse_unknown_options(unknown: Mapping[str, object], options: Mapping[str, str], loader: str) -> None:
    """Raise ValueError for the first of `unknown`, naming the nearest of the loader's `options`."""
    for name in unknown:
        raise ValueError(f"loader {loader}: unknown option '{name}'; {nearest(name, options)}")


def kind_of(spec: object, kinds: Mapping[str, tuple[set[str], set[str]]], where: str) -> str:
    """The kind of `spec`, after its keys were checked.

    `kinds` maps each kind to (keys it needs, keys it may have); `where` opens the messages.
    Raises ValueError.
    """
    if not isinstance(spec, Mapping):
        raise ValueError(f"{where}: must be a mapping with a key 'kind', not {spec!r}")
    if "kind" not in spec:
        raise ValueError(f"{where}: key 'kind' is missing; known: {', '.join(kinds)}")
    kind = spec["kind"]
    if not isinstance(kind, str) or kind not in kinds:
        raise ValueError(f"{where}: unknown kind {kind!r}; {nearest(kind, kinds)}")
    needed, possible = kinds[kind]
    known = sorted(needed | possible)
    for key in spec:
        if key != "kind" and key not in known:
            raise ValueError(f"{where}: unknown key {key!r} for kind '{kind}'; {nearest(key, known)}")
    for key in sorted(needed):
        if key not in spec:
            raise ValueError(f"{where}: key '{key}' is missing for kind '{kind}'")
    return kind


def positive(value: object, where: str, otherwise: str = "") -> int:
    """`value` as a positive integer; raises ValueError that also names what else is possible there."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{where}: must be a positive integer{otherwise}, not {value!r}")
    return value
