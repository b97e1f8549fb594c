"""sentence-transformers: embeddings of texts, pooled as each model states."""

import contextlib
import sys
from pathlib import Path

from networks.backbones import Backbone, BackboneError

ITEMS = ("texts",)
PACKAGES = ("sentence-transformers",)
OPTIONS = {
    "prefix": "text that stands before every text, as 'query: '; the model's default prompt by default",
    "max_length": "tokens after which a text is cut; the model's limit by default",
}
ROOT = Path(__file__).parents[2]


def models():
    return []  # they are names on a server, or folders


def load(model, items, weights, seed, prefix=None, max_length=None):
    """`model`: a name on the hub, its owner left out for sentence-transformers' own, or a folder."""
    name = f"sentence-transformers/{model}"
    if weights is not None or seed is not None:
        raise BackboneError(f"model '{name}': name the folder of a model; other weights have no place in it")
    if model.startswith((".", "/", "~")) and not Path(model).expanduser().is_dir():
        raise BackboneError(f"model '{name}': there is no such folder")
    folder = str(Path(model).expanduser()) if model.startswith("~") else model
    with without_our_datasets():
        import sentence_transformers

        module = sentence_transformers.SentenceTransformer(folder, device="cpu").float().eval()
    if max_length is not None:
        module.max_seq_length = max_length

    def encode(texts, batch_size, device):
        return module.encode(
            texts,
            prompt=prefix,
            batch_size=batch_size,
            device=str(device),
            convert_to_tensor=True,
            show_progress_bar=False,
        )

    settings = {
        "modules": " ".join(str(module).split()),
        "prefix": prefix,
        "prompts": [module.prompts, module.default_prompt_name],
        "max_length": module.max_seq_length,
    }
    return Backbone(module, encode, None, settings)


# Modules of Hugging Face's package `datasets`, kept from block to block, so that they are imported once.
_theirs = {}


@contextlib.contextmanager
def without_our_datasets():
    """Let imports of the block find Hugging Face's package `datasets`, if installed, not the one here."""
    ours, path = _of_datasets(), list(sys.path)
    for name in ours:
        del sys.modules[name]
    sys.modules.update(_theirs)
    sys.path[:] = [entry for entry in path if Path(entry or ".").resolve() != ROOT]
    try:
        yield
    finally:
        sys.path[:] = path
        _theirs.update(_of_datasets())
        for name in _theirs:
            sys.modules.pop(name, None)
        sys.modules.update(ours)


def _of_datasets():
    return {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "datasets"}
