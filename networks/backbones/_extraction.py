"""Vectors of many items into one .npz, as the loader `features_file` reads it; resumed after a kill."""

import json
import platform
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from networks.backbones import Backbone, BackboneError, find, versions
from networks.backbones._sources import Images, Texts
from networks.base.devices import resolve_device
from networks.base.features import arrays, encoded, exact_inference, fingerprint, forget, vectors
from tiebench.files import replaced

DTYPES = {"float32": np.float32, "float16": np.float16}
BLOCK_BYTES = 16 << 20


def write_features(
    output: Path,
    name: str,
    backbone: Backbone,
    items: Images | Texts,
    batch_size: int = 64,
    device: str = "auto",
    dtype: str = "float32",
    report: Callable[[dict], None] | None = None,
) -> list[str]:
    """Write `output`, an .npz: X (n, width) of `dtype`; ids, y, class_names and split where the items have
    them; `model`, the name; `provenance`, JSON. Returns the names of images that were left out.

    The same items, model, versions, device class and batch size give the same bytes, resumed or not. While it
    lasts, `<output>.partial` holds the rows; what is left after a kill is used by the next call, if nothing
    that decides the vectors differs. Memory does not grow with the items, but for their names.
    Raises ValueError for an image that cannot be decoded and for vectors that are not finite in `dtype`;
    BackboneError for what the model reports; OSError if the disk is full.
    """
    output, placed = Path(output), resolve_device(device)
    provenance = {
        "model": name,
        "items": items.kind,
        "settings": backbone.settings,
        "weights_sha256": _weights_sha256(backbone, placed),
        "versions": _versions(name),
        "device": placed.type,
        "batch_size": batch_size,
    }
    identity = fingerprint([provenance, dtype, items.identity], {}).hexdigest()
    width = _width(name, backbone, items, placed)
    kind = DTYPES[dtype]
    rows = vectors(output, name, backbone, items, identity, batch_size, placed, report, width, kind)
    left_out = _write(output, rows, items, provenance)
    forget(output)
    return left_out


def _weights_sha256(backbone, device):
    """The digest of a model's weights; a model that is in this process is then on the device."""
    if backbone.module is None:
        return backbone.weights_sha256
    module = backbone.module.to(device)
    return fingerprint([], arrays(module.state_dict())).hexdigest()


def _width(name, backbone, items, device):
    """Values of a vector; fails before anything is read if the model does."""
    probe = "a" if items.kind == "texts" else backbone.prepare(Image.new("RGB", (64, 64)))
    with exact_inference():
        found = encoded(name, backbone, [probe], 1, device)
    if found.ndim != 2:
        raise BackboneError(f"model '{name}' gives {found.shape[1:]} values for an item, not a vector")
    return found.shape[1]


def _versions(name):
    library, _ = find(name)
    return versions([*library.said.packages, "torch", "numpy", "pillow"]) | {
        "python": platform.python_version()
    }


def _write(output, rows, items, provenance):
    """Put the .npz together from the file of rows; the names of rows that are NaN, which it leaves out."""
    values = np.load(rows, mmap_mode="r", allow_pickle=False)
    step = max(1, BLOCK_BYTES // max(1, values.shape[1] * values.itemsize))
    starts = range(0, len(values), step)
    kept = np.concatenate([~np.isnan(values[begin : begin + step, 0]) for begin in starts])
    if not kept.any():
        raise ValueError(f"{items.source}: none of the {items.count} images can be decoded")
    left_out = [items.names[row] for row in np.flatnonzero(~kept)]
    arrays = {key: values if key == "class_names" else values[kept] for key, values in items.columns.items()}
    if left_out and "y" in arrays:
        arrays |= _without_empty_classes(arrays["y"], arrays["class_names"])
    arrays["model"] = np.array(provenance["model"])
    arrays["provenance"] = np.array(json.dumps(provenance | {"left_out": left_out}, sort_keys=True))
    header = {
        "descr": np.lib.format.dtype_to_descr(values.dtype),
        "fortran_order": False,
        "shape": (int(kept.sum()), values.shape[1]),
    }
    del values
    with replaced(output) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        with archive.open("X.npy", "w", force_zip64=True) as stream:
            np.lib.format.write_array_header_1_0(stream, header)
            for begin in starts:
                # A map that lives on would count as memory.
                block = np.load(rows, mmap_mode="r", allow_pickle=False)[begin : begin + step]
                stream.write(np.ascontiguousarray(block[kept[begin : begin + step]]).data)
        for key, array in arrays.items():
            with archive.open(f"{key}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)
    return left_out


def _without_empty_classes(labels, names):
    used, places = np.unique(labels, return_inverse=True)
    return {"y": places.astype(np.int64), "class_names": names[used]}
