"""Sentences whose numbers are the leaderboard's: a marker's text, with a quantity in each pair of braces."""

import math
import re
import textwrap
from collections.abc import Callable, Mapping

from reporting.leaderboard.boards import Boards, as_table, results_of
from reporting.leaderboard.columns import check_keys
from reporting.leaderboard.summary import read
from reporting.leaderboard.tables import WIDTH
from reporting.statistics import summary
from reporting.statistics.samples import sample
from reporting.tables.titles import RANGE
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
    paragraphs = [
        textwrap.fill(part, WIDTH, break_long_words=False, break_on_hyphens=False)
        for part in re.split(r"\n\s*\n", text.strip())
    ]
    return "\n\n".join(paragraphs)


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
    of = metric.removesuffix("_min").removesuffix("_max") if metric.endswith(RANGE) else metric
    boards.check(protocol, of, [length])
    for cell in board.cells:
        if (cell["protocol"], cell["metric"], cell["method"], int(cell["bits"])) == (
            *(protocol, metric, method),
            length,
        ):
            return _number(float(cell["mean"]), decimals)
    raise ValueError(f"{protocol} has no {metric} of {method!r}{did_you_mean(method, board.methods)}")


def _difference(
    boards: Boards, decimals: int, protocol: str, metric: str, bits: str, method: str, other: str
) -> str:
    length, board = _length(bits), boards[protocol]
    boards.check(protocol, metric, [length])
    table = as_table([board], [{"protocol": protocol, "metric": metric, "bits": [length]}])
    results = results_of(table, [board], boards.runs(protocol, ["per_query"]))
    for name in (method, other):
        if name not in table.rows:
            raise ValueError(f"{protocol} has no method {name!r}{did_you_mean(name, table.rows)}")
    one, two = (sample(results.cell(protocol, name, length), metric) for name in (method, other))
    if one is None or two is None or math.isnan((of := difference(one, two)).low):
        raise ValueError(f"{method} and {other} have no interval on {protocol} at {bits} bits")
    mean, low, high = (_number(value, decimals) for value in (of.mean, of.low, of.high))
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


def _number(value: float, decimals: int) -> str:
    return f"{value:.{decimals}f}".replace("-", "−")


# Name -> what computes it, and the words that it takes.
QUANTITIES: dict[str, tuple[Callable[..., str], str]] = {
    "mean": (_mean, "PROTOCOL METRIC BITS METHOD"),
    "difference": (_difference, "PROTOCOL METRIC BITS METHOD OTHER"),
    "rank": (_rank, "SET METHOD"),
}
