"""Progress of a long training on disk, so that an interrupted one goes on to the same result."""

import json
import logging
import os
import time
from contextlib import suppress

import numpy as np
import torch

_SECONDS_BETWEEN = 10.0  # an epoch of milliseconds is not worth writing
logger = logging.getLogger("tiebench")


class Checkpoint:
    """What a deep method needs to go on after an epoch: weights, momentum, its memory, and what it reported.

    path: a file of arrays without pickle, or None: nothing is kept. The name of the file stands for all that
    the result depends on; who chooses it sees to that.
    """

    def __init__(self, path, method, optimizer, scaler, report):
        self.path, self.method, self.optimizer, self.scaler = path, method, optimizer, scaler
        self.report, self.records, self.written = report, [], time.monotonic()

    def resume(self):
        """(the epoch to go on with, seconds spent before): 0, 0.0 where there is nothing to go on from.

        What was reported before is reported again."""
        if self.path is None or not self.path.is_file():
            return 0, 0.0
        try:
            with np.load(self.path, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            self._take(arrays)
        except Exception as error:
            # Of a damaged file NumPy and JSON say so with errors of every kind.
            raise ValueError(
                f"{self.path}: cannot go on from this checkpoint ({error}); delete it to begin anew"
            ) from error
        for record in self.records:
            self.report(record)
        last = self.records[-1]
        logger.info("going on after epoch %d of %d", last["epoch"], last["epochs"])
        return last["epoch"], last["seconds"]

    def after(self, epoch, record):
        """Report an epoch's record, and write everything down unless that was done a moment ago."""
        self.report(record)
        self.records.append(record)
        due = time.monotonic() - self.written >= _SECONDS_BETWEEN
        if self.path is not None and due and epoch + 1 < self.method.epochs:
            self._write()
            self.written = time.monotonic()

    def remove(self):
        """Training is over: nothing is left behind."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
            with suppress(OSError):  # not empty: others train beside
                self.path.parent.rmdir()

    def _write(self):
        arrays = {f"network.{name}": value for name, value in self.method.network.state_dict().items()}
        for index, parameter in enumerate(self._parameters()):
            buffer = self.optimizer.state.get(parameter, {}).get("momentum_buffer")
            if buffer is not None:
                arrays[f"momentum.{index}"] = buffer
        for name in self.method.changing_memory:
            arrays[f"memory.{name}"] = torch.as_tensor(getattr(self.method.memory, name))
        arrays = {name: value.cpu().numpy() for name, value in arrays.items()}
        scale = self.scaler.state_dict()
        text = json.dumps({"records": self.records, "scaler": scale})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_name(self.path.name + ".partial")
        try:
            with partial.open("wb") as file:
                np.savez(file, progress=np.frombuffer(text.encode(), np.uint8), **arrays)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self.path)
        except OSError as error:  # a full disk does not say which file was written
            error.filename = error.filename or str(self.path)
            raise
        finally:
            partial.unlink(missing_ok=True)

    def _take(self, arrays):
        progress = json.loads(arrays.pop("progress").tobytes())
        parts = {"network": {}, "momentum": {}, "memory": {}}
        for name, array in arrays.items():
            part, _, rest = name.partition(".")
            parts[part][rest] = torch.from_numpy(array)
        self.method.network.load_state_dict(parts["network"])
        parameters = self._parameters()
        for index, buffer in parts["momentum"].items():
            parameter = parameters[int(index)]
            self.optimizer.state[parameter]["momentum_buffer"] = buffer.to(parameter.device)
        for name in self.method.changing_memory:
            kept = getattr(self.method.memory, name)
            if isinstance(kept, torch.Tensor):
                kept.copy_(parts["memory"][name])
            else:
                setattr(self.method.memory, name, parts["memory"][name].item())
        if progress["scaler"]:
            self.scaler.load_state_dict(progress["scaler"])
        self.records = progress["records"]

    def _parameters(self):
        return [parameter for group in self.optimizer.param_groups for parameter in group["params"]]
