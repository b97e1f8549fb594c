"""Prefixes counted together equal codes that were cut before, for every affinity, length and layout."""

import numpy as np
import pytest
from refusals import refused

from tiebench.affinities import AffinityBlocks, EqualLabels, SharedLabels, SparseJudgements
from tiebench.codes.packing import pack
from tiebench.counting.histograms import joint_histograms
from tiebench.prefixes import prefix_histograms, score_prefixes
from tiebench.scoring import score_codes

BITS = 205
PREFIXES = [1, 7, 64, 65, 100, 128, 130, 192, 205]
RNG = np.random.default_rng(0)
QUERY, DATABASE = RNG.random((19, BITS)) < 0.5, RNG.random((700, BITS)) < 0.5
LEVELS = RNG.choice([0, 0, 0, 2, 5], (19, 700))
AFFINITIES = {
    "classes": EqualLabels(RNG.integers(0, 4, 19), RNG.integers(0, 4, 700)),
    "labels": SharedLabels(RNG.random((19, 9)) < 0.3, RNG.random((700, 9)) < 0.3),
    "blocks": AffinityBlocks(lambda begin, end: LEVELS[begin:end], (2, 5)),
    "judgements": SparseJudgements(*np.nonzero(LEVELS), LEVELS[LEVELS > 0], LEVELS.shape),
}


@pytest.mark.parametrize("affinity", AFFINITIES.values(), ids=AFFINITIES.keys())
def test_prefixes_equal_codes_that_were_cut(affinity):
    found = prefix_histograms(pack(QUERY), pack(DATABASE), BITS, affinity, PREFIXES[::-1])
    assert list(found) == PREFIXES[::-1]
    for prefix, histograms in found.items():
        alone = joint_histograms(pack(QUERY[:, :prefix]), pack(DATABASE[:, :prefix]), prefix, affinity)
        assert np.array_equal(histograms.levels, alone.levels)
        assert np.array_equal(histograms.counts, alone.counts)


def test_scores_and_threads():
    affinity = AFFINITIES["blocks"]
    wide = AffinityBlocks(lambda begin, end: np.tile(LEVELS, (9, 1))[begin:end], (2, 5))
    query = np.tile(QUERY, (9, 1))
    one = prefix_histograms(pack(query), pack(DATABASE), BITS, wide, [40, 80])
    two = prefix_histograms(pack(query), pack(DATABASE), BITS, wide, [40, 80], threads=2)
    assert all(np.array_equal(one[prefix].counts, two[prefix].counts) for prefix in (40, 80))
    found = score_prefixes(pack(QUERY), pack(DATABASE), BITS, affinity, [33, 96], at=[10])
    for prefix in (33, 96):
        codes = pack(QUERY[:, :prefix]), pack(DATABASE[:, :prefix])
        assert found[prefix].means == score_codes(*codes, prefix, affinity, at=[10]).means


@pytest.mark.parametrize("prefixes", [[0], [206], [64.5]])
def test_prefixes_out_of_range_are_refused(prefixes):
    with refused(pattern="prefixes must be .*between 1 and 205"):
        prefix_histograms(pack(QUERY), pack(DATABASE), BITS, AFFINITIES["classes"], prefixes)


def test_the_command_scores_prefixes(tmp_path, printed, fails, misused):
    labels = {f"{side}_labels": getattr(AFFINITIES["classes"], side) for side in ("query", "database")}
    file = tmp_path / "codes.npz"
    np.savez(file, query=QUERY, database=DATABASE, **labels)
    found = printed("score", file, "--prefixes", "64,70", "--at", "5")
    assert list(found) == ["64", "70"]
    for prefix in (64, 70):
        codes = pack(QUERY[:, :prefix]), pack(DATABASE[:, :prefix])
        assert found[str(prefix)] == score_codes(*codes, prefix, AFFINITIES["classes"], at=[5]).means
    assert f"{file}: prefixes must be between 1 and 205, the nu" in fails("score", file, "--prefixes", "206")
    for words in (["--prefixes", "64,x"], ["--prefixes", "64", "--per-query", "x.npz"]):
        assert "prefixes" in misused("score", file, *words)
