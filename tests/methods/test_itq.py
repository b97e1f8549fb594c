"""ITQ: what its alternation guarantees, and what it refuses."""

import numpy as np
import pytest
from refusing import refused
from sets import mixed
from sklearn.decomposition import PCA

from methods.base import TrainingSet
from methods.itq import ITQ
from methods.learners import linear
from methods.learners.linear import leading_directions


def fit(vectors, records=None, **settings):
    log = (lambda record: None) if records is None else records.append
    return ITQ(**settings).fit(TrainingSet(vectors, affinity=None, log=log))


def assert_close(found, expected, most):
    """As pytest.approx, which compares matrices number by number in Python."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=most)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bits", [1, 5, 12])
def test_the_quantisation_error_never_rises(seed, bits):
    vectors, records = mixed(seed), []
    method = fit(vectors, records, bits=bits, seed=seed, iterations=40)
    errors = np.array([record["objective"] for record in records])
    assert len(errors) == 40
    assert np.all(np.diff(errors) <= 1e-12 * errors[0])
    # The rotation that is kept loses no more than the last one that was reported.
    rotated = (vectors.astype(np.float64) - method.mean) @ method.projections
    assert np.mean((np.where(rotated > 0, 1, -1) - rotated) ** 2) <= errors[-1] * (1 + 1e-12)
    assert bits == 1 or errors[-1] < errors[0]


@pytest.fixture(params=[True, False], ids=["leading", "whole"])
def leading_alone(request, monkeypatch):
    """Whether the leading pairs alone are found, as of many dimensions; else as of few."""
    if request.param:
        monkeypatch.setattr(linear, "_NARROW", 0)
        monkeypatch.setattr(linear, "_PUBLISHED", 0)
    return request.param


@pytest.mark.parametrize("shape", [(200, 12), (30, 400)])
@pytest.mark.parametrize("bits", [1, 4, 12])
@pytest.mark.usefixtures("leading_alone")
def test_projections_are_the_leading_principal_components_rotated(bits, shape):
    """Whether there are more items or more dimensions."""
    vectors = mixed(0, *shape)
    projections = fit(vectors, bits=bits).projections
    assert_close(projections.T @ projections, np.eye(bits), 1e-9)
    leading = PCA(bits, svd_solver="full").fit(vectors.astype(np.float64)).components_
    assert_close(projections @ projections.T, leading.T @ leading, 1e-6)


@pytest.mark.parametrize("rank", [None, 20])
@pytest.mark.parametrize("shape", [(200, 40), (40, 200), (130, 160), (40, 40)])
@pytest.mark.parametrize("count", [1, 4, 20, "all"])
def test_leading_directions_are_those_of_a_dense_decomposition(shape, rank, count, leading_alone):
    """Of more items or more dimensions, by Lanczos's method (up to a 32nd of them) and densely."""
    vectors = mixed(1, *shape, rank).astype(np.float64)
    centred = vectors - vectors.mean(axis=0)
    pairs = min(shape) if leading_alone and shape[0] < shape[1] else shape[1]
    count = pairs if count == "all" else count
    values, directions = leading_directions(centred, count, scale=3)
    assert values.shape == (count,)
    assert directions.shape == (shape[1], count)
    assert_close(directions.T @ directions, np.eye(count), 1e-12)

    expected, vectors = np.linalg.eigh(centred.T @ centred / 3)
    expected, vectors = expected[::-1], vectors[:, ::-1]
    assert values == pytest.approx(expected[:count], abs=1e-12 * expected[0])
    # Axes of eigenvalues that differ from all others; those of zero are any.
    known = min(count, rank or min(shape[0] - 1, shape[1]))
    gaps = -np.diff(np.append(expected, -np.inf))
    gaps = np.minimum(gaps, np.append(np.inf, gaps[:-1]))[:known]
    assert (gaps > 1e-5 * expected[0]).any()
    cosines = np.einsum("ij,ij->j", directions[:, :known], vectors[:, :known])
    assert (1 - np.abs(cosines))[gaps > 1e-5 * expected[0]] == pytest.approx(0, abs=1e-12)
    if leading_alone:
        assert (directions.max(axis=0) >= -directions.min(axis=0)).all()


@pytest.mark.usefixtures("leading_alone")
def test_equal_eigenvalues_give_the_same_bytes_and_all_their_directions():
    """Items of 150 classes, a dimension each: Lanczos's method begins again once its space is exhausted."""
    vectors = np.repeat(np.eye(150, 200), 2, axis=0)
    centred = vectors - vectors.mean(axis=0)
    values, directions = leading_directions(centred, 4)
    assert values == pytest.approx(2, abs=1e-12)
    assert_close(centred.T @ (centred @ directions), 2 * directions, 1e-12)
    assert_close(directions.T @ directions, np.eye(4), 1e-12)
    assert np.array_equal(leading_directions(centred, 4)[1], directions)


@pytest.mark.usefixtures("leading_alone")
def test_directions_without_variance_complete_an_orthonormal_set():
    """Of five items of three, repeated: as MACHash asks for more directions than there are."""
    vectors = mixed(0, count=3, dimensions=50)[[0, 1, 2, 0, 1]].astype(np.float64)
    centred = vectors - vectors.mean(axis=0)
    values, directions = leading_directions(centred, 9)
    assert directions.shape in ((50, 5), (50, 9))
    assert_close(directions.T @ directions, np.eye(directions.shape[1]), 1e-12)
    assert values[2:] == pytest.approx(0, abs=1e-12 * values[0])
    assert_close(centred @ directions @ directions.T, centred, 1e-9)


def test_the_rotation_solves_the_procrustes_problem_once_signs_are_settled():
    vectors = mixed()
    method = fit(vectors, bits=6, iterations=500)
    rotated = (vectors.astype(np.float64) - method.mean) @ method.projections
    signs = np.where(rotated > 0, 1.0, -1.0)
    # At the optimum of ||B - V R|| over rotations, B' V R is symmetric positive semi-definite.
    moment = signs.T @ rotated
    assert_close(moment, moment.T, 1e-6 * np.abs(moment).max())
    assert np.linalg.eigvalsh(moment).min() > -1e-6


@pytest.mark.parametrize(("shape", "possible"), [((200, 12, 4), 4), ((1,), 0), ((2,), 1), ((7,), 6)])
def test_more_bits_than_the_rank_are_refused_with_the_rank(shape, possible):
    """Few items span one dimension less than their number."""
    vectors = mixed(0, *shape)
    if possible:
        assert fit(vectors, bits=possible).encode(vectors).shape == (shape[0], possible)
    with refused(f"{possible} bits", f"not {possible + 1}"):
        fit(vectors, bits=possible + 1)


@pytest.mark.parametrize("value", [0, 0.1])
@pytest.mark.parametrize("shape", [(30, 5), (70, 90)])
@pytest.mark.usefixtures("leading_alone")
def test_equal_items_are_refused(shape, value):
    with refused():
        fit(np.full(shape, value, np.float32), bits=1)
