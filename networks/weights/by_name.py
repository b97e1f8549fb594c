"""Weights by parameter name: read from a state dict or from .npz arrays, and put into a module."""

from pathlib import Path

import numpy as np
import torch

from tiebench.messages import printable

STATE_DICT_ENDINGS = (".pt", ".pth")
ENDINGS = (*STATE_DICT_ENDINGS, ".npz")


def read_weights(path):
    """Parameter name -> tensor on the CPU, floating point ones as float32; nothing in the file is executed.

    path: .pt or .pth with a dict of tensors, or .npz. Raises FileNotFoundError; ValueError for another
    ending, a damaged file, or one that holds anything but arrays.
    """
    path = Path(path)
    if path.suffix not in ENDINGS:
        raise ValueError(f"{path}: weights by parameter name end in {', '.join(ENDINGS)}")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    found = _state_dict(path) if path.suffix in STATE_DICT_ENDINGS else _arrays(path)
    for name, value in found.items():
        if not isinstance(name, str) or value.layout != torch.strided or value.is_complex() or value.is_meta:
            raise ValueError(
                f"{path}: {printable(repr(name))} is not the name of a parameter with an array of numbers"
            )
    return {name: value.float() if value.is_floating_point() else value for name, value in found.items()}


def _state_dict(path):
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        # Unpickling what is not allowed and reading what is damaged both fail with many kinds of errors.
        raise ValueError(
            f"{path}: damaged, or not a state dict that can be read without running code"
        ) from error
    if not isinstance(found, dict) or not all(isinstance(value, torch.Tensor) for value in found.values()):
        raise ValueError(f"{path}: must hold a state dict, parameter names with their tensors")
    return dict(found)


def _arrays(path):
    try:
        with np.load(path, allow_pickle=False) as archive:
            found = {name: archive[name] for name in archive.files}
    except Exception as error:
        # The readers raise errors of every kind for a damaged file.
        raise ValueError(f"{path}: damaged, or not an .npz of plain arrays") from error
    for name, values in found.items():
        kind = values.dtype if isinstance(values, np.ndarray) else None  # a member that is no .npy file
        if kind is None or kind.kind not in "fiub":
            raise ValueError(f"{path}: array '{printable(name)}' is {kind or 'no array'}, expected numbers")
    return {name: torch.from_numpy(np.ascontiguousarray(values)) for name, values in found.items()}


def fill(module, weights, path):
    """Put `weights` into `module`, every one of them and nothing else.

    Raises ValueError, naming `path` and the first parameter that is missing, of another shape, not finite or
    too many.
    """
    own = module.state_dict()
    for name, values in own.items():
        if name not in weights:
            raise ValueError(f"{path}: no array '{name}', expected {tuple(values.shape)}")
        if weights[name].shape != values.shape:
            found, expected = tuple(weights[name].shape), tuple(values.shape)
            raise ValueError(f"{path}: array '{name}' is {found}, expected {expected}")
        if not torch.isfinite(weights[name]).all():
            raise ValueError(f"{path}: array '{name}' has values that are not finite")
    surplus = sorted(set(weights) - set(own))
    if surplus:
        raise ValueError(f"{path}: array '{printable(surplus[0])}' has no place in this network")
    # Not load_state_dict: some models convert what they take for an older version of themselves there.
    with torch.no_grad():
        for name, values in own.items():
            values.copy_(weights[name])
