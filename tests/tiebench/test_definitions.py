"""One definition of each metric, wherever it is computed: codes at once, in parts and as prefixes, and runs.

The oracle is the mean over all orders of tied items of the definition in docs/metrics.md, written out.
"""

import numpy as np
import pytest
from test_orders import DEFINITIONS, named, orders, over_orders

import tiebench
from tiebench import prefixes, scoring
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
    "one item of a high level": ([0, 0], [[0, 0], [0, 1], [1, 1]], [0, 3, 0]),
}
CUTS = (1, 2, 3, 4, 7, 1000)


def by_definition(case):
    """Metric -> (mean, smallest, largest) over all orders that go by distance."""
    query, database, levels = case
    rankings = list(orders(list(zip(np.not_equal(query, database).sum(axis=1).tolist(), levels))))
    return {
        name: over_orders(rankings, DEFINITIONS[metric.name], *given)
        for name, (metric, given) in named(CUTS).items()
    }


PLAIN = ("ap", "ndcg", "r_precision", "reciprocal_rank")
CUT = ("ap", "ndcg", "precision", "acg", "recall", "success", "reciprocal_rank")
OF_RUNS = [*PLAIN, *(f"{name}@{cut}" for name in CUT if name != "acg" for cut in CUTS)]
SETTINGS = {"gains": "exponential", "ap_at_normaliser": "hits"}


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
    return runs.score_run({"q": run}, {"q": judged}, OF_RUNS, **SETTINGS).means


def as_matrix(case):
    query, database, levels = case
    scores = [[-sum(np.not_equal(query, code)) for code in database]]
    return runs.score_array(scores, [levels], OF_RUNS, **SETTINGS).means


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
    assert found["queries_without_relevant"] == (not any(CASES[case][2]))
    for name, (mean, least, most) in by_definition(CASES[case]).items():
        if name not in found:
            assert name not in OF_RUNS and way in ("run", "matrix"), name
            continue
        if "ndcg" in name and not any(CASES[case][2]) and way in ("run", "matrix"):
            mean = least = most = 0.0  # docs/metrics.md: as trec_eval
        expected = dict(zip(("", "_min", "_max"), (mean, least, most)))
        if name + "_min" not in found:
            assert found[name] == pytest.approx(mean, abs=1e-12), name
            continue
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
