"""torchvision: what enters the last linear layer of its classifiers."""

from networks.backbones import Backbone, BackboneError, fill_without, seeded, stacked, unknown
from networks.torchvision import build, imported, leave_out_classifier, main_output

ITEMS = ("images",)
PACKAGES = ("torchvision",)
OPTIONS: dict[str, str] = {}


def models():
    """Names of classifiers. After a dot, one of a model's weights may follow: resnet50.IMAGENET1K_V1."""
    torchvision = imported("backbones of torchvision")
    return torchvision.models.list_models(module=torchvision.models)


def load(model, items, weights, seed):
    """`model`: a classifier of torchvision.models, prepared as its (default) weights ask for."""
    name, _, tag = model.partition(".")
    if name not in models():
        raise unknown(f"torchvision/{model}", models())
    known = imported("the model").models.get_model_weights(name)
    if tag and tag not in known.__members__:
        raise unknown(f"torchvision/{model}", [f"{name}.{one}" for one in known.__members__])
    entry = known[tag] if tag else known.DEFAULT
    with seeded(seed):
        module = build(name, entry if weights is None and seed is None else None)
    classifier = leave_out_classifier(module, name)
    if weights is not None:
        fill_without(module, (classifier,), weights)
    module.eval()

    def encode(images, batch_size, device):
        outputs = main_output(module(stacked(images, device)))
        if outputs.ndim != 2:
            raise BackboneError(f"model 'torchvision/{model}' does not end in its last linear layer")
        return outputs

    transforms = entry.transforms()
    settings = {"weights": str(entry), "preprocessing": " ".join(repr(transforms).split())}
    return Backbone(module, encode, transforms, settings)
