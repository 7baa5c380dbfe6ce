"""What the interior points of SVM+ and SVM-2K share: eliminating variables, and knowing when to stop."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.linalg.lapack import dpstrf

from kernelweave._typing import Matrix, Vector


class HasGap(Protocol):
    """A solution with bounds of the optimum."""

    @property
    def gap(self) -> float: ...
    @property
    def relative_gap(self) -> float: ...


S = TypeVar("S", bound=HasGap)


@dataclass
class StoppingRule(Generic[S]):
    """Keeps the best solution so far; stops an interior point at ``tol``, or where progress ends.

    Parameters
    ----------
    tol : float
        Relative gap to stop at.
    progress : float
        A gap that falls to this share counts as progress.
    patience : int
        Steps without progress to stop after, once the relative gap is below ``far``. Before that, prices of
        different size keep the gap large while the iterates come nearer.
    far : float
        See ``patience``.

    """

    tol: float
    progress: float = 0.7
    patience: int = 6
    far: float = 0.1
    best: S | None = None
    idle: int = 0

    def update(self, candidates: Iterable[S]) -> bool:
        """Take in the solutions of one iterate, preferred ones first; return whether to stop."""
        tried = list(candidates)
        found = next((one for one in tried if one.relative_gap <= self.tol), min(tried, key=lambda s: s.gap))
        far = self.best is None or self.best.relative_gap > self.far
        improved = self.best is None or found.gap < self.progress * self.best.gap
        self.idle = 0 if far or improved else self.idle + 1
        if self.best is None or found.gap < self.best.gap:
            self.best = found
        return self.best.relative_gap <= self.tol or self.idle >= self.patience


class Elimination(Protocol):
    """The variables x of the block equations (G + Θ)x + G z = r, G x + … = s, expressed by z; M = G + Θ."""

    parallel_sum: Matrix  # what they leave behind in the equations of z: G − G M⁻¹ G = (G⁻¹ + Θ⁻¹)⁻¹

    def solve(self, B: Matrix) -> Matrix:
        """Return M⁻¹ B."""
        ...

    def kernel_solve(self, B: Matrix) -> Matrix:
        """Return G M⁻¹ B."""
        ...

    def solve_kernel(self, B: Matrix) -> Matrix:
        """Return M⁻¹ G B."""
        ...


def eliminate(G: Matrix, F: Matrix | None, theta: Vector) -> Elimination:
    """Return the elimination for M = G + diag(theta), by the factor F of G where it has one."""
    return _DenseElimination(G, theta) if F is None else _LowRankElimination(F, theta)


def low_rank_factor(G: Matrix) -> Matrix | None:
    """Return F with G = F F' up to rounding if that saves work, else None."""
    n = G.shape[0]
    size = float(np.diagonal(G).max(initial=0.0))
    if n == 0 or size <= 0.0:
        return np.zeros((n, 1))
    F, pivots, rank, info = dpstrf(G, lower=1, tol=1e-13 * size)  # smaller pivots are rounding
    if info < 0 or rank > 0.4 * n:  # three products with F cost more than one factorisation
        return None
    factor = np.empty((n, rank))
    factor[pivots - 1] = np.tril(F)[:, :rank]
    return factor


class _DenseElimination:
    def __init__(self, G: Matrix, theta: Vector) -> None:
        M = G.copy()
        M[np.diag_indices_from(M)] += theta
        self.G, self.factor = G, cho_factor(M, lower=True, overwrite_a=True, check_finite=False)
        W = solve_triangular(self.factor[0], G, lower=True, check_finite=False)
        self.parallel_sum = G - W.T @ W

    def solve(self, B: Matrix) -> Matrix:
        return np.asarray(cho_solve(self.factor, B, check_finite=False))

    def kernel_solve(self, B: Matrix) -> Matrix:
        return np.asarray(self.G @ self.solve(B))

    def solve_kernel(self, B: Matrix) -> Matrix:
        return self.solve(self.G @ B)


class _LowRankElimination:
    """G = F F': all follows from the small matrix I + F'Θ⁻¹F, and nothing cancels but in `solve`."""

    def __init__(self, F: Matrix, theta: Vector) -> None:
        self.F, self.theta, self.scaled = F, theta, F / theta[:, None]
        small = F.T @ self.scaled
        small[np.diag_indices_from(small)] += 1.0
        self.factor = cho_factor(small, lower=True, overwrite_a=True, check_finite=False)
        W = solve_triangular(self.factor[0], F.T, lower=True, check_finite=False)
        self.parallel_sum = W.T @ W

    def solve(self, B: Matrix) -> Matrix:
        return np.asarray((B - self.kernel_solve(B)) / self.theta[:, None])

    def kernel_solve(self, B: Matrix) -> Matrix:
        return np.asarray(self.F @ cho_solve(self.factor, self.scaled.T @ B, check_finite=False))

    def solve_kernel(self, B: Matrix) -> Matrix:
        return np.asarray(self.scaled @ cho_solve(self.factor, self.F.T @ B, check_finite=False))
