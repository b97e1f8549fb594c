"""LabelMe's GIST file: variables written by SciPy, one of them damaged; other damaged files."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from made_contents import contents_of

from datasets.description import Description
from datasets.loaders import labelme_gist
from tests.files import written
from tests.tiebench.refusals import refused

ITEMS = 30


def gist() -> np.ndarray:
    return np.random.default_rng(0).random((ITEMS, 512))


def variables() -> dict[str, np.ndarray]:
    order = np.random.default_rng(1).permutation(ITEMS) + 1
    return {
        "DistLM": np.zeros((ITEMS, ITEMS)),
        "gist": gist(),
        "names": np.array(["a", "b"], object),
        "ndxtest": order[None, :6].astype(float),
        "ndxtrain": order[None, 6:].astype(float),
    }


def saved(path: Path, values: dict, **options) -> Path:
    scipy.io.savemat(path, values, **options)
    return path


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("zipped_up", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_descriptors_and_given_split(tmp_path, compressed, zipped_up, dtype):
    values = variables() | {"gist": gist().astype(dtype)}
    source = saved(tmp_path / "LabelMe_gist.mat", values, do_compression=compressed)
    if zipped_up:
        files = {"code/readme.txt": b"", "code/LabelMe_gist.mat": source.read_bytes()}
        source = written(tmp_path / "tfw_cvpr08_code.zip", files)
    description = labelme_gist.load([source], tmp_path)
    items, given = np.load(tmp_path / "items.npy"), np.load(tmp_path / "given_split.npy")
    assert items.dtype == np.float32
    np.testing.assert_array_equal(items, gist().astype(np.float32))
    expected = [int(number in values["ndxtest"]) for number in range(1, ITEMS + 1)]
    np.testing.assert_array_equal(given, expected)
    assert description.labels is None
    assert description.metadata()["split_counts"] == {"train": 24, "test": 6}
    described = labelme_gist.describe([source]).metadata()
    assert described == description.metadata() == Description.read(tmp_path, described).metadata()


def test_without_parts(tmp_path):
    for extra in ({}, {"ndxtrain": np.arange(1, 5)}):
        source = saved(tmp_path / "LabelMe_GIST.mat", {"gist": gist()} | extra)
        assert labelme_gist.load([source], tmp_path).given_split is None
        assert len(np.load(tmp_path / "given_split.npy")) == 0


def test_a_variable_that_is_not_asked_for_is_never_read(tmp_path):
    """DistLM is compressed and damaged after its name: reading any of it would fail."""
    values = {"DistLM": np.random.default_rng(2).random((100, 100)), "gist": gist()}
    whole = bytearray(contents_of(scipy.io.savemat, values, do_compression=True))
    # After the header the first element, DistLM: its type, the length of what follows, and that.
    _, length = struct.unpack_from("<II", whole, 128)
    whole[136 + length // 2 : 136 + length] = b"\xff" * (length - length // 2)
    (tmp_path / "LabelMe_gist.mat").write_bytes(whole)
    labelme_gist.load([tmp_path / "LabelMe_gist.mat"], tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "items.npy"), gist().astype(np.float32))
    with pytest.raises((OSError, zlib.error)):
        scipy.io.loadmat(tmp_path / "LabelMe_gist.mat")


def hdf5() -> bytes:
    """As much of a file of version 7.3 as is needed to know it by."""
    header = b"MATLAB 7.3 MAT-file".ljust(124) + struct.pack("<H", 0x0200) + b"IM"
    return header.ljust(512, b"\0") + b"\x89HDF\r\n\x1a\n" + bytes(100)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gist": np.zeros((5, 511))}, r"gist must be \(n, 512\), not \(5, 511\)"),
        ({"gist": gist().T}, r"gist must be \(n, 512\), not \(512, 30\)"),
        ({"gist": np.zeros((0, 512))}, r"gist must be \(n, 512\), not \(0, "),
        ({"gist": gist() * 1j}, "gist must be .30, 512. real numbers, not complex128"),
        ({"gist": np.where(np.arange(512) == 3, np.nan, gist())}, r"gist\(1, 4\) is not finite"),
        ({"gist": gist() + 1e300}, r"gist\(1, 1\) is not finite"),
        ({"gist": "text"}, "gist must be"),
        *(({"ndxtest": np.array([x])}, "ndxtest must hold .* items, 1 to 30") for x in (0, 31, 1.5, np.nan)),
        ({"ndxtrain": np.array([4, 4])}, "ndxtrain holds an item twice"),
        ({"ndxtest": np.arange(1, 31)}, "ndxtest holds an item twice, or one of ndxtrain"),
        ({"ndxtrain": np.array([], float)}, "item .* is neither in ndxtrain nor in ndxtest"),
        ({"ndxtrain": "all"}, "ndxtrain must hold numbers of items"),
    ],
)
def test_wrong_variables(tmp_path, change, message):
    source = saved(tmp_path / "LabelMe_gist.mat", variables() | change)
    with refused(str(source), pattern=message):
        labelme_gist.load([source], tmp_path)
    assert not list(tmp_path.glob("*.npy*"))


def test_wrong_files(tmp_path):
    source = tmp_path / "LabelMe_gist.mat"
    for contents, message in (
        (b"", "cut short, damaged or not a MATLAB file"),
        (b"not a MATLAB file" * 100, "cut short, damaged or not a MATLAB file"),
        (hdf5(), "version 7.3 (or newer), which is not read here; save it with -v7"),
    ):
        source.write_bytes(contents)
        with refused(str(source), message):
            labelme_gist.describe([source])
    saved(source, {"other": np.eye(2)})
    for sources, message in (
        ([source], "has no variable gist; it has other"),
        ([tmp_path], "must be a .mat file or a zip"),
        ([], "got 0 sources"),
    ):
        with refused(message):
            labelme_gist.describe(sources)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("zipped_up", [False, True])
def test_files_cut_short(tmp_path, compressed, zipped_up):
    """Wherever the cut, the file never passes for one with other contents."""
    source = tmp_path / "LabelMe_gist.mat"
    whole = contents_of(scipy.io.savemat, variables(), do_compression=compressed)
    if zipped_up:
        source = written(tmp_path / "code.zip", {"LabelMe_gist.mat": whole})
        whole = source.read_bytes()
    for length in range(1, len(whole) - 1, len(whole) // 40):
        source.write_bytes(whole[:length])
        # Cut before ndxtrain, a file is one without parts, if its end falls between two variables.
        with refused(str(source), pattern="cut short, damaged|has no variable gist"):
            labelme_gist.load([source], tmp_path)
    assert not list(tmp_path.glob("*.npy*"))


def test_zips_without_the_file_or_with_two(tmp_path):
    for files, number in (({"a.mat": b""}, 0), ({"a/LabelMe_gist.mat": b"", "LabelMe_gist.mat": b""}, 2)):
        source = written(tmp_path / "code.zip", files)
        with refused(pattern=f"must hold one LabelMe_gist.mat, holds {number}"):
            labelme_gist.describe([source])
