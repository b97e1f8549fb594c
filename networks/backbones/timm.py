"""timm: what its models give to their classifier."""

import re

from networks.backbones import Backbone, BackboneError, fill_without, seeded, stacked, unknown
from networks.torchvision import imported

ITEMS = ("images",)
PACKAGES = ("timm", "torchvision")
OPTIONS = {
    "pool": "avg, max, avgmax or catavgmax; token or map where the model has them (default: the model's own)"
}


def models():
    """Names of architectures and, after a dot, of their pretrained weights."""
    import timm

    return sorted({*timm.list_models(), *timm.list_pretrained()})


def load(model, items, weights, seed, pool=None):
    """`model`: as timm.create_model takes it, also hf-hub:owner/name and local-dir:folder."""
    imported("timm")
    import timm
    import torch

    local = re.match(r"(hf[-_]hub|local[-_]dir):", model)
    if not local and not timm.is_model(model.partition(".")[0]):
        raise unknown(f"timm/{model}", models())
    pretrained = weights is None and seed is None
    with seeded(seed):
        module = timm.create_model(model, pretrained=pretrained, num_classes=0).eval().float()
    config = timm.data.resolve_model_data_config(module)
    if weights is not None:
        heads = module.pretrained_cfg.get("classifier") or ()
        fill_without(module, (heads,) if isinstance(heads, str) else tuple(heads), weights)
    if pool is not None:
        try:
            module.reset_classifier(0, pool)
        except Exception as error:
            # Models differ in what they raise for a pooling that they have not.
            raise BackboneError(
                f"model 'timm/{model}' has no pooling '{pool}' ({OPTIONS['pool']})"
            ) from error

    def encode(images, batch_size, device):
        outputs = module(stacked(images, device))
        if not isinstance(outputs, torch.Tensor) or outputs.ndim != 2:
            raise BackboneError(f"model 'timm/{model}' does not give one vector for an image")
        return outputs

    settings = {"preprocessing": {name: str(value) for name, value in sorted(config.items())}}
    if pool is not None:
        settings["pool"] = pool
    return Backbone(module, encode, timm.data.create_transform(**config, is_training=False), settings)
