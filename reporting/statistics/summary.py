"""Methods over several tables: mean rank, interquartile mean, performance profile, who is above whom.

A *table* here is a block of a `Table`: one protocol under one metric, with a column for each code length.
Every statistic is a mean over tables of a mean over the columns of a table, so tables weigh the same.

**The resamples.** Stratified and nested: tables are drawn with replacement; in each table that was drawn,
drawn again for each time that it is, queries are drawn with replacement, the same for all methods and code
lengths; and for each method and code length its runs, each alone. A run's score in a resample is its mean
over all queries, plus the mean over the drawn queries less that over all of the method's scores of queries,
averaged over runs: what `paired` calls a + b, without the residual e, which leaderboards do not have.
Intervals are percentiles (Efron, 1979). Tables are taken for a sample of those that could have been made:
where they share a dataset, intervals are too narrow; and n runs vary in a resample by (n - 1) / n of their
variance.

**Ranks, IQM and profile** are of the methods that have scores in every column: a rank among others would be
another quantity. **Pairs** are compared in the tables that have both, without resamples: of three tables that
agree every resample agrees, which equal methods do one time in four.
"""

import hashlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau, permutation_test, rankdata

from reporting.tables.model import Table
from reporting.tables.runs import Results
from tiebench.metrics import resolve
from tiebench.paired import generator, resampled_means

Array = NDArray[np.float64]
RESAMPLES, TAIL = 1000, 0.025
# Of a profile: how much of the best score may be missing.
TAUS = np.round(np.linspace(0, 0.5, 51), 2)
# Pairs are compared that share so many tables, since of fewer no test over tables can have p < 0.05; orders
# that share so many methods.
LEAST_TABLES, LEAST_METHODS = 6, 6


@dataclass(frozen=True, eq=False)
class Block:
    """Scores of one table.

    runs: float64 (methods, columns, runs), NaN where there is none; per_query: float64 (methods, columns,
    Q), means over runs, NaN for a method without scores there, or None where some score has none.
    """

    name: str
    title: str
    runs: Array
    per_query: Array | None

    @cached_property
    def means(self) -> Array:
        """Over runs, (methods, columns), NaN for holes."""
        return _means(self.runs)

    def resampled(self, random: np.random.Generator, count: int) -> Array:
        """Scores of runs in resamples of queries and runs, (count, methods, columns, runs)."""
        number = np.count_nonzero(~np.isnan(self.runs), axis=-1)
        drawn = random.random((count, *self.runs.shape)) * np.maximum(number, 1)[..., None]
        values = np.take_along_axis(self.runs[None], drawn.astype(np.intp), axis=-1)
        if self.per_query is not None:
            rows = np.nan_to_num(self.per_query).reshape(-1, self.per_query.shape[-1])
            shift = resampled_means(rows, random, count) - rows.mean(axis=1, keepdims=True)
            values = values + shift.T.reshape(count, *number.shape, 1)
        # As many as there are: the rest stays empty.
        return np.where(np.arange(self.runs.shape[-1]) < number[..., None], values, np.nan)


class Blocks(tuple[Block, ...]):
    """Tables of the same methods; equal where their scores are, so that what is computed of them is kept."""

    methods: tuple[str, ...]

    @cached_property
    def digest(self) -> str:
        found = hashlib.sha256(repr(self.methods).encode())
        for block in self:
            found.update(block.name.encode() + block.runs.tobytes())
            found.update(b"" if block.per_query is None else block.per_query.tobytes())
        return found.hexdigest()

    def __hash__(self) -> int:
        return hash(self.digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Blocks) and self.digest == other.digest

    def only(self, kept: NDArray[np.bool_]) -> "Blocks":
        """The blocks of some of the methods."""
        parts = [
            Block(one.name, one.title, one.runs[kept], None if one.per_query is None else one.per_query[kept])
            for one in self
        ]
        return _blocks(parts, list(itertools.compress(self.methods, kept)))

    @property
    def present(self) -> NDArray[np.bool_]:
        """Whether a method has scores in every column of a table, (methods, tables)."""
        return np.array([~np.isnan(block.means).any(axis=1) for block in self]).T

    def everywhere(self) -> "Blocks":
        """Of the methods that have scores in every column of every table."""
        return self.only(np.all(self.present, axis=1))

    def paired(self) -> "Blocks":
        """Of the methods that have scores in LEAST_TABLES tables."""
        return self.only(self.present.sum(axis=1) >= LEAST_TABLES)

    def measured(self, statistics: Callable[[Block, Array], Sequence[Array]]) -> list[Array]:
        """Each of `statistics(block, scores)`, (1, tables, …)."""
        of_blocks = (statistics(block, block.runs[None]) for block in self)
        return [np.concatenate(values)[None] for values in zip(*of_blocks)]

    def draws(self, statistics: Callable[[Block, Array], Sequence[Array]]) -> list[Array]:
        """The same of the tables of each resample, (RESAMPLES, tables, …)."""
        random = generator("summary")
        found: list[Array] = []
        slots = random.integers(0, len(self), (RESAMPLES, len(self)))
        for place, block in enumerate(self):
            here = slots == place
            values = statistics(block, block.resampled(random, int(np.count_nonzero(here))))
            found = found or [np.empty((*slots.shape, *of.shape[1:])) for of in values]
            for whole, of in zip(found, values):
                whole[here] = of
        return found


def _blocks(blocks: Sequence[Block], methods: Sequence[str]) -> Blocks:
    found = Blocks(blocks)
    found.methods = tuple(methods)
    return found


def blocks_of(table: Table, results: Results) -> Blocks:
    """The blocks of a table that have scores, of methods that compete in all of them.

    Raises ValueError for a metric of which less is better, and where the columns of a block have different
    numbers of queries.
    """
    methods = [name for name in table.rows if all(table.competes(name, g.protocol) for g in table.groups)]
    found = []
    for group in table.groups:
        if not resolve(group.metric)[0].higher_is_better:
            raise ValueError(f"{group.name}: less is better by {group.metric}, which is not summarised")
        cells = [
            [
                [run for run in of.values() if run.score(group.metric) is not None]
                for of in (results.cell(group.protocol, method, bits) for bits in group.bits)
            ]
            for method in methods
        ]
        most = max((len(of) for row in cells for of in row), default=0)
        if not most:
            continue
        runs = np.full((len(methods), len(group.bits), most), np.nan)
        queries: dict[tuple[int, int], Array] = {}
        for place in itertools.product(range(len(methods)), range(len(group.bits))):
            of = cells[place[0]][place[1]]
            runs[place][: len(of)] = [run.score(group.metric) for run in of]
            if of and all(group.metric in run.per_query for run in of):
                queries[place] = np.mean([run.per_query[group.metric] for run in of], axis=0)
        per_query = None
        if len(queries) == np.count_nonzero(~np.isnan(runs[..., 0])):
            if len(sizes := {len(of) for of in queries.values()}) > 1:
                raise ValueError(f"{group.name}: its columns have {' and '.join(map(str, sizes))} queries")
            per_query = np.full((*runs.shape[:2], *sizes), np.nan)
            for place, row in queries.items():
                per_query[place] = row
        found.append(Block(group.name, group.title, runs, per_query))
    return _blocks(found, methods)


@dataclass(frozen=True, eq=False)
class Standing:
    """Methods that have scores everywhere.

    rank, iqm: (3, methods), the value and its interval; by_table: mean rank over the columns of a table,
    (tables, methods); profile: (3, methods, TAUS), the share of columns in which a method lacks at most tau
    of the best score.
    """

    methods: tuple[str, ...]
    rank: Array
    iqm: Array
    by_table: Array
    profile: Array

    @property
    def order(self) -> list[int]:
        """Places of methods, the best mean rank first."""
        return np.argsort(self.rank[0], kind="stable").tolist()


@lru_cache(maxsize=8)
def standing(blocks: Blocks) -> Standing:
    """Ranks, IQM and profiles of the methods that all of the blocks have.

    * Rank: among these methods, 1 the best, equal means share theirs.
    * Interquartile mean: of the scores of all runs, (score - low) / (best - low), with the lowest and the
      highest mean of a method in the column, which resamples keep; tables, columns of a table and runs of a
      column weigh the same; the lowest and the highest quarter of the weight is left out (Agarwal et al.,
      NeurIPS 2021, whose tasks have equally many runs).
    * Profile: Dolan and Moré (2002), of the ratio of the best score to a method's; tau is 1 - 1 / ratio.

    Raises ValueError where fewer than two methods have scores in all columns.
    """
    blocks = blocks.everywhere()
    if len(blocks.methods) < 2:
        raise ValueError("fewer than two methods have scores in every column of every table")
    width = max(block.runs[0].size for block in blocks)

    def statistics(block: Block, scores: Array) -> tuple[Array, Array, Array]:
        means = _means(scores)
        ranks = rankdata(-means, axis=1).mean(axis=2)
        lost = 1 - means / means.max(axis=1, keepdims=True)
        profiles = (lost[..., None] <= TAUS + 1e-12).mean(axis=2)
        low, high = block.means.min(axis=0), block.means.max(axis=0)
        values = (scores - low[:, None]) / np.where(high > low, high - low, np.nan)[:, None]
        weights = ~np.isnan(scores) / np.count_nonzero(~np.isnan(scores), axis=-1, keepdims=True)
        both = np.stack([np.nan_to_num(values), weights / scores.shape[2]], axis=2)
        both = both.reshape(*both.shape[:3], -1)
        return ranks, np.pad(both, [(0, 0)] * 3 + [(0, width - both.shape[-1])]), profiles

    point, draws = blocks.measured(statistics), blocks.draws(statistics)
    found = [
        with_interval(reduce(one)[0], reduce(drawn))
        for reduce, one, drawn in zip((_over_tables, _iqm, _over_tables), point, draws)
    ]
    return Standing(blocks.methods, found[0], found[1], point[0][0], found[2])


def resampled(blocks: Blocks) -> str:
    """What intervals are over, in words: queries, where all tables have scores of each."""
    queries = all(block.per_query is not None for block in blocks)
    return "tables, queries and runs" if queries else "tables and runs"


def _over_tables(values: Array) -> Array:
    return values.mean(axis=1)


def _iqm(values: Array) -> Array:
    """Weighted interquartile means, (R, methods), of (R, tables, methods, (value, weight), runs)."""
    flat = np.moveaxis(values, 1, -2).reshape(values.shape[0], values.shape[2], 2, -1)
    scores, weights = flat[:, :, 0], flat[:, :, 1] / values.shape[1]
    order = np.argsort(scores, axis=-1, kind="stable")
    scores, weights = (np.take_along_axis(one, order, axis=-1) for one in (scores, weights))
    above = np.cumsum(weights, axis=-1)
    inside = np.clip(np.minimum(above, 0.75) - np.maximum(above - weights, 0.25), 0, None)
    return (inside * scores).sum(axis=-1) / 0.5


def _means(runs: Array) -> Array:
    """Means over the last axis of what is not NaN; NaN for nothing."""
    number = np.count_nonzero(~np.isnan(runs), axis=-1)
    return np.where(number > 0, np.nansum(runs, axis=-1), np.nan) / np.maximum(number, 1)


def with_interval(point: Array, draws: Array) -> Array:
    """(3, …): values, and the percentile interval of their draws (R, …)."""
    low, high = np.quantile(draws, [TAIL, 1 - TAIL], axis=0)
    return np.stack([point, low, high])


@dataclass(frozen=True, eq=False)
class Improvement:
    """probability: (methods, methods), that the row is above the column; p: of its test against one half;
    both NaN for a method with itself and where fewer than LEAST_TABLES have both; tables: how many do."""

    methods: tuple[str, ...]
    probability: Array
    p: Array
    tables: NDArray[np.int64]

    @property
    def above(self) -> NDArray[np.bool_]:
        """Whether the row is told apart from the column, and above it."""
        return (self.probability > 0.5) & (self.p <= 0.05)


@lru_cache(maxsize=4)
def improvement(blocks: Blocks) -> Improvement:
    """Probability of improvement: that a run of one method is above a run of another, in a table at random.

    The share of pairs of runs in which it is, ties as halves, mean over columns and over the tables that have
    both (Mann and Whitney's U; Agarwal et al., 2021). The test is over tables: of two methods that are alike,
    each table's share less one half may as well have the other sign. p is exact, two-sided, the share of all
    choices of signs whose mean is as far from zero (Fisher, 1935), and uncorrected for the number of pairs.
    """
    blocks = blocks.paired()
    count = len(blocks.methods)
    shares = np.full((len(blocks), count, count), np.nan)
    for share, block in zip(shares, blocks):
        here = np.flatnonzero(~np.isnan(block.means).any(axis=1))
        for one, other in itertools.combinations(here, 2):
            columns = zip(block.runs[one], block.runs[other])
            of = [np.sign(np.subtract.outer(x[~np.isnan(x)], y[~np.isnan(y)])).mean() for x, y in columns]
            share[one, other], share[other, one] = 0.5 + np.mean(of) / 2, 0.5 - np.mean(of) / 2
    both = np.count_nonzero(~np.isnan(shares), axis=0)
    found = _means(np.moveaxis(shares, 0, -1))
    # A table that lacks one of both is the same under either sign.
    over = np.moveaxis(np.nan_to_num(shares - 0.5), 0, -1)
    draws = {"n_resamples": 9_999, "rng": generator("improvement")}  # all choices of signs of up to 13 tables
    few = (both < LEAST_TABLES) | np.eye(count, dtype=bool)
    p = np.full_like(found, np.nan)
    if not few.all():  # SciPy tests no lone table
        p = permutation_test((over,), np.mean, permutation_type="samples", axis=-1, **draws).pvalue
    found[few] = p[few] = np.nan
    return Improvement(blocks.methods, found, p, both)


def agreement(blocks: Blocks) -> dict[tuple[int, int], tuple[float, float, int]]:
    """(block, block) -> Kendall's tau-b of their orders, its p value, and the number of common methods.

    An order is that of the means over the columns of a block, of methods that have all of them; pairs of
    blocks with fewer than LEAST_METHODS in common, or without any order, are left out.
    """
    found = {}
    for one, other in itertools.combinations(range(len(blocks)), 2):
        both = blocks.present[:, one] & blocks.present[:, other]
        if (number := int(both.sum())) >= LEAST_METHODS:
            tau = kendalltau(*(blocks[place].means[both].mean(axis=1) for place in (one, other)))
            if not np.isnan(tau.statistic):
                found[one, other] = float(tau.statistic), float(tau.pvalue), number
    return found
