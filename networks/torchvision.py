"""Classifiers of torchvision: the feature is what enters their last linear layer."""

import torch

from networks.base.image_network import ImageNetwork
from tiebench.messages import did_you_mean

# Mean and standard deviation of ImageNet's colours, RGB 0-1, that torchvision's weights were trained with.
MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)


class TorchvisionModel(ImageNetwork):
    """float32 (n, 3, image_size, image_size), (pixels / 255 - mean) / deviation, to float32 (n, width).

    model: name of a classifier in torchvision.models. Its last linear layer is left out (`classifier` is that
    layer's name in the model, under which weights may still hold it); width is that layer's input. Weights
    are random: torchvision's downloads are never started.
    """

    options = {
        "model": "name of a classifier in torchvision.models",
        "image_size": "side of the square that images are resized to, default 224",
    }

    def __init__(self, model, image_size=224):
        """Raises ValueError where torchvision is missing, has no such model, or the model does not end in a
        linear layer or does not take images of this size."""
        built = build(model)
        classifier = leave_out_classifier(built, model)
        width = _output_width(model, built, image_size)
        mean, scale = [255 * value for value in MEAN], [1 / (255 * value) for value in DEVIATION]
        super().__init__(image_size, width, mean, scale)
        self.classifier = classifier
        self.model = built

    def weight_module(self):
        return self.model

    def without_classifier(self, weights):
        return {name: weights[name] for name in weights if name.rpartition(".")[0] != self.classifier}

    def forward(self, images):
        return main_output(self.model(images))


def imported(what):
    """The package torchvision. Raises ValueError, which says that `what` needs it, where it is missing or is
    built for another torch."""
    try:
        import torchvision
    except ImportError as error:
        raise ValueError(
            f"{what} needs the package torchvision, which is not installed: install the release that goes "
            f"with torch {torch.__version__}"
        ) from error
    except RuntimeError as error:
        # Its compiled part is not loaded, which shows at the first operator that is looked up.
        raise ValueError(
            f"{what} needs the build of torchvision that goes with torch {torch.__version__}: install it "
            "from where torch came from"
        ) from error
    return torchvision


def build(model, weights=None):
    """The classifier of torchvision.models called `model`, with random weights or with `weights`, one of
    torchvision's own. Raises ValueError where torchvision is missing, and for an unknown name."""
    torchvision = imported(f"network torchvision/{model}")
    known = torchvision.models.list_models(module=torchvision.models)
    if model not in known:
        raise ValueError(f"torchvision has no model '{model}'{did_you_mean(model, known)}")
    return torchvision.models.get_model(model, weights=weights)


def leave_out_classifier(built, model):
    """Put the identity in place of the last linear layer of `built`; the layer's name.

    Raises ValueError, naming `model`, where it has none.
    """
    linear = [name for name, layer in built.named_modules() if isinstance(layer, torch.nn.Linear)]
    if not linear:
        raise ValueError(f"network torchvision/{model} has no linear layer to leave out")
    parent, _, attribute = linear[-1].rpartition(".")
    setattr(built.get_submodule(parent), attribute, torch.nn.Identity())
    return linear[-1]


def main_output(outputs):
    """The main output. Models with auxiliary classifiers put it first, in training only."""
    return outputs if isinstance(outputs, torch.Tensor) else outputs[0]


def _output_width(model, built, image_size):
    training = built.training
    built.eval()
    try:
        with torch.inference_mode():
            outputs = main_output(built(torch.zeros(1, 3, image_size, image_size)))
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
