"""Features by the real libraries, where they are installed, against calls of the library itself.

Models are small and random, made here or by the library: nothing is downloaded.
"""

import importlib.util
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from networks.__main__ import main
from networks.backbones import BackboneError, load
from tests.tiebench.refusals import refused
from tiebench.files import read_npz


def need(name):
    """Skip, and say what is missing, where a package is not installed; it is not imported."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed: make backbones")


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *(f"w{number}" for number in range(40))]


def library(name):
    """The package, or a skip that says what is missing."""
    return pytest.importorskip(name, reason=f"{name} is not installed: make backbones")


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture
def pictures(tmp_path):
    rng = np.random.default_rng(0)
    for number in range(9):
        path = tmp_path / "pictures" / "abc"[number % 3] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (*rng.integers(40, 70, 2), 3), np.uint8)).save(path)
    return tmp_path / "pictures"


@pytest.fixture
def lines(tmp_path):
    rng = np.random.default_rng(0)
    found = [" ".join(f"w{word}" for word in rng.integers(0, 45, size)) for size in rng.integers(1, 20, 13)]
    (tmp_path / "lines.txt").write_text("\n".join(found) + "\n", encoding="utf-8")
    return tmp_path / "lines.txt", found


def features(source, model, tmp_path, *more):
    output = tmp_path / "out.npz"
    words = ["features", str(source), "--model", model, "--output", str(output), "--device", "cpu"]
    assert main([*words, "--batch-size", "4", *more]) == 0
    return read_npz(output)["X"]


def opened(pictures):
    return [Image.open(path).convert("RGB") for path in sorted(pictures.rglob("*.png"))]


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("model", "pool"), [("resnet18", None), ("vit_tiny_patch16_224", "avg")])
def test_timm(model, pool, pictures, tmp_path):
    timm = library("timm")
    torch.manual_seed(3)
    direct = timm.create_model(
        model, pretrained=False, num_classes=0, **({"global_pool": pool} if pool else {})
    )
    if pool:  # pooling is changed after the weights are there: no new normalisation
        torch.manual_seed(3)
        direct = timm.create_model(model, pretrained=False, num_classes=0)
        direct.global_pool = pool
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(direct), is_training=False)
    with torch.inference_mode():
        expected = direct.eval()(torch.stack([transform(image) for image in opened(pictures)]))
    more = ["--pool", pool] if pool else []
    close(features(pictures, f"timm/{model}", tmp_path, "--random-weights", "3", *more), expected)


def test_timm_with_weights_of_a_file(pictures, tmp_path):
    timm = library("timm")
    torch.manual_seed(4)
    whole = timm.create_model("resnet18", pretrained=False).eval()
    torch.save(whole.state_dict(), tmp_path / "weights.pth")
    found = features(pictures, "timm/resnet18", tmp_path, "--weights", str(tmp_path / "weights.pth"))
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(whole), is_training=False)
    with torch.inference_mode():
        outputs = whole(torch.stack([transform(image) for image in opened(pictures)]))
    close(found @ whole.fc.weight.detach().numpy().T + whole.fc.bias.detach().numpy(), outputs)


def test_torchvision(pictures, tmp_path):
    models = library("torchvision").models
    torch.manual_seed(5)
    whole, entered = models.get_model("resnet18", weights=None).eval(), []
    whole.fc.register_forward_hook(lambda _, inputs, __: entered.append(inputs[0]))
    transform = models.ResNet18_Weights.IMAGENET1K_V1.transforms()
    with torch.inference_mode():
        whole(torch.stack([transform(image) for image in opened(pictures)]))
    more = ["--random-weights", "5"]
    close(features(pictures, "torchvision/resnet18.IMAGENET1K_V1", tmp_path, *more), entered[0])
    torch.save(whole.state_dict(), tmp_path / "weights.pth")
    more = ["--weights", str(tmp_path / "weights.pth")]
    close(features(pictures, "torchvision/resnet18", tmp_path, *more), entered[0])


@pytest.fixture
def vit(tmp_path):
    transformers = library("transformers")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.ViTConfig(**sizes, image_size=32, patch_size=8)
    model = transformers.ViTModel(config).eval()
    model.save_pretrained(tmp_path / "vit")
    processor = transformers.ViTImageProcessor(size={"height": 32, "width": 32})
    processor.save_pretrained(tmp_path / "vit")
    return tmp_path / "vit", model, processor


@pytest.mark.parametrize("pool", [None, "cls", "mean"])
def test_transformers_on_images(pool, vit, pictures, tmp_path):
    folder, model, processor = vit
    with torch.inference_mode():
        outputs = model(**processor(images=opened(pictures), return_tensors="pt"))
    hidden = outputs.last_hidden_state
    expected = {None: outputs.pooler_output, "cls": hidden[:, 0], "mean": hidden.mean(dim=1)}[pool]
    more = ["--pool", pool] if pool else []
    close(features(pictures, f"transformers/{folder}", tmp_path, *more), expected)


def test_a_pooler_without_weights_is_refused(vit, pictures, tmp_path):
    """transformers would make a random one, with a warning."""
    folder, model, _ = vit
    transformers = library("transformers")
    transformers.ViTModel(model.config, add_pooling_layer=False).save_pretrained(folder)
    with refused(
        pattern=r"has no weights for 'pooler\.dense\.\w+': choose --pool cls or", kind=BackboneError
    ):
        load(f"transformers/{folder}", "images")
    assert features(pictures, f"transformers/{folder}", tmp_path, "--pool", "cls").shape == (9, 16)


@pytest.fixture
def bert(tmp_path):
    transformers = library("transformers")
    folder = tmp_path / "bert"
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(WORDS), encoding="utf-8")
    tokenizer = transformers.BertTokenizer(str(folder / "vocab.txt"), model_max_length=16)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.BertConfig(vocab_size=len(WORDS), max_position_embeddings=16, **sizes)
    model = transformers.BertModel(config).eval()
    model.save_pretrained(folder)
    return folder, model, tokenizer


@pytest.mark.parametrize("pool", [None, "cls", "pooler"])
def test_transformers_on_texts(pool, bert, lines, tmp_path):
    """Against one text at a time: without padding."""
    folder, model, tokenizer = bert
    expected = []
    for text in lines[1]:
        with torch.inference_mode():
            tokens = tokenizer([f"w1 {text}"], truncation=True, max_length=16, return_tensors="pt")
            outputs = model(**tokens)
        hidden = outputs.last_hidden_state[0]
        expected.append(
            {None: hidden.mean(dim=0), "cls": hidden[0], "pooler": outputs.pooler_output[0]}[pool]
        )
    more = ["--pool", pool] if pool else []
    more += ["--prefix", "w1 "]
    close(features(lines[0], f"transformers/{folder}", tmp_path, *more), torch.stack(expected))


def test_sentence_transformers(bert, lines, tmp_path):
    need("sentence_transformers")
    program = """if True:
        import sys
        import numpy as np
        from sentence_transformers import SentenceTransformer, models
        bert, lines, folder = sys.argv[1:]
        parts = [models.Transformer(bert), models.Pooling(16, pooling_mode="mean"), models.Normalize()]
        model, texts = SentenceTransformer(modules=parts, device="cpu"), open(lines).read().splitlines()
        model.save(f"{folder}/st")
        np.save(f"{folder}/plain.npy", model.encode(texts))
        model.max_seq_length = 6
        np.save(f"{folder}/short.npy", model.encode([f"w3 {text}" for text in texts]))
    """
    # Not here: the library would import the `datasets` of this repository.
    command = [sys.executable, "-I", "-c", program, str(bert[0]), str(lines[0]), str(tmp_path)]
    subprocess.run(command, check=True)
    name = f"sentence-transformers/{tmp_path / 'st'}"
    close(features(lines[0], name, tmp_path), np.load(tmp_path / "plain.npy"))
    found = features(lines[0], name, tmp_path, "--prefix", "w3 ", "--max-length", "6")
    close(found, np.load(tmp_path / "short.npy"))


@pytest.mark.parametrize(
    ("name", "items", "message"),
    [
        ("timm/resnet81", "images", "timm has no model 'resnet81'; did you mean .*'resnet18"),
        ("torchvision/resnet81", "images", "torchvision has no model 'resnet81'; did you mean 'resnet18'"),
        ("torchvision/resnet18.V9", "images", "torchvision has no model 'resnet18.V9'"),
        ("transformers/./no-folder", "texts", r"model 'transformers/\./no-folder': there is no such folder"),
        ("timm/resnet18", "texts", "takes images; texts: sentence-transformers, transformers"),
        ("timm/resnet18", "images", "files could not be downloaded"),
        ("transformers/some-owner/some-model", "texts", "files could not be downloaded"),
        ("sentence-transformers/some-model", "texts", "files could not be downloaded"),
    ],
)
def test_what_cannot_be_had_is_refused_in_one_line(name, items, message, tmp_path, monkeypatch):
    need(name.partition("/")[0].replace("-", "_"))
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with refused(pattern=message, kind=BackboneError):
        load(name, items)
