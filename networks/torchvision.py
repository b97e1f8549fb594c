"""Classifiers of torchvision: the feature is what enters their last linear layer."""

import torch

from networks._base import ImageNetwork
from tiebench.messages import did_you_mean

OPTIONS = {
    "model": "name of a classifier in torchvision.models",
    "image_size": "side of the square that images are resized to, default 224",
}

# Mean and standard deviation of ImageNet's colours, RGB 0-1, that torchvision's weights were trained with.
MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)


class TorchvisionModel(ImageNetwork):
    """float32 (n, 3, image_size, image_size), (pixels / 255 - mean) / deviation, to float32 (n, width).

    model: name of a classifier in torchvision.models. Its last linear layer is left out (`classifier` is that
    layer's name in the model, under which weights may still hold it); width is that layer's input. Weights
    are random: torchvision's downloads are never started.
    """

    def __init__(self, model, image_size=224):
        """Raises ValueError where torchvision is missing, has no such model, or the model does not end in a
        linear layer or does not take images of this size."""
        built = _build(model)
        linear = [name for name, layer in built.named_modules() if isinstance(layer, torch.nn.Linear)]
        if not linear:
            raise ValueError(f"network torchvision/{model} has no linear layer to leave out")
        parent, _, attribute = linear[-1].rpartition(".")
        setattr(built.get_submodule(parent), attribute, torch.nn.Identity())
        width = _output_width(model, built, image_size)
        mean, scale = [255 * value for value in MEAN], [1 / (255 * value) for value in DEVIATION]
        super().__init__(image_size, width, mean, scale)
        self.classifier = linear[-1]
        self.model = built

    def weight_module(self):
        return self.model

    def without_classifier(self, weights):
        return {name: weights[name] for name in weights if name.rpartition(".")[0] != self.classifier}

    def forward(self, images):
        return _features(self.model(images))


def _build(model):
    try:
        import torchvision
    except ImportError as error:
        raise ValueError(
            f"network torchvision/{model} needs the package torchvision, which is not installed: install the "
            f"release that goes with torch {torch.__version__}"
        ) from error
    known = torchvision.models.list_models(module=torchvision.models)
    if model not in known:
        raise ValueError(f"torchvision has no model '{model}'{did_you_mean(model, known)}")
    return torchvision.models.get_model(model, weights=None)


def _output_width(model, built, image_size):
    training = built.training
    built.eval()
    try:
        with torch.inference_mode():
            outputs = _features(built(torch.zeros(1, 3, image_size, image_size)))
    except (RuntimeError, AssertionError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(
            f"network torchvision/{model} does not take images of image_size {image_size}: {reason}"
        ) from error
    finally:
        built.train(training)
    if outputs.ndim != 2:
        raise ValueError(
            f"network torchvision/{model} does not end in its last linear layer: without it an image gives "
            f"{tuple(outputs.shape[1:])} values"
        )
    return outputs.shape[1]


def _features(outputs):
    # Models with auxiliary classifiers put the main output first, in training only.
    return outputs if isinstance(outputs, torch.Tensor) else outputs[0]
