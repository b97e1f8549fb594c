"""Scores of several prefixes of one code, [:64], [:128], ..., in one call.

Embeddings trained with nested prefixes (Matryoshka), and codes whose bits are ordered by importance, are cut
to the length that a memory allows. Distances of a longer prefix continue those of a shorter one, so long
ones are counted together.
"""

from collections.abc import Sequence

import numpy as np

from tiebench._compiled import NUMBA
from tiebench.affinities import Affinity, SparseJudgements, check_affinity, checked_blocks
from tiebench.codes.packing import as_words, check_bits, check_packed
from tiebench.counting.histograms import (
    BLOCK_PAIRS,
    SLICED_BITS,
    JointHistograms,
    joint_histograms,
    share_queries,
)
from tiebench.scoring import Scores, score_histograms
from tiebench.values import as_array, cutoffs, integer


def cut_codes(codes: np.ndarray, bits: int) -> np.ndarray:
    """The first `bits` bits of packed codes: uint8 (n, ceil(bits / 8)), padding bits zero."""
    bits = check_bits(bits)
    cut = as_array(codes, "codes")[:, : -(-bits // 8)].copy()
    if bits % 8:
        cut[:, -1] &= 0xFF << (8 - bits % 8) & 0xFF
    return cut


def prefix_histograms(
    query: np.ndarray,
    database: np.ndarray,
    bits: int,
    affinity: Affinity,
    prefixes: Sequence[int],
    threads: int = 1,
) -> dict[int, JointHistograms]:
    """`joint_histograms` of the first p bits, for each p of `prefixes`.

    The counts equal those of codes that were cut before. Prefixes of more than 128 bits are counted in one
    pass. Up to 128 bits the bit-sliced kernel of `joint_histograms` is faster than that pass, except with
    affinities given block by block; it counts each on its own. Without Numba, each is counted on its own.

    Parameters
    ----------
    query, database : uint8 (Q, ceil(b/8)) and (N, ceil(b/8))
        Packed codes.
    bits : int
        b.
    affinity : `Affinity`
        As of `joint_histograms`.
    prefixes : sequence of int
        1 to b each.
    threads : int
        As of `joint_histograms`.

    Returns
    -------
    dict
        p -> `JointHistograms`.

    Raises
    ------
    ValueError
        For prefixes out of range, and as `joint_histograms`.
    """
    bits = check_bits(bits)
    query, database = check_packed(query, bits, "query codes"), check_packed(database, bits, "database codes")
    listed = as_array(prefixes, "prefixes").ravel()
    asked = [integer(prefix, "prefixes", 1, bits, "the number of bits") for prefix in listed]
    lengths = sorted(set(asked))
    labels = hasattr(affinity, "query") or isinstance(affinity, SparseJudgements)
    alone = [length for length in lengths if not NUMBA or (labels and length <= SLICED_BITS)]
    found = {
        length: joint_histograms(
            cut_codes(query, length), cut_codes(database, length), length, affinity, threads=threads
        )
        for length in alone
    }
    together = [length for length in lengths if length not in found]
    if together:
        found |= _in_one_pass(query, database, affinity, together, threads)
    return {prefix: found[prefix] for prefix in asked}


def _in_one_pass(query, database, affinity, lengths, threads):
    from tiebench.counting import popcount

    levels = check_affinity(affinity, len(query), len(database))
    query_words, database_words = as_words(query), np.ascontiguousarray(as_words(database).T)
    counts = np.zeros((len(query), len(lengths), len(levels), lengths[-1] + 1), np.int64)
    step = max(popcount.QUERIES, BLOCK_PAIRS // len(database))
    level_of = checked_blocks(affinity, len(database))
    prefixes = np.array(lengths, np.int64)

    def count(low, high):
        for begin in range(low, high, step):
            end = min(begin + step, high)
            popcount.count_prefixes(
                query_words[begin:end], database_words, level_of(begin, end), prefixes, counts[begin:end]
            )

    share_queries(count, len(query), threads)
    return {
        length: JointHistograms(levels, np.ascontiguousarray(counts[:, place, :, : length + 1]))
        for place, length in enumerate(lengths)
    }


def score_prefixes(
    query: np.ndarray,
    database: np.ndarray,
    bits: int,
    affinity: Affinity,
    prefixes: Sequence[int],
    at: int | Sequence[int] = (),
    ap_at_normaliser: str = "hits",
    threads: int = 1,
) -> dict[int, Scores]:
    """`scoring.score_codes` of the first p bits, for each p of `prefixes`.

    The scores equal those of codes that were cut before. Arguments and errors are those of
    `prefix_histograms` and `scoring.score_codes`.

    Returns
    -------
    dict
        p -> `Scores`.

    Examples
    --------
    >>> import numpy as np
    >>> from tiebench.affinities import EqualLabels
    >>> from tiebench.codes.packing import pack
    >>> from tiebench.prefixes import score_prefixes
    >>> codes = pack([[0, 0], [0, 1], [1, 1]])
    >>> scores = score_prefixes(codes[:1], codes[1:], 2, EqualLabels(np.array([5]), np.array([5, 6])), [1, 2])
    >>> {prefix: round(found.means["ap"], 2) for prefix, found in scores.items()}
    {1: 1.0, 2: 1.0}
    """
    at = cutoffs(at)  # before anything is counted
    found = prefix_histograms(query, database, bits, affinity, prefixes, threads)
    return {prefix: score_histograms(one, at, ap_at_normaliser) for prefix, one in found.items()}
