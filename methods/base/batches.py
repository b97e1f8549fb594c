"""Batches of training items on the device that trains: read while the step before is computed."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

_RESIDENT_SHARE = 0.5  # of a GPU's free memory that the images of a training set may take
_AHEAD = 2  # batches read in advance


class ItemReader:
    """Batches of items as tensors on a device.

    items: float32 (n, d), which stay where they are; or uint8 (n, H, W, 3), which stay bytes: on a GPU that
    has memory for all of them they are copied there once, and otherwise read by a second thread.
    """

    def __init__(self, items, device):
        self.items, self.device, self.resident = items, device, None
        self.images = np.asarray(items[:1]).dtype == np.uint8
        if self.images and device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(device)
            if len(items) * np.asarray(items[:1]).nbytes <= _RESIDENT_SHARE * free:
                self.resident = torch.from_numpy(np.ascontiguousarray(items[:])).to(device)

    def read(self, batches):
        """Yield (indices, items) of each batch, int64 (M,), items being float32 or uint8 (M, ...)."""
        if self.resident is not None:
            for indices in batches:
                yield indices, self.resident[torch.from_numpy(indices).to(self.device)]
        elif not self.images:
            for indices in batches:
                yield indices, self._load(indices)
        else:
            # One thread: the order in which a disk is asked stays that of the batches.
            with ThreadPoolExecutor(1) as thread:
                waiting = [(indices, thread.submit(self._load, indices)) for indices in batches[:_AHEAD]]
                for following in [*batches[_AHEAD:], *[None] * _AHEAD]:
                    if not waiting:
                        break
                    indices, loading = waiting.pop(0)
                    items = loading.result()
                    if following is not None:
                        waiting.append((following, thread.submit(self._load, following)))
                    yield indices, items

    def _load(self, indices):
        kind = np.uint8 if self.images else np.float32
        items = torch.from_numpy(np.ascontiguousarray(self.items[indices], kind))
        if self.device.type != "cuda":
            return items
        return items.pin_memory().to(self.device, non_blocking=True)
