"""Nested codes: any deep loss on the first scores of an item, too; one code then serves at several lengths.

Kusupati et al. Matryoshka Representation Learning. NeurIPS 2022.
"""

from __future__ import annotations

import copy
from typing import Any

import torch

from methods.base import Refusal
from methods.base.batch import Batch, TrainingState
from methods.base.heads import ImageHashing


class Prefix:
    """The same method on the first `bits` raw scores, with a `memory` and a `criterion` of its own.

    Its loss sees what a training at that length would: a copy of the method with so many bits, whose network
    gives the first scores of the whole one's, and batches whose second view is cut alike.
    """

    def __init__(self, method: Any, whole: TrainingState, bits: int):
        """method: a `methods.base.deep.DeepHashing` whose network is made; whole: the state of its
        training. Raises `Refusal` as `prepare` and `prefix_criterion` do."""
        self.bits = bits
        self.method = copy.copy(method)
        self.method.bits, self.method.nested = bits, None
        self.method.network = first_scores(method.network, bits)
        memory = self.method.prepare(whole.training_set)
        self.state = TrainingState(whole.training_set, memory, None)

    def start_epoch(self, whole: TrainingState) -> None:
        """As the method's hook, at the epoch of the whole."""
        self._follow(whole)
        self.method.start_epoch(self.state)

    def loss(self, outputs: torch.Tensor, batch: Batch) -> torch.Tensor:
        """The loss on the first of the raw scores (M, bits of the whole) of a batch; it is logged, too, as
        loss_<bits>."""
        self._follow(batch.training)
        value = self.method.loss(outputs[:, : self.bits], _PrefixBatch(batch, self.state, self.bits))
        batch.training.log(**{f"loss_{self.bits}": value})
        return value

    def _follow(self, whole):
        self.state.epoch, self.state.iteration = whole.epoch, whole.iteration
        self.state.logged = {}


class _PrefixBatch:
    """A batch as the loss of a prefix sees it: what is computed of items is computed once for all lengths."""

    def __init__(self, whole: Batch, training: TrainingState, bits: int):
        self._whole, self._bits, self.training = whole, bits, training

    @property
    def second(self):
        return self._whole.second[:, : self._bits]

    def __getattr__(self, name):
        return getattr(self._whole, name)


class _First(torch.nn.Module):
    def __init__(self, count):
        super().__init__()
        self.count = count

    def forward(self, scores):
        return scores[:, : self.count]


def first_scores(network: torch.nn.Module, count: int) -> torch.nn.Module:
    """A network that gives the first `count` scores of another, whose parameters and buffers it shares."""
    if not isinstance(network, ImageHashing):
        return torch.nn.Sequential(network, _First(count))
    view = copy.copy(network)
    view._modules = {**network._modules, "layer": torch.nn.Sequential(network.layer, _First(count))}
    return view


def refuse_bad_prefixes(method: Any) -> None:
    """Check `nested` of a deep method before anything is trained.

    Raises
    ------
    Refusal
        For lengths that are not ascending integers from 1 to below `bits`, or a method without a loss of the
        first scores.
    """
    if not method.nested:
        return
    if method.not_nested is not None:
        raise Refusal(f"nested does not serve this method: {method.not_nested}")
    lengths, whole = method.nested, method.bits
    plain = isinstance(lengths, list | tuple) and all(type(length) is int for length in lengths)
    if not plain or list(lengths) != sorted(set(lengths)) or not 1 <= lengths[0] <= lengths[-1] < whole:
        raise Refusal(f"nested must be ascending lengths from 1 to below the {whole} bits, not {lengths}")
