"""The training loop of deep methods: batches, steps, learning rates, what is logged, checkpoints."""

import contextlib
import math
import time

import numpy as np
import torch

from methods.base import Diverged
from methods.base.batch import ATTRIBUTES, Batch
from methods.base.batches import ItemReader
from methods.base.checkpoint import Checkpoint
from methods.base.heads import ImageHashing
from methods.base.optimisation import make_optimiser, scheduled_rate
from methods.base.quantisers import QUANTISERS
from methods.base.watch import CodeWatch
from tiebench.messages import did_you_mean
from tiebench.values import NotANumber


class Training:
    """One training of a `methods.base.deep.DeepHashing`, whose network is made.

    state: a `TrainingState`; prefixes: a `methods.base.nested.Prefix` for each length of `nested`.
    """

    def __init__(self, method, state, prefixes, device):
        self.method, self.state, self.prefixes, self.device = method, state, prefixes, device
        self.training_set = state.training_set
        self.optimiser = make_optimiser(
            method.optimiser,
            _parameter_groups(method, [state, *(prefix.state for prefix in prefixes)]),
            method.learning_rate,
            method.momentum,
            method.weight_decay,
        )
        self.parameters = [p for group in self.optimiser.param_groups for p in group["params"]]
        # Gradients below 6e-8 vanish in float16; bfloat16 has the range of float32, and needs no scaling.
        scaled = method.half_precision(device) is torch.float16
        self.scaler = torch.amp.GradScaler(device.type, enabled=scaled)
        self.reader = ItemReader(self.training_set.items, device)
        self.rate = method.learning_rate
        self.watch = CodeWatch(method.bits, self.training_set.labels)

    def run(self):
        """All epochs; the method's network is trained in place.

        Raises `Diverged` in the epoch in which the loss or the network stops being finite, and ends
        after `end_collapsed` epochs in a row whose codes are collapsed.
        """
        method, state = self.method, self.state
        prefixes = {prefix.bits: prefix.state for prefix in self.prefixes}
        checkpoint = Checkpoint(method, state, prefixes, self.optimiser, self.scaler)
        first, spent = checkpoint.resume()
        started = time.perf_counter() - spent
        with subnormals_flushed():
            self._epochs(checkpoint, first, started)
        method.end_training(state)
        self._keep_criterion()

    def _epochs(self, checkpoint, first, started):
        method, state = self.method, self.state
        for epoch in range(first, method.epochs):
            if self._given_up(checkpoint.records):
                break
            begun = time.perf_counter()
            state.epoch, state.logged = epoch, {}
            # Dropout draws from the global generator: seeded by epoch, a resumed training draws the same.
            with seeded(method.seed, epoch, 3, device=self.device):
                method.start_epoch(state)
                for prefix in self.prefixes:
                    prefix.start_epoch(state)
                objective, seen = self._epoch(epoch)
            record = {
                "epoch": epoch + 1,
                "epochs": method.epochs,
                "objective": objective,
                "seconds": time.perf_counter() - started,
                "learning_rate": self.rate,
            }
            self._keep_criterion()  # `unused_bits` may look at it
            record |= self.watch.finish(method.unused_bits())
            if method.backbone is not None:
                record["images_per_second"] = seen / (time.perf_counter() - begun)
                record["ap"] = self.watch.average_precision(self.training_set)
            record = _means(state.logged) | record
            if self._given_up([*checkpoint.records, record]):
                record["ended"] = f"codes collapsed in {method.end_collapsed} epochs in a row"
            checkpoint.after(epoch, record)

    def _keep_criterion(self):
        criterion = self.state.criterion
        self.method.criterion_state = {} if criterion is None else module_arrays(criterion)

    def _given_up(self, records):
        """Whether the codes of the last `end_collapsed` epochs are collapsed."""
        last = records[-self.method.end_collapsed :] if self.method.end_collapsed else []
        return len(last) == self.method.end_collapsed > 0 and all("collapsed" in one for one in last)

    def _epoch(self, epoch):
        """One pass over the training set; returns the mean loss over its items, and how many were seen."""
        method = self.method
        # A GPU would wait for each step whose loss is asked for: there the sum stays on the device.
        asked = self.device.type == "cpu"
        total, seen = 0.0 if asked else torch.zeros((), dtype=torch.float64, device=self.device), 0
        method.network.train()
        drawn = method.draw_batches(len(self.training_set), epoch)
        batches = [batch for batch in drawn if len(batch) > 1]
        if not batches:
            raise ValueError(f"{type(method).__name__}.draw_batches gave no batch of two items or more")
        self.watch.start([len(batch) for batch in batches])
        for step, (indices, items) in enumerate(self.reader.read(batches)):
            if step == 0 or method.schedule_unit == "iteration" or epoch < math.ceil(method.warmup_epochs):
                self._set_rate(epoch, step, len(batches))
            try:
                loss = self._loss(indices, items, (method.seed, epoch, step))
            except NotANumber:
                self._refuse(epoch)
            value = loss.item() if asked else loss.detach().double()
            if asked and not math.isfinite(value):
                self._refuse(epoch)  # on a GPU the end of the epoch tells
            self._step(loss)
            self.state.iteration += 1
            total += value * len(indices)
            seen += len(indices)
        mean = float(total) / max(seen, 1)
        # The last step may have broken the weights after a loss that was still finite, and no loss of
        # training depends on running statistics.
        state = [*self.parameters, *method.network.buffers()]
        if not (math.isfinite(mean) and all(bool(torch.isfinite(values).all()) for values in state)):
            self._refuse(epoch)
        return mean, seen

    def _refuse(self, epoch):
        rate = self.method.learning_rate
        raise Diverged(f"the loss is not finite in epoch {epoch + 1}: lower learning_rate ({rate})")

    def _loss(self, indices, items, key):
        """The loss of a batch, its quantiser included. key: seed of the batch, three integers."""
        method = self.method
        outputs, features = self._forward(items, (*key, 2))
        self.watch.see(key[2], outputs, indices)
        batch = Batch(method, self.state, indices, features, lambda: self._forward(items, (*key, 5))[0])
        try:
            loss = method.loss(outputs, batch)
            if not (isinstance(loss, torch.Tensor) and loss.ndim == 0):
                given = f"shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else repr(loss)
                raise TypeError(f"{type(method).__name__}.loss must return a tensor of shape (), not {given}")
            if self.prefixes:
                self.state.log(**{f"loss_{method.bits}": loss})
                losses = [loss, *(prefix.loss(outputs, batch) for prefix in self.prefixes)]
                loss = torch.stack(losses).mean()
        except AttributeError as error:
            if error.obj is not batch:
                raise
            known = did_you_mean(error.name, ATTRIBUTES)
            raise AttributeError(
                f"{type(method).__name__}.loss: unknown batch.{error.name}{known}"
            ) from error
        if method.quantiser is not None:
            term = QUANTISERS[method.quantiser](outputs)
            self.state.log(**{method.quantiser: term})
            loss = loss + method.quantiser_weight * term
        return loss

    def _forward(self, items, key):
        """(raw scores float32 (M, bits), features (M, d)) of a random view of a batch, drawn by `key`."""
        method = self.method
        if method.augments():
            items = method.augment(items, np.random.default_rng(key))
        with method.precision(self.device):
            if isinstance(method.network, ImageHashing):
                features = method.network.features(items)
                return method.network.layer(features).float(), features
            return method.network(items).float(), items.flatten(1)

    def _step(self, loss):
        for parameter in self.parameters:  # as `zero_grad`, which names itself to a profiler each time
            parameter.grad = None
        self.scaler.scale(loss).backward()
        if self.method.max_gradient_norm is not None:
            self.scaler.unscale_(self.optimiser)
            torch.nn.utils.clip_grad_norm_(self.parameters, self.method.max_gradient_norm)
        self.scaler.step(self.optimiser)
        self.scaler.update()

    def _set_rate(self, epoch, step, steps):
        """The learning rate after `epoch` whole epochs and `step` of the `steps` batches of the next."""
        method, count, done = self.method, epoch, epoch
        if method.schedule_unit == "iteration":
            count, done = self.state.iteration, epoch + step / steps
        factor = scheduled_rate(
            method.schedule, count, done / method.epochs, method.lr_gamma, method.lr_step_size
        )
        if method.warmup_epochs:  # the first batch trains, too
            factor *= min(1.0, (epoch + (step + 1) / steps) / method.warmup_epochs)
        self.rate = method.learning_rate * factor
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate * group["rate_multiplier"]


def module_arrays(module: torch.nn.Module) -> dict[str, np.ndarray]:
    """Parameters and buffers of a module, by name."""
    return {name: value.detach().cpu().numpy() for name, value in module.state_dict().items()}


@contextlib.contextmanager
def seeded(*key, device=None):
    """Torch's global generators seeded with integers inside the block, and as they were after it."""
    devices = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        # `torch.manual_seed` also notes a stack for each kind of device that is not there, as long as a step.
        seed_all = torch.manual_seed if torch.cuda.is_available() else torch.default_generator.manual_seed
        seed_all(int(np.random.SeedSequence(key).generate_state(1)[0]))
        yield


@contextlib.contextmanager
def subnormals_flushed():
    """Inside the block this thread takes numbers below 1.2e-38 (float32) for 0, where the processor can.

    A gradient that has become 0, as that of a unit which no item reaches, leaves moments in the optimiser
    that fade through these numbers, and some processors take many times longer for them than for others.
    """
    was = bool(torch.tensor(1e-39) == 0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(was)


def _means(logged):
    """Name -> mean of what was logged in an epoch; None where it is not finite, which JSON cannot express."""
    means = {name: float(total) / calls for name, (total, calls) in logged.items()}
    return {name: mean if math.isfinite(mean) else None for name, mean in means.items()}


def _parameter_groups(method, states):
    """What the optimiser is given: parameters by their multipliers. Those whose rate is 0 are frozen, so that
    no gradient is computed for a network that does not change."""
    named = list(method.network.named_parameters())
    for state in states:
        if state.criterion is not None:
            named += [(f"criterion.{name}", value) for name, value in state.criterion.named_parameters()]
    groups: dict[tuple[float, float], list[torch.nn.Parameter]] = {}
    for name, parameter in named:
        rate, decay = method.rate_and_decay(name)
        if rate == 0:
            parameter.requires_grad_(False)
        else:  # also those that a method froze itself: they stay so, and the optimiser passes them over
            groups.setdefault((rate, decay), []).append(parameter)
    return [
        {"params": members, "rate_multiplier": rate, "weight_decay": decay * method.weight_decay}
        for (rate, decay), members in groups.items()
    ]
