"""Features of many images into one file, shard by shard: a killed extraction resumes where it stopped.

While it lasts, `<name>.partial` beside the target holds the rows and `<name>.progress` says how many of them
are complete, with a fingerprint of network, images and settings. If the fingerprint differs, extraction
starts from the beginning.
"""

import contextlib
import hashlib
import json
import time
from pathlib import Path

import numpy as np
import torch

from networks.base.devices import resolve_device
from tiebench.files import create_array, publish, write_json

ROWS_A_SHARD = 1024
SECONDS_A_SHARD = 30.0  # of a slow network
SECONDS_BETWEEN_REPORTS = 5.0
BYTES_A_BLOCK = 1 << 24  # of images fingerprinted at once


def extract(network, items, rows, path, batch_size=64, device="auto", report=None):
    """Write `network`'s features of `items[rows]` to the .npy file `path`: float32 (len(rows), width).

    network: an `ImageNetwork`, moved to `device` ("cpu", "cuda" or "auto") and put back into its mode;
    items: uint8 (n, h, w, 3), usually a memory map; rows: integer indices, None for all; report: called with
    dicts of `images` done, `of` all and `seconds` since the call.
    A resumed extraction writes the same bytes as an uninterrupted one: batches are cut at the same rows.
    Raises ValueError for items or rows of wrong type or shape, for features that are not finite, and if the
    device is not available; OSError if the disk is full.
    """
    device = resolve_device(device)
    items, rows = _checked(items, rows)
    check_batch_size(batch_size)
    training = network.training
    network.to(device).eval()
    state = {name: values.cpu().numpy() for name, values in network.state_dict().items()}
    # Buffers of the preprocessing may be missing from the state dict.
    state |= {name: values.cpu().numpy() for name, values in network.named_buffers()}
    settings = [*network.settings(), device.type, batch_size]

    def compute(images):
        # Channels last in memory, like the images: some convolutions on the CPU are twice as fast.
        pixels = torch.from_numpy(images).to(device).permute(0, 3, 1, 2)
        if device.type != "cpu":
            pixels = pixels.contiguous()
        return network(network.preprocess(pixels)).float().cpu().numpy()

    def batches(start):
        for begin in range(start, len(rows), batch_size):
            batch = rows[begin : begin + batch_size]
            values = compute(np.ascontiguousarray(items[batch]))
            finite = np.isfinite(values).all(axis=1)
            if not finite.all():
                raise ValueError(f"features of item {batch[np.argmin(finite)]} are not finite")
            yield values

    path = Path(path)
    digest = fingerprint([*settings, torch.__version__], state)
    _add_pixels(digest, items, rows)
    try:
        with exact_inference():
            partial = fill(path, (len(rows), network.width), digest.hexdigest(), batches, batch_size, report)
    finally:
        network.train(training)
    publish(partial, path)
    forget(path)


@contextlib.contextmanager
def exact_inference():
    """No gradients; full single precision, and the same bytes each time, on a GPU too."""
    with torch.inference_mode(), torch.backends.cudnn.flags(True, deterministic=True, allow_tf32=False):
        yield


def check_batch_size(batch_size):
    """Raise ValueError unless a batch has an item."""
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, not {batch_size}")


def fill(path, shape, fingerprint, batches, batch_size, report=None, dtype=np.float32):
    """The file beside `path` that holds all rows, an .npy of `shape` = (rows, width), resumed if possible.

    fingerprint: of all that decides the values; batches: called with a first row, yields the arrays
    (batch_size, width) of the rows from there on, the last one shorter; report: see `extract`; its dicts also
    have `resumed`, the rows that were there before. Once the caller has used the file it calls `forget`.
    """
    partial, progress = _beside(path)
    started, reported = time.monotonic(), -np.inf
    rows = shape[0]
    done = _done(partial, progress, fingerprint, shape, dtype)
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
    shard = max(1, ROWS_A_SHARD // batch_size) * batch_size
    with contextlib.closing(batches(done)) as computed:
        while done < rows:
            features = np.load(partial, mmap_mode="r+", allow_pickle=False)
            end, opened = min(done + shard, rows), time.monotonic()
            while done < end:
                begin, done = done, min(done + batch_size, end)
                features[begin:done] = next(computed)
                if done < rows and time.monotonic() - reported > SECONDS_BETWEEN_REPORTS:
                    reported = time.monotonic()
                    tell(done)
                if time.monotonic() - opened > SECONDS_A_SHARD:
                    break
            # Rows must be on disk before the progress file counts them.
            features.flush()
            write_json(progress, {"fingerprint": fingerprint, "rows": done})
    tell(rows)
    return partial


def forget(path):
    """Remove what `fill` left beside `path`."""
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


def _add_pixels(digest, items, rows):
    """Add the pixels and the order of the images."""
    digest.update(f"items {items.shape[1:]} {len(rows)}".encode())
    step = max(1, BYTES_A_BLOCK // max(1, int(np.prod(items.shape[1:]))))
    for begin in range(0, len(rows), step):
        digest.update(np.ascontiguousarray(items[rows[begin : begin + step]]).data)


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


def _checked(items, rows):
    """(items, rows int64) after checks of both."""
    if items.dtype != np.uint8 or items.ndim != 4 or items.shape[3] != 3:
        raise ValueError(f"items must be uint8 images (n, h, w, 3), not {items.dtype} {items.shape}")
    if rows is None:
        rows = np.arange(len(items))
    rows = np.asarray(rows)
    if rows.size == 0:
        raise ValueError("rows must name at least one item")
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise ValueError(f"rows must be a list of integer indices, not {rows.dtype} {rows.shape}")
    rows = rows.astype(np.int64)
    if rows.min() < 0 or rows.max() >= len(items):
        raise ValueError(f"rows must be in 0 to {len(items) - 1}, not {rows.min()} to {rows.max()}")
    return items, rows
