"""Settings that people write for pages and summaries of leaderboards, checked; paragraphs of pages."""

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tiebench.messages import did_you_mean, one_line, shorten

# That of C, where PyYAML has it, reads the same in a tenth of the time.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# Of a paragraph in the source of a page.
WIDTH = 120


def parse_yaml(text: str) -> Any:
    """What YAML says. Raises yaml.YAMLError for text that is none."""
    return yaml.load(text, _Loader)  # noqa: S506 (a safe one)


def read_yaml(path: Path) -> Any:
    """What a YAML file holds. Raises ValueError, one line, for a file that cannot be read or is none."""
    try:
        return parse_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(one_line(error)) from error
    except (UnicodeError, yaml.YAMLError) as error:
        raise ValueError(f"{path} cannot be read: {one_line(error)}") from error


def check_keys(given: Any, known: Mapping, what: str) -> None:
    """Raise ValueError for settings that are no mapping, an unknown key, or a value of another type."""
    if not isinstance(given, dict):
        raise ValueError(f"{what} must be a mapping, not {shorten(repr(given))}")
    for key, value in given.items():
        if key not in known:
            raise ValueError(f"unknown key {key!r} of {what}{did_you_mean(key, known)}")
        kinds = known[key] if isinstance(known[key], tuple) else (known[key],)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            names = " or ".join(kind.__name__ for kind in kinds)
            raise ValueError(f"{key} of {what} must be of type {names}, not {shorten(repr(value))}")


def as_bits(value: Any) -> list[int]:
    """Code lengths from one number or a list."""
    bits = value if isinstance(value, list) else [value]
    if not bits or not all(isinstance(one, int) and not isinstance(one, bool) for one in bits):
        raise ValueError(f"bits must be a number or a list of numbers, not {shorten(repr(value))}")
    return bits


def listed(value: str | list) -> list:
    """One name, or a list of them, as a list. Raises ValueError for an empty one."""
    if value == []:
        raise ValueError("a list of names must have one at least")
    return value if isinstance(value, list) else [value]


def paragraph(text: str) -> str:
    """Text in lines of a page's source, cut between words alone."""
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)
