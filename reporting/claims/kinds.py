"""Kinds of claims that tests decide: a method is best, a side is above another, gains shrink with bits."""

import itertools
from collections.abc import Mapping, Sequence

from reporting.claims.cells import ClaimCells, as_list
from reporting.claims.tested import Comparison, Side, decide
from reporting.tables.runs import RunCell, ScoreCell
from reporting.tables.titles import metric_title
from tiebench.messages import joined

# Cells of a side, with their weights.
Terms = Sequence[tuple[float, ScoreCell]]


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
    protocol, metric, bits = column
    words = f"{cells.title(method)} against {cells.title(other)}: {cells.place(*column)}"
    left, right = ([(1.0, (protocol, metric, name, bits))] for name in (method, other))
    return _compared(cells, words, left, right)


def _compared(
    cells: ClaimCells, words: str, left: Terms, right: Terms, paired: Side | None = None
) -> Comparison:
    """A comparison of two sides. paired: left minus right run by run, where they are of the same codes."""
    found = [[(weight, *cells.sample(cell)) for weight, cell in side] for side in (left, right)]
    lost = [{name: of for _, cell in side for name, of in cells.lost(cell).items()} for side in (left, right)]
    return Comparison(
        words,
        metric=left[0][1][1],
        left=[(weight, scores) for weight, scores, _ in found[0]],
        right=[(weight, scores) for weight, scores, _ in found[1]],
        reason="; ".join(dict.fromkeys(why for side in found for *_, why in side if why)),
        paired=paired,
        lost=(lost[0], lost[1]),
    )


def side_above(claim: Mapping, cells: ClaimCells) -> tuple[list[dict], str, str]:
    """One side is above another: claim["left"], claim["right"] replace parts of a cell's name.

    At least one of the two cells must be in the table; the other may be another score of the same runs.
    """
    pairs: dict[tuple[ScoreCell, ScoreCell], None] = {}
    for cell in cells.cells:
        for left, right in itertools.product(_side(cell, claim["left"]), _side(cell, claim["right"])):
            unknown = [name for name in (left, right) if name not in cells.everything]
            same_run = _run(left) == _run(right)
            if not unknown or (len(unknown) == 1 and same_run and cells.results.scores(*unknown[0])):
                pairs[left, right] = None
    comparisons = []
    for left, right in pairs:
        parts = list(zip(_parts(cells, left), _parts(cells, right), strict=True))
        one, other = (", ".join(both[side] for both in parts if both[0] != both[1]) for side in (0, 1))
        same = ", ".join(part for part, another in parts if part == another)
        same_run = _run(left) == _run(right)
        paired = [(1.0, cells.sample(left, minus=right[1])[0])] if same_run else None
        words = f"{one} against {other}: {same}"
        comparisons.append(_compared(cells, words, [(1.0, left)], [(1.0, right)], paired))
    return decide(comparisons)


def _side(cell: ScoreCell, side: Mapping) -> list[ScoreCell]:
    """The cells that a side makes of one; a part with several values makes several."""
    parts = (as_list(side.get(key, value)) for key, value in zip(("protocol", "metric", "method"), cell))
    return [(*part, cell[3]) for part in itertools.product(*parts)]


def _run(cell: ScoreCell) -> RunCell:
    protocol, _, method, bits = cell
    return protocol, method, bits


def _parts(cells: ClaimCells, cell: ScoreCell) -> list[str]:
    protocol, metric, method, bits = cell
    return [cells.title(method), cells.place(protocol), metric_title(metric), f"{bits} bits"]


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
        left, right = (
            [
                (sign / len(part), (protocol, metric, name, bits))
                for bits in part
                for sign, name in ((1, method), (-1, other))
            ]
            for part in (short, long)
        )
        gain = f"gain of {cells.title(method)} over {cells.title(other)} at {joined(short)} bits"
        place = cells.place(protocol, metric)
        comparisons += [
            _compared(cells, f"{gain} against none: {place}", left, []),
            _compared(cells, f"{gain} against {joined(long)} bits: {place}", left, right),
        ]
    return decide(comparisons, absent)
