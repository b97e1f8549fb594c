"""Progress of a long training on disk, so that an interrupted one resumes and gives the same result."""

import json
import logging
import time

import numpy as np
import torch

from tiebench.files import write_npz
from tiebench.messages import one_line

_SECONDS_BETWEEN = 10.0  # an epoch of milliseconds is not worth writing
logger = logging.getLogger("tiebench")


class Checkpoint:
    """What a deep method needs to resume after an epoch: the parameters of its network and of its criterion,
    the state of the optimiser, the changing part of its memory, and what it logged. That of the last epoch
    stays, too: encoding a large database may be interrupted.

    The file is the training set's `checkpoint`, of arrays without pickle; None keeps nothing. Its name stands
    for all that the result depends on; the caller sees to that.
    """

    def __init__(self, method, state, prefixes, optimiser, scaler):
        """state: the `TrainingState`; prefixes: length of `nested` -> its own."""
        self.method, self.state, self.optimiser, self.scaler = method, state, optimiser, scaler
        # Ending of names in the file -> state.
        self.states = {"": state} | {f"@{bits}": of_prefix for bits, of_prefix in prefixes.items()}
        self.path, self.log = state.training_set.checkpoint, state.training_set.log
        self.records, self.written = [], time.monotonic()

    def resume(self):
        """(the epoch to continue with, seconds spent before): 0, 0.0 if there is no checkpoint.

        What was logged before is logged again. Raises ValueError, one line that names the file, if it cannot
        be read."""
        if self.path is None or not self.path.is_file():
            return 0, 0.0
        try:
            with np.load(self.path, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            self._restore(arrays)
        except Exception as error:
            # NumPy and JSON raise errors of every kind on a damaged file.
            raise ValueError(
                f"{self.path}: cannot resume from this checkpoint ({one_line(error)}); "
                "delete it to start again"
            ) from error
        for record in self.records:
            self.log(record)
        last = self.records[-1]
        logger.info("resuming after epoch %d of %d", last["epoch"], last["epochs"])
        return last["epoch"], last["seconds"]

    def after(self, epoch, record):
        """Log an epoch's record, and write a checkpoint unless the last one is a moment ago."""
        self.log(record)
        self.records.append(record)
        due = time.monotonic() - self.written >= _SECONDS_BETWEEN
        if self.path is not None and due:
            self._write()
            self.written = time.monotonic()

    def _write(self):
        arrays: dict[str, torch.Tensor] = {}
        for part, module in self._modules().items():
            arrays |= {f"{part}.{name}": value for name, value in module.state_dict().items()}
        for index, values in self.optimiser.state_dict()["state"].items():
            for name, value in values.items():
                if value is not None:  # a momentum that is 0 has no buffer
                    arrays[f"optimiser.{index}.{name}"] = torch.as_tensor(value)
        for ending, state in self.states.items():
            for name in self.method.changing_memory:
                arrays[f"memory{ending}.{name}"] = torch.as_tensor(getattr(state.memory, name))
        progress = {
            "records": self.records,
            "scaler": self.scaler.state_dict(),
            "iteration": self.state.iteration,
        }
        text = np.frombuffer(json.dumps(progress).encode(), np.uint8)
        write_npz(self.path, progress=text, **{name: value.cpu().numpy() for name, value in arrays.items()})

    def _restore(self, arrays):
        progress = json.loads(arrays.pop("progress").tobytes())
        own = [f"{part}{ending}" for part in ("criterion", "memory") for ending in self.states]
        parts: dict[str, dict[str, torch.Tensor]] = {part: {} for part in ["network", "optimiser", *own]}
        for name, array in arrays.items():
            part, _, rest = name.partition(".")
            parts[part][rest] = torch.from_numpy(array)
        for part, module in self._modules().items():
            module.load_state_dict(parts[part])
        state: dict[int, dict[str, torch.Tensor]] = {}
        for name, value in parts["optimiser"].items():
            index, _, key = name.partition(".")
            state.setdefault(int(index), {})[key] = value
        # The optimiser itself moves its state to where its parameters are.
        groups = self.optimiser.state_dict()["param_groups"]
        self.optimiser.load_state_dict({"state": state, "param_groups": groups})
        for ending, of_length in self.states.items():
            for name in self.method.changing_memory:
                kept, saved = getattr(of_length.memory, name), parts[f"memory{ending}"][name]
                if isinstance(kept, torch.Tensor):
                    kept.copy_(saved)
                else:
                    setattr(of_length.memory, name, saved.item())
        if progress["scaler"]:
            self.scaler.load_state_dict(progress["scaler"])
        self.state.iteration = progress["iteration"]
        self.records = progress["records"]

    def _modules(self):
        """Name in the file -> module."""
        modules = {"network": self.method.network}
        modules |= {f"criterion{ending}": state.criterion for ending, state in self.states.items()}
        return {part: module for part, module in modules.items() if module is not None}
