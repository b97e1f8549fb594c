"""Asymmetric and rescored rankings of runs: their scores, and what a protocol has to ask for."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from methods.base import Refusal
from tiebench import metrics
from tiebench.affinities import EqualLabels, SparseJudgements
from tiebench.codes.packing import pack
from tiebench.scoring import score_codes
from tiebench.search.rescoring import rescored
from workflow.configuration.merged import load
from workflow.plan.runs import Cell, Plan
from workflow.stages import other_rankings
from workflow.stages.protocol_data import ProtocolData
from workflow.stages.run_records import read_estimates

from conftest import ROOT, refused  # isort: skip

ASKED = {"asymmetric": True, "rescore": [20], "at": [3, 10], "ap_at_normaliser": "hits"}


@pytest.fixture(scope="module")
def problem():
    """Codes of a protocol whose items are vectors (120, 8), real-valued queries, and two affinities."""
    rng = np.random.default_rng(0)
    items, query, database = rng.normal(size=(120, 8)).astype(np.float32), np.arange(15), np.arange(15, 120)
    protocol = SimpleNamespace(items=items, split=SimpleNamespace(query=query, database=database))
    codes = pack(items[query] > 0), pack(items[database] > 0)
    classes = EqualLabels(rng.integers(0, 9, 15), rng.integers(0, 9, 105))
    rows, columns = np.nonzero(classes.block(0, 15))
    judged = SparseJudgements(rows, columns, np.ones(len(rows), int), (15, 105))
    return protocol, codes, items[query], {"classes": classes, "judgements": judged}


def precision_of_ranking(similarity, relevant):
    """Average precision of distinct similarities."""
    return average_precision_score(relevant[np.argsort(-similarity)], np.arange(len(relevant), 0, -1))


def added(problem, kind, asked, raw=None, estimates=None):
    """The scores of the codes alone, and with those of the rankings asked for."""
    protocol, codes, _, affinities = problem
    plain = score_codes(*codes, 8, affinities[kind], asked["at"], asked["ap_at_normaliser"])
    return plain, other_rankings.add_rankings(
        plain, codes, raw, estimates, 8, affinities[kind], protocol, asked
    )


def unit(items):
    return items / np.linalg.norm(items.astype(float), axis=1, keepdims=True)


@pytest.mark.parametrize("kind", ["classes", "judgements"])
def test_scores_of_other_rankings_are_those_of_plain_sums(kind, problem, monkeypatch):
    monkeypatch.setattr(other_rankings, "_SIMILARITIES_AT_ONCE", 400)  # a few queries at a time
    protocol, codes, raw, affinities = problem
    plain, found = added(problem, kind, ASKED, raw)
    assert {name: found.means[name] for name in plain.means} == plain.means
    relevant = affinities[kind].block(0, 15) > 0
    signs = np.where(protocol.items[15:] > 0, 1.0, -1.0)
    for q in range(15):
        for end, sign in (("min", -1), ("max", 1)):
            similarity = raw[q].astype(float) @ signs.T + sign * 1e-9 * relevant[q]
            expected = precision_of_ranking(similarity, relevant[q])
            assert found.per_query[f"asymmetric_ap_{end}"][q] == pytest.approx(expected)
    cosine = unit(protocol.items[:15]) @ unit(protocol.items[15:]).T
    judged, similarity = affinities["judgements"], lambda q, items: cosine[q, items]
    for name, values in rescored(*codes, 8, judged, similarity, 20, ASKED["at"]).items():
        assert np.allclose(found.per_query[f"rescored@20_{name}"], values.expected, atol=1e-9)
        assert found.means[f"rescored@20_{name}_max"] == pytest.approx(values.maximum.mean())
        assert found.means[f"rescored@20_{name}_min"] == pytest.approx(values.minimum.mean())
    assert not [name for name in found.means if name.startswith("asymmetric") and "radius" in name]
    # A method without real values has none of them.
    assert not [name for name in added(problem, kind, ASKED)[1].means if name.startswith("asymmetric")]


@pytest.mark.parametrize("kind", ["classes", "judgements"])
def test_estimated_scores_are_those_of_plain_sums(kind, problem, monkeypatch):
    monkeypatch.setattr(other_rankings, "_SIMILARITIES_AT_ONCE", 400)
    protocol, _, raw, affinities = problem
    factors = np.random.default_rng(2).random((105, 2)).astype(np.float32)
    asked = {"estimated": True, "rescore": [20], "at": [3], "ap_at_normaliser": "hits"}
    _, found = added(problem, kind, asked, estimates=(raw, factors))
    relevant = affinities[kind].block(0, 15) > 0
    similarity = raw.astype(float) @ np.where(protocol.items[15:] > 0, 1.0, -1.0).T * factors[:, 0]
    similarity += factors[:, 1]  # no ties: no two items have the factors
    expected = [precision_of_ranking(*rows) for rows in zip(similarity, relevant)]
    assert found.per_query["estimated_ap"] == pytest.approx(expected)
    rows = unit(protocol.items)
    for q in range(15):
        nearest = np.argsort(-similarity[q])[:20]
        first = nearest[np.argsort(-(rows[15:][nearest] @ rows[q]))][:3]
        recall = relevant[q, first].sum() / max(1, relevant[q].sum())
        assert found.per_query["estimated_rescored@20_recall@3"][q] == pytest.approx(recall)
    assert found.means["estimated_bytes"] == 1 + 2 * 4
    _, without = added(problem, kind, asked, raw)
    assert not [name for name in without.means if name.startswith("estimated")]


@pytest.mark.parametrize("several", [False, True])
def test_scores_in_orders_are_those_of_a_database_that_stands_so(several, problem):
    protocol, codes, _, affinities = problem
    labels = np.random.default_rng(1).integers(0, 2, (120, 3) if several else 120)
    given = SimpleNamespace(items=protocol.items, split=protocol.split, labels=labels)
    affinity, settings = affinities["classes"], {"orders": True, "at": [10], "ap_at_normaliser": "min"}
    plain, found = added((given, *problem[1:]), "classes", settings)
    of_database = labels[protocol.split.database]
    by_class = np.array(sorted(range(105), key=lambda item: np.atleast_1d(of_database[item]).tolist()))
    orders = {"file_order": np.arange(105), "class_order": by_class, "reversed_class_order": by_class[::-1]}
    for kind, places in orders.items():
        moved = EqualLabels(affinity.query, affinity.database[places])
        expected = score_codes(codes[0], codes[1][places], 8, moved, 10, "min", order="file").per_query
        for name in ("ap", "ap@10", "ndcg", "ndcg@10", "precision@10"):
            assert np.array_equal(found.per_query[f"{kind}_{name}"], expected[f"{name}_in_file_order"])
    spread, mean = found.means["shuffled_sd_ap"], found.means["shuffled_ap"]
    assert spread > 0 and abs(mean - plain.means["ap"]) < 5 * spread
    assert "shuffled_sd_ap" not in found.per_query
    names = {name for name in found.means if "order" in name or "shuffled" in name}
    assert len(names) == 5 * 5


@pytest.mark.parametrize("kind", metrics.ORDERS)
def test_every_order_is_told_from_the_metric(kind):
    assert metrics.ranking_of(f"{kind}_ap@10") == (metrics.Ranking(kind), "ap@10")
    assert metrics.label(f"{kind}_ap@10") == (f"AP@10, {kind.replace('_', ' ')}", "")


def test_estimates_are_told_from_the_metric():
    assert metrics.ranking_of("estimated_ap") == (metrics.Ranking("estimated"), "ap")
    kind = metrics.Ranking("estimated_rescored", 40)
    assert metrics.ranking_of("estimated_rescored@40_ndcg@10") == (kind, "ndcg@10")
    assert kind.prefix == "estimated_rescored@40_"
    assert metrics.label("estimated_rescored@40_ndcg@10") == ("NDCG@10, 40 estimated, rescored", "")
    assert metrics.ranking_of("estimated_bytes") == (None, "estimated_bytes")
    assert not metrics.resolve("estimated_bytes")[0].higher_is_better


def test_what_a_run_keeps_for_estimates_is_read_if_it_fits(tmp_path):
    record, query, factors = {"bits": 3}, np.ones((4, 3), np.float32), np.ones((5, 2), np.float32)
    np.savez(tmp_path / "codes.npz", query=np.zeros((4, 1), np.uint8))
    assert read_estimates(tmp_path, record, 4, 5) is None
    np.savez(tmp_path / "codes.npz", estimate_query=query, estimate_factors=factors)
    assert [part.shape for part in read_estimates(tmp_path, record, 4, 5)] == [(4, 3), (5, 2)]
    for wrong in ({"estimate_query": query}, {"estimate_query": query, "estimate_factors": factors[1:]}):
        np.savez(tmp_path / "codes.npz", **wrong)
        with pytest.raises(ValueError, match=r"has no estimate_factors float32 \(5, 2\)"):
            read_estimates(tmp_path, record, 4, 5)


def test_without_labels_there_is_no_order_by_class(problem):
    given = SimpleNamespace(split=problem[0].split, labels=None)
    settings = {"orders": True, "at": [], "ap_at_normaliser": "hits"}
    plain, found = added((given, *problem[1:]), "judgements", settings)
    names = set(found.means) - set(plain.means)
    kinds = ("file_order", "shuffled", "shuffled_sd")
    assert names == {f"{kind}_{metric}" for kind in kinds for metric in ("ap", "ndcg")}


PROTOCOL = {
    "dataset": "digits",
    "split": {"kind": "random", "query": 20, "training": 60},
    "affinity": {"kind": "neighbours", "k": 5},
    "at": [10],
    "asymmetric": True,
    "estimated": True,
    "rescore": [40],
}
PLAIN = {"asymmetric": False, "estimated": False, "rescore": []}


def settings(metric="ap", **changes):
    block = {"protocol": "mine", "metric": metric, "bits": [8]}
    table = {"seeds": [0], "methods": ["lsh", "talr_ap", "onehot"], "blocks": [block]}
    return {"protocols": {"mine": PROTOCOL | changes}, "tables": {"mine": table}}


def planned(metric="ap", **changes):
    return Plan(load(ROOT, settings(metric, **changes)))


@pytest.mark.parametrize(
    "metric",
    ["asymmetric_ndcg@10", "estimated_bytes", "estimated_rescored@40_ndcg@10", "rescored@40_ndcg@10"],
)
def test_metrics_of_rankings_that_a_protocol_asks_for(metric):
    plan = planned(metric)
    assert plan.score_settings("mine")["rescore"] == [40]
    of_runs = plan.run_settings("mine", "lsh", bits="8")
    assert of_runs["raw_scores"] is of_runs["estimates"] is True
    assert "workflow/stages/other_rankings.py" in plan.score_code("mine")
    of_classes = planned(metric, affinity={"kind": "class"})
    assert of_classes.score_files("mine") == ["resources/protocols/mine/features.npy"]


def test_orders_are_scored_without_features():
    plan = planned("reversed_class_order_ap@10", **PLAIN, orders=True, affinity={"kind": "class"})
    assert plan.score_settings("mine")["orders"] is True
    assert plan.score_files("mine") == []
    assert "tiebench/search/in_order.py" in plan.score_code("mine")


def test_other_protocols_keep_their_settings():
    plan = planned(**PLAIN, affinity={"kind": "class"})
    assert set(plan.score_settings("mine")) == {"affinity", "at", "ap_at_normaliser"}
    assert not {"raw_scores", "estimates"} & set(plan.run_settings("mine", "lsh", bits="8"))
    assert plan.score_files("mine") == []
    assert "workflow/stages/other_rankings.py" not in plan.score_code("mine")


@pytest.mark.parametrize(
    ("metric", "changes", "words"),
    [
        ("rescored@30_ndcg@10", {}, "is not scored: protocol mine needs rescore: [30]"),
        ("asymmetric_ap", {"asymmetric": False}, "is not scored: protocol mine needs asymmetric: true"),
        ("estimated_ap", {"estimated": False}, "is not scored: protocol mine needs estimated: true"),
        ("estimated_bytes", {"estimated": False}, "is not scored: add `estimated: true` to protocol mine"),
        ("estimated_rescored@40_ndcg@10", {"estimated": False}, "protocol mine needs estimated: true"),
        ("rescored@40_ndcg@20", {}, "add 20 to `at` of protocol mine"),
        ("rescored@40_ap", {}, "does not apply to a ranking that is rescored; metrics that do: ndcg@K"),
        ("class_order_ap", {}, "is not scored: protocol mine needs orders: true"),
        ("shuffled_recall@10", {"orders": True}, "ranking that is shuffled; metrics that do: ap, ap@K, ndcg"),
        ("ap", {"database_parts": 2, **PLAIN, "orders": True}, "database_parts"),
        ("asymmetric_app", {}, "there is no metric 'app'"),
        ("ap", {"database_parts": 2}, "cannot be scored from database_parts"),
    ],
)
def test_mistakes_are_one_line(metric, changes, words):
    assert words in refused(settings(metric, **changes))


def test_methods_that_learn_from_affinities_are_refused_where_only_queries_have_them():
    plan = planned()
    assert [cell.method for cell in plan.served_cells("mine")] == ["lsh"]
    reason = plan.refusal(Cell("mine", "talr_ap", 8))
    assert reason.startswith("talr_ap learns from affinities or labels, and mine has affinities of queries")
    made = object.__new__(ProtocolData)
    made.affinity = plan.affinity_kind("mine").load()
    with pytest.raises(Refusal, match="none among training items"):
        made.pair_affinity(np.arange(4))(np.arange(2), np.arange(2))
