"""One definition of each metric, wherever it is computed: codes at once, in parts and as prefixes, and runs.

The oracle is the mean over all orders of tied items of the definition in docs/metrics.md, written out.
"""

from itertools import permutations

import numpy as np
import pytest

import tiebench
from tiebench import metrics, prefixes, scoring
from tiebench.affinities import AffinityBlocks
from tiebench.codes.packing import pack
from tiebench.counting.histograms import joint_histograms, merge
from tiebench.rankings import exact, radius, ties
from tiebench.runs import scores as runs

# name -> (query code, database codes, relevance of each item), of one query
CASES = {
    "some ties": ([0, 0, 0], [[0, 0, 1], [0, 1, 0], [0, 1, 1], [1, 1, 1]], [1, 0, 1, 1]),
    "no relevant item": ([0, 0, 0], [[0, 0, 1], [0, 1, 0], [1, 1, 1]], [0, 0, 0]),
    "one item, relevant": ([0, 0], [[0, 1]], [1]),
    "one item, irrelevant": ([0, 0], [[0, 1]], [0]),
    "one bit": ([0], [[0], [1], [1], [0]], [1, 0, 1, 0]),
    "all tied": ([0, 0, 0], [[0, 0, 1], [0, 1, 0], [1, 0, 0]], [0, 1, 1]),
    "several labels": ([0, 0], [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 2, 1, 2]),
}
CUTS = (1, 2, 3, 4, 7, 1000)


def gain(affinity):
    return 2.0**affinity - 1


def of_order(name, k, levels):
    """A metric of one order of items, `levels` their affinities, by its definition."""
    k = k or len(levels)
    first = levels[:k]
    relevant = [level > 0 for level in levels]
    hits = [place for place, one in enumerate(relevant[:k], 1) if one]
    if name in ("ap", "ap@K"):
        return sum(sum(relevant[:place]) / place for place in hits) / max(len(hits), 1)
    if name in ("ndcg", "ndcg@K"):
        dcg, best = (
            sum(gain(one) / np.log2(place + 1) for place, one in enumerate(row[:k], 1))
            for row in (levels, sorted(levels, reverse=True))
        )
        return dcg / best if best else 1.0
    return {
        "precision@K": sum(relevant[:k]) / k,
        "acg@K": sum(first) / k,
        "recall@K": sum(relevant[:k]) / max(sum(relevant), 1),
        "success@K": float(any(relevant[:k])),
        "reciprocal_rank": 1 / hits[0] if hits else 0.0,
        "reciprocal_rank@K": 1 / hits[0] if hits else 0.0,
        "r_precision": sum(relevant[: sum(relevant)]) / max(sum(relevant), 1),
    }[name]


def by_definition(case):
    """Metric -> (mean, smallest, largest) over all orders that go by distance."""
    query, database, levels = case
    distances = [sum(one != its for one, its in zip(query, code)) for code in database]
    found = {}
    for order in permutations(range(len(levels))):
        if [distances[item] for item in order] == sorted(distances):
            ranked = [levels[item] for item in order]
            for name, cut in NAMES.items():
                found.setdefault(name, []).append(of_order(metrics.resolve(name)[0].name, cut, ranked))
    return {name: (np.mean(values), min(values), max(values)) for name, values in found.items()}


PLAIN = ("ap", "ndcg", "r_precision", "reciprocal_rank")
CUT = ("ap", "ndcg", "precision", "acg", "recall", "success", "reciprocal_rank")
NAMES = dict.fromkeys(PLAIN) | {f"{name}@{cut}": cut for name in CUT for cut in CUTS}


def packed(case):
    query, database, levels = case
    codes = pack([query]), pack(database)
    affinity = AffinityBlocks(lambda begin, end: [levels], range(1, 4))
    return *codes, len(query), affinity


def in_parts(case):
    query, database, levels = case
    counted = [joint_histograms(*packed((query, [code], [level]))) for code, level in zip(database, levels)]
    return scoring.score_histograms(merge(counted), CUTS).means


def as_prefix(case):
    """The code with a bit that differs behind it, of which the prefix is scored."""
    query, database, levels = case
    longer = ([*query, 0], [[*code, place % 2] for place, code in enumerate(database)], levels)
    return prefixes.score_prefixes(*packed(longer), [len(query)], CUTS)[len(query)].means


def as_run(case):
    query, database, levels = case
    run = {str(place): -sum(np.not_equal(query, code)) for place, code in enumerate(database)}
    judged = {str(place): level for place, level in enumerate(levels)}
    names = [name for name in NAMES if not name.startswith("acg")]
    return runs.score_run(
        {"q": run}, {"q": judged}, names, gains="exponential", ap_at_normaliser="hits"
    ).means


def as_matrix(case):
    query, database, levels = case
    scores = [[-sum(np.not_equal(query, code)) for code in database]]
    names = [name for name in NAMES if not name.startswith("acg")]
    return runs.score_array(scores, [levels], names, gains="exponential", ap_at_normaliser="hits").means


WAYS = {
    "codes": lambda case: scoring.score_codes(*packed(case), CUTS).means,
    "parts": in_parts,
    "prefixes": as_prefix,
    "run": as_run,
    "matrix": as_matrix,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_a_metric_has_its_definition_wherever_it_is_computed(case, way):
    found = WAYS[way](CASES[case])
    for name, (mean, least, most) in by_definition(CASES[case]).items():
        if name not in found:
            assert name.startswith("acg"), name  # runs are not scored by it
            continue
        if "ndcg" in name and not any(CASES[case][2]) and way in ("run", "matrix"):
            mean = least = most = 0.0  # docs/metrics.md: as trec_eval
        expected = dict(zip(("", "_min", "_max"), (mean, least, most)))
        assert {end: found[name + end] for end in expected} == pytest.approx(expected, abs=1e-12), name


@pytest.mark.parametrize("case", CASES)
def test_places_beyond_the_last_item_count_as_irrelevant(case):
    """Of the curve and of blocks too, as trec_eval counts them."""
    histograms = joint_histograms(*packed(CASES[case]))
    relevant = sum(level > 0 for level in CASES[case][2])
    for cut in (len(CASES[case][2]), 10, 10**12, 10.0):
        assert exact.precision_at_curve(histograms, [cut]) == pytest.approx([relevant / cut])
        assert ties.precision(histograms.ties, cut).expected == pytest.approx([relevant / cut])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("reach", [0, 1, 2, 5])
@pytest.mark.parametrize("per_bucket", [False, True])
def test_raap_is_a_mean_over_all_radii_also_beyond_the_bits(case, reach, per_bucket):
    query, database, levels = CASES[case]
    distances = np.not_equal(query, database).sum(axis=1)
    terms = []
    for within in range(reach + 1):
        ball = np.array(levels)[distances <= within] > 0
        buckets = sum(np.bitwise_count(np.arange(2 ** len(query))) <= within) if per_bucket else 1
        terms.append(ball.mean() / buckets if len(ball) else 0.0)
    histograms = joint_histograms(*packed(CASES[case]))
    found = radius.radius_aware_average_precision(histograms, reach, per_bucket)
    assert found == pytest.approx([np.mean(terms)])


@pytest.mark.parametrize("cut", [10**12, 10**18 - 1])
def test_a_cutoff_beyond_every_database_is_taken(cut):
    codes = np.eye(3, dtype=np.uint8)
    means = tiebench.score(codes, codes, [0, 1, 0], [0, 1, 0], at=cut).means
    assert means[f"recall@{cut}"] == 1.0
    assert means[f"ap@{cut}"] == means["ap"]
