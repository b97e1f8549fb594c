"""Sentences whose numbers are the leaderboard's: a marker's text, with a quantity in each pair of braces."""

import math
import re
from collections.abc import Callable, Mapping

from reporting.leaderboard.boards import Boards
from reporting.leaderboard.settings import check_keys, paragraph
from reporting.leaderboard.summary import read
from reporting.printed.marks import number
from reporting.statistics import summary
from reporting.statistics.samples import sample
from tiebench.messages import did_you_mean
from tiebench.paired import difference

KEYS = {"text": str, "decimals": int}
QUANTITY = re.compile(r"\{([^{}]*)\}")


def render(settings: Mapping, boards: Boards) -> str:
    """The paragraphs of `text`, each pair of braces replaced by what its words ask for, see
    leaderboard/README.md.

    Raises ValueError, one line with the nearest name, for words that ask for nothing.
    """
    check_keys(settings, KEYS, "a text")
    decimals = settings.get("decimals", 3)
    text = QUANTITY.sub(lambda found: _quantity(found[1], boards, decimals), settings["text"])
    return "\n\n".join(map(paragraph, re.split(r"\n\s*\n", text.strip())))


def _quantity(words: str, boards: Boards, decimals: int) -> str:
    name, *arguments = words.split()
    if name not in QUANTITIES:
        raise ValueError(f"{{{words}}}: no quantity {name!r}{did_you_mean(name, QUANTITIES)}")
    of, form = QUANTITIES[name]
    if len(arguments) != len(form.split()):
        raise ValueError(f"{{{words}}}: it is {{{name} {form}}}")
    return of(boards, decimals, *arguments)


def _mean(boards: Boards, decimals: int, protocol: str, metric: str, bits: str, method: str) -> str:
    length, board = _length(bits), boards[protocol]
    boards.check(protocol, metric.removesuffix("_min").removesuffix("_max"), [length])
    asked = protocol, metric, method, str(length)
    for cell in board.cells:
        if tuple(cell[key] for key in ("protocol", "metric", "method", "bits")) == asked:
            return number(float(cell["mean"]), decimals)
    raise ValueError(f"{protocol} has no {metric} of {method!r}{did_you_mean(method, board.methods)}")


def _difference(
    boards: Boards, decimals: int, protocol: str, metric: str, bits: str, method: str, other: str
) -> str:
    length = _length(bits)
    block = {"protocol": protocol, "metric": metric, "bits": [length]}
    table, results = boards.model([block], needs=["per_query"])
    for name in (method, other):
        if name not in table.rows:
            raise ValueError(f"{protocol} has no method {name!r}{did_you_mean(name, table.rows)}")
    one, two = (sample(results.cell(protocol, name, length), metric) for name in (method, other))
    if one is None or two is None or math.isnan((of := difference(one, two)).low):
        raise ValueError(f"{method} and {other} have no interval on {protocol} at {bits} bits")
    mean, low, high = (number(value, decimals) for value in (of.mean, of.low, of.high))
    return f"{mean} ({low} to {high})"


def _rank(boards: Boards, decimals: int, name: str, method: str) -> str:
    found = summary.standing(summary.blocks_of(*read(boards.folder).model(name, boards)))
    if method not in found.methods:
        raise ValueError(f"the set {name} has no method {method!r}{did_you_mean(method, found.methods)}")
    value, low, high = (f"{of:.1f}" for of in found.rank[:, found.methods.index(method)])
    return f"{value} ({low} to {high})"


def _length(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"a number of bits is whole, not {text!r}")
    return int(text)


# Name -> what computes it, and the words that it takes.
QUANTITIES: dict[str, tuple[Callable[..., str], str]] = {
    "mean": (_mean, "PROTOCOL METRIC BITS METHOD"),
    "difference": (_difference, "PROTOCOL METRIC BITS METHOD OTHER"),
    "rank": (_rank, "SET METHOD"),
}
