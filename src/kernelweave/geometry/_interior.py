"""A primal-dual interior point method for the quadratic model, on any set with a smooth description.

It needs ten to twenty linear systems however collinear the kernels are, which neither active sets nor
proximal steps promise. Its answer is accurate, not exact: the caller settles which weights are zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from kernelweave._typing import Matrix, Vector

MAX_ITER = 150  # a dozen or two are usual; stiff norms of many kernels may need more
TOLERANCE = 1e-12  # of the duality gap, relative to the largest slope
ERROR_TOLERANCE = 1e-10  # of feasibility and slopes, likewise
STALLED = 1e-16  # a gap this small with larger errors: the systems have no more digits to give
TO_THE_WALL = 0.995  # of the way to the nearest bound: the usual caution
TINY = 1e-150  # what a room or a multiplier never falls below, so that their ratios stay finite
SMALLEST_ROOM = 1e-6  # of a constraint at the start
RIDGES = (1e-14, 1e-12, 1e-10, 1e-8)  # relative to the diagonal, against rounding in the last systems


class Boundary(NamedTuple):
    """A penalty and the constraints c(x) <= 0, seen from one x > 0 and multipliers of the constraints."""

    slope: Vector  # of the penalty
    constraints: Vector
    gradients: Matrix  # of the constraints, one row each
    curvature: Matrix  # of the penalty plus the constraints times their multipliers


Describe: TypeAlias = Callable[[Vector, Vector], Boundary]
Solve: TypeAlias = Callable[[Vector], Vector]


class Solution(NamedTuple):
    """A nearly optimal point and the multipliers of its bounds, relative to the largest slope.

    Weights smaller than their multiplier are zero at the optimum, and here.
    """

    x: Vector
    at_zero: Vector
    at_cap: Vector


def minimise(
    H: Matrix,
    b: Vector,
    start: Vector,
    *,
    describe: Describe | None = None,
    n_constraints: int = 0,
    cap: float = np.inf,
    keep_mass: bool = False,
) -> Solution:
    """Return argmin of x'Hx/2 - b'x + penalty(x) over {0 <= x <= cap, c(x) <= 0}.

    Start strictly inside; ``keep_mass`` adds the constraint sum x = 1.

    Notes
    -----
    Mehrotra's predictor and corrector on the perturbed optimality conditions, in units of the largest
    slope at the start.

    """
    n = len(b)
    scale = float(np.abs(b - H @ start).max()) or 1.0
    H, b, describe = H / scale, b / scale, _scaled(describe or _nothing, scale)
    n_bounds = 2 * n if cap < np.inf else n
    u, level = np.ones(n_bounds + n_constraints), 0.0
    v = np.maximum(_rooms(start, cap, describe(start, u[n_bounds:])), SMALLEST_ROOM)
    for _ in range(MAX_ITER):
        x = v[:n]
        local = describe(x, u[n_bounds:])
        system = _System(
            v, u, _rooms(x, cap, local) - v, local.gradients, float(x.sum()) - 1.0 if keep_mass else None
        )
        slope = H @ x - b + local.slope - system.pull(u) + level
        gap, error = float(v @ u), float(np.abs(slope) @ x) + system.violation
        if gap <= TOLERANCE and (error <= ERROR_TOLERANCE or gap <= STALLED):
            break
        solve = system.solver(H + local.curvature)
        if solve is None:
            break
        step = system.step(solve, slope, np.zeros_like(v))
        length = min(1.0, _reach(v, step.v), _reach(u, step.u))
        centring = (float((v + length * step.v) @ (u + length * step.u)) / gap) ** 3
        step = system.step(solve, slope, centring * gap / len(v) - step.v * step.u)
        length = min(1.0, TO_THE_WALL * min(_reach(v, step.v), _reach(u, step.u)))
        v, u = np.maximum(v + length * step.v, TINY), np.maximum(u + length * step.u, TINY)
        level += length * step.level
    x, at_zero = v[:n], u[:n]
    return Solution(np.where(x < at_zero, 0.0, x), at_zero, u[n:n_bounds] if cap < np.inf else np.zeros(n))


class _Step(NamedTuple):
    v: Vector
    u: Vector
    level: float


@dataclass(frozen=True)
class _System:
    """The linearised optimality conditions at one point.

    All inequalities are one vector of rooms v > 0 (x itself, cap - x where there is a cap, -c(x)) with
    multipliers u > 0. ``missed`` is how far v is from the true rooms, ``surplus`` the mass too much.
    """

    v: Vector
    u: Vector
    missed: Vector
    gradients: Matrix
    surplus: float | None

    @property
    def violation(self) -> float:
        return max(float(np.abs(self.missed).max()), abs(self.surplus or 0.0))

    def solver(self, H: Matrix) -> Solve | None:
        """Return r -> (H + the curvature of all barriers)^-1 r.

        The barriers of active constraints grow beyond all bounds: only a moderate part of each goes into
        the large matrix, the rest into a small one beside it (Sherman, Morrison and Woodbury).
        """
        lower, upper, rest = self._split(self.u / self.v)
        C = self.gradients
        A = H.copy()
        A[np.diag_indices(len(A))] += lower + upper
        moderate = np.minimum(rest, np.diagonal(H).max())
        A += C.T @ (moderate[:, None] * C)
        inverse = _cholesky(A)
        steep = rest > moderate
        if inverse is None or not steep.any():
            return inverse
        C = C[steep]
        reach = inverse(C.T)
        small = _cholesky(C @ reach + np.diag(1.0 / (rest - moderate)[steep]))
        if small is None:
            return None

        def solve(r: Vector) -> Vector:
            x = inverse(r)
            return np.asarray(x - reach @ small(C @ x))

        return solve

    def step(self, solve: Solve, slope: Vector, target: Vector) -> _Step:
        """Return the Newton step towards the products v u = target."""
        du = (target - self.u * self.missed) / self.v - self.u
        dx = solve(self.pull(du) - slope)
        rise = 0.0
        if self.surplus is not None:
            ones = solve(np.ones_like(dx))
            rise = (float(dx.sum()) + self.surplus) / float(ones.sum())
            dx = dx - rise * ones
        dv = self._push(dx) + self.missed
        return _Step(dv, (target - self.u * dv) / self.v - self.u, rise)

    def pull(self, u: Vector) -> Vector:
        """Return the multipliers' force on x."""
        lower, upper, rest = self._split(u)
        return lower - upper - rest @ self.gradients

    def _push(self, dx: Vector) -> Vector:
        """Return how the rooms change with x."""
        rest = -(self.gradients @ dx)
        return np.concatenate([dx, rest] if self._n_bounds == len(dx) else [dx, -dx, rest])

    def _split(self, u: Vector) -> tuple[Vector, Vector | float, Vector]:
        n = self.gradients.shape[1]
        upper = u[n : self._n_bounds] if self._n_bounds > n else 0.0
        return u[:n], upper, u[self._n_bounds :]

    @property
    def _n_bounds(self) -> int:
        return len(self.v) - len(self.gradients)


def _rooms(x: Vector, cap: float, local: Boundary) -> Vector:
    return np.concatenate([x, -local.constraints] if cap == np.inf else [x, cap - x, -local.constraints])


def _cholesky(A: Matrix) -> Solve | None:
    """Return r -> A^-1 r by the Cholesky factor of A with the smallest ridge that has one."""
    diagonal = np.diagonal(A).copy()
    for ridge in RIDGES:
        A[np.diag_indices(len(A))] = (1.0 + ridge) * diagonal
        factor, failed = dpotrf(A, lower=1)
        if not failed:
            return lambda r: np.asarray(dpotrs(factor, r, lower=1)[0])
    return None


def _reach(v: Vector, dv: Vector) -> float:
    """Return how far v > 0 can follow dv before it turns negative."""
    falls = dv < 0.0
    return float(np.min(v[falls] / -dv[falls], initial=np.inf))


def _scaled(describe: Describe, scale: float) -> Describe:
    """Return the same set with the penalty and the multipliers in other units."""

    def describe_scaled(x: Vector, multipliers: Vector) -> Boundary:
        slope, constraints, gradients, curvature = describe(x, scale * multipliers)
        return Boundary(slope / scale, constraints, gradients, curvature / scale)

    return describe_scaled


def _nothing(x: Vector, _multipliers: Vector) -> Boundary:
    n = len(x)
    return Boundary(np.zeros(n), np.zeros(0), np.zeros((0, n)), np.zeros((n, n)))
