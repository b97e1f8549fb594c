"""A run and its judgements to blocks of tied documents: matched by name, sorted by score, then reduced."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiebench.messages import printable
from tiebench.rankings import exact, ties
from tiebench.runs import tokens
from tiebench.runs.entries import LARGEST_RELEVANCE, Entries

GAINS = {"linear": exact.linear_gain, "exponential": exact.exponential_gain}
_CELLS = 1 << 20  # of the padded arrays of a batch


class Matched(NamedTuple):
    """What a run retrieved, with its relevance, and what is judged.

    queries: names of the judged queries; source: of the run, for messages; query int64 (m,), score float64
    (m,), relevance int64 (m,): the run's lines of judged queries, places of queries in `queries`, relevance 0
    without judgement; judged_query, judged_relevance int64 (j,): the judgements; unjudged: queries of the run
    that are not judged; lines: of the whole run.
    """

    queries: list[str]
    source: str
    query: NDArray[np.int64]
    score: NDArray[np.float64]
    relevance: NDArray[np.int64]
    judged_query: NDArray[np.int64]
    judged_relevance: NDArray[np.int64]
    unjudged: int
    lines: int


class Groups(NamedTuple):
    """Documents of one query, one tie and one relevance, flat, (g,) each; in order of query, rank and grade.

    query; relevance > 0; size, its documents; items, those of its tie; before, those of all better ties;
    above, those of its tie with a higher relevance.
    """

    query: NDArray[np.int64]
    relevance: NDArray[np.int64]
    size: NDArray[np.int64]
    items: NDArray[np.int64]
    before: NDArray[np.int64]
    above: NDArray[np.int64]


class Reduced(NamedTuple):
    """A run as far as metrics depend on it; per query (Q,): total_items, total_relevant, retrieved,
    order_matters. ideal: groups of all judged documents, best first, as one tie each."""

    groups: Groups
    ideal: Groups
    relevant_from: int
    total_items: NDArray[np.int64]
    total_relevant: NDArray[np.int64]
    retrieved: NDArray[np.bool_]
    order_matters: NDArray[np.bool_]
    tied_lines: float


class Blocks(NamedTuple):
    """Some queries: their ties with relevant documents, and their groups padded to (q, G) by zeros."""

    ties: ties.Ties
    groups: Groups
    ideal: Groups


class _Collision(Exception):
    """Two different pairs have the same hash."""


def match(run: Entries, judged: Entries) -> Matched:
    """The run with the relevance of each line. Raises ValueError for a pair that is there twice."""
    place = {name: index for index, name in enumerate(judged.queries)}
    renamed = np.array([place.get(name, -1) for name in run.queries], np.int64)
    if not len(renamed) or renamed.max() < 0:
        theirs = f" (its first is {printable(run.queries[0], 60)!r})" if run.queries else ""
        ours = f" (the first is {printable(judged.queries[0], 60)!r})" if judged.queries else ""
        raise ValueError(f"{run.source}: none of its queries{theirs} is judged in {judged.source}{ours}")
    query = renamed[run.query]
    lines = np.flatnonzero(query >= 0)
    if not len(lines):
        raise ValueError(f"{run.source}: no document is retrieved for a judged query")
    for seed in range(10):
        try:
            relevance = _relevance(run, judged, query, lines, seed)
            break
        except _Collision:
            continue
    else:
        raise RuntimeError("ten hashes in a row have collisions")
    return Matched(
        judged.queries,
        run.source,
        query[lines],
        run.values[lines],
        relevance,
        judged.query,
        judged.values.astype(np.int64),
        int((renamed < 0).sum()),
        len(query),
    )


def _relevance(run, judged, query, lines, seed):
    """Relevance of some lines of the run, int64; raises _Collision where the hash of this seed fails."""
    run_keys = _pair_keys(run.documents.take(lines), query[lines], seed)
    order = np.argsort(run_keys)
    ranked = run_keys[order]
    _refuse_duplicates(run, query, lines[order], ranked, "retrieved")
    judged_keys = _pair_keys(judged.documents, judged.query, seed)
    judged_order = np.argsort(judged_keys)
    _refuse_duplicates(judged, judged.query, judged_order, judged_keys[judged_order], "judged")
    places = np.searchsorted(ranked, judged_keys)
    rows = np.flatnonzero(ranked[np.minimum(places, len(ranked) - 1)] == judged_keys)
    rows = rows[places[rows] < len(ranked)]
    found = order[places[rows]]
    same = tokens.equal(run.documents.take(lines[found]), judged.documents.take(rows))
    if not np.all(same & (query[lines[found]] == judged.query[rows])):
        raise _Collision
    relevance = np.zeros(len(lines), np.int64)
    relevance[found] = judged.values[rows].astype(np.int64)
    return relevance


def _pair_keys(documents, query, seed):
    return tokens.mixed(tokens.hashes(documents, seed) + tokens.mixed(query.astype(np.uint64)))


def _refuse_duplicates(entries, query, rows, keys, what):
    """rows: places of lines in order of their keys."""
    twice = np.flatnonzero(keys[1:] == keys[:-1])
    if not len(twice):
        return
    one, other = rows[twice], rows[twice + 1]
    same = tokens.equal(entries.documents.take(one), entries.documents.take(other))
    same &= query[one] == query[other]
    if not same.any():
        raise _Collision
    later = int(np.maximum(one, other)[same].min())
    raise ValueError(
        f"{entries.place(later)}: document {entries.name_of_document(later)!r} is {what} twice for query "
        f"{entries.name_of_query(later)!r}"
    )


def of_matrix(scores: NDArray, relevance: NDArray) -> Matched:
    """A matrix of scores, float64 (Q, N), and of relevance, integers: every query ranks all items.

    Raises ValueError.
    """
    if scores.ndim != 2 or scores.shape != relevance.shape or 0 in scores.shape:
        raise ValueError(
            f"scores {scores.shape} and relevance {relevance.shape} must be matrices (queries, items) of one "
            "shape, not empty"
        )
    if relevance.max() > LARGEST_RELEVANCE:
        raise ValueError(f"relevance must not be larger than 2^31 - 1, as {relevance.max()} is")
    if np.isnan(scores).any():
        query, item = np.argwhere(np.isnan(scores))[0].tolist()
        raise ValueError(f"scores must not be NaN, as the one of query {query} and item {item} is")
    order = np.argsort(-scores, axis=1)
    relevance = relevance.astype(np.int64)
    queries, items = scores.shape
    query = np.repeat(np.arange(queries), items)
    return Matched(
        [str(name) for name in range(queries)],
        "scores",
        query,
        np.take_along_axis(scores, order, axis=1).reshape(-1),
        np.take_along_axis(relevance, order, axis=1).reshape(-1),
        query,
        relevance.reshape(-1),
        0,
        queries * items,
    )


def reduce(matched: Matched, float32: bool, relevant_from: int) -> Reduced:
    """Blocks of equal score, as far as they hold relevant documents.

    float32: scores are rounded first; relevant_from: the relevance from which on a document is relevant.
    """
    queries = len(matched.queries)
    score = matched.score
    if float32:
        with np.errstate(over="ignore"):
            score = score.astype(np.float32)
    query, score, relevance = _sorted(matched.query, score, matched.relevance)
    lines = len(query)
    change = query[1:] != query[:-1]
    first_of_query = np.concatenate([[0], np.flatnonzero(change) + 1])
    first_of_tie = np.concatenate([[0], np.flatnonzero(change | (score[1:] != score[:-1])) + 1])
    sizes = np.diff(np.append(first_of_tie, lines))

    rows = np.flatnonzero(relevance > 0)
    tie = np.searchsorted(first_of_tie, rows, side="right") - 1
    begins = first_of_query[np.searchsorted(first_of_query, rows, side="right") - 1]
    groups = _grouped(query[rows], relevance[rows], tie, sizes[tie], first_of_tie[tie] - begins)

    judged = np.flatnonzero(matched.judged_relevance > 0)
    owner, grade = matched.judged_query[judged], matched.judged_relevance[judged]
    ideal = _grouped(owner, grade, owner, np.zeros_like(owner), np.zeros_like(owner))
    order_matters = np.zeros(queries, bool)
    order_matters[groups.query[groups.size < groups.items]] = True
    total_items = np.bincount(query, minlength=queries)
    return Reduced(
        groups,
        ideal,
        relevant_from,
        total_items,
        np.bincount(owner[grade >= relevant_from], minlength=queries),
        total_items > 0,
        order_matters,
        float(sizes[sizes > 1].sum() / lines),
    )


def _sorted(query, score, relevance):
    """Lines of one query together, best score first; most runs are written so."""
    change = query[1:] != query[:-1]
    segments = query[np.concatenate([[0], np.flatnonzero(change) + 1])]
    if np.all(change | (score[1:] <= score[:-1])) and len(np.unique(segments)) == len(segments):
        return query, score, relevance
    order = np.lexsort((-score, query))
    return query[order], score[order], relevance[order]


def _grouped(query, relevance, tie, items, before):
    """`Groups` of relevant documents, given one by one."""
    order = np.lexsort((-relevance, tie))
    relevance, tie = relevance[order], tie[order]
    new = np.ones(len(order), bool)
    new_tie = new.copy()
    new_tie[1:] = tie[1:] != tie[:-1]
    new[1:] = new_tie[1:] | (relevance[1:] != relevance[:-1])
    first = np.flatnonzero(new)
    starts = np.flatnonzero(new_tie)
    start = starts[np.searchsorted(starts, first, side="right") - 1] if len(first) else first
    source = order[first]
    return Groups(
        query[source],
        relevance[first],
        np.diff(np.append(first, len(order))),
        items[source],
        before[source],
        first - start,
    )


def batches(reduced: Reduced) -> Iterator[tuple[NDArray[np.int64], Blocks]]:
    """Queries with similar numbers of groups together: their rows, and their blocks padded to one width."""
    queries = len(reduced.total_items)
    flat = [_by_query(groups, queries) for groups in (reduced.groups, reduced.ideal)]
    widths = np.maximum(*(np.diff(edges) for _, edges in flat))
    order = np.argsort(-widths, kind="stable")
    begin = 0
    while begin < queries:
        end = begin + max(1, _CELLS // max(1, int(widths[order[begin]])))
        rows = order[begin:end]
        groups, ideal = (_padded(every, edges, rows) for every, edges in flat)
        yield rows, Blocks(_ties(groups, reduced, rows), groups, ideal)
        begin = end


def _by_query(groups, queries):
    """Groups in order of their queries (those of a query in their order), and where each query begins."""
    order = np.argsort(groups.query, kind="stable")
    edges = np.concatenate([[0], np.cumsum(np.bincount(groups.query, minlength=queries))])
    return Groups(*(values[order] for values in groups)), edges


def _padded(groups, edges, rows):
    """The groups of some queries as arrays (q, G), zeros behind the last one of each."""
    length = edges[rows + 1] - edges[rows]
    columns = np.arange(max(1, int(length.max())))
    inside = columns < length[:, None]
    places = np.where(inside, edges[rows][:, None] + columns, 0)
    if not len(groups.query):
        return Groups(*(np.zeros(inside.shape, np.int64) for _ in groups))
    return Groups(*(np.where(inside, values[places], 0) for values in groups))


def _ties(groups, reduced, rows):
    """`ties.Ties` of groups (q, G): the grades of a tie are put together in its first relevant column."""
    relevant = np.where(groups.relevance >= reduced.relevant_from, groups.size, 0)
    # Higher grades come first: a tie with anything relevant has it from its first group on.
    head = (groups.above == 0) & (relevant > 0)
    through = np.cumsum(relevant, axis=1)
    before = through - relevant
    # Relevant documents from a tie's first group to that of the next: what was counted before the next one.
    count = head.shape[1]
    columns = np.where(head, np.arange(count), count)
    following = np.minimum.accumulate(columns[:, ::-1], axis=1)[:, ::-1]
    following = np.concatenate([following[:, 1:], np.full((len(head), 1), count)], axis=1)
    ends = np.concatenate([before, through[:, -1:]], axis=1)
    inside = np.take_along_axis(ends, following, axis=1) - before
    return ties.Ties(
        np.where(head, groups.items, 0),
        np.where(head, inside, 0),
        groups.before,
        before,
        reduced.total_items[rows],
        reduced.total_relevant[rows],
    )


def ndcg(blocks: Blocks, at: int | None, gains: str) -> ties.TieRange:
    """NDCG of the first K or of the whole ranking, with linear or exponential gains; 0 without any gain.

    The ideal ranking is that of all judged documents, cut at K too. Returns TieRange of (q,) arrays.
    """
    groups, ideal = blocks.groups, blocks.ideal
    gain, ideal_gain = (_gain(one.relevance, gains) for one in (groups, ideal))
    tied = ties.divide(gain * groups.size, groups.items)
    last = groups.before + groups.items - groups.above - groups.size
    values = (
        ties.dcg(groups.before, groups.items, tied, at),
        ties.dcg(last, groups.size, gain, at),
        ties.dcg(groups.before + groups.above, groups.size, gain, at),
    )
    best = ties.dcg(ideal.above, ideal.size, ideal_gain, at)
    return ties.TieRange(*(ties.divide(value, best) for value in values))


def _gain(relevance, gains):
    if gains == "exponential" and relevance.max(initial=0) > 1000:
        raise ValueError(f"exponential gains of relevance {relevance.max()} are infinite; use linear gains")
    return GAINS[gains](relevance.astype(np.float64))
