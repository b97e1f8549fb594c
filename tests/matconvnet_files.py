"""MatConvNet's .mat file of a network that a test made, in the form of its current releases, up to relu7."""

import numpy as np
import scipy.io

from networks.layers.five_convolutions import LAST_SIDE, POOL, POOL_STRIDE, SEQUENCE


def save(network, path):
    """Write a `VGGF` or `CaffeAlexNet` to path."""
    layers = np.empty((1, len(SEQUENCE)), object)
    for place, name in enumerate(SEQUENCE):
        layers[0, place] = {"name": name} | fields(network, name)
    average = network.average_image.permute(1, 2, 0).numpy()
    normalization = {"imageSize": np.array([[network.side, network.side, 3.0]]), "averageImage": average}
    variables = {"layers": layers, "meta": {"normalization": normalization}}
    scipy.io.savemat(path, variables, appendmat=False)


def fields(network, name):
    """Fields of a layer but its name."""
    kind = name.rstrip("0123456789")
    if kind == "norm":
        return {"type": "lrn", "param": np.array([type(network).normalisation])}
    if kind == "pool":
        sizes = {"pool": np.full((1, 2), float(POOL)), "stride": np.full((1, 2), float(POOL_STRIDE))}
        return {"type": "pool", "method": "max", "pad": np.array([[0.0, 1.0, 0.0, 1.0]])} | sizes
    if kind == "relu":
        return {"type": "relu"}
    layer, stride, padding = getattr(network, name), 1, 0
    weight = layer.weight.detach()
    if name == "fc6":
        weight = weight.reshape(network.width, -1, LAST_SIDE, LAST_SIDE)
    elif name == "fc7":
        weight = weight[:, :, None, None]
    else:
        stride, padding = layer.stride[0], layer.padding[0]
    weights = np.empty((1, 2), object)
    weights[0, 0] = weight.permute(2, 3, 1, 0).numpy()
    weights[0, 1] = layer.bias.detach().numpy()[:, None]
    geometry = {"stride": np.full((1, 2), float(stride)), "pad": np.full((1, 4), float(padding))}
    return {"type": "conv", "weights": weights} | geometry
