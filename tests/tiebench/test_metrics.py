"""The table of metrics: names and labels, and that one new entry reaches scores, command line and names."""

import numpy as np
import pytest
from refusals import refused
from test_orders import named

from tiebench import metrics
from tiebench.affinities import MAX_AFFINITY, AffinityBlocks, EqualLabels
from tiebench.codes.packing import pack
from tiebench.counting.histograms import joint_histograms
from tiebench.metric_table import METRICS, Metric
from tiebench.rankings import exact
from tiebench.scoring import score_codes


@pytest.mark.parametrize(
    ("name", "entry", "value", "label"),
    [
        ("ap", "ap", None, ("AP", "T")),
        ("ndcg", "ndcg", None, ("NDCG", "T")),
        ("ap@1000", "ap@K", 1000, ("AP@1000", "")),
        ("ndcg@10", "ndcg@K", 10, ("NDCG@10", "")),
        ("precision_radius_2", "precision_radius_R", 2, ("Precision within radius 2", "")),
        ("precision_radius_0", "precision_radius_R", 0, ("Precision within radius 0", "")),
        ("reciprocal_rank@10", "reciprocal_rank@K", 10, ("RR@10", "")),
        ("ndcg_linear@10", "ndcg_linear@K", 10, ("NDCG@10, linear gain", "")),
    ],
)
def test_names_resolve_to_entry_parameter_and_label(name, entry, value, label):
    assert metrics.resolve(name) == (METRICS[entry], value)
    assert metrics.label(name) == label
    assert METRICS[entry].spell(value) == name
    sentence = metrics.description(name)
    assert sentence.endswith(".") and "{" not in sentence
    assert value is None or str(value) in sentence


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mAP", "did you mean 'ap'?"),
        ("MAP@1000", "did you mean 'ap@K'?"),
        ("precison@100", "did you mean 'precision@K'?"),
        ("precision_radius", "did you mean 'precision_radius_R'?"),
        ("precision_radius_3", "did you mean 'precision_radius_2'?"),
        *((name, "K must be a positive integer") for name in ("ap@0", "ap@", "ap@-5", "ap@\u0661")),
        ("ap@K", "as in 'ap@1000'"),
        ("ap_min", "no metric 'ap_min'; known: ap, ndcg, ndcg_linear, wap"),
        ("ap@1e3", "no metric 'ap@1e3'"),
        ("", "no metric ''"),
    ],
)
def test_unknown_names_end_in_the_nearest_one(name, message):
    for function in (metrics.resolve, metrics.label, metrics.description):
        with refused(message):
            function(name)


def codes_and_labels(queries=40, items=300, bits=7):
    generator = np.random.default_rng(3)
    codes = [pack(generator.integers(0, 2, (n, bits))) for n in (queries, items)]
    labels = [generator.integers(0, 12, n) for n in (queries, items)]
    labels[0][0] = 99  # nothing is relevant to the first query
    return codes, EqualLabels(*labels)


def test_scores_hold_what_the_table_says_and_lie_in_its_bounds():
    codes, affinity = codes_and_labels()
    per_query = score_codes(*codes, 7, affinity, at=(5, 50)).per_query
    expected = {
        name + ending
        for name, (metric, _) in named((5, 50)).items()
        for ending in (("", "_min", "_max") if metric.has_range else ("",))
    }
    assert set(per_query) == expected
    for name, values in per_query.items():
        metric, _ = metrics.resolve(name.removesuffix("_min").removesuffix("_max"))
        assert metric.low <= values.min() and values.max() <= metric.high
        assert metric.without_relevant is None or values[0] == metric.without_relevant


def test_entries_that_equal_others_on_affinities_0_and_1_are_computed_as_these_say():
    codes, affinity = codes_and_labels()
    per_query = score_codes(*codes, 7, affinity, at=(5,)).per_query
    histograms = joint_histograms(*codes, 7, affinity)
    named = [metric for metric in METRICS.values() if metric.binary]
    assert {metric.name for metric in named} == {"wap", "ndcg_linear", "acg@K", "ndcg_linear@K"}
    for metric in named:
        value = None if metric.parameter is None else 5
        found = metric.compute(histograms, *([] if value is None else [value]))
        for ending, values in zip(("", "_min", "_max"), found):
            name = metric.spell(value) + ending
            assert np.array_equal(per_query[name], per_query[METRICS[metric.binary].spell(value) + ending])
            assert per_query[name] == pytest.approx(values, abs=1e-12)


def test_bounds_reach_as_far_as_affinities_do():
    affinity = AffinityBlocks(lambda begin, end: np.full((end - begin, 3), MAX_AFFINITY), (MAX_AFFINITY,))
    codes = pack(np.eye(3, dtype=bool))
    for name in ("wap", "acg@2"):
        assert score_codes(codes, codes, 3, affinity, at=(2,)).means[name] == MAX_AFFINITY
        assert metrics.resolve(name)[0].high == MAX_AFFINITY


def mean_rank(histograms):
    """Mean rank of the relevant items, ties at the middle of their ranks: lower is better."""
    items = histograms.counts.sum(axis=1)
    relevant = histograms.counts[:, 1:].sum(axis=1)
    ranks = items.cumsum(axis=1) - (items - 1) / 2
    return (ranks * relevant).sum(axis=1) / np.maximum(relevant.sum(axis=1), 1)


MEAN_RANK = Metric(
    name="mean_rank",
    label="Mean rank",
    description="Mean rank of the relevant items.",
    source="this test",
    compute=mean_rank,
    high=np.inf,
    higher_is_better=False,
    has_range=False,
)
FIRST = Metric(
    name="answered@K",
    label="Answered@{}",
    description="Whether a relevant item is among the first {}.",
    source="this test",
    compute=lambda histograms, at: exact.TieRange(*(v > 0 for v in exact.precision(histograms, at))),
)


def test_a_new_entry_is_all_that_a_new_metric_needs(monkeypatch, tmp_path, printed):
    for metric in (MEAN_RANK, FIRST):
        monkeypatch.setitem(METRICS, metric.name, metric)
    codes, affinity = codes_and_labels()
    found = score_codes(*codes, 7, affinity, at=(4,))
    # By sorting: the mean over the two opposite orders of ties is the middle of their ranks.
    bits = [np.unpackbits(code, axis=1)[:, :7] for code in codes]
    distances = (bits[0][:, None] != bits[1]).sum(axis=2)
    relevant = affinity.query[:, None] == affinity.database
    index = np.arange(distances.shape[1])
    for q in range(1, len(distances)):
        ranks = [np.lexsort((order, distances[q])).argsort() + 1 for order in (index, -index)]
        assert found.per_query["mean_rank"][q] == pytest.approx(np.mean(ranks, axis=0)[relevant[q]].mean())
        best = np.lexsort((~relevant[q], distances[q]))[:4]
        assert found.per_query["answered@4_max"][q] == relevant[q][best].any()
    assert list(found.per_query)[-1] == "empty_radius_2"

    labels = {"query_labels": affinity.query, "database_labels": affinity.database}
    np.savez(tmp_path / "codes.npz", query=codes[0], database=codes[1], bits=7, **labels)
    assert printed("score", tmp_path / "codes.npz", "--at", "4") == found.means
    assert metrics.resolve("answered@4") == (FIRST, 4)
    assert metrics.label("mean_rank") == ("Mean rank", "")
    with refused("did you mean 'mean_rank'"):
        metrics.resolve("mean_ranks")


@pytest.mark.parametrize(
    ("name", "base", "ranking", "label"),
    [
        ("asymmetric_ap", "ap", ("asymmetric", None), "AP, asymmetric"),
        ("asymmetric_ap@5", "ap@K", ("asymmetric", None), "AP@5, asymmetric"),
        ("rescored@40_ndcg@10", "ndcg@K", ("rescored", 40), "NDCG@10, 40 rescored"),
        ("ndcg@10", "ndcg@K", None, "NDCG@10"),
    ],
)
def test_a_name_may_start_with_the_ranking_that_is_scored(name, base, ranking, label):
    assert metrics.resolve(name)[0] is METRICS[base]
    found, rest = metrics.ranking_of(name)
    assert found == ranking and metrics.label(name)[0] == label
    assert name == ("" if found is None else found.prefix) + rest
    assert metrics.description(name).startswith(metrics.description(rest))
    assert (metrics.description(name) == metrics.description(rest)) == (ranking is None)


@pytest.mark.parametrize("name", ["rescored@0_ndcg@10", "rescored_ndcg@10", "asymmetric_asymmetric", "_ap"])
def test_other_beginnings_are_no_names(name):
    with refused("there is no metric"):
        metrics.resolve(name)
