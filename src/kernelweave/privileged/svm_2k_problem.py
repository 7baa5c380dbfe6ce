"""The mathematics of SVM-2K: its dual by interior point, and two bounds of the optimum at every step."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.geometry.interior_point import InteriorIterate, Linearisation, LinearSolve, interior_point
from kernelweave.gram.rounding import arithmetic_errors
from kernelweave.learners.bias import hinge_bias
from kernelweave.learners.solution import rounding_of_product
from kernelweave.privileged.interior import StoppingRule, eliminate, low_rank_factor
from kernelweave.solvers.certificate import Certificate
from kernelweave.solvers.problem import Progress, Record


@dataclass(frozen=True)
class SVM2KSolution:
    """Coefficients and intercepts of both views, by column, bounds of the optimum, and why it stopped."""

    coef: Matrix = field(repr=False)
    intercept: Vector
    certificate: Certificate
    steps: int = 0
    stopped: str = "converged"

    @property
    def gap(self) -> float:
        return self.certificate.gap

    @property
    def relative_gap(self) -> float:
        return self.certificate.relative_gap


@dataclass(frozen=True)
class SVM2KPrices:
    """What each sample pays per unit of missing either margin, and of views that differ by more than ε."""

    margin_a: Vector
    margin_b: Vector
    disagreement: Vector
    epsilon: float


class SVM2KDual:
    r"""The dual of SVM-2K in x = (α_A, α_B, γ⁺, γ⁻), a box with two sums.

    .. math:: \min \tfrac12 u_A'K_Au_A + \tfrac12 u_B'K_Bu_B - 1'\alpha_A - 1'\alpha_B
       + \epsilon 1'(\gamma^+ + \gamma^-),\quad
       u_A = \alpha_A∘y - \gamma^+ + \gamma^-,\; u_B = \alpha_B∘y + \gamma^+ - \gamma^-,
       \quad 1'u_A = 1'u_B = 0

    Only u_A and u_B meet the kernels, so each step comes down to three factorisations of size n.
    """

    def __init__(self, K_a: Matrix, K_b: Matrix, y: Vector, prices: SVM2KPrices) -> None:
        self.K, self.y, self.n, self.prices = (K_a, K_b), y, y.size, prices
        self.F = tuple(low_rank_factor(K) for K in self.K)
        self.upper = np.concatenate(
            [prices.margin_a, prices.margin_b, prices.disagreement, prices.disagreement]
        )
        one, zero = np.ones(y.size), np.zeros(y.size)
        self.A = np.array([np.r_[y, zero, -one, one], np.r_[zero, y, one, -one]])

    def coefficients(self, x: Matrix) -> tuple[Matrix, Matrix]:
        """Return (u_A, u_B) of x, whose rows are variables."""
        a, b, plus, minus = np.split(x, 4)
        y = self.y if x.ndim == 1 else self.y[:, None]
        return y * a - plus + minus, y * b + plus - minus

    def _coefficients_adjoint(self, f_a: Matrix, f_b: Matrix) -> Matrix:
        """Return the transpose of `coefficients`."""
        y = self.y if f_a.ndim == 1 else self.y[:, None]
        return np.concatenate([y * f_a, y * f_b, f_b - f_a, f_a - f_b])

    def _product(self, x: Matrix) -> Matrix:
        u_a, u_b = self.coefficients(x)
        return self._coefficients_adjoint(self.K[0] @ u_a, self.K[1] @ u_b)

    def linearise(self, x: Vector, multipliers: Vector) -> Linearisation:  # noqa: ARG002 - all is linear
        linear = np.concatenate([-np.ones(2 * self.n), np.full(2 * self.n, self.prices.epsilon)])
        return Linearisation(self._product(x) + linear, self.A @ x, self.A, self._factorise)

    def _factorise(self, theta: Vector) -> LinearSolve:
        """Eliminate α_A and α_B, each within its view; what is left for γ = γ⁺ − γ⁻ is a sum over both."""
        at_a, at_b, plus, minus = np.split(theta, 4)
        view_a = eliminate(self.K[0], self.F[0], at_a)
        view_b = eliminate(self.K[1], self.F[1], at_b)
        S = view_a.parallel_sum + view_b.parallel_sum
        S[np.diag_indices_from(S)] += plus * minus / (plus + minus)
        left = cho_factor(S, lower=True, overwrite_a=True, check_finite=False)
        y, total = self.y[:, None], (plus + minus)[:, None]
        up, down = minus[:, None] / total, plus[:, None] / total

        def solve(R: Matrix) -> Matrix:
            r_a, r_b, r_plus, r_minus = np.split(R, 4)
            r_a, r_b = y * r_a, y * r_b
            right = up * r_plus - down * r_minus + view_a.kernel_solve(r_a) - view_b.kernel_solve(r_b)
            gamma = cho_solve(left, right, check_finite=False)
            a = view_a.solve(r_a) + view_a.solve_kernel(gamma)
            b = view_b.solve(r_b) - view_b.solve_kernel(gamma)
            both = (r_plus + r_minus) / total
            return np.concatenate([y * a, y * b, both + up * gamma, both - down * gamma])

        def refined(R: Matrix) -> Matrix:
            X = solve(R)
            return np.asarray(X + solve(R - self._product(X) - theta[:, None] * X))

        return refined

    def start(self) -> tuple[Vector, Vector]:
        """Return the middle of the box, the larger class scaled down until the sums agree."""
        x = 0.5 * self.upper
        for part in (slice(0, self.n), slice(self.n, 2 * self.n)):
            sums = np.where(self.y > 0, x[part][self.y > 0].sum(), x[part][self.y < 0].sum())
            x[part] *= sums.min() / sums
        return x, np.zeros(2)

    def _feasible(self, x: Vector) -> Vector:
        """Return a point of the box near x with both sums zero: in each view one class's α shrinks."""
        x = np.clip(x, 0.0, self.upper)
        for view, u in enumerate(self.coefficients(x)):
            part = x[view * self.n : (view + 1) * self.n]
            excess = float(u.sum())
            side = self.y > 0 if excess > 0.0 else self.y < 0
            total = float(part[side].sum())
            if total < abs(excess):  # shrinking cannot do it; zero is always feasible
                return np.zeros_like(x)
            if total > 0.0:
                part[side] *= (total - abs(excess)) / total
        return x

    def solutions(self, at: InteriorIterate) -> Iterator[SVM2KSolution]:
        """Return solutions near an iterate: with variables on their way to a bound put there, and without."""
        # Of a product that vanishes, the factor that does.
        typical = float(self.upper.mean())
        rounded = np.where(at.x > typical * at.low, at.x, 0.0)
        rounded = np.where(self.upper - at.x > typical * at.high, rounded, self.upper)
        for x in (rounded, at.x):
            yield self._solution(self._feasible(x), at.multipliers)

    def _solution(self, x: Vector, intercept: Vector) -> SVM2KSolution:
        """Return the solution of a feasible x with the best intercepts found, and both bounds."""
        u = np.column_stack(self.coefficients(x))
        f = np.column_stack([self.K[0] @ u[:, 0], self.K[1] @ u[:, 1]])
        loss, intercept = self._best_intercepts(f, intercept)
        energy = 0.5 * float(np.vdot(u, f))
        linear = float(x[: 2 * self.n].sum()) - self.prices.epsilon * float(x[2 * self.n :].sum())
        slack = self._rounding(u)
        return SVM2KSolution(
            u, intercept, Certificate(energy + loss + slack, min(linear - energy - slack, energy + loss))
        )

    def _rounding(self, u: Matrix) -> float:
        """Bound what the rounding of entries changes in either bound."""
        sizes = np.array([float(np.diagonal(K).max()) for K in self.K])
        errors, norms = arithmetic_errors(sizes, self.n), np.linalg.norm(u, axis=0)
        slope = float(np.linalg.norm(self.upper))
        moved = [rounding_of_product(error, size) for error, size in zip(errors, norms, strict=True)]
        return float(sum(move * (slope + 0.5 * size) for move, size in zip(moved, norms, strict=True)))

    def _best_intercepts(self, f: Matrix, intercept: Vector) -> tuple[float, Vector]:
        best, value = intercept.copy(), self._loss(f, intercept)
        for _ in range(5):  # exact steps in one after the other, from good ones
            before = value
            for view, own in enumerate((self.prices.margin_a, self.prices.margin_b)):
                other = f[:, 1 - view] + best[1 - view]
                trial = best.copy()
                trial[view] = self._intercept(f[:, view], own, other)
                reached = self._loss(f, trial)
                if reached < value:
                    best, value = trial, reached
            if value >= before:
                break
        return value, best

    def _intercept(self, f: Vector, C: Vector, other: Vector) -> float:
        """Return the best intercept of one view: being ε above or below the other is a hinge loss too."""
        ceiling, floor = other - f + self.prices.epsilon, other - f - self.prices.epsilon
        values = np.concatenate([f, 1.0 - floor, -1.0 - ceiling])
        one = np.ones(self.n)
        C_all = np.concatenate([C, self.prices.disagreement, self.prices.disagreement])
        return hinge_bias(values, np.concatenate([self.y, one, -one]), C_all)

    def _loss(self, f: Matrix, intercept: Vector) -> float:
        a, b = (f + intercept).T
        first = self.prices.margin_a @ np.maximum(0.0, 1.0 - self.y * a)
        second = self.prices.margin_b @ np.maximum(0.0, 1.0 - self.y * b)
        apart = np.maximum(0.0, np.abs(a - b) - self.prices.epsilon)
        return float(first + second + self.prices.disagreement @ apart)


def solve_two_views(
    K_a: Matrix,
    K_b: Matrix,
    y: AnyArray,
    prices: SVM2KPrices,
    tol: float,
    max_iter: int | None = None,
    progress: Progress | None = None,
) -> SVM2KSolution:
    """Return SVM-2K on two kernels, to the relative gap ``tol`` or as far as rounding allows."""
    dual = SVM2KDual(K_a, K_b, np.asarray(y, dtype=np.float64), prices)
    rule = StoppingRule[SVM2KSolution](tol)
    began, steps, most = time.perf_counter(), -1, 100 if max_iter is None else max_iter

    def finished(at: InteriorIterate) -> bool:
        nonlocal steps
        steps += 1
        stop = rule.update(dual.solutions(at))
        if progress is not None and rule.best is not None:
            progress(Record(rule.best.certificate, time.perf_counter() - began, 2))
        return stop

    stopped = "stalled"
    try:
        interior_point(dual, *dual.start(), finished, most)
    except KeyboardInterrupt:
        if rule.best is None:  # nothing to hand back yet
            raise
        stopped = "interrupted"
    assert rule.best is not None
    if rule.best.relative_gap <= tol:
        stopped = "converged"
    elif stopped == "stalled" and steps >= most:
        stopped = "max_iter"
    return replace(rule.best, steps=steps, stopped=stopped)
