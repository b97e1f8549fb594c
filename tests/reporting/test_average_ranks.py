"""Average ranks: against the worked example and the printed quantiles of Demšar (JMLR 2006)."""

import dataclasses
import math

import numpy as np
import pytest
from models import model_of
from scipy import stats

from reporting import average_ranks
from tiebench import metrics


def table(**changes):
    plain = {
        "name": "small",
        "seeds": [0],
        "methods": ["a", "b", "c"],
        "blocks": [{"protocol": "digits", "metric": "ap", "bits": [12, 13, 14]}],
    }
    return plain | changes


def record(method, bits, seed, scores, metric="ap"):
    plain = {"protocol": "digits", "method": method, "bits": bits, "seed": seed, "status": "done"}
    return plain | {"reason": None, "metrics": {metric: float(np.mean(scores))}}


SMALL = {"a": [0.9, 0.8, 0.7], "b": [0.5, 0.6, 0.9], "c": [0.1, 0.2, 0.3]}


def scored(columns):
    """Records of one seed from method -> scores of columns 12, 13, ..."""
    return [
        record(method, 12 + index, 0, [score])
        for method, scores in columns.items()
        for index, score in enumerate(scores)
    ]


def ranked(columns, methods=None):
    count = max(len(scores) for scores in columns.values())
    blocks = [{"protocol": "digits", "metric": "ap", "bits": list(range(12, 12 + count))}]
    asked = table(methods=methods or list(columns), seeds=[0], blocks=blocks)
    return average_ranks.ranks(*model_of(asked, scored(columns)))


# Demšar (JMLR 2006), table 6: AUC of C4.5 with and without its parameters tuned, on 14 data sets.
DEMSAR = {
    "plain": [.763, .599, .954, .628, .882, .936, .661, .583, .775, 1.0, .940, .619, .972, .957],
    "m": [.768, .591, .971, .661, .888, .931, .668, .583, .838, 1.0, .962, .666, .981, .978],
    "cf": [.771, .590, .968, .654, .886, .916, .609, .563, .866, 1.0, .965, .614, .9751, .946],
    "both": [.798, .569, .967, .657, .898, .931, .685, .625, .875, 1.0, .962, .669, .975, .970],
}  # fmt: skip


def test_average_ranks_of_demsars_example():
    found = ranked(DEMSAR)
    # Printed there: 3.143, 2.000, 2.893, 1.964, and a critical difference of 1.25 at 0.05 for k 4, N 14.
    assert found["average_rank"] == pytest.approx(
        {"both": 1.964, "m": 2.000, "cf": 2.893, "plain": 3.143}, abs=5e-4
    )
    assert found["methods"] == ["both", "m", "cf", "plain"] == list(found["average_rank"])
    assert found["critical_difference"] == pytest.approx(1.25, abs=5e-3)
    assert found["columns"] == 14 and found["left_out"] == []
    assert found["friedman_p"] == stats.friedmanchisquare(*DEMSAR.values()).pvalue


# Demšar (JMLR 2006), table 5: q of the two-tailed Nemenyi test at 0.05 for 2 to 10 classifiers.
@pytest.mark.parametrize(
    ("count", "q"), [(3, 2.343), (4, 2.569), (5, 2.728), (6, 2.850), (7, 2.949), (8, 3.031), (10, 3.164)]
)
def test_critical_differences_have_the_printed_quantiles(count, q):
    random = np.random.default_rng(count)
    found = ranked({f"m{index}": random.uniform(size=5).tolist() for index in range(count)})
    expected = q * math.sqrt(count * (count + 1) / 30)
    assert found["critical_difference"] == pytest.approx(expected, rel=4e-4)


def test_ties_share_ranks_and_incomplete_methods_are_left_out():
    found = ranked({"a": [0.9, 0.9, 0.9], "b": [0.5, 0.9, 0.1], "c": [0.5, 0.1, 0.2], "d": [1.0, 1.0]})
    assert found["average_rank"] == {"a": pytest.approx(3.5 / 3), "b": pytest.approx(7 / 3), "c": 2.5}
    assert found["left_out"] == ["d"] and found["columns"] == 3
    everything_equal = ranked({"a": [0.5, 0.5], "b": [0.5, 0.5], "c": [0.5, 0.5]})
    assert everything_equal["friedman_p"] is None and set(everything_equal["average_rank"].values()) == {2.0}


def test_too_little_has_no_ranks():
    assert ranked({"a": [0.1, 0.2], "b": [0.3, 0.1]}) is None
    assert ranked({"a": [0.1], "b": [0.3], "c": [0.2]}) is None
    assert average_ranks.ranks(*model_of(table(), [])) is None


def test_ranks_need_no_published_figures():
    runs = scored(SMALL)
    assert average_ranks.ranks(*model_of({**table(), "published": ["he2018"]}, runs)) == average_ranks.ranks(
        *model_of(table(), runs)
    )


def test_ranks_do_not_depend_on_the_order_of_records():
    runs = scored(SMALL)
    assert average_ranks.ranks(*model_of(table(), runs)) == average_ranks.ranks(
        *model_of(table(), runs[::-1])
    )


def test_where_lower_is_better_the_lowest_mean_has_rank_1(monkeypatch):
    lower = dataclasses.replace(metrics.METRICS["ap"], name="cost", higher_is_better=False)
    monkeypatch.setitem(metrics.METRICS, "cost", lower)
    asked = table(blocks=[{"protocol": "digits", "metric": "cost", "bits": [12, 13, 14]}])
    runs = [record(r["method"], r["bits"], 0, [r["metrics"]["ap"]], "cost") for r in scored(SMALL)]
    found, turned = (
        average_ranks.ranks(*model_of(asked, runs)),
        average_ranks.ranks(*model_of(table(), scored(SMALL))),
    )
    expected = {name: 4 - rank for name, rank in turned["average_rank"].items()}
    assert found["average_rank"] == pytest.approx(expected)
