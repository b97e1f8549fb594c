"""Trainings that are killed and go on from their checkpoint."""

import pytest

from methods.base import checkpoint


class Killed(Exception):
    """What ends a training."""


def killed_and_resumed(fit, file, done):
    """`fit(log=..., checkpoint=file)`, killed as it logs its record number `done` + 1, and then once more.

    Returns the method of the second training, the records of the first and those of the second.
    """
    before, after = [], []

    def kill(record):
        before.append(record)
        if len(before) == done + 1:
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "_SECONDS_BETWEEN", 0.0)
        with pytest.raises(Killed):
            fit(log=kill, checkpoint=file)
        return fit(log=after.append, checkpoint=file), before, after


def assert_same_state(one, other):
    for (name, value), of_other in zip(one.state().items(), other.state().values(), strict=True):
        assert value.tobytes() == of_other.tobytes(), name
