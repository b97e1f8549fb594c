"""Methods whose hash functions are signs of linear projections of centred items."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from methods.base import HashingMethod, Refusal
from tiebench._compiled import compiled

_ROWS = 512  # items whose projections are computed at once: they stay in the processor's cache
# Dimensions up to which the whole covariance is decomposed, in half a second, however few the items, and up
# to which it is where it is the smaller matrix: codes of 1280 features and of 32 x 32 pixels are published.
_NARROW, _PUBLISHED = 1280, 3072
# Lanczos is faster than a dense decomposition for at most one pair in so many; measured for 1,000 to 4,096.
_FEW = 32
_UNIT = 2.0**-24  # relative rounding error of float32


def principal_components(items, count, name):
    """(mean (d,), centred items (n, d), leading directions (d, count), their variances in descending order).

    items: (n, d), taken as float64. name: of the method, for the `Refusal` raised where the items have fewer
    than `count` directions of positive variance.
    """
    items = items.astype(np.float64)
    mean = items.mean(axis=0)
    items -= mean
    variances, directions = leading_directions(items, count, len(items))
    rank = int(np.sum(variances > variances[0] * 1e-10))
    if count > rank:
        raise Refusal(f"{name} makes at most {rank} bits from these items (their rank), not {count}")
    return mean, items, directions, variances


def leading_directions(centred, count, scale=1):
    """The largest eigenvalues of X' X / scale, descending, and their eigenvectors (principal components).

    centred: X, float64 (n, d). There are c = min(count, d) pairs: float64 (c,) and (d, c); where n < d and
    d > 1280 there are min(count, n).

    Of many dimensions the smaller one of X' X and X X' is decomposed, for the leading pairs alone, and the
    largest component of every direction is positive. Up to 1280 dimensions, and up to 3072 where there are as
    many items, the whole of X' X is decomposed and signs are LAPACK's: ITQ's codes depend on them, and keep
    the published bytes.
    """
    items, dimensions = centred.shape
    if dimensions <= _NARROW or dimensions <= min(items, _PUBLISHED):
        values, vectors = np.linalg.eigh(centred.T @ centred / scale)
        return values[: -count - 1 : -1], vectors[:, : -count - 1 : -1]
    matrix = centred @ centred.T if items < dimensions else centred.T @ centred
    matrix /= scale
    values, vectors = _leading_pairs(matrix, min(count, len(matrix)))
    if items < dimensions:
        # X' u is the direction times its singular value, so these columns are orthogonal up to rounding. Made
        # orthonormal from the first, each stays in place, and one without variance becomes any other.
        vectors = np.linalg.qr(centred.T @ vectors)[0]
    return values, with_definite_signs(vectors)


def with_definite_signs(directions):
    """The columns, float (d, c), each times 1 or -1, so that its largest component is positive.

    An eigenvector's sign is arbitrary, and may differ between linear algebra libraries.
    """
    largest = np.abs(directions).argmax(axis=0)
    return directions * np.sign(directions[largest, range(directions.shape[1])])


def _leading_pairs(matrix, count):
    """The `count` largest eigenvalues, descending, and their eigenvectors (m, count) of a symmetric matrix
    float64 (m, m), which may be overwritten."""
    size = len(matrix)
    if count > size // _FEW or not matrix.any():  # Lanczos has no start in a matrix of zeros
        from scipy.linalg import eigh

        values, vectors = eigh(matrix, subset_by_index=[size - count, size - 1], overwrite_a=True)
        return values[::-1], vectors[:, ::-1]
    from scipy.linalg.blas import dsymv
    from scipy.sparse.linalg import LinearOperator, eigsh

    # A symmetric product reads half of the matrix, which is what takes the time.
    products = LinearOperator(matrix.shape, lambda vector: dsymv(1.0, matrix.T, vector), dtype=np.float64)
    generator = np.random.default_rng(0)  # the same start always; a constant one is in the null space of X X'
    start = generator.standard_normal(size)
    values, vectors = eigsh(products, count, which="LA", v0=start, rng=generator)
    descending = np.argsort(-values, kind="stable")
    return values[descending], vectors[:, descending]


def signs_of_projections(items, weights, thresholds):
    """The bits [w_k x > t_k], as float64 arithmetic has them, at about the cost of float32: bool (n, bits).

    items: (n, d); weights: float64 (d, bits); thresholds: float64 (bits,).

    Sums are rounded in float32 first. In whatever order d products are added, the result is off by less than
    (d + 1) u |x| |w|, u = 2^-24, and rounding w adds u |x| |w| (Higham, Accuracy and Stability of Numerical
    Algorithms, 3.1 and 3.5). The few sums that are nearer to their threshold are computed again in float64,
    and so is what float32 cannot hold.
    """
    if not np.can_cast(items.dtype, np.float32):
        return items @ weights > thresholds
    # Of length 1, so that no weight is too large or too small for float32. By the largest first: float64 may
    # not hold its square.
    for norm in (np.inf, 2):
        scale = np.linalg.norm(weights, norm, axis=0)
        scale[scale == 0] = 1
        weights, thresholds = weights / scale, thresholds / scale
    singles, limits = weights.astype(np.float32), thresholds.astype(np.float32)
    relative = np.float32(1.01 * (len(weights) + 4) * _UNIT)
    # Of a rounded threshold, of the subtraction, and of what is too small for float32.
    absolute = (4 * _UNIT * np.abs(limits) + np.finfo(np.float32).tiny).astype(np.float32)
    rows_of_weights = np.ascontiguousarray(weights.T)
    codes = np.empty((len(items), weights.shape[1]), bool)
    with np.errstate(over="ignore", invalid="ignore"):
        for begin in range(0, len(items), _ROWS):
            block = np.ascontiguousarray(items[begin : begin + _ROWS], np.float32)
            sums = block @ singles
            sums -= limits
            bits = codes[begin : begin + _ROWS]
            np.greater(sums, 0, out=bits)
            lengths = np.sqrt(np.einsum("ij,ij->i", block, block))
            # Written so that what is not a number is computed again, too.
            places = np.nonzero(~(np.abs(sums, out=sums) > relative * lengths[:, None] + absolute))
            bits[places] = _exact(block, rows_of_weights, *places) > thresholds[places[1]]
    return codes


@compiled(
    "float64[::1](float32[:, ::1], float64[:, ::1], int64[:], int64[:])", fastmath={"contract", "reassoc"}
)
def _exact(items, weights, rows, columns):
    """Inner products of items (n, d) and weights (bits, d) for pairs (row, column)."""
    found = np.empty(len(rows))
    for pair in range(len(rows)):
        item, weight = items[rows[pair]], weights[columns[pair]]
        total = 0.0
        for place in range(items.shape[1]):
            total += item[place] * weight[place]
        found[pair] = total
    return found


@dataclass(kw_only=True)
class LinearProjections(HashingMethod):
    """Encodes with `mean` (d,) and `projections` (d, bits), which `fit` sets."""

    learned: ClassVar[tuple[str, ...]] = ("mean", "projections")

    if TYPE_CHECKING:  # `fit` of each method sets what `learned` names

        def __getattr__(self, name: str) -> np.ndarray: ...

    def encode_block(self, items):
        if self.projections.dtype != np.float64:
            return self.raw_scores(items) > 0
        items = np.reshape(items[:], (len(items), -1))
        return signs_of_projections(items, self.projections, self.mean @ self.projections)

    def raw_scores(self, items):
        return (np.reshape(items[:], (len(items), -1)) - self.mean) @ self.projections
