"""Kinds of claims that tests decide: a method is best, a side is above another, gains shrink with bits."""

import itertools
from collections.abc import Mapping

from reporting.claims.cells import ClaimCells, as_list, metric_words
from reporting.claims.tested import Comparison, decide
from tiebench.messages import joined


def best(claim: Mapping, cells: ClaimCells) -> tuple[list[dict], str, str]:
    """claim["method"] is above every other method of its columns."""
    pairs = []
    for column, methods in cells.columns().items():
        if claim["method"] in methods:
            pairs += [(column, claim["method"], other) for other in methods if other != claim["method"]]
    named = as_list((claim.get("where") or {}).get("methods", ()))
    return decide([_two_methods(cells, *pair) for pair in pairs], cells.absent(named))


def above(claim: Mapping, cells: ClaimCells) -> tuple[list[dict], str, str]:
    """Each of claim["methods"] is above each of claim["others"] in their columns."""
    pairs, absent = _pairs(claim, cells)
    return decide([_two_methods(cells, *pair) for pair in pairs], absent)


def _pairs(claim: Mapping, cells: ClaimCells) -> tuple[list[tuple], list[str]]:
    """(column, method, other) of each column with both, and titles of the claim's methods in no column."""
    pairs: list[tuple] = []
    columns, named = cells.columns(), (claim["methods"], claim["others"])
    for column, methods in columns.items():
        pairs += [(column, *pair) for pair in itertools.product(*named) if set(pair) <= set(methods)]
    return pairs, cells.absent(itertools.chain(*named))


def _two_methods(cells: ClaimCells, column: tuple[str, str, int], method: str, other: str) -> Comparison:
    (left, no_left), (right, no_right) = (cells.sample(*column, name) for name in (method, other))
    words = f"{cells.title(method)} against {cells.title(other)}: {cells.place(*column)}"
    reason = "; ".join(filter(None, (no_left, no_right)))
    lost = cells.lost(*column, method), cells.lost(*column, other)
    return Comparison(words, column, [(1.0, left)], [(1.0, right)], reason, lost=lost)


def side_above(claim: Mapping, cells: ClaimCells) -> tuple[list[dict], str, str]:
    """One side is above another: claim["left"], claim["right"] replace parts of a cell's name.

    At least one of the two cells must be in the table; the other may be another score of the same runs.
    """
    pairs: dict[tuple, None] = {}
    for cell in cells.cells:
        for left, right in itertools.product(_side(cell, claim["left"]), _side(cell, claim["right"])):
            known = [name in cells.everything for name in (left, right)]
            if all(known):
                pairs[left, right] = None
            elif any(known) and _run(left) == _run(right):
                protocol, metric, bits, method = right if known[0] else left
                if cells.results.scores(protocol, metric, method, bits):
                    pairs[left, right] = None
    comparisons = []
    for left, right in pairs:
        (one, no_one), (two, no_two) = (cells.sample(*cell) for cell in (left, right))
        words = " against ".join(_words(cells, cell, other) for cell, other in ((left, right), (right, left)))
        same = [part for part, other in zip(_parts(cells, left), _parts(cells, right)) if part == other]
        reason = "; ".join(dict.fromkeys(filter(None, (no_one, no_two))))
        paired = None
        if _run(left) == _run(right):
            protocol, metric, bits, method = left
            paired = [(1.0, cells.sample(protocol, metric, bits, method, minus=right[1])[0])]
        title = f"{words}: {', '.join(same)}"
        lost = cells.lost(*left), cells.lost(*right)
        comparisons.append(Comparison(title, left[:3], [(1.0, one)], [(1.0, two)], reason, paired, lost))
    return decide(comparisons)


def _side(cell: tuple, side: Mapping) -> list[tuple]:
    """The cells that a side makes of one; a part with several values makes several."""
    protocol, metric, bits, method = cell
    return [
        (p, m, bits, who)
        for p, m, who in itertools.product(
            as_list(side.get("protocol", protocol)),
            as_list(side.get("metric", metric)),
            as_list(side.get("method", method)),
        )
    ]


def _run(cell: tuple) -> tuple:
    protocol, _, bits, method = cell
    return protocol, bits, method


def _parts(cells: ClaimCells, cell: tuple) -> list[str]:
    protocol, metric, bits, method = cell
    return [cells.title(method), cells.place(protocol), metric_words(metric), f"{bits} bits"]


def _words(cells: ClaimCells, cell: tuple, other: tuple) -> str:
    """What of a cell's name differs from the other's."""
    return ", ".join(
        part
        for part, another in zip(_parts(cells, cell), _parts(cells, other), strict=True)
        if part != another
    )


def larger_gain_at_short_codes(claim: Mapping, cells: ClaimCells) -> tuple[list[dict], str, str]:
    """claim["methods"] gain over claim["others"], most for codes of up to claim["up_to"] bits.

    Two comparisons of each pair: left is the mean gain over these code lengths, right first no gain, then the
    mean gain over the longer ones. Runs of different methods or code lengths are independent.
    """
    bits_of: dict[tuple, list[int]] = {}
    pairs, absent = _pairs(claim, cells)
    for (protocol, metric, bits), method, other in pairs:
        bits_of.setdefault((protocol, metric, method, other), []).append(bits)
    comparisons = []
    for (protocol, metric, method, other), lengths in bits_of.items():
        short = sorted(bits for bits in lengths if bits <= claim["up_to"])
        long = sorted(bits for bits in lengths if bits > claim["up_to"])
        if not (short and long):
            continue
        found = [
            [
                (sign / len(part), *cells.sample(protocol, metric, bits, name))
                for bits in part
                for sign, name in ((1, method), (-1, other))
            ]
            for part in (short, long)
        ]
        left, right = ([(weight, scores) for weight, scores, _ in side] for side in found)
        none, both = (
            "; ".join(dict.fromkeys(why for side in sides for *_, why in side if why))
            for sides in (found[:1], found)
        )
        gain = f"gain of {cells.title(method)} over {cells.title(other)} at {joined(short)} bits"
        place = cells.place(protocol, metric)
        lost = [
            {
                name: rate
                for bits in part
                for one in (method, other)
                for name, rate in cells.lost(protocol, metric, bits, one).items()
            }
            for part in (short, long)
        ]
        column = protocol, metric, short[0]
        words = [f"{gain} against {other}: {place}" for other in ("none", f"{joined(long)} bits")]
        comparisons += [
            Comparison(words[0], column, left, [], none, lost=(lost[0], {})),
            Comparison(words[1], column, left, right, both, lost=(lost[0], lost[1])),
        ]
    return decide(comparisons, absent)
