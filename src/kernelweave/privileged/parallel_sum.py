"""Variables that meet a kernel only on its diagonal: how to eliminate them from a Newton system."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.linalg.lapack import dpstrf

from kernelweave._typing import Matrix, Vector

# A kernel of at most this share of full rank is worth its factor.
LOW_RANK = 0.4
# Pivots below this share of the largest entry are rounding.
PIVOT = 1e-13


class Eliminated(Protocol):
    """What is left of x in equations (G + Θ)x + G z = …, G x + … = …; M = G + Θ."""

    parallel: Matrix  # G − G M⁻¹ G = (G⁻¹ + Θ⁻¹)⁻¹

    def solve(self, B: Matrix) -> Matrix:
        """Return M⁻¹ B."""
        ...

    def damp(self, B: Matrix) -> Matrix:
        """Return G M⁻¹ B."""
        ...

    def answer(self, B: Matrix) -> Matrix:
        """Return M⁻¹ G B."""
        ...


class _Dense:
    def __init__(self, G: Matrix, theta: Vector) -> None:
        M = G.copy()
        M[np.diag_indices_from(M)] += theta
        self.G, self.factor = G, cho_factor(M, lower=True, overwrite_a=True, check_finite=False)
        W = solve_triangular(self.factor[0], G, lower=True, check_finite=False)
        self.parallel = G - W.T @ W

    def solve(self, B: Matrix) -> Matrix:
        return np.asarray(cho_solve(self.factor, B, check_finite=False))

    def damp(self, B: Matrix) -> Matrix:
        return np.asarray(self.G @ self.solve(B))

    def answer(self, B: Matrix) -> Matrix:
        return self.solve(self.G @ B)


class _LowRank:
    """G = F F': all follows from the small matrix I + F'Θ⁻¹F, and nothing cancels but in `solve`."""

    def __init__(self, F: Matrix, theta: Vector) -> None:
        self.F, self.theta, self.scaled = F, theta, F / theta[:, None]
        small = F.T @ self.scaled
        small[np.diag_indices_from(small)] += 1.0
        self.factor = cho_factor(small, lower=True, overwrite_a=True, check_finite=False)
        W = solve_triangular(self.factor[0], F.T, lower=True, check_finite=False)
        self.parallel = W.T @ W

    def solve(self, B: Matrix) -> Matrix:
        return np.asarray((B - self.damp(B)) / self.theta[:, None])

    def damp(self, B: Matrix) -> Matrix:
        return np.asarray(self.F @ cho_solve(self.factor, self.scaled.T @ B, check_finite=False))

    def answer(self, B: Matrix) -> Matrix:
        return np.asarray(self.scaled @ cho_solve(self.factor, self.F.T @ B, check_finite=False))


def eliminate(G: Matrix, F: Matrix | None, theta: Vector) -> Eliminated:
    """Return the elimination for G + diag(theta), by the factor F of G where it has one of few columns."""
    return _Dense(G, theta) if F is None else _LowRank(F, theta)


def low_rank_factor(G: Matrix) -> Matrix | None:
    """Return F with G = F F' up to rounding if it has few columns, else None."""
    p = G.shape[0]
    size = float(np.diagonal(G).max(initial=0.0))
    if p == 0 or size <= 0.0:
        return np.zeros((p, 1))
    F, pivots, rank, info = dpstrf(G, lower=1, tol=PIVOT * size)
    if info < 0 or rank > LOW_RANK * p:
        return None
    factor = np.tril(F)[:, :rank]
    out = np.empty_like(factor)
    out[pivots - 1] = factor
    return np.ascontiguousarray(out)
