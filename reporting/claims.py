"""Claims of a paper, tried on a table: config/claims/<name>.yaml to verdicts (workflow/schemas/claims.yaml).

A claim is turned into comparisons, each left against right, for if left is above right. A test decides each
of them, but for ranges of ties, which are exact: there the ranges do.
"""

import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from reporting.frames import by_cell, groups, score_of
from reporting.names import metric_name
from reporting.statistics import (
    LEVEL,
    Difference,
    Sample,
    column_name,
    differences,
    holm,
    intervals,
    sample,
)
from reporting.titles import method_title, protocol_title

REPRODUCED, NOT_REPRODUCED, NOT_DECIDABLE = "reproduced", "not reproduced", "not decidable"
FOR, AGAINST, OPEN = "for", "against", "open"
NOT_TESTED = ("low", "high", "p", "p_adjusted")


@dataclass(frozen=True)
class Comparison:
    """words: for people; left, right: scores, None where there are none; reason: which runs are missing.

    column: (protocol, metric, bits) that names the resamples of its interval, the same as of that column of
    `statistics.comparisons`; same_runs: the same codes, scored in two ways.
    """

    words: str
    column: tuple
    left: Sample | None
    right: Sample | None
    reason: str = ""
    same_runs: bool = False


class Asked:
    """The cells of a table that a claim may look at, with the scores of their runs."""

    def __init__(self, table: Mapping, records: Sequence[Mapping], claim: Mapping):
        self.table = table
        self.seeds = table["seeds"]
        self.runs = by_cell(table, records)
        self.everything: dict[tuple, None] = {}
        for group in groups(table):
            for bits, method in itertools.product(group.bits, group.methods):
                self.everything[group.protocol, group.metric, bits, method] = None
        where = claim.get("where") or {}
        self.cells = [
            cell
            for cell in self.everything
            if all(
                value in _list(where.get(key, value))
                for key, value in zip(("protocol", "metric", "bits", "methods"), cell, strict=True)
            )
        ]
        stated = [cell for cell in self.cells if cell[0] in claim["stated_for"]]
        self.elsewhere = not stated
        self.cells = stated or self.cells

    def columns(self) -> dict[tuple[str, str, int], list[str]]:
        """(protocol, metric, bits) -> methods, in the order of the table."""
        columns: dict[tuple[str, str, int], list[str]] = {}
        for protocol, metric, bits, method in self.cells:
            columns.setdefault((protocol, metric, bits), []).append(method)
        return columns

    def sample(self, protocol: str, metric: str, bits: int, method: str) -> tuple[Sample | None, str]:
        """The scores of a cell, None where no seed has one, and why seeds have none, "" where all have."""
        runs = self.runs.get((protocol, method, bits), {})
        scores = sample(runs, metric)
        lacking = [seed for seed in self.seeds if seed not in scores.means]
        told = "; ".join(dict.fromkeys(score_of(runs.get(seed), metric)[2] for seed in lacking))
        some = f"seed{'s' * (len(lacking) > 1)} {_and(lacking)}: " if lacking and scores.means else ""
        why = f"{self.title(method)}, {bits} bits: {some}{told}" if lacking else ""
        return scores if scores.means else None, why

    def scored(self, protocol: str, metric: str, bits: int, method: str) -> bool:
        """Whether some run of a cell has a score of a metric, asked for or not."""
        return any(
            score_of(record, metric)[0] is not None
            for record in self.runs.get((protocol, method, bits), {}).values()
        )

    def title(self, method: str) -> str:
        return method_title(self.table, method)

    def place(self, protocol: str, metric: str | None = None, bits: int | None = None) -> str:
        """A cell's column in words."""
        words = [protocol_title(self.table, protocol)]
        words += [] if metric is None else [_metric(metric)]
        return ", ".join(words + ([] if bits is None else [f"{bits} bits"]))


def judge(claims_files: Iterable[Mapping], table: Mapping, records: Iterable[Mapping]) -> list[dict]:
    """The verdict of a table on each claim that its cells touch, in the order of the files.

    claims_files: contents of files of claims, those that the table names; records: with "per_query" where
    comparisons are to be tested over queries as well as over seeds.

    A dict per claim: id, claim, source, of (str); verdict; summary (one sentence); elsewhere ("" or, where
    the table asks for none of the protocols of the claim's statement, a phrase that says so: it is then tried
    on the protocols that the table has); figures, a list of dicts, one per comparison: words, left, right
    (scores), difference (left minus right), low, high (its 95% bootstrap interval over queries), p
    (`statistics.differences`), p_adjusted (Holm's over the comparisons of the claim), outcome, reason.
    Numbers that do not exist are None.

    An outcome is "for" or "against" where p_adjusted < 0.05, by the sign of the difference, otherwise "open".
    The verdict is "not reproduced" where a comparison is against the claim, "reproduced" where all are for
    it, and "not decidable" otherwise. Ranges of ties have no p; what decides them each summary says.

    Raises ValueError for a claim of an unknown kind, and as `frames.by_cell` and `frames.score_of` do.
    """
    records = list(records)
    result = []
    for file in claims_files:
        for claim in file["claims"]:
            if claim["kind"] not in KINDS:
                known = ", ".join(KINDS)
                raise ValueError(f"claim {claim['id']}: kind {claim['kind']!r} is not known (known: {known})")
            asked = Asked(table, records, claim)
            figures, verdict, summary = KINDS[claim["kind"]](claim, asked)
            if not figures:
                continue
            elsewhere = ""
            if asked.elsewhere:
                stated = ", ".join(protocol_title(table, protocol) for protocol in claim["stated_for"])
                here = "; ".join(
                    asked.place(*part) for part in dict.fromkeys(cell[:2] for cell in asked.cells)
                )
                elsewhere = f"stated for {stated}, tried here on {here}"
            result.append(
                {
                    "id": claim["id"],
                    "claim": claim["claim"],
                    "source": file["source"],
                    "of": claim["of"],
                    "verdict": verdict,
                    "summary": summary,
                    "elsewhere": elsewhere,
                    "figures": figures,
                }
            )
    return result


def to_frame(judged: Iterable[Mapping]) -> pd.DataFrame:
    """What `judge` returned as a frame, one row per comparison.

    Columns: source, claim (its id), of, verdict, summary, elsewhere, comparison (words), left, right,
    difference, low, high, p, p_adjusted (NaN where there is none), outcome, reason.
    """
    numbers = ("left", "right", "difference", "low", "high", "p", "p_adjusted")
    words = ("source", "claim", "of", "verdict", "summary", "elsewhere", "comparison")
    rows = [
        [judgement["source"], judgement["id"], *(judgement[name] for name in words[2:6]), figure["words"]]
        + [math.nan if figure[name] is None else figure[name] for name in numbers]
        + [figure["outcome"], figure["reason"]]
        for judgement in judged
        for figure in judgement["figures"]
    ]
    return pd.DataFrame(rows, columns=[*words, *numbers, "outcome", "reason"])


def _list(value) -> list:
    return list(value) if isinstance(value, list | tuple) else [value]


def _metric(metric: str) -> str:
    text, subscript = metric_name(metric)
    return f"{text}_{subscript}" if subscript else text


# -- kinds of claims that a test decides ----------------------------------------------------------


def _best(claim: Mapping, asked: Asked) -> tuple[list[dict], str, str]:
    """claim["method"] is above every other method of its columns."""
    pairs = []
    for column, methods in asked.columns().items():
        if claim["method"] in methods:
            pairs += [(column, claim["method"], other) for other in methods if other != claim["method"]]
    return _decide([_two_methods(asked, *pair) for pair in pairs])


def _above(claim: Mapping, asked: Asked) -> tuple[list[dict], str, str]:
    """Each of claim["methods"] is above each of claim["others"] in their columns."""
    pairs, seen = [], set()
    for column, methods in asked.columns().items():
        seen |= set(methods)
        for method, other in itertools.product(claim["methods"], claim["others"]):
            if method in methods and other in methods:
                pairs.append((column, method, other))
    absent = [m for m in (*claim["methods"], *claim["others"]) if m not in seen]
    return _decide([_two_methods(asked, *pair) for pair in pairs], [asked.title(m) for m in absent])


def _two_methods(asked: Asked, column: tuple[str, str, int], method: str, other: str) -> Comparison:
    (left, no_left), (right, no_right) = (asked.sample(*column, name) for name in (method, other))
    words = f"{asked.title(method)} against {asked.title(other)}: {asked.place(*column)}"
    return Comparison(words, column, left, right, "; ".join(filter(None, (no_left, no_right))))


def _side_above(claim: Mapping, asked: Asked) -> tuple[list[dict], str, str]:
    """One side is above another: claim["left"], claim["right"] replace parts of a cell's name.

    At least one of the two cells must be asked for; the other may be another score of the same runs.
    """
    pairs: dict[tuple, None] = {}
    for cell in asked.cells:
        for left, right in itertools.product(_side(cell, claim["left"]), _side(cell, claim["right"])):
            known = [name in asked.everything for name in (left, right)]
            if all(known):
                pairs[left, right] = None
            elif any(known) and _run(left) == _run(right):
                protocol, metric, bits, method = right if known[0] else left
                if asked.scored(protocol, metric, bits, method):
                    pairs[left, right] = None
    comparisons = []
    for left, right in pairs:
        (one, no_one), (two, no_two) = (asked.sample(*cell) for cell in (left, right))
        words = " against ".join(_words(asked, cell, other) for cell, other in ((left, right), (right, left)))
        same = [part for part, other in zip(_parts(asked, left), _parts(asked, right)) if part == other]
        comparisons.append(
            Comparison(
                f"{words}: {', '.join(same)}",
                left[:3],
                one,
                two,
                "; ".join(dict.fromkeys(filter(None, (no_one, no_two)))),
                same_runs=_run(left) == _run(right),
            )
        )
    return _decide(comparisons)


def _side(cell: tuple, side: Mapping) -> list[tuple]:
    """The cells that a side makes of one; a part with several values makes several."""
    protocol, metric, bits, method = cell
    return [
        (p, m, bits, who)
        for p, m, who in itertools.product(
            _list(side.get("protocol", protocol)),
            _list(side.get("metric", metric)),
            _list(side.get("method", method)),
        )
    ]


def _run(cell: tuple) -> tuple:
    protocol, _, bits, method = cell
    return protocol, bits, method


def _parts(asked: Asked, cell: tuple) -> list[str]:
    protocol, metric, bits, method = cell
    return [asked.title(method), asked.place(protocol), _metric(metric), f"{bits} bits"]


def _words(asked: Asked, cell: tuple, other: tuple) -> str:
    """What of a cell's name differs from the other's."""
    return ", ".join(
        part
        for part, another in zip(_parts(asked, cell), _parts(asked, other), strict=True)
        if part != another
    )


def _larger_gain_at_short_codes(claim: Mapping, asked: Asked) -> tuple[list[dict], str, str]:
    """The gain of claim["methods"] over claim["others"] is larger for codes of up to claim["up_to"] bits.

    Left is the mean gain over these code lengths, right that over the longer ones, over the seeds that all
    of the runs have.
    """
    bits_of: dict[tuple, list[int]] = {}
    seen = set()
    for (protocol, metric, bits), methods in asked.columns().items():
        seen |= set(methods)
        for method, other in itertools.product(claim["methods"], claim["others"]):
            if method in methods and other in methods:
                bits_of.setdefault((protocol, metric, method, other), []).append(bits)
    comparisons = []
    for (protocol, metric, method, other), lengths in bits_of.items():
        short = sorted(bits for bits in lengths if bits <= claim["up_to"])
        long = sorted(bits for bits in lengths if bits > claim["up_to"])
        if not (short and long):
            continue
        told = {
            (bits, name): asked.sample(protocol, metric, bits, name)
            for bits in short + long
            for name in (method, other)
        }
        reason = "; ".join(dict.fromkeys(why for _, why in told.values() if why))
        column = (protocol, metric, short[0])
        words = (
            f"gain of {asked.title(method)} over {asked.title(other)} at {_and(short)} bits against "
            f"{_and(long)} bits: {asked.place(protocol, metric)}"
        )
        if any(scores is None for scores, _ in told.values()):
            comparisons.append(Comparison(words, column, None, None, reason))
            continue
        left, right = (
            _mean_gain([told[bits, method][0] for bits in part], [told[bits, other][0] for bits in part])
            for part in (short, long)
        )
        comparisons.append(Comparison(words, column, left, right, reason))
    absent = [m for m in (*claim["methods"], *claim["others"]) if m not in seen]
    return _decide(comparisons, [asked.title(m) for m in absent])


def _mean_gain(of: Sequence[Sample], over: Sequence[Sample]) -> Sample:
    """The mean of of[i] - over[i], per seed that all of them have, as scores."""
    everyone = [*of, *over]
    seeds = [seed for seed in of[0].means if all(seed in scores.means for scores in everyone)]
    means = {
        seed: statistics.mean(a.means[seed] for a in of) - statistics.mean(b.means[seed] for b in over)
        for seed in seeds
    }
    per_query = {
        seed: sum(a.per_query[seed] - b.per_query[seed] for a, b in zip(of, over, strict=True)) / len(of)
        for seed in seeds
        if len({len(scores.per_query.get(seed, ())) for scores in everyone} - {0}) == 1
        and all(seed in scores.per_query for scores in everyone)
    }
    return Sample(means, per_query)


def _decide(comparisons: Sequence[Comparison], absent: Sequence[str] = ()) -> tuple[list[dict], str, str]:
    """Figures, verdict and summary of comparisons, all tested; absent: titles of methods without a cell."""
    tested = [
        index for index, one in enumerate(comparisons) if one.left is not None and one.right is not None
    ]
    found: dict[int, Difference] = {}
    for same_runs in (False, True):
        at = [index for index in tested if comparisons[index].same_runs == same_runs]
        pairs = [(comparisons[index].left, comparisons[index].right) for index in at]
        found |= dict(zip(at, differences(pairs, same_runs), strict=True))
    bounds = _bounds(comparisons, found)
    adjusted = dict(zip(tested, holm([found[index].p for index in tested]).tolist(), strict=True))
    figures = []
    for index, one in enumerate(comparisons):
        figure = {"words": one.words, "left": None, "right": None, "difference": None}
        for side in ("left", "right"):
            scores = getattr(one, side)
            if scores is not None and scores.means:
                figure[side] = statistics.mean(scores.means.values())
        figure |= dict.fromkeys(NOT_TESTED)
        if index not in found:
            figures.append(figure | {"outcome": OPEN, "reason": one.reason})
            continue
        difference, p = found[index], adjusted[index]
        low, high = bounds.get(index, (math.nan, math.nan))
        numbers = {
            "difference": difference.mean,
            "low": low,
            "high": high,
            "p": difference.p,
            "p_adjusted": p,
        }
        figure |= {key: None if math.isnan(value) else value for key, value in numbers.items()}
        outcome = OPEN
        if p < LEVEL:
            outcome = FOR if difference.mean > 0 else AGAINST
        reason = "; ".join(filter(None, (_reason(difference, outcome), one.reason)))
        figures.append(figure | {"outcome": outcome, "reason": reason})
    missing = len(comparisons) - len(tested)
    notes = [f"without {_and(absent)}, which the table does not ask for"] if absent else []
    partial = sum(bool(comparisons[index].reason) for index in tested)
    if partial:
        notes.append(f"{partial} without some of the seeds")
    one_seed = bool(tested) and all(math.isnan(found[index].p_seeds) for index in tested)
    no_queries = bool(tested) and all(found[index].per_query is None for index in tested)
    if one_seed and no_queries:
        notes.append("one seed and no scores per query: nothing to test with")
    elif one_seed:
        notes.append("one seed: tested over queries alone")
    elif no_queries:
        notes.append("no scores per query: tested over seeds alone")
    return figures, _verdict(figures), _summary(figures, missing, notes)


def _bounds(
    comparisons: Sequence[Comparison], found: Mapping[int, Difference]
) -> dict[int, tuple[float, float]]:
    """Intervals of the differences that have scores per query; those of one column are made together."""
    together: dict[tuple, list[int]] = {}
    for index, one in found.items():
        if one.per_query is not None:
            together.setdefault((comparisons[index].column, len(one.per_query)), []).append(index)
    result = {}
    for (column, _), at in together.items():
        rows = np.array([found[index].per_query for index in at])
        low, high = intervals(rows, column_name(*column))
        result |= dict(zip(at, zip(low.tolist(), high.tolist(), strict=True), strict=True))
    return result


def _reason(difference: Difference, outcome: str) -> str:
    """Why an outcome is open, and what it rests on where that is not both tests."""
    if math.isnan(difference.mean):
        return "no seed that both sides have"
    if math.isnan(difference.p):
        return "nothing to test with: no two seeds on each side, no scores per query"
    words = []
    if outcome == OPEN and difference.p < LEVEL:
        words.append("it would be decided alone, but not among this many comparisons")
    elif outcome == OPEN and difference.p_queries < LEVEL <= difference.p_seeds:
        words.append("the spread of seeds explains the difference, though the sampling of queries does not")
    elif outcome == OPEN:
        words.append("the two cannot be told apart")
    if math.isnan(difference.p_seeds):
        words.append("one seed: over queries alone")
    elif difference.per_query is None:
        words.append("no scores per query: over seeds alone")
    return "; ".join(words)


def _verdict(figures: Sequence[Mapping]) -> str:
    outcomes = {figure["outcome"] for figure in figures}
    if AGAINST in outcomes:
        return NOT_REPRODUCED
    return REPRODUCED if outcomes == {FOR} else NOT_DECIDABLE


def _summary(figures: Sequence[Mapping], missing: int, notes: Sequence[str]) -> str:
    count = {outcome: sum(f["outcome"] == outcome for f in figures) for outcome in (FOR, AGAINST, OPEN)}
    lacking = f" ({missing} for want of runs)" if missing else ""
    if len(figures) == 1:
        words = {FOR: "for the claim", AGAINST: "against it", OPEN: f"open{lacking}"}
        text = f"The one comparison is {words[figures[0]['outcome']]}"
    else:
        text = (
            f"{len(figures)} comparisons: {count[FOR]} for the claim, {count[AGAINST]} against it, "
            f"{count[OPEN]} open{lacking}"
        )
    above = sum(figure["difference"] is not None and figure["difference"] > 0 for figure in figures)
    text += f"; the side that should be above is so in {above}" if count[OPEN] > missing else ""
    return "; ".join([text, *notes]) + "."


def _and(words: Iterable) -> str:
    *others, last = map(str, words)
    return f"{', '.join(others)} and {last}" if others else last


# -- ranges of ties: exact, so nothing is tested --------------------------------------------------


def _range(asked: Asked, protocol: str, metric: str, bits: int, method: str) -> tuple | None:
    """Means over seeds of (worst order, best order, their mean), or None where no seed has all three."""
    triples = []
    for record in asked.runs.get((protocol, method, bits), {}).values():
        scores = [score_of(record, name)[0] for name in (f"{metric}_min", f"{metric}_max", metric)]
        if None not in scores:
            triples.append(scores)
    return tuple(map(statistics.mean, zip(*triples, strict=True))) if triples else None


def _ranges_overlap(claim: Mapping, asked: Asked) -> tuple[list[dict], str, str]:
    """At the smallest code length of a protocol the ranges of more than half of the pairs of methods overlap.

    Left is the best order of the method of the lower mean, right the worst order of the other one: they
    overlap where left is not below right. "Not reproduced" where half of the pairs or more do not overlap.
    """
    shortest: dict[tuple, int] = {}
    for protocol, metric, bits in asked.columns():
        shortest[protocol, metric] = min(bits, shortest.get((protocol, metric), bits))
    figures = []
    for (protocol, metric, bits), methods in asked.columns().items():
        if bits != shortest[protocol, metric]:
            continue
        for one, two in itertools.combinations(methods, 2):
            ranges = {method: _range(asked, protocol, metric, bits, method) for method in (one, two)}
            words = f"{asked.title(one)} and {asked.title(two)}: {asked.place(protocol, metric, bits)}"
            if None in ranges.values():
                cells = [(protocol, bits, method) for method in (one, two)]
                figures.append(_hole(words, asked, metric, cells))
                continue
            lower, upper = sorted((one, two), key=lambda method: ranges[method][2])
            left, right = ranges[lower][1], ranges[upper][0]
            reason = "the ranges overlap" if left >= right else "the ranges do not overlap"
            outcome = FOR if left >= right else AGAINST
            figures.append(_exact(words, left, right, outcome, reason))
    if not figures:
        return [], NOT_DECIDABLE, ""
    overlap, apart, unknown = (sum(f["outcome"] == o for f in figures) for o in (FOR, AGAINST, OPEN))
    verdict = NOT_DECIDABLE
    if overlap > apart + unknown:
        verdict = REPRODUCED
    elif apart >= overlap + unknown:
        verdict = NOT_REPRODUCED
    lengths = _and(f"{bits} bits" for bits in dict.fromkeys(shortest.values()))
    summary = f"At {lengths} the ranges of {overlap} of {len(figures)} pairs of methods overlap"
    summary += f", and {unknown} are without runs" if unknown else ""
    return figures, verdict, summary + "; decided by the ranges themselves: reproduced if more than half do."


def _ranges_shrink(claim: Mapping, asked: Asked) -> tuple[list[dict], str, str]:
    """The range of each method is narrower at each code length than at the next smaller one.

    Left is the width at the smaller, right at the larger length.
    """
    lengths: dict[tuple, list[int]] = {}
    for (protocol, metric, bits), methods in asked.columns().items():
        for method in methods:
            lengths.setdefault((protocol, metric, method), []).append(bits)
    figures = []
    for (protocol, metric, method), bits in lengths.items():
        for few, many in itertools.pairwise(sorted(bits)):
            ranges = {b: _range(asked, protocol, metric, b, method) for b in (few, many)}
            words = f"{asked.title(method)}, {few} to {many} bits: {asked.place(protocol, metric)}"
            if None in ranges.values():
                cells = [(protocol, b, method) for b in (few, many)]
                figures.append(_hole(words, asked, metric, cells))
                continue
            left, right = (high - low for low, high, _ in ranges.values())
            outcome = FOR if left > right else AGAINST
            figures.append(_exact(words, left, right, outcome, "width of the range"))
    narrower, unknown = (sum(f["outcome"] == o for f in figures) for o in (FOR, OPEN))
    summary = f"The range narrows in {narrower} of {len(figures)} steps to the next code length"
    summary += f", and {unknown} are without runs" if unknown else ""
    return figures, _verdict(figures), summary + "; decided by the ranges themselves: reproduced if all do."


def _exact(words: str, left: float, right: float, outcome: str, reason: str) -> dict:
    """A figure that no test decides."""
    numbers = {"left": left, "right": right, "difference": left - right}
    return {"words": words} | numbers | dict.fromkeys(NOT_TESTED) | {"outcome": outcome, "reason": reason}


def _hole(words: str, asked: Asked, metric: str, cells: Sequence[tuple]) -> dict:
    """A figure of which some cell, a (protocol, bits, method), has no range."""
    for protocol, bits, method in cells:
        reason = f"{asked.title(method)}, {bits} bits: no seed has all three scores"
        if _range(asked, protocol, metric, bits, method) is None:
            names = (metric, f"{metric}_min", f"{metric}_max")
            told = (asked.sample(protocol, name, bits, method)[1] for name in names)
            reason = next(filter(None, told), reason)
            break
    numbers = dict.fromkeys(("left", "right", "difference", *NOT_TESTED))
    return {"words": words} | numbers | {"outcome": OPEN, "reason": reason}


KINDS: dict[str, Callable[[Mapping, Asked], tuple[list[dict], str, str]]] = {
    "best": _best,
    "above": _above,
    "side_above": _side_above,
    "larger_gain_at_short_codes": _larger_gain_at_short_codes,
    "tie_ranges_overlap": _ranges_overlap,
    "tie_ranges_shrink": _ranges_shrink,
}
