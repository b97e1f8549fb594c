"""Networks by name."""

import importlib
from pathlib import Path

import torch

from networks import architecture, check_options
from networks.weights import matconvnet
from networks.weights.by_name import ENDINGS, fill, read_weights


def make(name, weights=None, seed=0, **options):
    """The network called `name`, as in `networks.architecture`, in evaluation mode.

    weights: a file: MatConvNet's .mat for vgg_f and caffe_alexnet, else .pt, .pth or .npz with arrays by
    parameter name; None: random weights by `seed`. options: arguments of the network's class.
    Raises FileNotFoundError for a missing file; ValueError, in one line, for an unknown name or option and
    for weights that cannot be read or do not fit.
    """
    check_options(name, options)
    found, arguments = architecture(name)
    kind = getattr(importlib.import_module(found.module), found.class_name)
    path = None if weights is None else Path(weights)
    if path is not None and path.suffix == ".mat":
        if not kind.matconvnet:
            raise ValueError(f"{path}: weights of network {name} end in {', '.join(ENDINGS)}")
        if "average_image" in options:
            raise ValueError(f"{path}: brings its average image: leave out option average_image")
        return matconvnet.load(path, name, **options)
    # Layers draw their initial weights from the global generator: seed it, and put it back as it was.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = kind(**arguments, **options)
    if path is not None:
        read = read_weights(path)
        fill(network.weight_module(), network.without_classifier(read), path)
    return network.eval()
