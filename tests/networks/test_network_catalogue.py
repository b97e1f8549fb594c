"""Networks by name: preparation of images, weights by parameter name, and errors."""

import inspect
import io
import sys
import tarfile
import types
from dataclasses import replace

import numpy as np
import pytest
import torch
from files import resource
from PIL import Image

import networks
from networks.base.devices import resolve_device
from networks.weights import matconvnet
from tests.tiebench.refusals import refused

TINY = {"channels": (4, 4, 4, 4, 4), "width": 6}


def photograph(height, width, seed=0):
    """uint8 (height, width, 3): smooth shapes with edges, unlike noise."""
    generator = np.random.default_rng(seed)
    coarse = generator.integers(0, 256, (5, 6, 3), np.uint8)
    pixels = np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)).copy()
    pixels[height // 3 : height // 2, width // 4 :] = generator.integers(0, 256, 3)
    return pixels


def resized(channel, side):
    image = Image.fromarray(channel.astype(np.float32))
    return np.asarray(image.resize((side, side), Image.Resampling.BICUBIC))


def as_tensor(*images):
    return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2)


@pytest.mark.parametrize(("name", "side"), [("vgg_f", 224), ("caffe_alexnet", 227)])
@pytest.mark.parametrize("shape", [(32, 32), (300, 401), (500, 120)])
def test_images_are_resized_as_pillow_does_and_the_average_is_subtracted(name, side, shape):
    average = np.random.default_rng(1).uniform(90, 130, (3, side, side)).astype(np.float32)
    network = networks.make(name, **TINY, average_image=average)
    assert network.image_size == side and network.width == 6
    image = photograph(*shape)
    found = network.preprocess(as_tensor(image))
    assert found.dtype == torch.float32 and found.shape == (1, 3, side, side)
    # Pillow resizes floating point images of one channel, without clamping.
    expected = np.stack([resized(image[..., channel], side) for channel in range(3)])
    assert expected.min() < 0 or expected.max() > 255  # so that clamping would show
    np.testing.assert_allclose(found[0].numpy(), expected - average, atol=2e-3)


def test_an_image_of_the_right_size_is_not_touched():
    network = networks.make("vgg_f", **TINY)
    image = photograph(224, 224)
    expected = image.transpose(2, 0, 1) - np.float32([[[122.679]], [[116.669]], [[104.007]]])
    assert (network.preprocess(as_tensor(image))[0].numpy() == expected).all()
    image = photograph(32, 32)
    found = networks.make("small").preprocess(as_tensor(image))[0].numpy()
    np.testing.assert_allclose(found, image.transpose(2, 0, 1) / 127.5 - 1, atol=1e-6)


@pytest.mark.parametrize(
    "images",
    [torch.zeros(1, 3, 8, 8), torch.zeros(1, 8, 8, 3, dtype=torch.uint8), torch.zeros(3, 8, 8).byte()],
)
def test_other_images_are_refused(images):
    with refused(pattern=r"images must be uint8 \(n, 3, h, w\), not (float32|uint8) \("):
        networks.make("small").preprocess(images)


@pytest.mark.parametrize("name", ["vgg_f", "small", "mobilenet_v2_keras", "efficientnet_lite0"])
def test_random_weights_are_those_of_the_seed(name):
    options = TINY if name in matconvnet.NETWORKS else {}
    state = torch.random.get_rng_state()
    first, again, other = (networks.make(name, seed=seed, **options) for seed in (3, 3, 4))
    assert torch.equal(torch.random.get_rng_state(), state)
    pairs = zip(first.parameters(), again.parameters(), other.parameters())
    same, different = zip(*((torch.equal(a, b), not torch.equal(a, c)) for a, b, c in pairs))
    assert all(same) and any(different)
    images = first.preprocess(as_tensor(photograph(40, 50, 1), photograph(40, 50, 2)))
    features = first(images)
    assert features.shape == (2, first.width) and torch.equal(features, again(images))
    # Every parameter is trained, and every one matters.
    features.square().sum().backward()
    gradients = [parameter.grad for parameter in first.parameters()]
    assert gradients and all(one is not None and one.abs().sum() > 0 for one in gradients)


def test_small_sees_each_image_alone():
    network = networks.make("small", width=64).train()
    images = network.preprocess(as_tensor(*(photograph(32, 32, seed) for seed in range(3))))
    alone = torch.cat([network(images[i : i + 1]) for i in range(3)])
    torch.testing.assert_close(network(images), alone, atol=1e-5, rtol=1e-5)
    assert alone.shape == (3, 64)


@pytest.mark.parametrize(("name", "ending"), [("vgg_f", ".pt"), ("small", ".pth"), ("small", ".npz")])
def test_weights_by_parameter_name_come_back(name, ending, tmp_path):
    options = TINY if name == "vgg_f" else {}
    network = networks.make(name, seed=7, **options)
    path = tmp_path / f"weights{ending}"
    state = network.state_dict()
    if ending == ".npz":
        np.savez(path, **{key: values.numpy() for key, values in state.items()})
    else:
        torch.save(state, path)
    loaded = networks.make(name, path, **options)
    assert all(torch.equal(values, loaded.state_dict()[key]) for key, values in state.items())
    assert not loaded.training


class Planted:
    """Unpickled, it would call a function."""

    def __reduce__(self):
        return print, ("executed",)


def changed(name, values):
    """The weights of `small`, of which one array has other values, or none."""

    def write(tmp_path):
        state = {key: array.numpy() for key, array in networks.make("small").state_dict().items()}
        state[name] = values
        np.savez(tmp_path / "a.npz", **{key: array for key, array in state.items() if array is not None})
        return tmp_path / "a.npz"

    return write


def with_objects(tmp_path):
    np.savez(tmp_path / "objects.npz", **{"blocks.0.weight": np.array([Planted()], object)})
    return tmp_path / "objects.npz"


def file_of(name, contained):
    def write(tmp_path):
        if isinstance(contained, bytes):
            (tmp_path / name).write_bytes(contained)
        else:
            torch.save(contained, tmp_path / name)
        return tmp_path / name

    return write


BIAS = "blocks.1.bias"
WRONG_WEIGHTS = {
    "code in a state dict": (file_of("a.pt", {"blocks.0.weight": Planted()}), ["without running code"]),
    "objects in npz": (with_objects, ["plain arrays"]),
    "no dict": (file_of("a.pt", [torch.zeros(2)]), ["must hold a state dict"]),
    "damaged pt": (file_of("a.pt", b"PK\x03\x04" * 9), ["without running code"]),
    "damaged npz": (file_of("a.npz", b"PK\x03\x04" * 9), ["damaged"]),
    "ending": (file_of("a.h5", b"x"), [".pt, .pth, .npz"]),
    "mat": (file_of("a.mat", b"x"), ["weights of network small end in .pt, .pth, .npz"]),
    "missing": (changed("blocks.4.weight", None), ["no array 'blocks.4.weight'", "(64, 32, 3, 3)"]),
    "shape": (changed(BIAS, np.zeros(3)), [f"'{BIAS}' is (3,), expected (32,)"]),
    "too many": (changed("head.bias", np.zeros(3)), ["'head.bias' has no place"]),
    "infinite": (changed(BIAS, np.full(32, np.inf)), [f"'{BIAS}'", "not finite"]),
    "text": (changed(BIAS, np.array(["x"])), [f"'{BIAS}'", "expected numbers"]),
}


@pytest.mark.parametrize("case", WRONG_WEIGHTS)
def test_weights_that_do_not_fit_are_refused_in_one_line(case, tmp_path, capsys):
    make, words = WRONG_WEIGHTS[case]
    path = make(tmp_path)
    with refused(*words, pattern=f"^{path}: "):
        networks.make("small", path)
    assert "executed" not in capsys.readouterr().out


WRONG_CALLS = {
    "close name": (("vgg-f",), {}, ["there is no network 'vgg-f'", "did you mean 'vgg_f'?"]),
    "far name": (
        ("resnet50",),
        {},
        ["there is no network ", "caffe_alexnet, efficientnet_lite0, gist, mobilenet", "torchvision/<model>"],
    ),
    "close option": (("vgg_f",), {"chanels": (8,) * 5}, ["no option 'chanels'", "did you mean 'channels'?"]),
    "far option": (("small",), {"layers": 3}, ["no option 'layers'", "known: width"]),
    "width": (("small",), {"width": 20}, ["multiple of 8", "20"]),
    "channels": (("vgg_f",), {"channels": (8, 8), "width": 4}, ["channels must be five"]),
    "groups": (("caffe_alexnet",), {"channels": (4, 4, 4, 5, 4)}, ["divisible into groups (1, 2, 1, 2, 2)"]),
    "average": (("vgg_f",), TINY | {"average_image": np.zeros((3, 227, 227))}, ["(3, 224, 224)", "227"]),
    "image size": (("mobilenet_v2_keras",), {"image_size": 100}, ["multiple of 32", "100"]),
    "no size": (("efficientnet_lite0",), {"image_size": 0}, ["image_size", "must be positive"]),
    "batch norm": (("efficientnet_lite0",), {"batch_norm": "on"}, ["batch_norm", "not 'on'"]),
    "odd size": (("gist",), {"size": 33}, ["size must be even"]),
    "small size": (("gist",), {"size": 16}, ["at least blocks, extension and 5"]),
    "no orientations": (("gist",), {"orientations": ()}, ["orientations must be positive"]),
    "no torchvision": (("torchvision/resnet18",), {}, ["torchvision", "not installed", torch.__version__]),
}


@pytest.mark.parametrize("case", WRONG_CALLS)
def test_wrong_calls_are_refused_in_one_line(case, monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision", None)
    arguments, options, words = WRONG_CALLS[case]
    with refused(*words):
        networks.make(*arguments, **options)


@pytest.mark.parametrize(("name", "ending"), [("small", ".pt"), ("vgg_f", ".mat")])
def test_a_missing_file_is_named(name, ending, tmp_path):
    file = tmp_path / f"absent{ending}"
    with refused(f"{file}: no such file", kind=FileNotFoundError):
        networks.make(name, file, **(TINY if name == "vgg_f" else {}))


class Classifier(torch.nn.Module):
    """Like a model of torchvision with an auxiliary classifier: training returns both outputs."""

    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 4, 8, 8)
        self.auxiliary = torch.nn.Linear(4, 10)
        self.head = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 10))

    def forward(self, images):
        pooled = self.stem(images).mean(dim=(2, 3))
        outputs = self.head(pooled)
        return (outputs, self.auxiliary(pooled)) if self.training else outputs


@pytest.fixture
def torchvision(monkeypatch):
    """A stand-in with what is used of the real package: list_models and get_model."""
    models = types.ModuleType("torchvision.models")
    built = {"classifier": Classifier, "convolutions": lambda: torch.nn.Sequential(torch.nn.Conv2d(3, 4, 8))}
    built["two_maps"] = lambda: torch.nn.Sequential(torch.nn.Linear(224, 2), torch.nn.Flatten(2))
    models.list_models = lambda module=None: sorted(built) if module is models else ["detector"]
    models.get_model = lambda name, weights: built[name]() if weights is None else pytest.fail("download")
    package = types.ModuleType("torchvision")
    package.models = models
    monkeypatch.setitem(sys.modules, "torchvision", package)


@pytest.mark.usefixtures("torchvision")
def test_models_of_torchvision_end_before_their_last_linear_layer(tmp_path):
    torch.manual_seed(0)
    whole = Classifier().eval()
    torch.save(whole.state_dict(), tmp_path / "whole.pt")
    headless = {k: v.numpy() for k, v in whole.state_dict().items() if not k.startswith("head.2")}
    np.savez(tmp_path / "headless.npz", **headless)
    image = photograph(60, 80)
    for file in ("whole.pt", "headless.npz"):
        network = networks.make("torchvision/classifier", tmp_path / file)
        assert network.width == 5 and network.image_size == 224 and network.classifier == "head.2"
        images = network.preprocess(as_tensor(image))
        expected = torch.relu(whole.head[0](whole.stem(images).mean(dim=(2, 3))))
        torch.testing.assert_close(network(images), expected)
        torch.testing.assert_close(network.train()(images), expected)
    expected = (resized(image[..., 1], 224) / 255 - 0.456) / 0.224
    np.testing.assert_allclose(images[0, 1].numpy(), expected, atol=1e-4)
    assert networks.make("torchvision/classifier", image_size=64).image_size == 64


@pytest.mark.usefixtures("torchvision")
@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        ("clasifier", {}, "did you mean 'classifier'?"),
        ("unlike", {}, "known: classifier, convolutions, two_maps"),
        ("convolutions", {}, "no linear layer"),
        ("two_maps", {}, "does not end in its last linear layer"),
        ("classifier", {"image_size": 4}, "does not take images of image_size 4"),
        ("classifier", {"model": "other"}, "no option 'model'"),
    ],
)
def test_models_of_torchvision_that_cannot_serve_are_refused(model, options, words):
    with refused(words):
        networks.make(f"torchvision/{model}", **options)


def test_mobilenet_gives_the_stored_features_of_real_images():
    """8 images of CIFAR-10; the stored features are rounded to 1/255 of each dimension's maximum."""
    weights, archive = resource("mobilenetv2-imagenet.npz"), resource("cifar10-jpeg.tar.xz")
    with np.load(resource("cifar10-mobilenetv2.npz")) as stored:
        levels, scale, paths = stored["X"], stored["scale"], [path.decode() for path in stored["path"]]
    images, rows = [], []
    with tarfile.open(archive) as members:
        while len(images) < 8:
            member = members.next()
            if member.isfile():
                contained = io.BytesIO(members.extractfile(member).read())
                images.append(np.asarray(Image.open(contained).convert("RGB")))
                rows.append(paths.index(member.name.removeprefix("cifar10-jpeg/")))
    network = networks.make("mobilenet_v2_keras", weights)
    with torch.inference_mode():
        found = network(network.preprocess(as_tensor(*images))).numpy() / scale
    error = np.abs(found - levels[rows])
    # Half a level from rounding, and some from the single precision of another machine.
    assert error.max() < 0.6 and np.quantile(error, 0.99) < 0.51


@pytest.mark.parametrize("name", sorted(set(networks.KIND.find()) - {"torchvision"}))
def test_described_options_are_the_arguments_of_the_class(name):
    network = networks.make(name, **(TINY if name in matconvnet.NETWORKS else {}))
    assert list(inspect.signature(type(network)).parameters) == list(network.options)
    assert isinstance(network.width, int) and isinstance(network.image_size, int)


def test_gist_is_an_architecture_with_options():
    options = {"size": 32, "orientations": [4, 4], "blocks": 2, "prefilter": 3.0, "extension": 8}
    network = networks.make("gist", **options)
    images = np.stack([photograph(40, 50, 1), photograph(40, 50, 2)])
    found = network(network.preprocess(as_tensor(*images)))
    assert found.shape == (2, network.width) == (2, 32) and not network.trainable


def test_a_family_stands_for_many_networks(tmp_path, monkeypatch):
    monkeypatch.setattr(networks, "KIND", replace(networks.KIND, folder=tmp_path))
    (tmp_path / "good.py").write_text(
        '"""Good."""\nfrom networks.base.image_network import ImageNetwork\n'
        'class Good(ImageNetwork):\n    options = {"model": "m", "a": "b"}\n'
    )
    found, arguments = networks.architecture("good/x/y")
    assert (found.name, found.said.trainable, arguments) == ("good", True, {"model": "x/y"})
    networks.check_options("good/x", {"a": 1})
    for name in ("good", "good/", "goods", 3, None):
        with refused(pattern=r"there is no network .*good/<model>"):
            networks.architecture(name)
    with refused("network good/x has no option 'model'"):
        networks.check_options("good/x", {"model": "y"})


@pytest.mark.parametrize("name", ["gpu", "cuda:x", None, "cuda", "cuda:7"])
def test_a_device_that_is_not_there_is_refused_in_one_line(name, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: name == "cuda:7")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with refused(pattern=r"^device (must be cpu, cuda or auto|is cuda)"):
        resolve_device(name)


@pytest.mark.parametrize("there", [True, False])
def test_devices_by_name(there, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: int(there))
    assert resolve_device("auto") == torch.device("cuda" if there else "cpu")
    assert resolve_device("cpu") == resolve_device(torch.device("cpu")) == torch.device("cpu")
    if there:
        assert resolve_device("cuda:0") == torch.device("cuda:0")
