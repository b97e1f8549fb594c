"""tiebench.score: every accepted form of codes and labels, arrays or tensors, against the packed kernels."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from refusals import refused

import tiebench
from tiebench import scoring
from tiebench.affinities import AffinityBlocks, EqualLabels, SharedLabels
from tiebench.codes.packing import pack
from tiebench.counting.histograms import joint_histograms
from tiebench.metric_table import METRICS
from tiebench.scoring import score_codes

ROOT = Path(__file__).parents[2]
GENERATOR = np.random.default_rng(11)
QUERIES, ITEMS, BITS = 30, 200, 13
ONES = [GENERATOR.integers(0, 2, (n, BITS)).astype(bool) for n in (QUERIES, ITEMS)]
CLASSES = [GENERATOR.integers(0, 4, n) for n in (QUERIES, ITEMS)]
TAGS = [GENERATOR.integers(0, 2, (n, 3)) for n in (QUERIES, ITEMS)]

ARRAYS = {
    **{kind: lambda ones, kind=kind: ones.astype(kind) for kind in ("bool", "int64", "uint8", "float16")},
    "-1/+1 integers": lambda ones: np.where(ones, 1, -1).astype(np.int8),
    "-1/+1 floats": lambda ones: np.where(ones, 1.0, -1.0).astype(np.float32),
    "lists": lambda ones: ones.tolist(),
}
TENSORS = {
    **{form: lambda ones, make=make: torch.as_tensor(make(ones)) for form, make in ARRAYS.items()},
    "-1/+1 bfloat16": lambda ones: torch.from_numpy(np.where(ones, 1.0, -1.0)).bfloat16(),
    "with gradient": lambda ones: torch.from_numpy(np.where(ones, 1.0, -1.0)).requires_grad_(),
}


def assert_same(found, expected):
    assert found.means == expected.means
    for one, other in ((found.per_query, expected.per_query), (found.curves, expected.curves)):
        assert list(one) == list(other)
        for name in one:
            assert np.array_equal(one[name], other[name], equal_nan=True), name


@pytest.fixture(params=["CPU", "GPU"])
def device(request, monkeypatch):
    """The way of tensors on a GPU, taken by tensors of the CPU: the same operations in the same order."""
    if request.param == "GPU":
        both = scoring.is_tensor
        monkeypatch.setattr(scoring, "_on_one_gpu", lambda query, database: both(query) and both(database))
    return request.param


EXPECTED = score_codes(*map(pack, ONES), BITS, EqualLabels(*CLASSES), (1, 20), "min")


@pytest.mark.parametrize("form", ARRAYS)
def test_every_form_of_arrays_scores_the_same(form):
    assert_same(tiebench.score(*map(ARRAYS[form], ONES), *CLASSES, (1, 20), "min"), EXPECTED)


@pytest.mark.parametrize("form", TENSORS)
def test_every_form_of_tensors_scores_the_same(form, device):
    tensors = [TENSORS[form](ones) for ones in ONES]
    labels = [torch.from_numpy(classes) for classes in CLASSES]
    assert_same(tiebench.score(*tensors, *labels, (1, 20), "min"), EXPECTED)
    assert_same(tiebench.score(*tensors, *CLASSES, [1, 20, 1], ap_at_normaliser="min"), EXPECTED)


def test_an_order_of_ties_is_scored_wherever_tensors_are_counted(device):
    tensors = [torch.from_numpy(ones) for ones in ONES]
    order = torch.arange(ITEMS - 1, -1, -1)
    expected = score_codes(*map(pack, ONES), BITS, EqualLabels(*CLASSES), 20, order=order.numpy())
    assert_same(tiebench.score(*tensors, *CLASSES, 20, order=order), expected)


@pytest.mark.parametrize("width", [1, 7, 8, 9, 64, 65])
def test_packed_codes_and_unpacked_ones_score_the_same(width, device):
    ones = [GENERATOR.integers(0, 2, (n, width)).astype(bool) for n in (QUERIES, ITEMS)]
    expected = score_codes(*map(pack, ones), width, EqualLabels(*CLASSES))
    for codes in (ones, [pack(codes) for codes in ones]):
        assert_same(tiebench.score(*codes, *CLASSES, bits=width), expected)
        assert_same(tiebench.score(*map(torch.from_numpy, codes), *CLASSES, bits=width), expected)


def test_labels_may_be_strings_or_sets_and_of_any_kind():
    names = np.array(["Zürich", "Bern", "a", ""])
    codes, unknown = (*map(pack, ONES), BITS), CLASSES[1] == 3
    expected = score_codes(*codes, EqualLabels(CLASSES[0], np.where(unknown, -7, CLASSES[1])))
    found = tiebench.score(*ONES, names[CLASSES[0]], np.where(unknown, "of no query", names[CLASSES[1]]))
    assert_same(found, expected)
    expected = score_codes(*codes, SharedLabels(*TAGS))
    for kind in (bool, np.uint8, np.float64):
        assert_same(tiebench.score(*ONES, *(tags.astype(kind) for tags in TAGS)), expected)
    assert_same(tiebench.score(*ONES, *map(torch.from_numpy, TAGS)), expected)
    even = [classes % 2 == 0 for classes in CLASSES]
    expected = score_codes(*codes, EqualLabels(*(labels.astype(int) for labels in even)))
    assert_same(tiebench.score(*ONES, *even), expected)


def test_one_cutoff_and_threads_change_nothing_else():
    one = tiebench.score(*ONES, *CLASSES, at=20, threads=3)
    assert one.means["ap@20"] == tiebench.score(*ONES, *CLASSES, (20,)).means["ap@20"]
    assert {name.removesuffix("@1") for name in set(EXPECTED.means) - set(one.means) if "_m" not in name} == {
        name.removesuffix("@K") for name, metric in METRICS.items() if metric.parameter == "cutoff"
    }


BAD = [
    ({"query": ONES[0] - 0.5}, "query > 0"),
    ({"query": pack(ONES[0]), "database": pack(ONES[1])}, "`bits`"),
    ({"bits": 12}, "12 bits must be (n, 12), or packed uint8 (n, 2), not"),
    ({"bits": 12.5}, "bits must be an integer"),
    ({"query": ONES[0][:0]}, "at least one code"),
    ({"query": ONES[0][0]}, "matrices of the same width"),
    ({"database": ONES[1][:, :5]}, "matrices of the same width"),
    ({"query": pack(ONES[0])}, "must be matrices of the same width: is one of them packed?"),
    ({"query_labels": CLASSES[0][1:]}, "30 query codes but 29 query labels"),
    ({"query_labels": 3}, "query_labels must be classes (n,)"),
    ({"query_labels": ["a"] * 30}, "query labels are strings but database labels are int64"),
    ({"query_labels": CLASSES[0] / 2}, ".5; it must be an integer"),
    ({"query_labels": TAGS[0]}, "must both be classes"),
    ({"query_labels": TAGS[0] + 1, "database_labels": TAGS[1]}, "is 2; a matrix of labels"),
    ({"at": 0}, "positive integer"),
    ({"ap_at_normaliser": "most", "at": 3}, "normaliser"),
]


@pytest.mark.parametrize(("changes", "message"), BAD)
def test_what_cannot_be_scored_is_refused_in_one_line(changes, message, device):
    given = {"query": ONES[0], "database": ONES[1], "query_labels": CLASSES[0], "database_labels": CLASSES[1]}
    given |= changes
    if device == "GPU":
        given |= {part: torch.as_tensor(given[part]) for part in ("query", "database")}
    with refused(message):
        tiebench.score(**given)


def run(script):
    return subprocess.check_output([sys.executable, "-c", script], text=True, cwd=ROOT)


def test_importing_the_package_loads_nothing_and_scoring_arrays_loads_no_torch():
    script = """if True:
        import sys, tiebench
        print([name for name in ("numpy", "numba", "torch", "tiebench.scoring") if name in sys.modules])
        assert set(tiebench.__all__) <= set(dir(tiebench))
        tiebench.score([[0, 1]], [[1, 1], [0, 1]], [1], [1, 2])
        print([name for name in ("torch", "tiebench.losses.relaxed") if name in sys.modules])
        print(tiebench.relaxed.__name__, tiebench.training.__name__, "torch" in sys.modules)
        assert not hasattr(tiebench, "scores")
    """
    modules = "tiebench.losses.relaxed tiebench.training True"
    assert run(script).splitlines() == ["[]", "[]", modules]


def test_without_numba_the_scores_are_the_same_to_the_bit():
    script = """if True:
        import hashlib, sys
        if {without}:
            sys.modules["numba"] = sys.modules["torch"] = None  # importing them fails
        import numpy as np
        from tiebench.affinities import AffinityBlocks, EqualLabels, SharedLabels
        from tiebench.codes.packing import pack
        from tiebench.scoring import score_codes
        generator = np.random.default_rng(0)
        digest = hashlib.sha256()
        for bits, queries, items in ((1, 1, 1), (12, 7, 3000), (64, 70, 500), (65, 3, 400), (200, 3, 50)):
            codes = [pack(generator.integers(0, 2, (n, bits))) for n in (queries, items)]
            levels = generator.integers(0, 4, (queries, items))
            for affinity in (
                EqualLabels(generator.integers(0, 3, queries), generator.integers(0, 3, items)),
                SharedLabels(generator.random((queries, 9)) < 0.3, generator.random((items, 9)) < 0.3),
                SharedLabels(np.ones((queries, 2)), generator.random((items, 2)) < 0.3, binary=True),
                AffinityBlocks(lambda begin, end: levels[begin:end], (1, 2, 3)),
            ):
                for normaliser in ("hits", "min"):
                    scores = score_codes(*codes, bits, affinity, (1, 10, 100), normaliser, threads=2)
                    for name, values in (scores.per_query | scores.curves).items():
                        digest.update(name.encode() + values.tobytes())
        print(digest.hexdigest(), "numba" in sys.modules and sys.modules["numba"] is not None)
    """
    slow, fast = (run(script.replace("{without}", str(without))).split() for without in (True, False))
    assert (slow[1], fast[1]) == ("False", "True")
    assert slow[0] == fast[0]


@pytest.mark.thorough
def test_without_the_compiler_every_function_returns_the_same(monkeypatch):
    script = """if True:
        import numpy as np, torch, tiebench
        from tiebench import neighbours, prefixes, relaxed, rescoring, score_array
        from tiebench.compile import compile_kernels
        from tiebench.affinities import SparseJudgements
        from tiebench.codes.packing import pack
        compile_kernels()
        generator = np.random.default_rng(0)
        ones = [generator.integers(0, 2, (n, 140)) for n in (4, 30)]
        codes, classes = [pack(one) for one in ones], [generator.integers(0, 3, n) for n in (4, 30)]
        judged = SparseJudgements(np.arange(4), np.arange(4), np.ones(4, int), (4, 30))
        print(tiebench.score(*ones, *classes, at=[5]).means)
        print([one.items.tolist() for one in neighbours.nearest(*codes, 140, 3)])
        print([one.items.tolist() for one in neighbours.within(*codes, 140, 70)])
        scores = prefixes.score_prefixes(*codes, 140, judged, (12, 130, 140))
        print([one.means for one in scores.values()])
        print(rescoring.rescored(*codes, 140, judged, lambda q, items: items, 5, (3,)))
        given, relevance = generator.random((3, 9)).round(1), np.tri(3, 9, dtype=int)
        print(score_array(given, relevance, ["ap", "ndcg@3"]).means)
        loose = torch.tensor(generator.uniform(-0.9, 0.9, (12, 8)), requires_grad=True)
        level = torch.tensor(classes[1][:12, None] == classes[1][:12]).long()
        value = relaxed.average_precision(loose, level, bins=8).mean()
        value.backward()
        print(np.round(value.item(), 9), np.round(loose.grad.numpy(), 9).tolist())
    """
    expected = run(script)
    assert expected.count("\n") >= 7
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert run(script) == expected


def test_histograms_of_many_items_are_counted_in_blocks_without_numba(monkeypatch):
    from tiebench.counting import histograms

    affinity = EqualLabels(*CLASSES)
    packed = [pack(ones) for ones in ONES]
    expected = joint_histograms(*packed, BITS, affinity).counts
    monkeypatch.setattr(histograms, "NUMBA", False)
    for pairs in (1, ITEMS, 7 * ITEMS, 10**6):
        monkeypatch.setattr(histograms, "_NUMPY_PAIRS", pairs)
        assert np.array_equal(joint_histograms(*packed, BITS, affinity, threads=3).counts, expected)
    few = AffinityBlocks(lambda begin, end: np.zeros((1, ITEMS), int), (1,))
    with refused(f"have shape (1, {ITEMS}), not ({QUERIES}, {ITEMS})"):
        joint_histograms(*packed, BITS, few)


@pytest.mark.parametrize("absent", ["numba", "torch"])
def test_kernels_are_compiled_in_advance_where_there_are_any(absent):
    script = f"""if True:
        import sys
        sys.modules["{absent}"] = sys.modules["scipy"] = None
        from tiebench.compile import compile_kernels
        compile_kernels()
        print("tiebench.counting.bitslice" in sys.modules, "tiebench.losses.kernels" in sys.modules)
    """
    assert run(script).split() == [str(absent != "numba"), "False"]
