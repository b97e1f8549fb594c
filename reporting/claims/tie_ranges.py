"""Kinds of claims about ranges of ties. The ranges are exact: they decide, and nothing is tested."""

import itertools
from collections.abc import Callable, Mapping

from reporting.claims import tested
from reporting.claims.cells import ClaimCells, as_list
from reporting.tables.runs import ScoreCell
from tiebench.messages import joined

# (worst order, exact mean, best order) of a cell, means over seeds.
Range = tuple[float, float, float]


def overlap(claim: Mapping, cells: ClaimCells) -> tuple[list[dict], str, str]:
    """The ranges of more than half of the pairs of methods overlap, over all code lengths.

    Left is the best order of the method of the lower mean, right the worst order of the other one: they
    overlap where left is not below right.
    """
    figures = []
    for (protocol, metric, bits), methods in cells.columns().items():
        for one, two in itertools.combinations(methods, 2):
            words = f"{cells.title(one)} and {cells.title(two)}: {cells.place(protocol, metric, bits)}"
            pair = [(protocol, metric, method, bits) for method in (one, two)]
            figures.append(_figure(words, cells, pair, _overlapping))
    words = "The ranges of {} pairs of methods overlap"
    return _counted(claim, cells, figures, words, "more than half do", len(figures) // 2 + 1)


def shrink(claim: Mapping, cells: ClaimCells) -> tuple[list[dict], str, str]:
    """The range of each method is narrower at each code length than at the next smaller one.

    Left is the width at the smaller, right at the larger length.
    """
    lengths: dict[tuple, list[int]] = {}
    for (protocol, metric, bits), methods in cells.columns().items():
        for method in methods:
            lengths.setdefault((protocol, metric, method), []).append(bits)
    figures = []
    for (protocol, metric, method), of_method in lengths.items():
        for few, many in itertools.pairwise(sorted(of_method)):
            words = f"{cells.title(method)}, {few} to {many} bits: {cells.place(protocol, metric)}"
            pair = [(protocol, metric, method, bits) for bits in (few, many)]
            figures.append(_figure(words, cells, pair, _narrowing))
    words = "The range narrows in {} steps to the next code length"
    return _counted(claim, cells, figures, words, "all do", len(figures))


def _counted(
    claim: Mapping, cells: ClaimCells, figures: list[dict], summary: str, rule: str, least: int
) -> tuple[list[dict], str, str]:
    """Figures, verdict and summary of a claim that holds where at least so many figures are for it.

    summary: with {} for how many are; rule: what `least` is, in words.
    """
    held, unknown = (sum(f["outcome"] == o for f in figures) for o in (tested.FOR, tested.OPEN))
    verdict = tested.UNDECIDED
    if figures and held >= least:
        verdict = tested.REPRODUCED
    elif held + unknown < least:
        verdict = tested.NOT_REPRODUCED
    share = f"{held} of {len(figures)}" + (f" ({held / len(figures):.0%})" if figures else "")
    words = summary.format(share) + (f"; {unknown} without runs" if unknown else "")
    if absent := cells.absent(as_list((claim.get("where") or {}).get("methods", ()))):
        words += f"; not judged: {joined(absent)}"
    return figures, verdict, f"{words}. The ranges are exact; the claim is reproduced if {rule}."


def _overlapping(one: Range, two: Range) -> tuple[float, float, str, str]:
    (_, _, left), (right, _, _) = sorted((one, two), key=lambda found: found[1])
    overlap = left >= right
    reason = "the ranges overlap" if overlap else "the ranges do not overlap"
    return left, right, tested.FOR if overlap else tested.AGAINST, reason


def _narrowing(one: Range, two: Range) -> tuple[float, float, str, str]:
    left, right = one[2] - one[0], two[2] - two[0]
    return left, right, tested.FOR if left > right else tested.AGAINST, "width of the range"


def _figure(
    words: str,
    cells: ClaimCells,
    pair: list[ScoreCell],
    decide: Callable[[Range, Range], tuple[float, float, str, str]],
) -> dict:
    """A figure that no test decides. decide: ranges of a pair of cells -> left, right, outcome, reason."""
    plain: dict = {"words": words} | dict.fromkeys(("left", "right", "difference", *tested.NOT_TESTED))
    plain |= dict.fromkeys(tested.LOST, "")
    known = []
    for protocol, metric, method, bits in pair:
        found = cells.results.mean_range(protocol, metric, method, bits)
        if found is None:
            names = (metric, f"{metric}_min", f"{metric}_max")
            reasons = (cells.sample((protocol, name, method, bits))[1] for name in names)
            otherwise = f"{cells.title(method)}, {bits} bits: no seed has all three scores"
            return plain | {"outcome": tested.OPEN, "reason": next(filter(None, reasons), otherwise)}
        known.append(found)
    left, right, outcome, reason = decide(*known)
    numbers = {"left": left, "right": right, "difference": left - right}
    return plain | numbers | {"outcome": outcome, "reason": reason}
