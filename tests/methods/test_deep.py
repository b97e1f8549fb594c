"""The shared trainer: stochastic gradient descent as in the MatConvNet trainers, for any network."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from batches import batch
from refusing import refused
from sets import block, clusters, labelled

from methods.base import TrainingSet, training
from methods.base.catalogue import load_class
from methods.base.deep import DeepHashing, RelaxedHashing
from methods.base.optimisation import make_optimiser


def training_set(count=23, **more):
    return labelled(*clusters(count, 5, 3, spread=0.5), **more)


@dataclass(kw_only=True)
class Targets(RelaxedHashing):
    """Mean over the batch of |tanh(alpha f) - target|^2, a target per item; keeps what it was given."""

    def prepare(self, training_set):
        generator = np.random.default_rng(42)
        self.targets = generator.choice([-1.0, 1.0], size=(len(training_set), self.bits))
        self.batches, self.affinities = [], []

    def loss(self, outputs, batch):
        self.batches.append(batch.indices.numpy().copy())
        self.affinities.append(batch.affinity.numpy().copy())
        targets = torch.from_numpy(self.targets[batch.indices]).to(outputs.dtype)
        return ((self.relax(outputs) - targets) ** 2).sum(1).mean()


def descend_by_hand(method, weight, bias, items, batches_of_epoch):
    """The same steps in NumPy, float64, with the gradient written out. Returns (W, bias, mean losses).

    Other optimisers, momentum, decay and schedules: test_hooks.py."""
    losses = []
    for epoch, batches in enumerate(batches_of_epoch):
        alpha = method.tanh_scale
        if method.tanh_scale_final is not None:
            alpha *= (method.tanh_scale_final / method.tanh_scale) ** (epoch / (method.epochs - 1))
        total = 0.0
        for rows in batches:
            x, target = items[rows].astype(np.float64), method.targets[rows]
            relaxed = np.tanh(alpha * (x @ weight.T + bias))
            total += ((relaxed - target) ** 2).sum()
            slope = 2 * (relaxed - target) * alpha * (1 - relaxed**2) / len(rows)
            weight = weight - method.learning_rate * slope.T @ x
            bias = bias - method.learning_rate * slope.sum(0)
        losses.append(total / sum(len(rows) for rows in batches))
    return weight, bias, losses


@pytest.mark.parametrize(
    "settings",
    [
        {"batch_size": 100},
        {"batch_size": 4, "seed": 3},
        {"tanh_scale": 0.5, "tanh_scale_final": 2.0},
    ],
    ids=lambda settings: "-".join(settings),
)
def test_training_is_descent_written_by_hand(settings):
    records = []
    made = training_set(log=records.append)
    items, labels = made.items, made.labels
    chosen = {"bits": 4, "epochs": 5, "batch_size": 6, "learning_rate": 0.05} | settings
    chosen |= {"momentum": 0.0, "weight_decay": 0.0}
    method = Targets(**chosen).fit(made)
    per_epoch = math.ceil(len(items) / method.batch_size)
    assert len(method.batches) == 5 * per_epoch
    epochs = [method.batches[first : first + per_epoch] for first in range(0, 5 * per_epoch, per_epoch)]
    for batches in epochs:  # every item once, in batches of the size asked for but the last
        assert sorted(np.concatenate(batches)) == list(range(len(items)))
        assert all(len(rows) == method.batch_size for rows in batches[:-1])
    orders = {tuple(np.concatenate(batches)) for batches in epochs}
    assert len(orders) == 5  # reshuffled every epoch
    for rows, affinity in zip(method.batches, method.affinities, strict=True):
        assert np.array_equal(affinity, labels[rows][:, None] == labels[rows])
    still = Targets(**chosen | {"epochs": 0}).fit(made)
    first = [value.detach().double().numpy() for value in still.network.parameters()]
    weight, bias, losses = descend_by_hand(method, *first, items, epochs)
    ours = [parameter.detach().numpy() for parameter in method.network.parameters()]
    assert ours[0] == pytest.approx(weight, abs=2e-5)
    assert ours[1] == pytest.approx(bias, abs=2e-5)
    assert not np.allclose(weight, first[0], atol=1e-2)
    assert [record["epoch"] for record in records] == [1, 2, 3, 4, 5]
    assert [record["objective"] for record in records] == pytest.approx(losses, abs=1e-4)
    scales = np.geomspace(0.5, 2, 5) if "tanh_scale" in settings else [1] * 5
    assert [record["tanh_scale"] for record in records] == pytest.approx(scales)


def test_initial_weights_are_normal_with_variance_two_over_inputs_and_biases_zero():
    class Plain(DeepHashing):
        pass

    method = Plain(bits=64, seed=1)
    method.backbone = None
    layer = method.build_network((500,))[1]
    assert torch.count_nonzero(layer.bias) == 0
    weights = layer.weight.detach().numpy().ravel()
    standard_error = math.sqrt(2 / 500) / math.sqrt(2 * len(weights))
    assert abs(weights.std() - math.sqrt(2 / 500)) < 5 * standard_error
    assert abs(weights.mean()) < 5 * math.sqrt(2 / 500 / len(weights))


@dataclass(kw_only=True)
class Constant(DeepHashing):
    value: float = 3.0

    def loss(self, outputs, batch):
        return self.value + 0 * outputs.sum()


def test_a_batch_of_one_item_is_left_out_of_training_and_of_the_mean_that_is_reported():
    records = []
    Constant(bits=2, batch_size=10, epochs=1).fit(training_set(21, log=records.append))
    assert records[0]["objective"] == pytest.approx(3.0)


@pytest.mark.parametrize("bf16", [True, False])
def test_16_bits_serve_networks_on_cuda_alone_and_only_if_asked_for(monkeypatch, bf16):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: bf16)
    cuda, cpu = torch.device("cuda"), torch.device("cpu")
    method, network = Constant(bits=2), {"architecture": "small", "options": {}}
    method.backbone = None
    assert method.half_precision(cuda) is None  # a hash layer alone
    method.backbone = network
    assert method.half_precision(cuda) is (torch.bfloat16 if bf16 else torch.float16)
    assert method.half_precision(cpu) is None
    method.mixed_precision = False
    assert method.half_precision(cuda) is None


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_items_are_refused_in_one_line(count):
    with refused("at least 2 items"):
        Constant(bits=2).fit(training_set(count))


def smallest():
    """The product of two numbers that is subnormal, or 0 where those are flushed."""
    return float(torch.tensor(2.0**-100) * torch.tensor(2.0**-40))


@dataclass(kw_only=True)
class Unreached(DeepHashing):
    """From the second epoch on all gradients are 0: what the optimiser keeps of earlier ones fades."""

    def loss(self, outputs, batch):
        if not hasattr(self, "seen"):
            self.seen = []
        self.seen.append(smallest())
        return outputs.square().mean() * (0.0 if batch.training.epoch else 1.0)


def test_subnormal_numbers_are_0_in_training_and_as_they_were_after_it(monkeypatch):
    made = []
    monkeypatch.setattr(
        training, "make_optimiser", lambda *given: made.append(make_optimiser(*given)) or made[0]
    )
    settings = {"head": "mlp", "head_width": 16, "weight_decay": 0.0, "batch_size": 10, "learning_rate": 1e-3}
    method = Unreached(bits=2, epochs=400, optimiser="adam", **settings).fit(training_set())
    assert smallest() == 2.0**-140
    assert set(method.seen) == {0.0}
    for kept in made[0].state.values():
        assert not kept["exp_avg"].any()  # without the flush it ends at 1.4e-45, kept from fading by rounding


@pytest.mark.parametrize("value", [math.nan, -math.inf])
def test_a_loss_that_is_not_finite_is_a_refusal_of_one_line(value):
    with refused(pattern=r"not finite in epoch 1.*learning_rate"):
        Constant(bits=2, value=value).fit(training_set())
    assert smallest() == 2.0**-140  # subnormal numbers are what they were


@dataclass(kw_only=True)
class Explosive(DeepHashing):
    def loss(self, outputs, batch):
        return (outputs**4).mean() * 1e30


def test_weights_that_end_up_not_finite_are_a_refusal_even_in_the_last_epoch():
    """One step, from a finite loss to infinite weights: there is no later loss to detect it."""
    with refused("not finite"):
        Explosive(bits=2, epochs=1, batch_size=100, learning_rate=1e30).fit(training_set())


def test_cuda_asked_for_and_not_there_is_a_refusal():
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with refused("no CUDA device"):
        Constant(bits=2, device="cuda").fit(training_set())
    Constant(bits=2, device="auto", epochs=1).fit(training_set())


@pytest.mark.parametrize(("name", "trains"), [("talr_ap", False), ("mihash", False), ("talr_ndcg", True)])
def test_levels_that_are_all_above_0_are_something_to_rank_for_graded_methods_alone(name, trains):
    items, labels = clusters(23, 5, 3)
    graded = 1 + (labels[:, None] == labels).astype(np.int64)
    made = TrainingSet(items, block(graded), (0, 1, 2))
    method = load_class(name)(bits=3, epochs=1)
    if trains:
        assert method.fit(made).encode(items).shape == (len(items), 3)
    else:
        with refused():
            method.fit(made)


def test_listwise_methods_use_one_bin_per_bit_by_default():
    from tiebench.losses import relaxed

    generator = torch.Generator().manual_seed(0)
    codes = torch.tanh(torch.randn(12, 6, generator=generator, dtype=torch.float64))
    affinity = torch.randint(0, 3, (12, 12), generator=generator)
    cases = {
        "talr_ap": (relaxed.average_precision, {}),
        "talr_ndcg": (relaxed.ndcg, {}),
        "mihash": (relaxed.mutual_information, {}),
    }
    for name, (function, options) in cases.items():
        method = load_class(name)
        assert torch.equal(method(bits=6).objective(codes, affinity), function(codes, affinity, 6, **options))
        chosen = method(bits=6, bins=4, delta=1.5).objective(codes, affinity)
        assert torch.equal(chosen, function(codes, affinity, 4, 1.5, **options))
    full = load_class("talr_ap")(bits=6, simplified=False).objective(codes, affinity)
    assert torch.equal(full, relaxed.average_precision(codes, affinity, 6, simplified=False))


def test_the_loss_is_minus_the_mean_objective_of_relaxed_codes():
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(12, 6, generator=generator, dtype=torch.float64)
    affinity = torch.randint(0, 2, (12, 12), generator=generator)
    method = load_class("talr_ap")(bits=6, tanh_scale=3.0)
    method.current_tanh_scale = 3.0
    expected = -method.objective(torch.tanh(3.0 * outputs), affinity).mean()
    assert torch.equal(method.loss(outputs, batch(affinity=affinity)), expected)
