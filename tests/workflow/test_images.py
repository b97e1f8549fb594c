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
from workflow.tuning.validation import validation_score

CLASSES = ("across", "down", "plain")
VGG = {"channels": [8, 16, 16, 16, 16], "width": 32}
CONFIG = yaml.safe_load("""
datasets:
  pictures: {loader: images, sources: [{file: pictures}]}
networks:
  tiny_vgg_f: {architecture: vgg_f, weights: {file: tiny-vgg-f.mat}}
protocols:
  pictures: &pictures
    dataset: pictures
    split: {kind: per_class, query: 6, training: 14}
    affinity: {kind: class}
    input: {kind: network, network: tiny_vgg_f, centre: true, l2_normalise: true}
    end_to_end: small
  pictures_vgg_f:
    <<: *pictures
    input: {kind: network, network: gist, centre: true, l2_normalise: true}
    end_to_end: tiny_vgg_f
methods:
  talr_ap:
    defaults: {batch_size: 21, learning_rate: 0.01, backbone_lr_multiplier: 1.0, tanh_scale: 2, bins: 8}
    protocols: {pictures: {epochs: 25}, pictures_vgg_f: {epochs: 2}}
  dpsh: {protocols: {pictures: {epochs: 3, learning_rate: 0.01, eta: 0.1}}}
tables:
  pictures:
    seeds: [0]
    methods: [lsh, itq, dpsh, talr_ap]
    supervised_bounds: false
    blocks:
      - {protocol: pictures, metric: ap, bits: [8]}
      - {protocol: pictures_vgg_f, metric: ap, bits: [8], methods: [lsh, talr_ap]}
""")
CONFIG["networks"]["tiny_vgg_f"]["options"] = VGG


def write_sources(folder):
    """Striped pictures 32 x 32 by class, and a MatConvNet file of a small VGG-F with random weights."""
    import matconvnet_files

    import networks

    generator = np.random.default_rng(0)
    for index, name in enumerate(CLASSES):
        (folder / "pictures" / name).mkdir(parents=True)
        for number in range(30):
            pixels = generator.integers(0, 140, (32, 32, 3))
            pixels[::4] += 115 * (index == 0)
            pixels[:, ::4] += 115 * (index == 1)
            Image.fromarray(pixels.astype(np.uint8)).save(folder / "pictures" / name / f"{number:02}.png")
    network = networks.make("vgg_f", seed=1, **VGG)
    matconvnet_files.save(network, folder / "tiny-vgg-f.mat")


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

    target = "resources/datasets/pictures/items.npy"
    picture("a/0.png")
    changed = picture("b/0.png")
    empty_laboratory.made(target, config=CONFIG)
    picture("b/0.png", 1)
    os.utime(changed, (1e9, 1e9))  # replaced by a file that is older than what was made of the other
    empty_laboratory.made(target, config=CONFIG)
    found = np.load(empty_laboratory.directory / target)
    assert len(found) == 2 and np.array_equal(found[1], np.asarray(Image.open(changed)))
    assert empty_laboratory.has_nothing_to_do(target, config=CONFIG)


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
    kept = gallery.results / "checkpoints" / "pictures" / "talr_ap" / "8" / "0"
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
    runs = gallery.results / "runs"
    lines = (runs / "pictures/talr_ap/8/0/training.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == list(range(1, 26))
    resumed = {path: path.read_bytes() for path in runs.rglob("codes.npz")} | gallery.tables()

    # The same from nothing, never interrupted.
    shutil.rmtree(runs / "pictures" / "talr_ap")
    for path in gallery.results.glob("pictures.*"):
        path.unlink()
    gallery.made(target, config=CONFIG)
    assert resumed == {path: path.read_bytes() for path in runs.rglob("codes.npz")} | gallery.tables()

    tidy = gallery.rows("pictures.tidy.csv")
    cells = {(row["protocol"], row["method"]): float(row["mean"]) for row in tidy}
    assert len(cells) == 6
    # A network learns stripes from 14 pictures a class; features of random weights say less of them.
    assert cells["pictures", "talr_ap"] > cells["pictures", "lsh"] + 0.1
    assert cells["pictures", "talr_ap"] > 0.8
    features = gallery.directory / "resources" / "features" / "pictures"
    of_network = np.load(features / "tiny_vgg_f.npy")
    assert of_network.shape == (90, 32) and of_network.dtype == np.float32 and (of_network >= 0).all()
    assert np.load(features / "gist.npy").shape == (90, 512)
    record = gallery.record("talr_ap", protocol="pictures_vgg_f")
    assert record["hyperparameters"]["backbone_lr_multiplier"] == 1.0


@pytest.mark.thorough
def test_a_tuning_trains_networks_on_images(gallery):
    entry = {
        "protocol": "pictures",
        "methods": ["talr_ap"],
        "bits": [8],
        "trials": 3,
        "rungs": [1],
        "shares": {"fit": 0.6, "query": 0.1},
        "trial_settings": {"epochs": 2},
        "space": {"learning_rate": [0.003, 0.01, 0.03], "backbone_lr_multiplier": [0.1, 1.0]},
    }
    gallery.made("results/tuning/mine.yaml", config=CONFIG | {"tuning": {"mine": entry}})
    tuned = yaml.safe_load(gallery.text("tuning/mine.yaml"))["tuned"]["pictures"]["talr_ap"]
    assert tuned["search"]["tried"] == {8: 3} and "epochs" not in tuned
    rows = gallery.rows("tuning/mine.csv")
    assert [row["status"] for row in rows] == ["scored"] * 3
    (chosen,) = (row for row in rows if row["chosen"] == "True")
    assert float(chosen["score"]) == max(float(row["score"]) for row in rows)
    # The same by hand, on the images of the training set's parts.
    folder = gallery.directory / "resources"
    protocol = ProtocolData(
        folder / "protocols/pictures",
        folder / "datasets/pictures",
        {"affinity": {"kind": "class"}, "network": {"architecture": "small", "options": {}}},
        folder / "datasets/pictures/items.npy",
    )
    of_class = load(gallery.checkout, CONFIG)["methods"]["talr_ap"]
    given = of_class["defaults"] | of_class["protocols"]["pictures"] | json.loads(chosen["settings"])
    given = {name: value for name, value in given.items() if name != "by_bits"} | {"epochs": 2}
    score = validation_score(load_class("talr_ap"), protocol, 8, given, "ap", entry["shares"], 0)
    assert score == float(chosen["score"])
