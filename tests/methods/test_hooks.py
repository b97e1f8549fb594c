"""Hooks of deep methods: each against a formula, and every one resumed to the same bytes after a kill."""

import itertools
import json
import math
import re
import subprocess
import sys
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from refusing import refused
from resuming import assert_same_state, killed_and_resumed
from sets import affinity_of, labelled

from methods.base import TrainingSet
from methods.base.augmentation import shift
from methods.base.batch import TrainingState
from methods.base.catalogue import load_class
from methods.base.deep import DeepHashing, RelaxedHashing, shuffled_batches
from methods.base.quantisers import hswd

ITEMS, DIMENSIONS, CLASSES, BITS = 30, 5, 3, 4
LABELS = np.arange(ITEMS) % CLASSES
VECTORS = np.random.default_rng(0).normal(size=(ITEMS, DIMENSIONS)).astype(np.float32)
TARGETS = np.random.default_rng(1).choice([-1.0, 1.0], size=(ITEMS, BITS))
SETTINGS = {"bits": BITS, "epochs": 3, "batch_size": 8, "learning_rate": 0.05}


def training_set(labels=LABELS, items=VECTORS, **more):
    return labelled(items, labels, affinity_of(LABELS), **more)


@dataclass(kw_only=True)
class Squares(DeepHashing):
    """Mean over the batch of |f - target|^2."""

    def loss(self, outputs, batch):
        targets = torch.from_numpy(TARGETS).to(outputs.dtype)[batch.indices]
        return ((outputs - targets) ** 2).sum(1).mean()


def parameters(method):
    return [value.detach().numpy().astype(np.float64) for value in method.network.parameters()]


def first_parameters(method_class, **settings):
    return parameters(method_class(**(SETTINGS | settings | {"epochs": 0})).fit(training_set()))


def updates(optimiser, rate, momentum, decay):
    """A published update rule in NumPy: (parameter, gradient, state) to the new parameter."""

    def sgd(value, slope, state):
        slope = slope + decay * value
        state["v"] = momentum * state.get("v", 0) + slope
        return value - rate * state["v"]

    def rmsprop(value, slope, state):
        slope = slope + decay * value
        state["s"] = 0.99 * state.get("s", 0) + 0.01 * slope**2
        state["v"] = momentum * state.get("v", 0) + slope / (np.sqrt(state["s"]) + 1e-8)
        return value - rate * state["v"]

    def adam(value, slope, state):
        if optimiser == "adamw":
            value = value * (1 - rate * decay)
        else:
            slope = slope + decay * value
        state["t"] = state.get("t", 0) + 1
        state["m"] = momentum * state.get("m", 0) + (1 - momentum) * slope
        state["s"] = 0.999 * state.get("s", 0) + 0.001 * slope**2
        corrected = state["s"] / (1 - 0.999 ** state["t"])
        return value - rate * state["m"] / (1 - momentum ** state["t"]) / (np.sqrt(corrected) + 1e-8)

    return {"sgd": sgd, "rmsprop": rmsprop, "adam": adam, "adamw": adam}[optimiser]


@pytest.mark.parametrize("optimiser", ["sgd", "adam", "adamw", "rmsprop"])
@pytest.mark.parametrize("momentum", [0.0, 0.8])
def test_optimisers_take_the_published_steps(optimiser, momentum):
    settings = SETTINGS | {"optimiser": optimiser, "momentum": momentum, "weight_decay": 0.3, "seed": 1}
    method = Squares(**settings).fit(training_set())
    update, states = updates(optimiser, 0.05, momentum, 0.3), [{}, {}]
    weight, bias = first_parameters(Squares, seed=1)
    for rows in (rows for epoch in range(3) for rows in shuffled_batches(ITEMS, 8, (1, epoch))):
        x = VECTORS[rows].astype(np.float64)
        slope = 2 * (x @ weight.T + bias - TARGETS[rows]) / len(rows)
        slopes = [slope.T @ x, slope.sum(0)]
        weight, bias = (update(value, g, state) for value, g, state in zip((weight, bias), slopes, states))
    ours = parameters(method)
    assert ours[0] == pytest.approx(weight, abs=2e-5)
    assert ours[1] == pytest.approx(bias, abs=2e-5)


SCHEDULES = {
    # 30 items in batches of 8: four iterations an epoch.
    ("step", "epoch"): [1.0] * 8 + [0.3] * 4,
    ("step", "iteration"): [0.3 ** (k // 2) for k in range(12)],
    ("cosine", "epoch"): [(1 + math.cos(math.pi * (k // 4) / 3)) / 2 for k in range(12)],
    ("cosine", "iteration"): [(1 + math.cos(math.pi * k / 12)) / 2 for k in range(12)],
}


def lengths_of_steps(settings, records):
    """Of a training on the sum of the scores, whose gradient is 1: with plain descent, the learning rates."""
    places = []

    @dataclass(kw_only=True)
    class Sum(DeepHashing):
        def loss(self, outputs, batch):
            places.append(self.network[1].bias.detach().clone())
            return outputs.sum() / len(outputs)

    method = Sum(**settings)
    method.fit(training_set(log=records.append))
    passed = torch.stack([*places, method.network[1].bias.detach()])
    return (passed[:-1] - passed[1:]).numpy()[:, 0]


@pytest.mark.parametrize(("schedule", "unit"), SCHEDULES)
@pytest.mark.parametrize(
    ("warmup_epochs", "factors"), [(0.0, []), (0.5, [1 / 2]), (1.5, [1 / 6, 1 / 3, 1 / 2, 2 / 3, 5 / 6])]
)
def test_steps_grow_to_the_schedule_while_warming_up_and_then_have_its_length(
    schedule, unit, warmup_epochs, factors
):
    records = []
    settings = {"learning_rate": 1.0, "momentum": 0.0, "weight_decay": 0.0}
    settings |= {"lr_step_size": 2, "lr_gamma": 0.3}
    settings |= {"schedule": schedule, "schedule_unit": unit, "warmup_epochs": warmup_epochs}
    moves = lengths_of_steps(SETTINGS | settings, records)
    factors = [*factors, *[1.0] * (12 - len(factors))]
    expected = [factor * rate for factor, rate in zip(factors, SCHEDULES[schedule, unit], strict=True)]
    assert moves == pytest.approx(expected, abs=1e-5)
    assert [record["learning_rate"] for record in records] == pytest.approx(expected[3::4])


def test_gradients_are_scaled_down_to_a_norm():
    settings = {"learning_rate": 1.0, "momentum": 0.0, "weight_decay": 0.0, "epochs": 1, "batch_size": ITEMS}
    start = first_parameters(Squares)
    moved = {}
    for most in (None, 1e6, 0.25):
        method = Squares(**(SETTINGS | settings), max_gradient_norm=most).fit(training_set())
        differences = zip(parameters(method), start, strict=True)
        moved[most] = np.concatenate([(after - before).ravel() for after, before in differences])
    norm = np.linalg.norm(moved[None])
    assert norm > 0.5
    assert moved[1e6] == pytest.approx(moved[None], abs=1e-6)
    assert moved[0.25] == pytest.approx(0.25 / norm * moved[None], abs=1e-4)


def test_a_hidden_head_has_the_layers_that_are_asked_for():
    def layers(**settings):
        method = Squares(**(SETTINGS | {"epochs": 0} | settings)).fit(training_set())
        return [repr(layer) for layer in method.network.modules() if not list(layer.children())]

    assert layers(head_width=7) == layers(head_layers=9) == layers()
    assert [line.split("(")[0] for line in layers()] == ["Flatten", "Linear"]
    lines = layers(head="mlp", head_layers=2, head_width=7, head_dropout=0.25, head_batch_norm=True)
    assert [re.split(", (?:bias|track)", line)[0] for line in lines] == [
        "Flatten(start_dim=1, end_dim=-1)",
        "Linear(in_features=5, out_features=7",
        "BatchNorm1d(7, eps=1e-05, momentum=0.1, affine=True",
        "ReLU()",
        "Dropout(p=0.25, inplace=False)",
        "Linear(in_features=7, out_features=7",
        "BatchNorm1d(7, eps=1e-05, momentum=0.1, affine=True",
        "ReLU()",
        "Dropout(p=0.25, inplace=False)",
        "Linear(in_features=7, out_features=4",
    ]


def test_initial_weights_have_the_deviation_asked_for():
    """The same draws on another scale: from sqrt(2 / width) by default."""
    untrained = SETTINGS | {"epochs": 0}
    plain, small = (
        Squares(**untrained, **more).fit(training_set()).network[1].weight.detach()
        for more in ({}, {"initial_deviation": 0.01})
    )
    assert (small / plain).flatten().tolist() == pytest.approx(
        [0.01 / (2 / VECTORS.shape[1]) ** 0.5] * small.numel()
    )


def test_the_hash_layer_can_be_another_and_its_statistics_are_kept(tmp_path):
    @dataclass(kw_only=True)
    class Normalised(Squares):
        def hash_layer(self, width):
            return torch.nn.Sequential(
                torch.nn.Linear(width, self.bits, bias=False), torch.nn.BatchNorm1d(self.bits)
            )

    method = Normalised(**SETTINGS).fit(training_set())
    assert torch.count_nonzero(method.network[1][1].running_mean) == BITS
    method.save(tmp_path)
    again = Normalised.load(tmp_path)
    assert np.array_equal(again.raw_scores(VECTORS), method.raw_scores(VECTORS))
    # In evaluation mode an item's scores do not depend on the others.
    assert method.raw_scores(VECTORS)[:1] == pytest.approx(method.raw_scores(VECTORS[:1]), abs=1e-6)


@pytest.mark.parametrize("multi_hot", [False, True])
def test_a_loss_is_given_what_it_asks_for(multi_hot):
    seen = []
    labels = LABELS * 10 - 7
    rows = np.eye(CLASSES)[LABELS]
    if multi_hot:
        labels = (np.random.default_rng(2).random((ITEMS, 6)) < 0.4).astype(np.uint8)
        rows = labels

    @dataclass(kw_only=True)
    class Asks(DeepHashing):
        def loss(self, outputs, batch):
            given = batch.features, batch.labels, batch.indices, batch.affinity
            seen.append((outputs.detach(), *given, batch.training.epoch, batch.training.iteration))
            return outputs.square().mean()

    made = training_set(labels=labels)
    method = Asks(**(SETTINGS | {"learning_rate": 0.0})).fit(made)
    assert made.classes == rows.shape[1]
    assert [entry[-1] for entry in seen] == list(range(12))
    assert [entry[-2] for entry in seen] == [0] * 4 + [1] * 4 + [2] * 4
    for outputs, features, given, indices, affinity, *_ in seen:
        places = indices.numpy()
        assert torch.equal(features, torch.from_numpy(VECTORS[places]))
        assert given.dtype == torch.float32
        assert np.array_equal(given.numpy(), rows[places])
        assert np.array_equal(affinity.numpy(), made.affinity(places, places))
        assert outputs.numpy() == pytest.approx(method.raw_scores(VECTORS[places]), abs=1e-6)
    assert not any(isinstance(value, (TrainingSet, TrainingState)) for value in vars(method).values())


def test_a_loss_that_wants_labels_refuses_a_training_set_without_them():
    @dataclass(kw_only=True)
    class Wants(DeepHashing):
        def loss(self, outputs, batch):
            return outputs.mean() + batch.labels.mean()

    with refused("learns from labels"):
        Wants(**SETTINGS).fit(training_set(labels=None))


NO_BATCH = "gave no batch of two items or more$"


@pytest.mark.parametrize(
    ("hook", "written", "kind", "said"),
    [
        ("loss", lambda self, outputs, batch: 0.5, TypeError, "must return .* not 0.5$"),
        ("loss", lambda self, outputs, batch: outputs[0, :1], TypeError, r"must return .* not shape \(1,\)$"),
        (
            "loss",
            lambda self, outputs, batch: batch.afinity,
            AttributeError,
            "unknown batch.afinity; .*'affinity'",
        ),
        ("loss", lambda self, outputs, labels: 0.5, TypeError, "takes .*self, outputs, batch.* batch.labels"),
        ("draw_batches", lambda self, items, epoch: [], ValueError, NO_BATCH),
        ("draw_batches", lambda self, items, epoch: [np.arange(1)], ValueError, NO_BATCH),
        (
            "end_training",
            lambda self, training_set: 1,
            TypeError,
            "takes .*self, training.* training.training_set",
        ),
    ],
)
def test_a_hook_that_is_wrong_is_an_error_that_says_what_to_write(hook, written, kind, said):
    wrong = type("Wrong", (Squares,), {hook: written})
    with refused(pattern=rf"^Wrong\.{hook}:? {said}", kind=kind):
        wrong(**SETTINGS).fit(training_set())


@dataclass(kw_only=True)
class TwoViews(DeepHashing):
    noise: float = 0.5

    def augment(self, items, generator):
        return items + self.noise * torch.from_numpy(generator.normal(size=items.shape).astype(np.float32))

    def loss(self, outputs, batch):
        second = batch.second
        batch.training.log(apart=(outputs - second).abs().mean(), noise=batch.features.std())
        return (outputs - second).square().mean() + 0.1 * (outputs.abs() - 1).square().mean()


def test_every_batch_epoch_and_seed_draws_anew():
    """What a training draws: for its augmentation, and of torch, as dropout does."""
    drawn = {"items": [], "torch": []}

    @dataclass(kw_only=True)
    class Drawing(Squares):
        def augment(self, items, generator):
            drawn["items"].append(generator.random())
            return items

        def loss(self, outputs, batch):
            drawn["torch"].append(float(torch.rand(())))
            return super().loss(outputs, batch)

    for seed in (0, 1):
        Drawing(**SETTINGS, seed=seed).fit(training_set())
    batches = 2 * SETTINGS["epochs"] * math.ceil(ITEMS / SETTINGS["batch_size"])
    assert {len(values) for values in drawn.values()} == {batches}
    assert all(len(set(values)) == batches for values in drawn.values())


def test_the_second_view_is_augmented_on_its_own():
    for noise, differ in ((0.0, False), (0.5, True)):
        records = []
        TwoViews(**SETTINGS, noise=noise).fit(training_set(log=records.append))
        assert all((record["apart"] > 0) == differ for record in records)


def test_logged_values_are_means_over_an_epoch_and_what_is_not_finite_is_none():
    calls, records = [], []

    @dataclass(kw_only=True)
    class Logs(Squares):
        def start_epoch(self, training):
            training.log(once=training.epoch)

        def loss(self, outputs, batch):
            calls.append(outputs.detach().mean().item())
            batch.training.log(scores=outputs.mean(), bad=math.inf, objective=5)
            return super().loss(outputs, batch)

    Logs(**SETTINGS).fit(training_set(log=records.append))
    expected = np.array(calls).reshape(3, 4).mean(1)
    assert [record["scores"] for record in records] == pytest.approx(expected)
    assert [(record["once"], record["bad"]) for record in records] == [(0, None), (1, None), (2, None)]
    assert all(record["objective"] != 5 for record in records)
    json.dumps(records, allow_nan=False)


@dataclass(kw_only=True)
class Classifier(DeepHashing):
    """Cross-entropy of a linear classifier on straight-through signs, as GreedyHash."""

    criterion_rate: float = 1.0

    def build_criterion(self, training_set):
        return torch.nn.Linear(self.bits, training_set.classes, bias=False)

    def rate_and_decay(self, name):
        rate, decay = super().rate_and_decay(name)
        return (self.criterion_rate, 0.0) if name.startswith("criterion.") else (rate, decay)

    def loss(self, outputs, batch):
        signs = outputs + (outputs.sign() - outputs).detach()
        return torch.nn.functional.cross_entropy(batch.training.criterion(signs), batch.labels)


def test_parameters_of_the_loss_are_trained_at_their_own_rate_and_kept(tmp_path):
    start = Classifier(**(SETTINGS | {"epochs": 0})).fit(training_set())
    still = Classifier(**SETTINGS, criterion_rate=0.0).fit(training_set())
    records = []
    method = Classifier(**(SETTINGS | {"epochs": 30})).fit(training_set(log=records.append))
    assert np.array_equal(start.criterion_state["weight"], still.criterion_state["weight"])
    assert not np.array_equal(start.criterion_state["weight"], method.criterion_state["weight"])
    assert method.criterion_state["weight"].shape == (CLASSES, BITS)
    assert records[-1]["objective"] < records[0]["objective"] - 0.1
    method.save(tmp_path)
    loaded = Classifier.load(tmp_path)
    assert np.array_equal(loaded.criterion_state["weight"], method.criterion_state["weight"])
    (tmp_path / "again").mkdir()
    loaded.save(tmp_path / "again")
    files = [folder / "model.npz" for folder in (tmp_path, tmp_path / "again")]
    states = [{name: values.tobytes() for name, values in np.load(file).items()} for file in files]
    assert states[0] == states[1]


def test_parameters_of_the_loss_start_by_the_seed():
    fits = [Classifier(**SETTINGS | {"epochs": 0}, seed=seed).fit(training_set()) for seed in (0, 1)]
    assert not np.array_equal(*(fit.criterion_state["weight"] for fit in fits))


def test_the_network_starts_alike_with_and_without_parameters_of_the_loss():
    assert all(map(np.array_equal, first_parameters(Classifier), first_parameters(Squares)))


@dataclass(kw_only=True)
class Alternating(RelaxedHashing):
    """Keeps codes of all items, set before each epoch from all scores and noise, as ADSH or DSDH do."""

    changing_memory = ("codes", "rounds")

    def prepare(self, training_set):
        return SimpleNamespace(codes=torch.ones(len(training_set), self.bits), rounds=0)

    def start_epoch(self, training):
        super().start_epoch(training)
        memory, scores = training.memory, torch.from_numpy(self.raw_scores(training.training_set.items))
        noise = np.random.default_rng((self.seed, training.epoch, 10)).normal(size=scores.shape)
        memory.codes.copy_((scores + torch.from_numpy(noise) + 0.1 * torch.rand(scores.shape)).sign())
        memory.rounds += 1

    def loss(self, outputs, batch):
        memory = batch.training.memory
        batch.training.log(rounds=memory.rounds)
        fit = self.relax(outputs) @ memory.codes[batch.indices].T / self.bits
        return (fit - (2 * batch.affinity - 1)).square().mean()


def test_a_memory_without_what_changes_in_it_is_refused_before_training():
    class Entries(Alternating):
        def prepare(self, training_set):
            return {"codes": torch.ones(len(training_set), self.bits), "rounds": 0}

    with refused("Entries: changing_memory names codes, rounds, but what prepare", kind=TypeError):
        Entries(**SETTINGS).fit(training_set())


HARD = {"head": "mlp", "head_width": 6, "head_dropout": 0.3, "head_batch_norm": True, "quantiser": "hswd"}
RESUMED = {
    "sgd": (Squares, {"momentum": 0.0, "lr_step_size": 3, "schedule_unit": "iteration"}),
    "sgd, momentum": (Squares, {"momentum": 0.9}),
    "adam": (Squares, {"schedule": "cosine", "schedule_unit": "iteration", "optimiser": "adam"}),
    "adamw": (Squares, {"warmup_epochs": 1.5, "optimiser": "adamw"}),
    "rmsprop": (Squares, {"optimiser": "rmsprop", "momentum": 0.0}),
    "head and quantiser": (Squares, HARD | {"optimiser": "adam", "max_gradient_norm": 0.5}),
    "parameters of the loss": (Classifier, {"optimiser": "rmsprop"}),
    "two views": (TwoViews, HARD),
    "alternating": (Alternating, {"tanh_scale_final": 4.0}),
}


@pytest.mark.parametrize(("method_class", "settings"), RESUMED.values(), ids=RESUMED.keys())
def test_a_killed_training_resumes_to_the_same_bytes(method_class, settings, tmp_path):
    settings, whole = SETTINGS | {"epochs": 4} | settings, []

    def fit(**given):
        return method_class(**settings).fit(training_set(**given))

    alone = fit(log=whole.append)
    resumed, _, after = killed_and_resumed(fit, tmp_path / "run" / "mark.npz", 2)
    for records in (whole, after):
        for record in records:
            del record["seconds"]
    assert after == whole
    assert_same_state(alone, resumed)


@pytest.mark.thorough
def test_training_does_not_wait_for_the_import_of_a_compiler():
    script = """if True:
        import sys
        import numpy as np
        from methods.base import TrainingSet
        from methods.base.deep import DeepHashing
        class Squares(DeepHashing):
            def loss(self, outputs, batch):
                return (outputs - 1).square().mean()
        for optimiser in ("sgd", "adam", "adamw", "rmsprop"):
            Squares(bits=4, epochs=2, optimiser=optimiser).fit(TrainingSet(np.ones((9, 6), np.float32), None))
            assert "torch._dynamo" not in sys.modules, optimiser
    """
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_checkpoint_of_another_optimiser_is_not_taken_for_its_own(tmp_path):
    """Its name encodes the settings, but a file copied there by hand must be noticed too."""
    kinds = iter([Classifier(**SETTINGS), Squares(**SETTINGS, head="mlp")])
    with refused("cannot resume from this checkpoint", kind=ValueError):
        killed_and_resumed(lambda **given: next(kinds).fit(training_set(**given)), tmp_path / "mark.npz", 1)


@pytest.mark.parametrize(("height", "width", "most"), [(5, 8, 2), (4, 4, 3), (1, 6, 2), (3, 2, 7)])
def test_shifted_images_are_crops_of_padded_ones(height, width, most):
    images = np.random.default_rng(0).integers(0, 255, (40, height, width, 3)).astype(np.uint8)
    shifted = shift(torch.from_numpy(images), most, np.random.default_rng(5)).numpy()
    offsets = np.random.default_rng(5).integers(-most, most + 1, (2, 40))
    padded = np.pad(images, ((0, 0), (most, most), (most, most), (0, 0)), mode="reflect")
    for number, (down, across) in enumerate(offsets.T):
        expected = padded[number, most + down : most + down + height, most + across : most + across + width]
        assert np.array_equal(shifted[number], expected)
    assert len({tuple(offset) for offset in offsets.T}) > 5


def test_random_crops_of_images_are_the_same_for_the_same_seed_and_change_training():
    images = np.random.default_rng(0).integers(0, 255, (ITEMS, 32, 32, 3)).astype(np.uint8)
    network = {"architecture": "small", "options": {}}

    def trained(**settings):
        made = training_set(items=images, network=network)
        method = Squares(**(SETTINGS | {"epochs": 1, "learning_rate": 0.01} | settings)).fit(made)
        return b"".join(value.tobytes() for value in method.state().values())

    cropped = trained(random_crop=3)
    assert trained(random_crop=3) == cropped
    assert len({trained(), cropped, trained(random_crop=3, seed=1)}) == 3


def test_hswd_is_the_best_matching_of_scores_with_signs_bit_by_bit():
    outputs = torch.randn(6, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    torch.manual_seed(7)
    signs = torch.randint(0, 2, outputs.shape).double() * 2 - 1
    torch.manual_seed(7)
    value = hswd(outputs)
    orders = [list(order) for order in itertools.permutations(range(6))]
    best = [min(((outputs[:, k] - signs[order, k]) ** 2).mean() for order in orders) for k in range(3)]
    assert value.item() == pytest.approx(np.mean(best))


def test_a_quantiser_brings_scores_nearer_to_signs():
    errors = {}
    for quantiser in (None, "hswd"):
        records = []
        settings = SETTINGS | {"epochs": 30, "learning_rate": 0.3, "quantiser_weight": 1.0}
        method = load_class("talr_ap")(**settings, quantiser=quantiser)
        method.fit(training_set(log=records.append))
        errors[quantiser] = np.square(np.abs(method.raw_scores(VECTORS)) - 1).mean()
        assert ("hswd" in records[0]) == (quantiser is not None)
    assert errors["hswd"] < 0.8 * errors[None]


def test_a_device_that_means_nothing_is_refused_in_one_line():
    with refused("device must be cpu, cuda or auto, not 'tpu9'"):
        Squares(**SETTINGS, device="tpu9").fit(training_set())
