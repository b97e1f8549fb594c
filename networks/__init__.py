"""Networks: images to feature vectors, one file each, found by themselves.

A file of this folder is a network, named as the file; docs/add-a-protocol.md describes what it defines. A
family, whose class has the option `model`, stands for many, named `<family>/<model>`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tiebench.discovery import Kind, Plugin
from tiebench.messages import did_you_mean

KIND = Kind(
    "network", __name__, Path(__file__).parent, {"options": dict, "trainable": bool}, base="ImageNetwork"
)


def architecture(name: object) -> tuple[Plugin, dict[str, str]]:
    """The network of a name in config/networks.yaml, and the arguments that the name stands for.

    Raises ValueError, with the nearest known name, for an unknown one, and for a file that is not complete.
    """
    known = KIND.find()
    names = [f"{one}/<model>" if "model" in found.said.options else one for one, found in known.items()]
    family, _, model = str(name).partition("/")
    if (f"{family}/<model>" if model else name) in names:
        return known[family], {"model": model} if model else {}
    raise ValueError(f"there is no network {name!r}{did_you_mean(name, names)}")


def check_options(name: object, options: Mapping[str, object]) -> None:
    """Raise ValueError for a network or an option of it that does not exist; values are not checked."""
    found, given = architecture(name)
    known = [option for option in found.said.options if option not in given]
    for option in options:
        if option not in known:
            raise ValueError(f"network {name} has no option '{option}'{did_you_mean(option, known)}")


def make(name: str, weights: Path | str | None = None, seed: int = 0, **options: Any) -> Any:
    """Make the network called `name`, as in `architecture`, in evaluation mode.

    Parameters
    ----------
    name : str
    weights : path, optional
        MatConvNet's .mat for vgg_f and caffe_alexnet, else .pt, .pth or .npz with arrays by parameter name;
        without it, weights are random.
    seed : int
        Of random weights.
    options
        Arguments of the network's class.

    Returns
    -------
    networks.base.image_network.ImageNetwork

    Raises
    ------
    FileNotFoundError
        For a missing file.
    ValueError
        One line, for an unknown name or option and for weights that cannot be read or do not fit.
    """
    import torch

    from networks.weights import matconvnet
    from networks.weights.by_name import ENDINGS, fill, read_weights

    check_options(name, options)
    found, arguments = architecture(name)
    kind = found.load()
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
        read = read_weights(path)
        fill(network.weight_module(), network.without_classifier(read), path)
    return network.eval()
