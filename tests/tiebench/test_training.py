"""Scores batch by batch in a training loop: equal to tiebench.score, whatever the batches and forms."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from test_score import assert_same

import tiebench
from tiebench.training import TieAwareRetrieval


def drawn(seed=0, queries=9, items=50, bits=13):
    generator = torch.Generator().manual_seed(seed)
    outputs = [torch.randn(n, bits, generator=generator) for n in (queries, items)]
    for some in outputs:
        some[0, 0] = 0.0  # not positive: bit 0
    return outputs, [torch.randint(3, (n,), generator=generator) for n in (queries, items)]


FORMS = {
    "outputs": lambda outputs: outputs,
    "with gradient": lambda outputs: outputs.clone().requires_grad_().tanh(),
    "half": lambda outputs: outputs.sign().half(),
    "bfloat16": lambda outputs: outputs.sign().bfloat16(),
    "NumPy": lambda outputs: outputs.numpy(),
    "bool": lambda outputs: outputs > 0,
    "0/1": lambda outputs: (outputs > 0).int(),
    "0/1 bytes": lambda outputs: (outputs > 0).byte(),
    "-1/+1": lambda outputs: torch.where(outputs > 0, 1, -1),
    "packed": lambda outputs: torch.from_numpy(np.packbits(outputs.numpy() > 0, axis=1)),
    "packed NumPy": lambda outputs: np.packbits(outputs.numpy() > 0, axis=1),
}


@pytest.mark.parametrize("bits", [1, 8, 13])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_equals_the_score_of_all_at_once(form, bits):
    outputs, labels = drawn(bits=bits)
    expected = tiebench.score(*(part > 0 for part in outputs), *labels, at=(3,), ap_at_normaliser="min")
    metric = TieAwareRetrieval(bits, at=(3,), ap_at_normaliser="min")
    for role, given_outputs, given_labels in zip(("query", "database"), outputs, labels):
        metric.update(FORMS[form](given_outputs), given_labels, role)
    assert_same(metric.scores(), expected)
    assert metric.compute() == expected.means


@given(st.lists(st.integers(1, 49), max_size=5), st.lists(st.integers(1, 8), max_size=3), st.booleans())
def test_batches_do_not_change_the_scores(of_database, of_queries, several_labels):
    outputs, labels = drawn(1)
    if several_labels:
        generator = torch.Generator().manual_seed(2)
        labels = [torch.randint(2, (len(part), 4), generator=generator) for part in outputs]
    metric = TieAwareRetrieval(13)
    sides = zip(("query", "database"), (of_queries, of_database), outputs, labels)
    for role, edges, given_outputs, given_labels in sides:
        edges = [0, *sorted(set(edges)), len(given_outputs)]
        for number, (begin, end) in enumerate(pairwise(edges)):
            some = given_labels[begin:end]
            # Labels of a batch may be tensors or arrays.
            metric.update(given_outputs[begin:end], some if number % 2 else some.numpy(), role)
    assert_same(metric.scores(), tiebench.score(*(part > 0 for part in outputs), *labels))


def test_reset_forgets_and_buffers_of_the_caller_may_be_reused():
    outputs, labels = drawn()
    metric = TieAwareRetrieval(13)
    for _ in range(2):
        buffers = [part.clone() for part in (*outputs, *labels)]
        metric.update(buffers[0], buffers[2], "query")
        metric.update(buffers[1], buffers[3], role="database")
        for buffer in buffers:
            buffer.zero_()
        assert metric.compute() == tiebench.score(*(part > 0 for part in outputs), *labels).means
        metric.reset()
    with refused("no query codes"):
        metric.compute()


def test_strings_are_labels_too():
    outputs, labels = drawn()
    names = np.array(["tit", "robin", "jay"])
    metric = TieAwareRetrieval(13)
    metric.update(outputs[0], names[labels[0]], "query")
    for some in (slice(0, 30), slice(30, None)):
        metric.update(outputs[1][some], names[labels[1]][some].tolist(), "database")
    assert metric.compute() == tiebench.score(*(part > 0 for part in outputs), *labels).means


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"role": "train"}, "role must be 'query' or 'database', not 'train'"),
        ({"codes": torch.zeros(5, 12)}, r"must be \(n, 13\), or packed uint8 \(n, 2\), not float32"),
        ({"codes": torch.zeros(13)}, r"must be real \(n, 13\)"),
        ({"codes": torch.zeros(5, 13, dtype=torch.complex64)}, "must be real"),
        ({"labels": torch.zeros(4)}, r"5 codes have labels of shape \(4,\)"),
        ({"labels": 3}, r"labels of a batch must be classes \(n,\) or 0/1 \(n, labels\), not int64 \(\)"),
        ({"codes": torch.zeros(0, 13), "labels": torch.zeros(0)}, "a batch of query codes is empty"),
        ({"codes": np.array([["a"] * 13] * 5)}, "codes must be real numbers, not <U1"),
        ({"labels": [0, 1, 2, 3, np.nan]}, r"labels of a batch\[4\] is nan; it must be an integer"),
    ],
)
def test_what_does_not_fit_is_refused(changes, message):
    given = {"codes": torch.zeros(5, 13), "labels": torch.zeros(5, dtype=torch.int64), "role": "query"}
    metric = TieAwareRetrieval(13)
    with refused(pattern=message):
        metric.update(**given | changes)
    with refused("no query codes"):
        metric.compute()


def test_a_nan_is_met_at_its_batch_and_a_missing_side_by_compute():
    metric = TieAwareRetrieval(13)
    for outputs in (torch.full((2, 13), torch.nan), np.full((2, 13), np.nan, np.float32)):
        with refused("NaN"):
            metric.update(outputs, [0, 1], "query")
    metric.update(torch.zeros(2, 13), [0, 1], "query")
    with refused("no database codes: call update"):
        metric.compute()
    metric.reset()
    for role in ("query", "database"):
        metric.update(torch.ones(2, 13), [0, 1], role)
    assert metric.compute()["queries"] == 2


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ([0, 1], ["a", "b"], "classes as text, those of an earlier one classes as integers"),
        ([0, 1], [[0, 1], [1, 1]], "0/1 of 2 columns, those of an earlier one classes as integers"),
        ([[0, 1, 0], [1, 1, 0]], [[0, 1], [1, 1]], "0/1 of 2 columns, those of an earlier one 0/1 of 3"),
    ],
)
@pytest.mark.parametrize("role", ["query", "database"])
def test_labels_of_another_kind_are_refused_at_their_batch(first, second, said, role):
    metric = TieAwareRetrieval(3)
    metric.update(torch.ones(2, 3), first, "query")
    with refused(said):
        metric.update(torch.ones(2, 3), second, role)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        *(({"at": at}, f"the cut K must be a positive integer, not {at!r}") for at in (2.5, "10")),
        ({"ap_at_normaliser": "max"}, "the normaliser of AP@K must be one of"),
        ({"threads": 0}, "threads must be a positive integer, not 0"),
        *(({"bits": bits}, "between 1 and 1024") for bits in (0, 1025, 4.5)),
    ],
)
def test_settings_are_checked_at_once(changes, said):
    with refused(said):
        TieAwareRetrieval(**{"bits": 8} | changes)
