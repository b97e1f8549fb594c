"""The relaxed objectives: known answers, plain formulas, finite differences, the exact metrics they relax."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from refusals import refused
from scipy.special import digamma, expi, polygamma
from slopes import central_differences

from tiebench.affinities import AffinityBlocks
from tiebench.codes.packing import pack
from tiebench.counting.histograms import joint_histograms
from tiebench.losses import kernels, relaxed
from tiebench.losses import objectives as formulas
from tiebench.rankings import exact
from tiebench.rankings.discount_sums import DISCOUNT_KNOTS, discount_sum_table
from tiebench.values import NotANumber

BACKENDS = ("compiled", "torch")
OBJECTIVES = ("ap_s", "ap_r", "dcg_s", "dcg_r", "mi")


def evaluate(objective, codes, affinity, bins, delta=1.0, backend="auto"):
    """An objective by its short name, through the public functions."""
    if objective == "mi":
        return relaxed.mutual_information(codes, affinity, bins, delta, backend=backend)
    function = relaxed.average_precision if objective.startswith("ap") else relaxed.ndcg
    return function(codes, affinity, bins, delta, simplified=objective.endswith("_s"), backend=backend)


def value_and_gradient(objective, codes, affinity, bins, delta=1.0, backend="auto", upstream=None):
    """Values, and by the codes the gradient of their sum, weighted: by default with what 16 bits hold."""
    leaf = codes.clone().requires_grad_()
    values = evaluate(objective, leaf, affinity, bins, delta, backend)
    weights = (torch.arange(len(codes)) % 4 + 2) / 4 if upstream is None else upstream
    values.backward(weights.to(values))
    return values.detach(), leaf.grad


def soft_histograms(codes, affinity, bins, delta):
    """c (M, bins + 1) of all items and c_v {level: (M, bins + 1)}: eq. (delta), an M x M x bins tensor."""
    items, bits = codes.shape
    width = bits / bins
    distances = (bits - codes @ codes.T) / 2
    centres = torch.arange(bins + 1, dtype=codes.dtype) * width
    shares = (1 - (distances[:, :, None] - centres).abs() / (delta * width)).clamp(min=0)
    others = ~torch.eye(items, dtype=torch.bool)
    by_level = {
        int(level): (shares * ((affinity == level) & others)[:, :, None]).sum(1)
        for level in torch.unique(affinity[others])
    }
    return sum(by_level.values()), by_level


def plain_objective(objective, codes, affinity, bins, delta=1.0):
    """The appendix's AP_s and DCG_s, AP_r and DCG_r of Proposition 2 with their sums continued to real counts
    (digamma; Euler-Maclaurin), MIHash's mutual information. One query, one bin at a time: nothing clever."""
    c, by_level = soft_histograms(codes, affinity, bins, delta)
    positive = sum((h for level, h in by_level.items() if level > 0), torch.zeros_like(c))
    graded, values = objective.startswith("dcg"), []
    for i in range(len(codes)):
        row = [int(affinity[i, j]) for j in range(len(codes)) if j != i]
        relevant, items = sum(a > 0 for a in row), len(row)
        ideal = sum(
            (2.0**a - 1) / math.log2(rank + 1) for rank, a in enumerate(sorted(row, reverse=True), start=1)
        )
        gains = sum(
            ((2.0**level - 1) * h[i] for level, h in by_level.items() if level > 0), torch.zeros_like(c[i])
        )
        value = c[i].sum() * 0
        before, before_positive = 0.0 * value, 0.0 * value
        if objective == "dcg_r":
            through = discount_sum(torch.cat([c[i, :1] * 0, c[i].cumsum(0)]))  # up to each bin
        if relevant == 0 or (objective == "mi" and relevant == items):
            values.append(value + (1.0 if graded else 0.0))
            continue
        for d in range(bins + 1):
            n, p = c[i, d], positive[i, d]
            end, end_positive = before + n, before_positive + p
            if objective == "ap_s":
                value = value + p / relevant * (before_positive + end_positive + 1) / (before + end + 1)
            elif objective == "dcg_s":
                value = value + gains[d] / torch.log2(before + n / 2 + 1.5)
            elif objective == "mi":
                other = n - p
                for share, weight in (
                    (n / items, -1.0),
                    (p / relevant, relevant / items),
                    (other / (items - relevant), 1 - relevant / items),
                ):
                    if share > 1e-13:
                        value = value + weight * share * torch.log2(share)
            elif n > 1e-12 and objective == "ap_r":
                harmonic = torch.digamma(end + 1) - torch.digamma(before + 1)
                slope = (p - 1) / (n - 1)
                bracket = slope * n + (before_positive + 1 - slope * (before + 1)) * harmonic
                value = value + p / n / relevant * bracket
            elif n > 1e-12 and objective == "dcg_r":
                value = value + gains[d] / n * (through[d + 1] - through[d])
            before, before_positive = end, end_positive
        values.append(value / ideal if graded else value)
    return torch.stack(values)


def discount_sum(x):
    """Sum of 1/log2(t + 1), t = 1..x, up to a constant, continued to real x >= 0: far out the integral by the
    trapezoid corrections of Euler and Maclaurin, near 0 the recurrence. Differentiable."""
    steps = 30
    near = sum(1 / torch.log2(x + k + 1) for k in range(1, steps + 1))
    y = x + steps + 1
    # Integral of 1/ln by its known derivative: `LogarithmicIntegral` below; f/2 + f'/12 - f'''/720.
    log = torch.log(y)
    first = -1 / (y * log**2)
    third = -(2 / (y**3 * log**2) + 6 / (y**3 * log**3) + 6 / (y**3 * log**4))
    far = LogarithmicIntegral.apply(y) + 0.5 / log + first / 12 - third / 720
    return math.log(2) * far - near


class LogarithmicIntegral(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return torch.as_tensor(expi(np.log(x.numpy())), dtype=x.dtype)

    @staticmethod
    def backward(context, upstream):
        (x,) = context.saved_tensors
        return upstream / torch.log(x)


def batch(seed, items, bits, bins, delta, levels=2, symmetric=True):
    """Codes float64 (M, b) with equal rows, affinity int64 (M, M) with a query without relevant items.

    No distance lies within 1e-4 bin widths of a kink of the triangular kernel, where there is no derivative.
    """
    generator = np.random.default_rng(seed)
    width = bits / bins
    for _ in range(1000):
        codes = np.tanh(generator.normal(size=(items, bits)) * 1.5)
        codes[1] = codes[0]
        codes[-1] = codes[2]
        positions = (bits - codes @ codes.T)[~np.eye(items, dtype=bool)] / 2 / width
        kinks = np.concatenate([positions, positions - delta, positions + delta])
        if np.abs(kinks - np.rint(kinks)).min() > 1e-4:
            break
    else:
        raise AssertionError("no batch away from the kinks")
    affinity = generator.integers(0, levels, (items, items))
    affinity = np.triu(affinity) + np.triu(affinity, 1).T if symmetric else affinity
    affinity[3] = 0
    if symmetric:
        affinity[:, 3] = 0
    affinity[4] = np.maximum(affinity[4], 1) if not symmetric else affinity[4]
    return torch.from_numpy(codes), torch.from_numpy(affinity)


# items, bits, bins, delta, affinity levels, symmetric: bins fewer than bits, as many, more, one alone
CASES = [
    (8, 6, 6, 1.0, 2, True),
    (9, 8, 3, 1.0, 3, True),
    (7, 4, 9, 1.0, 4, False),
    (10, 12, 5, 1.0, 11, True),
    (6, 5, 1, 1.0, 2, False),
    (8, 6, 4, 1.7, 3, True),
    (9, 5, 8, 2.3, 4, False),
    (8, 7, 7, 2.0, 2, True),
    (8, 4, 3, 0.6, 3, True),
    (12, 16, 40, 3.0, 5, True),
]


def by_case(cases):
    return pytest.mark.parametrize("case", cases, ids=lambda case: "-".join(map(str, case)))


@pytest.mark.parametrize("objective", OBJECTIVES)
@by_case(CASES)
def test_values_and_gradients_are_those_of_the_plain_formulas(case, objective):
    items, bits, bins, delta, levels, symmetric = case
    codes, affinity = batch(0, items, bits, bins, delta, levels, symmetric)
    upstream = torch.from_numpy(np.random.default_rng(1).normal(size=items))
    theirs = codes.clone().requires_grad_()
    expected = plain_objective(objective, theirs, affinity, bins, delta)
    expected.backward(upstream)
    tolerance = 3e-6 if objective == "dcg_r" else 1e-9  # its sums are interpolated between tabled knots
    for backend in BACKENDS:
        values, gradient = value_and_gradient(objective, codes, affinity, bins, delta, backend, upstream)
        assert values.dtype == torch.float64
        assert torch.allclose(values, expected, rtol=0, atol=tolerance)
        assert torch.allclose(gradient, theirs.grad, rtol=0, atol=10 * tolerance)


@pytest.mark.parametrize("objective", OBJECTIVES)
@by_case(CASES[1::3])
def test_gradients_are_finite_differences(case, objective):
    items, bits, bins, delta, levels, symmetric = case
    codes, affinity = batch(7, items, bits, bins, delta, levels, symmetric)
    upstream = torch.from_numpy(np.random.default_rng(2).normal(size=items))

    def weighted(moved):
        return float(evaluate(objective, torch.from_numpy(moved), affinity, bins, delta) @ upstream)

    differences = torch.from_numpy(central_differences(weighted, codes.numpy()))
    for backend in BACKENDS:
        _, gradient = value_and_gradient(objective, codes, affinity, bins, delta, backend, upstream)
        assert torch.allclose(gradient, differences, rtol=1e-5, atol=2e-7)
        assert gradient.abs().max() > 1e-3


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 2e-4)])
@pytest.mark.parametrize(("bins", "delta"), [(16, 1.0), (7, 1.0), (40, 1.0), (10, 3.0)])
def test_compiled_and_torch_agree_on_a_training_batch(objective, dtype, tolerance, bins, delta, device):
    codes, affinity = batch(11, 64, 16, bins, delta, levels=5)
    upstream = torch.from_numpy(np.random.default_rng(5).normal(size=64))
    found = []
    # On a GPU what "auto" chooses there.
    for backend, where in (("compiled", "cpu"), ("torch" if device.type == "cpu" else "auto", device)):
        given = codes.to(where, dtype), affinity.to(where)
        both = value_and_gradient(objective, *given, bins, delta, backend, upstream)
        assert {(one.dtype, one.device.type) for one in both} == {(dtype, torch.device(where).type)}
        found.append([one.cpu() for one in both])
    values, gradients = zip(*found)
    assert torch.allclose(*values, rtol=0, atol=tolerance)
    assert torch.allclose(*gradients, rtol=0, atol=tolerance * max(1.0, float(gradients[0].abs().max())))


@pytest.mark.parametrize(
    "number", [formulas.AP_SIMPLIFIED, formulas.AP_FULL, formulas.NDCG_SIMPLIFIED, formulas.NDCG_FULL]
)
def test_slopes_of_items_at_a_centre_towards_an_empty_bin_are_forward_differences(number):
    """Where codes are binary: each item is at a centre, and the next one may hold nothing yet."""
    row = np.array([0.0, 0, 0, 2, 2, 2, 4, 4])  # the first is the query itself
    affinity = np.tile([0, 1, 0, 1, 2, 0, 0, 1], (8, 1))

    def value_and_slopes(row):
        values, slopes = rows(np.tile(row, (8, 1)), affinity, number, 6)
        return values[0], slopes[0]

    value, slopes = value_and_slopes(row)
    for item in range(1, 8):
        moved = row.copy()
        moved[item] += 1e-4
        assert slopes[item] == pytest.approx((value_and_slopes(moved)[0] - value) / 1e-4, abs=2e-4)
    assert np.abs(slopes).max() > 0.02


def rows(positions, affinity, number, bins):
    """Values, and derivatives by the positions in their own type, of the kernel's rows."""
    items = len(positions)
    slopes, values = positions.copy(), np.empty(items)
    discounts = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, items + 2)))])
    assert kernels.objective_and_slopes(
        slopes, affinity, bins, 1.0, number, discounts, discount_sum_table(2 * items), values
    )
    return values, slopes


def test_slopes_of_mutual_information_at_centres_take_no_share_as_a_whole_one():
    """p log2 p has no slope at p = 0: that of p = 1 is used, 1 + log2 1, as in MIHash's code. It matters if
    an item is at a centre, which no item like it shares the next one with."""
    bins, place = 6, np.array([0, 0, 1, 1, 2, 2, 3, 3, 3, 4, 6])  # the first is the query itself
    relevant = np.array([0, 1, 1, 0, 0, 0, 1, 0, 1, 1, 0], bool)

    def entropy_slopes(who):
        share = np.bincount(place[who], minlength=bins + 1) / who.sum()
        return 1 + np.log2(np.where(share > 0, share, 1.0))

    others = np.arange(11) > 0
    whole = entropy_slopes(others)
    by_bin = np.where(
        relevant[:, None], entropy_slopes(relevant) - whole, entropy_slopes(others & ~relevant) - whole
    )
    low = np.minimum(place, bins - 1)
    expected = (by_bin[np.arange(11), low + 1] - by_bin[np.arange(11), low]) / 10
    _, slopes = rows(np.tile(place.astype(float), (11, 1)), np.tile(relevant.astype(int), (11, 1)), 4, bins)
    assert slopes[0, 1:] == pytest.approx(expected[1:], abs=1e-12)


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("items", [2, 64, 65, 600])
@pytest.mark.parametrize(
    ("levels", "tolerance"),
    [((0, 1), 1e-9), ((0, 0, 1, 3), 1e-9), ((0, 2, 7, 8), 1e-6), ((0, 10), 1e-5), ((0, 20), 1e-5)],
)
def test_float32_rows_are_those_of_float64_at_the_same_positions(number, items, levels, tolerance):
    """Float32 shares and gains are summed as integers, as long as there is room in them."""
    generator = np.random.default_rng(items)
    bins = 12
    positions = generator.uniform(-0.4, bins + 0.4, (items, items)).astype(np.float32)
    positions[:, ::7] = positions[:, ::7].round()
    positions[0], positions[1] = -0.4, bins + 0.4  # all in one bin, and outside of it
    affinity = generator.choice(levels, (items, items))
    values, slopes = rows(positions, affinity, number, bins)
    exact_values, exact_slopes = rows(positions.astype(np.float64), affinity, number, bins)
    assert slopes.dtype == np.float32
    np.testing.assert_allclose(values, exact_values, rtol=0, atol=tolerance)
    largest = np.nanmax(np.abs(exact_slopes))
    np.testing.assert_allclose(slopes, exact_slopes, rtol=0, atol=(tolerance + 1e-6) * max(largest, 1e-3))


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("far", [-0.6, -40.0, 12.6, 60.0])
def test_float32_rows_hold_positions_far_outside_of_the_bins(number, far):
    generator = np.random.default_rng(3)
    positions = generator.uniform(0, 12, (9, 9)).astype(np.float32)
    positions[2, 5] = far
    affinity = generator.integers(0, 3, (9, 9))
    with np.errstate(all="ignore"):
        values, slopes = rows(positions, affinity, number, 12)
        exact_values, exact_slopes = rows(positions.astype(np.float64), affinity, number, 12)
    np.testing.assert_allclose(values, exact_values, rtol=1e-6)
    np.testing.assert_allclose(slopes, exact_slopes, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("repeats", [1, 2])
def test_compiled_and_torch_agree_on_binary_codes(objective, repeats):
    """All at centres, where repeated with empty bins: a kink; both take the side of the larger distance."""
    generator = np.random.default_rng(13)
    codes = torch.from_numpy(np.repeat(generator.choice([-1.0, 1.0], size=(14, 4)), repeats, axis=1))
    affinity = torch.from_numpy(generator.integers(0, 3, (14, 14)))
    gradients = [
        value_and_gradient(objective, codes, affinity, 4 * repeats, backend=backend)[1]
        for backend in BACKENDS
    ]
    # Tensors take the discount of an empty bin as a difference over 1/1000 of an item.
    assert torch.allclose(*gradients, rtol=0, atol=1e-4 if objective == "dcg_r" else 1e-6)
    assert gradients[0].abs().max() > 0.01


def codes_at(distances, bits):
    """A query of +1 and one item per Hamming distance: float64 (1 + n, bits) in {-1, +1}."""
    codes = torch.ones(1 + len(distances), bits, dtype=torch.float64)
    for row, distance in enumerate(distances, start=1):
        codes[row, :distance] = -1
    return codes


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("function", "levels", "distances", "known"),
    [
        # Items (3, 2, 4) by distance, relevant (2, 1, 0).
        (relaxed.average_precision, [1, 1, 0, 1, *[0] * 5], [0, 0, 0, 1, 1, *[2] * 4], (0.722222, 0.762037)),
        # Affinities by distance [2, 0, 1], [3, 0], [0, 1].
        (relaxed.ndcg, [2, 0, 1, 3, 0, 0, 1], [0, 0, 0, 1, 1, 2, 2], (5.713915 / 9.823466, 0.615604)),
    ],
)
def test_known_answers_on_hard_histograms(function, levels, distances, known, backend):
    affinity = torch.zeros(len(levels) + 1, len(levels) + 1, dtype=torch.int64)
    affinity[0, 1:] = torch.tensor(levels)
    for simplified, value in zip((True, False), known):
        found = function(codes_at(distances, 2), affinity, 2, simplified=simplified, backend=backend)
        assert found[0].item() == pytest.approx(value, abs=5e-7)


def exact_of_each_item(signs, affinity):
    """AP_T and NDCG_T of every item against the rest, by `tiebench.rankings.exact`."""
    packed = pack(signs)
    values = []
    for i in range(len(signs)):
        rest = np.arange(len(signs)) != i
        levels = tuple(int(level) for level in np.unique(affinity))
        blocks = AffinityBlocks(lambda b, e, i=i, rest=rest: affinity[i : i + 1, rest], levels)
        histograms = joint_histograms(packed[i : i + 1], packed[rest], signs.shape[1], blocks)
        values.append((exact.average_precision(histograms)[0][0], exact.ndcg(histograms)[0][0]))
    return np.array(values).T


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("items", "bits", "seed"), [(12, 3, 0), (40, 8, 1), (90, 16, 2), (200, 5, 3)])
def test_full_relaxations_of_binary_codes_are_the_exact_metrics(items, bits, seed, backend):
    generator = np.random.default_rng(seed)
    signs = generator.choice([-1.0, 1.0], size=(items, bits))
    affinity = generator.integers(0, 5, (items, items)) * generator.integers(0, 2, (items, items))
    affinity[1] = 0
    functions = relaxed.average_precision, relaxed.ndcg
    for function, expected in zip(functions, exact_of_each_item(signs, affinity)):
        tensors = torch.from_numpy(signs), torch.from_numpy(affinity)
        found = function(*tensors, bits, simplified=False, backend=backend)
        assert found.numpy() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("items", [255, 256, 257, 600])
@pytest.mark.parametrize("level", [1, 7, 8])
def test_any_order_of_many_items_of_one_level_is_ideal(items, level, backend):
    codes = torch.from_numpy(np.random.default_rng(items).choice([-1.0, 1.0], size=(items, 6)))
    affinity = torch.full((items, items), level)
    values = relaxed.ndcg(codes, affinity, 6, simplified=False, backend=backend)
    assert values.numpy() == pytest.approx(np.ones(items), abs=1e-9)


def large_prefix_histograms():
    """c, c+ (Q, bins) with a large first bin that holds nothing relevant: C_{d-1} >= 100 where it matters."""
    generator = np.random.default_rng(0)
    c = generator.uniform(2, 60, (60, 6))
    c[:, 0] = generator.uniform(100, 1000, 60)
    positive = c * generator.uniform(0.05, 0.95, c.shape)
    positive[:, 0] = 0
    return c, positive


def test_proposition_2_as_printed_differs_by_less_than_the_paper_s_error_bound():
    c, positive = large_prefix_histograms()
    end, end_positive = np.cumsum(c, 1), np.cumsum(positive, 1)
    before, before_positive = end - c, end_positive - positive
    relevant = np.ceil(end_positive[:, -1])
    slope = (positive - 1) / (c - 1)
    factor = positive / c * (before_positive + 1 - slope * (before + 1))
    n, p, prefix, through = (part[:, 1:] for part in (c, positive, before, end))
    printed = p * (p - 1) / (n - 1) + factor[:, 1:] * np.log(through / prefix)
    bound = np.abs(factor[:, 1:]) * n / (2 * prefix * through)
    tensors = torch.from_numpy(c), torch.from_numpy(positive), torch.from_numpy(relevant)
    ours = relaxed._ap_full(*tensors, None, None).numpy()
    difference = np.abs(ours - printed.sum(1) / relevant)
    assert np.all(difference <= bound.sum(1) / relevant)
    assert difference.max() > 1e-7  # the two are not the same formula
    # One term more of the harmonic numbers' expansion, as the paper suggests, and they meet.
    tighter = p * (p - 1) / (n - 1) + factor[:, 1:] * (np.log(through / prefix) - n / (2 * prefix * through))
    assert ours == pytest.approx(tighter.sum(1) / relevant, abs=1e-5)


def test_proposition_2_of_dcg_as_printed_differs_by_less_than_the_trapezoid_bound():
    c, gains = large_prefix_histograms()
    end = np.cumsum(c, 1)
    before = end - c
    # No gain lies in the first bin, where the printed formula is infinite.
    n, g, prefix, through = (part[:, 1:] for part in (c, gains, before, end))
    integral = math.log(2) * (expi(np.log(through + 1)) - expi(np.log(prefix + 1)))  # Li(x) = Ei(ln x)
    printed = (g * integral / n).sum(1)
    # 1/log2(t + 1) is convex and falls: the integral exceeds the sum by at most half the fall.
    bound = (g / n * 0.5 * (1 / np.log2(prefix + 1) - 1 / np.log2(through + 1))).sum(1)
    ranked = torch.ones(len(c), 1, dtype=torch.float64)  # ideal DCG 1 / log2(2)
    ours = relaxed._dcg_full(torch.from_numpy(c), torch.from_numpy(gains), None, ranked, None).numpy()
    assert np.all(printed - ours <= bound * (1 + 1e-9))
    assert np.all(printed - ours >= 0)
    assert (printed - ours).max() > 1e-4


def test_tabled_discount_sums_are_sums_at_integers_and_smooth_between():
    table = discount_sum_table(300)
    sums = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, 302)))])
    assert table[0, ::DISCOUNT_KNOTS][:301] == pytest.approx(sums[:301], abs=1e-9)
    x = torch.arange(0, 300, 1 / DISCOUNT_KNOTS, dtype=torch.float64, requires_grad=True)
    continued = discount_sum(x)
    continued.sum().backward()
    assert table[0, : len(x)] == pytest.approx((continued - continued[0]).detach().numpy(), abs=1e-9)
    assert table[1, : len(x)] == pytest.approx(x.grad.numpy(), abs=1e-8)


@pytest.mark.parametrize("total", [1.5, 15.9, 16.0, 16.5, 32.1, 64.9, 255.99, 256.5, 1000.0])
def test_full_dcg_of_one_bin_is_the_mean_discount_up_to_its_total(total):
    """Whatever the size of the table that the total calls for, or falls just short of."""
    count = torch.tensor([[total]], dtype=torch.float64)
    value = relaxed._dcg_full(count, 3 * count, None, torch.ones(1, 1, dtype=torch.float64), None)
    expected = 3 * (discount_sum(count) - discount_sum(torch.zeros_like(count)))
    assert value.item() == pytest.approx(expected.item(), abs=1e-6)


def test_compiled_digamma_and_trigamma_are_those_of_scipy():
    arguments = np.array([1.0, 1.5, 2.0, 7.25, 9.999, 10.0, 1234.5, 1e6])
    assert [formulas.digamma(x) for x in arguments] == pytest.approx(digamma(arguments), abs=1e-12)
    assert [formulas.trigamma(x) for x in arguments] == pytest.approx(polygamma(1, arguments), abs=1e-12)


@pytest.mark.parametrize("before", [0.0, 0.3, 5.0, 40.0])
@pytest.mark.parametrize("away", [-9e-4, -4e-4, 0.0, 4e-4, 9e-4])
def test_curvature_of_a_bin_of_about_one_item_is_its_limit(before, away):
    """R = N / (c - 1), N = c - (C + 1)(psi(C + c + 1) - psi(C + 1)), by N's expansion about c = 1."""
    first, second, third = (polygamma(order, before + 2) for order in (1, 2, 3))
    by_count = -(before + 1) * second / 2
    value = 1 - (before + 1) * first
    by_before = -first - (before + 1) * second
    expected = (
        value + away * by_count,
        by_count - away * (before + 1) * third / 3,
        by_before + away * (-second - (before + 1) * third) / 2,
    )
    assert formulas._curvature(before, 1 + away) == pytest.approx(expected, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("delta", [1.0, 1.5])
def test_what_the_affinity_says_besides_changes_nothing(objective, delta, backend):
    """Its diagonal, its type and, but for NDCG, its levels."""
    codes, affinity = batch(5, 14, 8, 8, delta, levels=9)
    reference = value_and_gradient(objective, codes, affinity, 8, delta, backend)
    same = [affinity.to(dtype) for dtype in (torch.uint8, torch.int16, torch.int32)]
    same += [affinity.clone().fill_diagonal_(level) for level in (0, 1, -1, 1000)]  # two are out of range
    same += [] if objective.startswith("dcg") else [(affinity > 0).long()]
    for changed in same:
        found = value_and_gradient(objective, codes, changed, 8, delta, backend)
        assert all(torch.equal(*both) for both in zip(found, reference, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("level", [10, 60, 255])
def test_high_affinities_rank_as_formula_says_in_every_backend_and_precision(level, dtype):
    """One item of a high affinity: NDCG is its discount over that of the first rank, whatever the level."""
    codes = codes_at([0, 1, 2, 3], 4).to(dtype)
    affinity = torch.zeros(5, 5, dtype=torch.int64)
    affinity[0, 3] = level
    for backend in BACKENDS:
        for simplified in (True, False):
            value = relaxed.ndcg(codes, affinity, 4, simplified=simplified, backend=backend)[0]
            assert value.item() == pytest.approx(1 / math.log2(3 + 1), abs=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("objective", "empty"), [("ap_s", 0), ("ap_r", 0), ("dcg_s", 1), ("dcg_r", 1), ("mi", 0)]
)
def test_queries_without_relevant_items_have_their_value_and_no_gradient(objective, empty, backend):
    codes, _ = batch(6, 9, 6, 6, 1.0)
    none = torch.eye(9, dtype=torch.int64)
    values, gradient = value_and_gradient(objective, codes, none, 6, backend=backend)
    assert torch.equal(values, torch.full((9,), float(empty), dtype=torch.float64))
    assert torch.equal(gradient, torch.zeros_like(codes))


@pytest.mark.parametrize("backend", BACKENDS)
def test_mutual_information_of_a_batch_of_one_class_is_zero_and_never_exceeds_the_entropy(backend):
    codes, affinity = batch(6, 20, 6, 6, 1.0)
    values, gradient = value_and_gradient("mi", codes, torch.ones_like(affinity), 6, backend=backend)
    assert torch.equal(values, torch.zeros(20, dtype=torch.float64))
    assert torch.equal(gradient, torch.zeros_like(codes))
    values = relaxed.mutual_information(codes, affinity, 6, backend=backend)
    share = (affinity.fill_diagonal_(0) > 0).sum(1) / 19
    entropy = -(torch.xlogy(share, share) + torch.xlogy(1 - share, 1 - share)) / math.log(2)
    assert torch.all(values >= -1e-12)
    assert torch.all(values <= entropy + 1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("value", "said"),
    [
        (math.nan, "NaN"),
        *((value, f"between -1 and 1, .* not {value:g}$") for value in (math.inf, -math.inf, 3.25, -1.5)),
    ],
)
def test_codes_that_are_no_relaxed_bits_are_refused(backend, value, said):
    """Their distances would leave 0 to b: NDCG would be NaN, and mutual information exceed its entropy."""
    codes, affinity = batch(8, 10, 8, 8, 1.0, levels=3)
    codes[5, 2] = value
    with refused(pattern=f"^codes .*{said}") as caught:
        relaxed.ndcg(codes.requires_grad_(), affinity, 8, backend=backend)
    assert isinstance(caught.value, NotANumber) == math.isnan(value)
    codes = codes.detach()
    codes[5, 2] = -1.0 if value < 0 else 1.0  # the bits themselves are in range
    for objective in OBJECTIVES:
        assert torch.isfinite(evaluate(objective, codes, affinity, 8, 1.0, backend)).all()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("power", [1, 2])
def test_second_derivatives_are_refused(backend, power):
    """They are not offered: silence with a wrong value would be worse than an error."""
    codes, affinity = batch(9, 7, 5, 5, 1.0, levels=3)
    leaf = codes.clone().requires_grad_()
    objective = (relaxed.ndcg(leaf, affinity, 5, backend=backend) ** power).sum()
    (gradient,) = torch.autograd.grad(objective, leaf, create_graph=True)
    (plain,) = torch.autograd.grad((relaxed.ndcg(leaf, affinity, 5, backend=backend) ** power).sum(), leaf)
    assert torch.equal(gradient, plain)
    with pytest.raises(RuntimeError, match="differentiable once"):
        (objective + gradient.square().sum()).backward()


@pytest.mark.thorough
def test_the_tensor_path_needs_no_numba():
    codes, affinity = batch(12, 9, 6, 6, 1.0, levels=3)
    expected = [evaluate(name, codes, affinity, 6, backend="torch") for name in OBJECTIVES]
    script = f"""if True:
        import json, sys
        sys.modules["numba"] = None  # importing it fails
        import torch
        from tiebench.losses import relaxed
        codes = torch.tensor({codes.tolist()}, dtype=torch.float64)
        affinity = torch.tensor({affinity.tolist()})
        given, functions = (codes, affinity, 6), (relaxed.average_precision, relaxed.ndcg)
        values = [one(*given, simplified=simplified) for one in functions for simplified in (True, False)]
        print(json.dumps([value.tolist() for value in (*values, relaxed.mutual_information(*given))]))
        try:
            relaxed.ndcg(codes, affinity, 6, backend="compiled")
        except ValueError as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.PIPE, text=True)
    values, error = done.stdout.splitlines()
    assert json.loads(values) == [pytest.approx(value.tolist()) for value in expected]
    assert "Numba" in error


def good():
    return {"codes": torch.zeros(5, 4) + 0.1, "affinity": torch.eye(5, dtype=torch.int64), "bins": 4}


BAD = {
    "codes": [
        *(torch.zeros(shape) for shape in ((5,), (5, 4, 1), (5, 0), (0, 4))),
        *(torch.ones(5, 4, dtype=torch.int64), np.zeros((5, 4), np.float32)),
    ],
    "affinity": [
        *(torch.ones(shape, dtype=torch.int64) for shape in ((4, 4), (5,), (5, 4))),
        *(torch.eye(5), torch.eye(5).to(torch.complex64)),
    ],
    "bins": [0, -3, 2.5, math.inf, math.nan, True, "4"],
    "delta": [True, "1", 0.0, -1.0, math.nan, math.inf],
    "backend": ["numba"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in BAD for value in BAD[name]])
def test_bad_arguments_are_value_errors(name, value):
    with refused(name):
        relaxed.ndcg(**good() | {name: value})


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("objective", ["ap_s", "dcg_s"])
@pytest.mark.parametrize("level", [-1, 256, 1 << 40])
def test_affinities_out_of_range_are_value_errors(objective, level, backend):
    arguments = good()
    arguments["affinity"][1, 2] = level
    with refused("affinity"):
        evaluate(objective, arguments["codes"], arguments["affinity"], 4, 1.0, backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_autocast_changes_neither_values_nor_gradients(objective, backend):
    """It would round inner products, which become distances, to 16 bits, and compiled kernels take none."""
    outputs = torch.randn(64, 48, generator=torch.Generator().manual_seed(0))
    affinity = (torch.arange(64)[:, None] % 4 == torch.arange(64) % 4).long()
    found = []
    for cast in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=cast):
            found.append(value_and_gradient(objective, outputs.tanh(), affinity, 16, backend=backend))
    for one, other in zip(*found):
        assert one.dtype == other.dtype == torch.float32 and torch.equal(one, other)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_codes_of_16_bits_are_counted_in_more(objective, dtype):
    """Against the same rounded codes in double precision: what is left is the rounding of the results."""
    codes = torch.tanh(torch.randn(256, 48, generator=torch.Generator().manual_seed(1))).to(dtype)
    affinity = (torch.arange(256)[:, None] % 10 == torch.arange(256) % 10).long()
    values, gradient = value_and_gradient(objective, codes, affinity, 16)
    exact_values, exact_gradient = value_and_gradient(objective, codes.double(), affinity, 16)
    assert values.dtype == gradient.dtype == dtype and exact_values.dtype == torch.float64
    assert torch.allclose(values.double(), exact_values, rtol=0.01, atol=1e-4)
    both = gradient.double().flatten(), exact_gradient.flatten()
    assert torch.nn.functional.cosine_similarity(*both, 0) > 0.9999


def test_backends_agree_where_bins_hold_one_item_and_where_they_are_empty():
    """Of the torch backend the removable pole of AP_r at a count of 1, and the slope of DCG_r into an empty
    bin, are those of the compiled one."""
    generator = torch.Generator().manual_seed(2)
    for _ in range(100):
        codes = torch.randint(0, 2, (5, 2), generator=generator).double() * 2 - 1
        affinity = torch.randint(0, 2, (5, 5), generator=generator)
        affinity = affinity | affinity.T
        for objective, bins in (("ap_r", 1), ("dcg_r", 40)):
            given = codes, affinity, bins, 1.0
            grads = [value_and_gradient(objective, *given, backend)[1] for backend in BACKENDS]
            assert torch.allclose(*grads, rtol=0, atol=2e-6), (objective, codes, affinity)
    codes, affinity = torch.tensor([[1.0], [1.0], [-1.0]]).double(), torch.ones(3, 3, dtype=torch.long)
    _, gradient = value_and_gradient("dcg_r", codes, affinity, 40, backend="torch")
    assert gradient.abs().max() < 1e-12  # every order is ideal


def test_a_query_of_low_affinities_is_ranked_beside_one_of_high_ones():
    codes = torch.tanh(torch.randn(6, 8, generator=torch.Generator().manual_seed(3)))
    affinity = torch.ones(6, 6, dtype=torch.long)
    affinity[0] = torch.tensor([0, 1, 0, 1, 0, 1])
    affinity[1] = 200
    compiled, plain = (relaxed.ndcg(codes, affinity, 8, backend=backend) for backend in BACKENDS)
    assert torch.allclose(compiled, plain, atol=1e-5) and (plain[[0, 2, 3, 4, 5]] < 0.9999).all()


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_values_need_no_gradient_and_no_default_device(objective, backend):
    generator = torch.Generator().manual_seed(0)
    codes = torch.rand(7, 6, generator=generator, dtype=torch.float64) * 2 - 1
    affinity = torch.randint(0, 3, (7, 7), generator=generator)
    expected = evaluate(objective, codes, affinity, 6, backend=backend)
    for cached in (relaxed._discounts, relaxed._discount_table):
        cached.cache_clear()
    with torch.inference_mode(), torch.device("meta"):
        assert torch.equal(evaluate(objective, codes, affinity, 6, backend=backend), expected)
