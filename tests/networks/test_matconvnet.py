"""MatConvNet files of VGG-F and AlexNet; the two networks against their arithmetic written out in NumPy."""

import copy

import numpy as np
import pytest
import scipy.io
import torch
from numpy.lib.stride_tricks import sliding_window_view
from test_response_normalisation import written_out

from networks.caffe_alexnet import CaffeAlexNet
from networks.vgg_f import VGGF
from networks.weights import matconvnet
from tests.tiebench.refusals import refused

CHANNELS, WIDTH = (8, 8, 6, 8, 4), 12
REDUCED = {"channels": CHANNELS, "width": WIDTH}
CLASSES = {"vgg_f": VGGF, "caffe_alexnet": CaffeAlexNet}
# Published: side of the images, groups of the convolutions, [N kappa alpha beta] of normalisation.
PLANS = {
    "vgg_f": (224, (1, 1, 1, 1, 1), (5, 2, 1e-4, 0.75)),
    "caffe_alexnet": (227, (1, 2, 1, 2, 2), (5, 1, 2e-5, 0.75)),
}
KERNELS, STRIDES, PADS = (11, 5, 3, 3, 3, 6, 1), (4, 1, 1, 1, 1, 1, 1), (0, 2, 1, 1, 1, 0, 0)
COLOUR = np.array([[[120.5, 115.25, 101.75]]], np.float32)


def random_parameters(name, seed=5):
    """[(filters float32 (h, w, in, out), biases float32 (out,))] of the seven layers."""
    generator = np.random.default_rng(seed)
    groups = (*PLANS[name][1], 1, 1)
    sizes = (3, *CHANNELS, WIDTH, WIDTH)
    found = []
    for i, kernel in enumerate(KERNELS):
        shape = (kernel, kernel, sizes[i] // groups[i], sizes[i + 1])
        filters = generator.normal(size=shape) * np.sqrt(2 / np.prod(shape[:3]))
        found.append((filters.astype(np.float32), generator.normal(size=shape[3]).astype(np.float32)))
    return found


def cell(*entries):
    array = np.empty((1, len(entries)), object)
    array[0, :] = entries
    return array


def contents(name, parameters, form="new", average=COLOUR):
    """Variables of a file as MatConvNet's releases write them, the order of fields differing among them.

    Forms: "new" has meta and weights; "beta16" normalization at top level and biases (1, K); "oldest" filters
    and biases as fields and the type normalize.
    """
    side, _, constants = PLANS[name]
    layers = []
    for i, (filters, biases) in enumerate(parameters):
        number = i + 1
        layer = f"conv{number}" if number < 6 else f"fc{number}"
        geometry = {
            "stride": np.full((1, 2), STRIDES[i], float),
            "pad": np.full((1, 4), PADS[i], np.uint8),
        }
        if form == "oldest":
            fields = {"filters": filters, "biases": biases[None], "type": "conv", "name": layer} | geometry
        elif form == "beta16":
            fields = geometry | {"type": "conv", "name": layer, "weights": cell(filters, biases[None])}
        else:
            fields = {"name": layer, "type": "conv", "weights": cell(filters, biases[:, None])} | geometry
            fields |= {"dilate": 1.0, "precious": False, "opts": cell("CuDNN")}
        layers += [fields, {"type": "relu", "name": f"relu{number}"}]
        if number < 3:
            kind = "normalize" if form == "oldest" else "lrn"
            layers.append({"name": f"norm{number}", "type": kind, "param": np.array([constants])})
        if number in (1, 2, 5):
            pool = {"name": f"pool{number}", "type": "pool", "method": "max"}
            pool |= {"pool": np.full((1, 2), 3.0), "stride": np.full((1, 2), 2.0)}
            layers.append(pool | {"pad": np.array([[0.0, 1.0, 0.0, 1.0]])})
    head = cell(np.zeros((1, 1, WIDTH, 10), np.float32), np.zeros((10, 1), np.float32))
    layers.append({"name": "fc8", "type": "conv", "weights": head})
    layers.append({"name": "prob", "type": "softmax"})
    normalization = {"imageSize": np.array([[side, side, 3.0]]), "averageImage": average}
    if form == "new":
        return {"layers": cell(*layers), "meta": {"normalization": normalization, "inputs": "data"}}
    return {"layers": cell(*layers), "normalization": normalization, "inputs": "data"}


@pytest.fixture
def written(tmp_path):
    """written(variables) -> path of a .mat file that holds them."""

    def write(variables, **options):
        path = tmp_path / "network.mat"
        scipy.io.savemat(path, variables, **options)
        return path

    return write


def convolved(maps, filters, biases, stride, pad, groups):
    """maps (h, w, in), filters (y, x, in / groups, out), as vl_nnconv defines it: correlation, y first."""
    maps = np.pad(maps, ((pad, pad), (pad, pad), (0, 0)))
    incoming, outgoing = maps.shape[2] // groups, filters.shape[3] // groups
    parts = []
    for group in range(groups):
        own = maps[:, :, group * incoming : (group + 1) * incoming]
        windows = sliding_window_view(own, filters.shape[:2], axis=(0, 1))[::stride, ::stride]
        kernels = filters[..., group * outgoing : (group + 1) * outgoing]
        parts.append(np.einsum("abcyx,yxco->abo", windows, kernels, optimize=True))
    return np.concatenate(parts, axis=2) + biases


def pooled(maps):
    """Maxima over 3 x 3 at stride 2, one row and column of -inf at the bottom and right."""
    maps = np.pad(maps, ((0, 1), (0, 1), (0, 0)), constant_values=-np.inf)
    return sliding_window_view(maps, (3, 3), axis=(0, 1))[::2, ::2].max(axis=(3, 4))


def arithmetic(name, parameters, image, constants=None):
    """fc7 after ReLU, float64 (WIDTH,), of an image (h, w, 3)."""
    _, groups, published = PLANS[name]
    maps = image.astype(np.float64)
    for i, (filters, biases) in enumerate(parameters):
        maps = convolved(maps, filters.astype(float), biases, STRIDES[i], PADS[i], (*groups, 1, 1)[i])
        maps = np.maximum(maps, 0)
        if i < 2:
            first = np.moveaxis(maps, 2, 0)[None]
            maps = np.moveaxis(written_out(first, *(constants or published))[0], 0, 2)
        if i in (0, 1, 4):
            maps = pooled(maps)
    assert maps.shape == (1, 1, WIDTH)
    return maps.ravel()


@pytest.mark.parametrize("form", ["new", "beta16", "oldest"])
@pytest.mark.parametrize("name", PLANS)
def test_networks_of_files_compute_the_published_arithmetic(name, form, written):
    side, _, published = PLANS[name]
    generator = np.random.default_rng(0)
    parameters = random_parameters(name)
    average = generator.uniform(90, 130, (side, side, 3)).astype(np.float32)
    network = matconvnet.load(written(contents(name, parameters, form, average)), name, **REDUCED)
    assert type(network) is CLASSES[name] and network.image_size == side and network.width == WIDTH
    pixels = generator.integers(0, 256, (2, side, side, 3), np.uint8)
    images = network.preprocess(torch.from_numpy(pixels).permute(0, 3, 1, 2))
    with torch.inference_mode():
        found = network(images).numpy()
    assert found.shape == (2, WIDTH) and found.dtype == np.float32
    expected = np.stack([arithmetic(name, parameters, image - average) for image in pixels.astype(float)])
    assert (expected > 0).sum() > WIDTH / 2
    scale = expected.max()
    np.testing.assert_allclose(found / scale, expected / scale, atol=1e-4)
    if form == "new":  # what ports get that forget that torch divides the sum by the size
        size, kappa, alpha, beta = published
        wrong = arithmetic(name, parameters, pixels[0] - average, (size, kappa, alpha / size, beta))
        assert np.abs(wrong - expected[0]).max() > 0.02 * scale


@pytest.mark.parametrize(("name", "count"), [("vgg_f", 60_834_536), ("caffe_alexnet", 60_965_224)])
def test_a_network_of_full_size_has_the_published_number_of_parameters(name, count):
    with torch.device("meta"):  # no memory, and no random numbers
        network = CLASSES[name]()
    assert network.width == 4096
    assert sum(values.numel() for values in network.parameters()) == count - 4097 * 1000  # without fc8


def layer(variables, name):
    return next(fields for fields in variables["layers"][0] if fields["name"] == name)


def without(variables, name):
    variables["layers"] = cell(*(fields for fields in variables["layers"][0] if fields["name"] != name))


def test_harmless_differences_between_files_change_nothing(written):
    parameters = random_parameters("caffe_alexnet")
    plain = contents("caffe_alexnet", parameters)
    expected = matconvnet.load(written(plain), "caffe_alexnet", **REDUCED).state_dict()
    varied = copy.deepcopy(plain)
    for fields in varied["layers"][0]:
        if fields["name"].startswith("conv"):
            fields["stride"], fields["pad"] = fields["stride"][0, 0], fields["pad"][0, 0]
            filters, biases = fields["weights"][0]
            fields["weights"] = cell(filters.astype(float), biases.ravel().astype(float))
        if fields["name"].startswith("pool"):  # no window reaches the padding in AlexNet
            fields["pad"] = 0.0
        if fields["name"].startswith("norm"):
            fields["param"] = fields["param"].astype(np.float32)
        if fields["name"].startswith("relu"):
            fields |= {"leak": 0.0, "weights": np.empty((0, 0))}
    entries = list(varied["layers"][0])
    entries.insert(17, {"name": "drop6", "type": "dropout", "rate": 0.5})
    varied["layers"] = cell(*entries)
    varied["meta"]["normalization"]["averageImage"] = COLOUR.reshape(3, 1).astype(float)
    found = matconvnet.load(written(varied, do_compression=True), "caffe_alexnet", **REDUCED).state_dict()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[key], expected[key]) for key in found)
    assert (expected["average_image"].numpy() == COLOUR.reshape(3, 1, 1)).all()
    cut = copy.deepcopy(plain)
    without(cut, "fc8")
    without(cut, "prob")
    assert matconvnet.load(written(cut), "caffe_alexnet", **REDUCED).width == WIDTH


def set_field(name, field, value):
    def change(variables):
        layer(variables, name)[field] = value

    return change


def set_weights(name, which, change_array):
    def change(variables):
        arrays = list(layer(variables, name)["weights"][0])
        arrays[which] = change_array(arrays[which])
        layer(variables, name)["weights"] = cell(*arrays)

    return change


def with_a_nan(array):
    return np.where(np.arange(array.size).reshape(array.shape) == 3, np.float32(np.nan), array)


def folded_batch_norm(variables):
    """As the retrained variants are released: no normalisation."""
    without(variables, "norm1")
    without(variables, "norm2")


def as_struct_array(variables):
    kinds = [("name", object), ("block", object)]
    variables["layers"] = np.array([[("conv1", "x"), ("relu1", "x")]], kinds)


def other_average(variables):
    variables["meta"]["normalization"]["averageImage"] = np.zeros((227, 227, 3), np.float32)


def no_average(variables):
    del variables["meta"]["normalization"]["averageImage"]


WRONG = {
    "retrained": (folded_batch_norm, ["layer 3 'pool1'", "'pool'", "expected norm1 (lrn)", "retrainings"]),
    "ends early": (
        lambda v: v.update(layers=cell(*v["layers"][0][:17])),
        ["17 layers", "expected fc7 (conv)"],
    ),
    "other LRN": (
        set_field("norm1", "param", np.array([[5, 1, 1e-4, 0.75]])),
        [
            "layer 3 'norm1'",
            "[5 1 0.0001 0.75]",
            "expected [5 2 0.0001 0.75] ([N kappa alpha beta] of vgg_f)",
        ],
    ),
    "LRN without numbers": (set_field("norm2", "param", np.empty((0, 0))), ["'norm2'", "'param'"]),
    "stride": (set_field("conv1", "stride", 2.0), ["layer 1 'conv1'", "stride [2]", "expected [4 4]"]),
    "padding": (set_field("conv2", "pad", 1.0), ["layer 5 'conv2'", "pad [1]", "expected [2 2 2 2]"]),
    "dilation": (set_field("conv3", "dilate", 2.0), ["'conv3'", "dilate [2]", "expected [1 1]"]),
    "leak": (set_field("relu2", "leak", 0.1), ["layer 6 'relu2'", "leak [0.1]", "expected [0]"]),
    "mean pooling": (set_field("pool2", "method", "avg"), ["'pool2'", "'avg'", "expected 'max'"]),
    "pool size": (set_field("pool5", "pool", 2.0), ["layer 15 'pool5'", "pool [2]", "expected [3 3]"]),
    "pool without padding": (set_field("pool1", "pad", 0.0), ["'pool1'", "pad [0]", "expected [0 1 0 1]"]),
    "pool padded at the top": (
        set_field("pool1", "pad", np.array([[1, 0, 1, 0]])),
        ["'pool1'", "pad [1 0 1 0]", "expected [0 1 0 1]"],
    ),
    "filters": (
        set_weights("conv3", 0, lambda filters: filters[:, :, :5]),
        ["layer 9 'conv3'", "filters float32 (3, 3, 5, 6)", "expected float (3, 3, 8, 6)"],
    ),
    "biases": (
        set_weights("fc6", 1, lambda biases: biases[1:]),
        ["layer 16 'fc6'", "biases float32 (11, 1)", "expected float (12, 1)"],
    ),
    "not a number": (set_weights("fc7", 0, with_a_nan), ["layer 18 'fc7'", "filters", "not finite"]),
    "text": (set_weights("conv1", 0, lambda _: "x"), ["layer 1 'conv1'", "filters", "(11, 11, 3, 8)"]),
    "no weights": (lambda v: layer(v, "conv1").pop("weights"), ["layer 1 'conv1'", "neither weights"]),
    "three weights": (set_field("conv1", "weights", cell(1.0, 2.0, 3.0)), ["'conv1'", "{filters, biases}"]),
    "no name": (lambda v: layer(v, "conv2").update(name="", type=""), ["layer 5 is of type ''"]),
    "layer is a number": (lambda v: v["layers"].__setitem__((0, 4), 7.0), ["layer 5 is not a struct"]),
    "DagNN": (as_struct_array, ["'layers' must be a cell"]),
    "no layers": (lambda v: v.pop("layers"), ["no variable 'layers'", "there is meta"]),
    "average image of the other": (other_average, ["averageImage", "(227, 227, 3)", "(224, 224, 3)"]),
    "no average image": (no_average, ["no averageImage"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_other_files_are_refused_in_one_line(case, written):
    change, words = WRONG[case]
    variables = copy.deepcopy(contents("vgg_f", random_parameters("vgg_f")))
    change(variables)
    path = written(variables)
    with refused(*words, pattern=f"^{path}: "):
        matconvnet.load(path, "vgg_f", **REDUCED)


def test_a_network_of_another_name_or_width_is_refused(written):
    path = written(contents("vgg_f", random_parameters("vgg_f")))
    with refused(pattern=r"layer 1 'conv1' has filters float32 \(11, 11, 3, 8\), expected"):
        matconvnet.load(path, "vgg_f")
    with refused(pattern=r"norm1' has param \[5 2 0.0001 0.75\]"):
        matconvnet.load(path, "caffe_alexnet", **REDUCED)


@pytest.mark.parametrize("compress", [False, True])
def test_files_cut_short_or_of_another_kind_are_refused_in_one_line(compress, written):
    path = written(contents("vgg_f", random_parameters("vgg_f")), do_compression=compress)
    whole = path.read_bytes()
    damaged = [*(whole[: len(whole) * part // 8] for part in range(8)), whole[:-1]]
    damaged += [b"PK\x03\x04" + bytes(300), b"version https://git-lfs.github.com/spec/v1\n" * 9]
    # The header of MATLAB 7.3.
    damaged.append(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(500))
    for contained in damaged:
        path.write_bytes(contained)
        with refused(pattern=f"^{path}: ") as caught:
            matconvnet.load(path, "vgg_f", **REDUCED)
    assert "7.3" in str(caught.value)
