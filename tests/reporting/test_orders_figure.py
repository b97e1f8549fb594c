"""The figure of orders of tied items: what is drawn where, and what it says of rankings of methods."""

import statistics

import pytest
from models import block, model_of, record
from scipy.stats import kendalltau
from test_reporting_curves import artists, table

from reporting.drawing.axes import NothingToDraw
from reporting.figures import orders

METHODS = ("lsh", "itq", "mihash", "talr_ap")
# What each name has of a method's place, so that all differ and some rank the methods in another order.
SCORES = {
    "ap": lambda row, seed: 0.4 + 0.05 * row + seed / 100,
    "ap_min": lambda row, seed: 0.3 - 0.01 * row,
    "ap_max": lambda row, seed: 0.9 + seed / 100,
    "file_order_ap": lambda row, seed: 0.35 + 0.05 * row,
    "class_order_ap": lambda row, seed: (0.31, 0.33, 0.32, 0.36)[row],
    "reversed_class_order_ap": lambda row, seed: 0.34,
    "shuffled_ap": lambda row, seed: 0.401 + 0.05 * row,
    "shuffled_sd_ap": lambda row, seed: 0.002 * (1 + seed),
}


def records(metrics=SCORES):
    return [
        record(method, 12, seed, {name: metrics[name](row, seed) for name in metrics})
        for row, method in enumerate(METHODS)
        for seed in (0, 1, 2)
    ]


def asking(*metrics):
    return table(blocks=[block(metric=name, bits=[12]) for name in metrics])


def test_every_mark_stands_at_its_mean_over_seeds():
    found = artists(orders.draw(*model_of(asking("ap", "file_order_ap", "class_order_ap"), records())))
    assert len(found) == 6 * len(METHODS)  # one panel for both blocks of an order
    marks = {"mean": "ap", "file": "file_order_ap", "class": "class_order_ap"}
    marks["reversed"] = "reversed_class_order_ap"
    for row, method in enumerate(METHODS):
        means = {name: statistics.fmean(of(row, seed) for seed in (0, 1, 2)) for name, of in SCORES.items()}
        for mark, name in marks.items():
            line = found[f"{mark}-digits-ap-12-{method}"]
            assert list(line.get_xdata()) == [pytest.approx(means[name])]
            assert list(line.get_ydata()) == [len(METHODS) - 1 - row]  # the highest mean first
        low, high = found[f"range-digits-ap-12-{method}"].get_xdata()
        assert (low, high) == (pytest.approx(means["ap_min"]), pytest.approx(means["ap_max"]))
        low, high = found[f"shuffled-digits-ap-12-{method}"].get_xdata()
        assert (low + high) / 2 == pytest.approx(means["shuffled_ap"])
        assert high - low == pytest.approx(4 * means["shuffled_sd_ap"])
    axes = found["mean-digits-ap-12-lsh"].axes
    titles = [tick.get_text() for tick in axes.get_yticklabels()]
    assert titles == ["TALR-AP", "MIHash", "ITQ", "LSH"]
    tau = kendalltau(range(4), [0.31, 0.33, 0.32, 0.36]).statistic
    said = " ".join(axes.get_xlabel().split())
    assert said == f"τ with the mean: file order 1.00, sorted by class {tau:.2f}, worst −1.00"
    assert axes.get_title(loc="left") == "AP, 12 bits"


def test_what_was_not_scored_is_left_out():
    some = {name: SCORES[name] for name in ("ap", "file_order_ap")}
    found = artists(orders.draw(*model_of(asking("file_order_ap"), records(some))))
    assert {name.partition("-")[0] for name in found} == {"mean", "file"}
    for asked in ("ap", "file_order_ap"):
        with pytest.raises(NothingToDraw, match="no run was scored in orders"):
            orders.draw(*model_of(asking(asked), records({"ap": SCORES["ap"]})))
