"""Every two methods of a leaderboard compared: the difference, its interval and its p values."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reporting.leaderboard import Board
from reporting.leaderboard.per_query import with_scores
from reporting.statistics.comparing import Difference, Sample, difference, pool, sample
from reporting.tables.model import Table
from reporting.tables.runs import Results
from tiebench.paired import holm

BOTH, QUERIES, SEEDS = "queries and seeds", "queries", "seeds"


@dataclass(frozen=True)
class Pair:
    """Two methods of a column: `found` of `comparing.difference`, the first minus the second.

    p_adjusted: by Holm's procedure over all pairs of methods that compete, NaN for other pairs.
    """

    found: Difference
    p_adjusted: float

    @property
    def over(self) -> str:
        """What the interval and the p value are over, "" where there is neither."""
        queries, seeds = (not math.isnan(p) for p in (self.found.p_queries, self.found.p_seeds))
        return {(True, True): BOTH, (True, False): QUERIES, (False, True): SEEDS}.get((queries, seeds), "")


def pairs(
    board: Board, table: Table, metric: str, bits: int, folder: str | Path
) -> dict[tuple[str, str], Pair]:
    """All pairs of methods with scores of a protocol at a code length, each once, in the board's order.

    table: of `boards.as_table`, for what competes; folder: of the leaderboard, with the scores per query.
    As in `statistics.comparisons`, seed variances of competing methods are pooled among themselves, so the
    differences from the best are those of a table with these runs.
    """
    samples = _samples(board, table, metric, bits, folder)
    ranked = {name for name in samples if table.competes(name, board.protocol)}
    together = pool(samples) | pool({name: of for name, of in samples.items() if name in ranked})
    found = {
        (one, other): difference(together[one], together[other])
        for one, other in itertools.combinations(samples, 2)
    }
    counted = [pair for pair in found if ranked.issuperset(pair)]
    adjusted = dict(zip(counted, holm([found[pair].p for pair in counted]).tolist()))
    return {pair: Pair(of, adjusted.get(pair, math.nan)) for pair, of in found.items()}


def _samples(board: Board, table: Table, metric: str, bits: int, folder: str | Path) -> dict[str, Sample]:
    results = Results.of(table, with_scores(board, folder))
    found = {method: sample(results.cell(board.protocol, method, bits), metric) for method in board.methods}
    return {method: of for method, of in found.items() if of.means}


def against(found: Mapping[tuple[str, str], Pair], reference: str, methods: Sequence[str]) -> dict[str, Pair]:
    """Each other method minus a reference, of the pairs of a column."""
    result = {}
    for method in methods:
        if (method, reference) in found:
            result[method] = found[method, reference]
        elif (reference, method) in found:
            result[method] = reversed_pair(found[reference, method])
    return result


def reversed_pair(pair: Pair) -> Pair:
    """The second method of a pair minus the first."""
    of = pair.found
    scores = None if of.per_query is None else -of.per_query
    return replace(pair, found=replace(of, mean=-of.mean, low=-of.high, high=-of.low, per_query=scores))
