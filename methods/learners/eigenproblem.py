"""The leading generalised eigenvector of a matrix that changes by products of vectors, from bit to bit."""

from contextlib import suppress

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

_SMALL = 64  # rows of a matrix whose eigenvectors LAPACK finds as fast as ARPACK
_RESTARTS = 50  # of ARPACK, which mostly needs a few


class LeadingEigenvector:
    """The w that maximises w' M w where w' G w = 1: G (m, m) is positive definite and stays, M changes.

    With G = L L' it is L'^-1 v, v the leading eigenvector of L^-1 M L'^-1, which is kept in place of M: one
    factorisation serves all bits, and products with a vector are all that ARPACK needs.
    """

    def __init__(self, matrix, gram, generator):
        """matrix: M to begin with, its symmetric part counts; generator: draws where ARPACK begins."""
        self.root = cholesky(gram, lower=True)
        half = solve_triangular(self.root, (matrix + matrix.T) / 2, lower=True)
        whole = solve_triangular(self.root, half.T, lower=True)
        self.matrix = (whole + whole.T) / 2
        self.start = generator.standard_normal(len(gram))

    def add(self, vector, factor):
        """M += factor vector vector'."""
        vector = solve_triangular(self.root, vector, lower=True)
        self.matrix += np.outer(factor * vector, vector)

    def find(self):
        """w, (m,)."""
        return solve_triangular(self.root, self._direction(), lower=True, trans="T")

    def _direction(self):
        last = len(self.matrix) - 1
        if last >= _SMALL:
            # Where the largest eigenvalue is tiny beside the smallest, ARPACK's criterion is below rounding.
            with suppress(ArpackNoConvergence):
                return eigsh(self.matrix, 1, which="LA", v0=self.start, maxiter=_RESTARTS)[1][:, 0]
        return eigh(self.matrix, subset_by_index=[last, last])[1][:, 0]
