"""Nested codes: any deep loss on the first scores, too. Every deep method is tested without an edit here."""

import copy

import numpy as np
import pytest
import torch
from refusing import refused
from resuming import killed_and_resumed
from sets import clusters, labelled

from methods.base.batch import Batch, TrainingState
from methods.base.catalogue import catalogue, load_class
from methods.base.deep import DeepHashing
from methods.base.training import Training, seeded
from methods.class_codes.class_codes import ClassCodeHashing

BITS, PREFIXES = 8, [4, 6]
# Of eight bits four that tell three classes apart; a few triplets; a step that no loss runs away from.
CLASSES = 3
SETTINGS = {"positives": 3, "negatives": 3, "learning_rate": 1e-3, "epochs": 2, "batch_size": 20}
REFUSES = {"adsh"}

METADATA = catalogue()
DEEP = [name for name, about in METADATA.items() if issubclass(load_class(name), DeepHashing)]
every_deep_method = pytest.mark.parametrize("name", sorted(set(DEEP) - REFUSES))


def keeps(kind):
    """Whether training changes more than the network: per length, this is in a checkpoint, too."""
    return kind.changing_memory or kind.build_criterion is not DeepHashing.build_criterion


KEEPING = ["talr_ap", *(name for name in DEEP if name not in REFUSES and keeps(load_class(name)))]


def made(name, bits=BITS, **settings):
    own = {key: value for key, value in SETTINGS.items() if key in METADATA[name].parameters}
    return load_class(name)(bits=bits, **(own | settings))


def training_set(**more):
    return labelled(*clusters(60, 12, CLASSES), **more)


def cut(network, bits):
    """A network of its own with the first of the outputs: rows of the weights of its last layers."""
    found = copy.deepcopy(network)
    for module in found.modules():
        for values in (module._parameters, module._buffers):
            for key, value in values.items():
                if value is not None and value.ndim and len(value) == BITS:
                    kept = value[:bits].detach().clone()
                    values[key] = torch.nn.Parameter(kept) if isinstance(value, torch.nn.Parameter) else kept
    return found


def begun(method, given, network=None):
    """The state of a training that is about to begin its first epoch."""
    if network is not None:
        method.network, method.backbone, method.item_shape = network, None, given.items.shape[1:]
    state = TrainingState(given, method.prepare(given), None)
    with seeded(method.seed, 4):
        state.criterion = method.build_criterion(given)
    return state


@every_deep_method
def test_the_loss_is_the_mean_of_the_losses_of_methods_of_each_length(name):
    """Each with a network of the first outputs, in a plain loop; and its gradient."""
    given, rows = training_set(), np.arange(0, 60, 3)
    rows = np.concatenate([rows[:10], rows[:10] + 1])
    nested = made(name, nested=PREFIXES, epochs=0).fit(given)
    network = copy.deepcopy(nested.network)
    network.train()
    state = begun(nested, given)
    prefixes = nested._prefixes(state, torch.device("cpu"))
    training = Training(nested, state, prefixes, torch.device("cpu"))
    nested.start_epoch(state)
    for prefix in prefixes:
        prefix.start_epoch(state)
    torch.manual_seed(5)
    loss = training._loss(rows, torch.from_numpy(given.items[rows]), (0, 0, 0))
    loss.backward()

    alone = [made(name, bits) for bits in (BITS, *PREFIXES)]
    states = [begun(method, given, cut(network, method.bits)) for method in alone]
    for method, own in zip(alone, states):
        if isinstance(method, ClassCodeHashing) and method.bits < BITS:
            own.criterion.codes = states[0].criterion.codes[:, : method.bits]
            own.criterion.filler = states[0].criterion.filler[: method.bits]
        method.network.train(), method.start_epoch(own)
    items = torch.from_numpy(given.items[rows])
    outputs = view(nested, network, items, 2)
    torch.manual_seed(5)
    losses = []
    for method, own in zip(alone, states):

        def second(method=method):
            return view(method, network, items, 5)[:, : method.bits]

        batch = Batch(method, own, rows, items, second)
        losses.append(method.loss(outputs[:, : method.bits], batch))
    expected = sum(losses) / len(losses)
    expected.backward()
    torch.testing.assert_close(loss, expected)
    for mine, other in zip(nested.network.parameters(), network.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad)
    # What a length learns for itself: the gradient is its own loss's, a third of it.
    for own, other in zip([state, *(prefix.state for prefix in prefixes)], states):
        learnt = (s.criterion.parameters() if s.criterion else () for s in (own, other))
        for mine, theirs in zip(*learnt, strict=True):
            torch.testing.assert_close(mine.grad, theirs.grad)


def view(method, network, items, number):
    """Raw scores of a random view of items, as of the first batch of a training."""
    if method.augments():
        items = method.augment(items, np.random.default_rng((0, 0, 0, number)))
    return network(items)


@pytest.mark.parametrize("name", KEEPING)
def test_a_nested_training_goes_on_after_an_interruption_as_if_there_were_none(name, tmp_path):
    """What each length keeps is in the checkpoint; nested codes are others than plain ones."""

    def fit(**given):
        return made(name, nested=PREFIXES, epochs=3).fit(training_set(**given))

    lines, given = [], training_set()
    whole = fit(log=lines.append)
    assert {f"loss_{bits}" for bits in (*PREFIXES, BITS)} <= set(lines[-1])
    resumed, *_ = killed_and_resumed(fit, tmp_path / "run" / "mark.npz", 1)
    plain = made(name, epochs=3).fit(given)
    scores = whole.raw_scores(given.items)
    np.testing.assert_array_equal(resumed.raw_scores(given.items), scores)
    assert not np.array_equal(plain.raw_scores(given.items), scores)
    # A model's file is that of the whole code.
    assert {key: value.shape for key, value in whole.state().items()} == {
        key: value.shape for key, value in plain.state().items()
    }


def test_the_network_computes_once_a_step():
    calls = []

    class Counted(load_class("greedyhash")):
        def build_network(self, item_shape):
            network = super().build_network(item_shape)
            network.register_forward_hook(lambda *_: calls.append(1))
            return network

    Counted(bits=BITS, nested=PREFIXES, epochs=2, batch_size=20).fit(training_set())
    assert len(calls) == 2 * 3


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("adsh", {}, "the codes of the database are learned for all bits together"),
        ("dhn", {"nested": [4, 8]}, "from 1 to below the 8 bits, not \\[4, 8\\]"),
        ("dhn", {"nested": [6, 4]}, "ascending"),
        ("dhn", {"nested": [4, 4]}, "ascending"),
        ("dhn", {"nested": [0, 4]}, "from 1"),
        ("dhn", {"nested": [4.0]}, "lengths from 1"),
        ("dhn", {"nested": 4}, "lengths from 1"),
        ("csq", {"nested": [1]}, "two classes have the same code in their first 1 bits"),
    ],
)
def test_what_cannot_be_nested_is_refused_before_training(name, settings, words):
    lines = []
    with refused(pattern=words):
        made(name, **({"nested": PREFIXES} | settings)).fit(training_set(log=lines.append))
    assert not lines
