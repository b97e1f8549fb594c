"""Comparisons that a claim rests on, decided by tests; their verdict and summary."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tiebench.messages import joined
from tiebench.metrics import resolve
from tiebench.paired import HIGHER, LEVEL, TOO_FEW, Difference, Scores, contrast, holm
from tiebench.paired import OPEN as CANNOT_TELL

REPRODUCED, NOT_REPRODUCED, UNDECIDED = "reproduced", "not reproduced", "undecided"
FOR, AGAINST, OPEN = "for", "against", "open"
OUTCOMES = (FOR, AGAINST, OPEN, TOO_FEW)
NOT_TESTED = ("low", "high", "p", "p_adjusted")
# Of how many seeds of either side codes collapsed, in words.
LOST = ("left_lost", "right_lost")
# A weighted sum of the means of cells, None for a cell without scores.
Side = Sequence[tuple[float, Scores | None]]


@dataclass(frozen=True)
class Comparison:
    """words: for people; left, right: what is compared; reason: which runs are missing.

    metric: it decides what is better. paired: left minus right run by run, where both are scores of the same
    codes. lost: of either side, cells in words with how many of their runs have collapsed codes, of those
    that have some.
    """

    words: str
    metric: str
    left: Side
    right: Side
    reason: str = ""
    paired: Side | None = None
    lost: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})

    def lost_words(self) -> dict[str, str]:
        """LOST of a figure: a side of one cell is not named again."""
        sides = zip(LOST, self.lost, (self.left, self.right), strict=True)
        return {
            key: "; ".join(words if len(side) == 1 else f"{name}: {words}" for name, words in of.items())
            for key, of, side in sides
        }

    def difference(self) -> Difference | None:
        """Left minus right, None where a cell has no scores."""
        terms = self.paired or [*self.left, *((-weight, scores) for weight, scores in self.right)]
        known = [(weight, scores) for weight, scores in terms if scores is not None]
        return contrast(known) if len(known) == len(terms) else None


def decide(comparisons: Sequence[Comparison], absent: Sequence[str] = ()) -> tuple[list[dict], str, str]:
    """Figures, verdict and summary of comparisons, all tested; absent: titles of methods without a cell."""
    every = [one.difference() for one in comparisons]
    adjusted = holm([math.nan if found is None else found.p for found in every]).tolist()
    figures, better = [], 0
    for one, found, p in zip(comparisons, every, adjusted, strict=True):
        figure: dict[str, Any] = {"words": one.words, "left": _mean(one.left), "right": _mean(one.right)}
        figure |= one.lost_words() | dict.fromkeys(("difference", *NOT_TESTED))
        if found is None:
            figures.append(figure | {"outcome": OPEN, "reason": one.reason or "no seed that both sides have"})
            continue
        numbers = {"difference": found.mean, "low": found.low, "high": found.high, "p": found.p}
        numbers["p_adjusted"] = p
        figure |= {key: None if math.isnan(value) else value for key, value in numbers.items()}
        higher = resolve(one.metric)[0].higher_is_better
        better += (found.mean > 0) == higher and found.mean != 0
        verdict = found.verdict(p)
        outcome = {TOO_FEW: TOO_FEW, CANNOT_TELL: OPEN}.get(verdict)
        outcome = outcome or (FOR if (verdict == HIGHER) == higher else AGAINST)
        reason = "; ".join(filter(None, (_reason(found, outcome), one.reason)))
        figures.append(figure | {"outcome": outcome, "reason": reason})
    tested = [found for found in every if found is not None]
    missing = len(every) - len(tested)
    notes = [f"not judged: {joined(absent)}"] if absent else []
    partial = sum(bool(one.reason) for one, found in zip(comparisons, every) if found is not None)
    if partial:
        notes.append(f"{partial} without some of the seeds")
    lost = {name: words for one in comparisons for side in one.lost for name, words in side.items()}
    notes += [f"{name}: {words}" for name, words in lost.items()]
    if tested and all(found.per_query is None for found in tested):
        over = joined(dict.fromkeys(found.over or "runs" for found in tested))
        notes.append(f"no scores per query: tested over {over} alone")
    return figures, verdict_of(figures), _summary(figures, missing, better, notes)


def _mean(side: Side) -> float | None:
    known = [weight * scores.mean for weight, scores in side if scores is not None]
    return math.fsum(known) if len(known) == len(side) else None


def _reason(found: Difference, outcome: str) -> str:
    """Why an outcome is open, and what it rests on where that is not queries and runs."""
    if outcome == TOO_FEW:
        return ""
    if math.isnan(found.p):
        return "nothing to test with: no scores per query, and runs that agree"
    words = []
    if outcome == OPEN and found.p < LEVEL:
        words.append("significant alone, but not among this many comparisons")
    elif outcome == OPEN:
        words.append(f"{found.over} do not decide")
    if found.per_query is None:
        words.append(f"no scores per query: over {found.over or 'runs'} alone")
    return "; ".join(words)


def verdict_of(figures: Sequence[Mapping]) -> str:
    outcomes = {figure["outcome"] for figure in figures}
    if AGAINST in outcomes:
        return NOT_REPRODUCED
    if outcomes == {FOR}:
        return REPRODUCED
    return TOO_FEW if outcomes <= {FOR, TOO_FEW} and outcomes else UNDECIDED


def _summary(figures: Sequence[Mapping], missing: int, better: int, notes: Sequence[str]) -> str:
    count = {outcome: sum(f["outcome"] == outcome for f in figures) for outcome in OUTCOMES}
    lacking = f" ({missing} because of missing runs)" if missing else ""
    few = f"with {TOO_FEW}"
    if 1 < len(figures) == count[TOO_FEW]:
        text = f"{len(figures)} comparisons, all {few}"
    elif len(figures) == 1:
        words = {
            FOR: "significant for the claim",
            AGAINST: "significant against it",
            OPEN: "without runs" if missing else "not significant",
            TOO_FEW: few,
        }
        text = f"The one comparison is {words[figures[0]['outcome']]}"
    else:
        text = (
            f"{len(figures)} comparisons: {count[FOR]} significant for the claim, {count[AGAINST]} against "
            f"it, {count[OPEN]} not significant{lacking}"
        )
        text += f", {count[TOO_FEW]} {few}" if count[TOO_FEW] else ""
    if len(figures) > 1 and count[OPEN] + count[TOO_FEW] > missing:
        text += f"; {better} of {len(figures)} differences have the claimed sign"
    return "; ".join([text, *notes]) + "."
