"""Codes in the course of a training: what an epoch's record says of them, counted by hand."""

import logging
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from refusing import refused
from resuming import killed_and_resumed

from methods.base import TrainingSet
from methods.base import watch as module
from methods.base.catalogue import load_class
from methods.base.deep import DeepHashing
from methods.base.watch import CodeWatch
from workflow.scripts import train_and_encode

ITEMS, BITS = 140, 6
LABELS = np.arange(ITEMS) % 4
SEEN = []


@dataclass(kw_only=True)
class Falling(DeepHashing):
    """Every output falls by and by, so all bits end at 0; keeps what it was given."""

    def loss(self, outputs, batch):
        SEEN[-1].append(outputs.detach().numpy().copy())
        return outputs.mean()

    def start_epoch(self, training):
        super().start_epoch(training)
        SEEN.append([])


def fitted(lines, file=None, **more):
    SEEN.clear()
    items = np.random.default_rng(0).normal(size=(ITEMS, 5)).astype(np.float32)
    given = TrainingSet(items, None, labels=LABELS, log=lines.append, checkpoint=file)
    settings = {"bits": BITS, "epochs": 12, "batch_size": 16, "learning_rate": 0.3}
    return Falling(**settings | more).fit(given)


def test_an_epoch_says_what_its_second_half_put_out_and_when_it_collapsed():
    lines = []
    fitted(lines)
    assert len(lines) == len(SEEN) == 12
    for line, batches in zip(lines, SEEN, strict=True):
        assert len(batches) == 9
        signs = np.concatenate(batches[4:]) > 0
        constant = sum(len(set(column)) == 1 for column in signs.T.tolist())
        codes = len({tuple(row) for row in signs.tolist()})
        assert (line["constant_bits"], line["distinct_codes"]) == (constant, codes)
    collapsed = [line["epoch"] for line in lines if "collapsed" in line]
    assert collapsed[0] > 1 and collapsed == list(range(collapsed[0], 13))
    assert lines[-1]["collapsed"] == "6 of 6 bits are constant, 1 distinct code of 4 classes"
    # In batches of 80 the second half has 60 items: too few to tell.
    few = []
    fitted(few, batch_size=80, learning_rate=3.0)
    assert few[-1]["distinct_codes"] == 1 and "collapsed" not in few[-1]


def test_a_training_ends_after_so_many_collapsed_epochs_in_a_row():
    lines = []
    never = fitted(lines)
    since = next(line["epoch"] for line in lines if "collapsed" in line)
    for most in (1, 3):
        ended = []
        method = fitted(ended, end_collapsed=most)
        before = lines[: since + most - 1]
        assert [line["objective"] for line in ended] == [line["objective"] for line in before]
        assert [line.get("ended") for line in ended[:-1]] == [None] * (len(ended) - 1)
        assert ended[-1]["ended"] == f"codes collapsed in {most} epochs in a row"
        assert not np.array_equal(method.raw_scores(np.eye(5)), never.raw_scores(np.eye(5)))
    whole = []
    fitted(whole, end_collapsed=13)
    assert [line["objective"] for line in whole] == [line["objective"] for line in lines]


def test_a_resumed_training_counts_the_collapsed_epochs_before_it(tmp_path):
    lines = []
    whole = fitted(lines, end_collapsed=3)

    def fit(log, checkpoint):
        return fitted(SimpleNamespace(append=log), file=checkpoint, end_collapsed=3)

    resumed, _, after = killed_and_resumed(fit, tmp_path / "run" / "mark.npz", len(lines) - 2)
    assert [line["objective"] for line in after] == [line["objective"] for line in lines]
    assert "collapsed" in after[-2]  # before the kill
    assert np.array_equal(resumed.raw_scores(np.eye(5)), whole.raw_scores(np.eye(5)))


def test_a_training_ends_in_the_step_in_which_its_loss_stops_being_finite():
    with refused("the loss is not finite in epoch 1"):
        fitted([], learning_rate=1e38)
    # The loss is the mean of these outputs.
    assert len(SEEN) == 1 and len(SEEN[0]) < 9
    finite = [bool(torch.isfinite(torch.from_numpy(outputs).mean())) for outputs in SEEN[0]]
    assert finite == [True] * (len(finite) - 1) + [False]


def test_a_watch_leaves_the_training_as_it_is(monkeypatch):
    watched = fitted([]).state()
    monkeypatch.setattr(CodeWatch, "see", lambda self, *given: None)
    for name, value in fitted([]).state().items():
        assert np.array_equal(watched[name], value), name


def test_few_items_at_once_and_labels_of_several_kinds(monkeypatch):
    monkeypatch.setattr(module, "MOST_ITEMS", 100)
    several = np.eye(4, dtype=np.uint8)[LABELS] | np.eye(4, dtype=np.uint8)[::-1][LABELS]
    for labels, counts in ((LABELS, [35] * 4), (several, [70] * 4), (None, None)):
        watch = CodeWatch(2, labels)
        assert watch.class_counts is None if counts is None else watch.class_counts.tolist() == counts
        watch.start([40, 40, 40, 40, 40])
        for step in range(5):
            watch.see(step, torch.tensor([[1.0, step - 3.5]]).repeat(40, 1), np.arange(40))
        # Of the last 80 items: the first bit is always 1, the second is 0 and then 1.
        found = watch.finish(unused_bits=0)
        assert (found["constant_bits"], found["distinct_codes"]) == (1, 2)
        # Half of the bits is not more than half; two codes are fewer than four classes.
        assert found.get("collapsed") == (None if labels is None else "2 distinct codes of 4 classes")


def test_the_average_precision_of_an_epoch_is_that_of_the_codes_of_its_second_half():
    generator = np.random.default_rng(1)
    outputs, places = generator.normal(size=(4, 40, BITS)), generator.permutation(160)
    given = TrainingSet(np.zeros((160, 1)), None, average_precision=lambda *measured: measured)
    watch = CodeWatch(BITS, None)
    watch.start([40] * 4)
    for step, seen in enumerate(places.reshape(4, 40)):
        watch.see(step, torch.from_numpy(outputs[step]), seen)
    codes, seen, bits = watch.average_precision(given)
    packed = np.packbits(outputs[2:].reshape(80, BITS) > 0, axis=1)
    assert [part.tolist() for part in codes] == [packed[:20].tolist(), packed[20:].tolist()] and bits == BITS
    assert [part.tolist() for part in seen] == [places[80:100].tolist(), places[100:].tolist()]
    assert watch.average_precision(TrainingSet(np.zeros((160, 1)), None)) is None
    watch.start([60])
    assert watch.average_precision(given) is None
    watch.see(0, torch.from_numpy(outputs[0]), places[:40])
    assert watch.average_precision(given) is None


def test_bits_without_a_use_are_no_sign_of_collapse():
    watch = CodeWatch(5, None)
    watch.start([70])
    outputs = torch.tensor([[1.0, -1.0], [-1.0, 1.0]]).repeat(35, 1) @ torch.eye(2, 5) + 1e-3
    watch.see(0, outputs, np.arange(70))
    counts = {"constant_bits": 3, "distinct_codes": 2}
    assert watch.finish() == counts | {"collapsed": "3 of 5 bits are constant"}
    assert watch.finish(unused_bits=3) == counts


@pytest.mark.parametrize(("name", "kind"), [("csq", "centres"), ("orthohash", "codes"), ("dpn", "codes")])
def test_bits_that_all_class_codes_share_are_unused(name, kind, tmp_path):
    """Of Sylvester's first four rows, the columns 0, 4, 8, ... of 64 are constant; also of a loaded model."""
    told = []
    settings = {kind: "hadamard", "bits": 64, "device": "cpu", "epochs": 2}
    method = load_class(name)(**settings)
    method.fit(TrainingSet(np.eye(4, 6, dtype=np.float32)[LABELS], None, labels=LABELS, log=told.append))
    method.save(tmp_path)
    assert method.unused_bits() == load_class(name).load(tmp_path).unused_bits() == 16
    spread = load_class(name)(**settings | {kind: "bernoulli", "bits": 12})
    spread.fit(TrainingSet(np.eye(4, 6, dtype=np.float32)[LABELS], None, labels=LABELS))
    codes = spread.criterion_state["codes"]
    assert spread.unused_bits() == sum(len(set(column)) == 1 for column in codes.T.tolist())


def test_a_run_records_since_when_it_is_collapsed_and_says_so(caplog):
    found = train_and_encode._Collapse("tiny/dtsh/48 bits/seed 0")
    with caplog.at_level(logging.INFO, logger="tiebench"):
        for epoch, reason in enumerate([None, "a", None, None, "b", "c"], start=1):
            found({"epoch": epoch} | ({"collapsed": reason} if reason else {}))
            found({"objective": 1.0})
    assert (found.epoch, found.ended) == (5, None)
    assert [r.getMessage().removeprefix("tiny/dtsh/48 bits/seed 0: ") for r in caplog.records] == [
        "the codes collapsed in epoch 2: a",
        "the codes recovered in epoch 3",
        "the codes collapsed in epoch 5: b",
    ]
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="tiebench"):
        found({"epoch": 7, "collapsed": "d", "ended": "codes collapsed in 3 epochs in a row"})
    assert (found.epoch, found.ended) == (5, 7)
    assert "ended after epoch 7: codes collapsed in 3 epochs" in caplog.records[-1].getMessage()


@pytest.mark.parametrize(
    ("name", "more", "unused"),
    [
        ("onehot", {}, 6),
        ("classifier_codes", {"centres": "binary"}, 8),
        ("classifier_codes", {}, 1),  # of Sylvester's matrix, the first column
        ("fsdh", {"anchors": 20, "centres": "hadamard", "bits": 64}, 16),
        ("itq", {"bits": 4}, 0),
    ],
)
def test_bits_that_a_method_leaves_unused_are_constant(name, more, unused):
    items = np.random.default_rng(0).normal(size=(ITEMS, 5)).astype(np.float32)
    items[:, :4] += 4 * np.eye(4)[LABELS]
    settings = {"bits": 10} | more
    method = load_class(name)(**settings).fit(TrainingSet(items, None, labels=LABELS))
    codes = method.encode(items)
    assert method.unused_bits() == unused
    constant = (codes.all(axis=0) | ~codes.any(axis=0)).sum()
    assert constant >= unused if "centres" not in more and name != "onehot" else constant == unused
