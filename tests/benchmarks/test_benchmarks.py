"""A peer that computes something else would make every ratio meaningless: peers against the product."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import evaluation_peers, handwritten, loss_peers, losses, methods, synthetic
from benchmarks.report import Report
from benchmarks.timing import Competitor, Disagreement, Measurement, interleave
from evaluation import exact
from evaluation.hamming import JointHistograms, joint_histograms

ROOT = Path(__file__).parents[2]
SMALL = synthetic.Shape("small", 21, 2100, 5)
MULTI_HOT = synthetic.Shape("small, multi-hot", 13, 700, 6, multi_hot=True)


@pytest.mark.parametrize("shape", [SMALL, MULTI_HOT], ids=lambda shape: shape.name)
@pytest.mark.parametrize("bits", [7, 16, 48, 64])
def test_peers_count_the_same_histograms(shape, bits):
    codes = synthetic.codes(shape, bits, seed=bits)
    expected = joint_histograms(codes.query, codes.database, bits, codes.affinity).counts
    levels = codes.affinity.block(0, shape.queries)
    flat = [evaluation_peers.words(part)[:, 0] for part in (codes.query, codes.database)]
    by_numpy = evaluation_peers.numpy_histograms(*flat, bits, levels, expected.shape[1])
    assert np.array_equal(by_numpy, expected)
    scalar = np.zeros_like(expected)
    evaluation_peers.scalar_histograms(*flat, bits, levels, scalar)
    assert np.array_equal(scalar, expected)
    distances = (expected.sum(axis=1) * np.arange(bits + 1)).sum()
    assert evaluation_peers.sum_of_distances(*flat) == distances


@pytest.fixture(scope="module")
def by_hand():
    try:
        return handwritten.load()
    except handwritten.Unavailable as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("bits", [1, 7, 8, 12, 16, 24, 33, 48, 56, 57, 64])
@pytest.mark.parametrize("items", [1, 511, 512, 513, 8192, 9001])
def test_hand_written_kernel_counts_the_same_histograms(by_hand, bits, items):
    codes = synthetic.codes(synthetic.Shape("", 9, items, 3), bits, seed=items)
    prepared = handwritten.Prepared(codes)
    counts = prepared.counts()
    by_hand(prepared, counts)
    expected = joint_histograms(codes.query, codes.database, bits, codes.affinity).counts
    assert np.array_equal(counts, expected)
    by_product = prepared.counts()
    handwritten.count_with_the_product(prepared, by_product)
    assert np.array_equal(by_product, expected)


@pytest.mark.parametrize("at", [None, 5])
def test_argsort_loop_is_exact_average_precision_without_ties(at):
    # Item d differs from the query in its first d bits: every distance occurs once.
    bits = 40
    rng = np.random.default_rng(0)
    query = rng.integers(0, 2, bits).astype(bool)
    database = query ^ (np.arange(bits) < np.arange(bits + 1)[:, None])
    database = database[rng.permutation(bits + 1)]
    relevant = rng.random(bits + 1) < 0.3
    order = (database != query).sum(axis=1)
    counts = np.zeros((1, 2, bits + 1), np.int64)
    counts[0, relevant.astype(int), order] = 1
    expected = exact.average_precision(JointHistograms(np.arange(2), counts), at)
    labels = [evaluation_peers.one_hot(part, 2) for part in (np.array([1]), relevant.astype(int))]
    codes = [evaluation_peers.signs(np.packbits(part, axis=1), bits) for part in (query[None], database)]
    found = evaluation_peers.argsort_average_precision(*codes, *labels, at)
    assert found == pytest.approx(expected.expected[0], abs=1e-12)
    assert expected.minimum[0] == pytest.approx(expected.maximum[0], abs=1e-12)


def test_argsort_loop_lies_in_the_range_over_tie_orders():
    codes = synthetic.codes(SMALL, 12)
    ranges = exact.average_precision(joint_histograms(codes.query, codes.database, 12, codes.affinity))
    labels = [evaluation_peers.one_hot(part, 5) for part in (codes.query_labels, codes.database_labels)]
    signs = [evaluation_peers.signs(part, 12) for part in (codes.query, codes.database)]
    found = evaluation_peers.argsort_average_precision(*signs, *labels)
    assert ranges.minimum.mean() < found < ranges.maximum.mean()


def test_scikit_learn_agrees_on_ndcg():
    codes = synthetic.codes(MULTI_HOT, 16)
    found = joint_histograms(codes.query, codes.database, 16, codes.affinity)
    flat = [evaluation_peers.words(part) for part in (codes.query, codes.database)]
    distances = np.bitwise_count(flat[0] ^ flat[1][:, 0]).astype(float)
    affinities = found.levels[codes.affinity.block(0, MULTI_HOT.queries)]
    expected = exact.ndcg(found).expected.mean()
    assert evaluation_peers.sklearn_ndcg(distances, affinities) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(
    "objective,levels", [("ap_s", 2), ("ap_s", 4), ("dcg_s", 2), ("dcg_s", 4), ("dcg_s", 8)]
)
@pytest.mark.parametrize("items,bits,bins", [(17, 12, 12), (40, 16, 5), (33, 8, 20)])
def test_losses_agree_in_float64(objective, levels, items, bits, bins):
    codes, affinity = losses.batch(items, bits, levels, seed=items)
    found = losses.ways(codes.double(), affinity, bins, objective)
    value, gradient = found.pop(losses.AUTOGRAD)()
    assert gradient.abs().max() > 0
    for name, call in found.items():
        other_value, other_gradient = call()
        assert other_value == pytest.approx(value, rel=1e-12), name
        torch.testing.assert_close(other_gradient, gradient, rtol=1e-9, atol=1e-14, msg=name)


def test_autograd_peer_is_the_defining_sum():
    # One query, distances 0, 1, 1 and 2.5 of 4 bits, the second and fourth item relevant.
    codes = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, -1], [1, 1, 1, -1], [1, 0, -1, -1]]).double()
    affinity = torch.tensor([[0, 0, 1, 0, 1]] * 5)
    c, g = torch.tensor([[1, 2, 0.5, 0.5, 0]]), torch.tensor([[0, 1, 0.5, 0.5, 0]])
    distances, width, *_ = loss_peers._setting(codes, affinity, 4, "ap_s")
    assert distances[0].tolist() == [0, 0, 1, 1, 2.5]
    assert width == 1
    # AP_s: (1/2) (1 (0 + 1 + 1) / (1 + 3 + 1) + 0.5 (1 + 1.5 + 1) / (3 + 3.5 + 1) + 0.5 (1.5 + 2 + 1) / 8.5)
    expected = 0.5 * (2 / 5 + 0.5 * 3.5 / 7.5 + 0.5 * 4.5 / 8.5)
    assert loss_peers.ap_simplified(c, g, torch.tensor([2.0])).item() == pytest.approx(expected, rel=1e-6)
    product, _ = losses.product(codes, affinity, 4, "ap_s", "compiled")
    assert product == pytest.approx(loss_peers.autograd(codes, affinity, 4, "ap_s")[0], rel=1e-12)


def test_measurements_extrapolate_and_compare_within_a_round():
    calls = []
    seen = interleave(
        {"one": Competitor(lambda: calls.append(1), 1000), "two": lambda: calls.append(2)}, 3, 0
    )
    assert len(seen["one"].seconds) == len(seen["two"].seconds) == 3
    # Three rounds, one call to warm up and one to estimate.
    assert calls.count(1) == calls.count(2) == 5
    # A slow second round moves both: the ratio stays.
    base, other = Measurement((1.0, 10.0, 1.0)), Measurement((2.0, 20.0, 3.0))
    assert other.ratio_to(base) == 2
    assert (other.median, other.low, other.high) == (3, 2, 20)


def tables(text):
    """Markdown tables as lists of rows; every row is as long as its head, the second is the ruler."""
    found = []
    for block in text.split("\n\n"):
        lines = [line for line in block.strip().splitlines() if line.startswith("|")]
        if lines:
            assert lines == block.strip().splitlines(), "a table stands by itself"
            rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]
            assert all(set(cell) <= set("-:") for cell in rows[1])
            assert {len(row) for row in rows} == {len(rows[0])}
            found.append([rows[0], *rows[2:]])
    return found


def test_report_escapes_what_would_break_a_table(tmp_path, capsys):
    report = Report()
    report.rows(["what", "a|b"], [("x|y", "1")])
    report.save(tmp_path / "report.md")
    ((head, row),) = tables((tmp_path / "report.md").read_text())
    assert head[1].strip() == r"a\|b"
    assert row[0].strip() == r"x\|y"
    assert [file.name for file in tmp_path.iterdir()] == ["report.md"]


@pytest.mark.parametrize("section", methods.SECTIONS, ids=lambda section: section.__name__.strip("_"))
@pytest.mark.parametrize("seed", [0, 1])
def test_steps_of_methods_agree_with_their_usual_form(section, seed):
    """A section compares the results of its competitors before it hands them over."""
    title, competitors = section(np.random.default_rng(seed), 200)
    assert title
    assert next(iter(competitors)) == methods.OURS
    assert len(competitors) == 2


def test_steps_that_differ_are_refused():
    methods.agree("something", [1.0, 2.0], [1.0, 2.0 + 1e-6])
    with pytest.raises(Disagreement, match="something"):
        methods.agree("something", [1.0, 2.0], [1.0, 2.1])


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=ROOT,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def test_command_prints_and_writes_markdown(tmp_path):
    file = tmp_path / "losses.md"
    made = command("--quick", "losses", "--output", str(file))
    assert made.returncode == 0, made.stderr
    assert file.read_text().strip() == made.stdout.strip()
    assert made.stdout.startswith("# Benchmarks\n")
    found = tables(made.stdout)
    assert len(found) > 8
    summary = {row[0].strip(): row[2].strip() for row in found[-1][1:]}
    assert any("appendix over compiled" in name for name in summary)
    assert all(summary.values())


@pytest.mark.parametrize("arguments", [("lossses",), ("--output", "no/such/folder/file.md")])
def test_command_refuses_in_one_line(arguments):
    made = command(*arguments)
    assert made.returncode == 2
    assert "error:" in made.stderr.splitlines()[-1]
    assert "Traceback" not in made.stderr
