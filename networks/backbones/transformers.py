"""Hugging Face transformers: encoders of images and of texts."""

from collections.abc import Callable

from networks.backbones import Backbone, BackboneError, hub_name, installed, seeded, stacked
from networks.torchvision import imported

ITEMS = ("images", "texts")
PACKAGES = ("transformers",)
OPTIONS = {
    "pool": "projection (default if there is one), pooler (default of images), mean (default of texts), cls",
    "prefix": "text that stands before every text, as 'query: '",
    "max_length": "tokens after which a text is cut; the tokenizer's limit by default",
}
POOLS = ("projection", "pooler", "mean", "cls")
NO_LIMIT = 1 << 24  # tokenizers without a limit state a number that no text reaches


def models():
    return []  # they are names on a server, or folders


def load(model, items, weights, seed, pool=None, prefix="", max_length=None):
    """`model`: a name on the hub, or a folder that `save_pretrained` wrote."""
    import transformers

    name = f"transformers/{model}"
    if items == "images" and installed("torchvision"):
        imported("transformers, for images,")
    if weights is not None:
        raise BackboneError(f"model '{name}': name the folder of its files instead of a file of weights")
    folder = hub_name(name, model)
    if seed is None:
        module, found = transformers.AutoModel.from_pretrained(folder, output_loading_info=True)
        absent = sorted(found["missing_keys"])
    else:
        with seeded(seed):
            module = transformers.AutoModel.from_config(transformers.AutoConfig.from_pretrained(folder))
        absent = []
    module = module.float().eval()
    projection: Callable | None = getattr(module, f"get_{items.removesuffix('s')}_features", None)
    if pool is None:
        pool = "projection" if projection else "pooler" if items == "images" else "mean"
    if pool not in POOLS or (pool == "projection" and not projection):
        known = POOLS if projection else POOLS[1:]
        raise BackboneError(f"model '{name}' has no pool '{pool}'; known: {', '.join(known)}")
    untrained = [key for key in absent if pool == "pooler" or "pooler" not in key]
    if untrained:
        advice = ": choose --pool cls or --pool mean" if "pooler" in untrained[0] else ""
        raise BackboneError(f"model '{name}' has no weights for '{untrained[0]}'{advice}")
    body = module.get_encoder() if getattr(module.config, "is_encoder_decoder", False) else module

    def vectors(inputs):
        if projection is not None and pool == "projection":
            found = projection(**inputs)
            return found if hasattr(found, "shape") else found.pooler_output
        outputs = body(**inputs)
        if pool == "pooler":
            if getattr(outputs, "pooler_output", None) is None:
                raise BackboneError(f"model '{name}' has no pooler: choose --pool cls or --pool mean")
            return outputs.pooler_output.flatten(1)
        return _pooled(outputs.last_hidden_state, inputs.get("attention_mask"), pool, name)

    settings = {"pool": pool}
    if items == "images":
        if prefix or max_length is not None:
            raise BackboneError(f"model '{name}': prefix and max-length are options of texts")
        return _of_images(folder, module, vectors, settings)
    return _of_texts(folder, module, vectors, settings, prefix, max_length)


def _of_images(folder, module, vectors, settings):
    import transformers

    processor = transformers.AutoImageProcessor.from_pretrained(folder)

    def prepare(image):
        return processor(images=image, return_tensors="pt")["pixel_values"][0]

    def encode(images, batch_size, device):
        return vectors({"pixel_values": stacked(images, device)})

    return Backbone(module, encode, prepare, settings | {"preprocessing": processor.to_json_string()})


def _of_texts(folder, module, vectors, settings, prefix, max_length):
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if max_length is None:
        max_length = tokenizer.model_max_length
        if max_length > NO_LIMIT:
            max_length = getattr(module.config, "max_position_embeddings", None)

    def encode(texts, batch_size, device):
        tokens = tokenizer(
            [prefix + text for text in texts], truncation=max_length is not None, max_length=max_length
        )
        lengths = [len(one) for one in tokens["input_ids"]]
        order = sorted(range(len(texts)), key=lambda place: lengths[place])  # little padding
        row_of: dict[int, torch.Tensor] = {}
        for begin in range(0, len(texts), batch_size):
            batch = order[begin : begin + batch_size]
            inputs = {key: [values[place] for place in batch] for key, values in tokens.items()}
            inputs = tokenizer.pad(inputs, return_tensors="pt").to(device)
            for place, vector in zip(batch, vectors(dict(inputs))):
                row_of[place] = vector
        return torch.stack([row_of[place] for place in range(len(texts))])

    return Backbone(module, encode, None, settings | {"prefix": prefix, "max_length": max_length})


def _pooled(hidden, mask, pool, name):
    """(n, tokens, width), or (n, width, h, w) of a convolutional network, to (n, width)."""
    if hidden.ndim == 4:
        if pool == "cls":
            raise BackboneError(f"model '{name}' has no first token: choose --pool mean")
        return hidden.mean(dim=(2, 3))
    if pool == "cls":
        return hidden[:, 0]
    if mask is None:
        return hidden.mean(dim=1)
    weights = mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * weights).sum(dim=1) / weights.sum(dim=1)
