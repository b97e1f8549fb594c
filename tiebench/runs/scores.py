"""Rankings of any program, as runs with scores, to exact metrics under ties of the scores.

`score_run` reads a run and relevance judgements (TREC files, or dictionaries as ranx and pytrec_eval take
them), `score_array` a matrix of scores. Items of equal score are tied: every value is the mean over all
orders inside ties, beside the smallest and largest value of any order.

Only ties with relevant documents matter, and there are no more of them than judgements. So a run is reduced
to the blocks of `tiebench.rankings.ties`, whose functions compute the metrics.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tiebench.messages import did_you_mean
from tiebench.rankings import ties
from tiebench.runs import blocks as run_blocks
from tiebench.runs import entries
from tiebench.runs.blocks import Blocks
from tiebench.values import ids, integer, integers, numbers

UNRETRIEVED = ("zero", "skip")
LISTS = ("query", "document", "score", "judged_query", "judged_document", "relevance")
DEFAULT_MEASURES = ("ap", "ndcg@10", "recall@100")
File = str | PathLike[str]


class RunScores(NamedTuple):
    """What `score_run` returns.

    Parameters
    ----------
    means : dict
        Measure -> float, with `<measure>_min` and `<measure>_max`, and the counts "queries" (that the means
        are over), "queries_without_relevant", "queries_missing" (judged, not in the run), "queries_unjudged"
        (in the run, not judged: ignored), "lines" (of the run), "tied_lines" (share of the judged queries'
        lines that share their score with another of the query) and "queries_where_order_matters" (share of
        the judged queries with a tie of documents of different relevance).
    per_query : dict
        Measure -> float64 (Q,).
    queries : list of str
        The Q names.
    """

    means: dict[str, float]
    per_query: dict[str, np.ndarray]
    queries: list[str]


class _Settings(NamedTuple):
    gains: str
    ap_at_normaliser: str
    relevant_from: int = 1
    missing: str = "zero"
    without_relevant: str = "zero"
    float32: bool = False


def _average_precision(blocks, cutoff, settings):
    return ties.average_precision(blocks.ties, cutoff, settings.ap_at_normaliser if cutoff else "relevant")


def _ndcg(blocks, cutoff, settings):
    return run_blocks.ndcg(blocks, cutoff, settings.gains)


# Name, as in `tiebench.metrics` -> function of blocks, cutoff (None for the whole ranking) and settings.
MEASURES: dict[str, Callable[[Blocks, Any, _Settings], ties.TieRange]] = {
    "ap": _average_precision,
    "ap@K": _average_precision,
    "ndcg": _ndcg,
    "ndcg@K": _ndcg,
    "recall@K": lambda blocks, cutoff, settings: ties.recall(blocks.ties, cutoff),
    "precision@K": lambda blocks, cutoff, settings: ties.precision(blocks.ties, cutoff),
    "success@K": lambda blocks, cutoff, settings: ties.success(blocks.ties, cutoff),
    "r_precision": lambda blocks, cutoff, settings: ties.r_precision(blocks.ties),
    "reciprocal_rank": lambda blocks, cutoff, settings: ties.reciprocal_rank(blocks.ties),
    "reciprocal_rank@K": lambda blocks, cutoff, settings: ties.reciprocal_rank(blocks.ties, cutoff),
}
# What other programs call them, in small letters and without the cutoff.
_ELSEWHERE = {
    "map": "ap",
    "map_cut": "ap@K",
    "map@": "ap@K",
    "ndcg_cut": "ndcg@K",
    "p": "precision@K",
    "p@": "precision@K",
    "recall": "recall@K",
    "r@": "recall@K",
    "success": "success@K",
    "hit_rate": "success@K",
    "hit_rate@": "success@K",
    "rprec": "r_precision",
    "r-precision": "r_precision",
    "mrr": "reciprocal_rank",
    "rr": "reciprocal_rank",
    "recip_rank": "reciprocal_rank",
    "mrr@": "reciprocal_rank@K",
    "rr@": "reciprocal_rank@K",
}


def score_run(
    run: File | Mapping[str, Mapping[str, float]],
    qrels: File | Mapping[str, Mapping[str, int]],
    measures: Sequence[str] = DEFAULT_MEASURES,
    *,
    gains: str = "linear",
    ap_at_normaliser: str = "relevant",
    relevant_from: int = 1,
    missing: str = "zero",
    without_relevant: str = "zero",
    float32: bool = False,
) -> RunScores:
    """Score a run against relevance judgements, exactly under ties of its scores.

    Parameters
    ----------
    run : path or dict
        Of a TREC run (`query Q0 document rank score tag`) or of JSON as ranx writes it, both also gzip, or
        {query: {document: score}}. Higher scores are better; the ranks in a file play no part.
    qrels : path or dict
        Of TREC judgements (`query 0 document relevance`), of BEIR's tsv (`query-id corpus-id score`) or of
        JSON, all with a header or without and also gzip, or {query: {document: relevance}}. Relevance is an
        integer; documents without judgement, and those of relevance 0 or less, are irrelevant. Relevant
        documents that the run lacks count in the denominators. docs/score-rankings.md says how text is read.
    measures : sequence of str
        "ap", "ap@K", "ndcg", "ndcg@K", "recall@K", "precision@K", "success@K", "r_precision",
        "reciprocal_rank", "reciprocal_rank@K", with a number for K.
    gains : str
        Of NDCG, "linear" (the relevance, as trec_eval) or "exponential" (2^relevance - 1).
    ap_at_normaliser : str
        What AP@K divides by: "relevant" (all relevant documents, as trec_eval), "min" (min(K, relevant
        documents)) or "hits" (relevant documents among the first K).
    relevant_from : int
        The smallest relevance that counts as relevant (NDCG weighs all above 0).
    missing : str
        Judged queries that the run lacks score 0 ("zero", `trec_eval -c`) or are left out ("skip").
    without_relevant : str
        Likewise for queries without a relevant document.
    float32 : bool
        Round scores to single precision first, as trec_eval does; this can only make more ties.

    Returns
    -------
    `RunScores`

    Raises
    ------
    ValueError
        One line, for malformed lines, pairs that are there twice, scores that are no numbers, unknown
        measures and options.
    OSError
        For a file that cannot be read.

    Examples
    --------
    >>> from tiebench import score_run
    >>> run = {"q1": {"a": 2.0, "b": 1.0, "c": 1.0}}
    >>> scores = score_run(run, {"q1": {"b": 1}}, ["reciprocal_rank"]).means
    >>> scores["reciprocal_rank_min"], round(scores["reciprocal_rank"], 4), scores["reciprocal_rank_max"]
    (0.3333333333333333, 0.4167, 0.5)
    """
    wanted = _resolved(measures)
    settings = _checked(gains, ap_at_normaliser, relevant_from, missing, without_relevant, float32)
    retrieved, judged = entries.run(run), entries.judgements(qrels)
    return _scored(run_blocks.match(retrieved, judged), wanted, settings)


def score_array(
    scores: ArrayLike,
    relevance: ArrayLike,
    measures: Sequence[str] = DEFAULT_MEASURES,
    *,
    gains: str = "linear",
    ap_at_normaliser: str = "relevant",
    relevant_from: int = 1,
    without_relevant: str = "zero",
    float32: bool = False,
) -> RunScores:
    """`score_run` of a matrix: every query ranks all items. The queries are called "0", "1", ...

    Parameters
    ----------
    scores : numbers (Q, N)
        Higher is better.
    relevance : integers or bool (Q, N)

    Raises
    ------
    ValueError
        One line, for other shapes and for NaN.
    """
    wanted = _resolved(measures)
    settings = _checked(gains, ap_at_normaliser, relevant_from, "zero", without_relevant, float32)
    return _scored(
        run_blocks.of_matrix(numbers(scores, "scores"), integers(relevance, "relevance", booleans=True)),
        wanted,
        settings,
    )


def score_lists(
    lists: Mapping[str, ArrayLike],
    measures: Sequence[str] = DEFAULT_MEASURES,
    *,
    gains: str = "linear",
    ap_at_normaliser: str = "relevant",
    relevant_from: int = 1,
    missing: str = "zero",
    without_relevant: str = "zero",
    float32: bool = False,
) -> RunScores:
    """`score_run` of two sparse lists, as arrays or tensors of ids, integers or strings.

    Parameters
    ----------
    lists : mapping
        "query", "document", "score" (m,) of the run, and "judged_query", "judged_document", "relevance" (j,)
        of the judgements.
    """
    wanted = _resolved(measures)
    settings = _checked(gains, ap_at_normaliser, relevant_from, missing, without_relevant, float32)
    lacking = [name for name in LISTS if name not in lists]
    if lacking:
        raise ValueError(f"arrays: there is no {', '.join(lacking)}")
    read = {name: ids(lists[name], f"arrays: {name}") for name in (*LISTS[:2], *LISTS[3:5])}
    scores = numbers(lists["score"], "arrays: score")
    grades = integers(lists["relevance"], "arrays: relevance", booleans=True)
    retrieved = entries.from_arrays("arrays", read["query"], read["document"], scores)
    judged = entries.from_arrays("arrays", read["judged_query"], read["judged_document"], grades)
    entries.check_scores(retrieved)
    entries.check_relevance(judged)
    return _scored(run_blocks.match(retrieved, judged), wanted, settings)


def _checked(*given):
    """`_Settings` of these values. Raises ValueError for one that is not known."""
    settings = _Settings(*given)
    for name, known in (
        ("gains", run_blocks.GAINS),
        ("ap_at_normaliser", ties.AP_AT_NORMALISERS),
        ("missing", UNRETRIEVED),
        ("without_relevant", UNRETRIEVED),
    ):
        value = getattr(settings, name)
        if not (isinstance(value, str) and value in known):
            raise ValueError(f"{name} must be one of {', '.join(known)}, not {value!r}")
    return settings._replace(relevant_from=integer(settings.relevant_from, "relevant_from", 1))


def _resolved(measures):
    """Name -> (function, cutoff) of each measure that is asked for. Raises ValueError for an unknown one."""
    if isinstance(measures, str) or not measures or not all(isinstance(name, str) for name in measures):
        raise ValueError("measures must be a list of names, as ['ap', 'ndcg@10']")
    return {name: _resolve(name) for name in measures}


def _resolve(name):
    if name in MEASURES and not name.endswith("@K"):
        return MEASURES[name], None
    if (parts := re.fullmatch(r"(.+@)([1-9][0-9]{0,17})", name)) and f"{parts[1]}K" in MEASURES:
        return MEASURES[f"{parts[1]}K"], int(parts[2])
    if f"{name.partition('@')[0]}@K" in MEASURES and "@" in name:
        example = f"{name.partition('@')[0]}@10"
        raise ValueError(f"measure {name!r}: K must be a positive integer, as in {example!r}")
    # Other programs write P_10, ndcg_cut_10, MRR@10.
    number = re.search(r"\d+$", name)
    plain = name.lower().removesuffix(number[0] if number else "").removesuffix("_")
    plain = plain if number or not plain.endswith("@") else plain[:-1]
    if plain in _ELSEWHERE:
        here = _ELSEWHERE[plain].replace("@K", f"@{number[0] if number else 'K'}")
        raise ValueError(f"there is no measure {name!r}; it is called {here!r} here")
    nearest = f"{plain.removesuffix('@')}@K" if number else plain
    raise ValueError(f"there is no measure {name!r}{did_you_mean(nearest, MEASURES)}")


def _scored(matched, wanted, settings):
    ranked = run_blocks.reduce(matched, settings.float32, settings.relevant_from)
    per_query: dict[str, np.ndarray] = {}
    queries = len(matched.queries)
    for rows, blocks in run_blocks.batches(ranked):
        for name, (compute, cutoff) in wanted.items():
            for ending, values in zip(("", "_min", "_max"), compute(blocks, cutoff, settings)):
                per_query.setdefault(name + ending, np.zeros(queries))[rows] = values
    kept = np.ones(queries, bool)
    if settings.missing == "skip":
        kept &= ranked.retrieved
    if settings.without_relevant == "skip":
        kept &= ranked.total_relevant > 0
    if not kept.any():
        raise ValueError(f"{matched.source}: all queries are skipped, by missing or without_relevant")
    per_query = {name: values[kept] for name, values in per_query.items()}
    means: dict[str, float] = {name: float(values.mean()) for name, values in per_query.items()}
    means |= {
        "queries": int(kept.sum()),
        "queries_without_relevant": int((ranked.total_relevant[kept] == 0).sum()),
        "queries_missing": int((~ranked.retrieved).sum()),
        "queries_unjudged": matched.unjudged,
        "lines": matched.lines,
        "tied_lines": ranked.tied_lines,
        "queries_where_order_matters": float(ranked.order_matters[kept].mean()),
    }
    return RunScores(means, per_query, [name for name, keep in zip(matched.queries, kept) if keep])
