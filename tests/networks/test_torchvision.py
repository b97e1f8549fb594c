"""Networks of the real torchvision, where it is installed. Weights are random: nothing is downloaded."""

import numpy as np
import pytest
import torch

import networks

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
