"""Points, a prior metric on them, and sums over pairs of them without a copy of all differences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from kernelweave._typing import AnyArray, Matrix, Vector

CHUNK = 4096  # pairs whose differences exist at one time


@dataclass(frozen=True)
class Space:
    """Points (rows), the pairs of them by index, and the prior metric that a learnt one stays close to."""

    points: Matrix
    ends: AnyArray
    prior: Matrix

    @property
    def dim(self) -> int:
        return int(self.points.shape[1])

    @cached_property
    def prior_inverse(self) -> Matrix:
        return invert(self.prior)[0]

    @cached_property
    def prior_logdet(self) -> float:
        return -invert(self.prior)[1]

    def differences(self) -> Iterator[tuple[slice, Matrix]]:
        """Yield the differences of the pairs, some thousands at a time."""
        for start in range(0, len(self.ends), CHUNK):
            span = slice(start, start + CHUNK)
            first, second = self.ends[span].T
            yield span, self.points[first] - self.points[second]

    def squared_lengths(self, metric: Matrix) -> Vector:
        """Return v'Mv for the difference v of every pair."""
        out = np.empty(len(self.ends))
        for span, V in self.differences():
            np.einsum("ij,ij->i", V @ metric, V, out=out[span])
        return out

    def scatter(self, weight: Vector) -> Matrix:
        """Return the sum of weight vv' over the pairs."""
        total = np.zeros((self.dim, self.dim))
        for span, V in self.differences():
            used = weight[span] != 0.0
            if used.any():
                U = V[used]
                total += (U * weight[span][used, None]).T @ U
        return (total + total.T) / 2.0

    def divergence(self, metric: Matrix, logdet: float) -> float:
        """Return the LogDet divergence D(M, M0) = tr(M / M0) - logdet(M / M0) - dim."""
        trace = float(np.einsum("ij,ij->", metric, self.prior_inverse))
        return trace - (logdet - self.prior_logdet) - self.dim


def invert(A: Matrix) -> tuple[Matrix, float]:
    """Return the inverse of a positive definite matrix and the logarithm of the inverse's determinant.

    Raises numpy's LinAlgError where the matrix is not positive definite.
    """
    factor = cho_factor(A, lower=True, check_finite=True)
    inverse = cho_solve(factor, np.eye(len(A)))
    return (inverse + inverse.T) / 2.0, -2.0 * float(np.log(np.diagonal(factor[0])).sum())
