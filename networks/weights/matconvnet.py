"""MatConvNet's .mat files of VGG-F and Caffe's AlexNet, in every release's form.

Sources: MatConvNet's vl_simplenn, vl_simplenn_tidy and vl_nnconv. A file is a list of layers; filters are
height x width x input channels x outputs, images RGB with 0-255, filtering is correlation. Releases differ in
the names and the order of fields, so fields are found by name.
"""

from pathlib import Path

import numpy as np
import scipy.io
import torch

from datasets.readers.matlab import check_matlab
from networks.base.image_network import full_average
from networks.caffe_alexnet import CaffeAlexNet
from networks.layers.five_convolutions import (
    KERNELS,
    LAST_SIDE,
    PADDINGS,
    POOL,
    POOL_STRIDE,
    SEQUENCE,
    STRIDES,
)
from networks.vgg_f import VGGF
from tiebench.messages import printable

NETWORKS = {"vgg_f": VGGF, "caffe_alexnet": CaffeAlexNet}
# Type of each layer of the plan; files before MatConvNet 1.0-beta11 say "normalize" for "lrn".
TYPES = {"conv": "conv", "fc": "conv", "relu": "relu", "norm": "lrn", "pool": "pool"}
OLD_TYPES = {"normalize": "lrn"}
# Layers that do nothing when features are computed.
SILENT_TYPES = {"dropout"}
VARIANTS = (
    "only the VGG-F and Caffe AlexNet of MatConvNet's imagenet-vgg-f.mat and imagenet-caffe-alex.mat can be "
    "read (their retrainings, imagenet-matconvnet-*.mat, are other networks)"
)


def load(path, name, channels=None, width=None):
    """The network of a file: `VGGF` or `CaffeAlexNet`, float32, in evaluation mode.

    name: "vgg_f" or "caffe_alexnet"; channels, width: of a reduced network, see `FiveConvolutions`. fc8 and
    whatever else follows relu7 is not looked at.
    Raises FileNotFoundError; ValueError, one line that names the file, the layer and what was expected, for
    everything else: a damaged file, another network, a shape, stride or padding that differs.
    """
    path, kind = Path(path), NETWORKS[name]
    variables = _variables(path)
    layers = _layers(path, variables)
    network = kind(channels, width, _average_image(path, variables, name))
    incoming = (3, *network.channels, network.width)
    side = network.side
    state = {"average_image": network.average_image}
    for layer_name in SEQUENCE:
        layer = layers[layer_name]
        if layer_name.startswith("conv"):
            index = int(layer_name[4:]) - 1
            geometry = (KERNELS[index], STRIDES[index], PADDINGS[index])
            shape = (incoming[index] // network.groups[index], network.channels[index])
            side = (side + 2 * PADDINGS[index] - KERNELS[index]) // STRIDES[index] + 1
        elif layer_name.startswith("fc"):
            geometry = (LAST_SIDE if layer_name == "fc6" else 1, 1, 0)
            shape = (incoming[int(layer_name[2:]) - 1], network.width)
        elif layer_name.startswith("pool"):
            side = layer.pooled(side)
            continue
        elif layer_name.startswith("norm"):
            layer.expect_numbers("param", kind.normalisation, f"[N kappa alpha beta] of {name}")
            continue
        else:
            layer.expect_numbers("leak", (0,), "no leak", default=(0,))
            continue
        weight, bias = layer.convolution(*geometry, *shape)
        state[f"{layer_name}.weight"] = weight.reshape(getattr(network, layer_name).weight.shape)
        state[f"{layer_name}.bias"] = bias
    network.load_state_dict(state)
    return network.eval()


def _variables(path):
    """Variables of a .mat file; ValueError where it cannot be read whole."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        with path.open("rb") as file:
            check_matlab(file)
        return scipy.io.loadmat(path, appendmat=False)
    except NotImplementedError as error:  # how SciPy says that it does not read HDF5
        raise ValueError(f"{path}: a MATLAB 7.3 (HDF5) file; {VARIANTS}") from error
    except Exception as error:
        # The reader of damaged files fails with errors of every kind.
        reason = printable(" ".join(str(error).split()), 80) or type(error).__name__
        raise ValueError(f"{path}: cut short, damaged or not a MATLAB file ({reason})") from error


def _layers(path, variables):
    """Name in the plan -> `_Layer`, for conv1 to relu7, in the plan's order."""
    cells = variables.get("layers")
    if cells is None:
        held = sorted(name for name in variables if not name.startswith("__"))
        shown = printable(", ".join(held), 80) or "none"
        raise ValueError(f"{path}: no variable 'layers' (there is {shown}); {VARIANTS}")
    if cells.dtype.names is not None or cells.dtype != object:
        raise ValueError(f"{path}: 'layers' must be a cell of layers; {VARIANTS}")
    found = [_Layer(path, place, cell) for place, cell in enumerate(cells.ravel(), start=1)]
    found = [layer for layer in found if layer.kind not in SILENT_TYPES]
    for place, name in enumerate(SEQUENCE):
        expected = TYPES[name.rstrip("0123456789")]
        if place >= len(found):
            raise ValueError(f"{path}: ends after {len(found)} layers, expected {name} ({expected}) next")
        if found[place].kind != expected:
            raise found[place].error(f"is of type '{found[place].kind}', expected {name} ({expected})", True)
    return dict(zip(SEQUENCE, found))


def _average_image(path, variables, name):
    """float32 (3, side, side) of a file's average image, which may be one colour."""
    holder = _struct(variables.get("meta"))
    if not _has(holder, "normalization"):
        holder = variables
    normalization = _struct(holder["normalization"]) if _has(holder, "normalization") else None
    if normalization is None or not _has(normalization, "averageImage"):
        raise ValueError(f"{path}: no averageImage in meta.normalization or normalization")
    average = normalization["averageImage"]
    side = NETWORKS[name].side
    if average.dtype.kind not in "fiu" or (average.size != 3 and average.shape != (side, side, 3)):
        raise ValueError(
            f"{path}: averageImage is {average.dtype} {average.shape}, expected numbers "
            f"({side}, {side}, 3) or (1, 1, 3) for {name}"
        )
    if not np.isfinite(average).all():
        raise ValueError(f"{path}: averageImage has values that are not finite")
    return full_average(average.ravel() if average.size == 3 else average.transpose(2, 0, 1), side)


class _Layer:
    """One layer of a file: its fields by name, and errors that say which file and layer are wrong."""

    def __init__(self, path, place, cell):
        self.path, self.place, self.label = path, place, ""
        if (fields := _struct(cell)) is None:
            raise self.error("is not a struct", True)
        self.fields = fields
        self.label = self.text("name")
        kind = self.text("type")
        self.kind = OLD_TYPES.get(kind, kind)

    def error(self, message, hint=False):
        label = f" '{self.label}'" if self.label else ""
        return ValueError(f"{self.path}: layer {self.place}{label} {message}{f'; {VARIANTS}' * hint}")

    def text(self, field):
        """The text of a field, "" where it is absent or no text."""
        value = self.fields[field] if _has(self.fields, field) else np.empty(0)
        return printable(str(value.ravel()[0]), 80) if value.dtype.kind == "U" and value.size == 1 else ""

    def numbers(self, field, default=None):
        """The numbers of a field, float64 (k,)."""
        value = self.fields[field] if _has(self.fields, field) else np.empty(0)
        if value.size == 0 and default is not None:
            return np.array(default, np.float64)
        if value.size == 0 or value.dtype.kind not in "fiub":
            raise self.error(f"has no numbers in its field '{field}'")
        return value.ravel().astype(np.float64)

    def expect_numbers(self, field, expected, meaning="", default=None):
        """Check a field against `expected`, for which one number may stand for all."""
        found = self.numbers(field, default)
        if not _equal(np.broadcast_to(found, len(expected)) if found.size == 1 else found, expected):
            meaning = f" ({meaning})" if meaning else ""
            raise self.error(f"has {field} {_shown(found)}, expected {_shown(expected)}{meaning}")

    def array(self, field, values, shape, shapes):
        """float32 array of one of `shapes`, reshaped to `shape`."""
        found = np.shape(values)
        if found not in shapes or values.dtype.kind != "f":
            kind = f"{values.dtype} " if isinstance(values, np.ndarray) else ""
            raise self.error(f"has {field} {kind}{found}, expected float {shapes[0]}")
        if not np.isfinite(values).all():
            raise self.error(f"has {field} that are not finite")
        return np.asarray(values, np.float32).reshape(shape)

    def convolution(self, kernel, stride, padding, incoming, outgoing):
        """Weight float32 (outgoing, incoming, kernel, kernel) and bias (outgoing,), as tensors."""
        if _has(self.fields, "weights"):
            cell = self.fields["weights"]
            if cell.dtype != object or cell.size != 2:
                raise self.error("has weights that are not {filters, biases}")
            filters, biases = cell.ravel()
        elif _has(self.fields, "filters") and _has(self.fields, "biases"):
            filters, biases = self.fields["filters"], self.fields["biases"]
        else:
            raise self.error("has neither weights nor filters and biases")
        shape = (kernel, kernel, incoming, outgoing)
        # MATLAB drops trailing dimensions of 1.
        filters = self.array("filters", filters, shape, [shape, shape[:3]] if outgoing == 1 else [shape])
        biases = self.array("biases", biases, outgoing, [(outgoing, 1), (1, outgoing), (outgoing,)])
        self.expect_numbers("stride", (stride, stride), default=(1,))
        self.expect_numbers("pad", (padding,) * 4, default=(0,))
        self.expect_numbers("dilate", (1, 1), default=(1,))
        weight = np.ascontiguousarray(filters.transpose(3, 2, 0, 1))
        return torch.from_numpy(weight), torch.from_numpy(biases.copy())

    def pooled(self, side):
        """Side of the pooled map; ValueError unless this is the plan's pooling of a map of `side`."""
        if self.text("method") not in ("max", ""):
            raise self.error(f"has method '{self.text('method')}', expected 'max'")
        self.expect_numbers("pool", (POOL, POOL))
        self.expect_numbers("stride", (POOL_STRIDE, POOL_STRIDE))
        last = -(-(side - POOL) // POOL_STRIDE) + 1
        pad = self.numbers("pad", default=(0,))
        top, bottom, left, right = np.broadcast_to(pad, 4) if pad.size in (1, 4) else (np.nan,) * 4
        # A padding that no window reaches changes nothing: some releases leave it out.
        ends = {(side + padding - POOL) // POOL_STRIDE + 1 for padding in (bottom, right)}
        if top or left or ends != {last} or max(bottom, right) >= POOL:
            raise self.error(f"has pad {_shown(pad)}, expected {_shown((0, 1, 0, 1))}")
        return last


def _struct(value):
    """The one struct of a cell or struct array, as a record; None for anything else."""
    while isinstance(value, np.ndarray) and value.size == 1:
        value = value.ravel()[0]
    return value if isinstance(value, np.void) and value.dtype.names else None


def _has(fields, name):
    if isinstance(fields, np.void):
        return name in (fields.dtype.names or ()) and isinstance(fields[name], np.ndarray)
    return fields is not None and name in fields


def _equal(found, expected):
    # Single precision on either side.
    return np.shape(found) == np.shape(expected) and np.allclose(found, expected, rtol=1e-5, atol=0)


def _shown(numbers):
    return f"[{' '.join(f'{number:g}' for number in numbers)}]"
