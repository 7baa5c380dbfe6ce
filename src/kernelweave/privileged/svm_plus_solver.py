"""How SVM+ is solved for fixed kernels: by interior point, or by sequential minimal optimisation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from kernelweave import _core
from kernelweave._threads import blas_threads
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.errors import NotOfferedError
from kernelweave.geometry.interior_point import InteriorIterate, Linearisation, LinearSolve, interior_point
from kernelweave.learners.base import Learner, positive
from kernelweave.learners.hinge import Hinge
from kernelweave.privileged.interior import StoppingRule, eliminate, low_rank_factor
from kernelweave.privileged.svm_plus_problem import (
    SVMPlusSolution,
    SVMPlusTerms,
    coefficients,
    dual_variables,
    evaluate,
    feasible_dual,
)

METHODS = ("auto", "interior", "smo")


@dataclass
class SVMPlus(Learner):
    r"""The support vector machine whose slacks are a function of privileged features.

    .. math:: \min \tfrac12\|w\|^2 + \tfrac\lambda2\|w^*\|^2 + \sum_i C_i \xi_i, \quad
       y_i(\langle w, x_i\rangle + b) \ge 1 - \xi_i,\; \xi_i = \langle w^*, z_i\rangle + \rho \ge 0

    ``solve`` takes K and K*/λ as one array (2, n, n).

    Parameters
    ----------
    C : float, default=1.0
        Price of a slack; sample i pays C times its weight.
    has_privileged : array of bool or None, default=None
        Which samples have a z; None is all. The slacks of the others are their own, as in the C-SVC.
    method : {"auto", "interior", "smo"}, default="auto"
        "auto" is SMO, and the interior point where SMO has not closed the gap after so many steps that it
        would have taken a good part of the interior point's time. Samples without a z need the interior point.
    n_threads : int, default=1
        Threads of the linear algebra.
    n_decision : int, default=1
        How many of the kernel weights are those of the decision space.
    tol : float or None, default=None
        Relative gap of every inner solve; None lets the outer solver ask for what it needs.
    max_dense, max_low_rank : int, default=4_000, 8_000
        Most samples for which "auto" ends in the interior point. A step of it takes up to 3n³ operations and
        eight matrices, or n³/3 and five of them where the privileged kernel has low rank.
    smo_steps, low_rank_steps : float, default=0.25, 0.08
        How many times n² steps SMO has before the interior point, and where K* has low rank.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.privileged import SVMPlus
    >>> kernels = np.array([np.eye(2), np.eye(2)])
    >>> SVMPlus(C=10.0).solve(kernels, np.array([1.0, -1.0])).coef.round(3)
    array([[ 1.,  0.],
           [-1.,  0.]])

    """

    C: float = 1.0
    has_privileged: AnyArray | None = None
    method: str = "auto"
    n_threads: int = 1
    n_decision: int = 1
    tol: float | None = None
    max_dense: int = 4_000
    max_low_rank: int = 8_000
    smo_steps: float = 0.25
    low_rank_steps: float = 0.08

    has_bias = True

    def check(self, y: AnyArray, weight: Vector) -> None:  # noqa: ARG002 - any labels and weights are legal
        positive("C", self.C)

    def for_columns(self) -> Learner:
        raise NotOfferedError("SVMPlus separates two classes; give y one column.")

    def measure(
        self, f: AnyArray, coef: AnyArray, y: AnyArray, weight: Vector | None = None
    ) -> SVMPlusSolution:
        return replace(evaluate(self._terms(y, weight), coef, f), n_decision=self.n_decision)

    def solve(
        self,
        K: AnyArray,
        y: AnyArray,
        weight: Vector | None = None,
        warm: AnyArray | None = None,
        tol: float = 1e-3,
    ) -> SVMPlusSolution:
        terms = self._terms(y, weight)
        tol = tol if self.tol is None else positive("tol", self.tol)
        used = np.flatnonzero(terms.C > 0.0)
        if used.size < terms.C.size:  # the others have neither margins nor slacks to pay for
            inside = np.ix_(used, used)
            part = SVMPlusTerms(terms.y[used], terms.C[used], terms.has_privileged[used])
            start = None if warm is None else warm[used]
            solution = self._solve(K[0][inside], K[1][inside], part, start, tol)
            solution = _with_all_samples(solution, terms, used)
        else:
            solution = self._solve(K[0], K[1], terms, warm, tol)
        return replace(solution, n_decision=self.n_decision)

    def _solve(
        self, K: Matrix, G: Matrix, terms: SVMPlusTerms, warm: AnyArray | None, tol: float
    ) -> SVMPlusSolution:
        if not terms.has_privileged.any():
            return _solve_c_svc(K, terms, warm, tol)
        takes_pairs, n = bool(terms.has_privileged.all()), terms.y.size
        if self.method == "smo" and takes_pairs:
            return solve_smo(K, G, terms, warm, tol)
        if self.method == "interior" or not takes_pairs:
            return self._solve_interior(K, G, terms, tol)
        low_rank = _has_low_rank(G)
        share = self.low_rank_steps if low_rank else self.smo_steps
        falls_back = n <= (self.max_low_rank if low_rank else self.max_dense)
        first = solve_smo(K, G, terms, warm, tol, int(share * n**2) if falls_back else None)
        if first.relative_gap <= tol or not falls_back:
            return first
        second = self._solve_interior(K, G, terms, tol)
        if second.relative_gap > tol:  # rounding ended it
            second = solve_smo(K, G, terms, second.coef, tol, int(share * n**2))
        return min(first, second, key=lambda solution: solution.gap)

    def _solve_interior(self, K: Matrix, G: Matrix, terms: SVMPlusTerms, tol: float) -> SVMPlusSolution:
        rows = terms.rows
        F = low_rank_factor(G if rows.size == len(G) else G[np.ix_(rows, rows)])
        with blas_threads(self.n_threads):
            return solve_interior(K, G, F, terms, tol)

    def _terms(self, y: AnyArray, weight: Vector | None) -> SVMPlusTerms:
        y = np.ascontiguousarray(y, dtype=np.float64)
        C = positive("C", self.C) * (np.ones(y.size) if weight is None else weight)
        known = np.ones(y.size, dtype=bool) if self.has_privileged is None else self.has_privileged
        return SVMPlusTerms(y, C, known & (C > 0.0))


def _has_low_rank(G: Matrix) -> bool:
    """Tell by every so many of its rows whether factors of G save an interior point most of its work."""
    rows = np.arange(0, len(G), -(-len(G) // 400))
    return low_rank_factor(np.ascontiguousarray(G[np.ix_(rows, rows)])) is not None


def _solve_c_svc(K: Matrix, terms: SVMPlusTerms, warm: AnyArray | None, tol: float) -> SVMPlusSolution:
    """Solve the C-SVC, which SVM+ is where nobody has privileged features."""
    start = None if warm is None else warm[:, 0]
    v = Hinge(C=1.0).solve(np.ascontiguousarray(K), terms.y, terms.C, start, tol).coef
    nothing = np.zeros(terms.y.size)
    return evaluate(terms, np.column_stack([v, nothing]), np.column_stack([K @ v, nothing]))


def _with_all_samples(solution: SVMPlusSolution, terms: SVMPlusTerms, used: Indices) -> SVMPlusSolution:
    """Return a solution on some samples as one of all, with zeros for the others."""
    coef = np.zeros((terms.y.size, 2))
    free, xi = np.zeros(coef.shape, dtype=bool), np.zeros(terms.y.size)
    coef[used], free[used], xi[used] = solution.coef, solution.free, solution.xi
    return replace(solution, coef=coef, free=free, xi=xi, terms=terms)


def solve_smo(
    K: Matrix,
    G: Matrix,
    terms: SVMPlusTerms,
    warm: AnyArray | None,
    tol: float,
    most_steps: int | None = None,
) -> SVMPlusSolution:
    """Solve by two or three variables at a time, without any factorisation; all have privileged features.

    Starts from the coefficients ``warm``. Each round asks for a smaller violation of the optimality conditions
    until the gap is small enough, or ``most_steps`` are used up; None is 2,000 per sample, where ordinary
    problems take 10 to 500.
    """
    K, G = np.ascontiguousarray(K), np.ascontiguousarray(G)
    start = (0.5 * terms.C, 0.5 * terms.C) if warm is None else dual_variables(terms, warm)
    alpha, beta = feasible_dual(terms, *start)
    steps_left = 2_000 * terms.y.size if most_steps is None else most_steps
    violation, best = max(tol, 1e-2), None
    while True:
        coef = coefficients(terms, alpha, beta)
        f, g = K @ coef[:, 0], G @ coef[:, 1]
        steps, reached = _core.smo_plus(K, G, terms.y, alpha, beta, f, g, violation, steps_left)
        steps_left -= steps
        alpha, beta = feasible_dual(terms, alpha, beta)  # sums that rounding has moved
        coef = coefficients(terms, alpha, beta)
        solution = evaluate(terms, coef, np.column_stack([K @ coef[:, 0], G @ coef[:, 1]]))
        if best is None or solution.gap < best.gap:
            best = solution
        if best.relative_gap <= tol or steps_left <= 0 or reached > violation:
            return best
        # The gap shrinks about in proportion to what SMO leaves.
        violation *= float(np.clip(0.7 * tol / solution.relative_gap, 0.05, 0.7))


def solve_interior(
    K: Matrix, G: Matrix, F: Matrix | None, terms: SVMPlusTerms, tol: float
) -> SVMPlusSolution:
    """Solve by interior point, to the relative gap ``tol`` or as far as rounding allows.

    F is the `low_rank_factor` of G = K*/λ among the samples with privileged features.
    """
    dual, rule = SVMPlusDual(K, G, F, terms), StoppingRule[SVMPlusSolution](tol)
    interior_point(dual, *dual.start(), lambda at: rule.update(dual.solutions(at)))
    assert rule.best is not None
    return rule.best


class SVMPlusDual:
    r"""The dual of SVM+ in x = (α, β), β for samples with privileged features only.

    .. math:: \min \tfrac12 v'Kv + \tfrac12 e'Ge - 1'\alpha, \quad v = \alpha∘y,\; e = \alpha + \beta - C,
       \quad y'\alpha = 0,\; 1'e = 0,\; \alpha, \beta \ge 0

    Samples without privileged features have e = 0, so 0 ≤ α ≤ C. In these variables what the interior point
    adds stands on the diagonal only, however large it grows.
    """

    def __init__(self, K: Matrix, G: Matrix, F: Matrix | None, terms: SVMPlusTerms) -> None:
        self.terms, self.K, self.F, self.n, self.rows = terms, K, F, terms.y.size, terms.rows
        self.G = G if self.rows.size == self.n else G[np.ix_(self.rows, self.rows)]
        self.Q = K * np.outer(terms.y, terms.y)
        n_beta = self.rows.size
        self.upper = np.concatenate(
            [np.where(terms.has_privileged, np.inf, terms.C), np.full(n_beta, np.inf)]
        )
        self.A = np.zeros((2, self.n + n_beta))
        self.A[0, : self.n] = terms.y
        self.A[1, : self.n], self.A[1, self.n :] = terms.has_privileged, 1.0
        self.total = np.array([0.0, terms.budget])

    def start(self) -> tuple[Vector, Vector]:
        """Return α with the classes' sums equal and at most half of C, e = 0, and ρ above every shortfall."""
        y, C = self.terms.y, self.terms.C
        sums = np.where(y > 0, C[y > 0].sum(), C[y < 0].sum())
        alpha = 0.5 * C * sums.min() / sums
        rho = 1.0 + float(np.abs(self.K @ (alpha * y)).max())
        return np.concatenate([alpha, (C - alpha)[self.rows]]), np.array([0.0, rho])

    def linearise(self, x: Vector, multipliers: Vector) -> Linearisation:  # noqa: ARG002 - all is linear
        shifted = x.copy()
        shifted[self.n :] -= self.terms.C[self.rows]
        gradient = self._product(shifted[:, None])[:, 0]
        gradient[: self.n] -= 1.0
        return Linearisation(gradient, self.A @ x - self.total, self.A, self._factorise)

    def solutions(self, at: InteriorIterate) -> Iterator[SVMPlusSolution]:
        """Return solutions near an iterate: with variables on their way to a bound put there, and without."""
        terms, alpha, beta = self.terms, at.x[: self.n], at.x[self.n :]
        typical = float(terms.C.mean())
        # Of a product that vanishes, the factor that does.
        vanishes = at.x < typical * at.low
        full = ~terms.has_privileged & (terms.C - alpha < typical * at.high[: self.n])
        rounded = np.where(full, terms.C, np.where(vanishes[: self.n], 0.0, alpha))
        yield self._solution(rounded, np.where(vanishes[self.n :], 0.0, beta))
        yield self._solution(alpha, beta)

    def _solution(self, alpha: Vector, beta: Vector) -> SVMPlusSolution:
        beta_all = np.zeros(self.n)
        beta_all[self.rows] = beta
        coef = coefficients(self.terms, *feasible_dual(self.terms, alpha, beta_all))
        images = np.zeros_like(coef)
        images[:, 0] = self.K @ coef[:, 0]
        images[self.rows, 1] = self.G @ coef[self.rows, 1]
        return evaluate(self.terms, coef, images)

    def _product(self, X: Matrix) -> Matrix:
        """Return P X of the quadratic form P."""
        g = self.G @ (X[self.rows] + X[self.n :])
        first = self.Q @ X[: self.n]
        first[self.rows] += g
        return np.vstack([first, g])

    def _factorise(self, theta: Vector) -> LinearSolve:
        """Eliminate β; what is left for α is Q + Θ + G − G(G + Θ*)⁻¹G. Solutions are refined once."""
        beta_part = eliminate(self.G, self.F, theta[self.n :])
        S = self.Q.copy()
        S[np.ix_(self.rows, self.rows)] += beta_part.parallel_sum
        S[np.diag_indices_from(S)] += theta[: self.n]
        factor = cho_factor(S, lower=True, overwrite_a=True, check_finite=False)

        def solve(B: Matrix) -> Matrix:
            first = B[: self.n].copy()
            first[self.rows] -= beta_part.kernel_solve(B[self.n :])
            alpha = cho_solve(factor, first, check_finite=False)
            beta = beta_part.solve(B[self.n :]) - beta_part.solve_kernel(alpha[self.rows])
            return np.vstack([alpha, beta])

        def refined(B: Matrix) -> Matrix:
            X = solve(B)
            return np.asarray(X + solve(B - self._product(X) - theta[:, None] * X))

        return refined
