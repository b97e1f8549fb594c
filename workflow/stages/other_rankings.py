"""Scores of the same codes in other rankings: asymmetric, estimated, rescored, and in orders that happen."""

from functools import partial

import numpy as np

from tiebench import metrics
from tiebench.affinities import SparseJudgements
from tiebench.search.in_order import score_in_order
from tiebench.search.rescoring import (
    asymmetric_similarity,
    estimated_similarity,
    rescored,
    rescored_by,
)
from workflow.stages.uncoded import scores_by_similarity, unit_rows

_SIMILARITIES_AT_ONCE = 1 << 21  # of a block of queries with the database: bounds the memory
SHUFFLES = 10
_VALUES_KEPT = 1 << 25  # of a database whose rows of unit length are kept: 256 MB


def add_rankings(scores, codes, raw, kept, bits, affinity, protocol, settings):
    """`tiebench.Scores` with the metrics of the rankings that a protocol asks for besides.

    scores: of the ranking by Hamming distance; codes: packed codes of queries and database; raw: real-valued
    queries (Q, bits), or None, without which nothing is asymmetric; kept: (queries (Q, bits), factors (N, 2))
    as `estimated_similarity` takes them, or None, without which nothing is estimated; affinity: of
    `tiebench.counting.histograms`; protocol: a `ProtocolData`; settings: "asymmetric", "estimated",
    "rescore", "orders", "at" and "ap_at_normaliser".
    """
    found: dict[str, np.ndarray] = {}
    spreads: dict[str, float] = {}
    database = codes[1]
    if settings.get("asymmetric") and raw is not None:
        blocks = _in_blocks(raw, len(database), lambda some: asymmetric_similarity(some, database, bits))
        found |= _ranked("asymmetric", blocks, affinity, settings)
    estimates = None
    if settings.get("estimated") and kept is not None:
        queries, factors = kept
        estimates = partial(
            _in_blocks,
            queries,
            len(database),
            lambda some: estimated_similarity(some, database, factors, bits),
        )
        found |= _ranked("estimated", estimates(), affinity, settings)
        spreads["estimated_bytes"] = float(database.shape[1] + factors[0].nbytes)
    if settings.get("rescore"):
        found |= _rescored(codes, estimates, bits, affinity, protocol, settings)
    if settings.get("orders"):
        for name, values in _in_orders(codes, bits, affinity, protocol, settings):
            found[name] = values.mean(axis=0)
            if len(values) > 1:
                spreads[name.replace("shuffled_", "shuffled_sd_")] = float(values.mean(axis=1).std(ddof=1))
    means = {name: float(np.mean(values)) for name, values in found.items()} | spreads
    return scores._replace(means=scores.means | means, per_query=scores.per_query | found)


def _in_blocks(queries, items, similarity_of):
    """(place of the first, similarities (q, items)) of some queries after the others."""
    step = max(1, _SIMILARITIES_AT_ONCE // items)
    for begin in range(0, len(queries), step):
        yield begin, similarity_of(queries[begin : begin + step])


def _rows_after_another(blocks):
    """distance(q) of `rescored_by`, which asks for the queries in their order, from `_in_blocks`."""
    rows = (-row for _, block in blocks for row in block)
    return lambda _: next(rows)


def _ranked(kind, similarities, affinity, settings):
    """Metrics of a ranking by similarities, as `_in_blocks` gives them."""
    blocks = (
        (similarity, affinity.block(begin, begin + len(similarity))) for begin, similarity in similarities
    )
    found = scores_by_similarity(blocks, affinity.levels, settings["at"], settings["ap_at_normaliser"])
    return {metrics.Ranking(kind).prefix + name: values for name, values in found.items()}


def _rescored(codes, estimates, bits, affinity, protocol, settings):
    """estimates: None, or what gives estimated similarities, whose candidates are then rescored too."""
    split, width = protocol.split, protocol.items.shape[1]
    queries = unit_rows(protocol.items[split.query], np.float64)
    judgements = as_judgements(affinity, len(split.query), len(split.database))
    few = len(split.database) * width <= _VALUES_KEPT
    kept = unit_rows(protocol.items[split.database], np.float64) if few else None

    def similarity(query, items):
        rows = unit_rows(protocol.items[split.database[items]], np.float64) if kept is None else kept[items]
        return rows @ queries[query]

    (query_codes, database_codes), at = codes, settings["at"]
    found: dict[str, np.ndarray] = {}
    for candidates in settings["rescore"]:
        made = {
            "rescored": rescored(query_codes, database_codes, bits, judgements, similarity, candidates, at)
        }
        if estimates is not None:
            rows = _rows_after_another(estimates())
            made["estimated_rescored"] = rescored_by(rows, judgements, similarity, candidates, at)
        for kind, values_of in made.items():
            prefix = metrics.Ranking(kind, candidates).prefix
            for name, values in values_of.items():
                found[prefix + name] = values.expected
                found |= {f"{prefix}{name}_min": values.minimum, f"{prefix}{name}_max": values.maximum}
    return found


def _in_orders(codes, bits, affinity, protocol, settings):
    """(name, values (orders, Q)) of each metric and kind of order; by class only where there are labels."""
    (query, database), items = codes, len(protocol.split.database)
    orders = {"file_order": [np.arange(items)]}
    if protocol.labels is not None:
        labels = np.asarray(protocol.labels[protocol.split.database]).reshape(items, -1)
        by_class = np.lexsort(labels.T[::-1])  # a stable sort, of label sets by their first label
        orders |= {"class_order": [by_class], "reversed_class_order": [by_class[::-1]]}
    rng = np.random.default_rng(0)
    orders["shuffled"] = [rng.permutation(items) for _ in range(SHUFFLES)]
    entries = [metrics.METRICS[name] for name in metrics.ORDERED]
    only = {entry.spell(k) for entry in entries for k in (settings["at"] if entry.parameter else [None])}
    how = {"at": settings["at"], "ap_at_normaliser": settings["ap_at_normaliser"], "only": only}
    for kind, some in orders.items():
        scored = [score_in_order(query, database, bits, affinity, order, **how) for order in some]
        for name in scored[0]:
            yield metrics.Ranking(kind).prefix + name, np.stack([one[name] for one in scored])


def as_judgements(affinity, queries, items):
    """Any affinity of `tiebench.counting.histograms` as `SparseJudgements`, read some queries at a time."""
    if isinstance(affinity, SparseJudgements):
        return affinity
    step, parts = max(1, _SIMILARITIES_AT_ONCE // items), []
    for begin in range(0, queries, step):
        block = affinity.block(begin, min(begin + step, queries))
        row, column = np.nonzero(block)
        parts.append((row + begin, column, affinity.levels[block[row, column]]))
    query, document, level = (np.concatenate(part) for part in zip(*parts))
    return SparseJudgements(query, document, level, (queries, items))
