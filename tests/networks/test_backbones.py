"""Features of images and texts by a stand-in library: values, resumption, bytes, refusals."""

import gc
import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import yaml
from files import tarred
from PIL import Image, ImageOps

from datasets import splits
from datasets.loaders import features_file, retrieval_file
from networks import backbones
from networks.__main__ import main
from networks.backbones import Backbone, BackboneError, _configuration
from networks.backbones._sources import is_text
from networks.base import features
from tests.tiebench.refusals import refused
from tiebench.files import read_npz

PICTURES = 23
WEIGHT = np.random.default_rng(5).normal(size=(12, 5)).astype(np.float32)


class Killed(BaseException):
    """Stands for the end of the process."""


class Standin:
    """A library whose vectors of images are sums over 2 x 2 pixels, and of texts lengths and codes."""

    def __init__(self):
        self.limit, self.seen = None, 0

    def models(self):
        return ["plain", "plane"]

    def load(self, model, items, weights, seed, prefix=""):
        if model not in self.models():
            raise backbones.unknown(f"stand-in/{model}", self.models())
        module = torch.nn.Linear(12, 5, bias=False).eval()
        module.weight.data = torch.from_numpy(WEIGHT.T * (1 if seed is None else seed))

        def encode(group, batch_size, device):
            if self.limit is not None and self.seen >= self.limit:
                raise Killed
            self.seen += len(group)
            if items == "texts":
                group = [torch.from_numpy(text_values(prefix + text)) for text in group]
            return module(torch.stack(group))

        return Backbone(module, encode, prepared if items == "images" else None, {"prefix": prefix})


def text_values(text):
    return np.bincount([ord(one) % 12 for one in text], minlength=12).astype(np.float32)


def prepared(image):
    assert image.mode == "RGB"
    return torch.from_numpy(np.asarray(image.resize((2, 2)), np.float32).ravel() / 255)


@pytest.fixture
def library(monkeypatch):
    standin = Standin()
    said = {"items": ("images", "texts"), "packages": (), "options": {"prefix": "text before every text"}}
    plugin = SimpleNamespace(name="stand-in", said=SimpleNamespace(**said), load=lambda: standin)
    known, kind = backbones.KIND.find() | {"stand-in": plugin}, replace(backbones.KIND)
    object.__setattr__(kind, "find", lambda: known)
    monkeypatch.setattr(backbones, "KIND", kind)
    monkeypatch.setattr(features, "ROWS_A_SHARD", 8)
    monkeypatch.setattr("networks.backbones._sources.ROWS_A_SHARD", 8)
    return standin


def picture(number, orientation=None):
    rng = np.random.default_rng(number)
    pixels = rng.integers(0, 256, (*rng.integers(8, 30, 2), 3), np.uint8)
    held, exif = io.BytesIO(), Image.Exif()
    if orientation:
        exif[0x0112] = orientation
    Image.fromarray(pixels).save(held, "PNG", exif=exif)
    return held.getvalue()


def pictures():
    classes = ("owl", "cat", "dog")
    return {
        f"{'test' if number % 5 == 0 else 'train'}/{classes[number % 3]}/{number:02}.png": picture(
            number, orientation=6 if number == 4 else None
        )
        for number in range(PICTURES)
    }


@pytest.fixture
def folder(tmp_path):
    for name, contents in pictures().items():
        path = tmp_path / "pictures" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents)
    return tmp_path / "pictures"


def vector(contents):
    """Of one image, with Pillow's own way to turn it."""
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(contents))).convert("RGB")
    return np.asarray(image.resize((2, 2)), np.float32).ravel() / 255 @ WEIGHT


def command(source, output, *more, paths="{split}/{class}/{name}"):
    words = ["features", str(source), "--model", "stand-in/plain", "--output", str(output)]
    words += ["--paths", paths] if paths else []
    return main([*words, "--batch-size", "4", "--device", "cpu", *more])


@pytest.mark.parametrize("kind", ["folder", "tar"])
def test_features_of_images_are_the_models(kind, folder, library, tmp_path, capsys):
    contents, source = pictures(), folder
    if kind == "tar":
        source = tmp_path / "pictures.tar"
        source.write_bytes(tarred(dict(reversed(contents.items()))))
    output = tmp_path / "out.npz"
    assert command(source, output) == 0
    found = read_npz(output)
    ids = [one.decode() for one in found["ids"]]
    assert ids == (sorted(contents) if kind == "folder" else list(reversed(contents)))
    np.testing.assert_allclose(found["X"], [vector(contents[one]) for one in ids], atol=1e-5)
    assert found["X"].dtype == np.float32
    described = features_file.describe([output])
    assert [described.class_names[label] for label in described.labels] == [one.split("/")[1] for one in ids]
    assert [described.split_names[part] for part in described.given_split] == [
        one.split("/")[0] for one in ids
    ]
    printed = capsys.readouterr()
    written = yaml.safe_load(printed.out)
    assert written["datasets"]["out"]["sources"] == [{"file": str(output)}]
    assert written["protocols"]["out"]["split"] == {
        "kind": "given",
        "query": "test",
        "database": "train",
        "training": "all",
    }
    assert "23 of 23 images" in printed.err
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == (
        ["out.npz"] if kind == "folder" else ["out.npz", "pictures.tar"]
    )
    provenance = json.loads(str(found["provenance"]))
    assert (str(found["model"]), provenance["batch_size"]) == ("stand-in/plain", 4)
    assert provenance["versions"]["torch"] == metadata.version("torch")


def test_a_killed_command_resumes_to_the_same_bytes(folder, library, tmp_path):
    whole, output = tmp_path / "whole.npz", tmp_path / "out.npz"
    assert command(folder, whole) == 0
    for limit in (13, 9):  # a shard of 8 and a part of the next; then the second shard
        library.seen, library.limit = 0, limit
        with pytest.raises(Killed):
            command(folder, output)
        assert not output.exists()
    library.seen, library.limit = 0, None
    assert command(folder, output) == 0
    assert library.seen == 1 + PICTURES - 16  # one to learn the width
    assert output.read_bytes() == whole.read_bytes()
    assert not list(tmp_path.glob("*.p*"))


@pytest.mark.parametrize(
    "change",
    [["--random-weights", "3"], ["--prefix", "x"], ["--dtype", "float16"], ["--batch-size", "2"], "image"],
    ids=str,
)
def test_a_change_starts_again(change, folder, library, tmp_path):
    output, fresh = tmp_path / "out.npz", tmp_path / "fresh.npz"
    library.limit = 13
    with pytest.raises(Killed):
        command(folder, output)
    library.seen, library.limit = 0, None
    if change == "image":
        (folder / "test/owl/00.png").write_bytes(picture(99))
        change = []
    assert command(folder, output, *change) == 0
    assert library.seen == 1 + PICTURES
    assert command(folder, fresh, *change) == 0
    assert output.read_bytes() == fresh.read_bytes()


def test_corrupt_images_stop_it_or_are_left_out(folder, library, tmp_path, capsys):
    output, contents = tmp_path / "out.npz", pictures()
    for name in ("train/dog/02.png", "train/cat/19.png"):
        (folder / name).write_bytes(contents[name][:40])
    assert command(folder, output) == 1
    assert "'train/cat/19.png' is not an image of" in capsys.readouterr().err
    library.seen, library.limit = 0, 14
    with pytest.raises(Killed):
        command(folder, output, "--corrupt", "skip")
    library.limit = None
    assert command(folder, output, "--corrupt", "skip") == 0
    assert "left out, cannot be decoded: 2 of 23 images: train/cat/19.png, train/dog/02.png" in (
        capsys.readouterr().err
    )
    found = read_npz(output)
    ids = [one.decode() for one in found["ids"]]
    assert ids == sorted(set(contents) - {"train/dog/02.png", "train/cat/19.png"})
    np.testing.assert_allclose(found["X"], [vector(contents[one]) for one in ids], atol=1e-5)
    names = [found["class_names"][label].decode() for label in found["y"]]
    assert names == [one.split("/")[1] for one in ids]
    assert json.loads(str(found["provenance"]))["left_out"] == ["train/cat/19.png", "train/dog/02.png"]


def test_a_class_whose_images_are_all_corrupt_is_no_class(folder, library, tmp_path, capsys):
    for path in folder.glob("*/dog/*.png"):
        path.write_bytes(b"no image")
    assert command(folder, tmp_path / "out.npz", "--corrupt", "skip") == 0
    described = features_file.describe([tmp_path / "out.npz"])
    assert described.class_names == ["cat", "owl"] and set(described.labels) == {0, 1}
    for path in folder.glob("*/*/*.png"):
        path.write_bytes(b"no image")
    assert command(folder, tmp_path / "other.npz", "--corrupt", "skip") == 1
    assert "none of the 23 images can be decoded" in capsys.readouterr().err


def test_half_precision_is_rounded_and_refused_beyond_its_range(folder, library, tmp_path, capsys):
    output = tmp_path / "out.npz"
    assert command(folder, output, "--dtype", "float16") == 0
    contents, found = pictures(), read_npz(output)
    expected = np.array([vector(contents[one.decode()]) for one in found["ids"]])
    assert found["X"].dtype == np.float16
    np.testing.assert_allclose(found["X"], expected, rtol=1e-3, atol=2e-3)
    assert command(folder, output, "--dtype", "float16", "--random-weights", "1000000") == 1
    assert "too large for float16: --dtype float32" in capsys.readouterr().err
    assert read_npz(output)["X"].shape == found["X"].shape  # the earlier file is as it was


LINES = [f"text {'x' * (number % 7)} number {number}" for number in range(21)]
TEXT_FILES = {
    "lines.txt": "\n".join(LINES) + "\n\n",
    "items.tsv": "id\tother\tclass\ttext\n"
    + "".join(f"n{number}\t\tc{number % 3}\t{text}\n" for number, text in enumerate(LINES)),
    "items.jsonl": "".join(
        json.dumps({"_id": f"n{n}", "title": text[:6], "text": text[7:], "class": f"c{n % 3}", "split": "a"})
        + "\n"
        for n, text in enumerate(LINES)
    ),
}


@pytest.mark.parametrize("name", TEXT_FILES)
def test_features_of_texts_are_the_models(name, library, tmp_path):
    source, output = tmp_path / name, tmp_path / "out.npz"
    source.write_text(TEXT_FILES[name], encoding="utf-8")
    library.limit = 9  # the width and one shard
    with pytest.raises(Killed):
        command(source, output, "--prefix", "query: ", paths=None)
    library.seen, library.limit = 0, None
    assert command(source, output, "--prefix", "query: ", paths=None) == 0
    assert library.seen == 1 + 21 - 8
    found = read_npz(output)
    texts = LINES if name != "items.jsonl" else [f"{text[:6]} {text[7:]}".strip() for text in LINES]
    expected = [text_values("query: " + text) @ WEIGHT for text in texts]
    np.testing.assert_allclose(found["X"], expected, atol=1e-4)
    described = features_file.describe([output])
    if name == "lines.txt":
        assert described.labels is None and described.ids is None
    else:
        assert described.ids.tolist() == [f"n{number}" for number in range(21)]
        assert described.labels.tolist() == [number % 3 for number in range(21)]


def test_a_collection_with_judgements_is_joined_as_the_page_says(library, tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "make-features.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    for name, ids in (("corpus", ["d1", "d2", "d3"]), ("queries", ["q1", "#2"])):
        lines = [json.dumps({"_id": one, "text": f"text of {one}"}) for one in ids]
        Path(f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
        assert command(f"{name}.jsonl", f"{name}.npz", paths=None) == 0
    Path("qrels").mkdir()
    Path("qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n#2\td3\t2\n", encoding="utf-8")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    retrieval_file.load([Path("collection.npz")], tmp_path)
    assert np.load("judgements.npy").tolist() == [[4, 2, 2]]  # documents first, then queries
    np.testing.assert_allclose(np.load("items.npy")[3], text_values("text of q1") @ WEIGHT, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "contents", "message"),
    [
        ("a.txt", "one\n\ntwo\n", "line 2 is blank"),
        ("a.txt", "", "holds no text"),
        ("a.txt", b"\xff\xfe", "line 1 is not UTF-8"),
        ("a.tsv", "id\tbody\n1\tx\n", "its first line must name the columns, among them 'text'"),
        ("a.tsv", "id\ttext\n1\tx\n2\n", "line 3 has 1 columns, the header 2"),
        ("a.tsv", "id\ttext\n1\tx\n1\ty\n", "id '1' of item 2 was there before"),
        ("a.jsonl", '{"text": "x"}\n{"txt": "x"}\n', "line 2 has no key 'text'; did you mean 'txt'"),
        ("a.jsonl", '{"text": "x"\n', "line 1 is not valid JSON"),
        ("a.jsonl", "[1]\n", "line 1 must be an object"),
        ("a.jsonl", '{"text": ["x"]}\n', "line 1: 'text' must be text or an integer"),
        ("a.jsonl", '{"text": "\\ud800"}\n', "half a character"),
        ("a.jsonl", '{"text": "x", "class": 1}\n{"text": "x"}\n', "item 2 has no 'class'"),
        ("a.jsonl", '{"text": "x"}\n{"text": "x", "id": 1}\n', "item 2 has 'id', the first item has not"),
        ("a.tsv", "id\ttext\tclass\n1\tx\t\n", "class_names[0] is ''; it must be printable text"),
        ("a.jsonl", '{"text": "x", "id": "a\\u200d"}\n', "ids[0] is 'a\\u200d'; it must be printable text"),
        ("a.csv", "text\nx\n", "texts are read from .txt, .tsv, .jsonl"),
    ],
)
def test_faults_of_texts_end_in_one_line(name, contents, message, library, tmp_path, capsys):
    source = tmp_path / name
    source.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
    assert command(source, tmp_path / "out.npz", paths=None) == 1
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and str(source) in error
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "stand-inn/plain"], "there is no library 'stand-inn'; did you mean 'stand-in'"),
        (["--model", "stand-in/plain2"], "stand-in has no model 'plain2'; did you mean 'plain' or 'plane'?"),
        (["--model", "stand-in"], "the name of a model is missing, as in stand-in/NAME"),
        (["--pool", "mean"], "model 'stand-in/plain' has no option 'pool'"),
        (["--weights", "none.pth"], "none.pth: no such file of weights"),
        (["--output", "out.npy"], "out.npy: the file to write must end in .npz"),
        (["--paths", "{clas}/{name}"], "unknown field 'clas'; did you mean 'class'"),
        (["--paths", "{class}/{name}"], "no file matches paths '{class}/{name}'"),
        (["--device", "cpuu"], "device must be cpu, cuda or auto"),
    ],
    ids=str,
)
def test_wrong_commands_are_refused_in_one_line(words, message, folder, library, tmp_path, capsys):
    assert command(folder, tmp_path / "out.npz", *words) == 1
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "out.npz").exists()


def test_options_of_images_are_refused_for_texts(library, tmp_path, capsys):
    (tmp_path / "a.txt").write_text("x\n", encoding="utf-8")
    assert command(tmp_path / "a.txt", tmp_path / "out.npz") == 1
    assert "--paths is an option of images" in capsys.readouterr().err


def test_a_missing_package_is_named(monkeypatch):
    said = SimpleNamespace(packages=("no-such-package", "numpy"))
    library = SimpleNamespace(name="some-library", said=said)
    with refused("models of some-library need no-such-package: not installed", kind=BackboneError):
        backbones.check_installed(library)


def test_errors_of_downloads_are_told_from_others(library, monkeypatch):
    def load(*_):
        try:
            raise ConnectionError("Max retries exceeded\nwith url")
        except ConnectionError as error:
            raise RuntimeError("No weights") from error

    monkeypatch.setattr(library, "load", load)
    with refused(pattern=r"files could not be downloaded .* name a local folder", kind=BackboneError):
        backbones.load("stand-in/plain", "images")
    monkeypatch.setattr(library, "load", lambda *_: 1 / 0)
    with refused(pattern=r"^model 'stand-in/plain': division by zero$", kind=BackboneError):
        backbones.load("stand-in/plain", "images")


STUB = """
import sys
import datasets, torch
assert datasets.WHOSE == "Hugging Face" and not any(name.startswith("networks") for name in sys.modules)
print("what a library prints")

class SentenceTransformer(torch.nn.Module):
    prompts, default_prompt_name, max_seq_length = {}, None, 100

    def __init__(self, name, device):
        super().__init__()
        if name == "owner/unreachable":
            raise RuntimeError("no files") from ConnectionError("Max retries exceeded")
        self.weight = torch.nn.Parameter(torch.arange(4.0))

    def encode(self, texts, prompt, batch_size, device, convert_to_tensor, show_progress_bar):
        print("batch", texts)
        if any("die" in text for text in texts):
            import os
            os._exit(3)
        texts = [((prompt or "") + text)[: self.max_seq_length] for text in texts]
        return torch.stack([self.weight * len(text) + ord(text[-1]) for text in texts])
"""


@pytest.fixture
def stub(tmp_path, monkeypatch):
    """Stand-ins of sentence-transformers and of Hugging Face's `datasets`, in a folder on the path."""
    folder = tmp_path / "packages"
    for name, text in (("sentence_transformers", STUB), ("datasets", "WHOSE = 'Hugging Face'")):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(text, encoding="utf-8")
    about = folder / "sentence_transformers-9.9.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: sentence-transformers\nVersion: 9.9\n")
    monkeypatch.syspath_prepend(str(folder))
    return folder


def embedded(source, output, *more):
    model = ["--model", "sentence-transformers/some-model", "--batch-size", "4", "--device", "cpu"]
    return main(["features", str(source), "--output", str(output), *model, *more])


@pytest.mark.thorough
def test_sentence_transformers_finds_the_datasets_of_hugging_face_in_its_own_process(
    stub, tmp_path, capfd, monkeypatch
):
    source, output = tmp_path / "lines.txt", tmp_path / "out.npz"
    source.write_text("\n".join(LINES), encoding="utf-8")
    before, started = (dict(sys.modules), list(sys.path)), []

    class Noted(subprocess.Popen):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    assert embedded(source, output, "--prefix", "q: ", "--max-length", "20") == 0
    gc.collect()
    assert [process.poll() is None for process in started] == [False]  # it ends with its model
    assert sys.modules.get("datasets") is before[0]["datasets"] and sys.path == before[1]
    assert "sentence_transformers" not in sys.modules
    texts = [f"q: {text}"[:20] for text in LINES]
    expected = [np.arange(4.0) * len(text) + ord(text[-1]) for text in texts]
    found = read_npz(output)
    np.testing.assert_array_equal(found["X"], np.array(expected, np.float32))
    provenance = json.loads(str(found["provenance"]))
    assert provenance["settings"]["max_length"] == 20 and provenance["settings"]["prefix"] == "q: "
    assert len(provenance["weights_sha256"]) == 64
    assert provenance["versions"]["sentence-transformers"] == "9.9"
    printed = capfd.readouterr()
    assert "what a library prints" in printed.err and "what a library prints" not in printed.out


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("texts", "model", "message"),
    [
        ("one\nto die\n", "some-model", "the process of the library ended (exit status 3)"),
        ("one\n", "owner/unreachable", "its files could not be downloaded (ConnectionError)"),
        ("one\n", "./absent", "there is no such folder"),
    ],
)
def test_what_happens_in_the_other_process_is_one_line(stub, texts, model, message, tmp_path, capfd):
    (tmp_path / "a.txt").write_text(texts, encoding="utf-8")
    more = ["--model", f"sentence-transformers/{model}"]
    assert embedded(tmp_path / "a.txt", tmp_path / "out.npz", *more) == 1
    errors = [line for line in capfd.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and message in errors[0] and "Traceback" not in errors[0]


LIBRARIES = {
    **{"sentence-transformers": "texts", "timm": "images", "torchvision": "images"},
    "transformers": "images, texts",
}


def test_every_library_is_listed(capsys):
    assert main(["models"]) == 0
    listed = capsys.readouterr().out
    for name, items in LIBRARIES.items():
        assert f"{name}: {items};" in listed
    assert list(backbones.KIND.find()) == list(LIBRARIES)


def test_pickles_among_weights_run_no_code(tmp_path):
    """Even where a library asks torch to run it."""
    torch.save({"x": Standin}, tmp_path / "weights.bin")
    with backbones.without_code_in_weights(), pytest.raises(Exception, match=r"(?i)weights_only|unsupported"):
        load = torch.load
        load(tmp_path / "weights.bin", weights_only=False)


@pytest.mark.parametrize(
    ("name", "text"), [("corpus.jsonl.gz", True), ("corpus.txt", True), ("images.tar.gz", False)]
)
def test_texts_are_known_by_their_ending_packed_or_not(name, text):
    assert is_text(Path(name)) == text


@pytest.mark.parametrize("text", ["yes", "no", "null", "2020", "1e3", "plain", "/a/b.npz", "it's", "a: b"])
def test_words_of_a_configuration_are_read_as_they_were(text):
    assert yaml.safe_load(_configuration._quoted(text)) == text


@pytest.mark.parametrize("arrays", [{"y": [0, 0, 1], "split": ["train"] * 3}, {"y": [0] * 4 + [1]}, {}])
def test_the_split_of_a_configuration_is_one_that_the_file_can_give(arrays, tmp_path):
    file = tmp_path / "features.npz"
    np.savez(file, X=np.eye(len(arrays.get("y", range(4)))), **arrays)
    text = _configuration.configuration(file)
    splits.check(yaml.safe_load(text)["protocols"]["features"]["split"], features_file.describe([file]))
