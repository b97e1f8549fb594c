"""What methods see: a dataset's items as float32 vectors, centred and scaled as the protocol says."""

import hashlib

import numpy as np

FROM_IMAGES = ("pixels", "network")
_BLOCK_VALUES = 1 << 24  # values converted at once: flat memory whatever the dataset's size


def check(kind, item_kind):
    """Raise ValueError if items of `item_kind` ("vectors" or "images") cannot serve as input `kind`."""
    if kind == "features" and item_kind != "vectors":
        raise ValueError("input kind 'features' needs a dataset of vectors, these are images: use 'pixels'")
    if kind in FROM_IMAGES and item_kind != "images":
        raise ValueError(f"input kind '{kind}' needs a dataset of images, these are vectors: use 'features'")


def duplicates(items, rows, others):
    """Those of `rows`, int64 (k,), whose item has the same content as an item of `others`.

    items: (n, ...), usually a memory map, read once as a stream; rows, others: int64 indices. Items of one
    value, as those of a dataset of labels alone, have no content to compare.
    """
    if int(np.prod(items.shape[1:])) < 2:
        return np.zeros(0, np.int64)
    zero = items.dtype.type(0)

    def content(row):
        # The sum makes a zero of -0.0, whose bytes are others.
        return hashlib.blake2b(np.ascontiguousarray(items[row] + zero).data, digest_size=16).digest()

    wanted: dict[bytes, list[int]] = {}
    for row in rows:
        wanted.setdefault(content(row), []).append(int(row))
    found = {row for other in others for row in wanted.get(content(other), ())}
    return np.array(sorted(found), np.int64)


def write_inputs(items, training, path, kind="features", centre=True, l2_normalise=True):
    """Write float32 (n, d) to the .npy file `path`, block by block.

    items: real (n, d), or uint8 (n, H, W, 3) with kind "pixels" (flattened, divided by 255); training: int64
    indices. centre subtracts the mean of the training items (float64), l2_normalise then divides each item by
    its Euclidean length: the authors' preparation of fc7 and GIST features. An item of length 0 stays 0.
    Returns the mean, float64 (d,), zeros without centring. Raises ValueError for values that are not finite.
    """
    width = int(np.prod(items.shape[1:]))
    scale = 1 / 255 if kind == "pixels" else 1.0
    step = max(1, _BLOCK_VALUES // width)
    mean = np.zeros(width)
    if centre:
        for begin in range(0, len(training), step):
            block = np.asarray(items[training[begin : begin + step]], np.float64)
            mean += block.reshape(len(block), width).sum(axis=0)
        mean *= scale / len(training)
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(len(items), width))
    for begin in range(0, len(items), step):
        block = np.asarray(items[begin : begin + step], np.float64).reshape(-1, width) * scale - mean
        finite = np.isfinite(block).all(axis=1)
        if not finite.all():
            raise ValueError(f"item {begin + int(np.argmin(finite))} has a value that is not finite")
        if l2_normalise:
            lengths = np.linalg.norm(block, axis=1, keepdims=True)
            block /= np.where(lengths > 0, lengths, 1)
        out[begin : begin + len(block)] = block
    out.flush()
    return mean
