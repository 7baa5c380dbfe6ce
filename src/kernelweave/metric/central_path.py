"""An interior point for the LogDet problem of few features: Newton steps in both metrics at once.

Projections visit one pair at a time, and take long where many nearly dependent pairs are tight. One Newton step
moves all of them, at the price of a system in the d(d+1)/2 + g(g+1)/2 entries of M and P.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import cho_factor, cho_solve, eigh

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.metric.problem import LogDetProblem, PointPairs, ProjectionState, invert


def n_unknowns(problem: LogDetProblem) -> int:
    """Return how many entries of M and P there are to find."""
    d, g = problem.space.dim, problem.privileged.dim
    return d * (d + 1) // 2 + g * (g + 1) // 2


def follow_central_path(
    problem: LogDetProblem,
    state: ProjectionState,
    finished: Callable[[ProjectionState], bool],
    max_steps: int = 60,
) -> None:
    r"""Take Newton steps from a state until ``finished``, or until rounding leaves none to take.

    Every pair has a multiplier a in (0, cap), the room r = −violation it has left or the amount t by which it is
    violated, and on the central path a r = (cap − a) t = μ. A pair whose slack ξ is its own has no t: there ξ
    follows from a, 1/ξ = 1/goal − sign a/gamma, which bounds the a of similar pairs.
    """
    path = CentralPath(problem, state)
    for _ in range(max_steps):
        try:
            with np.errstate(all="ignore"):  # a step that overflows is not taken
                moved = path.step()
        except (LinAlgError, ValueError):  # rounding has taken over: no factor, or no number
            return
        if not moved:
            return
        with suppress(LinAlgError):  # multipliers away from the path need not make metrics
            if finished(path.projection_state()):
                return


@dataclass
class Direction:
    """A Newton step of everything that moves."""

    M: Matrix
    P: Matrix
    a: Vector
    r: Vector
    t: Vector


class CentralPath:
    """A point between the bounds of all multipliers, and its Newton step towards the optimum.

    ``aim`` is the share of the mean product that a step aims at. ``retreat`` is how many times the products of the
    start it begins with: on 4,000 pairs steps from there are four times as long as from the start itself.
    """

    def __init__(
        self, problem: LogDetProblem, state: ProjectionState, aim: float = 0.15, retreat: float = 10.0
    ) -> None:
        self.problem, self.aim, self.retreat = problem, aim, retreat
        self.M, self.P = problem.metrics(state)
        self.M_basis, self.P_basis = SymmetricBasis(problem.space.dim), SymmetricBasis(problem.privileged.dim)
        self.X = np.hstack(
            [
                problem.sign[:, None] * self.M_basis.of_pairs(problem.space),
                np.where(problem.has_privileged, -problem.sign, 0.0)[:, None]
                * self.P_basis.of_pairs(problem.privileged),
            ]
        )
        own_bound = np.where(problem.sign > 0.0, problem.gamma / problem.goal, np.inf)
        self.cap = np.where(problem.has_privileged, problem.cap, own_bound)
        self.has_t = problem.has_privileged & np.isfinite(problem.cap)
        size = np.where(np.isfinite(self.cap), self.cap, np.maximum(state.a, problem.gamma / problem.goal))
        self.a = np.clip(state.a, 1e-3 * size, np.where(np.isfinite(self.cap), 0.999 * self.cap, np.inf))
        violation = self.violation()
        products = self.a * np.maximum(-violation, 0.0) + self.z * np.maximum(violation, 0.0)
        mu = max(self.retreat * float(products.mean()), 1e-9 * float((size * problem.goal).mean()))
        self.a = np.where(self.has_t, self._balanced(violation, mu), self.a)
        self.r, self.t = mu / self.a, np.where(self.has_t, mu / self.z, 1.0)

    def _balanced(self, violation: Vector, mu: float) -> Vector:
        """Return the a with violation = mu / (cap − a) − mu / a, where a r = z t = mu fits the distances."""
        cap = np.where(self.has_t, self.cap, 1.0)
        root = np.sqrt((violation * cap) ** 2 + 4.0 * mu**2)
        low = 2.0 * mu * cap / (2.0 * mu + np.maximum(-violation, 0.0) * cap + root)
        high = cap - 2.0 * mu * cap / (2.0 * mu + np.maximum(violation, 0.0) * cap + root)
        return np.where(violation > 0.0, high, low)

    @property
    def z(self) -> Vector:
        """What is left of the multipliers to their caps, where a price is paid for violations."""
        return np.where(self.has_t, self.cap - self.a, 1.0)

    @property
    def slack(self) -> Vector:
        """The slacks ξ of pairs that have one of their own; 1 for the others."""
        p = self.problem
        own = 1.0 / p.goal - p.sign * self.a / p.gamma
        return np.where(p.has_privileged, 1.0, 1.0 / np.where(p.has_privileged, 1.0, own))

    def violation(self) -> Vector:
        """Return sign (p − s), or sign (p − ξ)."""
        p = self.problem
        near, far = p.space.squared_lengths(self.M), p.privileged.squared_lengths(self.P)
        return np.asarray(p.sign * (near - np.where(p.has_privileged, far, self.slack)))

    def projection_state(self) -> ProjectionState:
        """Return the multipliers of this point."""
        p = self.problem
        s = p.privileged.squared_lengths(self.P)
        b = p.gamma * (1.0 / np.where(p.has_privileged, s, 1.0) - 1.0 / p.goal) + p.sign * self.a
        return ProjectionState(
            self.a.copy(), np.where(p.has_privileged, b, 0.0), self.M.copy(), self.P.copy()
        )

    def step(self) -> bool:
        """Move by one Newton step, short of every bound; return whether it led anywhere."""
        products = np.concatenate([self.a * self.r, (self.z * self.t)[self.has_t]])
        step = self.direction(self.aim * float(products.mean()))
        length = min(1.0, 0.95 * self.longest(step))
        if not length > 1e-8:  # or no number
            return False
        self.M, self.P = self.M + length * step.M, self.P + length * step.P
        self.a, self.r, self.t = (
            old + length * change for old, change in ((self.a, step.a), (self.r, step.r), (self.t, step.t))
        )
        return True

    def direction(self, mu: float) -> Direction:
        """Return the step to the equations a r = z t = mu, with multipliers and slacks eliminated."""
        p, a, r, t, z = self.problem, self.a, self.r, self.t, self.z
        own = np.where(p.has_privileged, 0.0, self.slack**2 / p.gamma)
        per_multiplier = np.where(self.has_t, t / z, own)  # how far the violation yields to a
        W = 1.0 / (per_multiplier + r / a)
        rest = self.violation() + mu / a - np.where(self.has_t, mu / z, 0.0)
        M_inverse, P_inverse = invert(self.M), invert(self.P)
        s = np.where(p.has_privileged, p.privileged.squared_lengths(self.P), 1.0)
        loss_slope = np.where(p.has_privileged, p.gamma * (1.0 / p.goal - 1.0 / s), 0.0)
        loss_bend = np.where(p.has_privileged, p.gamma / s**2, 0.0)
        d = self.M_basis.size
        B = self.X[:, d:]  # −sign ww'; a sign more or less does not matter in squares
        gradient = self.X.T @ (a + W * rest)
        gradient[:d] += self.M_basis.vector(p.space.prior_inverse - M_inverse)
        gradient[d:] += p.lam * self.P_basis.vector(p.privileged.prior_inverse - P_inverse)
        gradient[d:] -= B.T @ (p.sign * loss_slope)
        H = self.X.T @ (W[:, None] * self.X)
        H[:d, :d] += self.M_basis.hessian(M_inverse)
        H[d:, d:] += p.lam * self.P_basis.hessian(P_inverse) + B.T @ (loss_bend[:, None] * B)
        move = -_solve_scaled(H, gradient)
        da = W * (rest + self.X @ move)
        dt = np.where(self.has_t, mu / z - t + t / z * da, 0.0)
        return Direction(
            self.M_basis.matrix(move[:d]), self.P_basis.matrix(move[d:]), da, mu / a - r - r / a * da, dt
        )

    def longest(self, step: Direction) -> float:
        """Return how far the step leaves both metrics definite and every variable inside its bounds."""
        shrinking = [-step.a / self.a, -step.r / self.r, step.a / (self.cap - self.a), -step.t / self.t]
        worst = max(float(ratio.max()) for ratio in shrinking)
        for matrix, change in ((self.M, step.M), (self.P, step.P)):
            worst = max(worst, -float(eigh(change, matrix, eigvals_only=True)[0]))
        return 1.0 / max(worst, 1e-300)


class SymmetricBasis:
    """Symmetric matrices of one dimension as vectors, such that inner products stay what they are."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.rows, self.columns = np.triu_indices(dim)
        self.size = self.rows.size
        self.scale = np.where(self.rows == self.columns, 1.0, np.sqrt(2.0))

    def vector(self, A: Matrix) -> Vector:
        return np.asarray(self.scale * A[self.rows, self.columns])

    def matrix(self, x: Vector) -> Matrix:
        A = np.zeros((self.dim, self.dim))
        A[self.rows, self.columns] = A[self.columns, self.rows] = x / self.scale
        return A

    def of_pairs(self, pairs: PointPairs) -> Matrix:
        """Return vv' by row."""
        chunks: list[AnyArray] = [
            self.scale * V[:, self.rows] * V[:, self.columns] for V in pairs.differences()
        ]
        return np.vstack(chunks)

    def hessian(self, A: Matrix) -> Matrix:
        """Return X -> A X A, the Hessian of −logdet where A is the inverse."""
        i, j = self.rows, self.columns
        both = A[np.ix_(i, i)] * A[np.ix_(j, j)] + A[np.ix_(i, j)] * A[np.ix_(j, i)]
        return np.asarray(np.outer(self.scale, self.scale) * both / 2.0)


def _solve_scaled(H: Matrix, right: Vector) -> Vector:
    """Solve H x = right, H positive definite, its diagonal scaled to one first."""
    scale = 1.0 / np.sqrt(np.diagonal(H))
    factor = cho_factor(H * np.outer(scale, scale), lower=True, overwrite_a=True)
    return np.asarray(scale * cho_solve(factor, scale * right))
