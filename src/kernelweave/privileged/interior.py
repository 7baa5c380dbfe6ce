"""SVM+ by interior point: few steps whatever C and λ, each a Cholesky factorisation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from kernelweave._typing import Matrix, Vector
from kernelweave.privileged.interior_point import Iterate, interior_point
from kernelweave.privileged.machine import PlusMachine, Terms, coefficients, feasible, measure
from kernelweave.privileged.parallel_sum import eliminate

MAX_STEPS = 100
# Steps without a better gap before rounding is taken to have won.
PATIENCE = 4
# A gap has to fall to this share to count as better.
WORTH = 0.7
# As long as the gap is this wide, steps without gain are the way in.
FAR = 0.1


def solve_interior(K: Matrix, G: Matrix, F: Matrix | None, terms: Terms, tol: float) -> PlusMachine:
    """Return SVM+ on the kernels K and G = K*/λ, solved to the relative gap ``tol`` or as far as it goes.

    F is what `low_rank_factor` says of G among the samples with privileged features.
    """
    program = PlusProgram(K, G, F, terms)
    best: list[PlusMachine] = []
    idle = 0

    def finished(at: Iterate) -> bool:
        nonlocal idle
        machine = program.machine(at, clean=False)
        if machine.relative_gap <= tol or idle:
            cleaned = program.machine(at, clean=True)
            if cleaned.relative_gap <= max(tol, machine.relative_gap):
                best[:] = [cleaned]
                return cleaned.relative_gap <= tol
        better = not best or machine.gap < WORTH * best[0].gap
        idle = 0 if better or machine.relative_gap > FAR else idle + 1
        if not best or machine.gap < best[0].gap:
            best[:] = [machine]
        return idle >= PATIENCE

    interior_point(program, *program.start(), finished, MAX_STEPS)
    return best[0]


class PlusProgram:
    r"""The dual of SVM+ in x = (α, β), β for samples with privileged features only.

    .. math:: \min \tfrac12 v'Kv + \tfrac12 e'Ge - 1'\alpha, \quad v = \alpha∘y,\; e = \alpha + \beta - C,
       \quad y'\alpha = 0,\; 1'e = 0,\; \alpha, \beta \ge 0

    Samples without privileged features have e = 0, so 0 ≤ α ≤ C. In these variables what the interior point
    adds stands on the diagonal only, however large it grows.
    """

    def __init__(self, K: Matrix, G: Matrix, F: Matrix | None, terms: Terms) -> None:
        self.terms, self.K, self.n = terms, K, terms.y.size
        self.places = terms.places
        self.whole = self.places.size == self.n
        self.G = G if self.whole else G[np.ix_(self.places, self.places)]
        self.Q = K * np.outer(terms.y, terms.y)
        self.upper = np.concatenate(
            [np.where(terms.corrected, np.inf, terms.C), np.full(self.places.size, np.inf)]
        )
        self.A = np.zeros((2 if self.places.size else 1, self.upper.size))
        self.A[0, : self.n] = terms.y
        if self.places.size:
            self.A[1, : self.n], self.A[1, self.n :] = terms.corrected, 1.0
        self.total = np.array([0.0, terms.budget][: len(self.A)])
        self.F = F

    def start(self) -> tuple[Vector, Vector]:
        """Return α with the classes' sums equal and at most half of C, e = 0, and ρ above every shortfall."""
        y, C = self.terms.y, self.terms.C
        sums = np.where(y > 0, C[y > 0].sum(), C[y < 0].sum())
        alpha = 0.5 * C * sums.min() / sums
        f = self.K @ (alpha * y)
        x = np.concatenate([alpha, (C - alpha)[self.places]])
        return x, np.array([0.0, 1.0 + float(np.abs(f).max())][: len(self.A)])

    def gradient(self, x: Vector) -> Vector:
        alpha, beta = x[: self.n], x[self.n :]
        slope = self.Q @ alpha - 1.0
        g = self.G @ (alpha[self.places] + beta - self.terms.C[self.places])
        slope[self.places] += g
        return np.concatenate([slope, g])

    def factor(self, theta: Vector) -> Callable[[Matrix], Matrix]:
        """Eliminate β, then factor what is left for α: Q + Θ + G − G(G + Θ*)⁻¹G; answers are refined once."""
        privileged = eliminate(self.G, self.F, theta[self.n :])
        S = self.Q.copy()
        if self.whole:
            S += privileged.parallel
        else:
            S[np.ix_(self.places, self.places)] += privileged.parallel
        S[np.diag_indices_from(S)] += theta[: self.n]
        left = cho_factor(S, lower=True, overwrite_a=True, check_finite=False)

        def solve(B: Matrix) -> Matrix:
            first = B[: self.n].copy()
            first[self.places] -= privileged.damp(B[self.n :])
            alpha = cho_solve(left, first, check_finite=False)
            beta = privileged.solve(B[self.n :]) - privileged.answer(alpha[self.places])
            return np.vstack([alpha, beta])

        def refined(B: Matrix) -> Matrix:
            X = solve(B)
            return X + solve(B - self._product(X) - theta[:, None] * X)

        return refined

    def _product(self, X: Matrix) -> Matrix:
        """Return P X."""
        g = self.G @ (X[self.places] + X[self.n :])
        first = self.Q @ X[: self.n]
        first[self.places] += g
        return np.vstack([first, g])

    def machine(self, at: Iterate, clean: bool) -> PlusMachine:
        """Return the machine of an iterate; if ``clean``, variables on their way to a bound are put there."""
        terms = self.terms
        alpha, beta = at.x[: self.n], np.zeros(self.n)
        beta[self.places] = at.x[self.n :]
        if clean:  # of a product that vanishes, the factor that does
            typical = float(terms.C.mean())
            kept = at.x > typical * at.low
            full = ~terms.corrected & (terms.C - alpha < typical * at.high[: self.n])
            alpha = np.where(full, terms.C, np.where(kept[: self.n], alpha, 0.0))
            beta[self.places] *= kept[self.n :]
        coef = coefficients(terms, *feasible(terms, alpha, beta))
        images = np.zeros_like(coef)
        images[:, 0] = self.K @ coef[:, 0]
        images[self.places, 1] = self.G @ coef[self.places, 1]
        return measure(terms, coef, images)
