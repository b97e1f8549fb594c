"""Scores of features that nothing encoded: the bound that codes made of them are compared with.

The database is ranked by cosine similarity. Items of equal similarity are a tie, as items at one Hamming
distance are, so that the metrics are those of `tiebench.metrics`, by the same code.
"""

import numpy as np

from tiebench import metrics
from tiebench.search.rescoring import ranked_histograms

_SIMILARITIES_AT_ONCE = 1 << 21  # of a block of queries with the database: bounds the memory
_ITEMS_AT_ONCE = 1 << 12  # of the database in double precision


def cosine_scores(features, query, database, affinity, levels, at=(), ap_at_normaliser="hits"):
    """Mean over the queries of every metric that does not ask for Hamming distances: name -> float.

    features: float (n, d); query, database: items, int64 (Q,) and (N,); affinity: affinity(rows, columns) of
    items, int64 (len(rows), len(columns)), with values in `levels`, ascending; at, ap_at_normaliser: as of
    `tiebench.score`. Similarities are rounded to float32 and compared exactly; an item of length 0 is
    similar to none, 0. Raises ValueError for features that are not finite.
    """
    items = unit_rows(features[database])
    levels = np.asarray(levels, np.int64)
    # Metrics of levels hold arrays of all levels of all ties.
    step = max(1, _SIMILARITIES_AT_ONCE // max(1, len(database) * (len(levels) // 2)))

    def blocks():
        for begin in range(0, len(query), step):
            rows = query[begin : begin + step]
            relevance = np.searchsorted(levels, affinity(rows, database))
            yield _similarities(unit_rows(features[rows]), items), relevance

    found = scores_by_similarity(blocks(), levels, at, ap_at_normaliser)
    return {name: float(np.mean(values)) for name, values in found.items()}


def scores_by_similarity(blocks, levels, at, ap_at_normaliser):
    """Every metric that does not ask for Hamming distances, of rankings by similarity: name -> float64 (Q,).

    blocks: (similarity (q, N), affinity (q, N) as places in `levels`) of some queries after the others.
    """
    parts: dict[str, list[np.ndarray]] = {}
    for similarity, relevance in blocks:
        ties = ranked_histograms(similarity, relevance, levels)
        for name, values in metrics.evaluate(ties, at, ap_at_normaliser).items():
            parts.setdefault(name, []).append(values)
    radius = tuple(entry.name[:-1] for entry in metrics.METRICS.values() if entry.parameter == "radius")
    return {name: np.concatenate(part) for name, part in parts.items() if not name.startswith(radius)}


def _similarities(rows, items):
    """Products float32 (q, N) of float32 rows (q, d) and items (N, d).

    Summed in double precision: sums in single precision round as the shapes of the factors and the processor
    would have it, so that copies of an item would tie in one block of queries and not in another.
    """
    rows = rows.astype(np.float64)
    out = np.empty((len(rows), len(items)), np.float32)
    for begin in range(0, len(items), _ITEMS_AT_ONCE):
        some = slice(begin, begin + _ITEMS_AT_ONCE)
        out[:, some] = rows @ items[some].astype(np.float64).T
    return out


def unit_rows(vectors, dtype=np.float32):
    """Rows of unit length; one of length 0 stays 0. Raises ValueError for values that are not finite."""
    rows = np.asarray(vectors, dtype)
    if not np.isfinite(rows).all():
        raise ValueError("the features hold NaN or infinite values")
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms == 0, 1, norms)
