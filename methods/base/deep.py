"""Training of hash layers and networks by stochastic gradient descent, shared by all deep methods.

By default the semantics are those of the MatConvNet trainers of TALR and MIHash: SGD with momentum 0.9,
weight decay on biases too, the loss averaged over the batch, a reshuffle every epoch, the last incomplete
batch kept. The model of the last epoch is the result: no epoch is chosen by looking at queries.

docs/add-a-method.md lists the hooks, with what each is for.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch

from methods.base import ENCODE_ROWS, HashingMethod, Refusal, TrainingSet, check_settings
from methods.base.augmentation import mirror, shift
from methods.base.batch import Batch, TrainingState
from methods.base.heads import ImageHashing, hash_layer, make_head
from methods.base.nested import Prefix, refuse_bad_prefixes
from methods.base.supervision import refuse_no_triplets
from methods.base.training import Training, module_arrays, seeded
from networks.base.devices import fast_half, resolve_device

_IMAGES_ENCODED = 256  # at once: the activations of a network are much larger than its images
_STANDARDISED = 2048  # images that tell the mean and the length of features


def shuffled_batches(items: int, size: int, key: int | tuple[int, ...]) -> list[np.ndarray]:
    """Indices of `items` items in random order, cut into int64 arrays of `size`, the last maybe shorter.

    Parameters
    ----------
    key : int or tuple of int
        Seed of the generator.
    """
    order = np.random.default_rng(key).permutation(items)
    return [order[begin : begin + size] for begin in range(0, items, size)]


@dataclass(kw_only=True)
class DeepHashing(HashingMethod):
    """A network whose outputs' signs are the code. A method defines `loss`, and overrides what else differs.

    On vectors the network is the hash head alone; on images it is the training set's network under it,
    trained end to end.

    Parameters
    ----------
    learning_rate : float
        It falls by `schedule`, counted in epochs or, with `schedule_unit` "iteration", in batches.
    schedule : str
        "step": by `lr_gamma` every `lr_step_size` (0: never); "cosine": to 0 along half a cosine period.
    warmup_epochs : float
        Over so many epochs at the start (a fraction is allowed) the rate of the schedule is multiplied by a
        factor that grows linearly, batch by batch, to 1.
    optimiser : str
        "sgd", "adam", "adamw" (decoupled weight decay) or "rmsprop".
    momentum : float
        Of SGD and RMSprop; the decay of Adam's first moment.
    weight_decay : float
        Times the parameters it is added to their gradient (an L2 penalty of half of it); with "adamw" it
        shrinks the parameters instead.
    max_gradient_norm : float or None
        Gradients of larger norm, over all parameters, are scaled down to it (None: never).
    head : str
        "linear", one hash layer; "mlp", `head_layers` hidden layers of `head_width` units before it, with
        ReLU, dropout of `head_dropout`, and batch normalisation if `head_batch_norm`.
    initial_deviation : float or None
        Standard deviation of the initial weights of the hash layer (None: sqrt(2 / width), width being that
        of its input).
    quantiser : str or None
        A term times `quantiser_weight` that is added to the loss and pulls raw scores to -1 and +1
        (`methods.base.quantisers`).
    nested : list of int or None
        Lengths below `bits`, ascending. The loss is then the mean of the losses on the first n scores, for
        each n of the list, and on all of them, so that the first n bits serve as a code of their own
        (Kusupati et al., NeurIPS 2022). What a loss learns or keeps (classifiers, proxies, tables) it has
        once per length; class codes are cut. The quantiser is of all scores.
    end_collapsed : int
        End the training after so many epochs in a row whose codes are collapsed (0: never, see
        docs/health.md).
    device : str
        "cpu", "cuda" or "auto".
    standardise_features : bool
        Of images only: subtract from what the head is given its mean over training images before training,
        and divide it by one number, so that its values have variance 1 on average then.
    backbone_lr_multiplier : float
        Of images only: multiplies the learning rate of the network under the hash head; 0 keeps that network
        as it is.
    horizontal_flip : bool
        Of images only: mirror each training image with probability 1/2.
    random_crop : int
        Of images only: shift each by up to so many pixels in both directions, filled by reflection.
    mixed_precision : bool
        Of images only: compute in 16 bits where the device does so fast, a CUDA device or a processor that
        multiplies bfloat16 under a network that gains by it (the weights, the loss and its gradient by the
        scores stay in 32).
    """

    end_to_end = True
    common_space = {
        "schedule": ["step", "cosine"],
        "warmup_epochs": [0.0, 2.0, 5.0],
        "epochs": {"log_uniform": [30, 240]},
        "batch_size": [32, 64, 128, 256, 512],
        "weight_decay": {"log_uniform": [1e-6, 1e-2]},
    }
    # Adam and SGD in turn, and Adam with a linear head. Adam's steps do not depend on the scale of the loss:
    # one range of rates serves every method.
    trainers = [
        {
            "head": ["mlp"],
            "head_width": [256, 512, 1024],
            "head_layers": [1, 2],
            "head_dropout": [0.0, 0.25, 0.5, 0.75],
            "head_batch_norm": [False, True],
            "optimiser": ["adam"],
            "momentum": [0.9],
            "learning_rate": {"log_uniform": [1e-4, 1e-2]},
        },
        {
            "head": ["mlp"],
            "head_width": [256, 512, 1024],
            "head_layers": [1, 2],
            "head_dropout": [0.0, 0.25, 0.5, 0.75],
            "head_batch_norm": [False, True],
        },
        {
            "head": ["linear"],
            "optimiser": ["adam"],
            "momentum": [0.9],
            "learning_rate": {"log_uniform": [1e-4, 1e-2]},
        },
    ]
    bounds = {
        "learning_rate": "[0, inf)",
        "lr_gamma": "[0, inf)",
        "lr_step_size": "[0, inf)",
        "warmup_epochs": "[0, inf)",
        "momentum": "[0, 1)",
        "weight_decay": "[0, inf)",
        "max_gradient_norm": "(0, inf)",
        "epochs": "[0, inf)",
        "batch_size": "[2, inf)",
        "head_layers": "[1, inf)",
        "head_width": "[1, inf)",
        "head_dropout": "[0, 1)",
        "initial_deviation": "(0, inf)",
        "end_collapsed": "[0, inf)",
        "backbone_lr_multiplier": "[0, inf)",
        "random_crop": "[0, inf)",
    }

    learning_rate: float = 0.1
    lr_gamma: float = 0.5
    lr_step_size: int = 0
    schedule: Literal["step", "cosine"] = "step"
    schedule_unit: Literal["epoch", "iteration"] = "epoch"
    warmup_epochs: float = 0.0
    optimiser: Literal["sgd", "adam", "adamw", "rmsprop"] = "sgd"
    momentum: float = 0.9
    weight_decay: float = 5e-4
    max_gradient_norm: float | None = None
    epochs: int = 50
    batch_size: int = 256
    head: Literal["linear", "mlp"] = "linear"
    head_layers: int = 1
    head_width: int = 1024
    head_dropout: float = 0.0
    head_batch_norm: bool = False
    initial_deviation: float | None = None
    quantiser: Literal["hswd"] | None = None
    quantiser_weight: float = 0.1
    nested: list[int] | None = None
    end_collapsed: int = 0
    standardise_features: bool = False
    backbone_lr_multiplier: float = 0.1
    horizontal_flip: bool = False
    random_crop: int = 0
    mixed_precision: bool = True
    device: str = "cpu"

    # Attributes of what `prepare` returns that change in training: numbers, and tensors of fixed shape.
    changing_memory: ClassVar[tuple[str, ...]] = ()

    # Why the loss has no meaning on the first scores alone, of a method that refuses `nested`.
    not_nested: ClassVar[str | None] = None

    # -- what a method defines or overrides ----------------------------------------------------------------

    def loss(self, outputs: torch.Tensor, batch: Batch) -> torch.Tensor:
        """What is to be minimised: a tensor of shape ().

        What else the loss wants of the items it asks `batch` for: their `affinity`, `indices`, `labels`,
        `features`, or the scores of a `second` view of them. `batch.training` is the state of the training:
        its `memory`, `criterion`, `epoch`, `iteration` and `log`.

        Parameters
        ----------
        outputs : float (M, bits)
            The raw scores of a batch.
        """
        # Abstract: what a deep method is; conformance tests train every one.
        raise NotImplementedError(f"{type(self).__name__} does not define loss")

    def prepare(self, training_set: TrainingSet) -> Any:
        """Called once before training. What it returns is the training's `memory`: for methods that keep
        something per training item. May raise `Refusal`. Name what of it changes in training in
        `changing_memory`."""

    def build_criterion(self, training_set: TrainingSet) -> torch.nn.Module | None:
        """Parameters and buffers of the loss itself (a classifier, proxies, class codes), or None.

        Called once before training, after `prepare`. The module is the training's `criterion`; its parameters
        are trained with the network's (their names in `rate_and_decay` begin with "criterion."), and it is
        kept in checkpoints and, as `criterion_state`, a dict of arrays, in the model's file.
        """
        return None

    def prefix_criterion(
        self, training_set: TrainingSet, whole: torch.nn.Module | None
    ) -> torch.nn.Module | None:
        """The criterion of a length of `nested`: `bits` is that length, `whole` the criterion of all bits.

        By default a new one. May raise `Refusal`.
        """
        return self.build_criterion(training_set)

    def start_epoch(self, training: TrainingState) -> None:
        """Called before each epoch: to change the training's `memory` or `criterion`.

        Draw random numbers from `np.random.default_rng((self.seed, training.epoch, k))` with a k of 10 or
        more, or from torch's global generator, so that a resumed training draws the same.
        """

    def end_training(self, training: TrainingState) -> None:
        """Called once after the last epoch: for what `memory` or `criterion` are still needed for."""

    def draw_batches(self, items: int, epoch: int) -> list[np.ndarray]:
        """The batches of an epoch, counted from 0: a list of index arrays into the `items` training items."""
        return shuffled_batches(items, self.batch_size, (self.seed, epoch))

    def batch_affinity(self, training: TrainingState, indices: np.ndarray) -> np.ndarray:
        """`affinity` of the batch of the items at `indices`: an array with one row or more per item."""
        return training.training_set.affinity(indices, indices)

    def augment(self, items: torch.Tensor, generator: np.random.Generator) -> torch.Tensor:
        """A random view of a batch, of its shape and type: float (M, d) or uint8 images (M, H, W, 3).

        Called for each batch of training, and once more for a loss that asks for `second`. Must draw from
        `generator` alone.
        """
        if self.backbone is not None and self.horizontal_flip:
            items = mirror(items, generator)
        if self.backbone is not None and self.random_crop:
            items = shift(items, self.random_crop, generator)
        return items

    def augments(self) -> bool:
        """Whether `augment` changes anything."""
        changed = type(self).augment is not DeepHashing.augment
        return changed or (self.backbone is not None and (self.horizontal_flip or self.random_crop > 0))

    def hash_layer(self, width: int) -> torch.nn.Module:
        """The last part of the head, features (n, width) to raw scores (n, bits)."""
        return hash_layer(width, self.bits, self.initial_deviation)

    def build_network(self, item_shape: tuple[int, ...]) -> torch.nn.Module:
        """Items (n, `*item_shape`) to raw scores (n, bits): the hash head, on `backbone` if there is one."""
        if self.backbone is None:
            return torch.nn.Sequential(torch.nn.Flatten(), self._head(math.prod(item_shape)))
        import networks

        backbone = networks.make(self.backbone["architecture"], seed=self.seed, **self.backbone["options"])
        width = backbone.width if self.standardise_features else None
        return ImageHashing(backbone, self._head(backbone.width), width)

    def rate_and_decay(self, name: str) -> tuple[float, float]:
        """(multiplier of the learning rate, multiplier of the weight decay) of a parameter: of the network,
        of its `backbone.`, or of the `criterion.`"""
        return (self.backbone_lr_multiplier if name.startswith("backbone.") else 1.0), 1.0

    # -- what a method may call ----------------------------------------------------------------------------

    def raw_scores(self, items: Any) -> np.ndarray:
        """Scores of items by the network as it is, in evaluation mode: float32 (n, bits)."""
        device = self._device()
        mode = self.network.training
        self.network.to(device).eval()
        step = ENCODE_ROWS if self.backbone is None else _IMAGES_ENCODED
        blocks = [np.zeros((0, self.bits), np.float32)]
        with torch.inference_mode(), self.precision(device):
            for begin in range(0, len(items), step):
                block = _tensor(np.asarray(items[begin : begin + step]), device)
                blocks.append(self.network(block).float().cpu().numpy())
        self.network.train(mode)
        return np.concatenate(blocks)

    # -- training ------------------------------------------------------------------------------------------

    def fit(self, training_set: TrainingSet) -> Self:
        _check_hooks(type(self))
        self._refuse_bad_settings(len(training_set))
        device = self._device()
        self.backbone: dict[str, Any] | None = training_set.network
        self.item_shape = tuple(np.asarray(training_set.items[:1]).shape[1:])
        self.network = self._seeded_network()
        if training_set.weights is not None and self.backbone is not None:
            import networks

            architecture, options = self.backbone["architecture"], self.backbone["options"]
            self.network.backbone = networks.make(architecture, training_set.weights, **options)
        self.network.to(device)
        if self.standardise_features and self.backbone is not None:
            self._standardise(training_set, device)
        memory = self.prepare(training_set)
        if lacking := [name for name in self.changing_memory if not hasattr(memory, name)]:
            raise TypeError(
                f"{type(self).__name__}: changing_memory names {', '.join(lacking)}, but what prepare "
                "returned has no such attribute; return an object with attributes, as a SimpleNamespace"
            )
        with seeded(self.seed, 4):
            criterion = self.build_criterion(training_set)
        if criterion is not None:
            criterion.to(device)
        state = TrainingState(training_set, memory, criterion)
        Training(self, state, self._prefixes(state, device), device).run()
        return self

    def _prefixes(self, whole, device):
        prefixes = [Prefix(self, whole, length) for length in self.nested or ()]
        for prefix in prefixes:
            with seeded(self.seed, 4):
                criterion = prefix.method.prefix_criterion(whole.training_set, whole.criterion)
            prefix.state.criterion = criterion if criterion is None else criterion.to(device)
        return prefixes

    def _standardise(self, training_set, device):
        (rows, *_) = shuffled_batches(len(training_set), _STANDARDISED, (self.seed, 5))
        blocks = (rows[begin : begin + _IMAGES_ENCODED] for begin in range(0, len(rows), _IMAGES_ENCODED))
        self.network.eval()
        with torch.inference_mode(), self.precision(device):
            self.network.standardise(
                _tensor(np.asarray(training_set.items[np.sort(block)]), device) for block in blocks
            )
        self.network.train()

    def _refuse_bad_settings(self, items):
        if items < 2:
            raise Refusal(f"training needs at least 2 items, there are {items}")
        check_settings(self)
        refuse_bad_prefixes(self)

    # -- encoding and files --------------------------------------------------------------------------------

    def encode_block(self, items: np.ndarray) -> np.ndarray:
        return self.raw_scores(items) > 0

    def state(self) -> dict[str, np.ndarray]:
        kept = {f"criterion.{name}": value for name, value in self.criterion_state.items()}
        own = {
            "item_shape": np.array(self.item_shape, np.int64),
            "backbone": np.array(json.dumps(self.backbone)),
        }
        return module_arrays(self.network) | own | kept

    def set_state(self, state: dict[str, np.ndarray]) -> None:
        state = dict(state)
        self.item_shape = tuple(int(size) for size in state.pop("item_shape"))
        self.backbone = json.loads(str(state.pop("backbone")))
        kept = [name for name in state if name.startswith("criterion.")]
        self.criterion_state = {name.removeprefix("criterion."): state.pop(name) for name in kept}
        self.network = self._seeded_network()
        self.network.load_state_dict({name: torch.from_numpy(value) for name, value in state.items()})

    def _head(self, width):
        hidden = self.head_layers if self.head == "mlp" else 0
        return make_head(
            width, hidden, self.head_width, self.head_dropout, self.head_batch_norm, self.hash_layer
        )

    def _seeded_network(self):
        # Layers draw their initial weights from the global generator: seed it, and put it back as it was.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return self.build_network(self.item_shape)

    def half_precision(self, device):
        """The 16-bit type to compute in, or None."""
        if not self.mixed_precision or self.backbone is None:
            return None
        # Networks of a method's own say nothing of their arithmetic on a CPU.
        network = getattr(vars(self).get("network"), "backbone", None)
        return fast_half(device, getattr(network, "bfloat16_on_cpu", False))

    def precision(self, device):
        """The context in which the network computes."""
        half = self.half_precision(device)
        return contextlib.nullcontext() if half is None else torch.autocast(device.type, half)

    def _device(self):
        try:
            return resolve_device(self.device)
        except ValueError as error:
            raise Refusal(str(error)) from error


@dataclass(kw_only=True)
class RelaxedHashing(DeepHashing):
    """A deep method whose loss takes relaxed codes tanh(tanh_scale f) of raw scores f (eq. (tanh)).

    Parameters
    ----------
    tanh_scale : float
        In the first epoch.
    tanh_scale_final : float or None
        In the last epoch, to which the scale grows geometrically (the appendix's continuation).
    """

    tanh_scale: float = 1.0
    tanh_scale_final: float | None = None

    def relax(self, outputs: torch.Tensor) -> torch.Tensor:
        """Relaxed codes in (-1, 1) at the current scale."""
        return torch.tanh(getattr(self, "current_tanh_scale", self.tanh_scale) * outputs)

    def start_epoch(self, training: TrainingState) -> None:
        super().start_epoch(training)
        self.current_tanh_scale = self.tanh_scale
        if self.tanh_scale_final is not None and self.epochs > 1:
            growth = self.tanh_scale_final / self.tanh_scale
            self.current_tanh_scale *= growth ** (training.epoch / (self.epochs - 1))
        training.log(tanh_scale=self.current_tanh_scale)


@dataclass(kw_only=True)
class ListwiseHashing(RelaxedHashing):
    """A deep method that maximises the mean of a listwise objective on soft distance histograms.

    Parameters
    ----------
    bins : int or None
        Intervals of the histogram, so bins + 1 centres (None: one per bit).
    delta : float
        Half-width of the triangular kernel in bin widths (eq. (delta)).
    """

    family = "listwise"

    bins: int | None = None
    delta: float = 1.0

    def prepare(self, training_set: TrainingSet) -> None:
        binary = self.supervision == "binary"
        refuse_no_triplets(training_set, lambda affinity: affinity > 0 if binary else affinity)

    def objective(self, codes: torch.Tensor, affinity: torch.Tensor) -> torch.Tensor:
        """Objectives to maximise, (M,).

        Parameters
        ----------
        codes : float (M, bits)
            Relaxed codes.
        affinity : int64 (M, M)
        """
        # Abstract: what a listwise method is; conformance tests train every one.
        raise NotImplementedError(f"{type(self).__name__} does not define objective")

    def loss(self, outputs: torch.Tensor, batch: Batch) -> torch.Tensor:
        return -self.objective(self.relax(outputs), batch.affinity).mean()


def _check_hooks(method_class):
    """Raises TypeError, one line that says what to write, for a hook whose arguments are others than those
    that it is called with."""
    for hook in ("loss", "start_epoch", "end_training", "batch_affinity"):
        names, ours = (
            list(inspect.signature(getattr(kind, hook)).parameters) for kind in (method_class, DeepHashing)
        )
        if names != ours:
            giver = "batch" if hook == "loss" else "training"
            given = ", ".join(f"{giver}.{name}" for name in names if name not in ours)
            raise TypeError(
                f"{method_class.__name__}.{hook} takes ({', '.join(names[1:])}): write "
                f"{hook}({', '.join(ours)})" + (f", and there {given}" if given else "")
            )


def _tensor(items, device):
    kind = np.uint8 if items.dtype == np.uint8 else np.float32
    # Torch wants memory that it may write to, which a memory map is not.
    return torch.from_numpy(np.require(items, kind, ["C", "W"])).to(device)
