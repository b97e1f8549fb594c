"""Networks of the real torchvision, where it is installed: shapes, weights by name, and training under a hash
layer. Weights are random: nothing is downloaded."""

import numpy as np
import pytest
import torch

import networks
from methods.base import TrainingSet
from methods.base.catalogue import load_class

torchvision = pytest.importorskip("torchvision", reason="torchvision is not installed")

# Model -> (width of the feature, layer that is left out).
MODELS = {
    "resnet18": (512, "fc"),
    "vit_b_16": (768, "heads.head"),
    "efficientnet_b0": (1280, "classifier.1"),
    "convnext_tiny": (768, "classifier.2"),
    "mobilenet_v3_small": (1024, "classifier.3"),
    "mnasnet0_5": (1280, "classifier.1"),
    "googlenet": (1024, "fc"),
    "alexnet": (4096, "classifier.6"),
    "swin_t": (768, "head"),
}
IMAGES = np.random.default_rng(0).integers(0, 256, (2, 40, 50, 3), np.uint8)


@pytest.mark.filterwarnings("ignore:The default weight initialization:FutureWarning")
@pytest.mark.parametrize("model", sorted(MODELS))
def test_features_are_what_enters_the_last_linear_layer(model, tmp_path):
    """Against a hook on the whole model, whose weights come through a file."""
    torch.manual_seed(0)
    whole = torchvision.models.get_model(model, weights=None).eval()
    torch.save(whole.state_dict(), tmp_path / "weights.pth")
    network = networks.make(f"torchvision/{model}", tmp_path / "weights.pth")
    width, classifier = MODELS[model]
    assert (network.width, network.classifier) == (width, classifier)
    images = network.preprocess(torch.from_numpy(IMAGES).permute(0, 3, 1, 2))
    assert images.shape == (2, 3, 224, 224)
    entered = []
    whole.get_submodule(classifier).register_forward_hook(lambda _, inputs, __: entered.append(inputs[0]))
    with torch.inference_mode():
        whole(images)
        torch.testing.assert_close(network(images), entered[0])


def test_images_are_prepared_as_torchvision_prepares_them():
    from torchvision.transforms.v2 import functional

    network = networks.make("torchvision/resnet18", image_size=64)
    pixels = torch.from_numpy(IMAGES).permute(0, 3, 1, 2)
    resized = functional.resize(
        pixels.float(), [64, 64], functional.InterpolationMode.BICUBIC, antialias=True
    )
    expected = functional.normalize(resized / 255, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    torch.testing.assert_close(network.preprocess(pixels), expected, atol=1e-4, rtol=1e-4)


def test_a_hash_layer_is_trained_on_a_model_and_comes_back(tmp_path):
    generator = np.random.default_rng(0)
    labels = np.arange(12) % 2
    images = generator.integers(0, 120, (12, 32, 32, 3)).astype(np.uint8)
    images[labels == 1] += 100
    training_set = TrainingSet(
        items=images,
        affinity=lambda i, j: (labels[i][:, None] == labels[j][None]).astype(np.int64),
        levels=(0, 1),
        labels=labels,
        network={"architecture": "torchvision/resnet18", "options": {"image_size": 32}},
    )
    kind = load_class("talr_ap")
    method = kind(bits=8, seed=0, device="cpu", epochs=2, batch_size=6, backbone_lr_multiplier=1.0)
    before = kind(bits=8, seed=0, device="cpu", epochs=0, batch_size=6).fit(training_set)
    method.fit(training_set)
    layer = "backbone.model.conv1.weight"
    assert not torch.equal(method.network.get_parameter(layer), before.network.get_parameter(layer))
    codes = method.encode(images)
    assert codes.shape == (12, 8)
    method.save(tmp_path)
    again = kind.load(tmp_path)
    np.testing.assert_array_equal(again.encode(images), codes)
