"""Spaces: distinct trials from the same streams for every method, and numbers beyond the ends of axes."""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import kstest

from methods.base.catalogue import catalogue, load_class
from workflow.tuning.spaces import beyond, draw_trials, restricted, with_candidates

SPACE = {"learning_rate": [0.1, 0.2, 0.4], "bins": [4, 8], "iterations": [5, 10], "unknown_to_all": [1]}
VALUES = {"learning_rate": 0.7, "bins": 5, "iterations": 6, "tanh_scale": 1.0, "optimiser": "sgd"}


def drawn(spaces, parameters, trials, seed=0):
    """Settings of the trials of a method with these hyper-parameters."""
    values = {name: VALUES[name] for name in parameters}
    return [trial.settings for trial in draw_trials(restricted(spaces, values), values, trials, seed)]


def test_methods_with_the_same_parameters_get_the_same_distinct_trials():
    deep = drawn([SPACE], {"learning_rate", "bins", "tanh_scale"}, 5)
    assert deep == drawn([SPACE], {"bins", "learning_rate"}, 5)
    assert len({tuple(sorted(trial.items())) for trial in deep}) == 5
    assert deep[0] == {}  # the settings as they are
    assert all(set(trial) == {"learning_rate", "bins"} for trial in deep[1:])
    assert len(drawn([SPACE], {"iterations"}, 64)) == 3  # no more than there are
    assert drawn([SPACE], {"tanh_scale"}, 64) == drawn([{}], {"tanh_scale"}, 64) == [{}]


def test_all_settings_of_a_space_are_drawn_once():
    found = drawn([SPACE], {"learning_rate", "bins"}, 64, 7)[1:]
    expected = [{"bins": b, "learning_rate": r} for b in (4, 8) for r in (0.1, 0.2, 0.4)]
    assert sorted(found, key=str) == sorted(expected, key=str)


def test_the_settings_as_they_are_are_not_drawn_again():
    values = {"learning_rate": 0.2, "bins": 8, "iterations": 50}
    spaces = restricted([{"learning_rate": [0.1, 0.2], "bins": [8, 16]}, {"bins": [16]}], values)
    for seed in range(20):
        found = [values | trial.settings for trial in draw_trials(spaces, values, 9, seed)]
        assert len(found) == 4 and found[0] == values  # {bins: 16} is in both spaces
        assert len({tuple(settings.items()) for settings in found}) == 4


def test_candidates_follow_the_settings_as_they_are_and_are_tried_once():
    values = {"learning_rate": 0.2, "bins": 8, "iterations": 50}
    spaces = [{"learning_rate": [0.1, 0.2]}, {"bins": [16, 32]}]
    trials = draw_trials(spaces, values, 3, 0)
    known = trials[1].settings
    candidates = [{"bins": 8}, known, {"bins": 32, "iterations": 5}, {"iterations": 5, "bins": 32}]
    found = with_candidates(trials, candidates, spaces, values)
    assert [trial.origin for trial in found] == ["as given", "candidate", "drawn", "drawn"]
    assert found[1].settings == candidates[2]
    assert [found[0], *found[2:]] == trials


def test_trials_take_the_spaces_in_turn():
    """Each optimiser has its own rates: no trial mixes them."""
    spaces = [{"learning_rate": [1.0, 2.0, 3.0]}, {"optimiser": ["adam"], "learning_rate": [0.1, 0.2]}]
    found = drawn(spaces, {"learning_rate", "optimiser"}, 5)
    assert [trial.get("optimiser") for trial in found[1:]] == [None, "adam", None, "adam"]
    for trial in found[1:]:
        assert (trial["learning_rate"] < 1) == ("optimiser" in trial)
    everything = drawn(spaces, {"learning_rate", "optimiser"}, 64)
    assert len(everything) == 1 + 3 + 2


def test_more_trials_begin_with_the_same_ones():
    mixed = [{"bins": [4, 8], "iterations": [5, 10, 20], "learning_rate": {"log_uniform": [1e-3, 1.0]}}]
    for spaces in ([SPACE], mixed):
        whole = drawn(spaces, {"learning_rate", "bins", "iterations"}, 40, 3)
        assert drawn(spaces, {"learning_rate", "bins", "iterations"}, 9, 3) == whole[:9]


@pytest.mark.parametrize("seed", range(5))
def test_few_draws_cover_every_axis_evenly(seed):
    """A net in base 2: of 16 draws, one falls into each sixteenth of an axis, and one into each quarter of an
    axis at each of the four values of another. Independent draws leave a third of them out."""
    space = [{"bins": [4, 8, 16, 32], "learning_rate": {"log_uniform": [1e-4, 1.0]}}]
    found = drawn(space, {"bins", "learning_rate"}, 17, seed)[1:]
    sixteenths = [int(4 * np.log10(trial["learning_rate"] / 1e-4)) for trial in found]
    assert sorted(sixteenths) == list(range(16))
    quarters = Counter((trial["bins"], place // 4) for trial, place in zip(found, sixteenths))
    assert len(quarters) == 16 and set(quarters.values()) == {1}


def test_logarithms_of_a_continuous_axis_are_uniform_and_rounded_to_three_digits():
    space = [{"learning_rate": {"log_uniform": [1e-4, 1e-1]}, "bins": {"log_uniform": [8, 512]}}]
    found = drawn(space, {"learning_rate", "bins"}, 2001)[1:]
    rates, bins = (np.array([trial[name] for trial in found]) for name in ("learning_rate", "bins"))
    shares = np.log10(rates) / 3 + 4 / 3
    assert kstest(shares, "uniform").pvalue > 0.01 and rates.min() >= 1e-4 and rates.max() <= 1e-1
    assert all(float(f"{rate:.3g}") == rate for rate in rates)
    assert abs(np.corrcoef(shares, np.log(bins))[0, 1]) < 0.1
    assert all(type(trial["bins"]) is int for trial in found) and bins.min() >= 8 and bins.max() <= 512
    assert len({str(trial) for trial in found}) == 2000
    assert found != drawn(space, {"learning_rate", "bins"}, 2001, 1)[1:]


BEYOND = [  # axis, value, what was tried beyond, the next number
    ([0.1, 0.3, 1.0], 1.0, [], 3.33),
    ([0.1, 0.3, 1.0], 1.0, [3.33], None),
    ([0.1, 0.3, 1.0], 3.33, [3.33], 11.1),
    ([0.1, 0.3, 1.0], 0.3, [], None),
    ([0.1, 0.3, 1.0], 0.1, [], 0.0333),
    ([0.1, 0.3, 1.0], 0.1, [3.33], 0.0333),
    ([0.1, 0.3, 1.0], 20.0, [], 66.7),
    ([0.0, 1e-5, 1e-4, 1e-3], 0.0, [], None),
    ([0.0, 1e-5, 1e-4, 1e-3], 1e-5, [], None),
    ([0.0, 0.5, 1.0], 1.0, [], 1.5),
    ([0.0, 0.1, 0.2, 0.3], 0.0, [], None),
    ([0.1, 0.2, 0.3], 0.1, [], None),  # zero is not positive
    ([-0.1, 0.0, 0.1], -0.1, [], -0.2),
    ([60, 120], 120, [], 240),
    ([2, 4, 6, 8], 8, [], 10),
    ([2, 4, 6, 8], 2, [], None),
    ([100, 300, 600, 1000], 1000, [], 1400),
    ([2, 3, 5], 5, [], 8),
    ([1, 2], 1, [], None),
    ([10, 11], 10, [], 9),
    ([256], 256, [], None),
    (["a", "b"], "a", [], None),
    ([False, True], True, [], None),
    ([0.1, 1.0], None, [], None),
    ({"log_uniform": [0.001, 1.0]}, 0.6, [], 1.9),
    ({"log_uniform": [0.001, 1.0]}, 0.4, [], None),
    ({"log_uniform": [0.001, 1.0]}, 0.0019, [], 0.000601),
    ({"log_uniform": [0.001, 1.0]}, 0.0021, [], None),
    ({"log_uniform": [0.001, 1.0]}, 0.6, [1.9], None),
    ({"log_uniform": [0.001, 1.0]}, 1.9, [1.9], 6.01),
    ({"log_uniform": [0.001, 1.0]}, 0.0, [], None),
    ({"log_uniform": [1, 100]}, 2, [], None),
]


@pytest.mark.parametrize(("axis", "value", "reached", "expected"), BEYOND, ids=map(str, BEYOND))
def test_an_axis_is_continued_beyond_the_end_at_which_a_value_is(axis, value, reached, expected):
    found = beyond(axis, value, reached)
    assert found == expected and type(found) is type(expected)


def test_the_settings_as_they_are_belong_to_the_space_of_their_words():
    spaces = [
        {"head": ["mlp"], "optimiser": ["adam"], "momentum": [0.9]},
        {"head": ["linear"], "kind": ["a", "b"]},
        {"head": ["mlp"], "kind": ["a", "b"]},
        {"head": ["linear"], "optimiser": ["adam"]},
    ]

    def place(head, optimiser, kind="a"):
        values = {"head": head, "optimiser": optimiser, "kind": kind, "momentum": 0.5}
        return draw_trials(spaces, values, 1, 0)[0].space

    assert [place("mlp", "adam"), place("linear", "sgd"), place("mlp", "sgd")] == [0, 1, 2]
    assert place("linear", "adam") == 1 and place("linear", "sgd", "other") == 1
    trials = draw_trials(spaces, {"head": "none", "optimiser": "sgd", "kind": "a", "momentum": 0.5}, 9, 0)
    assert [trial.space for trial in trials[1:5]] == [0, 1, 2, 3]
    assert [trial.origin for trial in trials[:2]] == ["as given", "drawn"]


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_the_declared_spaces_hold_values_that_a_method_has(name):
    values = load_class(name)(bits=8).hyperparameters()
    spaces = restricted(catalogue()[name].spaces, values)
    trials = draw_trials(spaces, values, 20, 0)
    assert all(set(trial.settings) <= set(values) for trial in trials)
    assert 0 <= trials[0].space < len(spaces)
