"""Words of a text as arrays: where each begins, exact comparison, hashes, numbers; fast for millions of them.

A word is compared eight bytes at a time, so that a step handles all words at once in NumPy.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiebench import texts

_WORD = 8  # bytes compared at a time
_MASKS = np.array([(1 << 8 * kept) - 1 for kept in range(_WORD + 1)], np.uint64)
_ODD = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9))  # multipliers of splitmix64
_BLOCK = 1 << 20  # bytes of text that are split at a time
_ROWS = 1 << 16  # numbers that are read at a time
_LONGEST_NUMBER = 64


class Tokens(NamedTuple):
    """Words of a text: raw, its bytes, of which the last eight are no word's; start, length: int64 (m,)."""

    raw: bytes
    start: NDArray[np.int64]
    length: NDArray[np.int64]

    def text(self, row: int) -> str:
        """One word."""
        start = int(self.start[row])
        return self.raw[start : start + int(self.length[row])].decode("utf-8", "backslashreplace")

    def take(self, rows: NDArray | slice) -> "Tokens":
        """Some of the words."""
        return Tokens(self.raw, self.start[rows], self.length[rows])

    def words(self) -> NDArray[np.uint64]:
        """The eight bytes from each place of the text on: a view, (len(raw) - 7,)."""
        return np.ndarray((len(self.raw) - _WORD + 1,), "<u8", self.raw, strides=(1,))


class WrongColumns(ValueError):
    """A line has another number of columns: `offset` of its line in the text, `found` columns.

    expected: how many the line before it has, None if it is the first one.
    """

    def __init__(self, offset: int, found: int, expected: int | None = None) -> None:
        super().__init__(f"{found} columns")
        self.offset, self.found, self.expected = offset, found, expected


def padded(text: bytes) -> bytes:
    """The text with a line feed and the eight bytes that `Tokens` needs behind it."""
    return text + (b"\n" + bytes(_WORD))


def from_words(words: list[bytes]) -> Tokens:
    """`Tokens` of a list of words."""
    length = np.fromiter(map(len, words), np.int64, len(words))
    return Tokens(padded(b"".join(words)), np.cumsum(length) - length, length)


def columns(raw: bytes, begin: int, count: int, kept: tuple[int, ...], by_tabs: bool) -> list[Tokens]:
    """Columns of a text whose lines have `count` columns each; blank lines are skipped.

    raw: a text that `padded` returned, read from `begin` on; kept: the columns to return. by_tabs: columns
    stand between tabs in lines that have tabs, as `texts.fields` separates them; else white space separates
    them in every line. Raises WrongColumns at the first line with another number of columns.
    """
    end = len(raw) - _WORD
    characters = np.frombuffer(raw, np.uint8)
    found: list[list[np.ndarray]] = [[np.zeros(0, np.int64)] for _ in range(2 * len(kept))]
    while begin < end:
        stop = end if begin + _BLOCK >= end else raw.rfind(b"\n", begin, begin + _BLOCK) + 1
        if stop <= begin:  # a line longer than a block
            stop = raw.index(b"\n", begin) + 1
        block = characters[begin:stop]
        blank = _blank(block)
        edges = _split(block, _between_columns(block, blank) if by_tabs else blank, count, begin)
        for place, column in enumerate(kept):
            start, last = edges[2 * column :: 2 * count], edges[2 * column + 1 :: 2 * count]
            found[2 * place].append(start + begin)
            found[2 * place + 1].append(last - start)
        begin = stop
    arrays = [np.concatenate(parts) for parts in found]
    return [Tokens(raw, *arrays[2 * place : 2 * place + 2]) for place in range(len(kept))]


def _blank(characters):
    """Which characters are white space, as isspace of C has it: bool (m,)."""
    return (characters == ord(" ")) | ((characters >= ord("\t")) & (characters <= ord("\r")))


def _between_columns(characters, blank):
    """The white space between columns where tabs decide, bool (m,): not that inside of columns.

    A run of white space separates if a tab is in it, or at the ends of a line, or if its line has no tab.
    """
    tabs, feeds = characters == ord("\t"), characters == ord("\n")
    edges = np.flatnonzero(np.diff(blank, prepend=False, append=False))
    begins, lengths = edges[::2], edges[1::2] - edges[::2]
    separates = np.logical_or.reduceat(tabs | feeds, begins)
    ends = np.flatnonzero(feeds)
    has_tabs = np.zeros(len(ends), bool)
    has_tabs[np.searchsorted(ends, np.flatnonzero(tabs))] = True
    separates |= ~has_tabs[np.searchsorted(ends, begins)] | (begins == 0)
    result = blank.copy()
    result[blank] = np.repeat(separates, lengths)
    return result


def _split(characters, blank, count, offset):
    """Where words begin and end by turns, int64 (2 count lines,), in whole lines of a text at `offset`.

    blank: bool (m,), which of the characters separate words.
    """
    # Blanks are all around: the last character is a line feed.
    inside = np.concatenate([[True], blank])
    edges = np.flatnonzero(inside[1:] != inside[:-1])
    feeds = np.flatnonzero(characters == ord("\n"))
    regular = len(edges) == 2 * count * len(feeds)
    if regular:
        first, last = edges[:: 2 * count], edges[2 * count - 1 :: 2 * count]
        regular = np.all(last <= feeds) and np.all(first[1:] > feeds[:-1])
    if not regular:
        words = np.diff(np.searchsorted(edges[::2], feeds), prepend=0)
        wrong = np.flatnonzero((words != count) & (words > 0))
        if len(wrong):
            line = int(wrong[0])
            raise WrongColumns(offset + (int(feeds[line - 1]) + 1 if line else 0), int(words[line]), count)
    return edges


def hashes(tokens: Tokens, seed: int) -> NDArray[np.uint64]:
    """A hash per word, uint64 (m,): equal for equal words, and almost always different for different ones."""
    words = tokens.words()
    result = mixed(_masked(words, tokens.start, tokens.length) + np.uint64(seed * int(_ODD[1]) % 2**64))
    for done in range(_WORD, int(tokens.length.max(initial=0)), _WORD):
        longer = np.flatnonzero(tokens.length > done)
        more = _masked(words, tokens.start[longer] + done, tokens.length[longer] - done)
        result[longer] = mixed(result[longer] + more)
    return result


def mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A permutation of the 64-bit integers that spreads neighbours (two rounds of splitmix64)."""
    values = values ^ (values >> np.uint64(30))
    values *= _ODD[1]
    values ^= values >> np.uint64(27)
    values *= _ODD[0]
    values ^= values >> np.uint64(31)
    return values


def equal(one: Tokens, other: Tokens) -> NDArray[np.bool_]:
    """Whether the words at the same places are the same, bool (m,)."""
    same = one.length == other.length
    left, right = one.words(), other.words()
    longest = int(np.minimum(one.length, other.length).max(initial=0))
    for done in range(0, longest, _WORD):
        rows = np.flatnonzero(same & (one.length > done))
        rest = one.length[rows] - done
        same[rows] = _masked(left, one.start[rows] + done, rest) == _masked(
            right, other.start[rows] + done, rest
        )
    return same


def _masked(words, places, length):
    return words[places] & _MASKS[np.minimum(length, _WORD)]


def distinct(tokens: Tokens) -> tuple[list[str], NDArray[np.int64]]:
    """The different words in order of appearance, and the place of each word among them, int64 (m,).

    Made for columns in which equal words follow one another, as the queries of a run do.
    """
    some = len(tokens.start) - 1
    if some < 0:
        return [], np.zeros(0, np.int64)
    ahead, behind = tokens.take(slice(1, None)), tokens.take(slice(None, -1))
    first = np.concatenate([[0], np.flatnonzero(~equal(ahead, behind)) + 1])
    starts, lengths = tokens.start[first].tolist(), tokens.length[first].tolist()
    names: dict[bytes, int] = {}
    index = [
        names.setdefault(tokens.raw[start : start + length], len(names))
        for start, length in zip(starts, lengths)
    ]
    repeats = np.diff(np.append(first, some + 1))
    decoded = [name.decode("utf-8", "backslashreplace") for name in names]
    return decoded, np.repeat(np.array(index, np.int64), repeats)


def numbers(tokens: Tokens, read: Callable[[str], float]) -> NDArray[np.float64]:
    """The words as numbers, float64 (m,), correctly rounded; NaN for what is not one.

    read: reads one word, `texts.number` or `texts.integer`, or raises ValueError.
    """
    if tokens.length.max(initial=0) > _LONGEST_NUMBER:
        return _one_by_one(tokens, read)
    words = tokens.words()
    values = np.empty(len(tokens.start))
    for begin in range(0, len(values), _ROWS):
        rows = slice(begin, begin + _ROWS)
        start, length = tokens.start[rows], tokens.length[rows]
        text = np.zeros((len(start), -(-int(length.max()) // _WORD)), "<u8")
        for place in range(text.shape[1]):
            rest = length - place * _WORD
            longer = np.flatnonzero(rest > 0)
            text[longer, place] = _masked(words, start[longer] + place * _WORD, rest[longer])
        try:
            if not _plain(text.view(np.uint8), read):
                raise ValueError
            values[rows] = text.view(f"S{text.shape[1] * _WORD}")[:, 0].astype(np.float64)
        except ValueError:
            values[rows] = _one_by_one(tokens.take(rows), read)
    return values


def _plain(characters, read):
    """Whether NumPy reads words of these characters as `read` does; what it refuses is read one by one."""
    if read is texts.integer:  # other forms, as 1.0, are compared exactly
        signs = (characters == ord("+")) | (characters == ord("-"))
        return bool(np.all((characters == 0) | signs | (characters - np.uint8(ord("0")) < 10)))
    return not (characters == ord("_")).any()


def _one_by_one(tokens, read):
    known: dict[str, float] = {}
    for row in range(len(tokens.start)):
        text = tokens.text(row)
        if text not in known:
            try:
                known[text] = float(read(text))
            except ValueError:
                known[text] = np.nan
    return np.array([known[tokens.text(row)] for row in range(len(tokens.start))])
