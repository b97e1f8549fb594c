"""Batches for the loss of a deep method, without a training."""

from types import SimpleNamespace

from methods.base.batch import TrainingState


def batch(*, memory=None, criterion=None, epoch=0, iteration=0, **attributes):
    """A batch that has these `attributes`, and no other, in a training with that state."""
    return SimpleNamespace(training=TrainingState(None, memory, criterion, epoch, iteration), **attributes)
