"""Tuning: sees the training set alone, gives every method the same trials, and keeps the best."""

import dataclasses
import json
from collections import Counter
from dataclasses import asdict
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

import tiebench
from datasets import affinity
from methods.base import Diverged, Refusal
from methods.base.catalogue import load_class
from tiebench import metrics
from workflow.scripts import tune_method
from workflow.stages.protocol_data import ProtocolData
from workflow.tuning.files import choices
from workflow.tuning.search import (
    KEEP,
    Evaluated,
    confirm,
    ends,
    ranked,
    search,
    too_much_work,
    widen,
)
from workflow.tuning.spaces import Trial
from workflow.tuning.validation import TooLong, partition, validation_score, with_training_items

SHARES = {"fit": 0.5, "query": 0.2}


def quiet(record):
    """What a search tells is not asked here."""


def in_file(tmp_path, evaluate, *limit, **more):
    return Evaluated(tmp_path / "mark.jsonl", evaluate, *limit, **more)


def test_partitions_are_disjoint_and_cover_the_training_set():
    parts = partition(100, {"fit": 0.6, "query": 0.1}, 3)
    assert [len(part) for part in parts] == [60, 10, 30]
    assert sorted(np.concatenate(parts)) == list(range(100))
    assert not np.array_equal(parts[0], partition(100, {"fit": 0.6, "query": 0.1}, 4)[0])


@pytest.mark.parametrize(("share", "joined"), [(0.0, 0), (0.25, 10), (0.5, 30), (0.9, 60), (1.0, 60)])
def test_the_validation_database_has_the_form_of_the_protocols(share, joined):
    """As large a share of it is fitted on as of the test's database, as far as there are such items."""
    fit, _, rest = partition(100, {"fit": 0.6, "query": 0.1}, 3)
    database = with_training_items(fit, rest, share)
    assert len(set(database)) == len(database)
    assert np.isin(database, fit).sum() == joined and np.isin(rest, database).all() == (share < 1)
    assert share > 0.5 or np.isclose(np.isin(database, fit).mean(), share)


def test_the_best_trial_wins_against_noise_that_repeats_average_out():
    rungs, qualities = (1, 3, 8), np.linspace(0, 1, 32)
    values = qualities[:, None] + np.random.default_rng(0).normal(0, 0.1, (32, max(rungs)))
    made = [Trial({"place": place}) for place in range(32)]
    best = search(made, lambda trial, repeat: {"score": values[trial["place"], repeat]}, quiet, rungs)
    survivors = [index for index, trial in enumerate(made) if len(trial.evaluations) == rungs[-1]]
    assert len(survivors) == 32 // KEEP // KEEP
    assert best == max(survivors, key=lambda index: made[index].mean)
    assert best >= 27
    assert Counter(trial.rung for trial in made) == {1: 24, 2: 6, 3: 2}
    for trial, row in zip(made, values):
        assert [one["score"] for one in trial.evaluations] == row[: len(trial.evaluations)].tolist()


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_a_trial_without_a_score_loses_and_is_not_tried_again(higher_is_better):
    def evaluate(trial, repeat):
        return {"score": trial[repeat]}

    trials = [[None], [0.9, None], [0.2, 0.1, 0.3, 0.2], [0.4, 0.5, 0.4, 0.5]]
    made = list(map(Trial, trials))
    best = search(made, evaluate, quiet, (3, 4), higher_is_better)
    assert best == (3 if higher_is_better else 2)
    assert [len(trial.evaluations) for trial in made[:2]] == [1, 2]
    assert [trial.mean for trial in made[:2]] == [None, None]
    made = list(map(Trial, trials[:2]))
    best = search(made, evaluate, quiet, (1, 2), higher_is_better)
    assert best == 1 and made[best].mean is None  # the script ends with the reason


def test_an_interrupted_search_continues_with_the_scores_it_has(tmp_path):
    made, trials = [], [{"x": 1.0}, {"x": 2.0}, {"x": 3.0}]

    def evaluate(trial, repeat):
        if len(made) == 4:
            raise KeyboardInterrupt
        made.append((trial["x"], repeat))
        if trial["x"] == 2.0:
            raise Refusal("two is\ntoo much")
        return trial["x"] / (1 + repeat)

    with pytest.raises(KeyboardInterrupt):
        search(list(map(Trial, trials)), in_file(tmp_path, evaluate), quiet, (1, 3))
    with (tmp_path / "mark.jsonl").open("a") as file:
        file.write('{"trial": "cut')  # as a full disk leaves it
    before, made[:] = list(made), []
    found = list(map(Trial, trials))
    best = search(found, in_file(tmp_path, evaluate), quiet, (1, 3))
    assert not set(made) & set(before) and len(made) + len(before) == 5
    scores = [[one["score"] for one in trial.evaluations] for trial in found]
    assert best == 2 and scores == [[1.0], [None], [3.0, 1.5, 1.0]]
    refused = found[1].evaluations[0]
    assert refused.pop("seconds") >= 0
    assert refused == {"score": None, "status": "refused", "reason": "two is too much"}


@pytest.mark.parametrize(("slow", "best"), [((), 7), ((7.0,), 6), ((7.0, 6.0), 5), (tuple(range(8)), None)])
def test_the_next_best_takes_part_where_no_finalist_keeps_its_score(tmp_path, slow, best):
    """Of eight trials, two are finalists; those of `slow` take too long on the third partition."""

    def evaluate(trial, repeat):
        if repeat == 2 and trial["x"] in slow:
            raise TooLong("the fit took more than 5 seconds")
        return trial["x"]

    trials = [Trial({"x": float(x)}) for x in range(8)]
    found = search(trials, in_file(tmp_path, evaluate), quiet, (2, 3))
    promoted = [trial.settings["x"] for trial in trials if trial.rung == 2]
    if best is None:
        assert trials[found].mean is None and len(promoted) == 8
    else:
        assert trials[found].settings["x"] == best
        assert promoted == ([5.0, 6.0, 7.0] if len(slow) == 2 else [6.0, 7.0])


def test_a_longer_search_computes_only_its_new_fits(tmp_path):
    asked = []

    def found(numbers, rungs):
        asked.clear()
        trials = [Trial({"x": x}) for x in numbers]
        best = search(trials, in_file(tmp_path, score), quiet, rungs)
        return best, [trial.evaluations for trial in trials]

    def score(trial, repeat):
        asked.append((trial["x"], repeat))
        return trial["x"] * (1 + repeat)

    short = found((1.0, 2.0), (1, 2))
    assert asked == [(1.0, 0), (2.0, 0), (2.0, 1)]
    long = found((1.0, 2.0, 3.0), (1, 3))
    assert asked == [(3.0, 0), (3.0, 1), (3.0, 2)]
    assert long[0] == 2 and long[1][:2] == [short[1][0], short[1][1][:1]]
    again = found((1.0, 2.0, 3.0), (1, 3))
    assert asked == [] and again == long  # its seconds, too


@pytest.mark.parametrize(
    ("limit", "later", "seconds", "computed"),
    [
        (30, 60, 12.0, False),  # it ended, and would again
        (30, 60, 30.5, True),  # it was ended
        (30, None, 30.5, True),
        (60, 30, 60.5, False),
        (60, 30, 12.0, False),
        (60, 30, 42.0, True),
        (None, 30, 42.0, True),
        (None, 30, 12.0, False),
        (30, 30, 30.2, False),  # of a scored one, scoring counts, too
    ],
)
def test_an_evaluation_under_another_limit_is_kept_where_it_would_be_the_same(
    tmp_path, monkeypatch, limit, later, seconds, computed
):
    made, clock = [], [0.0]
    monkeypatch.setattr("workflow.tuning.search.time.process_time", lambda: clock[0])

    def evaluate(trial, repeat):
        made.append(trial)
        clock[0] += seconds
        if limit is not None and seconds > limit and not (limit == later):
            raise TooLong(f"the fit took more than {limit} seconds")
        return 0.5

    before = in_file(tmp_path, evaluate, limit)({"x": 1}, 0)
    assert before["seconds"] == seconds
    after = in_file(tmp_path, evaluate, later)({"x": 1}, 0)
    assert len(made) == (2 if computed else 1) and (computed or after == before)


@pytest.mark.parametrize("rungs", [(1,), (1, 2), (2, 3)])
def test_a_trial_without_a_score_is_replaced_whatever_the_reason(tmp_path, rungs):
    """1 and 4 are refused, 2 diverges, 3 and 5 take too long; a spare is refused, too."""
    asked = []
    reasons = {1: Refusal, 2: Diverged, 3: TooLong, 4: Refusal, 5: TooLong, 10: Refusal}
    status = {Refusal: "refused", Diverged: "diverged", TooLong: "too long"}

    def evaluate(trial, repeat):
        asked.append(trial["x"])
        if trial["x"] in reasons:
            raise reasons[trial["x"]](f"why not {trial['x']}")
        return trial["x"]

    trials = [Trial({"x": x}) for x in (1, 2, 3, 4, 5, 6)]
    spares = [Trial({"x": x}) for x in range(10, 18)]
    best = search(trials, in_file(tmp_path, evaluate), quiet, rungs, spares=spares)
    # Five spares and one for the refused spare: six trials have scores, as without losses.
    assert [trial.settings["x"] for trial in trials] == [1, 2, 3, 4, 5, 6, 10, 11, 12, 13, 14, 15]
    assert trials[best].settings == {"x": 15} and asked.count(16) == 0
    lost = {trial.settings["x"]: trial.evaluations[0] for trial in trials if trial.mean is None}
    assert {x: (one["status"], one["reason"]) for x, one in lost.items()} == {
        x: (status[error], f"why not {x}") for x, error in reasons.items()
    }
    # The best quarter is of these six, not of twelve.
    assert [trial.settings["x"] for trial in trials if trial.rung > 1] == ([15] if len(rungs) > 1 else [])
    found = {"search": {"rungs": rungs, "trials": 6}, "protocol": "p", "method": "m", "bits": 8}
    found |= {"chosen": best, "ends": [], "trials": [asdict(trial) for trial in trials]}
    assert yaml.safe_load(choices("mine", [found]))["tuned"]["p"]["m"]["search"]["tried"] == {8: 6}


def test_work_is_the_product_of_what_a_trial_changes():
    limits = [{"of": ["epochs", "width"], "most": 1000}, {"of": ["trees"], "most": 50}]
    for settings in ({"epochs": 100, "width": 10}, {"epochs": 1000}, {"trees": 50}, {"rate": 1e9}):
        assert too_much_work(settings, limits) is None
    assert too_much_work({"width": 10, "epochs": 101}, limits) == "epochs x width is 1010, more than 1000"
    assert too_much_work({"trees": 51, "epochs": 1}, limits) == "trees is 51, more than 50"


def test_a_changed_limit_of_work_decides_anew_and_keeps_scores(tmp_path):
    made = []

    def status(most, unlimited=()):
        limits = [{"of": ["epochs"], "most": most}]
        score = in_file(tmp_path, lambda *asked: made.append(asked) or 0.9, unlimited=unlimited, work=limits)
        return score({"epochs": 9}, 0)["status"]

    assert (status(5), made) == ("too much work", [])
    assert (status(9), status(5), status(9)) == ("scored", "too much work", "scored")
    assert status(5, [{"epochs": 9}]) == "scored" and len(made) == 1


AXES = {"rate": [0.1, 0.3, 1.0, 3.0], "depth": [2, 4, 6], "kind": ["a", "b"]}


def widened(score, settings, most, values=None, higher_is_better=True):
    """(best settings, settings of the further trials, how often each was scored) of a search that `settings`
    has won, whose score is score(**settings)."""
    trials = [Trial({"rate": 0.3, "depth": 4, "kind": "a"}), Trial(settings)]
    asked = Counter()

    def evaluate(chosen, repeat, refusals=False):
        asked[str(chosen)] += 1
        assert refusals == (len(trials[1].evaluations) == 2)
        return {"score": score(**(values or {}) | chosen)}

    for trial in trials:
        trial.evaluate(evaluate, 2)
    best = widen(trials, 1, [AXES], values or {}, most, evaluate, quiet, [1, 2], higher_is_better)
    return trials[best].settings, [trial.settings for trial in trials[2:]], asked


def test_a_best_trial_at_an_end_is_followed_beyond_it_until_it_is_inside():
    won = {"rate": 3.0, "depth": 4, "kind": "b"}

    def score(rate, depth, kind):
        return -abs(np.log(rate / 27))  # the best one of 3, 9, 27, 81

    best, further, asked = widened(score, won, 9)
    assert [settings["rate"] for settings in further] == [9.0, 27.0, 81.0]
    assert best == won | {"rate": 27.0}
    # The last one is not above the best on the first partition.
    assert [asked[str(settings)] for settings in further] == [2, 2, 1]
    best, further, _ = widened(lambda **settings: -score(**settings), won, 9, higher_is_better=False)
    assert best == won | {"rate": 27.0} and len(further) == 3
    best, further, _ = widened(score, won, 1)
    assert best == won | {"rate": 9.0} and len(further) == 1
    assert widened(score, won, 0)[1] == []
    assert widened(score, won | {"rate": 1.0}, 9)[1] == []  # inside


def test_a_trial_beyond_an_end_is_compared_on_the_same_partitions():
    """Its first score is below the mean of the best one, but above the first score of the best one."""
    scores = {3.0: [0.1, 0.9, 0.5], 9.0: [0.2, 1.0, 0.4], 27.0: [0.3, 0.7, 1.0]}
    trials = [Trial({"rate": 3.0})]

    def evaluate(settings, repeat, refusals=False):
        return {"score": scores[settings["rate"]][repeat]}

    trials[0].evaluate(evaluate, 3)
    best = widen(trials, 0, [{"rate": AXES["rate"]}], {}, 2, evaluate, quiet, [1, 2, 3])
    assert best == 1 and [len(trial.evaluations) for trial in trials] == [3, 3, 2]
    assert [trial.rung for trial in trials[1:]] == [3, 2]


def test_axes_take_turns_and_end_where_nothing_is_gained():
    won = {"rate": 3.0, "depth": 6, "kind": "b"}
    best, further, _ = widened(lambda rate, depth, kind: rate, won, 5)
    found = [(one["rate"], one["depth"]) for one in further]
    assert found == [(3.0, 8), (9.0, 6), (27.0, 6), (81.0, 6), (243.0, 6)]
    assert best["rate"] == 243.0 and best["depth"] == 6
    best, further, _ = widened(lambda rate, depth, kind: rate + depth, won, 4)
    assert [(one["rate"], one["depth"]) for one in further] == [(3.0, 8), (9.0, 8), (9.0, 10), (27.0, 10)]


def test_what_a_method_refuses_is_the_end_of_its_axis():
    def score(rate, depth, kind):
        return None if rate > 10 else rate

    best, further, asked = widened(score, {"rate": 3.0, "depth": 4, "kind": "a"}, 9)
    assert best["rate"] == 9.0 and [one["rate"] for one in further] == [9.0, 27.0]
    assert asked[str(further[1])] == 1


def test_the_settings_as_they_are_are_followed_from_their_own_values():
    """They may lie beyond the axis, and name less than the space does."""
    values = {"rate": 5.0, "depth": 4, "kind": "c"}
    best, further, _ = widened(lambda rate, depth, kind: -abs(np.log(rate / 45)), {}, 9, values=values)
    assert further == [{"rate": 15.0}, {"rate": 45.0}, {"rate": 135.0}] and best == {"rate": 45.0}


def test_the_ends_of_a_choice_are_those_beyond_which_nothing_was_tried():
    trials = [Trial({"depth": 6}), Trial({"depth": 6, "kind": "b"}, origin="beyond rate")]
    values = {"rate": 3.0, "depth": 4, "kind": "a"}
    assert ends(trials[:1], 0, [AXES], values) == {"rate": 9.0, "depth": 8}
    trials[1].settings["rate"] = 9.0  # whether it was better or has no score
    assert ends(trials, 0, [AXES], values) == {"depth": 8}
    assert ends(trials, 1, [AXES], values) == {"rate": 27.0, "depth": 8}
    assert ends([Trial({"rate": 0.3})], 0, [AXES], values) == {}


@pytest.mark.parametrize("sign", [1, -1])
def test_rungs_of_larger_shares_choose_among_the_best_of_the_rungs_before(sign):
    """The best one and the next best on the partitions that they have in common, on scores of their own."""
    before = [[0.9, 0.8, 0.7], [0.6, 0.9], [0.8, 0.6], [0.9, 0.3], [0.99], [0.95, None]]
    trials = [Trial({"place": place}) for place in range(len(before))]
    for trial, scores in zip(trials, before):
        trial.evaluations = [{"score": None if one is None else sign * one} for one in scores]
    after = {0: [0.5, 0.7], 1: [0.5, 0.9], 2: [0.9, 0.5]}

    def evaluate(settings, repeat):
        return {"score": sign * after[settings["place"]][repeat]}

    order = ranked(trials, 0, (1, 2, 3), sign == 1)
    assert order == [0, 1, 2, 3]
    order = confirm(trials, order, evaluate, quiet, {"trials": 3, "partitions": 2}, 4, sign == 1)
    assert order == [1, 2, 0]  # 1 is as good as 2, and earlier
    assert [[len(scores) for scores in trial.confirmations] for trial in trials] == [*[[2]] * 3, *[[]] * 3]
    order = confirm(trials, order, evaluate, quiet, {"trials": 2, "partitions": 1}, 5, sign == 1)
    assert order == [2, 1] and trials[2].last_mean == sign * 0.9
    assert [trial.rung for trial in trials] == [4, 5, 5, 0, 0, 0]
    assert [len(trial.evaluations) for trial in trials] == [len(scores) for scores in before]


def test_trials_stay_as_they_were_where_none_has_a_score_on_a_larger_share():
    trials = [Trial({"place": place}, evaluations=[{"score": 0.5 + place}]) for place in range(3)]

    def lost(settings, repeat):
        return {"score": None if repeat else 0.5}

    order = ranked(trials, 2, (1,))
    assert order == [2, 1, 0]
    assert confirm(trials, order, lost, quiet, {"trials": 2, "partitions": 4}, 2) == order
    assert trials[2].last_mean == 2.5  # of the rungs before
    # The one without a score ends it.
    assert [[len(scores) for scores in trial.confirmations] for trial in trials] == [[], [2], [2]]


def test_a_search_without_any_score_is_not_continued():
    assert widened(lambda **settings: None, {"rate": 3.0, "depth": 6, "kind": "b"}, 9)[1] == []


def test_only_beyond_an_axis_any_error_of_a_value_is_a_limit(tmp_path):
    def evaluate(settings, repeat):
        raise ValueError("momentum must be below 1")

    evaluated = in_file(tmp_path, evaluate)
    with pytest.raises(ValueError, match="below 1"):
        evaluated({"momentum": 1.8}, 0)
    found = evaluated({"momentum": 1.8}, 0, refusals=True)
    assert (found["score"], found["status"], found["reason"]) == (None, "refused", "momentum must be below 1")


@pytest.fixture
def protocol():
    rng = np.random.default_rng(1)
    labels = np.repeat(np.arange(4), 50)
    features = (np.eye(4)[labels] + 0.3 * rng.standard_normal((200, 4))).astype(np.float32)
    training = np.sort(rng.permutation(200)[:120])
    made = object.__new__(ProtocolData)
    made.items, made.labels = features, labels
    made.affinity = affinity.make({"kind": "class"}, labels)
    # 30 of the 100 items of the database are training items.
    database = np.concatenate([training[:30], np.setdiff1d(np.arange(200), training)[:70]])
    made.split = SimpleNamespace(training=training, database=database)
    made.network = made.weights = made._kept = None
    return made


def rows_of(features):
    """The items that features are of, where feature 0 is their number."""
    return np.asarray(features[:])[:, 0].astype(int)


def bits_of(rows):
    return (rows[:, None] * np.arange(7, 63, 7) % 11) > 5


@pytest.mark.parametrize(
    ("metric", "normaliser", "more"),
    [
        *(("ap", "hits", {}), ("ap@5", "hits", {}), ("ap@5", "relevant", {}), ("precision@5", "hits", {})),
        ("ap", "hits", {"hold_out": "classes"}),
    ],
)
def test_fit_queries_and_database_are_the_parts_of_a_partition(protocol, metric, normaliser, more):
    """What is held out is not fitted, what is fitted does not query, and nothing else is read."""
    protocol.items = np.tile(np.arange(200, dtype=np.float32)[:, None], 4)
    read = []

    class Recorded(load_class("lsh")):
        def fit(self, training_set):
            read.append((rows_of(training_set.items), training_set.labels))
            return self

        def encode(self, items):
            read.append((rows_of(items), None))
            return bits_of(read[-1][0])

    labels, training = protocol.labels, protocol.split.training
    found = validation_score(Recorded, protocol, 8, {}, metric, SHARES | more, 2, None, 3, normaliser)
    parts = partition(120, SHARES | more, (3, 2, 1), labels[training])
    fit, query, rest = (training[part] for part in parts)
    database = with_training_items(fit, rest, 0.3)
    for (rows, _), expected in zip(read, (fit, query, database), strict=True):
        assert np.array_equal(rows, expected)
    assert not {*fit} & {*query} and not {*query} & {*database}
    scores = tiebench.score(
        bits_of(query), bits_of(database), labels[query], labels[database], at=5, ap_at_normaliser=normaliser
    )
    assert found == scores.means[metric]


def test_neighbours_of_validation_queries_are_those_within_the_validation_database(protocol):
    """Those of the protocol's queries say nothing of items of its training set."""
    features = protocol.items.astype(np.float64)
    split = {"query": np.arange(9), "database": np.arange(9, 200)}
    protocol.affinity = affinity.make({"kind": "neighbours", "k": 3}, None, features, **split)
    found = validation_score(load_class("sign"), protocol, 4, {"threshold": "mean"}, "ap", SHARES, 0)
    fit, query, rest = (protocol.split.training[part] for part in partition(120, SHARES, (0, 0, 1)))
    database, mean = with_training_items(fit, rest, 0.3), features[fit].mean(axis=0)
    near = np.argsort(((features[query][:, None] - features[database]) ** 2).sum(axis=2), axis=1)[:, :3]
    relevant = np.zeros((len(query), len(database)), int)
    np.put_along_axis(relevant, near, 1, axis=1)
    distances = ((features[query] > mean)[:, None] != (features[database] > mean)).sum(axis=2)
    assert found == pytest.approx(tiebench.score_array(-distances, relevant).means["ap"])


def test_another_search_has_other_parts_and_other_seeds(protocol):
    seeds = []

    class Recorded(load_class("lsh")):
        def fit(self, training_set):
            seeds.append(self.seed)
            return super().fit(training_set)

    scores = [
        validation_score(Recorded, protocol, 8, {}, "ap", SHARES, repeat, seed=seed)
        for seed in (0, 1, 0)
        for repeat in (0, 1)
    ]
    assert len(set(scores[:4])) == len(set(seeds[:4])) == 4
    assert scores[4:] == scores[:2] and seeds[4:] == seeds[:2]


def test_settings_without_a_limit_have_none(tmp_path):
    evaluated = in_file(tmp_path, None, 30, unlimited=[{}, {"x": 1}])
    assert [evaluated.limit(settings) for settings in ({}, {"x": 1}, {"x": 2})] == [None, None, 30]


def test_a_trial_that_the_method_refuses_has_no_score(protocol):
    """itq makes at most four bits from four dimensions."""
    with pytest.raises(Refusal, match="at most 4 bits"):
        validation_score(load_class("itq"), protocol, 5, {}, "ap", SHARES, 0)


def test_a_trial_that_takes_too_long_ends(protocol, monkeypatch):
    """It ends at the first epoch that begins after its time, and is no error."""
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr("workflow.tuning.search.time.process_time", lambda: next(clock))
    logged = []

    class Slow(load_class("talr_ap")):
        def start_epoch(self, training):
            logged.append(training.epoch)
            super().start_epoch(training)

    settings = {"epochs": 9, "tanh_scale": 5.0}
    with pytest.raises(TooLong, match="more than 35 seconds"):
        validation_score(Slow, protocol, 4, settings, "ap", SHARES, 0, seconds=35)
    assert logged == [0, 1, 2, 3]
    with pytest.raises(TooLong, match="more than 5 seconds"):  # it logs nothing
        validation_score(load_class("lsh"), protocol, 4, {}, "ap", SHARES, 0, seconds=5)
    assert validation_score(Slow, protocol, 4, settings, "ap", SHARES, 0, seconds=1000) > 0


def test_validation_parts_of_held_out_classes_share_none_with_the_fit():
    labels = np.repeat(np.arange(10), 20)
    held = []
    for seed in range(5):
        shares = {"fit": 0.6, "query": 0.1, "hold_out": "classes"}
        fit, query, database = partition(200, shares, seed, labels)
        assert sorted(np.concatenate([fit, query, database])) == list(range(200))
        assert set(labels[query]) == set(labels[database]) and len(set(labels[query])) == 4
        assert not set(labels[fit]) & set(labels[query])
        assert (len(fit), len(query)) == (120, 20)
        held.append(tuple(sorted(set(labels[query]))))
    assert len(set(held)) > 1
    with pytest.raises(ValueError, match="four classes"):
        partition(60, shares, 0, labels[:60])


@pytest.fixture
def tune(monkeypatch, tmp_path):
    """`tune_method.work` of ITQ with a made-up score: what it writes, and which fits it asked for."""
    monkeypatch.chdir(tmp_path)
    asked = []

    def run(score=lambda settings: 0.5, data=None, **changes):
        asked.clear()

        def scored(method, protocol, bits, settings, metric, shares, *more):
            asked.append((settings.get("iterations"), shares["fit"], *more))
            return score(settings)

        made = SimpleNamespace(fingerprints=data or {})
        monkeypatch.setattr("workflow.tuning.validation.validation_score", scored)
        monkeypatch.setattr("workflow.stages.protocol_data.ProtocolData", lambda *given: made)
        rule = {"metric": "ap", "rungs": [1], "trials": 2, "widen": 0, "seed": 0, "seconds": None}
        settings = {"search": rule | {"shares": {"fit": 0.5, "query": 0.2}} | changes, "class": "itq"}
        settings |= {"hyperparameters": {}, "network": None, "spaces": [{"iterations": [7, 9]}]}
        settings |= {"affinity": {"kind": "class"}, "ap_at_normaliser": "min"}
        names = {
            "name": "mine",
            "protocol": "tiny",
            "method": "itq",
            "bits": 8,
            "output": tmp_path / "8.json",
        }
        files = dict.fromkeys(("weights", "protocol_folder", "dataset", "items"))
        tune_method.work(SimpleNamespace(settings=settings, **names, **files))
        return json.loads((tmp_path / "8.json").read_text()), list(asked)

    return run


@pytest.mark.parametrize(("seconds", "made"), [(3, ["kernels", "trial"]), (None, ["trial"])])
def test_kernels_are_compiled_before_a_trial_whose_seconds_count(tune, monkeypatch, seconds, made):
    """On a machine that has none yet, compiling them takes longer than a trial may."""
    happened = []
    monkeypatch.setattr("tiebench.compile.compile_kernels", lambda: happened.append("kernels"))
    tune(lambda settings: happened.append("trial") or 0.5, seconds=seconds, trials=1)
    assert happened == made


@pytest.mark.parametrize(
    "change",
    [
        {"metric": "ndcg"},
        {"seed": 1},
        {"trial_settings": {"iterations": 3}},
        {"shares": {"fit": 0.6, "query": 0.2}},
        {"data": {"split": "another"}},
    ],
)
def test_scores_of_other_fits_are_not_taken_for_these(tune, change):
    assert tune()[1] and not tune()[1]
    assert tune(**change)[1]


@pytest.mark.parametrize("higher", [True, False])
def test_the_best_of_the_last_rung_is_chosen_in_the_direction_of_the_metric(tune, monkeypatch, higher):
    cost = dataclasses.replace(metrics.METRICS["ap"], name="cost", higher_is_better=higher)
    monkeypatch.setitem(metrics.METRICS, "cost", cost)
    again = [{"fit": 0.7, "trials": 2, "partitions": 1}]

    def score(settings):
        return settings.get("iterations", 50) / 100

    found, asked = tune(score, metric="cost", confirm=again)
    values = [trial["settings"].get("iterations", 50) for trial in found["trials"]]
    assert values[found["chosen"]] == (max if higher else min)(values)
    assert [fit for _, fit, *_ in asked] == [0.5, 0.5, 0.7, 0.7]
    assert {normaliser for *_, normaliser in asked} == {"min"}


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_two_classes_at_least_are_fitted_on_and_two_held_out(share):
    labels = np.repeat(np.arange(4), 20)
    fit, *others = partition(80, {"fit": share, "query": 0.02, "hold_out": "classes"}, 0, labels)
    assert len(set(labels[fit])) == len(set(labels[np.concatenate(others)])) == 2


def test_of_trials_with_equal_scores_the_earlier_is_kept():
    trials = [Trial({"place": place}) for place in range(3)]
    assert search(trials, lambda trial, repeat: {"score": 0.5}, quiet, (1, 3)) == 0
