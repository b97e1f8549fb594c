"""The elements of the large arrays of a JSON file, one at a time: memory does not grow with the file."""

import codecs
import json
from collections.abc import Callable, Collection, Iterator

from tiebench.messages import one_line

CHUNK = 1 << 20  # bytes
# An object that is longer is refused: a small archive can claim anything.
LARGEST_VALUE = 1 << 25  # characters
WHITESPACE = " \t\r\n"
IN_NUMBERS = "0123456789.eE+-"


def array_elements(
    read: Callable[[int], bytes], where: str, keys: Collection[str]
) -> Iterator[tuple[str, dict]]:
    """(key, element) for each element of the arrays at the top-level `keys`, in the order of the file.

    read:  returns up to a number of bytes, none at the end
    where: opens messages
    Other values of the file are parsed and dropped. Raises ValueError, of one line, where the file is not one
    JSON object, and where the value of a key is not an array of objects.
    """
    text = _Text(read, where)
    text.expect("{")
    if text.following() == "}":
        text.expect("}")
    else:
        ended = False
        while not ended:
            key = text.value()
            if not isinstance(key, str):
                raise text.error("a key must be a string")
            text.expect(":")
            if key in keys:
                for element in text.array(key):
                    yield key, element
            else:
                text.value()
            ended = text.expect(",}") == "}"
    if text.following():
        raise text.error("the file goes on after its end")


class _Text:
    """The characters of a file that are not consumed yet, read as they are needed."""

    def __init__(self, read: Callable[[int], bytes], where: str) -> None:
        self.read, self.where = read, where
        self.decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self.parse = json.JSONDecoder().raw_decode
        self.characters, self.at, self.before = "", 0, 0
        self.ended = False

    def error(self, reason: str) -> ValueError:
        return ValueError(
            f"{self.where}: not the JSON that it should be, at character {self.before + self.at}: {reason}"
        )

    def more(self) -> None:
        """Read a chunk, and drop what is consumed."""
        data = self.read(CHUNK)
        self.ended = not data
        try:
            decoded = self.decode(data, self.ended)
        except UnicodeDecodeError as error:
            raise self.error(f"not text ({error.reason})") from error
        self.before += self.at
        self.characters, self.at = self.characters[self.at :] + decoded, 0

    def following(self) -> str:
        """The next character that is not white space, or nothing at the end; it is not consumed."""
        while True:
            while self.at < len(self.characters):
                if self.characters[self.at] not in WHITESPACE:
                    return self.characters[self.at]
                self.at += 1
            if self.ended:
                return ""
            self.more()

    def expect(self, characters: str) -> str:
        """Consume one of these characters and return it."""
        found = self.following()
        if not found or found not in characters:
            wanted = " or ".join(repr(character) for character in characters)
            raise self.error(f"{wanted} expected, not {found!r}" if found else "the file ends in the middle")
        self.at += 1
        return found

    def value(self) -> object:
        """Consume one JSON value and return it."""
        self.following()
        while True:
            try:
                value, end = self.parse(self.characters, self.at)
            except (ValueError, RecursionError) as error:
                if self.ended:
                    raise self.error(one_line(error)) from error
            else:
                # A number at the end of what is read may go on: of "1.5", "1." parses as 1.
                if self.ended or (end < len(self.characters) and self.characters[end] not in IN_NUMBERS):
                    self.at = end
                    return value
            if len(self.characters) - self.at > LARGEST_VALUE:
                raise self.error(f"no value ends within {LARGEST_VALUE} characters")
            self.more()

    def array(self, key: str) -> Iterator[dict]:
        """Consume an array of objects, and yield each."""
        if self.following() != "[":
            raise self.error(f"{key!r} must be an array")
        self.expect("[")
        if self.following() == "]":
            self.expect("]")
            return
        while True:
            element = self.value()
            if not isinstance(element, dict):
                raise self.error(f"the elements of {key!r} must be objects")
            yield element
            if self.expect(",]") == "]":
                return
