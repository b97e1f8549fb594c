"""Compile the kernels of the library once, so that later processes load them."""

import importlib.util

import numpy as np

from tiebench._compiled import NUMBA


def compile_kernels() -> None:
    """Call each compiled function with the argument types that are used; Numba keeps the results.

    Without Numba there is nothing to compile; without PyTorch the kernels of the losses are left out.
    """
    compile_counting()
    compile_losses()


def compile_counting() -> None:
    """`compile_kernels` of those that count, rank and search."""
    if not NUMBA:
        return
    from tiebench.affinities import AffinityBlocks, EqualLabels, SharedLabels, SparseJudgements
    from tiebench.codes.packing import pack
    from tiebench.prefixes import prefix_histograms
    from tiebench.scoring import score_codes
    from tiebench.search.neighbours import nearest
    from tiebench.search.rescoring import rescored

    rng = np.random.default_rng(0)
    codes, long_codes = (pack(rng.integers(0, 2, (20, bits))) for bits in (12, 136))
    classes = rng.integers(0, 3, 20)
    labels = rng.integers(0, 2, (20, 5))
    affinities = rng.integers(0, 2, (20, 20))
    for affinity in (
        EqualLabels(classes, classes),
        SharedLabels(labels, labels),
        AffinityBlocks(lambda begin, end: affinities[begin:end], (1,)),
    ):
        score_codes(codes, codes, 12, affinity, at=(5,), order="file")
    score_codes(long_codes, long_codes, 136, SharedLabels(labels, labels), at=(5,))
    prefix_histograms(long_codes, long_codes, 136, SharedLabels(labels, labels), (130, 136))
    list(nearest(codes, codes, 12, 3))
    rows, columns = np.nonzero(affinities)
    judged = SparseJudgements(rows, columns, affinities[rows, columns], (20, 20))
    rescored(codes, codes, 12, judged, lambda q, items: items, 5, (3,))


def compile_losses() -> None:
    """`compile_kernels` of those of the losses."""
    if not NUMBA or importlib.util.find_spec("torch") is None:
        return
    from tiebench.losses import kernels as relaxed
    from tiebench.rankings.discount_sums import discount_sum_table

    rng = np.random.default_rng(0)
    affinities = rng.integers(0, 2, (20, 20))
    for dtype in (np.float32, np.float64):
        for objective in range(5):
            relaxed.objective_and_slopes(
                rng.random((20, 20)).astype(dtype),
                affinities,
                4,
                1.0,
                objective,
                np.arange(40.0),
                discount_sum_table(40),
                np.empty(20, dtype),
            )
        slopes, upstream, out = (rng.random(shape).astype(dtype) for shape in ((20, 20), 20, (20, 20)))
        relaxed.both_ways(slopes, upstream, 0.5, out)
