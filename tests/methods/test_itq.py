"""ITQ: what its alternation guarantees, and what it refuses."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from methods.base import Refusal, TrainingSet
from methods.itq import ITQ
from methods.learners import linear
from methods.learners.linear import leading_directions


def items(seed=0, count=200, dimensions=12, rank=None):
    generator = np.random.default_rng(seed)
    rank = rank or dimensions
    mixed = generator.normal(size=(count, rank)) @ generator.normal(size=(rank, dimensions))
    return (mixed + 3).astype(np.float32)


def fit(vectors, records=None, **settings):
    log = (lambda record: None) if records is None else records.append
    return ITQ(**settings).fit(TrainingSet(vectors, affinity=None, log=log))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bits", [1, 5, 12])
def test_the_quantisation_error_never_rises(seed, bits):
    vectors, records = items(seed), []
    method = fit(vectors, records, bits=bits, seed=seed, iterations=40)
    errors = np.array([record["objective"] for record in records])
    assert len(errors) == 40
    assert np.all(np.diff(errors) <= 1e-12 * errors[0])
    # The rotation that is kept loses no more than the last one that was reported.
    rotated = (vectors.astype(np.float64) - method.mean) @ method.projections
    assert np.mean((np.where(rotated > 0, 1, -1) - rotated) ** 2) <= errors[-1] * (1 + 1e-12)
    assert bits == 1 or errors[-1] < errors[0]


@pytest.mark.parametrize("shape", [(200, 12), (30, 400)])
@pytest.mark.parametrize("bits", [1, 4, 12])
def test_projections_are_the_leading_principal_components_rotated(bits, shape, monkeypatch):
    """Whether there are more items or more dimensions."""
    monkeypatch.setattr(linear, "_NARROW", 100)
    vectors = items(0, *shape)
    projections = fit(vectors, bits=bits).projections
    assert projections.T @ projections == pytest.approx(np.eye(bits), abs=1e-9)
    leading = PCA(bits, svd_solver="full").fit(vectors.astype(np.float64)).components_
    assert projections @ projections.T == pytest.approx(leading.T @ leading, abs=1e-6)


@pytest.mark.parametrize("shape", [(200, 12), (30, 400), (12, 12)])
def test_leading_directions_are_those_of_the_singular_value_decomposition(shape, monkeypatch):
    monkeypatch.setattr(linear, "_NARROW", 100)
    vectors = items(1, *shape).astype(np.float64)
    centred = vectors - vectors.mean(axis=0)
    values, directions = leading_directions(centred, 8, scale=3)
    _, singular, axes = np.linalg.svd(centred, full_matrices=False)
    assert values == pytest.approx(singular**2 / 3, abs=1e-12 * singular[0] ** 2)
    assert np.abs(axes[:8] @ directions) == pytest.approx(np.eye(8), abs=1e-7)
    assert directions.T @ directions == pytest.approx(np.eye(8), abs=1e-12)


def test_directions_without_variance_complete_an_orthonormal_set(monkeypatch):
    """Of five items of three, repeated: as MACHash asks for more directions than there are."""
    monkeypatch.setattr(linear, "_NARROW", 10)
    vectors = items(0, count=3, dimensions=50)[[0, 1, 2, 0, 1]].astype(np.float64)
    centred = vectors - vectors.mean(axis=0)
    values, directions = leading_directions(centred, 9)
    assert directions.shape == (50, 5)
    assert directions.T @ directions == pytest.approx(np.eye(5), abs=1e-12)
    assert values[2:] == pytest.approx(0, abs=1e-12 * values[0])
    assert centred @ directions @ directions.T == pytest.approx(centred, abs=1e-9)


def test_the_rotation_solves_the_procrustes_problem_once_signs_are_settled():
    vectors = items()
    method = fit(vectors, bits=6, iterations=500)
    rotated = (vectors.astype(np.float64) - method.mean) @ method.projections
    signs = np.where(rotated > 0, 1.0, -1.0)
    # At the optimum of ||B - V R|| over rotations, B' V R is symmetric positive semi-definite.
    moment = signs.T @ rotated
    assert moment == pytest.approx(moment.T, abs=1e-6 * np.abs(moment).max())
    assert np.linalg.eigvalsh(moment).min() > -1e-6


def test_more_bits_than_the_rank_are_refused_with_the_rank():
    vectors = items(rank=4)
    assert fit(vectors, bits=4).encode(vectors).shape == (200, 4)
    with pytest.raises(Refusal) as caught:
        fit(vectors, bits=5)
    assert "4 bits" in str(caught.value)
    assert "not 5" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("count", "possible"), [(1, 0), (2, 1), (7, 6)])
def test_few_items_span_one_dimension_less_than_their_number(count, possible):
    vectors = items(count=count)
    if possible:
        assert fit(vectors, bits=possible).encode(vectors).shape == (count, possible)
    with pytest.raises(Refusal):
        fit(vectors, bits=possible + 1)


def test_equal_items_are_refused():
    with pytest.raises(Refusal):
        fit(np.full((30, 5), 0.1, np.float32), bits=1)
