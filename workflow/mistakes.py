"""How a mistake in the configuration is told: in one line, with the nearest known name."""

import difflib


class ConfigurationError(ValueError):
    """A mistake in the configuration, told in one line."""


def nearest(name, known):
    """'; did you mean …' if a known name is close, and the known names."""
    close = difflib.get_close_matches(str(name), [str(k) for k in known], n=1)
    hint = f"; did you mean {close[0]!r}" if close else ""
    return (
        f"{hint}? Known: {', '.join(map(str, known))}" if close else f"; known: {', '.join(map(str, known))}"
    )


def shown(text, most=120):
    """Text as part of a line, without its middle where it is long."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most * 2 // 3]} … {text[-most // 4 :]}"
