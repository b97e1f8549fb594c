"""Vectors of many items into one file, shard by shard: a killed extraction resumes where it stopped.

While it lasts, `<name>.partial` beside the target holds the rows and `<name>.progress` says how many of them
are complete, with a fingerprint of model, items and settings. If the fingerprint differs, extraction
starts from the beginning.
"""

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from networks.base.devices import resolve_device
from tiebench.files import create_array, publish, write_json
from tiebench.messages import one_line, printable

ROWS_A_SHARD = 1024
SECONDS_A_SHARD = 30.0  # of a slow network
SECONDS_BETWEEN_REPORTS = 5.0
BYTES_A_BLOCK = 1 << 24  # of images fingerprinted at once


class BackboneError(ValueError):
    """What is wrong with a model, in one line that names it."""


@dataclass(frozen=True)
class Backbone:
    """A model and how its items are prepared.

    module:   torch module in evaluation mode, float32; None where it is in another process
    encode:   (list of prepared items, batch size, device) to a float tensor (n, width)
    prepare:  an image of Pillow, RGB and upright, to what `encode` takes; called by several threads. None for
              items that `encode` takes as they are
    settings: what decides the vectors besides the weights: values that JSON can write
    weights_sha256: digest of the weights, where there is no module here
    """

    module: Any
    encode: Callable[[list, int, Any], Any]
    prepare: Callable[[Any], Any] | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    weights_sha256: str | None = None


class Pixels:
    """The images of an array, uint8 (n, h, w, 3), usually a memory map, as items of `vectors`."""

    kind, names = "images", None

    def __init__(self, array: np.ndarray, source: object = "images") -> None:
        """Raises ValueError for another dtype or shape, and where there is no image."""
        if array.dtype != np.uint8 or array.ndim != 4 or array.shape[3] != 3 or not len(array):
            raise ValueError(f"items must be uint8 images (n, h, w, 3), not {array.dtype} {array.shape}")
        self.array, self.count, self.source = array, len(array), source

    def step(self, batch_size: int) -> int:
        return batch_size

    def groups(self, start: int, step: int, prepare: Callable | None) -> Iterator[list]:
        for begin in range(start, self.count, step):
            yield list(self.array[begin : begin + step])

    def sha256(self) -> str:
        digest = hashlib.sha256(f"{self.array.shape}".encode())
        step = max(1, BYTES_A_BLOCK // max(1, self.array[0].size))
        for begin in range(0, self.count, step):
            digest.update(np.ascontiguousarray(self.array[begin : begin + step]).data)
        return digest.hexdigest()


def extract(
    network: Any,
    items: np.ndarray,
    path: Path | str,
    batch_size: int = 64,
    device: str = "auto",
    report: Callable[[dict], None] | None = None,
    name: str = "network",
) -> None:
    """Write a network's features of images to the .npy file `path`: float32 (n, width).

    Parameters
    ----------
    network : networks.base.image_network.ImageNetwork
        It is moved to the device, and put back into its mode.
    items : array, uint8 (n, h, w, 3)
    path : path
    batch_size : int
    device : str
        "cpu", "cuda" or "auto".
    report : callable, optional
        Called with dicts of `images` done, `of` all, `resumed` of an earlier call, and `seconds`.
    name : str
        What messages call the network.

    Raises
    ------
    ValueError
        For items of another type or shape, features that are not finite, and a device that is not there.
    OSError
        If the disk is full.
    """
    import torch

    images, placed, training = Pixels(items, name), resolve_device(device), network.training

    def encode(group: list, batch_size: int, device: Any) -> Any:
        # Channels last in memory, like the images: some convolutions on the CPU are twice as fast.
        pixels = torch.from_numpy(np.stack(group)).to(device).permute(0, 3, 1, 2)
        return network(network.preprocess(pixels if device.type == "cpu" else pixels.contiguous()))

    backbone = Backbone(network.to(placed).eval(), encode)
    # Buffers of the preprocessing may be missing from the state dict.
    state = arrays({**network.state_dict(), **dict(network.named_buffers())})
    identity = [*network.settings(), placed.type, batch_size, torch.__version__, images.sha256()]
    try:
        whole = fingerprint(identity, state).hexdigest()
        partial = vectors(
            Path(path), name, backbone, images, whole, batch_size, placed, report, network.width
        )
    finally:
        network.train(training)
    publish(partial, Path(path))
    forget(path)


def arrays(tensors: dict) -> dict[str, np.ndarray]:
    """Name -> array of tensors on any device."""
    return {name: values.detach().cpu().numpy() for name, values in tensors.items()}


def vectors(
    path: Path,
    name: str,
    backbone: Backbone,
    items: Any,
    identity: str,
    batch_size: int,
    device: Any,
    report: Callable[[dict], None] | None,
    width: int,
    dtype: type = np.float32,
) -> Path:
    """The file beside `path` that holds the vectors of all items, (n, width) of `dtype`, resumed if possible.

    items: as `Pixels` or the classes of `networks.backbones._sources`; a None among them has a row of NaN.
    identity: of all that decides the values. The same items and batches give the same bytes, resumed or not.
    Once the caller has used the file it calls `forget`.
    Raises ValueError for vectors that are not finite in `dtype`, BackboneError for what the model reports.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, not {batch_size}")
    partial, progress = _beside(path)
    started, reported = time.monotonic(), -np.inf
    shape, rows, step = (items.count, width), items.count, items.step(batch_size)
    done = _done(partial, progress, identity, shape, dtype)
    if done is None:
        progress.unlink(missing_ok=True)
        _create(partial, shape, dtype)
        done = 0
    resumed = done

    def tell(images):
        if report:
            seconds = time.monotonic() - started
            report({"images": images, "of": rows, "seconds": seconds, "resumed": resumed})

    # A multiple of the batch, or a resumed extraction would cut other batches.
    shard = max(1, ROWS_A_SHARD // step) * step
    with exact_inference(), contextlib.closing(items.groups(done, step, backbone.prepare)) as groups:
        while done < rows:
            features = np.load(partial, mmap_mode="r+", allow_pickle=False)
            end, opened = min(done + shard, rows), time.monotonic()
            while done < end:
                begin, done = done, min(done + step, end)
                group = next(groups)
                features[begin:done] = _of_group(
                    name, backbone, group, begin, items, batch_size, device, width, dtype
                )
                if done < rows and time.monotonic() - reported > SECONDS_BETWEEN_REPORTS:
                    reported = time.monotonic()
                    tell(done)
                if time.monotonic() - opened > SECONDS_A_SHARD:
                    break
            # Rows must be on disk before the progress file counts them.
            features.flush()
            write_json(progress, {"fingerprint": identity, "rows": done})
    tell(rows)
    return partial


def _of_group(name, backbone, group, first, items, batch_size, device, width, dtype):
    """(len(group), width); rows of NaN for items that are None."""
    kept = np.array([item is not None for item in group])
    values = np.full((len(group), width), np.nan, dtype)
    if not kept.any():
        return values
    found = encoded(name, backbone, [item for item in group if item is not None], batch_size, device)
    if found.shape != (kept.sum(), width):
        raise BackboneError(f"model '{name}' gave vectors {found.shape}, not {(int(kept.sum()), width)}")
    with np.errstate(over="ignore"):
        cast = found.astype(dtype)
    finite = np.isfinite(cast).all(axis=1)
    if not finite.all():
        row = first + int(np.flatnonzero(kept)[np.argmin(finite)])
        item = f"'{printable(items.names[row])}'" if items.names else f"item {row + 1}"
        whole = np.isfinite(found[np.argmin(finite)]).all()
        reason = f"are too large for {np.dtype(dtype)}: --dtype float32" if whole else "are not finite"
        raise ValueError(f"{items.source}: features of {item} {reason}")
    values[kept] = cast
    return values


def encoded(name: str, backbone: Backbone, group: list, batch_size: int, device: Any) -> np.ndarray:
    """What a model makes of prepared items; raises BackboneError, which names it, for whatever it raises."""
    try:
        found: np.ndarray = backbone.encode(group, batch_size, device).float().cpu().numpy()
        return found
    except BackboneError:
        raise
    except Exception as error:
        # A library's own code, and images that its preprocessing left at different sizes.
        items = f"{len(group)} {'texts' if isinstance(group[0], str) else 'images'}"
        raise BackboneError(f"model '{name}' fails on a batch of {items}: {one_line(error)}") from error


@contextlib.contextmanager
def exact_inference():
    """No gradients; full single precision, and the same bytes each time, on a GPU too."""
    import torch

    with torch.inference_mode(), torch.backends.cudnn.flags(True, deterministic=True, allow_tf32=False):
        yield


def forget(path):
    """Remove what `vectors` left beside `path`."""
    for left in _beside(path):
        left.unlink(missing_ok=True)


def _beside(path):
    """The files of a computation that lasts: its rows, and how many of them are whole."""
    return tuple(Path(path).with_name(Path(path).name + ending) for ending in (".partial", ".progress"))


def fingerprint(settings, arrays):
    """A SHA-256 object of settings, values that JSON can write, and arrays by name."""
    digest = hashlib.sha256(json.dumps(settings).encode())
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {values.dtype} {values.shape}".encode())
        digest.update(values.data if values.size else b"")
    return digest


def _done(partial, progress, fingerprint, shape, dtype):
    """Rows of `partial` that are whole, or None if there is nothing to resume."""
    try:
        state = json.loads(progress.read_text(encoding="utf-8"))
        features = np.load(partial, mmap_mode="r", allow_pickle=False)
        fits = state["fingerprint"] == fingerprint and features.shape == shape
        fits = fits and features.dtype == dtype and 0 <= state["rows"] <= len(features)
        return state["rows"] if fits else None
    except (OSError, ValueError, TypeError, KeyError, EOFError):
        return None


def _create(partial, shape, dtype):
    """Create the file; nothing is left of it if the disk has too little space."""
    try:
        create_array(partial, shape, dtype)
    except OSError:
        with contextlib.suppress(OSError):  # the error to report is the first
            partial.unlink()
        raise
