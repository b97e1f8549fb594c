"""Claims of a paper, tried on a table: config/claims/<name>.yaml to verdicts (workflow/schemas/claims.yaml).

A claim is turned into comparisons, each left against right, for if left is better than right. A test decides
each of them, but for ranges of ties, which are exact: there the ranges do.
"""

import math
from collections.abc import Callable, Iterable, Mapping

import pandas as pd

from reporting import frames
from reporting.claims import kinds, tie_ranges
from reporting.claims.cells import ClaimCells, as_list
from reporting.claims.tested import LOST
from reporting.tables.model import Table
from reporting.tables.runs import Results
from tiebench.messages import did_you_mean
from tiebench.metrics import resolve

NUMBERS = ("left", "right", "difference", "low", "high", "p", "p_adjusted")
WORDS = ("source", "claim", "of", "verdict", "summary", "elsewhere", "comparison")
ENDS = (*LOST, "outcome", "reason")
KINDS: dict[str, Callable[[Mapping, ClaimCells], tuple[list[dict], str, str]]] = {
    "best": kinds.best,
    "above": kinds.above,
    "side_above": kinds.side_above,
    "larger_gain_at_short_codes": kinds.larger_gain_at_short_codes,
    "tie_ranges_overlap": tie_ranges.overlap,
    "tie_ranges_shrink": tie_ranges.shrink,
}


def judge(claims_files: Iterable[Mapping], table: Table, results: Results) -> list[dict]:
    """The verdict of a table on each claim that its cells touch, in the order of the files.

    claims_files: contents of files of claims; results: of runs with "per_query" where comparisons are to be
    tested over queries as well as over runs.

    A dict per claim: id, claim, source, of (str); verdict; summary (one sentence); elsewhere ("" or, where
    the table asks for none of the protocols of the claim's statement, a phrase that says so: it is then tried
    on the protocols that the table has); figures, a list of dicts, one per comparison: words, left, right
    (scores), left_lost, right_lost (how many of their runs have collapsed codes, in words, or ""), difference
    (left minus right), low, high (its 95% interval) and p over queries and runs
    (`paired.contrast`), p_adjusted (Holm's over the comparisons of the claim), outcome, reason. Numbers that
    do not exist are None.

    An outcome is "for" or "against" where p_adjusted < 0.05, by the sign of the difference and the direction
    of the metric, "too few runs" where a method that varies has fewer than five, otherwise "open". The
    verdict is "not reproduced" where a comparison is against the claim, "reproduced" where all are for it,
    "too few runs" where only runs are lacking, and "undecided" otherwise. Ranges of ties have no p; each
    summary says what decides them.

    Raises ValueError for a claim of an unknown kind or on an unknown metric, and as `Run.outcome` does.
    """
    result = []
    for file in claims_files:
        for claim in file["claims"]:
            _check(claim)
            cells = ClaimCells(table, results, claim)
            figures, verdict, summary = KINDS[claim["kind"]](claim, cells)
            if not figures:
                continue
            elsewhere = ""
            if cells.elsewhere:
                stated = ", ".join(table.protocol_title(protocol) for protocol in claim["stated_for"])
                here = "; ".join(
                    cells.place(*part) for part in dict.fromkeys(cell[:2] for cell in cells.cells)
                )
                elsewhere = f"stated for {stated}, tried here on {here}"
            said = {key: claim[key] for key in ("id", "claim", "of")} | {"source": file["source"]}
            found = {"verdict": verdict, "summary": summary, "elsewhere": elsewhere, "figures": figures}
            result.append(said | found)
    return result


def _check(claim: Mapping) -> None:
    """Raises ValueError for a kind or a metric that does not exist: a claim is never dropped in silence."""
    if claim["kind"] not in KINDS:
        near = did_you_mean(claim["kind"], KINDS)
        raise ValueError(f"claim {claim['id']}: there is no kind {claim['kind']!r}{near}")
    parts = {"metric": claim} | {part: claim.get(part) or {} for part in ("where", "left", "right")}
    for part, of in parts.items():
        for metric in as_list(of.get("metric") or []):
            try:
                resolve(metric)
            except ValueError as error:
                raise ValueError(f"claim {claim['id']}, {part}: {error}") from error


def to_frame(judged: Iterable[Mapping]) -> pd.DataFrame:
    """What `judge` returned as a frame, one row per comparison.

    Columns: source, claim (its id), of, verdict, summary, elsewhere, comparison (words), left, right,
    difference, low, high, p, p_adjusted (NaN if there is none), left_lost, right_lost, outcome, reason.
    """
    rows = [
        [judgement["source"], judgement["id"], *(judgement[name] for name in WORDS[2:6]), figure["words"]]
        + [math.nan if figure[name] is None else figure[name] for name in NUMBERS]
        + [figure[name] for name in ENDS]
        for judgement in judged
        for figure in judgement["figures"]
    ]
    return pd.DataFrame(rows, columns=[*WORDS, *NUMBERS, *ENDS])


def from_csv(text: str, claims_files: Iterable[Mapping]) -> list[dict]:
    """What `judge` returned, from the text of `frames.to_csv(to_frame(…))` and the files of claims.

    Raises ValueError for columns of another version, and for claims that the files do not have.
    """
    frame = frames.from_csv(text, dict.fromkeys((*WORDS, *NUMBERS, *ENDS), "str"))
    claims = {(file["source"], claim["id"]): claim for file in claims_files for claim in file["claims"]}
    result: dict[tuple, dict] = {}
    for row in frame.to_dict(orient="records"):
        key = (row["source"], row["claim"])
        if key not in claims:
            raise ValueError(f"no file of claims has {row['claim']!r} of {row['source']!r}")
        names = ("source", "of", "verdict", "summary", "elsewhere")
        plain = {"id": row["claim"], "claim": claims[key]["claim"]} | {name: row[name] for name in names}
        judgement = result.setdefault(key, plain | {"figures": []})
        numbers = {name: float(row[name]) if row[name] else None for name in NUMBERS}
        words = {"words": row["comparison"]} | {name: row[name] for name in ENDS}
        judgement["figures"].append(words | numbers)
    return list(result.values())
