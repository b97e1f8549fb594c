"""Reading YAML files of plain values: mappings, lists, text, numbers and booleans."""

import math
import re
from typing import Any

import yaml

from tiebench import texts
from tiebench.messages import shorten
from workflow.errors import ConfigurationError

_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # without its compiled part


class _Loader(_SafeLoader):
    """Safe YAML, in which a duplicate key is an error: PyYAML would silently keep the last one."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen and key.value != "<<":
                    where = key.start_mark
                    raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key.value!r}", where)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_settings(path):
    """The mapping of a YAML file, {} of an empty one; raises ConfigurationError."""
    try:
        text = texts.read(path).contents.decode()
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
    try:
        values = yaml.load(text, _Loader) or {}  # noqa: S506 (a safe one)
    except (yaml.YAMLError, ValueError, LookupError, RecursionError) as error:
        # Not YAMLError only: impossible dates and numbers raise other errors.
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = " ".join(str(getattr(error, "problem", None) or error).split())
        raise ConfigurationError(f"{path}{line}: not valid YAML ({problem})") from error
    check_plain(values, path)
    return values


DEEPEST = 30
_INVALID = re.compile(r"[\0-\x08\x0b-\x1f\ud800-\udfff]")  # controls, and lone surrogates


def check_plain(values, file, keys=()):
    """Raise ConfigurationError for values that cannot be merged, printed and stored as JSON.

    Allowed are mappings from text or integers, lists, text, integers of 64 bits, finite numbers, booleans and
    null.
    """

    def fail(message):
        place = ".".join(shorten(str(key)) for key in keys).replace(".[", "[")
        raise ConfigurationError(f"{file}: {place}: {message}" if place else f"{file}: {message}")

    if not keys and not isinstance(values, dict):
        fail(f"must be a mapping from keys to values, not a {type(values).__name__}")
    if len(keys) > DEEPEST:
        keys = keys[:3]
        fail(f"is nested deeper than {DEEPEST} levels")
    if isinstance(values, dict):
        for key, value in values.items():
            if isinstance(key, bool) or not isinstance(key, (str, int)):
                fail(f"the key {shorten(repr(key))} must be text: write it in quotes")
            check_plain(key, file, (*keys, key))
            check_plain(value, file, (*keys, key))
    elif isinstance(values, list):
        for index, value in enumerate(values):
            check_plain(value, file, (*keys, f"[{index}]"))
    elif isinstance(values, str):
        if _INVALID.search(values):
            fail("contains control or invalid characters")
    elif isinstance(values, float):
        if not math.isfinite(values):
            fail(f"must be a finite number, not {values}")
    elif isinstance(values, int) and not isinstance(values, bool):
        if not -(2**63) <= values < 2**63:
            fail("is an integer that exceeds 64 bits")
    elif values is not None and not isinstance(values, bool):
        fail(f"is a {type(values).__name__}, not text or a number: write it in quotes")
