"""Signs of projections, computed in float32 first, against float64 and against exact arithmetic."""

import math

import numpy as np
import pytest

from methods.learners import linear
from methods.learners.linear import signs_of_projections


def wide(items, weights, thresholds):
    return items.astype(np.float64) @ weights > thresholds


@pytest.mark.parametrize("features", [1, 64, 1000])
@pytest.mark.parametrize("count", [0, 1, linear._ROWS, 2 * linear._ROWS + 7])
def test_bits_are_those_of_float64(features, count):
    generator = np.random.default_rng(features + count)
    items = generator.random((count, features), np.float32)
    weights = generator.standard_normal((features, 24))
    thresholds = items.mean(axis=0, dtype=np.float64) @ weights if count else np.zeros(24)
    codes = signs_of_projections(items, weights, thresholds)
    assert codes.dtype == bool
    # One item is its own mean: its sums are the thresholds but for rounding, which nothing decides.
    sure = np.abs(items.astype(np.float64) @ weights - thresholds) > 1e-12
    assert (codes == wide(items, weights, thresholds))[sure].all()


def test_sums_that_float32_cannot_tell_from_their_threshold_are_computed_again():
    """Thresholds a little below and above the exact sums of the items, which are on every row near one."""
    generator = np.random.default_rng(0)
    items = generator.random((200, 300), np.float32)
    directions = generator.standard_normal((300, 200))
    sums = [
        math.fsum(float(x) * w for x, w in zip(item, direction))
        for item, direction in zip(items, directions.T)
    ]
    narrow = items @ directions.astype(np.float32)
    for shift, expected in ((-1e-10, True), (1e-10, False)):
        thresholds = np.array(sums) + shift
        assert (np.diagonal(signs_of_projections(items, directions, thresholds)) == expected).all()
        assert (np.diagonal(narrow > thresholds.astype(np.float32)) != expected).sum() > 20


@pytest.mark.parametrize("scale", [1e-40, 1e-30, 1.0, 1e30, 1e36])
@pytest.mark.parametrize("of_weights", [1e-250, 1e-30, 1.0, 1e30, 1e250])
def test_no_scale_of_items_or_weights_changes_a_bit(scale, of_weights):
    generator = np.random.default_rng(1)
    items = (scale * (generator.random((100, 50)) - 0.5)).astype(np.float32)
    weights = of_weights * generator.standard_normal((50, 16)) * 10.0 ** generator.integers(-8, 9, (50, 16))
    # Thresholds that are sums of items: as near as it gets.
    sums = items.astype(np.float64) @ weights
    thresholds = sums[np.arange(16), np.arange(16)]
    codes, expected = signs_of_projections(items, weights, thresholds), sums > thresholds
    codes[np.arange(16), np.arange(16)] = expected[np.arange(16), np.arange(16)] = False
    assert np.array_equal(codes, expected)


def test_what_is_no_number_and_bits_without_weights_are_as_in_float64():
    items = np.array([[np.nan, 1], [np.inf, 1], [-np.inf, 1], [3e38, 3e38], [0, 0]], np.float32)
    weights = np.array([[1.0, 0.0, -1.0], [1.0, 0.0, 2.0]])
    for thresholds in (np.zeros(3), np.array([1.0, -1.0, 0.0])):
        with np.errstate(invalid="ignore"):
            expected = wide(items, weights, thresholds)
        assert np.array_equal(signs_of_projections(items, weights, thresholds), expected)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float16, np.int32, np.float64])
def test_items_of_every_type_are_taken_at_their_value(dtype):
    generator = np.random.default_rng(2)
    items = generator.integers(0, 200, (300, 40)).astype(dtype)
    # Of float64 more than float32 holds.
    items = items + 1e-9 * generator.random(items.shape) if dtype == np.float64 else items
    weights = generator.standard_normal((40, 16))
    sums = items.astype(np.float64) @ weights
    thresholds = sums[0] - 1e-9
    assert np.array_equal(signs_of_projections(items, weights, thresholds), sums > thresholds)


def test_a_strip_of_items_is_as_its_copy():
    generator = np.random.default_rng(3)
    items = generator.random((50, 80), np.float32)[::2, 10:60]
    weights, thresholds = generator.standard_normal((50, 9)), generator.standard_normal(9)
    codes = signs_of_projections(items, weights, thresholds)
    assert np.array_equal(codes, signs_of_projections(items.copy(), weights, thresholds))
