"""The measurement of differences: its data against those of a run, its scores against closed forms."""

import numpy as np
import pytest

from benchmarks import differences
from benchmarks.differences import COMPARISONS, Comparison, Items
from benchmarks.report import Report
from datasets import features_file, inputs, splits
from methods._catalogue import catalogue
from workflow.tuning import partition


@pytest.fixture
def blocks():
    """Twelve classes of twenty items each, far from each other: any classifier finds them."""
    classes = np.arange(240) % 12
    noise = np.random.default_rng(0).normal(size=(240, 12)) / 50
    return Items((np.eye(12)[classes] + noise).astype(np.float32), classes)


def test_partitions_are_those_of_a_search_of_hyperparameters():
    for number in range(3):
        ours = differences.parts(5000, number)
        theirs = partition(5000, {"fit": differences.FIT, "query": differences.QUERIES}, number)
        assert [len(part) for part in ours] == [4000, 250, 750]
        assert all(np.array_equal(*pair) for pair in zip(ours, theirs, strict=True))


def test_items_are_what_methods_see_of_a_protocol(tmp_path):
    generator = np.random.default_rng(0)
    path = tmp_path / differences.FILE
    X, y = generator.integers(-9, 10, (1400, 3)).astype(np.int8), np.arange(1400) % 2
    np.savez(path, X=X, y=y, scale=np.array([1, 2, 0.5], np.float32))
    found = differences.read(path)
    features_file.load([path], tmp_path)
    rows = splits.draw(differences.SPLIT, features_file.describe([path]), 0).training
    inputs.write_inputs(np.load(tmp_path / "items.npy"), rows, tmp_path / "features.npy")
    assert np.array_equal(found.classes, y[rows])
    np.testing.assert_allclose(found.vectors, np.load(tmp_path / "features.npy")[rows], atol=1e-6)


@pytest.mark.parametrize("against_fit", [False, True])
def test_a_difference_is_that_of_the_scores(blocks, against_fit):
    forms = {"here": {}, "the same": {"C": 10.0}, "one code for all": {"centres": "binary", "C": 1e-9}}
    comparison = Comparison("classifier_codes", forms, bits=(12,), against_fit=against_fit)
    rows = differences.table_rows(comparison, blocks, 2)
    assert rows[:2] == [
        ["classifier_codes", "here", "1.000"],
        ["classifier_codes", "the same", "1.000 (+0.000 ± 0.000)"],
    ]
    assert rows[2][2].startswith("0.") and "(-0." in rows[2][2]


def test_a_cell_has_the_mean_and_the_spread_of_paired_differences():
    assert differences.cell([0.5, 0.7], [0.4, 0.4]) == "0.600 (+0.200 ± 0.141)"
    assert differences.cell([0.5], [0.6]) == "0.500 (-0.100)"


def test_the_best_rate_is_taken(blocks, monkeypatch):
    scores = {0.25: 0.3, 0.5: 0.9, 1.0: 0.4}
    monkeypatch.setattr(
        differences, "validation_ap", lambda _, settings, *rest: scores[settings["learning_rate"]]
    )
    comparison = Comparison("dpsh", {"here": {}}, rates=(0.5, 1, 2))
    assert differences.chosen_rate(comparison, {"learning_rate": 0.5}, 12, blocks, 3) == 0.5
    assert differences.chosen_rate(Comparison("dpsh", {"here": {}}), {}, 12, blocks, 3) is None


def test_every_form_is_a_setting_of_its_method():
    known = catalogue()
    for comparison in COMPARISONS:
        first, *others = comparison.forms.values()
        assert first == {} and others and next(iter(comparison.forms)).startswith(differences.HERE)
        for form in (comparison.settings, *others):
            assert form.keys() <= known[comparison.method].parameters.keys(), comparison.method


def test_without_the_file_it_is_skipped_in_one_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("TIEBENCH_RESOURCES", str(tmp_path))
    assert differences.run(Report(), quick=True) == []
    assert f"Skipped: no {differences.FILE} in the folders of TIEBENCH_RESOURCES." in capsys.readouterr().out
