"""SVM-2K: two support vector machines, one per view, that must not disagree much."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.gram.rounding import of_arithmetic
from kernelweave.learners.bias import hinge_bias
from kernelweave.learners.machine import Machine
from kernelweave.privileged.interior_point import Iterate, interior_point
from kernelweave.privileged.parallel_sum import eliminate, low_rank_factor
from kernelweave.solvers.certificate import Certificate
from kernelweave.solvers.problem import Progress
from kernelweave.solvers.result import Record

MAX_STEPS = 100
# Rounds of exact steps in one intercept after the other, from those the interior point hands over.
BIAS_ROUNDS = 5
# A gap has to fall to this share to count as better; so many steps without end the walk once the relative
# gap is below CLOSE. Before that, prices of different size keep it large while the iterates come nearer.
WORTH, PATIENCE, CLOSE = 0.7, 6, 0.1


@dataclass(frozen=True)
class TwoViewMachine:
    """Coefficients and intercepts of both views, by column, bounds of the optimum, and how the walk ended."""

    coef: Matrix = field(repr=False)
    intercept: Vector
    certificate: Certificate
    steps: int = 0
    stopped: str = "converged"


@dataclass(frozen=True)
class Prices:
    """What a sample pays for missing either margin by one, and for views that differ by one more than ε."""

    a: Vector
    b: Vector
    apart: Vector
    epsilon: float


class TwoViewProgram:
    r"""The dual of SVM-2K in x = (α_A, α_B, γ⁺, γ⁻), a box with two sums.

    .. math:: \min \tfrac12 u_A'K_Au_A + \tfrac12 u_B'K_Bu_B - 1'\alpha_A - 1'\alpha_B
       + \epsilon 1'(\gamma^+ + \gamma^-),\quad
       u_A = \alpha_A∘y - \gamma^+ + \gamma^-,\; u_B = \alpha_B∘y + \gamma^+ - \gamma^-,
       \quad 1'u_A = 1'u_B = 0

    Only u_A and u_B meet the kernels, so each step comes down to three factorisations of size n.
    """

    def __init__(self, K_a: Matrix, K_b: Matrix, y: Vector, prices: Prices) -> None:
        self.K, self.y, self.n, self.prices = (K_a, K_b), y, y.size, prices
        self.F = tuple(low_rank_factor(K) for K in self.K)
        self.upper = np.concatenate([prices.a, prices.b, prices.apart, prices.apart])
        one, zero = np.ones(y.size), np.zeros(y.size)
        self.A = np.array([np.r_[y, zero, -one, one], np.r_[zero, y, one, -one]])
        self.total = np.zeros(2)

    def coefficients(self, x: Matrix) -> tuple[Matrix, Matrix]:
        """Return (u_A, u_B) of x, whose rows are variables."""
        a, b, plus, minus = np.split(x, 4)
        y = self.y if x.ndim == 1 else self.y[:, None]
        return y * a - plus + minus, y * b + plus - minus

    def _back(self, f_a: Matrix, f_b: Matrix) -> Matrix:
        """Return the transpose of `coefficients`."""
        y = self.y if f_a.ndim == 1 else self.y[:, None]
        return np.concatenate([y * f_a, y * f_b, f_b - f_a, f_a - f_b])

    def _product(self, x: Matrix) -> Matrix:
        u_a, u_b = self.coefficients(x)
        return self._back(self.K[0] @ u_a, self.K[1] @ u_b)

    def gradient(self, x: Vector) -> Vector:
        linear = np.concatenate([-np.ones(2 * self.n), np.full(2 * self.n, self.prices.epsilon)])
        return np.asarray(self._product(x) + linear)

    def factor(self, theta: Vector) -> Callable[[Matrix], Matrix]:
        """Eliminate α_A and α_B, each within its view; what is left for γ = γ⁺ − γ⁻ is a sum over both."""
        at_a, at_b, plus, minus = np.split(theta, 4)
        view_a = eliminate(self.K[0], self.F[0], at_a)
        view_b = eliminate(self.K[1], self.F[1], at_b)
        S = view_a.parallel + view_b.parallel
        S[np.diag_indices_from(S)] += plus * minus / (plus + minus)
        left = cho_factor(S, lower=True, overwrite_a=True, check_finite=False)
        y, total = self.y[:, None], (plus + minus)[:, None]
        up, down = minus[:, None] / total, plus[:, None] / total

        def solve(R: Matrix) -> Matrix:
            r_a, r_b, r_plus, r_minus = np.split(R, 4)
            r_a, r_b = y * r_a, y * r_b
            right = up * r_plus - down * r_minus + view_a.damp(r_a) - view_b.damp(r_b)
            gamma = cho_solve(left, right, check_finite=False)
            a = view_a.solve(r_a) + view_a.answer(gamma)
            b = view_b.solve(r_b) - view_b.answer(gamma)
            both = (r_plus + r_minus) / total
            return np.concatenate([y * a, y * b, both + up * gamma, both - down * gamma])

        def refined(R: Matrix) -> Matrix:
            X = solve(R)
            return X + solve(R - self._product(X) - theta[:, None] * X)

        return refined

    def start(self) -> tuple[Vector, Vector]:
        """Return the middle of the box, the larger class scaled down until the sums agree."""
        x = 0.5 * self.upper
        for part in (slice(0, self.n), slice(self.n, 2 * self.n)):
            sums = np.where(self.y > 0, x[part][self.y > 0].sum(), x[part][self.y < 0].sum())
            x[part] *= sums.min() / sums
        return x, np.zeros(2)

    def feasible(self, x: Vector) -> Vector:
        """Return a point of the box near x with both sums zero: in each view one class's α shrinks."""
        x = np.clip(x, 0.0, self.upper)
        for view, u in enumerate(self.coefficients(x)):
            part = x[view * self.n : (view + 1) * self.n]
            excess = float(u.sum())
            side = self.y > 0 if excess > 0.0 else self.y < 0
            total = float(part[side].sum())
            if total < abs(excess):  # not to be had this way; zero is always feasible
                return np.zeros_like(x)
            if total > 0.0:
                part[side] *= (total - abs(excess)) / total
        return x

    def measure(self, x: Vector, intercept: Vector) -> TwoViewMachine:
        """Return the machine of a feasible x with the best intercepts found, and both bounds."""
        u = np.column_stack(self.coefficients(x))
        f = np.column_stack([self.K[0] @ u[:, 0], self.K[1] @ u[:, 1]])
        loss, intercept = self._best_intercepts(f, intercept)
        energy = 0.5 * float(np.vdot(u, f))
        linear = float(x[: 2 * self.n].sum()) - self.prices.epsilon * float(x[2 * self.n :].sum())
        slack = self._rounding(u)
        return TwoViewMachine(
            u, intercept, Certificate(energy + loss + slack, min(linear - energy - slack, energy + loss))
        )

    def _rounding(self, u: Matrix) -> float:
        """Bound what the rounding of entries changes in either bound."""
        sizes = np.array([float(np.diagonal(K).max()) for K in self.K])
        errors, norms = of_arithmetic(sizes, self.n), np.linalg.norm(u, axis=0)
        slope = float(np.linalg.norm(self.upper))
        moved = [Machine.reach(error, size) for error, size in zip(errors, norms, strict=True)]
        return float(sum(move * (slope + 0.5 * size) for move, size in zip(moved, norms, strict=True)))

    def _best_intercepts(self, f: Matrix, intercept: Vector) -> tuple[float, Vector]:
        best, value = intercept.copy(), self._loss(f, intercept)
        for _ in range(BIAS_ROUNDS):
            before = value
            for view, own in enumerate((self.prices.a, self.prices.b)):
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
        C_all = np.concatenate([C, self.prices.apart, self.prices.apart])
        return hinge_bias(values, np.concatenate([self.y, one, -one]), C_all)

    def _loss(self, f: Matrix, intercept: Vector) -> float:
        a, b = (f + intercept).T
        p = self.prices
        margins = p.a @ np.maximum(0.0, 1.0 - self.y * a) + p.b @ np.maximum(0.0, 1.0 - self.y * b)
        return float(margins + p.apart @ np.maximum(0.0, np.abs(a - b) - p.epsilon))


def solve_two_views(
    K_a: Matrix,
    K_b: Matrix,
    y: AnyArray,
    prices: Prices,
    tol: float,
    max_iter: int | None = None,
    progress: Progress | None = None,
) -> TwoViewMachine:
    """Return SVM-2K on two kernels, to the relative gap ``tol`` or as far as it goes."""
    program = TwoViewProgram(K_a, K_b, np.asarray(y, dtype=np.float64), prices)
    best: list[TwoViewMachine] = []
    began = time.perf_counter()
    idle, steps, most = 0, -1, MAX_STEPS if max_iter is None else max_iter

    def finished(at: Iterate) -> bool:
        nonlocal idle, steps
        steps += 1
        # Variables on their way to a bound are put there: of a product that vanishes, the factor that does.
        scale = float(program.upper.mean())
        x = np.where(at.x > scale * at.low, at.x, 0.0)
        x = np.where(program.upper - at.x > scale * at.high, x, program.upper)
        tried = [program.measure(program.feasible(z), at.multipliers) for z in (x, at.x)]
        machine = next((m for m in tried if m.certificate.relative_gap <= tol), tried[1])
        gap = machine.certificate.gap
        far = not best or best[0].certificate.relative_gap > CLOSE
        idle = 0 if far or gap < WORTH * best[0].certificate.gap else idle + 1
        if not best or gap < best[0].certificate.gap:
            best[:] = [machine]
        if progress is not None:
            progress(Record(best[0].certificate, time.perf_counter() - began, 2))
        return best[0].certificate.relative_gap <= tol or idle >= PATIENCE

    stopped = "stalled"
    try:
        interior_point(program, *program.start(), finished, most)
    except KeyboardInterrupt:
        if not best:  # nothing to hand back yet
            raise
        stopped = "interrupted"
    if best[0].certificate.relative_gap <= tol:
        stopped = "converged"
    elif stopped == "stalled" and steps >= most:
        stopped = "max_iter"
    return replace(best[0], steps=steps, stopped=stopped)
