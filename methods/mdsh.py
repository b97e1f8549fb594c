"""MDSH: class codes at a guaranteed distance, a softmax over their cosines, and a pull of similar items.

Wang, Pan, Liu, Lai, Yin, Liu. Deep Hashing with Minimal-Distance-Separated Hash Centers. CVPR 2023. Authors'
code: Wangld5/Center-Hashing.
"""

import copy
import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Literal

import numpy as np
import torch
from torch.nn.functional import log_softmax, normalize, softplus

from methods.base.heads import ImageHashing, hash_layer
from methods.base.labels import label_matrix
from methods.class_codes.centres import separation
from methods.class_codes.class_codes import ClassCodeHashing, ClassCodes, class_codes
from methods.class_codes.mds_centres import guaranteed_distance, mds_centres

_LEAST = 1e-6  # probabilities stay this far from 1, whose complement's logarithm is taken


@dataclass(kw_only=True)
class MDSH(ClassCodeHashing):
    r"""Minimises the sum of three means,

    $$
    \underset{i, c}{\mathrm{mean}} \left[-s_{ic} \log \, p_{ic} - (1 - s_{ic}) \log \, (1 - p_{ic})\right]
    + \lambda \underset{(i, j)}{\mathrm{mean}} \, \log\left(1 + e^{(1 - \cos(u_i, U_j)) / 2}\right)
    + \kappa \underset{i, k}{\mathrm{mean}} \, (\left| u_{ik} \right| - 1)^2
    $$

    with $p_{ic}$ the softmax of $\sqrt{b} \cos(u_i, o_c)$ over classes, $o_c$ their codes, and u = tanh(v), v
    the batch-normalised output of a linear layer. The second mean, times $\lambda$ = `pairs`, is over similar
    pairs of a batch and all items, from epoch `pairs_from` on; $\kappa$ is the `quantisation`. $U_j$: the
    latest output for item j of a copy of the hash head that follows it by a moving average.

    centres: "mds", found by the paper's search (`methods.class_codes.mds_centres`; the log says so where it
    misses its distance), or "separated", drawn at random until they are far enough, in milliseconds. The
    authors copy the whole network, not only its head; RMSprop at 1e-5, batches of 64, gradients of norm at
    most 5, up to 1,000 epochs, the best on the queries.
    """

    title = "MDSH"
    paper = "https://doi.org/10.1109/CVPR52729.2023.02246"
    colour = "#B35806"
    marker = "H"
    supervision = "labels"
    family = "classwise"
    space = {
        "learning_rate": {"log_uniform": [1e-4, 3e-2]},
        "pairs": [0.0, 0.03, 0.1, 0.3, 1.0],
        "quantisation": {"log_uniform": [1e-4, 1.0]},
    }
    changing_memory = ("table",)

    optimiser: Literal["sgd", "adam", "adamw", "rmsprop"] = "rmsprop"
    learning_rate: float = 1e-3
    momentum: float = 0.0
    weight_decay: float = 1e-5
    max_gradient_norm: float | None = 5.0
    initial_deviation: float | None = 0.01
    epochs: int = 60
    batch_size: int = 64
    centres: Literal["mds", "separated"] = "mds"
    pairs: float = 1.0
    pairs_from: int = 9
    quantisation: float = 1e-4
    copy_momentum: float = 0.9

    def hash_layer(self, width):
        layer = hash_layer(width, self.bits, self.initial_deviation)
        return torch.nn.Sequential(layer, torch.nn.BatchNorm1d(self.bits, momentum=0.1))

    def prepare(self, training_set):
        label_matrix(training_set, "mdsh")
        noise = np.random.default_rng((self.seed, 12)).standard_normal((len(training_set), self.bits))
        every = torch.from_numpy(training_set.label_rows(np.arange(len(training_set)))).to(self._device())
        table = normalize(torch.from_numpy(noise.astype(np.float32)).to(every.device))
        return SimpleNamespace(table=table, labels=every, members=_members(every))

    def build_criterion(self, training_set):
        if self.centres == "separated":
            found = class_codes(self, training_set, "separated", "mdsh")
        else:
            generator = np.random.default_rng((self.seed, 11))
            codes = mds_centres(training_set.classes, self.bits, generator)
            self._say_if_too_near(codes, training_set.log)
            found = ClassCodes(codes[generator.permutation(len(codes))], generator)
        return self._with_follower(found)

    def prefix_criterion(self, training_set, whole):
        return self._with_follower(super().prefix_criterion(training_set, whole))

    def _with_follower(self, found):
        # A buffer, as it were: without gradients nothing trains it, and checkpoints keep it.
        found.follower = copy.deepcopy(self._head_of(self.network)).requires_grad_(False)
        return found

    @staticmethod
    def _say_if_too_near(codes, log):
        found, wanted = separation(codes)[0], guaranteed_distance(*codes.shape)
        if found < wanted:
            words = f"class codes are {found} bits apart at the least, the search is for {wanted}"
            log({"objective": None, "seconds": 0.0, "warning": words})

    @staticmethod
    def _head_of(network):
        """The part of the network that makes raw scores of features."""
        return network.layer if isinstance(network, ImageHashing) else network

    def loss(self, outputs, batch):
        training, labels = batch.training, batch.labels
        relaxed = torch.tanh(outputs)
        unit = normalize(relaxed)
        logarithms = log_softmax(math.sqrt(self.bits) * unit @ normalize(training.criterion.codes).T, dim=1)
        complements = torch.log1p(-logarithms.exp().clamp(max=1 - _LEAST))
        value = -(labels * logarithms + (1 - labels) * complements).mean()
        value = value + self.quantisation * (relaxed.abs() - 1).square().mean()
        self._follow(batch)
        if self.pairs and training.epoch >= self.pairs_from:
            value = value + self.pairs * _pull(unit, labels, training.memory)
        return value

    def _follow(self, batch):
        """Move the copy of the head towards the head, and keep its outputs for the batch."""
        follower, head = batch.training.criterion.follower, self._head_of(self.network)
        with torch.no_grad():
            for mine, its in zip(follower.state_dict().values(), head.state_dict().values()):
                if mine.is_floating_point():
                    mine.mul_(self.copy_momentum).add_(its, alpha=1 - self.copy_momentum)
                else:
                    mine.copy_(its)
            relaxed = torch.tanh(follower(batch.features.detach()))
            batch.training.memory.table[batch.indices] = normalize(relaxed)


def _members(labels):
    """Places of the items of each class, -1 where a class has no more: int64 (classes, largest class).

    None where items have several labels, or a few classes most of the items.
    """
    sizes = labels.sum(dim=0).long()
    largest = int(sizes.max())
    if (labels.sum(dim=1) != 1).any() or largest * len(sizes) > 2 * len(labels):
        return None
    return _rows_by_class(labels.argmax(dim=1), sizes, largest)


def _rows_by_class(classes, sizes, largest):
    order = classes.argsort(stable=True)
    ascending = classes[order]
    rows = classes.new_full((len(sizes), largest), -1)
    within = torch.arange(len(order), device=order.device) - (sizes.cumsum(0) - sizes)[ascending]
    rows[ascending, within] = order
    return rows


def _pull(unit, labels, memory):
    """The mean over similar pairs of a batch, scores (M, bits) of unit length, and all items."""
    if memory.members is None:
        similar = labels @ memory.labels.T > 0
        apart = softplus((1 - unit @ memory.table.T) / 2)
        return (apart * similar).sum() / similar.sum().clamp(min=1)
    # Other pairs weigh nothing: with 200 classes 199 of 200 are left out, not multiplied by 0.
    sizes = labels.sum(dim=0).long()
    ours = _rows_by_class(labels.argmax(dim=1), sizes, int(sizes.max()))[sizes > 0]
    theirs = memory.members[sizes > 0]
    similar = (ours >= 0).unsqueeze(2) & (theirs >= 0).unsqueeze(1)
    apart = softplus((1 - unit[ours] @ memory.table[theirs].transpose(1, 2)) / 2)
    return (apart * similar).sum() / similar.sum()
