"""Parts of one-line error messages: the nearest known name, and shortened text."""

import difflib
from collections.abc import Iterable


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """The end of a message about an unknown name: "; did you mean 'x'? Known: x, y", or "; known: x, y"."""
    names = [str(one) for one in known]
    close = nearest(name, names, 1)
    listed = ", ".join(names) or "none"
    return f"; did you mean {close[0]!r}? Known: {listed}" if close else f"; known: {listed}"


def nearest(name: object, known: Iterable[str], most: int = 5) -> list[str]:
    """The names most similar to `name`, best first, at most `most`; empty if none is similar."""
    return difflib.get_close_matches(str(name), list(known), n=most)


def joined(words: Iterable[object]) -> str:
    """Words as a list in a sentence, "a, b and c"; one at least."""
    *others, last = map(str, words)
    return f"{', '.join(others)} and {last}" if others else last


def printable(text: str, most: int = 200) -> str:
    """Text from a file as part of a message: unprintable characters replaced, the end cut after `most`."""
    shown = "".join(character if character.isprintable() else "\ufffd" for character in text)
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."


def shorten(text: str, most: int = 120) -> str:
    """Text on one line, with its middle, from word to word, left out if it is longer than `most`."""
    text = " ".join(text.split())
    if len(text) <= most:
        return text
    begin, end = text[: most * 2 // 3], text[-most // 4 :]
    return f"{begin.rpartition(' ')[0] or begin} … {end.partition(' ')[2] or end}"


def one_line(error: BaseException, most: int = 300) -> str:
    """The message of an error on one printable line, cut after `most` characters; its type if it has none."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"  # without the number
    return printable(" ".join(text.split()), most) or type(error).__name__
