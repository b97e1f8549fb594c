"""Kinds of claims about ranges of ties. The ranges are exact: they decide, and nothing is tested."""

import itertools
import statistics
from collections.abc import Mapping, Sequence

from reporting.claims.cells import ClaimCells, joined
from reporting.claims.tested import (
    AGAINST,
    FOR,
    LOST,
    NOT_REPRODUCED,
    NOT_TESTED,
    OPEN,
    REPRODUCED,
    UNDECIDED,
)


def _range(
    cells: ClaimCells, protocol: str, metric: str, bits: int, method: str
) -> tuple[float, float, float] | None:
    """Means over seeds of (worst order, best order, their mean), or None where no seed has all three."""
    triples = cells.results.ranges(protocol, metric, method, bits)
    if not triples:
        return None
    low, middle, high = map(statistics.mean, zip(*triples, strict=True))
    return low, high, middle


def overlap(claim: Mapping, cells: ClaimCells) -> tuple[list[dict], str, str]:
    """At the smallest code length of a protocol the ranges of more than half of the pairs of methods overlap.

    Left is the best order of the method of the lower mean, right the worst order of the other one: they
    overlap where left is not below right.
    """
    shortest: dict[tuple, int] = {}
    for protocol, metric, bits in cells.columns():
        shortest[protocol, metric] = min(bits, shortest.get((protocol, metric), bits))
    figures = []
    for (protocol, metric, bits), methods in cells.columns().items():
        if bits != shortest[protocol, metric]:
            continue
        for one, two in itertools.combinations(methods, 2):
            ranges = [_range(cells, protocol, metric, bits, method) for method in (one, two)]
            words = f"{cells.title(one)} and {cells.title(two)}: {cells.place(protocol, metric, bits)}"
            known = sorted((found for found in ranges if found is not None), key=lambda found: found[2])
            if len(known) < 2:
                pair = [(protocol, bits, method) for method in (one, two)]
                figures.append(_hole(words, cells, metric, pair))
                continue
            (_, left, _), (right, _, _) = known
            reason = "the ranges overlap" if left >= right else "the ranges do not overlap"
            outcome = FOR if left >= right else AGAINST
            figures.append(_exact(words, left, right, outcome, reason))
    if not figures:
        return [], UNDECIDED, ""
    lengths = joined(f"{bits} bits" for bits in dict.fromkeys(shortest.values()))
    words = f"At {lengths} the ranges of {{}} pairs of methods overlap"
    return _counted(figures, words, "more than half do", len(figures) // 2 + 1)


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
            ranges = [_range(cells, protocol, metric, bits, method) for bits in (few, many)]
            words = f"{cells.title(method)}, {few} to {many} bits: {cells.place(protocol, metric)}"
            widths = [found[1] - found[0] for found in ranges if found is not None]
            if len(widths) < 2:
                pair = [(protocol, bits, method) for bits in (few, many)]
                figures.append(_hole(words, cells, metric, pair))
                continue
            left, right = widths
            outcome = FOR if left > right else AGAINST
            figures.append(_exact(words, left, right, outcome, "width of the range"))
    return _counted(figures, "The range narrows in {} steps to the next code length", "all do", len(figures))


def _counted(figures: list[dict], summary: str, rule: str, least: int) -> tuple[list[dict], str, str]:
    """Figures, verdict and summary of a claim that holds where at least so many figures are for it.

    summary: with {} for how many are; rule: what `least` is, in words.
    """
    held, unknown = (sum(f["outcome"] == o for f in figures) for o in (FOR, OPEN))
    verdict = UNDECIDED
    if figures and held >= least:
        verdict = REPRODUCED
    elif held + unknown < least:
        verdict = NOT_REPRODUCED
    share = f"{held} of {len(figures)}" + (f" ({held / len(figures):.0%})" if figures else "")
    words = summary.format(share) + (f", and {unknown} are without runs" if unknown else "")
    return figures, verdict, f"{words}. The ranges are exact; the claim is reproduced if {rule}."


def _exact(words: str, left: float, right: float, outcome: str, reason: str) -> dict:
    """A figure that no test decides."""
    numbers = {"left": left, "right": right, "difference": left - right} | dict.fromkeys(LOST, "")
    return {"words": words} | numbers | dict.fromkeys(NOT_TESTED) | {"outcome": outcome, "reason": reason}


def _hole(words: str, cells: ClaimCells, metric: str, pair: Sequence[tuple]) -> dict:
    """A figure of which some cell, a (protocol, bits, method), has no range."""
    for protocol, bits, method in pair:
        reason = f"{cells.title(method)}, {bits} bits: no seed has all three scores"
        if _range(cells, protocol, metric, bits, method) is None:
            names = (metric, f"{metric}_min", f"{metric}_max")
            reasons = (cells.sample(protocol, name, bits, method)[1] for name in names)
            reason = next(filter(None, reasons), reason)
            break
    numbers = dict.fromkeys(("left", "right", "difference", *NOT_TESTED)) | dict.fromkeys(LOST, "")
    return {"words": words} | numbers | {"outcome": OPEN, "reason": reason}
