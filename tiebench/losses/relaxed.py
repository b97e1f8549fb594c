"""Differentiable relaxations of the tie-aware metrics, as losses for any training loop (He et al. 2018).

Each item of a mini-batch is a query against the rest. Real-valued codes in (-1, 1)^b have real-valued
distances d = (b - <u, v>) / 2 (eq. (hamming_dist)); soft histograms count them into bins (eq. (delta)); the
objectives are functions of the histograms with hand-written derivatives (appendix, 'Efficient Minibatch
Backpropagation'). Time and memory are O(M^2) plus three matrix products, independent of the number of bins
and of affinity levels.

Objectives grow with quality: a loss is minus their mean.

>>> import torch
>>> from tiebench import relaxed
>>> outputs = torch.tensor([[2.0, 1.0], [1.0, 2.0], [-2.0, 1.0], [-1.0, -2.0]], requires_grad=True)
>>> labels = torch.tensor([0, 0, 1, 1])
>>> codes = torch.tanh(outputs)  # (M, b) in (-1, 1)
>>> affinity = labels[:, None] == labels  # (M, M)
>>> loss = -relaxed.average_precision(codes, affinity, bins=2).mean()
>>> loss.backward()
>>> outputs.grad.shape
torch.Size([4, 2])

Codes on the CPU are served by a compiled kernel where Numba is installed (`backend="compiled"`), others, and
all codes without Numba, by tensor operations (`backend="torch"`), which are slower on a CPU. Both give the
same values and gradients up to rounding. The functions are differentiable once.
"""

import math
import numbers
from functools import lru_cache

import numpy as np
import torch

from tiebench._compiled import NUMBA
from tiebench.rankings.discount_sums import DISCOUNT_KNOTS, discount_sum_table
from tiebench.values import NotANumber, form, integer, is_tensor

if NUMBA:
    from tiebench.losses import kernels

BACKENDS = ("auto", "compiled", "torch")
MAX_AFFINITY = 255


def average_precision(
    codes: torch.Tensor,
    affinity: torch.Tensor,
    bins: int,
    delta: float = 1.0,
    simplified: bool = True,
    backend: str = "auto",
) -> torch.Tensor:
    """Relaxed tie-aware average precision of each item as query against the rest of the batch.

    Parameters
    ----------
    codes : tensor (M, b)
        In (-1, 1), of any floating-point type and device.
    affinity : tensor (M, M)
        Integers or bool on that device; > 0 is relevant, the diagonal is ignored.
    bins : int
        Number of intervals, so there are bins + 1 histogram centres 0, b/bins, ..., b.
    delta : float
        Half-width of the triangular kernel in units of b/bins (eq. (delta)). 1 interpolates between two
        neighbouring centres; other values follow the formula literally, so an item's shares then do not sum
        to 1.
    simplified : bool
        AP_s (appendix, eq. (ap_s)); otherwise AP_r, tie-aware AP with real counts (Proposition 2, its
        harmonic sums continued by the digamma function: exact for codes in {-1, +1} with bins = b).
    backend : str
        "auto", "compiled" or "torch".

    Returns
    -------
    tensor (M,)
        Of the codes' type and device, to be maximised; a query without relevant items has 0 and no gradient.

    Raises
    ------
    ValueError
        For codes outside [-1, 1] (`values.NotANumber` for NaN), and for shapes, bins or affinities that do
        not fit.

    Examples
    --------
    >>> import torch
    >>> from tiebench import relaxed
    >>> codes = torch.tensor([[1.0, 1.0], [1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0]])
    >>> affinity = torch.tensor([[1, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 1]])
    >>> relaxed.average_precision(codes, affinity, bins=2, simplified=False)
    tensor([0.9167, 1.0000, 1.0000, 0.9167])
    """
    return _evaluate(codes, affinity, bins, delta, "ap_s" if simplified else "ap_r", backend)


def ndcg(
    codes: torch.Tensor,
    affinity: torch.Tensor,
    bins: int,
    delta: float = 1.0,
    simplified: bool = True,
    backend: str = "auto",
) -> torch.Tensor:
    """Relaxed tie-aware NDCG of each item as query against the rest of the batch.

    Parameters
    ----------
    codes, bins, delta, backend
        As of `average_precision`.
    affinity : tensor (M, M)
        Integers 0..255, of gain 2^affinity - 1.
    simplified : bool
        DCG_s (appendix, eq. (dcg_s)), on binary codes a lower bound of tie-aware DCG; otherwise DCG_r
        (Proposition 2, its discount sums continued to real counts); both over the ideal DCG of the rest of
        the batch.

    Returns
    -------
    tensor (M,)
        To be maximised; a query with nothing relevant has 1 and no gradient.
    """
    return _evaluate(codes, affinity, bins, delta, "dcg_s" if simplified else "dcg_r", backend)


def mutual_information(
    codes: torch.Tensor,
    affinity: torch.Tensor,
    bins: int,
    delta: float = 1.0,
    backend: str = "auto",
) -> torch.Tensor:
    """Mutual information, in bits, of the distance to an item and its being relevant (MIHash).

    Cakir et al., ICCV 2017 (arXiv 1703.08919): I(D; C) = H(D) - H(D | C) on the soft histograms that
    `average_precision` describes; arguments as there.

    Returns
    -------
    tensor (M,)
        To be maximised; a query to which nothing or everything is relevant has 0.
    """
    return _evaluate(codes, affinity, bins, delta, "mi", backend)


_OBJECTIVES = ("ap_s", "ap_r", "dcg_s", "dcg_r", "mi")  # in the order of the kernels' numbers


def _evaluate(codes, affinity, bins, delta, objective, backend):
    for name, given in (("codes", codes), ("affinity", affinity)):
        if not is_tensor(given):
            raise ValueError(f"{name} must be a tensor, not {type(given).__name__}")
    if codes.ndim != 2 or 0 in codes.shape or not codes.is_floating_point():
        raise ValueError(f"codes must be floats (M, b), M and b >= 1, not {form(codes)}")
    items = codes.shape[0]
    if affinity.shape != (items, items) or affinity.is_floating_point() or affinity.is_complex():
        raise ValueError(f"affinity must be integers ({items}, {items}), not {form(affinity)}")
    if affinity.device != codes.device:
        raise ValueError(f"affinity is on {affinity.device}, codes are on {codes.device}")
    bins = integer(bins, "bins", 1)
    given = isinstance(delta, (numbers.Real, np.generic)) and not isinstance(delta, (bool, np.bool_))
    if not (given and math.isfinite(delta) and delta > 0):
        raise ValueError(f"delta must be a positive number, not {delta!r}")
    if backend not in BACKENDS:
        raise ValueError(f"backend must be one of {BACKENDS}, not {backend!r}")
    compiled = codes.device.type == "cpu" and NUMBA and codes.dtype in (torch.float32, torch.float64)
    if backend == "compiled" and not compiled:
        raise ValueError("the compiled backend needs Numba, and codes on the CPU in float32 or float64")
    if backend == "auto":
        backend = "compiled" if compiled else "torch"
    function = _Compiled if backend == "compiled" else _Tensors
    wide = codes.float() if codes.element_size() < 4 else codes  # histograms need more than 16 bits
    with _in_full_precision(codes):
        return function.apply(wide, affinity, bins, float(delta), objective).to(codes.dtype)


def _in_full_precision(codes):
    """No autocast: it would round the inner products of codes, which are counts, to 16 bits."""
    return torch.autocast(codes.device.type, enabled=False)


def _refuse_outside(lowest, highest):
    """Raise ValueError where codes of this range are no relaxed bits: their distances would leave 0..b."""
    if not (lowest >= -1 and highest <= 1):
        if math.isnan(lowest) or math.isnan(highest):
            raise NotANumber("codes hold a NaN")
        wrong = highest if highest > 1 else lowest
        raise ValueError(f"codes must lie between -1 and 1, as tanh of outputs does, not {wrong:g}")


class _Listwise(torch.autograd.Function):
    """Forward keeps the derivatives of each query's objective by its distances; backward is two products."""

    @staticmethod
    def backward(context, upstream):
        codes, slopes = context.saved_tensors
        with torch.no_grad(), _in_full_precision(codes):
            gradient = _Listwise.gradient(context, upstream, codes.detach(), slopes)
        if torch.is_grad_enabled():  # a graph of the gradient is asked for
            gradient = _Once.apply(gradient, codes, upstream)
        return gradient, None, None, None, None

    @staticmethod
    def gradient(context, upstream, codes, slopes):
        """Of the codes, (M, b)."""
        # dO/dphi_j = -(1/2w) (sum over queries i of slope_ij phi_i, and the query's own share): slopes are
        # per bin width. Scaling codes by the upstream gradient costs M b, scaling slopes M^2.
        if context.compiled:
            given, both = np.ascontiguousarray(upstream.numpy()), torch.empty_like(slopes)
            kernels.both_ways(slopes.numpy(), given, -0.5 / context.width, both.numpy())
            return torch.mm(both, codes)
        weighted = upstream[:, None] * codes
        gradient = upstream[:, None] * (slopes @ codes)
        gradient.addmm_(slopes.t(), weighted)
        return gradient.mul_(-0.5 / context.width)

    @staticmethod
    def positions(codes, bins):
        """Distances in units of the bin width: (b - <u, v>) / 2w."""
        bits = codes.shape[1]
        half = 0.5 * bins / bits
        out = torch.addmm(codes.new_full((), half * bits), codes, codes.t(), alpha=-half)
        return out, bits / bins


class _Once(torch.autograd.Function):
    """The gradient as it is, with an error for whoever differentiates it, which would miss its dependence
    on codes and upstream gradient. (`once_differentiable` looks at the upstream gradient alone.)"""

    @staticmethod
    def forward(context, gradient, codes, upstream):
        return gradient.view_as(gradient)

    @staticmethod
    def backward(context, *_):
        raise RuntimeError("relaxed metrics are differentiable once: their gradient has no derivative here")


class _Compiled(_Listwise):
    @staticmethod
    def forward(context, given, affinity, bins, delta, objective):
        codes = given.detach().contiguous()
        _refuse_outside(*map(float, codes.aminmax()))
        positions, context.width = _Listwise.positions(codes, bins)
        context.compiled = True
        items = len(codes)
        values = codes.new_empty(items)
        table = _discount_table(_size_class(items * (1 + delta))) if objective == "dcg_r" else _NO_TABLE
        valid = kernels.objective_and_slopes(
            positions.numpy(),
            np.ascontiguousarray(affinity.numpy(), np.int64),
            bins,
            delta,
            _OBJECTIVES.index(objective),
            _discounts(_size_class(items)),
            table,
            values.numpy(),
        )
        if not valid:
            raise ValueError(f"affinity must lie between 0 and {MAX_AFFINITY}")
        context.save_for_backward(given, positions)
        return values


class _Tensors(_Listwise):
    @staticmethod
    def forward(context, given, affinity, bins, delta, objective):
        codes = given.detach()
        positions, context.width = _Listwise.positions(codes, bins)
        context.compiled = False
        affinity = affinity.to(torch.int64, copy=True).fill_diagonal_(0)
        ends = (*codes.aminmax(), *affinity.aminmax())
        *of_codes, lowest, highest = torch.stack([end.float() for end in ends]).tolist()  # a GPU waits once
        _refuse_outside(*of_codes)
        if not 0 <= lowest <= highest <= MAX_AFFINITY:
            raise ValueError(f"affinity must lie between 0 and {MAX_AFFINITY}")
        gains, ideal = (affinity > 0).to(codes.dtype), None
        if objective.startswith("dcg"):
            # Times 2^-(the query's highest), which NDCG does not notice and float32 can hold.
            levels = torch.arange(int(highest) + 1, device=codes.device)
            most = affinity.amax(1, keepdim=True)
            gain_of = torch.exp2((levels - most).clamp_(max=0).to(codes.dtype))
            gain_of -= torch.exp2(-most.to(codes.dtype))
            gains, ideal = gain_of.gather(1, affinity), _ideal(affinity, gain_of)
        others = torch.ones_like(positions).fill_diagonal_(0)
        spread = (_BetweenTwo if delta == 1.0 else _Triangles)(positions, bins, delta)
        c, g = spread.histogram(others), spread.histogram(gains)
        relevant = (affinity > 0).sum(1).to(codes.dtype)
        if torch.is_inference_mode_enabled():  # where nothing can be differentiated
            return _VALUES[objective](c, g, relevant, ideal, len(codes) - 1)
        with torch.enable_grad():
            c.requires_grad_(), g.requires_grad_()
            values = _VALUES[objective](c, g, relevant, ideal, len(codes) - 1)
            by_c, by_g = torch.autograd.grad(values.sum(), (c, g))
        slopes = spread.slopes(by_g).mul_(gains).add_(spread.slopes(by_c)).fill_diagonal_(0)
        context.save_for_backward(given, slopes)
        return values.detach()


class _BetweenTwo:
    """Each item between two neighbouring centres, its weight shared by how near they are: delta = 1."""

    def __init__(self, positions, bins, delta):
        low = positions.floor().clamp_(0, bins - 1)
        self.share = positions - low
        self.low = low.to(torch.int64)
        self.size = bins + 1

    def histogram(self, weights):
        """(M, bins + 1) of items weighted by (M, M)."""
        whole, rest = weights.new_zeros(2, len(weights), self.size)
        whole.scatter_add_(1, self.low, weights)
        rest.scatter_add_(1, self.low, weights * self.share)
        whole -= rest
        whole[:, 1:] += rest[:, :-1]
        return whole

    def slopes(self, by_bin):
        """(M, M) derivatives by the positions, from those by the histogram, (M, bins + 1)."""
        return (by_bin[:, 1:] - by_bin[:, :-1]).gather(1, self.low)


class _Triangles:
    """Each item shared by all centres less than delta bins away, by the literal formula."""

    def __init__(self, positions, bins, delta):
        self.size = bins + 1
        self.touched = []  # (bin, share, d share / d position)
        first = (positions - delta).ceil()
        for step in range(int(2 * delta) + 1):
            centre = first + step
            offset = centre - positions
            inside = (offset <= delta) & (centre >= 0) & (centre <= bins)
            share = torch.where(inside, 1 - offset.abs() / delta, 0)
            slope = torch.where(inside, torch.where(offset >= 0, 1.0, -1.0).to(share.dtype) / delta, 0)
            self.touched.append((centre.clamp(0, bins).to(torch.int64), share, slope))

    def histogram(self, weights):
        out = weights.new_zeros(len(weights), self.size)
        for index, share, _ in self.touched:
            out.scatter_add_(1, index, weights * share)
        return out

    def slopes(self, by_bin):
        return sum(slope * by_bin.gather(1, index) for index, _, slope in self.touched)


def _ideal(affinity, gain_of):
    """Ideal DCG of each query of its batch. affinity (M, M), 0 on the diagonal; gain_of (M, levels)."""
    counts = torch.zeros_like(gain_of, dtype=torch.int64)
    counts.scatter_add_(1, affinity, torch.ones_like(affinity))
    end = counts.flip(1).cumsum(1).flip(1)  # items of a level or above
    discounts = torch.from_numpy(_discounts(_size_class(len(affinity)))).to(affinity.device)
    return ((discounts[end] - discounts[end - counts]) * gain_of).sum(1).to(gain_of.dtype)


# The objectives as functions of the histograms c (all items) and g (gain-weighted), each (M, bins + 1):
# differentiated by autograd here, by hand in the compiled kernel, which the tests hold against these.


def _before(histogram):
    return histogram.cumsum(1) - histogram


def _over(numerator, denominator, empty):
    """numerator / denominator per query, and `empty`, without gradient, where the denominator is 0."""
    safe = denominator.clamp(min=torch.finfo(denominator.dtype).tiny)
    return torch.where(denominator > 0, numerator / torch.where(denominator > 0, safe, 1), empty)


def _ap_simplified(c, g, relevant, ideal, items):
    return _over((g * (2 * _before(g) + g + 1) / (2 * _before(c) + c + 1)).sum(1), relevant, 0.0)


def _ap_full(c, g, relevant, ideal, items):
    # eq. (apr) with psi(C_d + 1) - psi(C_{d-1} + 1) for the harmonic sum; the pole of the slope at c_d = 1
    # and the ratio at c_d = 0 are removable and stepped over in float64.
    c, g = c.double(), g.double()
    before = _before(c)
    occupied = c > 1e-6
    count = torch.where(occupied, c, 1e-6)
    harmonic = torch.digamma(before + count + 1) - torch.digamma(before + 1)
    apart = (count - 1).abs() >= 1e-5
    away = torch.where(apart, count - 1, 1.0)
    curvature = torch.where(
        apart,
        (count - (before + 1) * harmonic) / away,
        # Taken half way between the ends: as a function of the count it has the slope of what it stands for.
        1 - (before + 1) * torch.polygamma(1, before + (1 + count) / 2 + 1),
    )
    summand = g / count * ((_before(g) + 1) * harmonic + (g - 1) * curvature)
    return _over(summand.sum(1), relevant.double(), 0.0).to(relevant.dtype)


def _dcg_simplified(c, g, relevant, ideal, items):
    return _over((g / (_before(c) + 0.5 * c + 1.5).log2()).sum(1), ideal, 1.0)


def _dcg_full(c, g, relevant, ideal, items):
    before, end = _before(c), c.cumsum(1)
    table = torch.from_numpy(_discount_table(_size_class(float(end.detach().max()) + 1))).to(c.device)
    occupied = c > 1e-6
    count = torch.where(occupied, c, 1.0)
    mean = (_discount_sum(end, table) - _discount_sum(before, table)) / count
    empty = _discount_slope(before.detach(), table)
    return _over((g * torch.where(occupied, mean, empty)).sum(1), ideal, 1.0)


def _discount_sum(x, table):
    t, cubic, square, slope, value = _hermite(x, table)
    return (((cubic * t + square) * t + slope) * t + value).to(x.dtype)


def _discount_slope(x, table):
    t, cubic, square, slope, _ = _hermite(x, table)
    return (((3 * cubic * t + 2 * square) * t + slope) * DISCOUNT_KNOTS).to(x.dtype)


def _hermite(x, table):
    """Place between two knots and the coefficients there, the highest power first."""
    position = x.double() * DISCOUNT_KNOTS
    knot = position.detach().floor().clamp(0, table.shape[1] - 2).to(torch.int64)
    (y0, m0), (y1, m1) = table[:, knot], table[:, knot + 1]
    m0, m1 = m0 / DISCOUNT_KNOTS, m1 / DISCOUNT_KNOTS
    return position - knot, 2 * (y0 - y1) + m0 + m1, 3 * (y1 - y0) - 2 * m0 - m1, m0, y0


def _mutual_information(c, g, relevant, ideal, items):
    irrelevant = items - relevant
    useful = (relevant > 0) & (irrelevant > 0)

    def plogp(p):
        positive = p > 0
        # At 0 the limit of the slope without its infinite part: the constant then cancels in all bins.
        return torch.where(positive, p * torch.where(positive, p, 1.0).log2(), p / math.log(2))

    positive = plogp(g / relevant.clamp(min=1)[:, None]).sum(1)
    negative = plogp((c - g) / irrelevant.clamp(min=1)[:, None]).sum(1)
    whole = plogp(c / items).sum(1)
    return torch.where(useful, -whole + (relevant * positive + irrelevant * negative) / items, 0.0)


_VALUES = {
    "ap_s": _ap_simplified,
    "ap_r": _ap_full,
    "dcg_s": _dcg_simplified,
    "dcg_r": _dcg_full,
    "mi": _mutual_information,
}


def _size_class(items):
    """Next power of two: so that few tables serve all batch sizes."""
    return 1 << max(4, int(items).bit_length())


@lru_cache(maxsize=8)
def _discounts(most):
    ranks = torch.arange(2, most + 2, dtype=torch.float64, device="cpu")
    return torch.cat([ranks.new_zeros(1), (1 / ranks.log2()).cumsum(0)]).numpy()


_discount_table = lru_cache(maxsize=8)(discount_sum_table)
_NO_TABLE = np.zeros((2, 2))
