"""The measurement of differences: its data against those of a run, its scores against closed forms."""

import numpy as np
import pytest

from benchmarks import class_items, differences
from benchmarks.class_items import Items
from benchmarks.commands import Failed
from benchmarks.differences import COMPARISONS, Comparison
from benchmarks.report import Report
from datasets import inputs, splits
from datasets.loaders import features_file
from methods.base.catalogue import catalogue
from workflow.tuning.validation import partition


@pytest.fixture
def blocks():
    """Twelve classes of twenty items each; two classes at a time have one and the same vector."""
    classes = np.arange(240) % 12
    return Items(np.eye(6, dtype=np.float32)[classes // 2], classes)


def ap_of_pairs(classes, number, against_fit):
    """Mean AP of codes that tell pairs of classes apart: r of n items at distance 0 are relevant, no others.

    Rank k of a random order has a relevant item with probability r / n, and k - 1 items before it of which
    (k - 1) (r - 1) / (n - 1) are relevant.
    """
    fit, query, database = partition(len(classes), differences.SHARES, (number, 1))
    found = []
    for one in classes[query]:
        others = classes[fit if against_fit else database]
        r, n = np.count_nonzero(others == one), np.count_nonzero(others // 2 == one // 2)
        k = np.arange(1, n + 1)
        found.append(np.mean((1 + (k - 1) * (r - 1) / (n - 1)) / k) if r else 0.0)
    return np.mean(found)


def test_items_are_what_methods_see_of_a_protocol(tmp_path):
    generator = np.random.default_rng(0)
    path = tmp_path / class_items.FILE
    X, y = generator.integers(-9, 10, (1400, 3)).astype(np.int8), np.arange(1400) % 2
    np.savez(path, X=X, y=y, scale=np.array([1, 2, 0.5], np.float32))
    found, rows = class_items.read(path)
    features_file.load([path], tmp_path)
    drawn = splits.draw(class_items.SPLIT, features_file.describe([path]), 0)
    assert np.array_equal(rows.training, drawn.training) and np.array_equal(found.classes, y)
    inputs.write_inputs(np.load(tmp_path / "items.npy"), rows.training, tmp_path / "features.npy")
    np.testing.assert_allclose(found.vectors, np.load(tmp_path / "features.npy"), atol=1e-6)


@pytest.mark.parametrize("against_fit", [False, True])
def test_scores_are_those_of_two_tied_classes(blocks, against_fit):
    comparison = Comparison("classifier_codes", ({"centres": "binary"},), bits=(12,), against_fit=against_fit)
    expected = [ap_of_pairs(blocks.classes, number, against_fit) for number in range(2)]
    for number, value in enumerate(expected):
        found = differences.validation_ap(comparison, {}, 12, blocks, number)
        # With other codes, pairs that are farther away are in another order, which has no relevant items.
        assert found == pytest.approx(value, abs=1e-12)
    assert differences.table_rows(comparison, blocks, 2) == [
        ["`classifier_codes`", "`centres: binary`", 12, f"{np.mean(expected):.3f}", "+0.000 ± 0.000"],
    ]


def test_a_difference_is_the_mean_and_the_spread_of_pairs():
    assert differences.difference([0.5, 0.7], [0.4, 0.4]) == "+0.200 ± 0.141"
    assert differences.difference([0.5], [0.6]) == "−0.100"


def test_the_best_rate_is_taken(blocks, monkeypatch):
    scores = {0.25: 0.3, 0.5: 0.9, 1.0: 0.4}
    monkeypatch.setattr(
        differences, "validation_ap", lambda _, settings, *rest: scores[settings["learning_rate"]]
    )
    comparison = Comparison("dpsh", (), rates=(0.5, 1, 2))
    assert differences.chosen_rate(comparison, {"learning_rate": 0.5}, 12, blocks, 3) == 0.5
    assert differences.chosen_rate(Comparison("dpsh", ()), {}, 12, blocks, 3) is None


def test_every_form_is_a_setting_of_its_method():
    known = catalogue()
    for comparison in COMPARISONS:
        assert comparison.forms
        for form in (comparison.settings, *comparison.forms):
            assert form.keys() <= known[comparison.method].parameters.keys(), comparison.method


def test_without_the_file_there_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv("TIEBENCH_RESOURCES", str(tmp_path))
    with pytest.raises(Failed, match=f"no {class_items.FILE}, features X and labels y of CIFAR-10, in"):
        differences.run(Report(), quick=True)
