"""Numbers of sentences that are the leaderboard's: each stands before a comment that says what it is."""

import math
import re
import statistics
from collections.abc import Callable

from reporting.leaderboard.boards import Boards
from reporting.leaderboard.summary import plan_of
from reporting.printed.marks import interval, number
from reporting.statistics import summary
from reporting.statistics.samples import sample
from tiebench.comparison import base_metric
from tiebench.messages import did_you_mean
from tiebench.paired import difference

# A number or ?, with or without an interval, and the comment: 0.551<!-- mean digits ap 12 talr_ap -->.
PLACE = re.compile(r"(\?|−?\d[\d.]*(?:\s\(−?[\d.]+\s+to\s+−?[\d.]+\))?)<!--([^<>]*)-->")


def render(words: str, now: str, boards: Boards) -> str:
    """The number that the words of a comment ask for, see generated-parts.md.

    now: what stands there; its decimals are kept, and are 3 for ?.

    Raises ValueError, one line with the nearest name, for words that ask for nothing.
    """
    name, *arguments = words.split() or [""]
    if name not in QUANTITIES:
        raise ValueError(f"{words.strip()!r}: no quantity {name!r}{did_you_mean(name, QUANTITIES)}")
    of, form = QUANTITIES[name]
    if len(arguments) != len(form.split()):
        raise ValueError(f"{words.strip()!r}: it is {name} {form}")
    decimals = 3 if now == "?" else len(now.split()[0].partition(".")[2])
    return of(boards, decimals, *arguments)


def _means(boards: Boards, protocol: str, metric: str, bits: str) -> dict[str, float]:
    """Mean of each method."""
    length, board = _length(bits), boards[protocol]
    boards.check(protocol, base_metric(metric), [length])
    asked = protocol, metric, str(length)
    cells = (cell for cell in board.cells if (cell["protocol"], cell["metric"], cell["bits"]) == asked)
    return {cell["method"]: float(cell["mean"]) for cell in cells if cell["mean"]}


def _mean(boards: Boards, decimals: int, protocol: str, metric: str, bits: str, method: str) -> str:
    means = _means(boards, protocol, metric, bits)
    if method not in means:
        raise ValueError(f"{protocol} has no {metric} of {method!r}{did_you_mean(method, means)}")
    return number(means[method], decimals)


def _deviation(boards: Boards, decimals: int, protocols: str, metric: str, bits: str) -> str:
    names = protocols.split(",")
    of_protocols = [_means(boards, protocol, metric, bits) for protocol in names]
    table, _ = boards.model([{"protocol": name, "metric": metric, "bits": [_length(bits)]} for name in names])
    able = [{method for method in table.rows if table.competes(method, name)} for name in names]
    methods = set.intersection(*able, *map(set, of_protocols))
    if len(of_protocols) < 2 or not methods:
        raise ValueError(f"{protocols}: a deviation needs two protocols with a method in common")
    deviations = [statistics.stdev(means[method] for means in of_protocols) for method in sorted(methods)]
    return number(statistics.fmean(value**2 for value in deviations) ** 0.5, decimals)


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
    return interval((of.mean, of.low, of.high), decimals)


def _rank(boards: Boards, decimals: int, name: str, method: str) -> str:
    found = summary.standing(summary.blocks_of(*plan_of(boards).model(name, boards)))
    if method not in found.methods:
        raise ValueError(f"the set {name} has no method {method!r}{did_you_mean(method, found.methods)}")
    return interval(found.rank[:, found.methods.index(method)], decimals)


def _length(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"a number of bits is whole, not {text!r}")
    return int(text)


# Name -> what computes it, and the words that it takes.
QUANTITIES: dict[str, tuple[Callable[..., str], str]] = {
    "mean": (_mean, "PROTOCOL METRIC BITS METHOD"),
    "deviation": (_deviation, "PROTOCOL,PROTOCOL,... METRIC BITS"),
    "difference": (_difference, "PROTOCOL METRIC BITS METHOD OTHER"),
    "rank": (_rank, "SET METHOD"),
}
