"""The training loop of deep methods: batches, steps, learning rates, what is logged, checkpoints."""

import contextlib
import inspect
import math
import time

import numpy as np
import torch

from methods._batches import ItemReader
from methods._checkpoint import Checkpoint
from methods.base import Diverged
from methods.base.heads import ImageHashing
from methods.base.optimisation import make_optimiser, scheduled_rate
from methods.base.quantisers import QUANTISERS
from methods.base.watch import CodeWatch
from tiebench.values import NotANumber

LOSS_ARGUMENTS = ("affinity", "indices", "labels", "features", "second")


class Training:
    """One training of a `methods.base.deep.DeepHashing`, whose network, memory and criterion are made."""

    def __init__(self, method, training_set, device):
        self.method, self.training_set, self.device = method, training_set, device
        self.wanted = loss_arguments(type(method))
        self.optimiser = make_optimiser(
            method.optimiser,
            _parameter_groups(method),
            method.learning_rate,
            method.momentum,
            method.weight_decay,
        )
        self.parameters = [p for group in self.optimiser.param_groups for p in group["params"]]
        # Gradients below 6e-8 vanish in float16; bfloat16 has the range of float32, and needs no scaling.
        scaled = method.half_precision(device) is torch.float16
        self.scaler = torch.amp.GradScaler(device.type, enabled=scaled)
        self.reader = ItemReader(training_set.items, device)
        self.rate = method.learning_rate
        self.watch = CodeWatch(method.bits, training_set.labels)

    def run(self):
        """All epochs; the method's network is trained in place.

        Raises `Diverged` in the epoch in which the loss or the network stops being finite, and ends
        after `end_collapsed` epochs in a row whose codes are collapsed.
        """
        method, log = self.method, self.training_set.log
        checkpoint = Checkpoint(self.training_set.checkpoint, method, self.optimiser, self.scaler, log)
        method.iteration = 0
        first, spent = checkpoint.resume()
        started = time.perf_counter() - spent
        for epoch in range(first, method.epochs):
            if self._given_up(checkpoint.records):
                break
            begun = time.perf_counter()
            method.logged = {}
            # Dropout draws from the global generator: seeded by epoch, a resumed training draws the same.
            with seeded(method.seed, epoch, 3, device=self.device):
                method.start_epoch(epoch, self.training_set)
                objective, seen = self._epoch(epoch)
            record = {
                "epoch": epoch + 1,
                "epochs": method.epochs,
                "objective": objective,
                "seconds": time.perf_counter() - started,
                "learning_rate": self.rate,
            }
            record |= self.watch.finish(method.unused_bits())
            if method.backbone is not None:
                record["images_per_second"] = seen / (time.perf_counter() - begun)
            record = _means(method.logged) | record
            if self._given_up([*checkpoint.records, record]):
                record["ended"] = f"codes collapsed in {method.end_collapsed} epochs in a row"
            checkpoint.after(epoch, record)
        method.end_training(self.training_set)

    def _given_up(self, records):
        """Whether the codes of the last `end_collapsed` epochs are collapsed."""
        last = records[-self.method.end_collapsed :] if self.method.end_collapsed else []
        return len(last) == self.method.end_collapsed > 0 and all("collapsed" in one for one in last)

    def _epoch(self, epoch):
        """One pass over the training set; returns the mean loss over its items, and how many were seen."""
        method = self.method
        # On the device: asking for each loss would make it wait for each step.
        total, seen = torch.zeros((), dtype=torch.float64, device=self.device), 0
        method.network.train()
        drawn = method.draw_batches(len(self.training_set), epoch)
        batches = [batch for batch in drawn if len(batch) > 1]
        self.watch.start([len(batch) for batch in batches])
        for step, (indices, items) in enumerate(self.reader.read(batches)):
            if step == 0 or method.schedule_unit == "iteration" or epoch < math.ceil(method.warmup_epochs):
                self._set_rate(epoch, step, len(batches))
            try:
                loss = self._loss(indices, items, (method.seed, epoch, step))
            except NotANumber:
                self._refuse(epoch)
            if self.device.type == "cpu" and not math.isfinite(loss.item()):
                self._refuse(epoch)  # a GPU would wait: there the end of the epoch tells
            self._step(loss)
            method.iteration += 1
            total += loss.detach().double() * len(indices)
            seen += len(indices)
        mean = total.item() / max(seen, 1)
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
        method, wanted = self.method, self.wanted
        outputs, features = self._forward(items, (*key, 2))
        self.watch.see(key[2], outputs)
        given = {}
        if "affinity" in wanted:
            given["affinity"] = self._tensor(method.batch_affinity(self.training_set, indices))
        if "indices" in wanted:
            given["indices"] = self._tensor(indices)
        if "labels" in wanted:
            given["labels"] = self._tensor(self.training_set.label_rows(indices))
        if "features" in wanted:
            given["features"] = features.float()
        if "second" in wanted:
            given["second"] = self._forward(items, (*key, 5))[0]
        loss = method.loss(outputs, **given)
        if method.quantiser is not None:
            term = QUANTISERS[method.quantiser](outputs)
            method.log(**{method.quantiser: term})
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
        self.optimiser.zero_grad()
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
            count, done = method.iteration, epoch + step / steps
        factor = scheduled_rate(
            method.schedule, count, done / method.epochs, method.lr_gamma, method.lr_step_size
        )
        if method.warmup_epochs:  # the first batch trains, too
            factor *= min(1.0, (epoch + (step + 1) / steps) / method.warmup_epochs)
        self.rate = method.learning_rate * factor
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate * group["rate_multiplier"]

    def _tensor(self, array):
        return torch.from_numpy(array).to(self.device)


def loss_arguments(method_class):
    """Names of what a method's loss takes besides `outputs`. Raises TypeError for an unknown one."""
    names = list(inspect.signature(method_class.loss).parameters)[2:]
    for name in names:
        if name not in LOSS_ARGUMENTS:
            known = ", ".join(LOSS_ARGUMENTS)
            raise TypeError(f"{method_class.__name__}.loss takes {name!r}; after outputs it may take {known}")
    return names


@contextlib.contextmanager
def seeded(*key, device=None):
    """Torch's global generators seeded with integers inside the block, and as they were after it."""
    devices = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(int(np.random.SeedSequence(key).generate_state(1)[0]))
        yield


def _means(logged):
    """Name -> mean of what was logged in an epoch; None where it is not finite, which JSON cannot express."""
    means = {name: float(total) / calls for name, (total, calls) in logged.items()}
    return {name: mean if math.isfinite(mean) else None for name, mean in means.items()}


def _parameter_groups(method):
    """What the optimiser is given: parameters by their multipliers. Those whose rate is 0 are frozen, so that
    no gradient is computed for a network that does not change."""
    named = list(method.network.named_parameters())
    if method.criterion is not None:
        named += [(f"criterion.{name}", value) for name, value in method.criterion.named_parameters()]
    groups = {}
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
