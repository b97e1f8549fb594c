"""Every two methods of a leaderboard compared: the difference, its interval and its p values."""

from collections.abc import Sequence

from reporting.leaderboard import Board
from reporting.statistics.samples import Pair, all_pairs, sample
from reporting.tables.model import Table
from reporting.tables.runs import Results, Run


def pairs(
    board: Board, table: Table, metric: str, bits: int, runs: Sequence[Run]
) -> dict[tuple[str, str], Pair]:
    """All pairs of methods with scores of a protocol at a code length, each once, in the board's order.

    table: of `boards.as_table`, for what competes; runs: of `per_query.with_scores`.
    """
    results = Results.of(table, runs)
    every = {name: sample(results.cell(board.protocol, name, bits), metric) for name in board.methods}
    samples = {name: of for name, of in every.items() if of is not None}
    ranked = {name for name in samples if table.competes(name, board.protocol)}
    return all_pairs(samples, ranked)
