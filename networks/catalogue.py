"""Networks by name."""

import difflib
import inspect
from pathlib import Path

import torch

from networks import matconvnet
from networks._weights import ENDINGS, fill, read_weights
from networks.caffe_alexnet import CaffeAlexNet
from networks.mobilenet_v2_keras import MobileNetV2Keras
from networks.small import Small
from networks.torchvision_model import TorchvisionModel
from networks.vgg_f import VGGF

NETWORKS = {
    "vgg_f": VGGF,
    "caffe_alexnet": CaffeAlexNet,
    "small": Small,
    "mobilenet_v2_keras": MobileNetV2Keras,
}
TORCHVISION = "torchvision/"


def make(name, weights=None, seed=0, **options):
    """The network called `name` (a key of `NETWORKS` or "torchvision/<model>"), in evaluation mode.

    weights: a file: MatConvNet's .mat for vgg_f and caffe_alexnet, else .pt, .pth or .npz with arrays by
    parameter name; None: random weights by `seed`. options: arguments of the network's class.
    Raises FileNotFoundError for a missing file; ValueError, in one line, for an unknown name or option and
    for weights that cannot be read or do not fit.
    """
    kind, arguments = _kind(name)
    _refuse_unknown_options(name, kind, arguments, options)
    path = None if weights is None else Path(weights)
    if path is not None and path.suffix == ".mat":
        if name not in matconvnet.NETWORKS:
            raise ValueError(f"{path}: weights of network {name} end in {', '.join(ENDINGS)}")
        if "average_image" in options:
            raise ValueError(f"{path}: brings its average image: leave out option average_image")
        return matconvnet.load(path, name, **options)
    # Layers draw their initial weights from the global generator: seed it, and put it back as it was.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = kind(**arguments, **options)
    if path is not None:
        found = read_weights(path)
        module = network
        if kind is TorchvisionModel:
            module = network.model
            found = {key: found[key] for key in found if key.rpartition(".")[0] != network.classifier}
        fill(module, found, path)
    return network.eval()


def _kind(name):
    """(class, arguments that the name stands for)."""
    if name in NETWORKS:
        return NETWORKS[name], {}
    if str(name).startswith(TORCHVISION):
        return TorchvisionModel, {"model": name.removeprefix(TORCHVISION)}
    close = difflib.get_close_matches(str(name), NETWORKS, 1)
    hint = f"did you mean {close[0]}?" if close else f"there is {', '.join(NETWORKS)}, {TORCHVISION}<model>"
    raise ValueError(f"unknown network {name!r}; {hint}")


def _refuse_unknown_options(name, kind, arguments, options):
    known = [option for option in inspect.signature(kind).parameters if option not in arguments]
    for option in options:
        if option not in known:
            close = difflib.get_close_matches(option, known, 1)
            hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(known)}, seed"
            raise ValueError(f"network {name} has no option '{option}'; {hint}")
