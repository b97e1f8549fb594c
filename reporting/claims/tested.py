"""Comparisons that a claim rests on, decided by tests; their verdict and summary."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reporting.claims.cells import joined
from reporting.statistics.comparing import Difference, Sample, difference
from tiebench.metrics import resolve
from tiebench.paired import LEVEL, holm

REPRODUCED, NOT_REPRODUCED, NOT_DECIDABLE = "reproduced", "not reproduced", "not decidable"
FOR, AGAINST, OPEN = "for", "against", "open"
NOT_TESTED = ("low", "high", "p", "p_adjusted")


@dataclass(frozen=True)
class Comparison:
    """words: for people; left, right: scores, None where there are none; reason: which runs are missing.

    column: (protocol, metric, bits) of the left side; its metric decides what is better. same_runs: the same
    codes, scored in two ways.
    """

    words: str
    column: tuple
    left: Sample | None
    right: Sample | None
    reason: str = ""
    same_runs: bool = False


def decide(comparisons: Sequence[Comparison], absent: Sequence[str] = ()) -> tuple[list[dict], str, str]:
    """Figures, verdict and summary of comparisons, all tested; absent: titles of methods without a cell."""
    found = {
        index: difference(one.left, one.right, one.same_runs)
        for index, one in enumerate(comparisons)
        if one.left is not None and one.right is not None
    }
    adjusted = dict(zip(found, holm([one.p for one in found.values()]).tolist(), strict=True))
    figures, better = [], 0
    for index, one in enumerate(comparisons):
        figure: dict[str, Any] = {"words": one.words, "left": None, "right": None, "difference": None}
        for side in ("left", "right"):
            scores = getattr(one, side)
            if scores is not None and scores.means:
                figure[side] = statistics.mean(scores.means.values())
        figure |= dict.fromkeys(NOT_TESTED)
        if index not in found:
            figures.append(figure | {"outcome": OPEN, "reason": one.reason})
            continue
        result, p = found[index], adjusted[index]
        numbers = {"difference": result.mean, "low": result.low, "high": result.high, "p": result.p}
        numbers["p_adjusted"] = p
        figure |= {key: None if math.isnan(value) else value for key, value in numbers.items()}
        favourable = (result.mean > 0) == resolve(one.column[1])[0].higher_is_better and result.mean != 0
        better += favourable
        outcome = OPEN
        if p < LEVEL:
            outcome = FOR if favourable else AGAINST
        reason = "; ".join(filter(None, (_reason(result, outcome), one.reason)))
        figures.append(figure | {"outcome": outcome, "reason": reason})
    missing = len(comparisons) - len(found)
    notes = [f"without {joined(absent)}, not in the table"] if absent else []
    partial = sum(bool(comparisons[index].reason) for index in found)
    if partial:
        notes.append(f"{partial} without some of the seeds")
    one_seed = bool(found) and all(math.isnan(one.p_seeds) for one in found.values())
    no_queries = bool(found) and all(one.per_query is None for one in found.values())
    if one_seed and no_queries:
        notes.append("one seed and no scores per query: nothing to test with")
    elif one_seed:
        notes.append("one seed: tested over queries alone")
    elif no_queries:
        notes.append("no scores per query: tested over seeds alone")
    return figures, verdict_of(figures), _summary(figures, missing, better, notes)


def _reason(found: Difference, outcome: str) -> str:
    """Why an outcome is open, and what it rests on where that is not both tests."""
    if math.isnan(found.mean):
        return "no seed that both sides have"
    if math.isnan(found.p):
        return "nothing to test with: no two seeds on each side, no scores per query"
    words = []
    if outcome == OPEN and found.p < LEVEL:
        words.append("significant alone, but not among this many comparisons")
    elif outcome == OPEN and found.p_queries < LEVEL:
        words.append("different over these queries, but too few seeds to tell")
    elif outcome == OPEN:
        words.append("neither queries nor seeds decide")
    if math.isnan(found.p_seeds):
        words.append("one seed: over queries alone")
    elif found.per_query is None:
        words.append("no scores per query: over seeds alone")
    return "; ".join(words)


def verdict_of(figures: Sequence[Mapping]) -> str:
    outcomes = {figure["outcome"] for figure in figures}
    if AGAINST in outcomes:
        return NOT_REPRODUCED
    return REPRODUCED if outcomes == {FOR} else NOT_DECIDABLE


def _summary(figures: Sequence[Mapping], missing: int, better: int, notes: Sequence[str]) -> str:
    count = {outcome: sum(f["outcome"] == outcome for f in figures) for outcome in (FOR, AGAINST, OPEN)}
    lacking = f" ({missing} because of missing runs)" if missing else ""
    if len(figures) == 1:
        words = {FOR: "for the claim", AGAINST: "against it", OPEN: f"open{lacking}"}
        text = f"The one comparison is {words[figures[0]['outcome']]}"
    else:
        text = (
            f"{len(figures)} comparisons: {count[FOR]} for the claim, {count[AGAINST]} against it, "
            f"{count[OPEN]} open{lacking}"
        )
    text += f"; the side that should be better is so in {better}" if count[OPEN] > missing else ""
    return "; ".join([text, *notes]) + "."
