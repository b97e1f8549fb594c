"""Training of hash layers and networks by stochastic gradient descent, shared by all deep methods.

The semantics are those of the MatConvNet trainers of TALR and MIHash: momentum 0.9, weight decay on biases
too, the loss averaged over the batch, a reshuffle every epoch, the last incomplete batch kept, and the model
of the last epoch is the result: no epoch is chosen by looking at queries.
"""

import contextlib
import json
import math
import time
from dataclasses import dataclass

import numpy as np
import torch

from methods._batches import ItemReader, mirror
from methods._checkpoint import Checkpoint
from methods._supervision import refuse_no_triplets
from methods.base import HashingMethod, Refusal

_IMAGES_ENCODED = 256  # at once: what a network computes on the way is much larger than its images


def shuffled_batches(items, size, key):
    """All of `items` items in random order, cut into index arrays of `size`, the last maybe shorter; key: the
    generator's seed, an integer or several."""
    order = np.random.default_rng(key).permutation(items)
    return [order[begin : begin + size] for begin in range(0, items, size)]


class ImageHashing(torch.nn.Module):
    """Images uint8 (n, H, W, 3) to raw scores (n, bits): `backbone`, a network of the room networks, and a
    hash layer on its output."""

    def __init__(self, backbone, layer):
        super().__init__()
        self.backbone, self.layer = backbone, layer

    def forward(self, images):
        return self.layer(self.backbone(self.backbone.preprocess(images.permute(0, 3, 1, 2))))


@dataclass(kw_only=True)
class DeepHashing(HashingMethod):
    """A network whose outputs' signs are the code. A method defines `loss`, and overrides what else differs.

    On vectors the network is the hash layer alone; on images it is the training set's network under it,
    trained end to end.

    learning_rate falls by `lr_gamma` every `lr_step_size` epochs (0: never).
    device: "cpu", "cuda" or "auto".

    Of images only: backbone_lr_multiplier multiplies the learning rate of the network under the hash layer;
    horizontal_flip: mirror each training image with probability 1/2; mixed_precision: compute in 16 bits
    where a CUDA device does so fast (the weights, the loss and its gradient by the scores stay in 32).
    """

    end_to_end = True

    learning_rate: float = 0.1
    lr_gamma: float = 0.5
    lr_step_size: int = 0
    momentum: float = 0.9
    weight_decay: float = 5e-4
    epochs: int = 50
    batch_size: int = 256
    backbone_lr_multiplier: float = 0.1
    horizontal_flip: bool = False
    mixed_precision: bool = True
    device: str = "cpu"

    # Names of what `prepare` returns that changes in training: numbers, and tensors that keep their shape.
    changing_memory = ()
    current_tanh_scale = None
    backbone = None  # the training set's `network`, once fitted on images

    def loss(self, outputs, affinity, indices):
        """Scalar to minimise. outputs: float (M, bits), the network's raw scores f; affinity: int64 (M, M),
        its diagonal included, or what `batch_affinity` makes; indices: int64 (M,), the items' places in the
        training set."""
        # Abstract: what a deep method is; conformance tests train every one.
        raise NotImplementedError(f"{type(self).__name__} does not define loss")

    def build_network(self, item_shape):
        """Items (n, *item_shape) to raw scores (n, bits): a hash layer, on `backbone` if there is one."""
        if self.backbone is None:
            return torch.nn.Sequential(torch.nn.Flatten(), self._hash_layer(math.prod(item_shape)))
        from networks import catalogue

        backbone = catalogue.make(self.backbone["architecture"], seed=self.seed, **self.backbone["options"])
        return ImageHashing(backbone, self._hash_layer(backbone.width))

    def _hash_layer(self, width):
        layer = torch.nn.Linear(width, self.bits)
        torch.nn.init.normal_(layer.weight, std=math.sqrt(2 / layer.in_features))
        torch.nn.init.zeros_(layer.bias)
        return layer

    def prepare(self, training_set):
        """Called once before training. What it returns is `self.memory` while training lasts, and is dropped
        with it: for methods that keep something per training item. May raise `Refusal`. What of it changes in
        training is named in `changing_memory`."""

    def draw_batches(self, items, epoch):
        """The batches of an epoch, counted from 0: a list of index arrays into the `items` training items."""
        return shuffled_batches(items, self.batch_size, (self.seed, epoch))

    def batch_affinity(self, training_set, indices):
        """What `loss` is given as affinity for a batch: an array with one row or more per item."""
        return training_set.affinity(indices, indices)

    def rate_and_decay(self, name):
        """(multiplier of the learning rate, multiplier of the weight decay) of a parameter of the network."""
        return (self.backbone_lr_multiplier if name.startswith("backbone.") else 1.0), 1.0

    def fit(self, training_set):
        if len(training_set) < 2:
            raise Refusal(f"training needs at least 2 items, there are {len(training_set)}")
        if self.batch_size < 2:
            raise Refusal(f"batch_size must be at least 2: one item ranks nothing, not {self.batch_size}")
        if self.epochs < 0:
            raise Refusal(f"epochs must be at least 0, not {self.epochs}")
        device = self._device()
        self.backbone = training_set.network
        self.item_shape = tuple(np.asarray(training_set.items[:1]).shape[1:])
        self.network = self._seeded_network()
        if training_set.weights is not None:
            from networks import catalogue

            architecture, options = self.backbone["architecture"], self.backbone["options"]
            self.network.backbone = catalogue.make(architecture, training_set.weights, **options)
        self.network.to(device)
        try:
            self.memory = self.prepare(training_set)
            self._train(training_set, device)
        finally:  # also where training was refused: a method keeps no training data
            vars(self).pop("memory", None)
        return self

    def _train(self, training_set, device):
        optimizer = torch.optim.SGD(
            self._parameter_groups(), self.learning_rate, self.momentum, weight_decay=self.weight_decay
        )
        # Gradients below 6e-8 vanish in float16; bfloat16 has the range of float32, and needs no scaling.
        scaled = self._half(device) is torch.float16
        scaler = torch.amp.GradScaler(device.type, enabled=scaled)
        reader = ItemReader(training_set.items, device)
        checkpoint = Checkpoint(training_set.checkpoint, self, optimizer, scaler, training_set.log)
        first, spent = checkpoint.resume()
        started = time.perf_counter() - spent
        for epoch in range(first, self.epochs):
            rate = self.schedule(epoch)
            self.start_epoch(epoch)
            for group in optimizer.param_groups:
                group["lr"] = rate * group["rate_multiplier"]
            begun = time.perf_counter()
            # Dropout draws from the global generator: seeded by epoch, a resumed training draws the same.
            with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
                torch.manual_seed(int(np.random.SeedSequence((self.seed, epoch, 3)).generate_state(1)[0]))
                objective, seen = self._epoch(training_set, reader, optimizer, scaler, epoch, device)
            record = {
                "epoch": epoch + 1,
                "epochs": self.epochs,
                "objective": objective,
                "seconds": time.perf_counter() - started,
                "learning_rate": rate,
            }
            if self.current_tanh_scale is not None:
                record["tanh_scale"] = self.current_tanh_scale
            if self.backbone is not None:
                record["images_per_second"] = seen / (time.perf_counter() - begun)
            checkpoint.after(epoch, record)
        checkpoint.remove()

    def schedule(self, epoch):
        """Learning rate of an epoch, counted from 0."""
        rate = self.learning_rate
        if self.lr_step_size:
            rate *= self.lr_gamma ** (epoch // self.lr_step_size)
        return rate

    def start_epoch(self, epoch):
        """Called before each epoch, counted from 0."""

    def _epoch(self, training_set, reader, optimizer, scaler, epoch, device):
        """One pass over the training set; returns the mean loss over its items, and how many were seen."""
        # On the device: asking for each loss would make it wait for each step.
        total, seen = torch.zeros((), dtype=torch.float64, device=device), 0
        self.network.train()
        batches = [batch for batch in self.draw_batches(len(training_set), epoch) if len(batch) > 1]
        for step, (indices, items) in enumerate(reader.read(batches)):
            if self.horizontal_flip and self.backbone is not None:
                items = mirror(items, np.random.default_rng((self.seed, epoch, step, 2)))
            affinity = torch.from_numpy(self.batch_affinity(training_set, indices)).to(device)
            with self._precision(device):
                outputs = self.network(items)
            loss = self.loss(outputs.float(), affinity, torch.from_numpy(indices).to(device))
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            total += loss.detach().double() * len(indices)
            seen += len(indices)
        total = total.item()
        # The last step may have broken the weights after a loss that was still finite.
        whole = all(bool(torch.isfinite(weights).all()) for weights in self.network.parameters())
        if not (math.isfinite(total) and whole):
            raise Refusal(
                f"the loss is not finite in epoch {epoch + 1}: lower learning_rate ({self.learning_rate})"
            )
        return total / seen, seen

    def _parameter_groups(self):
        """What torch.optim.SGD is given: the parameters by their multipliers."""
        groups = {}
        for name, parameter in self.network.named_parameters():
            groups.setdefault(self.rate_and_decay(name), []).append(parameter)
        return [
            {"params": members, "rate_multiplier": rate, "weight_decay": decay * self.weight_decay}
            for (rate, decay), members in groups.items()
        ]

    def encode_block(self, items):
        device = self._device()
        self.network.to(device).eval()
        step = len(items) if self.backbone is None else _IMAGES_ENCODED
        with torch.inference_mode(), self._precision(device):
            blocks = [
                (self.network(_tensor(items[begin : begin + step], device)) > 0).cpu().numpy()
                for begin in range(0, len(items), max(1, step))
            ]
        return np.concatenate(blocks)

    def state(self):
        state = {name: value.cpu().numpy() for name, value in self.network.state_dict().items()}
        return state | {
            "item_shape": np.array(self.item_shape, np.int64),
            "backbone": np.array(json.dumps(self.backbone)),
        }

    def set_state(self, state):
        self.item_shape = tuple(int(size) for size in state.pop("item_shape"))
        self.backbone = json.loads(str(state.pop("backbone")))
        self.network = self._seeded_network()
        self.network.load_state_dict({name: torch.from_numpy(value) for name, value in state.items()})

    def _seeded_network(self):
        # Layers draw their initial weights from the global generator: seed it, and put it back as it was.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return self.build_network(self.item_shape)

    def _half(self, device):
        """The 16-bit type to compute in, or None."""
        if not self.mixed_precision or self.backbone is None or device.type != "cuda":
            return None
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16

    def _precision(self, device):
        half = self._half(device)
        return contextlib.nullcontext() if half is None else torch.autocast(device.type, half)

    def _device(self):
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        if self.device == "cuda" and not torch.cuda.is_available():
            raise Refusal("device is cuda, but no CUDA device is available; set device to cpu or auto")
        return torch.device(self.device)


def _tensor(items, device):
    kind = np.uint8 if items.dtype == np.uint8 else np.float32
    # Torch wants memory that it may write to, which a memory map is not.
    return torch.from_numpy(np.require(items, kind, ["C", "W"])).to(device)


@dataclass(kw_only=True)
class RelaxedHashing(DeepHashing):
    """A deep method whose loss takes relaxed codes tanh(tanh_scale f) of raw scores f (eq. (tanh)).

    With tanh_scale_final the scale grows geometrically from tanh_scale in the first epoch to tanh_scale_final
    in the last (the appendix's continuation).
    """

    tanh_scale: float = 1.0
    tanh_scale_final: float | None = None

    def relax(self, outputs):
        """Relaxed codes in (-1, 1) at the current scale."""
        return torch.tanh(self.current_tanh_scale * outputs)

    def start_epoch(self, epoch):
        super().start_epoch(epoch)
        self.current_tanh_scale = self.tanh_scale
        if self.tanh_scale_final is not None and self.epochs > 1:
            growth = self.tanh_scale_final / self.tanh_scale
            self.current_tanh_scale *= growth ** (epoch / (self.epochs - 1))


@dataclass(kw_only=True)
class ListwiseHashing(RelaxedHashing):
    """A deep method that maximises the mean of a listwise objective on soft distance histograms.

    bins: intervals of the histogram, so bins + 1 centres (None: one per bit); delta: half-width of the
    triangular kernel in bin widths (eq. (delta)).
    """

    family = "listwise"

    bins: int | None = None
    delta: float = 1.0

    def prepare(self, training_set):
        binary = self.supervision == "binary"
        refuse_no_triplets(training_set, lambda affinity: affinity > 0 if binary else affinity)

    def objective(self, codes, affinity):
        """(M,) objectives to maximise. codes: relaxed codes (M, bits); affinity int64 (M, M)."""
        # Abstract: what a listwise method is; conformance tests train every one.
        raise NotImplementedError(f"{type(self).__name__} does not define objective")

    def loss(self, outputs, affinity, indices):
        return -self.objective(self.relax(outputs), affinity).mean()
