"""Bad input of every kind, with the one line that results; nothing is written, nothing is changed.

A case is a function of a folder: it prepares the folder and returns an action. The action must raise one of
the errors that a job or a program reports in one line (ValueError, OSError), or return a program's exit
status and stderr. docs/development/trust.md names the test files with further cases.
"""

import errno
import gzip
import io
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.io
import torch
import yaml
from PIL import Image
from settings_once import BLOCK, GOOD, MINE, TABLE, parsed_once

from datasets.files import save_array
from datasets.loaders import features_file, images
from datasets.splits import Split
from methods.base import TrainingSet
from methods.base.batch import TrainingState
from methods.base.checkpoint import Checkpoint
from networks.weights import by_name, matconvnet
from reporting.records.read import table_runs
from reporting.tables.model import Table
from tests.reporting.leaderboards import make_run
from tiebench import __main__ as program
from tiebench.files import filled, write_json, write_npz
from workflow.configuration import dataset_checks
from workflow.configuration.merged import load
from workflow.configuration.yaml_reader import read_settings
from workflow.plan.runs import write_settings
from workflow.stages.protocol_data import read_labels

ROOT = Path(__file__).parents[1]
CASES = {}  # (kind, name) -> (function of a folder, words of the line)
LONGEST = 700  # characters of a line


def case(kind, name, *words):
    """Register a function that takes a folder and returns the action that must fail with these words."""

    def register(function):
        assert (kind, name) not in CASES
        CASES[kind, name] = function, words
        return function

    return register


def cases(kind, table):
    """Register name -> (function of a folder, words)."""
    for name, (function, *words) in table.items():
        case(kind, name, *words)(function)


def error_line(action):
    """The one line in which an action ends."""
    try:
        found = action()
    except (ValueError, OSError) as error:
        return str(error)
    status, line = found
    assert status not in (0, None)
    assert line.endswith("\n")
    return line.removesuffix("\n")


def contents(folder):
    """Relative path -> bytes, or target of a link: equal if nothing was written."""
    return {
        str(path.relative_to(folder)): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


@pytest.fixture(autouse=True, scope="module")
def settings_parsed_once():
    with parsed_once():
        yield


@pytest.fixture
def no_example_hangs():
    def hang(*_):
        raise AssertionError("hung")

    before = signal.signal(signal.SIGALRM, hang)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


# -- configuration -----------------------------------------------------------------------------------------


def merged(base, change, levels=3):
    """`base` with the keys of `change`, down to the keys of an entry of a section."""
    if not (levels and isinstance(base, dict) and isinstance(change, dict)):
        return change
    return base | {key: merged(base.get(key), value, levels - 1) for key, value in change.items()}


MISTAKES = yaml.safe_load((ROOT / "tests" / "configuration_mistakes.yaml").read_text(encoding="utf-8"))
LONG_NAME = {"datasets": {"d": {"loader": "features_file", "sources": [{"file": "/" + "a" * 5000}]}}}
MISTAKES["a file name of 5,000 characters"] = [LONG_NAME, "datasets.d.sources[0].file", "a file name"]
for name, (change, place, remedy) in MISTAKES.items():
    case("configuration", name, f"--configfile: {place}", remedy)(
        lambda folder, change=change: partial(load, ROOT, merged(GOOD, change))
    )

YAML_FILES = {
    "not UTF-8": (b"device: caf\xe9\n", "not UTF-8 text"),
    "a tab": (b"device:\n\tcpu\n", "line 2: not valid YAML"),
    "no mapping": (b"- device\n- cpu\n", "must be a mapping from keys to values, not a list"),
    "cut short": (b"device: [cpu\n", "not valid YAML"),
    "a key twice": (b"device: cpu\nthreads: {}\ndevice: cuda\n", "line 3: not valid YAML (duplicate key"),
    "a zero byte": (b"device: \0\n", "NUL byte"),
    "a Python object": (b"device: !!python/object/apply:os.getcwd []\n", "line 1: not valid YAML"),
    "a day that does not exist": (b"day: 2020-99-99\n", "not valid YAML"),
}
for name, (text, words) in YAML_FILES.items():

    @case("configuration", f"YAML, {name}", "settings.yaml", words)
    def settings_file(folder, text=text):
        (folder / "settings.yaml").write_bytes(text)
        return lambda: read_settings(folder / "settings.yaml")


# -- features and labels -----------------------------------------------------------------------------------

FEATURES = {"X": np.ones((6, 2)), "y": np.arange(6) % 2}


def npz(path, arrays=(), **more):
    np.savez(path, **dict(arrays), **more)
    return path


def made_of(loader, source, folder, **options):
    """The action of loading a source into a folder that holds the result of an earlier load."""
    target = folder / "made"
    target.mkdir(exist_ok=True)
    (target / "items.npy").write_bytes(b"earlier")
    return lambda: loader.load([source], target, **options)


ARRAYS = {
    "beyond single precision": ({"X": np.array([[1e39]])}, ["1e+39", "float32"]),
    "0 rows": ({"X": np.ones((0, 4))}, ["X is empty", "(0, 4)"]),
    "three dimensions": ({"X": np.ones((2, 2, 2))}, ["two dimensions", "(2, 2, 2)"]),
    "text": ({"X": np.array([["a"]])}, ["'X' is of type <U1", "real numbers"]),
    "complex": ({"X": np.ones((2, 2), complex)}, ["complex128", "real numbers"]),
    "pickled objects": ({"X": np.array([[print]])}, ["pickled Python objects", "never loaded"]),
    "no X": ({"features": np.ones((2, 2))}, ["no array 'X'", "arrays there: features"]),
    "y of another length": (FEATURES | {"y": np.arange(5)}, ["y has 5 rows, X has 6"]),
    "y negative": (FEATURES | {"y": np.arange(6) - 1}, ["y[0] is -1", "negative"]),
    "y of 1.5": (FEATURES | {"y": np.full(6, 1.5)}, ["y[0] is 1.5", "integer"]),
    "y multi-hot of 2": (FEATURES | {"y": np.full((6, 3), 2)}, ["y[0, 0] is 2", "0 or 1"]),
    "scale NaN": (FEATURES | {"scale": [1.0, np.nan]}, ["scale[1] is nan", "finite"]),
    "split of another length": (FEATURES | {"split": [0, 1]}, ["split has shape (2,)", "(6,)"]),
}
for name, (arrays, words) in ARRAYS.items():
    case("features", name, "features.npz", *words)(
        lambda folder, arrays=arrays: made_of(features_file, npz(folder / "features.npz", arrays), folder)
    )


def zipped(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


def header(shape, kind="<f8"):
    """A .npy header that announces an array."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": kind, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


def features_of(folder, *members):
    return made_of(features_file, zipped(folder / "features.npz", members), folder)


HUGE_X = ("X.npy", header((10**12, 2)) + bytes(64))
SMALL_X = ("X.npy", header((1, 2)) + bytes(16))
cases(
    "features",
    {
        "a file that claims terabytes": (lambda folder: features_of(folder, HUGE_X), "'X' is damaged"),
        "an array twice": (lambda folder: features_of(folder, SMALL_X, SMALL_X), "holds array 'X' twice"),
    },
)


@case("features", "one class where two are needed", "all training items are similar to each other")
def one_class(folder):
    from methods.dpsh import DPSH

    items = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    same = TrainingSet(items, lambda i, j: np.ones((len(i), len(j)), np.int64), labels=np.zeros(20, np.int64))
    return lambda: DPSH(bits=4).fit(same)


@case("features", "no labels where the affinity is of labels", "protocol mine", "label")
def no_labels(folder):
    path = npz(folder / "features.npz", X=np.ones((100, 3)))
    dataset = {"loader": "features_file", "sources": [{"file": str(path)}]}
    given = {"datasets": {"mine": dataset}, "protocols": {"mine": MINE | {"dataset": "mine"}}}
    return partial(dataset_checks.check, load(ROOT, given), "mine")


# -- codes -------------------------------------------------------------------------------------------------


def scored(*arguments):
    """The action of tiebench score: exit status and stderr. Nothing may be printed."""

    def action():
        out, errors = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(errors):
            status = program.main(["score", *map(str, arguments)])
        assert out.getvalue() == ""
        return status, errors.getvalue()

    return action


GENERATOR = np.random.default_rng(0)
PLAIN = {
    "query": GENERATOR.integers(0, 2, (9, 13)),
    "database": GENERATOR.integers(0, 2, (40, 13)),
    "query_labels": GENERATOR.integers(0, 3, 9),
    "database_labels": GENERATOR.integers(0, 3, 40),
}
HUGE = {"database_labels": np.full(40, 2**64 - 1, np.uint64)}
MANY = {"query_labels": np.ones((9, 300), int), "database_labels": np.ones((40, 300), int)}
# Others are in tests/tiebench/test_score.py.
CODES = {
    "codes of no dimension": (PLAIN | {"database": np.array(3)}, ["database", "one or two dimensions"]),
    "labels beyond 63 bits": (PLAIN | HUGE, ["database_labels[0]", "18446744073709551615", "at most"]),
    "300 shared labels": (PLAIN | MANY, ["affinities must be 0 to 255", "300"]),
}
for name, (arrays, words) in CODES.items():
    case("codes", name, "codes.npz", *words)(
        lambda folder, arrays=arrays: scored(npz(folder / "codes.npz", arrays))
    )


@case("codes", "a .npy file under the name of an .npz", "codes.npz", "not a readable .npz file")
def npy_for_npz(folder):
    with (folder / "codes.npz").open("wb") as file:
        np.save(file, PLAIN["query"])
    return scored(folder / "codes.npz")


@case("codes", "an .npz file as that of labels", "labels.npz", "it is an .npz archive")
def npz_for_npy(folder):
    rows = {name: np.arange(len(PLAIN[name])) for name in ("query", "database")}
    split, labels = npz(folder / "split.npz", rows), npz(folder / "labels.npz", {"labels": np.arange(9)})
    codes = {name: PLAIN[name] for name in ("query", "database")}
    return scored(npz(folder / "codes.npz", codes), "--split", split, "--labels", labels)


@case("codes", "a file that claims terabytes", "codes.npz", "does not fit its shape (1000000000000, 13)")
def codes_of_terabytes(folder):
    arrays = npz(folder / "whole.npz", PLAIN)
    with zipfile.ZipFile(arrays) as whole:
        data = [(name, whole.read(name)) for name in whole.namelist() if name != "query.npy"]
    return scored(zipped(folder / "codes.npz", [*data, ("query.npy", header((10**12, 13), "|u1"))]))


@case("codes", "a folder with a .npy cut short", "query.npy", "not a NumPy array")
def cut_folder(folder):
    for name, array in PLAIN.items():
        np.save(folder / f"{name}.npy", array)
    cut(folder / "query.npy", -5)
    return scored(folder)


# -- archives ----------------------------------------------------------------------------------------------


def picture(kind="png", side=8):
    buffer = io.BytesIO()
    Image.fromarray(GENERATOR.integers(0, 256, (side, side, 3), np.uint8)).save(buffer, kind)
    return buffer.getvalue()


def member(name, kind=tarfile.REGTYPE, link="", size=0):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, size
    return info


def tarred(path, *members, mode="w"):
    """A tar of one image and of further members: TarInfo, or (name, contents)."""
    with tarfile.open(path, mode) as archive:
        for entry in [("a/0.png", picture()), *members]:
            if isinstance(entry, tarfile.TarInfo):
                archive.addfile(entry)
            else:
                archive.addfile(member(entry[0], size=len(entry[1])), io.BytesIO(entry[1]))
    return path


MEMBERS = {
    "a path that leads out": (member("../../evil.png"), ["'../../evil.png'", "leads out of the archive"]),
    "an absolute path": (member("/etc/evil.png"), ["absolute name"]),
    "an absolute Windows path": (member("C:\\a\\1.png"), ["absolute name"]),
    "a Windows path that leads out": (member("a\\..\\..\\evil.png"), ["leads out"]),
    "a symbolic link": (member("a/l.png", tarfile.SYMTYPE, "/etc/passwd"), ["'a/l.png' is a link"]),
    "a hard link": (member("a/l.png", tarfile.LNKTYPE, "a/0.png"), ["'a/l.png' is a link"]),
    "a character device": (member("a/d.png", tarfile.CHRTYPE), ["neither a file nor a folder"]),
    "a pipe": (member("a/p.png", tarfile.FIFOTYPE), ["neither a file nor a folder"]),
    "a member twice": (("a/0.png", b"other"), ["holds 'a/0.png' twice"]),
    "a member twice, by two names": (("./a//0.png", b"other"), ["holds 'a/0.png' twice"]),
}
for name, (entry, words) in MEMBERS.items():
    case("archives", name, "images.tar", *words)(
        lambda folder, entry=entry: made_of(images, tarred(folder / "images.tar", entry), folder)
    )


@case("archives", "a bit flipped in what is stored", "images.tar.gz: cut short, damaged", "CRC")
def flipped_archive(folder):
    """Pixels have no checksum of their own: only that of the compressed file shows the damage."""
    data = tarred(folder / "images.tar", ("a/1.bmp", picture("bmp"))).read_bytes()
    data = bytearray(gzip.compress(data, compresslevel=0))
    data[data.index(b"BM") + 60] ^= 1
    (folder / "images.tar.gz").write_bytes(data)
    return made_of(images, folder / "images.tar.gz", folder)


def appended(folder, info, data=b""):
    """The action of loading an archive that ends in a header and these bytes."""
    with tarfile.open(tarred(folder / "images.tar"), "a") as archive:
        archive.fileobj.seek(archive.offset)
        archive.fileobj.write(info.tobuf(tarfile.GNU_FORMAT) + data)
    return made_of(images, folder / "images.tar", folder)


HUGE_MEMBER = member("a/1.png", size=1 << 40)
LONG_HEADER = member("././@LongLink", tarfile.GNUTYPE_LONGNAME, size=1 << 31)
case("archives", "a member that claims terabytes", "images.tar", "damaged")(
    lambda folder: appended(folder, HUGE_MEMBER)
)
case("archives", "a header that claims gigabytes", "images.tar", "a header of 2147483648 bytes")(
    lambda folder: appended(folder, LONG_HEADER, bytes(1024))
)


@case("archives", "a small archive that unpacks to gigabytes", "images.zip", "more than", "are not read")
def bomb(folder):
    with zipfile.ZipFile(folder / "images.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("a/0.png", picture())
        with archive.open("a/1.png", "w", force_zip64=True) as stream:
            for _ in range(640):
                stream.write(bytes(1 << 20))
    assert (folder / "images.zip").stat().st_size < 8 << 20
    return made_of(images, folder / "images.zip", folder)


@case("archives", "a negative size", "images.tar", "damaged")
def negative_size(folder):
    header = bytearray(member("a/1.png").tobuf(tarfile.GNU_FORMAT))
    header[124:136] = struct.pack(">iq", -1, -1024)
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + sum(header[156:512]) + 8 * 32)
    data = tarred(folder / "images.tar").read_bytes()
    end = data.rindex(b"IEND")
    end += -end % 512
    (folder / "images.tar").write_bytes(data[:end] + bytes(header) + data[end:])
    return made_of(images, folder / "images.tar", folder)


@case("archives", "a pipe for a source", "pipe.tar: neither a file nor a folder")
def pipe(folder):
    (folder / "made").mkdir()
    os.mkfifo(folder / "pipe.tar")
    return lambda: images.load([folder / "pipe.tar"], folder / "made")


@case("archives", "a link to a device in a folder", "a link to what is neither a file nor a folder")
def device_behind_a_link(folder):
    (folder / "set" / "a").mkdir(parents=True)
    (folder / "set" / "a" / "0.png").symlink_to("/dev/zero")
    return made_of(images, folder / "set", folder)


# -- images ------------------------------------------------------------------------------------------------


def of_images(folder, *pictures):
    (folder / "set" / "a").mkdir(parents=True)
    for number, data in enumerate(pictures):
        (folder / "set" / "a" / f"{number}.png").write_bytes(data)
    return made_of(images, folder / "set", folder)


def claiming(width, height):
    """A PNG whose header has these dimensions."""
    data = bytearray(picture())
    data[16:24] = struct.pack(">II", width, height)
    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    return bytes(data)


def deep_picture():
    buffer = io.BytesIO()
    Image.fromarray(np.full((8, 8), 40_000, np.uint16)).save(buffer, "png")
    return buffer.getvalue()


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"
IMAGES = {
    "PostScript": ([picture(), EPS], ["set: ", "'a/1.png' is not an image of"]),
    "four billion pixels claimed": ([claiming(65535, 65535)], ["cannot be read", "exceeds limit"]),
    "a byte of the header changed": ([picture(), picture().replace(b"IHDR\0", b"IHDR\1")], ["'a/1.png'"]),
    "16 bits a pixel": ([deep_picture()], ["'a/0.png'", "more than 8 bits"]),
}
for name, (pictures, words) in IMAGES.items():
    case("images", name, *words)(lambda folder, pictures=pictures: of_images(folder, *pictures))


# -- weights -----------------------------------------------------------------------------------------------


@case("weights", ".mat with an unknown type of data", "net.mat: cut short, damaged", "unknown type 99")
def unknown_type(folder):
    """Bytes like this one can crash SciPy's compiled reader, and the whole process with it."""
    layers = np.array([[{"type": "conv", "name": "conv1"}]], object)
    scipy.io.savemat(folder / "net.mat", {"layers": layers})
    data = bytearray((folder / "net.mat").read_bytes())
    data[152] = 99
    (folder / "net.mat").write_bytes(data)
    return partial(matconvnet.load, folder / "net.mat", "vgg_f")


@case("weights", ".npz that claims terabytes", "w.npz: damaged, or not an .npz of plain arrays")
def terabytes_of_weights(folder):
    return partial(by_name.read_weights, zipped(folder / "w.npz", [("weight.npy", header((10**13,)))]))


@case("weights", ".pt with numbers for names", "w.pt", "3 is not the name of a parameter")
def numbered_weights(folder):
    torch.save({3: torch.ones(2)}, folder / "w.pt")
    return partial(by_name.read_weights, folder / "w.pt")


def cut(path, end):
    path.write_bytes(path.read_bytes()[:end])
    return path


# -- results -----------------------------------------------------------------------------------------------


def on_a_full_disk(action, limit=600):
    """The action while no file can grow beyond `limit` bytes, which acts like a full disk."""

    def limited():
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
        try:
            return action()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limited


TOO_LARGE = os.strerror(errno.EFBIG)
BIG = np.arange(10_000)
PART = ("--part", "1/2", "--histograms")


def earlier(path, data=b"earlier"):
    path.write_bytes(data)
    return path


def full_disk(what, *words):
    """Register the actions that a function of a folder returns, for while the disk is full."""

    def register(function):
        case("results", f"full disk, {what}", *words)(lambda folder: on_a_full_disk(function(folder)))
        return function

    return register


full_disk("scores per query", "out.npz", TOO_LARGE)(
    lambda folder: scored(npz(folder / "codes.npz", PLAIN), "--per-query", earlier(folder / "out.npz"))
)
full_disk("histograms of a part", "out.npz", TOO_LARGE)(
    lambda folder: scored(npz(folder / "codes.npz", PLAIN), *PART, earlier(folder / "out.npz"))
)
full_disk("JSON", "card.json", TOO_LARGE)(
    lambda folder: partial(write_json, earlier(folder / "card.json"), BIG.tolist())
)
full_disk("a loader's array", "items.npy: cannot be written whole")(
    lambda folder: partial(save_array, earlier(folder / "items.npy"), BIG)
)
full_disk("a split", "split.npz", TOO_LARGE)(
    lambda folder: partial(Split(BIG[:5], BIG[5:], BIG[5:]).save, earlier(folder / "split.npz"))
)
full_disk("a dataset", "items.npy", TOO_LARGE)(
    lambda folder: made_of(features_file, npz(folder / "features.npz", X=np.ones((900, 9))), folder)
)


@full_disk("files of a run", "run", TOO_LARGE)
def full_run(folder):
    (folder / "run").mkdir()
    earlier(folder / "run" / "codes.npz")

    def write():
        with filled(folder / "run") as writing:
            np.savez(writing / "codes.npz", query=BIG)

    return write


@full_disk("a checkpoint", "epoch.npz", TOO_LARGE)
def full_checkpoint(folder):
    network = torch.nn.Linear(50, 50)
    method = SimpleNamespace(network=network, changing_memory=(), epochs=9)
    made = TrainingSet(None, None, checkpoint=earlier(folder / "epoch.npz"))
    optimizer = torch.optim.SGD(network.parameters(), 0.1)
    scaler = SimpleNamespace(state_dict=dict)
    kept = Checkpoint(method, TrainingState(made, None, None), {}, optimizer, scaler)
    kept.written = -1e9  # long ago
    return lambda: kept.after(0, {"epoch": 1, "epochs": 9, "seconds": 1.0})


@case("results", "standard output on a full disk", "standard output: No space left on device")
def full_output(folder):
    codes = npz(folder / "codes.npz", PLAIN)
    command = [sys.executable, "-m", "tiebench", "score", codes]

    def run():
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
        return done.returncode, done.stderr

    return run


def job_words(folder, log, **settings):
    """The command of a rule's adapter."""
    command = [sys.executable, "-m", "workflow.scripts.collect_tuning", "--log", log, "--name", "x"]
    command += ["--stem", folder / "out", "--settings", write_settings(settings, folder / "settings")]
    return list(map(str, command))


def job(folder, log, **settings):
    """The action of running it."""
    command = job_words(folder, log, **settings)

    def run():
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.stdout == ""
        return done.returncode, done.stderr

    return run


case("results", "full disk, the log of a job", "error: ", "absent.json")(
    lambda folder: job(folder, log="/dev/full", searches=[str(folder / "absent.json")])
)
case("results", "a log that cannot be written", "the log cannot be written", "no/such/folder")(
    lambda folder: job(folder, log=folder / "no/such/folder/x.log")
)


@case("results", "a folder in the place of a result", "out.npz", "Is a directory")
def folder_for_result(folder):
    (folder / "out.npz").mkdir()
    return partial(write_npz, folder / "out.npz", ap=np.zeros(3))


def records(folder, name, data):
    """The action of reading a table's run of which one file is damaged."""
    make_run(folder, "digits", "lsh", 8, 0, {"ap": np.ones(3)}, training=[{}])
    (folder / "runs/digits/lsh/8/0" / name).write_bytes(data)
    block = BLOCK | {"protocol": "digits"}
    asked = Table.from_json({"table": TABLE | {"name": "t", "methods": ["lsh"], "blocks": [block]}})
    return lambda: table_runs(asked, folder / "runs", also=["training", "per_query"])


for name, data, words in [
    ("scores.json", b"", "invalid JSON"),
    ("run.json", b'{"a": 1', "invalid JSON"),
    ("training.jsonl", b'{"epoch": 1}\n{"epo', "invalid lines of JSON"),
    ("per_query.npz", b"PK\x03\x04", "not a readable .npz file"),
    ("scores.json", b"{}", "scores.json lacks status, reason, metrics, curves"),
    ("run.json", b"[]", "run.json is not the record of a run"),
    ("training.jsonl", b"1\n", "each must be an object"),
]:
    about = f"digits/lsh/8/0/{name}", words, "; delete it to regenerate it"
    case("results", f"a half-written {name}, {len(data)} bytes", *about)(
        lambda folder, name=name, data=data: records(folder, name, data)
    )


@case("results", "a half-written labels.npy", "labels.npy: not a NumPy array", "delete it")
def half_labels(folder):
    np.save(folder / "labels.npy", BIG)
    cut(folder / "labels.npy", -100)
    return partial(read_labels, folder)


# -- interruptions -----------------------------------------------------------------------------------------


def interrupted(*_, **__):
    raise KeyboardInterrupt


for stage in ("tiebench.scoring.score_codes", "os.fsync"):

    @case("interruptions", f"Ctrl-C in {stage}", "error: interrupted")
    def interrupted_program(folder, stage=stage):
        action = scored(npz(folder / "codes.npz", PLAIN), "--per-query", earlier(folder / "out.npz"))

        def run():
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(stage, interrupted)
                return action()

        return run


@case("interruptions", "Ctrl-C in a job", "error: interrupted")
def interrupted_job(folder):
    """The job waits for a pipe without a writer."""
    os.mkfifo(folder / "chosen.json")
    command = job_words(folder, folder / "job.log", searches=[str(folder / "chosen.json")])

    def run():
        started = subprocess.Popen(
            command,
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
            # Tests that run in the background of a shell inherit that Ctrl-C is ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        with (folder / "chosen.json").open("w"):  # opened once the job reads from it
            started.send_signal(signal.SIGINT)
            _, errors = started.communicate()
        (folder / "job.log").unlink()
        return started.returncode, errors

    return run


# -- kernels without a cache, or without the instructions that only some processors have ------------------

COUNT = """if True:
    import sys
    import numpy as np
    from tiebench.__main__ import main
    from tiebench.affinities import SharedLabels
    from tiebench.counting import bitslice
    from tiebench.counting.histograms import joint_histograms
    assert "generic" not in sys.argv or not bitslice._has_ternary_logic()
    assert main(["score", sys.argv[1]]) == 0
    rng = np.random.default_rng(7)
    for bits in (5, 64, 128):
        codes = np.packbits(rng.integers(0, 2, (1107, bits)), axis=1)
        labels = rng.integers(0, 2, (1107, 6))
        affinity = SharedLabels(labels[:7], labels[7:])
        print(joint_histograms(codes[:7], codes[7:], bits, affinity).counts.tolist())
"""


def counted_in(folder, *words, **variables):
    """What `tiebench score` and counting print with the library of a folder.

    By labels alone: the kernel for classes, which takes as long to compile, consists of the same parts.
    """
    command, environment = [sys.executable, "-c", COUNT, *words], os.environ | {"PYTHONPATH": str(folder)}
    environment |= variables
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.thorough  # compiles the kernels once more
def test_kernels_run_for_any_processor_and_where_no_cache_can_be_written_or_it_is_damaged(tmp_path):
    """For any processor with an unwritable package folder and NUMBA_CACHE_DIR, then damaged bytes."""
    labels = {name: np.eye(3, dtype=int)[PLAIN[name]] for name in ("query_labels", "database_labels")}
    codes = npz(tmp_path / "codes.npz", PLAIN | labels)
    expected = counted_in(ROOT, codes)
    assert len(expected) > 10_000
    for name, ignored in (("unwritable", "__pycache__"), ("damaged", "*.pyc")):
        place = tmp_path / name / "tiebench"
        shutil.copytree(ROOT / "tiebench", place, ignore=shutil.ignore_patterns(ignored))
    (tmp_path / "unwritable" / "tiebench" / "__pycache__").touch()
    nowhere = {"NUMBA_CACHE_DIR": "/dev/null/cache", "HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null"}
    # Optimising takes two thirds of the compiler's time, and is not what is asked; without it, Numba warns
    # of constants that it would have folded.
    generic = {"NUMBA_CPU_NAME": "generic", "NUMBA_OPT": "0"}
    generic |= {"PYTHONWARNINGS": "ignore:Cannot cache compiled function"}
    assert counted_in(tmp_path / "unwritable", codes, "generic", **nowhere, **generic) == expected
    damaged = list((tmp_path / "damaged").rglob("first_hit.*.nb?"))  # the smallest kernels
    assert damaged
    for file in damaged:
        file.write_bytes(b"damaged")
    assert counted_in(tmp_path / "damaged", codes) == expected


# -- running the cases ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_example_hangs")
@pytest.mark.filterwarnings("ignore:Duplicate name", "ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_bad_input_ends_in_one_line_and_changes_nothing(kind, name, tmp_path, capfd):
    make, words = CASES[kind, name]
    action = make(tmp_path)
    capfd.readouterr()
    before = contents(tmp_path)
    line = error_line(action)
    assert "\n" not in line and 0 < len(line) < LONGEST, line
    assert "Traceback" not in line
    assert [word for word in words if word not in line] == [], line
    assert contents(tmp_path) == before
    assert capfd.readouterr() == ("", "")
