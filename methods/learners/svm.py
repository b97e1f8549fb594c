"""Many linear SVMs on the same items at once: one per bit, each with its own labels.

Every SVM is LIBLINEAR's L2-regularised, squared-hinge, primal one (its solver 2; scikit-learn's
LinearSVC(dual=False)), bias regularised as the weight of a constant feature 1:

    0.5 ||w||^2 + 0.5 bias^2 + C sum_i max(0, 1 - y_i (w.x_i + bias))^2

solved by a truncated Newton method with an exact line search (Keerthi, DeCoste. A Modified Finite Newton
Method for Fast Solution of Large Scale Linear SVMs. JMLR 2005), here for all bits together: a product with
the items is one matrix product over the bits still open, and only the scalars (steps, coefficients of the
conjugate gradients, stopping) are a bit's own. LIBLINEAR's stopping rule (Lin, Weng, Keerthi. Trust Region
Newton Method for Large-Scale Logistic Regression. JMLR 2008) is kept.

What makes it fast is the basis. The problem does not change when the items are rotated, and in the basis of
the eigenvectors of X'X, which all bits share, the Hessian I + 2C X_A'X_A over the items A inside the margin
is close to diagonal: I + 2C |A|/n diag(eigenvalues) is a preconditioner that leaves a tenth of the conjugate
gradient steps. That is so where labels are noisy. Where they are (nearly) separable, few items stay inside
the margin, nothing in the Hessian holds the others, and Newton steps go astray: a path of growing C helps.
"""

import numpy as np

from tiebench._compiled import compiled

_FORCING = 0.1  # a Newton system is solved until its residual, in the preconditioner's norm, fell to this
_MOST_ITERATIONS = 100  # Newton iterations at each C
_MOST_PRODUCTS = 500  # Hessian products per Newton system; a direction cut off there still descends
_EASY = 250.0  # C mean ||x||^2 up to which C is tackled directly; else C / 10 comes before it
_EASY_TOLERANCE = 1e-2  # at those smaller C
_MOST_SEARCHES = 60  # derivatives per line search; 2 to 5 are usual
_SEARCH_TOLERANCE = 1e-3  # relative, of a step length


class SharedItems:
    """Items made ready for `fit_linear_svms`: worth keeping where several fits use the same ones.

    items: float (n, d), all finite. Attributes, with X the items with the constant feature as last column and
    r = min(n, d + 1): basis: float64 (d + 1, r), orthonormal, of eigenvectors of X'X; spectrum: float64 (r,),
    the eigenvalues; rotated: float64 (n, r), X in that basis; narrow: the same as float32.

    Takes O(n d r + r^3) time once, and 12 n r bytes for as long as it is kept.
    """

    def __init__(self, items):
        extended = np.ones((items.shape[0], items.shape[1] + 1))
        extended[:, :-1] = items
        if not np.isfinite(extended).all():
            raise ValueError("items must be finite")
        span = None
        if extended.shape[0] < extended.shape[1]:
            # The weights are combinations of the items: search no further than the space these span.
            span, triangle = np.linalg.qr(extended.T)
            extended = np.ascontiguousarray(triangle.T)
        spectrum, vectors = np.linalg.eigh(extended.T @ extended)
        self.spectrum = np.maximum(spectrum, 0)
        self.basis = vectors if span is None else span @ vectors
        self.rotated = extended @ vectors
        self.narrow = self.rotated.astype(np.float32)

    def __len__(self):
        return len(self.rotated)


def fit_linear_svms(shared, codes, C, tolerance=1e-3, start=None):
    """Weights of linear SVMs that predict every bit of codes from the items, float64 (d + 1, bits): last row
    the biases. Work is in float64, but for the Newton directions.

    shared: the `SharedItems`; codes: (n, bits), -1 and 1; start: weights (d + 1, bits) to set out from, such
    as those of codes that differ little (default: 0).

    A bit is done when ||gradient|| <= tolerance max(1, min(positives, negatives)) / n ||gradient at 0||: the
    rule of LIBLINEAR, whose right side does not depend on start either. A bit that is not done after
    `_MOST_ITERATIONS` at C is returned as it is then. A bit with one value only has nothing to separate: its
    weights are 0 and its bias is that value, which is not the minimiser but predicts the same.
    """
    signs = codes.T.astype(np.float64, order="C")  # a row per bit, so that a bit's numbers lie together
    weights = np.zeros((len(signs), shared.basis.shape[1]))
    if start is not None:
        # Drops what is orthogonal to all items: it could only add to the norm.
        weights = start.T @ shared.basis

    positives = np.count_nonzero(signs > 0, axis=1)
    fewer = np.minimum(positives, len(shared) - positives)
    stages = [(smaller, max(tolerance, _EASY_TOLERANCE), _MOST_ITERATIONS) for smaller in _smaller(shared, C)]
    if start is not None and stages:
        # Bits that are solved already stay; others go back one step, far enough if labels changed a little.
        stages = [(C, tolerance, 0), stages[-1]]
    stages.append((C, tolerance, _MOST_ITERATIONS))
    active = np.flatnonzero(fewer)
    for strength, goal, most in stages:
        if len(active):
            goals = goal * fewer[active] / len(shared)
            weights[active], converged = _solve(shared, signs[active], strength, goals, weights[active], most)
            if strength == C:
                active = active[~converged]
    result = shared.basis @ weights.T
    result[:, fewer == 0] = 0
    result[-1, fewer == 0] = signs[fewer == 0, 0]
    return result


def _smaller(shared, C):
    """The C to solve before C itself, ascending."""
    found: list[float] = []
    size = shared.spectrum.sum() / len(shared)  # the mean of ||x||^2; it and C matter by their product alone
    while C * size > _EASY:
        C /= 10
        found.insert(0, C)
    return found


def _rows(kept, *arrays):
    return [array[kept] for array in arrays]


def _solve(shared, signs, C, tolerances, weights, max_iterations):
    """All arrays in the shared basis, a row per bit; tolerances: relative to the gradient at 0, (bits,).

    Returns weights (bits, r), and which bits converged, bool (bits,).
    """
    rotated = shared.rotated
    goals = tolerances * np.linalg.norm(2 * C * (signs @ rotated), axis=1)
    # Gradients below the rounding error of their sum allow no further progress.
    # (Items that cancel, as two equal ones of opposite labels do, have the gradient 0 at 0.)
    rounding = np.finfo(np.float64).eps * 2 * C * np.linalg.norm(rotated, axis=1).sum()
    goals = np.maximum(goals, rounding)
    slacks = 1 - signs * (weights @ rotated.T)  # positive inside the margin
    result = weights.copy()
    converged = np.zeros(len(signs), bool)
    active = np.arange(len(signs))
    for iteration in range(max_iterations + 1):
        losses = np.maximum(slacks, 0)
        gradients = weights - 2 * C * ((signs * losses) @ rotated)
        done = np.linalg.norm(gradients, axis=1) <= goals
        converged[active] = done
        if iteration == max_iterations:
            done[:] = True
        if done.any():
            result[active[done]] = weights[done]
            active, signs, goals = _rows(~done, active, signs, goals)
            weights, slacks, gradients = _rows(~done, weights, slacks, gradients)
        if not len(active):
            break
        directions = _newton_directions(shared, slacks > 0, gradients, C)
        changes = signs * (directions @ rotated.T)
        lengths = np.empty(len(active))
        _line_searches(
            slacks, changes, (weights * directions).sum(axis=1), (directions**2).sum(axis=1), C, lengths
        )
        weights = weights + lengths[:, None] * directions
        slacks -= lengths[:, None] * changes
    return result, converged


def _newton_directions(shared, inside, gradients, C):
    """Approximate solutions of (I + 2C X_A'X_A) direction = -gradient, by preconditioned conjugate gradients.

    inside: bool (k, n), the items A of each bit; gradients float64 (k, r). Returns float64 (k, r). Products
    with the items are float32: an error in them costs a step at most, since the gradient that decides where
    the bit ends is float64; and in this basis an error is relative to the spectrum there, so that no
    eigenvalue drowns in that of another.
    """
    narrow = shared.narrow
    directions = np.zeros_like(gradients)
    mask = inside.astype(np.float32)
    # As if the items inside the margin were a random share of all.
    scaling = 1 / (1 + 2 * C * inside.mean(axis=1)[:, None] * shared.spectrum)
    residuals = -gradients
    conjugates = scaling * residuals
    sizes = (residuals * conjugates).sum(axis=1)
    goals = _FORCING**2 * sizes
    found = np.zeros_like(gradients)
    active = np.arange(len(gradients))
    for _ in range(_MOST_PRODUCTS):
        scores = conjugates.astype(np.float32) @ narrow.T
        scores *= mask
        curved = conjugates + 2 * C * (scores @ narrow).astype(np.float64)
        lengths = sizes / (conjugates * curved).sum(axis=1)
        found += lengths[:, None] * conjugates
        residuals -= lengths[:, None] * curved
        scaled = scaling * residuals
        before, sizes = sizes, (residuals * scaled).sum(axis=1)
        done = sizes <= goals
        if done.any():
            directions[active[done]] = found[done]
            active, mask, scaling, goals = _rows(~done, active, mask, scaling, goals)
            found, residuals, scaled = _rows(~done, found, residuals, scaled)
            conjugates, before, sizes = _rows(~done, conjugates, before, sizes)
            if not len(active):
                return directions
        conjugates = scaled + (sizes / before)[:, None] * conjugates
    directions[active] = found
    return directions


@compiled(nogil=True)
def _line_searches(slacks, changes, inner, squares, C, out):
    """Step lengths t that minimise each bit's objective at w + t p, to a relative `_SEARCH_TOLERANCE`.

    slacks, changes: float64 (k, n), the item's slack is slack - t change; inner: w.p; squares: p.p, (k,).
    The derivative by t rises and is linear between the points where an item crosses the margin: Newton's
    method from t = 1, where most searches end, kept in a bracket so that it cannot cycle.
    """
    for bit in range(len(slacks)):
        low = 0.0
        high = np.inf
        t = 1.0
        for _ in range(_MOST_SEARCHES):
            first = 0.0
            second = 0.0
            for item in range(slacks.shape[1]):
                change = changes[bit, item]
                slack = slacks[bit, item] - t * change
                change = change if slack > 0 else 0.0
                first += change * slack
                second += change * change
            slope = inner[bit] + t * squares[bit] - 2 * C * first
            if slope > 0:
                high = t
            else:
                low = t
            following = t - slope / (squares[bit] + 2 * C * second)
            if abs(following - t) <= _SEARCH_TOLERANCE * t:
                t = following
                break
            if not low < following < high:
                following = 0.5 * (low + high) if high < np.inf else 2 * t
            t = following
        out[bit] = t
