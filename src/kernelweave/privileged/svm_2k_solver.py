"""How SVM-2K is solved: by sequential minimal optimisation, or by interior point."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from kernelweave import _core
from kernelweave._typing import Matrix, Vector
from kernelweave.geometry.interior_point import InteriorIterate, Linearisation, LinearSolve, interior_point
from kernelweave.learners.hinge import Hinge
from kernelweave.privileged.interior import StoppingRule, eliminate, low_rank_factor
from kernelweave.privileged.svm_2k_problem import SVM2KSolution, TwoViews
from kernelweave.solvers.problem import Progress, Record

METHODS = ("auto", "interior", "smo")


@dataclass
class TwoViewSolver:
    """Solves SVM-2K on two kernels to a relative gap, or as far as rounding allows.

    Parameters
    ----------
    tol : float
        Relative duality gap to stop at.
    method : {"auto", "interior", "smo"}, default="auto"
        "auto" is SMO, and the interior point where SMO has not closed the gap within ``smo_steps`` n² steps and
        there are at most ``max_dense`` samples.
    max_iter : int, default=100
        Most times that the bounds are drawn.
    max_dense : int, default=4_000
        A step of the interior point takes up to 5n³ operations and twelve matrices.
    smo_steps : float, default=0.25
        With so many times n² steps SMO takes about half as long as the interior point.

    """

    MATRICES: ClassVar[int] = 12  # what the interior point holds, with both kernels

    tol: float
    method: str = "auto"
    max_iter: int = 100
    max_dense: int = 4_000
    smo_steps: float = 0.25

    def solve(self, views: TwoViews, progress: Progress | None = None) -> SVM2KSolution:
        rounds = Rounds(self.tol, self.max_iter, progress)
        falls_back = self.method == "auto" and views.y.size <= self.max_dense
        try:
            if self.method != "interior":
                descend(views, rounds, int(self.smo_steps * views.y.size**2) if falls_back else None)
            if self.method == "interior" or (falls_back and not rounds.finished):
                follow_central_path(views, rounds)
        except KeyboardInterrupt:
            if rounds.best is None:  # nothing to hand back yet
                raise
            return replace(rounds.best, steps=rounds.steps, stopped="interrupted")
        assert rounds.best is not None
        return replace(rounds.best, steps=rounds.steps, stopped=rounds.why_stopped)


@dataclass
class Rounds:
    """The best solution so far, and how often bounds were drawn: at most ``max_iter`` times."""

    tol: float
    max_iter: int
    progress: Progress | None = None
    best: SVM2KSolution | None = None
    steps: int = 0
    began: float = field(default_factory=time.perf_counter)

    def update(self, solution: SVM2KSolution) -> bool:
        """Take in a solution; return whether to stop."""
        self.steps += 1
        if self.best is None or solution.gap < self.best.gap:
            self.best = solution
        if self.progress is not None:
            self.progress(Record(self.best.certificate, time.perf_counter() - self.began, 2))
        return self.finished

    @property
    def finished(self) -> bool:
        """Whether the gap is closed, or the budget is used up."""
        return self.steps >= self.max_iter or self.why_stopped == "converged"

    @property
    def why_stopped(self) -> str:
        if self.best is not None and self.best.relative_gap <= self.tol:
            return "converged"
        return "max_iter" if self.steps >= self.max_iter else "stalled"


def descend(views: TwoViews, rounds: Rounds, most_steps: int | None = None) -> None:
    """Solve by two or three variables at a time, from the C-SVCs of both views, without any factorisation.

    Each round asks for a smaller violation of the optimality conditions until the gap is small enough, or
    ``most_steps`` are used up; None is 5,000 per sample, a stop for degenerate problems only.
    """
    n, prices, violation = views.y.size, views.prices, 1e-2
    steps_left = 5_000 * n if most_steps is None else most_steps
    x = np.zeros((3, n))
    for row, K, C in ((0, views.K_a, prices.margin_a), (1, views.K_b, prices.margin_b)):
        x[row] = Hinge(C=1.0).solve(K, views.y, C, tol=violation).coef
    while True:
        x = views.feasible(x)  # sums that rounding has moved
        f = views.images(views.coefficients(x))
        steps, reached = _core.smo_views(
            views.K_a, views.K_b, views.y, views.lo, views.hi, prices.epsilon, x, f, violation, steps_left
        )
        steps_left -= steps
        solution = views.evaluate(views.feasible(x))
        if rounds.update(solution) or steps_left <= 0 or reached > violation:
            return
        # The gap shrinks about in proportion to what SMO leaves.
        violation *= float(np.clip(0.4 * rounds.tol / solution.relative_gap, 0.05, 0.4))


def follow_central_path(views: TwoViews, rounds: Rounds) -> None:
    """Solve by interior point, to the relative gap asked for or as far as rounding allows."""
    dual, rule = SVM2KDual(views), StoppingRule[SVM2KSolution](rounds.tol)

    def finished(at: InteriorIterate) -> bool:
        stalled = rule.update(dual.solutions(at))
        assert rule.best is not None
        return rounds.update(rule.best) or stalled

    interior_point(dual, *dual.start(), finished)


class SVM2KDual:
    r"""The dual of SVM-2K for the interior point, in (α_A, α_B, γ⁺, γ⁻) ≥ 0, where c = γ⁺ − γ⁻.

    Only u_A and u_B meet the kernels, so each step comes down to three factorisations of size n.
    """

    def __init__(self, views: TwoViews) -> None:
        self.views, self.y, self.n = views, views.y, views.y.size
        prices = views.prices
        self.K = (views.K_a, views.K_b)
        self.F = tuple(low_rank_factor(K) for K in self.K)
        self.upper = np.concatenate(
            [prices.margin_a, prices.margin_b, prices.disagreement, prices.disagreement]
        )
        one, zero = np.ones(self.n), np.zeros(self.n)
        self.A = np.array([np.r_[self.y, zero, -one, one], np.r_[zero, self.y, one, -one]])
        self.linear = np.concatenate([-np.ones(2 * self.n), np.full(2 * self.n, prices.epsilon)])

    def _product(self, x: Matrix) -> Matrix:
        a, b, plus, minus = np.split(x, 4)
        y = self.y if x.ndim == 1 else self.y[:, None]
        f_a = self.K[0] @ (y * a - plus + minus)
        f_b = self.K[1] @ (y * b + plus - minus)
        return np.concatenate([y * f_a, y * f_b, f_b - f_a, f_a - f_b])

    def linearise(self, x: Vector, multipliers: Vector) -> Linearisation:  # noqa: ARG002 - all is linear
        return Linearisation(self._product(x) + self.linear, self.A @ x, self.A, self._factorise)

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

    def solutions(self, at: InteriorIterate) -> Iterator[SVM2KSolution]:
        """Return solutions near an iterate: with variables on their way to a bound put there, and without."""
        # Of a product that vanishes, the factor that does.
        typical = float(self.upper.mean())
        rounded = np.where(at.x > typical * at.low, at.x, 0.0)
        rounded = np.where(self.upper - at.x > typical * at.high, rounded, self.upper)
        for x in (rounded, at.x):
            a, b, plus, minus = np.split(x, 4)
            yield self.views.evaluate(self.views.feasible(np.array([self.y * a, self.y * b, plus - minus])))
