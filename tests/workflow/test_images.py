"""From images to tables: a network trained end to end, its features for methods that cannot, and resuming."""

import json
import os
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest
import yaml
from PIL import Image

from methods.base.catalogue import load_class
from workflow.configuration.merged import load
from workflow.stages.protocol_data import ProtocolData
from workflow.tuning.search import validation_score

CLASSES = ("across", "down", "plain")
VGG = {"channels": [8, 16, 16, 16, 16], "width": 32}

CONFIG = {
    "datasets": {"pictures": {"loader": "images", "sources": [{"file": "pictures"}]}},
    "networks": {
        "tiny_vgg_f": {"architecture": "vgg_f", "options": VGG, "weights": {"file": "tiny-vgg-f.mat"}},
    },
    "protocols": {
        "pictures": {
            "dataset": "pictures",
            "split": {"kind": "per_class", "query": 6, "training": 14},
            "affinity": {"kind": "class"},
            "input": {"kind": "network", "network": "tiny_vgg_f", "centre": True, "l2_normalise": True},
            "end_to_end": "small",
        },
        "pictures_vgg_f": {
            "dataset": "pictures",
            "split": {"kind": "per_class", "query": 6, "training": 14},
            "affinity": {"kind": "class"},
            "input": {"kind": "network", "network": "gist", "centre": True, "l2_normalise": True},
            "end_to_end": "tiny_vgg_f",
        },
        # As on LabelMe from images and GIST.
        "by_distance": {
            "dataset": "pictures",
            "split": {"kind": "random", "query": 18, "training": 40},
            "affinity": {"kind": "distance_levels", "percentiles": [20, 5], "levels": [1, 3]},
            "input": {"kind": "network", "network": "gist"},
        },
    },
    "methods": {
        "talr_ap": {
            "defaults": {
                "batch_size": 21,
                "learning_rate": 0.01,
                "backbone_lr_multiplier": 1.0,
                "tanh_scale": 2,
                "bins": 8,
            },
            "protocols": {"pictures": {"epochs": 25}, "pictures_vgg_f": {"epochs": 2}},
        },
        "dpsh": {"protocols": {"pictures": {"epochs": 3, "learning_rate": 0.01, "eta": 0.1}}},
    },
    "tables": {
        "pictures": {
            "seeds": [0],
            "methods": ["lsh", "itq", "dpsh", "talr_ap"],
            "supervised_bounds": False,
            "blocks": [
                {"protocol": "pictures", "metric": "ap", "bits": [8]},
                {"protocol": "pictures_vgg_f", "metric": "ap", "bits": [8], "methods": ["lsh", "talr_ap"]},
                {"protocol": "by_distance", "metric": "ndcg", "bits": [8], "methods": ["lsh"]},
            ],
        }
    },
}


def write_sources(folder):
    """Striped pictures 32 x 32 by class, and a MatConvNet file of a small VGG-F with random weights."""
    import networks
    from networks.weights import matconvnet

    generator = np.random.default_rng(0)
    for index, name in enumerate(CLASSES):
        (folder / "pictures" / name).mkdir(parents=True)
        for number in range(30):
            pixels = generator.integers(0, 140, (32, 32, 3))
            pixels[::4] += 115 * (index == 0)
            pixels[:, ::4] += 115 * (index == 1)
            Image.fromarray(pixels.astype(np.uint8)).save(folder / "pictures" / name / f"{number:02}.png")
    network = networks.make("vgg_f", seed=1, **VGG)
    matconvnet.save(network, folder / "tiny-vgg-f.mat")


@pytest.fixture
def gallery(empty_laboratory):
    write_sources(empty_laboratory.sources)
    # Every epoch is worth keeping here, and each ends with a file that a test can wait for.
    file = empty_laboratory.checkout / "methods" / "base" / "checkpoint.py"
    text = file.read_text()
    assert "_SECONDS_BETWEEN = 10.0" in text
    file.write_text(text.replace("_SECONDS_BETWEEN = 10.0", "_SECONDS_BETWEEN = 0.0"))
    return empty_laboratory


@pytest.mark.thorough
def test_what_changes_below_a_folder_of_images_is_read_again(empty_laboratory):
    def picture(name, seed=0):
        path = empty_laboratory.sources / "pictures" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.random.default_rng(seed).integers(0, 256, (4, 4, 3), np.uint8)).save(path)
        return path

    def items():
        done = empty_laboratory.made("resources/datasets/pictures/items.npy", config=CONFIG)
        return "Nothing to be done" in done.stderr, np.load(
            empty_laboratory.directory / "resources/datasets/pictures/items.npy"
        )

    for name in ("a/0.png", "b/0.png"):
        picture(name)
    assert [items()[0], items()[0]] == [False, True]
    added = picture("b/1.png", 1)
    assert len(items()[1]) == 3
    picture("b/1.png", 2)
    os.utime(added, (1e9, 1e9))  # replaced by a file that is older than what was made of the other
    nothing, found = items()
    assert not nothing and np.array_equal(found[2], np.asarray(Image.open(added)))
    added.unlink()
    assert len(items()[1]) == 2 and items()[0]


@pytest.mark.thorough
def test_a_table_of_images_and_a_killed_training_that_resumes(gallery):
    target = "results/pictures.csv"
    process = subprocess.Popen(
        gallery.command(target, config=CONFIG),
        cwd=gallery.place,
        env=gallery.variables(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    kept = gallery.directory / "results" / "checkpoints" / "pictures" / "talr_ap" / "8" / "0"
    end = time.monotonic() + 600
    while len(list(kept.glob("*.npz"))) == 0:
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    (checkpoint,) = kept.glob("*.npz")
    with np.load(checkpoint) as archive:
        epochs = len(json.loads(archive["progress"].tobytes())["records"])
    done = gallery.made(target, config=CONFIG)
    assert f"resuming after epoch {epochs} of 25" in done.stderr
    assert not kept.exists()
    runs = gallery.directory / "results" / "runs"
    lines = (runs / "pictures/talr_ap/8/0/training.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == list(range(1, 26))
    resumed = {path: path.read_bytes() for path in runs.rglob("codes.npz")} | gallery.tables()

    # The same from nothing, never interrupted.
    shutil.rmtree(runs / "pictures" / "talr_ap")
    for path in (gallery.directory / "results").glob("pictures.*"):
        path.unlink()
    gallery.made(target, config=CONFIG)
    assert resumed == {path: path.read_bytes() for path in runs.rglob("codes.npz")} | gallery.tables()

    cells = {
        (row["protocol"], row["method"]): float(row["mean"])
        for row in _rows(gallery.directory / "results" / "pictures.tidy.csv")
    }
    assert len(cells) == 7
    # A network learns stripes from 14 pictures a class; features of random weights say less of them.
    assert cells["pictures", "talr_ap"] > cells["pictures", "lsh"] + 0.1
    assert cells["pictures", "talr_ap"] > 0.8
    features = np.load(gallery.directory / "resources" / "features" / "pictures" / "tiny_vgg_f.npy")
    assert features.shape == (90, 32)
    assert features.dtype == np.float32
    assert (features >= 0).all()
    assert np.load(gallery.directory / "resources" / "features" / "pictures" / "gist.npy").shape == (90, 512)
    record = json.loads((runs / "pictures_vgg_f/talr_ap/8/0/run.json").read_text())
    assert record["hyperparameters"]["backbone_lr_multiplier"] == 1.0
    assert_thresholds_are_percentiles_of_distances(gallery.directory / "resources/protocols/by_distance")


def assert_thresholds_are_percentiles_of_distances(folder):
    """Of those between the features of the training images."""
    features = np.load(folder / "features.npy").astype(np.float64)
    with np.load(folder / "split.npz") as split:
        training = features[split["training"]]
    first, second = np.triu_indices(len(training), 1)
    distances = np.linalg.norm(training[first] - training[second], axis=1)
    found = json.loads((folder / "affinity.json").read_text())["thresholds"]
    for share, threshold in zip((0.20, 0.05), found, strict=True):
        assert abs(np.mean(distances <= threshold) - share) < 0.01


@pytest.mark.thorough
def test_a_tuning_trains_networks_on_images(gallery):
    entry = {
        "protocol": "pictures",
        "methods": ["talr_ap", "dpsh"],
        "bits": [8],
        "trials": 3,
        "rungs": [1],
        "shares": {"fit": 0.6, "query": 0.1},
        "trial_settings": {"epochs": 2},
        "space": {"learning_rate": [0.003, 0.01, 0.03], "backbone_lr_multiplier": [0.1, 1.0]},
    }
    gallery.made("results/tuning/mine.yaml", config=CONFIG | {"tuning": {"mine": entry}})
    folder = gallery.directory
    tuned = yaml.safe_load((folder / "results/tuning/mine.yaml").read_text())["tuned"]["pictures"]
    protocol = ProtocolData(
        folder / "resources/protocols/pictures",
        folder / "resources/datasets/pictures",
        {"affinity": {"kind": "class"}, "network": {"architecture": "small", "options": {}}},
        folder / "resources/datasets/pictures/items.npy",
    )
    for method in entry["methods"]:
        assert tuned[method]["search"]["tried"] == {8: 3}
        assert "epochs" not in tuned[method]
        rows = [row for row in _rows(folder / "results/tuning/mine.csv") if row["method"] == method]
        assert [row["status"] for row in rows] == ["scored"] * 3
        (chosen,) = (row for row in rows if row["chosen"] == "True")
        assert float(chosen["score"]) == max(float(row["score"]) for row in rows)
        # The same by hand, on the images of the training set's parts.
        of_class = load(gallery.checkout, CONFIG)["methods"][method]
        given = of_class["defaults"] | of_class["protocols"]["pictures"] | json.loads(chosen["settings"])
        given = {name: value for name, value in given.items() if name != "by_bits"} | {"epochs": 2}
        score = validation_score(load_class(method), protocol, 8, given, "ap", entry["shares"], 0)
        assert score == float(chosen["score"])


def _rows(path):
    import csv

    with path.open(newline="") as file:
        return list(csv.DictReader(file))


MISTAKES = {
    "unknown network of the input": (
        ("protocols", "pictures", "input", {"kind": "network", "network": "vggf"}),
        "protocols.pictures.input.network: unknown network 'vggf'; did you mean 'vgg_f'",
    ),
    "unknown network to train": (
        ("protocols", "pictures", "end_to_end", "smal"),
        "protocols.pictures.end_to_end: unknown network 'smal'; did you mean 'small'",
    ),
    "a network without its kind": (
        ("protocols", "pictures", "input", {"kind": "pixels", "network": "small"}),
        "protocols.pictures.input.network: applies to kind 'network' only",
    ),
    "a network without weights to train": (
        ("protocols", "pictures", "end_to_end", "gist"),
        "protocols.pictures.end_to_end: network gist cannot be trained: gist has no weights",
    ),
    "unknown option of a network": (
        ("networks", "tiny_vgg_f", "options", {"widht": 32}),
        "networks.tiny_vgg_f.options: network vgg_f has no option 'widht'; did you mean 'width'",
    ),
    "a model of a network that has none": (
        ("networks", "tiny_vgg_f", "architecture", "small/tiny"),
        "networks.tiny_vgg_f.architecture: there is no network 'small/tiny'; did you mean 'small'",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_end_in_one_line(mistake, tmp_path):
    from pathlib import Path

    from workflow.errors import ConfigurationError

    (section, name, key, value), message = MISTAKES[mistake]
    changed = yaml.safe_load(yaml.safe_dump(CONFIG))
    changed[section][name][key] = value
    with pytest.raises(ConfigurationError) as caught:
        load(Path(__file__).parents[2], changed)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_dataset_of_vectors_trains_no_network(empty_laboratory, tiny):
    tiny["protocols"]["tiny"]["end_to_end"] = "small"
    done = empty_laboratory.run("results/tiny.csv", config=tiny)
    assert done.returncode != 0
    assert "protocol tiny on dataset tiny: end_to_end needs a dataset of images" in done.stderr
    assert "Traceback" not in done.stderr
