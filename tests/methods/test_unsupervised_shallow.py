"""Sign, LSH, PCAH, SH, SpH, AGH and SGH at their core steps: enumeration, loops, full eigenproblems."""

import math

import numpy as np
import pytest
from refusing import refused
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from sets import mixed
from sklearn.decomposition import PCA

from methods.agh import AnchorGraphHashing
from methods.base import TrainingSet
from methods.learners.eigenproblem import LeadingEigenvector
from methods.learners.kernels import gaussian_kernel, squared_distances
from methods.lsh import LSH
from methods.pcah import PCAH
from methods.sgh import ScalableGraphHashing, graph_factors
from methods.sh import SpectralHashing, lowest_modes
from methods.sign import Sign
from methods.sph import SphericalHashing, mean_forces


def fit(kind, items, **settings):
    return kind(**settings).fit(TrainingSet(items, affinity=None))


THRESHOLDS = {
    "zero": lambda x: np.zeros(x.shape[1]),
    "mean": lambda x: x.mean(axis=0),
    "median": lambda x: np.median(x, axis=0),
}


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_sign_compares_each_dimension_with_its_threshold(threshold):
    items, others = mixed(), mixed(1, 30) - 2
    method = fit(Sign, items, bits=7, threshold=threshold)
    expected = others[:, :7] > THRESHOLDS[threshold](items.astype(np.float64))[:7]
    assert np.array_equal(method.encode(others), expected)


@pytest.mark.parametrize(
    ("kind", "items", "settings", "said"),
    [
        (Sign, mixed(), {"bits": 13}, "12 from these items, not 13"),
        (PCAH, mixed(rank=5), {"bits": 6}, "pcah makes at most 5 bits"),
        (SpectralHashing, np.ones((9, 3)), {"bits": 4}, "sh needs training items that differ"),
        (AnchorGraphHashing, mixed(), {"bits": 12, "anchors": 10}, "at most 9 bits with 10 anchors, not 12"),
        (AnchorGraphHashing, mixed(), {"anchors": 10, "neighbours": 11}, "neighbours must be at most 10"),
    ],
)
def test_what_cannot_be_made_of_some_items_is_refused(kind, items, settings, said):
    with refused(said):
        fit(kind, items, **settings)


def test_lsh_takes_the_signs_of_projections_of_centred_items():
    items, others = mixed(), mixed(1, 50)
    method = fit(LSH, items, bits=16)
    projected = (others - items.mean(axis=0, dtype=np.float64)) @ method.projections
    clear = np.abs(projected) > 1e-3
    assert np.array_equal(method.encode(others)[clear], (projected > 0)[clear])
    assert clear.mean() > 0.9


def test_pcah_takes_the_signs_of_scikit_learns_components():
    items, others = mixed(), mixed(1, 50)
    method = fit(PCAH, items, bits=6)
    components = PCA(6).fit(items.astype(np.float64))
    projected = components.transform(others.astype(np.float64))
    codes = method.encode(others)
    for bit in range(6):  # the sign of a direction is free
        agreement = np.mean(codes[:, bit] == (projected[:, bit] > 0))
        assert agreement in (0.0, 1.0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("bits", [1, 3, 8, 16])
def test_sh_takes_the_lowest_frequencies_of_all_candidates(seed, bits):
    ranges = np.random.default_rng(seed).uniform(0.2, 3, 4)
    most = [math.ceil((bits + 1) * r / ranges.max()) for r in ranges]
    candidates = sorted(((math.pi * m / ranges[j]) ** 2, j, m) for j in range(4) for m in range(1, most[j]))
    component, mode = lowest_modes(ranges, bits)
    assert list(zip(component, mode)) == [(j, m) for _, j, m in candidates[:bits]]


def test_sh_bits_are_the_eigenfunctions_of_the_box():
    """On a uniform box the first mode of a direction splits its range in halves, the second in quarters."""
    generator = np.random.default_rng(0)
    items = np.stack([generator.uniform(0, 8, 4000), generator.uniform(0, 1, 4000)], axis=1)
    items = np.concatenate([items, [[0, 0], [8, 1], [0, 1], [8, 0]]]).astype(np.float32)
    codes = fit(SpectralHashing, items, bits=2).encode(items)
    along = items[:, 0]
    clear = (np.abs(along - 4) > 0.3) & (np.abs(along - 2) > 0.3) & (np.abs(along - 6) > 0.3)
    first, second = along < 4, (along < 2) | (along > 6)
    assert np.mean((codes[:, 0] == first)[clear]) in (0.0, 1.0)
    assert np.mean((codes[:, 1] == second)[clear]) == 1.0  # symmetric: the direction's sign does not matter


def test_sh_takes_no_mode_of_a_constant_dimension():
    items = mixed(dimensions=7)
    wide = np.insert(items, 3, 2.0, axis=1)
    plain, other = (fit(SpectralHashing, of, bits=16).encode(of) for of in (items, wide))
    assert plain.shape == (200, 16)
    agreement = (plain == other).mean(axis=0)  # the sign of a component is the solver's
    assert np.minimum(agreement, 1 - agreement).max() < 0.02


def test_sph_forces_are_those_of_loops():
    generator = np.random.default_rng(0)
    centres, shared = generator.normal(size=(5, 3)), generator.integers(0, 40, (5, 5)).astype(float)
    shared = shared + shared.T
    expected = np.zeros((5, 3))
    for i in range(5):
        for j in range(5):
            if i != j:
                expected[i] += 0.5 * (shared[i, j] - 20) / 20 * (centres[i] - centres[j])
    assert mean_forces(centres, shared, 20.0) == pytest.approx(expected / 5)


@pytest.mark.parametrize("bits", [1, 2, 8])
def test_sph_spheres_hold_half_of_the_items_and_share_a_quarter(bits):
    items = mixed(2, 400)
    method = fit(SphericalHashing, items, bits=bits, max_iterations=300)
    codes = method.encode(items)
    assert (codes.sum(axis=0) == 200).all()
    if bits > 1:
        shared = [(codes[:, i] & codes[:, j]).sum() for i in range(bits) for j in range(i)]
        assert np.mean(np.abs(np.array(shared) - 100)) <= 0.1 * 100
    inside = squared_distances(items, method.centres) <= method.radii
    assert np.array_equal(codes, inside)


def test_sph_ends_where_the_shared_numbers_deviate_little_enough():
    records = []
    method = SphericalHashing(bits=6, tolerance=9.0, deviation=0.1)
    method.fit(TrainingSet(mixed(0, 400), affinity=None, log=records.append))
    *before, last = (record["deviation"] for record in records)
    assert before and min(before) > 0.1 >= last


def test_sph_radii_belong_to_the_last_centres_where_the_iterations_run_out():
    items = mixed(3, 100)
    method = fit(SphericalHashing, items, bits=6, max_iterations=2, tolerance=0.0)
    assert (method.encode(items).sum(axis=0) == 50).all()


def test_agh_bits_are_eigenvectors_of_the_graph_of_all_items():
    """The n x n anchor graph Z Lambda^-1 Z' itself: its leading eigenvectors after the constant one."""
    items = mixed(4, 150)
    method = fit(AnchorGraphHashing, items, bits=4, anchors=20, neighbours=3)
    weights = method.anchor_weights(items.astype(np.float64))
    assert weights.sum(axis=1) == pytest.approx(np.ones(150))
    assert ((weights > 0).sum(axis=1) == 3).all()
    values, graph_vectors = np.linalg.eigh(weights / weights.sum(axis=0) @ weights.T)
    assert values[-1] == pytest.approx(1)
    outputs = weights @ method.weights
    for bit in range(4):
        vector = graph_vectors[:, -2 - bit]
        assert abs(vector @ outputs[:, bit]) == pytest.approx(np.linalg.norm(outputs[:, bit]), rel=1e-6)
        assert np.linalg.norm(outputs[:, bit]) == pytest.approx(math.sqrt(150), rel=1e-6)


def test_agh_leaves_out_the_eigenvector_that_tells_parts_apart_which_hardly_hang_together():
    generator, parts = np.random.default_rng(0), np.repeat([0, 1], 3000)
    share = generator.random(6000)
    given = np.zeros((6001, 4))
    given[np.arange(6000), 2 * parts], given[np.arange(6000), 2 * parts + 1] = share, 1 - share
    given[6000, [0, 2]] = 0.5  # the one item between them

    class Given(AnchorGraphHashing):
        def anchor_weights(self, items):
            return given

    scaled = given / np.sqrt(given.sum(axis=0))
    values = np.linalg.eigvalsh(scaled.T @ scaled)
    assert 1e-6 < 1 - values[-2] < 1e-3 < 1 - values[-3]
    codes = fit(Given, mixed(7, 6001), bits=2, anchors=4, neighbours=2).encode(mixed(7, 6001))
    for bit, part in ((0, 0), (0, 1), (1, 0), (1, 1)):
        assert 0.2 < codes[:6000][parts == part, bit].mean() < 0.8


def test_agh_weights_are_normalised_gaussians_of_the_nearest_anchors():
    items = mixed(5, 60).astype(np.float64)
    method = fit(AnchorGraphHashing, items.astype(np.float32), bits=2, anchors=10, neighbours=2)
    weights = method.anchor_weights(items)
    for item, row in zip(items, weights):
        distances = np.square(method.anchor_items - item).sum(axis=1)
        nearest = np.argsort(distances)[:2]
        values = np.exp(-distances[nearest] / method.width**2)
        assert row[nearest] == pytest.approx(values / values.sum())


def test_agh_width_is_the_mean_distance_to_the_last_neighbour():
    items = mixed(5, 60)
    method = fit(AnchorGraphHashing, items, bits=2, anchors=10, neighbours=3)
    distances = [sorted(np.linalg.norm(method.anchor_items - item, axis=1))[2] for item in items]
    assert method.width == pytest.approx(np.mean(distances))


def test_agh_encodes_items_far_from_all_anchors():
    items = mixed(6, 80)
    method = fit(AnchorGraphHashing, items, bits=3, anchors=12)
    assert np.isfinite(method.anchor_weights(items.astype(np.float64) * 1e4)).all()


def test_sgh_factors_approximate_the_graph():
    items = np.random.default_rng(0).normal(size=(40, 6))
    items /= np.linalg.norm(items, axis=1, keepdims=True)
    left, right = graph_factors(items, 2.0)
    graph = 2 * np.exp(-squared_distances(items, items) / 2.0) - 1
    cosines = items @ items.T
    # exp(t) on [-1, 1] against the line through its ends: exact there, off by most in between.
    line = math.exp(-1) * (math.e - 1 / math.e) * cosines + math.exp(-1) * (math.e + 1 / math.e) - 1
    assert left @ right.T == pytest.approx(line)
    assert np.abs(left @ right.T - graph).max() < 0.42


@pytest.mark.parametrize("size", [1, 7, 90])
def test_leading_eigenvectors_are_those_of_the_generalised_problem(size):
    generator = np.random.default_rng(1)
    matrix, half = generator.normal(size=(size, size)), generator.normal(size=(size, size + 2))
    gram, vector = half @ half.T, generator.normal(size=size)
    problem = LeadingEigenvector(matrix, gram, generator)
    matrix = (matrix + matrix.T) / 2
    for factor in (0, -3, 1):
        problem.add(vector, factor)
        matrix += factor * np.outer(vector, vector)
        values, full = eigh(matrix, gram)
        found = problem.find()
        assert found @ gram @ found == pytest.approx(1)
        assert found @ matrix @ found == pytest.approx(values[-1])
        assert abs(found @ gram @ full[:, -1]) == pytest.approx(1)


def test_leading_eigenvectors_that_arpack_does_not_find():
    generator = np.random.default_rng(2)
    basis, _ = np.linalg.qr(generator.normal(size=(90, 90)))
    matrix = basis @ np.diag([1e-9, *-np.logspace(2, 9, 89)]) @ basis.T
    with pytest.raises(ArpackNoConvergence):
        eigsh(matrix, 1, which="LA", v0=generator.normal(size=90), maxiter=50)
    found = LeadingEigenvector(matrix, np.eye(90), generator).find()
    assert abs(found @ basis[:, 0]) == pytest.approx(1)


def test_sgh_reproduces_the_graph_better_than_random_hyperplanes():
    items = mixed(7, 300)
    method = fit(ScalableGraphHashing, items, bits=16, anchors=100)
    centred = items - items.mean(axis=0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    graph = 2 * np.exp(-squared_distances(unit, unit) / 2) - 1
    planes = np.random.default_rng(0).normal(size=(12, 16))

    def loss(codes):
        signs = np.where(codes, 1.0, -1.0)
        return np.mean((graph - signs @ signs.T / 16) ** 2)

    assert loss(method.encode(items)) < 0.75 * loss(unit @ planes > 0)


def test_sgh_variance_is_the_mean_squared_distance_of_centred_unit_items_and_anchors():
    items = mixed(7, 60).astype(np.float64)
    method = fit(ScalableGraphHashing, items.astype(np.float32), bits=2, anchors=20)
    centred = items - items.mean(axis=0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    distances = [np.square(item - anchor).sum() for item in unit for anchor in method.anchor_items]
    assert method.variance == pytest.approx(np.mean(distances))


def test_sgh_solves_each_bit_again_in_a_second_pass(monkeypatch):
    class Kept(LeadingEigenvector):
        def find(self):
            found.append(super().find())
            return found[-1]

    found = []
    monkeypatch.setattr("methods.sgh.LeadingEigenvector", Kept)
    method = fit(ScalableGraphHashing, mixed(7, 100), bits=5, anchors=20)
    assert len(found) == 10
    assert {tuple(weights) for weights in method.weights.T} == {tuple(weights) for weights in found[5:]}


def test_the_gaussian_kernel_is_that_of_loops():
    one, other = mixed(8, 5).astype(np.float64), mixed(9, 4).astype(np.float64)
    expected = [[math.exp(-sum((a - b) ** 2) / (2 * 50.0)) for b in other] for a in one]
    assert gaussian_kernel(one, other, 50.0) == pytest.approx(np.array(expected))
