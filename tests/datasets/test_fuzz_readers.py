"""Damaged files of every format that is read: each is read as it was, or refused in one line of its reader.

A whole small file is changed (bytes flipped, cut out, put in, doubled, spliced with another file) and read.
What is read must be what the whole file holds wherever the format has sums of its contents. Otherwise only
ValueError and OSError may come, in one line, soon, and without asking for memory that the file cannot fill.
"""

import contextlib
import errno
import json
import os
import re
import resource
import signal
import sys
import tempfile
from pathlib import Path

import matconvnet_files
import numpy as np
import pytest
import scipy.io
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from made_contents import contents_of, encoded

from datasets.loaders import (
    cifar10_binary,
    coco,
    features_file,
    imagenet100,
    images,
    labelme_gist,
    mirflickr,
    nus_wide,
    retrieval_file,
)
from networks.vgg_f import VGGF
from networks.weights import by_name, matconvnet
from tests.files import damaged, tarred, zipped

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of memory are Linux's"),
]

GENERATOR = np.random.default_rng(0)
MEGABYTES = 300  # of resident memory that all examples of a format together may add
NAMED = ("source", "list", "concepts", "database.npy", "query.npy")  # one of them is in every refusal
SECONDS = 60  # after which an example counts as hanging


JPEG = [encoded(number, 12, 12) for number in range(5)]
PICTURES = {f"png/{number}.png": encoded(number, 12, 12, kind="png") for number in range(3)}
PICTURES |= {f"jpeg/{number}.jpg": JPEG[number] for number in range(3)}
BATCHES = {
    f"b/{name}": GENERATOR.integers(0, 10, 2 * 3073, np.uint8).tobytes() for name in cifar10_binary.BATCHES
}
BATCHES["b/batches.meta.txt"] = b"\n".join(b"name%d" % number for number in range(10))
FEATURES = {
    "X": GENERATOR.random((40, 5)),
    "y": GENERATOR.integers(0, 4, 40),
    "scale": np.ones(5),
    "split": np.arange(40) % 3,
}
TEXT = {
    "y": np.array(["cat", "dog", "ox", "zebu"])[FEATURES["y"]],
    "split": np.array([b"train", b"test", b"more"])[FEATURES["split"]],
    "class_names": np.array(["dog", "cat", "ox", "zebu"]),
    "ids": np.array([f"item {number}" for number in range(40)]),
}
GIST = {
    "gist": GENERATOR.random((6, 512)),
    "ndxtrain": np.array([[1.0, 2, 3, 4]]),
    "ndxtest": np.array([[5.0, 6]]),
    "other": np.array([{"a": 1}, "text"], object),
}
CONCEPTS = ("animal", "sky", "water")
IMAGES_OF_CONCEPT = {"animal": "10000", "sky": "11110", "water": "00110"}
WIDE = {f"g/AllLabels/Labels_{name}.txt": "\n".join(IMAGES_OF_CONCEPT[name]).encode() for name in CONCEPTS}
WIDE |= {
    "l/Concepts81.txt": "\n".join(CONCEPTS).encode(),
    "l/Imagelist.txt": b"".join(b"C:\\Flickr\\a\\%d.jpg\r\n" % number for number in range(5)),
}
WIDE |= {f"Flickr/a/{number}.jpg": JPEG[number] for number in range(5)}
WNIDS = ("n01514668", "n02526121")
OF_CLASS = {f"{wnid}_{number}.JPEG": wnid for wnid in WNIDS for number in range(2)}


def image_list(names):
    one_hot = {name: " ".join(str(int(OF_CLASS[name] == wnid)) for wnid in WNIDS) for name in OF_CLASS}
    return "".join(f"image/{name} {one_hot[name]}\n" for name in names).encode()


LISTS = {
    "train.txt": image_list(list(OF_CLASS)[:2]),
    "database.txt": image_list(OF_CLASS),
    "test.txt": b"val_image/ILSVRC2012_val_00000001.JPEG 0 1\n",
}
NESTED = {
    f"{wnid}.tar": tarred({n: JPEG[int(n[-6])] for n in OF_CLASS if OF_CLASS[n] == wnid}) for wnid in WNIDS
}
NESTED["ILSVRC2012_val_00000001.JPEG"] = JPEG[4]
FLICKR = {f"annotations/{name}.txt": b"1\r\n3\r\n5\r\n" for name in mirflickr.CONCEPTS}
COCO_NAMES = {
    part: [f"COCO_{part}_{number:012d}.jpg" for number in range(3)] for part in ("train2014", "val2014")
}


def instances(part):
    """Annotations of three images, with fields that are not read."""
    pictures = [{"id": 10 + place, "file_name": name} for place, name in enumerate(COCO_NAMES[part])]
    kinds = [{"id": 1 + place, "name": name} for place, name in enumerate(coco.CATEGORIES)]
    found = [
        {"id": place, "image_id": 10 + place % 3, "category_id": 1 + 7 * place, "bbox": [1.5, 2, 3e2, -0.0]}
        for place in range(9)
    ]
    contents = {"info": {"year": 2014}, "images": pictures, "annotations": found, "categories": kinds}
    return json.dumps(contents).encode()


def coco_list(names):
    return "".join(f"data/{name} 1{' 0' * 78} 1\n" for name in names).encode()


COCO_LISTS = {
    "train.txt": coco_list(COCO_NAMES["train2014"][:2]),
    "test.txt": coco_list(COCO_NAMES["val2014"][:1]),
    "database.txt": coco_list([COCO_NAMES["train2014"][2], *COCO_NAMES["val2014"]]),
}
EMBEDDED = {
    "database": GENERATOR.random((7, 3), np.float32),
    "query": GENERATOR.random((4, 3), np.float32),
    "database_ids": np.array([f"document {number}" for number in range(7)]),
    "query_ids": np.arange(4) + 100,
    "qrels_test": np.array([["100", "document 1", "1"], ["102", "document 6", "2"]]),
    "qrels_train": np.array([["101", "document 0", "1"], ["101", "document 5", "-1"]]),
}
JUDGED = b"query-id\tcorpus-id\tscore\n0\t3\t1\n0\t5\t2\n2\t6\t1\n"
CHANNELS, WIDTH = (2, 2, 2, 2, 2), 3
NETWORK = VGGF(CHANNELS, WIDTH)


def network_file():
    with tempfile.TemporaryDirectory() as folder:
        matconvnet_files.save(NETWORK, Path(folder, "network.mat"))
        return Path(folder, "network.mat").read_bytes()


def loaded(loader, **options):
    """read(folder, path) of a loader of datasets: bytes of all that it writes."""

    def read(folder, path, *others):
        target = folder / "made"
        target.mkdir()
        loader.describe([path, *others], **options)
        assert not list(target.iterdir())
        try:
            loader.load([path, *others], target, **options)
        except BaseException:
            assert not list(target.iterdir()), "something half-written was left"
            raise
        return {file.name: file.read_bytes() for file in target.iterdir()}

    return read


def beside(read, others):
    """`read` with further, whole, sources: file name -> contents."""

    def read_all(folder, path):
        for name, contents in others.items():
            (folder / name).write_bytes(contents)
        return read(folder, path, *(folder / name for name in others))

    return read_all


def weights(folder, path):
    return {name: value.numpy().tobytes() for name, value in by_name.read_weights(path).items()}


def network(folder, path):
    state = matconvnet.load(path, "vgg_f", channels=CHANNELS, width=WIDTH).state_dict()
    return {name: value.numpy().tobytes() for name, value in state.items()}


SIZED = loaded(images, size=[6, 6])
NUS_WIDE = loaded(nus_wide, concepts=2, size=[6, 6])
IMAGENET = loaded(imagenet100, size=[6, 6])
VECTORS = {f"{side}.npy": contents_of(np.save, EMBEDDED[side]) for side in ("database", "query")}
ANNOTATIONS = {f"annotations/instances_{part}.json": instances(part) for part in COCO_NAMES}
STATE_DICT = {"weight": torch.ones(3, 4), "bias": torch.zeros(3)}
WEIGHTS = {"weight": np.ones((3, 4)), "bias": np.zeros(3)}
savemat = scipy.io.savemat
# name -> (ending, contents, read, whether sums guard the contents)
FORMATS = {
    "features_file, stored": (".npz", contents_of(np.savez, **FEATURES), loaded(features_file), True),
    "features_file, text": (".npz", contents_of(np.savez, **FEATURES | TEXT), loaded(features_file), True),
    "cifar10_binary": (".tar.gz", tarred(BATCHES, "w:gz"), loaded(cifar10_binary), True),
    "images, tar": (".tar", tarred(PICTURES), loaded(images), False),
    "images, tar.gz": (".tar.gz", tarred(PICTURES, "w:gz"), SIZED, True),
    "images, zip": (".zip", zipped(PICTURES), SIZED, False),  # names have no sum
    "labelme_gist": (".mat", contents_of(savemat, GIST), loaded(labelme_gist), False),
    "labelme_gist, compressed": (
        ".mat",
        contents_of(savemat, GIST, do_compression=True),
        loaded(labelme_gist),
        False,
    ),
    "nus_wide": (".zip", zipped(WIDE), NUS_WIDE, False),
    "imagenet100, lists": (".zip", zipped(LISTS), beside(IMAGENET, {"images.tar": tarred(NESTED)}), False),
    "imagenet100, images": (".tar", tarred(NESTED), beside(IMAGENET, {"lists.zip": zipped(LISTS)}), False),
    "mirflickr": (".zip", zipped(FLICKR), loaded(mirflickr, images="none"), False),
    "coco, annotations": (".zip", zipped(ANNOTATIONS), loaded(coco, images="none"), False),
    "coco, lists": (".zip", zipped(COCO_LISTS), loaded(coco, images="none"), False),
    "retrieval_file": (".npz", contents_of(np.savez, **EMBEDDED), loaded(retrieval_file), True),
    "retrieval_file, judgements": (".tsv", JUDGED, beside(loaded(retrieval_file), VECTORS), False),
    "matconvnet": (".mat", network_file(), network, False),
    "weights, npz": (".npz", contents_of(np.savez, **WEIGHTS), weights, False),
    "weights, state dict": (".pt", contents_of(lambda file: torch.save(STATE_DICT, file)), weights, False),
}
OTHERS = [contents for _, contents, _, _ in FORMATS.values()]


PLACE = st.floats(0, 1, exclude_max=True)
LENGTH = st.one_of(st.integers(1, 16), st.integers(17, 5000))
DAMAGE = st.one_of(
    st.tuples(st.just("set"), PLACE, st.integers(0, 255)),
    st.tuples(st.just("set"), PLACE, st.sampled_from([0, 1, 127, 128, 255])),
    st.tuples(st.just("flip"), PLACE, st.integers(0, 7)),
    st.tuples(st.just("write"), PLACE, st.binary(min_size=1, max_size=12)),
    st.tuples(st.just("insert"), PLACE, st.binary(min_size=1, max_size=40)),
    st.tuples(st.just("remove"), PLACE, LENGTH),
    st.tuples(st.just("double"), PLACE, LENGTH),
    st.tuples(st.just("zero"), PLACE, LENGTH),
    st.tuples(st.just("cut"), PLACE, st.none()),
    st.tuples(st.just("splice"), PLACE, st.tuples(st.integers(0, len(OTHERS) - 1), PLACE, LENGTH)),
)


@contextlib.contextmanager
def limits():
    """No example may hang, nor kill the machine by asking for memory."""

    def hang(*_):
        raise AssertionError(f"hung for {SECONDS} s")

    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    handler = signal.signal(signal.SIGALRM, hang)
    resource.setrlimit(resource.RLIMIT_AS, (used + (8 << 30), before[1]))
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        resource.setrlimit(resource.RLIMIT_AS, before)
        signal.signal(signal.SIGALRM, handler)


def peak_megabytes():
    peak = re.search(r"^VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(peak[1]) / 1024


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(cifar10_binary, "RECORDS", 2)
    monkeypatch.setattr(nus_wide, "IMAGES", 5)
    monkeypatch.setattr(nus_wide, "CONCEPTS", 3)
    monkeypatch.setattr(imagenet100, "CLASSES", 2)
    monkeypatch.setattr(imagenet100, "COUNTS", {"train": 2, "test": 1, "database": 4})
    monkeypatch.setattr(mirflickr, "IMAGES", 5)
    monkeypatch.setattr(coco, "IMAGES", dict.fromkeys(COCO_NAMES, 3))
    monkeypatch.setattr(coco, "COUNTS", {"train": (2,), "test": (1,), "database": (4,)})
    monkeypatch.setattr("os.posix_fallocate", no_room_for_gigabytes)


def no_room_for_gigabytes(handle, offset, size, reserve=os.posix_fallocate):
    if size > 1 << 30:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    reserve(handle, offset, size)


def read_from(folder, ending, contents, read):
    path = Path(folder, f"source{ending}")
    path.write_bytes(contents)
    with limits():
        return read(Path(folder), path)


@pytest.mark.parametrize("name", FORMATS)
def test_a_damaged_file_is_read_as_it_was_or_refused_in_one_line(name, tmp_path):
    ending, contents, read, guarded = FORMATS[name]
    (tmp_path / "whole").mkdir()
    whole = read_from(tmp_path / "whole", ending, contents, read)
    before, outcomes = peak_megabytes(), {"read": 0, "refused": 0}

    @settings(max_examples=settings.default.max_examples * 6 // 10)
    @given(st.lists(DAMAGE, min_size=1, max_size=3))
    def check(changes):
        data = damaged(contents, changes, OTHERS)
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            try:
                found = read_from(folder, ending, data, read)
            except (ValueError, OSError) as error:
                outcomes["refused"] += 1
                line = str(error)
                assert "\n" not in line and 0 < len(line) < 700, ascii(line)
                assert any(word in line for word in NAMED), ascii(line)
                return
        outcomes["read"] += 1
        spliced = any(kind == "splice" for kind, _, _ in changes)
        assert found == whole or not guarded or spliced

    check()
    assert outcomes["refused"], outcomes
    assert peak_megabytes() - before < MEGABYTES
